"""Words of a shell command as marked text, which keeps track of quoted and of unknown parts.

A marked text is a word after quote removal. Quoted special characters are moved to a private plane of Unicode. A part
that is only known when the command runs is kept as source text between `OPEN` and `CLOSE`.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

PLANE: Final = 0x100000
OPEN: Final = chr(PLANE + 0xF000)
CLOSE: Final = chr(PLANE + 0xF001)
EMPTY: Final = chr(PLANE + 0xF002)
"""An empty quoted text, so that `""` stays a word and an unset variable does not."""
ANY_DEPTH: Final = chr(PLANE + 0xF003)
"""Any number of nested folders, hidden ones too: `src/` `ANY_DEPTH` `*.py` is what `find src -name '*.py'` finds."""
ONE_OF: Final = chr(PLANE + 0xF004)
"""Precedes a pattern: the word is one of the matching files. Which one is only known when the command runs."""

_SPECIAL: Final = "*?[]{},~ \t\n"
_QUOTE: Final = {ord(c): chr(PLANE + ord(c)) for c in _SPECIAL}
_UNQUOTE: Final = (
    {PLANE + ord(c): c for c in _SPECIAL}
    | dict.fromkeys(map(ord, (OPEN, CLOSE, EMPTY, ONE_OF)), "")
    | {ord(ANY_DEPTH): "**/"}
)
_LITERAL_GLOB: Final = {PLANE + ord(c): f"[{c}]" for c in "*?["}
_IN_VALUE: Final = {ord(c): chr(PLANE + ord(c)) for c in "{},"}
_QUOTED_VALUE: Final = {ord(c): chr(PLANE + ord(c)) for c in " \t\n"}
_UNQUOTED_VALUE: Final = {PLANE + ord(c): c for c in "*?[] \t\n"}
_BACKSLASH: Final = re.compile(r"\\(\n|.|$)", re.DOTALL)
_BACKSLASH_IN_QUOTES: Final = re.compile(r'\\([\n"\\$`])')
_ANSI_C: Final = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|c(.)|(.))", re.DOTALL
)
_ANSI_LETTERS: Final = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f"}
_RANGE: Final = re.compile(r"(-?\d{1,9}|[A-Za-z])\.\.(-?\d{1,9}|[A-Za-z])(?:\.\.(-?\d{1,9}))?")
_SIMPLE: Final = re.compile(r"[!-z|}~]+")
_BLANKS: Final = re.compile(r"[ \t\n]+")
_PRIVATE: Final = re.compile("[\U00100000-\U0010ffff]")
"""The private characters that mark words."""
MAX_WORDS: Final = 256
_LAST_CHARACTER: Final = 0x10FFFF
_FIRST_SURROGATE, _LAST_SURROGATE = 0xD800, 0xDFFF


class TooManyWords(Exception):
    """Braces expand to more than `MAX_WORDS` words."""


def replace_private(text: str) -> str:
    """Return a text without the private characters that mark words: each becomes U+FFFD."""
    return text if text.isascii() else _PRIVATE.sub("\ufffd", text)


def quote(text: str) -> str:
    """Return a text with every special character quoted; `EMPTY` for an empty text."""
    return text.translate(_QUOTE) if text else EMPTY


def unknown(source: str) -> str:
    """Return the marked text of a part that is only known when the command runs."""
    return OPEN + source.translate(_QUOTE) + CLOSE


def is_unknown(word: str) -> bool:
    """Return whether a part of the word is only known when the command runs."""
    return OPEN in word


def is_glob(word: str) -> bool:
    """Return whether the shell would expand the word to files."""
    return "*" in word or "?" in word or "[" in word


def plain(word: str) -> str:
    """Return the word as the program receives it."""
    return word if word.isascii() else word.translate(_UNQUOTE)


def as_pattern(word: str) -> str:
    """Return the word as a file pattern, in which quoted `*`, `?` and `[` are literal."""
    return plain(word.translate(_LITERAL_GLOB))


def unquoted(source: str) -> str:
    """Return the marked text of unquoted source, in which a backslash quotes the next character."""
    return _BACKSLASH.sub(_escaped, source) if "\\" in source else source


def _escaped(match: re.Match[str]) -> str:
    character = match[1]
    return "" if character == "\n" else character.translate(_QUOTE)


def double_quoted(source: str) -> str:
    """Return the marked text of source between double quotes."""
    if "\\" in source:
        source = _BACKSLASH_IN_QUOTES.sub(lambda m: "" if m[1] == "\n" else m[1], source)
    return source.translate(_QUOTE)


def ansi_c(source: str) -> str:
    r"""Return the text of `$'…'`, where `\x2e` is a dot."""
    return quote(unescape(source).partition("\0")[0])


def unescape(source: str) -> str:
    r"""Return a text with `\x2e`, `\056`, `\n` and the like resolved, as most languages do."""
    return _ANSI_C.sub(_unescaped, source)


def _unescaped(match: re.Match[str]) -> str:
    hexadecimal = match[1] or match[2] or match[3]
    if hexadecimal or match[4]:
        code = int(hexadecimal, 16) if hexadecimal else int(match[4], 8) & 0xFF
        bad = code > _LAST_CHARACTER or _FIRST_SURROGATE <= code <= _LAST_SURROGATE or code >= PLANE
        return "\ufffd" if bad else chr(code)
    if match[5]:
        return chr(ord(match[5]) & 0x1F)
    return _ANSI_LETTERS.get(match[6], match[6])


def as_value(word: str) -> str:
    """Return a word as the value of a variable, in which braces are literal."""
    return word.translate(_IN_VALUE)


def expand_values(values: tuple[str, ...], *, quoted: bool) -> str:
    """Return the possible values of a variable as a brace expression, `{a,b}`; a single value as it is.

    With `quoted`, a blank in a value does not split the word.
    """
    table = _QUOTED_VALUE if quoted else _UNQUOTED_VALUE
    texts = [value.translate(table) for value in values]
    if len(texts) == 1:
        return texts[0] or (EMPTY if quoted else "")
    return "{" + ",".join(texts) + "}"


def split_fields(text: str) -> list[str]:
    """Return the words that one word of source expands to: braces expanded, unquoted values split at blanks.

    Raises `TooManyWords` if there are more than `MAX_WORDS`.
    """
    if _SIMPLE.fullmatch(text):
        return [text]
    return [field.replace(EMPTY, "") for word in expand_braces(text) for field in _BLANKS.split(word) if field]


def expand_braces(text: str) -> list[str]:
    """Return the words that `{a,b}` and `{1..3}` expand to. Raises `TooManyWords` above `MAX_WORDS`."""
    start = text.find("{")
    while start >= 0:
        alternatives = _alternatives(text, start)
        if alternatives is not None:
            options, end = alternatives
            return _product(text[:start], options, text[end:])
        start = text.find("{", start + 1)
    return [text]


def _product(before: str, options: list[str], rest: str) -> list[str]:
    after = expand_braces(rest)
    middle = [word for option in options for word in expand_braces(option)]
    if len(after) * len(middle) > MAX_WORDS:
        raise TooManyWords
    return [before + word + end for word in middle for end in after]


def _alternatives(text: str, start: int) -> tuple[list[str], int] | None:
    """Return the words of the brace expression at `start`, and the index after it; `None` if the brace is literal.

    For example `{a,b}` → `(['a', 'b'], 5)`. Raises `TooManyWords` for a range of too many words.
    """
    depth, begin, parts = 0, start + 1, []
    for at in range(start, len(text)):
        character = text[at]
        if character == "{":
            depth += 1
        elif character == "}":
            depth -= 1
            if depth == 0:
                parts.append(text[begin:at])
                options = parts if len(parts) > 1 else _range(parts[0])
                return None if options is None else (options, at + 1)
        elif character == "," and depth == 1:
            parts.append(text[begin:at])
            begin = at + 1
    return None


def _range(text: str) -> list[str] | None:
    match = _RANGE.fullmatch(text)
    if match is None or match[1].isalpha() != match[2].isalpha():
        return None
    letters = match[1].isalpha()
    first, last = (ord(match[1]), ord(match[2])) if letters else (int(match[1]), int(match[2]))
    step = abs(int(match[3] or 1)) or 1
    if abs(last - first) // step > MAX_WORDS:
        raise TooManyWords
    numbers = range(first, last + 1, step) if first <= last else range(first, last - 1, -step)
    return [chr(number) if letters else str(number) for number in numbers]


# -- expansions with an operator -----------------------------------------------------------------------


def modified_values(values: tuple[str, ...], operator: str, operand: str) -> tuple[str, ...] | None:
    """Return the values of `${name%operand}` for all values of the variable; `None` if a result is not known.

    The operator is `%`, `#`, `/`, `^`, `,` or `:`; all but the last may be doubled.
    """
    results = [_modified(value, operator, operand) for value in values]
    known = tuple(result for result in results if result is not None)
    return known if known and len(known) == len(results) else None


def _modified(value: str, operator: str, operand: str) -> str | None:
    result: str | None = None
    if operator[0] in "%#":
        result = _trimmed(value, operator, operand)
    elif operator == ":":
        result = None if ANY_DEPTH in value else _sliced(value, operand)
    elif operator[0] == "/":
        old, _, new = operand.partition("/")
        simple = old and not is_glob(old) and old[0] not in "#%" and not is_glob(value) and ANY_DEPTH not in value
        result = value.replace(old, new, -1 if operator == "//" else 1) if simple else None
    elif not is_glob(value) and ANY_DEPTH not in value:
        changed = value.upper() if operator[0] == "^" else value.lower()
        result = changed if len(operator) > 1 else changed[:1] + value[1:]
    return result


def _sliced(value: str, operand: str) -> str | None:
    match = re.fullmatch(r"\s*(\d+)(?::(\d+))?", operand)
    if match is None or is_glob(value):
        return "*" if "/" not in value else None
    start = int(match[1])
    return value[start : start + int(match[2])] if match[2] else value[start:]


def _trimmed(value: str, operator: str, pattern: str) -> str | None:
    """Return a value as `%`, `%%`, `#` or `##` trims it by a pattern; `None` if the result is not known.

    The value may itself be a pattern.
    """
    text = as_pattern(pattern) if is_glob(pattern) else plain(pattern)
    if text == "*/" and operator == "##":
        return value.rpartition(ANY_DEPTH)[2].rpartition("/")[2]
    if text == "/*" and operator == "%":
        return (
            value.rpartition(ANY_DEPTH)[0] + ANY_DEPTH + "*"
            if ANY_DEPTH in value
            else value.rpartition("/")[0] or value
        )
    if not is_glob(text):
        return value.removesuffix(text) if operator[0] == "%" else value.removeprefix(text)
    if ANY_DEPTH in value or is_glob(value):
        return _without_ending(value, text[0]) if operator[0] == "%" and text in {".*", "_*", "-*"} else None
    return _without_match(value, operator, text)


def _without_ending(value: str, separator: str) -> str:
    head, dot, tail = value.rpartition(separator)
    return head if dot and not is_glob(tail) and "/" not in tail else value


def _without_match(value: str, operator: str, text: str) -> str:
    """Return a value without the shortest or longest match of a pattern at its start or end."""
    from fnmatch import fnmatchcase

    sizes = range(len(value) + 1) if len(operator) == 1 else range(len(value), -1, -1)
    for size in sizes:
        part, rest = (
            (value[len(value) - size :], value[: len(value) - size])
            if operator[0] == "%"
            else (value[:size], value[size:])
        )
        if fnmatchcase(part, text):
            return rest
    return value
