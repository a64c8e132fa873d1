"""Explains in one line what is wrong with a command line. Unknown commands and options get a suggestion."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlead.cli.commands import CommandEntry

_MIN_SIMILARITY = 0.6


def unknown_command(word: str, group: str, entries: Sequence[CommandEntry]) -> str:
    """Return one line about an unknown command. It suggests a subcommand, a similar command, or an event.

    `group` is the name of the group in which the command was looked up, `entries` are the commands of that group.
    """
    similar = _most_similar(word, [entry.name for entry in entries])
    with_subcommand = [entry for entry in entries if word in {below.name for below in entry.subcommands}]
    suggestions = [f"{entry.name} {word}" for entry in with_subcommand] or similar
    is_root = group == "fairlead"
    if is_root:
        suggestions = suggestions + _events(word, is_sole=not suggestions)
    if suggestions:
        hint = f"did you mean {' or '.join(suggestions)}?"
    else:
        hint = "see fairlead --help" if is_root else f"see fairlead {group} --help"
    return f"unknown command {word!r}{'' if is_root else f' of {group}'}; {hint}"


def _events(word: str, *, is_sole: bool) -> list[str]:
    """Return a suggestion for the event that a word names in another spelling, such as `pre_tool_use`; else nothing.

    `is_sole` is whether there is no other suggestion. Then an event with a similar name is suggested, too.
    """
    from fairlead.events import HookEvent

    event = HookEvent.find(word) or (HookEvent.nearest(word) if is_sole else None)
    return [f"the event {event.value}"] if event else []


def explain_click_error(error: click.ClickException) -> str:
    """Return one line about an error that Click found."""
    ctx = error.ctx if isinstance(error, click.UsageError) else None
    if isinstance(error, click.NoSuchOption):
        options = {name.strip("-"): name for name in _visible_options(ctx)}
        near = _most_similar(error.option_name.strip("-"), list(options))
        hint = f"did you mean {options[near[0]]}?" if near else f"see {ctx.command_path if ctx else 'fairlead'} --help"
        return f"unknown option {error.option_name!r}; {hint}"
    if isinstance(error, click.BadOptionUsage):
        return f"{error.option_name} {'takes no value' if _is_flag(error.option_name, ctx) else 'needs a value'}"
    if isinstance(error, click.MissingParameter) and ctx is not None and error.param is not None:
        name = error.param.make_metavar(ctx)
        return f"{ctx.command_path.removeprefix('fairlead ')}: {name} is missing; see {ctx.command_path} --help"
    return error.format_message()


def _most_similar(word: str, words: Sequence[str]) -> list[str]:
    from difflib import get_close_matches

    return get_close_matches(word, words, n=1, cutoff=_MIN_SIMILARITY)


def _visible_options(ctx: click.Context | None) -> list[str]:
    options = [param for param in (ctx.command.get_params(ctx) if ctx else ()) if isinstance(param, click.Option)]
    return [name for option in options if not option.hidden for name in option.opts]


def _is_flag(name: str, ctx: click.Context | None) -> bool:
    params = ctx.command.get_params(ctx) if ctx else ()
    return any(isinstance(param, click.Option) and param.is_flag and name in param.opts for param in params)
