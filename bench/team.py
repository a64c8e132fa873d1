"""Several hosts as one team: the cost on each host, and the time of a message to another host.

All hosts are on this machine, each with a home and a daemon of its own, and PostgreSQL is between them.
"""

from __future__ import annotations

import re
import subprocess
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic, perf_counter, sleep
from typing import TYPE_CHECKING, Any

from bench._harness import Timing
from bench._home import TIMEOUT, Clients, daemon, scratch_home
from bench._relay import relay_server, why_absent
from bench._table import Row, Target
from bench.hcom_relay import NAME as HCOM
from bench.hcom_relay import time_hcom
from bench.launcher import LAUNCHER
from bench.mail import MailBench
from bench.team_load import load_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from team.postgres_server import PostgresServer

    from bench._harness import Effort
    from bench._home import Daemon, Home

QUEUED, QUICK_QUEUED = 1000, 50
_SENDS = 10
"""In one sample."""
_CATCH_UPS = 5
_POLL_INTERVAL = 0.002
_BUSY = "00000000-0000-4000-9000-000000000000"
_LIBRARIES = re.compile(r"/(psycopg|cryptography|libpq)[^/]*(/|$)")
_LONE = "without a team"
_SLOWEST = Target("ratio", 1.1)


def rows(effort: Effort) -> list[Row]:
    """Return the rows about a team."""
    queued = QUICK_QUEUED if effort.is_quick else QUEUED
    absent = why_absent()
    if absent:
        load = load_rows(effort, None, absent)
        carrying = [*_carrying(None, absent, queued), *_beside_hcom(None, absent, effort)]
        return [*_sending(None, absent), *carrying, *_memory(None, absent), *load]
    with relay_server() as relay:
        with _team(relay) as team:
            memory = _memory(team, "")
            sending = _sending(team.time_sends(effort), "")
            carrying = _carrying(team.time_carrying(effort, queued), "", queued)
            carrying += _beside_hcom(team, "", effort)
        load = load_rows(effort, relay, "")
    return [*sending, *carrying, *memory, *load]


def _sending(times: dict[str, Timing] | None, absent: str) -> list[Row]:
    def row(what: str, ours: str, target: Target | None) -> Row:
        if times is None:
            return Row("team", what, "ms", None, _LONE, target=target, absent=absent)
        return Row("team", what, "ms", times[ours], _LONE, times[f"{ours}, lone"], target=target)

    return [
        row("send to an agent of this host", "joined", _SLOWEST),
        row("the same, relay dead", "dead", _SLOWEST),
        row("send to an agent of another host, relay dead", "remote, dead", None),
    ]


def _carrying(times: tuple[Timing, Timing] | None, absent: str, queued: int) -> list[Row]:
    delivered, caught_up = times or (None, None)
    what = f"relay reached again, until {queued} queued messages are on the other host"
    return [
        Row("team", "send, until a waiting Stop on another host has printed it", "ms", delivered, "", absent=absent,
            target=Target("time", 15)),
        Row("team", what, "ms", caught_up, "", target=Target("time", 2000), absent=absent),
    ]  # fmt: skip


def _beside_hcom(team: _Team | None, absent: str, effort: Effort) -> list[Row]:
    what = "`fairlead send` to a waiting Stop on another host"
    if team is None:
        return [Row("team", what, "ms", None, HCOM, absent=absent)]
    ours = team.time_commands(effort)
    with scratch_home() as home:
        theirs = time_hcom(home, len(ours))
    measured = None if isinstance(theirs, str) else Timing.of(theirs)
    return [Row("team", what, "ms", Timing.of(ours), HCOM, measured)]


def _memory(team: _Team | None, absent: str) -> list[Row]:
    what = "libraries of a team that a daemon without one has loaded"
    if team is None:
        return [
            Row("team", "memory of a daemon", "MB", None, _LONE, shows="difference", absent=absent),
            Row("team", what, "", None, "", target=Target("time", 0), absent=absent),
        ]
    ours, theirs = team.servers["alpha"].memory(), team.servers["lone"].memory()
    loaded = len(set(_LIBRARIES.findall(Path(f"/proc/{team.servers['lone'].pid}/maps").read_text())))
    return [
        Row("team", "memory of a daemon", "MB", Timing(ours, ours), _LONE, Timing(theirs, theirs), shows="difference"),
        Row("team", what, "", Timing(loaded, loaded), "", target=Target("time", 0)),
    ]


class _Team:
    """Two members, a host without a team, and an agent on each."""

    def __init__(self, relay: PostgresServer, benches: dict[str, MailBench], servers: dict[str, Daemon]) -> None:
        self._relay = relay
        self._benches = benches
        self.servers = servers
        self._waiting = f"{benches['beta'].name}@beta"
        self._busy = f"{benches['beta'].start_session(_BUSY)}@beta"
        """Another agent on beta: mail for it does not end the wait of the first agent."""

    def time_sends(self, effort: Effort) -> dict[str, Timing]:
        """Time local sends, and those of a host without a team."""
        lone, alpha = self._benches["lone"], self._benches["alpha"]
        times: dict[str, Timing] = {}
        times |= self._compare(effort, "joined", alpha.by_request, lone.by_request)
        self._relay.stop(hard=True)
        self._until(lambda: not self._is_connected("alpha"), "alpha notices that the relay is dead")
        times |= self._compare(effort, "dead", alpha.by_request, lone.by_request)
        times |= self._compare(effort, "remote, dead", lambda: self._send(self._busy), lone.by_request)
        self._relay.start()
        self._until(lambda: self._is_connected("alpha") and self._is_connected("beta"), "both are back")
        self._until(lambda: self._team("alpha")["on_its_way"] == 0, "all has arrived")
        return times

    def time_carrying(self, effort: Effort, queued: int) -> tuple[Timing, Timing]:
        """Time one message to an agent that waits on the other host, and many after the relay was not reachable."""
        beta = self._benches["beta"]
        delivered = [beta.deliver(lambda: self._send(self._waiting)) for _ in range(self._rounds(effort))]
        caught_up = [self._catch_up(queued) for _ in range(1 if effort.is_quick else _CATCH_UPS)]
        return Timing.of(delivered), Timing.of(caught_up)

    def time_commands(self, effort: Effort) -> list[float]:
        """Time one message that a command sends."""
        alpha, beta = self._benches["alpha"], self._benches["beta"]
        return [beta.deliver(lambda: alpha.by_command(self._waiting)) for _ in range(self._rounds(effort))]

    @staticmethod
    def _rounds(effort: Effort) -> int:
        return 3 if effort.is_quick else effort.process_rounds

    def _compare(
        self, effort: Effort, name: str, ours: Callable[[], object], theirs: Callable[[], object]
    ) -> dict[str, Timing]:
        variants = {name: lambda: _timed(ours), f"{name}, lone": lambda: _timed(theirs)}
        return effort.compare_processes(variants)

    def _catch_up(self, queued: int) -> float:
        self._relay.stop(hard=True)
        self._until(lambda: not self._is_connected("alpha") and not self._is_connected("beta"), "the relay is gone")
        before = self._team("beta")["received"]
        for _ in range(queued):
            self._send(self._busy)
        self._relay.start()
        self._until(lambda: self._is_connected("alpha") and self._is_connected("beta"), "both are back")
        start = perf_counter()
        self._until(lambda: self._team("beta")["received"] >= before + queued, "all has arrived")
        return perf_counter() - start

    def _send(self, to: str) -> None:
        self._benches["alpha"].request("POST", "/v1/mail/send", {"to": [to], "subject": "Are you there?"})

    def _team(self, host: str) -> Any:
        return self._benches[host].request("GET", "/v1/team")

    def _is_connected(self, host: str) -> bool:
        return bool(self._team(host).get("connection") == "connected")

    @staticmethod
    def _until(condition: Callable[[], bool], what: str) -> None:
        deadline = monotonic() + 2 * TIMEOUT
        while not condition():
            if monotonic() > deadline:
                raise RuntimeError(f"never came true: {what}")
            sleep(_POLL_INTERVAL)

    def wait_until_known(self) -> None:
        """Wait until alpha has the snapshot of beta."""

        def is_known() -> bool:
            hosts = self._benches["alpha"].request("GET", "/v1/mail/agents?all=true")["hosts"]
            return any(row["name"] == self._busy for host in hosts for row in host["agents"])

        self._until(is_known, "alpha knows the agent of beta")


def _timed(send: Callable[[], object]) -> float:
    start = perf_counter()
    for _ in range(_SENDS):
        send()
    return (perf_counter() - start) / _SENDS


@contextmanager
def _team(relay: PostgresServer) -> Iterator[_Team]:
    url = relay.url(relay.create_database(), tcp=True)
    with ExitStack() as stack:
        servers: dict[str, Daemon] = {}
        benches: dict[str, MailBench] = {}
        homes: dict[str, Home] = {}
        for name in ("alpha", "beta", "lone"):
            homes[name] = stack.enter_context(scratch_home())
            servers[name] = stack.enter_context(daemon(homes[name]))
            clients = stack.enter_context(Clients())
            benches[name] = MailBench(homes[name], servers[name], clients)
        for name in ("alpha", "beta"):
            _fairlead(homes[name], "join", url, "--name", name, "--yes")
        _fairlead(homes["alpha"], "confirm", "beta", "--yes")
        team = _Team(relay, benches, servers)
        team.wait_until_known()
        yield team


def _fairlead(home: Home, *words: str) -> None:
    command = [str(LAUNCHER.with_name("fairlead")), "team", *words]
    done = subprocess.run(command, env=home.environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"fairlead team {words[0]}: {done.stderr}")
