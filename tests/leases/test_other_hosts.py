"""Leases of other hosts on the files of real checkouts, and the identity by which hosts recognize a repository."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import msgspec
import pytest

from fairlead.daemon.leases._remote import RemoteLease, RemoteLeases, now
from fairlead.daemon.leases._repository import find_checkout, identity_of_url
from fairlead.daemon.team.leases._rows import decode_row
from fairlead.errors import NeedsThread
from fairlead.leases import TeamGrant
from fairlead.policy import resolve
from fairlead.sessions import find_git_folders
from fairlead.team import TeamLease

if TYPE_CHECKING:
    from pathlib import Path

APP = "git.example.com/acme/app"


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e", *words], cwd=folder, check=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A clone."""
    folder = tmp_path / "app"
    (folder / "src").mkdir(parents=True)
    (folder / "src/a.py").write_text("")
    git(folder, "init", "-q")
    git(folder, "remote", "add", "origin", "git@git.example.com:acme/app.git")
    return folder


def held(*grants: tuple[str, str], project: str = APP, seconds: float = 60.0) -> RemoteLeases:
    """Leases of another host on paths and patterns, each with its folder."""
    leases = RemoteLeases()
    leases.replace(
        RemoteLease(
            grant=TeamGrant(id=str(number), project=project, path=path, folder=folder),
            host="beta",
            holder="fox",
            ends=now() + seconds,
        )
        for number, (path, folder) in enumerate(grants)
    )
    return leases


def covered(leases: RemoteLeases, path: Path) -> list[str]:
    return [lease.grant.title for lease in leases.covering(resolve(str(path), "/")) if lease.grant]


def project_of(folder: Path) -> tuple[str, str]:
    found = find_git_folders(str(folder))
    assert found is not None
    _, project, why = find_checkout(found.worktree, found.common)
    return project, why


@pytest.mark.parametrize(
    ("url", "identity"),
    [
        ("git@git.example.com:acme/app.git", APP),
        ("https://git.example.com/acme/app", APP),
        ("https://fox:secret@GIT.example.com:8443/acme/app.git/", APP),
        ("ssh://git@git.example.com:2222/acme/app.git", APP),
        ("git.example.com:acme/app", APP),
        ("https://git.example.com/acme/App", "git.example.com/acme/App"),
        ("/srv/git/app.git", ""),
        ("../app", ""),
        ("file:///srv/git/app.git", ""),
        ("http://localhost:3000/acme/app", ""),
        ("git@127.0.0.1:app", ""),
        ("https://git.example.com/", ""),
        ("https://fox:se@cret@git.example.com/acme/app", ""),
        ("git@git.example.com:acme/\x1b[2Japp", ""),
        ("ext::sh -c true", ""),
        ("x" * 400 + ":app", ""),
    ],
)
def test_the_urls_of_one_repository_have_one_identity_and_no_secret(url: str, identity: str) -> None:
    assert identity_of_url(url) == identity


def test_worktrees_and_subfolders_have_the_identity_of_their_repository(checkout: Path) -> None:
    git(checkout, "commit", "-q", "--allow-empty", "-m", "one")
    git(checkout, "worktree", "add", "-q", "../other")

    assert [project_of(folder) for folder in (checkout, checkout / "src", checkout.parent / "other")] == [(APP, "")] * 3


@pytest.mark.parametrize(
    ("config", "project", "why"),
    [
        ('[remote "origin"] url = "https://git.example.com/acme/app" # here', APP, ""),
        ('[Remote "upstream"]\n\tURL = https://git.example.com/acme/app ; only one', APP, ""),
        ('[remote "a"]\nurl = h1:x\n[remote "b"]\nurl = h2:x\n', "", "none of its remotes is origin"),
        ('[remote "origin"]\nurl = /srv/app\n', "", "the URL of origin is one of this machine"),
        ('[remote "origin"]\nurl = h1:x\n[fairlead]\n\tproject = acme app\n', "name:acme app", ""),
        ("[fairlead]\nproject = \x1b[2J", "", "is no plain text"),
        ("", "", "its repository has no remote"),
        ("\0\xff[[[remote\nurl = = =\n", "", "its repository has no remote"),
    ],
)
def test_the_identity_is_read_from_the_configuration_of_the_clone(
    checkout: Path, config: str, project: str, why: str
) -> None:
    (checkout / ".git/config").write_text(config)
    found = project_of(checkout)
    assert found[0] == project
    assert why in found[1]
    assert bool(found[0]) is not bool(found[1])


def test_a_configuration_that_is_no_file_blocks_nobody(checkout: Path) -> None:
    (checkout / ".git/config").unlink()
    os.mkfifo(checkout / ".git/config")
    assert project_of(checkout)[0] == ""


def test_a_lease_is_on_the_same_files_in_every_checkout_and_on_no_others(checkout: Path, tmp_path: Path) -> None:
    leases = held(("src/a.py", ""), ("*.md", "/docs/"))
    (tmp_path / "link").symlink_to(checkout)
    (tmp_path / "src").mkdir()

    assert covered(leases, checkout / "src/a.py") == ["src/a.py"]
    assert covered(leases, tmp_path / "link/src/a.py") == ["src/a.py"]
    assert covered(leases, checkout / "docs/deep/new.md") == ["docs/*.md"]
    for free in (checkout / "src/b.py", checkout / "new.md", tmp_path / "src/a.py"):
        assert covered(leases, free) == []
    assert covered(held(("src/a.py", ""), project="git.example.com/acme/other"), checkout / "src/a.py") == []
    assert covered(held(("", "")), checkout / "src/b.py") == ["."]
    assert covered(held(("src/a.py", ""), seconds=0.0), checkout / "src/a.py") == [], "its time is up"


def test_what_is_removed_with_a_folder_is_found_also_above_the_checkout(checkout: Path, tmp_path: Path) -> None:
    leases = held(("src/a.py", ""))
    leases.covering(resolve(str(checkout / "README"), "/"))  # the checkout is known

    for folder in (checkout / "src", checkout, tmp_path):
        assert [lease.path for lease in leases.below(resolve(str(folder), "/"))] == [str(checkout / "src/a.py")]


def test_nothing_is_read_from_the_disk_in_the_event_loop(checkout: Path) -> None:
    leases, target = held(("src/a.py", "")), resolve(str(checkout / "src/a.py"), "/")
    with pytest.raises(NeedsThread):
        leases.covering(target, may_wait=False)
    leases.covering(target)
    (checkout / ".git").rename(checkout / "gone")
    assert len(leases.covering(target, may_wait=False)) == 1
    leases.replace([])
    assert leases.covering(target, may_wait=False) == []


@pytest.mark.parametrize(
    "body",
    [
        {"path": "../../etc/passwd", "holder": "fox"},
        {"path": "/etc/passwd", "holder": "fox"},
        {"path": "src//../x", "holder": "fox"},
        {"path": "*.py", "folder": "src", "holder": "fox"},
        {"path": "*.py", "folder": "/../", "holder": "fox"},
        {"path": "!*.py", "folder": "/", "holder": "fox"},
        {"path": "a", "holder": "fox; rm -rf /"},
        {"path": "a", "holder": "fox", "why": "x" * 501},
        {"path": 1, "holder": "fox"},
        {"holder": "fox"},
        [],
    ],
)
def test_what_another_host_says_cannot_reach_outside_of_the_repository(body: object) -> None:
    row = TeamLease(id="1", host="h", project=APP, until=1.0, body=msgspec.json.encode(body))
    assert decode_row(row, "beta") is None


def test_a_pattern_that_is_none_harms_no_other_lease(checkout: Path) -> None:
    leases = held(("[z-a].py", "/"), ("src/a.py", ""))
    assert covered(leases, checkout / "src/a.py") == ["src/a.py"]
