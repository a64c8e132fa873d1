"""Texts from outside, made harmless and cut; times and costs in a few cells; folders of git."""

from __future__ import annotations

import subprocess
from queue import SimpleQueue
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.text import fit, fit_end, harmless, money, span, width
from fairlead.tui.model._projects import Place, ProjectLocator, find_place
from fairlead.tui.model._rows import count_of, short_model

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("plain", "plain"),
        ("\x1b[31mred", "�[31mred"),
        ("a\nb\tc", "a b c"),
        ("\u202eevil", "evil"),
        ("zero\u200bwidth", "zerowidth"),
        ("[bold]", "[bold]"),
        ("ไม้", "ไม้"),
        ("a\u0301\u0302\u0303\u0304b", "a\u0301\u0302b"),
    ],
)
def test_what_could_disturb_the_screen_is_taken_out(text: str, safe: str) -> None:
    assert harmless(text) == safe


@given(st.text(st.characters(codec=None), max_size=80), st.integers(0, 40))
def test_a_text_is_exactly_as_wide_as_asked(text: str, cells: int) -> None:
    assert width(fit(harmless(text), cells)) == cells
    assert width(fit_end(harmless(text), cells)) <= max(cells, 0)


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        *((-5, "0s"), (0, "0s"), (59.9, "59s"), (60, "1m00s"), (599, "9m59s"), (600, "10m"), (3600, "1h00m")),
        *((35_999, "9h59m"), (36_000, "10h"), (86_400, "1d00h"), (864_000, "10d"), (8.64e9, "100000d")),
    ],
)
def test_a_time_is_told_in_a_few_cells(seconds: float, told: str) -> None:
    assert span(seconds) == told


def test_costs_and_models_are_short() -> None:
    assert [money(cost) for cost in (0, 1.234, 999.99, 12_345)] == ["$0.00", "$1.23", "$999.99", "$12.3k"]
    assert short_model("claude-opus-4-8-20260701") == "opus-4-8"
    assert short_model("other/model") == "other/model"
    assert [count_of(tokens) for tokens in (999, 31_250, 999_499, 1_200_000)] == ["999", "31k", "999k", "1.2M"]


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=t", "-c", "user.email=t@example.com")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def test_worktrees_share_their_project(tmp_path: Path) -> None:
    main = tmp_path / "shop"
    main.mkdir()
    git(main, "init", "-q", "-b", "trunk")
    git(main, "commit", "-q", "--allow-empty", "-m", "x")
    git(main, "worktree", "add", "-q", "-b", "fix/one", str(tmp_path / "shop-fix"))
    inside = main / "src/deep"
    inside.mkdir(parents=True)

    assert find_place(str(inside)) == Place(str(main), str(main), "trunk")
    assert find_place(str(tmp_path / "shop-fix")) == Place(str(main), str(tmp_path / "shop-fix"), "fix/one")

    git(main, "checkout", "-q", "--detach")
    assert len(find_place(str(main)).branch) == 8


def test_what_is_no_repository_is_its_own_project(tmp_path: Path) -> None:
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd/.git").write_bytes(b"\xff\x00nonsense")

    for folder in (str(tmp_path), str(tmp_path / "gone"), str(tmp_path / "odd"), "", "relative", "/\0"):
        assert find_place(folder) == Place(folder, folder)


def test_a_folder_is_looked_at_once_in_a_while() -> None:
    looked: list[str] = []
    told: SimpleQueue[str] = SimpleQueue()

    def look(folder: str) -> Place:
        looked.append(folder)
        return Place(folder, folder)

    surveyor = ProjectLocator(lambda folder, _place: told.put(folder), look)
    for now, folder in ((1.0, "/a"), (2.0, "/a"), (8.0, "/a"), (8.0, "/b")):
        surveyor.ask(folder, now)

    assert [told.get(timeout=30), told.get(timeout=30)] == ["/a", "/b"]
    assert looked == ["/a", "/a", "/b"]
