r"""Replaces what looks like a secret in a line before it is written: keys, tokens, passwords, values of `.env` files.

A line is JSON, and stays JSON, because what is replaced ends before the quote (or escaped quote) that closes it. Most
lines contain no secret, and are only searched for a few words.
"""

from __future__ import annotations

import re

from fairlead.lazy import cache
from fairlead.structs import LIGHT, Raw, decode_json, encode_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
if TYPE_CHECKING or not LIGHT:
    from typing import Any, Literal, TypeAlias

    Payloads: TypeAlias = Literal["full", "redacted", "none"]
    """What is kept of payloads: everything, everything except what looks like a secret, or only identifying fields."""

REDACTED = b"[redacted]"
_REDACTED_TEXT = REDACTED.decode()

_KEPT_FIELDS = frozenset(
    {
        *("session_id", "transcript_path", "cwd", "hook_event_name", "permission_mode", "agent_id", "agent_type"),
        *("agent_transcript_path", "tool_name", "tool_use_id", "source", "trigger", "stop_hook_active"),
        *("notification_type", "task_id", "subagent_type", "model", "duration_ms"),
    }
)
"""The identifying fields of a payload. They are always kept, so that sessions can be rebuilt from the journal."""

_ENVELOPE = frozenset(
    {"kind", "id", "at", "event", "client", "session", "agent", "tool", "cwd", "road", "verdict", "caller"}
)
"""The identifying fields of a record. The user's patterns are not applied to them."""

_CHARS = rb"(?:[^\s\"'\\,;]|\\[\\/bfu])"
"""A pattern for one character of an unquoted value within a JSON string: no blank, no quote, no escaped line end."""
_ESCAPED_QUOTES = rb"\\\"(?:[^\"\\]|\\\\(?:\\\")?|\\[^\"\\])+(?=\\\")"
"""A pattern for a value that is in quotes within a string of JSON, up to the closing quote."""
_VALUE = rb"(?:" + _ESCAPED_QUOTES + rb"|'[^'\"\\]+(?=')|" + _CHARS + rb"+)"
_NAME = (
    rb"(?:pass(?:word|wd|phrase)|pwd|secret|token(?!s)|api[_-]?key|credentials?|(?:access|auth|private|encryption"
    rb"|signing|client|account|storage|shared)[_-]?key)[\w-]{0,64}"
)
"""A pattern for the name of a secret.

The number of characters after the known part is limited, as are the parts of a web token in `_RULES`. Otherwise the
time for a text that consists of such names grows with the square of its length.
"""


def _rule(hints: str, pattern: bytes) -> tuple[tuple[bytes, ...], bytes]:
    """Return a rule: its hints, which are separated by `|` in `hints`, and its pattern, not compiled.

    The pattern is applied only to a line that contains one of the hints in lower case. In a match, everything after
    group 1 is replaced.
    """
    return tuple(hints.encode().split(b"|")), pattern


_RULES = (
    _rule("authorization", rb"(?i)(authorization\"\s*:\s*\"(?:[a-z]+ )?)(?:[^\"\\]|\\.)+"),
    _rule("authorization", rb"(?i)(authorization(?:\\\"|')?\s*[:=]\s*(?:\\\"|')?(?:[a-z]+ )?)" + _CHARS + rb"+"),
    _rule("bearer ", rb"(?i)(\bbearer )[\w.~+/=-]{8,}"),
    _rule("sk-|k_live_", rb"(\b)(?:sk-|[sr]k_live_)[\w-]{16,}"),
    _rule("ghp_|gho_|ghu_|ghs_|ghr_|github_pat_|glpat-", rb"(\b)(?:gh[pousr]_|github_pat_|glpat-)[\w-]{16,}"),
    _rule("xox", rb"(\b)xox[a-z]-[\w-]{10,}"),
    _rule("akia|asia|aiza", rb"(\b)(?:A[KS]IA[0-9A-Z]{16}|AIza[\w-]{30,})"),
    _rule("npm_|pypi-|hf_", rb"(\b)(?:npm_|pypi-|hf_)\w[\w-]{20,}"),
    _rule("eyj", rb"(\b)eyJ[\w-]{8,500}\.[\w-]{8,5000}\.[\w-]*"),
    _rule("private key-----", rb"(-----BEGIN [A-Z ]*PRIVATE KEY-----)(?:[^\"\\-]|\\.|-(?!----END))+"),
    _rule("@", rb"(://[^\s/:@\"\\]+:)[^\s/@\"\\]+(?=@)"),
)
_NAMED_HINTS = (b"passw", b"passphrase", b"pwd", b"secret", b"credential", b"_key", b"-key", b"apikey")
_TOKEN_HINT = b"token"
_TOKEN = rb"token(?!s)"
"""`tokens` is not the name of a secret: clients often report how many tokens were used."""
_NAMED = (
    rb"(?i)(" + _NAME + rb"\"\s*:\s*\")(?:[^\"\\]|\\.)+",  # a field of the JSON itself
    rb"(?i)(" + _NAME + rb"(?:\\\"|')?\s*[:=]\s*)" + _VALUE,  # a line of a file, a variable
    rb"(?i)(-" + _NAME + rb"[ ]+)" + _VALUE,  # an option
)
_ENV_FILE = b".env"
_ENV_LINE = rb"((?:[\"\s]|\\[nrt])(?:export )?[A-Z][A-Z0-9_]*=)" + _VALUE
_HINTS = (*(hint for hints, _ in _RULES for hint in hints), *_NAMED_HINTS, _TOKEN_HINT, _ENV_FILE)
_CONDITIONS = {b"sk-": (rb"\W", b""), _TOKEN_HINT: (b"", rb"(?!s)")}
"""By hint: patterns that must match before and after it, for hints that are part of other words, such as `tokens`."""
_RARE_FIRST = b"@zqjxkwvybgf_pmc.uhdl-nrsoiate "
"""The characters of the hints, in the order of their frequency in lines of the journal, the rarest first."""
_MAX_UNCOMPILED_LINES = 3
"""The number of lines for which a pattern of all hints is not compiled yet.

A process without a daemon writes no more than these.
"""


class Redactor:
    """Replaces secrets in lines, by the rules of this module and the user's patterns.

    An invalid pattern raises `re.error`.
    """

    def __init__(self, payloads: Payloads = "redacted", patterns: Iterable[str] = ()) -> None:
        self.payloads = payloads
        self._lines = 0
        self._own = [re.compile(pattern) for pattern in patterns]

    def redact(self, line: bytes) -> bytes:
        """Return a line of JSON without anything that looks like a secret; unchanged if `payloads` is "full"."""
        if self.payloads == "full":
            return line
        start = max(0, line.find(b'"tool_input"'))
        if start and b'"reason":' in line[:start]:
            start = 0
        if self._may_hold_secret(line.lower(), start):
            line = _apply_rules(line, line.lower())
        return self._redact_own(line) if self._own else line

    def _may_hold_secret(self, lower: bytes, start: int) -> bool:
        """Return whether a line may contain a secret after the offset `start`. `lower` is the line in lower case."""
        self._lines += 1
        if self._lines <= _MAX_UNCOMPILED_LINES:
            return any(lower.find(hint, start) >= 0 for hint in _HINTS)
        return _any_hint()(lower, start) is not None

    def _redact_own(self, line: bytes) -> bytes:
        """Return the line, with the user's patterns applied to each text that is not an identifying field."""
        record = decode_json(line)
        for name in record.keys() - _ENVELOPE:
            record[name] = self._replaced(record[name])
        return encode_json(record) + b"\n"

    def _replaced(self, value: Any) -> Any:
        if isinstance(value, str):
            for pattern in self._own:
                value = pattern.sub(_REDACTED_TEXT, value)
            return value
        if isinstance(value, list):
            return [self._replaced(item) for item in value]
        if isinstance(value, dict):
            return {name: item if name in _KEPT_FIELDS else self._replaced(item) for name, item in value.items()}
        return value

    def identifying(self, payload: Raw) -> Raw:
        """Return only the identifying fields of a payload; `{}` if the payload is not an object."""
        try:
            fields = decode_json(bytes(payload))
        except (ValueError, RecursionError):
            return Raw(b"{}")
        if not isinstance(fields, dict):
            return Raw(b"{}")
        return Raw(encode_json({name: fields[name] for name in fields if name in _KEPT_FIELDS}))


def _apply_rules(line: bytes, lower: bytes) -> bytes:
    for hints, pattern in _RULES:
        if any(hint in lower for hint in hints):
            line = _replace(pattern, line)
    if any(hint in lower for hint in _NAMED_HINTS) or _compiled(_TOKEN).search(lower):
        for pattern in _NAMED:
            line = _replace(pattern, line)
    return _replace(_ENV_LINE, line) if _ENV_FILE in lower else line


def _replace(pattern: bytes, line: bytes) -> bytes:
    return _compiled(pattern).sub(_keep_start, line)


@cache
def _compiled(pattern: bytes) -> re.Pattern[bytes]:
    return re.compile(pattern)


@cache
def _any_hint() -> Callable[[bytes, int], object]:
    """Return a function that searches for all hints at once, which is faster than one search for each.

    The expression searches for the rarest letter of each hint, and then compares the characters before and after it.
    One character in ten of a line is such a letter. Every second character is the first letter of a hint.
    """
    by_letter: dict[bytes, list[bytes]] = {}
    for hint in dict.fromkeys(_HINTS):
        number = min(range(len(hint)), key=lambda index: _RARE_FIRST.index(hint[index]))
        before, letter, after = hint[:number], hint[number : number + 1], hint[number + 1 :]
        head, tail = _CONDITIONS.get(hint, (b"", b""))
        behind = b"(?<=%b%b)" % (head, re.escape(before + letter)) if head or before else b""
        by_letter.setdefault(letter, []).append(behind + re.escape(after) + tail)
    return re.compile(b"|".join(b"%b(?:%b)" % (letter, b"|".join(rest)) for letter, rest in by_letter.items())).search


def _keep_start(match: re.Match[bytes]) -> bytes:
    """Return the replacement for a match of a rule: group 1, the opening quote of the value if it has one, the mark."""
    value = match[0][len(match[1]) :]
    quote = value[: 2 if value.startswith(b'\\"') else value.startswith(b"'")]
    return match[1] + quote + REDACTED


class _Current:
    """The redactor of this process and the settings that it was made for."""

    redactor = Redactor()
    settings: tuple[Payloads, tuple[str, ...]] = ("redacted", ())


def set_redaction(payloads: Payloads, patterns: Iterable[str]) -> None:
    """Set what this process keeps of payloads, and the user's patterns. Raise `re.error` for an invalid pattern."""
    wanted = payloads, tuple(patterns)
    if wanted != _Current.settings:
        _Current.redactor, _Current.settings = Redactor(*wanted), wanted


def redactor() -> Redactor:
    """Return the redactor that this process uses now."""
    return _Current.redactor


def redact_for_others(line: bytes) -> bytes:
    """Return a line of JSON for another host. Secrets are replaced even if this host keeps payloads in full."""
    current = redactor()
    return (Redactor() if current.payloads == "full" else current).redact(line)
