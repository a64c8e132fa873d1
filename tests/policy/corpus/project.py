"""Builds the example project that every line of the corpus is judged in, and carried out in."""

from __future__ import annotations

import os
import subprocess
import tarfile
import zipfile
from io import BytesIO
from typing import TYPE_CHECKING

import msgspec
from policy.corpus.project_files import BUNDLE, EXECUTABLE, HOME, IGNORED, LOCKS, PROJECT

if TYPE_CHECKING:
    from pathlib import Path

GIT = ("git", "-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")


class Places(msgspec.Struct, frozen=True):
    """The folders that the placeholders of a line stand for."""

    root: str
    home: str
    venv: str
    site: str

    def fill(self, text: str) -> str:
        """Put the folders into a line."""
        for name in ("root", "home", "venv", "site"):
            text = text.replace(f"@{name.upper()}@", getattr(self, name))
        return text


def build_project(folder: Path, venv: str, site: str) -> Places:
    """Write the project, its home and its remote repository below a folder."""
    root, home = folder / "shop", folder / "home"
    _write(home, HOME)
    _write(root, {name: text for name, text in PROJECT.items() if name not in IGNORED})
    _history(root, folder / "origin.git")
    _write(root, {name: PROJECT[name] for name in IGNORED})
    for name in EXECUTABLE:
        (root / name).chmod(0o755)
    _archives(root / "tmp")
    (root / "tmp" / "link-env").symlink_to("../.env")
    (root / "tmp" / "secrets-link").symlink_to("../secrets")
    return Places(str(root), str(home), venv, site)


def _write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def _history(root: Path, origin: Path) -> None:
    """Make the branches, tags and stashes: some of them differ in protected files, the others do not."""
    _write(root, {"poetry.lock": LOCKS["v1"]})
    _git(root, "init", "-q", "-b", "main", "--template=")
    (root / ".git" / "hooks").mkdir()
    for key, value in (("user.name", "A"), ("user.email", "a@example.org")):
        _git(root, "config", key, value)
    _commit(root, "Begin")
    _git(root, "tag", "v1")
    _write(
        root, {"poetry.lock": PROJECT["poetry.lock"], "migrations/0002_orders.sql": "create table orders (id int);\n"}
    )
    _commit(root, "Add the orders")
    _change(root, "src/app.py", "# started\n", "Start the app")
    _git(root, "tag", "v2")
    _branch(root, "feature/cart", "src/cart_view.py", "VIEW = 1\n")
    _branch(root, "hotfix", "migrations/0001_init.sql", "drop table users;\n")
    _branch(root, "old-lock", "poetry.lock", LOCKS["old"])
    _change(root, "src/util.py", "# total\n", "Sum up")
    _remote(root, origin)
    for name, text in (("poetry.lock", LOCKS["old"]), ("src/app.py", "# stashed\n")):
        _write(root, {name: text})
        _git(root, "stash", "-q")
    _write(root, {"poetry.lock": LOCKS["old"]})
    (root / "tmp" / "lock.patch").write_text(_git(root, "diff"))
    _git(root, "checkout", "-q", "--", "poetry.lock")
    _git(root, "gc", "-q")  # few files: the project is copied for every line
    _write(root, {"docs/guide.md": PROJECT["docs/guide.md"] + "Not committed yet.\n"})


def _commit(root: Path, message: str) -> None:
    _git(root, "add", "-A")
    _git(root, "commit", "-q", "-m", message)


def _change(root: Path, name: str, more: str, message: str) -> None:
    with (root / name).open("a") as file:
        file.write(more)
    _commit(root, message)


def _branch(root: Path, branch: str, name: str, text: str) -> None:
    _git(root, "checkout", "-q", "-b", branch)
    _write(root, {name: text})
    _commit(root, f"Change {name}")
    _git(root, "checkout", "-q", "main")


def _remote(root: Path, origin: Path) -> None:
    """Make a remote whose main branch has a commit that is not here, so that only a forced push changes it."""
    _git(root, "clone", "-q", "--bare", "--template=", str(root), str(origin))
    _git(root, "remote", "add", "origin", "../origin.git")
    tree = _git(root, "rev-parse", "v1^{tree}").strip()
    theirs = _git(origin, "commit-tree", "-p", "main", "-m", "Theirs", tree).strip()
    _git(origin, "update-ref", "refs/heads/main", theirs)
    _git(root, "fetch", "-q", "origin")
    _git(root, "config", "branch.main.remote", "origin")
    _git(root, "config", "branch.main.merge", "refs/heads/main")


def _git(folder: Path, *arguments: str) -> str:
    environ = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    environ |= {"GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z"}
    ran = subprocess.run([*GIT, *arguments], cwd=folder, check=True, capture_output=True, text=True, env=environ)
    return ran.stdout


def _archives(folder: Path) -> None:
    for name, files in (("bundle", BUNDLE), ("assets", {"img/a.txt": "a\n"})):
        with zipfile.ZipFile(folder / f"{name}.zip", "w") as zipped:
            for path, text in files.items():
                zipped.writestr(path, text)
        for suffix, mode in ((".tar", "w"), (".tgz", "w:gz")):
            with tarfile.open(str(folder / f"{name}{suffix}"), mode) as tar:  # type: ignore[call-overload]  # any mode
                for path, text in files.items():
                    entry = tarfile.TarInfo(path)
                    entry.size = len(text)
                    tar.addfile(entry, BytesIO(text.encode()))
