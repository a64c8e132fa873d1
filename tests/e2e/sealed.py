"""Runs a program where no network is: in namespaces of its own, with a scripted model on loopback.

The program is the real client, or one that drives it. It gets a home, a project and an environment made
for the run, and everything that it leaves behind is killed when the run ends. (`room` keeps the namespaces
open, for any number of programs.)
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from e2e.model import Model, read_requests

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from e2e.model import Request, Script, Subagents, Who

TIMEOUT = 80.0
"""Seconds: two such runs are under pytest's own, so that one that hangs is reported with what it printed."""

REQUESTS = "requests.jsonl"
"""What the model was asked, in the folder of the run."""

_API_KEY = "none-is-needed"
_ENVIRONMENT = {
    "ANTHROPIC_API_KEY": _API_KEY,
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "IS_SANDBOX": "1",  # the client refuses to skip permissions as root, unless it is told that it is sealed
    "LANG": "C.UTF-8",
    "SHELL": "/bin/bash",
}


class NotSealed(Exception):
    """The program was not run, because it could have reached a network, or the run itself broke."""


@dataclass(frozen=True)
class Run:
    """What came of a run."""

    exit_code: int | None
    stdout: str
    stderr: str
    requests: list[Request]
    pid: int
    """Of the program, in the namespace of the run."""
    start: int
    """When the program began, in clock ticks since the machine's start."""
    answered: list[float]
    """When each answer of the model had been sent."""

    @property
    def asked(self) -> list[Who]:
        """Who asked the model, in order. The client can exit 0 without having done anything: look here first."""
        return [request.who for request in self.requests]

    def model_saw(self, text: str) -> bool:
        """Whether the text was in anything that was sent to the model."""
        return any(request.holds(text) for request in self.requests)


def network() -> str:
    """Name the network namespace of this process."""
    return str(Path("/proc/self/ns/net").readlink())


@dataclass(frozen=True)
class Job:
    """What the inner process is told, through a file."""

    argv: list[str]
    """The program; none if the namespaces are to stay until the inner process's stdin ends."""
    folder: str
    script: Script
    subagent: Subagents
    settings: dict[str, Any] | None = None
    timeout: float = TIMEOUT
    env: dict[str, str] = field(default_factory=dict)
    outer_network: str = field(default_factory=network)

    @property
    def project(self) -> Path:
        """The folder that the program runs in."""
        return Path(self.folder, "project")

    @property
    def home(self) -> Path:
        """The home that it is given."""
        return Path(self.folder, "home")


def run(
    argv: Sequence[str | Path],
    *,
    folder: Path,
    script: Script = (),
    subagent: Subagents = (),
    settings: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = TIMEOUT,
) -> Run:
    """Run a program, sealed, in `folder/project`, with `folder/home` as its home.

    `script` is what the model answers to the main agent, `subagent` what it answers to each subagent;
    `settings` become the client's user settings; without them those stay that are there, if any.
    """
    job = Job(
        argv=[str(part) for part in argv],
        folder=str(folder.resolve()),
        script=script,
        subagent=subagent,
        settings=None if settings is None else dict(settings),
        timeout=timeout,
        env=dict(env or {}),
    )
    done = subprocess.run(sealing(job), check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise NotSealed(done.stdout + done.stderr)
    result = _read_result(folder)
    if result.exit_code is None:
        raise TimeoutError(f"still running after {timeout:g} s: {result}")
    return result


def claude(client: Path, prompt: str, *arguments: str) -> list[str]:
    """Write the command line of a client that answers one prompt and asks for no permission."""
    return [str(client), "-p", prompt, "--permission-mode", "bypassPermissions", *arguments]


def sealing(job: Job) -> list[str]:
    """Write a job down, and the command line that does it in namespaces of its own."""
    file = Path(job.folder, "job.json")
    file.write_text(json.dumps(asdict(job)))
    return [*_unshare(), *inner(file)]


def inner(job: Path) -> list[str]:
    """Write the command line of the inner process. It refuses to work outside namespaces of its own."""
    tests = Path(__file__).parents[1]
    start = f"import sys; sys.path.insert(0, {str(tests)!r}); from e2e.sealed import inside; inside({str(job)!r})"
    return [sys.executable, "-c", start]


def impossible() -> str | None:
    """Say why nothing can be run sealed here, if so."""
    if sys.platform != "linux":
        return f"namespaces need Linux, and this is {sys.platform}"
    if shutil.which("unshare") is None:
        return "`unshare` (util-linux) is not installed"
    tried = subprocess.run([*_unshare(), "true"], check=False, capture_output=True, text=True)
    return None if tried.returncode == 0 else f"no right to make namespaces: {tried.stderr.strip()}"


def _unshare() -> list[str]:
    as_root = [] if os.geteuid() == 0 else ["--map-root-user"]
    return ["unshare", *as_root, "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]


def _read_result(folder: Path) -> Run:
    result = json.loads((folder / "result.json").read_text())
    return Run(
        exit_code=result["exit_code"],
        stdout=(folder / "stdout").read_text(errors="replace"),
        stderr=(folder / "stderr").read_text(errors="replace"),
        requests=read_requests(folder / REQUESTS),
        pid=result["pid"],
        start=result["start"],
        answered=result["answered"],
    )


# -- inside the namespaces -----------------------------------------------------------------------------


def inside(file: str) -> None:
    """Do the job: serve the model, run the program, write down what came of it."""
    job = Job(**json.loads(Path(file).read_text()))
    _refuse_any_network(job.outer_network)
    _raise_loopback()
    _furnish(job)
    log = Path(job.folder, REQUESTS)
    log.unlink(missing_ok=True)
    with Model(job.script, job.subagent, log) as model:
        result = _run(job, model.url) if job.argv else _stay(job, model.url)
        result |= {"answered": model.answered}
    if model.troubles:
        raise SystemExit("\n".join(["the script's own commands failed:", *model.troubles]))
    Path(job.folder, "result.json").write_text(json.dumps(result))


def _refuse_any_network(outer: str) -> None:
    if network() == outer:
        raise SystemExit("not sealed: this is the network of the process that asked for the run")
    names = [name for _, name in socket.if_nameindex()]
    if names != ["lo"]:
        raise SystemExit(f"not sealed: the interfaces here are {', '.join(names)}")


def _raise_loopback() -> None:
    get_flags, set_flags, up = 0x8913, 0x8914, 1  # SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        answer = fcntl.ioctl(any_socket, get_flags, struct.pack("16sH", b"lo", 0))
        _, flags = struct.unpack("16sH", answer)
        fcntl.ioctl(any_socket, set_flags, struct.pack("16sH", b"lo", flags | up))


def _furnish(job: Job) -> None:
    """Make the home of somebody who has used the client before, in this project: it has nothing to ask."""
    for folder in (job.project, job.home / ".claude", Path(job.folder, "tmp")):
        folder.mkdir(parents=True, exist_ok=True)
    if job.settings is not None:
        (job.home / ".claude/settings.json").write_text(json.dumps(job.settings))
    state = {
        "hasCompletedOnboarding": True,
        "customApiKeyResponses": {"approved": [_API_KEY], "rejected": []},
        "projects": {str(job.project): {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}},
    }
    (job.home / ".claude.json").write_text(json.dumps(state))


def _environment(job: Job, url: str) -> dict[str, str]:
    temporary = str(Path(job.folder, "tmp"))
    return {
        **_ENVIRONMENT,
        "PATH": os.environ["PATH"],
        "HOME": str(job.home),
        "TMPDIR": temporary,
        # without its own, the client shares one by uid, and where that is another's it exits 0 and does nothing
        "CLAUDE_CODE_TMPDIR": temporary,
        "ANTHROPIC_BASE_URL": url,
        **job.env,
    }


def _stay(job: Job, url: str) -> dict[str, Any]:
    """Say with which environment programs are to be run here, and keep the namespaces until stdin ends."""
    print(json.dumps(_environment(job, url)), flush=True)
    sys.stdin.read()
    return {"pid": 0, "start": 0, "exit_code": 0}


def _run(job: Job, url: str) -> dict[str, Any]:
    """Run the program and tell how it ended; its exit code is `None` if it did not end in time."""
    folder, environment = Path(job.folder), _environment(job, url)
    with (folder / "stdout").open("wb") as stdout, (folder / "stderr").open("wb") as stderr:
        program = subprocess.Popen(
            job.argv, cwd=job.project, env=environment, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr
        )
        known = {"pid": program.pid, "start": _start_of(program.pid)}
        try:
            return {**known, "exit_code": program.wait(job.timeout)}
        except subprocess.TimeoutExpired:
            return {**known, "exit_code": None}  # what still runs dies with this process, the first of its namespace


def _start_of(pid: int) -> int:
    """Read when a process began: the 22nd field, counted behind the program's name, which may hold anything."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
