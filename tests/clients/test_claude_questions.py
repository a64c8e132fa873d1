"""What the user is asked about a tool call of Claude Code: one line that says it, and the details below."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.clients import Choice, client_named
from fairlead.events import HookOutput, PermissionRequest, PreToolUse, StopFailure
from fairlead.sessions import AttentionNeeded, Registry, Working, bounded_session
from fairlead.testing import make

CLAUDE = client_named("claude")
EDIT = {"file_path": "/p/a.py", "old_string": "one\ntwo\nthree\n", "new_string": "one\n2\nthree\n"}
OPTIONS = [{"label": "Red", "description": "as a brick"}, {"label": "Blue"}]


@pytest.mark.parametrize(
    ("tool", "tool_input", "question"),
    [
        ("Bash", {"command": "make\nmake install", "description": "Build"}, "make\nmake install"),
        ("Edit", EDIT, "/p/a.py\n one\n-two\n+2\n three"),
        ("Write", {"file_path": "/p/new.py", "content": "a\nb\n"}, "/p/new.py\n+a\n+b"),
        ("MultiEdit", {"file_path": "/p/a.py", "edits": [EDIT, EDIT]}, "/p/a.py" + 2 * "\n one\n-two\n+2\n three"),
        ("Edit", {"file_path": "/p/a.py", "old_string": "gone", "new_string": ""}, "/p/a.py\n-gone"),
        ("ExitPlanMode", {"plan": "# Plan\n1. Do it\n"}, "# Plan\n1. Do it"),
        (
            "AskUserQuestion",
            {"questions": [{"question": "Which colour?", "header": "Colour", "options": OPTIONS}]},
            "Which colour?\n  - Red: as a brick\n  - Blue",
        ),
        ("AskUserQuestion", {"questions": "not a list"}, ""),
        ("Edit", {"file_path": "/p/a.py", "old_string": 3, "edits": [4]}, "/p/a.py"),
        ("WebFetch", {"url": "https://example.com", "prompt": "read it"}, "https://example.com"),
        ("Edit", {**EDIT, "replace_all": True}, "/p/a.py\n one\n-two\n+2\n three\nreplace_all: yes"),
        ("Bash", {"command": "make", "run_in_background": True, "x": False}, "make\nrun_in_background: yes"),
        ("mcp__wiki__edit", {"title": "Home", "tags": ["a", 1]}, 'title: Home\ntags: ["a",1]'),
        ("mcp__shell__run", {"command": "make", "host": "build"}, "make\nhost: build"),
    ],
)
def test_the_first_line_says_it_and_the_details_follow(tool: str, tool_input: dict[str, Any], question: str) -> None:
    assert CLAUDE.question_of(tool, tool_input) == question


def test_a_large_change_is_shown_to_its_end_and_not_compared_line_by_line() -> None:
    """That comparison takes more than linear time."""
    same = "".join(f"same {n}\n" for n in range(20_000))
    old, new = "a\nb\n" * 50_000, "b\nc\n" * 50_000
    edit = {"file_path": "/p/a", "old_string": f"{same}{old}end\n", "new_string": f"{same}{new}end\n"}
    lines = CLAUDE.question_of("Edit", edit).split("\n")
    assert lines[:2] == ["/p/a", "-a"]
    assert (lines.count("-a"), lines.count("+c"), lines[-1]) == (50_000, 50_000, "+c")


def test_a_small_change_of_a_large_text_is_compared() -> None:
    same = "".join(f"same {n}\n" for n in range(20_000))
    edit = {"file_path": "/p/a", "old_string": f"{same}one\n{same}", "new_string": f"{same}two\n{same}"}
    lines = CLAUDE.question_of("Edit", edit).split("\n")
    assert lines == ["/p/a", " same 19998", " same 19999", "-one", "+two", " same 0", " same 1"]


def test_what_no_model_can_write_at_once_is_cut_and_says_so() -> None:
    question = CLAUDE.question_of("Write", {"file_path": "/p/a", "content": "a\n" * 1_000_000})
    assert question.endswith("+a\n… and 1000000 more characters")


def test_a_session_keeps_what_is_asked() -> None:
    registry, call = Registry(), {"tool_name": "Edit", "tool_input": EDIT}
    registry.apply_event(make(PreToolUse, tool_use_id="t1", session_id="s", **call), 1.0)
    registry.apply_event(make(PermissionRequest, session_id="s", **call), 2.0)
    asked = AttentionNeeded("Permission for Edit", "/p/a.py\n one\n-two\n+2\n three")
    assert registry.sessions()[0].state == asked


def test_an_error_has_the_clients_own_message() -> None:
    registry = Registry()
    failure = make(StopFailure, session_id="s", error="unknown", last_assistant_message="API Error: 400 bad thing")
    registry.apply_event(failure, 1.0)
    assert registry.sessions()[0].state == AttentionNeeded("API error: unknown", "API Error: 400 bad thing")


# -- answers -----------------------------------------------------------------------------------------------


def test_the_choices_of_a_question_can_be_answered_by_its_text() -> None:
    questions = [
        {"question": "Which colour?", "options": OPTIONS},
        {"question": "Which fruits?", "multiSelect": True, "options": [{"label": "Apple"}, 3, {"label": 4}]},
    ]
    choices = CLAUDE.choices_of("AskUserQuestion", {"questions": questions})
    assert choices == (
        Choice("Which colour?", ("Red", "Blue"), descriptions=("as a brick", "")),
        Choice("Which fruits?", ("Apple",), allows_several=True, descriptions=("",)),
    )
    output = CLAUDE.approval("AskUserQuestion", {"questions": questions}, ["Blue", "Apple"])
    assert output.permission == "allow"
    assert output.updated_input == {
        "questions": questions,
        "answers": {"Which colour?": "Blue", "Which fruits?": "Apple"},
    }


@pytest.mark.parametrize(
    "questions",
    ["no list", [3], [{"header": "x"}], [{"question": "Twice?"}, {"question": "Twice?"}], []],
)
def test_what_cannot_be_read_is_left_to_the_client(questions: object) -> None:
    """Without an input in the answer the client's own question stays."""
    assert CLAUDE.choices_of("AskUserQuestion", {"questions": questions}) == ()
    assert CLAUDE.approval("AskUserQuestion", {"questions": questions}, ()) == HookOutput.grant()


def test_a_call_is_allowed_as_it_is_and_a_plan_with_its_input() -> None:
    assert CLAUDE.approval("Bash", {"command": "make"}, ()) == HookOutput.grant()
    assert CLAUDE.approval("ExitPlanMode", {"plan": "x"}, ()).updated_input == {"plan": "x"}


# -- a question that was answered outside of the client -----------------------------------------------------


def asking(*commands: str) -> Registry:
    registry = Registry()
    for number, command in enumerate(commands):
        call = {"tool_name": "Bash", "tool_input": {"command": command}, "session_id": "s"}
        registry.apply_event(make(PreToolUse, tool_use_id=f"t{number}", **call), 1.0 + number / 10)
        registry.apply_event(make(PermissionRequest, **call), 2.0 + number / 10)
    return registry


def test_an_answer_ends_the_question_and_the_session_works() -> None:
    registry = asking("make")
    registry.set_answered("s", "Bash", "make", 9.0)
    (session,) = registry.sessions()
    assert (session.state, session.since) == (Working("Bash"), 9.0)
    assert session.evidence is not None
    assert session.evidence.why == "it was answered outside of the client"


def test_another_question_of_the_session_stays() -> None:
    registry = asking("make", "make test")
    registry.set_answered("s", "Bash", "make", 9.0)
    assert registry.sessions()[0].state == AttentionNeeded("Permission for Bash", "make test")


def test_an_answer_to_what_is_not_asked_changes_nothing() -> None:
    registry = asking("make")
    before = registry.revision
    registry.set_answered("s", "Bash", "make install", 9.0)
    registry.set_answered("other", "Bash", "make", 9.0)
    assert registry.revision == before


def test_a_session_keeps_all_of_a_question_and_lists_have_its_beginning() -> None:
    registry = asking("x" * 5000)
    (session,) = registry.sessions()
    assert session.state == AttentionNeeded("Permission for Bash", "x" * 5000)
    cut = "x" * 4000 + "\n… and 1000 more characters"
    listed = bounded_session(session)
    assert listed.state == AttentionNeeded("Permission for Bash", cut)
    assert [call.question for call in listed.calls.values()] == [cut]
    changes = registry.log.since(registry.revision - 1)
    assert [change.session for change in changes or ()] == [listed]


def test_a_short_question_is_listed_as_it_is() -> None:
    (session,) = asking("make").sessions()
    assert bounded_session(session) is session
