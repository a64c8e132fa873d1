"""Real receivers of notes: a desktop service on its own session bus, and a web service. Both record what they get."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from threading import Event as Flag
from threading import Thread
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import pytest
from dbus_fast import Message, MessageType
from dbus_fast.aio import MessageBus

if TYPE_CHECKING:
    from collections.abc import Iterator


def unavailable(package: str) -> NoReturn:
    """Skip on a developer's machine; fail in CI, where everything must be installed."""
    reason = f"no {package} here: install Debian's package of that name"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


INTERFACE = "org.freedesktop.Notifications"
INTROSPECTION = """
<node><interface name="org.freedesktop.Notifications">
<method name="Notify"><arg type="s" direction="in"/><arg type="u" direction="in"/><arg type="s" direction="in"/>
<arg type="s" direction="in"/><arg type="s" direction="in"/><arg type="as" direction="in"/>
<arg type="a{sv}" direction="in"/><arg type="i" direction="in"/><arg type="u" direction="out"/></method>
<method name="GetCapabilities"><arg type="as" direction="out"/></method>
<method name="GetServerInformation"><arg type="s" direction="out"/><arg type="s" direction="out"/>
<arg type="s" direction="out"/><arg type="s" direction="out"/></method>
</interface></node>
"""
REPLIES: dict[str | None, tuple[str, list[Any]]] = {
    "Introspect": ("s", [INTROSPECTION]),
    "GetCapabilities": ("as", [["body", "body-markup", "actions"]]),
    "GetServerInformation": ("ssss", ["listener", "tests", "1", "1.2"]),
    "Notify": ("u", [7]),
}


class Desktop:
    """A notification service on the bus, as a desktop has one, that records what it was asked to show."""

    def __init__(self, address: str | None = None, *, silent: bool = False) -> None:
        self._address = address
        self.shown: Queue[dict[str, Any]] = Queue()
        self._silent = silent
        self._loop = asyncio.new_event_loop()
        self._ready = Flag()
        self._thread = Thread(target=self._run)
        self._thread.start()
        assert self._ready.wait(20)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self) -> None:
        bus = self._loop.run_until_complete(self._connect())
        self._loop.call_soon(self._ready.set)
        self._loop.run_forever()
        bus.disconnect()
        self._loop.run_until_complete(asyncio.sleep(0))

    async def _connect(self) -> MessageBus:
        bus = await MessageBus(self._address).connect()
        bus.add_message_handler(self._answer)
        await bus.request_name(INTERFACE)
        return bus

    def _answer(self, message: Message) -> Message | bool:
        if message.message_type is not MessageType.METHOD_CALL or message.member not in REPLIES:
            return False
        if message.member == "Notify":
            app, _, icon, title, body, _, hints, _ = message.body
            urgency = hints["urgency"].value
            self.shown.put({"app": app, "icon": icon, "title": title, "body": body, "urgency": urgency})
            if self._silent:
                return True
        return Message.new_method_return(message, *REPLIES[message.member])


@contextmanager
def session_bus() -> Iterator[str]:
    """Run a session bus, and yield its address."""
    if not shutil.which("dbus-daemon"):
        unavailable("dbus")
    command = ["dbus-daemon", "--session", "--nofork", "--print-address"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as daemon:
        assert daemon.stdout
        yield daemon.stdout.readline().strip()
        daemon.terminate()


class Service(ThreadingHTTPServer):
    """A web service that records the path and content of each note."""

    daemon_threads = True
    code = 200

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), NoteHandler)
        self.received: Queue[tuple[str, dict[str, Any]]] = Queue()


class NoteHandler(BaseHTTPRequestHandler):
    server: Service
    FIELDS: ClassVar = ("title", "message", "type")

    def do_POST(self) -> None:
        content = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(self.server.code)
        self.end_headers()
        self.server.received.put((self.path, {field: content[field] for field in self.FIELDS}))

    def log_message(self, *_: object) -> None:
        """Log nothing."""
