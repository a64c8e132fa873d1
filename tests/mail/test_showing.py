"""Showing: each letter once, in order; and what is read or answered before is not shown."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from fairlead.mail import SCRIPT, USER, Draft, MailUnreachable, NoSuchMessage, NotYours

if TYPE_CHECKING:
    from mail.offices import Desk

    from fairlead.mail import Message


def ids(messages: list[Message]) -> list[int]:
    return [message.id for message in messages]


def test_each_letter_is_shown_once_in_order_and_the_ledger_says_at_which_event(desk: Desk) -> None:
    amber, blue = desk.agents("s1", "s2")
    sent = [desk.send(amber, blue, subject=str(number)) for number in range(5)]

    assert desk.office.show(blue, "Stop", "e1", most=3) == sent[:3]
    assert desk.office.waiting(blue) == 2
    assert desk.office.show(blue, "UserPromptSubmit", "e2") == sent[3:]
    assert desk.office.show(blue, "Stop", "e3") == []

    [letter] = desk.office.ledger(amber, sent[0].id)
    assert (letter.stage, letter.event, letter.read) == ("shown", "Stop", 0.0), "showing is not reading"
    assert letter.shown > letter.queued
    assert desk.office.ledger(amber, sent[4].id)[0].event == "UserPromptSubmit"


@pytest.mark.parametrize("most", [0, -1])
def test_nothing_is_shown_where_nothing_fits(desk: Desk, most: int) -> None:
    amber, blue = desk.agents("s1", "s2")
    desk.send(amber, blue)
    assert desk.show(blue, most=most) == []
    assert desk.office.waiting(blue) == 1


def test_what_was_shown_is_not_shown_again_after_a_crash(desk: Desk) -> None:
    amber, blue = desk.agents("s1", "s2")
    desk.send(amber, blue)
    desk.send(amber, blue)
    assert desk.show(blue, most=1) == [1]
    desk.crash()
    assert desk.office.waiting(blue) == 1
    assert desk.show(blue) == [2]
    desk.crash()
    assert desk.show(blue) == []


def test_two_events_at_once_never_show_the_same_letter(desk: Desk) -> None:
    amber, blue = desk.agents("s1", "s2")
    desk.office.send_many([(amber, Draft(to=(blue.name,), subject=str(number))) for number in range(200)])
    shown: list[list[int]] = []

    def show(number: int) -> None:
        mine: list[int] = []
        while found := desk.show(blue, f"e{number}", most=3):
            mine += found
        shown.append(mine)

    threads = [threading.Thread(target=show, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(number for mine in shown for number in mine) == list(range(1, 201))
    assert all(mine == sorted(mine) for mine in shown)


def test_urgent_mail_comes_before_the_rest(desk: Desk) -> None:
    amber, blue = desk.agents("s1", "s2")
    first = desk.send(amber, blue)
    urgent = [desk.send(amber, blue, priority="urgent") for _ in range(3)]
    low = desk.send(amber, blue, priority="low")

    assert desk.office.waiting(blue, urgent_only=True) == 3
    assert desk.show(blue, "e1", urgent_only=True, most=2) == ids(urgent[:2])
    assert desk.show(blue, "e2", urgent_only=True) == [urgent[2].id]
    assert desk.show(blue, "e3", urgent_only=True) == []
    assert desk.office.waiting(blue) == 2
    assert desk.show(blue, "e4") == [first.id, low.id]


def test_an_urgent_letter_never_overtakes_its_own_thread(desk: Desk) -> None:
    """What is queued before it in its thread comes first; other threads, and what follows it, can wait."""
    amber, blue = desk.agents("s1", "s2")
    first = desk.send(amber, blue, subject="a")
    other = desk.send(amber, blue, subject="b")
    second = desk.send(amber, blue, subject="a", reply_to=first.id)
    urgent = desk.send(amber, blue, subject="a", reply_to=first.id, priority="urgent")
    after = desk.send(amber, blue, subject="a", reply_to=first.id)
    alone = desk.send(amber, blue, subject="c", priority="urgent")

    assert desk.show(blue, "e1", urgent_only=True, most=2) == [first.id, second.id]
    assert desk.office.waiting(blue, urgent_only=True) == 2
    assert desk.show(blue, "e2", urgent_only=True) == [urgent.id, alone.id]
    assert desk.show(blue, "e3") == [other.id, after.id]


# -- an answer that never arrived ----------------------------------------------------------------------


def test_what_an_event_showed_in_vain_is_queued_again_in_order(desk: Desk) -> None:
    amber, blue, calm = desk.agents("s1", "s2", "s3")
    sent = [desk.send(amber, blue, calm, priority="urgent") for _ in range(4)]
    desk.show(blue, "e1", most=2)
    desk.show(blue, "e2", most=1)
    desk.show(calm, "e1", most=1)

    assert desk.office.unshow("e1") == 3
    assert desk.office.unshow("e1") == 0
    assert desk.office.unshow("never") == desk.office.unshow("") == 0
    [letter, _] = desk.office.ledger(amber, sent[0].id)
    assert (letter.stage, letter.shown, letter.event) == ("queued", 0.0, "")
    assert desk.office.waiting(blue, urgent_only=True) == 3
    desk.crash()
    assert desk.show(blue, "e3") == [sent[0].id, sent[1].id, sent[3].id]
    assert desk.show(calm, "e3") == ids(sent)


def test_what_was_read_or_answered_since_is_not_queued_again(desk: Desk) -> None:
    amber, blue = desk.agents("s1", "s2")
    sent = [desk.send(amber, blue) for _ in range(3)]
    desk.show(blue, "e1")
    desk.office.read(blue, sent[0].id)
    desk.office.reply(blue, sent[1].id, "yes")

    assert desk.office.unshow("e1") == 1
    assert desk.show(blue, "e2") == [sent[2].id]


def test_what_was_shown_in_vain_to_one_that_has_ended_bounces(desk: Desk) -> None:
    amber, blue = desk.agents("s1", "s2")
    message = desk.send(amber, blue)
    desk.show(blue, "e1")
    desk.office.ended(blue, "logout")

    assert desk.office.unshow("e1") == 0
    assert desk.stages(message) == {blue.name: "bounced"}
    assert desk.office.waiting(desk.office.revived(blue)) == 1
    assert desk.show(blue, "e2") == [message.id]


# -- reading -------------------------------------------------------------------------------------------


def test_to_read_marks_the_readers_own_letter_and_it_is_not_shown_any_more(desk: Desk) -> None:
    amber, blue, calm = desk.agents("s1", "s2", "s3")
    message = desk.send(amber, blue, calm, priority="urgent")

    found, ledger = desk.office.read(blue, message.id)

    assert found == message
    stages = {letter.recipient: (letter.stage, letter.shown) for letter in ledger}
    assert stages == {blue.name: ("read", 0.0), calm.name: ("queued", 0.0)}
    assert desk.office.waiting(blue) == desk.office.waiting(blue, urgent_only=True) == 0
    assert desk.show(blue) == []
    again = desk.office.read(blue, message.id)[1]
    assert [letter.read for letter in again] == [letter.read for letter in ledger], "the first time counts"
    assert desk.show(calm) == [message.id]


def test_strangers_may_not_read_but_the_person_may_without_a_trace(desk: Desk) -> None:
    amber, blue, calm = desk.agents("s1", "s2", "s3")
    child = desk.office.agent_for("s2", agent_id="a1")
    message = desk.send(amber, blue)
    for stranger in (calm, child, SCRIPT):
        for look in (desk.office.read, desk.office.ledger, desk.office.thread):
            with pytest.raises(NotYours, match="message 1 was neither written by"):
                look(stranger, message.id)
    assert desk.office.read(USER, message.id)[0] == desk.office.read(amber, message.id)[0] == message
    assert desk.stages(message) == {blue.name: "queued"}
    with pytest.raises(NoSuchMessage):
        desk.office.read(amber, 2)


def test_the_inbox_is_paged_newest_first_and_marks_nothing(desk: Desk) -> None:
    amber, blue = desk.agents("s1", "s2")
    sent = [desk.send(amber, blue, subject=str(number)) for number in range(10)]
    desk.show(blue, "e1", most=4)
    desk.office.read(blue, sent[0].id)
    desk.office.reply(blue, sent[1].id, "yes")

    inbox = desk.office.inbox
    assert [(letter.stage, message.id) for letter, message in inbox(blue, limit=3)] == [
        ("queued", 10),
        ("queued", 9),
        ("queued", 8),
    ]
    assert [(letter.stage, message.id) for letter, message in inbox(blue, before=6)] == [
        ("queued", 5),
        ("shown", 4),
        ("shown", 3),
    ]
    assert [message.id for _, message in inbox(blue, stages=("read", "answered", "bounced"))] == [2, 1]
    assert inbox(blue, stages=()) == inbox(blue, limit=0) == []
    assert [message.id for _, message in inbox(blue, limit=2, before=2**70)] == [10, 9]
    assert desk.office.waiting(blue) == 6


def test_a_thread_is_what_one_wrote_or_got_of_it(desk: Desk) -> None:
    amber, blue, calm = desk.agents("s1", "s2", "s3")
    asked = desk.send(amber, blue, calm, subject="Which port?")
    first = desk.office.reply(blue, asked.id, "8080").message
    desk.send(amber, blue, subject="something else")
    second = desk.office.reply(calm, asked.id, "9090", to_all=True).message

    assert desk.office.thread(amber, second.id) == [asked, first, second]
    assert desk.office.thread(calm, asked.id) == [asked, second]
    assert desk.office.thread(USER, asked.id, limit=2) == [first, second]
    assert desk.office.thread(USER, asked.id, limit=2, before=second.id) == [asked, first]


def test_a_search_finds_text_as_it_stands_in_ones_own_mail(desk: Desk) -> None:
    amber, blue, calm = desk.agents("s1", "s2", "s3")
    mine = desk.send(amber, blue, subject="Deploy 100%", body="line\nwith an_underscore")
    desk.send(amber, calm, subject="deployed 1000")

    office = desk.office
    assert ids(office.search(blue, "DEPLOY")) == [mine.id]
    assert ids(office.search(blue, "100%")) == ids(office.search(USER, "100%")) == [mine.id]
    assert ids(office.search(blue, "an_under")) == [mine.id]
    assert office.search(blue, "anXunder") == []
    assert ids(office.search(amber, "deploy", limit=1)) == [2]
    assert ids(office.search(amber, "deploy", before=2)) == [1]


# -- trouble -------------------------------------------------------------------------------------------


def test_when_the_box_cannot_be_reached_nothing_was_shown_and_the_count_stays(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    amber, blue = desk.agents("s1", "s2")
    desk.send(amber, blue)

    def fails(*_: object, **__: object) -> None:
        raise MailUnreachable("no disk")

    with monkeypatch.context() as patch:
        patch.setattr(desk.box, "show", fails)
        with pytest.raises(MailUnreachable):
            desk.show(blue)
    assert desk.office.waiting(blue) == 1
    assert desk.show(blue) == [1]
