"""When the user is notified, and the text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import pytest

from fairlead import HookEvent, Notification, OtherEvent, pre_tool_use, session_start, stop, subagent_start
from fairlead.notify import Note, Status, WaitingSession, attention_note, event_note, is_system_event

if TYPE_CHECKING:
    from fairlead import Event

START = subagent_start("s1", "coder", "coder", "writes code")
BASH = pre_tool_use("s1", "Bash", {"command": "rm -rf /"})


def note_for(event: Event, status: Status, detail: str | None = None, /, **settings: Any) -> Note | None:
    """Compose a note with the policy's default settings, but enabled."""
    defaults: dict[str, Any] = {
        "enabled": True,
        "events": ["*"],
        "show_errors": False,
        "show_success": False,
        "show_system_events": True,
    }
    return event_note(event, status=status, detail=detail, **(defaults | settings))


# -- the seed's scenarios ------------------------------------------------------------------------------


def test_subagent_start_is_a_system_event() -> None:
    assert is_system_event("SubagentStart") is True


def test_subagent_start_in_the_list_is_notified_with_its_name_and_the_agents_id() -> None:
    note = note_for(START, "success", events=["SubagentStart"], show_system_events=True)

    assert note == Note("Fairlead - SubagentStart", "coder: Subagent started", "success")


def test_a_star_includes_subagent_start() -> None:
    assert note_for(START, "success", events=["*"]) == Note(
        "Fairlead - SubagentStart", "coder: Subagent started", "success"
    )


def test_the_former_name_of_the_list_of_events_still_works() -> None:
    assert note_for(START, "success", events=[], hooks=["SubagentStart"], show_system_events=True) is not None


@pytest.mark.parametrize("events", [["*"], ["SubagentStart"]])
def test_without_system_events_a_successful_subagent_start_is_not_notified(events: list[str]) -> None:
    assert note_for(START, "success", events=events, show_system_events=False) is None
    assert note_for(START, "success", events=events, show_system_events=False, show_success=True) is None


def test_an_event_that_is_not_in_the_list_is_not_notified() -> None:
    everything = {"show_errors": True, "show_success": True, "show_system_events": True}

    assert note_for(START, "success", events=["Stop", "PreToolUse"], **everything) is None


# -- the settings --------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", get_args(Status))
def test_nothing_is_notified_unless_enabled(status: Status) -> None:
    assert note_for(START, status, enabled=False, show_errors=True, show_success=True) is None


def test_an_empty_list_notifies_nothing() -> None:
    assert note_for(START, "success", events=[]) is None


@pytest.mark.parametrize(
    "name", ["SubagentStart", "subagentstart", "subagent_start", "subagent-start", " SubagentStart"]
)
def test_a_name_may_be_written_in_any_case(name: str) -> None:
    assert note_for(START, "success", events=["Stop", name]) is not None
    assert is_system_event(name)


STOP = stop("s1")
SHOWN = [
    ("success", STOP, {"show_success"}),
    ("running", STOP, {"show_success"}),
    ("failure", STOP, {"show_errors"}),
    ("blocked", STOP, {"show_errors"}),
    ("warning", STOP, {"show_errors"}),
    ("success", START, {"show_system_events"}),
    ("running", START, {"show_system_events"}),
    ("failure", START, {"show_errors"}),
    ("blocked", START, {"show_errors", "show_system_events"}),
    ("warning", START, {"show_errors", "show_system_events"}),
]


@pytest.mark.parametrize(("status", "event", "flags"), SHOWN)
def test_each_flag_alone_shows_its_statuses(status: Status, event: Event, flags: set[str]) -> None:
    off = dict.fromkeys(("show_errors", "show_success", "show_system_events"), False)

    assert {flag for flag in off if note_for(event, status, **(off | {flag: True}))} == flags
    assert note_for(event, status, **off) is None


def test_the_system_events_are_those_of_a_sessions_lifecycle() -> None:
    assert [event.value for event in HookEvent if is_system_event(event.value)] == [
        "SessionStart",
        "Setup",
        "SessionEnd",
        "UserPromptSubmit",
        "SubagentStart",
        "SubagentStop",
        "TeammateIdle",
        "Notification",
        "TaskCreated",
        "TaskCompleted",
        "PreCompact",
        "PostCompact",
        "ConfigChange",
        "WorktreeCreate",
        "WorktreeRemove",
    ]
    assert not is_system_event("")


# -- the text -------------------------------------------------------------------------------------------

EXPLORER = subagent_start("s1", "adb0a8b", "Explore", "looks around")
TEXTS: list[tuple[Event, Status, str | None, str, str]] = [
    (stop("s1"), "success", None, "Fairlead - Stop", "All checks passed"),
    (stop("s1"), "running", "Running: make test", "Fairlead - Stop", "Running: make test"),
    (stop("s1"), "failure", None, "Fairlead - Stop Failed", "Command failed"),
    (stop("s1"), "failure", " \n", "Fairlead - Stop Failed", "Command failed"),
    (stop("s1"), "failure", "make test: exit 2", "Fairlead - Stop Failed", "make test: exit 2"),
    (BASH, "blocked", "Not that.", "Fairlead - PreToolUse Blocked", "Bash: Not that."),
    (BASH, "warning", None, "Fairlead - PreToolUse Warning", "Bash: Passed with a warning"),
    (EXPLORER, "success", None, "Fairlead - SubagentStart", "Explore (adb0a8b): Subagent started"),
    (session_start("s1"), "success", None, "Fairlead - SessionStart", "Session started"),
    (
        Notification(session_id="s1", message="May I?", notification_type="permission_prompt"),
        "success",
        None,
        "Fairlead - Notification",
        "permission_prompt: May I?",
    ),
    (OtherEvent(session_id="s1", event_name="NewThing"), "success", None, "Fairlead - NewThing", "All checks passed"),
]


@pytest.mark.parametrize(("event", "status", "detail", "title", "body"), TEXTS)
def test_the_text_of_a_note(event: Event, status: Status, detail: str | None, title: str, body: str) -> None:
    assert note_for(event, status, detail, show_errors=True, show_success=True) == Note(title, body, status)


def test_a_note_is_one_visible_line() -> None:
    """Control characters, colours, line ends and direction marks become spaces."""
    note = note_for(stop("s1"), "failure", "a\x1b[31mb\r\nc\x00d\u202ee\ud800f\u2028g  h\x9d", show_errors=True)

    assert note is not None
    assert note.body == "a␛[31mb c␀d�e�f g h�"


def test_a_note_is_bounded_and_still_names_the_agent() -> None:
    note = note_for(subagent_start("s1", "adb0a8b", "x" * 9999, ""), "success", "y" * 10**6)

    assert note is not None
    assert note.body == f"{'x' * 59}… (adb0a8b): {'y' * 427}…"
    assert len(note.body) == 500


def test_the_name_of_an_unknown_event_is_bounded_too() -> None:
    note = note_for(OtherEvent(session_id="s1", event_name="N\n" * 9999), "failure", show_errors=True)

    assert note is not None
    assert note.title == f"Fairlead - {'N ' * 29}N… Failed"


# -- sessions that need the user ------------------------------------------------------------------------


def test_a_session_is_described_by_project_agent_reason_and_file() -> None:
    one = WaitingSession("shop", "Permission for Edit", "Explore", "cart.py")
    assert attention_note([one]) == Note(
        "Fairlead - shop needs you", "Explore: Permission for Edit: cart.py", "warning"
    )
    assert attention_note([WaitingSession("shop", "API error")]).body == "API error"


def test_many_sessions_share_one_note_that_names_the_first() -> None:
    many = [WaitingSession(f"p{number}", "Permission for Bash") for number in range(5)]
    note = attention_note(many)
    assert note.title == "Fairlead - 5 sessions need you"
    assert note.body == "p0: Permission for Bash; p1: Permission for Bash; p2: Permission for Bash; and 2 more"
    assert attention_note(many[:2]).body == "p0: Permission for Bash; p1: Permission for Bash"


def test_untrusted_text_is_bounded_and_plain() -> None:
    note = attention_note([WaitingSession("p" * 900 + "\n", "r\x1b[31m" + "r" * 900, "a" * 900, "f" * 900)] * 5)
    assert len(note.body) <= 500
    assert note.body.isprintable()
    alone = attention_note([WaitingSession("p" * 900, "x\ny")])
    assert alone == Note(f"Fairlead - {'p' * 59}… needs you", "x y", "warning")
