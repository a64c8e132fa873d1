"""Two hosts as network namespaces, a sealed client on each: an agent asks, the one on the other host is woken, answers.

Only the daemons have a network: a link to the relay each. The clients have loopback alone, as in every test here.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from e2e.installed import with_mail
from e2e.interactive import at_terminal
from e2e.model import PRINTED, after, bash
from team.network import network
from team.postgres_server import new_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from e2e.installed import Machine
    from e2e.interactive import Person
    from e2e.model import Request, Turn
    from e2e.room import Room
    from team.network import HostNetwork

pytestmark = pytest.mark.timeout(300)

QUESTIONS = ("Which port is it?", "And which protocol?")
ANSWERS = ("It is 8443.", "It is TLS.")


_STAGES = """
SELECT stage FROM mail_letters JOIN mail_messages ON mail_messages.id = mail_letters.message WHERE subject = ?
"""


@dataclass
class Host:
    """A host of the team, with a person at its client."""

    name: str
    machine: Machine
    link: HostNetwork
    person: Person
    requests: list[Request] = field(default_factory=list)
    """What the model was asked; known at the end."""

    def agent(self) -> str:
        """The name of the agent here."""
        return str(self._document("agents", "--here")["agents"][0]["name"])

    def is_listening(self) -> bool:
        return [agent["reach"] for agent in self._document("agents", "--here")["agents"]] == ["now"]

    def knows(self, other: Host, agent: str) -> bool:
        rows = self._document("agents")["hosts"]
        return f"{agent}@{other.name}" in [one["name"] for host in rows for one in host["agents"]]

    def sessions(self) -> dict[str, list[str]]:
        """The sessions that `fairlead sessions` lists, by host."""
        document = self._document("sessions")
        others = {host["host"]: [one["id"] for one in host["sessions"]] for host in document["hosts"]}
        return {self.name: [one["id"] for one in document["sessions"]], **others}

    def stages(self, subject: str) -> list[str]:
        """How far a message of its agent is. Read from the disk: the agent's own process alone may ask for it."""
        with closing(sqlite3.connect(f"file:{self.machine.state}/mail.db?mode=ro", uri=True)) as database:
            return [stage for (stage,) in database.execute(_STAGES, [subject])]

    def hosts_with_packets_in_transit(self) -> list[str]:
        """To which hosts something is on its way."""
        return [host["name"] for host in self._document("team", "status")["hosts"] if host["on_its_way"]]

    def sees_pending(self, other: str) -> bool:
        """Whether another host waits to be confirmed, about which the person here gets message 1."""
        hosts = self._document("team", "status")["hosts"]
        return (other, "pending") in [(host["name"], host["state"]) for host in hosts]

    def _document(self, *words: str) -> dict[str, Any]:
        done = self.person.fairlead(*words, "--json")
        assert done.returncode == 0, done
        document: dict[str, Any] = json.loads(done.stdout)
        return document


@contextmanager
def host(
    name: str, client: Path, link: HostNetwork, url: str, script: Callable[[Machine], Sequence[Turn]]
) -> Iterator[Host]:
    """Start a daemon on the network of a host, join the team, and start a client that has no network."""

    def join(place: Room) -> None:
        daemon = f"{here.program} daemon run >{here.folder}/daemon.log 2>&1 </dev/null &"
        assert place.run("sh", "-c", daemon, network=link.path).returncode == 0
        assert place.run("sh", "-c", here.wait_for_daemon).returncode == 0
        joined = place.run(here.program, "team", "join", url, "--name", name, "--yes", network=link.path)
        assert joined.returncode == 0, joined

    # Without it, a hook that finds no daemon would start one in the client's namespace.
    with with_mail(client, "--skill", "--stay", "wake", FAIRLEAD_NO_DAEMON="1") as here:
        with at_terminal(here, script=script(here), first=join) as person:
            made = Host(name, here, link, person)
            yield made
        made.requests = person.room.requests()


def number_of(machine: Machine, subject: str) -> str:
    """The shell command that prints the number of a message on a host: each host counts for itself."""
    query = (
        "import sqlite3, sys; print(*[id for (id,) in sqlite3.connect(sys.argv[1]).execute(sys.argv[2], sys.argv[3:])])"
    )
    select = "SELECT id FROM mail_messages WHERE subject = ?"
    return f"{machine.python} -ISc '{query}' {machine.state}/mail.db '{select}' '{subject}'"


def asks(answerer: str, _machine: Machine) -> list[Turn]:
    """The script of who asks both questions, and waits for each answer."""
    turns: list[Turn] = []
    for question in QUESTIONS:
        turns += [[bash(f"fairlead send {answerer} --request '{question}' && fairlead poll --wait 60s")]]
        turns += [f"I know: {question}"]
    return turns


def answers(machine: Machine) -> list[Turn]:
    """The script of who answers both."""
    turns: list[Turn] = []
    for question, answer in zip(QUESTIONS, ANSWERS, strict=True):
        turns += [after(number_of(machine, question), [bash(f"fairlead reply {PRINTED} '{answer}'")])]
        turns += [f"Answered: {answer}"]
    return turns


def test_an_agent_asks_one_on_another_host_which_is_woken_and_answers_also_across_a_partition(client: Path) -> None:
    with ExitStack() as stack:
        net = stack.enter_context(network("laptop", "server"))
        relay = stack.enter_context(new_server(network=net.relay))
        database = relay.create_database()
        urls = {name: relay.url_at(link.relay_address, database) for name, link in net.hosts.items()}
        server = stack.enter_context(host("server", client, net["server"], urls["server"], answers))
        server.person.until(server.is_listening, "the agent listens")
        name = server.agent()
        asking = partial(asks, f"{name}@server")
        laptop = stack.enter_context(host("laptop", client, net["laptop"], urls["laptop"], asking))
        server.person.until(lambda: server.sees_pending("laptop"), "the laptop waits to be confirmed")
        assert server.person.fairlead("team", "confirm", "laptop", "--yes").returncode == 0
        laptop.person.until(lambda: laptop.knows(server, name), "the laptop knows the agent")

        laptop.person.prompts("Ask for the port.")
        server.person.sees(f"Answered: {ANSWERS[0]}")
        laptop.person.sees(f"I know: {QUESTIONS[0]}")
        laptop.person.is_idle()
        laptop.person.until(
            lambda: laptop.stages(QUESTIONS[0]) == ["answered"], "the laptop has the receipt of the answer"
        )
        check_sessions(laptop, server)
        check_watch(laptop, server)

        server.person.until(server.is_listening, "the agent listens again")
        net["server"].down()
        laptop.person.prompts("Ask for the protocol.")
        laptop.person.until(lambda: laptop.hosts_with_packets_in_transit() == ["server"], "the question is on its way")
        assert laptop.stages(QUESTIONS[1]) == ["queued"]
        assert server.stages(QUESTIONS[1]) == []
        net["server"].up()
        server.person.sees(f"Answered: {ANSWERS[1]}")
        laptop.person.sees(f"I know: {QUESTIONS[1]}")
        laptop.person.until(lambda: laptop.stages(QUESTIONS[1]) == ["answered"], "this one is answered, too")

    for answer in ANSWERS:
        results = [result for request in laptop.requests for result in request.results]
        assert any(answer in result for result in results), answer
    woken = [request for request in server.requests if request.who == "main"]
    assert len(woken) == 2 * len(QUESTIONS), "each question has woken it once"
    for question in QUESTIONS:
        assert any(request.holds(question) for request in woken), question


def check_sessions(*hosts: Host) -> None:
    """Either host lists the sessions of both."""
    here = {one.name: list(one.person.sessions()) for one in hosts}
    for one in hosts:
        one.person.until(partial(lists, one, here), f"{one.name} lists {here}")


def lists(host: Host, sessions: dict[str, list[str]]) -> bool:
    return host.sessions() == sessions


def check_watch(*hosts: Host) -> None:
    """The view on either host shows both sessions, the other one below its host."""
    for one in hosts:
        view = one.person.watches()
        view.sees("2 idle")
        for other in hosts:
            if other is not one:
                view.sees(f"on {other.name}")
        view.closes()
