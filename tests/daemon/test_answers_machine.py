"""Questions, answers and deaths in any order: nothing is allowed without a person, and every answer arrives once.

Real processes: a daemon that is killed and started again, and the launchers of a client that asks.
"""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from daemon.asking import ALLOW, Asking, call_of, questions, start_hook, turn_on
from daemon.daemon_home import FAIRLEAD, scratch_home, until
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from fairlead.ipc import RequestRefused
from fairlead.journal import CommandsRecord

if TYPE_CHECKING:
    from daemon.daemon_home import DaemonHome, DaemonProcess

STEPS = 14
MACHINES = 6


class AnswersMachine(RuleBasedStateMachine):
    """A home in which sessions ask, and a person, an agent and accidents end their questions."""

    def __init__(self) -> None:
        super().__init__()
        self._stack = ExitStack()
        self.home: DaemonHome = self._stack.enter_context(scratch_home())
        self.daemon: DaemonProcess
        self.open: list[Asking] = []
        self.closed: list[str] = []
        """The ids of questions that are over."""
        self.verdicts: list[str] = []
        """What the person was told to have answered, in order."""

    @initialize()
    def begin(self) -> None:
        turn_on(self.home)
        self.daemon = self.home.start()

    def teardown(self) -> None:
        try:
            for asking in self.open:
                asking.is_killed()
            assert self.recorded() == self.verdicts
        finally:
            self.daemon.kill()
            self.daemon.wait()
            self._stack.close()

    def recorded(self) -> list[str]:
        return [record.verdict for record in self.home.journal() if isinstance(record, CommandsRecord)]

    def take(self, data: st.DataObject) -> Asking:
        asking = self.open.pop(data.draw(st.integers(0, len(self.open) - 1)))
        self.closed.append(asking.id)
        return asking

    # -- a session asks ----------------------------------------------------------------------------------

    @precondition(lambda self: len(self.open) < 3)
    @rule()
    def a_session_asks(self) -> None:
        before = {one["id"] for one in questions(self.home)}
        assert before == {asking.id for asking in self.open}
        session = f"s{len(self.closed) + len(self.open)}"
        hook = start_hook(self.home, "PermissionRequest", call_of(self.home, session_id=session))
        asking = Asking(self.home, hook, session=session)
        until(lambda: len(questions(self.home)) > len(before), "the question can be answered")
        (asking.id,) = {one["id"] for one in questions(self.home)} - before
        self.open.append(asking)

    # -- a person answers --------------------------------------------------------------------------------

    @precondition(lambda self: self.open)
    @rule(data=st.data(), decision=st.sampled_from(["allow", "deny"]))
    def a_person_answers(self, data: st.DataObject, decision: str) -> None:
        asking = self.take(data)
        asking.answer(decision)
        self.verdicts.append("allowed" if decision == "allow" else "blocked")
        assert (asking.ends() == ALLOW) is (decision == "allow")

    @precondition(lambda self: self.open)
    @rule(data=st.data(), decision=st.sampled_from(["allow", "deny"]))
    def a_person_answers_and_the_daemon_is_killed_before_the_hook_has_read_it(
        self, data: st.DataObject, decision: str
    ) -> None:
        asking = self.take(data)
        os.kill(asking.process.pid, signal.SIGSTOP)
        asking.answer(decision)
        self.verdicts.append("allowed" if decision == "allow" else "blocked")
        self.the_daemon_is_killed()
        os.kill(asking.process.pid, signal.SIGCONT)
        assert (asking.ends() == ALLOW) is (decision == "allow")

    @precondition(lambda self: self.closed)
    @rule(data=st.data())
    def a_person_answers_what_is_over(self, data: st.DataObject) -> None:
        with pytest.raises(RequestRefused) as refused:
            self.home.ask("POST", f"/v1/answers/{data.draw(st.sampled_from(self.closed))}", body={"decision": "allow"})
        assert refused.value.status == 404

    # -- somebody else does ------------------------------------------------------------------------------

    @precondition(lambda self: self.open)
    @rule(data=st.data(), by_variable=st.booleans())
    def an_agent_tries_to_answer(self, data: st.DataObject, *, by_variable: bool) -> None:
        asking = data.draw(st.sampled_from(self.open))
        shell = self.home.folder / "claude"
        if not shell.exists():
            shell.symlink_to("/bin/sh")
        program = "/bin/sh" if by_variable else str(shell)
        env = self.home.environment(**({"CLAUDECODE": "1"} if by_variable else {}))
        words = [program, "-c", f"{FAIRLEAD} answer {asking.id} allow; exit $?"]
        assert subprocess.run(words, env=env, cwd=self.home.project, capture_output=True, check=False).returncode == 1
        assert asking.is_waiting

    # -- nobody answers ----------------------------------------------------------------------------------

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def the_client_goes_on(self, data: st.DataObject) -> None:
        asking = self.take(data)
        payload = call_of(self.home, "PostToolUse", session_id=asking.session, tool_response={})
        self.home.hook("PostToolUse", payload)
        assert asking.ends() is None

    @precondition(lambda self: self.open)
    @rule(data=st.data(), number=st.sampled_from([signal.SIGTERM, signal.SIGKILL]))
    def the_hook_is_killed(self, data: st.DataObject, number: int) -> None:
        asking = self.take(data)
        asking.is_killed(number)
        until(lambda: asking.id not in {one["id"] for one in questions(self.home)}, "the question is gone")

    @rule()
    def the_daemon_is_killed(self) -> None:
        self.daemon.kill()
        self.daemon.wait()
        self._all_go_back()
        self.daemon = self.home.start()
        assert questions(self.home) == []

    @rule()
    def the_daemon_stops(self) -> None:
        self.daemon.terminate()
        self.daemon.wait()
        self._all_go_back()
        self.daemon = self.home.start()

    def _all_go_back(self) -> None:
        for asking in self.open:
            assert asking.ends() is None
            self.closed.append(asking.id)
        self.open.clear()


TestAnswersMachine: Any = AnswersMachine.TestCase
TestAnswersMachine.settings = settings(
    max_examples=MACHINES,
    stateful_step_count=STEPS,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=False,
)
TestAnswersMachine = pytest.mark.timeout(280)(TestAnswersMachine)
