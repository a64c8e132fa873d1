"""Writes the parts of the documents that come from the code: the reference, included files, the picture.

`make docs` writes them; `python docs/generate.py --check` only says which of them are out of date.
"""

# ruff: noqa: INP001, T201 - a script, no package

from __future__ import annotations

import inspect
import os
import re
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import fairlead
from fairlead import Event, FairleadError, HookEvent, HookOutput, OtherEvent, ToolEvent
from fairlead.cli import event as event_command
from fairlead.cli.app import make_root
from fairlead.cli.support.command import HELP_WIDTH
from fairlead.clients import ClientAnswer, client_named
from fairlead.events import decode_json
from fairlead.sessions import (
    Costs,
    HistoryMatch,
    HistoryPage,
    HistorySession,
    Session,
    SessionCost,
    SessionHistory,
    SubagentHistory,
    TimelineEntry,
)
from fairlead.testing import make

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import ModuleType

    from docs.drawing import on_terminal, steady, svg
    from docs.reading import Field, assignment, definition, fields, members, signature
    from docs.schemas import schemas, to_text
    from docs.watching import watch_picture
else:  # a script finds its neighbours without the name of the folder
    from drawing import on_terminal, steady, svg
    from reading import Field, assignment, definition, fields, members, signature
    from schemas import schemas, to_text
    from watching import watch_picture

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs/reference"
GENERATED = "<!-- Written by docs/generate.py from the code: run `make docs` instead of editing. -->"
PICTURE = ROOT / "docs/images/demo.svg"
PICTURE_SHOWS = ("time      who", "The launcher is")
"""From which line on, and up to which: the events and their sum. Which launcher it is depends on the machine."""


def main(args: list[str]) -> int:
    """Write everything, or with `--check` say what would change; 1 if anything would."""
    stale = [path for path, text in everything() if not path.exists() or path.read_text("utf-8") != text]
    if "--check" in args:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is out of date: run make docs", file=sys.stderr)
        return 1 if stale else 0
    for path, text in everything():
        if path in stale:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
            print(f"wrote {path.relative_to(ROOT)}")
    return 0


@cache
def everything() -> tuple[tuple[Path, str], ...]:
    """Give every file that is generated, or has generated parts, with the text it should have."""
    pages = {
        "events.md": events_page,
        "api.md": api_page,
        "cli.md": cli_page,
        "errors.md": errors_page,
        "json.md": json_page,
    }
    whole = [(REFERENCE / name, page()) for name, page in pages.items()]
    whole += [(REFERENCE / f"schemas/{name}.schema.json", to_text(schema)) for name, schema in schemas().items()]
    pictures = ((PICTURE, demo_picture()), (PICTURE.with_name("watch.svg"), watch_picture()))
    parts = [(path, with_parts(path.read_text("utf-8"))) for path in hand_written()]
    return (*whole, *pictures, *parts)


def hand_written() -> Iterator[Path]:
    """Give the pages that people write."""
    yield ROOT / "README.md"
    yield from sorted(path for path in (ROOT / "docs").rglob("*.md") if REFERENCE not in path.parents)


# -- parts of pages ------------------------------------------------------------------------------------

_PART = re.compile(r"(<!-- (include|generated): (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def with_parts(text: str) -> str:
    """Fill in what stands between `<!-- include: FILE -->` or `<!-- generated: TABLE -->` and `<!-- end -->`."""
    return _PART.sub(lambda found: f"{found[1]}{_part(found[2], found[3])}{found[4]}", text)


def _part(kind: str, name: str) -> str:
    if kind == "generated":
        return TABLES[name]()
    language = {".py": "python", ".json": "json"}[Path(name).suffix]
    return f"```{language}\n{(ROOT / name).read_text('utf-8')}```\n"


A_BLOCK = {
    "UserPromptSubmit": "the prompt is not sent",
    "UserPromptExpansion": "the command is not expanded",
    "PreToolUse": "the call does not run; the model reads the reason",
    "PermissionRequest": "permission is denied; the model reads the reason",
    "PostToolUse": "the model reads the reason; the tool has run",
    "PostToolUseFailure": "the model reads the reason; the tool has failed",
    "PostToolBatch": "the turn ends",
    "SubagentStop": "the subagent continues and reads the reason",
    "TeammateIdle": "the teammate continues and reads the reason",
    "Stop": "the agent continues and reads the reason",
    "TaskCreated": "the task is not created",
    "TaskCompleted": "the task stays open",
    "PreCompact": "nothing is compacted",
    "PreModelSwitch": "the model is not switched",
    "Elicitation": "the request is declined",
    "ElicitationResult": "the answer becomes a refusal",
    "ConfigChange": "the change is not applied",
    "WorktreeCreate": "no worktree is created",
    "WorktreeRemove": "the worktree is kept",
}
"""What the client does with a block, as seen in runs of it; on other events it cannot block."""


def honoured_table() -> str:
    """Show what the client honours on each event: its answers are rendered and inspected."""
    rows: list[tuple[str, ...]] = [("event", "a block", "exit", "ask, grant, defer", "new input", "context")]
    for kind in HookEvent:
        event = make(kind.type)
        blocked = client_named(event.client).render(event, HookOutput.block("why"))
        if _reaches_the_agent(blocked) != (kind.value in A_BLOCK):
            raise SystemExit(f"{kind.value}: A_BLOCK does not say what the client's dialect says")
        said = [str(blocked.exit_code), *_on_the_call(event), _yes(event, HookOutput().with_context("new"))]
        rows.append((f"`{kind.value}`", A_BLOCK.get(kind.value, "cannot; the user sees a message"), *said))
    return table(rows)


def _reaches_the_agent(answer: ClientAnswer) -> bool:
    """Whether a block is more than a message to the person."""
    return answer.exit_code != 0 or bool(decode_json(answer.stdout or b"{}").keys() - {"systemMessage"})


def _on_the_call(event: Event) -> tuple[str, str]:
    """Look for verdicts and new input; only a tool call has them."""
    if not isinstance(event, ToolEvent):
        return "", ""
    verdicts = {"ask": HookOutput.ask("why"), "grant": HookOutput.grant(), "defer": HookOutput.defer()}
    honoured = [name for name, output in verdicts.items() if client_named(event.client).render(event, output).stdout]
    new_input = _yes(event, HookOutput.grant().with_updated_input({"new": "input"}))
    return "all" if len(honoured) == len(verdicts) else ", ".join(honoured), new_input


def _yes(event: Event, output: HookOutput) -> str:
    return "yes" if b"new" in client_named(event.client).render(event, output).stdout else ""


TABLES: dict[str, Callable[[], str]] = {"honoured": honoured_table}


def demo_picture() -> str:
    """Draw what `make run` prints on a terminal. If only the times differ from the picture that is there, keep that."""
    env = {key: value for key, value in os.environ.items() if key not in {"NO_COLOR", "COLUMNS"}}
    printed = on_terminal([sys.executable, "-m", "fairlead", "demo"], {**env, "TERM": "xterm"})
    begin, end = (next(n for n, line in enumerate(printed) if word in line) for word in PICTURE_SHOWS)
    lines = ["\x1b[36m$\x1b[0m make run", *printed[begin:end]]
    drawn = svg(lines, "fairlead", "make run: a team of agents under a policy; an edit of .env is blocked")
    return steady(drawn, PICTURE.read_text("utf-8") if PICTURE.exists() else "")


# -- the reference -------------------------------------------------------------------------------------


def events_page() -> str:
    """Describe every event."""
    rows = [("event", "in snake_case", "gate", "keeps going", "a matcher sees", "when")]
    for kind in HookEvent:
        can_block, keeps_going = ("yes" if flag else "" for flag in (kind.can_block, kind.type.keeps_going))
        link = f"[`{kind.value}`](#{kind.value.lower()})"
        rows.append((link, f"`{kind.snake}`", can_block, keeps_going, _subject(kind.type), first_line(kind.type)))
    return page(
        "Events",
        f"Claude Code has {len(HookEvent)} events. Each is a frozen type of its own, importable from `fairlead`. On a",
        "*gate* a hook can block what the event announces, and a hook that fails denies it. On an event that *keeps",
        "going*, a block keeps the agent from stopping. What the client does with each answer is in",
        "[Block, ask, rewrite, add context](../howto/answer.md).",
        "",
        table(rows),
        "## Fields of every event",
        "",
        "A field that the client did not send is `None`. What it sent and no field holds is in `extra`.",
        "",
        field_table(Event),
        "`tool_name` is `None` on events that are not about a tool call.",
        "",
        *_members(Event),
        *(section for kind in HookEvent for section in _event_section(kind.type)),
        "## OtherEvent",
        "",
        doc_of(OtherEvent),
        "",
        field_table(OtherEvent, above=Event),
    )


def _subject(kind: type[Event]) -> str:
    if kind.subject_field is None:
        return ""
    own = "subject" in vars(kind)
    return f"the bare name in `{kind.subject_field}`" if own else f"`{kind.subject_field}`"


def _event_section(kind: type[Event]) -> Iterator[str]:
    yield f"## {kind.__name__}\n"
    yield f"{doc_of(kind)}\n"
    fields = field_table(kind, above=Event)
    yield fields or "No fields of its own.\n"
    properties = [m for m in members(kind) if m.is_property and m.name != "subject"]
    yield from (f"`{m.name}` → `{m.returns}`: {m.doc}\n" for m in properties)


def api_page() -> str:
    """Describe every public name."""
    public = [(name, getattr(fairlead, name)) for name in fairlead.__all__ if name != "__version__"]
    plain = [(name, thing) for name, thing in public if not _is_a(thing, Event) and not _is_a(thing, FairleadError)]
    hooks = [(name, thing) for name, thing in plain if name in import_module("fairlead.hooks").__all__]
    return page(
        "Python API",
        "Import these from `fairlead`; a module whose name begins with `_` may change at any time.",
        "`fairlead.__version__` is the version.",
        "",
        "## Hooks",
        "",
        *_entries(hooks),
        "## Answers, events and payloads",
        "",
        *_entries(pair for pair in plain if pair not in hooks),
        "## Types in signatures",
        "",
        *(f"```py\n{assignment(name, fairlead)}\n```\n" for name in ("Phase", "Matcher", "Answer", "Outcome")),
        "## Event types",
        "",
        "Their fields are in [Events](events.md).",
        "",
        table([("type", ""), *((f"`{name}`", first_line(thing)) for name, thing in public if _is_a(thing, Event))]),
        "## Errors",
        "",
        "The tree is in [Errors](errors.md).",
        "",
        table([("error", ""), *((f"`{n}`", first_line(e)) for n, e in public if _is_a(e, FairleadError))]),
        *_module(import_module("fairlead.testing")),
        *_module(import_module("fairlead.sdk")),
    )


def _module(module: ModuleType) -> Iterator[str]:
    yield f"## {module.__name__}\n"
    yield f"{inspect.getdoc(module)}\n"
    yield from _entries((name, getattr(module, name)) for name in module.__all__)


def _entries(names: Iterable[tuple[str, Any]]) -> Iterator[str]:
    for name, thing in names:
        yield f"### {name}\n"
        if isinstance(thing, type):
            yield from _class_entry(name, thing)
        elif callable(thing) and hasattr(thing, "__code__"):
            yield f"```py\n{signature(definition(thing))}\n```\n"
            yield f"{doc_of(thing)}\n"
        else:
            yield f"```py\n{assignment(name, fairlead)}\n```\n"


def _class_entry(name: str, thing: type) -> Iterator[str]:
    made = next((m for m in members(thing, private=True) if m.name == "__init__"), None)
    if made is not None:
        yield f"```py\n{name}{made.signature.removeprefix('__init__').removesuffix(' -> None')}\n```\n"
    yield f"{doc_of(thing)}\n"
    if made is not None and made.doc:
        yield f"{made.doc}\n"
    if issubclass(thing, HookEvent):
        yield "Its members are the names in [Events](events.md).\n"
    elif made is None or fields(thing):
        yield field_table(thing)
    yield from _members(thing)


def _members(thing: type) -> Iterator[str]:
    for member in members(thing):
        shown = f"{member.name} → {member.returns}" if member.is_property else member.signature
        yield f"- `{shown}`  \n  {' '.join(member.doc.split())}"
    yield ""


def cli_page() -> str:
    """Show the help of every command."""
    sections = [f"## {path}\n\n```text\n{text.rstrip()}\n```\n" for path, text in command_helps()]
    return page(
        "Command line",
        "`python -m fairlead` is the same as `fairlead`. What it prints and how it exits, event by event, is in",
        "[Ship your own hooks](../howto/claude-code.md); every message is in",
        "[Troubleshooting](../troubleshooting.md).",
        "",
        "Durations are written as `30s`, `10m`, `2h`, `1d` or a number of seconds. Results are on stdout, everything",
        "else on stderr. Colours are used only at a terminal, and never if `NO_COLOR` is set. Ctrl-C ends a command",
        "with exit code 130.",
        "",
        *sections,
    )


def command_helps() -> Iterator[tuple[str, str]]:
    """Yield each command line and its help, in the order of `fairlead --help`; after it, the help of an event."""
    root = make_root()
    width = {"terminal_width": HELP_WIDTH, "resilient_parsing": True}
    with root.make_context("fairlead", [], **width) as ctx:
        yield "fairlead", root.get_help(ctx)
        yield "fairlead EVENT", event_command.HELP
        yield from _helps_below(root, ctx, width)


def _helps_below(group: click.Group, ctx: click.Context, width: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        if command is None:
            raise SystemExit(f"fairlead {name}: the command cannot be found")
        with command.make_context(name, [], parent=ctx, **width) as inner:
            yield inner.command_path, command.get_help(inner)
            if isinstance(command, click.Group):
                yield from _helps_below(command, inner, width)


def errors_page() -> str:
    """Show the tree of errors."""
    module = import_module("fairlead.errors")
    tree = (inspect.getdoc(module) or "").split("\n\n", 1)[1]
    rows = [("error", "is also a", "")]
    for name in module.__all__:
        others = [base.__name__ for base in getattr(module, name).__bases__ if base.__module__ == "builtins"]
        rows.append((f"`{name}`", ", ".join(f"`{other}`" for other in others), doc_of(getattr(module, name))))
    return page(
        "Errors",
        "Everything that Fairlead raises is a `FairleadError`, importable from `fairlead`. What each message means,",
        "and what to do, is in [Troubleshooting](../troubleshooting.md).",
        "",
        f"```text\n{tree}\n```",
        "",
        table(rows),
    )


def json_page() -> str:
    """Give the page about the JSON of `sessions`, its stream and `history`."""
    documents = {
        "fairlead sessions --json": (
            "sessions",
            "`now`, `costs` (see [Costs](#costs)) and `sessions`. A session has " + _SESSION_ADDS,
        ),
        "GET /v1/sessions/stream": ("stream", _STREAM),
        "fairlead history --json": ("history", "A [HistoryPage](#historypage)."),
        "fairlead history --session ID --json": ("history-session", "A [SessionHistory](#sessionhistory)."),
    }
    rows = [("document", "content", "schema")]
    rows += [(f"`{name}`", text, f"[{file}](schemas/{file}.schema.json)") for name, (file, text) in documents.items()]
    kinds = (Session, Costs, SessionCost, HistoryPage, HistorySession, HistoryMatch, SessionHistory)
    kinds = (*kinds, TimelineEntry, SubagentHistory)
    parts = [part for kind in kinds for part in (f"## {kind.__name__}", doc_of(kind), field_table(kind))]
    return page("JSON", _JSON_INTRODUCTION, table(rows), *parts)


_JSON_INTRODUCTION = (
    "What programs can rely on. A field that has its default may be left out. Later versions may add fields, and never "
    "change the meaning of one. Times are Unix times in seconds, costs are US dollars."
)
_SESSION_ADDS = "the fields of [Session](#session), and `is`, `stale`, `duration` and `in_state`."
_STREAM = (
    "Server-sent events: `session` (a [Session](#session)), `gone` (its `id`), `costs` ([Costs](#costs)) and `reset` "
    "(`revision`, `costs` and all `sessions`)."
)


def _is_a(thing: Any, base: type) -> bool:
    return isinstance(thing, type) and issubclass(thing, base)


# -- writing Markdown ----------------------------------------------------------------------------------


def page(title: str, *parts: str) -> str:
    """Put a page together."""
    text = "\n".join([f"# {title}\n", GENERATED, "", *parts])
    return re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n"


def table(rows: Sequence[tuple[str, ...]]) -> str:
    """Write a table; its first row is the head."""
    head, *body = [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows]
    lines = [head, ["---"] * len(head), *body]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def field_table(cls: type, above: type = object) -> str:
    """Show the fields of a class and of its bases below `above`; a later class can declare a field anew."""
    found: dict[str, Field] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith("fairlead") and base not in above.__mro__:
            found |= {field.name: field for field in fields(base)}
    rows = [(f"`{f.name}`", f"`{f.annotation}`", f.default or "required", f.doc) for f in found.values()]
    columns = 4 if any(doc for *_, doc in rows) else 3
    return table([row[:columns] for row in (("field", "type", "default", ""), *rows)]) if rows else ""


def doc_of(thing: Any) -> str:
    """Give the docstring."""
    return inspect.getdoc(thing) or ""


def first_line(thing: Any) -> str:
    """Give the docstring's first line."""
    return doc_of(thing).partition("\n")[0]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
