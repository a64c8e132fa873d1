"""The command lines of the mail, without a daemon: what is a name and what is text, slips of the pen, help."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import pytest

from fairlead.cli import send
from fairlead.cli.mailing import read_mail_options, read_text
from fairlead.cli.options import read, read_number, read_span
from fairlead.errors import FairleadError, UsageError
from fairlead.mail import MAX_BODY_BYTES

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS = (
    *("send", "inbox", "read", "reply", "poll", "agents", "status", "heartbeat", "identity", "tasks", "topics"),
)


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
    ],
)
def test_names_and_text_are_told_apart(words: list[str], names: list[str], body: str) -> None:
    given = read_mail_options("send", words, flags=send._FLAGS, values=send._VALUES)
    assert send._split(given) == (names, body)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["send"], "send: to whom? Name an agent"),
        (["send", "amber-fox"], "send: there is nothing to send"),
        (["send", "amber-fox", " "], "send: there is nothing to send"),
        (["send", "--to", "a", "one", "two"], "send: one text, not several: 'one'"),
        (["send", "a", "x", "--priority", "huge"], "--priority: expected one of urgent, normal, low, got 'huge'"),
        (["send", "a", "x", "--deadline", "soon"], "--deadline: expected a time like 30s, 10m, 2h or 1d, got 'soon'"),
        (["send", "a", "x", "--subject"], "--subject needs a value"),
        (["send", "a", "x", "--nope"], "unknown option '--nope'; see fairlead send --help"),
        (["reply"], "reply: to which message?"),
        (["reply", "12"], "reply: there is nothing to send"),
        (["reply", "twelve", "x"], "reply: expected a whole number above 0, got 'twelve'"),
        (["reply", "12", "x", "y"], "reply: one text, not several: 'y'"),
        (["read"], "read: give the number of one message"),
        (["read", "0"], "read: expected a whole number above 0, got '0'"),
        (["read", "1", "2"], "read: give the number of one message"),
        (["inbox", "12"], "inbox takes options alone, got '12'"),
        (["inbox", "--limit", "-1"], "--limit: expected a whole number above 0, got '-1'"),
        (["poll", "now"], "poll takes options alone, got 'now'"),
        (["poll", "--wait", "2d"], "--wait: a day at most, got '2d'"),
        (["poll", "--wait", "1"], "--wait: expected a time like 30s"),
        (["poll", "--format", "xml"], "--format: expected one of text, json, hook, context, got 'xml'"),
        (["agents", "me"], "agents takes options alone, got 'me'"),
        (["status", "1", "2"], "status takes the number of one message, got 1 2"),
        (["heartbeat", "now"], "heartbeat takes options alone, got 'now'"),
        (["identity", "steal"], "identity takes one of current, save, restore, rename, got 'steal'"),
        (["identity", "rename"], "identity rename: which name?"),
        (["identity", "save", "a", "b"], "identity save: too many words: 'b'; put a text in quotes"),
        (["tasks", "all"], "tasks takes options alone, got 'all'"),
        (["topics", "make"], "topics takes one of list, join, leave, got 'make'"),
        (["topics", "join"], "topics join: name one topic"),
        (["topics", "list", "x"], "topics list: it takes no name"),
    ],
)
def test_a_slip_of_the_pen_is_named(args: list[str], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        import_module(f"fairlead.cli.{args[0]}").run(args[1:])
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example_and_the_exit_codes(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert import_module(f"fairlead.cli.{command}").run(["--help"]) == 0
    text = capsys.readouterr().out
    assert f"usage: fairlead {command}" in text
    assert "example" in text
    assert f"\n  fairlead {command}" in text or f"| fairlead {command}" in text
    assert "\nexit codes: 0 " in text
    assert max(map(len, text.splitlines())) <= 120


@pytest.mark.parametrize(("text", "seconds"), [("30s", 30), ("10m", 600), ("2h", 7200), ("1d", 86400)])
def test_times_are_read(text: str, seconds: float) -> None:
    assert read_span("--wait", text) == seconds


@pytest.mark.parametrize("text", ["", "s", "5", "5x", "-5s", "1.5h", "٣m", "9999999999d"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="expected a time like"):
        read_span("--wait", text)


def test_a_number_may_be_written_as_it_is_shown() -> None:
    assert read_number("read", "#12") == 12


def test_the_last_value_of_an_option_counts() -> None:
    assert read("x", ["--a", "1", "--a=2"], values=("--a",)).value("--a") == "2"


def test_a_text_that_is_too_long_or_none_is_refused_before_it_is_sent(tmp_path: Path) -> None:
    file = tmp_path / "text"
    with pytest.raises(FairleadError, match="text: the text cannot be read: No such file or directory"):
        read_text(str(file))
    file.write_bytes(b"x" * MAX_BODY_BYTES)
    assert len(read_text(str(file))) == MAX_BODY_BYTES
    file.write_bytes(b"x" * (MAX_BODY_BYTES + 1))
    with pytest.raises(FairleadError, match=f"more than the {MAX_BODY_BYTES} bytes that a message holds"):
        read_text(str(file))
    file.write_bytes(b"ab\xff")
    with pytest.raises(FairleadError, match="not UTF-8 at byte 2"):
        read_text(str(file))
