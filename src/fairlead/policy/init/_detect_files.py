"""Detects files of a project that agents should not read or edit, as proposals for file rules. Opens no file."""

from __future__ import annotations

import os
from fnmatch import fnmatchcase
from itertools import islice
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MAX_ENTRIES = 5_000
_MAX_DEPTH = 2
_SKIPPED = frozenset({".git", "node_modules", ".venv", "venv", "vendor", "target", "dist", "build", "__pycache__"})

Protection = Literal["secret", "locked", "generated"]
"""secret     neither read nor edited
locked     not edited
generated  written by a program: an edit causes a warning, because a block would stop the program as well
"""


class DetectedFiles(msgspec.Struct, frozen=True):
    """A proposed rule on files."""

    pattern: str
    protection: Protection
    source: str
    """The first file that matches."""
    message: str = ""
    except_for: tuple[str, ...] = ()
    """Patterns of sample files, which contain no secrets."""


class _FileKind(msgspec.Struct, frozen=True):
    pattern: str
    protection: Protection
    message: str = ""
    except_for: tuple[str, ...] = ()


_SAMPLES = (".env.example", ".env.sample", ".env.template", ".env.dist")
_LOCK_FILE_MESSAGE = "Change dependencies with the package manager, which writes this file."
_CI_MESSAGE = "Only a person may change what runs in CI."
_NAMES = (
    _FileKind(".env*", "secret", except_for=_SAMPLES),
    _FileKind("*.pem", "secret"),
    _FileKind("*.key", "secret"),
    _FileKind("*.p12", "secret"),
    _FileKind("*.keystore", "secret"),
    _FileKind("id_rsa", "secret"),
    _FileKind("id_ed25519", "secret"),
    _FileKind(".npmrc", "locked", "It may contain a token of the registry."),
    *(
        _FileKind(name, "generated", _LOCK_FILE_MESSAGE)
        for name in (
            *("package-lock.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "poetry.lock", "uv.lock", "pdm.lock"),
            *("Pipfile.lock", "Cargo.lock", "go.sum", "Gemfile.lock", "composer.lock", "mix.lock"),
        )
    ),
)
"""Kinds of files, by their names in any folder."""
_CI_PATHS = (
    *(".github/workflows/", ".circleci/", ".buildkite/", ".woodpecker/"),
    *(".gitlab-ci.yml", "azure-pipelines.yml", "bitbucket-pipelines.yml", "Jenkinsfile"),
)
"""The paths of CI configurations in the project folder."""


def detect_files(folder: Path) -> list[DetectedFiles]:
    """Return the proposals, in the order in which they are written to the policy."""
    names = list(islice(_names(str(folder), _MAX_DEPTH), _MAX_ENTRIES))
    proposals = [rule for kind in _NAMES if (rule := _of_kind(kind, names)) is not None]
    ci_paths = [path for path in _CI_PATHS if (folder / path).exists()]
    return proposals + [DetectedFiles(f"/{path}", "locked", path, _CI_MESSAGE) for path in ci_paths]


def _of_kind(kind: _FileKind, names: list[str]) -> DetectedFiles | None:
    for name in names:
        last = name.rpartition("/")[2]
        if fnmatchcase(last, kind.pattern) and last not in kind.except_for:
            return DetectedFiles(kind.pattern, kind.protection, name, kind.message, kind.except_for)
    return None


def _names(folder: str, depth: int, above: str = "") -> Iterator[str]:
    """Yield the files of a folder, then of its subfolders down to `depth` levels, each after the prefix `above`."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    yield from (above + entry.name for entry in entries if entry.is_file(follow_symlinks=False))
    for entry in entries:
        if depth and entry.is_dir(follow_symlinks=False) and entry.name not in _SKIPPED:
            yield from _names(entry.path, depth - 1, f"{above}{entry.name}/")
