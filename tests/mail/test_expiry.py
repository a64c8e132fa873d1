"""Agents that end, are resumed, go idle or miss a deadline: deliveries bounce and return, senders get a notice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from fairlead.mail import SCRIPT, USER, MailCounts, MailUnreachable, NobodyThere

if TYPE_CHECKING:
    from mail.harness import MailHarness

    from fairlead.mail import Agent, Message


def notices(mail: MailHarness, agent: Agent) -> list[Message]:
    """Return what Fairlead sent to an agent, in order."""
    inbox = mail.service.inbox(agent, stages=("queued", "shown", "read", "bounced"), limit=1000)
    return [message for _, message in inbox if message.sender == "Fairlead"][::-1]


def subjects(mail: MailHarness, agent: Agent) -> list[str]:
    return [message.subject for message in notices(mail, agent)]


# -- ending ---------------------------------------------------------------------------------------------


def test_what_is_queued_for_an_agent_that_ends_bounces_with_the_reason(mail: MailHarness) -> None:
    amber, blue = mail.agents("s1", "s2")
    shown, queued = mail.send(amber, blue), mail.send(amber, blue, priority="urgent")
    mail.show(blue, limit=1)

    mail.service.end(blue, "logout")

    [delivery] = mail.service.ledger(amber, queued.id)
    assert (delivery.stage, delivery.why) == ("bounced", "the agent ended: logout")
    assert delivery.bounced == mail.service.current(blue).ended > 0
    assert mail.stages(shown) == {blue.name: "shown"}
    assert mail.service.queued_count(blue) == mail.service.queued_count(blue, urgent_only=True) == 0
    assert mail.service.agents() == [mail.service.current(amber)]
    assert len(mail.service.agents(include_ended=True)) == 2


def test_what_is_sent_to_an_ended_agent_bounces_at_once_and_the_sender_sees_it(mail: MailHarness) -> None:
    amber, blue, calm = mail.agents("s1", "s2", "s3")
    mail.service.end(blue, "")
    sent = mail.sent(amber, blue, calm, intent="request")

    assert [bool(agent.ended) for agent in sent.recipients] == [True, False]
    assert mail.stages(sent.message) == {blue.name: "bounced", calm.name: "queued"}
    why = {delivery.recipient: delivery.why for delivery in mail.service.ledger(amber, sent.message.id)}
    assert why == {blue.name: "the agent had ended", calm.name: ""}
    assert mail.service.queued_count(blue) == 0
    assert notices(mail, amber) == [], "the result of send already said so"


def test_a_revived_agent_gets_everything_that_bounced_in_order_and_once(mail: MailHarness) -> None:
    amber, blue = mail.agents("s1", "s2")
    first = mail.send(amber, blue, priority="urgent")
    mail.service.end(blue, "logout")
    second = mail.send(amber, blue)
    mail.crash()
    third = mail.send(amber, blue)

    assert mail.service.current(blue).ended > 0
    assert mail.service.revive(blue).ended == 0.0
    assert mail.service.revive(blue).ended == 0.0
    assert (mail.service.queued_count(blue), mail.service.queued_count(blue, urgent_only=True)) == (3, 1)
    [delivery] = mail.service.ledger(amber, second.id)
    assert (delivery.stage, delivery.bounced, delivery.why) == ("queued", 0.0, "")
    assert mail.show(blue) == [first.id, second.id, third.id]
    mail.service.end(blue, "logout")
    mail.service.revive(blue)
    assert mail.show(blue) == [], "what was shown is not queued again"


def test_subagents_end_with_their_session_but_are_not_revived_with_it(mail: MailHarness) -> None:
    amber, blue = mail.agents("s1", "s2")
    child = mail.service.ensure_agent("s2", agent_id="a1", agent_type="Explore")
    request = mail.send(amber, child, intent="request")

    mail.service.end(blue, "logout")

    assert mail.service.current(child).ended == mail.service.current(blue).ended > 0
    assert mail.stages(request) == {child.name: "bounced"}
    assert subjects(mail, amber) == [f"{child.name} ended without answering: hello"]
    mail.service.revive(blue)
    assert mail.service.current(child).ended > 0
    mail.service.end(child, "again")
    assert len(notices(mail, amber)) == 1


def test_the_user_and_programs_do_not_end(mail: MailHarness) -> None:
    [amber] = mail.agents("s1")
    message = mail.send(amber, "User", "Script")
    for agent in (USER, SCRIPT):
        mail.service.end(agent, "logout")
        assert mail.service.revive(agent).ended == 0.0
    assert set(mail.stages(message).values()) == {"queued"}


def test_ending_twice_has_no_further_effect(mail: MailHarness) -> None:
    amber, blue = mail.agents("s1", "s2")
    mail.send(amber, blue, intent="request")
    mail.service.end(blue, "logout")
    ended = mail.service.current(blue).ended
    mail.service.end(blue, "something else")
    assert mail.service.current(blue).ended == ended
    assert len(notices(mail, amber)) == 1


# -- notices -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "seen"),
    [
        ("queued", "It had not seen it."),
        ("shown", "It had seen it."),
        ("read", "It had read it."),
        ("answered", ""),
    ],
)
def test_the_sender_of_a_request_gets_a_notice_when_the_agent_ends_without_answering(
    mail: MailHarness, before: str, seen: str
) -> None:
    amber, blue = mail.agents("s1", "s2")
    asked = mail.send(amber, blue, subject="Which port?", intent="request", priority="urgent")
    if before != "queued":
        mail.show(blue)
    if before == "read":
        mail.service.read(blue, asked.id)
    if before == "answered":
        mail.service.reply(blue, asked.id, "8080")

    mail.service.end(blue, "logout")
    mail.crash()

    if before == "answered":
        assert notices(mail, amber) == []
        return
    [notice] = notices(mail, amber)
    assert notice.subject == f"{blue.name} ended without answering: Which port?"
    assert notice.body == f"{blue.name} ended without answering your request {asked.id}.\n{seen}"
    assert (notice.thread, notice.reply_to, notice.intent, notice.priority) == (1, 1, "inform", "urgent")
    assert (notice.to, notice.project) == ((amber.name,), "/p")
    assert mail.show(amber) == [notice.id]
    with pytest.raises(NobodyThere):
        mail.service.reply(amber, notice.id, "why?")


def test_there_is_no_notice_about_a_message_that_is_not_a_request(mail: MailHarness) -> None:
    amber, blue = mail.agents("s1", "s2")
    mail.send(amber, blue)
    mail.send(amber, blue, intent="ack")
    mail.show(blue, limit=1)
    mail.service.notify_idle(blue)
    mail.service.end(blue, "logout")
    assert notices(mail, amber) == []


def test_an_agent_that_goes_idle_after_it_saw_a_request_causes_one_notice(mail: MailHarness) -> None:
    amber, blue = mail.agents("s1", "s2")
    shown = mail.send(amber, blue, subject="first", intent="request")
    mail.service.notify_idle(blue)
    assert notices(mail, amber) == [], "it has not seen it"
    mail.show(blue)
    unseen = mail.send(amber, blue, subject="second", intent="request")
    mail.crash()

    for _ in range(3):
        mail.service.notify_idle(blue)
    assert subjects(mail, amber) == [f"{blue.name} went idle without answering: first"]
    assert notices(mail, amber)[0].reply_to == shown.id

    mail.service.read(blue, unseen.id)
    mail.crash()
    mail.service.notify_idle(blue)
    mail.service.notify_idle(blue)
    assert len(notices(mail, amber)) == 2
    mail.service.end(blue, "logout")
    assert subjects(mail, amber)[2:] == [
        f"{blue.name} ended without answering: first",
        f"{blue.name} ended without answering: second",
    ], "another reason is another notice"
    mail.service.revive(blue)
    mail.service.notify_idle(blue)
    mail.service.end(blue, "logout")
    assert len(notices(mail, amber)) == 4, "the same reason is not"


def test_going_idle_costs_no_query_if_nothing_is_unanswered(mail: MailHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    amber, blue = mail.agents("s1", "s2")
    asked = mail.send(amber, blue, intent="request")
    mail.show(blue)
    mail.service.reply(blue, asked.id, "yes")
    mail.service.notify_idle(blue)
    assert notices(mail, amber) == []
    monkeypatch.delattr(type(mail.storage), "unanswered_by")
    mail.service.notify_idle(blue)
    mail.service.notify_idle(amber)


def test_a_passed_deadline_causes_one_notice_for_each_recipient(mail: MailHarness) -> None:
    amber, blue, calm, dusk = mail.agents("s1", "s2", "s3", "s4")
    at = mail.clock.at + 1000
    asked = mail.send(amber, blue, calm, dusk, subject="Soon?", intent="request", deadline=at)
    later = mail.send(amber, blue, subject="Later?", intent="request", deadline=at + 1000)
    mail.service.reply(calm, asked.id, "yes")
    assert mail.service.process_deadlines(at - 1) == 0
    mail.crash()

    assert mail.service.process_deadlines(at) == 2
    assert mail.service.process_deadlines(at + 1) == 0
    assert sorted(subjects(mail, amber)) == sorted(
        f"{one.name} has not answered in time: Soon?" for one in (blue, dusk)
    )
    mail.crash()
    assert mail.service.process_deadlines(at + 999) == 0
    assert mail.service.process_deadlines(at + 1000) == 1
    assert notices(mail, amber)[-1].reply_to == later.id
    mail.crash()
    assert mail.service.process_deadlines(at + 10_000) == 0


def test_a_deadline_that_passed_while_no_daemon_ran_still_causes_a_notice(mail: MailHarness) -> None:
    amber, blue = mail.agents("s1", "s2")
    mail.send(amber, blue, intent="request", deadline=mail.clock.at + 10)
    mail.clock.at += 1000
    mail.crash()
    assert mail.service.process_deadlines(mail.clock.at) == 1


def test_a_notice_about_a_deadline_that_could_not_be_stored_is_sent_later(
    mail: MailHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    amber, blue = mail.agents("s1", "s2")
    mail.send(amber, blue, intent="request", deadline=mail.clock.at + 10)

    def fails(*_: Any) -> None:
        raise MailUnreachable("no disk")

    with monkeypatch.context() as patch:
        patch.setattr(mail.storage, "send", fails)
        with pytest.raises(MailUnreachable):
            mail.service.process_deadlines(mail.clock.at + 1000)
    assert notices(mail, amber) == []
    assert mail.service.process_deadlines(mail.clock.at + 1000) == 1


def test_a_passed_deadline_of_a_bounced_request_causes_a_notice_too(mail: MailHarness) -> None:
    amber, blue = mail.agents("s1", "s2")
    mail.send(amber, blue, intent="request", deadline=mail.clock.at + 100)
    mail.service.end(blue, "logout")
    assert mail.service.process_deadlines(mail.clock.at + 1000) == 1
    mail.service.revive(blue)
    mail.crash()
    assert mail.service.process_deadlines(mail.clock.at + 1000) == 0
    assert subjects(mail, amber) == [
        f"{blue.name} ended without answering: hello",
        f"{blue.name} has not answered in time: hello",
    ]


def test_a_notice_for_an_ended_agent_is_shown_when_it_is_revived(mail: MailHarness) -> None:
    amber, blue = mail.agents("s1", "s2")
    mail.send(amber, blue, intent="request")
    mail.service.end(amber, "logout")
    mail.service.end(blue, "logout")
    assert mail.service.queued_count(amber) == 0
    mail.service.revive(amber)
    assert len(mail.show(amber)) == 1
    assert notices(mail, blue) == [], "a notice causes no notice"


def test_two_agents_that_owe_each_other_a_reply_and_end_together_get_their_notices_when_revived(
    mail: MailHarness,
) -> None:
    [amber] = mail.agents("s1")
    child = mail.service.ensure_agent("s1", agent_id="a1", agent_type="Plan")
    mail.send(amber, child, intent="request", subject="down")
    mail.send(child, amber, intent="request", subject="up")
    mail.service.end(amber, "logout")
    assert mail.service.queued_count(amber) == mail.service.queued_count(child) == 0
    mail.service.revive(amber)
    shown = [message.subject for message in mail.service.show(amber, "Stop", "e1")]
    assert sorted(shown) == sorted(["up", f"{child.name} ended without answering: down"])


def test_the_user_gets_notices_too(mail: MailHarness) -> None:
    [amber] = mail.agents("s1")
    mail.send(USER, amber, intent="request")
    mail.service.end(amber, "logout")
    assert len(notices(mail, USER)) == mail.service.queued_count(USER) == 1


# -- unanswered requests --------------------------------------------------------------------------------


def summary(found: list[Any]) -> list[tuple[int, str, str]]:
    return [(message.id, delivery.recipient, delivery.stage) for delivery, message in found]


def test_a_request_is_unanswered_until_its_recipient_replies_to_it(mail: MailHarness) -> None:
    service = mail.service
    amber, blue, calm = mail.agents("s1", "s2", "s3")
    asked = mail.send(amber, blue, calm, intent="request")
    mail.send(amber, blue)
    mail.show(blue)
    assert summary(service.unanswered_by(blue)) == [(asked.id, blue.name, "shown")]
    assert sorted(summary(service.unanswered_from(amber))) == sorted(
        [(asked.id, blue.name, "shown"), (asked.id, calm.name, "queued")]
    )
    mail.send(blue, amber, subject="not in the thread")
    mail.send(blue, calm, subject="not to the one who asked", reply_to=asked.id)
    assert len(service.unanswered_by(blue)) == 1

    service.reply(blue, asked.id, "yes")

    assert service.unanswered_by(blue) == []
    assert summary(service.unanswered_from(amber)) == [(asked.id, calm.name, "queued")]
    service.end(calm, "logout")
    assert service.unanswered_from(amber) == [], "it bounced"
    service.revive(calm)
    mail.crash()
    assert summary(mail.service.unanswered_by(calm)) == [(asked.id, calm.name, "queued")]


def test_a_reply_also_answers_what_the_same_agent_asked_earlier_in_the_thread(mail: MailHarness) -> None:
    amber, blue, calm = mail.agents("s1", "s2", "s3")
    asked = mail.send(amber, blue, calm, subject="Which port?", intent="request")
    other = mail.service.reply(calm, asked.id, "and which host?", intent="request", to_all=True).message
    more = mail.send(amber, blue, subject="Well?", reply_to=asked.id, priority="urgent")
    later = mail.send(amber, blue, subject="And?", reply_to=asked.id, intent="request")
    apart = mail.send(amber, blue, subject="another thread", intent="request")

    mail.service.reply(blue, more.id, "8080")

    assert mail.stages(asked)[blue.name] == mail.stages(more)[blue.name] == "answered"
    assert mail.stages(other)[blue.name] == "queued", "another agent asked that"
    assert [message.id for _, message in mail.service.unanswered_by(blue)] == [other.id, later.id, apart.id]
    assert mail.service.queued_count(blue) == 3
    assert mail.service.queued_count(blue, urgent_only=True) == 0
    assert mail.show(blue) == [other.id, later.id, apart.id], "what was answered is not shown any more"


def test_mail_counts(mail: MailHarness) -> None:
    amber, blue, calm = mail.agents("s1", "s2", "s3")
    mail.send(amber, blue, calm, intent="request")
    mail.send(amber, blue, "User")
    mail.send(amber, blue)
    mail.show(blue, limit=1)

    assert mail.service.mail_counts() == {
        amber.id: MailCounts(owed=2),
        blue.id: MailCounts(queued=2, unread=3, owes=1),
        calm.id: MailCounts(queued=1, unread=1, owes=1),
        USER.id: MailCounts(queued=1, unread=1),
    }


# -- pruning --------------------------------------------------------------------------------------------


def test_old_messages_are_pruned_but_none_that_is_still_queued(mail: MailHarness) -> None:
    amber, blue = mail.agents("s1", "s2")
    mail.send(amber, blue)
    mail.show(blue)
    waits = mail.send(amber, blue)
    for number in range(600):
        mail.send(amber, "Script", subject=str(number))
    horizon = mail.clock.at + 1
    new = mail.send(amber, "Script")

    assert mail.service.prune(horizon) == 601
    assert [message.id for message in mail.service.search(USER, "")] == [new.id, waits.id]
    assert mail.service.prune(horizon) == 0
    assert mail.show(blue) == [waits.id]


def test_no_id_is_reused_after_all_messages_were_pruned(mail: MailHarness) -> None:
    amber, blue = mail.agents("s1", "s2")
    for _ in range(3):
        mail.send(amber, blue)
    mail.show(blue)
    assert mail.service.prune(mail.clock.at + 100) == 3
    mail.crash()
    assert mail.send(amber, blue).id == 4


def test_an_ended_agent_is_pruned_with_the_last_message_that_names_it(mail: MailHarness) -> None:
    amber, blue, calm = mail.agents("s1", "s2", "s3")
    child = mail.service.ensure_agent("s2", agent_id="a1", agent_type="Plan")
    mail.service.subscribe(blue, "build")
    mail.service.rename(calm, "Calm")
    mail.send(amber, blue)
    mail.show(blue)
    mail.service.end(blue, "logout")
    mail.service.end(calm, "logout")
    mail.send(amber, child)

    mail.service.prune(0.0)
    assert len(mail.service.agents(include_ended=True)) == 4
    horizon = mail.clock.at + 100
    mail.service.prune(horizon)
    mail.service.prune(horizon)

    assert [agent.id for agent in mail.service.agents(include_ended=True)] == [amber.id]
    assert mail.service.topics() == []
    assert mail.service.find_by_session("s2") is None
    mail.crash()
    assert mail.service.ensure_agent("s3").name == calm.name, "its first name is free again"


def test_a_key_whose_message_was_pruned_can_be_used_again(mail: MailHarness) -> None:
    [amber] = mail.agents("s1")
    mail.send(amber, "Script", key="k")
    mail.service.prune(mail.clock.at + 100)
    assert mail.sent(amber, "User", key="k").is_new
