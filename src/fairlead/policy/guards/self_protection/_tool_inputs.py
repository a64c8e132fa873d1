"""Checks tools, such as those of MCP servers, that end the daemon, remove Fairlead, or give a client other settings.

Their commands, code and paths are checked like those of any tool. This module checks the rest of their input.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from fairlead.policy.guards.self_protection._findings import Finding, distribution

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from fairlead.clients import Client

_NAME = "fairlead"
_ENDS = r"(?i)kill|terminate|stop|uninstall|remove|delete|disable|restart|signal"
"""Matches in the name of a tool that may end or remove something."""
_REQUEST = r"/v1/(?:stop|events/SessionStart)\b"


def check_tool_input(tool: str, tool_input: Mapping[str, Any], clients: Iterable[Client]) -> Iterator[Finding]:
    """Yield what a call would do to Fairlead, judged by the name of the tool and the values of its input."""
    ends = re.search(_ENDS, tool) is not None
    variables = {name for client in clients for name in client.program.variables_without_hooks}
    for key, value in _leaves(tool_input):
        if key in variables or key.startswith("FAIRLEAD_"):
            yield Finding(f"giving a client other settings ({key})")
        elif isinstance(value, str) and re.search(_REQUEST, value):
            yield Finding("stopping Fairlead's daemon, or telling it that a session begins")
        elif ends and isinstance(value, str) and _is_fairlead(value):
            yield Finding("ending or removing Fairlead")
        elif ends and key.lower() in {"pid", "process_id", "processid"} and _is_daemon(value):
            yield Finding("ending Fairlead's daemon")


def _leaves(value: object, key: str = "") -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, str(name))
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner, key)
    else:
        yield key, value


def _is_fairlead(value: str) -> bool:
    return "\n" not in value and " " not in value and (distribution(value) == _NAME or value.startswith(f"{_NAME}."))


def _is_daemon(value: object) -> bool:
    from fairlead.policy.guards.self_protection._processes import daemon_process

    return str(value).isdigit() and int(str(value)) == daemon_process()
