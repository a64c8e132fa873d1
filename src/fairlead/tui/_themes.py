"""Two themes, and what each part of a row looks like in them. All of it is said in words and signs as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.style import Style
from textual.theme import Theme

if TYPE_CHECKING:
    from fairlead.tui._layout import Part

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
THEMES = {"dark": DARK, "light": LIGHT}


class Palette:
    """The styles of one theme."""

    def __init__(self, theme: Theme) -> None:
        """Take the colours of the theme; amber is for what needs the person, and for nothing else."""
        text, quiet = theme.foreground, "#8b949e" if theme.dark else "#59636e"
        loud = Style(color="#161b22" if theme.dark else "#ffffff", bgcolor=theme.warning, bold=True)
        self._styles: dict[Part, Style] = {
            "plain": Style(color=text),
            "dim": Style(color=quiet),
            "heading": Style(color=theme.warning, bold=True),
            "needs": Style(color=theme.warning, bold=True),
            "chip": Style(color=theme.warning, bold=True),
            "alarm": Style(color=theme.warning, bold=True),
            "working": Style(color=theme.success),
            "idle": Style(color=theme.primary),
            "stale": Style(color=quiet),
            "ended": Style(color=quiet),
            "group": Style(color=text, bold=True),
            "fair": Style(color=theme.primary),
            "tight": Style(color=theme.error),
            "full": Style(color=theme.error, bold=True),
        }
        self._lit: dict[Part, Style] = {"chip": loud}
        self._ground = Style(bgcolor=theme.background)
        self._chosen = Style(bgcolor="#2f3b4b" if theme.dark else "#d6e4f5")
        self._made: dict[tuple[Part, bool, bool], Style] = {}

    def style(self, part: Part, *, is_chosen: bool = False, is_lit: bool = False) -> Style:
        """Give the style of a part of a row that is chosen or not, and lit or not while it blinks."""
        key = (part, is_chosen, is_lit)
        if key not in self._made:
            own = self._lit.get(part, self._styles[part]) if is_lit else self._styles[part]
            self._made[key] = (self._chosen if is_chosen else self._ground) + own
        return self._made[key]
