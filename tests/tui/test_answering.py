"""Answering a question in the view: what the keys do, what is shown, and that it reaches the daemon."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tui.sample_sessions import NOW, session
from tui.screens import lines_of, snapshot_of, until, watching
from tui.test_snapshots import compare

from fairlead.sessions import AttentionNeeded, Evidence, bounded_session
from fairlead.tui._source import SessionSource
from fairlead.tui.model._answering import AnswerForm, OpenQuestion, SendAnswer, ShownChoice

if TYPE_CHECKING:
    from tui.fake_daemon import FakeDaemon

    from fairlead.sessions import Session

CHANGE = "/code/webshop/src/pay.py\n def pay(invoice):\n-    return None\n+    return send(invoice)\n+\n \x1b[31m# end"
COLOUR = ShownChoice("Which colour?", ("Red", "Blue"))
FRUITS = ShownChoice(
    "Which fruits?\nThose that you choose are bought today, at the market of the old town, and the others tomorrow.",
    ("Apple", "Pear", "Plum"),
    allows_several=True,
    descriptions=("of last year, and so no longer as crisp as they were in autumn, when they came", "", "\x1b[31mblue"),
)


def form(*choices: ShownChoice) -> AnswerForm:
    return AnswerForm(OpenQuestion(id="k7qd3", session="a", tool="Edit", text=CHANGE, choices=choices))


def typed(filled: AnswerForm, text: str) -> None:
    for letter in text:
        assert filled.press(letter, letter) == ""


# -- keys ------------------------------------------------------------------------------------------------


def test_one_key_allows_once() -> None:
    assert form().press("y", "y") == SendAnswer({"decision": "allow"})


@pytest.mark.parametrize("key", ["a", "enter", "space", "Y", "n", "1", "o", "tab"])
def test_no_other_key_allows(key: str) -> None:
    """The key that opens the form, pressed twice, least of all."""
    assert form().press(key, key if len(key) == 1 else None) == ""


def test_a_denial_takes_a_reason_or_none() -> None:
    filled = form()
    assert filled.press("d", "d") == ""
    typed(filled, "no yg")
    assert filled.press("backspace") == ""
    filled.paste("et,\nplease")
    assert filled.press("enter") == SendAnswer({"decision": "deny", "reason": "no yet, please"})
    other = form()
    other.press("d", "d")
    assert other.press("enter") == SendAnswer({"decision": "deny", "reason": ""})


def test_escape_leaves_first_the_reason_then_the_form() -> None:
    filled = form()
    filled.press("d", "d")
    assert filled.press("escape") == ""
    assert filled.press("escape") == "close"
    assert form().press("g", "g") == "go"


def test_choices_are_answered_one_after_the_other() -> None:
    filled = form(COLOUR, FRUITS)
    assert filled.press("y", "y") == ""
    assert filled.press("9", "9") == ""
    assert filled.press("2", "2") == ""
    assert [filled.press(key) for key in ("enter", "1", "3", "2", "2")] == [""] * 5
    assert filled.press("enter") == SendAnswer({"decision": "allow", "choose": ["Blue", "Apple, Plum"]})


def test_another_answer_can_be_typed() -> None:
    filled = form(COLOUR)
    filled.press("o", "o")
    assert filled.press("enter") == ""
    typed(filled, "Green")
    assert filled.press("enter") == SendAnswer({"decision": "allow", "choose": ["Green"]})


# -- the screen ------------------------------------------------------------------------------------------


def asked_sessions() -> list[Any]:
    evidence = Evidence("PermissionRequest", NOW - 5, "Edit", "/code/webshop/src/pay.py")
    return [
        session("a", title="Pay", state=AttentionNeeded("Permission for Edit", CHANGE), evidence=evidence),
        session("b", title="Paint", state=AttentionNeeded("AskUserQuestion", "Which fruits?")),
    ]


@pytest.mark.parametrize("size", [(80, 24), (200, 50)], ids=str)
async def test_a_question_is_shown_in_full_while_it_is_answered(size: tuple[int, int]) -> None:
    async with watching(asked_sessions(), size) as (app, pilot):
        app.actions._answers.show(form().question, "Pay")
        await pilot.pause()
        compare(f"answer-change-{size[0]}x{size[1]}", snapshot_of(app))
        await pilot.press("d", *"not here")
        await pilot.pause()
        compare(f"answer-denial-{size[0]}x{size[1]}", snapshot_of(app))


@pytest.mark.parametrize("size", [(80, 24), (200, 50)], ids=str)
async def test_a_choice_is_shown_while_it_is_made(size: tuple[int, int]) -> None:
    async with watching(asked_sessions(), size) as (app, pilot):
        app.actions._answers.show(form(FRUITS, COLOUR).question, "Paint")
        await pilot.press("1", "3")
        await pilot.pause()
        compare(f"answer-choice-{size[0]}x{size[1]}", snapshot_of(app))


async def test_a_long_command_is_shown_to_its_end() -> None:
    question = OpenQuestion(id="k7qd3", session="a", tool="Bash", text="\n".join(f"line {n}" for n in range(100)))
    async with watching(asked_sessions()) as (app, pilot):
        app.actions._answers.show(question, "Pay")
        await pilot.pause()
        assert not any("line 99" in line for line in lines_of(app))
        await pilot.press(*["ctrl+f"] * 20)
        await pilot.pause()
        assert any("line 99" in line for line in lines_of(app))


def asking(*numbers: int) -> Session:
    text = "\n".join(f"+line {n} \x1b[31m" for n in numbers)
    return session("long", title="Pay", state=AttentionNeeded("Permission for Write", text))


async def test_all_of_a_long_question_is_in_the_detail_and_keys_scroll_it(daemon: FakeDaemon) -> None:
    """The list has its beginning, as the daemon lists it."""
    daemon.sessions.clear()
    daemon.whole["long"] = asking(*range(1000))
    daemon.put(bounded_session(daemon.whole["long"]))
    async with watching(source=SessionSource(str(daemon.socket_path)), sessions=[]) as (app, pilot):
        await until(lambda: "long" in app.sessions.sessions and not app._is_draw_pending)
        await pilot.press("n")
        await until(lambda: app.question.count == 1000)
        await until(lambda: "J K scroll" in app.text_lines["name"].text)
        await pilot.press("J")
        await pilot.pause()
        assert app.question.top == 1
        await pilot.press("K", *["ctrl+f"] * 200)
        await pilot.pause()
        assert any("+line 999" in line for line in lines_of(app))
        assert not any("\x1b" in line for line in lines_of(app))


async def test_a_question_that_begins_as_another_one_did_is_asked_for_again(daemon: FakeDaemon) -> None:
    daemon.sessions.clear()
    first, second = asking(*range(999), 1), asking(*range(999), 2)
    assert bounded_session(first) == bounded_session(second)
    daemon.whole["long"] = first
    daemon.put(bounded_session(first))
    async with watching(source=SessionSource(str(daemon.socket_path)), sessions=[]) as (app, pilot):
        await until(lambda: "long" in app.sessions.sessions and not app._is_draw_pending)
        await pilot.press("n")
        await until(lambda: app.question.count == 1000 and app.question.lines[-1][0][0].startswith(" +line 1 "))
        daemon.whole["long"] = second
        daemon.put(bounded_session(second))
        await until(lambda: app.question.lines[-1][0][0].startswith(" +line 2 "))


async def test_the_keys_scroll_the_panel_while_it_is_open() -> None:
    async with watching([asking(*range(100))]) as (app, pilot):
        await pilot.press("n", "ctrl+f", "t", "ctrl+b")
        await pilot.pause()
        assert app.question.top > 0
        assert "J K scroll" not in app.text_lines["name"].text
        await pilot.press("t", "ctrl+b")
        await pilot.pause()
        assert app.question.top == 0


async def test_the_answer_reaches_the_daemon(daemon: FakeDaemon) -> None:
    daemon.questions = [{"id": "k7qd3", "session": "needs", "tool": "Bash", "text": "make", "choices": []}]
    daemon.put(session("needs", title="Pay", state=AttentionNeeded("Permission for Bash", "make")))
    async with watching(source=SessionSource(str(daemon.socket_path)), sessions=[]) as (app, pilot):
        await until(lambda: "needs" in app.sessions.sessions and not app._is_draw_pending)
        app.actions._answers.open(app.sessions.sessions["needs"])
        await until(lambda: any("y allow once" in line for line in lines_of(app)))
        await pilot.press("y")
        await until(lambda: "allowed once: Bash" in app.text_lines["hints"].text)
    (sent,) = daemon.bodies
    assert json.loads(sent) == {"decision": "allow", "by": "watch"}
    assert "/v1/answers/k7qd3" in daemon.requests


async def test_what_cannot_be_answered_here_says_so(daemon: FakeDaemon) -> None:
    async with watching(source=SessionSource(str(daemon.socket_path)), sessions=[]) as (app, pilot):
        await until(lambda: app.sessions.sessions and not app._is_draw_pending)
        await pilot.press("n", "a")
        await until(lambda: "it can only be answered in its pane" in app.text_lines["hints"].text)
