"""A scripted stand-in for the Messages API, on loopback. It streams, and it writes down what it was asked.

It knows the service's protocol and nothing of hooks or of how the client is run.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NotRequired, Self, TypeAlias, TypedDict, final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class ToolCall(TypedDict):
    """A call that the scripted model makes."""

    name: str
    input: dict[str, Any]


@final
class Meanwhile(TypedDict):
    """An answer, and what is done beside the client while it waits for that answer."""

    run: str
    then: str | list[ToolCall]
    tokens: NotRequired[int]
    """What the model has written for it, as it bills it."""


@final
class Quoting(TypedDict):
    """An answer with something in it that the request holds, and that is known only then."""

    find: str
    then: list[ToolCall]


@final
class Refusal(TypedDict):
    """An error of the service in place of an answer."""

    refuse: str


Turn: TypeAlias = "str | list[ToolCall] | Meanwhile | Quoting | Refusal"
"""One answer: a text, which ends the turn, or tool calls, whose results are then awaited."""

Script: TypeAlias = Sequence[Turn] | Mapping[str, Sequence[Turn]]
"""What the main agents play, all of them one after the other; or each its own, by what its first prompt holds."""

Subagents: TypeAlias = Sequence[Turn] | Mapping[str, Sequence[Turn]]
"""What each subagent plays from the start: all of them the same, or by what their prompts hold."""

Who: TypeAlias = Literal["main", "subagent", "other"]
"""Who asks; `other` is a request that is no turn of an agent."""

OVER = "The script is over."
"""The answer to a turn that the script does not have: a test that counts its requests will see it."""


FOUND = "<found>"
_TOKENS = 5


def call(name: str, **tool_input: Any) -> ToolCall:
    """Write a tool call."""
    return {"name": name, "input": tool_input}


def bash(command: str) -> ToolCall:
    """Write a call of the client's shell."""
    return call("Bash", command=command, description="scripted")


PRINTED = "@printed@"
"""In the shell commands of a turn `after` another command: what that one has printed."""


def after(command: str, turn: str | list[ToolCall]) -> Meanwhile:
    """Run a shell command beside the client, which waits for this turn and so does nothing else by then."""
    return {"run": command, "then": turn}


def quoting(find: str, turn: list[ToolCall]) -> Quoting:
    """Put what an expression finds in the request where the inputs of the calls say `FOUND`."""
    return {"find": find, "then": turn}


def costly(turn: str, tokens: int) -> Meanwhile:
    """Bill an answer as one of so many tokens, so that what it costs can be seen."""
    return {"run": "true", "then": turn, "tokens": tokens}


@dataclass(frozen=True)
class Request:
    """One request, as the model received it."""

    who: Who
    path: str
    body: dict[str, Any]
    at: float
    """When it began to arrive, by the clock that never goes back."""

    def holds(self, text: str) -> bool:
        """Whether the text is anywhere in it."""
        return any(text in string for string in _strings(self.body))

    @property
    def results(self) -> list[str]:
        """What the model reads as results of its tool calls, in order."""
        blocks = [block for message in self._messages() for block in _blocks(message)]
        return [_text(block) for block in blocks if block.get("type") == "tool_result"]

    def said(self, role: str) -> list[str]:
        """The texts that a role has in the conversation, in order."""
        messages = [message for message in self._messages() if message["role"] == role]
        return [block["text"] for message in messages for block in _blocks(message) if block["type"] == "text"]

    def _messages(self) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = self.body.get("messages", [])
        return messages


def read_requests(log: Path) -> list[Request]:
    """Read what the model was asked until now, in order."""
    lines = log.read_text().splitlines(keepends=True) if log.exists() else []
    return [Request(**json.loads(line)) for line in lines if line.endswith("\n")]  # the last may be half written


class Model:
    """The scripted model. As a context manager it serves; `url` says where."""

    def __init__(self, script: Script, subagent: Subagents, log: Path) -> None:
        """Take the turns of the main agents, those that every subagent plays, and the file that requests go to."""
        self._log = log
        self._count = 0
        self.answered: list[float] = []
        """When each answer had been sent, in order."""
        self.troubles: list[str] = []
        """What the script's own commands said that failed."""
        self._main, self._subagent = script, subagent
        self._played: dict[str, int] = {}
        self._lock = Lock()
        handler = type("Handler", (_Handler,), {"model": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)

    @property
    def url(self) -> str:
        """The address that the client is told."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, path: str, agent: str, body: dict[str, Any], at: float) -> dict[str, Any] | None:
        """Keep the request and give the next message of the script; `None` for what is no request for one."""
        who: Who = "subagent" if agent else "main"
        if path != "/v1/messages" or not body.get("tools"):
            who = "other"
        with self._lock:
            with self._log.open("a") as log:
                log.write(json.dumps(asdict(Request(who, path, body, at))) + "\n")
            self._count += 1
            if who == "other":
                return None
            number = self._count
            part, turns = _part(self._subagent if agent else self._main, body)
            player = agent or part
            played = self._played.get(player, 0)
            self._played[player] = played + 1
        turn = turns[played] if played < len(turns) else OVER
        if isinstance(turn, dict) and "refuse" in turn:
            return {"type": "error", "error": {"type": "invalid_request_error", "message": turn["refuse"]}}
        tokens = turn["tokens"] if isinstance(turn, dict) and "tokens" in turn else _TOKENS
        return _message(self._resolved(turn, body), number, str(body.get("model")), tokens)

    def _resolved(self, turn: str | list[ToolCall] | Meanwhile | Quoting, body: dict[str, Any]) -> str | list[ToolCall]:
        """Give the answer of a turn, after what it asks for was done."""
        if not isinstance(turn, dict):
            return turn
        if "find" in turn:
            found = next((match for text in _strings(body) if (match := re.search(turn["find"], text))), None)
            if found is None:
                self.troubles.append(f"{turn['find']} is not in the request")
            return _replaced(turn["then"], FOUND, found.group() if found else "")
        done = subprocess.run(["/bin/sh", "-ec", turn["run"]], check=False, capture_output=True, text=True)
        if done.returncode:
            self.troubles.append(f"{turn['run']}: exit {done.returncode}: {done.stdout}{done.stderr}")
        return _filled(turn["then"], done.stdout.strip())


def _replaced(calls: list[ToolCall], old: str, new: str) -> list[ToolCall]:
    return [
        call(one["name"], **{key: new if value == old else value for key, value in one["input"].items()})
        for one in calls
    ]


def _part(script: Script | Subagents, body: dict[str, Any]) -> tuple[str, Sequence[Turn]]:
    """Find what an agent plays by its first prompt, and by which words of that."""
    if not isinstance(script, Mapping):
        return "", script
    prompt = "".join(block.get("text", "") for block in _blocks(body["messages"][0]))
    return next(((about, turns) for about, turns in script.items() if about in prompt), ("", ()))


# -- the protocol --------------------------------------------------------------------------------------


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one write for each answer
    model: ClassVar[Model]

    def do_POST(self) -> None:
        at = monotonic()
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        agent = self.headers.get("x-claude-code-agent-id", "")  # set by subagents alone
        message = self.model.answer(self.path.partition("?")[0], agent, json.loads(raw), at)
        if message is None:
            self._send(404, "application/json", b'{"type":"error","error":{"type":"not_found_error","message":""}}')
        elif message["type"] == "error":
            self._send(400, "application/json", json.dumps(message).encode())
        else:
            stream = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in _events(message))
            self._send(200, "text/event-stream", stream.encode())
            self.model.answered.append(monotonic())

    def do_HEAD(self) -> None:
        self._send(200, "text/plain", b"")

    def _send(self, status: int, kind: str, data: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Say nothing: standard error belongs to the client."""


def _filled(turn: str | list[ToolCall], printed: str) -> str | list[ToolCall]:
    if isinstance(turn, str):
        return turn
    return [_with_command(one, one["input"].get("command", "").replace(PRINTED, printed)) for one in turn]


def _with_command(one: ToolCall, command: str) -> ToolCall:
    return {**one, "input": {**one["input"], "command": command}} if command else one


def _message(turn: str | list[ToolCall], number: int, model: str, tokens: int) -> dict[str, Any]:
    content: list[dict[str, Any]]
    if isinstance(turn, str):
        content = [{"type": "text", "text": turn}]
    else:
        content = [{"type": "tool_use", "id": f"toolu_{number}_{i}", **tool} for i, tool in enumerate(turn)]
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": "end_turn" if isinstance(turn, str) else "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": tokens},
    }


def _events(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Cut a message into the events of its stream."""
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            start, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            start = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield {"type": "content_block_start", "index": index, "content_block": start}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    delta = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": message["usage"]}
    yield {"type": "message_stop"}


# -- reading a request ---------------------------------------------------------------------------------


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _text(block: dict[str, Any]) -> str:
    return "\n".join(part["text"] for part in _blocks(block))


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (string for part in value.values() for string in _strings(part))
    elif isinstance(value, list):
        yield from (string for part in value for string in _strings(part))
