"""The operations of mail over HTTP. Each takes a `MailCall` and a request, and returns a JSON document.

They may wait for the disk, and raise `MailError`.
"""

from __future__ import annotations

from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any

import msgspec

from fairlead.clients import DEFAULT_CLIENT, client_or_default
from fairlead.daemon.http._mail_documents import (
    agent_document,
    agent_documents,
    delivery_document,
    has_ended,
    host_documents,
    inbox_document,
    message_document,
    recipient_fields,
    sent_document,
    session_of,
)
from fairlead.mail import (
    STAGES,
    USER,
    Draft,
    NoSuchAgent,
    NotYours,
    QueueSummary,
    incomplete,
    session_context,
    stop_reason,
)
from fairlead.mail import identity_context as identity_text
from fairlead.policy import is_at_or_above
from fairlead.sessions import find_location, project_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlead.daemon.http import _mail_documents as documents
    from fairlead.daemon.http._mail_documents import TeamView
    from fairlead.daemon.mail._caller_identity import IdentifiedCaller
    from fairlead.mail import Agent, MailCounts, Message, MessageService, SendResult, Stage, TaskLists
    from fairlead.mail.render import Left
    from fairlead.sessions import Session

    Take = Callable[[MessageService, Agent, str, str], tuple[list[Message], Left]]
    """Marks the queued mail of an agent as shown, given an event name and the id of the showing.

    Returns the messages, and how many are still queued or a summary of them.
    """

_PAGE = 200
_MAX_THREAD = 100
_UNREAD: tuple[Stage, ...] = ("queued", "shown")


class MailCall(msgspec.Struct, frozen=True):
    """The caller of an operation, and the data and services that operations need."""

    service: MessageService
    caller: IdentifiedCaller
    sessions: Callable[[str], Session | None]
    """Returns the session with an id; None if there is none."""
    tasks: TaskLists
    now: float
    """The Unix time of the call."""
    message: int = 0
    """The id of the message in the path; 0 if there is none."""
    withheld: Callable[[int, Message | None], str] = lambda *_: ""
    """Called with an agent's id: returns why its mail, or the message to it, is withheld; "" if it is not."""
    is_listening: Callable[[int], bool] = bool
    """Returns whether the agent with an id was waiting for mail when the operation was called."""
    team: TeamView | None = None
    """The other hosts; None if this host is in no team."""

    @property
    def agent(self) -> Agent:
        """The agent on whose behalf the caller acts."""
        return self.caller.agent

    def project(self, cwd: str) -> str:
        """Return the folder of the caller's project.

        It is the project of the caller's agent, else the repository of the working folder `cwd`, else the project of
        other agents that contains `cwd`, else `cwd`.
        """
        if self.agent.project:
            return self.agent.project
        location = find_location(cwd)
        if location.branch:
            return location.project
        around = {agent.project for agent in self.service.agents() if _is_in(cwd, agent.project)}
        return max(around, key=len, default=cwd)


def _is_in(folder: str, project: str) -> bool:
    return bool(project) and is_at_or_above(project, folder)


# -- messages ------------------------------------------------------------------------------------------


def send(call: MailCall, request: documents.SendRequest) -> dict[str, Any]:
    """Send a message, and return its id and its recipients."""
    draft = Draft(
        to=request.to,
        subject=request.subject,
        body=request.body,
        priority=request.priority,
        intent=request.intent,
        deadline=request.deadline,
        key=request.key,
    )
    sent = call.service.send(call.agent, draft, project=call.project(request.cwd))
    return _sent(call, sent)


def reply(call: MailCall, request: documents.ReplyRequest) -> dict[str, Any]:
    """Reply to a message, and return the id and the recipients of the reply."""
    sent = call.service.reply(
        _participant(call),
        call.message,
        request.body,
        subject=request.subject,
        to_all=request.all,
        priority=request.priority,
        intent=request.intent,
        deadline=request.deadline,
        key=request.key,
        project=call.project(request.cwd),
    )
    return _sent(call, sent)


def inbox(call: MailCall, request: documents.InboxRequest) -> dict[str, Any]:
    """Return a page of the inbox, or of the messages that match a search, newest first.

    `more` in the result is the `before` of the next page; 0 if there is none.
    """
    rows = _searched(call, request) if request.search else _received(call, request)
    unread = _counts(call).unread
    more = rows[request.limit - 1]["id"] if len(rows) > request.limit else 0
    return {"unread": unread, "messages": rows[: request.limit], "more": more}


def _received(call: MailCall, request: documents.InboxRequest) -> list[dict[str, Any]]:
    """Return received messages of the requested sender: a page and at least one more, if there are that many."""
    rows: list[dict[str, Any]] = []
    before, wanted = request.before, request.sender.lower()
    size = _PAGE if wanted else request.limit + 1
    while len(rows) <= request.limit:
        stages = STAGES if request.all else _UNREAD
        page = call.service.inbox(call.agent, stages=stages, limit=size, before=before)
        rows += [inbox_document(*row) for row in page if wanted in ("", row[1].sender.lower())]
        if len(page) < size:
            break
        before = page[-1][1].id
    return rows


def _searched(call: MailCall, request: documents.InboxRequest) -> list[dict[str, Any]]:
    messages: list[Message] = []
    before, wanted = request.before, request.sender.lower()
    size = _PAGE if wanted else request.limit + 1
    while len(messages) <= request.limit:
        page = call.service.search(call.agent, request.search, limit=size, before=before)
        messages += [message for message in page if wanted in ("", message.sender.lower())]
        if len(page) < size:
            break
        before = page[-1].id
    return [message_document(message, whole=False) for message in messages]


def poll(call: MailCall, request: documents.PollRequest, started: float, take: Take) -> dict[str, Any]:
    """Mark the queued mail as shown with `take`, and return it.

    `started` is when the poll began, by the monotonic clock.
    """
    messages, left = take(call.service, call.agent, "poll", request.id)
    text = session_context if request.format == "context" else stop_reason
    return {
        "how": call.caller.how,
        "id": request.id,
        "messages": [message_document(message, whole=True) for message in messages],
        "left": left.count if isinstance(left, QueueSummary) else left,
        "text": text(messages, left) if messages else "",
        "waited": round(monotonic() - started, 3),
    }


def read(call: MailCall, _: documents.MailRequest) -> dict[str, Any]:
    """Return a message with its body, and mark it as read.

    If the user reads a message on behalf of an agent, it is not marked for the agent.
    """
    reader = USER if call.caller.is_person else _participant(call)
    message, deliveries = call.service.read(reader, call.message)
    thread = [
        message_document(message, whole=False) for message in call.service.thread(reader, call.message)[-_MAX_THREAD:]
    ]
    own = next((delivery for delivery in deliveries if delivery.recipient == reader.name), None)
    return {
        "message": message_document(message, whole=True),
        "letters": [delivery_document(delivery) for delivery in deliveries],
        "thread": thread,
        "owed": message.intent == "request" and own is not None and not own.answered,
    }


def ledger(call: MailCall, _: documents.MailRequest) -> dict[str, Any]:
    """Return a message with the beginning of its body, and its deliveries."""
    participant = _participant(call)
    deliveries = call.service.ledger(participant, call.message)
    (message,) = call.service.thread(participant, call.message, limit=1, before=call.message + 1)
    return {
        "message": message_document(message, whole=False),
        "letters": [delivery_document(delivery) for delivery in deliveries],
    }


def _participant(call: MailCall) -> Agent:
    """Return the agent that wrote or received the message: the caller's agent, or one of its subagents.

    Raises `NotYours` if none of them did.
    """
    service, caller = call.service, call.agent
    try:
        service.ledger(caller, call.message)
    except NotYours:
        for agent in service.agents(include_ended=True):
            if agent.parent == caller.id:
                with suppress(NotYours):
                    service.ledger(agent, call.message)
                    return agent
        raise
    return caller


# -- agents --------------------------------------------------------------------------------------


def agents(call: MailCall, request: documents.AgentsRequest) -> dict[str, Any]:
    """List the agents of a project, or of all projects, and those of the other hosts."""
    project = None if request.all else project_of(request.project) or call.project(request.cwd)
    agents = call.service.agents(project, include_ended=request.all)
    if not request.all:
        agents = [agent for agent in agents if not has_ended(agent, session_of(agent, call.sessions))]
    rows = agent_documents(agents, call.service.mail_counts(), call.sessions, call.now, call.is_listening)
    for agent, row in zip(agents, rows, strict=True):
        row["held"] = call.withheld(agent.id, None)
    return {"project": project, "agents": rows, "hosts": host_documents(call.team, project, call.now)}


def status(call: MailCall, _: documents.MailRequest) -> dict[str, Any]:
    """Return the mail counts of the caller's agent, the requests it has to answer, and its own unanswered requests."""
    service, agent = call.service, call.agent
    counts = _counts(call)
    return {
        "how": call.caller.how,
        "agent": agent_document(service.current(agent), counts, session_of(agent, call.sessions), call.now),
        "urgent": service.queued_count(agent, urgent_only=True),
        "held": call.withheld(agent.id, None),
        "owes": [inbox_document(*owed) for owed in service.unanswered_by(agent)],
        "owed": [inbox_document(*owed) for owed in service.unanswered_from(agent)],
    }


def heartbeat(call: MailCall, request: documents.HeartbeatRequest) -> dict[str, Any]:
    """Mark the caller's agent as active. With `start`, revive it if it has ended."""
    if request.start and call.service.current(call.agent).ended:
        call.service.revive(call.agent)
    call.service.mark_seen(call.agent, call.now)
    return {"seen": call.now}


def show_identity(call: MailCall, _: documents.MailRequest) -> dict[str, Any]:
    """Return the caller's agent, how it was identified, and its saved status."""
    agent = call.service.current(call.agent)
    row = agent_document(agent, _counts(call), session_of(agent, call.sessions), call.now)
    return {"how": call.caller.how, "agent": row, "saved": agent.saved}


def identity(call: MailCall, request: documents.IdentityRequest) -> dict[str, Any]:
    """Rename the caller's agent, or save its status. Return its name, saved status and identity text in any case.

    Raises `NoSuchAgent` if the agent to rename or to save belongs to no session.
    """
    service, agent = call.service, call.agent
    if request.action != "restore" and not agent.session:
        raise NoSuchAgent(
            f"{agent.name} is not a session, so it has nothing to {request.action}; name one: --session ID"
        )
    if request.action == "rename":
        agent = service.rename(agent, request.new)
    elif request.action == "save":
        agent = service.save_status(agent, request.status)
    agent = service.current(agent)
    owed = [message for _, message in service.unanswered_by(agent)]
    text = identity_text(agent, _counts(call).unread, owed)
    return {"name": agent.name, "session": agent.session, "saved": agent.saved, "text": text}


def tasks(call: MailCall, request: documents.TasksRequest) -> dict[str, Any]:
    """List the tasks of the caller's session; none if the caller is no session."""
    name = call.agent.session
    session = call.sessions(name) if name else None
    stored = client_or_default(session.client if session else DEFAULT_CLIENT).read_tasks(request.folder, name)
    listed = call.tasks.tasks_of(name, stored) if name else ()
    shown = listed if request.all else incomplete(listed)
    return {"session": call.agent.session, "tasks": [msgspec.to_builtins(task) for task in shown]}


# -- topics --------------------------------------------------------------------------------------------


def topics(call: MailCall, _: documents.MailRequest) -> dict[str, Any]:
    """List the topics that have subscribers, with the names of the subscribers."""
    return {"topics": [msgspec.to_builtins(topic) for topic in call.service.topics()]}


def listen(call: MailCall, request: documents.ListenRequest) -> dict[str, Any]:
    """Join or leave a topic, and return its subscribers."""
    change = call.service.subscribe if request.action == "join" else call.service.unsubscribe
    topic = change(call.agent, request.topic)
    return {"topic": topic.name, "subscribers": list(topic.subscribers)}


def _sent(call: MailCall, sent: SendResult) -> dict[str, Any]:
    document = sent_document(sent, call.sessions, call.now, call.is_listening)
    for agent, row in zip(sent.recipients, document["recipients"], strict=True):
        row["held"] = call.withheld(agent.id, sent.message)
        row.update(recipient_fields(agent, call.team))
    return document


def user_counts(service: MessageService) -> dict[str, Any]:
    """Return the mail counts of the user.

    `unread` are messages that were not read, `owes` are requests that were not answered, and `waiting` is the number of
    messages that are either.
    """
    counts = service.mail_counts_of(USER)
    owed = service.unanswered_by(USER) if counts.owes else []
    read = sum(delivery.stage not in _UNREAD for delivery, _ in owed)
    return {"unread": counts.unread, "owes": counts.owes, "waiting": counts.unread + read}


def _counts(call: MailCall) -> MailCounts:
    return call.service.mail_counts_of(call.agent)
