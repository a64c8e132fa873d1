"""A private file is replaced as a whole, is readable by its user alone, and leaves nothing behind if that fails."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from fairlead.files import read_private, write_private

if TYPE_CHECKING:
    from pathlib import Path

SIZE = 1 << 20


def names(folder: Path) -> list[str]:
    return [file.name for file in folder.iterdir()]


def run_child(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder, with the module imported."""
    code = f"import os, resource, sys\nfrom fairlead.files import write_private\n{program}"
    return subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("durable", [False, True])
def test_the_file_is_for_its_user_alone_whatever_the_umask_and_the_mode_before(tmp_path: Path, durable: bool) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"old, and longer than the new one")
    file.chmod(0o666)
    before = os.umask(0)
    try:
        write_private(str(file), b"new", durable=durable)
    finally:
        os.umask(before)
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"new", 0o600)
    assert names(tmp_path) == ["file"]


def test_a_relative_path_is_written_in_the_current_folder(tmp_path: Path) -> None:
    assert run_child("write_private('file', b'new', durable=True)", tmp_path).stderr == ""
    assert (tmp_path / "file").read_bytes() == b"new"


def test_a_link_in_place_of_the_file_is_replaced_and_its_target_left_alone(tmp_path: Path) -> None:
    target, file = tmp_path / "target", tmp_path / "file"
    target.write_bytes(b"not ours")
    file.symlink_to(target)
    write_private(str(file), b"new")
    assert (file.is_symlink(), file.read_bytes(), target.read_bytes()) == (False, b"new", b"not ours")


def test_a_link_in_place_of_the_temporary_file_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "urandom", bytes)
    target, temporary = tmp_path / "target", tmp_path / f"file.{bytes(6).hex()}.tmp"
    target.write_bytes(b"not ours")
    temporary.symlink_to(target)
    with pytest.raises(FileExistsError):
        write_private(str(tmp_path / "file"), b"new")
    assert target.read_bytes() == b"not ours"
    assert not (tmp_path / "file").exists()


def test_a_full_disk_leaves_the_old_content_and_no_other_file(tmp_path: Path) -> None:
    """The limit on the size of files stands for the disk."""
    (tmp_path / "file").write_bytes(b"old")
    limit = "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))"
    done = run_child(f"{limit}\nwrite_private('{tmp_path}/file', bytes(100_000))", tmp_path)
    assert done.stderr.splitlines()[-1] == f"OSError: [Errno 27] File too large: '{tmp_path}/file'"
    assert (names(tmp_path), (tmp_path / "file").read_bytes()) == (["file"], b"old")


def test_a_folder_that_may_not_be_written_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "file").write_bytes(b"old")
    folder.chmod(0o555)
    unprivileged = "if os.geteuid() == 0: os.setresuid(65534, 65534, 65534)"
    done = run_child(f"{unprivileged}\nwrite_private('file', b'new')", folder)
    assert done.stderr.splitlines()[-1] == "PermissionError: [Errno 13] Permission denied: 'file'"
    assert (folder / "file").read_bytes() == b"old"


def test_a_folder_in_place_of_the_file_is_an_error_and_leaves_no_other_file(tmp_path: Path) -> None:
    (tmp_path / "file").mkdir()
    with pytest.raises(IsADirectoryError) as raised:
        write_private(str(tmp_path / "file"), b"new")
    assert raised.value.filename == str(tmp_path / "file")
    assert names(tmp_path) == ["file"]


def test_threads_that_write_at_once_leave_the_content_of_one_of_them(tmp_path: Path) -> None:
    contents = [bytes([letter]) * SIZE for letter in b"abcdefgh"]
    file = str(tmp_path / "file")
    with ThreadPoolExecutor(len(contents)) as pool:
        for _ in range(5):
            list(pool.map(lambda content: write_private(file, content), contents))
            assert read_private(file) in contents
    assert names(tmp_path) == ["file"]


def test_a_writer_that_is_killed_leaves_a_whole_content(tmp_path: Path) -> None:
    file = tmp_path / "file"
    program = (
        "import itertools, sys\nfrom fairlead.files import write_private\n"
        f"for at in itertools.count(): write_private(sys.argv[1], bytes([97 + at % 26]) * {SIZE})"
    )
    for _ in range(5):
        file.unlink(missing_ok=True)
        writer = subprocess.Popen([sys.executable, "-c", program, str(file)])
        try:
            wait_for_changes(file, writer)
        finally:
            writer.kill()
            writer.wait()
        content = file.read_bytes()
        assert content == content[:1] * SIZE


def wait_for_changes(file: Path, writer: subprocess.Popen[bytes]) -> None:
    """Wait until a file has been replaced a few times."""
    seen: set[bytes] = set()
    while len(seen) < 3:
        assert writer.poll() is None
        if file.exists():
            seen.add(file.read_bytes()[:1])


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_a_file_that_others_may_write_is_not_read(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "file"
    write_private(str(file), b"ours")
    assert read_private(str(file)) == b"ours"
    file.chmod(mode)
    with pytest.raises(PermissionError):
        read_private(str(file))


def test_what_is_not_a_regular_file_is_not_read(tmp_path: Path) -> None:
    write_private(str(tmp_path / "file"), b"ours")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    os.mkfifo(tmp_path / "pipe", 0o600)
    for name in ("link", "pipe"):
        with pytest.raises(OSError, match=name):
            read_private(str(tmp_path / name))
