"""Puts the launcher into the wheel's scripts: compiled, or in Python where there is no working C compiler."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import sys_tags

FLAGS = (
    "-std=c11",
    "-Wall",
    "-Wextra",
    "-O2",
)  # no -Werror: what a newer compiler dislikes may still run; tests have it
ALONE = "-static -nostdlib -fno-builtin -fno-stack-protector -fno-asynchronous-unwind-tables -U_FORTIFY_SOURCE"
LINKING = (
    (*shlex.split(ALONE), "-Wl,-z,noseparate-code", "-s"),  # with launcher/linux.c; starts soonest
    ("-static", "-s"),
    (),
)
"""Ways to link, best first. Which of them work is for the platform to say."""


class LauncherHook(BuildHookInterface[Any]):
    """Hatchling calls it for every wheel, editable ones too."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - its signature
        """Build the launcher, and say for which machines the wheel is."""
        if self.target_name != "wheel":
            return
        self.folder = tempfile.TemporaryDirectory()
        program = Path(self.folder.name, "fairlead-hook")
        if problem := compile_launcher(Path(self.root, "launcher"), program, self.metadata.version):
            self.app.display_warning(f"THE LAUNCHER IS NOT COMPILED ({problem}): every event costs 10 ms more.")
            self.app.display_warning("This wheel has it in Python. Install a C compiler, and install again.")
            source = Path(self.root, "launcher", "hook.py").read_text(encoding="utf-8")
            program.write_text(source.replace("@VERSION@", self.metadata.version), encoding="utf-8")
            program.chmod(0o755)
        else:
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{platform()}"
        build_data["shared_scripts"][str(program)] = program.name

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002 - likewise
        """Remove what is in the wheel by now."""
        if self.target_name == "wheel":
            self.folder.cleanup()


def compile_launcher(sources: Path, program: Path, version: str) -> str:
    """Compile in the best way that works; give what is wrong if none does."""
    if os.environ.get("FAIRLEAD_NO_COMPILER") == "1":
        return "FAIRLEAD_NO_COMPILER=1"
    compiler = shlex.split(os.environ.get("CC") or "cc")
    problem = "no C compiler works"
    for linking in LINKING:
        files = [str(file) for file in sorted(sources.glob("*.c")) if file.name != "linux.c" or "-nostdlib" in linking]
        command = [*compiler, *FLAGS, f'-DFAIRLEAD_VERSION="{version}"', *linking, *files, "-o", str(program)]
        try:
            subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - a build runs the compiler
        except FileNotFoundError:
            return f"there is no {compiler[0]}"
        except (OSError, subprocess.CalledProcessError):
            continue
        if shuts_the_gate(program):
            return ""
        problem = "what the C compiler makes does not run"
    return problem


def shuts_the_gate(program: Path) -> bool:
    """Try it where it matters most: without a daemon and a Python, it must block."""
    missing = str(program.with_name("no-python"))
    environment = {"FAIRLEAD_HOME": str(program.parent)}
    try:
        done = subprocess.run(  # noqa: S603 - our own program
            [program, "PreToolUse", "--python", missing], env=environment, capture_output=True, check=False, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 2 and b'"permissionDecision":"deny"' in done.stdout  # noqa: PLR2004 - the client's code


def platform() -> str:
    """Give this platform's plain tag: which others may use the wheel is for those who publish it to say."""
    return next(tag.platform for tag in sys_tags() if sys.platform != "linux" or tag.platform.startswith("linux"))
