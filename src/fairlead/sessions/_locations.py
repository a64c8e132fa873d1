"""Finds the project, worktree and branch of a folder in git's files, without starting a process.

`.git` is the git folder, or a file with the path of the git folder. In the git folder of a worktree, the file
`commondir` names the folder that all worktrees share.
"""

from __future__ import annotations

import os
from typing import NamedTuple

import msgspec

_MAX_PARENTS = 40
_MAX_FILE_SIZE = 4096


class Location(msgspec.Struct, frozen=True):
    """The place in which a session works. Outside of a repository, both paths are the folder itself."""

    project: str
    """The path of the project, which is the same for all its worktrees."""
    worktree: str
    """The path of the worktree, the folder with the checked-out files."""
    branch: str = ""
    """The branch, or a short commit id if the head is detached; "" if this is not a git repository."""


class GitFolders(NamedTuple):
    """The folders of a worktree of a repository."""

    worktree: str
    """The folder with the checked-out files."""
    own: str
    """The git folder of this worktree."""
    common: str
    """The git folder that all worktrees share, with the configuration. In the main worktree it is the same as `own`."""


def unknown_location(folder: str) -> Location:
    """Return the location of a folder that is in no repository, or that was not looked up: the folder itself."""
    return Location(folder, folder)


def find_location(folder: str) -> Location:
    """Return the location of a folder, found on the disk. Without a readable repository, it is the folder itself."""
    folders = find_git_folders(folder)
    if folders is None:
        return unknown_location(folder)
    project = folders.worktree
    if folders.common != folders.own:
        project = os.path.dirname(folders.common) if folders.common.endswith("/.git") else folders.common
    return Location(project, folders.worktree, _read_branch(folders.own))


def find_git_folders(folder: str) -> GitFolders | None:
    """Return the git folders of the repository that a folder is in.

    Return `None` if it is in none, if git's files cannot be read, or if the path is not absolute.
    """
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
    """Return the project of a folder: the path of its repository, or the folder itself if it is in none; "" for ""."""
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
