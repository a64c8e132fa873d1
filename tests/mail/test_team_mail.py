"""Mail between hosts: addresses, exactly once, receipts, threads, replies to all, and what bounces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from mail.team_harness import Hub, TeamHost, opened_team

from fairlead.mail import FIRST_REMOTE_ID, USER, Draft, NobodyThere, NoSuchAgent
from fairlead.mail.remote import IncomingPacket, ReceiveResult

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    yield from opened_team(tmp_path, "laptop", "server", "third")


@pytest.fixture
def hosts(hub: Hub) -> tuple[TeamHost, TeamHost, TeamHost]:
    laptop, server, third = hub.hosts.values()
    return laptop, server, third


Hosts = tuple[TeamHost, TeamHost, TeamHost]


def test_a_request_to_another_host_is_shown_there_once_and_its_answer_comes_back(hub: Hub, hosts: Hosts) -> None:
    laptop, server, _ = hosts
    (asker,), (worker,) = laptop.agents("s1"), server.agents("s2")
    hub.publish_snapshots()

    sent = laptop.send(asker, f"{worker.name}@server", intent="request", body="how many?")
    assert laptop.outgoing_notifications == 1
    assert laptop.ledger(sent)[f"{worker.name}@server"].in_transit_since == sent.at
    hub.settle()
    assert server.rings == [worker.name]
    state = laptop.ledger(sent)[f"{worker.name}@server"]
    assert (state.host, state.in_transit_since, state.stage) == ("server", 0.0, "queued")

    (shown,) = server.service.show(worker, "Stop", "e1")
    assert (shown.sender, shown.to, shown.body) == (f"{asker.name}@laptop", (worker.name,), "how many?")
    assert server.service.show(worker, "Stop", "e2") == []
    hub.settle()
    assert laptop.ledger(sent)[f"{worker.name}@server"].stage == "shown"
    assert laptop.ledger(sent)[f"{worker.name}@server"].event == "Stop"

    server.service.reply(worker, shown.id, "seven")
    hub.settle()
    state = laptop.ledger(sent)[f"{worker.name}@server"]
    assert (state.stage, laptop.service.unanswered_from(asker)) == ("answered", [])
    (answer,) = laptop.service.show(asker, "Stop", "e3")
    assert (answer.body, answer.thread, answer.reply_to) == ("seven", sent.id, sent.id)
    assert laptop.rings == [asker.name]


def test_a_packet_is_applied_once_in_order_and_a_gap_waits(hub: Hub, hosts: Hosts) -> None:
    laptop, server, _ = hosts
    (asker,), (worker,) = laptop.agents("s1"), server.agents("s2")
    hub.publish_snapshots()
    for subject in ("one", "two", "three"):
        laptop.send(asker, f"{worker.name}@server", subject=subject)
    hub.push(laptop)
    first, second, third = hub.pull(server)

    assert server.team.receive([third]) == [ReceiveResult.GAP]
    assert server.team.receive([first, first]) == [ReceiveResult.APPLIED, ReceiveResult.REPEATED]
    server.crash()
    assert server.team.receive([first]) == [ReceiveResult.REPEATED]
    assert server.team.receive([second, third, second]) == [
        ReceiveResult.APPLIED,
        ReceiveResult.APPLIED,
        ReceiveResult.REPEATED,
    ]
    assert [one.subject for one in server.service.show(worker, "Stop", "e1")] == ["one", "two", "three"]


def test_a_hub_that_was_restored_from_an_old_backup_loses_and_doubles_nothing(hub: Hub, hosts: Hosts) -> None:
    laptop, server, _ = hosts
    (asker,), (worker,) = laptop.agents("s1"), server.agents("s2")
    hub.publish_snapshots()
    laptop.send(asker, f"{worker.name}@server", subject="one")
    hub.push(laptop)
    backup = dict(hub.packets), dict(hub.progress)
    hub.settle()
    laptop.send(asker, f"{worker.name}@server", subject="two")
    hub.push(laptop)
    hub.packets, hub.progress = backup  # the second is gone, the first is back
    hub.settle()
    assert [one.subject for one in server.service.show(worker, "Stop", "e1")] == ["one", "two"]


# -- addresses -----------------------------------------------------------------------------------------


def test_a_local_name_wins_and_a_name_on_several_hosts_is_refused_with_the_list(hub: Hub, hosts: Hosts) -> None:
    laptop, server, third = hosts
    (asker,) = laptop.agents("s1")
    for host, session in ((laptop, "s2"), (server, "s3"), (third, "s4")):
        host.service.rename(host.agents(session)[0], "Builder")
    server.service.rename(server.agents("s5")[0], "Only")
    hub.publish_snapshots()

    assert [one.host for one in laptop.sent(asker, "builder").recipients] == [""]
    assert [one.name for one in laptop.sent(asker, "only").recipients] == ["Only@server"]
    assert [one.name for one in laptop.sent(asker, "BUILDER@third").recipients] == ["Builder@third"]
    assert [one.id for one in laptop.sent(asker, "builder@laptop").recipients] == [
        laptop.service.find_by_name("Builder").id
    ]
    laptop.service.rename(laptop.service.find_by_name("Builder"), "Other")
    laptop.service._agents._former_names.clear()
    with pytest.raises(NoSuchAgent) as error:
        laptop.sent(asker, "builder")
    assert str(error.value) == "'builder' is on several hosts; name one: Builder@server, Builder@third"
    with pytest.raises(NoSuchAgent, match=r"no host of the team is called 'moon'; the others are server, third"):
        laptop.sent(asker, "builder@moon")
    with pytest.raises(NoSuchAgent, match=r"no agent on server is called 'bulder'; did you mean Builder@server\?"):
        laptop.sent(asker, "bulder@server")
    with pytest.raises(NobodyThere):
        laptop.sent(asker, "Fairlead@server")


def test_the_person_of_another_host_gets_mail(hub: Hub, hosts: Hosts) -> None:
    laptop, server, _ = hosts
    (asker,) = laptop.agents("s1")
    hub.publish_snapshots()
    laptop.send(asker, "user@server", subject="for you")
    hub.settle()
    assert server.rings == ["User"]
    assert [message.subject for _, message in server.service.inbox(USER)] == ["for you"]
    server.service.send(USER, Draft(to=(f"{asker.name}@laptop",), subject="thanks"))
    hub.settle()
    assert [one.sender for one in laptop.service.show(asker, "Stop", "e1")] == ["User@server"]


def test_a_renamed_agent_is_reached_by_both_names_also_after_a_restart_without_the_hub(hub: Hub, hosts: Hosts) -> None:
    laptop, server, _ = hosts
    (asker,), (worker,) = laptop.agents("s1"), server.agents("s2")
    hub.publish_snapshots()
    before = laptop.sent(asker, f"{worker.name}@server").recipients[0]
    server.service.rename(worker, "Builder")
    hub.publish_snapshots()
    laptop.restart()
    for name in ("builder@server", f"{worker.name}@server", "Builder", worker.name):
        (recipient,) = laptop.sent(asker, name).recipients
        assert (recipient.id, recipient.name) == (before.id, "Builder@server")
    hub.settle()
    assert len(server.service.show(worker, "Stop", "e1")) == 5


def test_agents_of_other_hosts_are_no_sessions_of_this_one(hub: Hub, hosts: Hosts) -> None:
    laptop, server, _ = hosts
    (asker, other), (worker,) = laptop.agents("s1", "s2"), server.agents("s3")
    hub.publish_snapshots()
    laptop.send(asker, f"{worker.name}@server", intent="request")
    for _ in range(2):
        assert [one.id for one in laptop.service.agents(include_ended=True)] == sorted(
            [asker.id, other.id], key=lambda number: laptop.service._agents._by_id[number].name
        )
        assert set(laptop.service.mail_counts()) <= {asker.id, other.id}
        assert laptop.service.find_by_session("s3") is None
        with pytest.raises(NoSuchAgent):
            laptop.service.find_by_name(f"{worker.name}@server")
        assert [one.id for one in laptop.sent(asker, "everyone").recipients] == [other.id]
        laptop.service.show(other, "Stop", "e1")
        laptop.restart()
    assert laptop.agents("s9")[0].id < FIRST_REMOTE_ID


def test_a_topic_reaches_subscribers_on_all_hosts_and_a_reply_to_all_comes_back_to_all(hub: Hub, hosts: Hosts) -> None:
    laptop, server, third = hosts
    (a1, a2), (b,), (c, gone) = laptop.agents("a1", "a2"), server.agents("b"), third.agents("c", "gone")
    for host, agent in ((laptop, a2), (server, b), (third, c), (third, gone)):
        host.service.subscribe(agent, "#build")
    third.service.end(gone, "closed")
    hub.publish_snapshots()
    (topic,) = laptop.service.topics()
    assert topic.subscribers == (a2.name, f"{b.name}@server", f"{c.name}@third")

    asked = laptop.send(a1, "#build", intent="request")
    hub.settle()
    assert set(laptop.stages(asked)) == {a2.name, f"{b.name}@server", f"{c.name}@third"}
    (shown,) = server.service.show(b, "Stop", "e1")
    assert shown.to == ("#build",)
    result = server.service.reply(b, shown.id, "done", to_all=True)
    assert {one.name for one in result.recipients} == {f"{a1.name}@laptop", f"{a2.name}@laptop", f"{c.name}@third"}
    hub.settle()
    threads = {host.service.show(agent, "Stop", "e")[-1].thread for host, agent in ((laptop, a1), (laptop, a2))}
    assert threads == {asked.id}
    first, second = third.service.show(c, "Stop", "e")
    assert (first.thread, second.reply_to) == (second.thread, first.id)


def test_a_thread_whose_beginning_is_unknown_here_holds_together(hub: Hub, hosts: Hosts) -> None:
    laptop, server, third = hosts
    (a,), (b,), (c,) = laptop.agents("a"), server.agents("b"), third.agents("c")
    hub.publish_snapshots()
    root = laptop.send(a, f"{b.name}@server")
    hub.settle()
    (at_server,) = server.service.show(b, "Stop", "e1")
    for subject in ("one", "two"):
        server.send(b, f"{c.name}@third", subject=subject, reply_to=at_server.id)
    laptop.send(a, f"{c.name}@third", subject="three", reply_to=root.id)
    hub.settle()
    shown = third.service.show(c, "Stop", "e1")
    assert {one.subject for one in shown} == {"one", "two", "three"}
    assert len({one.thread for one in shown}) == 1
    first = next(one for one in shown if one.subject == "one")
    third.service.reply(c, first.id, "to the beginning")
    hub.settle()
    (reply,) = server.service.show(b, "Stop", "e2")
    assert reply.thread == at_server.thread


# -- receipts ------------------------------------------------------------------------------------------


def test_a_showing_that_is_undone_and_an_end_and_a_resume_are_seen_at_the_origin(hub: Hub, hosts: Hosts) -> None:
    laptop, server, _ = hosts
    (asker,), (worker,) = laptop.agents("s1"), server.agents("s2")
    hub.publish_snapshots()
    sent = laptop.send(asker, f"{worker.name}@server")
    seen = []

    def stage() -> None:
        hub.settle()
        (delivery,) = laptop.ledger(sent).values()
        seen.append((delivery.stage, delivery.why))

    stage()
    server.service.show(worker, "Stop", "e1")
    stage()
    server.service.requeue("e1", may_repeat=True)
    stage()
    server.service.end(worker, "closed")
    stage()
    server.service.revive(worker)
    stage()
    server.service.read(worker, server.service.inbox(worker)[0][1].id)
    stage()
    assert seen == [
        ("queued", ""),
        ("shown", ""),
        ("queued", "it may have been shown before"),
        ("bounced", "the agent ended: closed"),
        ("queued", ""),
        ("read", ""),
    ]


def test_a_recipient_that_does_not_exist_bounces_and_one_that_has_ended_too(hub: Hub, hosts: Hosts) -> None:
    laptop, server, _ = hosts
    (asker,), (worker, ended) = laptop.agents("s1"), server.agents("s2", "s3")
    hub.publish_snapshots()
    server.service.end(ended, "closed")
    first = laptop.send(asker, f"{worker.name}@server", f"{ended.name}@server")
    server.service._agents.remove(worker.id)
    hub.settle()
    states = {name: (one.stage, one.why) for name, one in laptop.ledger(first).items()}
    assert states == {
        f"{worker.name}@server": ("bounced", "there is no such agent on server"),
        f"{ended.name}@server": ("bounced", "the agent had ended"),
    }


def test_only_the_origin_sends_the_notice_about_a_deadline(hub: Hub, hosts: Hosts) -> None:
    laptop, server, _ = hosts
    (asker,), (worker,) = laptop.agents("s1"), server.agents("s2")
    hub.publish_snapshots()
    laptop.send(asker, f"{worker.name}@server", intent="request", deadline=laptop.clock.at + 50)
    hub.settle()
    server.service.show(worker, "Stop", "e1")
    server.restart()
    hub.settle()
    late = laptop.clock.at + 1000
    assert (server.service.process_deadlines(late), laptop.service.process_deadlines(late)) == (0, 1)
    (notice,) = laptop.service.show(asker, "Stop", "e2")
    assert notice.subject == f"{worker.name}@server has not answered in time: hello"


def test_going_idle_is_told_by_the_recipients_host(hub: Hub, hosts: Hosts) -> None:
    laptop, server, _ = hosts
    (asker,), (worker,) = laptop.agents("s1"), server.agents("s2")
    hub.publish_snapshots()
    sent = laptop.send(asker, f"{worker.name}@server", intent="request")
    hub.settle()
    server.service.show(worker, "Stop", "e1")
    server.service.notify_idle(worker)
    hub.settle()
    (notice,) = laptop.service.show(asker, "Stop", "e2")
    assert (notice.sender, notice.reply_to, notice.to) == ("Fairlead@server", sent.id, (asker.name,))
    assert notice.body == f"{worker.name}@server went idle without answering your request.\nIt had seen it."
    with pytest.raises(NobodyThere):
        laptop.service.reply(asker, notice.id, "oh")


def test_a_key_sends_once_to_another_host(hub: Hub, hosts: Hosts) -> None:
    laptop, server, _ = hosts
    (asker,), (worker,) = laptop.agents("s1"), server.agents("s2")
    hub.publish_snapshots()
    first = laptop.sent(asker, f"{worker.name}@server", key="k")
    again = laptop.sent(asker, f"{worker.name}@server", key="k")
    assert (again.is_new, again.message.id, again.recipients) == (False, first.message.id, first.recipients)
    hub.settle()
    assert len(server.service.show(worker, "Stop", "e1")) == 1


# -- what cannot be applied or delivered ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "body", "why"),
    [
        ("dance", b"{}", "a kind of packet that this version does not know"),
        ("message", b"{", "Input data was truncated"),
        ("message", b'{"number": 1}', "Object missing required field `at`"),
        ("receipt", b'{"receipts": [{"number": 0, "recipient": 1, "stage": "shown"}]}', "Expected `int` >= 1"),
    ],
)
def test_a_packet_that_cannot_be_applied_is_kept_aside_and_the_next_one_follows(
    hub: Hub, hosts: Hosts, kind: str, body: bytes, why: str
) -> None:
    laptop, server, _ = hosts
    hub.publish_snapshots()
    bad = IncomingPacket(origin=laptop.id, seq=1, kind=kind, body=body)
    void = IncomingPacket(origin=laptop.id, seq=2, kind="void", body=b"")
    assert server.team.receive([bad, void, bad]) == [
        ReceiveResult.REFUSED,
        ReceiveResult.APPLIED,
        ReceiveResult.REPEATED,
    ]
    (kept,) = server.team.refused()
    assert (kept.origin, kept.seq, kept.kind, kept.body) == (laptop.id, 1, kind, body)
    assert kept.why.startswith(why)


def test_a_packet_of_a_host_that_is_not_known_waits(hub: Hub, hosts: Hosts) -> None:
    _, server, _ = hosts
    assert server.team.receive([IncomingPacket(origin="x", seq=1, kind="void", body=b"")]) == [ReceiveResult.GAP]


def test_packets_of_another_kind_go_to_their_handler_in_order(hub: Hub, hosts: Hosts) -> None:
    laptop, server, _ = hosts
    hub.publish_snapshots()
    got: list[tuple[str, bytes]] = []
    server.team.add_handler("answer", lambda origin, body: got.append((origin, body)))
    assert [laptop.team.post(server.id, "answer", body) for body in (b"1", b"2")] == [1, 2]
    hub.settle()
    assert got == [(laptop.id, b"1"), (laptop.id, b"2")]


def test_what_is_on_its_way_to_a_removed_host_bounces_with_one_notice_for_a_message(hub: Hub, hosts: Hosts) -> None:
    laptop, server, _ = hosts
    (asker,), (one, two) = laptop.agents("s1"), server.agents("s2", "s3")
    hub.publish_snapshots()
    arrived = laptop.send(asker, f"{one.name}@server", subject="arrived")
    hub.settle()
    sent = laptop.send(asker, f"{one.name}@server", f"{two.name}@server", subject="late")
    laptop.team.build_packets()
    pending = laptop.send(asker, f"{one.name}@server", subject="later")
    laptop.team.update_host(server.id, "server", "removed")

    assert laptop.team.give_up(server.id, "the host server was removed from the team") == 3
    assert laptop.team.give_up(server.id, "again") == 0
    assert {stage for number in (arrived, sent, pending) for stage in laptop.stages(number).values()} == {"bounced"}
    assert (laptop.team.targets(), laptop.team.build_packets()) == ([], 0)
    notices = laptop.service.show(asker, "Stop", "e1")
    assert [one.subject for one in notices] == [
        f"not delivered to server: {subject}" for subject in ("arrived", "late", "later")
    ]
    names = f"{one.name}@server, {two.name}@server"
    assert notices[1].body == (
        f"Your message {sent.id} to {names} was not delivered: the host server was removed from the team."
    )
    with pytest.raises(NoSuchAgent, match="the host server was removed from the team; no mail goes to it"):
        laptop.send(asker, f"{one.name}@server")


def test_a_host_that_was_silent_too_long_may_come_back_and_the_order_goes_on(hub: Hub, hosts: Hosts) -> None:
    laptop, server, _ = hosts
    (asker,), (worker,) = laptop.agents("s1"), server.agents("s2")
    hub.publish_snapshots()
    pushed = laptop.send(asker, f"{worker.name}@server", subject="pushed")
    hub.push(laptop)
    laptop.send(asker, f"{worker.name}@server", subject="kept back")
    laptop.team.build_packets()
    assert laptop.team.give_up(server.id, "nothing was heard of it for 14 days") == 2
    laptop.send(asker, f"{worker.name}@server", subject="new")
    hub.settle()
    assert [one.subject for one in server.service.show(worker, "Stop", "e1")] == ["pushed", "new"]
    hub.settle()
    assert list(laptop.stages(pushed).values()) == ["shown"]


def test_who_leaves_the_team_gets_back_what_was_on_its_way_and_can_join_again(hub: Hub, hosts: Hosts) -> None:
    laptop, server, _ = hosts
    (asker,), (worker,) = laptop.agents("s1"), server.agents("s2")
    hub.publish_snapshots()
    laptop.send(asker, f"{worker.name}@server", subject="late")
    laptop.team.build_packets()
    assert laptop.team.leave("this host has left the team") == 1
    assert [one.subject for one in laptop.service.show(asker, "Stop", "e1")] == ["not delivered to server: late"]
    with pytest.raises(NoSuchAgent):
        laptop.send(asker, f"{worker.name}@server")

    del hub.hosts[laptop.id]
    laptop.id = "another"
    hub.hosts[laptop.id] = laptop
    laptop.team.set_local_host(laptop.id, "laptop")
    hub.publish_snapshots()
    laptop.send(asker, f"{worker.name}@server", subject="again")
    hub.settle()
    assert [one.subject for one in server.service.show(worker, "Stop", "e1")] == ["again"]


def test_transit_says_since_when_and_whether_it_is_there(hub: Hub, hosts: Hosts) -> None:
    laptop, server, _ = hosts
    (asker, here), (worker,) = laptop.agents("s1", "s2"), server.agents("s3")
    hub.publish_snapshots()
    result = laptop.sent(asker, here, f"{worker.name}@server")
    message, there = result.message, f"{worker.name}@server"

    def states() -> dict[str, tuple[str, float]]:
        return {name: (one.host, one.in_transit_since) for name, one in laptop.ledger(message).items()}

    assert states() == {here.name: ("", 0.0), there: ("server", message.at)}
    hub.push(laptop)
    assert states() == {here.name: ("", 0.0), there: ("server", message.at)}
    hub.settle()
    assert states() == {here.name: ("", 0.0), there: ("server", 0.0)}


def test_pruning_keeps_what_is_on_its_way(hub: Hub, hosts: Hosts) -> None:
    laptop, server, _ = hosts
    (asker,), (worker,) = laptop.agents("s1"), server.agents("s2")
    hub.publish_snapshots()
    sent = laptop.send(asker, f"{worker.name}@server")
    late = laptop.clock.at + 10_000
    assert laptop.service.prune(late) == 0
    hub.settle()
    assert (laptop.service.prune(late), server.service.prune(late)) == (0, 0)
    server.service.show(worker, "Stop", "e1")
    assert server.service.prune(late) == 0  # its receipt is on its way
    hub.settle()
    assert (laptop.service.prune(late), server.service.prune(late)) == (1, 1)
    laptop.send(asker, f"{worker.name}@server", subject="goes on")
    hub.settle()
    assert [one.subject for one in server.service.show(worker, "Stop", "e2")] == ["goes on"]
    assert sent.id == 1


def test_times_are_translated_by_the_shift_of_the_clocks(hub: Hub, hosts: Hosts) -> None:
    laptop, server, _ = hosts
    (asker,), (worker,) = laptop.agents("s1"), server.agents("s2")
    hub.publish_snapshots()
    sent = laptop.send(asker, f"{worker.name}@server", intent="request", deadline=laptop.clock.at + 60)
    hub.push(laptop)
    (packet,) = hub.pull(server)
    shifted = IncomingPacket(origin=packet.origin, seq=1, kind=packet.kind, body=packet.body, clock_shift=100.0)
    server.team.receive([shifted])
    (shown,) = server.service.show(worker, "Stop", "e1")
    assert (shown.at, shown.deadline) == (sent.at + 100, sent.deadline + 100)
