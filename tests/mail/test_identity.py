"""Identity: every session has its own name, and keeps it for as long as it exists."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from fairlead.mail import FAIRLEAD, SCRIPT, USER, BadName, NoSuchAgent, TooLarge
from fairlead.mail._addresses import ADJECTIVES, NOUNS, generate_name

if TYPE_CHECKING:
    from mail.harness import MailHarness


def test_there_are_many_words_and_all_are_short() -> None:
    for words in (ADJECTIVES, NOUNS):
        assert len(words) == len(set(words)) >= 120
        assert all(re.fullmatch(r"[a-z]{3,8}", word) for word in words)


def test_a_session_gets_a_pronounceable_name_derived_from_its_id(mail: MailHarness) -> None:
    agent = mail.service.ensure_agent("3f0c", project="/p")

    assert re.fullmatch(r"[a-z]+-[a-z]+", agent.name)
    assert agent.name == generate_name("3f0c", ())
    assert (agent.id, agent.session, agent.project, agent.parent, agent.ended) == (10, "3f0c", "/p", 0, 0.0)
    assert mail.service.ensure_agent("3f0c") == agent


def test_two_sessions_whose_ids_give_the_same_name_get_different_ones() -> None:
    first = generate_name("a", ())
    second = generate_name("a", {first})
    assert first != second
    everything = {f"{adjective}-{noun}" for adjective in ADJECTIVES for noun in NOUNS}
    assert re.fullmatch(r"[a-z]+-[a-z]+-2", generate_name("a", everything))


def test_hundreds_of_sessions_have_different_names(mail: MailHarness) -> None:
    names = {mail.service.ensure_agent(f"session {number}").name for number in range(500)}
    assert len(names) == 500


def test_a_subagent_is_named_after_its_session_its_kind_and_a_number(mail: MailHarness) -> None:
    service = mail.service
    parent = service.ensure_agent("s1", project="/p")
    kinds = [("a1", "Explore"), ("a2", "Explore"), ("a3", "general-purpose"), ("a4", ""), ("a5", "Ünïx: \x1b[31m")]
    made = [service.ensure_agent("s1", agent_id=agent_id, agent_type=kind) for agent_id, kind in kinds]

    names = ["explore-1", "explore-2", "general-purpose-1", "agent-1", "n-x-31m-1"]
    assert [agent.name for agent in made] == [f"{parent.name}/{name}" for name in names]
    assert {agent.parent for agent in made} == {parent.id}
    assert {agent.project for agent in made} == {"/p"}
    assert service.ensure_agent("s1", agent_id="a2", agent_type="Explore") == made[1]


def test_a_subagent_seen_first_creates_its_session_too(mail: MailHarness) -> None:
    child = mail.service.ensure_agent("s1", agent_id="a1", agent_type="Plan", project="/p")
    parent = mail.service.find_by_session("s1")

    assert parent is not None
    assert child.name == f"{parent.name}/plan-1"
    assert [agent.name for agent in mail.service.agents("/p")] == [parent.name, child.name]


def test_a_lookup_does_not_create_an_agent(mail: MailHarness) -> None:
    assert mail.service.find_by_session("s1") is None
    assert mail.service.find_by_session("s1", "a1") is None
    assert mail.service.agents(include_ended=True) == []


def test_a_session_without_an_id_has_no_agent(mail: MailHarness) -> None:
    with pytest.raises(BadName, match="a session without an id has no agent"):
        mail.service.ensure_agent("")


def test_agents_are_the_same_after_a_crash(mail: MailHarness) -> None:
    service = mail.service
    amber = service.ensure_agent("s1", project="/p")
    service.ensure_agent("s1", agent_id="a1", agent_type="Explore")
    service.rename(amber, "Builder")
    service.save_status(amber, "half way through")
    service.ensure_agent("odd \ud800 \0 id", project="/q")
    before = service.agents(include_ended=True)

    mail.crash()

    assert mail.service.agents(include_ended=True) == before
    assert mail.service.ensure_agent("s1").saved == "half way through"
    assert mail.service.ensure_agent("odd \ud800 \0 id") in before
    assert mail.service.find_by_name(amber.name).name == "Builder"
    assert mail.service.ensure_agent("s9").id == max(agent.id for agent in before) + 1


def test_names_are_found_in_any_case_and_an_error_names_the_nearest(mail: MailHarness) -> None:
    [amber] = mail.agents("s1")
    mail.service.rename(amber, "Amber-Fox")

    assert mail.service.find_by_name(" amber-FOX ").id == amber.id
    assert [mail.service.find_by_name(name).id for name in ("user", "FAIRLEAD", "Script")] == [
        USER.id,
        FAIRLEAD.id,
        SCRIPT.id,
    ]
    with pytest.raises(NoSuchAgent, match=r"no agent is called 'amber-fix'; did you mean Amber-Fox\?") as wrong:
        mail.service.find_by_name("amber-fix")
    assert wrong.value.nearest == ("Amber-Fox",)
    with pytest.raises(NoSuchAgent, match=r"no agent is called '\\x1b\[31mzzz'; `fairlead agents` lists agents"):
        mail.service.find_by_name("\x1b[31mzzz")


def test_only_living_agents_are_suggested(mail: MailHarness) -> None:
    amber, blue = mail.agents("s1", "s2")
    mail.service.rename(amber, "builder-1")
    mail.service.rename(blue, "builder-2")
    mail.service.end(amber, "logout")

    with pytest.raises(NoSuchAgent) as wrong:
        mail.service.find_by_name("builder-3")
    assert wrong.value.nearest == ("builder-2",)


# -- /clear and resume ---------------------------------------------------------------------------------


def test_after_a_clear_the_agent_keeps_its_name_queue_and_subagents(mail: MailHarness) -> None:
    service = mail.service
    amber, blue = mail.agents("s1", "s2")
    child = service.ensure_agent("s1", agent_id="a1", agent_type="Explore")
    message = mail.send(blue, amber)

    after = service.change_session("s1", "s1-cleared")

    assert (after.id, after.name, after.session) == (amber.id, amber.name, "s1-cleared")
    assert service.ensure_agent("s1-cleared") == after
    assert service.ensure_agent("s1-cleared", agent_id="a1").id == child.id
    assert mail.show(after) == [message.id]
    mail.crash()
    assert mail.service.find_by_session("s1-cleared") == after


def test_a_late_event_with_the_session_id_before_a_clear_finds_the_same_agent(mail: MailHarness) -> None:
    service = mail.service
    [amber] = mail.agents("s1")
    child = service.ensure_agent("s1", agent_id="a1", agent_type="Explore")
    service.change_session("s1", "s1-cleared")

    assert service.ensure_agent("s1").id == amber.id
    assert service.ensure_agent("s1", agent_id="a1").id == child.id
    assert service.find_by_session("s1", "a2") is None
    mail.restart()
    assert mail.service.ensure_agent("s1").id == amber.id


def test_a_session_resumed_while_its_agent_has_another_session_is_a_new_agent(mail: MailHarness) -> None:
    """Two live sessions never share a name."""
    [amber] = mail.agents("s1")
    mail.service.change_session("s1", "s1-cleared")

    other = mail.service.ensure_agent("s1", is_start=True)

    assert other.id != amber.id
    assert other.name != amber.name
    assert mail.service.ensure_agent("s1").id == other.id
    assert mail.service.ensure_agent("s1-cleared", is_start=True).id == amber.id
    mail.restart()
    assert mail.service.ensure_agent("s1").id == other.id


def test_a_session_resumed_after_its_agent_ended_in_another_session_gets_it_back(mail: MailHarness) -> None:
    [amber] = mail.agents("s1")
    cleared = mail.service.change_session("s1", "s1-cleared")
    mail.service.end(cleared, "logout")

    back = mail.service.ensure_agent("s1", is_start=True)

    assert (back.id, back.name, back.session) == (amber.id, amber.name, "s1")
    assert mail.service.revive(back).ended == 0.0
    assert mail.service.ensure_agent("s1-cleared", is_start=True).id != amber.id


def test_a_clear_of_an_unknown_session_creates_an_agent(mail: MailHarness) -> None:
    assert mail.service.change_session("never heard of", "s2").session == "s2"


def test_a_clear_into_a_session_that_has_an_agent_returns_that_one(mail: MailHarness) -> None:
    amber, blue = mail.agents("s1", "s2")
    assert mail.service.change_session("s1", "s2") == blue
    assert mail.service.ensure_agent("s1") == amber


def test_an_ended_agent_is_alive_after_it_changes_its_session(mail: MailHarness) -> None:
    [amber] = mail.agents("s1")
    mail.service.end(amber, "clear")
    assert mail.service.change_session("s1", "s2").ended == 0.0


# -- renaming -------------------------------------------------------------------------------------------


def test_a_rename_includes_the_subagents_and_the_old_name_still_works(mail: MailHarness) -> None:
    service = mail.service
    amber, blue = mail.agents("s1", "s2")
    child = service.ensure_agent("s1", agent_id="a1", agent_type="Explore")

    renamed = service.rename(amber, "Builder")

    assert renamed.name == "Builder"
    assert service.current(child).name == "Builder/explore-1"
    assert service.find_by_name(f"{amber.name}/explore-1").id == child.id
    assert mail.sent(blue, amber.name).recipients == (renamed,)
    with pytest.raises(BadName, match="is the name of another agent; choose another name"):
        service.rename(blue, amber.name)
    assert service.rename(amber, amber.name).name == amber.name
    with pytest.raises(BadName, match="'builder' is the name of another agent"):
        service.rename(blue, "builder")


def test_a_former_name_is_not_given_to_a_new_session(mail: MailHarness) -> None:
    """Mail for one agent must not go to another."""
    [amber] = mail.agents("s1")
    mail.service.rename(amber, generate_name("s2", ()))
    mail.service.rename(amber, "Builder")

    assert mail.service.ensure_agent("s2").name != generate_name("s2", ())


def test_what_cannot_be_typed_as_an_address_is_not_a_valid_name(mail: MailHarness) -> None:
    [amber] = mail.agents("s1")
    for name in ("", " ", "1st", "a b", "a/b", "#topic", "a" * 41, "Üser", "new\nline", "-x", "a\x1b"):
        with pytest.raises(BadName, match="is not a valid name; use up to 40 letters"):
            mail.service.rename(amber, name)


def test_a_name_that_could_be_mistaken_for_another_is_reserved(mail: MailHarness) -> None:
    [amber] = mail.agents("s1")
    for name in ("User", "u-s-e-r", "USER.", "user2", "Fairlead", "script", "everyone", "me"):
        with pytest.raises(BadName, match="is reserved, so that no agent is mistaken for another"):
            mail.service.rename(amber, name)


def test_neither_a_subagent_nor_the_user_can_be_renamed(mail: MailHarness) -> None:
    child = mail.service.ensure_agent("s1", agent_id="a1")
    for agent in (child, USER, SCRIPT):
        with pytest.raises(BadName, match="cannot be renamed"):
            mail.service.rename(agent, "Other")


# -- activity, project, status --------------------------------------------------------------------------


def test_activity_is_visible_at_once_and_stored_by_flush(mail: MailHarness) -> None:
    amber, blue = mail.agents("s1", "s2")
    mail.service.mark_seen(amber, amber.seen + 100)
    mail.service.mark_seen(blue, blue.seen - 100)

    assert mail.service.current(amber).seen == amber.seen + 100
    assert mail.service.current(blue).seen == blue.seen, "an earlier time is ignored"
    mail.service.flush()
    mail.service.flush()
    mail.crash()
    assert mail.service.ensure_agent("s1").seen == amber.seen + 100


def test_a_time_in_the_future_does_not_block_later_activity(mail: MailHarness) -> None:
    [amber] = mail.agents("s1")
    mail.service.mark_seen(amber, mail.clock.at + 1_000_000)
    mail.service.mark_seen(amber, mail.clock.at + 1)

    assert mail.service.current(amber).seen < mail.clock.at + 10


def test_a_session_that_moves_to_another_project_is_found_there(mail: MailHarness) -> None:
    amber = mail.service.ensure_agent("s1")
    assert mail.service.ensure_agent("s1", project="/p").project == "/p"
    assert mail.service.ensure_agent("s1").project == "/p"
    assert [agent.id for agent in mail.service.agents("/p")] == [amber.id]
    assert mail.service.agents("/q") == []


def test_a_status_has_a_limit(mail: MailHarness) -> None:
    [amber] = mail.agents("s1")
    with pytest.raises(TooLarge, match="a status can have 20000 characters, not 20001"):
        mail.service.save_status(amber, "x" * 20_001)
