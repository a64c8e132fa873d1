"""Sending: who receives a message, what is refused, and that it is stored once when `send` returns."""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from fairlead.mail import (
    FAIRLEAD,
    MAX_BODY_BYTES,
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
    SendResult,
    TooLarge,
)
from fairlead.mail._sending import PendingSend

if TYPE_CHECKING:
    from mail.harness import MailHarness

    from fairlead.mail import Agent, MailStorage


def names(sent: SendResult) -> list[str]:
    return [agent.name for agent in sent.recipients]


def test_a_message_is_queued_for_its_recipients(mail: MailHarness) -> None:
    amber, blue, _ = mail.agents("s1", "s2", "s3")

    sent = mail.sent(
        amber, blue, subject="Please review", body="the diff", priority="urgent", intent="request", deadline=2e9
    )

    message = sent.message
    assert sent.is_new
    assert sent.recipients == (blue,)
    assert (message.id, message.thread, message.reply_to, message.sender) == (1, 1, 0, amber.name)
    assert (message.to, message.subject, message.body) == ((blue.name,), "Please review", "the diff")
    assert (message.priority, message.intent, message.deadline, message.project) == ("urgent", "request", 2e9, "/p")
    assert mail.service.read(amber, 1)[0] == message
    assert mail.stages(message) == {blue.name: "queued"}
    assert mail.service.queued_count(blue) == mail.service.queued_count(blue, urgent_only=True) == 1


def test_a_message_survives_a_crash_and_the_next_id_follows(mail: MailHarness) -> None:
    amber, blue = mail.agents("s1", "s2")
    first = mail.send(amber, blue)
    mail.crash()

    second = mail.send(amber, blue)

    assert (first.id, second.id) == (1, 2)
    assert mail.service.queued_count(blue) == 2
    assert mail.show(blue) == [1, 2]


def test_ids_keep_the_order_although_the_clock_jumps_back(mail: MailHarness) -> None:
    amber, blue = mail.agents("s1", "s2")
    first = mail.send(amber, blue)
    mail.clock.at -= 1_000_000
    second = mail.send(amber, blue)
    mail.crash()
    third = mail.send(amber, blue)

    assert second.at < first.at
    assert mail.show(blue) == [first.id, second.id, third.id]
    assert [message.id for _, message in mail.service.inbox(blue, stages=("shown",))] == [third.id, second.id, first.id]


# -- addresses -----------------------------------------------------------------------------------------


def test_an_agent_named_twice_receives_a_message_once(mail: MailHarness) -> None:
    amber, blue, calm = mail.agents("s1", "s2", "s3")
    mail.service.subscribe(blue, "#build")
    sent = mail.sent(amber, blue, blue.name.upper(), calm, "#Build", "User", "everyone")

    assert names(sent) == [blue.name, calm.name, "User"]
    assert sent.message.to == (blue.name, calm.name, "#build", "User", "everyone")
    assert mail.service.queued_count(blue) == 1


def test_with_one_wrong_address_nobody_receives_the_message(mail: MailHarness) -> None:
    amber, blue = mail.agents("s1", "s2")
    with pytest.raises(NoSuchAgent):
        mail.send(amber, blue, "nobody-at-all")

    assert mail.service.queued_count(blue) == 0
    assert mail.send(amber, blue).id == 1


def test_everyone_is_every_other_session_of_the_project(mail: MailHarness) -> None:
    amber, blue, calm, dusk = mail.agents("s1", "s2", "s3", "s4")
    mail.service.ensure_agent("s2", agent_id="a1", agent_type="Explore")
    mail.service.ensure_agent("s5", project="/other")
    mail.service.end(dusk, "logout")

    assert sorted(names(mail.sent(amber, "Everyone"))) == sorted([blue.name, calm.name])


def test_everyone_for_the_user_means_the_project_where_the_user_is(mail: MailHarness) -> None:
    amber, blue = mail.agents("s1", "s2")
    draft = Draft(to=("everyone",), subject="stop")

    sent = mail.service.send(USER, draft, project="/p")

    assert sorted(names(sent)) == sorted([amber.name, blue.name])
    assert sent.message.project == "/p"
    with pytest.raises(NobodyThere, match="everyone: there is no other agent in /q; `fairlead agents` lists agents"):
        mail.service.send(USER, draft, project="/q")


def test_a_topic_is_its_subscribers_without_the_sender(mail: MailHarness) -> None:
    service = mail.service
    amber, blue, calm = mail.agents("s1", "s2", "s3")
    with pytest.raises(NobodyThere, match="#build: no other agent is subscribed"):
        mail.send(amber, "#build")
    service.subscribe(amber, "build")
    with pytest.raises(NobodyThere):
        mail.send(amber, "#build")
    service.subscribe(calm, "#BUILD")
    service.subscribe(blue, "#build")
    service.subscribe(USER, "#build")
    assert names(mail.sent(amber, "#build")) == [calm.name, blue.name, "User"]
    service.end(blue, "logout")
    service.unsubscribe(USER, "build")
    mail.crash()
    assert names(mail.sent(amber, "#build")) == [calm.name]
    assert [(topic.name, topic.subscribers) for topic in mail.service.topics()] == [
        ("build", (amber.name, calm.name, blue.name))
    ]
    mail.service.unsubscribe(amber, "build")
    mail.service.unsubscribe(blue, "build")
    assert mail.service.unsubscribe(calm, "build").subscribers == ()
    assert mail.service.topics() == []


def test_what_cannot_be_typed_is_not_a_valid_topic(mail: MailHarness) -> None:
    [amber] = mail.agents("s1")
    for topic in ("", "#", "a b", "x" * 51, "Ü", "-a", "a\nb"):
        with pytest.raises(BadName, match="is not a valid topic"):
            mail.service.subscribe(amber, f"#{topic}")


def test_a_message_to_itself_to_nobody_and_to_fairlead_is_refused(mail: MailHarness) -> None:
    [amber] = mail.agents("s1")
    with pytest.raises(BadMessage, match=f"{amber.name} is the sender; name another agent"):
        mail.send(amber, amber)
    with pytest.raises(BadMessage, match="the message has no recipient; name at least one"):
        mail.send(amber)
    with pytest.raises(BadMessage, match="the name of a recipient is empty"):
        mail.send(amber, " ")
    with pytest.raises(NobodyThere, match="Fairlead sends notices and receives no mail"):
        mail.send(amber, FAIRLEAD)


def test_a_subagent_and_its_session_have_separate_mail(mail: MailHarness) -> None:
    [amber, blue] = mail.agents("s1", "s2")
    child = mail.service.ensure_agent("s1", agent_id="a1", agent_type="Explore")
    first, second, third = mail.send(blue, amber), mail.send(blue, child), mail.send(amber, child)

    assert mail.show(child) == [second.id, third.id]
    assert mail.show(amber) == [first.id]


def test_too_many_recipients_are_refused(mail: MailHarness) -> None:
    amber = mail.service.ensure_agent("s0", project="/p")
    with pytest.raises(TooLarge, match="a message can have 1000 recipients, not 1001; send it to a topic instead"):
        mail.send(amber, *("x" for _ in range(1001)))


# -- content --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"subject": " ", "body": "\n"}, BadMessage, "the message is empty; give it a subject or a body"),
        ({"subject": "x" * 501}, TooLarge, "a subject can have 500 characters, not 501; use the body"),
        ({"body": "x" * (MAX_BODY_BYTES + 1)}, TooLarge, "a body can have 1048576 bytes, not 1048577"),
        ({"body": "x" * 2_000_000}, TooLarge, "a body can have 1048576 bytes, not 2000000"),
        ({"body": "ü" * (MAX_BODY_BYTES // 2 + 1)}, TooLarge, "a body can have 1048576 bytes, not 1048578"),
        ({"key": "x" * 201}, TooLarge, "an idempotency key can have 200 characters, not 201"),
        ({"priority": "high"}, BadMessage, "priority must be one of urgent, normal, low, not 'high'"),
        ({"intent": "beg"}, BadMessage, "intent must be one of request, inform, ack, not 'beg'"),
        ({"deadline": 2e9}, BadMessage, "only a request can have a deadline; send it with the intent request"),
        ({"deadline": 5.0, "intent": "request"}, BadMessage, "the deadline has passed; give one in the future"),
        ({"deadline": math.nan, "intent": "request"}, BadMessage, "the deadline has passed"),
        ({"deadline": math.inf, "intent": "request"}, BadMessage, "the deadline has passed"),
    ],
)
def test_an_invalid_draft_is_refused(
    mail: MailHarness, fields: dict[str, Any], error: type[Exception], message: str
) -> None:
    amber, blue = mail.agents("s1", "s2")
    with pytest.raises(error, match=message):
        mail.send(amber, blue, **fields)
    assert mail.service.queued_count(blue) == 0


def test_the_largest_body_is_stored_completely(mail: MailHarness) -> None:
    amber, blue = mail.agents("s1", "s2")
    body = "ab\n\N{PILE OF POO}" * 140_000
    body += "x" * (MAX_BODY_BYTES - len(body.encode()))
    message = mail.send(amber, blue, body=body)
    mail.crash()
    assert mail.service.show(blue, "Stop", "e1") == [message]
    assert message.body == body


def test_every_character_is_stored_unchanged_except_lone_surrogates(mail: MailHarness) -> None:
    amber, blue = mail.agents("s1", "s2")
    odd = "nul \0 mark \uffff escape \x1b[31m bell \a both \uffff0 \uffff1 \r\n\u202e"
    message = mail.send(amber, blue, subject=odd, body=odd * 3)
    torn = mail.send(amber, blue, subject="\ud83d\ude00 \ud800 end", key="\ud800")
    again = mail.sent(amber, blue, subject="other", key="\ud800")
    mail.crash()

    assert (message.subject, message.body) == (odd, odd * 3)
    assert torn.subject == "\N{GRINNING FACE} \ufffd end"
    assert (again.is_new, again.message) == (False, torn)
    assert mail.service.show(blue, "Stop", "e\0\ud800") == [message, torn]
    assert [found.id for found in mail.service.search(amber, "nul \0 MARK \uffff")] == [message.id]
    assert mail.service.requeue("e\0\ud800") == 2


# -- idempotency ----------------------------------------------------------------------------------------


def test_a_key_sends_once_even_after_a_crash_and_when_the_recipient_has_changed(mail: MailHarness) -> None:
    amber, blue = mail.agents("s1", "s2")
    first = mail.sent(amber, blue, key="k1")
    old_name = blue.name
    mail.service.rename(blue, "Builder")
    mail.service.end(blue, "logout")
    mail.crash()

    again = mail.service.send(amber, Draft(to=(old_name, "never-heard-of"), subject="other", key="k1"))

    assert again.is_new is False
    assert again.message == replace(first.message, sender=amber.name)
    assert names(again) == ["Builder"]
    assert mail.sent(amber, "User", key="k2").is_new
    assert [message.id for message in mail.service.search(USER, "hello")] == [2, 1]


def test_a_key_belongs_to_one_sender(mail: MailHarness) -> None:
    amber, blue = mail.agents("s1", "s2")
    assert mail.sent(amber, "User", key="k").is_new
    assert mail.sent(blue, "User", key="k").is_new
    assert mail.service.queued_count(USER) == 2


def test_many_are_sent_in_one_transaction_and_each_is_validated_on_its_own(mail: MailHarness) -> None:
    amber, blue = mail.agents("s1", "s2")
    to = (blue.name,)
    drafts = [
        Draft(to=to, subject="1", key="k"),
        Draft(to=("nobody-here",), subject="2"),
        Draft(to=to, subject="3", key="k"),
        Draft(to=to, subject=""),
        Draft(to=to, subject="5"),
    ]
    outcome = mail.service.send_many([(amber, draft) for draft in drafts])

    assert [type(one) for one in outcome] == [SendResult, NoSuchAgent, SendResult, BadMessage, SendResult]
    sent = [(one.message.subject, one.is_new, one.message.id) for one in outcome if isinstance(one, SendResult)]
    assert sent == [("1", True, 1), ("1", False, 1), ("5", True, 2)]
    assert mail.show(blue) == [1, 2]


def test_thousands_of_unread_messages_are_shown_in_order_a_few_at_a_time(mail: MailHarness) -> None:
    amber, blue = mail.agents("s1", "s2")
    outcome = mail.service.send_many([(amber, Draft(to=(blue.name,), subject=str(number))) for number in range(3000)])
    assert all(isinstance(one, SendResult) for one in outcome)
    urgent = mail.send(amber, blue, priority="urgent")
    mail.crash()

    assert mail.service.queued_count(blue) == 3001
    assert mail.show(blue, urgent_only=True) == [urgent.id]
    shown = mail.show(blue, "e2")
    shown += mail.show(blue, "e3", limit=2_500)
    assert shown == list(range(1, 2_511))
    assert mail.service.queued_count(blue) == 490


# -- concurrency ----------------------------------------------------------------------------------------


class SlowStorage:
    """A real storage whose commits wait until released, and are counted."""

    def __init__(self, storage: MailStorage) -> None:
        self._storage = storage
        self.entered = threading.Event()
        self.may_go = threading.Event()
        self.sizes: list[int] = []
        self.fails: BaseException | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def send(self, messages: Any) -> Any:
        self.sizes.append(len(messages))
        self.entered.set()
        assert self.may_go.wait(30)
        if self.fails:
            raise self.fails
        return self._storage.send(messages)


@pytest.fixture
def slow(mail: MailHarness) -> SlowStorage:
    storage = SlowStorage(mail.storage)
    mail.service._sender._storage = storage
    return storage


def send_at_once(mail: MailHarness, slow: SlowStorage, amber: Agent, count: int) -> list[SendResult | MailError]:
    """Send from many threads while the first commit is held, and release it when all of them wait."""
    outcome: list[SendResult | MailError] = []

    def send(number: int) -> None:
        try:
            outcome.append(mail.sent(amber, "User", subject=str(number), key=f"k{number}"))
        except MailError as error:
            outcome.append(error)

    threads = [threading.Thread(target=send, args=(number,)) for number in range(count)]
    threads[0].start()
    assert slow.entered.wait(30)
    for thread in threads[1:]:
        thread.start()
    while len(mail.service._sender._pending) < count - 1:
        threading.Event().wait(0.001)
    slow.may_go.set()
    for thread in threads:
        thread.join(30)
    return outcome


def test_threads_that_arrive_during_a_commit_share_the_next_one(mail: MailHarness, slow: SlowStorage) -> None:
    [amber] = mail.agents("s1")
    outcome = send_at_once(mail, slow, amber, 20)

    assert slow.sizes == [1, 19]
    ids = sorted(one.message.id for one in outcome if isinstance(one, SendResult))
    assert ids == list(range(1, 21))
    assert mail.show(USER, limit=50) == ids


def test_when_a_shared_commit_fails_each_thread_gets_the_error_and_can_try_again(
    mail: MailHarness, slow: SlowStorage
) -> None:
    [amber] = mail.agents("s1")
    slow.fails = MailUnreachable("no disk")
    outcome = send_at_once(mail, slow, amber, 5)
    assert [str(one) for one in outcome] == ["no disk"] * 5
    assert len({id(one) for one in outcome}) == 5
    assert mail.service.queued_count(USER) == 0

    slow.fails = None
    again = [mail.sent(amber, "User", subject=str(number), key=f"k{number}") for number in range(5)]
    assert [one.is_new for one in again] == [True] * 5
    assert [one.message.id for one in again] == [1, 2, 3, 4, 5]


def test_an_interrupted_thread_leaves_no_other_waiting(mail: MailHarness, slow: SlowStorage) -> None:
    """The threads that share its commit get an error and can try again."""
    [amber] = mail.agents("s1")
    other = PendingSend(amber, Draft(to=("User",), subject="of another thread"), "")
    mail.service._sender._pending.append(other)
    slow.fails = KeyboardInterrupt()
    slow.may_go.set()
    with pytest.raises(KeyboardInterrupt):
        mail.send(amber, "User")
    assert str(other.outcome()) == (
        "the message was not sent: the thread that sent for all was interrupted; send it again"
    )

    slow.fails = None
    assert mail.send(amber, "User").id == 1


def test_listeners_are_called_after_the_commit_once_for_each_agent(mail: MailHarness) -> None:
    amber, blue, calm = mail.agents("s1", "s2", "s3")
    calls: list[tuple[str, int]] = []
    mail.service.add_mail_listener(lambda agent: calls.append((agent.name, mail.service.queued_count(agent))))
    mail.service.add_mail_listener(lambda _: 1 / 0)  # type: ignore[arg-type]

    mail.send(amber, blue, calm)
    mail.service.send_many([(amber, Draft(to=(blue.name,), subject=str(number))) for number in range(3)])
    mail.service.end(calm, "logout")
    mail.send(amber, calm)
    mail.service.revive(calm)
    mail.show(blue)
    mail.service.requeue("e1")

    assert calls == [(blue.name, 1), (calm.name, 1), (blue.name, 4), (calm.name, 2), (blue.name, 4)]


def test_a_listener_may_call_the_service(mail: MailHarness) -> None:
    amber, blue = mail.agents("s1", "s2")
    shown: list[int] = []
    mail.service.add_mail_listener(lambda agent: shown.extend(mail.show(agent)))
    assert [mail.send(amber, blue).id for _ in range(3)] == shown == [1, 2, 3]


# -- replies -------------------------------------------------------------------------------------------


def test_a_reply_goes_to_the_sender_in_the_same_thread(mail: MailHarness) -> None:
    amber, blue, calm = mail.agents("s1", "s2", "s3")
    asked = mail.send(amber, blue, calm, subject="Which port?", intent="request")

    reply = mail.service.reply(blue, asked.id, "8080")
    again = mail.service.reply(amber, reply.message.id, "thanks", intent="ack")

    assert names(reply) == [amber.name]
    assert (reply.message.subject, reply.message.body) == ("Re: Which port?", "8080")
    assert (reply.message.thread, reply.message.reply_to) == (asked.id, asked.id)
    assert (again.message.subject, again.message.thread) == ("Re: Which port?", asked.id)
    assert mail.stages(asked) == {blue.name: "answered", calm.name: "queued"}
    assert mail.stages(reply.message) == {amber.name: "answered"}


def test_a_reply_to_all_goes_to_all_recipients(mail: MailHarness) -> None:
    amber, blue, calm = mail.agents("s1", "s2", "s3")
    asked = mail.send(amber, blue, calm, "User")
    assert sorted(names(mail.service.reply(blue, asked.id, "yes", to_all=True))) == sorted(
        [amber.name, calm.name, "User"]
    )


def test_a_reply_to_the_senders_own_message_goes_to_its_recipients(mail: MailHarness) -> None:
    amber, blue, calm = mail.agents("s1", "s2", "s3")
    asked = mail.send(amber, blue, calm, intent="request")
    more = mail.service.reply(amber, asked.id, "I mean the second one")
    assert sorted(names(more)) == sorted([blue.name, calm.name])
    assert set(mail.stages(asked).values()) == {"queued"}


def test_only_sender_recipients_and_the_user_may_reply(mail: MailHarness) -> None:
    amber, blue, calm = mail.agents("s1", "s2", "s3")
    asked = mail.send(amber, blue)
    with pytest.raises(NotYours, match=f"message 1 was neither written by {calm.name} nor sent to it"):
        mail.service.reply(calm, asked.id, "me too")
    with pytest.raises(NotYours):
        mail.send(calm, amber, reply_to=asked.id)
    assert names(mail.service.reply(USER, asked.id, "do it")) == [amber.name]
    for number in (0, -1, 7, 2**63, 2**80):
        with pytest.raises(NoSuchMessage, match=f"there is no message {number}; `fairlead inbox` lists yours"):
            mail.service.reply(amber, number, "x")


def test_a_long_subject_is_cut_in_the_reply(mail: MailHarness) -> None:
    amber, blue = mail.agents("s1", "s2")
    asked = mail.send(amber, blue, subject="x" * 500)
    assert mail.service.reply(blue, asked.id, "y").message.subject == "Re: " + "x" * 496


def test_a_program_receives_replies_too(mail: MailHarness) -> None:
    [amber] = mail.agents("s1")
    asked = mail.send(SCRIPT, amber, intent="request")
    reply = mail.service.reply(amber, asked.id, "done")
    assert [message.id for _, message in mail.service.inbox(SCRIPT)] == [reply.message.id]
