"""The Click application with every command. Hook events are not commands: `main` handles them without Click."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import click

from fairlead.cli.commands import ROOT, SECTIONS
from fairlead.cli.support.command import HELP_WIDTH, Group
from fairlead.cli.support.invocation import current
from fairlead.cli.support.usage_errors import explain_click_error
from fairlead.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from click.shell_completion import CompletionItem

COMPLETE_VARIABLE = "_FAIRLEAD_COMPLETE"
"""The environment variable that the script of `fairlead completion` sets when the user presses Tab."""

_MIN_HELP_WIDTH = 50


class Root(Group):
    """The top-level group `fairlead`: its help opens with a summary, and it completes commands and event names."""

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the summary, and the usage for commands and for events."""
        del ctx
        formatter.write(f"{ROOT.summary}\n\n")
        formatter.write("Usage: fairlead COMMAND [OPTIONS]\n       fairlead EVENT [OPTIONS] < payload.json\n")

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write nothing: `format_usage` has written the summary."""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete event names if the word begins with a capital, and commands otherwise."""
        if not incomplete[:1].isupper():
            return super().shell_complete(ctx, incomplete)
        from click.shell_completion import CompletionItem

        from fairlead.events import HookEvent

        return [CompletionItem(event.value) for event in HookEvent if event.value.startswith(incomplete)]


def run(args: Sequence[str]) -> int:
    """Run the command that the words `args` name, and return its exit code.

    Raise `UsageError` if the command line is wrong. With `COMPLETE_VARIABLE` set, print completions instead.
    """
    root = make_root()
    if instruction := current().environ.get(COMPLETE_VARIABLE):
        from click.shell_completion import shell_complete

        return shell_complete(root, {}, "fairlead", COMPLETE_VARIABLE, instruction)
    arguments = [*args[1:], "--help"] if args[:1] == ["help"] else list(args)
    try:
        with root.make_context("fairlead", arguments, terminal_width=_help_columns()) as ctx:
            return int(root.invoke(ctx) or 0)
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.ClickException as error:
        raise UsageError(explain_click_error(error)) from None


def _help_columns() -> int:
    """Return the width of a help text: that of the terminal, at most `HELP_WIDTH`, less 2, but at least 50 columns."""
    return max(min(current().columns(), HELP_WIDTH) - 2, _MIN_HELP_WIDTH)


@cache
def make_root() -> Root:
    """Return the group of all commands. It is cached, because the daemon runs many commands."""
    version = click.Option(["-V", "--version"], is_flag=True, expose_value=False, help="Print the version.")
    return Root(ROOT, SECTIONS, params=[version])
