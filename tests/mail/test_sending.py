"""Sending: to whom it goes, what is refused, and that it is there, once, when `send` has returned."""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from fairlead.mail import (
    FAIRLEAD,
    LONGEST_BODY,
    SCRIPT,
    USER,
    BadMessage,
    BadName,
    Draft,
    MailError,
    MailUnreachable,
    NobodyThere,
    NoSuchAgent,
    NoSuchMessage,
    NotYours,
    Sent,
    TooLarge,
)
from fairlead.mail._sending import Order

if TYPE_CHECKING:
    from mail.offices import Desk

    from fairlead.mail import Agent, MailStorage


def names(sent: Sent) -> list[str]:
    return [agent.name for agent in sent.recipients]


def test_a_message_is_queued_for_whom_it_is_addressed_to(desk: Desk) -> None:
    amber, blue, _ = desk.agents("s1", "s2", "s3")

    sent = desk.sent(
        amber, blue, subject="Please review", body="the diff", priority="urgent", intent="request", deadline=2e9
    )

    message = sent.message
    assert sent.is_new
    assert sent.recipients == (blue,)
    assert (message.id, message.thread, message.reply_to, message.sender) == (1, 1, 0, amber.name)
    assert (message.to, message.subject, message.body) == ((blue.name,), "Please review", "the diff")
    assert (message.priority, message.intent, message.deadline, message.project) == ("urgent", "request", 2e9, "/p")
    assert desk.office.read(amber, 1)[0] == message
    assert desk.stages(message) == {blue.name: "queued"}
    assert desk.office.waiting(blue) == desk.office.waiting(blue, urgent_only=True) == 1


def test_it_is_there_after_a_crash_and_the_next_id_is_another(desk: Desk) -> None:
    amber, blue = desk.agents("s1", "s2")
    first = desk.send(amber, blue)
    desk.crash()

    second = desk.send(amber, blue)

    assert (first.id, second.id) == (1, 2)
    assert desk.office.waiting(blue) == 2
    assert desk.show(blue) == [1, 2]


def test_ids_give_the_order_though_the_clock_jumps_back(desk: Desk) -> None:
    amber, blue = desk.agents("s1", "s2")
    first = desk.send(amber, blue)
    desk.clock.at -= 1_000_000
    second = desk.send(amber, blue)
    desk.crash()
    third = desk.send(amber, blue)

    assert second.at < first.at
    assert desk.show(blue) == [first.id, second.id, third.id]
    assert [message.id for _, message in desk.office.inbox(blue, stages=("shown",))] == [third.id, second.id, first.id]


# -- addresses -----------------------------------------------------------------------------------------


def test_several_addresses_and_one_named_twice(desk: Desk) -> None:
    amber, blue, calm = desk.agents("s1", "s2", "s3")
    desk.office.subscribe(blue, "#build")
    sent = desk.sent(amber, blue, blue.name.upper(), calm, "#Build", "User", "everyone")

    assert names(sent) == [blue.name, calm.name, "User"]
    assert sent.message.to == (blue.name, calm.name, "#build", "User", "everyone")
    assert desk.office.waiting(blue) == 1


def test_one_wrong_address_and_nobody_gets_it(desk: Desk) -> None:
    amber, blue = desk.agents("s1", "s2")
    with pytest.raises(NoSuchAgent):
        desk.send(amber, blue, "nobody-at-all")

    assert desk.office.waiting(blue) == 0
    assert desk.send(amber, blue).id == 1


def test_everyone_is_every_other_session_of_the_project(desk: Desk) -> None:
    amber, blue, calm, dusk = desk.agents("s1", "s2", "s3", "s4")
    desk.office.agent_for("s2", agent_id="a1", agent_type="Explore")
    desk.office.agent_for("s5", project="/other")
    desk.office.ended(dusk, "logout")

    assert sorted(names(desk.sent(amber, "Everyone"))) == sorted([blue.name, calm.name])


def test_everyone_for_the_person_is_where_the_person_is(desk: Desk) -> None:
    amber, blue = desk.agents("s1", "s2")
    draft = Draft(to=("everyone",), subject="stop")

    sent = desk.office.send(USER, draft, project="/p")

    assert sorted(names(sent)) == sorted([amber.name, blue.name])
    assert sent.message.project == "/p"
    with pytest.raises(NobodyThere, match="everyone: no other agent is there in /q; `fairlead agents` lists who is"):
        desk.office.send(USER, draft, project="/q")


def test_a_topic_is_those_who_listen_without_the_sender(desk: Desk) -> None:
    office = desk.office
    amber, blue, calm = desk.agents("s1", "s2", "s3")
    with pytest.raises(NobodyThere, match="#build: nobody else listens to it now"):
        desk.send(amber, "#build")
    office.subscribe(amber, "build")
    with pytest.raises(NobodyThere):
        desk.send(amber, "#build")
    office.subscribe(calm, "#BUILD")
    office.subscribe(blue, "#build")
    office.subscribe(USER, "#build")
    assert names(desk.sent(amber, "#build")) == [calm.name, blue.name, "User"]
    office.ended(blue, "logout")
    office.unsubscribe(USER, "build")
    desk.crash()
    assert names(desk.sent(amber, "#build")) == [calm.name]
    assert [(topic.name, topic.subscribers) for topic in desk.office.topics()] == [
        ("build", (amber.name, calm.name, blue.name))
    ]
    desk.office.unsubscribe(amber, "build")
    desk.office.unsubscribe(blue, "build")
    assert desk.office.unsubscribe(calm, "build").subscribers == ()
    assert desk.office.topics() == []


@pytest.mark.parametrize("topic", ["", "#", "a b", "x" * 51, "Ü", "-a", "a\nb"])
def test_what_cannot_be_typed_is_no_topic(desk: Desk, topic: str) -> None:
    [amber] = desk.agents("s1")
    with pytest.raises(BadName, match="cannot be a topic"):
        desk.office.subscribe(amber, f"#{topic}")


def test_a_message_to_itself_to_nobody_and_to_fairlead_is_refused(desk: Desk) -> None:
    [amber] = desk.agents("s1")
    with pytest.raises(BadMessage, match=f"{amber.name} is the sender itself; name somebody else"):
        desk.send(amber, amber)
    with pytest.raises(BadMessage, match="the message is to nobody; name at least one recipient"):
        desk.send(amber)
    with pytest.raises(BadMessage, match="a recipient's name is empty"):
        desk.send(amber, " ")
    with pytest.raises(NobodyThere, match="Fairlead writes notices and reads no mail"):
        desk.send(amber, FAIRLEAD)


def test_a_subagent_and_its_session_have_mail_of_their_own(desk: Desk) -> None:
    [amber, blue] = desk.agents("s1", "s2")
    child = desk.office.agent_for("s1", agent_id="a1", agent_type="Explore")
    first, second, third = desk.send(blue, amber), desk.send(blue, child), desk.send(amber, child)

    assert desk.show(child) == [second.id, third.id]
    assert desk.show(amber) == [first.id]


def test_more_recipients_than_a_message_may_have_are_refused(desk: Desk) -> None:
    amber = desk.office.agent_for("s0", project="/p")
    with pytest.raises(TooLarge, match="a message may have 1000 recipients, not 1001; write to a topic instead"):
        desk.send(amber, *("x" for _ in range(1001)))


# -- what it says --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "error", "told"),
    [
        ({"subject": " ", "body": "\n"}, BadMessage, "the message says nothing; give it a subject or a body"),
        ({"subject": "x" * 501}, TooLarge, "a subject may have 500 characters, not 501; use the body"),
        ({"body": "x" * (LONGEST_BODY + 1)}, TooLarge, "a body may have 1048576 bytes, not 1048577"),
        ({"body": "x" * 2_000_000}, TooLarge, "a body may have 1048576 bytes, not 2000000"),
        ({"body": "ü" * (LONGEST_BODY // 2 + 1)}, TooLarge, "a body may have 1048576 bytes, not 1048578"),
        ({"key": "x" * 201}, TooLarge, "an idempotency key may have 200 characters, not 201"),
        ({"priority": "high"}, BadMessage, "priority must be one of urgent, normal, low, not 'high'"),
        ({"intent": "beg"}, BadMessage, "intent must be one of request, inform, ack, not 'beg'"),
        ({"deadline": 2e9}, BadMessage, "only a request can have a deadline; send it with the intent request"),
        ({"deadline": 5.0, "intent": "request"}, BadMessage, "the deadline is over; give one that is to come"),
        ({"deadline": math.nan, "intent": "request"}, BadMessage, "the deadline is over"),
        ({"deadline": math.inf, "intent": "request"}, BadMessage, "the deadline is over"),
    ],
)
def test_what_cannot_be_sent_is_refused(desk: Desk, fields: dict[str, Any], error: type[Exception], told: str) -> None:
    amber, blue = desk.agents("s1", "s2")
    with pytest.raises(error, match=told):
        desk.send(amber, blue, **fields)
    assert desk.office.waiting(blue) == 0


def test_the_largest_body_is_kept_whole(desk: Desk) -> None:
    amber, blue = desk.agents("s1", "s2")
    body = "ab\n\N{PILE OF POO}" * 140_000
    body += "x" * (LONGEST_BODY - len(body.encode()))
    message = desk.send(amber, blue, body=body)
    desk.crash()
    assert desk.office.show(blue, "Stop", "e1") == [message]
    assert message.body == body


def test_every_character_is_kept_as_it_came_but_half_a_pair(desk: Desk) -> None:
    amber, blue = desk.agents("s1", "s2")
    odd = "nul \0 mark \uffff escape \x1b[31m bell \a both \uffff0 \uffff1 \r\n\u202e"
    message = desk.send(amber, blue, subject=odd, body=odd * 3)
    torn = desk.send(amber, blue, subject="\ud83d\ude00 \ud800 end", key="\ud800")
    again = desk.sent(amber, blue, subject="other", key="\ud800")
    desk.crash()

    assert (message.subject, message.body) == (odd, odd * 3)
    assert torn.subject == "\N{GRINNING FACE} \ufffd end"
    assert (again.is_new, again.message) == (False, torn)
    assert desk.office.show(blue, "Stop", "e\0\ud800") == [message, torn]
    assert [found.id for found in desk.office.search(amber, "nul \0 MARK \uffff")] == [message.id]
    assert desk.office.unshow("e\0\ud800") == 2


# -- once ----------------------------------------------------------------------------------------------


def test_a_key_sends_once_also_after_a_crash_and_when_the_recipient_has_changed(desk: Desk) -> None:
    amber, blue = desk.agents("s1", "s2")
    first = desk.sent(amber, blue, key="k1")
    old_name = blue.name
    desk.office.rename(blue, "Builder")
    desk.office.ended(blue, "logout")
    desk.crash()

    again = desk.office.send(amber, Draft(to=(old_name, "never-heard-of"), subject="other", key="k1"))

    assert again.is_new is False
    assert again.message == replace(first.message, sender=amber.name)
    assert names(again) == ["Builder"]
    assert desk.sent(amber, "User", key="k2").is_new
    assert [message.id for message in desk.office.search(USER, "hello")] == [2, 1]


def test_a_key_is_of_one_sender(desk: Desk) -> None:
    amber, blue = desk.agents("s1", "s2")
    assert desk.sent(amber, "User", key="k").is_new
    assert desk.sent(blue, "User", key="k").is_new
    assert desk.office.waiting(USER) == 2


def test_many_are_sent_in_one_transaction_and_each_is_judged_by_itself(desk: Desk) -> None:
    amber, blue = desk.agents("s1", "s2")
    to = (blue.name,)
    drafts = [
        Draft(to=to, subject="1", key="k"),
        Draft(to=("nobody-here",), subject="2"),
        Draft(to=to, subject="3", key="k"),
        Draft(to=to, subject=""),
        Draft(to=to, subject="5"),
    ]
    outcome = desk.office.send_many([(amber, draft) for draft in drafts])

    assert [type(one) for one in outcome] == [Sent, NoSuchAgent, Sent, BadMessage, Sent]
    told = [(one.message.subject, one.is_new, one.message.id) for one in outcome if isinstance(one, Sent)]
    assert told == [("1", True, 1), ("1", False, 1), ("5", True, 2)]
    assert desk.show(blue) == [1, 2]


def test_ten_thousand_unread_are_shown_in_order_a_few_at_a_time(desk: Desk) -> None:
    amber, blue = desk.agents("s1", "s2")
    outcome = desk.office.send_many([(amber, Draft(to=(blue.name,), subject=str(number))) for number in range(10_000)])
    assert all(isinstance(one, Sent) for one in outcome)
    urgent = desk.send(amber, blue, priority="urgent")
    desk.crash()

    assert desk.office.waiting(blue) == 10_001
    assert desk.show(blue, urgent_only=True) == [urgent.id]
    shown = desk.show(blue, "e2")
    shown += desk.show(blue, "e3", most=9_000)
    assert shown == list(range(1, 9_011))
    assert desk.office.waiting(blue) == 990


# -- at once -------------------------------------------------------------------------------------------


class SlowBox:
    """A real box whose commits wait until they are let go, and are counted."""

    def __init__(self, box: MailStorage) -> None:
        self._box = box
        self.entered = threading.Event()
        self.may_go = threading.Event()
        self.sizes: list[int] = []
        self.fails: BaseException | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._box, name)

    def post(self, posts: Any) -> Any:
        self.sizes.append(len(posts))
        self.entered.set()
        assert self.may_go.wait(30)
        if self.fails:
            raise self.fails
        return self._box.post(posts)


@pytest.fixture
def slow(desk: Desk) -> SlowBox:
    box = SlowBox(desk.box)
    desk.office._sending._box = box
    return box


def send_at_once(desk: Desk, slow: SlowBox, amber: Agent, count: int) -> list[Sent | MailError]:
    """Send from many threads while the first one's commit is held; let go when all of them wait."""
    outcome: list[Sent | MailError] = []

    def send(number: int) -> None:
        try:
            outcome.append(desk.sent(amber, "User", subject=str(number), key=f"k{number}"))
        except MailError as error:
            outcome.append(error)

    threads = [threading.Thread(target=send, args=(number,)) for number in range(count)]
    threads[0].start()
    assert slow.entered.wait(30)
    for thread in threads[1:]:
        thread.start()
    while len(desk.office._sending._orders) < count - 1:
        threading.Event().wait(0.001)
    slow.may_go.set()
    for thread in threads:
        thread.join(30)
    return outcome


def test_who_comes_while_one_is_committed_share_the_next_commit(desk: Desk, slow: SlowBox) -> None:
    [amber] = desk.agents("s1")
    outcome = send_at_once(desk, slow, amber, 20)

    assert slow.sizes == [1, 19]
    ids = sorted(one.message.id for one in outcome if isinstance(one, Sent))
    assert ids == list(range(1, 21))
    assert desk.show(USER, most=50) == ids


def test_when_a_shared_commit_fails_each_is_told_and_may_try_again(desk: Desk, slow: SlowBox) -> None:
    [amber] = desk.agents("s1")
    slow.fails = MailUnreachable("no disk")
    outcome = send_at_once(desk, slow, amber, 5)
    assert [str(one) for one in outcome] == ["no disk"] * 5
    assert len({id(one) for one in outcome}) == 5
    assert desk.office.waiting(USER) == 0

    slow.fails = None
    again = [desk.sent(amber, "User", subject=str(number), key=f"k{number}") for number in range(5)]
    assert [one.is_new for one in again] == [True] * 5
    assert [one.message.id for one in again] == [1, 2, 3, 4, 5]


def test_a_sender_that_is_interrupted_leaves_nobody_waiting(desk: Desk, slow: SlowBox) -> None:
    """Whoever shares its commit is told, and may try again."""
    [amber] = desk.agents("s1")
    other = Order(amber, Draft(to=("User",), subject="of another thread"), "")
    desk.office._sending._orders.append(other)
    slow.fails = KeyboardInterrupt()
    slow.may_go.set()
    with pytest.raises(KeyboardInterrupt):
        desk.send(amber, "User")
    assert str(other.outcome()) == "the message was not sent: another thread was interrupted while it sent for all"

    slow.fails = None
    assert desk.send(amber, "User").id == 1


def test_those_who_listen_are_told_after_the_commit_once_for_each_agent(desk: Desk) -> None:
    amber, blue, calm = desk.agents("s1", "s2", "s3")
    told: list[tuple[str, int]] = []
    desk.office.on_mail(lambda agent: told.append((agent.name, desk.office.waiting(agent))))
    desk.office.on_mail(lambda _: 1 / 0)  # type: ignore[arg-type]

    desk.send(amber, blue, calm)
    desk.office.send_many([(amber, Draft(to=(blue.name,), subject=str(number))) for number in range(3)])
    desk.office.ended(calm, "logout")
    desk.send(amber, calm)
    desk.office.revived(calm)
    desk.show(blue)
    desk.office.unshow("e1")

    assert told == [(blue.name, 1), (calm.name, 1), (blue.name, 4), (calm.name, 2), (blue.name, 4)]


def test_a_listener_may_call_the_office(desk: Desk) -> None:
    amber, blue = desk.agents("s1", "s2")
    shown: list[int] = []
    desk.office.on_mail(lambda agent: shown.extend(desk.show(agent)))
    assert [desk.send(amber, blue).id for _ in range(3)] == shown == [1, 2, 3]


# -- replies -------------------------------------------------------------------------------------------


def test_a_reply_goes_to_the_sender_in_the_same_thread(desk: Desk) -> None:
    amber, blue, calm = desk.agents("s1", "s2", "s3")
    asked = desk.send(amber, blue, calm, subject="Which port?", intent="request")

    reply = desk.office.reply(blue, asked.id, "8080")
    again = desk.office.reply(amber, reply.message.id, "thanks", intent="ack")

    assert names(reply) == [amber.name]
    assert (reply.message.subject, reply.message.body) == ("Re: Which port?", "8080")
    assert (reply.message.thread, reply.message.reply_to) == (asked.id, asked.id)
    assert (again.message.subject, again.message.thread) == ("Re: Which port?", asked.id)
    assert desk.stages(asked) == {blue.name: "answered", calm.name: "queued"}
    assert desk.stages(reply.message) == {amber.name: "answered"}


def test_a_reply_to_all_goes_to_all_who_got_it(desk: Desk) -> None:
    amber, blue, calm = desk.agents("s1", "s2", "s3")
    asked = desk.send(amber, blue, calm, "User")
    assert sorted(names(desk.office.reply(blue, asked.id, "yes", to_all=True))) == sorted(
        [amber.name, calm.name, "User"]
    )


def test_a_reply_to_ones_own_message_goes_to_those_who_got_it(desk: Desk) -> None:
    amber, blue, calm = desk.agents("s1", "s2", "s3")
    asked = desk.send(amber, blue, calm, intent="request")
    more = desk.office.reply(amber, asked.id, "I mean the second one")
    assert sorted(names(more)) == sorted([blue.name, calm.name])
    assert set(desk.stages(asked).values()) == {"queued"}


def test_only_those_who_wrote_or_got_it_may_reply_and_the_person(desk: Desk) -> None:
    amber, blue, calm = desk.agents("s1", "s2", "s3")
    asked = desk.send(amber, blue)
    with pytest.raises(NotYours, match=f"message 1 was neither written by {calm.name} nor sent to it"):
        desk.office.reply(calm, asked.id, "me too")
    with pytest.raises(NotYours):
        desk.send(calm, amber, reply_to=asked.id)
    assert names(desk.office.reply(USER, asked.id, "do it")) == [amber.name]
    for number in (0, -1, 7, 2**63, 2**80):
        with pytest.raises(NoSuchMessage, match=f"there is no message {number}; `fairlead inbox` lists yours"):
            desk.office.reply(amber, number, "x")


def test_a_long_subject_is_cut_in_the_reply(desk: Desk) -> None:
    amber, blue = desk.agents("s1", "s2")
    asked = desk.send(amber, blue, subject="x" * 500)
    assert desk.office.reply(blue, asked.id, "y").message.subject == "Re: " + "x" * 496


def test_a_program_gets_its_answers_too(desk: Desk) -> None:
    [amber] = desk.agents("s1")
    asked = desk.send(SCRIPT, amber, intent="request")
    reply = desk.office.reply(amber, asked.id, "done")
    assert [message.id for _, message in desk.office.inbox(SCRIPT)] == [reply.message.id]
