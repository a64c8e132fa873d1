"""Delivery: each message is shown once, in order, and not at all if it was read or answered before."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from fairlead.mail import SCRIPT, USER, Draft, MailUnreachable, NoSuchMessage, NotYours

if TYPE_CHECKING:
    from mail.harness import MailHarness

    from fairlead.mail import Message


def ids(messages: list[Message]) -> list[int]:
    return [message.id for message in messages]


def test_each_delivery_is_shown_once_in_order_and_the_ledger_says_at_which_event(mail: MailHarness) -> None:
    amber, blue = mail.agents("s1", "s2")
    sent = [mail.send(amber, blue, subject=str(number)) for number in range(5)]

    assert mail.service.show(blue, "Stop", "e1", limit=3) == sent[:3]
    assert mail.service.queued_count(blue) == 2
    assert mail.service.show(blue, "UserPromptSubmit", "e2") == sent[3:]
    assert mail.service.show(blue, "Stop", "e3") == []

    [delivery] = mail.service.ledger(amber, sent[0].id)
    assert (delivery.stage, delivery.event, delivery.read) == ("shown", "Stop", 0.0), "showing is not reading"
    assert delivery.shown > delivery.queued
    assert mail.service.ledger(amber, sent[4].id)[0].event == "UserPromptSubmit"


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_of_zero_shows_nothing(mail: MailHarness, limit: int) -> None:
    amber, blue = mail.agents("s1", "s2")
    mail.send(amber, blue)
    assert mail.show(blue, limit=limit) == []
    assert mail.service.queued_count(blue) == 1


def test_what_was_shown_is_not_shown_again_after_a_crash(mail: MailHarness) -> None:
    amber, blue = mail.agents("s1", "s2")
    mail.send(amber, blue)
    mail.send(amber, blue)
    assert mail.show(blue, limit=1) == [1]
    mail.crash()
    assert mail.service.queued_count(blue) == 1
    assert mail.show(blue) == [2]
    mail.crash()
    assert mail.show(blue) == []


def test_concurrent_events_never_show_the_same_delivery(mail: MailHarness) -> None:
    amber, blue = mail.agents("s1", "s2")
    mail.service.send_many([(amber, Draft(to=(blue.name,), subject=str(number))) for number in range(200)])
    shown: list[list[int]] = []

    def show(number: int) -> None:
        numbers: list[int] = []
        while batch := mail.show(blue, f"e{number}", limit=3):
            numbers += batch
        shown.append(numbers)

    threads = [threading.Thread(target=show, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(number for numbers in shown for number in numbers) == list(range(1, 201))
    assert all(numbers == sorted(numbers) for numbers in shown)


def test_urgent_mail_is_shown_before_the_rest(mail: MailHarness) -> None:
    amber, blue = mail.agents("s1", "s2")
    first = mail.send(amber, blue)
    urgent = [mail.send(amber, blue, priority="urgent") for _ in range(3)]
    low = mail.send(amber, blue, priority="low")

    assert mail.service.queued_count(blue, urgent_only=True) == 3
    assert mail.show(blue, "e1", urgent_only=True, limit=2) == ids(urgent[:2])
    assert mail.show(blue, "e2", urgent_only=True) == [urgent[2].id]
    assert mail.show(blue, "e3", urgent_only=True) == []
    assert mail.service.queued_count(blue) == 2
    assert mail.show(blue, "e4") == [first.id, low.id]


def test_an_urgent_message_never_overtakes_its_own_thread(mail: MailHarness) -> None:
    """What is queued before it in its thread is shown first; other threads, and what follows it, are not shown."""
    amber, blue = mail.agents("s1", "s2")
    first = mail.send(amber, blue, subject="a")
    other = mail.send(amber, blue, subject="b")
    second = mail.send(amber, blue, subject="a", reply_to=first.id)
    urgent = mail.send(amber, blue, subject="a", reply_to=first.id, priority="urgent")
    after = mail.send(amber, blue, subject="a", reply_to=first.id)
    alone = mail.send(amber, blue, subject="c", priority="urgent")

    assert mail.show(blue, "e1", urgent_only=True, limit=2) == [first.id, second.id]
    assert mail.service.queued_count(blue, urgent_only=True) == 2
    assert mail.show(blue, "e2", urgent_only=True) == [urgent.id, alone.id]
    assert mail.show(blue, "e3") == [other.id, after.id]


# -- replies that never arrived -------------------------------------------------------------------------


def test_what_was_shown_in_a_lost_reply_is_queued_again_in_order(mail: MailHarness) -> None:
    amber, blue, calm = mail.agents("s1", "s2", "s3")
    sent = [mail.send(amber, blue, calm, priority="urgent") for _ in range(4)]
    mail.show(blue, "e1", limit=2)
    mail.show(blue, "e2", limit=1)
    mail.show(calm, "e1", limit=1)

    assert mail.service.requeue("e1") == 3
    assert mail.service.requeue("e1") == 0
    assert mail.service.requeue("never") == mail.service.requeue("") == 0
    [delivery, _] = mail.service.ledger(amber, sent[0].id)
    assert (delivery.stage, delivery.shown, delivery.event) == ("queued", 0.0, "")
    assert mail.service.queued_count(blue, urgent_only=True) == 3
    mail.crash()
    assert mail.show(blue, "e3") == [sent[0].id, sent[1].id, sent[3].id]
    assert mail.show(calm, "e3") == ids(sent)


def test_what_was_read_or_answered_since_is_not_queued_again(mail: MailHarness) -> None:
    amber, blue = mail.agents("s1", "s2")
    sent = [mail.send(amber, blue) for _ in range(3)]
    mail.show(blue, "e1")
    mail.service.read(blue, sent[0].id)
    mail.service.reply(blue, sent[1].id, "yes")

    assert mail.service.requeue("e1") == 1
    assert mail.show(blue, "e2") == [sent[2].id]


def test_what_was_shown_in_a_lost_reply_to_an_ended_agent_bounces(mail: MailHarness) -> None:
    amber, blue = mail.agents("s1", "s2")
    message = mail.send(amber, blue)
    mail.show(blue, "e1")
    mail.service.end(blue, "logout")

    assert mail.service.requeue("e1") == 0
    assert mail.stages(message) == {blue.name: "bounced"}
    assert mail.service.queued_count(mail.service.revive(blue)) == 1
    assert mail.show(blue, "e2") == [message.id]


# -- reading -------------------------------------------------------------------------------------------


def test_reading_marks_the_readers_own_delivery_and_it_is_not_shown_any_more(mail: MailHarness) -> None:
    amber, blue, calm = mail.agents("s1", "s2", "s3")
    message = mail.send(amber, blue, calm, priority="urgent")

    found, ledger = mail.service.read(blue, message.id)

    assert found == message
    stages = {delivery.recipient: (delivery.stage, delivery.shown) for delivery in ledger}
    assert stages == {blue.name: ("read", 0.0), calm.name: ("queued", 0.0)}
    assert mail.service.queued_count(blue) == mail.service.queued_count(blue, urgent_only=True) == 0
    assert mail.show(blue) == []
    again = mail.service.read(blue, message.id)[1]
    assert [delivery.read for delivery in again] == [delivery.read for delivery in ledger], "the first time counts"
    assert mail.show(calm) == [message.id]


def test_other_agents_may_not_read_a_message_but_the_user_may_without_a_trace(mail: MailHarness) -> None:
    amber, blue, calm = mail.agents("s1", "s2", "s3")
    child = mail.service.ensure_agent("s2", agent_id="a1")
    message = mail.send(amber, blue)
    for stranger in (calm, child, SCRIPT):
        for look in (mail.service.read, mail.service.ledger, mail.service.thread):
            with pytest.raises(NotYours, match="message 1 was neither written by"):
                look(stranger, message.id)
    assert mail.service.read(USER, message.id)[0] == mail.service.read(amber, message.id)[0] == message
    assert mail.stages(message) == {blue.name: "queued"}
    with pytest.raises(NoSuchMessage):
        mail.service.read(amber, 2)


def test_the_inbox_is_paged_newest_first_and_marks_nothing(mail: MailHarness) -> None:
    amber, blue = mail.agents("s1", "s2")
    sent = [mail.send(amber, blue, subject=str(number)) for number in range(10)]
    mail.show(blue, "e1", limit=4)
    mail.service.read(blue, sent[0].id)
    mail.service.reply(blue, sent[1].id, "yes")

    inbox = mail.service.inbox
    assert [(delivery.stage, message.id) for delivery, message in inbox(blue, limit=3)] == [
        ("queued", 10),
        ("queued", 9),
        ("queued", 8),
    ]
    assert [(delivery.stage, message.id) for delivery, message in inbox(blue, before=6)] == [
        ("queued", 5),
        ("shown", 4),
        ("shown", 3),
    ]
    assert [message.id for _, message in inbox(blue, stages=("read", "answered", "bounced"))] == [2, 1]
    assert inbox(blue, stages=()) == inbox(blue, limit=0) == []
    assert [message.id for _, message in inbox(blue, limit=2, before=2**70)] == [10, 9]
    assert mail.service.queued_count(blue) == 6


def test_a_thread_has_what_the_reader_wrote_or_received(mail: MailHarness) -> None:
    amber, blue, calm = mail.agents("s1", "s2", "s3")
    asked = mail.send(amber, blue, calm, subject="Which port?")
    first = mail.service.reply(blue, asked.id, "8080").message
    mail.send(amber, blue, subject="something else")
    second = mail.service.reply(calm, asked.id, "9090", to_all=True).message

    assert mail.service.thread(amber, second.id) == [asked, first, second]
    assert mail.service.thread(calm, asked.id) == [asked, second]
    assert mail.service.thread(USER, asked.id, limit=2) == [first, second]
    assert mail.service.thread(USER, asked.id, limit=2, before=second.id) == [asked, first]


def test_a_search_finds_literal_text_in_the_readers_own_mail(mail: MailHarness) -> None:
    amber, blue, calm = mail.agents("s1", "s2", "s3")
    mine = mail.send(amber, blue, subject="Deploy 100%", body="line\nwith an_underscore")
    mail.send(amber, calm, subject="deployed 1000")

    service = mail.service
    assert ids(service.search(blue, "DEPLOY")) == [mine.id]
    assert ids(service.search(blue, "100%")) == ids(service.search(USER, "100%")) == [mine.id]
    assert ids(service.search(blue, "an_under")) == [mine.id]
    assert service.search(blue, "anXunder") == []
    assert ids(service.search(amber, "deploy", limit=1)) == [2]
    assert ids(service.search(amber, "deploy", before=2)) == [1]


# -- storage errors -------------------------------------------------------------------------------------


def test_after_a_storage_error_nothing_was_shown_and_the_count_stays(
    mail: MailHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    amber, blue = mail.agents("s1", "s2")
    mail.send(amber, blue)

    def fails(*_: object, **__: object) -> None:
        raise MailUnreachable("no disk")

    with monkeypatch.context() as patch:
        patch.setattr(mail.storage, "show", fails)
        with pytest.raises(MailUnreachable):
            mail.show(blue)
    assert mail.service.queued_count(blue) == 1
    assert mail.show(blue) == [1]


def test_what_is_summed_up_leaves_the_queue_stays_unread_and_comes_back_if_the_reply_was_lost(
    mail: MailHarness,
) -> None:
    amber, blue, coral = mail.agents("s1", "s2", "s3")
    sent = [mail.send(amber, blue, subject=str(number)) for number in range(5)]
    mail.send(coral, blue, intent="request")
    mail.service.show(blue, "Stop", "e1", limit=2)

    summary = mail.service.show_all_counted(blue, "Stop", "e1")

    assert (summary.count, summary.senders, summary.requests) == (4, ((amber.name, 3), (coral.name, 1)), 1)
    assert mail.service.queued_count(blue) == 0
    assert mail.service.ledger(amber, sent[4].id)[0].stage == "shown"
    assert mail.service.requeue("e1") == 6
    assert mail.service.show(blue, "Stop", "e2")[:5] == sent
