"""The launchers: compiled as the wheel has it, compiled with sanitizers, and in Python. All must do the same."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from launcher.building import as_the_wheel, sanitized, unavailable, write_twin
from launcher.stage import Daemon, Launcher

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

KINDS = ("compiled", "sanitized", "python")


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path | str]:
    """For each kind its file, or the reason why there is none."""
    folder = tmp_path_factory.mktemp("launchers")
    makers: tuple[Callable[[Path], str], ...] = (as_the_wheel, sanitized, write_twin)
    return {kind: made(folder / kind / "fairlead-hook", by) for kind, by in zip(KINDS, makers, strict=True)}


def made(program: Path, by: Callable[[Path], str]) -> Path | str:
    program.parent.mkdir()
    return by(program) or program


@pytest.fixture
def home() -> Iterator[Path]:
    """A home with a short name: the path of a socket has room for 107 bytes."""
    folder = Path(tempfile.mkdtemp(dir="/tmp", prefix="fl"))
    (folder / "run").mkdir()
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(params=KINDS)
def launcher(request: pytest.FixtureRequest, home: Path, programs: dict[str, Path | str]) -> Launcher:
    program = programs[request.param]
    if isinstance(program, str):
        unavailable(program)
    return Launcher(program, home)


@pytest.fixture
def daemon(home: Path) -> Iterator[Daemon]:
    with Daemon(home / "run" / "daemon.sock") as serving:
        yield serving
