"""What is asked of the tables of the mail, as statements. Nothing here is of one database alone.

Each goes by an index: none takes longer because there are more messages, but for `found`, which looks into texts.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import BindParameter, Select, bindparam, exists, func, literal, or_, select, true, tuple_, update

from fairlead.mail import FIRST_ID, SCRIPT, TOLD_IDLE, TOLD_LATE
from fairlead.store.mail._tables import (
    OWED,
    QUEUED,
    URGENT,
    agents,
    formers,
    letters,
    marks,
    messages,
    subscriptions,
)

# -- what is read --------------------------------------------------------------------------------------

_senders = agents.alias("senders")
_recipients = agents.alias("recipients")
_MESSAGE = (*messages.c, _senders.c.name.label("sender_name"))
_LETTER = tuple(column for column in letters.c if column.name != "sender")
_NAMED = _recipients.c.name.label("recipient_name")

_MESSAGES: Select[Any] = select(*_MESSAGE).join_from(messages, _senders, messages.c.sender == _senders.c.id)
_BOTH: Select[Any] = (
    select(*_MESSAGE, *_LETTER, _NAMED)
    .join_from(letters, messages, letters.c.message == messages.c.id)
    .join(_senders, messages.c.sender == _senders.c.id)
    .join(_recipients, letters.c.recipient == _recipients.c.id)
)

MESSAGE = _MESSAGES.where(messages.c.id == bindparam("message"))
MESSAGES = _MESSAGES.where(messages.c.id.in_(bindparam("messages", expanding=True))).order_by(messages.c.id)
LETTERS: Select[Any] = (
    select(*_LETTER, _NAMED)
    .join_from(letters, _recipients, letters.c.recipient == _recipients.c.id)
    .where(letters.c.message == bindparam("message"))
    .order_by(_recipients.c.name)
)
STAGE = select(letters.c.stage).where(
    letters.c.recipient == bindparam("agent"), letters.c.message == bindparam("message")
)
INBOX = (
    _BOTH.where(
        letters.c.recipient == bindparam("agent"),
        letters.c.stage == bindparam("wanted"),
        letters.c.message < bindparam("before"),
    )
    .order_by(letters.c.message.desc())
    .limit(bindparam("most"))
)
SENT_BEFORE = _MESSAGES.where(
    messages.c.sender == bindparam("agent"), messages.c.key.in_(bindparam("keys", expanding=True))
)

_OWED: Select[Any] = _BOTH.where(OWED).order_by(letters.c.message, letters.c.recipient)
_LIVING = _OWED.where(letters.c.stage != "bounced").limit(bindparam("most"))
OWED_BY = _LIVING.where(letters.c.recipient == bindparam("agent"))
OWED_TO = _LIVING.where(letters.c.sender == bindparam("agent"))
OWED_FOR = _OWED.where(letters.c.message.in_(bindparam("messages", expanding=True)))


def thread_of(reader: int) -> Select[Any]:
    """Choose what a reader wrote or got in a thread."""
    found = _MESSAGES.where(messages.c.thread == bindparam("thread"), messages.c.id < bindparam("before"))
    return _newest(found.where(_concerns(reader)))


def found(text: str, reader: int) -> Select[Any]:
    """Look for a text in what a reader wrote or got."""
    has = or_(messages.c.subject.icontains(text, autoescape=True), messages.c.body.icontains(text, autoescape=True))
    return _newest(_MESSAGES.where(messages.c.id < bindparam("before"), _concerns(reader), has))


def _newest(chosen: Select[Any]) -> Select[Any]:
    return chosen.order_by(messages.c.id.desc()).limit(bindparam("most"))


def _concerns(reader: int) -> Any:
    if not reader:
        return true()
    got = exists().where(letters.c.recipient == reader, letters.c.message == messages.c.id)
    return or_(messages.c.sender == reader, got)


# -- what an office holds ------------------------------------------------------------------------------

AGENTS = select(agents).order_by(agents.c.id)
FORMERS = select(formers)
SUBSCRIPTIONS = select(subscriptions.c.topic, subscriptions.c.agent).order_by(subscriptions.c.number)
LATEST = select(func.max(messages.c.id))
MARK = select(marks.c.value).where(marks.c.name == bindparam("mark"))
OWING = (
    select(letters.c.recipient)
    .where(OWED, letters.c.stage.in_(("shown", "read")), letters.c.told.bitwise_and(TOLD_IDLE) == 0)
    .distinct()
)
DEADLINES = (
    select(messages.c.deadline, messages.c.id)
    .join_from(letters, messages, letters.c.message == messages.c.id)
    .where(OWED, messages.c.deadline > 0, letters.c.told.bitwise_and(TOLD_LATE) == 0)
    .distinct()
)
COUNTS = (
    select(letters.c.recipient, letters.c.stage, func.count().label("number"))
    .where(
        letters.c.recipient.in_(bindparam("agents", expanding=True)),
        letters.c.stage.in_(bindparam("stages", expanding=True)),
    )
    .group_by(letters.c.recipient, letters.c.stage)
)
URGENTS = select(letters.c.recipient, func.count().label("number")).where(URGENT).group_by(letters.c.recipient)
OWES = (
    select(letters.c.recipient.label("agent"), func.count().label("number"))
    .where(OWED, letters.c.stage != "bounced", letters.c.recipient.in_(bindparam("agents", expanding=True)))
    .group_by(letters.c.recipient)
)
IS_OWED = (
    select(letters.c.sender.label("agent"), func.count().label("number"))
    .where(OWED, letters.c.stage != "bounced", letters.c.sender.in_(bindparam("agents", expanding=True)))
    .group_by(letters.c.sender)
)

# -- showing -------------------------------------------------------------------------------------------

_MINE = letters.c.recipient == bindparam("agent")
_MOST: BindParameter[int] = bindparam("most")

FIRST = select(letters.c.message).where(_MINE, QUEUED).order_by(letters.c.message).limit(_MOST)
FIRST_URGENT = (
    select(letters.c.message, messages.c.thread)
    .join_from(letters, messages, letters.c.message == messages.c.id)
    .where(_MINE, URGENT)
    .order_by(letters.c.message)
    .limit(_MOST)
)
BEFORE_IN_THREAD = (
    select(letters.c.message)
    .join_from(messages, letters, letters.c.message == messages.c.id)
    .where(_MINE, QUEUED, messages.c.thread == bindparam("in_thread"), messages.c.id < bindparam("before"))
    .order_by(letters.c.message)
    .limit(_MOST)
)
SHOWN_AT = (
    select(letters.c.recipient, letters.c.message, letters.c.urgent, agents.c.ended)
    .join_from(letters, agents, letters.c.recipient == agents.c.id)
    .where(letters.c.event_id == bindparam("at_event"), letters.c.stage == "shown")
)
BOUNCED = select(func.count().label("queued"), func.coalesce(func.sum(letters.c.urgent), 0).label("urgent")).where(
    _MINE, letters.c.stage == "bounced"
)

# -- answering -----------------------------------------------------------------------------------------

ANSWERED = (
    select(letters.c.message, letters.c.stage, letters.c.urgent)
    .join_from(letters, messages, letters.c.message == messages.c.id)
    .where(
        _MINE,
        letters.c.message <= bindparam("reply_to"),
        letters.c.sender.in_(bindparam("senders", expanding=True)),
        letters.c.stage != "answered",
        messages.c.thread == bindparam("in_thread"),
    )
)
NAMED = ANSWERED.where(letters.c.message == bindparam("reply_to"))
ASKED = ANSWERED.where(OWED)

# -- changing ------------------------------------------------------------------------------------------

ONE = update(letters).where(_MINE, letters.c.message == bindparam("number"))
ALL_QUEUED = update(letters).where(_MINE, QUEUED)
ALL_BOUNCED = update(letters).where(_MINE, letters.c.stage == "bounced")
AGENT = update(agents).where(agents.c.id == bindparam("agent"))

# -- keeping small -------------------------------------------------------------------------------------

_waits = exists().where(
    letters.c.message == messages.c.id, letters.c.stage == "queued", letters.c.recipient != SCRIPT.id
)
_OLD = (
    select(messages.c.id, messages.c.at, _waits.label("waits"))
    .where(messages.c.at < bindparam("horizon"))
    .order_by(messages.c.at, messages.c.id)
    .limit(_MOST)
)


def old(after: tuple[float, int] | None) -> Select[Any]:
    """Choose messages from before a time, the oldest first, and say of each whether somebody still waits for it."""
    if after is None:
        return _OLD
    return _OLD.where(tuple_(messages.c.at, messages.c.id) > tuple_(literal(after[0]), literal(after[1])))


_children = agents.alias("children")
OLD_AGENTS = select(agents.c.id).where(
    agents.c.id >= FIRST_ID,
    agents.c.ended > 0,
    agents.c.ended < bindparam("horizon"),
    ~exists().where(messages.c.sender == agents.c.id),
    ~exists().where(letters.c.recipient == agents.c.id),
    agents.c.id.not_in(select(_children.c.parent)),
)
