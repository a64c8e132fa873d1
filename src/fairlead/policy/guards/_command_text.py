"""The texts of a command that the patterns of tool rules match."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_HARMLESS_VARIABLES = frozenset(
    {
        *("CI", "COLUMNS", "DEBUG", "FORCE_COLOR", "LANG", "LC_ALL", "LINES", "LOG_LEVEL", "NODE_ENV", "NO_COLOR"),
        *("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "RUST_BACKTRACE", "RUST_LOG", "TERM", "TZ"),
    }
)
"""Variables that do not make a program run or write something else; a rule that allows the program allows them."""
_WITH_COMMANDS = frozenset(
    {
        *("aws", "az", "brew", "cargo", "docker", "gcloud", "gh", "git", "go", "helm", "kubectl", "npm", "pip", "pnpm"),
        *("podman", "poetry", "pulumi", "systemctl", "terraform", "tofu", "uv", "yarn"),
    }
)
"""Programs whose first operand is a command. Options may stand anywhere after it."""
_MAX_LEADING = 4
"""The maximum number of options with a value before the first operand."""
_MAX_VARIED = 40
"""The maximum number of words of a command whose options are moved."""


class CommandText:
    """The texts of one command. Allow rules are compared with those in `exact`, other rules with those in `loose`."""

    __slots__ = ("_words", "exact", "implied", "loose", "program")

    def __init__(
        self,
        text: str,
        words: Sequence[str] = (),
        program: str = "",
        *,
        implied: bool = False,
        variables: Sequence[str] = (),
    ) -> None:
        self.implied = implied
        """Whether this is another spelling of a command, which no rule has to allow."""
        self.exact: tuple[str, ...] = (text,) if words else (text.strip(), " ".join(text.split()))
        self.loose = self.exact
        if words and words[0] != program:
            self.loose = (*self.exact, " ".join((program, *words[1:])))
        self.program = program
        self._words = words if " -" in text and 1 < len(words) <= _MAX_VARIED else ()
        given = [word for word in variables if word.partition("=")[0] not in _HARMLESS_VARIABLES]
        if given:
            self.exact = (" ".join((*given, text)),)
            self.loose = (*self.exact, *self.loose)

    def add_moved_options(self) -> None:
        """Add to `loose` the texts in which the options of the command are in other places."""
        if self._words:
            self.loose = (*self.loose, *_with_moved_options(self.program, self._words[1:]))
            self._words = ()


def _with_moved_options(program: str, args: Sequence[str]) -> Iterator[str]:
    """Yield variants of a command that a rule may match.

    They lack the options before the first operand, or have the other options first: `git -C x push origin -f` →
    `git push -f origin`. It is not known which options take a value, so there are variants for both cases.
    """
    if program not in _WITH_COMMANDS:
        yield from _options_first((program,), args)
        return
    for skipped in range(_MAX_LEADING):
        start = next((index for index, word in enumerate(args) if word[:1] != "-"), len(args))
        rest = args[start:]
        if (start or skipped) and rest:
            yield " ".join((program, *rest))
        yield from _options_first((program, *rest[:1]), rest[1:])
        if not start or "=" in args[start - 1]:
            return
        args = rest[1:]  # the word was the value of the option before it


def _options_first(head: Sequence[str], args: Sequence[str]) -> Iterator[str]:
    options = [word for word in args if word[:1] == "-"]
    operands = [word for word in args if word[:1] != "-"]
    for index, option in enumerate(options):
        # each option first: a pattern names the one that matters
        yield " ".join((*head, option, *options[:index], *options[index + 1 :], *operands))
    letters = "".join(option[1:] for option in options if re.fullmatch(r"-[A-Za-z]+", option))
    if len(letters) > 1:
        long = [option for option in options if not re.fullmatch(r"-[A-Za-z]+", option)]
        yield " ".join((*head, f"-{letters}", *long, *operands))
        yield " ".join((*head, f"-{letters[::-1]}", *long, *operands))
