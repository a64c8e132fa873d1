"""The project, worktree and branch of a folder, from the files of git.

No process is started: `.git` is git's folder, or a file with its path. In the git folder of a worktree, the file
`commondir` names the folder that all worktrees share.
"""

from __future__ import annotations

import os
from typing import NamedTuple

import msgspec

_MAX_PARENTS = 40
_MAX_FILE_SIZE = 4096


class Location(msgspec.Struct, frozen=True):
    """Where a session works."""

    project: str
    """The folder of the project, which all its worktrees share."""
    worktree: str
    """The folder that is checked out."""
    branch: str = ""
    """A short commit id if the head is detached; "" if this is not a git repository."""


class GitFolders(NamedTuple):
    """The folders of a repository."""

    worktree: str
    """The folder that is checked out."""
    own: str
    """Git's folder of this worktree."""
    common: str
    """Git's folder that all worktrees share, with the configuration; the same if there is one worktree."""


def unknown_location(folder: str) -> Location:
    """Return the location of a folder that was not looked up: the folder itself."""
    return Location(folder, folder)


def find_location(folder: str) -> Location:
    """Look up the location of a folder. A folder whose files of git cannot be read counts as no repository."""
    folders = find_git_folders(folder)
    if folders is None:
        return unknown_location(folder)
    project = folders.worktree
    if folders.common != folders.own:
        project = os.path.dirname(folders.common) if folders.common.endswith("/.git") else folders.common
    return Location(project, folders.worktree, _read_branch(folders.own))


def find_git_folders(folder: str) -> GitFolders | None:
    """Look up the repository of a folder. A folder whose files of git cannot be read counts as no repository."""
    if not folder.startswith("/"):
        return None
    current = os.path.normpath(folder)
    for _ in range(_MAX_PARENTS):
        if (folders := _read_git_folders(current)) is not None:
            return folders
        parent = os.path.dirname(current)
        if parent == current:
            break
        current = parent
    return None


def project_of(folder: str) -> str:
    """Return the project of a folder: its repository, for any worktree or subfolder, or else the folder itself."""
    return find_location(folder).project if folder else ""


def _read_git_folders(folder: str) -> GitFolders | None:
    entry = f"{folder}/.git"
    if os.path.isdir(entry):
        return GitFolders(folder, entry, entry) if os.path.isfile(f"{entry}/HEAD") else None
    content = _read(entry)
    if not content.startswith("gitdir:"):
        return None
    git_folder = os.path.normpath(os.path.join(folder, content.removeprefix("gitdir:").strip()))
    common = _read(f"{git_folder}/commondir")
    if not common:  # a submodule, or a repository whose git folder is elsewhere
        return GitFolders(folder, git_folder, git_folder)
    return GitFolders(folder, git_folder, os.path.normpath(os.path.join(git_folder, common)))


def _read_branch(git_folder: str) -> str:
    head = _read(f"{git_folder}/HEAD")
    return head.removeprefix("ref: ").removeprefix("refs/heads/") if head.startswith("ref: ") else head[:8]


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_MAX_FILE_SIZE).strip()
    except (OSError, ValueError):
        return ""
