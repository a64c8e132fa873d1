"""The membership file: private, complete or not there, and never printed. Names and URLs in it are valid."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.team import (
    Anchor,
    BadTeamSettings,
    Membership,
    NotInTeam,
    RelaySource,
    check_host_name,
    check_relay_url,
    default_host_name,
    load_membership,
    membership_file,
    new_host_id,
    prepare_hello,
    redact_url,
    remove_membership,
    save_membership,
    update_membership,
)
from fairlead.team._membership import MAX_BOOTS
from fairlead.team._names import secrets_of


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRLEAD_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def membership(**changes: object) -> Membership:
    made = Membership(
        team="7" * 32,
        host=new_host_id(),
        name="laptop",
        relay=RelaySource(url="postgresql://me:s3cret@db/team"),
        private_key=bytes(range(32)),
        anchors=(Anchor(host="a", name="first", key=b"\0\xff" * 16),),
    )
    return msgspec.structs.replace(made, **changes)


def mode(path: str | Path) -> int:
    return stat.S_IMODE(Path(path).stat().st_mode)


def test_without_a_file_the_host_is_in_no_team() -> None:
    assert load_membership() is None
    assert remove_membership() is False
    with pytest.raises(NotInTeam, match="this host is in no team; run: fairlead team join URL"):
        prepare_hello("1")


def test_what_was_saved_is_loaded_complete() -> None:
    saved = membership()
    save_membership(saved)
    assert load_membership() == saved
    assert saved.key.secret == saved.private_key


def test_a_host_that_began_to_join_is_in_no_team_yet_and_keeps_its_identity() -> None:
    begun = membership(team="")
    save_membership(begun)
    assert load_membership() is None
    _, hello = prepare_hello("1")
    assert (hello.team, hello.host) == ("", begun.host)
    assert load_membership(unfinished=True) == msgspec.structs.replace(begun, boots=(hello.boot,))


def test_only_the_user_can_read_the_file_and_its_folder_whatever_the_umask() -> None:
    before = os.umask(0)
    try:
        save_membership(membership())
    finally:
        os.umask(before)
    assert [mode(membership_file()), mode(Path(membership_file()).parent)] == [0o600, 0o700]


def test_a_file_that_others_can_read_is_refused() -> None:
    save_membership(membership())
    Path(membership_file()).chmod(0o640)
    with pytest.raises(BadTeamSettings, match="other users can read it; run: chmod 600"):
        load_membership()


def test_removal_leaves_no_key_behind() -> None:
    save_membership(membership())
    left_over = Path(f"{membership_file()}.123.tmp")
    left_over.write_text("a key")
    assert remove_membership() is True
    assert load_membership() is None
    assert not left_over.exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is damaged: Input data was truncated; restore it from a backup, or delete it and join the team again"),
        (b'{"format": 1, "team"', "is damaged: "),
        (b"\xff\xfe", "is damaged: "),
        (b'{"format": 1}', r"is damaged: Object missing required field `team`"),
        (b'{"format": 2}', "was written by a newer Fairlead; upgrade Fairlead"),
    ],
)
def test_a_broken_file_is_an_error_that_says_what_to_do(content: bytes, message: str) -> None:
    save_membership(membership())
    Path(membership_file()).write_bytes(content)
    with pytest.raises(BadTeamSettings, match=message):
        load_membership()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "Laptop"}, "the host name 'Laptop' is invalid"),
        ({"private_key": b"short"}, "it has no complete identity"),
        ({"host": ""}, "it has no complete identity"),
        ({"relay": RelaySource()}, "it does not say where the relay is"),
        ({"relay": RelaySource(url="postgresql://x", service="y")}, "it does not say where the relay is"),
    ],
)
def test_a_file_with_invalid_values_is_an_error(changes: dict[str, object], message: str) -> None:
    save_membership(membership(**changes))
    with pytest.raises(BadTeamSettings, match=message):
        load_membership()


def test_a_folder_that_cannot_be_used_is_an_error(home: Path) -> None:
    home.mkdir()
    (home / "team").write_text("a file")
    with pytest.raises(BadTeamSettings, match="team cannot be used: "):
        save_membership(membership())


def test_neither_the_key_nor_the_password_is_in_the_repr() -> None:
    text = repr(membership())
    assert "laptop" in text
    assert "s3cret" not in text
    assert "x1f" not in text


# -- crashes and other processes --------------------------------------------------------------------------

_SAVE_FOR_EVER = """
import msgspec, sys
from fairlead.team import update_membership
number = 0
while True:
    number += 1
    update_membership(lambda old: msgspec.structs.replace(old, joined=float(number), boots=("x" * 64,) * (number % 50)))
    print(number, flush=True)
"""


@pytest.mark.parametrize("round_", range(5))
def test_a_process_that_is_killed_while_it_saves_leaves_a_complete_file(round_: int) -> None:
    save_membership(membership())
    process = subprocess.Popen([sys.executable, "-c", _SAVE_FOR_EVER], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    for _ in range(3 + round_):
        last = process.stdout.readline()
    os.kill(process.pid, signal.SIGKILL)
    rest = process.stdout.read().split()
    process.wait()
    process.stdout.close()
    acknowledged = float(rest[-1] if rest else last)
    found = load_membership()
    assert found is not None
    assert found.joined in {acknowledged, acknowledged + 1}
    save_membership(found)
    assert sorted(os.listdir(Path(membership_file()).parent)) == ["lock", "membership.json"]  # noqa: PTH208 - names


def test_changes_of_several_threads_are_all_kept() -> None:
    save_membership(membership())
    threads = [threading.Thread(target=lambda: [prepare_hello("1") for _ in range(5)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = load_membership()
    assert found is not None
    assert len(set(found.boots)) == 20


def test_a_nonce_is_on_the_disk_before_it_is_used() -> None:
    save_membership(membership(boots=("old",)))
    changed, hello = prepare_hello("1.2")
    assert load_membership() == changed
    assert changed.boots == ("old", hello.boot)
    assert (hello.known_boots, hello.version, hello.name) == (("old",), "1.2", "laptop")
    assert hello.key == changed.key.public
    assert hello.boot not in prepare_hello("1")[1].boot


def test_the_oldest_nonces_are_forgotten() -> None:
    save_membership(membership(boots=tuple(str(number) for number in range(MAX_BOOTS))))
    changed, hello = prepare_hello("1")
    assert (len(changed.boots), changed.boots[0], changed.boots[-1]) == (MAX_BOOTS, "1", hello.boot)


def test_a_change_without_an_effect_writes_nothing() -> None:
    save_membership(membership())
    before = Path(membership_file()).stat().st_ino
    update_membership(lambda old: old)
    assert Path(membership_file()).stat().st_ino == before


# -- where the URL comes from -----------------------------------------------------------------------------


def test_the_url_comes_from_the_membership_a_file_or_a_service(tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_text("# the hub\n\n  postgresql://me:s3cret@db/team \n")
    sources = [
        RelaySource(url="postgresql://me:s3cret@db/team"),
        RelaySource(file=str(file)),
        RelaySource(service="my hub"),
    ]
    assert [(one.read_url(), one.describe()) for one in sources] == [
        ("postgresql://me:s3cret@db/team", "postgresql://me:***@db/team"),
        ("postgresql://me:s3cret@db/team", f"the URL in {file}"),
        ("postgresql:///?service=my%20hub", "the service my hub"),
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "which holds the URL of the relay, cannot be read: No such file or directory"),
        (b"", "must hold one line, the URL of the relay; it has 0"),
        (b"postgresql://a\npostgresql://b", "must hold one line, the URL of the relay; it has 2"),
        (b"\xff", "cannot be read: it is not UTF-8"),
        (b"me:s3cret@host", r"'me:\*\*\*@host' is not the URL of a relay"),
    ],
)
def test_a_file_without_a_url_is_an_error(tmp_path: Path, content: bytes | None, message: str) -> None:
    file = tmp_path / "url"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(BadTeamSettings, match=message):
        RelaySource(file=str(file)).read_url()


@pytest.mark.parametrize("url", ["", "mysql://x", "host/database", "postgresql:", "http://[x"])
def test_what_is_not_the_url_of_a_relay_is_refused(url: str) -> None:
    with pytest.raises(BadTeamSettings, match="is not the URL of a relay; use postgresql://USER@HOST/DATABASE"):
        check_relay_url(url)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://host/db", "postgresql://host/db"),
        ("postgresql://me@host/db", "postgresql://me@host/db"),
        ("postgresql://me:pw@host/db?sslmode=require", "postgresql://me:***@host/db?sslmode=require"),
        ("postgresql://me:p@w@host/db", "postgresql://me:***@host/db"),
        ("postgresql://me:p/w?#@host/db", "postgresql://me:***@host/db"),
        ("postgresql://:pw@host/db", "postgresql://:***@host/db"),
        ("postgresql://host/db?user=me&password=pw&x=1", "postgresql://host/db?user=me&password=***&x=1"),
        ("postgresql://host/db?sslpassword=pw", "postgresql://host/db?sslpassword=***"),
        ("host=x password=pw user=me", "host=x password=*** user=me"),
        ("host=x password = 'p w' user=me", "host=x password = *** user=me"),
        ("me:pw@host", "me:***@host"),
    ],
)
def test_a_url_is_shown_without_its_password(url: str, shown: str) -> None:
    assert redact_url(url) == shown


@given(st.text(alphabet=st.characters(min_codepoint=33, max_codepoint=126), min_size=6, max_size=20))
def test_no_password_is_ever_shown(password: str) -> None:
    url = f"postgresql://me:{password}@host/db"
    assert redact_url(url) == "postgresql://me:***@host/db"
    assert password in secrets_of(url)


# -- names ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "a host needs a name; give one with --name"),
        ("a" * 32, "has 32 characters; at most 31 are allowed"),
        ("1st", "the host name '1st' is invalid: it starts with a letter a-z"),
        ("Big", "the host name 'Big' is invalid"),
        ("a_b", "is invalid"),
        ("a@b", "is invalid"),
        ("a\n", "is invalid"),
        ("ä", "is invalid"),
    ],
)
def test_an_invalid_host_name_is_an_error_that_says_why(name: str, message: str) -> None:
    with pytest.raises(BadTeamSettings, match=message):
        check_host_name(name)


@pytest.mark.parametrize(
    ("machine", "name"),
    [
        ("Laptop.local", "laptop"),
        ("build_server-1", "build-server-1"),
        ("10.0.0.1", "host-10"),
        ("--", "host"),
        ("ÄÖ", "host"),
        ("x" * 80, "x" * 31),
    ],
)
def test_the_default_name_is_that_of_the_machine(machine: str, name: str) -> None:
    assert default_host_name(machine) == name


@given(st.text(max_size=60))
def test_every_default_name_is_valid(machine: str) -> None:
    name = default_host_name(machine)
    assert check_host_name(name) == name
