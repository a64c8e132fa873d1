"""The request of a hook and its reply: as values, and as the bytes that launcher and daemon exchange.

`RequestReader` reads requests in the one form that launchers write. A request in any other form is left to uvicorn,
which gives the same reply.
"""

from __future__ import annotations

import os
import re
from itertools import count
from time import time_ns
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from fairlead.clients import Client, client_or_default, loaded_client
from fairlead.events import DEFAULT_CLIENT, HookEvent
from fairlead.journal import Caller, Verdict
from fairlead.paths import FOLDER_VARIABLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


OK = 200
PLAN = 202
WAIT = 303
BAD_REQUEST = 400
NOT_FOUND = 404
NOT_THIS_DAEMON = 421
UPGRADE_REQUIRED = 426
UNAVAILABLE = 503

_MAX_DIGITS = 15
_MAX_ID_LENGTH = 40
_numbers = count()
_EVENT = b"POST /v1/events/"
_REPORT = b"POST /v1/plans/"
_REQUEST_LINE = re.compile(rb"POST /v1/(?:events|(plans))/([A-Za-z]+)(?:\?([^ #\r]*))? HTTP/1\.1")
_SHARED_HEADERS = re.compile(rb"(?:\r\n[a-z-]+: [^\r\n]*)+")
"""Headers that are the same each time the same process calls from the same folder."""
_ID = b"\r\nfairlead-id: "
_LENGTH = b"\r\ncontent-length: "
"""Headers that differ in each call, and follow the shared ones in this order."""
_MAX_LENGTH_DIGITS = 9
_WAIT = re.compile(rb"GET /v1/waits/([A-Za-z0-9_-]{1,64}) HTTP/1\.1\r\n((?:[A-Za-z-]+: *[^\r\n]*\r\n)*)\r\n")
_ACKS = (b"fairlead-acks: 2\r\n", b"fairlead-acks: 1\r\n")
_MAX_HEAD = 64 * 1024
_MAX_PAYLOAD = 256 * 1024
"""Bytes of a payload that arrives in few pieces."""
_UNEXPECTED = frozenset({b"transfer-encoding", b"expect", b"upgrade", b"content-length", b"fairlead-id"})
_MAX_CALLERS = 4096
_MAX_LINES = 256


class HookRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The request to decide an event, or to settle its plan (`is_report`), without the payload."""

    event: str
    client: str = DEFAULT_CLIENT
    id: str = ""
    cwd: str = "/"
    env: dict[str, str] = {}
    """The variables that the launcher passes on, as far as they are set."""
    launched: bool = False
    """Whether a launcher sent it. Launchers always pass their variables on."""
    acks: bool = False
    """Whether the launcher acknowledges the reply when it is printed."""
    receipts: bool = False
    """Whether the launcher acknowledges the reply with a receipt (`ipc.give_receipt`), which a later daemon can read as
    well."""
    runs_steps: bool = False
    """Whether the launcher can run the steps of a plan itself."""
    is_report: bool = False
    """Whether it is the report of a plan's results, not an event."""
    caller: Caller = Caller()
    home: tuple[str, ...] = ()
    """The variables that determine the folders of a process, in the order of `FOLDER_VARIABLES`."""
    known_client: Client | None = None
    """The client; `None` if it would have to be searched for on the disk."""
    is_read_strictly: bool = False
    """Whether the client's payloads are decoded by `fairlead.events.parse`, which accepts nothing but JSON."""
    client_folder: str = ""
    """The client's own folder, if a variable moves it; else ""."""
    is_headless: bool = False
    """Whether the client runs without a user."""


class HookReply(msgspec.Struct, frozen=True):
    """The reply to one hook.

    The HTTP status says what to do: print it (200), run it (202), or wait for it (303). With any other status, the
    launcher decides without this daemon.
    """

    status: int
    exit: int = 0
    """The hook's exit code; in a 202, the exit code if the plan cannot be carried out."""
    stdout: bytes = b""
    """What to print; in a 202, the steps for the launcher, if it runs them itself, and the decision as JSON."""
    stderr: bytes = b""
    verdict: Verdict = "none"
    reason: str = ""
    undo_id: str = ""
    """The id for `undo` if the reply is not delivered, mostly that of the event; "" if nothing has to be undone."""
    receipt: str = ""
    """The name of the receipt that the launcher gives when the reply is printed."""
    token: str = ""
    """In a 303, the token with which to ask for the reply."""
    milliseconds: int = 0
    """In a 303, how long the wait may take."""
    steps_size: int = 0
    """In a 202, the number of bytes of the steps at the start of `stdout`."""

    def headers(self) -> list[tuple[bytes, bytes]]:
        """Return the HTTP headers."""
        headers = [
            (b"fairlead-exit", b"%d" % self.exit),
            (b"fairlead-stdout", b"%d" % len(self.stdout)),
            (b"content-length", b"%d" % (len(self.stdout) + len(self.stderr))),
        ]
        if self.receipt:
            headers.append((b"fairlead-ack", self.receipt.encode()))
        if self.steps_size:
            headers.append((b"fairlead-steps", b"%d" % self.steps_size))
        if self.token:
            headers.append((b"location", b"/v1/waits/%b" % self.token.encode()))
            headers.append((b"fairlead-wait", b"%d" % self.milliseconds))
        return headers


EMPTY_REPLY = HookReply(OK)
"""The reply to most events: there is nothing to print."""


def error_reply(status: int, text: str) -> HookReply:
    """Return a reply that makes the launcher decide without this daemon."""
    return HookReply(status, stdout=text.encode(errors="replace"))


def read_request(
    event: str, client: str, headers: Iterable[tuple[bytes, bytes]], *, is_report: bool = False
) -> HookRequest:
    """Parse a request. Headers that are missing or malformed get defaults: the payload alone determines the event."""
    fields = {name: value.decode("latin-1") for name, value in headers if name.startswith(b"fairlead-")}
    env = read_env(fields.get(b"fairlead-env", ""))
    event_id = fields.get(b"fairlead-id") or f"{time_ns():016x}-0-{next(_numbers):x}"
    loaded = loaded_client(client)
    known = loaded or client_or_default(client)
    variables = known.variables
    caller = Caller(
        pid=_number(fields.get(b"fairlead-pid")),
        start=_number(fields.get(b"fairlead-start")),
        pane=env.get("TMUX_PANE", ""),
        tmux=env.get("TMUX", ""),
        project=env.get(variables.project_dir, ""),
        env_file=env.get(variables.env_file, ""),
        version=fields.get(b"fairlead-version", ""),
    )
    cwd = unquote(fields.get(b"fairlead-cwd", "/"), errors="surrogateescape")
    return HookRequest(
        event=event,
        client=client,
        id=event_id,
        cwd=cwd,
        env=env,
        launched=b"fairlead-env" in fields,
        acks=fields.get(b"fairlead-acks") in {"1", "2"},
        receipts=fields.get(b"fairlead-acks") == "2" and is_receipt_name(event_id),
        is_report=is_report,
        runs_steps=fields.get(b"fairlead-steps") == "1",
        caller=caller,
        home=tuple([env.get(name, "") for name in FOLDER_VARIABLES]),
        known_client=loaded or loaded_client(client),
        is_read_strictly=type(known).parse is Client.parse,
        client_folder=os.path.join(cwd, folder) if (folder := env.get(variables.config_dir, "")) else "",
        is_headless=known.is_headless(env),
    )


def read_target(name: str, query: bytes) -> tuple[str, str]:
    """Return the event and the client of a request, from the last part of its path and its query."""
    known = HookEvent.find(name)
    client = query.removeprefix(b"client=").decode("latin-1") if query.startswith(b"client=") else DEFAULT_CLIENT
    return known.value if known else name, client


def read_env(text: str) -> dict[str, str]:
    """Parse the variables: `NAME=percent-encoded;...`."""
    pairs = (item.partition("=") for item in text.split(";") if item)
    return {name: unquote(value, errors="surrogateescape") if "%" in value else value for name, _, value in pairs}


def is_same_home(request: HookRequest, own: Mapping[str, str]) -> bool:
    """Return whether the caller has the same folders as this daemon. If not, another user-wide policy applies to it."""
    return request.home == (*own.values(),) or own == home_of(request.env, request.cwd)


def home_of(env: Mapping[str, str], cwd: str) -> dict[str, str]:
    """Return the variables that determine the folders of a process, and "" for those that are not set.

    FAIRLEAD_HOME, which may be relative to the working directory `cwd`, is made absolute.
    """
    home = {name: env.get(name, "") for name in FOLDER_VARIABLES}
    if own := home["FAIRLEAD_HOME"]:
        home["FAIRLEAD_HOME"] = os.path.abspath(os.path.join(cwd, own))
    return home


def is_newer(theirs: str, ours: str) -> bool:
    """Return whether the version `theirs` is newer than `ours`. Parts that are not numbers are ignored."""
    return theirs != ours and _parts(theirs) > _parts(ours)


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def is_receipt_name(event_id: str) -> bool:
    """Return whether an id can be the name of a receipt, which is a file."""
    return len(event_id) < _MAX_ID_LENGTH and event_id.isascii() and event_id.replace("-", "").isalnum()


def _number(text: str | None) -> int:
    return int(text) if text and text.isdigit() and len(text) <= _MAX_DIGITS else 0


class NotHookRequest(Exception):
    """A request that `RequestReader` does not read: it is of another kind, or in another form."""


class _Target(NamedTuple):
    """The target of a request, from its first line."""

    event: str
    client: str
    is_report: bool
    callers: dict[bytes, HookRequest]
    """Requests to this client without their event and id, by the headers that are the same for all of them."""


class RequestReader:
    """Parses the requests of launchers. For a known caller, only the event, the id and the payload are parsed."""

    def __init__(self) -> None:
        self._targets: dict[bytes, _Target] = {}
        self._callers: dict[str, dict[bytes, HookRequest]] = {}
        """Client → requests by their shared headers, as in `_Target.callers`."""

    def read(self, data: bytes) -> tuple[HookRequest, bytes] | None:
        """Return the request and its payload; `None` while it is not complete.

        `data` is all that was read from the connection so far. Raises `NotHookRequest` for any other request.
        """
        end = data.find(b"\r\n\r\n")
        if end < 0:
            if len(data) > _MAX_HEAD or not any(
                data.startswith(start) or start.startswith(data) for start in (_EVENT, _REPORT)
            ):
                raise NotHookRequest
            return None
        own, line = data.rfind(_ID, 0, end), data.find(b"\r\n")
        event_id, _, length = data[own + len(_ID) : end].partition(_LENGTH)
        if own <= line or not event_id or b"\n" in event_id or b"\r" in event_id or not _is_length(length):
            raise NotHookRequest
        target = self._targets.get(data[:line]) or self._parse_line(data[:line])
        headers = data[line:own]
        request = target.callers.get(headers) or self._parse_headers(target, headers)
        end += 4
        missing = int(length) - (len(data) - end)
        if missing < 0 or len(data) + missing - end > _MAX_PAYLOAD:
            raise NotHookRequest
        if missing:
            return None
        name = event_id.decode("latin-1")
        return msgspec.structs.replace(request, id=name, event=target.event, is_report=target.is_report), data[end:]

    def _parse_headers(self, target: _Target, text: bytes) -> HookRequest:
        headers = [(name, value) for name, _, value in (line.partition(b": ") for line in text.split(b"\r\n")[1:])]
        if not _SHARED_HEADERS.fullmatch(text) or not _UNEXPECTED.isdisjoint(name for name, _ in headers):
            raise NotHookRequest
        if len(target.callers) >= _MAX_CALLERS:
            target.callers.clear()
        request = target.callers[text] = read_request("", target.client, headers)
        return request

    def _parse_line(self, line: bytes) -> _Target:
        match = _REQUEST_LINE.fullmatch(line)
        if match is None:
            raise NotHookRequest
        if len(self._targets) >= _MAX_LINES:
            self._targets.clear()
            self._callers.clear()
        event, client = read_target(match[2].decode(), match[3] or b"")
        target = _Target(event, client, match[1] is not None, self._callers.setdefault(client, {}))
        self._targets[line] = target
        return target


def _is_length(text: bytes) -> bool:
    return text.isdigit() and len(text) <= _MAX_LENGTH_DIGITS


def parse_wait_request(data: bytes) -> tuple[str, bool] | None:
    """Parse the request of a launcher that waits: the token, and whether it acknowledges the reply.

    Returns `None` for any other request.
    """
    match = _WAIT.fullmatch(data)
    return None if match is None else (match[1].decode(), any(line in match[2] for line in _ACKS))


def encode_reply(reply: HookReply, *, acks: bool = False) -> bytes:
    """Return the HTTP response for a reply. With `acks`, the launcher is asked to acknowledge it."""
    if reply is EMPTY_REPLY:
        return _ENCODED_EMPTY_REPLY
    return _encode(reply, acks=acks)


def _encode(reply: HookReply, *, acks: bool) -> bytes:
    head = b"".join(b"%b: %b\r\n" % header for header in reply.headers())
    more = b"fairlead-ack: 1\r\n" if acks and not reply.receipt else b""
    return b"%b%b%bconnection: close\r\n\r\n%b%b" % (STATUS_LINE[reply.status], head, more, reply.stdout, reply.stderr)


_ENCODED_EMPTY_REPLY = _encode(EMPTY_REPLY, acks=False)
