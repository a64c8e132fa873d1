"""Which files hold in a folder, what is kept of them, and what happens when one breaks."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairlead.paths import config_folder
from fairlead.policy.config import _disk_cache as _last_good
from fairlead.policy.config._disk_cache import CachedPolicy
from fairlead.policy.config._files import NAMES, Loaded, NotCached, find_layers, load, policy_cache_folder
from fairlead.policy.config._merge import merged
from fairlead.policy.config._reader import PolicyError, policy_from, read_document
from fairlead.policy.config._types import Command, Layer, PermissionRequest, Policy, PreToolUse, Stop

ENDLESS = "stop: {infinite: true}\n"
BROKEN = "stop: {infinite: maybe, rounds: 3}\n"


def in_an_hour() -> int:
    return time.time_ns() + 3_600_000_000_000


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRLEAD_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def write(folder: Path, text: str, name: str = ".fairlead.yaml") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return folder / name


def load_later(folder: Path) -> Loaded:
    """Load when the file is no longer so young that its stamp is not trusted."""
    return load(str(folder), clock=in_an_hour)


def entry_of(home: Path) -> Path:
    (entry,) = (home / "policies").iterdir()
    return entry


def error_of(folder: Path) -> str:
    with pytest.raises(PolicyError) as caught:
        load(str(folder))
    with pytest.raises(PolicyError) as again:
        find_layers(str(folder))
    assert str(again.value) == str(caught.value)
    return str(caught.value)


# -- finding -------------------------------------------------------------------------------------------


def test_without_a_file_there_is_no_layer(project: Path) -> None:
    assert find_layers(str(project)) == ()
    assert load(str(project)) == Loaded()


def test_the_nearest_file_upward_is_the_one(project: Path) -> None:
    write(project, ENDLESS)
    write(project / "a", "stop: {infiniteMessage: nearer}\n")
    (project / "a/b/c").mkdir(parents=True)
    (layer,) = find_layers(str(project / "a/b/c"))
    assert layer.file == str(project / "a/.fairlead.yaml")
    assert layer.folder == str(project / "a")
    assert layer.policy == Policy(stop=Stop(infinite_message="nearer"))


def test_in_one_folder_the_first_name_is_the_one(project: Path) -> None:
    for name in reversed(NAMES):
        file = write(project, ENDLESS, name)
        assert [layer.file for layer in find_layers(str(project))] == [str(file)]


@pytest.mark.parametrize(("parents", "found"), [(11, 1), (12, 0)])
def test_twelve_folders_are_looked_at(project: Path, parents: int, found: int) -> None:
    write(project, ENDLESS)
    deep = project.joinpath(*"abcdefghijklm"[:parents])
    deep.mkdir(parents=True)
    assert len(find_layers(str(deep))) == found


def test_a_folder_that_is_gone_still_has_those_above(project: Path) -> None:
    write(project, ENDLESS)
    assert len(find_layers(str(project / "gone/long/ago"))) == 1


def test_the_user_wide_file_comes_last_and_counts_from_the_projects_folder(project: Path, home: Path) -> None:
    write(home, ENDLESS, "config.yaml")
    write(project, "stop: {}\n")
    (project / "src").mkdir()
    near, far = find_layers(str(project / "src"))
    assert (near.file, near.folder) == (str(project / ".fairlead.yaml"), str(project))
    assert (far.file, far.folder) == (str(home / "config.yaml"), str(project))


def test_without_a_project_file_the_user_wide_one_counts_from_here(project: Path, home: Path) -> None:
    write(home, ENDLESS, "config.yaml")
    (layer,) = find_layers(str(project))
    assert layer.folder == str(project)


def test_the_user_wide_folder_can_be_given(project: Path, tmp_path: Path) -> None:
    write(tmp_path / "elsewhere", ENDLESS, "config.yaml")
    (layer,) = find_layers(str(project), config_home=str(tmp_path / "elsewhere"))
    assert layer.file == str(tmp_path / "elsewhere/config.yaml")


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS has one folder for both")
def test_the_folders_are_those_of_the_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FAIRLEAD_HOME")
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", "relative/is/ignored")
    assert config_folder() == "/home/ada/.config/fairlead"
    assert policy_cache_folder() == "/home/ada/.local/state/fairlead/policies"
    monkeypatch.setenv("XDG_CONFIG_HOME", "/etc/xdg")
    monkeypatch.setenv("XDG_STATE_HOME", "/var/xdg")
    assert config_folder() == "/etc/xdg/fairlead"
    assert policy_cache_folder() == "/var/xdg/fairlead/policies"


# -- what cannot be read -------------------------------------------------------------------------------


def test_a_folder_in_place_of_the_file(project: Path) -> None:
    (project / ".fairlead.yaml").mkdir()
    file = project / ".fairlead.yaml"
    assert error_of(project) == f"{file}: is a folder; a policy is a file, so remove or rename the folder"


def test_a_named_pipe_in_place_of_the_file(project: Path) -> None:
    os.mkfifo(project / ".fairlead.yaml")
    file = project / ".fairlead.yaml"
    assert error_of(project) == f"{file}: cannot be read: no regular file; put a plain text file in its place"


def test_a_link_that_leads_nowhere(project: Path) -> None:
    file = project / ".fairlead.yaml"
    file.symlink_to(project / "gone.yaml")
    assert error_of(project) == f"{file}: is a link that leads nowhere; remove it, or put the file where it leads"


def test_a_file_without_permission() -> None:
    """A child without privileges looks, since root may read everything."""
    code = (
        "import os, sys\n"
        "from fairlead.policy.config._files import load\n"
        "from fairlead.policy.config._reader import PolicyError\n"
        "if os.geteuid() == 0: os.setresuid(65534, 65534, 65534)\n"
        "try: load(sys.argv[1])\n"
        "except PolicyError as error: print(error)\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        file = write(Path(folder), ENDLESS)
        file.chmod(0)
        env = {**os.environ, "FAIRLEAD_HOME": f"{folder}/home"}
        done = subprocess.run([sys.executable, "-c", code, folder], env=env, capture_output=True, text=True, check=True)
    advice = f"allow it with chmod u+r {file}, and u+x on its folders"
    assert done.stdout == f"{file}: cannot be read: permission denied; {advice}\n"


def test_a_file_that_is_no_text(project: Path) -> None:
    file = project / ".fairlead.yaml"
    file.write_bytes(b"stop: \xff\xfe")
    assert error_of(project) == f"{file}:1:7: the byte 0xFF is not UTF-8; save the file as UTF-8"


def test_a_path_that_cannot_be_one(project: Path) -> None:
    assert "cannot be read: " in error_of(project / "a\0b")


def test_the_mistakes_of_all_files_are_told_at_once(project: Path, home: Path) -> None:
    near, far = write(project, "stop: 1\n"), write(home, "stop: 2\n", "config.yaml")
    assert [line.split(": ")[0] for line in error_of(project).splitlines()] == [f"{near}:1:7", f"{far}:1:7"]


# -- the last good version -----------------------------------------------------------------------------


def test_what_was_read_once_is_taken_from_the_cache(project: Path) -> None:
    """A new process does without YAML."""
    write(project, ENDLESS)
    first = load_later(project)
    code = (
        "import sys; from fairlead.policy.config._files import load; loaded = load(sys.argv[1])\n"
        "print(loaded.layers[0].policy.stop.infinite, loaded.warnings, 'yaml' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(project)], capture_output=True, text=True, check=True)
    assert done.stdout == "True () False\n"
    assert load(str(project)) == first
    assert first.layers == find_layers(str(project))


def test_in_one_process_an_unchanged_file_is_the_same_layer(project: Path) -> None:
    write(project, ENDLESS)
    load_later(project)
    (once,), (again,) = load(str(project)).layers, load(str(project)).layers
    assert once is again
    write(project, "stop: {infinite: false}\n")
    assert load(str(project)).layers != (once,)


def test_the_cache_is_for_the_user_alone(project: Path, home: Path) -> None:
    write(project, ENDLESS)
    load(str(project))
    assert entry_of(home).stat().st_mode & 0o777 == 0o600
    assert (home / "policies").stat().st_mode & 0o777 == 0o700


def test_a_change_is_seen_at_once(project: Path) -> None:
    write(project, ENDLESS)
    assert load_later(project).layers[0].policy.stop.infinite
    write(project, ENDLESS.replace("true", "false"))
    assert not load_later(project).layers[0].policy.stop.infinite


def test_a_change_that_hides_its_time_and_size_is_seen(project: Path) -> None:
    file = write(project, "stop: {maxBlocks: 1}\n")
    before = file.stat()
    load_later(project)
    write(project, "stop: {maxBlocks: 2}\n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert load_later(project).layers[0].policy.stop.max_blocks == 2


def test_a_file_that_has_just_changed_is_read_again(project: Path, home: Path) -> None:
    """A second change within the same tick of the disk's clock would go unseen."""
    file = write(project, ENDLESS)
    load(str(project), clock=lambda: file.stat().st_ctime_ns)
    assert msgspec.msgpack.decode(entry_of(home).read_bytes(), type=CachedPolicy).stamp == ()
    load_later(project)
    assert msgspec.msgpack.decode(entry_of(home).read_bytes(), type=CachedPolicy).stamp == _last_good.stamp_of(
        file.stat()
    )


def test_whoever_must_not_wait_takes_only_what_is_held(project: Path) -> None:
    assert load(str(project), cached_only=True) == Loaded()
    file = write(project, ENDLESS)
    with pytest.raises(NotCached):
        load(str(project), cached_only=True)
    load_later(project)
    held = load_later(project)
    assert load(str(project), cached_only=True) == held
    write(project, "stop: {maxBlocks: 2}\n")
    with pytest.raises(NotCached):
        load(str(project), cached_only=True)
    file.unlink()
    with pytest.raises(NotCached):
        load(str(project), cached_only=True)


def test_of_a_broken_file_the_last_good_version_holds_with_a_warning(project: Path) -> None:
    file = write(project, ENDLESS)
    good = load(str(project))
    write(project, BROKEN)
    loaded = load(str(project))
    assert loaded.layers == good.layers
    assert loaded.warnings == (
        (
            f'{file}:1:18: the text "maybe" for `stop.infinite`; expected true or false. There is 1 more mistake. '
            "The file's last good version holds until a person mends it; `fairlead validate` lists all mistakes."
        ),
    )
    assert load(str(project)) == loaded


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("stopp: {}\n", "; did you mean `stop`? The file's last good version holds until"),
        ("a: 1\nb: 1\nc: 1\n", ", … There are 2 more mistakes. The file's last good version holds until"),
        ("stop: {infinite: 1}\n", "; expected true or false. The file's last good version holds until"),
    ],
)
def test_the_warning_is_made_of_whole_sentences(project: Path, text: str, told: str) -> None:
    write(project, ENDLESS)
    load(str(project))
    write(project, text)
    (warning,) = load(str(project)).warnings
    assert told in warning


def test_a_file_that_cannot_be_read_any_more_has_its_last_good_version(project: Path) -> None:
    file = write(project, ENDLESS)
    good = load(str(project))
    file.unlink()
    file.mkdir()
    loaded = load(str(project))
    assert loaded.layers == good.layers
    assert loaded.warnings[0].startswith(f"{file}: is a folder; ")


def test_a_broken_file_that_never_was_good_is_an_error(project: Path) -> None:
    write(project, BROKEN)
    assert len(error_of(project).splitlines()) == 2


def test_a_mended_file_holds_without_a_warning(project: Path) -> None:
    write(project, ENDLESS)
    load(str(project))
    write(project, BROKEN)
    load(str(project))
    write(project, "stop: {infiniteMessage: mended}\n")
    loaded = load(str(project))
    assert loaded.warnings == ()
    assert loaded.layers[0].policy.stop.infinite_message == "mended"


def test_each_file_has_its_own(project: Path, home: Path) -> None:
    write(home, ENDLESS, "config.yaml")
    write(project, "stop: {maxBlocks: 1}\n")
    load(str(project))
    write(project, BROKEN)
    loaded = load(str(project))
    assert [layer.policy.stop for layer in loaded.layers] == [Stop(max_blocks=1), Stop(infinite=True)]
    assert len(loaded.warnings) == 1


def spoil_bytes(entry: Path) -> None:
    entry.write_bytes(b"\xc1garbage")


def spoil_half(entry: Path) -> None:
    entry.write_bytes(entry.read_bytes()[:-5])


def spoil_version(entry: Path) -> None:
    kept = msgspec.msgpack.decode(entry.read_bytes(), type=CachedPolicy)
    entry.write_bytes(msgspec.msgpack.encode(msgspec.structs.replace(kept, version="0.0.0")))


def spoil_file(entry: Path) -> None:
    kept = msgspec.msgpack.decode(entry.read_bytes(), type=CachedPolicy)
    entry.write_bytes(msgspec.msgpack.encode(msgspec.structs.replace(kept, file="/another")))


def spoil_document(entry: Path) -> None:
    kept = msgspec.msgpack.decode(entry.read_bytes(), type=CachedPolicy)
    entry.write_bytes(msgspec.msgpack.encode(msgspec.structs.replace(kept, document={"stop": 1})))


def spoil_mode(entry: Path) -> None:
    entry.chmod(0o666)


def spoil_link(entry: Path) -> None:
    entry.rename(entry.with_suffix(".moved"))
    entry.symlink_to(entry.with_suffix(".moved"))


def spoil_owner(entry: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    os.chown(entry, 65534, 65534)


SPOILERS = [
    spoil_bytes,
    spoil_half,
    spoil_version,
    spoil_file,
    spoil_document,
    spoil_mode,
    spoil_link,
    spoil_owner,
]


@pytest.mark.parametrize("spoil", SPOILERS)
def test_an_entry_that_is_not_ours_to_trust_is_ignored(project: Path, home: Path, spoil: Any) -> None:
    file = write(project, ENDLESS)
    good = load_later(project)
    spoil(entry_of(home))
    assert load_later(project) == good
    for entry in (home / "policies").iterdir():
        entry.unlink()
    load_later(project)
    spoil(entry_of(home))
    file.write_text(BROKEN)
    with pytest.raises(PolicyError):
        load_later(project)


def test_a_cache_that_cannot_be_written_is_a_warning(project: Path, home: Path) -> None:
    (home / "policies").write_text("in the way")
    write(project, ENDLESS)
    loaded = load(str(project))
    assert loaded.layers[0].policy.stop.infinite
    assert loaded.warnings == (
        (
            f"{home}/policies: cannot keep the policy here: File exists; "
            "it is read anew each time, and has no last good version"
        ),
    )


def test_no_draft_stays_behind(project: Path, home: Path) -> None:
    """Neither when it becomes the entry, nor when it cannot."""
    write(project, ENDLESS)
    load(str(project))
    load(str(project))
    entry = entry_of(home)
    entry.unlink()
    entry.mkdir()
    assert len(load(str(project)).warnings) == 1
    assert entry_of(home) == entry


# -- several files as one ------------------------------------------------------------------------------


def layer(text: str) -> Layer:
    document = read_document(text, "f")
    return Layer("f", "/", policy_from(document), document)


def test_lists_add_up_nearest_first() -> None:
    near = layer("preToolUse: {uneditableFiles: [a, b]}")
    far = layer("preToolUse: {uneditableFiles: [c], preventAdditions: [d]}")
    found = merged([near, far]).pre_tool_use
    assert found.uneditable_files == ["a", "b", "c"]
    assert found.prevent_additions == ["d"]


def test_mappings_are_merged_key_by_key() -> None:
    near = layer('subagentStop: {commands: {b: [{run: near}], "*": [{run: all}]}}')
    far = layer("subagentStop: {commands: {a: [{run: other}], b: [{run: far}]}}")
    assert merged([near, far]).subagent_stop.commands == {
        "b": [Command(run="near"), Command(run="far")],
        "*": [Command(run="all")],
        "a": [Command(run="other")],
    }


def test_the_nearest_word_counts() -> None:
    near = layer("stop: {infinite: false, maxBlocks: 3}\npermissionRequest: {default: deny}")
    far = layer("stop: {infinite: true, maxBlocks: 9}\npermissionRequest: {default: allow, deny: [Bash]}")
    found = merged([near, far])
    assert (found.stop.infinite, found.stop.max_blocks) == (False, 3)
    assert found.permission_request == PermissionRequest(default="deny", deny=["Bash"])


def test_how_an_agent_stays_is_said_by_the_nearest_file_that_says_it() -> None:
    near, middle, far = layer("mail: {wait: 60}"), layer("mail: {stay: no}"), layer("mail: {stay: wake, wait: 9}")
    found = merged([near, middle, far]).mail
    assert (found.stay, found.wait) == ("no", 60)


def test_a_default_does_not_hide_what_is_said_further_away() -> None:
    near = layer("stop: {maxBlocks: 3}\npreToolUse:\n")
    far = layer("stop: {infinite: true}\npreToolUse: {preventRootAdditions: false}")
    found = merged([near, far])
    assert (found.stop.infinite, found.stop.max_blocks) == (True, 3)
    assert found.pre_tool_use.prevent_root_additions is False


def test_a_layer_made_by_hand_says_what_differs_from_the_defaults() -> None:
    near = Layer("f", "/", Policy(stop=Stop(max_blocks=3), pre_tool_use=PreToolUse(uneditable_files=["a"])))
    far = layer("stop: {infinite: true}\npreToolUse: {uneditableFiles: [b]}")
    found = merged([near, far])
    assert found.stop == Stop(max_blocks=3, infinite=True)
    assert found.pre_tool_use.uneditable_files == ["a", "b"]


def test_no_layer_is_the_default_and_one_is_itself() -> None:
    assert merged([]) == Policy()
    one = layer("stop: {infinite: true}\nuserPromptSubmit: {contextRules: [{pattern: a, prompt: b}]}")
    assert merged([one]) == one.policy
