"""Finds, adds, updates and removes our hooks in the text of Claude Code's settings. Touches no file.

Everything else in the text keeps its bytes. If an entry has hooks of several programs, only ours are changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from fairlead.clients._install_types import InstallResult, RemovedEntry
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
from fairlead.clients.claude.settings._events import EVENTS, LONG_TIMEOUT, QUESTION_EVENT, events_for, is_known
from fairlead.clients.claude.settings._ownership import REPLACEABLE, WAKE_OPTION, is_ours, is_wake, words_of
from fairlead.clients.claude.settings._rules import check, check_keys
from fairlead.events import HookEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from fairlead.clients._install_types import InstallRequest, Launcher, Version

EMPTY = "{}\n"
"""The settings in an empty file, as the client reads it."""

_DISABLING_KEYS = ("async", "asyncRewake", "if", "shell")
"""Keys that would keep our hook from being started, or its answer from being read."""
_MAX_TIMEOUT = 2_147_483
"""Seconds, 24 days. 2.1.197 counts milliseconds in 32 bits, so a longer timeout would end the hook at once."""


class HookEntry(msgspec.Struct, frozen=True):
    """A hook, and its position in the settings."""

    event: str
    entry: int
    """The index of the entry in the event's list."""
    hook: int
    """The index of the hook in the entry."""
    node: Node
    matcher: str | None
    value: dict[str, Any]


# -- finding -------------------------------------------------------------------------------------------


def is_blank(text: str) -> bool:
    """Return whether the text of a file is blank."""
    return not text.strip("\ufeff \t\r\n")


def parse_settings(text: str) -> Node:
    """Parse settings. Raise `SettingsError` if the client would skip them or a part of them.

    Raise `JsonTextError` if they are not JSON, or cannot be edited safely.
    """
    root = parse(text)
    check(text, root)
    return root


def find_hooks(root: Node, belongs: Callable[[Mapping[str, Any]], bool] = is_ours) -> Iterator[HookEntry]:
    """Yield the hooks for which `belongs` is true: by default ours."""
    events = root.member("hooks")
    for event, entries in zip(events.keys, events.items, strict=True) if events and events.kind == "object" else ():
        for number, entry in enumerate(entries.items if entries.kind == "array" else ()):
            hooks, matcher = entry.member("hooks"), entry.member("matcher")
            for index, node in enumerate(hooks.items if hooks and hooks.kind == "array" else ()):
                value = node.value()
                if isinstance(value, dict) and belongs(value):
                    yield HookEntry(event, number, index, node, matcher.plain if matcher else None, value)


def find_replaceable_programs(root: Node) -> list[str]:
    """Return the programs of `REPLACEABLE` that have hooks in the settings."""
    return [name for name, belongs in REPLACEABLE.items() if any(find_hooks(root, belongs))]


def hook_for(
    event: str, launcher: Launcher, before: Mapping[str, Any] | None = None, *, answer: bool | None = None
) -> dict[str, Any]:
    """Return our hook for an event. `before` is the existing hook.

    Keys that the user added to it are kept, unless they would keep it from running. `answer` is whether the hook of
    `QUESTION_EVENT` may wait for a person's answer; `None`: unchanged.
    """
    setting = EVENTS.get(event)
    options = _added_options(before) if before else []
    wakes = before is not None and is_wake(before)
    ours: dict[str, Any] = {
        "type": "command",
        "command": launcher.hook,
        "args": [event, *([WAKE_OPTION] if wakes else []), "--python", launcher.python, *options],
    }
    if wakes:
        ours |= {"timeout": _MAX_TIMEOUT, "asyncRewake": True}
    elif setting is not None:
        ours["timeout"] = setting.timeout
        waits = before is not None and before.get("timeout") == LONG_TIMEOUT if answer is None else answer
        if event == QUESTION_EVENT and waits:
            ours["timeout"] = LONG_TIMEOUT
        ours |= {"onFailure": "block"} if setting.blocks_on_failure else {}
    kept = {key: ours.get(key, value) for key, value in (before or {}).items() if key not in _DISABLING_KEYS}
    return kept | ours


def _added_options(before: Mapping[str, Any]) -> list[str]:
    words = [word for word in words_of(before)[2:] if word != WAKE_OPTION]
    if "--python" in words:
        index = words.index("--python")
        words = words[:index] + words[index + 2 :]
    return [] if words == ["--client", "claude"] else words


# -- adding --------------------------------------------------------------------------------------------


def add_hooks(text: str, request: InstallRequest) -> InstallResult:
    """Add our missing hooks, update the existing ones, and remove the hooks of the programs in `request.replace`.

    Also removes our hooks for events that the client does not have. Raise the errors of `parse_settings` and
    `events_for`.
    """
    text = EMPTY if is_blank(text) else text
    wanted = events_for(request.version, request.also)
    root = parse_settings(text)
    stale = [hook for hook in find_hooks(root) if _is_stale(hook, request.version)]
    replaced = [hook for name in sorted(request.replace) for hook in find_hooks(root, REPLACEABLE[name])]
    taken = tuple(_removed_entries(text, root, replaced))
    text = without_hooks(text, root, [*stale, *replaced], keep=frozenset({"hooks", *wanted}))
    text, updated = _updated(text, request)
    root = parse(text)
    present = {hook.event for hook in find_hooks(root) if not is_wake(hook.value)}
    added = [event for event in wanted if event not in present]
    text = with_entries(text, root, [(event, _entry(event, request)) for event in added])
    check(text, parse(text))
    return InstallResult(text, tuple(added), tuple(updated), tuple(dict.fromkeys(h.event for h in stale)), taken)


def _entry(event: str, request: InstallRequest) -> dict[str, Any]:
    return {"hooks": [hook_for(event, request.launcher, answer=request.answer)]}


def _is_stale(hook: HookEntry, version: Version | None) -> bool:
    """Return whether a hook of ours is listed under the wrong event, or under one that the client does not know."""
    named = HookEvent.find(words_of(hook.value)[1])
    is_misplaced = named is not None and named.value != hook.event
    return is_misplaced or (hook.event in EVENTS and not is_known(hook.event, version))


def _removed_entries(text: str, root: Node, replaced: Sequence[HookEntry]) -> Iterator[RemovedEntry]:
    events = root.member("hooks")
    for event, number in dict.fromkeys((hook.event, hook.entry) for hook in replaced):
        entries = events.member(event) if events else None
        entry = entries.items[number] if entries else root
        raw = text[entry.start : entry.end]
        hooks = parse(raw).member("hooks")
        theirs = {hook.hook for hook in replaced if (hook.event, hook.entry) == (event, number)}
        if hooks is not None:
            foreign = [index for index in range(len(hooks.items)) if index not in theirs]
            yield RemovedEntry(event, apply(raw, removal(hooks, foreign)))


def _updated(text: str, request: InstallRequest) -> tuple[str, list[str]]:
    root = parse(text)
    style = style_of(text, root)
    edits, events = [], dict[str, None]()
    for hook in find_hooks(root):
        new = hook_for(hook.event, request.launcher, hook.value, answer=request.answer)
        if new != hook.value:
            spelt = {key: _unchanged_or(text, hook, key, value) for key, value in new.items()}
            edits.append(replacement(text, hook.node, spelt, style))
            events[hook.event] = None
    return apply(text, edits), list(events)


def _unchanged_or(text: str, hook: HookEntry, key: str, value: Any) -> Any:
    """Return the new value of a key; its current text if it does not change, which keeps its spelling."""
    node = hook.node.member(key)
    return Raw(text[node.start : node.end]) if node and node.value() == value else value


def with_entries(text: str, root: Node, entries: Sequence[tuple[str, Any]]) -> str:
    """Append entries, given as pairs of event and entry. A missing event or section `hooks` is added, too."""
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
    edits = [
        insertion(text, node, [(None, entry) for entry in by_event[event]], style) for event, node in there.items()
    ]
    return apply(text, [*edits, insertion(text, hooks, new, style)] if new else edits)


# -- removing ------------------------------------------------------------------------------------------


def remove_hooks(text: str, original: str | None = None, taken: Sequence[RemovedEntry] = ()) -> InstallResult:
    """Remove all our hooks and restore `taken`, the entries that they replaced.

    Events of `original`, the text before the first install, stay, even if they are empty.
    """
    text = EMPTY if is_blank(text) else text
    root = parse(text)
    check_keys(text, root)  # not more: invalid hooks of other programs must not prevent an uninstall
    ours = list(find_hooks(root))
    if not ours:
        return InstallResult(text)
    text = without_hooks(text, root, ours, keep=_containers(original))
    root = parse(text)
    missing = [removed for removed in taken if parse(removed.entry).value() not in _entries(root, removed.event)]
    text = with_entries(text, root, [(removed.event, Raw(removed.entry)) for removed in missing])
    return InstallResult(text, dropped=tuple(dict.fromkeys(hook.event for hook in ours)), taken=tuple(missing))


def _entries(root: Node, event: str) -> list[Any]:
    hooks = root.member("hooks")
    node = hooks.member(event) if hooks else None
    value = node.value() if node else []
    return value if isinstance(value, list) else []


def _containers(original: str | None) -> frozenset[str]:
    """Return the section and the events that existed before the first install."""
    if original is None or is_blank(original):
        return frozenset()
    hooks = parse(original).member("hooks")
    return frozenset() if hooks is None else frozenset({"hooks", *hooks.keys})


def without_hooks(text: str, root: Node, removed: Sequence[HookEntry], keep: frozenset[str]) -> str:
    """Remove hooks, and the entries, events and section that become empty, except those in `keep`."""
    hooks = root.member("hooks")
    if not removed or hooks is None:
        return text
    edits: list[Edit] = []
    emptied = []
    for number, (event, entries) in enumerate(zip(hooks.keys, hooks.items, strict=True)):
        inner, empty = _reduced(entries, [hook for hook in removed if hook.event == event])
        if empty and len(empty) == len(entries.items) and event not in keep:
            emptied.append(number)
        else:
            edits += [*inner, *removal(entries, empty)]
    if emptied and len(emptied) == len(hooks.keys) and "hooks" not in keep:
        return apply(text, removal(root, [root.keys.index("hooks")]))
    return apply(text, [*edits, *removal(hooks, emptied)])


def _reduced(entries: Node, removed: Sequence[HookEntry]) -> tuple[list[Edit], list[int]]:
    """Return the edits of entries that keep some hooks, and the indices of entries that keep none."""
    edits: list[Edit] = []
    empty = []
    for number in dict.fromkeys(hook.entry for hook in removed):
        hooks = entries.items[number].member("hooks")
        indices = [hook.hook for hook in removed if hook.entry == number]
        if hooks is not None and len(indices) == len(hooks.items):
            empty.append(number)
        elif hooks is not None:
            edits += removal(hooks, indices)
    return edits, empty
