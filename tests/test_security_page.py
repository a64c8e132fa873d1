"""The security page names a test for each promise, and the test exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/security.md").read_text("utf-8")


def test_every_test_that_the_page_names_exists() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", PAGE)
    missing = [
        f"{file}::{test}"
        for file, test in named
        if not (ROOT / file).is_file() or (test and f"def {test}(" not in (ROOT / file).read_text("utf-8"))
    ]
    assert missing == []
    assert len(named) > 20


def test_every_row_names_a_test() -> None:
    rows = [
        line
        for line in PAGE.splitlines()
        if line.startswith("| ") and not line.startswith(("| ---", "| who |", "| promise |"))
    ]
    assert [row for row in rows if "`tests/" not in row] == []


def test_every_make_target_that_the_page_names_exists() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert [name for name in re.findall(r"`make (\w+)`", PAGE) if f"\n{name}: " not in makefile] == []
