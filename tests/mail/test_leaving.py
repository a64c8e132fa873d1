"""When agents end, come back, go idle or are late: letters bounce and return, and who asked is told, once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from fairlead.mail import SCRIPT, USER, MailUnreachable, NobodyThere, Standing

if TYPE_CHECKING:
    from mail.offices import Desk

    from fairlead.mail import Agent, Message


def notices(desk: Desk, agent: Agent) -> list[Message]:
    """What Fairlead wrote to an agent, in order."""
    everything = desk.office.inbox(agent, stages=("queued", "shown", "read", "bounced"), limit=1000)
    return [message for _, message in everything if message.sender == "Fairlead"][::-1]


def subjects(desk: Desk, agent: Agent) -> list[str]:
    return [message.subject for message in notices(desk, agent)]


# -- the end -------------------------------------------------------------------------------------------


def test_what_is_queued_for_one_that_ends_bounces_with_the_reason(desk: Desk) -> None:
    amber, blue = desk.agents("s1", "s2")
    shown, queued = desk.send(amber, blue), desk.send(amber, blue, priority="urgent")
    desk.show(blue, most=1)

    desk.office.ended(blue, "logout")

    [letter] = desk.office.ledger(amber, queued.id)
    assert (letter.stage, letter.why) == ("bounced", "the agent ended: logout")
    assert letter.bounced == desk.office.current(blue).ended > 0
    assert desk.stages(shown) == {blue.name: "shown"}
    assert desk.office.waiting(blue) == desk.office.waiting(blue, urgent_only=True) == 0
    assert desk.office.agents() == [desk.office.current(amber)]
    assert len(desk.office.agents(ended=True)) == 2


def test_what_is_sent_to_one_that_has_ended_bounces_at_once_and_the_sender_sees_it(desk: Desk) -> None:
    amber, blue, calm = desk.agents("s1", "s2", "s3")
    desk.office.ended(blue, "")
    sent = desk.sent(amber, blue, calm, intent="request")

    assert [bool(agent.ended) for agent in sent.recipients] == [True, False]
    assert desk.stages(sent.message) == {blue.name: "bounced", calm.name: "queued"}
    why = {letter.recipient: letter.why for letter in desk.office.ledger(amber, sent.message.id)}
    assert why == {blue.name: "the agent had ended", calm.name: ""}
    assert desk.office.waiting(blue) == 0
    assert notices(desk, amber) == [], "it was told when it sent it"


def test_one_that_comes_back_gets_all_that_bounced_in_order_and_once(desk: Desk) -> None:
    amber, blue = desk.agents("s1", "s2")
    first = desk.send(amber, blue, priority="urgent")
    desk.office.ended(blue, "logout")
    second = desk.send(amber, blue)
    desk.crash()
    third = desk.send(amber, blue)

    assert desk.office.current(blue).ended > 0
    assert desk.office.revived(blue).ended == 0.0
    assert desk.office.revived(blue).ended == 0.0
    assert (desk.office.waiting(blue), desk.office.waiting(blue, urgent_only=True)) == (3, 1)
    [letter] = desk.office.ledger(amber, second.id)
    assert (letter.stage, letter.bounced, letter.why) == ("queued", 0.0, "")
    assert desk.show(blue) == [first.id, second.id, third.id]
    desk.office.ended(blue, "logout")
    desk.office.revived(blue)
    assert desk.show(blue) == [], "what was shown does not come back"


def test_subagents_end_with_their_session_but_do_not_come_back_with_it(desk: Desk) -> None:
    amber, blue = desk.agents("s1", "s2")
    child = desk.office.agent_for("s2", agent_id="a1", agent_type="Explore")
    request = desk.send(amber, child, intent="request")

    desk.office.ended(blue, "logout")

    assert desk.office.current(child).ended == desk.office.current(blue).ended > 0
    assert desk.stages(request) == {child.name: "bounced"}
    assert subjects(desk, amber) == [f"{child.name} ended without answering: hello"]
    desk.office.revived(blue)
    assert desk.office.current(child).ended > 0
    desk.office.ended(child, "again")
    assert len(notices(desk, amber)) == 1


def test_the_person_and_programs_do_not_end(desk: Desk) -> None:
    [amber] = desk.agents("s1")
    message = desk.send(amber, "User", "Script")
    for agent in (USER, SCRIPT):
        desk.office.ended(agent, "logout")
        assert desk.office.revived(agent).ended == 0.0
    assert set(desk.stages(message).values()) == {"queued"}


def test_to_end_twice_is_to_end_once(desk: Desk) -> None:
    amber, blue = desk.agents("s1", "s2")
    desk.send(amber, blue, intent="request")
    desk.office.ended(blue, "logout")
    ended = desk.office.current(blue).ended
    desk.office.ended(blue, "something else")
    assert desk.office.current(blue).ended == ended
    assert len(notices(desk, amber)) == 1


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
def test_who_asked_one_that_ends_without_an_answer_gets_a_notice(desk: Desk, before: str, seen: str) -> None:
    amber, blue = desk.agents("s1", "s2")
    asked = desk.send(amber, blue, subject="Which port?", intent="request", priority="urgent")
    if before != "queued":
        desk.show(blue)
    if before == "read":
        desk.office.read(blue, asked.id)
    if before == "answered":
        desk.office.reply(blue, asked.id, "8080")

    desk.office.ended(blue, "logout")
    desk.crash()

    if before == "answered":
        assert notices(desk, amber) == []
        return
    [notice] = notices(desk, amber)
    assert notice.subject == f"{blue.name} ended without answering: Which port?"
    assert notice.body == f"{blue.name} ended without answering your request {asked.id}.\n{seen}"
    assert (notice.thread, notice.reply_to, notice.intent, notice.priority) == (1, 1, "inform", "urgent")
    assert (notice.to, notice.project) == ((amber.name,), "/p")
    assert desk.show(amber) == [notice.id]
    with pytest.raises(NobodyThere):
        desk.office.reply(amber, notice.id, "why?")


def test_what_only_informs_comes_back_as_no_notice(desk: Desk) -> None:
    amber, blue = desk.agents("s1", "s2")
    desk.send(amber, blue)
    desk.send(amber, blue, intent="ack")
    desk.show(blue, most=1)
    desk.office.went_idle(blue)
    desk.office.ended(blue, "logout")
    assert notices(desk, amber) == []


def test_who_goes_idle_after_it_saw_a_request_is_told_of_once(desk: Desk) -> None:
    amber, blue = desk.agents("s1", "s2")
    shown = desk.send(amber, blue, subject="first", intent="request")
    desk.office.went_idle(blue)
    assert notices(desk, amber) == [], "it has not seen it"
    desk.show(blue)
    unseen = desk.send(amber, blue, subject="second", intent="request")
    desk.crash()

    for _ in range(3):
        desk.office.went_idle(blue)
    assert subjects(desk, amber) == [f"{blue.name} went idle without answering: first"]
    assert notices(desk, amber)[0].reply_to == shown.id

    desk.office.read(blue, unseen.id)
    desk.crash()
    desk.office.went_idle(blue)
    desk.office.went_idle(blue)
    assert len(notices(desk, amber)) == 2
    desk.office.ended(blue, "logout")
    assert subjects(desk, amber)[2:] == [
        f"{blue.name} ended without answering: first",
        f"{blue.name} ended without answering: second",
    ], "another reason is another notice"
    desk.office.revived(blue)
    desk.office.went_idle(blue)
    desk.office.ended(blue, "logout")
    assert len(notices(desk, amber)) == 4, "the same reason is not"


def test_to_go_idle_costs_no_query_where_nothing_is_owed(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    amber, blue = desk.agents("s1", "s2")
    asked = desk.send(amber, blue, intent="request")
    desk.show(blue)
    desk.office.reply(blue, asked.id, "yes")
    desk.office.went_idle(blue)
    assert notices(desk, amber) == []
    monkeypatch.delattr(type(desk.box), "owed_by")
    desk.office.went_idle(blue)
    desk.office.went_idle(amber)


def test_a_deadline_that_passes_is_told_of_once_for_each_recipient(desk: Desk) -> None:
    amber, blue, calm, dusk = desk.agents("s1", "s2", "s3", "s4")
    at = desk.clock.at + 1000
    asked = desk.send(amber, blue, calm, dusk, subject="Soon?", intent="request", deadline=at)
    later = desk.send(amber, blue, subject="Later?", intent="request", deadline=at + 1000)
    desk.office.reply(calm, asked.id, "yes")
    assert desk.office.due(at - 1) == 0
    desk.crash()

    assert desk.office.due(at) == 2
    assert desk.office.due(at + 1) == 0
    assert sorted(subjects(desk, amber)) == sorted(
        f"{one.name} has not answered in time: Soon?" for one in (blue, dusk)
    )
    desk.crash()
    assert desk.office.due(at + 999) == 0
    assert desk.office.due(at + 1000) == 1
    assert notices(desk, amber)[-1].reply_to == later.id
    desk.crash()
    assert desk.office.due(at + 10_000) == 0


def test_a_deadline_is_told_of_though_the_daemon_was_away_when_it_passed(desk: Desk) -> None:
    amber, blue = desk.agents("s1", "s2")
    desk.send(amber, blue, intent="request", deadline=desk.clock.at + 10)
    desk.clock.at += 1000
    desk.crash()
    assert desk.office.due(desk.clock.at) == 1


def test_a_deadline_whose_notice_could_not_be_kept_is_told_of_later(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    amber, blue = desk.agents("s1", "s2")
    desk.send(amber, blue, intent="request", deadline=desk.clock.at + 10)

    def fails(*_: Any) -> None:
        raise MailUnreachable("no disk")

    with monkeypatch.context() as patch:
        patch.setattr(desk.box, "post", fails)
        with pytest.raises(MailUnreachable):
            desk.office.due(desk.clock.at + 1000)
    assert notices(desk, amber) == []
    assert desk.office.due(desk.clock.at + 1000) == 1


def test_a_deadline_of_what_bounced_is_told_of_too(desk: Desk) -> None:
    amber, blue = desk.agents("s1", "s2")
    desk.send(amber, blue, intent="request", deadline=desk.clock.at + 100)
    desk.office.ended(blue, "logout")
    assert desk.office.due(desk.clock.at + 1000) == 1
    desk.office.revived(blue)
    desk.crash()
    assert desk.office.due(desk.clock.at + 1000) == 0
    assert subjects(desk, amber) == [
        f"{blue.name} ended without answering: hello",
        f"{blue.name} has not answered in time: hello",
    ]


def test_a_notice_for_one_that_has_ended_waits_until_it_comes_back(desk: Desk) -> None:
    amber, blue = desk.agents("s1", "s2")
    desk.send(amber, blue, intent="request")
    desk.office.ended(amber, "logout")
    desk.office.ended(blue, "logout")
    assert desk.office.waiting(amber) == 0
    desk.office.revived(amber)
    assert len(desk.show(amber)) == 1
    assert notices(desk, blue) == [], "nobody gets a notice about a notice"


def test_two_that_owe_each_other_and_end_together_find_it_when_they_come_back(desk: Desk) -> None:
    [amber] = desk.agents("s1")
    child = desk.office.agent_for("s1", agent_id="a1", agent_type="Plan")
    desk.send(amber, child, intent="request", subject="down")
    desk.send(child, amber, intent="request", subject="up")
    desk.office.ended(amber, "logout")
    assert desk.office.waiting(amber) == desk.office.waiting(child) == 0
    desk.office.revived(amber)
    shown = [message.subject for message in desk.office.show(amber, "Stop", "e1")]
    assert sorted(shown) == sorted(["up", f"{child.name} ended without answering: down"])


def test_the_person_is_told_too(desk: Desk) -> None:
    [amber] = desk.agents("s1")
    desk.send(USER, amber, intent="request")
    desk.office.ended(amber, "logout")
    assert len(notices(desk, USER)) == desk.office.waiting(USER) == 1


# -- what is owed --------------------------------------------------------------------------------------


def owed(found: list[Any]) -> list[tuple[int, str, str]]:
    return [(message.id, letter.recipient, letter.stage) for letter, message in found]


def test_a_request_is_owed_until_its_recipient_replied_to_it(desk: Desk) -> None:
    office = desk.office
    amber, blue, calm = desk.agents("s1", "s2", "s3")
    asked = desk.send(amber, blue, calm, intent="request")
    desk.send(amber, blue)
    desk.show(blue)
    assert owed(office.owed_by(blue)) == [(asked.id, blue.name, "shown")]
    assert sorted(owed(office.owed_to(amber))) == sorted(
        [(asked.id, blue.name, "shown"), (asked.id, calm.name, "queued")]
    )
    desk.send(blue, amber, subject="not in the thread")
    desk.send(blue, calm, subject="not to the one who asked", reply_to=asked.id)
    assert len(office.owed_by(blue)) == 1

    office.reply(blue, asked.id, "yes")

    assert office.owed_by(blue) == []
    assert owed(office.owed_to(amber)) == [(asked.id, calm.name, "queued")]
    office.ended(calm, "logout")
    assert office.owed_to(amber) == [], "it bounced"
    office.revived(calm)
    desk.crash()
    assert owed(desk.office.owed_by(calm)) == [(asked.id, calm.name, "queued")]


def test_a_reply_also_answers_what_the_same_one_asked_before_in_the_thread(desk: Desk) -> None:
    amber, blue, calm = desk.agents("s1", "s2", "s3")
    asked = desk.send(amber, blue, calm, subject="Which port?", intent="request")
    other = desk.office.reply(calm, asked.id, "and which host?", intent="request", to_all=True).message
    more = desk.send(amber, blue, subject="Well?", reply_to=asked.id, priority="urgent")
    later = desk.send(amber, blue, subject="And?", reply_to=asked.id, intent="request")
    apart = desk.send(amber, blue, subject="another thread", intent="request")

    desk.office.reply(blue, more.id, "8080")

    assert desk.stages(asked)[blue.name] == desk.stages(more)[blue.name] == "answered"
    assert desk.stages(other)[blue.name] == "queued", "somebody else asked that"
    assert [message.id for _, message in desk.office.owed_by(blue)] == [other.id, later.id, apart.id]
    assert desk.office.waiting(blue) == 3
    assert desk.office.waiting(blue, urgent_only=True) == 0
    assert desk.show(blue) == [other.id, later.id, apart.id], "what was answered is not shown any more"


def test_standings_count_what_an_agent_has_before_it(desk: Desk) -> None:
    amber, blue, calm = desk.agents("s1", "s2", "s3")
    desk.send(amber, blue, calm, intent="request")
    desk.send(amber, blue, "User")
    desk.send(amber, blue)
    desk.show(blue, most=1)

    assert desk.office.standings() == {
        amber.id: Standing(owed=2),
        blue.id: Standing(queued=2, unread=3, owes=1),
        calm.id: Standing(queued=1, unread=1, owes=1),
        USER.id: Standing(queued=1, unread=1),
    }


# -- keeping small -------------------------------------------------------------------------------------


def test_old_messages_go_but_none_that_is_still_queued(desk: Desk) -> None:
    amber, blue = desk.agents("s1", "s2")
    desk.send(amber, blue)
    desk.show(blue)
    waits = desk.send(amber, blue)
    for number in range(1200):
        desk.send(amber, "Script", subject=str(number))
    horizon = desk.clock.at + 1
    new = desk.send(amber, "Script")

    assert desk.office.retain(horizon) == 1201
    assert [message.id for message in desk.office.search(USER, "")] == [new.id, waits.id]
    assert desk.office.retain(horizon) == 0
    assert desk.show(blue) == [waits.id]


def test_no_id_is_given_again_though_all_messages_went(desk: Desk) -> None:
    amber, blue = desk.agents("s1", "s2")
    for _ in range(3):
        desk.send(amber, blue)
    desk.show(blue)
    assert desk.office.retain(desk.clock.at + 100) == 3
    desk.crash()
    assert desk.send(amber, blue).id == 4


def test_an_agent_that_ended_goes_with_the_last_message_that_names_it(desk: Desk) -> None:
    amber, blue, calm = desk.agents("s1", "s2", "s3")
    child = desk.office.agent_for("s2", agent_id="a1", agent_type="Plan")
    desk.office.subscribe(blue, "build")
    desk.office.rename(calm, "Calm")
    desk.send(amber, blue)
    desk.show(blue)
    desk.office.ended(blue, "logout")
    desk.office.ended(calm, "logout")
    desk.send(amber, child)

    desk.office.retain(0.0)
    assert len(desk.office.agents(ended=True)) == 4
    horizon = desk.clock.at + 100
    desk.office.retain(horizon)
    desk.office.retain(horizon)

    assert [agent.id for agent in desk.office.agents(ended=True)] == [amber.id]
    assert desk.office.topics() == []
    assert desk.office.known("s2") is None
    desk.crash()
    assert desk.office.agent_for("s3").name == calm.name, "its first name is free again"


def test_a_key_whose_message_went_may_be_used_again(desk: Desk) -> None:
    [amber] = desk.agents("s1")
    desk.send(amber, "Script", key="k")
    desk.office.retain(desk.clock.at + 100)
    assert desk.sent(amber, "User", key="k").is_new
