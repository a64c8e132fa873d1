"""Adds the launcher to the wheel's scripts: compiled, or as a Python program if no C compiler works."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import sys_tags

FLAGS = ("-std=c11", "-Wall", "-Wextra", "-O2")  # no -Werror: newer compilers have new warnings; the tests use it
FREESTANDING = "-static -nostdlib -fno-builtin -fno-stack-protector -fno-asynchronous-unwind-tables -U_FORTIFY_SOURCE"
LINKING = (
    (*shlex.split(FREESTANDING), "-Wl,-z,noseparate-code", "-s"),  # with launcher/linux.c; starts fastest
    ("-static", "-s"),
    (),
)
"""Ways to link, fastest program first. Which of them work depends on the platform."""

COMMAND_SCRIPT = """\
#!/usr/bin/env python3
import sys

from fairlead.cli.main import main

sys.exit(main())
"""
"""`fairlead` if no C compiler works: it runs every command itself. The installer replaces its first line."""


class LauncherHook(BuildHookInterface[Any]):
    """The build hook that Hatchling calls for every wheel, including editable ones."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - the signature is Hatchling's
        """Build the launcher, add it to the scripts, and set the wheel's platform tag."""
        if self.target_name != "wheel":
            return
        self.folder = tempfile.TemporaryDirectory()
        program = Path(self.folder.name, "fairlead-hook")
        command = program.with_name("fairlead")  # the same program: by this name it runs commands, too
        if problem := compile_launcher(Path(self.root, "launcher"), program, self.metadata.version):
            self.app.display_warning(
                f"The launcher was not compiled ({problem}); each event takes about 10 ms longer. "
                "Install a C compiler and reinstall."
            )
            source = Path(self.root, "launcher", "hook.py").read_text(encoding="utf-8")
            program.write_text(source.replace("@VERSION@", self.metadata.version), encoding="utf-8")
            command.write_text(COMMAND_SCRIPT, encoding="utf-8")
        else:
            shutil.copyfile(program, command)
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{platform()}"
        for file in (program, command):
            file.chmod(0o755)
            build_data["shared_scripts"][str(file)] = file.name

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002 - the signature is Hatchling's
        """Remove the temporary folder; the wheel contains the launcher now."""
        if self.target_name == "wheel":
            self.folder.cleanup()


def compile_launcher(sources: Path, program: Path, version: str) -> str:
    """Compile the launcher in the first way that works. Return what failed, or an empty string."""
    if os.environ.get("FAIRLEAD_NO_COMPILER") == "1":
        return "FAIRLEAD_NO_COMPILER=1"
    compiler = shlex.split(os.environ.get("CC") or "cc")
    problem = "the C compiler failed"
    for linking in LINKING:
        files = [str(file) for file in sorted(sources.glob("*.c")) if file.name != "linux.c" or "-nostdlib" in linking]
        command = [*compiler, *FLAGS, f'-DFAIRLEAD_VERSION="{version}"', *linking, *files, "-o", str(program)]
        try:
            subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - a build runs the compiler
        except FileNotFoundError:
            return f"no C compiler found: {compiler[0]}"
        except (OSError, subprocess.CalledProcessError):
            continue
        if blocks_without_python(program):
            return ""
        problem = "the compiled program does not run"
    return problem


def blocks_without_python(program: Path) -> bool:
    """Run the launcher with neither a daemon nor a Python; return whether it fails closed."""
    missing = str(program.with_name("no-python"))
    environment = {"FAIRLEAD_HOME": str(program.parent)}
    try:
        done = subprocess.run(  # noqa: S603 - the program that was just built
            [program, "PreToolUse", "--python", missing], env=environment, capture_output=True, check=False, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 2 and b'"permissionDecision":"deny"' in done.stdout  # noqa: PLR2004 - the client blocks on exit code 2


def platform() -> str:
    """Return this platform's plain tag. Whoever publishes the wheel decides whether a wider one applies."""
    return next(tag.platform for tag in sys_tags() if sys.platform != "linux" or tag.platform.startswith("linux"))
