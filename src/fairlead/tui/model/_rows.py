"""From one line of the tree to what it says: sign, words, evidence, figures. No screen, no colours.

Nothing here is told by colour alone: each state has a sign and a word of its own. All text from outside goes through
`harmless`.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from fairlead.clients import DEFAULT_CLIENT, client_or_default
from fairlead.sessions import AttentionNeeded, Working
from fairlead.text import harmless, money, span
from fairlead.tui.model._totals import Totals

if TYPE_CHECKING:
    from fairlead.sessions import Session
    from fairlead.tui.model._projects import Place
    from fairlead.tui.model._tree import Facts
    from fairlead.tui.model._view import Line

Mood: TypeAlias = Literal["needs", "working", "idle", "stale", "ended", "group", "note"]
"""What a row is about; a theme gives it colours."""

SIGNS: dict[Mood, str] = {"needs": "!", "working": "●", "idle": "○", "stale": "~", "ended": "x"}
WORDS: dict[Mood, str] = {
    "needs": "needs you",
    "working": "working",
    "idle": "idle",
    "stale": "stale",
    "ended": "ended",
}

_DATED = re.compile(r"-20\d{6}$")


class Row(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one line says. Texts are harmless, and as long as they are: cutting them is for who draws."""

    line: Line
    mood: Mood
    name: str
    note: str = ""
    """Beside the name: the branch of a project, the project of who needs the person."""
    what: str = ""
    """What it is doing, or what it needs."""
    seen: str = ""
    """The evidence: which event told, and whose word that is if it is not a hook's."""
    ago: str = ""
    """How long ago that was."""
    lasts: str = ""
    """For how long it has been so; of one that has ended, since when."""
    model: str = ""
    percent: float | None = None
    """Of the context window."""
    context: str = ""
    """Tokens in it, where it is not known of how many: so it is with subagents."""
    cost: str = ""
    age: str = ""
    alarm: int = 0
    """How many below this line need the person: the `!` that bubbles up."""
    blinks: bool = False


def row_of(facts: Facts, now: float) -> Row:
    """Say what a line says."""
    line, session = facts.line, facts.session
    if line.kind in ("project", "worktree"):
        return _group(facts)
    if session is None:
        return Row(line, "note", line.id)
    return _need(facts, session, now) if line.kind == "need" else _session(facts, session, now)


def mood_of(session: Session, now: float) -> Mood:
    """Tell which sign and word a session gets. Who needs the person does so however long it has been."""
    if session.ended is not None:
        return "ended"
    if isinstance(session.state, AttentionNeeded):
        return "needs"
    if session.is_stale(now):
        return "stale"
    return "working" if isinstance(session.state, Working) else "idle"


def _session(facts: Facts, session: Session, now: float) -> Row:
    usage = session.usage
    return Row(
        facts.line,
        mood_of(session, now),
        name_of(session),
        what=what_of(session),
        seen=seen_of(session),
        ago=span(now - session.evidence.at) if session.evidence else "",
        lasts=span(session.in_state(now) if session.ended is None else now - session.ended),
        model=short_model((usage and usage.model) or session.model, session.client),
        percent=usage.context_percent if usage else None,
        context=count_of(usage.context_tokens) if usage and usage.context_tokens else "",
        cost=money(usage.cost_usd) if usage and usage.cost_usd is not None else "",
        age=span(session.duration(now)),
        alarm=facts.alarm,
    )


def _need(facts: Facts, session: Session, now: float) -> Row:
    """Say who needs the person so that it can be understood without the tree."""
    row = _session(facts, session, now)
    name = row.name if facts.main in (None, session) else f"{row.name} of {name_of(facts.main)}"
    note = project_name(facts.place) if facts.place else ""
    blinks = not session.is_stale(now)
    return msgspec.structs.replace(row, name=name, note=note, alarm=0, blinks=blinks, mood="needs")


def _group(facts: Facts) -> Row:
    sums = facts.sums or Totals()
    name, note = _group_name(facts)
    cost = money(sums.cost) if sums.cost else ""
    return Row(facts.line, "group", name, note=note, what=counted(sums), cost=cost, alarm=facts.alarm)


def _group_name(facts: Facts) -> tuple[str, str]:
    place, folder = facts.place, facts.line.id
    if facts.line.kind == "worktree":
        is_main = place is None or place.project == place.worktree
        last = "" if is_main else harmless(folder.rpartition("/")[2])
        branch = harmless(place.branch) if place else ""
        return branch or last or "main folder", last if last not in ("", branch) else ""
    name = harmless(folder.rpartition("/")[2] or folder) or "no folder"
    return name, harmless(place.branch) if place and not facts.is_split else ""


def project_name(place: Place) -> str:
    """Name a project, and its worktree if that is another folder."""
    name = harmless(place.project.rpartition("/")[2] or place.project) or "no folder"
    if place.project == place.worktree:
        return name
    return f"{name}/{harmless(place.branch or place.worktree.rpartition('/')[2])}"


def counted(sums: Totals) -> str:
    """Say in words how many do what."""
    parts = ((sums.waiting, "needs you"), (sums.working, "working"), (sums.idle, "idle"), (sums.stale, "stale"))
    return ", ".join(f"{count} {word if count == 1 else _many(word)}" for count, word in parts if count)


def _many(word: str) -> str:
    return "need you" if word == "needs you" else word


def name_of(session: Session) -> str:
    """Name a session by what it is about; its id says the least."""
    if session.is_child:
        kind = harmless(session.agent_type) or "subagent"
        about = harmless(session.description)
        return f"{kind}: {about}" if about else kind
    return harmless(session.title) or harmless(session.first_prompt) or harmless(session.id)[:8]


def what_of(session: Session) -> str:
    """Say what a session is doing, or what it needs; of an ended one, why it ended."""
    if session.ended is not None:
        return harmless(session.end_reason)
    if isinstance(session.state, AttentionNeeded):
        return _asked(session, session.state.reason)
    if not isinstance(session.state, Working):
        return _in_background(session)
    told, evidence = harmless(session.state.detail or ""), session.evidence
    if evidence is None:
        return told
    tool = harmless(evidence.tool)
    if told and tool not in told:
        return told  # as "Thinking" after a tool: that one is over
    return _joined(told or tool, harmless(near_path(evidence.path, session.cwd)))


def _asked(session: Session, reason: str) -> str:
    """Say what the person is asked: a tool that asks by itself in words, a permission with what it is for."""
    questions = client_or_default(session.client).questions
    if reason in questions:
        return questions[reason]
    told, evidence = harmless(reason), session.evidence
    if evidence is None or not told.startswith("Permission"):
        return told
    tool = harmless(evidence.tool)
    return _joined(
        told if not tool or tool in told else f"{told} for {tool}", harmless(near_path(evidence.path, session.cwd))
    )


def _joined(told: str, path: str) -> str:
    return f"{told} {path}" if path and path not in told else told


def _in_background(session: Session) -> str:
    count = len(session.tasks) or len(session.agents)
    return f"{count} in the background" if count else ""


def seen_of(session: Session) -> str:
    """Give the evidence in a word: which event, and whose word it is if it is not a hook's."""
    evidence = session.evidence
    if evidence is None:
        return ""
    return harmless(evidence.event) + ("" if evidence.source == "hook" else f" ({evidence.source})")


def near_path(path: str, folder: str) -> str:
    """Give a path as seen from a folder, or from home."""
    if folder and path.startswith(f"{folder.rstrip('/')}/"):
        return path[len(folder.rstrip("/")) + 1 :]
    home = os.path.expanduser("~")
    return f"~{path[len(home) :]}" if len(home) > 1 and path.startswith(f"{home}/") else path


def count_of(tokens: int) -> str:
    """Tell a number of tokens in at most 4 cells, as long as it is one of a model."""
    if tokens < 1000:  # noqa: PLR2004 - a thousand
        return str(tokens)
    return f"{tokens / 1000:.0f}k" if tokens < 999_500 else f"{tokens / 1e6:.1f}M"  # noqa: PLR2004 - a million


def short_model(model: str, client: str = DEFAULT_CLIENT) -> str:
    """Leave out of a model's id what all of them have: its maker and its date."""
    return _DATED.sub("", client_or_default(client).short_model(harmless(model)))
