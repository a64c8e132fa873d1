"""Homes, and the launchers of version 0.1.0: the one compiled from its C files, and its twin in Python."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Protocol

import pytest
from compat.stage import SAMPLES, VERSION, Client, living, new_home
from launcher.build import built

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from compat.stage import Home

KINDS = ("compiled", "python")
ALONE = "-static -nostdlib -fno-builtin -fno-stack-protector -fno-asynchronous-unwind-tables -U_FORTIFY_SOURCE"
LINKING: tuple[list[str], ...] = ([*ALONE.split(), "-Wl,-z,noseparate-code", "-s"], ["-static", "-s"], [])
"""How that version's build linked the launcher, in the order in which it tried."""

_numbers = count(1)


class NewClient(Protocol):
    """Starts a session in a folder with that policy."""

    def __call__(self, policy: str = "") -> Client:
        """Return the session, before its first event."""


@pytest.fixture
def home() -> Iterator[Home]:
    """A home without a daemon."""
    with new_home() as made:
        yield made


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path | str]:
    """The launchers of that version by kind; in place of one that cannot be made, the reason."""
    folder = tmp_path_factory.mktemp("launchers")
    made = {kind: folder / kind / "fairlead-hook" for kind in KINDS}
    for program in made.values():
        program.parent.mkdir()
    problem = _compile(made["compiled"])
    _write_twin(made["python"])
    return {"compiled": problem or made["compiled"], "python": made["python"]}


def _compile(program: Path) -> str:
    """Compile as that version's build did; return the error, or "" if there is none."""
    problem = ""
    for linking in LINKING:
        sources = [file for file in SAMPLES.glob("launcher/*.c") if file.name != "linux.c" or "-nostdlib" in linking]
        flags = ["-std=c11", "-Wall", "-Wextra", "-O2", f'-DFAIRLEAD_VERSION="{VERSION}"', *linking]
        words: list[str | Path] = ["cc", *flags, *sources]
        problem = built(program, [*words, *sorted(SAMPLES.glob("launcher/*.h"))], partial(_run_compiler, words))
        if not problem:
            break
    return problem


def _run_compiler(words: list[str | Path], program: Path) -> str:
    try:
        done = subprocess.run([*words, "-o", program], check=False, capture_output=True, text=True)
    except FileNotFoundError:
        return "there is no cc"
    return done.stderr if done.returncode else ""


def _write_twin(program: Path) -> None:
    """Write the twin as pip installed it: with this Python in its first line."""
    text = (SAMPLES / "launcher/hook.py").read_text(encoding="utf-8").replace("@VERSION@", VERSION)
    program.write_text(f"#!{sys.executable}\n{text.partition(chr(10))[2]}", encoding="utf-8")
    program.chmod(0o755)


@pytest.fixture(params=KINDS)
def launcher(request: pytest.FixtureRequest, programs: dict[str, Path | str]) -> Path:
    """A launcher of that version. Without a compiler the test is skipped, in CI it fails."""
    program = programs[request.param]
    if isinstance(program, str):
        unavailable = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        unavailable(f"the launcher of {VERSION} cannot be compiled: {program}")
    return program


@pytest.fixture(scope="module")
def served() -> Iterator[Home]:
    """A home with a daemon that has opened its mail, for all tests of a module; each has a folder of its own."""
    with new_home() as made, made.daemon(mail=True):
        yield made


@pytest.fixture
def new_client(served: Home, launcher: Path) -> Iterator[NewClient]:
    """Return a function that starts a session in the home with the daemon."""
    with living() as pid:

        def make(policy: str = "") -> Client:
            number = next(_numbers)
            session = f"00000000-0000-4000-8000-{number:012}"
            return Client(served, launcher, session, pid, served.project(f"p{number}", policy))

        yield make
