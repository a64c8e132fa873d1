"""Types of options and arguments. Their `UsageError` names the option, and the expected and the given value."""

from __future__ import annotations

from typing import Any

import click

from fairlead.cli.support.command import unmark
from fairlead.cli.support.durations import read_duration
from fairlead.cli.support.invocation import current
from fairlead.errors import UsageError

_MAX_DIGITS = 18


class _ParamType(click.ParamType):  # type: ignore[type-arg]  # generic since Click 8.4
    """Base class of our parameter types."""


class Duration(_ParamType):
    """A duration in seconds, written as `30s`, `10m`, `2h`, `1d` or a plain number. `positive` excludes 0."""

    name = "duration"

    def __init__(self, *, positive: bool = False) -> None:
        self._positive = positive

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the duration in seconds, or a default unchanged. Raise `UsageError` if a text is no such duration."""
        if isinstance(value, str):
            return read_duration(_label(param, ctx), unmark(value), positive=self._positive)
        return value


class Number(_ParamType):
    """A whole number from `lowest` to `highest`, by default without an upper limit. `#12` is accepted for 12."""

    name = "number"

    def __init__(self, lowest: int = 1, highest: int | None = None) -> None:
        self._lowest = lowest
        self._highest = highest

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number, or a default unchanged. Raise `UsageError` if a text is no such number."""
        if not isinstance(value, str):
            return value
        text = unmark(value)
        digits = text.removeprefix("#")
        is_number = digits.isascii() and digits.isdecimal() and len(digits) <= _MAX_DIGITS
        if is_number and self._lowest <= int(digits) <= (self._highest or int(digits)):
            return int(digits)
        limit = f" to {self._highest}" if self._highest else " or more"
        raise UsageError(f"{_label(param, ctx)}: expected a whole number, {self._lowest}{limit}, got {text!r}")


class OneOf(click.Choice):  # type: ignore[type-arg]  # generic since Click 8.2
    """One of a few words, in exactly this spelling."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the word. Raise `UsageError` if it is none of the choices."""
        text = unmark(value)
        if text not in self.choices:
            raise UsageError(f"{_label(param, ctx)}: expected one of {', '.join(self.choices)}, got {text!r}")
        return text


class Text(_ParamType):
    """A text that is not empty. An option without a value has the default `None`, not ""."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the text. Raise `UsageError` if it is empty."""
        if not value:
            raise UsageError(f"{_label(param, ctx)} needs a value")
        return unmark(value)


class CallerPath(click.Path):
    """A path, returned as it is written. Click checks it in the working folder of the invocation, unless it is `-`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path. Raise `click.BadParameter` if it fails Click's checks."""
        if value != "-":
            super().convert(current().absolute(unmark(value)), param, ctx)
        return unmark(value)


MESSAGE = Number()
"""The type of a message's number."""


def _label(param: click.Parameter | None, ctx: click.Context | None) -> str:
    if isinstance(param, click.Option):
        return max(param.opts, key=len)
    return str(ctx.info_name) if ctx is not None else "argument"
