"""Our hooks in the text of Claude Code's settings: put in, found, brought up to date, taken out. Touches no file.

Whatever else is in the text keeps its bytes. An entry may hold hooks of several owners; then ours alone is changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from fairlead.clients._json_text import (
    Edit,
    Node,
    Raw,
    apply,
    insertion,
    parse,
    removal,
    replacement,
    style_of,
)
from fairlead.clients.claude._install_events import EVENTS, events_for, is_known
from fairlead.clients.claude._ownership import REPLACEABLE, WAKES, is_ours, is_wake, words_of
from fairlead.clients.claude._settings_rules import check, check_keys
from fairlead.events import HookEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from fairlead.clients.claude._install_events import Version

EMPTY = "{}\n"
"""What an empty file is taken for; the client takes it so too."""

_NOT_OURS = ("async", "asyncRewake", "if", "shell")
"""Keys that would keep our hook from being asked, or from being heard."""
_LONGEST = 2_147_483
"""Seconds, 24 days. 2.1.197 counts them in milliseconds of 32 bits, and one more would end the hook at once."""


LineWish = Literal["chain", "show", "leave"]
"""What to do about the status line: listen to the person's own; if there is none, show ours; nothing."""
LineDone = Literal["", "chained", "added", "updated", "restored", "removed"]
"""What was done about it."""


class Launcher(msgspec.Struct, frozen=True):
    """The programs that an installed hook starts."""

    hook: str
    python: str


class Asked(msgspec.Struct, frozen=True):
    """What an install asks for."""

    launcher: Launcher
    version: tuple[int, int, int] | None = None
    also: frozenset[str] = frozenset()
    replace: frozenset[str] = frozenset()
    status_line: LineWish = "chain"
    stay: str | None = None
    """How agents stay (`always`, `wake`, `no`); `None`: as it is."""


class Taken(msgspec.Struct, frozen=True):
    """An entry of another program that was taken out, to be put back at uninstall."""

    event: str
    entry: str
    """Its text, with the hooks that were taken alone."""


class Installed(msgspec.Struct, frozen=True):
    """The text with our hooks, and what was done to it."""

    text: str
    added: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    """Events that ours stood under, and that this client does not know."""
    taken: tuple[Taken, ...] = ()
    status_line: LineDone = ""
    stay: str = ""
    """How agents stay from now on, if that was changed; at uninstall, how they stayed."""

    @property
    def found(self) -> bool:
        """Whether there was anything of ours to take out."""
        return bool(self.dropped or self.status_line or self.stay)


class Found(msgspec.Struct, frozen=True):
    """A hook, and where it stands."""

    event: str
    entry: int
    hook: int
    node: Node
    matcher: str | None
    value: dict[str, Any]


# -- finding -------------------------------------------------------------------------------------------


def is_blank(text: str) -> bool:
    """Tell whether a file has nothing in it."""
    return not text.strip("\ufeff \t\r\n")


def settings(text: str) -> Node:
    """Read settings, and refuse what the client would skip or what cannot be edited safely."""
    root = parse(text)
    check(text, root)
    return root


def find(root: Node, belongs: Callable[[Mapping[str, Any]], bool] = is_ours) -> Iterator[Found]:
    """Find the hooks that belong to one owner."""
    events = root.member("hooks")
    for event, entries in zip(events.keys, events.items, strict=True) if events and events.kind == "object" else ():
        for number, entry in enumerate(entries.items if entries.kind == "array" else ()):
            hooks, matcher = entry.member("hooks"), entry.member("matcher")
            for index, node in enumerate(hooks.items if hooks and hooks.kind == "array" else ()):
                value = node.value()
                if isinstance(value, dict) and belongs(value):
                    yield Found(event, number, index, node, matcher.plain if matcher else None, value)


def others(root: Node) -> list[str]:
    """Name the programs of `REPLACEABLE` that have hooks here."""
    return [name for name, belongs in REPLACEABLE.items() if any(find(root, belongs))]


def wanted_hook(event: str, launcher: Launcher, before: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Write our hook for an event. What its owner added to it by hand stays, unless it would silence it."""
    about = EVENTS.get(event)
    more = _own_options(before) if before else []
    wakes = before is not None and is_wake(before)
    managed: dict[str, Any] = {
        "type": "command",
        "command": launcher.hook,
        "args": [event, *([WAKES] if wakes else []), "--python", launcher.python, *more],
    }
    if wakes:
        managed |= {"timeout": _LONGEST, "asyncRewake": True}
    elif about is not None:
        managed["timeout"] = about.timeout
        managed |= {"onFailure": "block"} if about.blocks_on_failure else {}
    kept = {key: managed.get(key, value) for key, value in (before or {}).items() if key not in _NOT_OURS}
    return kept | managed


def _own_options(before: Mapping[str, Any]) -> list[str]:
    words = [word for word in words_of(before)[2:] if word != WAKES]
    if "--python" in words:
        at = words.index("--python")
        words = words[:at] + words[at + 2 :]
    return [] if words == ["--client", "claude"] else words


# -- putting in ----------------------------------------------------------------------------------------


def install(text: str, asked: Asked) -> Installed:
    """Put our hooks in, bring those that are there up to date, and leave the rest as it is."""
    text = EMPTY if is_blank(text) else text
    wanted = events_for(asked.version, asked.also)
    root = settings(text)
    stale = [found for found in find(root) if _is_stale(found, asked.version)]
    rivals = [found for name in sorted(asked.replace) for found in find(root, REPLACEABLE[name])]
    taken = tuple(_taken(text, root, rivals))
    keep = frozenset({"hooks", *wanted})
    text = without_hooks(text, root, [*stale, *rivals], keep)
    text, updated = _updated(text, asked.launcher)
    root = parse(text)
    present = {found.event for found in find(root) if not is_wake(found.value)}
    added = [event for event in wanted if event not in present]
    text = with_entries(text, root, [(event, {"hooks": [wanted_hook(event, asked.launcher)]}) for event in added])
    check(text, parse(text))
    return Installed(text, tuple(added), tuple(updated), tuple(dict.fromkeys(f.event for f in stale)), taken)


def _is_stale(found: Found, version: Version | None) -> bool:
    """Tell whether a hook of ours is under an event that it is not for, or that the client does not know."""
    speaks_of = HookEvent.find(words_of(found.value)[1])
    is_misplaced = speaks_of is not None and speaks_of.value != found.event
    return is_misplaced or (found.event in EVENTS and not is_known(found.event, version))


def _taken(text: str, root: Node, rivals: Sequence[Found]) -> Iterator[Taken]:
    events = root.member("hooks")
    for event, number in dict.fromkeys((found.event, found.entry) for found in rivals):
        entries = events.member(event) if events else None
        entry = entries.items[number] if entries else root
        raw = text[entry.start : entry.end]
        hooks = parse(raw).member("hooks")
        theirs = {found.hook for found in rivals if (found.event, found.entry) == (event, number)}
        if hooks is not None:
            foreign = [index for index in range(len(hooks.items)) if index not in theirs]
            yield Taken(event, apply(raw, removal(hooks, foreign)))


def _updated(text: str, launcher: Launcher) -> tuple[str, list[str]]:
    root = parse(text)
    style = style_of(text, root)
    edits, events = [], dict[str, None]()
    for found in find(root):
        new = wanted_hook(found.event, launcher, found.value)
        if new != found.value:
            spelt = {key: _kept(text, found, key, value) for key, value in new.items()}
            edits.append(replacement(text, found.node, spelt, style))
            events[found.event] = None
    return apply(text, edits), list(events)


def _kept(text: str, found: Found, key: str, value: Any) -> Any:
    """Give a value as it is spelt, if it does not change."""
    node = found.node.member(key)
    return Raw(text[node.start : node.end]) if node and node.value() == value else value


def with_entries(text: str, root: Node, entries: Sequence[tuple[str, Any]]) -> str:
    """Add entries behind those that are there, and the events and the section that they need."""
    if not entries:
        return text
    style, hooks = style_of(text, root), root.member("hooks")
    by_event: dict[str, list[Any]] = {}
    for event, entry in entries:
        by_event.setdefault(event, []).append(entry)
    if hooks is None:
        return apply(text, [insertion(text, root, [("hooks", by_event)], style)])
    if hooks.kind != "object":  # null
        return apply(text, [replacement(text, hooks, by_event, style)])
    there = {event: node for event in by_event if (node := hooks.member(event)) is not None}
    new = [(event, added) for event, added in by_event.items() if event not in there]
    edits = [insertion(text, node, [(None, one) for one in by_event[event]], style) for event, node in there.items()]
    return apply(text, [*edits, insertion(text, hooks, new, style)] if new else edits)


# -- taking out ----------------------------------------------------------------------------------------


def uninstall(text: str, original: str | None = None, taken: Sequence[Taken] = ()) -> Installed:
    """Take out all that is ours and put back what it replaced; what the original had empty may stay empty."""
    text = EMPTY if is_blank(text) else text
    root = parse(text)
    check_keys(text, root)  # and no more: hooks of others that the client refuses are no reason to keep ours
    ours = list(find(root))
    if not ours:
        return Installed(text)
    text = without_hooks(text, root, ours, _containers(original))
    root = parse(text)
    missing = [one for one in taken if parse(one.entry).value() not in _entries(root, one.event)]
    text = with_entries(text, root, [(one.event, Raw(one.entry)) for one in missing])
    return Installed(text, dropped=tuple(dict.fromkeys(found.event for found in ours)), taken=tuple(missing))


def _entries(root: Node, event: str) -> list[Any]:
    hooks = root.member("hooks")
    there = hooks.member(event) if hooks else None
    value = there.value() if there else []
    return value if isinstance(value, list) else []


def _containers(original: str | None) -> frozenset[str]:
    """Name the section and the events that were there before us."""
    if original is None or is_blank(original):
        return frozenset()
    hooks = parse(original).member("hooks")
    return frozenset() if hooks is None else frozenset({"hooks", *hooks.keys})


def without_hooks(text: str, root: Node, victims: Sequence[Found], keep: frozenset[str]) -> str:
    """Take hooks out, and with them the entries, events and section that this leaves empty, but not those in `keep`."""
    hooks = root.member("hooks")
    if not victims or hooks is None:
        return text
    edits: list[Edit] = []
    emptied = []
    for number, (event, entries) in enumerate(zip(hooks.keys, hooks.items, strict=True)):
        inner, gone = _thinned(entries, [found for found in victims if found.event == event])
        if gone and len(gone) == len(entries.items) and event not in keep:
            emptied.append(number)
        else:
            edits += [*inner, *removal(entries, gone)]
    if emptied and len(emptied) == len(hooks.keys) and "hooks" not in keep:
        return apply(text, removal(root, [root.keys.index("hooks")]))
    return apply(text, [*edits, *removal(hooks, emptied)])


def _thinned(entries: Node, victims: Sequence[Found]) -> tuple[list[Edit], list[int]]:
    """Say which entries lose all their hooks, and what the others lose."""
    edits: list[Edit] = []
    gone = []
    for number in dict.fromkeys(found.entry for found in victims):
        hooks = entries.items[number].member("hooks")
        theirs = [found.hook for found in victims if found.entry == number]
        if hooks is not None and len(theirs) == len(hooks.items):
            gone.append(number)
        elif hooks is not None:
            edits += removal(hooks, theirs)
    return edits, gone
