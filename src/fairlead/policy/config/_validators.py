"""What a text in the policy must be, beyond being text: a glob, a regular expression, the name of an event.

Each check takes the text and gives back what is wrong with it and what would be right, or `None`. A remark is about a
whole entry, which is valid, but hardly means what its writer thinks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead.clients import known_clients
from fairlead.policy.config import _types as t

if TYPE_CHECKING:
    from collections.abc import Callable

    Check = Callable[[str], str | None]
    Remark = Callable[[dict[str, Any], str], str | None]


def glob(text: str) -> str | None:
    """Check a glob on a name, a command or the like."""
    if not text.strip():
        return "is blank, and so matches nothing; write `*` for everything"
    if _has_open_bracket(text):
        return "has a `[` that is never closed; close it, or write `[[]` for the character itself"
    return None


def file_pattern(text: str) -> str | None:
    """Check a gitignore pattern."""
    if text.startswith("#"):
        return "is a comment to gitignore, and so matches nothing; write `\\#` for the character itself"
    if not text.strip("!/ "):
        return "matches nothing; write `*` for every file"
    return glob(text)


def regex(text: str) -> str | None:
    """Check a regular expression."""
    import re
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a later Python may read differently is valid today
            re.compile(text)
            from fairlead.policy.config._regex_safety import may_run_for_ever

            endless = may_run_for_ever(text)
    except (re.error, OverflowError, RecursionError, ValueError) as error:
        what = str(error) or type(error).__name__
        return f"is no regular expression: {what}; put a backslash before a character that means itself"
    if endless:
        return "could take for ever, as one text fits its repeated part in many ways; write `(a+)+` as `a+`"
    return None


def permission(text: str) -> str | None:
    """Check what is answered by default."""
    return None if text.lower() in {"allow", "deny"} else f"is {text!r}; expected `allow` or `deny`"


def event_name(text: str) -> str | None:
    """Check the name of an event, or `*`."""
    from fairlead.events import HookEvent

    if text == "*" or HookEvent.find(text) is not None:
        return None
    near = HookEvent.nearest(text)
    return f"is {text!r}, which is no event; {f'did you mean {near.value}?' if near else 'write `*` for all of them'}"


def channel(text: str) -> str | None:
    """Check the URL of a channel. It may hold a secret, so it is not repeated."""
    import re

    if "${" in re.sub(r"\$\{\w+\}", "", text):
        return "has a `${` without a name and a `}` after it; write `${NAME}` for a variable of the environment"
    if not re.match(r"[A-Za-z][A-Za-z0-9+.-]*://\S|\$\{\w+\}", text):
        return "is no URL; write it with its scheme, as `ntfy://ntfy.sh/topic`, or `${NAME}` from the environment"
    return None


def span_of_day(text: str) -> str | None:
    """Check a span of the day."""
    from fairlead.policy.config._time_spans import read_span

    span = read_span(text)
    if span is None:
        return f"is {text!r}, which is no span of the day; write it as `22:00-07:00`"
    if span[0] == span[1]:
        return f"is {text!r}, which ends as it begins; write `00:00-24:00` for the whole day"
    return None


def _has_open_bracket(text: str) -> bool:
    at = text.find("[")
    while at >= 0:
        if at and text[at - 1] == "\\":
            at = text.find("[", at + 1)
            continue
        inside = at + 2 if text[at + 1 : at + 2] in {"!", "^"} else at + 1
        end = text.find("]", inside + 1)  # a `]` that comes first is a member
        if end < 0:
            return True
        at = text.find("[", end + 1)
    return False


CHECKS: dict[type, dict[str, Check]] = {
    t.Command: {"when": file_pattern},
    t.PatternSection: {"commands": glob},
    t.SlashCommands: {"commands": glob},
    t.SubagentStart: {"context": glob, "deny": glob},
    t.FileRule: {"pattern": file_pattern, "agent": glob},
    t.ToolRule: {"tool": glob, "pattern": file_pattern, "command_pattern": glob, "agent": glob},
    t.PreToolUse: {
        "prevent_additions": file_pattern,
        "uneditable_files": file_pattern,
        "unreadable_files": file_pattern,
    },
    t.PermissionRequest: {"default": permission, "allow": glob, "deny": glob},
    t.ContextRule: {"pattern": regex},
    t.PromptCommand: {"pattern": regex},
    t.Notifications: {"hooks": event_name, "channels": channel},
    t.Attention: {"channels": channel, "quiet_hours": span_of_day},
}
"""Type → field → the check of its texts; of a mapping, the keys are what is checked."""


def check_of(owner: type, field: str) -> Check | None:
    """Find the check for a field, which may be one that its type has inherited."""
    return next((CHECKS[base][field] for base in owner.__mro__ if field in CHECKS.get(base, {})), None)


# -- remarks -------------------------------------------------------------------------------------------


def tool_rule(rule: dict[str, Any], _file: str) -> str | None:
    """Remark on a rule that looks at something else than it seems to. Conclaude takes these, so they are no errors."""
    tool, command, pattern = (str(rule.get(key) or "") for key in ("tool", "commandPattern", "pattern"))
    if command and not _may_run_commands(tool):
        if pattern in {"", "*"}:
            return f"never matches: {tool} has no command; write `tool: Bash`, or `pattern` for the file"
        return f"looks at the file alone: {tool} has no command; remove `commandPattern`, or write `tool: Bash`"
    if _runs_commands_alone(tool) and not command and _is_like_a_command(pattern):
        return (
            "looks at the files that a command touches, not at the command; "
            "for that write `commandPattern` in place of `pattern`"
        )
    return None


def _may_run_commands(tool: str) -> bool:
    return any(char in tool for char in "*?[") or any(client.may_run_commands(tool) for client in known_clients())


def _runs_commands_alone(tool: str) -> bool:
    return any(client.kind_of(tool) == "shell" for client in known_clients())


def _is_like_a_command(pattern: str) -> bool:
    return " " in pattern.strip() or not (pattern in {"", "*"} or any(char in pattern for char in "/."))


def attention(section: dict[str, Any], file: str) -> str | None:
    """Remark on what only the user-wide file can say, and on secrets that the daemon does not have."""
    if file.rpartition("/")[2] != t.USER_WIDE:
        return (
            f"does nothing here, as no project says how you are told; write it in the user-wide policy, {t.USER_WIDE}"
        )
    import re

    names = [name for channel in section.get("channels") or () for name in re.findall(r"\$\{(\w+)\}", str(channel))]
    lost = next((name for name in names if not name.startswith("FAIRLEAD_")), None)
    if lost is None:
        return None
    kept = f"`${{FAIRLEAD_{lost}}}`"
    return f"names `${{{lost}}}`, which a daemon that is begun by an event does not keep; name it {kept}"


REMARKS: dict[type, Remark] = {t.ToolRule: tool_rule, t.Attention: attention}
"""Type → what to say about an entry that is valid, by what it says and by the name of its file."""
