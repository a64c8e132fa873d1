"""Settings files on the disk: written whole or not at all, and given back as they were."""

from __future__ import annotations

import json
import os
import resource  # noqa: F401 - for the processes that this file starts
import signal
import stat
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from clients.generated_settings import settings_texts
from e2e import sealed
from e2e.conftest import client  # noqa: F401 - a fixture
from e2e.model import bash
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.clients import _settings_file
from fairlead.clients._json_text import parse
from fairlead.clients._settings_file import MAX_BYTES, InstallError
from fairlead.clients.claude._hook_entries import Asked, Launcher, find
from fairlead.clients.claude._install import (
    carry_out,
    locked,
    plan_install,
    plan_uninstall,
    settings_file,
)
from fairlead.clients.claude._ownership import REPLACEABLE
from fairlead.clients.claude._programs import client_version, find_launcher, is_ignored
from fairlead.clients.claude._status import status
from fairlead.clients.claude._status_line_entry import read_line
from fairlead.clients.claude._stay_entries import STAYS, read_stay
from fairlead.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.clients.claude._install import Plan

ASKED = Asked(Launcher("/opt/env/bin/fairlead-hook", "/opt/env/bin/python"), (2, 1, 325))
REPLACING = Asked(ASKED.launcher, (2, 1, 325), replace=frozenset(REPLACEABLE))
SHOWING = Asked(ASKED.launcher, (2, 1, 325), status_line="show")
LEAVING = Asked(ASKED.launcher, (2, 1, 325), status_line="leave")
STAYING = [Asked(ASKED.launcher, (2, 1, 325), stay=stay) for stay in STAYS]
ANY = st.sampled_from([ASKED, REPLACING, SHOWING, LEAVING, *STAYING])
MINE = '{\n    "model": "opus",\n    "env": {"A": "\\u00e9"}\n}\n'


class Place:
    """A settings file and our own folder, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "home/.claude/settings.json"
        self.state = folder / "state"

    def write(self, content: bytes | str) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_bytes(content.encode() if isinstance(content, str) else content)

    def install(self, asked: Asked = ASKED) -> Plan:
        with locked(self.state):
            plan = plan_install(self.file, asked, self.state)
            carry_out(plan, self.state)
        return plan

    def uninstall(self) -> Plan:
        with locked(self.state):
            plan = plan_uninstall(self.file, self.state)
            carry_out(plan, self.state)
        return plan

    def ours(self) -> int:
        return len(list(find(parse(self.file.read_text("utf-8")))))

    def receipts(self) -> list[str]:
        return sorted(file.name for file in (self.state / "installs").iterdir() if file.name != "lock")

    def beside(self) -> list[str]:
        return sorted(file.name for file in self.file.parent.iterdir())


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


# -- there and back ------------------------------------------------------------------------------------


@settings(max_examples=120, deadline=None)
@given(settings_texts(rivals=True), ANY)
def test_uninstall_gives_back_the_same_bytes(text: str, asked: Asked) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder))
        place.write(text)
        assert place.install(asked).changes
        assert not place.install(asked).changes
        assert place.uninstall().is_exact
        assert place.file.read_bytes() == text.encode()
        assert place.receipts() == []


@settings(max_examples=100, deadline=None)
@given(settings_texts(rivals=True), ANY, st.text("abc", min_size=1))
def test_an_edit_since_then_is_kept_and_all_of_ours_goes(text: str, asked: Asked, word: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder))
        place.write(text)
        place.install(asked)
        edited = json.loads(place.file.read_text("utf-8-sig"))
        edited["edited"] = {"word": word}
        edited["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": f"./{word}"}]})
        place.write(json.dumps(edited, indent=1))

        assert not place.uninstall().is_exact

        left = json.loads(place.file.read_text("utf-8"))
        root = parse(place.file.read_text("utf-8"))
        assert (read_line(root).is_ours, read_stay(root)) == (False, "")
        assert (place.ours(), left["edited"]) == (0, {"word": word})
        assert f"./{word}" in [hook.get("command") for entry in left["hooks"]["Stop"] for hook in entry["hooks"]]
        before = json.loads(text.lstrip("\ufeff")) if text.strip("\ufeff \r\n") else {}
        assert {key: left[key] for key in before if key != "hooks"} == {
            key: value for key, value in before.items() if key != "hooks"
        }
        assert all_hooks(before) <= all_hooks(left)


def all_hooks(document: dict[str, Any]) -> set[str]:
    hooks = document.get("hooks") or {}
    return {
        json.dumps([event, hook], sort_keys=True)
        for event, entries in hooks.items()
        for entry in entries
        for hook in entry["hooks"]
    }


def test_a_file_that_was_not_there_is_gone_again_with_its_folders(place: Place) -> None:
    place.install()
    assert (place.ours(), stat.S_IMODE(place.file.stat().st_mode)) == (29, 0o644)
    plan = place.uninstall()
    assert (plan.after, place.file.parent.parent.exists()) == (None, False)


def test_a_folder_that_others_use_by_now_stays(place: Place) -> None:
    place.install()
    (place.file.parent / "CLAUDE.md").write_text("x")
    place.uninstall()
    assert place.beside() == ["CLAUDE.md"]


def test_a_file_of_ours_that_was_edited_goes_only_if_nothing_is_left_in_it(place: Place) -> None:
    place.install()
    place.file.write_text(place.file.read_text() + "\n\n")
    place.uninstall()
    assert not place.file.exists()

    place.install()
    place.file.write_text(json.dumps({"model": "opus", **json.loads(place.file.read_text())}))
    place.uninstall()
    assert json.loads(place.file.read_text()) == {"model": "opus"}


def test_an_edit_between_two_installs_is_what_uninstall_gives_back(place: Place) -> None:
    place.write(MINE)
    place.install(Asked(Launcher("/old/fairlead-hook", "/old/python"), (2, 1, 197)))
    place.file.write_text(place.file.read_text().replace('"opus"', '"haiku"'))
    place.install()
    assert place.uninstall().is_exact
    assert place.file.read_text() == MINE.replace('"opus"', '"haiku"')


def test_an_upgrade_still_gives_back_the_first_bytes(place: Place) -> None:
    place.write(MINE)
    place.install(Asked(Launcher("/old/fairlead-hook", "/old/python"), (2, 1, 197)))
    place.install()
    place.install(Asked(Launcher("/new/fairlead-hook", "/new/python"), (2, 1, 325)))
    place.uninstall()
    assert place.file.read_text() == MINE


def test_what_was_replaced_comes_back_after_an_edit_and_a_second_install(place: Place) -> None:
    theirs = {"matcher": "", "hooks": [{"type": "command", "command": "conclaude Hooks Stop", "timeout": 600}]}
    place.write(json.dumps({"hooks": {"Stop": [theirs]}}))
    place.install(REPLACING)
    place.file.write_text(place.file.read_text().replace('{"hooks"', '{"model": "opus", "hooks"', 1))
    place.install(REPLACING)
    place.file.write_text(place.file.read_text() + "\n")
    place.uninstall()
    assert json.loads(place.file.read_text()) == {"model": "opus", "hooks": {"Stop": [theirs]}}


def test_the_file_before_and_the_receipt_are_for_their_owner_alone(place: Place) -> None:
    place.write(MINE)
    place.install()
    receipt, before = sorted((place.state / "installs").glob("claude-*"), reverse=True, key=lambda file: file.suffix)
    assert (receipt.suffix, before.suffix, before.read_text()) == (".json", ".before", MINE)
    assert {stat.S_IMODE(file.stat().st_mode) for file in (receipt, before)} == {0o600}
    assert stat.S_IMODE((place.state / "installs").stat().st_mode) == 0o700


def test_without_a_receipt_ours_is_taken_out_by_itself(place: Place) -> None:
    place.write(MINE)
    place.install()
    for file in (place.state / "installs").glob("claude-*"):
        file.write_text("broken")
    assert not place.uninstall().is_exact
    assert place.file.read_text() == MINE


def test_where_nothing_is_installed_uninstall_changes_nothing(place: Place) -> None:
    assert not place.uninstall().changes
    assert not place.file.exists()
    place.write(MINE)
    assert not place.uninstall().changes
    place.install()
    place.file.unlink()
    assert not place.uninstall().changes
    assert place.receipts() == []


# -- where -----------------------------------------------------------------------------------------------


def test_each_scope_has_its_file(tmp_path: Path) -> None:
    environ = {"HOME": "/home/me"}
    assert settings_file("user", tmp_path, environ) == Path("/home/me/.claude/settings.json")
    assert settings_file("user", tmp_path, {**environ, "CLAUDE_CONFIG_DIR": "/c"}) == Path("/c/settings.json")
    assert settings_file("project", tmp_path, environ) == tmp_path / ".claude/settings.json"
    assert settings_file("local", tmp_path, environ) == tmp_path / ".claude/settings.local.json"
    with pytest.raises(UsageError, match="--scope: expected one of user, project, local, got 'global'"):
        settings_file("global", tmp_path, environ)


def test_a_link_stays_a_link_and_the_file_keeps_its_mode(place: Place, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles/claude.json"
    real.parent.mkdir()
    real.write_text(MINE)
    real.chmod(0o640)
    place.file.parent.mkdir(parents=True)
    place.file.symlink_to(real)

    place.install()
    assert (place.file.is_symlink(), place.ours(), stat.S_IMODE(real.stat().st_mode)) == (True, 29, 0o640)
    place.uninstall()
    assert (place.file.is_symlink(), real.read_text(), stat.S_IMODE(real.stat().st_mode)) == (True, MINE, 0o640)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_the_file_keeps_its_owner(place: Place) -> None:
    place.write(MINE)
    os.chown(place.file, 65534, 65534)
    place.install()
    assert (place.file.stat().st_uid, place.file.stat().st_gid) == (65534, 65534)


# -- what cannot be done -------------------------------------------------------------------------------


def refused(place: Place) -> str:
    with pytest.raises(InstallError) as caught:
        place.install()
    assert [name for name in place.beside() if name != place.file.name] == []
    return str(caught.value).replace(str(place.file), "FILE")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b'{"a": 1,}', "FILE:1:8: a comma after the last item; take it out; nothing was changed"),
        (b"// mine\n{}", "FILE:1:1: a comment, which JSON does not have; take it out; nothing was changed"),
        (b"[]", "FILE:1:1: the settings are no object; the client skips the whole file; nothing was changed"),
        (b"\x00\x01", "FILE:1:1: not valid JSON: expected a value, got '\\x00'; nothing was changed"),
        (b"\x80\x81", "FILE: not valid UTF-8 at byte 0; nothing was changed"),
        (b" " * (MAX_BYTES + 1), "FILE is larger than 1048576 bytes, which no settings are; nothing was changed"),
        (b"[" * 50_000_000, "FILE is larger than 1048576 bytes, which no settings are; nothing was changed"),
    ],
    ids=["comma", "comment", "array", "binary", "bytes", "large", "50 MB"],
)
def test_what_is_no_settings_file_is_told_and_left_alone(place: Place, content: bytes, expected: str) -> None:
    place.write(content)
    assert refused(place) == expected
    assert place.file.read_bytes() == content
    assert place.receipts() == []


def test_a_folder_or_a_pipe_is_no_settings_file(place: Place) -> None:
    place.file.mkdir(parents=True)
    assert refused(place) == "FILE is no regular file; settings are read from a file alone"
    place.file.rmdir()
    os.mkfifo(place.file)
    assert refused(place) == "FILE is no regular file; settings are read from a file alone"


def test_a_link_that_leads_nowhere_is_told(place: Place, tmp_path: Path) -> None:
    place.file.parent.mkdir(parents=True)
    place.file.symlink_to(tmp_path / "gone.json")
    advice = "which is not there; make that file, or remove the link"
    assert refused(place) == f"FILE is a link to {tmp_path / 'gone.json'}, {advice}"
    place.file.unlink()
    place.file.symlink_to(place.file)
    assert refused(place).endswith("Too many levels of symbolic links; nothing was changed")


@contextmanager
def as_somebody_else() -> Iterator[None]:
    """Be a user whom permissions bind, also where the tests run as root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_place() -> Iterator[Place]:
    """A place that other users reach."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        with as_somebody_else():
            yield Place(Path(folder))
        for file in Path(folder).rglob("*"):
            file.chmod(0o755)


@pytest.mark.parametrize("mode", [0o444, 0o000])
def test_a_protected_file_is_left_alone(open_place: Place, mode: int) -> None:
    open_place.write(MINE)
    open_place.file.chmod(mode)
    expected = (
        "FILE is write-protected; nothing was changed" if mode else "FILE: Permission denied; nothing was changed"
    )
    assert refused(open_place) == expected


def test_a_protected_folder_is_told(open_place: Place) -> None:
    open_place.write(MINE)
    open_place.file.parent.chmod(0o555)
    assert refused(open_place) == "FILE: Permission denied; nothing was changed"
    assert open_place.file.read_text() == MINE
    open_place.state.chmod(0o555)
    (open_place.state / "installs").chmod(0o555)
    assert refused(open_place).endswith("Permission denied; nothing was changed")


def test_a_file_that_changes_meanwhile_is_left_as_it_is(place: Place) -> None:
    place.write(MINE)
    plan = plan_install(place.file, ASKED, place.state)
    place.write("{}")
    with locked(place.state), pytest.raises(InstallError) as caught:
        carry_out(plan, place.state)
    message = "was changed by somebody else meanwhile; nothing was changed, so try again"
    assert str(caught.value) == f"{place.file} {message}"
    assert (place.file.read_text(), place.beside()) == ("{}", ["settings.json"])
    place.install()
    place.uninstall()
    assert place.file.read_text() == "{}"


def test_a_full_disk_changes_nothing(place: Place) -> None:
    place.write(MINE)
    code = f"resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000)); {INSTALL}"
    done = other_process(place, code)
    assert "File too large; nothing was changed" in done.stderr
    assert (place.file.read_text(), place.beside()) == (MINE, ["settings.json"])
    place.install()
    place.uninstall()
    assert place.file.read_text() == MINE


@pytest.mark.parametrize("moment", ["replace", "fsync"])
def test_a_kill_half_way_leaves_the_old_file(place: Place, moment: str) -> None:
    place.write(MINE)
    target = "Path" if moment == "replace" else "os"
    die = (
        f"real = {target}.{moment}\n"
        f"def die(what, *more):\n"
        f"    name = str(what) if {target} is Path else os.readlink(f'/proc/self/fd/{{what}}')\n"
        f"    if '.settings.json.' in name: os.kill(os.getpid(), 9)\n"
        f"    return real(what, *more)\n"
        f"{target}.{moment} = die\n"
    )
    done = other_process(place, die + INSTALL)
    assert done.returncode == -signal.SIGKILL
    assert place.file.read_text() == MINE
    assert len(place.beside()) == 2  # the file that was to replace it

    place.install()
    assert (place.ours(), place.beside()) == (29, ["settings.json"])
    place.uninstall()
    assert place.file.read_text() == MINE


INSTALL = "Place(Path(sys.argv[1])).install()"


def other_process(place: Place, code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(place, code), check=False, capture_output=True, text=True)


def command(place: Place, code: str) -> list[str]:
    tests = Path(__file__).parents[1]
    start = (
        f"import os, resource, sys\nfrom pathlib import Path\nsys.path.insert(0, {str(tests)!r})\n"
        "from clients.test_claude_install import *\n"
    )
    return [sys.executable, "-c", start + code, str(place.state.parent)]


def test_many_installers_at_once_make_one_install(place: Place) -> None:
    place.write(MINE)
    begun = [subprocess.Popen(command(place, INSTALL), stderr=subprocess.PIPE) for _ in range(6)]
    ended = [(process.communicate()[1], process.returncode) for process in begun]
    assert ended == [(b"", 0)] * 6
    assert (place.ours(), place.beside()) == (29, ["settings.json"])
    place.uninstall()
    assert place.file.read_text() == MINE


def test_an_installer_waits_for_another_and_then_gives_up(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_settings_file, "PATIENCE", 0.05)
    with (
        locked(place.state),
        pytest.raises(InstallError, match=r"another installer holds .*/lock; nothing was changed"),
    ):
        place.install()
    place.install()


# -- programs ------------------------------------------------------------------------------------------


def program(file: Path, text: str = "#!/bin/sh\n") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)
    return file


def test_the_launcher_is_the_one_of_this_installation(tmp_path: Path) -> None:
    second = program(tmp_path / "b/fairlead-hook")
    (tmp_path / "a").mkdir()
    (tmp_path / "a/fairlead-hook").write_text("not executable")
    assert find_launcher([tmp_path / "a", tmp_path / "b"], "/x/python") == Launcher(str(second), "/x/python")
    with pytest.raises(InstallError) as caught:
        find_launcher([tmp_path / "a"], "/x/python")
    assert str(caught.value) == (
        f"there is no fairlead-hook in {tmp_path}/a; install fairlead again: pip install --force-reinstall fairlead"
    )


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("echo '2.1.325 (Claude Code)'", (2, 1, 325)),
        ("echo what", None),
        ("echo 2.1.325; exit 1", None),
        ("exec sleep 60", None),
    ],
)
def test_the_client_is_asked_for_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, expected: Any
) -> None:
    monkeypatch.setattr("fairlead.clients.claude._programs.PATIENCE", 2 if expected else 0.5)
    program(tmp_path / "claude", f"#!/bin/sh\n{script}\n")
    assert client_version(str(tmp_path)) == expected
    assert client_version(str(tmp_path / "nowhere")) is None


def test_git_says_whether_a_file_is_ignored(tmp_path: Path) -> None:
    file = tmp_path / ".claude/settings.local.json"
    assert is_ignored(file) is None
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    assert is_ignored(file) is False
    (tmp_path / ".gitignore").write_text("*.local.json\n")
    assert is_ignored(file) is True


# -- status --------------------------------------------------------------------------------------------


@pytest.fixture
def launcher(tmp_path: Path) -> Launcher:
    return Launcher(str(program(tmp_path / "bin/fairlead-hook")), str(program(tmp_path / "bin/python")))


def test_status_says_how_far_it_is(place: Place, launcher: Launcher) -> None:
    newest, oldest = (2, 1, 325), (2, 1, 197)

    def state(version: tuple[int, int, int] = newest) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
        said = status("user", place.file, launcher, version)
        return said.state, said.missing, said.differences

    assert state() == ("not installed", (), ())
    place.install(Asked(launcher, oldest))
    assert state(oldest) == ("installed", (), ())
    assert state() == ("partial", ("PreModelSwitch", "PostModelSwitch", "DirectoryAdded"), ())
    place.install(Asked(launcher, newest))
    assert state() == ("installed", (), ())
    place.file.write_text(place.file.read_text().replace('"timeout": 3600', '"timeout": 600'))
    assert state() == ("outdated", (), ("21 events: timeout is 600, and would be 3600",))
    assert status("user", place.file, None, newest).differences == state()[2]
    assert state(oldest)[2][-1].startswith("DirectoryAdded: this client does not know it")
    Path(launcher.hook).chmod(0o644)
    assert state()[0] == "broken"
    assert state()[2][0] == f"{launcher.hook} is not there, or cannot be started"
    place.write("{,}")
    assert state() == (
        "broken",
        (),
        (f"{place.file}:1:2: not valid JSON: expected a string in double quotes, closed on its line, got ','",),
    )


def test_status_notes_what_keeps_hooks_from_running(place: Place, launcher: Launcher) -> None:
    rival = {"hooks": [{"type": "command", "command": "conclaude Hooks Stop"}]}
    ours = {"matcher": "Bash", "hooks": [{"type": "command", "command": "fairlead PreToolUse"}]}
    place.write(json.dumps({"disableAllHooks": True, "hooks": {"Stop": [rival], "PreToolUse": [ours]}}))
    assert status("user", place.file, launcher, None).notes == (
        "disableAllHooks is set, so the client runs no hooks at all",
        "PreToolUse: only for the matcher 'Bash'",
        "conclaude has hooks here too, which decide the same events; install with --replace conclaude to take over",
    )


# -- the real client -----------------------------------------------------------------------------------


def test_the_real_client_accepts_all_of_it_and_starts_the_launcher(
    client: Path,  # noqa: F811
    place: Place,
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    launcher = Launcher(str(program(tmp_path / "bin/fairlead-hook", f'#!/bin/sh\necho "$@" >> {log}\n')), "/x/python")
    place.write(MINE)
    place.install(Asked(launcher, (2, 1, 325), also=frozenset({"MessageDisplay"}), stay="wake"))
    installed = json.loads(place.file.read_text())

    done = sealed.run(
        sealed.claude(client, "Go."), folder=tmp_path, script=[[bash("echo A=$A")], "Done."], settings=installed
    )

    assert (done.exit_code, done.stdout, done.stderr) == (0, "Done.\n", "")
    assert done.requests[-1].results == ["A=é"]
    started = log.read_text().splitlines()
    assert {"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolBatch", "Stop", "SessionEnd"} <= {
        line.split()[0] for line in started
    }
    assert all(line.endswith(" --python /x/python") for line in started)
    assert "Stop --wake --python /x/python" in started


def test_the_real_client_blocks_every_tool_when_the_launcher_is_gone(
    client: Path,  # noqa: F811
    place: Place,
    tmp_path: Path,
) -> None:
    place.install()

    done = sealed.run(
        sealed.claude(client, "Go."),
        folder=tmp_path,
        script=[[bash("touch ran")], "I may not."],
        settings=json.loads(place.file.read_text()),
    )

    assert (done.exit_code, done.stdout) == (0, "I may not.\n")  # the prompt itself went through
    assert 'blocking because onFailure is "block"' in done.requests[-1].results[0]
    assert not (tmp_path / "project/ran").exists()
