"""How agents stay reachable for mail (`--stay`): variables and hooks in the text of Claude Code's settings.

    always  FAIRLEAD_STAY=always, and CLAUDE_CODE_STOP_HOOK_BLOCK_CAP=0: else the client ends a turn after 8 blocks
    wake    FAIRLEAD_STAY=wake, and a second hook for some events with `asyncRewake`: the client does not wait for it
    no      none of these

The rest of `env` keeps its bytes, and an uninstall restores previous values. Touches no file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead.clients._json_text import (
    JsonTextError,
    Raw,
    apply,
    insertion,
    parse,
    position,
    removal,
    replacement,
    style_of,
)
from fairlead.clients._settings_file import SettingsError
from fairlead.clients.claude.settings._entries import find_hooks, hook_for, is_blank, with_entries, without_hooks
from fairlead.clients.claude.settings._ownership import WAKE_OPTION, is_wake

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.clients._install_types import Launcher
    from fairlead.clients._json_text import Node

ENV = "env"
STAY = "FAIRLEAD_STAY"
BLOCK_CAP = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"
WAKE_EVENTS = ("SessionStart", "UserPromptSubmit", "Stop")
"""The events at which a hook starts to wait for mail. The latest hook of a session waits, and the earlier ones exit.

SessionStart is for a session without a prompt yet, also after /clear and /resume. UserPromptSubmit is for an
interrupted turn, which has no Stop. Escape and /clear do not end these hooks (client 2.1.325).
"""
STAYS = ("always", "wake", "no")
"""The values of `--stay`."""


def read_stay(root: Node) -> str:
    """Return the `--stay` value of the settings; "" if they have none."""
    value = _value(root, STAY)
    return value if value in STAYS else ""


def add_stay(text: str, launcher: Launcher, stay: str | None, original: str | None = None) -> tuple[str, str]:
    """Set the `--stay` value (`None`: the current one). Return the new text, and the value; "" if nothing changed."""
    root = parse(text)
    before = read_stay(root)
    stay = stay or before
    if not stay:
        return text, ""
    wanted: dict[str, Any] = {STAY: None if stay == "no" else stay}
    if stay == "always":
        wanted[BLOCK_CAP] = "0"
    elif before == "always" and _value(root, BLOCK_CAP) == "0":
        wanted[BLOCK_CAP] = _spelling(original, BLOCK_CAP)
    after = _with_env(text, wanted, original)
    after = _with_wake(after, launcher) if stay == "wake" else _without_wake(after)
    return after, stay if after != text else ""


def remove_stay(text: str, original: str | None = None) -> tuple[str, str]:
    """Remove the variables, or restore their original values. `remove_hooks` removes the hooks.

    Return the new text, and the removed `--stay` value; "" if the text has not changed.
    """
    root = parse(text)
    before = _value(root, STAY)
    if before is None or _value(_root(original), STAY) == before:
        return text, ""
    wanted: dict[str, Any] = {STAY: _spelling(original, STAY)}
    if before == "always" and _value(root, BLOCK_CAP) == "0":
        wanted[BLOCK_CAP] = _spelling(original, BLOCK_CAP)
    return _with_env(text, wanted, original), str(before)


def differences(root: Node) -> Iterator[str]:
    """Yield the settings that are missing for the `--stay` value, or contradict it."""
    stay, waking = read_stay(root), {hook.event for hook in find_hooks(root) if is_wake(hook.value)}
    if stay == "always" and _value(root, BLOCK_CAP) != "0":
        yield f'{ENV}.{BLOCK_CAP} is not "0", so an agent that is to stay always stops after 8 times'
    missing = [event for event in WAKE_EVENTS if event not in waking]
    if stay == "wake" and missing:
        yield f"{', '.join(missing)}: the hook that wakes agents is missing"
    if stay != "wake" and waking:
        yield f"{', '.join(sorted(waking))}: there is a hook that wakes agents, but {ENV}.{STAY} is not wake"


# -- the variables -------------------------------------------------------------------------------------


def _with_env(text: str, wanted: dict[str, Any], original: str | None) -> str:
    """Set variables, and remove those that are `None`. If `env` becomes empty, its original state is restored."""
    root = parse(text)
    env = root.member(ENV)
    new = {key: value for key, value in wanted.items() if value is not None}
    if env is None or env.value() is None:
        return _with_new_env(text, root, env, new)
    _refuse_invalid(text, root, env)
    there = {key: env.items[env.keys.index(key)] for key in wanted if key in env.keys}
    removed = [env.keys.index(key) for key in there if key not in new]
    if removed and len(removed) == len(env.keys) and not new:
        return _without_env(text, root, env, original)
    style = style_of(text, root)
    edits = [replacement(text, there[key], value, style) for key, value in new.items() if key in there]
    if removed:
        return _with_env(apply(text, [*edits, *removal(env, removed)]), new, original)
    added = [(key, value) for key, value in new.items() if key not in there]
    return apply(text, [*edits, *([insertion(text, env, added, style)] if added else [])])


def _with_new_env(text: str, root: Node, env: Node | None, new: dict[str, Any]) -> str:
    if not new:
        return text
    style = style_of(text, root)
    edit = insertion(text, root, [(ENV, new)], style) if env is None else replacement(text, env, new, style)
    return apply(text, [edit])


def _without_env(text: str, root: Node, env: Node, original: str | None) -> str:
    before = _root(original)
    node = before.member(ENV) if before else None
    if node is None or original is None:
        return apply(text, removal(root, [root.keys.index(ENV)]))
    if node.kind == "object" and node.items:  # the user has removed the other variables since
        return apply(text, removal(env, range(len(env.keys))))
    return apply(text, [replacement(text, env, Raw(original[node.start : node.end]), style_of(text, root))])


def _refuse_invalid(text: str, root: Node, env: Node) -> None:
    """Raise `SettingsError` if the client would not accept `env`, and `JsonTextError` for a duplicate key."""
    if env.kind != "object":
        raise SettingsError(f"{position(text, env.start)}: {ENV}: expected an object; correct it first")
    key = ENV if root.keys.count(ENV) > 1 else env.duplicate_key()
    if key is not None:
        raise JsonTextError(f"{position(text, env.start)}: the key {key!r} is here twice; remove one")


def _value(root: Node | None, key: str) -> Any:
    env = root.member(ENV) if root else None
    node = env.member(key) if env and env.kind == "object" else None
    return node.value() if node else None


def _spelling(original: str | None, key: str) -> Raw | None:
    """Return the JSON of a variable as it is spelled in the original; `None` if the original does not have it."""
    root = _root(original)
    env = root.member(ENV) if root else None
    node = env.member(key) if env and env.kind == "object" else None
    return Raw(original[node.start : node.end]) if node and original else None


def _root(original: str | None) -> Node | None:
    return None if original is None or is_blank(original) else parse(original)


# -- the hook ------------------------------------------------------------------------------------------


def _with_wake(text: str, launcher: Launcher) -> str:
    root = parse(text)
    waking = {hook.event for hook in find_hooks(root) if is_wake(hook.value)}
    return with_entries(
        text, root, [(event, _wake_entry(event, launcher)) for event in WAKE_EVENTS if event not in waking]
    )


def _wake_entry(event: str, launcher: Launcher) -> dict[str, Any]:
    marked = {"type": "command", "command": launcher.hook, "args": [event, WAKE_OPTION]}
    return {"hooks": [hook_for(event, launcher, marked)]}


def _without_wake(text: str) -> str:
    root = parse(text)
    wakes = [hook for hook in find_hooks(root) if is_wake(hook.value)]
    return without_hooks(text, root, wakes, keep=frozenset({"hooks", *WAKE_EVENTS}))
