"""What subagents have used, from their transcripts: files that grow, are cut, and may be anything."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.clients import Usage
from fairlead.clients.claude import _transcripts
from fairlead.clients.claude._transcripts import Transcripts


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The client's folder of transcripts, with a project in it."""
    made = tmp_path / "projects/-home-user-project/s1/subagents"
    made.mkdir(parents=True)
    return made


@pytest.fixture
def file(folder: Path) -> Path:
    return folder / "agent-a1.jsonl"


@pytest.fixture
def transcripts(tmp_path: Path) -> Transcripts:
    return Transcripts(str(tmp_path / "projects"))


def said(name: str, figures: tuple[int, int, int, int] = (10, 5, 0, 0), **more: Any) -> bytes:
    """A line as the client writes it: a part of a message, with the figures of the whole: in, out, cached, kept."""
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    usage = dict(zip(names, figures, strict=True)) | {"service_tier": "standard"}
    message = {"id": name, "role": "assistant", "model": "claude-opus-5-5", "content": [], "usage": usage}
    return json.dumps({"type": "assistant", "agentId": "a1", "message": message, **more}).encode() + b"\n"


USER = b'{"type": "user", "message": {"role": "user", "content": "what is your \\"usage\\"?"}}\n'


def read(transcripts: Transcripts, file: Path) -> Usage | None:
    return transcripts.read({"s1/a1": str(file)}).get("s1/a1")


def tokens(transcripts: Transcripts, file: Path) -> int | None:
    usage = read(transcripts, file)
    return None if usage is None else usage.tokens


# -- what is counted -------------------------------------------------------------------------------------


def test_each_message_counts_once_whatever_number_of_lines_it_has(transcripts: Transcripts, file: Path) -> None:
    first, second = (200, 77, 3000, 20), (400, 50, 3200, 10)
    file.write_bytes(USER + said("m1", first) + said("m1", first) + USER + said("m2", second) + said("m1", first))

    assert read(transcripts, file) == Usage(
        model="claude-opus-5-5",
        tokens=sum(first) + sum(second),
        output_tokens=127,
        cached_tokens=6200,
        context_tokens=sum(first),
    )


def test_the_last_line_of_a_message_has_its_figures(transcripts: Transcripts, file: Path) -> None:
    file.write_bytes(said("m1", (10, 1, 0, 0)) + said("m1", (10, 90, 0, 0)))

    assert tokens(transcripts, file) == 100


def test_the_message_that_made_a_fork_is_its_makers(transcripts: Transcripts, file: Path) -> None:
    fork = b'{"type":"fork-context-ref","agentId":"a1"}\n'
    file.write_bytes(fork + said("m1"))
    assert tokens(transcripts, file) is None

    with file.open("ab") as opened:
        opened.write(said("m1") + USER + said("m2"))
    assert tokens(transcripts, file) == 15


@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b'"usage"\n',
        b'["usage"]\n',
        b'{"usage"\n',
        b'{"type":"assistant","usage":1}\n',
        b'{"type":"assistant","message":"usage","x":"usage"}\n',
        b'{"type":"assistant","message":{"id":"m2","usage":[1]}}\n',
        b'{"type":"assistant","message":{"id":7,"usage":{"input_tokens":4}}}\n',
        b'{"type":"assistant","message":{"id":"m2","usage":{"input_tokens":"4","output_tokens":null}}}\n',
        b'{"type":"assistant","message":{"id":"m2","usage":{"input_tokens":-4,"output_tokens":1e99}}}\n',
        b'{"type":"assistant","message":{"id":"m2","usage":{"input_tokens":true}}}\n',
        b'{"type":"assistant","message":{"id":"m2","usage":{"input_tokens":99999999999999999999}}}\n',
        b'{"type":["fork-context-ref"]}\n',
        b'{"type":"user","message":{"id":"m2","usage":{"input_tokens":4}}}\n',
        b'{"type":"assistant","message":{"id":"m2","model":"<synthetic>","usage":{"input_tokens":0}}}\n',
        b'{"usage":"\xff"}\n',
        b'{"usage":' + b"[" * 5000 + b"\n",
    ],
)
def test_a_line_that_is_something_else_is_passed_over(transcripts: Transcripts, file: Path, line: bytes) -> None:
    file.write_bytes(said("m1") + line + said("m3"))

    assert tokens(transcripts, file) == 30


def test_a_figure_that_is_none_leaves_the_others(transcripts: Transcripts, file: Path) -> None:
    usage = {"input_tokens": None, "output_tokens": 7}
    file.write_text(json.dumps({"type": "assistant", "message": {"id": "m1", "model": 3, "usage": usage}}) + "\n")

    assert read(transcripts, file) == Usage(tokens=7, output_tokens=7, cached_tokens=0, context_tokens=7)


# -- a file that grows -----------------------------------------------------------------------------------


def test_what_was_read_is_not_read_again(transcripts: Transcripts, file: Path) -> None:
    file.write_bytes(said("m1"))
    assert tokens(transcripts, file) == 15

    with file.open("r+b") as opened:  # a second reading would find nothing there
        opened.write(b" " * (file.stat().st_size - 1))
        opened.seek(0, os.SEEK_END)
        opened.write(said("m2"))
    assert tokens(transcripts, file) == 30


def test_half_a_line_counts_when_it_is_whole(transcripts: Transcripts, file: Path) -> None:
    line = said("m2")
    file.write_bytes(said("m1") + line[:-1])
    assert tokens(transcripts, file) == 15

    with file.open("ab") as opened:
        opened.write(line[-1:])
    assert tokens(transcripts, file) == 30


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_file_that_was_cut_or_made_anew_is_read_from_its_start(
    transcripts: Transcripts, file: Path, *, is_replaced: bool
) -> None:
    file.write_bytes(said("m1") + said("m2"))
    assert tokens(transcripts, file) == 30

    if is_replaced:
        (file.parent / "new").write_bytes(said("m3", (1, 1, 1, 1)) * 9)
        (file.parent / "new").rename(file)
    else:
        file.write_bytes(said("m3", (1, 1, 1, 1)))
    assert tokens(transcripts, file) == 4


def test_a_large_file_is_read_a_part_at_a_time(
    transcripts: Transcripts, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_transcripts, "BATCH_SIZE", 2000)
    monkeypatch.setattr(_transcripts, "MAX_LINE_LENGTH", 1000)
    file.write_bytes(b"".join(said(f"m{number}") for number in range(40)))
    other = file.with_name("agent-a2.jsonl")
    other.write_bytes(said("m1"))
    files = {"one": str(file), "two": str(other)}

    first = transcripts.read(files)
    assert 0 < (first["one"].tokens or 0) < 600
    assert transcripts.unfinished == {"one", "two"}

    while transcripts.unfinished:
        found = transcripts.read(files)
    assert (found["one"].tokens, found["two"].tokens) == (600, 15)


def test_a_line_that_is_too_long_is_passed_over(
    transcripts: Transcripts, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_transcripts, "MAX_LINE_LENGTH", 1000)
    file.write_bytes(said("m1") + said("m2", picture="x" * 4000) + said("m3"))
    assert tokens(transcripts, file) == 30

    with file.open("ab") as opened:
        opened.write(said("m4", picture="x" * 1500)[:-1])
    assert tokens(transcripts, file) == 30
    with file.open("ab") as opened:
        opened.write(b"\n" + said("m5"))
    assert tokens(transcripts, file) == 45


def test_files_that_were_forgotten_are_read_anew(
    transcripts: Transcripts, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_transcripts, "_MAX_STATES", 2)
    files = {str(number): str(folder / f"agent-{number}.jsonl") for number in range(5)}
    for path in files.values():
        Path(path).write_bytes(said("m1"))

    for _ in range(2):
        assert {usage.tokens for usage in transcripts.read(files).values()} == {15}
        assert len(transcripts._states) == 2


MESSAGES = st.lists(st.tuples(st.sampled_from("abcd"), st.integers(1, 99)), max_size=12)
CUTS = st.lists(st.integers(0, 3000), max_size=8)


@settings(max_examples=60)
@given(MESSAGES, CUTS)
def test_wherever_readings_fall_the_figures_are_the_same(messages: list[tuple[str, int]], cuts: list[int]) -> None:
    content = b"".join(said(name, (figure, 0, 0, 0)) for name, figure in messages)
    with tempfile.TemporaryDirectory() as place:
        file, transcripts = Path(place, "agent-a1.jsonl"), Transcripts(place)
        done = 0
        for cut in (*sorted(cuts), len(content)):
            with file.open("ab") as opened:
                opened.write(content[done : max(done, cut)])
            done = max(done, cut)
            found = tokens(transcripts, file)

    assert found == (sum(dict(messages).values()) or None)


# -- a file that is none of ours --------------------------------------------------------------------------


def test_only_a_file_in_the_clients_folder_is_read(transcripts: Transcripts, file: Path, tmp_path: Path) -> None:
    outside = tmp_path / "agent-a1.jsonl"
    outside.write_bytes(said("m1"))
    (file.parent / "link.jsonl").symlink_to(outside)
    (file.parent / "away").symlink_to(tmp_path)
    file.parent.joinpath("folder.jsonl").mkdir()
    os.mkfifo(file.parent / "pipe.jsonl")  # to open it could wait for ever

    names = [outside, *(file.parent / name for name in ("link.jsonl", "away/agent-a1.jsonl", "folder.jsonl"))]
    names += [file.parent / "pipe.jsonl", file.parent / "../../../../agent-a1.jsonl", file.parent / "missing.jsonl"]
    paths = [*map(str, names), "", "agent-a1.jsonl", "\0", "/dev/zero", "/proc/self/environ", "x" * 5000]
    assert transcripts.read({path: path for path in paths}) == {}
    assert transcripts.unfinished == frozenset()


def test_a_link_within_the_clients_folder_is_followed(transcripts: Transcripts, file: Path, tmp_path: Path) -> None:
    file.write_bytes(said("m1"))
    (tmp_path / "projects/moved").symlink_to(file.parent)

    assert tokens(transcripts, tmp_path / "projects/moved/agent-a1.jsonl") == 15


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_not_read(transcripts: Transcripts, file: Path) -> None:
    file.write_bytes(said("m1"))
    os.chown(file, 65534, 65534)

    assert tokens(transcripts, file) is None


def test_the_folder_is_the_clients(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, file: Path) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    file.write_bytes(said("m1"))

    assert tokens(Transcripts(), file) == 15
