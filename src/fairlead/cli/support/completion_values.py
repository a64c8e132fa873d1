"""Shell completion of agents, sessions, topics and messages. Asks a running daemon, and starts none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from click import Context, Parameter
    from click.shell_completion import CompletionItem

_TIMEOUT = 1.0
_MAX_MESSAGES = 50


def complete_agents(ctx: Context, param: Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the names of this project's agents, and the recipients `User` and `everyone`."""
    del ctx, param
    agents = [(agent["name"], agent["presence"]) for agent in _ask("/v1/mail/agents?all=false").get("agents", ())]
    return _items([*agents, ("User", "the user"), ("everyone", "in this project")], incomplete)


def complete_sessions(ctx: Context, param: Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the ids of sessions."""
    del ctx, param
    sessions = _ask("/v1/sessions").get("sessions", ())
    return _items([(row["id"], row.get("title") or row.get("cwd") or "") for row in sessions], incomplete)


def complete_topics(ctx: Context, param: Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the names of topics."""
    del ctx, param
    return _items([(topic["name"], "") for topic in _ask("/v1/mail/topics").get("topics", ())], incomplete)


def complete_messages(ctx: Context, param: Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the numbers of the newest messages in the inbox."""
    del ctx, param
    rows = _ask(f"/v1/mail/inbox?all=true&limit={_MAX_MESSAGES}").get("messages", ())
    return _items([(str(row["id"]), f"{row['from']}: {row['subject'] or row['preview']}") for row in rows], incomplete)


def complete_events(ctx: Context, param: Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the names of events."""
    del ctx, param
    from fairlead.events import HookEvent

    return _items([(event.value, "") for event in HookEvent], incomplete)


def _ask(path: str) -> dict[str, Any]:
    import os

    from fairlead.errors import FairleadError
    from fairlead.ipc import request

    try:
        if path.startswith("/v1/mail/"):
            from urllib.parse import quote

            path = f"{path}{'&' if '?' in path else '?'}cwd={quote(os.getcwd())}"
        document = request("GET", path, timeout=_TIMEOUT)
    except (FairleadError, OSError):  # a completion never fails
        return {}
    return document if isinstance(document, dict) else {}


def _items(values: Iterable[tuple[str, str]], incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    from fairlead.text import first_line

    return [
        CompletionItem(first_line(value), help=first_line(about) or None)
        for value, about in values
        if value.startswith(incomplete)
    ]
