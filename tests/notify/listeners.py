"""Who a note can reach: a desktop on a bus of its own, and a web service. Both are real, and keep what they hear."""

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
    """Skip where a person may lack something; fail where everything should be there."""
    reason = f"no {package} here: install Debian's package of that name"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


INTERFACE = "org.freedesktop.Notifications"
DESCRIBED = """
<node><interface name="org.freedesktop.Notifications">
<method name="Notify"><arg type="s" direction="in"/><arg type="u" direction="in"/><arg type="s" direction="in"/>
<arg type="s" direction="in"/><arg type="s" direction="in"/><arg type="as" direction="in"/>
<arg type="a{sv}" direction="in"/><arg type="i" direction="in"/><arg type="u" direction="out"/></method>
<method name="GetCapabilities"><arg type="as" direction="out"/></method>
<method name="GetServerInformation"><arg type="s" direction="out"/><arg type="s" direction="out"/>
<arg type="s" direction="out"/><arg type="s" direction="out"/></method>
</interface></node>
"""
ANSWERS: dict[str | None, tuple[str, list[Any]]] = {
    "Introspect": ("s", [DESCRIBED]),
    "GetCapabilities": ("as", [["body", "body-markup", "actions"]]),
    "GetServerInformation": ("ssss", ["listener", "tests", "1", "1.2"]),
    "Notify": ("u", [7]),
}


class Desktop:
    """A service that listens on the bus as a desktop's does, and keeps what it was asked to show."""

    def __init__(self, address: str | None = None, *, deaf: bool = False) -> None:
        self._address = address
        self.shown: Queue[dict[str, Any]] = Queue()
        self._deaf = deaf
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
        if message.message_type is not MessageType.METHOD_CALL or message.member not in ANSWERS:
            return False
        if message.member == "Notify":
            app, _, icon, title, body, _, hints, _ = message.body
            urgency = hints["urgency"].value
            self.shown.put({"app": app, "icon": icon, "title": title, "body": body, "urgency": urgency})
            if self._deaf:
                return True
        return Message.new_method_return(message, *ANSWERS[message.member])


@contextmanager
def session_bus() -> Iterator[str]:
    """Run a session bus, and give its address."""
    if not shutil.which("dbus-daemon"):
        unavailable("dbus")
    command = ["dbus-daemon", "--session", "--nofork", "--print-address"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as daemon:
        assert daemon.stdout
        yield daemon.stdout.readline().strip()
        daemon.terminate()


class Service(ThreadingHTTPServer):
    """A web service that takes notes, and keeps where each was sent and what it said."""

    daemon_threads = True
    code = 200

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Taking)
        self.taken: Queue[tuple[str, dict[str, Any]]] = Queue()


class Taking(BaseHTTPRequestHandler):
    server: Service
    FIELDS: ClassVar = ("title", "message", "type")

    def do_POST(self) -> None:
        said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(self.server.code)
        self.end_headers()
        self.server.taken.put((self.path, {field: said[field] for field in self.FIELDS}))

    def log_message(self, *_: object) -> None:
        """Say nothing: the test asserts."""
