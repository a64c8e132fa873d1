"""Creates a virtual environment with Fairlead in it, and reports each step.

    python tools/setup_venv.py FOLDER                what the product needs, and Fairlead itself, editable
    python tools/setup_venv.py FOLDER --add EXTRA    the packages of an extra, into an environment that exists
    ... --lowest                                     every requirement at its lowest version

Only the standard library is used.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from threading import Thread

import requirements

HEARTBEAT = 5.0
"""Seconds between two lines about what pip is doing."""

EXPECTED = "about 110 MB; 15 seconds to a minute, depending on the network"
EXPECTED_EXTRAS = {
    "dev": "about 520 MB, most of it a real client for the tests; one to three minutes",
    "bench": "about 20 MB; some seconds",
}
NETWORK_ERROR = re.compile(
    r"NewConnectionError|ConnectTimeout|ReadTimeout|ConnectionResetError|RemoteDisconnected|ProxyError|SSLError"
    r"|NameResolutionError|Name or service not known|Network is unreachable|Connection refused"
)
NO_NETWORK = """\
The package index cannot be reached. Check the network connection and pip's settings (index, proxy, certificate):
  {python} -m pip config list
Then run the same make command again. The complete output of pip is in {log}."""
NO_VENV = """\
{python} has no {module} module, which creates virtual environments.
Install it (Debian and Ubuntu: apt install python3-venv) or use another Python: make PYTHON=python3.12"""
NOT_COMPILED = """\
The launcher was not compiled (no C compiler works here); each event takes about 10 ms longer.
Install a C compiler (Debian and Ubuntu: apt install gcc libc6-dev), then: make clean run"""


class SetupError(Exception):
    """The environment cannot be set up. The message says what to do."""


class Environment:
    """A virtual environment that is being set up."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = folder / "bin" / "python"
        self.log = folder / "setup.log"

    def works(self) -> bool:
        """Return whether it exists, has pip, and has the version of Python that runs this."""
        code = "import sys, pip; print(*sys.version_info[:2])"
        try:
            done = subprocess.run([self.python, "-c", code], capture_output=True, check=False, text=True)
        except OSError:
            return False
        return done.returncode == 0 and done.stdout.split() == [str(number) for number in sys.version_info[:2]]

    def create(self) -> None:
        """Create it, in place of one that does not work."""
        for module in ("venv", "ensurepip"):  # Debian has them in a package of their own
            if find_spec(module) is None:
                raise SetupError(NO_VENV.format(python=sys.executable, module=module))
        command = [sys.executable, "-m", "venv", "--clear", str(self.folder)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, text=True)
        if done.returncode:
            raise SetupError(f"{done.stdout.strip()}\n{self.folder} cannot be created.")

    def install(self, *words: str) -> None:
        """Run `pip install`; every few seconds, print what it is doing."""
        command = [str(self.python), "-m", "pip", "--disable-pip-version-check", "--no-input", "install"]
        lines: list[str] = []
        with subprocess.Popen(
            [*command, "--progress-bar=off", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            text=True,
            errors="replace",
        ) as process:
            reader = Thread(target=self._read, args=(process, lines), daemon=True)
            reader.start()
            report(reader, lines)
        if process.returncode:
            raise SetupError(self._explain(lines))

    def _read(self, process: subprocess.Popen[str], lines: list[str]) -> None:
        with self.log.open("a", encoding="utf-8") as log:
            for line in process.stdout or ():
                lines.append(line.rstrip())
                log.write(line)

    def _explain(self, lines: list[str]) -> str:
        if any(NETWORK_ERROR.search(line) for line in lines[-10:]):
            return NO_NETWORK.format(python=self.python, log=self.log)
        problems = [line for line in lines if re.match(r"(ERROR|WARNING|error): ", line)] or lines
        return "\n".join([*problems[-10:], f"pip failed. Its complete output is in {self.log}."])

    def size(self) -> str:
        """Return the number of packages, and the space on disk as du counts it."""
        packages = len(list(self.folder.glob("lib/python*/site-packages/*.dist-info")))
        paths = (Path(folder, name) for folder, _, names in os.walk(self.folder) for name in (".", *names))
        return f"{packages} packages, {sum(path.lstat().st_blocks for path in paths) * 512 / 2**20:.0f} MB"


def report(reader: Thread, lines: list[str]) -> None:
    """Print what pip is doing, every few seconds until its output has been read."""
    begun = time.monotonic()
    while reader.is_alive():
        reader.join(HEARTBEAT)
        if reader.is_alive():
            say(f"      {time.monotonic() - begun:3.0f} s: {activity(lines)}")


def activity(lines: list[str]) -> str:
    """Describe what pip is doing, by the last of its lines that tells."""
    for line in reversed(lines):
        if "Retrying (" in line:
            return "the package index does not answer; trying again"
        if match := re.match(r"\s+(Downloading|Using cached) (?:\S*/)?([^\s-]+)-([^\s-]+)\S*(?: \((.+)\))?", line):
            verb = "downloading" if match[1] == "Downloading" else "using the cached"
            return f"{verb} {match[2]} {match[3]}" + (f" ({match[4]})" if match[4] else "")
        if line.startswith("Installing collected packages: "):
            names = line.partition(": ")[2].split(", ")
            return f"unpacking {names[0] if len(names) == 1 else f'{len(names)} packages'}"
        if match := re.match(r"\s*(Installing build dependencies|(?:Preparing|Building) .*?)(?: \(|:)", line):
            return match[1].lower()
        if match := re.match(r"Collecting ([A-Za-z0-9._-]+)", line):
            return f"looking for {match[1]}"
    return "starting pip"


def set_up(environment: Environment, pins: list[str]) -> None:
    """Create the environment unless it exists, install the packages, then Fairlead itself."""
    if environment.works():
        say(f"Updating {environment.folder}")
        say(f"[1/3] The environment exists (Python {platform.python_version()})")
    else:
        say(f"Setting up {environment.folder}: {EXPECTED}.")
        say(f"[1/3] Creating the environment (Python {platform.python_version()})")
        environment.create()
    environment.log.unlink(missing_ok=True)
    say("[2/3] Downloading and installing the packages")
    environment.install(*pins)
    say("[3/3] Compiling the launcher and installing Fairlead")
    environment.install("--no-deps", "--editable", str(requirements.ROOT))
    if (environment.folder / "bin" / "fairlead-hook").read_bytes().startswith(b"#!"):
        say(NOT_COMPILED)


def add(environment: Environment, extra: str, pins: list[str]) -> None:
    """Install the packages of an extra into an environment that exists."""
    say(f"Adding the packages of `{extra}` to {environment.folder}: {EXPECTED_EXTRAS[extra]}.")
    environment.install(*pins)


def say(text: str) -> None:
    """Print a line at once: whoever waits reads it."""
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    """Set up the environment that the command line asks for; return the exit code."""
    parser = argparse.ArgumentParser(description="Set up a virtual environment with Fairlead in it.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--add", choices=EXPECTED_EXTRAS, metavar="EXTRA", help="only add the packages of this extra")
    parser.add_argument("--lowest", action="store_true", help="install every requirement at its lowest version")
    options = parser.parse_args()
    environment = Environment(options.folder)
    extra: str | None = options.add
    pins = requirements.declared() + (requirements.declared(extra) if extra else [])
    if options.lowest:
        pins = requirements.lowest(extra)
    begun = time.monotonic()
    try:
        if extra:
            add(environment, extra, pins)
        else:
            set_up(environment, pins)
    except SetupError as error:
        say(f"\n{error}")
        return 1
    except KeyboardInterrupt:
        return 130
    say(f"Ready after {time.monotonic() - begun:.0f} s: {environment.size()} in {options.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
