"""How agents stay, in the text of Claude Code's settings: variables under `env`, and a second hook at Stop.

    always  FAIRLEAD_STAY=always; and CLAUDE_CODE_STOP_HOOK_BLOCK_CAP=0, or the client ends a turn after 8 blocks
    wake    FAIRLEAD_STAY=wake; and a hook with `asyncRewake`, which the client does not wait for
    no      none of these

Whatever else is in `env` keeps its bytes, and a value that stood there before comes back at uninstall. Touches no file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead.clients._json_text import (
    JsonTextError,
    Raw,
    apply,
    insertion,
    parse,
    place,
    removal,
    replacement,
    style_of,
)
from fairlead.clients.claude._hook_entries import find, is_blank, wanted_hook, with_entries, without_hooks
from fairlead.clients.claude._ownership import WAKES, is_wake
from fairlead.clients.claude._settings_rules import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.clients._json_text import Node
    from fairlead.clients.claude._hook_entries import Launcher

ENV = "env"
STAY = "FAIRLEAD_STAY"
CAP = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"
STAYS = ("always", "wake", "no")
"""What `--stay` takes."""


def read_stay(root: Node) -> str:
    """Say how agents stay by these settings; "" if they do not say."""
    value = _value(root, STAY)
    return value if value in STAYS else ""


def put_in(text: str, launcher: Launcher, wish: str | None, original: str | None = None) -> tuple[str, str]:
    """Have agents stay in a way; give the text, and the way if that changed anything."""
    root = parse(text)
    before = read_stay(root)
    wish = wish or before
    if not wish:
        return text, ""
    wanted: dict[str, Any] = {STAY: None if wish == "no" else wish}
    if wish == "always":
        wanted[CAP] = "0"
    elif before == "always" and _value(root, CAP) == "0":
        wanted[CAP] = _spelt(original, CAP)
    after = _with_env(text, wanted, original)
    after = _with_wake(after, launcher) if wish == "wake" else _without_wake(after)
    return after, wish if after != text else ""


def take_out(text: str, original: str | None = None) -> tuple[str, str]:
    """Take the variables out, and give back what stood there before; the hook goes with the others."""
    root = parse(text)
    before = _value(root, STAY)
    if before is None or _value(_root(original), STAY) == before:
        return text, ""
    wanted: dict[str, Any] = {STAY: _spelt(original, STAY)}
    if before == "always" and _value(root, CAP) == "0":
        wanted[CAP] = _spelt(original, CAP)
    return _with_env(text, wanted, original), str(before)


def differences(root: Node) -> Iterator[str]:
    """Say what is missing for the way that the settings name."""
    stay, has_wake = read_stay(root), any(is_wake(found.value) for found in find(root))
    if stay == "always" and _value(root, CAP) != "0":
        yield f'{ENV}.{CAP} is not "0", so an agent that is to stay always stops after 8 times'
    if stay == "wake" and not has_wake:
        yield "Stop: the hook that wakes agents is missing"
    if stay != "wake" and has_wake:
        yield f"Stop: there is a hook that wakes agents, but {ENV}.{STAY} is not wake"


# -- the variables -------------------------------------------------------------------------------------


def _with_env(text: str, wanted: dict[str, Any], original: str | None) -> str:
    """Set variables, and take those out that are `None`. An `env` that is empty then is as it was before us."""
    root = parse(text)
    env = root.member(ENV)
    new = {key: value for key, value in wanted.items() if value is not None}
    if env is None or env.value() is None:
        return _with_new_env(text, root, env, new)
    _refuse_odd(text, root, env)
    there = {key: env.items[env.keys.index(key)] for key in wanted if key in env.keys}
    gone = [env.keys.index(key) for key in there if key not in new]
    if gone and len(gone) == len(env.keys) and not new:
        return _without_env(text, root, env, original)
    style = style_of(text, root)
    edits = [replacement(text, there[key], value, style) for key, value in new.items() if key in there]
    if gone:
        return _with_env(apply(text, [*edits, *removal(env, gone)]), new, original)
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
    if node.kind == "object" and node.items:  # what else was in it, somebody has taken out since
        return apply(text, removal(env, range(len(env.keys))))
    return apply(text, [replacement(text, env, Raw(original[node.start : node.end]), style_of(text, root))])


def _refuse_odd(text: str, root: Node, env: Node) -> None:
    """Refuse what the client would not read, and what cannot be changed safely."""
    if env.kind != "object":
        raise SettingsError(f"{place(text, env.start)}: {ENV}: expected an object; mend it first")
    twice = ENV if root.keys.count(ENV) > 1 else env.repeated()
    if twice is not None:
        raise JsonTextError(f"{place(text, env.start)}: the key {twice!r} stands here twice; take one out")


def _value(root: Node | None, key: str) -> Any:
    env = root.member(ENV) if root else None
    node = env.member(key) if env and env.kind == "object" else None
    return node.value() if node else None


def _spelt(original: str | None, key: str) -> Raw | None:
    """Give a variable as it was spelt before us."""
    root = _root(original)
    env = root.member(ENV) if root else None
    node = env.member(key) if env and env.kind == "object" else None
    return Raw(original[node.start : node.end]) if node and original else None


def _root(original: str | None) -> Node | None:
    return None if original is None or is_blank(original) else parse(original)


# -- the hook ------------------------------------------------------------------------------------------


def _with_wake(text: str, launcher: Launcher) -> str:
    root = parse(text)
    if any(is_wake(found.value) for found in find(root)):
        return text
    named = {"type": "command", "command": launcher.hook, "args": ["Stop", WAKES]}
    return with_entries(text, root, [("Stop", {"hooks": [wanted_hook("Stop", launcher, named)]})])


def _without_wake(text: str) -> str:
    root = parse(text)
    wakes = [found for found in find(root) if is_wake(found.value)]
    return without_hooks(text, root, wakes, frozenset({"hooks", "Stop"}))
