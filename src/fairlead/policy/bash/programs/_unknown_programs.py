"""The effects of programs that are not in the table, from the words of their arguments that may name files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from fairlead.policy.bash._words import is_glob, is_unknown, plain, quote
from fairlead.policy.bash.programs._calls import Access, Effect, Mention, ProgramCall
from fairlead.policy.bash.programs._common_programs import CHECKERS, FORMATTERS, RUNNERS, WITHOUT_FILES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_OUTPUTS: Final = {"-o", "-out", "--out", "--output", "--outfile", "--out-file", "--output-file"}
_SEPARATORS: Final = re.compile(r"""[\s'"`;|&()<>=,:@{}\[\]$]+""")
"""Characters around the name of a file in an argument: `--env-file=.env`, `.env:/app/.env`, `{"path": ".env"}`."""
_NO_FILE: Final = re.compile(r"[\d\W_]*|v?\d[\d.]*|-+\w*|https?|//.*")
_TEXT_OPTIONS: Final = frozenset(
    {
        *("-m", "--message", "--title", "--body", "--description", "--subject", "--comment", "--notes", "--text"),
        *("--summary", "--reason", "-b", "-t"),
    }
)
"""Options whose value is a message if it contains a blank."""
_FLAGS: Final = frozenset({"--check", "--check-only", "--diff", "--list-different", "--quiet", "--verbose", "--strict"})
"""Options without a value."""
_MAX_PARTS: Final = 256
_MAX_PATH_LENGTH: Final = 512


def is_unknown_program(program: str) -> bool:
    """Return whether the effects of a program that is not in the table are unknown."""
    return not (program in WITHOUT_FILES or program in CHECKERS or program in FORMATTERS)


def any_program(call: ProgramCall) -> Iterator[Effect]:
    """Yield the effects of a program that is not in the table."""
    program = call.program
    if program in WITHOUT_FILES:
        return
    for index, arg in enumerate(call.args):
        name, equals, value = arg.partition("=")
        if name in _OUTPUTS:
            yield Access("write", value if equals else "".join(call.args[index + 1 : index + 2]), if_exists=True)
    formatter = FORMATTERS.get(program)
    if formatter is not None:
        yield from formatter(call)
    if formatter is not None or program in CHECKERS:
        runs = program in RUNNERS and call.args[:1] == ["run"]
        yield from _checked(call.args, writes=runs)
    else:
        yield from mentions(call.args)


def _checked(args: list[str], *, writes: bool) -> Iterator[Effect]:
    """Yield the files in the arguments of a program that reads its operands, but may write the files in its options.

    `writes`: whether it may write its operands, too.
    """
    option = False
    for arg in args:
        is_option = arg[:1] == "-"
        for word in named_files(arg):
            yield Mention(word, reads_only=not (is_option or option or writes), below=False)
        option = is_option and "=" not in arg and arg not in _FLAGS


def mentions(args: Iterable[str]) -> Iterator[Mention]:
    """Yield a mention of each word that may name a file in the arguments, except in messages: `-m 'a text'`."""
    is_text = False
    for arg in args:
        if not (is_text and any(c.isspace() for c in plain(arg))):
            yield from map(Mention, named_files(arg))
        is_text = arg in _TEXT_OPTIONS


def named_files(arg: str) -> Iterable[str]:
    """Return the words that may name a file in an argument: the whole argument, and its parts between separators.

    Returns no words if the argument is not known.
    """
    if is_unknown(arg):
        return ()
    words: dict[str, None] = {}
    if arg[:1] != "-" and len(arg) <= _MAX_PATH_LENGTH and "://" not in arg:
        words[arg] = None
    text = plain(arg)
    if arg[:1] == "-" or _SEPARATORS.search(text):
        for part in _SEPARATORS.split(text, maxsplit=_MAX_PARTS)[:_MAX_PARTS]:
            words.update(dict.fromkeys(_parts(part, text)))
    return words


def _parts(part: str, text: str) -> Iterator[str]:
    if "%" in part and "file:" in text:
        from urllib.parse import unquote

        part = unquote(part)
    if part[:2] == "//" and "file:" in text:
        part = "/" + part[2:].partition("/")[2]
    if part[:1] == "-" and part[1:2] != "-":
        part = part[2:]
    part = part.rstrip(".") or part
    if part and len(part) <= _MAX_PATH_LENGTH and not _NO_FILE.fullmatch(part):
        yield part if is_glob(part) else quote(part)
