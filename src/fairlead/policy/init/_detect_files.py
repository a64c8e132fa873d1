"""Detects the files of a project that agents should leave alone, as proposals for the rules on files. Opens none."""

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
generated  a program writes it: an edit by hand is warned of, because a block would also be about the program
"""


class DetectedFiles(msgspec.Struct, frozen=True):
    """A proposed rule on files."""

    pattern: str
    protection: Protection
    source: str
    """The first file that it is about."""
    message: str = ""
    except_for: tuple[str, ...] = ()
    """Patterns of files that are samples, and no secrets."""


class _Kind(msgspec.Struct, frozen=True):
    pattern: str
    protection: Protection
    message: str = ""
    except_for: tuple[str, ...] = ()


_SAMPLES = (".env.example", ".env.sample", ".env.template", ".env.dist")
_BY_PACKAGE_MANAGER = "The package manager writes it; change what it is made from."
_CI = "What runs in CI is for a person to change."
_NAMES = (
    _Kind(".env*", "secret", except_for=_SAMPLES),
    _Kind("*.pem", "secret"),
    _Kind("*.key", "secret"),
    _Kind("*.p12", "secret"),
    _Kind("*.keystore", "secret"),
    _Kind("id_rsa", "secret"),
    _Kind("id_ed25519", "secret"),
    _Kind(".npmrc", "locked", "It may hold a token of the registry."),
    *(
        _Kind(name, "generated", _BY_PACKAGE_MANAGER)
        for name in (
            *("package-lock.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "poetry.lock", "uv.lock", "pdm.lock"),
            *("Pipfile.lock", "Cargo.lock", "go.sum", "Gemfile.lock", "composer.lock", "mix.lock"),
        )
    ),
)
"""Kinds of files, by their names in any folder."""
_PLACES = (
    *(".github/workflows/", ".circleci/", ".buildkite/", ".woodpecker/"),
    *(".gitlab-ci.yml", "azure-pipelines.yml", "bitbucket-pipelines.yml", "Jenkinsfile"),
)
"""Where CI is set up, in the folder itself."""


def detect_files(folder: Path) -> list[DetectedFiles]:
    """Return the proposals, in the order in which they are written."""
    names = list(islice(_names(str(folder), _MAX_DEPTH), _MAX_ENTRIES))
    found = [one for kind in _NAMES if (one := _of_kind(kind, names)) is not None]
    places = [place for place in _PLACES if (folder / place).exists()]
    return found + [DetectedFiles(f"/{place}", "locked", place, _CI) for place in places]


def _of_kind(kind: _Kind, names: list[str]) -> DetectedFiles | None:
    for name in names:
        last = name.rpartition("/")[2]
        if fnmatchcase(last, kind.pattern) and last not in kind.except_for:
            return DetectedFiles(kind.pattern, kind.protection, name, kind.message, kind.except_for)
    return None


def _names(folder: str, depth: int, above: str = "") -> Iterator[str]:
    """Yield the files of a folder, relative to it, then those below."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    yield from (above + entry.name for entry in entries if entry.is_file(follow_symlinks=False))
    for entry in entries:
        if depth and entry.is_dir(follow_symlinks=False) and entry.name not in _SKIPPED:
            yield from _names(entry.path, depth - 1, f"{above}{entry.name}/")
