"""The themes, and the styles of text in each. Everything that colours show is also shown by labels and symbols."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rich.style import Style
from textual.theme import BUILTIN_THEMES, Theme

if TYPE_CHECKING:
    from fairlead.tui.model._layout import StyleName

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
"""Only the terminal's two default colours, with bold, faint and reversed text."""

THEMES = {"dark": DARK, "light": LIGHT, "plain": PLAIN}


class Palette:
    """The styles of one theme. Amber is used only for sessions that need the user, inputs and errors."""

    def __init__(self, theme: Theme) -> None:
        self._styles = _plain() if theme is PLAIN else _coloured(theme)
        self._background = Style() if theme is PLAIN else Style(bgcolor=theme.background)
        self._selected = (
            Style(reverse=True) if theme is PLAIN else Style(bgcolor="#363c47" if theme.dark else "#d6e4f5")
        )
        self._cache: dict[tuple[StyleName, bool, bool], Style] = {}

    def style(self, name: StyleName, *, is_selected: bool = False, is_lit: bool = False) -> Style:
        """Return the style with this name. `is_lit` is whether a blinking line is in its bright phase."""
        key = (name, is_selected, is_lit)
        if key not in self._cache:
            style: str = name
            if is_lit and name == "chip":
                style = "lit, selected" if is_selected else "lit"
            self._cache[key] = (self._selected if is_selected else self._background) + self._styles[style]
        return self._cache[key]


def _coloured(theme: Theme) -> dict[str, Style]:
    text, faint, amber = theme.foreground, "#8b949e" if theme.dark else "#59636e", theme.warning
    lit = Style(color="#161b22" if theme.dark else "#ffffff", bgcolor=amber, bold=True)
    return {
        "plain": Style(color=text),
        "dim": Style(color=faint),
        "heading": Style(color=amber, bold=True),
        "needs": Style(color=amber, bold=True),
        "chip": Style(color=amber, bold=True),
        "lit": lit,
        "lit, selected": lit,
        "alarm": Style(color=amber, bold=True),
        "working": Style(color=theme.success),
        "idle": Style(color=theme.primary),
        "stale": Style(color=faint),
        "ended": Style(color=faint),
        "group": Style(color=text, bold=True),
        "fair": Style(color=theme.primary),
        "tight": Style(color=theme.error),
        "full": Style(color=theme.error, bold=True),
    }


def _plain() -> dict[str, Style]:
    faint, bold = Style(dim=True), Style(bold=True)
    faint_ones = dict.fromkeys(("dim", "stale", "ended"), faint)
    bold_ones = dict.fromkeys(("heading", "needs", "chip", "alarm", "group", "full"), bold)
    others = dict.fromkeys(("plain", "working", "idle", "fair", "tight"), Style())
    return {
        **faint_ones,
        **bold_ones,
        **others,
        "lit": bold + Style(reverse=True),
        "lit, selected": bold + Style(reverse=False),
    }
