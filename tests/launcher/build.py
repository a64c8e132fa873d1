"""Builds the launchers, and the small C programs that test their parts."""

from __future__ import annotations

import fcntl
import importlib.util
import os
import re
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROOT = Path(__file__).parents[2]
BUILT = ROOT / ".pytest_cache/launchers"
"""Programs by what they were built of."""
SOURCES = ROOT / "launcher"
SANITIZERS = ("-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer")
VERSION = "9.8.7"


def compile_for_wheel(program: Path, version: str = VERSION) -> str:
    """Compile the launcher with the function of the wheel build; return the error, or an empty string."""
    compile_launcher = build_script().compile_launcher
    parts: list[str | Path] = [version, *sorted(SOURCES.glob("*.*")), ROOT / "hatch_build.py"]
    return built(program, parts, lambda file: str(compile_launcher(SOURCES, file, version)))


def built(program: Path, parts: Sequence[str | Path], build: Callable[[Path], str]) -> str:
    """Put a program there that was built of the same parts before, by this process or another, or build it.

    The parts are texts and files. Returns the error of `build`, or an empty string.
    """
    compiler = subprocess.run(["/bin/sh", "-c", "cc --version"], capture_output=True, check=False).stdout
    contents = [part.read_bytes() if isinstance(part, Path) else part.encode() for part in parts]
    file = BUILT / sha256(b"\0".join([compiler, *contents])).hexdigest()
    BUILT.mkdir(parents=True, exist_ok=True)
    with file.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not file.exists():
            begun = file.with_suffix(".begun")
            if problem := build(begun):
                return problem
            begun.rename(file)
    # A file that this process had open for writing could not be run while another thread starts a program.
    subprocess.run(["cp", file, program], check=True)
    return ""


def build_script() -> Any:
    """Load hatch_build.py. Its base class only exists while a wheel is built, and is replaced here."""
    interface = "hatchling.builders.hooks.plugin.interface"
    if interface not in sys.modules and importlib.util.find_spec("hatchling") is None:
        names = interface.split(".")
        for end in range(1, len(names) + 1):
            sys.modules.setdefault(".".join(names[:end]), ModuleType(names[end - 1]))
        sys.modules[interface].BuildHookInterface = list  # type: ignore[attr-defined]  # takes [Any], as the real one
    return load(ROOT / "hatch_build.py")


def load(file: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"loaded_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compile_sanitized(program: Path, *flags: str) -> str:
    """Compile the launcher with sanitizers, and with files in folders instead of memfd."""
    sources = [file for file in SOURCES.glob("*.c") if file.name != "linux.c"]
    return compile_c(program, *sources, flags=(f'-DFAIRLEAD_VERSION="{VERSION}"', "-DFAIRLEAD_NO_MEMFD", *flags))


def compile_c(program: Path, *sources: Path, flags: tuple[str, ...] = ()) -> str:
    """Compile with sanitizers; return the compiler's errors."""
    command = ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", *SANITIZERS, f"-I{SOURCES}", *flags]

    def build(file: Path) -> str:
        try:
            done = subprocess.run([*command, *sources, "-o", file], capture_output=True, text=True, check=False)
        except FileNotFoundError:
            return "there is no cc"
        return done.stderr

    return built(program, [*command, *sources, *sorted(SOURCES.glob("*.[ch]"))], build)


def compiler_warnings() -> str:
    """Return the compiler's warnings about all files, including those that are not in every build."""
    command = ["cc", "-std=c11", "-Wall", "-Wextra", "-O2", "-fsyntax-only", f'-DFAIRLEAD_VERSION="{VERSION}"']
    files = [file for file in SOURCES.glob("*.c") if file.name != "linux.c" or sys.platform == "linux"]
    return subprocess.run([*command, *files], capture_output=True, text=True, check=False).stderr


def write_twin(program: Path, **numbers: int) -> str:
    """Write the Python launcher as pip does, with this Python in its first line; constants can be replaced."""
    text = (SOURCES / "hook.py").read_text(encoding="utf-8").replace("@VERSION@", VERSION)
    for name, number in numbers.items():
        text, count = re.subn(rf"^{name} = .*$", f"{name} = {number}", text, flags=re.MULTILINE)
        assert count == 1, name
    program.write_text(f"#!{sys.executable}\n{text.partition(chr(10))[2]}", encoding="utf-8")
    program.chmod(0o755)
    return ""  # no error


def unavailable(reason: str) -> NoReturn:
    """Skip on a developer's machine; fail in CI, where a compiler must be installed."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"the launcher cannot be compiled: {reason}")
    pytest.skip(f"the launcher cannot be compiled: {reason}")
