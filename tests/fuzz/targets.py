"""What is fuzzed inside of this process: the parsers of payloads, commands, policies and journals.

A target makes an input from a random source, and tries it. A `Finding` is what must not happen: an error that is not
ours, an input that takes longer than a second, a promise that is broken.
"""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from subprocess import CompletedProcess, TimeoutExpired, run
from time import monotonic, process_time
from typing import TYPE_CHECKING, Protocol

import msgspec
from fuzz.mutations import PAYLOADS, mutate_bytes, mutate_json

from fairlead.clients import client_named
from fairlead.errors import FairleadError
from fairlead.events import HookEvent, PreToolUse
from fairlead.journal import JournalReader, event_record
from fairlead.journal._lines import decode, encode
from fairlead.policy import Guards, PolicyError
from fairlead.policy.config._reader import read_policy
from fairlead.policy.config._types import Layer, Policy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

LIMIT = 1.0
"""Seconds of processor time for one input."""
ANSWER_TIME = 30.0
"""Seconds within which a process answers on a busy machine; it hangs if it does not."""
TRIES = 3
IDLE_WAIT = 60.0
"""Seconds for which is waited until the machine has time."""


class Finding(Exception):
    """An input did what none may do."""


class TooSlow(Finding):
    """An input took too long, or the machine did: only a second try can tell."""


class Target(Protocol):
    """Something that takes inputs."""

    name: str

    def make(self, random: Random) -> bytes:
        """Return an input."""

    def run(self, case: bytes) -> None:
        """Try it. Raises `Finding`."""


@contextmanager
def bounded(*allowed: type[Exception]) -> Iterator[None]:
    """Let a block raise nothing but these errors, and take a second at most."""
    started = process_time()
    try:
        yield
    except allowed:
        pass
    except Finding:
        raise
    except BaseException as error:
        raise Finding(f"{type(error).__name__}: {error}") from error
    if process_time() - started > LIMIT:
        raise TooSlow(f"took {process_time() - started:.1f} s")


def run_in_time(command: list[str | Path], stdin: bytes, cwd: Path, env: dict[str, str]) -> CompletedProcess[bytes]:
    """Run a process. Raises `TooSlow` if it does not end, with the processor time that it took: a loop, or a wait."""
    before = getrusage(RUSAGE_CHILDREN)
    try:
        return run(command, input=stdin, capture_output=True, cwd=cwd, env=env, timeout=ANSWER_TIME, check=False)
    except TimeoutExpired:
        after = getrusage(RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        raise TooSlow(f"the launcher hangs, after {used:.1f} s of processor time") from None


def attempt(target: Target, case: bytes) -> Finding | None:
    """Try an input. What took too long is tried again once the machine has time, and is none if it is quick then.

    Processor time is no sure measure either: on a virtual machine it can contain the time of others.
    """
    for left in reversed(range(TRIES)):
        try:
            target.run(case)
        except TooSlow as slow:
            if not left:
                return slow
            _await_idle_machine()
        except Finding as finding:
            return finding
        else:
            return None
    return None


def _await_idle_machine() -> None:
    """Wait until some work takes about as long as its processor time; on a machine that is always busy not for ever."""
    give_up = monotonic() + IDLE_WAIT
    while monotonic() < give_up:
        started, used = monotonic(), process_time()
        sum(range(2_000_000))
        if monotonic() - started < 2 * (process_time() - used) < 2 * LIMIT:
            return


class Payloads:
    """A payload is parsed and recorded, or refused; its line is a record again."""

    name = "payloads"
    _events = (*(event.value for event in HookEvent), "Unknown", "stop")

    def make(self, random: Random) -> bytes:
        return random.choice(self._events).encode() + b"\n" + mutate_json(random.choice(PAYLOADS), random)

    def run(self, case: bytes) -> None:
        name, _, payload = case.partition(b"\n")
        kind, client = name.decode("latin-1"), client_named("claude")
        event = None
        with bounded(FairleadError):
            event = client.parse(payload, kind)
        with bounded():
            record = event_record(
                "0000000000000001-1", kind, payload, event, client="claude", route="daemon", verdict="none", exit_code=0
            )
            line = encode(record)
            if line.count(b"\n") != 1 or decode(line) != decode(encode(decode(line))):
                raise Finding("its line is not a record")


class Commands:
    """A shell command is judged, whatever it is."""

    name = "commands"
    _words = (
        *(
            "rm",
            "cat",
            "git",
            "sed -i",
            "find . -exec",
            "xargs",
            "python3 -c",
            "bash -c",
            "cd",
            "eval",
            "export A=",
            "-rf",
        ),
        *("kept.txt", "'", '"', "$(", ")", "`", "${A:-", "}", "|", "&&", ";", ">", ">>", "<<EOF\n", "EOF\n", "&", "!"),
        *("*", "?", "[a-z]", "{a,b}", "~", "\\", "\n", "if", "then", "fi", "for i in", "do", "done", "case", "esac"),
        *("((", "))", "[[", "]]", "<(", "$'\\x41'", "#", "é", "\x00", "2>&1", "sudo", "env", "nohup", "time", "../"),
    )

    def __init__(self) -> None:
        rules = {"preToolUse": {"uneditableFiles": ["kept.txt"], "unreadableFiles": ["secret*"]}}
        self._folder = tempfile.mkdtemp(prefix="fuzz-") + "/home/project"  # `..` is not what others keep in /tmp
        Path(self._folder).mkdir(parents=True)
        layer = Layer(f"{self._folder}/.fairlead.yaml", self._folder, msgspec.convert(rules, Policy))
        self._guards = Guards([layer])

    def make(self, random: Random) -> bytes:
        return " ".join(random.choice(self._words) for _ in range(random.randint(1, 25))).encode()

    def run(self, case: bytes) -> None:
        command = case.decode("utf-8", "replace")
        event = PreToolUse(session_id="s", tool_name="Bash", tool_input={"command": command}, cwd=self._folder)
        with bounded(FairleadError):
            self._guards.check(event)


class Policies:
    """A policy file is read, or its mistakes are told."""

    name = "policies"

    def __init__(self) -> None:
        pages = (Path(__file__).parents[2] / "docs/howto").glob("*.md")
        blocks = [block.split("```")[0] for page in pages for block in page.read_text("utf-8").split("```yaml\n")[1:]]
        self._texts = [block.encode() for block in blocks]

    def make(self, random: Random) -> bytes:
        text = b"".join(random.sample(self._texts, random.randint(1, 2)))
        return mutate_bytes(text, random)

    def run(self, case: bytes) -> None:
        with bounded(PolicyError, UnicodeDecodeError):
            read_policy(case.decode(), "/x/.fairlead.yaml")


class Journals:
    """A journal of damaged bytes is read: every line that is whole comes back."""

    name = "journals"

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
        records = [
            event_record(f"{n:016x}-1", "Stop", data, None, client="claude", route="cold", verdict="none", exit_code=0)
            for n, data in enumerate(PAYLOADS[:8], 1)
        ]
        self._lines = [encode(record) for record in records]

    def make(self, random: Random) -> bytes:
        return mutate_bytes(b"".join(self._lines), random)

    def run(self, case: bytes) -> None:
        (self._folder / "00000001.jsonl").write_bytes(case)
        with bounded():
            found = {record.id for _, record in JournalReader(str(self._folder)).read() if hasattr(record, "id")}
        whole = {n for n, line in enumerate(self._lines, 1) if case.startswith(line) or b"\n" + line in case}
        if missing := {f"{n:016x}-1" for n in whole} - found:
            raise Finding(f"lost {sorted(missing)}")
