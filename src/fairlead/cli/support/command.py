"""Commands and groups on Click: help with examples and exit codes, suggestions, subcommands imported on demand."""

from __future__ import annotations

import re
from contextlib import nullcontext
from copy import copy
from typing import TYPE_CHECKING, Any

import click

from fairlead.cli.support.invocation import current
from fairlead.cli.support.usage_errors import unknown_command
from fairlead.errors import UsageError
from fairlead.lazy import light_imports

if TYPE_CHECKING:
    from collections.abc import Sequence

    from click.shell_completion import CompletionItem

    from fairlead.cli.commands import CommandEntry, CommandSection

HELP_WIDTH = 100
_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": HELP_WIDTH}
_BEFORE_SUBCOMMAND = frozenset({"--as", "--session", "--session-id"})
"""Options with a value that may stand before a subcommand: `fairlead topics --as NAME join TOPIC`."""
_OPTION = re.compile(r"--?[A-Za-z][\w-]*(=.*)?", re.DOTALL)
_MARK = "\0"
"""Prefix of a text that begins with a dash, while Click parses. No word of a command line can contain it."""


class _FixedParams(click.Command):
    """Builds its parameters and parser once. Click would build and check them for every command line."""

    _fixed_params: list[click.Parameter] | None = None
    _parser: Any = None

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters and the option `--help`."""
        if self._fixed_params is None:
            self._fixed_params = super().get_params(ctx)
        return self._fixed_params

    def make_parser(self, ctx: click.Context) -> Any:
        """Return a parser for one command line: a copy of the cached parser, which has no state but the context."""
        if self._parser is None:
            self._parser = super().make_parser(ctx)
        parser = copy(self._parser)
        parser.ctx = ctx
        return parser

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """Return the option `--help`, which prints to the stdout of the invocation; `None` if the command has none."""
        return _printing_help(super().get_help_option(ctx))


class Command(_FixedParams):
    """A command whose help shows examples and exit codes, and whose arguments may be texts that begin with a dash."""

    allow_extra_args = True  # `parse_args` refuses them, with our own message

    def __init__(
        self,
        *args: Any,
        arguments: Sequence[tuple[str, str]] = (),
        examples: Sequence[str] = (),
        exit_codes: Sequence[tuple[int, str]] = (),
        **settings: Any,
    ) -> None:
        """Take the parts of the help that Click does not have, and Click's own parameters.

        `arguments` are names with their descriptions, `exit_codes` are codes with their meanings.
        """
        super().__init__(*args, **{"context_settings": _SETTINGS, **settings})
        self.arguments = arguments
        self.examples = examples
        self.exit_codes = exit_codes

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words of a command line into `ctx.params`, and return an empty list.

        Raise the `UsageError` of Fairlead if there are too many words, and that of Click for any other mistake.
        """
        try:
            rest = super().parse_args(ctx, mark_texts(args))
        except click.UsageError as error:
            error.ctx = error.ctx or ctx  # some errors of Click have no context
            raise
        for name, value in ctx.params.items():
            ctx.params[name] = unmark(value)
        if rest and not ctx.resilient_parsing:
            name = ctx.command_path.removeprefix("fairlead ")
            raise UsageError(f"{name}: unexpected argument {unmark(rest[0])!r}; see {ctx.command_path} --help")
        return []

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help: usage, text, arguments, options, examples and exit codes."""
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        if self.arguments:
            with formatter.section("Arguments"):
                formatter.write_dl(self.arguments)
        self.format_options(ctx, formatter)
        self.format_epilog(ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples and exit codes."""
        del ctx
        _write_examples(self.examples, formatter)
        if self.exit_codes:
            with formatter.section("Exit codes"):
                formatter.write_dl([(str(code), meaning) for code, meaning in self.exit_codes])


def mark_texts(args: Sequence[str]) -> list[str]:
    """Return the words with a mark on those that Click would take for options, such as `- a list` and `-5 degrees`.

    Words after `--` are not marked, because Click takes none of them for an option.
    """
    end = args.index("--") if "--" in args else len(args)
    return [f"{_MARK}{word}" if _is_text(word) else word for word in args[:end]] + list(args[end:])


def unmark(value: Any) -> Any:
    """Return a text, or a tuple of texts, without the mark, and any other value unchanged."""
    if isinstance(value, tuple):
        return tuple(map(unmark, value))
    return value.removeprefix(_MARK) if isinstance(value, str) else value


def _is_text(word: str) -> bool:
    if not word.startswith("-") or word == "-":
        return False
    match = _OPTION.fullmatch(word)
    return match is None or (" " in word and match[1] is None)


class Group(_FixedParams, click.Group):
    """A group of commands in sections. Each command is imported when it is run. One may be the default."""

    def __init__(self, entry: CommandEntry, sections: Sequence[CommandSection], **settings: Any) -> None:
        """Take the entry of the group, the sections that contain its commands, and Click's own parameters."""
        super().__init__(
            entry.name,
            help=entry.about or entry.summary,
            short_help=entry.summary,
            context_settings=_SETTINGS,
            no_args_is_help=False,
            options_metavar="",
            **settings,
        )
        self.entry = entry
        self.sections = sections
        self.entries = {entry.name: entry for section in sections for entry in section.entries}
        self._groups: dict[str, Group] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, in the order of the help."""
        del ctx
        return list(self.entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command with this name; `None` if there is none."""
        del ctx
        entry = self.entries.get(cmd_name)
        command = self._groups.get(cmd_name) or (entry and load(entry))
        if isinstance(command, Group):
            self._groups[cmd_name] = command
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words of a command line, in which options may come before the subcommand.

        Without a subcommand, the default one is parsed. If the group has no default, and there are no words, print the
        help to stderr and exit with 1.
        """
        if ctx.resilient_parsing:
            return super().parse_args(ctx, args)
        if self.entry.default:
            args = self._with_subcommand_first(args)
        elif not args:
            print(ctx.get_help(), file=current().stderr)
            ctx.exit(1)
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the name of the subcommand, the subcommand itself, and the words after its name.

        Raise `UsageError`, with a suggestion, if the first word names no subcommand. During a completion, return `None`
        for name and subcommand instead.
        """
        command = self.get_command(ctx, args[0])
        if command is None and not ctx.resilient_parsing:
            raise UsageError(unknown_command(args[0], self.entry.name, list(self.entries.values())))
        return args[0] if command else None, command, args[1:]

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete subcommands and options, and the options of the default. Imports no command but the default."""
        from click.shell_completion import CompletionItem

        commands = [
            CompletionItem(name, help=entry.summary)
            for name, entry in self.entries.items()
            if name.startswith(incomplete) and not entry.is_hidden
        ]
        default = self.get_command(ctx, self.entry.default)
        return [*commands, *click.Command.shell_complete(default or self, ctx, incomplete)]

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help: the commands by sections, and the options of the default."""
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        for section in self.sections:
            rows = [(entry.name, entry.summary) for entry in section.entries if not entry.is_hidden]
            with formatter.section(section.title):
                formatter.write_dl(rows)
        default = self.get_command(ctx, self.entry.default)
        if isinstance(default, Command):
            with default.make_context(self.entry.default, [], parent=ctx, resilient_parsing=True) as inner:
                default.format_options(inner, formatter)
        else:
            click.Command.format_options(self, ctx, formatter)
        _write_examples(self.entry.examples, formatter)
        if self.entry.note:
            formatter.write_paragraph()
            formatter.write_text(self.entry.note)

    def _with_subcommand_first(self, args: list[str]) -> list[str]:
        words = iter(enumerate(args))
        for at, word in words:
            if word in _BEFORE_SUBCOMMAND:
                next(words, None)
            elif word in {"-h", "--help"}:
                return args
            elif word == "--":
                break
            elif not word.startswith("-"):
                return [word, *args[:at], *args[at + 1 :]]
        return [self.entry.default, *args]


def _printing_help(option: click.Option | None) -> click.Option | None:
    """Make `--help` print to the stdout of the invocation, not of the process as Click does. Return the same option."""
    if option is not None:
        option.callback = _print_help
    return option


def _print_help(ctx: click.Context, _: click.Parameter, value: bool) -> None:  # noqa: FBT001 - as Click calls it
    if value and not ctx.resilient_parsing:
        print(ctx.get_help(), file=current().stdout)
        ctx.exit()


def _write_examples(examples: Sequence[str], formatter: click.HelpFormatter) -> None:
    if examples:
        with formatter.section("Examples" if len(examples) > 1 else "Example"):
            for line in examples:
                formatter.write(f"{'':{formatter.current_indent}}{line}".rstrip() + "\n")


def load(entry: CommandEntry) -> click.Command:
    """Import and return the command of an entry or, if the entry has subcommands, make its group.

    In the daemon, raise `CommandDeclined` for a command that needs a process of its own.
    """
    from fairlead.cli.commands import CommandSection

    if entry.subcommands:
        return Group(entry, (CommandSection("Commands", entry.subcommands),), subcommand_metavar=_metavar(entry))
    current().begin(entry)
    from importlib import import_module

    module, _, name = entry.target.partition(":")
    with nullcontext() if current().is_served else light_imports():  # light imports affect all threads
        command: click.Command = getattr(import_module(f"fairlead.cli.{module}"), name)
    return command


def _metavar(entry: CommandEntry) -> str:
    return "[COMMAND] [OPTIONS]" if entry.default else "COMMAND [OPTIONS]"
