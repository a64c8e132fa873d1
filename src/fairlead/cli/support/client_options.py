"""The options `--client`, `--scope` and `--client-version`, of commands about a client's settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fairlead.cli.support.param_types import Text
from fairlead.clients import CLIENTS, DEFAULT_CLIENT, UnknownClientError, client_named
from fairlead.errors import FairleadError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlead.clients import Client, Version


def find_client(name: str, scope: str | None) -> Client:
    """Return the client of that name. Raise `UsageError` if there is none, or if it has no such scope (`None`: any)."""
    try:
        client = client_named(name)
    except UnknownClientError as error:
        raise UsageError(f"--client: {error}") from None
    scopes = client.installer.SCOPES
    if scope is not None and scope not in scopes:
        raise UsageError(f"--scope: expected one of {', '.join(scopes)}, got {scope!r}")
    return client


def parse_version(client: Client, text: str | None) -> Version | None:
    """Parse `--client-version`; `None` if the option was not given. Raise `FairleadError` if it is not a version."""
    try:
        return None if text is None else client.installer.parse_version(text)
    except FairleadError as error:
        raise UsageError(f"--client-version: {error}") from None


def client_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--client` to a command."""
    return click.option(
        "--client",
        metavar="NAME",
        type=Text(),
        default=DEFAULT_CLIENT,
        shell_complete=_complete_clients,
        help=f"The client (default: {DEFAULT_CLIENT}).",
    )(function)


def version_option(what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds `--client-version` to a command. `what` begins its help, such as "Install for"."""
    program = client_named(DEFAULT_CLIENT).installer.PROGRAM
    return click.option(
        "--client-version",
        metavar="VERSION",
        type=Text(),
        help=f"{what} that version, such as 2.1.325 (default: what `{program} --version` says).",
    )


def scope_option(help_text: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds `--scope` to a command. By default, its help describes every scope."""
    scopes = client_named(DEFAULT_CLIENT).installer.SCOPES
    described = "; ".join(f"{scope}: {text}" for scope, text in scopes.items())
    return click.option(
        "--scope", metavar="SCOPE", type=Text(), shell_complete=_complete_scopes, help=help_text or f"{described}."
    )


def _complete_clients(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    del ctx, param
    return [name for name in CLIENTS if name.startswith(incomplete)]


def _complete_scopes(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    del ctx, param
    return [scope for scope in client_named(DEFAULT_CLIENT).installer.SCOPES if scope.startswith(incomplete)]
