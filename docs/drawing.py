"""Draws what a program prints on a terminal as an SVG. Knows nothing of what is printed."""

# ruff: noqa: INP001 - a part of generate.py, no package

from __future__ import annotations

import os
import re
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_CHAR, _LINE, _FONT = 8, 20, 13  # pixels
_PAD, _BAR = 20, 36
_SVG = "http://www.w3.org/2000/svg"
_SGR = re.compile(r"\x1b\[([\d;]*)m")

_BACKGROUND, _EDGE, _TEXT, _TITLE = "#161b22", "#3d444d", "#dfe5ec", "#8b949e"
_COLOURS = {"2": "#8b949e", "31": "#ff7b72", "32": "#56d364", "33": "#e3b341", "36": "#79c0ff"}
_FAMILY = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace"


def on_terminal(command: Sequence[str], env: Mapping[str, str]) -> list[str]:
    """Run a program on a terminal of its own and give its lines, with their colours."""
    ours, theirs = os.openpty()
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=env) as program:  # noqa: S603 - our own
        os.close(theirs)
        printed = b"".join(_chunks(ours))
    os.close(ours)
    if program.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit code {program.returncode}\n{printed.decode()}")
    return printed.decode().replace("\r\n", "\n").splitlines()


def svg(lines: Sequence[str], title: str, description: str) -> str:
    """Draw the lines in a window. The window is dark by itself, so that it stands on light and dark pages."""
    columns = max(len(_SGR.sub("", line)) for line in lines)
    width = round(columns * _CHAR) + 2 * _PAD
    height = _BAR + len(lines) * _LINE + _PAD
    box = f'width="{width - 1}" height="{height - 1}" rx="9" fill="{_BACKGROUND}" stroke="{_EDGE}"'
    font = f'font-family="{_FAMILY}" font-size="{_FONT}"'
    parts = [
        f'<svg xmlns="{_SVG}" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" {font}>',
        f"<title>{escape(description)}</title>",
        f'<rect x="0.5" y="0.5" {box}/>',
        *(f'<circle cx="{22 + 18 * n}" cy="19" r="5" fill="{_EDGE}"/>' for n in range(3)),
        f'<text x="{width / 2:g}" y="23" text-anchor="middle" fill="{_TITLE}">{escape(title)}</text>',
        *_drawn(lines),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def steady(drawn: str, there: str) -> str:
    """Give the picture that is there, if only times differ: those of another run are no news."""
    return there if _without_times(there) == _without_times(drawn) else drawn


def _without_times(picture: str) -> str:
    """Leave out the texts that are times, and their places and the width, which depend on how long they are."""
    picture = re.sub(r'viewBox="[^"]*"| width="[^"]*"|<text x="[^"]*" y="23"', "", picture)
    return re.sub(r'<text x="[^"]*" (y="\d+") textLength="[^"]*"([^>]*)>[\d:.]+</text>', r"<time \1\2/>", picture)


def _chunks(terminal: int) -> Iterator[bytes]:
    with suppress(OSError):  # Linux says so when the other end is closed
        while chunk := os.read(terminal, 65536):
            yield chunk


@dataclass(frozen=True)
class _Span:
    """A piece of a line in one style."""

    column: int
    text: str
    style: frozenset[str]


def _drawn(lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        y = _BAR + (number + 1) * _LINE - 5
        for span in _spans(line):
            text = span.text.rstrip()
            x = _PAD + span.column * _CHAR
            # The length is given, so that every font keeps to the columns.
            yield (
                f'<text x="{x:g}" y="{y}" textLength="{len(text) * _CHAR:g}" xml:space="preserve"'
                f"{_look(span.style)}>{escape(text, quote=False)}</text>"
            )


def _spans(line: str) -> Iterator[_Span]:
    column, style = 0, frozenset[str]()
    for number, part in enumerate(_SGR.split(line)):
        if number % 2:
            style = frozenset(part.split(";")) - {"0", ""}
            continue
        if part.strip():
            indent = len(part) - len(part.lstrip())
            yield _Span(column + indent, part.lstrip(), style)
        column += len(part)


def _look(style: frozenset[str]) -> str:
    colour = next((_COLOURS[code] for code in sorted(style) if code in _COLOURS), _TEXT)
    weight = ' font-weight="bold"' if "1" in style else ""
    return f' fill="{colour}"{weight}'
