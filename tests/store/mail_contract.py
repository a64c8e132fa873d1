"""What every box keeps to, whatever database it is in. A backend's tests give its URL, and run all of this."""

from __future__ import annotations

import threading
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from fairlead.mail import (
    FAIRLEAD,
    SCRIPT,
    TOLD_ENDED,
    TOLD_IDLE,
    TOLD_LATE,
    USER,
    Agent,
    Former,
    Loaded,
    MailBusy,
    MailStorage,
    MailUnreachable,
    Message,
    Owed,
    Post,
    Standing,
    Swept,
    Waiting,
)
from fairlead.store import MailStore

if TYPE_CHECKING:
    from collections.abc import Iterator

AMBER = Agent(id=10, name="amber-fox", session="s1", project="/p", created=1.0, seen=2.0, saved="half way")
BLUE = Agent(id=11, name="blue-elk", session="s2", project="/p", created=1.0, seen=2.0)
CHILD = Agent(id=12, name="amber-fox/plan-1", session="s1", parent=10, agent_id="a1", created=1.0, seen=1.0)
FIXED = [USER, FAIRLEAD, SCRIPT]
ODD = "nul \0 mark \uffff0 \x1b ' \" \N{PILE OF POO} % _ \\"


def post(number: int, *to: Agent, sender: Agent = AMBER, **fields: Any) -> Post:
    """Make a message; what is no field of it is one of the post."""
    own = {name: fields.pop(name) for name in ("gone", "why", "key", "answers", "tells") if name in fields}
    told = {"at": float(number), "subject": f"m{number}", "thread": number, "to": ("x",), **fields}
    message = Message(id=number, sender=sender.name, **told)
    return Post(message=message, sender=sender.id, recipients=tuple(agent.id for agent in to), **own)


def shown(
    box: MailStorage, agent: Agent, event_id: str = "e1", *, most: int = 10, urgent_only: bool = False
) -> list[int]:
    found = box.show(agent.id, event="Stop", event_id=event_id, at=50.0, most=most, urgent_only=urgent_only)
    return [message.id for message in found]


def stages(box: MailStorage, number: int) -> dict[int, str]:
    return {agent: letter.stage for agent, letter in box.letters(number)}


def owed(found: list[Owed]) -> list[tuple[int, int, str, int]]:
    return [(one.message.id, one.recipient, one.letter.stage, one.told) for one in found]


class MailContract:
    """Subclass it with a fixture `url` that names an empty database."""

    @pytest.fixture
    def empty(self, url: str) -> Iterator[MailStore]:
        with closing(MailStore.open(url)) as box:
            assert box.warnings == ()
            yield box

    @pytest.fixture
    def box(self, empty: MailStore) -> MailStore:
        empty.put_agents([AMBER, BLUE, CHILD])
        return empty

    def test_a_new_box_knows_those_who_are_always_there(self, empty: MailStore) -> None:
        assert empty.load() == Loaded(agents=FIXED)
        assert empty.message(1) is None
        assert empty.letters(1) == []
        assert empty.search("", 0, limit=10, before=0) == []
        assert empty.check().problems == ()

    def test_one_at_a_time_has_it_open(self, url: str, empty: MailStore) -> None:
        with pytest.raises(MailBusy, match="another process owns it, a second daemon perhaps; stop that one first"):
            MailStore.open(url)
        empty.close()
        MailStore.open(url).close()

    def test_agents_are_kept_with_all_that_they_are_and_were_called(self, url: str, box: MailStore) -> None:
        odd = Agent(id=13, name=ODD, session=ODD, project=ODD, agent_id=ODD, saved=ODD)
        box.put_agents([odd], [Former("session", ODD, 13), Former("name", "old", 10)])
        box.put_agents([BLUE], [Former("name", "old", 11)])
        box.see([(10, 99.0), (11, 98.0)])
        box.subscribe("z", 11)
        box.subscribe("a", 10)
        box.subscribe("z", 10)
        box.subscribe("z", 11)
        box.unsubscribe("a", 10)
        box.unsubscribe("a", 10)
        box.close()
        with closing(MailStore.open(url)) as again:
            loaded = again.load()
        seen = {agent.id: agent.seen for agent in loaded.agents}
        assert (seen[10], seen[11], seen[12]) == (99.0, 98.0, 1.0)
        assert loaded.agents[-1] == odd
        assert loaded.former_sessions == {ODD: 13}
        assert loaded.former_names == {"old": 11}
        assert loaded.subscriptions == [("z", 10), ("z", 11)]

    def test_a_message_comes_back_whole(self, box: MailStore) -> None:
        whole = post(
            1, BLUE, USER, subject=ODD, body=ODD * 2, to=("#a", ODD), priority="urgent", intent="request", deadline=77.0
        )
        plain = post(2, BLUE, project="/p", reply_to=1, thread=1)
        assert box.post([whole, plain]) == {}
        assert box.message(1) == (whole.message, AMBER.id)
        assert box.message(2) == (plain.message, AMBER.id)
        assert stages(box, 1) == {BLUE.id: "queued", USER.id: "queued"}
        assert box.load() == Loaded(
            agents=[*FIXED, AMBER, BLUE, CHILD],
            waiting={BLUE.id: Waiting(2, 1), USER.id: Waiting(1, 1)},
            deadlines=[(77.0, 1)],
            last_message=2,
        )

    def test_a_batch_that_cannot_be_kept_leaves_nothing_behind(self, box: MailStore) -> None:
        box.post([post(1, BLUE, key="k")])
        for twice in (post(1, BLUE), post(3, BLUE, key="k"), post(3, BLUE, BLUE)):
            with pytest.raises(MailUnreachable, match=r"UNIQUE|unique"):
                box.post([post(2, BLUE), twice])
        assert box.message(2) is None
        assert box.load().waiting == {BLUE.id: Waiting(1, 0)}
        assert box.load().last_message == 1

    def test_keys_are_found_by_sender(self, box: MailStore) -> None:
        first, second = post(1, BLUE, key=ODD), post(2, AMBER, sender=BLUE, key=ODD)
        box.post([first, second, post(3, BLUE)])
        asked = {(AMBER.id, ODD), (BLUE.id, ODD), (USER.id, ODD), *((AMBER.id, f"k{number}") for number in range(1200))}
        assert box.sent_before(asked) == {(AMBER.id, ODD): first.message, (BLUE.id, ODD): second.message}

    def test_letters_are_shown_in_order_and_marked(self, box: MailStore) -> None:
        box.post([post(number, BLUE) for number in range(1, 6)])
        assert shown(box, BLUE, most=3) == [1, 2, 3]
        assert shown(box, BLUE) == [4, 5]
        assert shown(box, BLUE) == []
        [(_, letter)] = box.letters(1)
        assert (letter.recipient, letter.stage, letter.shown, letter.event) == (BLUE.name, "shown", 50.0, "Stop")

    def test_urgent_letters_bring_what_is_before_them_in_their_threads(self, box: MailStore) -> None:
        box.post([post(1, BLUE), post(2, BLUE), post(3, BLUE, thread=1), post(4, BLUE, thread=1, priority="urgent")])
        box.post([post(5, BLUE, thread=1), post(6, BLUE, priority="urgent"), post(7, AMBER, sender=BLUE, thread=1)])
        assert shown(box, BLUE, most=1, urgent_only=True) == [1]
        assert shown(box, BLUE, urgent_only=True) == [3, 4, 6]
        assert shown(box, BLUE) == [2, 5]

    def test_what_an_event_showed_is_queued_again_unless_it_was_read(self, box: MailStore) -> None:
        box.post([post(1, BLUE, priority="urgent"), post(2, BLUE, AMBER), post(3, BLUE)])
        shown(box, BLUE, ODD)
        shown(box, AMBER, ODD)
        box.end([AMBER.id], 60.0, "gone", [])
        assert box.read(BLUE.id, 3, 55.0) == "shown"
        assert box.unshow(ODD, "gone") == {BLUE.id: Waiting(2, 1)}
        assert box.unshow(ODD, "gone") == {}
        assert (stages(box, 2), stages(box, 3)) == ({AMBER.id: "bounced", BLUE.id: "queued"}, {BLUE.id: "read"})
        assert shown(box, BLUE) == [1, 2]

    def test_to_read_is_told_from_which_stage(self, box: MailStore) -> None:
        box.post([post(1, BLUE)])
        assert box.read(AMBER.id, 1, 9.0) is None
        assert [box.read(BLUE.id, 1, at) for at in (10.0, 11.0)] == ["queued", "read"]
        [(_, letter)] = box.letters(1)
        assert letter.read == 10.0

    def test_the_end_of_agents_bounces_what_is_queued_and_their_return_brings_it_back(self, box: MailStore) -> None:
        box.post([post(1, BLUE, priority="urgent"), post(2, BLUE), post(3, AMBER, sender=BLUE)])
        shown(box, BLUE, most=1)
        notice = post(4, AMBER, sender=FAIRLEAD, tells=((2, BLUE.id, TOLD_ENDED),))
        box.end([BLUE.id, CHILD.id], 60.0, "gone", [notice])
        box.post([post(5, BLUE, AMBER, gone=(BLUE.id,), why="late", priority="urgent")])
        ended = {agent.id: agent.ended for agent in box.load().agents if agent.ended}
        assert ended == {BLUE.id: 60.0, CHILD.id: 60.0}
        told = {number: [(one.stage, one.bounced, one.why) for _, one in box.letters(number)] for number in (2, 5)}
        assert told == {2: [("bounced", 60.0, "gone")], 5: [("queued", 0.0, ""), ("bounced", 5.0, "late")]}
        assert box.load().waiting == {AMBER.id: Waiting(3, 1)}

        assert box.revive([BLUE.id, CHILD.id]) == {BLUE.id: Waiting(2, 1)}
        assert box.revive([BLUE.id]) == {}
        assert shown(box, BLUE) == [2, 5]

    def test_a_reply_answers_what_it_names_and_what_was_owed_before_in_the_thread(self, box: MailStore) -> None:
        box.post([post(1, BLUE, intent="request"), post(2, BLUE, thread=1, intent="request", priority="urgent")])
        box.post([post(3, BLUE, thread=1), post(4, BLUE, thread=1), post(5, BLUE, thread=1, intent="request")])
        box.post([post(6, BLUE, sender=USER, thread=1, intent="request"), post(7, BLUE, intent="request")])
        reply = post(8, AMBER, sender=BLUE, thread=1, reply_to=4, answers=BLUE.id)
        assert box.post([reply, post(9, AMBER, sender=BLUE, thread=1, reply_to=4, answers=BLUE.id)]) == {
            BLUE.id: Waiting(3, 1)
        }
        answered = {number for number in range(1, 8) if stages(box, number)[BLUE.id] == "answered"}
        assert answered == {1, 2, 4}
        assert [one.message.id for one in box.owed_by(BLUE.id, limit=10)] == [5, 6, 7]
        assert [letter.answered for _, letter in box.letters(4)] == [8.0]

    def test_requests_are_owed_and_notices_are_noted(self, box: MailStore) -> None:
        box.post([post(1, BLUE, USER, intent="request", deadline=70.0), post(2, BLUE), post(3, BLUE, intent="request")])
        shown(box, BLUE, most=1)
        assert box.load().owing == {BLUE.id}
        assert owed(box.owed_by(BLUE.id, limit=10)) == [(1, BLUE.id, "shown", 0), (3, BLUE.id, "queued", 0)]
        assert [one[:2] for one in owed(box.owed_to(AMBER.id, limit=2))] == [(1, USER.id), (1, BLUE.id)]
        assert len(box.owed_to(AMBER.id, limit=10)) == 3
        assert owed(box.owed_for([1, 2])) == [(1, USER.id, "queued", 0), (1, BLUE.id, "shown", 0)]
        box.post([post(4, AMBER, sender=FAIRLEAD, tells=((1, BLUE.id, TOLD_IDLE), (1, USER.id, TOLD_LATE)))])
        assert box.load().owing == set()
        assert box.load().deadlines == [(70.0, 1)]
        box.post([post(5, AMBER, sender=FAIRLEAD, tells=((1, BLUE.id, TOLD_LATE),))])
        assert box.load().deadlines == []
        assert owed(box.owed_for([1])) == [
            (1, USER.id, "queued", TOLD_LATE),
            (1, BLUE.id, "shown", TOLD_IDLE | TOLD_LATE),
        ]
        assert box.standings([AMBER.id, BLUE.id, USER.id, CHILD.id]) == {
            AMBER.id: Standing(queued=2, unread=2, owed=3),
            BLUE.id: Standing(queued=2, unread=3, owes=2),
            USER.id: Standing(queued=1, unread=1, owes=1),
        }

    def test_inbox_thread_and_search_turn_pages_and_keep_secrets(self, box: MailStore) -> None:
        box.post([post(number, BLUE, body="needle 50%" if number % 2 else "", thread=1) for number in range(1, 9)])
        box.post([post(9, CHILD, sender=USER, subject="NEEDLE", thread=1)])
        shown(box, BLUE, most=4)

        def inbox(**asked: Any) -> list[int]:
            found = box.inbox(BLUE.id, ("queued", "shown"), **asked)
            assert all(letter.message == message.id for letter, message in found)
            return [message.id for _, message in found]

        assert (inbox(limit=5, before=0), inbox(limit=5, before=4)) == ([8, 7, 6, 5, 4], [3, 2, 1])
        assert [message.id for _, message in box.inbox(BLUE.id, ("read",), limit=9, before=0)] == []
        assert [one.id for one in box.thread(1, BLUE.id, limit=3, before=8)] == [7, 6, 5]
        assert [one.id for one in box.thread(1, 0, limit=2, before=0)] == [9, 8]
        assert [one.id for one in box.search("Needle", 0, limit=3, before=0)] == [9, 7, 5]
        assert [one.id for one in box.search("needle", BLUE.id, limit=9, before=6)] == [5, 3, 1]
        assert [one.id for one in box.search("needle", CHILD.id, limit=9, before=0)] == [9]
        assert box.search("needle 50_", 0, limit=9, before=0) == []

    def test_old_messages_go_step_by_step_and_agents_after_them(self, box: MailStore) -> None:
        box.post([post(number, BLUE) for number in range(1, 8)])
        box.post([post(8, CHILD, SCRIPT), post(9, SCRIPT)])
        shown(box, BLUE, most=5)
        assert box.sweep(6.5, after=None, most=4) == Swept(gone=4, after=(4.0, 4))
        assert box.sweep(6.5, after=(4.0, 4), most=4) == Swept(gone=1)
        box.end([BLUE.id, CHILD.id, AMBER.id], 10.0, "gone", [])
        assert box.forget_agents(11.0) == []
        assert box.sweep(20.0, after=None, most=100) == Swept(gone=4)
        assert box.search("", 0, limit=9, before=0) == []
        assert box.forget_agents(10.0) == []
        assert box.forget_agents(11.0) == [BLUE.id, CHILD.id]
        assert box.forget_agents(11.0) == [AMBER.id], "after its subagents"
        assert box.load() == Loaded(agents=FIXED, last_message=9)

    def test_the_room_is_given_back(self, box: MailStore) -> None:
        box.post([post(number, BLUE, body="x" * 100_000) for number in range(1, 60)])
        before = box.check().size
        shown(box, BLUE, most=100)
        box.sweep(1000.0, after=None, most=1000)
        assert box.check().free > before / 2
        while box.tidy():
            pass
        assert box.check().size < before / 2

    def test_many_threads_use_it_at_once(self, box: MailStore) -> None:
        failures: list[BaseException] = []

        def work(first: int) -> None:
            try:
                for number in range(first, first + 20):
                    box.post([post(number, BLUE)])
                    box.inbox(BLUE.id, ("queued",), limit=5, before=0)
                    shown(box, BLUE, f"e{number}", most=1)
            except BaseException as error:  # noqa: BLE001 - told to the test
                failures.append(error)

        threads = [threading.Thread(target=work, args=(number * 1000 + 1,)) for number in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert box.standings([BLUE.id]) == {BLUE.id: Standing(unread=100)}
