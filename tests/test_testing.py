"""The tools to test hooks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from fairlead import (
    Event,
    FileChanged,
    Hook,
    HookContext,
    HookEvent,
    HookManager,
    HookOutput,
    PayloadError,
    PostToolUse,
    PreToolUse,
    Stop,
    SubagentStart,
    UnknownEventError,
    UserPromptSubmit,
    parse,
    post_tool_use,
    pre_tool_use,
    stop,
    to_payload,
)
from fairlead.testing import Recorder, assert_allows, assert_blocks, make, make_payload, samples

if TYPE_CHECKING:
    from collections.abc import Callable

SUDO = pre_tool_use("s1", "Bash", {"command": "sudo ls"})
LS = pre_tool_use("s1", "Bash", {"command": "ls"})


class NoSudo(Hook):
    events = (PreToolUse,)

    def execute(self, event: PreToolUse, _ctx: HookContext) -> HookOutput | None:
        return HookOutput.block("no sudo") if "sudo" in event.tool_input["command"] else None


def no_sudo() -> HookManager:
    manager = HookManager()
    manager.register(NoSudo())
    return manager


def broken(error: Exception) -> HookManager:
    manager = HookManager()

    @manager.on(Event)
    def guard(event: Event) -> None:
        raise error

    return manager


def failure_of(assertion: Callable[..., Any], *args: Any) -> str:
    """Return the message of a failed assertion, without the milliseconds."""
    with pytest.raises(AssertionError) as caught:
        assertion(*args)
    return re.sub(r"\d+\.\d ms", "… ms", str(caught.value))


# -- make ----------------------------------------------------------------------------------------------


def test_make_creates_every_event_from_a_real_payload() -> None:
    for event in HookEvent:
        made = make(event.type)

        assert type(made) is event.type
        assert made == parse(make_payload(event))


def test_make_changes_fields() -> None:
    made = make(PreToolUse, tool_name="Bash", tool_input={"command": "ls"}, session_id="mine")

    assert (made.tool_name, made.tool_input, made.session_id) == ("Bash", {"command": "ls"}, "mine")
    assert made.cwd == make(PreToolUse).cwd


def test_make_keeps_a_field_that_is_unknown() -> None:
    assert make(Stop, brand_new=[1]).extra == {"brand_new": [1]}


def test_make_refuses_what_the_client_could_not_send() -> None:
    with pytest.raises(PayloadError, match=r"^session_id cannot be empty$"):
        make(Stop, session_id=" ")


def test_a_field_may_have_the_name_of_a_parameter() -> None:
    """FileChanged has a field `event`."""
    changes: dict[str, Any] = {"event": "unlink"}

    assert make(FileChanged, **changes).event == "unlink"
    assert make_payload(FileChanged, **changes)["event"] == "unlink"


# -- make_payload --------------------------------------------------------------------------------------


@pytest.mark.parametrize("event", [PreToolUse, HookEvent.PreToolUse, "PreToolUse", "pre_tool_use", "preToolUse"])
def test_make_payload_takes_a_type_a_name_or_a_string(event: type[Event] | HookEvent | str) -> None:
    payload = make_payload(event)

    assert payload["hook_event_name"] == "PreToolUse"
    assert {"session_id", "transcript_path", "cwd", "tool_name", "tool_input", "tool_use_id"} <= payload.keys()


def test_make_payload_changes_and_adds_fields() -> None:
    changes = {"prompt": "hello", "brand_new": 1}

    assert make_payload(UserPromptSubmit, **changes) == {**make_payload(UserPromptSubmit), **changes}


def test_make_payload_removes_a_field() -> None:
    payload = make_payload(SubagentStart, agent_type=None)

    assert payload == {key: value for key, value in make_payload(SubagentStart).items() if key != "agent_type"}
    with pytest.raises(PayloadError, match=r"^SubagentStart: missing required field `agent_type`"):
        parse(payload)


def test_make_payload_returns_a_copy() -> None:
    make_payload(PreToolUse)["tool_input"]["changed"] = True

    assert "changed" not in make_payload(PreToolUse)["tool_input"]


def test_make_payload_names_an_event_that_is_close() -> None:
    with pytest.raises(UnknownEventError, match=r"^unknown event 'PreToolUes'; did you mean PreToolUse\?$"):
        make_payload("PreToolUes")


# -- samples -------------------------------------------------------------------------------------------


def test_samples_has_every_event() -> None:
    assert {event.event_type for event in samples()} == set(HookEvent)


@pytest.mark.parametrize("event", [PostToolUse, HookEvent.PostToolUse, "post_tool_use"])
def test_samples_of_one_event(event: type[Event] | HookEvent | str) -> None:
    of_one = list(samples(event))

    assert of_one == [sample for sample in samples() if isinstance(sample, PostToolUse)]
    assert len({sample.tool_name for sample in of_one}) > 1


def test_samples_are_the_callers_own() -> None:
    for sample in samples(PreToolUse):
        to_payload(sample)["tool_input"]["changed"] = True

    assert not any("changed" in to_payload(sample)["tool_input"] for sample in samples(PreToolUse))


def test_samples_tell_nothing_about_who_recorded_them() -> None:
    folders = {to_payload(sample)["cwd"] for sample in samples()}

    assert all(folder.startswith("/home/user/") for folder in folders)


# -- assert_blocks -------------------------------------------------------------------------------------


@pytest.mark.parametrize("hooks", [no_sudo(), NoSudo()], ids=["a manager", "a hook"])
@pytest.mark.parametrize("reason", [None, "no sudo", re.compile("^no")], ids=["any reason", "text", "pattern"])
def test_assert_blocks_gives_the_result(hooks: HookManager | Hook, reason: str | re.Pattern[str] | None) -> None:
    result = assert_blocks(hooks, SUDO, reason)

    assert (result.blocked, result.reason, result.runs[0].name) == (True, "no sudo", "NoSudo")


def test_assert_blocks_shows_what_each_hook_did() -> None:
    expected = "expected a block, but PreToolUse was allowed\n  NoSudo: allowed (… ms)"

    assert failure_of(assert_blocks, no_sudo(), LS) == expected


def test_assert_blocks_says_that_no_hook_wanted_the_event() -> None:
    expected = "expected a block, but Stop was allowed\n  no hook matched"

    assert failure_of(assert_blocks, no_sudo(), stop("s1")) == expected


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("no su", "blocked, but its reason is 'no sudo', not 'no su'"),
        ("", "blocked, but its reason is 'no sudo', not ''"),
        (re.compile("^yes"), "blocked, but its reason 'no sudo' does not match '^yes'"),
    ],
)
def test_assert_blocks_compares_the_whole_reason(reason: str | re.Pattern[str], expected: str) -> None:
    assert failure_of(assert_blocks, no_sudo(), SUDO, reason) == expected


def test_assert_blocks_is_not_satisfied_by_a_hook_that_fails() -> None:
    error = ValueError("boom")

    with pytest.raises(AssertionError, match=r"^hook 'guard' failed\n  guard: failed \(") as caught:
        assert_blocks(broken(error), SUDO)

    assert caught.value.__cause__ is error


# -- assert_allows -------------------------------------------------------------------------------------


@pytest.mark.parametrize("hooks", [no_sudo(), NoSudo()], ids=["a manager", "a hook"])
def test_assert_allows_gives_the_result(hooks: HookManager | Hook) -> None:
    result = assert_allows(hooks, LS)

    assert (result.blocked, result.runs[0].outcome) == (False, "allowed")


def test_assert_allows_shows_the_reason_and_what_each_hook_did() -> None:
    expected = "expected PreToolUse to be allowed, but: no sudo\n  NoSudo: blocked (… ms)"

    assert failure_of(assert_allows, no_sudo(), SUDO) == expected


@pytest.mark.parametrize("event", [LS, post_tool_use("s1", "Bash", "")], ids=["on a gate", "elsewhere"])
def test_assert_allows_is_not_satisfied_by_a_hook_that_fails(event: Event) -> None:
    error = ValueError("boom")

    with pytest.raises(AssertionError, match=r"^hook 'guard' failed\n  guard: failed \(") as caught:
        assert_allows(broken(error), event)

    assert caught.value.__cause__ is error


def test_assert_allows_takes_async_hooks() -> None:
    manager = HookManager()

    @manager.on(PreToolUse)
    async def guard(event: PreToolUse) -> HookOutput:
        return HookOutput.allow().with_context("seen")

    assert assert_allows(manager, LS).output.additional_context == "seen"


# -- Recorder ------------------------------------------------------------------------------------------


def test_a_recorder_keeps_every_event() -> None:
    manager, recorder = HookManager(), Recorder()
    manager.register(recorder)

    manager.fire_sync(LS)
    manager.fire_sync(stop("s1"))

    assert recorder.recorded == [LS, stop("s1")]


@pytest.mark.parametrize("wanted", [Stop, HookEvent.Stop])
def test_a_recorder_keeps_the_events_that_are_named(wanted: type[Event] | HookEvent) -> None:
    manager, recorder = HookManager(), Recorder(wanted)
    manager.register(recorder)

    manager.fire_sync(LS)
    manager.fire_sync(stop("s1"))

    assert recorder.recorded == [stop("s1")]


async def test_a_recorder_hears_what_was_blocked_and_how_it_was_rewritten() -> None:
    manager, recorder = no_sudo(), Recorder()
    manager.register(recorder)
    manager.add(
        lambda _event: HookOutput.allow().with_updated_input({"command": "sudo rm"}),
        PreToolUse,
        name="rewrite",
        phase="rewrite",
    )

    result = await manager.fire(LS)

    assert result.blocked
    assert recorder.recorded == [pre_tool_use("s1", "Bash", {"command": "sudo rm"})]


def test_a_recorder_decides_nothing() -> None:
    assert assert_allows(Recorder(), SUDO).output == HookOutput.allow()


def test_two_recorders_have_two_names() -> None:
    manager = HookManager()
    manager.register(Recorder())
    manager.register(Recorder(name="second"))

    assert manager.hook_names() == ["recorder", "second"]
