"""The launchers: compiled as in the wheel, compiled with sanitizers, and in Python. All must behave the same."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from launcher.build import compile_for_wheel, compile_sanitized, unavailable, write_twin
from launcher.fakes import Daemon, Launcher

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

KINDS = ("compiled", "sanitized", "python")


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path | str]:
    """For each kind its file, or the error of building it."""
    folder = tmp_path_factory.mktemp("launchers")
    builders: tuple[Callable[[Path], str], ...] = (compile_for_wheel, compile_sanitized, write_twin)
    return {kind: built(folder / kind / "fairlead-hook", build) for kind, build in zip(KINDS, builders, strict=True)}


def built(program: Path, build: Callable[[Path], str]) -> Path | str:
    program.parent.mkdir()
    return build(program) or program


@pytest.fixture
def home() -> Iterator[Path]:
    """A home with a short path: the path of a socket can have 107 bytes."""
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
    with Daemon(home / "run" / "daemon.sock") as daemon:
        yield daemon
