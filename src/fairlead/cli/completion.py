"""`fairlead completion`: prints the script that makes a shell complete commands, options and values."""

from __future__ import annotations

import click

from fairlead.cli.support.command import Command
from fairlead.cli.support.param_types import OneOf
from fairlead.errors import UsageError

SHELLS = ("bash", "zsh", "fish")


def completion_script(root: click.Command, shell: str, variable: str) -> str:
    """Return the script that makes a shell complete the command line of `root`.

    `variable` is the environment variable through which the script asks for completions. Raise `UsageError` for a shell
    that Click does not support.
    """
    from click.shell_completion import get_completion_class

    complete = get_completion_class(shell)
    if complete is None:
        raise UsageError(f"completion: expected one of {', '.join(SHELLS)}, got {shell!r}")
    return complete(root, {}, "fairlead", variable).source()


@click.command(
    "completion",
    cls=Command,
    arguments=(("SHELL", "bash (4.4 or newer), zsh or fish"),),
    examples=(
        'eval "$(fairlead completion bash)"                                   in ~/.bashrc',
        'eval "$(fairlead completion zsh)"                                    in ~/.zshrc',
        "fairlead completion fish > ~/.config/fish/completions/fairlead.fish",
    ),
    exit_codes=((0, "printed"), (1, "there is no script for that shell")),
)
@click.argument("shell", metavar="SHELL", type=OneOf(SHELLS), required=False)
def completion(*, shell: str | None) -> int:
    """Print the completion script of a shell.

    It completes commands, options, and values such as agents, sessions, topics and messages, as far as a running
    daemon knows them.
    """
    from fairlead.cli.app import COMPLETE_VARIABLE, make_root

    if shell is None:
        raise UsageError(f"completion: which shell? Name one of {', '.join(SHELLS)}")
    print(completion_script(make_root(), shell, COMPLETE_VARIABLE))
    return 0
