"""Checks of the texts in a policy (globs, regular expressions, names of events), and hints on valid entries.

A check takes a text and returns the mistake in it, with a correction, or `None`. For a text that is valid, but probably
a mistake, it returns an `Advice`. The functions in `HINTS` do the same for entries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead.clients import known_clients
from fairlead.policy.config import _types as t

if TYPE_CHECKING:
    from collections.abc import Callable

    Check = Callable[[str], str | None]
    Hint = Callable[[dict[str, Any], str], str | None]


class Advice(str):
    """The result of a check for a text that is valid, but probably a mistake. It is reported as a hint."""

    __slots__ = ()


def glob(text: str) -> str | None:
    """Check a glob on a name or a command."""
    if not text.strip():
        return "is blank, so it matches nothing; write `*` for everything"
    if _has_open_bracket(text):
        return "has a `[` that is never closed; close it, or write `[[]` for the character itself"
    return None


def file_pattern(text: str) -> str | None:
    """Check a gitignore pattern."""
    if text.startswith("#"):
        return "is a comment in gitignore, so it matches nothing; write `\\#` for the character itself"
    if not text.strip("!/ "):
        return "matches nothing; write `*` for every file"
    return glob(text) or _gitignore_error(text) or _pattern_advice(text.removeprefix("!"))


def _pattern_advice(text: str) -> str | None:
    """Return a hint on a pattern that never matches as it is written."""
    if text.startswith("../") or "/../" in text or text.endswith("/.."):
        return Advice("never matches, as it has `..`; for files outside of the folder write `//` and the absolute path")
    if text.startswith("~") and not text.startswith("~/"):
        return Advice("is a name that begins with `~`; for what is in your home folder write `~/` before it")
    if text.startswith(("$HOME/", "${HOME}/")):
        return Advice(f"has a variable, which is not expanded; write `~/{text.partition('/')[2]}`")
    if text.startswith("$"):
        return Advice("has a variable, which is not expanded; write the path itself, `//` before an absolute one")
    if _has_folder_behind_backslash(text):
        return Advice("has a `\\`, which escapes the next character; write `/` between folders")
    return None


def _has_folder_behind_backslash(text: str) -> bool:
    index = text.find("\\")
    return 0 < index < len(text) - 1 and text[index - 1].isalnum() and text[index + 1].isalnum()


def _gitignore_error(text: str) -> str | None:
    from fairlead.policy.paths._translate import PatternError, expand_braces, translate

    try:
        for option in expand_braces(text):
            translate(option)
    except PatternError as error:
        return f"is not a gitignore pattern: {error}; git would ignore it"
    return None


def regex(text: str) -> str | None:
    """Check a regular expression."""
    import re
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a pattern that a later Python may read differently is valid today
            re.compile(text)
            from fairlead.policy.config._regex_safety import may_backtrack

            unsafe = may_backtrack(text)
    except (re.error, OverflowError, RecursionError, ValueError) as error:
        reason = str(error) or type(error).__name__
        return f"is not a regular expression: {reason}; put a backslash before a literal character"
    if unsafe:
        return "may backtrack forever: its repeated part can match one text in several ways; write `a+`, not `(a+)+`"
    return None


def quick_regex(text: str) -> str | None:
    """Check a regular expression that is searched for in every record, where no time limit can stop the search."""
    if mistake := regex(text):
        return mistake
    from fairlead.policy.config._regex_safety import is_slow

    if is_slow(text):
        return "is slow on long texts: two of its repeats can match the same characters; write `[^ ]*`, not `.*`"
    return None


def tool_name(text: str) -> str | None:
    """Check a glob on the name of a tool."""
    return glob(text) or _tool_advice(text)


def _tool_advice(text: str) -> str | None:
    """Return a hint on a name that is similar to that of a client's tool, but not equal."""
    if any(char in text for char in "*?[") or "__" in text:
        return None
    known = {tool for client in known_clients() for tool in client.tool_kinds}
    if text in known:
        return None
    from difflib import get_close_matches

    folded = {tool.lower(): tool for tool in known}
    near = get_close_matches(text.lower(), folded, n=1, cutoff=0.75)
    return Advice(f"is {text!r}, a tool that no client has; did you mean `{folded[near[0]]}`?") if near else None


def permission(text: str) -> str | None:
    """Check the default answer to permission requests."""
    return None if text.lower() in {"allow", "deny"} else f"is {text!r}; expected `allow` or `deny`"


def hook_file(text: str) -> str | None:
    """Check the name of a Python file."""
    return None if text.endswith(".py") else f"is {text!r}, which is not a Python file; its name ends with `.py`"


def event_name(text: str) -> str | None:
    """Check the name of an event, or `*`."""
    from fairlead.events import HookEvent

    event = HookEvent.find(text)
    if text == "*" or (event is not None and event.value == text):
        return None
    if event is not None:
        return Advice(f"is {text!r}; the event is written `{event.value}`")
    near = HookEvent.nearest(text)
    return (
        f"is {text!r}, which is not an event; {f'did you mean {near.value}?' if near else 'write `*` for all of them'}"
    )


def channel(text: str) -> str | None:
    """Check the URL of a channel. It may contain a secret, so it is not quoted."""
    import re

    if "${" in re.sub(r"\$\{\w+\}", "", text):
        return "has a `${` without a name and a `}`; write `${NAME}` for an environment variable"
    if not re.match(r"[A-Za-z][A-Za-z0-9+.-]*://\S|\$\{\w+\}", text):
        return "is not a URL; write it with its scheme, such as `ntfy://ntfy.sh/topic`, or as a variable, `${NAME}`"
    return None


def time_span(text: str) -> str | None:
    """Check a time span of a day."""
    from fairlead.policy._time_spans import parse_span

    span = parse_span(text)
    if span is None:
        return f"is {text!r}, which is not a time span; write it as `22:00-07:00`"
    if span[0] == span[1]:
        return f"is {text!r}, which ends when it starts; write `00:00-24:00` for the whole day"
    return None


def _has_open_bracket(text: str) -> bool:
    index = text.find("[")
    while index >= 0:
        if index and text[index - 1] == "\\":
            index = text.find("[", index + 1)
            continue
        inside = index + 2 if text[index + 1 : index + 2] in {"!", "^"} else index + 1
        end = text.find("]", inside + 1)  # a `]` that comes first is a member
        if end < 0:
            return True
        index = text.find("[", end + 1)
    return False


CHECKS: dict[type, dict[str, Check]] = {
    t.Command: {"when": file_pattern},
    t.PatternSection: {"commands": glob},
    t.SlashCommands: {"commands": glob},
    t.SubagentStart: {"context": glob, "deny": glob},
    t.FileRule: {"pattern": file_pattern, "agent": glob},
    t.ToolRule: {"tool": tool_name, "pattern": file_pattern, "command_pattern": glob, "agent": glob},
    t.PreToolUse: {
        "prevent_additions": file_pattern,
        "uneditable_files": file_pattern,
        "unreadable_files": file_pattern,
    },
    t.PermissionRequest: {"default": permission, "allow": tool_name, "deny": tool_name},
    t.ContextRule: {"pattern": regex},
    t.PromptCommand: {"pattern": regex},
    t.Notifications: {"hooks": event_name, "channels": channel},
    t.Attention: {"channels": channel, "quiet_hours": time_span},
    t.Journal: {"redact": quick_regex},
    t.Policy: {"hooks": hook_file},
}
"""Type → field → the check of its texts; for a mapping, the check of its keys."""


def find_check(owner: type, field: str) -> Check | None:
    """Return the check for a field, which may be inherited; `None` if it has none."""
    return next((CHECKS[base][field] for base in owner.__mro__ if field in CHECKS.get(base, {})), None)


# -- hints ---------------------------------------------------------------------------------------------


def tool_rule(rule: dict[str, Any], _file: str) -> str | None:
    """Return a hint on a rule that does not check what it seems to. Not a mistake, because conclaude accepts it."""
    tool, command, pattern = (str(rule.get(key) or "") for key in ("tool", "commandPattern", "pattern"))
    if command and not _may_run_commands(tool):
        if pattern in {"", "*"}:
            return f"never matches: {tool} has no command; write `tool: Bash`, or `pattern` for the file"
        return f"checks only the file: {tool} has no command; remove `commandPattern`, or write `tool: Bash`"
    if _runs_commands_alone(tool) and not command and _looks_like_a_command(pattern):
        return (
            "checks the files that a command touches, not the command; "
            "to check the command, write `commandPattern` instead of `pattern`"
        )
    if _is_bare_word(command) and rule.get("matchMode") != "prefix":
        return f"matches `{command}` without arguments only; write `{command} *`, or `matchMode: prefix` for both"
    return None


def _is_bare_word(command: str) -> bool:
    return bool(command) and not any(char in command for char in " *?[")


def _may_run_commands(tool: str) -> bool:
    return any(char in tool for char in "*?[") or any(client.may_run_commands(tool) for client in known_clients())


def _runs_commands_alone(tool: str) -> bool:
    return any(client.kind_of(tool) == "shell" for client in known_clients())


def _looks_like_a_command(pattern: str) -> bool:
    return " " in pattern.strip() or not (pattern in {"", "*"} or any(char in pattern for char in "/."))


def attention(section: dict[str, Any], file: str) -> str | None:
    """Return a hint on a section in a project's file, where it has no effect, or on secrets that the daemon lacks."""
    if file.rpartition("/")[2] != t.USER_WIDE:
        return f"has no effect in a project's policy; write it in the user-wide policy, {t.USER_WIDE}"
    import re

    names = [name for channel in section.get("channels") or () for name in re.findall(r"\$\{(\w+)\}", str(channel))]
    missing = next((name for name in names if not name.startswith("FAIRLEAD_")), None)
    if missing is None:
        return None
    kept = f"`${{FAIRLEAD_{missing}}}`"
    return f"uses `${{{missing}}}`, which a daemon that an event starts does not have; rename it to {kept}"


def user_wide_only(_section: dict[str, Any], file: str) -> str | None:
    """Return a hint on a section in a project's file, where it has no effect."""
    if file.rpartition("/")[2] != t.USER_WIDE:
        return f"has no effect in a project's policy; write it in the user-wide policy, {t.USER_WIDE}"
    return None


HINTS: dict[type, Hint] = {
    t.ToolRule: tool_rule,
    t.Attention: attention,
    t.Journal: user_wide_only,
    t.Team: user_wide_only,
}
"""Type → the function that returns a hint on a valid entry, or `None`; it takes the entry and the name of the file."""
