"""The themes, and what each part of a row looks like in them. All of it is said in words and signs as well."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rich.style import Style
from textual.theme import BUILTIN_THEMES, Theme

if TYPE_CHECKING:
    from fairlead.tui.model._layout import Part

DARK = Theme(
    name="fairlead-dark",
    primary="#79c0ff",
    warning="#e3b341",
    error="#ff7b72",
    success="#56d364",
    accent="#e3b341",
    foreground="#dfe5ec",
    background="#161b22",
    surface="#1c222b",
    panel="#262d37",
    dark=True,
)
LIGHT = Theme(
    name="fairlead-light",
    primary="#0550ae",
    warning="#8a4b00",
    error="#b3261e",
    success="#116329",
    accent="#8a4b00",
    foreground="#1f2328",
    background="#ffffff",
    surface="#f6f8fa",
    panel="#e6eaef",
    dark=False,
)
_NONE = "ansi_default"
PLAIN = replace(
    BUILTIN_THEMES["ansi-dark"],
    name="fairlead-plain",
    primary=_NONE,
    secondary=_NONE,
    warning=_NONE,
    error=_NONE,
    success=_NONE,
    accent=_NONE,
)
"""The terminal's own two colours: bold, faint and reversed have to do."""

THEMES = {"dark": DARK, "light": LIGHT, "plain": PLAIN}


class Palette:
    """The styles of one theme; amber is for what needs the person, and for nothing else."""

    def __init__(self, theme: Theme) -> None:
        self._styles = _plain() if theme is PLAIN else _coloured(theme)
        self._ground = Style() if theme is PLAIN else Style(bgcolor=theme.background)
        self._chosen = Style(reverse=True) if theme is PLAIN else Style(bgcolor="#363c47" if theme.dark else "#d6e4f5")
        self._made: dict[tuple[Part, bool, bool], Style] = {}

    def style(self, part: Part, *, is_chosen: bool = False, is_lit: bool = False) -> Style:
        """Give the style of a part of a row that is chosen or not, and lit or not while it blinks."""
        key = (part, is_chosen, is_lit)
        if key not in self._made:
            name: str = part
            if is_lit and part == "chip":
                name = "lit, chosen" if is_chosen else "lit"
            self._made[key] = (self._chosen if is_chosen else self._ground) + self._styles[name]
        return self._made[key]


def _coloured(theme: Theme) -> dict[str, Style]:
    text, quiet, loud = theme.foreground, "#8b949e" if theme.dark else "#59636e", theme.warning
    lit = Style(color="#161b22" if theme.dark else "#ffffff", bgcolor=loud, bold=True)
    return {
        "plain": Style(color=text),
        "dim": Style(color=quiet),
        "heading": Style(color=loud, bold=True),
        "needs": Style(color=loud, bold=True),
        "chip": Style(color=loud, bold=True),
        "lit": lit,
        "lit, chosen": lit,
        "alarm": Style(color=loud, bold=True),
        "working": Style(color=theme.success),
        "idle": Style(color=theme.primary),
        "stale": Style(color=quiet),
        "ended": Style(color=quiet),
        "group": Style(color=text, bold=True),
        "fair": Style(color=theme.primary),
        "tight": Style(color=theme.error),
        "full": Style(color=theme.error, bold=True),
    }


def _plain() -> dict[str, Style]:
    faint, bold = Style(dim=True), Style(bold=True)
    quiet = dict.fromkeys(("dim", "stale", "ended"), faint)
    loud = dict.fromkeys(("heading", "needs", "chip", "alarm", "group", "full"), bold)
    usual = dict.fromkeys(("plain", "working", "idle", "fair", "tight"), Style())
    return {**quiet, **loud, **usual, "lit": bold + Style(reverse=True), "lit, chosen": bold + Style(reverse=False)}
