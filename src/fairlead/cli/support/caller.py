"""The options that every mail command has: on whose behalf it asks, and whether it prints JSON."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from fairlead.cli.support.completion_values import complete_agents, complete_sessions

if TYPE_CHECKING:
    from collections.abc import Callable


class CallerOptions(NamedTuple):
    """The agent and session on whose behalf a mail command asks, and its output format.

    `name` and `session` are "" if the options were not given. The daemon then identifies the agent by its process.
    """

    name: str = ""
    session: str = ""
    as_json: bool = False


def caller_options(function: Callable[..., int]) -> Callable[..., int]:
    """Add `--as`, `--session` and `--json` to a command, whose first argument becomes a `CallerOptions`."""

    @wraps(function)
    def run(*, as_name: str, session: str, session_id: str, as_json: bool, **options: Any) -> int:
        return function(CallerOptions(as_name, session or session_id, as_json), **options)

    for option in reversed(_OPTIONS):
        run = option(run)
    return run


_OPTIONS = (
    click.option(
        "--as",
        "as_name",
        metavar="NAME",
        default="",
        shell_complete=complete_agents,
        help="Act for one of your own subagents; at a terminal, for any agent.",
    ),
    click.option(
        "--session",
        metavar="ID",
        default="",
        shell_complete=complete_sessions,
        help="The session, if the process does not show it: in a container, or for your own program.",
    ),
    click.option("--session-id", metavar="ID", default="", hidden=True),  # the old name
    click.option("--json", "as_json", is_flag=True, help="Print the whole document as JSON."),
)
