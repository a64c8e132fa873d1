"""Matchers in the client's syntax, which are compiled at registration, and conditions on tool calls."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, TypeAlias

from fairlead.errors import MatcherError
from fairlead.events import HookEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from fairlead.events import Event

Matcher: TypeAlias = "str | re.Pattern[str] | Callable[[Event], bool]"
"""A pattern on the event's subject, or a function that returns whether an event matches."""

_CONDITION = re.compile(r"([\w*.-]+)(?:\((.*)\))?", re.DOTALL)
_COMMAND_STARTS = re.compile(r"&&|\|\||[;|&\n(`{]|\$\(")
"""The separators after which another command may start. They also match in other places, which does no harm."""
_ASSIGNMENTS = re.compile(r"(?:\w+=\S*\s+)+")
_PLAIN = re.compile(r"[A-Za-z0-9_\- ,|]*")


def compile_matcher(matcher: Matcher | None) -> Callable[[Event], bool] | None:
    """Return a function that tests whether an event matches; `None` if every event does.

    `None`, `""` and `"*"` match every event. A text of only letters, digits, `_`, `-`, blanks, commas and bars is a
    list of exact names, separated by commas or bars. Any other text is a regular expression that is searched in the
    subject. Raise `MatcherError` if the matcher is invalid.
    """
    if matcher is None or (isinstance(matcher, str) and matcher.strip() in {"", "*"}):
        return None
    if isinstance(matcher, str):
        if _PLAIN.fullmatch(matcher):
            return _names(matcher)
        matcher = _regex(matcher)
    if isinstance(matcher, re.Pattern):
        if isinstance(matcher.pattern, bytes):
            raise MatcherError(f"matcher {matcher.pattern!r}: a bytes pattern matches no text")
        search = matcher.search
        return lambda event: search(event.subject) is not None
    if not callable(matcher):
        raise MatcherError(f"matcher: expected a string, a pattern or a function, got {type(matcher).__name__}")
    return matcher


def is_on_subject(matcher: Matcher | None) -> bool:
    """Return whether the result of a matcher depends on the event's subject only. It does unless it is a function."""
    return matcher is None or isinstance(matcher, str | re.Pattern)


def check_subjects(matcher: Matcher | None, events: Iterable[type[Event]]) -> None:
    """Raise `MatcherError` if a matcher is a pattern and one of the events has no subject that it could match."""
    if not is_on_subject(matcher) or compile_matcher(matcher) is None:
        return
    for event in events:
        if not any(kind.type.subject_field for kind in HookEvent if issubclass(kind.type, event)):
            name = event.__name__
            raise MatcherError(f"matcher {matcher!r}: {name} has no subject to match; leave the matcher out")


def _names(matcher: str) -> Callable[[Event], bool]:
    names = {name.strip() for name in matcher.replace(",", "|").split("|")} - {""}
    if not names:
        raise MatcherError(f"matcher {matcher!r}: it contains no name")
    return lambda event: event.subject in names or _other_name(event) in names


def _other_name(event: Event) -> str:
    """Return the other name of a tool that the client has renamed, because a matcher may have either; "" for none."""
    if event.tool_name is None:
        return ""
    from fairlead.clients import client_or_default

    return client_or_default(event.client).same_tools.get(event.tool_name, "")


def _regex(matcher: str) -> re.Pattern[str]:
    try:
        return re.compile(matcher)
    except (re.error, RecursionError, OverflowError, FutureWarning) as error:  # warnings may be configured as errors
        raise MatcherError(f"matcher {matcher!r}: not a valid regular expression: {error}") from None


# -- conditions: the client's `if`, a tool call in the syntax of its permission rules --------------------


def is_tool_condition(text: str) -> bool:
    """Return whether a text has the form of a condition: the name of a tool, maybe with a pattern in parentheses."""
    return _CONDITION.fullmatch(text.strip()) is not None


def meets_condition(event: Event, condition: str) -> bool:
    """Return whether an event is a tool call that meets a condition such as `Bash(git *)` or `Edit(src/**)`.

    The pattern must match one of the commands in the line of a shell tool, or one of the paths of another tool. Return
    `False` for an invalid condition.
    """
    match = _CONDITION.fullmatch(condition.strip())
    tool_input = getattr(event, "tool_input", None)
    if match is None or event.tool_name is None or not isinstance(tool_input, Mapping):
        return False
    tool, pattern = match[1], match[2]
    if not fnmatchcase(event.tool_name, tool):
        return False
    if pattern is None or pattern.strip() in {"", "*"}:
        return True
    from fairlead.clients import client_or_default

    call = client_or_default(event.client).tool_call(event.tool_name, dict(tool_input))
    if call.command is not None:
        return any(_is_command(command, pattern) for command in _commands(call.command))
    return any(_is_path(access.path, pattern, event.cwd or "") for access in call.paths)


def _commands(line: str) -> Iterator[str]:
    yield line.strip()
    for part in _COMMAND_STARTS.split(line):
        command = part.strip()
        yield command
        yield _ASSIGNMENTS.sub("", command, count=1)


def _is_command(command: str, pattern: str) -> bool:
    if pattern.endswith(":*"):  # the older syntax for a prefix
        prefix = pattern[:-2]
        return command == prefix or command.startswith(f"{prefix} ")
    if pattern.endswith(" *") and command == pattern[:-2]:
        return True
    return fnmatchcase(command, pattern)


def _is_path(path: str, pattern: str, folder: str) -> bool:
    full = os.path.join(folder, path)
    pattern = os.path.expanduser(pattern).removeprefix("./")
    if pattern.startswith("/"):
        return fnmatchcase(full, pattern[1:] if pattern.startswith("//") else pattern) or fnmatchcase(
            full, folder + pattern
        )
    return fnmatchcase(full, os.path.join(folder, pattern)) or fnmatchcase(full, f"*/{pattern.removeprefix('**/')}")
