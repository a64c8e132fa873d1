"""What a prompt triggers: the context of rules, the files that it names, and slash commands."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Thread
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from policy.cases import for_each

from fairlead.errors import NeedsCaller
from fairlead.policy import PatternSearch
from fairlead.policy.commands._prompts import MAX_FILE_BYTES, context, read_inside, slash_command
from fairlead.policy.config._types import Layer, Policy

if TYPE_CHECKING:
    from pathlib import Path


def layer(folder: Path | str, *rules: dict[str, Any]) -> Layer:
    document = {"userPromptSubmit": {"contextRules": list(rules)}}
    return Layer(f"{folder}/.fairlead.yaml", str(folder), msgspec.convert(document, Policy))


def context_of(folder: Path, text: str) -> str | None:
    return context("x", (layer(folder, {"pattern": "x", "prompt": text}),), read_inside)


# -- rules ---------------------------------------------------------------------------------------------


def test_the_texts_of_all_matching_rules_are_separated_by_blank_lines() -> None:
    near = layer(
        "/near",
        {"pattern": "auth|login", "prompt": "Mind the sessions."},
        {"pattern": "LOGIN", "prompt": "never: the case differs"},
        {"pattern": "LOGIN", "prompt": "Any case.", "caseInsensitive": True},
        {"pattern": "login", "prompt": "never: disabled", "enabled": False},
    )
    far = layer("/far", {"pattern": r"\blogin\b", "prompt": "From afar."})
    found = context("fix the login", (near, far), read_inside)
    assert found == "Mind the sessions.\n\nAny case.\n\nFrom afar."


def test_without_a_matching_rule_there_is_no_context() -> None:
    assert context("hello", (layer("/p", {"pattern": "login", "prompt": "x"}),), read_inside) is None


def test_a_broken_pattern_matches_nothing() -> None:
    assert not PatternSearch("[").finds("[")


def test_a_pattern_that_takes_too_long_is_given_up() -> None:
    """In a separate process, because the time limit of the test uses the same timer."""
    code = (
        "import signal\n"
        "from fairlead.policy import PatternSearch\n"
        "search = PatternSearch('test unit ' * 2000)\n"
        "print(search.finds('test.*unit.*test.*x'), search.finds('a'), signal.getitimer(signal.ITIMER_REAL),\n"
        "      signal.getsignal(signal.SIGALRM) is signal.SIG_DFL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == "False False (0.0, 0.0) True\n"


def test_a_pattern_is_searched_in_any_thread() -> None:
    found: list[bool] = []
    thread = Thread(target=lambda: found.append(PatternSearch("abc").finds("b+")))
    thread.start()
    thread.join()
    assert found == [True]


@for_each("pattern", ["test.*unit.*test.*x", r"(\w+\s)+x", r"\s*\w+!", "[^x]*x"])
def test_a_search_that_may_take_long_is_not_made_where_it_cannot_be_interrupted(pattern: str) -> None:
    """On a long prompt each takes seconds; on a short one it is searched for at once."""
    assert not PatternSearch("test unit").finds(pattern)
    with ThreadPoolExecutor(1) as threads, pytest.raises(NeedsCaller):
        threads.submit(PatternSearch("test unit " * 2000).finds, pattern).result()


def test_all_patterns_of_an_event_share_one_time_limit() -> None:
    code = (
        "from time import process_time\n"
        "from fairlead.policy import PatternSearch\n"
        "search, started = PatternSearch('test unit ' * 2000), process_time()\n"
        "found = [search.finds(f'test.*unit.*test.*x{n}') for n in range(20)]\n"
        "print(found == [False] * 20, process_time() - started < 2)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == "True True\n"


# -- files ---------------------------------------------------------------------------------------------


def test_the_name_of_a_file_is_replaced_by_its_text(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a-b.md").write_text("# Rules\n@docs/a-b.md\n")
    assert context_of(tmp_path, "Read: @docs/a-b.md") == "Read: # Rules\n@docs/a-b.md\n"


def test_the_full_stop_of_a_sentence_is_not_part_of_a_name(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("A")
    assert context_of(tmp_path, "See @a.md. Or @a.md...") == "See A. Or A..."


@pytest.mark.parametrize(
    "text", ["@missing.md", "mail me@a.md", "first.last@a.md", "@folder", "@", "@../outside.md", "@..", "@./.."]
)
def test_what_is_not_a_file_of_the_folder_is_not_replaced(tmp_path: Path, text: str) -> None:
    (tmp_path / "outside.md").write_text("secret")
    folder = tmp_path / "in"
    (folder / "folder").mkdir(parents=True)
    (folder / "a.md").write_text("A")
    assert context_of(folder, text) == text


def test_an_absolute_path_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "outside.md").write_text("secret")
    (tmp_path / "in").mkdir()
    text = f"@{tmp_path}/outside.md"
    assert context_of(tmp_path / "in", text) == text


def test_a_link_is_resolved_first(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "real.md").write_text("R")
    (folder / "inner.md").symlink_to("real.md")
    (folder / "outer.md").symlink_to(tmp_path / "secret")
    (folder / "up").symlink_to(tmp_path)
    assert context_of(folder, "@inner.md @outer.md @up/secret") == "R @outer.md @up/secret"


def test_a_folder_with_a_similar_name_is_outside(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in-too").mkdir()
    (tmp_path / "in-too/a").write_text("secret")
    assert read_inside(str(tmp_path / "in"), "../in-too/a") is None


def test_the_folder_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/a").write_text("A")
    (tmp_path / "link").symlink_to("real")
    assert read_inside(str(tmp_path / "link"), "a") == "A"


def test_a_file_above_the_limit_is_not_inserted(tmp_path: Path) -> None:
    (tmp_path / "fits").write_bytes(b"x" * MAX_FILE_BYTES)
    (tmp_path / "large").write_bytes(b"x" * (MAX_FILE_BYTES + 1))
    assert context_of(tmp_path, "@fits") == "x" * MAX_FILE_BYTES
    assert context_of(tmp_path, "@large") == "@large"


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert context_of(tmp_path, "@pipe") == "@pipe"


def test_bytes_that_are_not_text_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a\xffb")
    assert context_of(tmp_path, "@a") == "a\ufffdb"


# -- slash commands ------------------------------------------------------------------------------------


@for_each(
    ("prompt", "expected"),
    [
        ("/commit", ("commit", "")),
        ("  /commit  -m 'a  b' ", ("commit", "-m 'a  b'")),
        ("please\n/review-pr 12\n/other", ("review-pr", "12")),
        ("/plugin:do_it now", ("plugin:do_it", "now")),
        ("/a\r\nmore", ("a", "")),
    ],
)
def test_the_first_line_that_is_a_slash_command_is_found(prompt: str, expected: tuple[str, str]) -> None:
    assert slash_command(prompt) == expected


@for_each("prompt", ["", "commit", "say /commit", "/", "/ commit", "/usr/bin/env", "//x", "/a.b", "/é"])
def test_anything_else_is_not_a_slash_command(prompt: str) -> None:
    assert slash_command(prompt) is None
