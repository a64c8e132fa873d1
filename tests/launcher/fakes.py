"""The environment of a launcher: a fake daemon on a real socket, and a fake Python that records how it was run."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Reply = bytes | Callable[[socket.socket], object]

FAKE_PYTHON = """\
#!{python} -IS
import json, os, signal, sys
record = os.environ["RECORD"]
with open(record + ".stdin", "wb") as file:
    try:
        while chunk := os.read(0, 1 << 20):
            file.write(chunk)
    except OSError as error:
        file.write(b"cannot read: %d" % error.errno)
words = sys.argv[1:]
plan = os.read(int(words[words.index("--plan-fd") + 1]), 1 << 20).decode() if "--plan-fd" in words else None
files = sorted(int(name) for name in os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else []
with open(record + ".new", "w") as file:
    json.dump({{"argv": sys.argv, "plan": plan, "files": files, "group": os.getpgrp()}}, file)
os.rename(record + ".new", record)
exec(os.environ.get("DO", "pass"))
"""


def program(imports: str, runs: str) -> str:
    """Return what Python is given to run: one line, and no traceback, says that it cannot load Fairlead."""
    explain = "sys.exit(f'fairlead: {sys.executable} cannot load it: {type(e).__name__}: {e}')"
    return f"import sys\ntry: {imports}\nexcept Exception as e: {explain}\n{runs}"


class Launcher:
    """A launcher in a separate home, with a fake Python to run."""

    def __init__(self, program: Path, home: Path) -> None:
        self.program = program
        self.home = home
        self.twin = program.parent.name == "python"
        self.record = home / "record"
        self.python = home / "fake-python"
        self.python.write_text(FAKE_PYTHON.format(python=sys.executable), encoding="utf-8")
        self.python.chmod(0o755)

    def env(self, **more: str) -> dict[str, str]:
        base = {"FAIRLEAD_HOME": str(self.home), "RECORD": str(self.record), "FAIRLEAD_DEADLINE_MS": "30000"}
        return {**base, "ASAN_OPTIONS": "exitcode=99:detect_leaks=0", "UBSAN_OPTIONS": "exitcode=99", **more}

    def command(self, *words: str) -> list[str]:
        return [str(self.program), *words, "--python", str(self.python)]

    def run(self, *words: str, stdin: bytes = b"{}", **more: Any) -> subprocess.CompletedProcess[bytes]:
        more = {"env": self.env(), "capture_output": True, "timeout": 50, **more}
        if "stdin_file" in more:
            more["stdin"] = more.pop("stdin_file")
        else:
            more["input"] = stdin
        return subprocess.run(self.command(*words), check=False, **more)

    def ran(self) -> dict[str, Any]:
        """Return how Python was run."""
        record: dict[str, Any] = json.loads(self.record.read_bytes())
        return record

    def stdin(self) -> bytes:
        """Return what Python read from stdin."""
        return self.record.with_suffix(".stdin").read_bytes()

    def evaluated_locally(self, *words: str, stdin: bytes = b"{}") -> bool:
        """Check that Python was run to evaluate the event, with these arguments and this stdin. Removes the record."""
        return self.evaluated_locally_as("[0-9a-f]{16}-[0-9a-f]+", *words, stdin=stdin)

    def evaluated_locally_as(self, name: str, *words: str, stdin: bytes = b"{}") -> bool:
        """Check the same as `evaluated_locally`, with an event id that matches a pattern."""
        argv = self.ran()["argv"]
        assert argv[1:4] == ["-E", "-P", "-c"]
        assert argv[4] == program("from fairlead.cli.main import launched", "launched()")
        assert argv[5:-2] == list(words)
        assert argv[-2] == "--launched"
        assert re.fullmatch(rf"{name},[0-9]+(,[0-9]+)?", argv[-1])
        assert self.stdin() == stdin
        self.record.unlink()
        return True


class Daemon:
    """A fake daemon: reads each request, records it, and sends `answer` or calls it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.requests: list[bytes] = []
        self.answer: Reply = b""
        self.answers: list[Reply] = []
        """Sent first, one per request; then `answer`."""
        self.over = threading.Event()
        """Set when the test is over; an answer that never comes waits for it."""

    def __enter__(self) -> Self:
        self.path.with_suffix(".lock").write_text(f"{os.getpid()}\n", encoding="ascii")
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.path))
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        while not self.over.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                self._handle(connection)

    def _handle(self, connection: socket.socket) -> None:
        try:
            self.requests.append(read_request(connection))
            answer = self.answers.pop(0) if self.answers else self.answer
            if callable(answer):
                answer(connection)
            else:
                connection.sendall(answer)
        except OSError:
            pass  # the launcher has closed the connection, as some tests expect


def read_request(connection: socket.socket) -> bytes:
    got = b""
    while b"\r\n\r\n" not in got:
        more = connection.recv(65536)
        if not more:
            return got
        got += more
    head, _, body = got.partition(b"\r\n\r\n")
    size = int((head.lower().partition(b"content-length:")[2].split() or [b"0"])[0])
    chunks, left = [got], size - len(body)
    while left > 0:
        more = connection.recv(min(left, 1 << 20))
        if not more:
            break
        chunks.append(more)
        left -= len(more)
    return b"".join(chunks)


def answer_200(stdout: bytes = b"", stderr: bytes = b"", code: int = 0) -> bytes:
    size = len(stdout) + len(stderr)
    head = (
        f"HTTP/1.1 200 OK\r\nfairlead-exit: {code}\r\nfairlead-stdout: {len(stdout)}\r\ncontent-length: {size}\r\n\r\n"
    )
    return head.encode() + stdout + stderr


def answer_202(plan: bytes) -> bytes:
    return b"HTTP/1.1 202 Accepted\r\ncontent-length: %d\r\n\r\n%s" % (len(plan), plan)


def answer_303(name: str, milliseconds: int = 30_000) -> bytes:
    lines = [
        "HTTP/1.1 303 See Other",
        f"location: /v1/waits/{name}",
        f"fairlead-wait: {milliseconds}",
        "content-length: 0",
    ]
    return "\r\n".join([*lines, "", ""]).encode()


def headers(request: bytes) -> dict[str, str]:
    lines = request.partition(b"\r\n\r\n")[0].decode("ascii").split("\r\n")[1:]
    parts = [line.partition(":") for line in lines]
    return {name: value.removeprefix(" ") for name, _, value in parts}


def deny(reason: str) -> bytes:
    """Return the exact answer that blocks a tool call."""
    start = (
        '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"'
    )
    return f'{start}{reason}"}}}}\n'.encode()


def closed(*files: int) -> Callable[[], None]:
    """Return a `preexec_fn` that closes these files."""

    def close() -> None:
        for fd in files:
            os.close(fd)

    return close
