"""Which policy files apply in a folder, how they are cached, and what happens when one breaks."""

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

from fairlead.errors import NeedsThread
from fairlead.paths import config_folder
from fairlead.policy.config._disk_cache import CachedPolicy, stamp_of
from fairlead.policy.config._errors import PolicyError
from fairlead.policy.config._files import LoadedPolicy, find_layers, load_policy, policy_cache_folder
from fairlead.policy.config._lookup import NAMES
from fairlead.policy.config._merge import merge_layers
from fairlead.policy.config._reader import policy_from, read_document
from fairlead.policy.config._types import Command, Layer, PermissionRequest, Policy, PreToolUse, Stop

ENDLESS = "stop: {infinite: true}\n"
BROKEN = "stop: {infinite: maybe, rounds: many}\n"


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


def load_later(folder: Path) -> LoadedPolicy:
    """Load at a time when the file is old enough for its stamp to be trusted."""
    return load_policy(str(folder), clock=in_an_hour)


def entry_of(home: Path) -> Path:
    (entry,) = (home / "policies").iterdir()
    return entry


def error_of(folder: Path) -> str:
    with pytest.raises(PolicyError) as caught:
        load_policy(str(folder))
    with pytest.raises(PolicyError) as again:
        find_layers(str(folder))
    assert str(again.value) == str(caught.value)
    return str(caught.value)


# -- finding -------------------------------------------------------------------------------------------


def test_without_a_file_there_is_no_layer(project: Path) -> None:
    assert find_layers(str(project)) == ()
    assert load_policy(str(project)) == LoadedPolicy()


def test_all_files_upward_apply_the_nearest_first(project: Path) -> None:
    far = write(project, ENDLESS)
    near = write(project / "a", "stop: {infiniteMessage: nearer}\n")
    (project / "a/b/c").mkdir(parents=True)
    layers = find_layers(str(project / "a/b/c"))
    assert [layer.file for layer in layers] == [str(near), str(far)]
    assert [layer.folder for layer in layers] == [str(project / "a"), str(project)]
    assert layers[0].policy == Policy(stop=Stop(infinite_message="nearer"))
    assert merge_layers(layers).stop == Stop(infinite=True, infinite_message="nearer")


def test_in_one_folder_the_first_name_applies(project: Path) -> None:
    for name in reversed(NAMES):
        file = write(project, ENDLESS, name)
        assert [layer.file for layer in find_layers(str(project))] == [str(file)]


@pytest.mark.parametrize("parents", [11, 12, 40])
def test_no_number_of_folders_is_too_deep(project: Path, parents: int) -> None:
    write(project, ENDLESS)
    deep = project.joinpath(*"ab" * (parents // 2), *"c" * (parents % 2))
    deep.mkdir(parents=True)
    assert len(find_layers(str(deep))) == 1


def test_of_a_deleted_folder_those_above_are_searched(project: Path) -> None:
    write(project, ENDLESS)
    assert len(find_layers(str(project / "gone/long/ago"))) == 1


def test_the_user_wide_file_comes_last_and_is_relative_to_the_projects_folder(project: Path, home: Path) -> None:
    write(home, ENDLESS, "config.yaml")
    write(project, "stop: {}\n")
    (project / "src").mkdir()
    near, far = find_layers(str(project / "src"))
    assert (near.file, near.folder) == (str(project / ".fairlead.yaml"), str(project))
    assert (far.file, far.folder) == (str(home / "config.yaml"), str(project))


def test_without_a_project_file_the_user_wide_one_is_relative_to_the_folder(project: Path, home: Path) -> None:
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
    assert error_of(project) == f"{file}: cannot be read: not a regular file; replace it with a text file"


def test_a_broken_link(project: Path) -> None:
    file = project / ".fairlead.yaml"
    file.symlink_to(project / "gone.yaml")
    assert error_of(project) == f"{file}: is a broken link; remove it, or create the file that it points to"


def test_a_file_without_permission() -> None:
    """A child process without privileges reads it, since root may read everything."""
    code = (
        "import os, sys\n"
        "from fairlead.policy.config._files import load_policy\n"
        "from fairlead.policy.config._errors import PolicyError\n"
        "if os.geteuid() == 0: os.setresuid(65534, 65534, 65534)\n"
        "try: load_policy(sys.argv[1])\n"
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


def test_a_file_that_is_not_text(project: Path) -> None:
    file = project / ".fairlead.yaml"
    file.write_bytes(b"stop: \xff\xfe")
    assert error_of(project) == f"{file}:1:7: the byte 0xFF is not UTF-8; save the file as UTF-8"


def test_a_path_that_cannot_be_one(project: Path) -> None:
    assert "cannot be read: " in error_of(project / "a\0b")


def test_the_mistakes_of_all_files_are_reported_at_once(project: Path, home: Path) -> None:
    near, far = write(project, "stop: 1\n"), write(home, "stop: 2\n", "config.yaml")
    assert [line.split(": ")[0] for line in error_of(project).splitlines()] == [f"{near}:1:7", f"{far}:1:7"]


# -- the last good version -----------------------------------------------------------------------------


def test_a_file_that_was_read_once_comes_from_the_cache(project: Path) -> None:
    """A new process does without YAML."""
    write(project, ENDLESS)
    first = load_later(project)
    code = (
        "import sys; from fairlead.policy.config._files import load_policy; loaded = load_policy(sys.argv[1])\n"
        "print(loaded.layers[0].policy.stop.infinite, loaded.warnings, 'yaml' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(project)], capture_output=True, text=True, check=True)
    assert done.stdout == "True () False\n"
    assert load_policy(str(project)) == first
    assert first.layers == find_layers(str(project))


def test_in_one_process_an_unchanged_file_is_the_same_layer(project: Path) -> None:
    write(project, ENDLESS)
    load_later(project)
    (once,), (again,) = load_policy(str(project)).layers, load_policy(str(project)).layers
    assert once is again
    write(project, "stop: {infinite: false}\n")
    assert load_policy(str(project)).layers != (once,)


def test_the_cache_is_for_the_user_alone(project: Path, home: Path) -> None:
    write(project, ENDLESS)
    load_policy(str(project))
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
    load_policy(str(project), clock=lambda: file.stat().st_ctime_ns)
    assert msgspec.msgpack.decode(entry_of(home).read_bytes(), type=CachedPolicy).stamp == ()
    load_later(project)
    assert msgspec.msgpack.decode(entry_of(home).read_bytes(), type=CachedPolicy).stamp == stamp_of(file.stat())


def test_with_cached_only_no_file_is_read(project: Path) -> None:
    assert load_policy(str(project), may_wait=False) == LoadedPolicy()
    file = write(project, ENDLESS)
    with pytest.raises(NeedsThread):
        load_policy(str(project), may_wait=False)
    load_later(project)
    held = load_later(project)
    assert load_policy(str(project), may_wait=False) == held
    write(project, "stop: {maxBlocks: 2}\n")
    with pytest.raises(NeedsThread):
        load_policy(str(project), may_wait=False)
    file.unlink()
    with pytest.raises(NeedsThread):
        load_policy(str(project), may_wait=False)


def test_of_a_broken_file_the_last_good_version_is_used_with_a_warning(project: Path) -> None:
    file = write(project, ENDLESS)
    good = load_policy(str(project))
    write(project, BROKEN)
    loaded = load_policy(str(project))
    assert loaded.layers == good.layers
    assert loaded.warnings == (
        (
            f'{file}:1:18: the text "maybe" for `stop.infinite`; expected true or false. There is 1 more mistake. '
            "The last good version of the file is used until you fix it; `fairlead validate` lists all mistakes."
        ),
    )
    assert load_policy(str(project)) == loaded


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("stopp: {}\n", "; did you mean `stop`? The last good version of the file is used until"),
        ("a: 1\nb: 1\nc: 1\n", ", … There are 2 more mistakes. The last good version of the file is used until"),
        ("stop: {infinite: 1}\n", "; expected true or false. The last good version of the file is used until"),
    ],
)
def test_the_warning_is_made_of_whole_sentences(project: Path, text: str, expected: str) -> None:
    write(project, ENDLESS)
    load_policy(str(project))
    write(project, text)
    (warning,) = load_policy(str(project)).warnings
    assert expected in warning


def test_a_file_that_cannot_be_read_any_more_has_its_last_good_version(project: Path) -> None:
    file = write(project, ENDLESS)
    good = load_policy(str(project))
    file.unlink()
    file.mkdir()
    loaded = load_policy(str(project))
    assert loaded.layers == good.layers
    assert loaded.warnings[0].startswith(f"{file}: is a folder; ")


def test_a_broken_file_that_never_was_good_is_an_error(project: Path) -> None:
    write(project, BROKEN)
    assert len(error_of(project).splitlines()) == 2


def test_a_fixed_file_is_used_without_a_warning(project: Path) -> None:
    write(project, ENDLESS)
    load_policy(str(project))
    write(project, BROKEN)
    load_policy(str(project))
    write(project, "stop: {infiniteMessage: fixed}\n")
    loaded = load_policy(str(project))
    assert loaded.warnings == ()
    assert loaded.layers[0].policy.stop.infinite_message == "fixed"


def test_each_file_has_its_own_last_good_version(project: Path, home: Path) -> None:
    write(home, ENDLESS, "config.yaml")
    write(project, "stop: {maxBlocks: 1}\n")
    load_policy(str(project))
    write(project, BROKEN)
    loaded = load_policy(str(project))
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
def test_an_entry_that_cannot_be_trusted_is_ignored(project: Path, home: Path, spoil: Any) -> None:
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
    loaded = load_policy(str(project))
    assert loaded.layers[0].policy.stop.infinite
    assert loaded.warnings == (
        (
            f"{home}/policies: cannot cache the policy: File exists; "
            "it is read again each time, and has no last good version"
        ),
    )


def test_no_temporary_file_is_left_behind(project: Path, home: Path) -> None:
    """Neither when it becomes the entry, nor when that fails."""
    write(project, ENDLESS)
    load_policy(str(project))
    load_policy(str(project))
    entry = entry_of(home)
    entry.unlink()
    entry.mkdir()
    assert len(load_policy(str(project)).warnings) == 1
    assert entry_of(home) == entry


# -- merging several files ----------------------------------------------------------------------------


def layer(text: str) -> Layer:
    document = read_document(text, "f")
    return Layer("f", "/", policy_from(document), document)


def test_lists_are_concatenated_nearest_first() -> None:
    near = layer("preToolUse: {uneditableFiles: [a, b]}")
    far = layer("preToolUse: {uneditableFiles: [c], preventAdditions: [d]}")
    found = merge_layers([near, far]).pre_tool_use
    assert found.uneditable_files == ["a", "b", "c"]
    assert found.prevent_additions == ["d"]


def test_mappings_are_merged_key_by_key() -> None:
    near = layer('subagentStop: {commands: {b: [{run: near}], "*": [{run: all}]}}')
    far = layer("subagentStop: {commands: {a: [{run: other}], b: [{run: far}]}}")
    assert merge_layers([near, far]).subagent_stop.commands == {
        "b": [Command(run="near"), Command(run="far")],
        "*": [Command(run="all")],
        "a": [Command(run="other")],
    }


def test_of_other_values_the_nearest_wins() -> None:
    near = layer("stop: {infinite: false, maxBlocks: 3}\npermissionRequest: {default: deny}")
    far = layer("stop: {infinite: true, maxBlocks: 9}\npermissionRequest: {default: allow, deny: [Bash]}")
    found = merge_layers([near, far])
    assert (found.stop.infinite, found.stop.max_blocks) == (False, 3)
    assert found.permission_request == PermissionRequest(default="deny", deny=["Bash"])


def test_each_value_of_mail_comes_from_the_nearest_file_that_sets_it() -> None:
    near, middle, far = layer("mail: {wait: 60}"), layer("mail: {stay: no}"), layer("mail: {stay: wake, wait: 9}")
    found = merge_layers([near, middle, far]).mail
    assert (found.stay, found.wait) == ("no", 60)


def test_a_default_does_not_hide_a_value_of_a_file_further_away() -> None:
    near = layer("stop: {maxBlocks: 3}\npreToolUse:\n")
    far = layer("stop: {infinite: true}\npreToolUse: {preventRootAdditions: false}")
    found = merge_layers([near, far])
    assert (found.stop.infinite, found.stop.max_blocks) == (True, 3)
    assert found.pre_tool_use.prevent_root_additions is False


def test_a_layer_without_a_document_sets_what_differs_from_the_defaults() -> None:
    near = Layer("f", "/", Policy(stop=Stop(max_blocks=3), pre_tool_use=PreToolUse(uneditable_files=["a"])))
    far = layer("stop: {infinite: true}\npreToolUse: {uneditableFiles: [b]}")
    found = merge_layers([near, far])
    assert found.stop == Stop(max_blocks=3, infinite=True)
    assert found.pre_tool_use.uneditable_files == ["a", "b"]


def test_no_layer_is_the_default_and_one_is_itself() -> None:
    assert merge_layers([]) == Policy()
    one = layer("stop: {infinite: true}\nuserPromptSubmit: {contextRules: [{pattern: a, prompt: b}]}")
    assert merge_layers([one]) == one.policy
