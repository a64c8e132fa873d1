"""Three hosts, a relay and agents that work while one fault after another happens; and what became of their mail."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
import uuid
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from daemon.daemon_home import LAUNCHER, PATIENCE, until
from team.daemon_hosts import TeamHost, member, team_host
from team.network import impossible, network
from team.postgres_server import new_server
from team.stalling_proxy import StallingProxy

from fairlead.ipc import DaemonUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from team.network import HostNetwork
    from team.postgres_server import PostgresServer

    Link = StallingProxy | HostNetwork

NAMES = ("alpha", "beta", "gamma")
QUIET_SECONDS = 150.0
"""A host that could not connect for long tries again after 30 seconds."""
LONGEST_FAULT = 1.5
WORK_SECONDS = 0.8
"""At most, between two faults."""
_AGENT = Path(__file__).with_name("chaos_agent.py")
_LEDGER = """
SELECT mail_messages.subject, recipients.name, recipients.host <> '', letters.stage, letters.shown > 0,
    letters.read > 0, letters.answered > 0
FROM mail_letters AS letters JOIN mail_messages ON mail_messages.id = letters.message
JOIN mail_agents AS recipients ON recipients.id = letters.recipient WHERE mail_messages.subject LIKE '<%>'
"""


@dataclass
class AgentProcess:
    """An agent on a host, and what it has told."""

    host: TeamHost
    process: subprocess.Popen[str]
    facts_file: Path
    session: str
    name: str = ""

    def wait_until_started(self) -> None:
        """Wait for the start of the session, and take the name that it has got."""
        until(lambda: any(fact.get("ready") for fact in self.facts()), "the session has started")
        rows = self.host.home.ask("GET", "/v1/mail/agents?all=true")["agents"]
        self.name = next(row["name"] for row in rows if row["session"] == self.session)

    def check(self) -> None:
        """Fail if it has ended, with what it said."""
        assert self.process.poll() is None, f"the agent of {self.host.name} has ended: {self.process.poll()}"

    def tell(self, line: str) -> None:
        self.check()
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def facts(self) -> list[dict[str, Any]]:
        lines = self.facts_file.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def is_quiet(self) -> bool:
        """Whether it sends nothing any more."""
        return any(fact.get("quiet") for fact in self.facts())

    def sent(self) -> list[dict[str, Any]]:
        return [fact for fact in self.facts() if "sent" in fact]

    def shown(self) -> list[str]:
        return [subject for fact in self.facts() for subject in fact.get("shown", ())]

    @property
    def address(self) -> str:
        return f"{self.name}@{self.host.name}"


@dataclass
class Outcome:
    """What became of the messages. All lists are empty if all is well."""

    sent: int = 0
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    out_of_order: list[str] = field(default_factory=list)
    untrue: list[str] = field(default_factory=list)
    """Deliveries whose ledgers differ on the two sides."""
    failed: list[str] = field(default_factory=list)
    slowest_send: float = 0.0
    faults: list[str] = field(default_factory=list)

    @property
    def is_well(self) -> bool:
        return not (self.lost or self.doubled or self.out_of_order or self.untrue or self.failed)


class Chaos:
    """A team under faults."""

    def __init__(self, server: PostgresServer, hosts: list[TeamHost], links: list[Link], seed: int) -> None:
        self.server = server
        self.hosts = hosts
        self.links = links
        self.random = Random(seed)
        self.agents: list[AgentProcess] = []
        self.backups = [server.backup("backup-0")]
        self.faults: list[str] = []

    def is_acquainted(self) -> bool:
        """Whether each host knows the agents of the others."""
        pairs = [(host, agent) for host in self.hosts for agent in self.agents if agent.host is not host]
        return all(host.knows(agent.address) for host, agent in pairs)

    # -- faults ------------------------------------------------------------------------------------------

    def play(self, rounds: int) -> None:
        """Do so many faults while the agents work."""
        for agent in self.agents:
            agent.tell(json.dumps({"targets": [one.address for one in self.agents if one is not agent]}))
        kinds: tuple[Callable[[], str], ...] = (self.kill_daemon, self.kill_relay, self.partition, self.restore)
        for number in range(rounds):
            sleep(self.random.uniform(0.1, WORK_SECONDS))
            if self.random.random() < 0.3:
                self.backups.append(self.server.backup(f"backup-{number + 1}"))
            # Each kind once, in a random order, then again: also a few rounds have all of them.
            if number % len(kinds) == 0:
                kinds = tuple(self.random.sample(kinds, len(kinds)))
            self.faults.append(kinds[number % len(kinds)]())
            for agent in self.agents:
                agent.check()

    def kill_daemon(self) -> str:
        host = self.random.choice(self.hosts)
        host.stop(signal.SIGKILL)
        self.wait()
        host.start()
        return f"killed {host.name}"

    def kill_relay(self) -> str:
        how = self.random.choice(("kill -9", "immediate stop", "fast stop"))
        if how == "kill -9":
            self.server.kill()
        else:
            self.server.stop(hard=how == "immediate stop")
        self.wait()
        self.server.start()
        return f"relay: {how}"

    def partition(self) -> str:
        chosen = self.random.sample(self.links, self.random.randint(1, 2))
        how = self.random.choice(("cut", "stall"))
        for link in chosen:
            link.cut() if how == "cut" else link.stall()
        self.wait()
        for link in chosen:
            link.resume()
        return f"{how} {', '.join(self.hosts[self.links.index(link)].name for link in chosen)}"

    def restore(self) -> str:
        chosen = self.random.choice(self.backups)
        self.server.restore(chosen)
        return f"restored {chosen.name}"

    def wait(self) -> None:
        """Let the fault last for a while."""
        sleep(self.random.uniform(0, LONGEST_FAULT))

    # -- the end -----------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Wait until everything that was sent has been shown, and nothing is on its way."""
        for agent in self.agents:
            agent.tell("stop")
        until(self.are_agents_quiet, "the agents send nothing any more", 90)
        until(self.is_quiet, f"all is quiet after {self.faults}", QUIET_SECONDS)

    def are_agents_quiet(self) -> bool:
        for agent in self.agents:
            agent.check()
        return all(agent.is_quiet() for agent in self.agents)

    def is_quiet(self) -> bool:
        """Whether nothing is on its way. What was lost or doubled is for `outcome`: this must not wait for it."""
        sleep(0.05)
        for agent in self.agents:
            agent.check()
        try:
            states = [host.status() for host in self.hosts]
        except DaemonUnavailable:
            return False
        if not all(one["connection"] == "connected" and one["on_its_way"] == 0 for one in states):
            return False
        return not any(_count(host, _UNFINISHED) for host in self.hosts)

    def outcome(self) -> Outcome:
        """Compare what was sent, what was shown, and the ledgers of all hosts."""
        result = Outcome(faults=self.faults)
        of_agent = {agent.address: agent for agent in self.agents}
        for agent in self.agents:
            facts = agent.sent()
            result.sent += sum(len(fact["to"]) for fact in facts)
            result.slowest_send = max([result.slowest_send, *(fact["seconds"] for fact in facts)])
            result.failed += [fact["failed"] for fact in agent.facts() if "failed" in fact]
            result.failed += [f"sent as {fact['sender']}" for fact in facts if fact["sender"] != agent.name]
            for address, other in of_agent.items():
                expected = [fact["sent"] for fact in facts if address in fact["to"]]
                shown = [one for one in other.shown() if one in set(expected)]
                result.lost += [f"{one} to {address}" for one in expected if one not in shown]
                result.doubled += [f"{one} to {address}" for one in expected if shown.count(one) > 1]
                if sorted(shown, key=expected.index) != shown:
                    result.out_of_order.append(f"to {address}: {shown}")
        result.untrue = self.untrue_ledgers()
        return result

    def evidence(self) -> str:
        """Return the end of what every process has written to its stderr, and what the agents did last."""
        parts = [f"faults: {self.faults}"]
        for host in self.hosts:
            parts += [f"daemon of {host.name}: {_tail(host.home.folder / 'daemon.err')}"]
            parts += [f"agent of {host.name}: {_tail(host.home.folder / 'agent.err')}"]
            parts += [f"its last facts: {_tail(host.home.folder / 'facts', 2000)}"]
        return "\n".join([*parts, f"relay: {_tail(self.server.folder / 'log')}"])

    def untrue_ledgers(self) -> list[str]:
        """Return deliveries that the host of the sender and that of the recipient describe differently."""
        told: dict[tuple[str, str], list[Any]] = {}
        known: dict[tuple[str, str], list[Any]] = {}
        for host in self.hosts:
            for subject, recipient, is_remote, *state in query(host, _LEDGER):
                address = recipient if is_remote else f"{recipient}@{host.name}"
                (told if is_remote else known).setdefault((subject, address), []).append(state)
        return [f"{key}: {told.get(key)} {known.get(key)}" for key in told | known if told.get(key) != known.get(key)]


_UNFINISHED = """
SELECT (SELECT count(*) FROM team_pending) + (SELECT count(*) FROM team_outbox) + (
    SELECT count(*) FROM mail_letters JOIN mail_messages ON mail_messages.id = mail_letters.message
    WHERE stage = 'queued' AND subject LIKE '<%>')
"""


def _tail(file: Path, size: int = 8000) -> str:
    return file.read_text(errors="replace")[-size:] if file.exists() else ""


def _count(host: TeamHost, statement: str) -> int:
    return int(query(host, statement)[0][0])


def query(host: TeamHost, statement: str) -> list[tuple[Any, ...]]:
    """Return rows of the mail of a host, as they are on its disk."""
    with closing(sqlite3.connect(f"file:{host.home.state}/mail.db?mode=ro", uri=True, timeout=PATIENCE)) as database:
        return database.execute(statement).fetchall()


@contextmanager
def chaos(seed: int) -> Iterator[Chaos]:
    """Make the team, and an agent on each host that all others know. What fails in the block is explained."""
    with ExitStack() as stack:
        made = _proxied_team(stack, seed) if impossible() else _namespaced_team(stack, seed)
        try:
            made.agents = [stack.enter_context(_agent(host, seed)) for host in made.hosts]
            for agent in made.agents:
                agent.wait_until_started()
            until(made.is_acquainted, "all know each other")
            yield made
        except BaseException:
            print(made.evidence())
            raise


def _namespaced_team(stack: ExitStack, seed: int) -> Chaos:
    """Make hosts that are network namespaces: a partition is a link that is down."""
    net = stack.enter_context(network(*NAMES))
    server = stack.enter_context(new_server(network=net.relay))
    hosts = [stack.enter_context(team_host(name, net[name])) for name in NAMES]
    links = [net[name] for name in NAMES]
    database = server.create_database()
    _join(hosts, [server.url_at(link.relay_address, database) for link in links])
    return Chaos(server, hosts, [*links], seed)


def _proxied_team(stack: ExitStack, seed: int) -> Chaos:
    """Make hosts that share the network of this machine: a partition is a proxy that forwards nothing."""
    server = stack.enter_context(new_server())
    hosts = [stack.enter_context(team_host(name)) for name in NAMES]
    proxies = [stack.enter_context(StallingProxy(server.port)) for _ in NAMES]
    database = server.create_database()
    _join(hosts, [f"postgresql://postgres@127.0.0.1:{proxy.port}/{database}" for proxy in proxies])
    return Chaos(server, hosts, [*proxies], seed)


def _join(hosts: list[TeamHost], urls: list[str]) -> None:
    for host, url in zip(hosts, urls, strict=True):
        member(host, url, None if host is hosts[0] else hosts[0])


@contextmanager
def _agent(host: TeamHost, seed: int) -> Iterator[AgentProcess]:
    session, facts = str(uuid.uuid4()), host.home.folder / "facts"
    env = host.home.environment(CLAUDE_CODE_SESSION_ID=session, CHAOS_LAUNCHER=str(LAUNCHER))
    with (
        facts.open("w") as out,
        (host.home.folder / "agent.err").open("w") as errors,
        subprocess.Popen(
            [sys.executable, str(_AGENT), host.name, str(seed)],
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=errors,
            text=True,
            env=env,
            cwd=host.home.project,
            start_new_session=True,
        ) as process,
    ):
        try:
            yield AgentProcess(host, process, facts, session)
        finally:
            process.kill()


def play(rounds: int, seed: int) -> Outcome:
    """Play so many rounds, and return what became of the mail."""
    with chaos(seed) as made:
        made.play(rounds)
        ended = monotonic()
        made.settle()
        outcome = made.outcome()
        if not outcome.is_well:
            print(made.evidence())
    print(
        f"seed {seed}: {outcome.sent} deliveries in {rounds} rounds; quiet {monotonic() - ended:.1f} s after the last; "
        f"slowest send {outcome.slowest_send * 1000:.0f} ms; {outcome.faults}"
    )
    return outcome
