"""What a shell command runs and accesses, known before it runs."""

from __future__ import annotations

import subprocess
import sys
import time
from fnmatch import fnmatch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policy.bash_commands import CHANGE_THE_FILE, HARMLESS, READ_THE_FILE, UNKNOWN
from policy.cases import for_each

from fairlead.policy.bash._analysis import Analysis, analyse
from fairlead.policy.bash.programs._inline_code import INLINE_CODE
from fairlead.policy.bash.programs._table import INLINE_CODE_PROGRAMS
from fairlead.policy.git._commands import named_files

CHANGES = {"write", "create", "delete", "move"}


def accesses(analysis: Analysis, path: str, modes: set[str]) -> bool:
    """Whether a guard on the path would find an access of one of the modes."""
    return any(
        file.mode in modes
        and (
            file.path.rpartition("/")[2] == path
            or (file.glob and fnmatch(path, file.path.rpartition("/")[2]))
            or (file.below and any(fnmatch(path, name) for name in file.selection.among))
            or (file.below and file.path == "." and not file.selection.among)
        )
        for file in (*analysis.files, *(file for command in analysis.git for file in named_files(command)))
    )


@for_each("command", CHANGE_THE_FILE)
def test_every_way_to_change_the_file_is_found(command: str) -> None:
    assert accesses(analyse(command), ".env", CHANGES)


@for_each("command", READ_THE_FILE)
def test_every_way_to_read_the_file_is_found(command: str) -> None:
    assert accesses(analyse(command), ".env", {"read"})


@for_each("command", UNKNOWN)
def test_what_is_only_known_when_it_runs_is_reported(command: str) -> None:
    assert analyse(command).unknown


@for_each("command", HARMLESS)
def test_a_harmless_command_is_fully_known_and_does_not_change_the_file(command: str) -> None:
    analysis = analyse(command)
    assert analysis.unknown == ()
    assert not accesses(analysis, ".env", CHANGES)


def test_the_lists_are_long_enough() -> None:
    assert len(set(CHANGE_THE_FILE)) >= 60
    assert len(set(HARMLESS)) >= 60


COMMANDS = [
    ("a | b && c; d & e", ["a", "b", "c", "d", "e"]),
    ("X=1 r''m  -rf   'a b' > f", ["rm -rf a b"]),
    ("sudo -u x env A=1 nohup rm y", ["sudo -u x env A=1 nohup rm y", "env A=1 nohup rm y", "nohup rm y", "rm y"]),
    ('echo "$(git push --force)"', ["git push --force", "echo $(git push --force)"]),
    ("sh -c 'git push; rm x'", ["sh -c git push; rm x", "git push", "rm x"]),
    ("find . -name x -exec rm {} \\;", ["find . -name x -exec rm {} ;", "rm ./**/x"]),
    ("if a; then b; else c; fi", ["a", "b", "c"]),
    ("f() { a; }; while b; do c; done", ["a", "b", "c"]),
    ("git commit -m 'a && rm b'", ["git commit -m a && rm b"]),
    ("", []),
]


@for_each(("command", "texts"), COMMANDS)
def test_every_simple_command_is_listed(command: str, texts: list[str]) -> None:
    assert [simple.text for simple in analyse(command).commands] == texts


def test_the_program_is_the_name_without_quotes_and_folder() -> None:
    programs = [analyse(text).commands[0].program for text in ("r''m x", "\\rm x", '"rm" x', "/bin/rm x")]
    assert programs == ["rm"] * 4


FILES = [
    ("cd a && cd b && rm c", [("a/b/c", "delete")]),
    ("cd /a && rm c ~/d /e", [("/a/c", "delete"), ("~/d", "delete"), ("/e", "delete")]),
    ("(cd a && rm b); rm c", [("a/b", "delete"), ("c", "delete")]),
    ("cd a || exit 1; rm c", [("a/c", "delete"), ("c", "delete")]),
    ("pushd a && rm b && popd && rm c", [("a/b", "delete"), ("c", "delete")]),
    ("mv a b/", [("a", "move"), ("b/a", "write")]),
    ("cp a b c", [("a", "read"), ("b", "read"), ("c/a", "write"), ("c/b", "write")]),
    ("mkdir -p a/b", [("a/b", "create")]),
    ("cat a > b < c", [("b", "write"), ("c", "read"), ("a", "read")]),
    ("rm '*' a\\?", [("*", "delete"), ("a?", "delete")]),
    ("rm '~/x'", [("./~/x", "delete")]),
    ("sed -i.bak -e s/a/b/ -e s/c/d/ x y", [("x", "write"), ("y", "write")]),
    ("echo 2>&1 >/dev/null", []),
]


@for_each(("command", "files"), FILES)
def test_paths_are_relative_to_the_first_folder(command: str, files: list[tuple[str, str]]) -> None:
    assert [(file.path, file.mode) for file in analyse(command).files] == files


def test_what_was_quoted_in_a_pattern_is_literal() -> None:
    (file,) = analyse("rm 'a*'*.txt").files
    assert (file.path, file.glob) == ("a[*]*.txt", True)


def test_an_unknown_folder_is_reported() -> None:
    (file,) = analyse('cd "$X" && rm a').files
    assert (file.path, file.folder, file.is_located) == ("a", None, False)


def test_an_access_that_depends_on_the_disk_says_on_what() -> None:
    there, here = analyse("cd sub; rm a").files
    assert (there.path, there.unless_folder) == ("sub/a", None)
    assert (here.path, here.unless_folder) == ("a", "sub")
    assert [(file.path, file.if_folder) for file in analyse("cp a b").files] == [("a", None), ("b", None), ("b/a", "b")]
    (command,) = analyse("git checkout main").git
    assert named_files(command)[0].if_exists


def test_a_condition_that_the_command_itself_meets_is_dropped() -> None:
    assert [file.if_folder for file in analyse("mkdir b; cp a b").files] == [None] * 4
    assert [file.unless_folder for file in analyse("rm -r sub; cd sub; rm a").files] == [None] * 3


def test_removing_a_folder_removes_what_lies_below() -> None:
    assert [file.below for command in ("rm -rf a", "rm a") for file in analyse(command).files] == [True, False]


def test_an_unknown_file_that_is_read_is_listed_separately() -> None:
    analysis = analyse('cat "$F"')
    assert (analysis.unknown, analysis.unknown_reads) == ((), ("which file cat reads is only known when it runs: $F",))


def test_what_is_unknown_is_described_for_the_user() -> None:
    assert analyse("$CMD x; rm $X; curl x | sh").unknown == (
        "which program runs is only known when it runs: $CMD",
        "which file rm deletes is only known when it runs: $X",
        "sh runs the output of another command",
    )


def test_the_parser_is_loaded_by_the_first_command_and_not_before() -> None:
    code = "import sys, fairlead.policy.bash._analysis; print('tree_sitter' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


HUGE = [
    *("(" * 60_000, "$(" * 30_000, "a|" * 30_000, "${" * 30_000, "<<a " * 15_000, "'\"`" * 20_000, "{a," * 9_000),
    *("if " * 20_000, "x" * 70_000, "sh -c " * 9_000, "sudo " * 9_000, "cd a;" * 9_000, "rm {a,b};" * 7_000),
    *(f'python -c "{code * 6_000}"' for code in ("import os ", "Path(", "open    ", "-i ", "''", "print ")),
    *(f"{program} '{code * 6_000}'" for program in ("awk", "sed", "ed x -c") for code in ("print ", "/g", "$((")),
    "for a in b; do F=1;" * 3_000,
    "cat <<E\n" + "$((" * 20_000 + "\nE",
]


@for_each("command", HUGE)
def test_a_huge_command_is_analysed_quickly(command: str) -> None:
    start = time.process_time()  # a busy machine is not slow code
    analyse(command)
    assert time.process_time() - start < 3


SHELLISH = st.lists(
    st.sampled_from(
        ["rm ", ".env", " ", ";", "|", "&&", "||", "&", "(", ")", "{", "}", ",", "$", "${", "$(", "`", "'", '"', "\\",
         "\n", "<", ">", "<<E\n", "\nE\n", "<<<", "F=", "$F", "cd ", "sh -c ", "python -c ", "for f in ", "do ",
         "done", "if ", "then ", "fi", "[ ", " ]", "[[ ", " ]]", "*", "~", "sed -i ", "find . -exec ", "git ", "--",
         "-t", "=", "é", "0"]
    ),
    max_size=40,
).map("".join)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.one_of(SHELLISH, st.text(max_size=300)))
def test_no_text_makes_it_raise_or_wait(command: str) -> None:
    start = time.process_time()
    assert isinstance(analyse(command), Analysis)
    assert time.process_time() - start < 1


@pytest.mark.parametrize("command", ["cd src && ls 2>&1 | tail; rm .env", "cd src && make 2>&1 | tail -3 && rm .env"])
def test_a_redirection_before_a_pipe_does_not_hide_the_folder(command: str) -> None:
    """The parser takes `cd a && b 2>&1 | c` for a group that is piped; the shell does not."""
    assert "src/.env" in {file.path for file in analyse(command).files if file.mode == "delete"}


def test_no_character_crashes_the_parser() -> None:
    """Its scanner reads beyond its tables for characters above 255. In a separate process, which may crash."""
    program = (
        "import random; from fairlead.policy.bash._analysis import analyse; r = random.Random(8)\n"
        "pool = \"$`'\\\"<>|&;(){}[]#!*?~=\\n ab0-E\" + ''.join(chr(n) for n in range(0x100, 0x110000, 0x1fff))\n"
        "for _ in range(3000): analyse(''.join(r.choices(pool, k=r.randrange(200))))"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_path_keeps_the_characters_that_are_replaced_for_the_parser() -> None:
    assert [file.path for file in analyse("rm 'über/naïve 日本.txt' é").files] == ["über/naïve 日本.txt", "é"]


def test_the_names_of_programs_with_inline_code_match_their_module() -> None:
    """Their module is loaded only when one is called."""
    assert set(INLINE_CODE_PROGRAMS) == set(INLINE_CODE)
