"""Answers and leases while daemons, sessions and hooks are killed at random moments, compared with a model.

No call is allowed without a person, an answer that was accepted arrives, no lease that was taken is lost, and none is
held by the dead. `make kills` kills a thousand times.
"""

from __future__ import annotations

import json
import signal
from contextlib import ExitStack
from dataclasses import dataclass, field
from random import Random
from threading import Thread
from time import sleep
from typing import TYPE_CHECKING, Any

import pytest
from daemon.asking import ALLOW, Asking, call_of, questions, start_hook, turn_on
from daemon.clients import client
from daemon.daemon_home import FAIRLEAD, PATIENCE, until
from daemon.killing import forget_last_start, kill_daemon
from kills import ROUND, kill_rounds

from fairlead.errors import FairleadError
from fairlead.journal import CommandsRecord

if TYPE_CHECKING:
    from collections.abc import Iterator

    from daemon.clients import Client
    from daemon.daemon_home import DaemonHome

FILES = 4
SESSIONS = 2
LONGEST = 0.02
"""Seconds until a kill at most: an answer and a lease take a few milliseconds."""


@dataclass
class Answer:
    """What a person answers, while something is killed."""

    asking: Asking
    decision: str
    is_accepted: bool = False

    def give(self) -> None:
        try:
            self.asking.answer(self.decision)
        except FairleadError:  # the daemon was killed: the person is told that it is not answered
            return
        self.is_accepted = True


@dataclass
class Model:
    """What must be true of one home: who holds which file, who is asked what, and what was answered."""

    home: DaemonHome
    random: Random
    stack: ExitStack
    sessions: list[Client] = field(default_factory=list)
    held: dict[str, str] = field(default_factory=dict)
    """File → the session that was told that it holds it."""
    asked: list[Asking] = field(default_factory=list)
    allowed: int = 0
    """Hooks that have told their client to go on."""
    answered: list[str] = field(default_factory=list)
    """What the person has tried to answer."""
    kills: int = 0

    # -- sessions ----------------------------------------------------------------------------------------

    def begin_session(self) -> Client:
        begun = self.stack.enter_context(client(self.home, f"session-{self.kills}-{len(self.sessions)}"))
        begun.hook("SessionStart", source="startup")
        self.sessions.append(begun)
        return begun

    def kill_session(self) -> None:
        """Kill a session, sometimes together with the daemon: its leases end all the same."""
        dead = self.sessions.pop(self.random.randrange(len(self.sessions)))
        if self.random.random() < 0.5:
            self.kill_daemon()
        dead.kill()
        self.kills += 1
        self.held = {file: session for file, session in self.held.items() if session != dead.session}
        self.begin_session()

    def kill_daemon(self) -> None:
        """Kill the daemon: every question goes back to its client."""
        kill_daemon(self.home)
        self.kills += 1
        for asking in self.asked:
            self.ends(asking, None)
        self.asked.clear()
        self.revive()

    def revive(self) -> None:
        """Let the next command start a daemon."""
        forget_last_start(self.home)
        self.leases()

    # -- leases ------------------------------------------------------------------------------------------

    def leases(self) -> dict[str, str]:
        """Who holds which file, as anybody is told."""
        done = self.home.fairlead("lease", "--json")
        assert done.exit_code == 0, done
        return {row["path"]: row["session"] for row in json.loads(done.stdout)["leases"]}

    def lease(self) -> None:
        """Take or release a lease while the daemon is killed. Who is told that it was done can rely on it."""
        by = self.random.choice(self.sessions)
        file = str(self.home.project / f"{self.random.randrange(FILES)}.py")
        releases = self.held.get(file) == by.session
        words = ["lease", *(["--release"] if releases else []), file]
        running = by.start([str(FAIRLEAD), *words], b"")
        sleep(self.random.uniform(0, LONGEST))
        self.kill_daemon()
        done, holder = running.end(), self.leases().get(file)
        before = self.held.get(file)
        if done.exit_code == 0:
            assert before in {None, by.session}, "a lease of another session cannot be taken"
            assert holder == (None if releases else by.session), done
        else:
            assert holder in {before, None if releases else by.session}, done
        self.held.pop(file, None)
        if holder is not None:
            self.held[file] = holder

    # -- questions ---------------------------------------------------------------------------------------

    def ask(self) -> Asking:
        before = {one["id"] for one in questions(self.home)}
        session = f"asks-{self.kills}-{len(self.asked)}"
        hook = start_hook(self.home, "PermissionRequest", call_of(self.home, session_id=session))
        asking = Asking(self.home, hook, session=session)
        until(lambda: len(questions(self.home)) > len(before), "the question can be answered")
        (asking.id,) = {one["id"] for one in questions(self.home)} - before
        self.asked.append(asking)
        return asking

    def ends(self, asking: Asking, answer: Answer | None) -> None:
        """A hook has ended: it says what the person has answered, and nothing else."""
        said: Any = asking.ends()
        if said == ALLOW:
            assert answer is not None, "nobody has allowed it"
            assert answer.decision == "allow"
            self.allowed += 1
        elif said is not None:
            assert answer is not None, "nobody has denied it"
            assert answer.decision == "deny"
        if answer is not None and answer.is_accepted:
            assert said is not None, "the person was told that it is answered"

    def answer(self) -> None:
        """Answer a question while the daemon is killed."""
        asking = self.ask()
        self.asked.remove(asking)
        answer = Answer(asking, self.random.choice(["allow", "deny"]))
        self.answered.append(answer.decision)
        person = Thread(target=answer.give)
        person.start()
        sleep(self.random.uniform(0, LONGEST))
        self.kill_daemon()
        person.join(PATIENCE)
        self.ends(asking, answer)

    def answer_as_agent(self) -> None:
        """Let an agent answer while the question is open, and let its hook be killed."""
        asking = self.ask()
        by = self.random.choice(self.sessions)
        done = by.start([str(FAIRLEAD), "answer", asking.id, "allow"], b"").end()
        assert done.exit_code == 1, done
        assert asking.is_waiting
        self.asked.remove(asking)
        asking.is_killed(self.random.choice([signal.SIGTERM, signal.SIGKILL]))
        self.kills += 1
        until(lambda: asking.id not in {one["id"] for one in questions(self.home)}, "the question is gone")

    # -- what must hold ----------------------------------------------------------------------------------

    def check(self) -> None:
        until(lambda: self.leases() == self.held, f"the leases are {self.held}")
        recorded = [one.verdict for one in self.home.journal() if isinstance(one, CommandsRecord)]
        assert self.allowed <= recorded.count("allowed") <= self.answered.count("allow")
        assert recorded.count("blocked") <= self.answered.count("deny")


@pytest.fixture
def model(open_home: DaemonHome) -> Iterator[Model]:
    turn_on(open_home)
    with ExitStack() as stack:
        made = Model(open_home, Random(0), stack)
        made.revive()
        for _ in range(SESSIONS):
            made.begin_session()
        yield made
        for asking in made.asked:
            asking.process.kill()


@pytest.mark.parametrize(("seed", "kills"), kill_rounds(16))
@pytest.mark.timeout(120 + ROUND * 15)
def test_nothing_is_allowed_without_a_person_and_no_lease_is_lost_or_held_by_the_dead(
    model: Model, seed: int, kills: int
) -> None:
    model.random.seed(seed)
    steps = [model.lease, model.lease, model.answer, model.answer, model.answer_as_agent, model.kill_session]
    while model.kills < kills:
        model.random.choice([*steps, model.ask])()
        model.check()
    assert model.answered
