"""Formats messages and deliveries. In text of others, control characters are replaced, and each line is quoted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead.mail import FAIRLEAD, PEER_WARNING, USER
from fairlead.text import ago, clock, duration, one_line, printable_lines
from fairlead.text import table as text_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from fairlead.cli.support.invocation import Screen

    Row = Mapping[str, Any]

_COLOURS = {
    **dict.fromkeys(("urgent", "bounced"), "31"),
    **dict.fromkeys(("active", "new"), "32"),
    **dict.fromkeys(("idle", "owed", "request"), "33"),
    **dict.fromkeys(("offline", "read", "answered", "low"), "2"),
}
_MAX_NAMES = 10
_MAX_TITLE_LENGTH = 100


def table(rows: Sequence[Sequence[str]], screen: Screen) -> Iterator[str]:
    """Yield the rows in columns. If the screen has colours, cells that begin with a word of `_COLOURS` are coloured."""

    def painted(cell: str) -> str:
        colour = _COLOURS.get(cell.split(" ", 1)[0].rstrip(","))
        return screen.paint(colour, cell) if colour else cell

    return text_table(rows, width=screen.columns, style=painted)


def due(deadline: float, now: float) -> str:
    """Return how much time is left until an answer is due, or how late it is."""
    left = deadline - now
    return f"due in {duration(left)}" if left >= 0 else f"late by {duration(-left)}"


def title(row: Row) -> str:
    """Return what a message is about: its subject, the start of its text, or `(no text)`."""
    return one_line(row["subject"] or row.get("preview") or row.get("body", ""), _MAX_TITLE_LENGTH) or "(no text)"


def marks(row: Row, now: float) -> str:
    """Return the priority, intent and deadline of a message that are not the default, such as `urgent, request`.

    Return "" if all are the default.
    """
    texts = [row["priority"]] if row["priority"] != "normal" else []
    texts += [row["intent"]] if row["intent"] != "inform" else []
    texts += [due(row["deadline"], now)] if row["deadline"] and not row.get("answered") else []
    return ", ".join(texts)


def inbox_lines(rows: Iterable[Row], now: float, screen: Screen) -> Iterator[str]:
    """Yield a line for each message, in columns."""
    return table(
        [
            (f"#{row['id']}", one_line(row["from"]), ago(row["at"], now), _stage(row), marks(row, now), title(row))
            for row in rows
        ],
        screen,
    )


def _stage(row: Row) -> str:
    stage = row.get("stage", "")
    return "new" if stage == "queued" else str(stage)


def delivery_lines(deliveries: Iterable[Row], now: float, screen: Screen) -> Iterator[str]:
    """Yield a line for each recipient of a message, with everything that happened to its delivery."""
    rows = [(one_line(row["recipient"]), row["stage"], _history(row, now)) for row in deliveries]
    return table(rows, screen)


def _history(delivery: Row, now: float) -> str:
    steps = [f"queued {ago(delivery['queued'], now)}", *_on_host(delivery, now)]
    if delivery["shown"]:
        steps.append(f"shown {ago(delivery['shown'], now)} at {one_line(delivery['event'])}")
    steps += [f"{word} {ago(delivery[word], now)}" for word in ("read", "answered") if delivery[word]]
    if delivery["bounced"]:
        steps.append(f"bounced {ago(delivery['bounced'], now)}: {one_line(delivery['why'])}")
    return ", ".join(steps)


def _on_host(delivery: Row, now: float) -> Iterator[str]:
    """Yield where a delivery to another host is; nothing if it was shown there, or if it is for this host."""
    host = one_line(delivery.get("host") or "")  # a daemon of an earlier version lacks the field
    if host and delivery["on_its_way"] and not delivery["bounced"]:
        yield f"on its way to {host} since {clock(delivery['on_its_way'], now)}"
    elif host and delivery["stage"] == "queued":
        yield f"at {host}, not shown yet"


def message_lines(document: Row) -> Iterator[str]:
    """Yield the lines of a message. Those of its text are quoted, so that they cannot imitate Fairlead's own lines."""
    message, now = document["message"], document["now"]
    to = ", ".join(map(one_line, message["to"]))
    special = marks(message, now)
    yield f"#{message['id']} from {one_line(message['from'])} to {to}, {ago(message['at'], now)}" + (
        f" ({special})" if special else ""
    )
    if message["subject"]:
        yield f"Subject: {one_line(message['subject'])}"
    if len(document["thread"]) > 1:
        numbers = [f"#{row['id']}" for row in document["thread"]]
        yield f"Thread: {'…, ' if len(numbers) > _MAX_NAMES else ''}{', '.join(numbers[-_MAX_NAMES:])}"
    if message["body"]:
        yield ""
        yield from quoted(message["body"])
    if message["from"] not in {USER.name, FAIRLEAD.name, document["you"]} and document["you"] != USER.name:
        yield ""
        yield PEER_WARNING
    if document["owed"]:
        yield f'It asks for an answer: fairlead reply {message["id"]} "…"'


def quoted(body: str) -> Iterator[str]:
    """Yield the lines of a text, each with the prefix `> `."""
    return (f"> {line}".rstrip() for line in printable_lines(body))


def _delivery_time(recipient: Row) -> str:
    """Return in a few words when a recipient is shown the message."""
    if recipient["name"] == USER.name:
        return "the person"
    labels = {"now": "listening now", "gone": "gone: shown if it is resumed"}
    if recipient.get("host"):
        return _remote_delivery_time(recipient)
    time = str(recipient.get("reach") or recipient["presence"])  # a daemon of an earlier version lacks the field
    return labels.get(time, time)


def _remote_delivery_time(recipient: Row) -> str:
    """Return when a recipient on another host is shown the message, as far as that host has reported."""
    labels = {"now": "listening there", "gone": "gone there: shown if it is resumed", "": "on its way"}
    if not recipient["is_connected"]:
        return "waits here: the team's relay cannot be reached"
    return labels.get(recipient["reach"], f"there {recipient['reach']}")


def sent_line(document: Row) -> str:
    """Return one line with the number of a message that was sent, and when each recipient is shown it."""
    if not document["new"]:
        return f"was sent already, as #{document['id']}"
    names = [f"{one_line(row['name'])} ({_delivery_time(row)})" for row in document["recipients"]]
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    waiting = [one_line(row["name"]) for row in document["recipients"] if row.get("held")]
    waits = f"; {', '.join(waiting[:_MAX_NAMES])}: shown after the user's next message to the agent" if waiting else ""
    return f"sent as #{document['id']} to {', '.join(names[:_MAX_NAMES])}{more}{waits}"


def user_mail_text(unread: int, owed: int) -> str:
    """Return how much mail the user has to read and to answer, for a status line; "" if there is none."""
    parts = [f"{unread} unread"] if unread else []
    parts += [f"{owed} to answer"] if owed else []
    return f"mail: {', '.join(parts)}" if parts else ""
