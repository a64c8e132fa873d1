"""Runs commands for launchers: reads their requests, runs each in a thread, and keeps the commands that wait."""

from __future__ import annotations

import asyncio
import os
import re
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from secrets import token_urlsafe
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from fairlead.daemon.events._messages import (
    NOT_FOUND,
    NOT_THIS_DAEMON,
    OK,
    PLAN,
    UNAVAILABLE,
    UPGRADE_REQUIRED,
    WAIT,
    HookReply,
    HookRequest,
    error_reply,
    home_of,
    is_same_home,
    read_request,
)
from fairlead.events import DEFAULT_CLIENT
from fairlead.ipc import DaemonNotResponding, Response

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    from fairlead.daemon._runtime import Daemon

    Application = Callable[[MutableMapping[str, Any], Any, Any], Awaitable[None]]

PREFIX = b"POST /v1/commands/"
_REQUEST_LINE = re.compile(rb"POST /v1/commands/([A-Za-z0-9_-]+) HTTP/1\.1")
_TERMINALS = re.compile(rb"([01])([01])([01]),([0-9]{1,5})")
_MAX_HEAD = 256 * 1024
_MAX_BODY = 8 * 1024 * 1024
"""The maximum size of the words and stdin, in bytes. Larger commands run in a separate process."""
_MAX_WORDS = 10_000
_COMMAND_LINE = "fairlead.cli.served"
"""Imported by name with the first command, because the command line imports the daemon and not the reverse."""
_JSON = {"content-type": "application/json"}
_THREADS = 4
_TOKEN_PREFIX = "command-"  # noqa: S105 - no secret
_TOKEN_LIFETIME = 30.0


# -- requests and results ----------------------------------------------------------------------------------


class CommandDeclined(Exception):
    """The command must run in a separate process."""


class StdinWanted(Exception):
    """The command reads stdin, which the launcher has not sent yet."""


class WaitWanted(Exception):
    """The command made a request that takes a while. It is run again once the response has arrived."""

    def __init__(self, asked: DaemonRequest, seconds: float, undo_id: str) -> None:
        super().__init__(f"{asked.path} may take {seconds:g} s")
        self.asked = asked
        self.seconds = seconds
        """Seconds that the response may take."""
        self.undo_id = undo_id
        """The id under which mail in the response can be undone."""


class DaemonRequest(NamedTuple):
    """A request to one of the daemon's own routes."""

    method: str
    path: str
    """The path with the query."""
    body: bytes = b""


class Terminals(NamedTuple):
    """Which of the caller's streams are terminals, and how wide stdout is."""

    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    columns: int = 0
    """0 if unknown."""


class CommandRequest(msgspec.Struct, frozen=True):
    """A command line, and the data about the caller's process that the command needs."""

    words: tuple[str, ...]
    hook: HookRequest
    """The caller as in requests of events: its id, folder, variables and version."""
    terminals: Terminals = Terminals()
    stdin: bytes | None = None
    """`None` if it was not sent."""


class CommandCall(NamedTuple):
    """A request, and the function by which its command makes requests to the daemon."""

    request: CommandRequest
    ask: Callable[[DaemonRequest, float], Response]
    """Makes a request, and blocks for at most the given seconds. Raises `DaemonNotResponding` when they are over."""
    answers: dict[str, Response]
    """By path: responses for which the command has already waited."""
    started_at: float
    """When the launcher sent its first request, by the monotonic clock."""


class CommandOutput(NamedTuple):
    """The output of a command, and its exit code."""

    exit_code: int
    stdout: bytes
    stderr: bytes
    mail_id: str = ""
    """The id of mail in the output, or "". The mail counts as shown only if the launcher gives a receipt."""


def parse_command_request(data: bytes) -> CommandRequest | None:
    """Parse a request; `None` if it is incomplete. Raises `ValueError` if it is not a request of a launcher."""
    end = data.find(b"\r\n\r\n")
    if end < 0:
        if len(data) > _MAX_HEAD:
            raise ValueError("the headers are too long")
        return None
    line, *rest = data[:end].split(b"\r\n")
    match = _REQUEST_LINE.fullmatch(line)
    headers = [(name, value) for name, _, value in (header.partition(b": ") for header in rest)]
    fields = dict(headers)
    size, count = int(fields.get(b"content-length", b"")), int(fields.get(b"fairlead-words", b""))
    if match is None or not 0 <= size <= _MAX_BODY or not 0 <= count <= _MAX_WORDS:
        raise ValueError("no request of a launcher")
    body = data[end + 4 :]
    if len(body) < size:
        return None
    *words, stdin = body.split(b"\0", count)
    if len(words) != count or len(body) > size:
        raise ValueError("the words do not match their number")
    return CommandRequest(
        words=tuple(word.decode(errors="surrogateescape") for word in words),
        hook=read_request(match[1].decode(), DEFAULT_CLIENT, headers),
        terminals=_terminals(fields.get(b"fairlead-terminals", b"")),
        stdin=stdin if fields.get(b"fairlead-stdin") == b"1" else None,
    )


def _terminals(value: bytes) -> Terminals:
    match = _TERMINALS.fullmatch(value)
    if match is None:
        return Terminals()
    return Terminals(match[1] == b"1", match[2] == b"1", match[3] == b"1", int(match[4]))


# -- the service -----------------------------------------------------------------------------------------


class _Waiting(NamedTuple):
    """A command that waits for a response of one of the daemon's routes."""

    request: CommandRequest
    peer: int
    wanted: WaitWanted
    started_at: float
    issued_at: float


class CommandService:
    """Runs the commands of this daemon's launchers."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._home = home_of(os.environ, "/")
        self._threads = ThreadPoolExecutor(_THREADS, "commands")
        self._waiting: dict[str, _Waiting] = {}
        self.app: Application | None = None
        """The daemon's own routes. `None` until they are created."""
        self.answer_in_thread: Callable[[str, str, bytes, int], tuple[int, bytes] | None] = lambda *_: None
        """Returns the HTTP status and the JSON for a request; `None` if only the routes can answer it.

        Takes the method, the path, the body and the pid of the process that asks.
        """

    def close(self) -> None:
        """Wait for the commands in progress. Commands that have no thread yet are cancelled."""
        self._threads.shutdown(cancel_futures=True)

    async def reply(self, request: CommandRequest, peer: int) -> HookReply:
        """Run a command for the process with the pid `peer`, and return its output, with the status 200.

        With 202 the caller has to send stdin, with 303 to wait by a token, and with any other status to run the command
        itself.
        """
        hook = request.hook
        if hook.caller.version != self._daemon.version:
            return error_reply(UPGRADE_REQUIRED, f"this daemon is {self._daemon.version}")
        if not hook.launched or not is_same_home(hook, self._home):
            return error_reply(NOT_THIS_DAEMON, "this daemon serves another home")
        return await self._reply(request, peer, {}, monotonic())

    def issued(self, token: str) -> bool:
        """Return whether a token belongs to a command that waits."""
        return token in self._waiting

    async def wait(self, token: str, is_disconnected: Callable[[], bool]) -> HookReply:
        """Make the request for which a command waits, and run the command with the response.

        The token is used up. If the caller has disconnected meanwhile, mail in the response is queued again. When the
        daemon shuts down, return an error reply.
        """
        waiting = self._waiting.pop(token)
        wanted, gone = waiting.wanted, asyncio.Event()
        asking = asyncio.ensure_future(self._ask(wanted.asked, waiting.peer, gone))
        try:
            answers = {wanted.asked.path: await asyncio.shield(asking)}
            if self._daemon.shutdown.reason:
                return error_reply(UNAVAILABLE, "the daemon shuts down")
            reply = await self._reply(waiting.request, waiting.peer, answers, waiting.started_at)
        except asyncio.CancelledError:
            gone.set()
            asking.add_done_callback(lambda _: self._daemon.extensions.undo(wanted.undo_id))
            raise
        if is_disconnected() or reply.status != OK:
            self._daemon.extensions.undo(wanted.undo_id)
        return reply

    async def _reply(
        self, request: CommandRequest, peer: int, answers: dict[str, Response], started_at: float
    ) -> HookReply:
        loop = asyncio.get_running_loop()

        def ask(asked: DaemonRequest, timeout: float) -> Response:
            at_once = self.answer_in_thread(asked.method, asked.path, asked.body, peer)
            if at_once is not None:
                return Response(at_once[0], _JSON, at_once[1])
            answer = asyncio.run_coroutine_threadsafe(self._ask(asked, peer, asyncio.Event()), loop)
            try:
                return answer.result(timeout)
            except TimeoutError:
                answer.cancel()
                raise DaemonNotResponding(f"the daemon does not answer within {timeout:g} s") from None

        call = CommandCall(request, ask, answers, started_at)
        try:
            result: CommandOutput = await loop.run_in_executor(self._threads, _run, call)
        except StdinWanted:
            return HookReply(PLAN, stdout=b"stdin\n")
        except WaitWanted as wanted:
            return self._hold(request, peer, wanted, started_at)
        except CommandDeclined as error:
            return error_reply(NOT_FOUND, str(error))
        except Exception as error:  # the caller runs the command itself, and reports what is wrong
            self._daemon.errors.report(f"the command {request.words[:1]} failed: {type(error).__name__}: {error}")
            return error_reply(UNAVAILABLE, str(error))
        mail = result.mail_id
        return HookReply(OK, result.exit_code, result.stdout, result.stderr, undo_id=mail, receipt=mail)

    def _hold(self, request: CommandRequest, peer: int, wanted: WaitWanted, started_at: float) -> HookReply:
        if self._daemon.shutdown.reason:
            return error_reply(UNAVAILABLE, "the daemon shuts down")
        now = monotonic()
        for late in [name for name, one in self._waiting.items() if now - one.issued_at > _TOKEN_LIFETIME]:
            del self._waiting[late]
        token = f"{_TOKEN_PREFIX}{token_urlsafe(16)}"
        self._waiting[token] = _Waiting(request, peer, wanted, started_at, now)
        return HookReply(WAIT, token=token, milliseconds=int(wanted.seconds * 1000) + 1)

    async def _ask(self, asked: DaemonRequest, peer: int, gone: asyncio.Event) -> Response:
        """Call one of the daemon's routes on behalf of the process `peer`. `gone` is set when it disconnects."""
        assert self.app is not None, "there are no routes yet"  # set before the socket is opened
        path, _, query = asked.path.partition("?")
        exchange = _Exchange(asked.body, gone)
        scope = {
            "type": "http",
            "method": asked.method,
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": query.encode(),
            "headers": [(b"content-type", b"application/json")],
            "client": None,
            "state": {"peer": peer},
        }
        await self.app(scope, exchange.receive, exchange.send)
        return exchange.response()


class _Exchange:
    """One ASGI request to the daemon's own routes."""

    def __init__(self, body: bytes, gone: asyncio.Event) -> None:
        self._body: bytes | None = body
        self._gone = gone
        self._status = 0
        self._headers: dict[str, str] = {}
        self._parts: list[bytes] = []

    async def receive(self) -> dict[str, Any]:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._headers = {name.decode().lower(): value.decode() for name, value in message.get("headers", ())}
        else:
            self._parts.append(message.get("body", b""))

    def response(self) -> Response:
        return Response(self._status, self._headers, b"".join(self._parts))


def _run(call: CommandCall) -> CommandOutput:
    result: CommandOutput = import_module(_COMMAND_LINE).run_for_launcher(call)
    return result
