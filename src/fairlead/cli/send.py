"""`fairlead send`: a message to an agent, several, a topic, or everyone in the project."""

from __future__ import annotations

import os
import re
from time import time
from typing import TYPE_CHECKING

from fairlead.cli.mailing import WHO, ask_mail, print_json, read_mail_options, read_text
from fairlead.cli.options import choose, read_span
from fairlead.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlead.cli.options import Given

USAGE = f"""\
usage: fairlead send NAME... [--subject TEXT] [BODY | --file FILE | -] [options]

Sends a message. It is kept when this returns: the agent is shown it at its next prompt or stop, once, whether it runs
now or is resumed later; one that waits gets it at once.

  NAME                an agent as amber-fox, a subagent as amber-fox/explore-2, User (the person), #topic,
                      everyone (in this project); several with blanks or commas, or each with --to NAME
  BODY                the text; the last word, or --body TEXT
  --file FILE         the text is in that file; a lone dash reads it from stdin
  --subject TEXT      a line that says what it is about; without one, the text begins with it
  --request           it asks for an answer, and is owed until there is one (--intent request|inform|ack)
  --deadline TIME     an answer is wanted within 30m, 2h or 1d; after that you are told that there is none
  --urgent, --low     how soon it is shown: urgent mail in the middle of a turn (--priority urgent|normal|low)
  --key KEY           sent again with the same key, it is not sent again
{WHO}
examples:
  fairlead send amber-fox "The build is green again."
  fairlead send amber-fox jade-owl --subject "Review, please" --request --deadline 30m --file notes.md
  git diff | fairlead send amber-fox --subject "My patch" -

exit codes: 0 sent, or was sent already under that key; 1 nothing was sent, and stderr says why
"""

_FLAGS = ("--urgent", "--low", "--request", "--ack")
_VALUES = ("--to", "--subject", "--body", "--file", "--priority", "--intent", "--deadline", "--key")
_ADDRESS = re.compile(r"#?[\w.-]+(/[\w.-]+)*(,#?[\w.-]+(/[\w.-]+)*)*")


def run(args: Sequence[str]) -> int:
    """Send it."""
    if "--help" in args or "-h" in args:
        print(USAGE, end="")
        return 0
    given = read_mail_options("send", args, flags=_FLAGS, values=_VALUES)
    to, body = _split(given)
    if not to:
        raise UsageError("send: to whom? Name an agent; fairlead agents lists them")
    if not (body.strip() or given.value("--subject").strip()):
        raise UsageError("send: there is nothing to send; give a text, --file FILE, or a subject")
    asked = {"to": to, "subject": given.value("--subject"), "body": body, **how(given)}
    document = ask_mail("POST", "send", given, asked)
    return shown(given, document)


def shown(given: Given, document: dict[str, object]) -> int:
    """Say what became of it."""
    from fairlead.cli.letters import say, sent_line

    if "--json" in given:
        return print_json(document)
    say(sent_line(document))
    return 0


def how(given: Given) -> dict[str, object]:
    """Read how a message is to be sent. Without a key it gets one, in case that it must be asked for twice."""
    priority = "urgent" if "--urgent" in given else "low" if "--low" in given else "normal"
    intent = "request" if "--request" in given else "ack" if "--ack" in given else "inform"
    deadline = given.value("--deadline")
    if deadline and intent == "inform" and "--intent" not in given:
        intent = "request"
    return {
        "priority": choose("--priority", given.value("--priority", priority), ("urgent", "normal", "low")),
        "intent": choose("--intent", given.value("--intent", intent), ("request", "inform", "ack")),
        "deadline": time() + read_span("--deadline", deadline) if deadline else 0.0,
        "key": given.value("--key") or os.urandom(16).hex(),
    }


def text_of(given: Given, word: str) -> str:
    """Give the text: the word, or what `--body`, `--file` or a dash stand for."""
    if "--file" in given:
        return read_text(given.value("--file"))
    text = given.value("--body") if "--body" in given else word
    return read_text("-") if text == "-" else text


def _split(given: Given) -> tuple[list[str], str]:
    """Tell the text from the names: it is the last word, unless that can only be a name."""
    named = [name for value in given.options.get("--to", ()) for name in value.split(",")]
    words, body = given.texts(), ""
    has_text = "--file" in given or "--body" in given
    if words and not has_text and (named or (len(words) > 1 and _is_text(given))):
        body = words.pop()
    if named and words:
        raise UsageError(f"send: one text, not several: {words[0]!r}; put it in quotes")
    names = [name for word in words for name in word.split(",")]
    return [name.strip() for name in (*named, *names) if name.strip()], text_of(given, body)


def _is_text(given: Given) -> bool:
    """Tell whether the last word is the text: with a subject before it, a plain word may be one more name."""
    word, is_after_option = given.words[-1]
    return "--subject" not in given or is_after_option or not _ADDRESS.fullmatch(word)
