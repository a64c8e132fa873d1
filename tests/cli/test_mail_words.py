"""The command lines of the mail, without a daemon: names and text, numbers, and what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import pytest
from cli.command_line import error_of

from fairlead.cli.mail import agents, identity, inbox, poll, reply, send, status, topics
from fairlead.cli.mail.send import MessageOptions, split_words
from fairlead.cli.support.daemon_client import Request, read_body, to_query
from fairlead.cli.support.invocation import Screen
from fairlead.errors import FairleadError
from fairlead.mail import MAX_BODY_BYTES

if TYPE_CHECKING:
    from pathlib import Path

    import click

NO_DURATION = "expected a duration such as 30s, 10m, 2h or 1d, or a number of seconds, got"


def parsed(command: click.Command, words: list[str]) -> dict[str, Any]:
    """The values that Click reads from a command line."""
    return command.make_context("test", words).params


@pytest.mark.parametrize(
    ("words", "names", "body"),
    [
        (["amber-fox", "hello there"], ["amber-fox"], "hello there"),
        (["amber-fox", "hello"], ["amber-fox"], "hello"),
        (["a", "b", "hello"], ["a", "b"], "hello"),
        (["a,b", "hello"], ["a", "b"], "hello"),
        (["a", "b", "--subject", "S"], ["a", "b"], ""),
        (["a", "--subject", "S", "hello"], ["a"], "hello"),
        (["a", "b", "--subject", "S", "hello"], ["a", "b"], "hello"),
        (["a", "b", "--subject", "S", "hello", "--request"], ["a", "b"], "hello"),
        (["a", "hello there", "--subject", "S"], ["a"], "hello there"),
        (["--subject", "S", "a", "hello"], ["a"], "hello"),
        (["--subject=S", "a"], ["a"], ""),
        (["a/explore-2", "#build", "text."], ["a/explore-2", "#build"], "text."),
        (["--to", "a", "--to=b,c", "hello"], ["a", "b", "c"], "hello"),
        (["--to", "a", "--body", "hello"], ["a"], "hello"),
        (["a", "b", "--body", "hello"], ["a", "b"], "hello"),
        (["a", "--", "--hello"], ["a"], "--hello"),
        (["a", "- one\n- two"], ["a"], "- one\n- two"),
        (["a", "--not an option"], ["a"], "--not an option"),
        (["a", "-5 degrees"], ["a"], "-5 degrees"),
        (["a", "--body", "-5 degrees"], ["a"], "-5 degrees"),
    ],
)
def test_names_and_text_are_told_apart(words: list[str], names: list[str], body: str) -> None:
    values = parsed(send.send, words)
    draft = MessageOptions(**{field: values[field] for field in MessageOptions.__struct_fields__})
    found, word = split_words(values["words"], values["to"], draft)
    assert (found, draft.body_source(word)) == (names, (body, ""))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("send", "send: to whom? Name an agent; fairlead agents lists them"),
        ("send amber-fox", "send: there is nothing to send; give a text, --file FILE, or a subject"),
        ("send --to a one two", "send: unexpected argument 'one'; put the text in quotes"),
        ("send a x --priority huge", "--priority: expected one of urgent, normal, low, got 'huge'"),
        ("send a x --deadline soon", f"--deadline: {NO_DURATION} 'soon'"),
        ("send a x --subject", "--subject needs a value"),
        ("send a x --nope", "unknown option '--nope'; see fairlead send --help"),
        ("send a x --requst", "unknown option '--requst'; did you mean --request?"),
        ("send a x --sesion s1", "unknown option '--sesion'; did you mean --session?"),
        ("reply", "reply: to which message? Give its number; fairlead inbox lists them"),
        ("reply 12", "reply: there is nothing to send; give a text, --file FILE, or a lone dash for stdin"),
        ("reply twelve x", "reply: expected a whole number, 1 or more, got 'twelve'"),
        ("reply 12 x y", "reply: unexpected argument 'y'; see fairlead reply --help"),
        ("read", "read: which message? Give its number; fairlead inbox lists them"),
        ("read 0", "read: expected a whole number, 1 or more, got '0'"),
        ("read 1 2", "read: unexpected argument '2'; see fairlead read --help"),
        ("inbox 12", "inbox: unexpected argument '12'; see fairlead inbox --help"),
        ("inbox --limit -1", "--limit: expected a whole number, 1 or more, got '-1'"),
        ("poll now", "poll: unexpected argument 'now'; see fairlead poll --help"),
        ("poll --wait 2d", "--wait: at most 1d, got 172800 s"),
        ("poll --wait 1w", f"--wait: {NO_DURATION} '1w'"),
        ("poll --format xml", "--format: expected one of text, json, hook, context, got 'xml'"),
        ("agents me", "agents: unexpected argument 'me'; see fairlead agents --help"),
        ("status 1 2", "status: unexpected argument '2'; see fairlead status --help"),
        ("heartbeat now", "heartbeat: unexpected argument 'now'; see fairlead heartbeat --help"),
        ("identity steal", "unknown command 'steal' of identity; see fairlead identity --help"),
        ("identity rename", "identity rename: which name? Give a new one, e.g. fairlead identity rename reviewer"),
        (
            "identity --as a rename",
            "identity rename: which name? Give a new one, e.g. fairlead identity rename reviewer",
        ),
        ("identity save a b", "identity save: unexpected argument 'b'; see fairlead identity save --help"),
        ("tasks all", "tasks: unexpected argument 'all'; see fairlead tasks --help"),
        (
            "lease list",
            "lease: there is no file 'list'; `fairlead lease` lists the leases; for a new file: ./list",
        ),
        ("topics make", "unknown command 'make' of topics; see fairlead topics --help"),
        ("topics join", "topics join: which topic? Give its name; fairlead topics lists them"),
        ("topics --json join", "topics join: which topic? Give its name; fairlead topics lists them"),
        ("topics list x", "topics list: unexpected argument 'x'; see fairlead topics list --help"),
    ],
)
def test_what_is_wrong_is_one_line(line: str, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    command, *words = line.split()
    assert error_of(capsys, command, words) == expected


def test_an_empty_text_is_nothing_to_send(capsys: pytest.CaptureFixture[str]) -> None:
    assert error_of(capsys, "send", ["amber-fox", " "]).startswith("send: there is nothing to send")


def test_options_become_a_request_without_asking_anybody() -> None:
    """The first of the two pure functions of a command."""
    draft = MessageOptions(subject="S", request=True, deadline=60.0, key="")
    assert send.to_request(["a"], "text", draft, 1000.0, "k1") == Request(
        "POST",
        "send",
        {
            "to": ["a"],
            "body": "text",
            "subject": "S",
            "priority": "normal",
            "intent": "request",
            "deadline": 1060.0,
            "key": "k1",
        },
    )
    assert reply.to_request(12, "8080", MessageOptions(key="own"), 0.0, "k", to_all=True).fields["key"] == "own"
    assert inbox.to_request(inbox.Options(limit=999)).fields["limit"] == 200
    assert agents.to_request(agents.Options(show_all=True)).fields == {"all": "true", "project": ""}
    assert status.to_request(None) == Request("GET", "status")
    assert status.to_request(7) == Request("GET", "messages/7/ledger")
    assert identity.to_request("rename", "elk").fields["new"] == "elk"
    assert topics.to_request("list") == Request("GET", "topics")


def test_a_document_becomes_text_without_a_terminal() -> None:
    """The second of the two pure functions of a command."""
    row = {
        "id": 3,
        "from": "owl",
        "at": 0.0,
        "stage": "queued",
        "priority": "urgent",
        "intent": "inform",
        "deadline": 0.0,
        "subject": "Hello " * 9,
    }
    document = {"messages": [row], "now": 60.0, "more": 2}
    assert list(inbox.to_text(document, inbox.Options(), Screen())) == [
        f"#3  owl  1m00s ago  new  urgent  {('Hello ' * 9).strip()}",
        "there are more; the next page: --before 2",
    ]
    (line, _) = inbox.to_text(document, inbox.Options(), Screen(60, has_colour=True))
    assert line.startswith("#3  owl  1m00s ago  \x1b[32mnew\x1b[0m  \x1b[31murgent\x1b[0m  Hello")
    assert line.endswith("…")
    empty = {"messages": [], "now": 60.0, "more": 0}
    assert list(inbox.to_text(empty, inbox.Options(search="x"), Screen())) == ["nothing found"]
    assert list(poll.to_text(empty, poll.Options("hook"))) == []
    assert [poll.exit_code(empty, poll.Options(name)) for name in ("text", "json", "hook", "context")] == [3, 3, 0, 0]


@pytest.mark.parametrize(("words", "name"), [(["--session", "s1"], "s1"), (["--session-id=s1"], "s1"), ([], "")])
def test_the_session_has_its_new_and_its_old_option(words: list[str], name: str) -> None:
    values = parsed(inbox.inbox, words)
    assert values["session"] + values["session_id"] == name


def test_a_query_says_what_it_was_made_of() -> None:
    fields = {"search": "50 % of a&b=c? é漢\n#1/+~", "limit": 20, "all": "true", "from": ""}
    assert to_query(fields) == urlencode(fields, quote_via=quote)


def test_a_number_may_be_written_as_it_is_shown() -> None:
    assert parsed(status.status, ["#12"])["number"] == 12


def test_the_last_value_of_an_option_counts() -> None:
    assert parsed(inbox.inbox, ["--limit", "1", "--limit=2"])["limit"] == 2


def test_a_text_that_is_too_long_or_none_is_refused_before_it_is_sent(tmp_path: Path) -> None:
    file = tmp_path / "text"
    with pytest.raises(FairleadError, match="text: the text cannot be read: No such file or directory"):
        read_body(str(file))
    file.write_bytes(b"x" * MAX_BODY_BYTES)
    assert len(read_body(str(file))) == MAX_BODY_BYTES
    file.write_bytes(b"x" * (MAX_BODY_BYTES + 1))
    with pytest.raises(FairleadError, match=f"more than the {MAX_BODY_BYTES} bytes of a message"):
        read_body(str(file))
    file.write_bytes(b"ab\xff")
    with pytest.raises(FairleadError, match="not UTF-8 at byte 2"):
        read_body(str(file))
