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

from fairlead.clients import InstallRequest, Launcher, _settings_file, install_lock
from fairlead.clients._json_text import parse
from fairlead.clients._programs import find_launcher, is_git_ignored
from fairlead.clients._settings_file import MAX_SIZE, InstallError
from fairlead.clients.claude.settings._entries import find_hooks
from fairlead.clients.claude.settings._install import (
    carry_out,
    client_version,
    plan_install,
    plan_uninstall,
    settings_file,
)
from fairlead.clients.claude.settings._ownership import REPLACEABLE
from fairlead.clients.claude.settings._status import status
from fairlead.clients.claude.settings._status_line import read_status_line
from fairlead.clients.claude.settings._stay import STAYS, read_stay
from fairlead.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.clients import InstallPlan

ASKED = InstallRequest(Launcher("/opt/env/bin/fairlead-hook", "/opt/env/bin/python"), (2, 1, 325))
REPLACING = InstallRequest(ASKED.launcher, (2, 1, 325), replace=frozenset(REPLACEABLE))
SHOWING = InstallRequest(ASKED.launcher, (2, 1, 325), status_line="show")
LEAVING = InstallRequest(ASKED.launcher, (2, 1, 325), status_line="leave")
STAYING = [InstallRequest(ASKED.launcher, (2, 1, 325), stay=stay) for stay in STAYS]
ANY = st.sampled_from([ASKED, REPLACING, SHOWING, LEAVING, *STAYING])
MINE = '{\n    "model": "opus",\n    "env": {"A": "\\u00e9"}\n}\n'


class Home:
    """A settings file and our own folder, below one folder."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "home/.claude/settings.json"
        self.state = folder / "state"

    def write(self, content: bytes | str) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_bytes(content.encode() if isinstance(content, str) else content)

    def install(self, asked: InstallRequest = ASKED) -> InstallPlan:
        with install_lock(self.state):
            plan = plan_install(self.file, asked, self.state)
            carry_out(plan, self.state)
        return plan

    def uninstall(self) -> InstallPlan:
        with install_lock(self.state):
            plan = plan_uninstall(self.file, self.state)
            carry_out(plan, self.state)
        return plan

    def ours(self) -> int:
        return len(list(find_hooks(parse(self.file.read_text("utf-8")))))

    def receipts(self) -> list[str]:
        return sorted(file.name for file in (self.state / "installs").iterdir() if file.name != "lock")

    def beside(self) -> list[str]:
        return sorted(file.name for file in self.file.parent.iterdir())


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


# -- there and back ------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(settings_texts(rivals=True), ANY)
def test_uninstall_gives_back_the_same_bytes(text: str, asked: InstallRequest) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder))
        home.write(text)
        assert home.install(asked).changes
        assert not home.install(asked).changes
        assert home.uninstall().is_exact
        assert home.file.read_bytes() == text.encode()
        assert home.receipts() == []


@settings(max_examples=40, deadline=None)
@given(settings_texts(rivals=True), ANY, st.text("abc", min_size=1))
def test_an_edit_since_then_is_kept_and_all_of_ours_goes(text: str, asked: InstallRequest, word: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder))
        home.write(text)
        home.install(asked)
        edited = json.loads(home.file.read_text("utf-8-sig"))
        edited["edited"] = {"word": word}
        edited["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": f"./{word}"}]})
        home.write(json.dumps(edited, indent=1))

        assert not home.uninstall().is_exact

        left = json.loads(home.file.read_text("utf-8"))
        root = parse(home.file.read_text("utf-8"))
        assert (read_status_line(root).is_ours, read_stay(root)) == (False, "")
        assert (home.ours(), left["edited"]) == (0, {"word": word})
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


def test_a_file_that_was_not_there_is_gone_again_with_its_folders(home: Home) -> None:
    home.install()
    assert (home.ours(), stat.S_IMODE(home.file.stat().st_mode)) == (29, 0o644)
    plan = home.uninstall()
    assert (plan.after, home.file.parent.parent.exists()) == (None, False)


def test_a_folder_that_others_use_by_now_stays(home: Home) -> None:
    home.install()
    (home.file.parent / "CLAUDE.md").write_text("x")
    home.uninstall()
    assert home.beside() == ["CLAUDE.md"]


def test_a_file_of_ours_that_was_edited_goes_only_if_nothing_is_left_in_it(home: Home) -> None:
    home.install()
    home.file.write_text(home.file.read_text() + "\n\n")
    home.uninstall()
    assert not home.file.exists()

    home.install()
    home.file.write_text(json.dumps({"model": "opus", **json.loads(home.file.read_text())}))
    home.uninstall()
    assert json.loads(home.file.read_text()) == {"model": "opus"}


def test_an_edit_between_two_installs_is_what_uninstall_gives_back(home: Home) -> None:
    home.write(MINE)
    home.install(InstallRequest(Launcher("/old/fairlead-hook", "/old/python"), (2, 1, 197)))
    home.file.write_text(home.file.read_text().replace('"opus"', '"haiku"'))
    home.install()
    assert home.uninstall().is_exact
    assert home.file.read_text() == MINE.replace('"opus"', '"haiku"')


def test_an_upgrade_still_gives_back_the_first_bytes(home: Home) -> None:
    home.write(MINE)
    home.install(InstallRequest(Launcher("/old/fairlead-hook", "/old/python"), (2, 1, 197)))
    home.install()
    home.install(InstallRequest(Launcher("/new/fairlead-hook", "/new/python"), (2, 1, 325)))
    home.uninstall()
    assert home.file.read_text() == MINE


def test_what_was_replaced_comes_back_after_an_edit_and_a_second_install(home: Home) -> None:
    theirs = {"matcher": "", "hooks": [{"type": "command", "command": "conclaude Hooks Stop", "timeout": 600}]}
    home.write(json.dumps({"hooks": {"Stop": [theirs]}}))
    home.install(REPLACING)
    home.file.write_text(home.file.read_text().replace('{"hooks"', '{"model": "opus", "hooks"', 1))
    home.install(REPLACING)
    home.file.write_text(home.file.read_text() + "\n")
    home.uninstall()
    assert json.loads(home.file.read_text()) == {"model": "opus", "hooks": {"Stop": [theirs]}}


def test_the_file_before_and_the_receipt_are_for_their_owner_alone(home: Home) -> None:
    home.write(MINE)
    home.install()
    receipt, before = sorted((home.state / "installs").glob("claude-*"), reverse=True, key=lambda file: file.suffix)
    assert (receipt.suffix, before.suffix, before.read_text()) == (".json", ".before", MINE)
    assert {stat.S_IMODE(file.stat().st_mode) for file in (receipt, before)} == {0o600}
    assert stat.S_IMODE((home.state / "installs").stat().st_mode) == 0o700


def test_without_a_receipt_ours_is_taken_out_by_itself(home: Home) -> None:
    home.write(MINE)
    home.install()
    for file in (home.state / "installs").glob("claude-*"):
        file.write_text("broken")
    assert not home.uninstall().is_exact
    assert home.file.read_text() == MINE


def test_where_nothing_is_installed_uninstall_changes_nothing(home: Home) -> None:
    assert not home.uninstall().changes
    assert not home.file.exists()
    home.write(MINE)
    assert not home.uninstall().changes
    home.install()
    home.file.unlink()
    assert not home.uninstall().changes
    assert home.receipts() == []


# -- where -----------------------------------------------------------------------------------------------


def test_each_scope_has_its_file(tmp_path: Path) -> None:
    environ = {"HOME": "/home/me"}
    assert settings_file("user", tmp_path, environ) == Path("/home/me/.claude/settings.json")
    assert settings_file("user", tmp_path, {**environ, "CLAUDE_CONFIG_DIR": "/c"}) == Path("/c/settings.json")
    assert settings_file("project", tmp_path, environ) == tmp_path / ".claude/settings.json"
    assert settings_file("local", tmp_path, environ) == tmp_path / ".claude/settings.local.json"
    with pytest.raises(UsageError, match="--scope: expected one of user, project, local, got 'global'"):
        settings_file("global", tmp_path, environ)


def test_a_link_stays_a_link_and_the_file_keeps_its_mode(home: Home, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles/claude.json"
    real.parent.mkdir()
    real.write_text(MINE)
    real.chmod(0o640)
    home.file.parent.mkdir(parents=True)
    home.file.symlink_to(real)

    home.install()
    assert (home.file.is_symlink(), home.ours(), stat.S_IMODE(real.stat().st_mode)) == (True, 29, 0o640)
    home.uninstall()
    assert (home.file.is_symlink(), real.read_text(), stat.S_IMODE(real.stat().st_mode)) == (True, MINE, 0o640)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_the_file_keeps_its_owner(home: Home) -> None:
    home.write(MINE)
    os.chown(home.file, 65534, 65534)
    home.install()
    assert (home.file.stat().st_uid, home.file.stat().st_gid) == (65534, 65534)


# -- what cannot be done -------------------------------------------------------------------------------


def refused(home: Home) -> str:
    with pytest.raises(InstallError) as caught:
        home.install()
    assert [name for name in home.beside() if name != home.file.name] == []
    return str(caught.value).replace(str(home.file), "FILE")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b'{"a": 1,}', "FILE:1:8: a comma after the last item; remove it; nothing was changed"),
        (b"// mine\n{}", "FILE:1:1: a comment, which JSON does not allow; remove it; nothing was changed"),
        (b"[]", "FILE:1:1: the settings are not an object; the client skips the whole file; nothing was changed"),
        (b"\x00\x01", "FILE:1:1: not valid JSON: expected a value, got '\\x00'; nothing was changed"),
        (b"\x80\x81", "FILE: not valid UTF-8 at byte 0; nothing was changed"),
        (b" " * (MAX_SIZE + 1), "FILE is larger than 1048576 bytes, so it is not a settings file; nothing was changed"),
        (b"[" * 50_000_000, "FILE is larger than 1048576 bytes, so it is not a settings file; nothing was changed"),
    ],
    ids=["comma", "comment", "array", "binary", "bytes", "large", "50 MB"],
)
def test_what_is_not_a_settings_file_is_reported_and_left_alone(home: Home, content: bytes, expected: str) -> None:
    home.write(content)
    assert refused(home) == expected
    assert home.file.read_bytes() == content
    assert home.receipts() == []


def test_a_folder_or_a_pipe_is_no_settings_file(home: Home) -> None:
    home.file.mkdir(parents=True)
    assert refused(home) == "FILE is not a regular file, so it cannot hold settings"
    home.file.rmdir()
    os.mkfifo(home.file)
    assert refused(home) == "FILE is not a regular file, so it cannot hold settings"


def test_a_dangling_link_is_reported(home: Home, tmp_path: Path) -> None:
    home.file.parent.mkdir(parents=True)
    home.file.symlink_to(tmp_path / "gone.json")
    advice = "which does not exist; create that file, or remove the link"
    assert refused(home) == f"FILE is a link to {tmp_path / 'gone.json'}, {advice}"
    home.file.unlink()
    home.file.symlink_to(home.file)
    assert refused(home).endswith("Too many levels of symbolic links; nothing was changed")


@contextmanager
def as_another_user() -> Iterator[None]:
    """Run as a user whom permissions bind, also where the tests run as root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_home() -> Iterator[Home]:
    """A home that other users can reach."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        with as_another_user():
            yield Home(Path(folder))
        for file in Path(folder).rglob("*"):
            file.chmod(0o755)


@pytest.mark.parametrize("mode", [0o444, 0o000])
def test_a_protected_file_is_left_alone(open_home: Home, mode: int) -> None:
    open_home.write(MINE)
    open_home.file.chmod(mode)
    expected = (
        "FILE is write-protected; nothing was changed" if mode else "FILE: Permission denied; nothing was changed"
    )
    assert refused(open_home) == expected


def test_a_protected_folder_is_reported(open_home: Home) -> None:
    open_home.write(MINE)
    open_home.file.parent.chmod(0o555)
    assert refused(open_home) == "FILE: Permission denied; nothing was changed"
    assert open_home.file.read_text() == MINE
    open_home.state.chmod(0o555)
    (open_home.state / "installs").chmod(0o555)
    assert refused(open_home).endswith("Permission denied; nothing was changed")


def test_a_file_that_changes_meanwhile_is_left_as_it_is(home: Home) -> None:
    home.write(MINE)
    plan = plan_install(home.file, ASKED, home.state)
    home.write("{}")
    with install_lock(home.state), pytest.raises(InstallError) as caught:
        carry_out(plan, home.state)
    message = "was changed by another program in the meantime; nothing was changed, so try again"
    assert str(caught.value) == f"{home.file} {message}"
    assert (home.file.read_text(), home.beside()) == ("{}", ["settings.json"])
    home.install()
    home.uninstall()
    assert home.file.read_text() == "{}"


def test_a_full_disk_changes_nothing(home: Home) -> None:
    home.write(MINE)
    code = f"resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000)); {INSTALL}"
    done = other_process(home, code)
    assert "File too large; nothing was changed" in done.stderr
    assert (home.file.read_text(), home.beside()) == (MINE, ["settings.json"])
    home.install()
    home.uninstall()
    assert home.file.read_text() == MINE


@pytest.mark.parametrize("moment", ["replace", "fsync"])
def test_a_kill_half_way_leaves_the_old_file(home: Home, moment: str) -> None:
    home.write(MINE)
    target = "Path" if moment == "replace" else "os"
    die = (
        f"real = {target}.{moment}\n"
        f"def die(what, *more):\n"
        f"    name = str(what) if {target} is Path else os.readlink(f'/proc/self/fd/{{what}}')\n"
        f"    if '.settings.json.' in name: os.kill(os.getpid(), 9)\n"
        f"    return real(what, *more)\n"
        f"{target}.{moment} = die\n"
    )
    done = other_process(home, die + INSTALL)
    assert done.returncode == -signal.SIGKILL
    assert home.file.read_text() == MINE
    assert len(home.beside()) == 2  # the file that was to replace it

    home.install()
    assert (home.ours(), home.beside()) == (29, ["settings.json"])
    home.uninstall()
    assert home.file.read_text() == MINE


INSTALL = "Home(Path(sys.argv[1])).install()"


def other_process(home: Home, code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(home, code), check=False, capture_output=True, text=True)


def command(home: Home, code: str) -> list[str]:
    tests = Path(__file__).parents[1]
    start = (
        f"import os, resource, sys\nfrom pathlib import Path\nsys.path.insert(0, {str(tests)!r})\n"
        "from clients.test_claude_install import *\n"
    )
    return [sys.executable, "-c", start + code, str(home.state.parent)]


def test_many_installers_at_once_make_one_install(home: Home) -> None:
    home.write(MINE)
    started = [subprocess.Popen(command(home, INSTALL), stderr=subprocess.PIPE) for _ in range(6)]
    ended = [(process.communicate()[1], process.returncode) for process in started]
    assert ended == [(b"", 0)] * 6
    assert (home.ours(), home.beside()) == (29, ["settings.json"])
    home.uninstall()
    assert home.file.read_text() == MINE


def test_an_installer_waits_for_another_and_then_gives_up(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_settings_file, "LOCK_TIMEOUT", 0.05)
    with (
        install_lock(home.state),
        pytest.raises(InstallError, match=r"another installer holds .*/lock; nothing was changed"),
    ):
        home.install()
    home.install()


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
    monkeypatch.setattr("fairlead.clients._programs.TIMEOUT", 2 if expected else 0.5)
    program(tmp_path / "claude", f"#!/bin/sh\n{script}\n")
    assert client_version(str(tmp_path)) == expected
    assert client_version(str(tmp_path / "nowhere")) is None


def test_git_says_whether_a_file_is_ignored(tmp_path: Path) -> None:
    file = tmp_path / ".claude/settings.local.json"
    assert is_git_ignored(file) is None
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    assert is_git_ignored(file) is False
    (tmp_path / ".gitignore").write_text("*.local.json\n")
    assert is_git_ignored(file) is True


# -- status --------------------------------------------------------------------------------------------


@pytest.fixture
def launcher(tmp_path: Path) -> Launcher:
    return Launcher(str(program(tmp_path / "bin/fairlead-hook")), str(program(tmp_path / "bin/python")))


def test_status_says_how_far_it_is(home: Home, launcher: Launcher) -> None:
    newest, oldest = (2, 1, 325), (2, 1, 197)

    def state(version: tuple[int, int, int] = newest) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
        said = status("user", home.file, launcher, version)
        return said.state, said.missing, said.differences

    assert state() == ("not installed", (), ())
    home.install(InstallRequest(launcher, oldest))
    assert state(oldest) == ("installed", (), ())
    assert state() == ("partial", ("PreModelSwitch", "PostModelSwitch", "DirectoryAdded"), ())
    home.install(InstallRequest(launcher, newest))
    assert state() == ("installed", (), ())
    home.file.write_text(home.file.read_text().replace('"timeout": 3600', '"timeout": 600'))
    assert state() == ("outdated", (), ("21 events: timeout is 600, and would be 3600",))
    assert status("user", home.file, None, newest).differences == state()[2]
    assert state(oldest)[2][-1].startswith("DirectoryAdded: this client does not know it")
    Path(launcher.hook).chmod(0o644)
    assert state()[0] == "broken"
    assert state()[2][0] == f"{launcher.hook} does not exist or cannot be started"
    home.write("{,}")
    assert state() == (
        "broken",
        (),
        (f"{home.file}:1:2: not valid JSON: expected a string in double quotes, closed on its line, got ','",),
    )


def test_status_notes_what_keeps_hooks_from_running(home: Home, launcher: Launcher) -> None:
    rival = {"hooks": [{"type": "command", "command": "conclaude Hooks Stop"}]}
    ours = {"matcher": "Bash", "hooks": [{"type": "command", "command": "fairlead PreToolUse"}]}
    home.write(json.dumps({"disableAllHooks": True, "hooks": {"Stop": [rival], "PreToolUse": [ours]}}))
    assert status("user", home.file, launcher, None).notes == (
        "disableAllHooks is set, so the client runs no hooks at all",
        "PreToolUse: only for the matcher 'Bash'",
        "conclaude has hooks here too, which decide the same events; install with --replace conclaude to take over",
    )


# -- the real client -----------------------------------------------------------------------------------


def test_the_real_client_accepts_all_of_it_and_starts_the_launcher(
    client: Path,  # noqa: F811
    home: Home,
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    launcher = Launcher(str(program(tmp_path / "bin/fairlead-hook", f'#!/bin/sh\necho "$@" >> {log}\n')), "/x/python")
    home.write(MINE)
    home.install(InstallRequest(launcher, (2, 1, 325), also=frozenset({"MessageDisplay"}), stay="wake"))
    installed = json.loads(home.file.read_text())

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
    home: Home,
    tmp_path: Path,
) -> None:
    home.install()

    done = sealed.run(
        sealed.claude(client, "Go."),
        folder=tmp_path,
        script=[[bash("touch ran")], "I may not."],
        settings=json.loads(home.file.read_text()),
    )

    assert (done.exit_code, done.stdout) == (0, "I may not.\n")  # the prompt itself went through
    assert 'blocking because onFailure is "block"' in done.requests[-1].results[0]
    assert not (tmp_path / "project/ran").exists()
