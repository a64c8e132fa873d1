"""From one line of the tree to what it says: sign, words, evidence, figures. No screen, no colours.

Nothing here is told by colour alone: each state has a sign and a word of its own. All text from outside goes through
`harmless`.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from fairlead.sessions import AttentionNeeded, Working
from fairlead.tui._text import harmless, money, span

if TYPE_CHECKING:
    from fairlead.sessions import Session
    from fairlead.tui._projects import Place
    from fairlead.tui._tree import Sums, Tree
    from fairlead.tui._view import Line

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
    """For how long it has been so."""
    model: str = ""
    percent: float | None = None
    """Of the context window."""
    cost: str = ""
    age: str = ""
    alarm: int = 0
    """How many below this line need the person: the `!` that bubbles up."""
    blinks: bool = False


def row_of(line: Line, tree: Tree, now: float) -> Row:
    """Say what a line says."""
    if line.kind in ("project", "worktree"):
        return _group(line, tree)
    session = tree.sessions.get(line.id)
    if session is None:
        return Row(line, "note", line.id)
    return _need(line, session, tree, now) if line.kind == "need" else _session(line, session, tree, now)


def mood_of(session: Session, now: float) -> Mood:
    """Tell which sign and word a session gets. Who needs the person does so however long it has been."""
    if session.ended is not None:
        return "ended"
    if isinstance(session.state, AttentionNeeded):
        return "needs"
    if session.is_stale(now):
        return "stale"
    return "working" if isinstance(session.state, Working) else "idle"


def _session(line: Line, session: Session, tree: Tree, now: float) -> Row:
    mood = mood_of(session, now)
    below = sum(1 for child in tree.below(session.id) if child.id in tree.needing) if tree.needing else 0
    usage = session.usage
    return Row(
        line,
        mood,
        name_of(session),
        what=what_of(session),
        seen=seen_of(session),
        ago=span(now - session.evidence.at) if session.evidence else "",
        lasts=span(session.in_state(now)),
        model=short_model((usage and usage.model) or session.model),
        percent=usage.context_percent if usage else None,
        cost=money(usage.cost_usd) if usage and usage.cost_usd is not None else "",
        age=span(session.duration(now)),
        alarm=below,
    )


def _need(line: Line, session: Session, tree: Tree, now: float) -> Row:
    """Say who needs the person so that it can be understood without the tree."""
    row = _session(line, session, tree, now)
    name, root = row.name, tree.sessions.get(tree.root(session.id))
    if root is not None and root is not session:
        name = f"{name} of {name_of(root)}"
    place = tree.place(session.id)
    return msgspec.structs.replace(
        row, name=name, note=project_name(place), alarm=0, blinks=not session.is_stale(now), mood="needs"
    )


def _group(line: Line, tree: Tree) -> Row:
    sums = tree.groups.get(line.key)
    name, note = _group_name(line, tree)
    cost = money(sums.cost) if sums and sums.cost else ""
    waiting = sums.waiting if sums else 0
    return Row(line, "group", name, note=note, what=counted(sums) if sums else "", cost=cost, alarm=waiting)


def _group_name(line: Line, tree: Tree) -> tuple[str, str]:
    place = tree.found.get(line.id)
    if line.kind == "worktree":
        is_main = place is None or place.project == place.worktree
        folder = "" if is_main else harmless(line.id.rpartition("/")[2])
        branch = harmless(place.branch) if place else ""
        return branch or folder or "main folder", folder if folder not in ("", branch) else ""
    name = harmless(line.id.rpartition("/")[2] or line.id) or "no folder"
    return name, harmless(place.branch) if place and line.id not in tree.split else ""


def project_name(place: Place) -> str:
    """Name a project, and its worktree if that is another folder."""
    name = harmless(place.project.rpartition("/")[2] or place.project) or "no folder"
    if place.project == place.worktree:
        return name
    return f"{name}/{harmless(place.branch or place.worktree.rpartition('/')[2])}"


def counted(sums: Sums) -> str:
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
    state, evidence = session.state, session.evidence
    if isinstance(state, AttentionNeeded):
        told = harmless(state.reason)
    elif isinstance(state, Working):
        told = harmless(state.detail or "")
    else:
        return _in_background(session)
    if evidence is None or (isinstance(state, AttentionNeeded) and " " in told):
        return told  # a question says enough by itself
    tool, path = harmless(evidence.tool), harmless(near_path(evidence.path, session.cwd))
    if isinstance(state, Working) and told and tool not in told:
        return told  # as "Thinking" after a tool: that one is over
    parts = (told, tool if tool not in told else "", path if path not in told else "")
    return " ".join(part for part in parts if part)


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
    home = os.path.expanduser("~")  # noqa: PTH111 - paths are text here
    return f"~{path[len(home) :]}" if len(home) > 1 and path.startswith(f"{home}/") else path


def short_model(model: str) -> str:
    """Leave out of a model's id what all of them have: its maker and its date."""
    return _DATED.sub("", harmless(model).removeprefix("claude-"))
