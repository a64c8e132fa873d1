"""Who an agent is: a name of its own for every session, kept through all that a session goes through."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from fairlead.mail import FAIRLEAD, SCRIPT, USER, BadName, NoSuchAgent, TooLarge
from fairlead.mail._name_words import ADJECTIVES, NOUNS
from fairlead.mail._names import speakable

if TYPE_CHECKING:
    from mail.offices import Desk


def test_the_words_are_many_short_and_plain() -> None:
    for words in (ADJECTIVES, NOUNS):
        assert len(words) == len(set(words)) >= 120
        assert all(re.fullmatch(r"[a-z]{3,8}", word) for word in words)


def test_a_session_gets_a_speakable_name_that_follows_from_its_id(desk: Desk) -> None:
    agent = desk.office.agent_for("3f0c", project="/p")

    assert re.fullmatch(r"[a-z]+-[a-z]+", agent.name)
    assert agent.name == speakable("3f0c", ())
    assert (agent.id, agent.session, agent.project, agent.parent, agent.ended) == (10, "3f0c", "/p", 0, 0.0)
    assert desk.office.agent_for("3f0c") == agent


def test_two_sessions_whose_ids_lead_to_one_name_get_two() -> None:
    first = speakable("a", ())
    second = speakable("a", {first})
    assert first != second
    everything = {f"{adjective}-{noun}" for adjective in ADJECTIVES for noun in NOUNS}
    assert re.fullmatch(r"[a-z]+-[a-z]+-2", speakable("a", everything))


def test_hundreds_of_sessions_have_names_of_their_own(desk: Desk) -> None:
    names = {desk.office.agent_for(f"session {number}").name for number in range(500)}
    assert len(names) == 500


def test_a_subagent_is_called_by_its_session_its_kind_and_a_number(desk: Desk) -> None:
    office = desk.office
    parent = office.agent_for("s1", project="/p")
    kinds = [("a1", "Explore"), ("a2", "Explore"), ("a3", "general-purpose"), ("a4", ""), ("a5", "Ünïx: \x1b[31m")]
    made = [office.agent_for("s1", agent_id=agent_id, agent_type=kind) for agent_id, kind in kinds]

    names = ["explore-1", "explore-2", "general-purpose-1", "agent-1", "n-x-31m-1"]
    assert [agent.name for agent in made] == [f"{parent.name}/{name}" for name in names]
    assert {agent.parent for agent in made} == {parent.id}
    assert {agent.project for agent in made} == {"/p"}
    assert office.agent_for("s1", agent_id="a2", agent_type="Explore") == made[1]


def test_a_subagent_that_is_heard_of_first_brings_its_session(desk: Desk) -> None:
    child = desk.office.agent_for("s1", agent_id="a1", agent_type="Plan", project="/p")
    parent = desk.office.known("s1")

    assert parent is not None
    assert child.name == f"{parent.name}/plan-1"
    assert [agent.name for agent in desk.office.agents("/p")] == [parent.name, child.name]


def test_who_is_not_known_is_not_made_by_asking(desk: Desk) -> None:
    assert desk.office.known("s1") is None
    assert desk.office.known("s1", "a1") is None
    assert desk.office.agents(ended=True) == []


def test_a_session_without_an_id_has_no_agent(desk: Desk) -> None:
    with pytest.raises(BadName, match="a session without an id has no agent"):
        desk.office.agent_for("")


def test_all_of_it_is_the_same_after_a_crash(desk: Desk) -> None:
    office = desk.office
    amber = office.agent_for("s1", project="/p")
    office.agent_for("s1", agent_id="a1", agent_type="Explore")
    office.rename(amber, "Builder")
    office.save(amber, "half way through")
    office.agent_for("odd \ud800 \0 id", project="/q")
    before = office.agents(ended=True)

    desk.crash()

    assert desk.office.agents(ended=True) == before
    assert desk.office.agent_for("s1").saved == "half way through"
    assert desk.office.agent_for("odd \ud800 \0 id") in before
    assert desk.office.find(amber.name).name == "Builder"
    assert desk.office.agent_for("s9").id == max(agent.id for agent in before) + 1


def test_names_are_found_in_whatever_case_and_the_nearest_are_told(desk: Desk) -> None:
    [amber] = desk.agents("s1")
    desk.office.rename(amber, "Amber-Fox")

    assert desk.office.find(" amber-FOX ").id == amber.id
    assert [desk.office.find(name).id for name in ("user", "FAIRLEAD", "Script")] == [USER.id, FAIRLEAD.id, SCRIPT.id]
    with pytest.raises(NoSuchAgent, match=r"nobody is called 'amber-fix'; did you mean Amber-Fox\?") as wrong:
        desk.office.find("amber-fix")
    assert wrong.value.nearest == ("Amber-Fox",)
    with pytest.raises(NoSuchAgent, match=r"nobody is called '\\x1b\[31mzzz'; `fairlead agents` lists who is there"):
        desk.office.find("\x1b[31mzzz")


def test_the_nearest_are_of_those_who_live(desk: Desk) -> None:
    amber, blue = desk.agents("s1", "s2")
    desk.office.rename(amber, "builder-1")
    desk.office.rename(blue, "builder-2")
    desk.office.ended(amber, "logout")

    with pytest.raises(NoSuchAgent) as wrong:
        desk.office.find("builder-3")
    assert wrong.value.nearest == ("builder-2",)


# -- /clear and resume ---------------------------------------------------------------------------------


def test_after_a_clear_the_agent_goes_on_with_name_queue_and_subagents(desk: Desk) -> None:
    office = desk.office
    amber, blue = desk.agents("s1", "s2")
    child = office.agent_for("s1", agent_id="a1", agent_type="Explore")
    message = desk.send(blue, amber)

    after = office.continue_as("s1", "s1-cleared")

    assert (after.id, after.name, after.session) == (amber.id, amber.name, "s1-cleared")
    assert office.agent_for("s1-cleared") == after
    assert office.agent_for("s1-cleared", agent_id="a1").id == child.id
    assert desk.show(after) == [message.id]
    desk.crash()
    assert desk.office.known("s1-cleared") == after


def test_a_late_event_of_the_session_before_a_clear_leads_to_the_same_agent(desk: Desk) -> None:
    office = desk.office
    [amber] = desk.agents("s1")
    child = office.agent_for("s1", agent_id="a1", agent_type="Explore")
    office.continue_as("s1", "s1-cleared")

    assert office.agent_for("s1").id == amber.id
    assert office.agent_for("s1", agent_id="a1").id == child.id
    assert office.known("s1", "a2") is None
    desk.open_again()
    assert desk.office.agent_for("s1").id == amber.id


def test_a_session_that_is_resumed_while_its_agent_goes_on_elsewhere_is_another_agent(desk: Desk) -> None:
    """Never one name for two live sessions."""
    [amber] = desk.agents("s1")
    desk.office.continue_as("s1", "s1-cleared")

    other = desk.office.agent_for("s1", begins=True)

    assert other.id != amber.id
    assert other.name != amber.name
    assert desk.office.agent_for("s1").id == other.id
    assert desk.office.agent_for("s1-cleared", begins=True).id == amber.id
    desk.open_again()
    assert desk.office.agent_for("s1").id == other.id


def test_a_session_that_is_resumed_after_its_agent_ended_elsewhere_gets_it_back(desk: Desk) -> None:
    [amber] = desk.agents("s1")
    cleared = desk.office.continue_as("s1", "s1-cleared")
    desk.office.ended(cleared, "logout")

    back = desk.office.agent_for("s1", begins=True)

    assert (back.id, back.name, back.session) == (amber.id, amber.name, "s1")
    assert desk.office.revived(back).ended == 0.0
    assert desk.office.agent_for("s1-cleared", begins=True).id != amber.id


def test_a_clear_of_a_session_that_nobody_knew_makes_an_agent(desk: Desk) -> None:
    assert desk.office.continue_as("never heard of", "s2").session == "s2"


def test_a_clear_into_a_session_that_has_an_agent_gives_that_one(desk: Desk) -> None:
    amber, blue = desk.agents("s1", "s2")
    assert desk.office.continue_as("s1", "s2") == blue
    assert desk.office.agent_for("s1") == amber


def test_an_agent_that_had_ended_lives_when_it_goes_on(desk: Desk) -> None:
    [amber] = desk.agents("s1")
    desk.office.ended(amber, "clear")
    assert desk.office.continue_as("s1", "s2").ended == 0.0


# -- names that are chosen -----------------------------------------------------------------------------


def test_a_rename_takes_the_subagents_along_and_the_old_name_still_leads_there(desk: Desk) -> None:
    office = desk.office
    amber, blue = desk.agents("s1", "s2")
    child = office.agent_for("s1", agent_id="a1", agent_type="Explore")

    renamed = office.rename(amber, "Builder")

    assert renamed.name == "Builder"
    assert office.current(child).name == "Builder/explore-1"
    assert office.find(f"{amber.name}/explore-1").id == child.id
    assert desk.sent(blue, amber.name).recipients == (renamed,)
    with pytest.raises(BadName, match="is another agent's name; choose another name"):
        office.rename(blue, amber.name)
    assert office.rename(amber, amber.name).name == amber.name
    with pytest.raises(BadName, match="'builder' is another agent's name"):
        office.rename(blue, "builder")


def test_a_former_name_is_not_given_to_a_new_session(desk: Desk) -> None:
    """Mail that is meant for one must not go to another."""
    [amber] = desk.agents("s1")
    desk.office.rename(amber, speakable("s2", ()))
    desk.office.rename(amber, "Builder")

    assert desk.office.agent_for("s2").name != speakable("s2", ())


@pytest.mark.parametrize("name", ["", " ", "1st", "a b", "a/b", "#topic", "a" * 41, "Üser", "new\nline", "-x", "a\x1b"])
def test_what_cannot_be_typed_as_an_address_is_no_name(desk: Desk, name: str) -> None:
    [amber] = desk.agents("s1")
    with pytest.raises(BadName, match="cannot be a name; a name has up to 40 letters"):
        desk.office.rename(amber, name)


@pytest.mark.parametrize("name", ["User", "u-s-e-r", "USER.", "user2", "Fairlead", "script", "everyone", "me"])
def test_a_name_that_could_be_taken_for_somebody_else_is_reserved(desk: Desk, name: str) -> None:
    [amber] = desk.agents("s1")
    with pytest.raises(BadName, match="is reserved, so that nobody is taken for somebody else"):
        desk.office.rename(amber, name)


def test_neither_a_subagent_nor_the_person_is_renamed(desk: Desk) -> None:
    child = desk.office.agent_for("s1", agent_id="a1")
    for agent in (child, USER, SCRIPT):
        with pytest.raises(BadName, match="cannot be renamed"):
            desk.office.rename(agent, "Other")


# -- what else is kept ---------------------------------------------------------------------------------


def test_a_sign_of_life_is_seen_at_once_and_kept_by_a_flush(desk: Desk) -> None:
    amber, blue = desk.agents("s1", "s2")
    desk.office.seen(amber, amber.seen + 100)
    desk.office.seen(blue, blue.seen - 100)

    assert desk.office.current(amber).seen == amber.seen + 100
    assert desk.office.current(blue).seen == blue.seen, "what comes late is no news"
    desk.office.flush()
    desk.office.flush()
    desk.crash()
    assert desk.office.agent_for("s1").seen == amber.seen + 100


def test_a_clock_that_ran_ahead_does_not_stop_signs_of_life(desk: Desk) -> None:
    [amber] = desk.agents("s1")
    desk.office.seen(amber, desk.clock.at + 1_000_000)
    desk.office.seen(amber, desk.clock.at + 1)

    assert desk.office.current(amber).seen < desk.clock.at + 10


def test_a_session_that_goes_to_another_project_is_found_there(desk: Desk) -> None:
    amber = desk.office.agent_for("s1")
    assert desk.office.agent_for("s1", project="/p").project == "/p"
    assert desk.office.agent_for("s1").project == "/p"
    assert [agent.id for agent in desk.office.agents("/p")] == [amber.id]
    assert desk.office.agents("/q") == []


def test_a_status_has_a_limit(desk: Desk) -> None:
    [amber] = desk.agents("s1")
    with pytest.raises(TooLarge, match="a status may have 20000 characters, not 20001"):
        desk.office.save(amber, "x" * 20_001)
