"""The permission rules that allow agents to run the mail commands, in the text of Claude Code's settings.

In its default mode the client asks the user about every command that no rule allows. A rule `Bash(fairlead send:*)`
allows this command with any arguments, and no other command: the client (2.1.325) checks each part of a compound
command separately, and asks about substitutions, redirections to files and variables before the command.

A rule that existed before the first install belongs to the user, and is kept. The rest of the file keeps its bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.clients._json_text import Edit, Raw, apply, insertion, parse, position, removal, replacement, style_of
from fairlead.clients._settings_file import SettingsError
from fairlead.clients.claude.settings._entries import is_blank

if TYPE_CHECKING:
    from fairlead.clients._json_text import Node

PERMISSIONS = "permissions"
ALLOW = "allow"
COMMANDS = ("agents", "identity", "inbox", "poll", "read", "reply", "send", "status", "tasks", "topics")
"""The mail commands. When an agent runs them, none reads a file that is named on its command line."""
RULES = tuple(f"Bash(fairlead {command}:*)" for command in COMMANDS)


def add_rules(text: str) -> tuple[str, tuple[str, ...]]:
    """Add the missing rules. Return the new text and the added rules.

    Raise `SettingsError` if the client would not accept the section.
    """
    root = parse(text)
    permissions = root.member(PERMISSIONS)
    allow = permissions.member(ALLOW) if permissions is not None and permissions.kind == "object" else None
    _refuse_invalid(text, permissions, allow)
    there = allow.value() if allow is not None and allow.kind == "array" else []
    missing = tuple(rule for rule in RULES if rule not in there)
    if not missing:
        return text, ()
    style = style_of(text, root)
    if permissions is None or permissions.kind != "object":
        new = {ALLOW: list(missing)}
        if permissions is None:
            edit = insertion(text, root, [(PERMISSIONS, new)], style)
        else:  # null
            edit = replacement(text, permissions, new, style)
    elif allow is None:
        edit = insertion(text, permissions, [(ALLOW, list(missing))], style)
    elif allow.kind != "array":
        edit = replacement(text, allow, list(missing), style)
    else:
        edit = insertion(text, allow, [(None, rule) for rule in missing], style)
    return apply(text, [edit]), missing


def remove_rules(text: str, original: str | None) -> tuple[str, tuple[str, ...]]:
    """Remove our rules, except rules in `original`. Return the new text and the removed rules.

    A list or section that becomes empty is restored to its original state.
    """
    kept = _rules_in(original)
    root = parse(text)
    permissions = root.member(PERMISSIONS)
    allow = permissions.member(ALLOW) if permissions is not None and permissions.kind == "object" else None
    if permissions is None or allow is None or allow.kind != "array":
        return text, ()
    ours = [at for at, item in enumerate(allow.items) if item.plain in RULES and item.plain not in kept]
    removed = tuple(str(allow.items[at].plain) for at in ours)
    if not ours:
        return text, ()
    if len(ours) < len(allow.items):
        return apply(text, removal(allow, ours)), removed
    return apply(text, _emptied(text, root, permissions, allow, original)), removed


def has_rules(text: str) -> bool:
    """Return whether the settings allow every mail command."""
    return set(RULES) <= _rules_in(text)


def _emptied(text: str, root: Node, permissions: Node, allow: Node, original: str | None) -> list[Edit]:
    """Return the edits that remove all rules, and also a list or section that the original does not have."""
    before = _section(original)
    list_before = before.member(ALLOW) if before is not None and before.kind == "object" else None
    if list_before is not None and original is not None:
        if list_before.kind == "array" and list_before.items:  # the user has removed the other rules since
            return list(removal(allow, range(len(allow.items))))
        return [replacement(text, allow, Raw(original[list_before.start : list_before.end]), style_of(text, root))]
    if len(permissions.keys) > 1 or (before is not None and before.kind == "object"):
        return list(removal(permissions, [permissions.keys.index(ALLOW)]))
    if before is not None and original is not None:
        return [replacement(text, permissions, Raw(original[before.start : before.end]), style_of(text, root))]
    return list(removal(root, [root.keys.index(PERMISSIONS)]))


def _refuse_invalid(text: str, permissions: Node | None, allow: Node | None) -> None:
    """Raise `SettingsError` if the client would not accept the section."""
    for node, kind, what in ((permissions, "object", PERMISSIONS), (allow, "array", f"{PERMISSIONS}.{ALLOW}")):
        if node is not None and node.kind != kind and node.value() is not None:
            expected = "an object" if kind == "object" else "a list"
            raise SettingsError(f"{position(text, node.start)}: {what}: expected {expected}; correct it first")


def _section(text: str | None) -> Node | None:
    return None if text is None or is_blank(text) else parse(text).member(PERMISSIONS)


def _rules_in(text: str | None) -> set[str]:
    section = _section(text)
    allow = section.member(ALLOW) if section is not None and section.kind == "object" else None
    items = allow.items if allow is not None and allow.kind == "array" else ()
    return {item.plain for item in items if isinstance(item.plain, str)}
