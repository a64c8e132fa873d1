"""The contract of the mail store. The tests of a backend provide its URL and run all of this."""

from __future__ import annotations

import threading
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from store.checks import problems, sizes

from fairlead.mail import (
    FAIRLEAD,
    NOTICE_ENDED,
    NOTICE_IDLE,
    NOTICE_OVERDUE,
    SCRIPT,
    USER,
    Agent,
    Alias,
    MailBusy,
    MailCounts,
    MailStorage,
    MailUnreachable,
    Message,
    OutgoingMessage,
    PruneStep,
    QueueSize,
    StoredMail,
    UnansweredRequest,
)
from fairlead.store import MailStore

if TYPE_CHECKING:
    from collections.abc import Iterator

AMBER = Agent(id=10, name="amber-fox", session="s1", project="/p", created=1.0, seen=2.0, saved="half way")
BLUE = Agent(id=11, name="blue-elk", session="s2", project="/p", created=1.0, seen=2.0)
CHILD = Agent(id=12, name="amber-fox/plan-1", session="s1", parent=10, agent_id="a1", created=1.0, seen=1.0)
FIXED = [USER, FAIRLEAD, SCRIPT]
ODD = "nul \0 mark \uffff0 \x1b ' \" \N{PILE OF POO} % _ \\"


def outgoing(number: int, *to: Agent, sender: Agent = AMBER, **fields: Any) -> OutgoingMessage:
    """Return a message to send; fields that are not the message\'s are those of the `OutgoingMessage`."""
    names = ("ended_recipients", "bounce_reason", "key", "answered_by", "marks_notified")
    extra = {name: fields.pop(name) for name in names if name in fields}
    content = {"at": float(number), "subject": f"m{number}", "thread": number, "to": ("x",), **fields}
    message = Message(id=number, sender=sender.name, **content)
    return OutgoingMessage(message=message, sender=sender.id, recipients=tuple(agent.id for agent in to), **extra)


def shown(
    storage: MailStorage, agent: Agent, event_id: str = "e1", *, limit: int = 10, urgent_only: bool = False
) -> list[int]:
    found = storage.show(agent.id, event="Stop", event_id=event_id, at=50.0, limit=limit, urgent_only=urgent_only)
    return [message.id for message in found]


def stages(storage: MailStorage, number: int) -> dict[int, str]:
    return {agent: delivery.stage for agent, delivery in storage.deliveries(number)}


def summary(found: list[UnansweredRequest]) -> list[tuple[int, int, str, int]]:
    return [(one.message.id, one.recipient, one.delivery.stage, one.notified) for one in found]


class MailContract:
    """Subclass this with a fixture `url` that names an empty database."""

    @pytest.fixture
    def empty(self, url: str) -> Iterator[MailStore]:
        with closing(MailStore.open(url)) as storage:
            assert storage.warnings == ()
            yield storage

    @pytest.fixture
    def storage(self, empty: MailStore) -> MailStore:
        empty.save_agents([AMBER, BLUE, CHILD])
        return empty

    def test_a_new_store_has_the_fixed_agents(self, empty: MailStore) -> None:
        assert empty.load() == StoredMail(agents=FIXED)
        assert empty.get_message(1) is None
        assert empty.deliveries(1) == []
        assert empty.search("", 0, limit=10, before=0) == []
        assert problems(empty) == []

    def test_only_one_can_have_it_open(self, url: str, empty: MailStore) -> None:
        with pytest.raises(MailBusy, match="another process is using it, perhaps a second daemon; stop that one first"):
            MailStore.open(url)
        empty.close()
        MailStore.open(url).close()

    def test_agents_are_stored_with_all_fields_and_former_names(self, url: str, storage: MailStore) -> None:
        odd = Agent(id=13, name=ODD, session=ODD, project=ODD, agent_id=ODD, saved=ODD)
        storage.save_agents([odd], [Alias("session", ODD, 13), Alias("name", "old", 10)])
        storage.save_agents([BLUE], [Alias("name", "old", 11)])
        storage.save_last_seen([(10, 99.0), (11, 98.0)])
        storage.subscribe("z", 11)
        storage.subscribe("a", 10)
        storage.subscribe("z", 10)
        storage.subscribe("z", 11)
        storage.unsubscribe("a", 10)
        storage.unsubscribe("a", 10)
        storage.close()
        with closing(MailStore.open(url)) as again:
            loaded = again.load()
        seen = {agent.id: agent.seen for agent in loaded.agents}
        assert (seen[10], seen[11], seen[12]) == (99.0, 98.0, 1.0)
        assert loaded.agents[-1] == odd
        assert loaded.former_sessions == {ODD: 13}
        assert loaded.former_names == {"old": 11}
        assert loaded.subscriptions == [("z", 10), ("z", 11)]

    def test_a_message_is_returned_complete(self, storage: MailStore) -> None:
        full = outgoing(
            1, BLUE, USER, subject=ODD, body=ODD * 2, to=("#a", ODD), priority="urgent", intent="request", deadline=77.0
        )
        plain = outgoing(2, BLUE, project="/p", reply_to=1, thread=1)
        assert storage.send([full, plain]) == {}
        assert storage.get_message(1) == (full.message, AMBER.id)
        assert storage.get_message(2) == (plain.message, AMBER.id)
        assert stages(storage, 1) == {BLUE.id: "queued", USER.id: "queued"}
        assert storage.load() == StoredMail(
            agents=[*FIXED, AMBER, BLUE, CHILD],
            queue_sizes={BLUE.id: QueueSize(2, 1), USER.id: QueueSize(1, 1)},
            deadlines=[(77.0, 1)],
            last_message=2,
        )

    def test_a_failed_batch_stores_nothing(self, storage: MailStore) -> None:
        storage.send([outgoing(1, BLUE, key="k")])
        for twice in (outgoing(1, BLUE), outgoing(3, BLUE, key="k"), outgoing(3, BLUE, BLUE)):
            with pytest.raises(MailUnreachable, match=r"UNIQUE|unique"):
                storage.send([outgoing(2, BLUE), twice])
        assert storage.get_message(2) is None
        assert storage.load().queue_sizes == {BLUE.id: QueueSize(1, 0)}
        assert storage.load().last_message == 1

    def test_keys_are_found_by_sender(self, storage: MailStore) -> None:
        first, second = outgoing(1, BLUE, key=ODD), outgoing(2, AMBER, sender=BLUE, key=ODD)
        storage.send([first, second, outgoing(3, BLUE)])
        asked = {(AMBER.id, ODD), (BLUE.id, ODD), (USER.id, ODD), *((AMBER.id, f"k{number}") for number in range(1200))}
        assert storage.find_by_keys(asked) == {(AMBER.id, ODD): first.message, (BLUE.id, ODD): second.message}

    def test_deliveries_are_shown_in_order_and_marked(self, storage: MailStore) -> None:
        storage.send([outgoing(number, BLUE) for number in range(1, 6)])
        assert shown(storage, BLUE, limit=3) == [1, 2, 3]
        assert shown(storage, BLUE) == [4, 5]
        assert shown(storage, BLUE) == []
        [(_, delivery)] = storage.deliveries(1)
        assert (delivery.recipient, delivery.stage, delivery.shown, delivery.event) == (
            BLUE.name,
            "shown",
            50.0,
            "Stop",
        )

    def test_urgent_messages_are_shown_with_what_precedes_them_in_their_threads(self, storage: MailStore) -> None:
        storage.send(
            [
                outgoing(1, BLUE),
                outgoing(2, BLUE),
                outgoing(3, BLUE, thread=1),
                outgoing(4, BLUE, thread=1, priority="urgent"),
            ]
        )
        storage.send(
            [
                outgoing(5, BLUE, thread=1),
                outgoing(6, BLUE, priority="urgent"),
                outgoing(7, AMBER, sender=BLUE, thread=1),
            ]
        )
        assert shown(storage, BLUE, limit=1, urgent_only=True) == [1]
        assert shown(storage, BLUE, urgent_only=True) == [3, 4, 6]
        assert shown(storage, BLUE) == [2, 5]

    def test_what_was_shown_at_an_event_is_queued_again_unless_it_was_read(self, storage: MailStore) -> None:
        storage.send([outgoing(1, BLUE, priority="urgent"), outgoing(2, BLUE, AMBER), outgoing(3, BLUE)])
        shown(storage, BLUE, ODD)
        shown(storage, AMBER, ODD)
        storage.end_agents([AMBER.id], 60.0, "gone", [])
        assert storage.mark_read(BLUE.id, 3, 55.0) == "shown"
        assert storage.requeue(ODD, "gone") == {BLUE.id: QueueSize(2, 1)}
        assert storage.requeue(ODD, "gone") == {}
        assert (stages(storage, 2), stages(storage, 3)) == ({AMBER.id: "bounced", BLUE.id: "queued"}, {BLUE.id: "read"})
        assert shown(storage, BLUE) == [1, 2]

    def test_mark_read_returns_the_previous_stage(self, storage: MailStore) -> None:
        storage.send([outgoing(1, BLUE)])
        assert storage.mark_read(AMBER.id, 1, 9.0) is None
        assert [storage.mark_read(BLUE.id, 1, at) for at in (10.0, 11.0)] == ["queued", "read"]
        [(_, delivery)] = storage.deliveries(1)
        assert delivery.read == 10.0

    def test_ending_agents_bounces_what_is_queued_and_reviving_them_queues_it_again(self, storage: MailStore) -> None:
        storage.send([outgoing(1, BLUE, priority="urgent"), outgoing(2, BLUE), outgoing(3, AMBER, sender=BLUE)])
        shown(storage, BLUE, limit=1)
        notice = outgoing(4, AMBER, sender=FAIRLEAD, marks_notified=((2, BLUE.id, NOTICE_ENDED),))
        storage.end_agents([BLUE.id, CHILD.id], 60.0, "gone", [notice])
        storage.send([outgoing(5, BLUE, AMBER, ended_recipients=(BLUE.id,), bounce_reason="late", priority="urgent")])
        ended = {agent.id: agent.ended for agent in storage.load().agents if agent.ended}
        assert ended == {BLUE.id: 60.0, CHILD.id: 60.0}
        bounced = {
            number: [(one.stage, one.bounced, one.why) for _, one in storage.deliveries(number)] for number in (2, 5)
        }
        assert bounced == {2: [("bounced", 60.0, "gone")], 5: [("queued", 0.0, ""), ("bounced", 5.0, "late")]}
        assert storage.load().queue_sizes == {AMBER.id: QueueSize(3, 1)}

        assert storage.revive_agents([BLUE.id, CHILD.id]) == {BLUE.id: QueueSize(2, 1)}
        assert storage.revive_agents([BLUE.id]) == {}
        assert shown(storage, BLUE) == [2, 5]

    def test_a_reply_answers_its_message_and_earlier_requests_of_the_thread(self, storage: MailStore) -> None:
        storage.send(
            [outgoing(1, BLUE, intent="request"), outgoing(2, BLUE, thread=1, intent="request", priority="urgent")]
        )
        storage.send(
            [outgoing(3, BLUE, thread=1), outgoing(4, BLUE, thread=1), outgoing(5, BLUE, thread=1, intent="request")]
        )
        storage.send([outgoing(6, BLUE, sender=USER, thread=1, intent="request"), outgoing(7, BLUE, intent="request")])
        reply = outgoing(8, AMBER, sender=BLUE, thread=1, reply_to=4, answered_by=BLUE.id)
        assert storage.send([reply, outgoing(9, AMBER, sender=BLUE, thread=1, reply_to=4, answered_by=BLUE.id)]) == {
            BLUE.id: QueueSize(3, 1)
        }
        answered = {number for number in range(1, 8) if stages(storage, number)[BLUE.id] == "answered"}
        assert answered == {1, 2, 4}
        assert [one.message.id for one in storage.unanswered_by(BLUE.id, limit=10)] == [5, 6, 7]
        assert [delivery.answered for _, delivery in storage.deliveries(4)] == [8.0]

    def test_unanswered_requests_and_their_notices_are_recorded(self, storage: MailStore) -> None:
        storage.send(
            [
                outgoing(1, BLUE, USER, intent="request", deadline=70.0),
                outgoing(2, BLUE),
                outgoing(3, BLUE, intent="request"),
            ]
        )
        shown(storage, BLUE, limit=1)
        assert storage.load().owing_reply == {BLUE.id}
        assert summary(storage.unanswered_by(BLUE.id, limit=10)) == [
            (1, BLUE.id, "shown", 0),
            (3, BLUE.id, "queued", 0),
        ]
        assert [one[:2] for one in summary(storage.unanswered_from(AMBER.id, limit=2))] == [(1, USER.id), (1, BLUE.id)]
        assert len(storage.unanswered_from(AMBER.id, limit=10)) == 3
        assert summary(storage.unanswered_among([1, 2])) == [(1, USER.id, "queued", 0), (1, BLUE.id, "shown", 0)]
        storage.send(
            [
                outgoing(
                    4, AMBER, sender=FAIRLEAD, marks_notified=((1, BLUE.id, NOTICE_IDLE), (1, USER.id, NOTICE_OVERDUE))
                )
            ]
        )
        assert storage.load().owing_reply == set()
        assert storage.load().deadlines == [(70.0, 1)]
        storage.send([outgoing(5, AMBER, sender=FAIRLEAD, marks_notified=((1, BLUE.id, NOTICE_OVERDUE),))])
        assert storage.load().deadlines == []
        assert summary(storage.unanswered_among([1])) == [
            (1, USER.id, "queued", NOTICE_OVERDUE),
            (1, BLUE.id, "shown", NOTICE_IDLE | NOTICE_OVERDUE),
        ]
        assert storage.mail_counts([AMBER.id, BLUE.id, USER.id, CHILD.id]) == {
            AMBER.id: MailCounts(queued=2, unread=2, owed=3),
            BLUE.id: MailCounts(queued=2, unread=3, owes=2),
            USER.id: MailCounts(queued=1, unread=1, owes=1),
        }

    def test_inbox_thread_and_search_have_pages_and_show_only_the_readers_mail(self, storage: MailStore) -> None:
        storage.send(
            [outgoing(number, BLUE, body="needle 50%" if number % 2 else "", thread=1) for number in range(1, 9)]
        )
        storage.send([outgoing(9, CHILD, sender=USER, subject="NEEDLE", thread=1)])
        shown(storage, BLUE, limit=4)

        def inbox(**options: Any) -> list[int]:
            found = storage.inbox(BLUE.id, ("queued", "shown"), **options)
            assert all(delivery.message == message.id for delivery, message in found)
            return [message.id for _, message in found]

        assert (inbox(limit=5, before=0), inbox(limit=5, before=4)) == ([8, 7, 6, 5, 4], [3, 2, 1])
        assert [message.id for _, message in storage.inbox(BLUE.id, ("read",), limit=9, before=0)] == []
        assert [one.id for one in storage.thread(1, BLUE.id, limit=3, before=8)] == [7, 6, 5]
        assert [one.id for one in storage.thread(1, 0, limit=2, before=0)] == [9, 8]
        assert [one.id for one in storage.search("Needle", 0, limit=3, before=0)] == [9, 7, 5]
        assert [one.id for one in storage.search("needle", BLUE.id, limit=9, before=6)] == [5, 3, 1]
        assert [one.id for one in storage.search("needle", CHILD.id, limit=9, before=0)] == [9]
        assert storage.search("needle 50_", 0, limit=9, before=0) == []

    def test_old_messages_are_pruned_step_by_step_and_agents_after_them(self, storage: MailStore) -> None:
        storage.send([outgoing(number, BLUE) for number in range(1, 8)])
        storage.send([outgoing(8, CHILD, SCRIPT), outgoing(9, SCRIPT)])
        shown(storage, BLUE, limit=5)
        assert storage.prune_messages(6.5, after=None, limit=4) == PruneStep(deleted=4, after=(4.0, 4))
        assert storage.prune_messages(6.5, after=(4.0, 4), limit=4) == PruneStep(deleted=1)
        storage.end_agents([BLUE.id, CHILD.id, AMBER.id], 10.0, "gone", [])
        assert storage.prune_agents(11.0) == []
        assert storage.prune_messages(20.0, after=None, limit=100) == PruneStep(deleted=4)
        assert storage.search("", 0, limit=9, before=0) == []
        assert storage.prune_agents(10.0) == []
        assert storage.prune_agents(11.0) == [BLUE.id, CHILD.id]
        assert storage.prune_agents(11.0) == [AMBER.id], "after its subagents"
        assert storage.load() == StoredMail(agents=FIXED, last_message=9)

    def test_free_space_is_released(self, storage: MailStore) -> None:
        storage.send([outgoing(number, BLUE, body="x" * 100_000) for number in range(1, 60)])
        before = sizes(storage).size
        shown(storage, BLUE, limit=100)
        storage.prune_messages(1000.0, after=None, limit=1000)
        assert sizes(storage).free > before / 2
        while storage.release_space():
            pass
        assert sizes(storage).size < before / 2

    def test_many_threads_can_use_it_at_once(self, storage: MailStore) -> None:
        failures: list[BaseException] = []

        def work(first: int) -> None:
            try:
                for number in range(first, first + 20):
                    storage.send([outgoing(number, BLUE)])
                    storage.inbox(BLUE.id, ("queued",), limit=5, before=0)
                    shown(storage, BLUE, f"e{number}", limit=1)
            except BaseException as error:  # noqa: BLE001 - reported by the test
                failures.append(error)

        threads = [threading.Thread(target=work, args=(number * 1000 + 1,)) for number in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert storage.mail_counts([BLUE.id]) == {BLUE.id: MailCounts(unread=100)}
