"""Which leases cover a file, and which stand against another: a real folder, all kinds of paths and patterns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fairlead.leases import Holder, LeaseError, LeaseTable, WantedLease, lease_path
from fairlead.policy import resolve

if TYPE_CHECKING:
    from pathlib import Path

FOX, OWL = Holder("s1", "", "fox"), Holder("s2", "", "owl")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("src/a.py", "src/deep/b.py", "docs/a.md", "a.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    return tmp_path


def wanted(folder: Path, text: str, *, shared: bool = False) -> WantedLease:
    path, base = lease_path(text, str(folder))
    return WantedLease(path=path, folder=base, shared=shared, until=100.0)


def held(folder: Path, *texts: str, shared: bool = False) -> LeaseTable:
    table, _ = LeaseTable().take([wanted(folder, text, shared=shared) for text in texts], FOX, 1.0)
    return table


@pytest.mark.parametrize(
    ("lease", "covered", "free"),
    [
        ("a.py", ["a.py"], ["src/a.py", "docs/a.md"]),
        ("src", ["src/a.py", "src/deep/b.py", "src/new.py", "src"], ["a.py", "srcs/a.py"]),
        ("*.py", ["a.py", "src/a.py", "src/deep/new.py"], ["docs/a.md"]),
        ("src/*.py", ["src/a.py", "src/new.py"], ["a.py", "src/deep/b.py"]),
        ("src/**/b.py", ["src/deep/b.py", "src/b.py"], ["src/a.py"]),
        ("{src,docs}/a.*", ["src/a.py", "docs/a.md"], ["a.py"]),
        (".", ["a.py", "src/deep/b.py"], ["../a.py"]),
    ],
)
def test_a_lease_covers_what_its_path_or_pattern_names(
    folder: Path, lease: str, covered: list[str], free: list[str]
) -> None:
    table = held(folder, lease)

    assert [name for name in covered if not table.covering(resolve(name, str(folder)))] == []
    assert [name for name in free if table.covering(resolve(name, str(folder)))] == []


@pytest.mark.parametrize(
    ("lease", "other", "meets"),
    [
        ("a.py", "a.py", True),
        ("src", "src/deep/b.py", True),
        ("src/deep/b.py", "src", True),
        ("src", "docs", False),
        ("*.py", "src/a.py", True),
        ("src/a.py", "*.py", True),
        ("src", "*.py", True),
        ("docs", "*.py", False),
        ("src/*", "*.py", True),
        ("docs/*", "*.py", False),
        ("*.new", "*.new", True),
    ],
)
def test_two_leases_stand_against_each_other_if_they_are_on_the_same_file(
    folder: Path, lease: str, other: str, *, meets: bool
) -> None:
    assert bool(held(folder, lease).conflicting_with(wanted(folder, other), OWL)) is meets
    assert held(folder, lease).conflicting_with(wanted(folder, other), FOX) == [], "nobody is in one's own way"
    assert held(folder, lease, shared=True).conflicting_with(wanted(folder, other, shared=True), OWL) == []
    assert bool(held(folder, lease, shared=True).conflicting_with(wanted(folder, other), OWL)) is meets


def test_what_is_below_a_folder_is_found_for_a_command_that_removes_it(folder: Path) -> None:
    table = held(folder, "src/deep/b.py", "docs/*.md")

    assert [lease.path for lease in table.below(resolve("src", str(folder)))] == [str(folder / "src/deep/b.py")]
    assert [lease.path for lease in table.below(resolve("docs", str(folder)))] == ["docs/*.md"]
    assert len(table.below(resolve(".", str(folder)))) == 2


def test_a_lease_that_is_taken_again_is_replaced(folder: Path) -> None:
    table = held(folder, "a.py", "src")

    again, taken = table.take([wanted(folder, "a.py", shared=True)], FOX, 5.0)

    assert [lease.since for lease in taken] == [5.0]
    assert sorted((lease.path, lease.shared) for lease in again.leases) == [
        (str(folder / "a.py"), True),
        (str(folder / "src"), False),
    ]
    assert len(table.leases) == 2, "the table itself does not change"


@pytest.mark.parametrize("text", ["", "  ", "a\0b", "!a.py", "[a"])
def test_what_is_no_path_and_no_pattern_is_refused(folder: Path, text: str) -> None:
    with pytest.raises(LeaseError):
        held(folder, text)


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(folder: Path) -> None:
    (folder / "[id].tsx").write_text("")

    table = held(folder, "[id].tsx")

    assert table.covering(resolve("[id].tsx", str(folder)))
    assert not table.covering(resolve("i.tsx", str(folder)))
