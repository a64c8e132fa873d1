"""Matchers in the client's syntax."""

from __future__ import annotations

import re
from typing import Any

import pytest

from fairlead.errors import MatcherError, RegistrationError
from fairlead.events import (
    Event,
    HookEvent,
    SessionStart,
    Stop,
    TaskEvent,
    ToolEvent,
    pre_tool_use,
    session_start,
    stop,
)
from fairlead.hooks._match import check_subjects, compile_matcher


def matches(matcher: Any, subject: str) -> bool:
    wants = compile_matcher(matcher)
    return wants is None or wants(pre_tool_use("s", subject, {}))


@pytest.mark.parametrize("matcher", [None, "", "*", " ", " * "])
def test_nothing_and_a_star_accept_every_event(matcher: str | None) -> None:
    assert compile_matcher(matcher) is None


@pytest.mark.parametrize(
    "matcher", ["Bash", "Read|Bash", "Read, Bash", "Read,Bash", " Read | Bash ", "Ba.*", "^Ba", ".*sh"]
)
def test_the_client_matches_these_with_bash_and_so_do_we(matcher: str) -> None:
    assert matches(matcher, "Bash")


@pytest.mark.parametrize("matcher", ["bash", "Ba", "Bash(echo *)", "Read|Write", "Read, Write", "^ash"])
def test_the_client_does_not_match_these_with_bash_and_neither_do_we(matcher: str) -> None:
    assert not matches(matcher, "Bash")


@pytest.mark.parametrize(
    ("matcher", "subject"), [("Bash", "BashOutput"), ("Edit", "MultiEdit"), ("Edit", "NotebookEdit")]
)
def test_a_plain_name_is_exact(matcher: str, subject: str) -> None:
    assert not matches(matcher, subject)


@pytest.mark.parametrize(
    "matcher", ["general-purpose", "mcp__server__tool", "my agent", "Bash2", "code-reviewer|tester"]
)
def test_letters_digits_underscores_hyphens_and_blanks_make_a_plain_name(matcher: str) -> None:
    subject = matcher.partition("|")[0]

    assert matches(matcher, subject)
    assert not matches(matcher, f"x{subject}")
    assert not matches(matcher, f"{subject}x")


@pytest.mark.parametrize("subject", ["mcp__memory__read", "xmcp__memory__y"])
def test_a_regular_expression_is_found_anywhere(subject: str) -> None:
    assert matches("mcp__memory__.*", subject)
    assert matches(re.compile("memory"), subject)


def test_a_compiled_pattern_keeps_its_flags() -> None:
    assert matches(re.compile("bash", re.IGNORECASE), "Bash")


@pytest.mark.parametrize("matcher", ["Task", "Agent", "Bash|Task", "Agent|Bash"])
@pytest.mark.parametrize("subject", ["Task", "Agent"])
def test_both_names_of_the_agent_tool_match_it(matcher: str, subject: str) -> None:
    assert matches(matcher, subject)


def test_the_two_names_match_nothing_else() -> None:
    assert not matches("Task", "TaskCreate")


def test_a_function_gets_the_event_itself() -> None:
    event = pre_tool_use("s", "Bash", {"command": "rm"})
    asked: list[Event] = []

    wants = compile_matcher(lambda e: asked.append(e) or True)  # type: ignore[func-returns-value]

    assert wants is not None
    assert wants(event)
    assert asked[0] is event


@pytest.mark.parametrize(("subject", "wanted"), [("startup", True), ("resume", True), ("clear", False), ("", False)])
def test_a_matcher_tests_the_subject_of_any_event(subject: str, wanted: bool) -> None:
    wants = compile_matcher("startup|resume")

    assert wants is not None
    assert wants(SessionStart(session_id="s", source=subject)) is wanted


def test_a_subject_that_the_client_did_not_send_is_matched_by_no_name() -> None:
    wants = compile_matcher("startup")

    assert wants is not None
    assert not wants(session_start("s"))


@pytest.mark.parametrize(
    ("matcher", "message"),
    [
        ("Bash(", "matcher 'Bash(': not a valid regular expression: missing ), unterminated subpattern at position 4"),
        ("[", "matcher '[': not a valid regular expression: unterminated character set at position 0"),
        ("*Bash", "matcher '*Bash': not a valid regular expression: nothing to repeat at position 0"),
        (7, "matcher: expected a string, a pattern or a function, got int"),
        (b"Bash", "matcher: expected a string, a pattern or a function, got bytes"),
        (["Bash"], "matcher: expected a string, a pattern or a function, got list"),
    ],
)
def test_a_bad_matcher_is_refused(matcher: Any, message: str) -> None:
    with pytest.raises(MatcherError) as caught:
        compile_matcher(matcher)

    assert str(caught.value) == message


def test_a_bytes_pattern_is_refused() -> None:
    with pytest.raises(MatcherError):
        compile_matcher(re.compile(b"Bash"))  # type: ignore[arg-type]


def test_a_bad_matcher_is_a_registration_error_among_others() -> None:
    assert issubclass(MatcherError, RegistrationError)


# -- events without a subject --------------------------------------------------------------------------

WITHOUT = [event for event in HookEvent if event.type.subject_field is None]


@pytest.mark.parametrize("matcher", ["Bash", "Ba.*", re.compile("x")], ids=repr)
def test_a_matcher_on_an_event_without_a_subject_is_refused(matcher: Any) -> None:
    for event in WITHOUT:
        with pytest.raises(MatcherError) as caught:
            check_subjects(matcher, [SessionStart, event.type])

        assert str(caught.value) == f"matcher {matcher!r}: {event.value} has no subject to match; leave the matcher out"


@pytest.mark.parametrize("matcher", [None, "", "*", lambda _: True], ids=["None", "empty", "star", "function"])
def test_a_matcher_that_ignores_the_subject_is_valid_on_every_event(matcher: Any) -> None:
    check_subjects(matcher, [event.type for event in HookEvent])


def test_a_matcher_on_all_events_or_all_tool_events_is_valid() -> None:
    check_subjects("Bash", [Event, ToolEvent])


def test_a_matcher_on_a_base_class_of_events_without_a_subject_is_refused() -> None:
    with pytest.raises(MatcherError):
        check_subjects("Bash", [TaskEvent])


def test_a_name_never_matches_an_event_without_a_subject() -> None:
    wants = compile_matcher("Stop")

    assert wants is not None
    assert not wants(stop("s"))
    assert Stop.subject_field is None
