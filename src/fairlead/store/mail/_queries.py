"""The mail store's queries, for any database that SQLAlchemy supports.

Each is served by an index, and does not get slower with more messages. The exceptions are `search` and `all_with`,
which read texts; see `_search`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    BindParameter,
    Select,
    bindparam,
    exists,
    func,
    literal,
    literal_column,
    or_,
    select,
    true,
    tuple_,
    update,
)

from fairlead.mail import FIRST_ID, FIRST_REMOTE_ID, NOTICE_IDLE, NOTICE_OVERDUE, SCRIPT, STAGES
from fairlead.store.mail._tables import (
    QUEUED,
    UNANSWERED,
    URGENT,
    agents,
    aliases,
    counters,
    deliveries,
    messages,
    subscriptions,
)
from fairlead.store.mail._team_tables import hosts, outbox, pending

if TYPE_CHECKING:
    from fairlead.mail import Stage

# -- reading -------------------------------------------------------------------------------------------

_senders = agents.alias("senders")
_recipients = agents.alias("recipients")
MESSAGE_COLUMNS = (*messages.c, _senders.c.name.label("sender_name"))
_DELIVERY_COLUMNS = tuple(column for column in deliveries.c if column.name != "sender")
_RECIPIENT_NAME = _recipients.c.name.label("recipient_name")

JOINED_SENDERS = (_senders, messages.c.sender == _senders.c.id)
"""The arguments of the join by which a query of messages gets the `sender_name` of `MESSAGE_COLUMNS`."""

_MESSAGES: Select[Any] = select(*MESSAGE_COLUMNS).join_from(messages, *JOINED_SENDERS)
_DELIVERIES_WITH_MESSAGES: Select[Any] = (
    select(*MESSAGE_COLUMNS, *_DELIVERY_COLUMNS, _RECIPIENT_NAME)
    .join_from(deliveries, messages, deliveries.c.message == messages.c.id)
    .join(_senders, messages.c.sender == _senders.c.id)
    .join(_recipients, deliveries.c.recipient == _recipients.c.id)
)

MESSAGE = _MESSAGES.where(messages.c.id == bindparam("message"))
DELIVERIES: Select[Any] = (
    select(*_DELIVERY_COLUMNS, _RECIPIENT_NAME)
    .join_from(deliveries, _recipients, deliveries.c.recipient == _recipients.c.id)
    .where(deliveries.c.message == bindparam("message"))
    .order_by(_recipients.c.name)
)
OF_MESSAGE = deliveries.c.message == bindparam("message")
DELIVERY_IS = (deliveries.c.recipient == bindparam("agent")) & OF_MESSAGE
STAGE = select(deliveries.c.stage).where(DELIVERY_IS)


def is_at(stage: Stage) -> Any:
    """Return the condition that a delivery is at a stage.

    The stage is part of the SQL text, because SQLite plans a query at each run if a partial index depends on a
    parameter.
    """
    return deliveries.c.stage == literal_column(f"'{stage}'")


INBOX = {
    stage: _DELIVERIES_WITH_MESSAGES.where(
        deliveries.c.recipient == bindparam("agent"), is_at(stage), deliveries.c.message < bindparam("before")
    )
    .order_by(deliveries.c.message.desc())
    .limit(bindparam("limit"))
    for stage in STAGES
}
BY_KEY = _MESSAGES.where(messages.c.sender == bindparam("agent"), messages.c.key == bindparam("key"))
BY_KEYS = _MESSAGES.where(
    messages.c.sender == bindparam("agent"), messages.c.key.in_(bindparam("keys", expanding=True))
)

_UNANSWERED: Select[Any] = _DELIVERIES_WITH_MESSAGES.where(UNANSWERED).order_by(
    deliveries.c.message, deliveries.c.recipient
)
_UNANSWERED_NOT_BOUNCED = _UNANSWERED.where(deliveries.c.stage != "bounced").limit(bindparam("limit"))
UNANSWERED_BY = _UNANSWERED_NOT_BOUNCED.where(deliveries.c.recipient == bindparam("agent"))
UNANSWERED_FROM = _UNANSWERED_NOT_BOUNCED.where(deliveries.c.sender == bindparam("agent"))
UNANSWERED_AMONG = _UNANSWERED.where(deliveries.c.message.in_(bindparam("messages", expanding=True)))


def thread(reader: int) -> Select[Any]:
    """Select the messages of a thread that a reader wrote or received, newest first; reader 0 sees all.

    The parameters are `thread`, `before` (an id) and `limit`.
    """
    query = _MESSAGES.where(messages.c.thread == bindparam("thread"), messages.c.id < bindparam("before"))
    return _newest_first(query.where(is_visible_to(reader)))


def search(text: str, reader: int) -> Select[Any]:
    """Select the messages that contain a text and that a reader wrote or received; reader 0 sees all.

    Reads the text of every message. The parameters are those of `all_with`.
    """
    return all_with(text).where(is_visible_to(reader))


def all_with(text: str) -> Select[Any]:
    """Select the messages that contain a text, newest first. The parameters are `before` (an id) and `limit`."""
    return _newest_first(_MESSAGES.where(messages.c.id < bindparam("before"), contains(text)))


def contains(text: str) -> Any:
    """Return the condition that the subject or the body of a message contains a text, in upper or lower case."""
    return or_(messages.c.subject.icontains(text, autoescape=True), messages.c.body.icontains(text, autoescape=True))


def _newest_first(query: Select[Any]) -> Select[Any]:
    return query.order_by(messages.c.id.desc()).limit(bindparam("limit"))


def is_visible_to(reader: int) -> Any:
    """Return the condition that a reader wrote or received a message; for reader 0 one that is always true."""
    if not reader:
        return true()
    received = exists().where(deliveries.c.recipient == reader, deliveries.c.message == messages.c.id)
    return or_(messages.c.sender == reader, received)


# -- loading the cache ---------------------------------------------------------------------------------

AGENTS = select(agents).order_by(agents.c.id)
ALIASES = select(aliases)
HOSTS = select(hosts)
SUBSCRIPTIONS = select(subscriptions.c.topic, subscriptions.c.agent).order_by(subscriptions.c.number)
LAST_MESSAGE = select(func.max(messages.c.id))
COUNTER = select(counters.c.value).where(counters.c.name == bindparam("counter"))
OWING_REPLY = (
    select(deliveries.c.recipient)
    .where(
        UNANSWERED,
        deliveries.c.stage.in_(("shown", "read")),
        deliveries.c.told.bitwise_and(NOTICE_IDLE) == 0,
        deliveries.c.recipient < FIRST_REMOTE_ID,
    )
    .distinct()
)
DEADLINES = (
    select(messages.c.deadline, messages.c.id)
    .join_from(deliveries, messages, deliveries.c.message == messages.c.id)
    .where(
        UNANSWERED,
        messages.c.deadline > 0,
        deliveries.c.told.bitwise_and(NOTICE_OVERDUE) == 0,
        deliveries.c.sender < FIRST_REMOTE_ID,
    )
    .distinct()
)
COUNTS_BY_STAGE = (
    select(deliveries.c.recipient, deliveries.c.stage, func.count().label("number"))
    .where(
        deliveries.c.recipient.in_(bindparam("agents", expanding=True)),
        deliveries.c.stage.in_(bindparam("stages", expanding=True)),
    )
    .group_by(deliveries.c.recipient, deliveries.c.stage)
)
URGENT_COUNTS = (
    select(deliveries.c.recipient, func.count().label("number")).where(URGENT).group_by(deliveries.c.recipient)
)
OWES_COUNTS = (
    select(deliveries.c.recipient.label("agent"), func.count().label("number"))
    .where(UNANSWERED, deliveries.c.stage != "bounced", deliveries.c.recipient.in_(bindparam("agents", expanding=True)))
    .group_by(deliveries.c.recipient)
)
OWED_COUNTS = (
    select(deliveries.c.sender.label("agent"), func.count().label("number"))
    .where(UNANSWERED, deliveries.c.stage != "bounced", deliveries.c.sender.in_(bindparam("agents", expanding=True)))
    .group_by(deliveries.c.sender)
)


def _count(*conditions: Any) -> Any:
    return select(func.count()).select_from(deliveries).where(*conditions).scalar_subquery()


_of: BindParameter[int] = bindparam("agent")
_open_request = (UNANSWERED, deliveries.c.stage != "bounced")
COUNTS: Select[Any] = select(
    _count(deliveries.c.recipient == _of, is_at("queued")).label("queued"),
    _count(deliveries.c.recipient == _of, is_at("shown")).label("shown"),
    _count(deliveries.c.recipient == _of, *_open_request).label("owes"),
    _count(deliveries.c.sender == _of, *_open_request).label("owed"),
)
"""Four counts of one agent: queued deliveries, shown ones, requests that it has to answer, its own unanswered ones."""

# -- delivery ------------------------------------------------------------------------------------------

_OF_AGENT = deliveries.c.recipient == bindparam("agent")
_LIMIT: BindParameter[int] = bindparam("limit")

_TO_SHOW: Select[Any] = (
    select(*MESSAGE_COLUMNS, deliveries.c.why)
    .join_from(deliveries, messages, deliveries.c.message == messages.c.id)
    .join(*JOINED_SENDERS)
    .where(_OF_AGENT, QUEUED)
)
FIRST_QUEUED = _TO_SHOW.order_by(deliveries.c.message).limit(_LIMIT)
QUEUED_MESSAGE = _TO_SHOW.where(deliveries.c.message == bindparam("number"))
FIRST_URGENT = (
    select(deliveries.c.message, messages.c.thread)
    .join_from(deliveries, messages, deliveries.c.message == messages.c.id)
    .where(_OF_AGENT, URGENT)
    .order_by(deliveries.c.message)
    .limit(_LIMIT)
)
QUEUED_BEFORE_IN_THREAD = (
    select(deliveries.c.message)
    .join_from(messages, deliveries, deliveries.c.message == messages.c.id)
    .where(_OF_AGENT, QUEUED, messages.c.thread == bindparam("in_thread"), messages.c.id < bindparam("before"))
    .order_by(deliveries.c.message)
    .limit(_LIMIT)
)
QUEUED_BY_SENDER = (
    select(_senders.c.name, func.count().label("number"), func.sum(deliveries.c.owed).label("requests"))
    .join_from(deliveries, _senders, deliveries.c.sender == _senders.c.id)
    .where(_OF_AGENT, QUEUED)
    .group_by(_senders.c.name)
    .order_by(func.count().desc(), _senders.c.name)
)
SHOWN_AT_EVENT = (
    select(deliveries.c.recipient, deliveries.c.message, deliveries.c.urgent, agents.c.ended)
    .join_from(deliveries, agents, deliveries.c.recipient == agents.c.id)
    .where(deliveries.c.event_id == bindparam("at_event"), deliveries.c.stage == "shown")
)
BOUNCED_COUNTS = select(
    func.count().label("queued"), func.coalesce(func.sum(deliveries.c.urgent), 0).label("urgent")
).where(_OF_AGENT, deliveries.c.stage == "bounced")

# -- answers -------------------------------------------------------------------------------------------

_ANSWERABLE = (
    select(deliveries.c.message, deliveries.c.stage, deliveries.c.urgent)
    .join_from(deliveries, messages, deliveries.c.message == messages.c.id)
    .where(
        _OF_AGENT,
        deliveries.c.message <= bindparam("reply_to"),
        deliveries.c.sender.in_(bindparam("senders", expanding=True)),
        deliveries.c.stage != "answered",
        messages.c.thread == bindparam("in_thread"),
    )
)
REPLIED_TO = _ANSWERABLE.where(deliveries.c.message == bindparam("reply_to"))
ASKED_EARLIER = _ANSWERABLE.where(UNANSWERED)

# -- updates -------------------------------------------------------------------------------------------

UPDATE_DELIVERY = update(deliveries).where(_OF_AGENT, deliveries.c.message == bindparam("number"))
UPDATE_QUEUED = update(deliveries).where(_OF_AGENT, QUEUED)
UPDATE_BOUNCED = update(deliveries).where(_OF_AGENT, deliveries.c.stage == "bounced")
UPDATE_AGENT = update(agents).where(agents.c.id == bindparam("agent"))
MARK_NOTIFIED = UPDATE_DELIVERY.values(told=deliveries.c.told.bitwise_or(bindparam("reason")))

# -- pruning -------------------------------------------------------------------------------------------

_is_queued = exists().where(
    deliveries.c.message == messages.c.id, deliveries.c.stage == "queued", deliveries.c.recipient != SCRIPT.id
)
_is_in_transit = or_(
    exists().where(pending.c.message == messages.c.id), exists().where(outbox.c.message == messages.c.id)
)
_OLD_MESSAGES = (
    select(messages.c.id, messages.c.at, or_(_is_queued, _is_in_transit).label("is_queued"))
    .where(messages.c.at < bindparam("horizon"))
    .order_by(messages.c.at, messages.c.id)
    .limit(_LIMIT)
)


def old_messages(after: tuple[float, int] | None) -> Select[Any]:
    """Select messages from before a time, oldest first, after a pair of time and id; `None` starts at the oldest.

    Their `is_queued` is true for a message that is queued for an agent or on its way to another host. The parameters
    are `horizon` (a Unix time) and `limit`.
    """
    if after is None:
        return _OLD_MESSAGES
    return _OLD_MESSAGES.where(tuple_(messages.c.at, messages.c.id) > tuple_(literal(after[0]), literal(after[1])))


_children = agents.alias("children")
OLD_AGENTS = select(agents.c.id).where(
    agents.c.id >= FIRST_ID,
    agents.c.ended > 0,
    agents.c.ended < bindparam("horizon"),
    ~exists().where(messages.c.sender == agents.c.id),
    ~exists().where(deliveries.c.recipient == agents.c.id),
    agents.c.id.not_in(select(_children.c.parent)),
)
