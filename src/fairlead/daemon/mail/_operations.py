"""What each request for mail comes to: from who asks, and what, to a document. For a thread, because disks are slow."""

from __future__ import annotations

from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any

import msgspec

from fairlead.daemon.http._mail_documents import (
    agent_row,
    agent_rows,
    has_ended,
    inbox_row,
    letter_row,
    message_row,
    sent_row,
    session_of,
)
from fairlead.mail import (
    MOST_SHOWN,
    STAGES,
    USER,
    Draft,
    NoSuchAgent,
    NotYours,
    Standing,
    incomplete,
    session_context,
    stop_reason,
)
from fairlead.mail import identity as identity_words

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlead.daemon.http import _mail_requests as asks
    from fairlead.daemon.mail._caller_identity import Caller
    from fairlead.mail import Agent, Message, MessageService, Stage, TasksHeard
    from fairlead.sessions import Session

_PAGE = 200
_LONGEST_THREAD = 100
_UNREAD: tuple[Stage, ...] = ("queued", "shown")
_NONE = Standing()


class Visit(msgspec.Struct, frozen=True):
    """Somebody who asks, and all that an answer needs."""

    office: MessageService
    caller: Caller
    sessions: Callable[[str], Session | None]
    tasks: TasksHeard
    now: float
    message: int = 0
    """The id in the path."""

    @property
    def agent(self) -> Agent:
        """Who asks."""
        return self.caller.agent

    def project(self, cwd: str) -> str:
        """Give the project that the caller is in: its own, else that of the agents around its folder."""
        if self.agent.project:
            return self.agent.project
        around = {agent.project for agent in self.office.agents() if _is_in(cwd, agent.project)}
        return max(around, key=len, default=cwd)


def _is_in(folder: str, project: str) -> bool:
    return bool(project) and (folder == project or folder.startswith(f"{project.rstrip('/')}/"))


# -- messages ------------------------------------------------------------------------------------------


def send(visit: Visit, ask: asks.Send) -> dict[str, Any]:
    """Send a message."""
    draft = Draft(
        to=ask.to,
        subject=ask.subject,
        body=ask.body,
        priority=ask.priority,
        intent=ask.intent,
        deadline=ask.deadline,
        key=ask.key,
    )
    sent = visit.office.send(visit.agent, draft, project=visit.project(ask.cwd))
    return sent_row(sent, visit.sessions, visit.now)


def reply(visit: Visit, ask: asks.Reply) -> dict[str, Any]:
    """Answer a message."""
    sent = visit.office.reply(
        _party(visit),
        visit.message,
        ask.body,
        subject=ask.subject,
        to_all=ask.all,
        priority=ask.priority,
        intent=ask.intent,
        deadline=ask.deadline,
        key=ask.key,
        project=visit.project(ask.cwd),
    )
    return sent_row(sent, visit.sessions, visit.now)


def inbox(visit: Visit, ask: asks.Inbox) -> dict[str, Any]:
    """Give a page of the inbox, or of what was found."""
    rows = _found(visit, ask) if ask.search else _received(visit, ask)
    unread = _standing(visit).unread
    more = rows[ask.limit - 1]["id"] if len(rows) > ask.limit else 0
    return {"unread": unread, "messages": rows[: ask.limit], "more": more}


def _received(visit: Visit, ask: asks.Inbox) -> list[dict[str, Any]]:
    """Go on page by page until there are enough of those that are wanted, and one more."""
    rows: list[dict[str, Any]] = []
    before, wanted = ask.before, ask.sender.lower()
    size = _PAGE if wanted else ask.limit + 1
    while len(rows) <= ask.limit:
        stages = STAGES if ask.all else _UNREAD
        page = visit.office.inbox(visit.agent, stages=stages, limit=size, before=before)
        rows += [inbox_row(*found) for found in page if wanted in ("", found[1].sender.lower())]
        if len(page) < size:
            break
        before = page[-1][1].id
    return rows


def _found(visit: Visit, ask: asks.Inbox) -> list[dict[str, Any]]:
    found: list[Message] = []
    before, wanted = ask.before, ask.sender.lower()
    size = _PAGE if wanted else ask.limit + 1
    while len(found) <= ask.limit:
        page = visit.office.search(visit.agent, ask.search, limit=size, before=before)
        found += [message for message in page if wanted in ("", message.sender.lower())]
        if len(page) < size:
            break
        before = page[-1].id
    return [message_row(message, whole=False) for message in found]


def poll(visit: Visit, ask: asks.Poll, begun: float) -> dict[str, Any]:
    """Give what was not shown yet, and count it as shown."""
    messages = visit.office.show(visit.agent, "poll", ask.id, most=MOST_SHOWN)
    left = visit.office.waiting(visit.agent)
    words = session_context if ask.format == "context" else stop_reason
    return {
        "how": visit.caller.how,
        "id": ask.id,
        "messages": [message_row(message, whole=True) for message in messages],
        "left": left,
        "text": words(messages, left) if messages else "",
        "waited": round(monotonic() - begun, 3),
    }


def put_back(visit: Visit, ask: asks.Poll) -> dict[str, Any]:
    """Take back what was given, and not printed."""
    return {"undone": visit.office.unshow(ask.undo)}


def read(visit: Visit, _: asks.Ask) -> dict[str, Any]:
    """Give a whole message, and mark it as read. A person who looks over an agent's shoulder marks nothing of its."""
    reader = USER if visit.caller.is_person else _party(visit)
    message, letters = visit.office.read(reader, visit.message)
    thread = [message_row(one, whole=False) for one in visit.office.thread(reader, visit.message)[-_LONGEST_THREAD:]]
    own = next((letter for letter in letters if letter.recipient == reader.name), None)
    return {
        "message": message_row(message, whole=True),
        "letters": [letter_row(letter) for letter in letters],
        "thread": thread,
        "owed": message.intent == "request" and own is not None and not own.answered,
    }


def ledger(visit: Visit, _: asks.Ask) -> dict[str, Any]:
    """Say how a message fares with each recipient."""
    party = _party(visit)
    letters = visit.office.ledger(party, visit.message)
    thread = visit.office.thread(party, visit.message)
    message = next(one for one in thread if one.id == visit.message)
    return {"message": message_row(message, whole=False), "letters": [letter_row(letter) for letter in letters]}


def _party(visit: Visit) -> Agent:
    """Give who of the caller's own has to do with the message: it, or one of its subagents.

    What runs in a session's process may be a subagent's command, which nothing else tells from the session's.
    """
    office, caller = visit.office, visit.agent
    try:
        office.ledger(caller, visit.message)
    except NotYours:
        for agent in office.agents(ended=True):
            if agent.parent == caller.id:
                with suppress(NotYours):
                    office.ledger(agent, visit.message)
                    return agent
        raise
    return caller


# -- who there is --------------------------------------------------------------------------------------


def agents(visit: Visit, ask: asks.Agents) -> dict[str, Any]:
    """List those who are there, in this project or in all."""
    project = None if ask.all else ask.project or visit.project(ask.cwd)
    found = visit.office.agents(project, ended=ask.all)
    if not ask.all:
        found = [agent for agent in found if not has_ended(agent, session_of(agent, visit.sessions))]
    rows = agent_rows(found, visit.office.standings(), visit.sessions, visit.now)
    return {"project": project, "agents": rows}


def status(visit: Visit, _: asks.Ask) -> dict[str, Any]:
    """Say how much mail one has, what one owes, and what one is owed."""
    office, agent = visit.office, visit.agent
    standing = _standing(visit)
    return {
        "how": visit.caller.how,
        "agent": agent_row(office.current(agent), standing, session_of(agent, visit.sessions), visit.now),
        "urgent": office.waiting(agent, urgent_only=True),
        "owes": [inbox_row(*owed) for owed in office.owed_by(agent)],
        "owed": [inbox_row(*owed) for owed in office.owed_to(agent)],
    }


def heartbeat(visit: Visit, ask: asks.Heartbeat) -> dict[str, Any]:
    """Take a sign of life; a session that begins, or begins again, lives."""
    if ask.start and visit.office.current(visit.agent).ended:
        visit.office.revived(visit.agent)
    visit.office.seen(visit.agent, visit.now)
    return {"seen": visit.now}


def who(visit: Visit, _: asks.Ask) -> dict[str, Any]:
    """Say who one is."""
    agent = visit.office.current(visit.agent)
    row = agent_row(agent, _standing(visit), session_of(agent, visit.sessions), visit.now)
    return {"how": visit.caller.how, "agent": row, "saved": agent.saved}


def identity(visit: Visit, ask: asks.Identity) -> dict[str, Any]:
    """Save or restore what one wants to be told, or take another name."""
    office, agent = visit.office, visit.agent
    if ask.action != "restore" and not agent.session:
        raise NoSuchAgent(f"{agent.name} is no session, so it has nothing to {ask.action}; name one: --session ID")
    if ask.action == "rename":
        agent = office.rename(agent, ask.new)
    elif ask.action == "save":
        agent = office.save(agent, ask.status)
    agent = office.current(agent)
    owed = [message for _, message in office.owed_by(agent)]
    text = identity_words(agent, _standing(visit).unread, owed)
    return {"name": agent.name, "session": agent.session, "saved": agent.saved, "text": text}


def tasks(visit: Visit, ask: asks.Tasks) -> dict[str, Any]:
    """List the tasks of the caller's session."""
    found = visit.tasks.of(visit.agent.session, ask.folder) if visit.agent.session else ()
    shown = found if ask.all else incomplete(found)
    return {"session": visit.agent.session, "tasks": [msgspec.to_builtins(task) for task in shown]}


# -- topics --------------------------------------------------------------------------------------------


def topics(visit: Visit, _: asks.Ask) -> dict[str, Any]:
    """List the topics that somebody listens to."""
    return {"topics": [msgspec.to_builtins(topic) for topic in visit.office.topics()]}


def listen(visit: Visit, ask: asks.Listen) -> dict[str, Any]:
    """Listen to a topic, or no more."""
    do = visit.office.subscribe if ask.action == "join" else visit.office.unsubscribe
    topic = do(visit.agent, ask.topic)
    return {"topic": topic.name, "subscribers": list(topic.subscribers)}


def _standing(visit: Visit) -> Standing:
    return visit.office.standings().get(visit.agent.id, _NONE)
