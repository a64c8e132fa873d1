"""Computes the texts of a line of the tree: symbol, label, activity, evidence, usage. No screen, no colours.

No state is shown by colour alone: each has its own symbol and label. All text from outside goes through `one_line`.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from fairlead.clients import DEFAULT_CLIENT, client_or_default
from fairlead.sessions import AttentionNeeded, Working
from fairlead.text import compact_number, duration, first_line, money, one_line
from fairlead.tui.model._totals import Totals

if TYPE_CHECKING:
    from fairlead.sessions import Session
    from fairlead.tui.model._projects import Location
    from fairlead.tui.model._tree import LineData
    from fairlead.tui.model._view import Line

RowState: TypeAlias = Literal["needs", "working", "idle", "stale", "ended", "group", "note"]
"""The state that a row shows, which is also the name of its style; except `note`, for a row without a state."""

SYMBOLS: dict[RowState, str] = {"needs": "!", "working": "●", "idle": "○", "stale": "~", "ended": "x"}
LABELS: dict[RowState, str] = {
    "needs": "needs you",
    "working": "working",
    "idle": "idle",
    "stale": "stale",
    "ended": "ended",
}

_DATE = re.compile(r"-20\d{6}$")


class Row(msgspec.Struct, frozen=True, omit_defaults=True):
    """The texts of one line, without control characters and in full length."""

    line: Line
    state: RowState
    name: str
    note: str = ""
    """The text beside the name: the branch of a project, or the project of a session that needs the user."""
    activity: str = ""
    """What the session is doing, or what it needs."""
    evidence: str = ""
    """The event from which the state is known, and its source unless that is a hook."""
    evidence_age: str = ""
    in_state: str = ""
    """How long the session has been in its state; for an ended session, how long ago it ended."""
    model: str = ""
    percent: float | None = None
    """The used part of the context window; `None` if unknown."""
    context: str = ""
    """The tokens in the context window if its size is unknown, as for subagents."""
    cost: str = ""
    age: str = ""
    waiting: int = 0
    """How many sessions and subagents below this line need the user."""
    blinks: bool = False


_PERMISSION = "Permission for "


def make_row(data: LineData, now: float) -> Row:
    """Return the texts of a line as they are at the time `now`."""
    line, session = data.line, data.session
    if data.host is not None:
        state: RowState = "stale" if data.host.is_stale(now) else "group"
        totals = totals_text(data.totals or Totals())
        return Row(line, state, f"on {line.id}", note=data.host.text(now), activity=totals, waiting=data.waiting)
    if line.kind in ("project", "worktree"):
        return _group_row(data)
    if session is None:
        return Row(line, "note", line.id)
    return _attention_row(data, session, now) if line.kind == "attention" else _session_row(data, session, now)


def display_state(session: Session, now: float) -> RowState:
    """Return the displayed state of a session. A session that needs the user is never displayed as stale."""
    if session.ended is not None:
        return "ended"
    if isinstance(session.state, AttentionNeeded):
        return "needs"
    if session.is_stale(now):
        return "stale"
    return "working" if isinstance(session.state, Working) else "idle"


def _session_row(data: LineData, session: Session, now: float) -> Row:
    usage = session.usage
    return Row(
        data.line,
        display_state(session, now),
        display_name(session),
        activity=activity_text(session),
        evidence=evidence_text(session),
        evidence_age=duration(now - session.evidence.at) if session.evidence else "",
        in_state=duration(session.in_state(now) if session.ended is None else now - session.ended),
        model=session_model(session),
        percent=usage.context_percent if usage else None,
        context=compact_number(usage.context_tokens) if usage and usage.context_tokens else "",
        cost=money(usage.cost_usd) if usage and usage.cost_usd is not None else "",
        age=duration(session.duration(now)),
        waiting=data.waiting,
    )


def _attention_row(data: LineData, session: Session, now: float) -> Row:
    """Return the row of a session that needs the user. It is shown outside of the tree, so it includes the project."""
    row = _session_row(data, session, now)
    name = row.name if data.main in (None, session) else f"{row.name} of {display_name(data.main)}"
    note = project_name(data.location) if data.location else ""
    note = f"{session.host}:{note}" if session.host else note
    blinks = not session.is_stale(now)
    return msgspec.structs.replace(row, name=name, note=note, waiting=0, blinks=blinks, state="needs")


def _group_row(data: LineData) -> Row:
    totals = data.totals or Totals()
    name, note = _group_name(data)
    cost = money(totals.cost) if totals.cost else ""
    return Row(data.line, "group", name, note=note, activity=totals_text(totals), cost=cost, waiting=data.waiting)


def _group_name(data: LineData) -> tuple[str, str]:
    location, folder = data.location, data.line.id
    if data.line.kind == "worktree":
        is_main = location is None or location.project == location.worktree
        last = "" if is_main else one_line(folder.rpartition("/")[2])
        branch = one_line(location.branch) if location else ""
        return branch or last or "main folder", last if last not in ("", branch) else ""
    name = one_line(folder.rpartition("/")[2] or folder) or "no folder"
    return name, one_line(location.branch) if location and not data.is_split else ""


def project_name(location: Location) -> str:
    """Return the name of a project, with the branch or else the folder of a linked worktree: `shop/fix-login`."""
    name = one_line(location.project.rpartition("/")[2] or location.project) or "no folder"
    if location.project == location.worktree:
        return name
    return f"{name}/{one_line(location.branch or location.worktree.rpartition('/')[2])}"


def totals_text(totals: Totals) -> str:
    """Return the number of sessions in each state: `1 needs you, 2 idle`."""
    needs = "needs you" if totals.waiting == 1 else "need you"
    parts = ((totals.waiting, needs), (totals.working, "working"), (totals.idle, "idle"), (totals.stale, "stale"))
    return ", ".join(f"{count} {label}" for count, label in parts if count)


def display_name(session: Session) -> str:
    """Return the displayed name of a session: its title, else its last or first prompt, else the start of its id.

    For a subagent, return its type and description.
    """
    if session.is_child:
        kind = one_line(session.agent_type) or "subagent"
        about = one_line(session.description)
        return f"{kind}: {about}" if about else kind
    names = (session.title, session.last_prompt, session.first_prompt)
    return next((name for text in names if (name := one_line(text))), "") or one_line(session.id)[:8]


def activity_text(session: Session) -> str:
    """Return what a session is doing or needs, "" if nothing; for an ended session, the reason of its end."""
    if session.ended is not None:
        return one_line(session.end_reason)
    if isinstance(session.state, AttentionNeeded):
        return _question(session, session.state)
    return _working_text(session, session.state) if isinstance(session.state, Working) else _background_text(session)


def _working_text(session: Session, state: Working) -> str:
    """Return the running tool with its file, from the open call, else from the evidence."""
    detail, evidence = one_line(state.detail or ""), session.evidence
    for call in reversed(session.calls.values()):
        if call.tool == state.detail:
            return _with_path(detail, call.path, session.cwd)
    if evidence is None:
        return detail
    tool = one_line(evidence.tool)
    if detail and tool not in detail:
        return detail  # such as "Thinking" after a tool call that has finished
    return _with_path(detail or tool, evidence.path, session.cwd)


def _question(session: Session, state: AttentionNeeded) -> str:
    """Return the question to the user: the question of a tool, a permission with its subject, or an error."""
    questions, about = client_or_default(session.client).questions, first_line(state.about)
    text = questions.get(state.reason) or one_line(state.reason)
    if about:
        subject = text.removeprefix(_PERMISSION)  # the label of the state already says "needs you"
        if session.evidence and about == session.evidence.path:
            return _with_path(subject, session.evidence.path, session.cwd)
        is_named = about.lower().startswith(text.partition(":")[0].lower())
        return one_line(about if is_named else f"{subject}: {about}")
    if session.evidence is None or not text.startswith("Permission"):
        return text
    tool = one_line(session.evidence.tool)
    text = text if not tool or tool in text else f"{text} for {tool}"
    return _with_path(text, session.evidence.path, session.cwd)


def _with_path(text: str, path: str, folder: str) -> str:
    path = one_line(short_path(path, folder))
    return f"{text} {path}" if path and path not in text else text


def _background_text(session: Session) -> str:
    count = len(session.tasks) or len(session.agents)
    return f"{count} in the background" if count else ""


def evidence_text(session: Session) -> str:
    """Return the event from which a session's state is known, with its source unless that is a hook; "" if unknown."""
    evidence = session.evidence
    if evidence is None:
        return ""
    return one_line(evidence.event) + ("" if evidence.source == "hook" else f" ({evidence.source})")


def short_path(path: str, folder: str = "") -> str:
    """Return a path relative to `folder` or, with `~`, to the home folder; unchanged if it is below neither."""
    if folder and path.startswith(f"{folder.rstrip('/')}/"):
        return path[len(folder.rstrip("/")) + 1 :]
    home = os.path.expanduser("~")
    return f"~{path[len(home) :]}" if len(home) > 1 and path.startswith(f"{home}/") else path


def session_model(session: Session) -> str:
    """Return the short name of the model that a session uses; "" if it is not known."""
    model = (session.usage.model if session.usage else None) or session.model
    return short_model(model, session.client) if model else ""


def short_model(model: str, client: str = DEFAULT_CLIENT) -> str:
    """Return a model's id without the maker and the date."""
    return _DATE.sub("", client_or_default(client).short_model(one_line(model)))
