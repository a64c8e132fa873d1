"""When the user is notified: once for each question, whatever else happens in the meantime."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sessions.fake_client import FakeClient

from fairlead.sessions import (
    AttentionLog,
    AttentionNeeded,
    AttentionRequest,
    AttentionSettings,
    decide_notification,
    encode_registry,
    restore_registry,
)
from fairlead.sessions._attention import IN_FRONT_DELAY, RETRY_DELAY
from fairlead.sessions._panes import client_shows

if TYPE_CHECKING:
    from collections.abc import Callable

GRACE = 2.0


class User:
    """The user of a fake client; keeps the notifications: of which session, and for which reason."""

    def __init__(self) -> None:
        self.client = FakeClient()
        self.log = AttentionLog()
        self.notified: list[tuple[str, str]] = []
        self.settings = AttentionSettings(GRACE)
        self.is_in_front = False

    def check(self) -> None:
        now = self.client.now
        self.log.update_all(self.client.registry.by_id.values(), now)
        for session, request in self.log.due(now):
            after = decide_notification(request, now, self.settings, lambda: self.is_in_front)
            if self.log.record(session, request, after):
                self.notified.append((session.id.removeprefix("abc123").removeprefix("/"), after.reason))

    def wait(self, seconds: float) -> None:
        for _ in range(int(seconds * 4)):
            self.client.now += 0.25
            self.check()

    def restart(self) -> None:
        """Restart the daemon from what is on disk."""
        saved = msgspec.json.decode(msgspec.json.encode(self.log.notified()), type=dict[str, AttentionRequest])
        self.client.registry = restore_registry(encode_registry(self.client.registry))
        self.log = AttentionLog(saved)

    def ask(self, tool: str = "Bash", call: str = "t1", **fields: Any) -> None:
        self.client.pre(tool, call, **fields)
        self.client("PermissionRequest", tool_name=tool, after=0.01, **fields)
        self.check()


@pytest.fixture
def user() -> User:
    return User()


def test_a_question_is_notified_after_the_grace_period(user: User) -> None:
    user.ask()
    user.wait(GRACE - 0.5)
    assert user.notified == []

    user.wait(1)
    assert user.notified == [("", "Permission for Bash")]


def test_without_a_grace_period_it_is_notified_at_once(user: User) -> None:
    user.settings = AttentionSettings(0)
    user.ask()
    assert user.notified == [("", "Permission for Bash")]


def test_a_question_that_is_answered_at_once_is_not_notified(user: User) -> None:
    user.ask()
    user.wait(GRACE - 0.5)
    user.client.post()
    user.wait(60)
    assert user.notified == []


def repeat_by_notification(user: User) -> None:
    user.client("Notification", notification_type="permission_prompt", after=6)


def repeat_the_event(user: User) -> None:
    user.client("PermissionRequest", tool_name="Bash", after=0.5)


def restart_daemon(user: User) -> None:
    user.restart()


def start_other_call(user: User) -> None:
    user.client.pre("Read", "t9", after=0.5)


@pytest.mark.parametrize("repeat", [repeat_by_notification, repeat_the_event, restart_daemon, start_other_call])
def test_the_same_question_is_notified_once(user: User, repeat: Callable[[User], None]) -> None:
    user.ask()
    user.wait(5)
    repeat(user)
    user.wait(600)
    assert user.notified == [("", "Permission for Bash")]


@pytest.mark.parametrize("between", [0.0, 6.0])
def test_a_question_about_an_unknown_call_is_not_repeated_by_the_clients_notification(
    user: User, between: float
) -> None:
    """The notification has another, less precise reason, and the more precise one is kept."""
    user.client("PermissionRequest", tool_name="Bash")
    user.wait(between)
    repeat_by_notification(user)
    assert user.client.state == AttentionNeeded("Permission for Bash")
    user.restart()
    user.wait(600)
    assert len(user.notified) == 1


def test_a_notification_before_the_question_is_the_same_question(user: User) -> None:
    user.client("UserPromptSubmit")
    repeat_by_notification(user)
    user.wait(5)
    user.client("PermissionRequest", tool_name="Bash")
    user.wait(60)
    assert user.notified == [("", "Permission")]


def test_another_question_is_notified_after_the_session_worked_again(user: User) -> None:
    user.ask(call="t1")
    user.wait(5)
    user.client.post(call="t1")
    user.ask(call="t2")
    user.wait(5)
    assert user.notified == [("", "Permission for Bash"), ("", "Permission for Bash")]


def test_another_question_is_notified_even_if_the_work_between_was_not_seen(user: User) -> None:
    """No daemon was running, or all events arrived at once."""
    user.ask(call="t1")
    user.wait(5)
    user.client.post(call="t1", after=0.0)
    user.client.pre(call="t2", after=0.0)
    user.client("PermissionRequest", tool_name="Bash", after=0.001)
    user.restart()
    user.wait(5)
    assert len(user.notified) == 2


def test_another_reason_is_notified_even_if_the_session_did_not_work_between(user: User) -> None:
    """Two parallel calls ask, one after the other."""
    user.ask("Bash", "t1")
    user.client.pre("Edit", "t2", after=0.1)
    user.client("PermissionRequest", tool_name="Edit", after=0.1)
    user.wait(5)
    user.client.post("Bash", "t1")
    user.wait(5)
    assert user.notified == [("", "Permission for Bash"), ("", "Permission for Edit")]


def test_an_error_of_the_models_api_is_notified(user: User) -> None:
    user.client("UserPromptSubmit")
    user.client("StopFailure", error="overloaded")
    user.wait(5)
    user.client("Notification", notification_type="idle_prompt", after=60)
    user.wait(60)
    assert user.notified == [("", "API error: overloaded")]


def test_a_subagents_question_is_notified_once_although_the_client_shows_it_in_the_main_session(user: User) -> None:
    user.client("SubagentStart", agent_id="a1", agent_type="Explore")
    user.ask(agent_id="a1", agent_type="Explore")
    user.wait(5)
    repeat_by_notification(user)
    user.wait(60)
    assert user.notified == [("a1", "Permission for Bash")]


def test_two_subagents_are_two_questions(user: User) -> None:
    for name in ("a1", "a2"):
        user.client("SubagentStart", agent_id=name, agent_type="Explore")
        user.ask(call=name, agent_id=name, agent_type="Explore")
    user.wait(60)
    assert user.notified == [("a1", "Permission for Bash"), ("a2", "Permission for Bash")]


def test_in_quiet_hours_nothing_is_notified_and_afterwards_what_still_waits_is(user: User) -> None:
    user.settings = AttentionSettings(GRACE, can_notify=False)
    user.ask()
    user.wait(600)
    assert (user.notified, user.log.deferred_count(user.client.now), user.log.pending_count) == ([], 1, 1)

    user.settings = AttentionSettings(GRACE)
    user.restart()
    user.wait(RETRY_DELAY + 1)
    assert user.notified == [("", "Permission for Bash")]


def test_a_question_that_was_answered_in_quiet_hours_is_never_notified(user: User) -> None:
    user.settings = AttentionSettings(GRACE, can_notify=False)
    user.ask()
    user.wait(60)
    user.client.post()
    user.settings = AttentionSettings(GRACE)
    user.wait(60)
    assert (user.notified, user.log.waiting_count) == ([], 0)


def test_a_user_who_looks_at_the_pane_is_notified_only_after_they_look_away(user: User) -> None:
    user.is_in_front = True
    user.ask()
    user.wait(600)
    assert user.notified == []

    user.is_in_front = False
    user.wait(IN_FRONT_DELAY + 1)
    assert user.notified == [("", "Permission for Bash")]


def test_a_user_who_looks_at_the_pane_is_notified_if_the_settings_say_so(user: User) -> None:
    user.is_in_front, user.settings = True, AttentionSettings(GRACE, when_in_front=True)
    user.ask()
    user.wait(5)
    assert len(user.notified) == 1


def test_a_session_that_ends_needs_no_attention(user: User) -> None:
    user.ask()
    user.client("SessionEnd", reason="other")
    user.wait(60)
    assert (user.notified, user.log.notified(), user.log.waiting_count) == ([], {}, 0)


def test_a_dropped_session_is_removed(user: User) -> None:
    user.ask()
    user.wait(5)
    user.client.registry.drop("abc123")
    user.check()
    assert user.log.notified() == {}


def test_a_decision_about_a_session_that_has_changed_is_ignored(user: User) -> None:
    user.settings = AttentionSettings(0)
    user.client.pre()
    user.client("PermissionRequest", tool_name="Bash")
    user.log.update_all(user.client.registry.by_id.values(), user.client.now)
    [(session, request)] = user.log.due(user.client.now)
    after = decide_notification(request, user.client.now, user.settings, lambda: False)
    user.client.post()
    user.log.update_all(user.client.registry.by_id.values(), user.client.now)
    assert after.is_notified
    assert not user.log.record(session, request, after)


def test_a_clock_that_was_set_back_does_not_delay_it(user: User) -> None:
    user.client.pre()
    user.client("PermissionRequest", tool_name="Bash")
    user.log.update_all(user.client.registry.by_id.values(), user.client.now)
    user.client.now -= 3600
    user.wait(GRACE + 1)
    assert len(user.notified) == 1


# -- random steps --------------------------------------------------------------------------------------

STEPS = st.one_of(
    st.tuples(st.just("wait"), st.sampled_from([0.25, 1.0, 3.0, 10.0, 100.0])),
    st.tuples(st.just("ask"), st.sampled_from(["Bash", "Edit"])),
    st.tuples(st.just("ask unseen"), st.sampled_from(["Bash", "Edit"])),
    st.tuples(st.sampled_from(["work", "note", "repeat", "restart", "quiet", "loud", "front", "away"]), st.none()),
)
LONG = IN_FRONT_DELAY + GRACE + RETRY_DELAY
"""Seconds after which every delay must be over."""


class CheckedUser(User):
    """Runs steps, and keeps what must follow from them."""

    def __init__(self) -> None:
        super().__init__()
        self.period = 0
        self.by_period: list[tuple[int, str]] = []
        """The notifications: in which period of attention, and for which reason."""
        self.expected: set[tuple[int, str]] = set()
        """What must have been notified: it lasted, and the user could be notified."""
        self._current: tuple[int, str] | None = None
        self._lasted = 0.0
        self._calls = 0

    def check(self) -> None:
        before = len(self.notified)
        super().check()
        assert len(self.notified) == before or (self.settings.can_notify and not self.is_in_front)
        self.by_period += [(self.period, reason) for _, reason in self.notified[before:]]

    def wait(self, seconds: float) -> None:
        for _ in range(int(seconds * 4)):
            super().wait(0.25)
            state, is_open = self.client.state, self.settings.can_notify and not self.is_in_front
            now = (self.period, state.reason) if is_open and isinstance(state, AttentionNeeded) else None
            self._current, self._lasted = now, self._lasted + 0.25 if now == self._current else 0.0
            if now is not None and self._lasted > LONG:
                self.expected.add(now)

    def step(self, name: str, value: Any) -> None:
        if name == "wait":
            return self.wait(value)
        if name in {"quiet", "loud"}:
            self.settings = AttentionSettings(GRACE, can_notify=name == "loud")
        elif name in {"front", "away"}:
            self.is_in_front = name == "front"
        elif name == "restart":
            self.restart()
        else:
            self._send(name, value)
        return None

    def _send(self, name: str, tool: str) -> None:
        self._calls += 1
        if name == "ask":
            self.client.pre(tool, f"t{self._calls}", after=0.1)
            self._count_period()
            self.client("PermissionRequest", tool_name=tool, after=0.1)
        elif name == "ask unseen":
            self.client("PermissionRequest", tool_name=tool, after=0.1)
        elif name == "repeat":
            self.client("Notification", notification_type="permission_prompt", after=6)
        elif name == "note":
            self.client("Notification", notification_type="auth_success", after=0.1)
        else:
            self.client("UserPromptSubmit", after=0.1)
        self._count_period()

    def _count_period(self) -> None:
        if not isinstance(self.client.state, AttentionNeeded):
            self.period += 1


@given(st.lists(STEPS, max_size=25))
@example([("ask", "Bash"), ("wait", 3.0), ("repeat", None), ("restart", None), ("wait", 10.0)])
@example([("ask unseen", "Bash"), ("repeat", None), ("wait", 100.0), ("ask unseen", "Edit"), ("wait", 100.0)])
def test_every_question_that_lasts_is_notified_and_none_is_notified_twice(steps: list[tuple[str, Any]]) -> None:
    checked = CheckedUser()
    checked.client("UserPromptSubmit")
    for name, value in steps:
        checked.step(name, value)

    assert len(checked.by_period) == len(set(checked.by_period))
    for period, reason in checked.expected:
        reasons = [other for number, other in checked.by_period if number == period]
        assert reason in reasons or (reasons and "Permission" in {reason, *reasons})  # the notification's wording


# -- panes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "is_shown"),
    [
        ("%1 1000 1 attached,focused,UTF-8", True),
        ("%1 10 1 attached,focused", True),
        ("%1 1000 1 attached,UTF-8", False),
        ("%1 1000 0 attached,focused,UTF-8", True),
        ("%1 10 0 attached,focused,UTF-8", False),
        ("%1 1000 on attached", False),
        ("%1 1000  ", True),
        ("%1 10  ", False),
        ("%1  1 ", False),
        ("%11 1000 1 attached,focused", False),
        ("%2 1000 1 attached,focused", False),
        ("", False),
        ("no server running", False),
    ],
)
def test_a_terminal_shows_a_pane_if_it_has_the_focus_or_else_had_input_lately(line: str, *, is_shown: bool) -> None:
    assert client_shows(line, "%1", 1030.0) is is_shown
