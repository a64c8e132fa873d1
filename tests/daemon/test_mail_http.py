"""The mail over HTTP: documents, refusals in its own words, and waits that the commit ends."""

from __future__ import annotations

import ast
import json
import shutil
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import pytest
from daemon.daemon_home import scratch_home, until
from test_docs import parts

from fairlead import mail
from fairlead.ipc import RequestRefused
from fairlead.mail import MAX_BODY_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from daemon.daemon_home import DaemonHome

ROW = {"id", "at", "from", "to", "subject", "priority", "intent", "thread", "reply_to", "deadline", "project"}
LETTER = {"recipient", "stage", "queued", "shown", "event", "read", "answered", "bounced", "why"}


class Room:
    """A home with a daemon. Its sessions are of this very process, so each request says which it is."""

    def __init__(self, home: DaemonHome) -> None:
        self.home = home
        self.names: dict[str, str] = {}

    def begin(self, session: str) -> str:
        """Let a session begin, and give its agent's name."""
        payload = self.home.payload(session_id=session, hook_event_name="SessionStart", source="startup")
        assert self.home.hook("SessionStart", payload).exit_code == 0
        self.names[session] = self.get("identity", session)["agent"]["name"]
        return self.names[session]

    def get(self, path: str, session: str, **asked: Any) -> Any:
        """Ask for something."""
        query = "&".join(f"{key}={value}" for key, value in {"session": session, **asked}.items())
        return self.home.ask("GET", f"/v1/mail/{path}?{query}", timeout=30.0)

    def post(self, path: str, session: str, timeout: float = 30.0, **asked: Any) -> Any:
        """Ask for something to be done."""
        return self.home.ask("POST", f"/v1/mail/{path}", body={"session": session, **asked}, timeout=timeout)

    def send(self, session: str, *to: str, **asked: Any) -> dict[str, Any]:
        """Send a message."""
        sent: dict[str, Any] = self.post("send", session, to=list(to), **asked)
        return sent


@pytest.fixture(scope="module")
def room() -> Iterator[Room]:
    """A daemon, and two sessions."""
    with scratch_home(FAIRLEAD_NO_DAEMON="1") as home, home.daemon():
        room = Room(home)
        room.begin("s1")
        room.begin("s2")
        yield room


@pytest.fixture
def fox(room: Room) -> str:
    return room.names["s1"]


@pytest.fixture
def owl(room: Room) -> str:
    return room.names["s2"]


def test_a_message_goes_its_way(room: Room, fox: str, owl: str) -> None:
    sent = room.send("s1", owl, subject="Which port?", body="For the tests.", intent="request")
    row = {"name": owl, "presence": "active", "reach": "at its next prompt", "held": "", "host": ""}
    assert sent["recipients"] == [row]
    assert (sent["from"], sent["new"], sent["thread"]) == (fox, True, sent["id"])
    one = sent["id"]

    listed = room.get("inbox", "s2")["messages"][0]
    assert set(listed) == ROW | LETTER | {"preview", "size"}
    assert (listed["id"], listed["stage"], listed["preview"], listed["size"]) == (one, "queued", "For the tests.", 14)

    read = room.get(f"messages/{one}", "s2")
    assert set(read["message"]) == ROW | {"body"}
    assert (read["message"]["body"], read["owed"]) == ("For the tests.", True)
    (letter,) = room.get(f"messages/{one}/ledger", "s1")["letters"]
    assert (letter["recipient"], letter["stage"], letter["read"] > 0) == (owl, "read", True)

    answer = room.post(f"messages/{one}/reply", "s2", body="8080")
    assert (answer["thread"], answer["recipients"][0]["name"]) == (one, fox)
    assert room.get(f"messages/{one}/ledger", "s1")["letters"][0]["stage"] == "answered"
    assert [row["id"] for row in room.get(f"messages/{one}", "s2")["thread"]] == [one, answer["id"]]


def test_the_ledger_of_the_first_message_of_a_long_thread_is_shown(room: Room, owl: str) -> None:
    one = room.send("s1", owl, body="the first")["id"]
    for number in range(101):
        room.post(f"messages/{one}/reply", "s2", body=str(number))

    assert room.get(f"messages/{one}/ledger", "s1")["message"]["preview"] == "the first"


def test_the_same_key_sends_once(room: Room, owl: str) -> None:
    first = room.send("s1", owl, body="once", key="k1")
    again = room.send("s1", owl, body="once", key="k1")
    assert (first["new"], again["new"], again["id"]) == (True, False, first["id"])


def test_what_a_newer_command_says_is_not_looked_at(room: Room, owl: str) -> None:
    assert room.send("s1", owl, body="x", colour="red")["new"]


def test_who_is_there_is_told_with_what_they_have_before_them(room: Room, fox: str, owl: str) -> None:
    room.send("s1", owl, body="please", intent="request")
    rows = {row["name"]: row for row in room.get("agents", "s1")["agents"]}
    assert {fox, owl} <= set(rows)
    assert rows[owl]["unread"] >= rows[owl]["queued"] >= 1
    assert rows[owl]["owes"] >= 1
    assert (rows[owl]["presence"], rows[owl]["is"]["id"]) == ("active", "s2")


def test_search_finds_what_one_wrote_or_got(room: Room, owl: str) -> None:
    sent = room.send("s1", owl, subject="The needle", body="in a haystack")
    for session in ("s1", "s2"):
        found = room.get("search", session, search="needle")["messages"]
        assert [row["id"] for row in found] == [sent["id"]]
    assert room.get("inbox", "s2", search="needle", **{"from": "User"})["messages"] == []


def test_topics_are_joined_and_left(room: Room, fox: str, owl: str) -> None:
    assert room.post("topics", "s2", action="join", topic="#build")["subscribers"] == [owl]
    assert room.send("s1", "#build", body="red")["recipients"][0]["name"] == owl
    assert room.get("topics", "s1")["topics"] == [{"name": "build", "subscribers": [owl]}]
    assert room.post("topics", "s2", action="leave", topic="build")["subscribers"] == []
    assert refusal(room, "send", to=["#build"], body="x")[:2] == (404, "NobodyThere")
    assert fox != owl


# -- refusals ------------------------------------------------------------------------------------------


def refusal(room: Room, path: str, **asked: Any) -> tuple[int, str, str]:
    """What s1 is told: the status, the kind of error, the text."""
    with pytest.raises(RequestRefused) as caught:
        room.post(path, "s1", **asked)
    told = json.loads(caught.value.text)
    return caught.value.status, told["kind"], told["error"]


@pytest.mark.parametrize(
    ("asked", "status", "kind", "part"),
    [
        ({"to": ["nobody-here"], "body": "x"}, 404, "NoSuchAgent", "no agent is called 'nobody-here'"),
        ({"to": [], "body": "x"}, 400, "BadMessage", ""),
        ({"to": ["everyone"], "body": "x" * (MAX_BODY_BYTES + 1)}, 413, "TooLarge", ""),
        ({"to": ["User"], "subject": "s" * 501}, 413, "TooLarge", ""),
        ({"to": ["User"], "body": " "}, 400, "BadMessage", ""),
        ({"to": "User", "body": "x"}, 400, "BadMessage", "Expected `array`, got `str` - at `$.to`"),
        ({"to": ["User"], "body": "x", "priority": "huge"}, 400, "BadMessage", "Invalid enum value 'huge'"),
        ({"body": "x"}, 400, "BadMessage", "missing required field `to`"),
        ({"to": ["User"], "body": "x", "as": "User"}, 403, "NotYours", "no agent can use the name of another"),
    ],
)
def test_what_cannot_be_sent_is_refused(room: Room, asked: dict[str, Any], status: int, kind: str, part: str) -> None:
    told = refusal(room, "send", **asked)
    assert told[:2] == (status, kind)
    assert part in told[2]


def test_a_session_that_nobody_has_heard_of_sends_nothing(room: Room) -> None:
    with pytest.raises(RequestRefused, match=r"answers 404.*no session 'who' is known here"):
        room.send("who", "User", body="x")


def test_nobody_writes_to_itself(room: Room, fox: str) -> None:
    assert refusal(room, "send", to=[fox], body="x")[:2] == (400, "BadMessage")


def test_a_name_with_one_letter_wrong_is_offered_the_right_one(room: Room, owl: str) -> None:
    assert refusal(room, "send", to=[owl[:-1]], body="x")[2].endswith(f"did you mean {owl}?")


def test_several_are_all_or_nothing(room: Room, owl: str) -> None:
    before = room.send("s1", owl, body="before")["id"]
    assert refusal(room, "send", to=[owl, "nobody-here"], body="x")[1] == "NoSuchAgent"
    assert room.get("inbox", "s2", limit=1)["messages"][0]["id"] == before


def test_a_message_of_others_is_theirs(room: Room, fox: str) -> None:
    sent = room.send("s2", fox, body="for you alone")
    room.begin("s3")
    for path in (f"messages/{sent['id']}", f"messages/{sent['id']}/ledger"):
        with pytest.raises(RequestRefused, match='"kind":"NotYours"'):
            room.get(path, "s3")


@pytest.mark.parametrize("number", ["0", "999999", "9" * 30])
def test_a_message_that_there_is_not_is_not_found(room: Room, number: str) -> None:
    with pytest.raises(RequestRefused, match=r"answers 404.*NoSuchMessage"):
        room.get(f"messages/{number}", "s1")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"to": ["User"], "body": "\xff"}', b'{"as": 7, "to": []}'])
def test_a_body_that_is_none_is_refused(room: Room, body: bytes) -> None:
    with pytest.raises(RequestRefused, match="the request cannot be parsed"):
        room.home.ask("POST", "/v1/mail/send", body=body)


def test_a_body_without_an_end_is_not_read_to_it(room: Room) -> None:
    with pytest.raises(RequestRefused, match="answers 413"):
        room.home.ask("POST", "/v1/mail/send", body=b'{"body": "' + b"x" * 9_000_000, timeout=60)


@pytest.mark.parametrize("query", ["limit=0", "limit=201", "before=-1", "all=perhaps"])
def test_a_query_that_makes_no_sense_is_refused(room: Room, query: str) -> None:
    with pytest.raises(RequestRefused, match="the request cannot be parsed"):
        room.home.ask("GET", f"/v1/mail/inbox?session=s1&{query}")


# -- polling -------------------------------------------------------------------------------------------


def drain(room: Room, session: str) -> None:
    """Have everything shown that waits."""
    until(lambda: not room.post("poll", session)["messages"], "nothing waits")


def test_polling_shows_each_message_once(room: Room, owl: str) -> None:
    drain(room, "s2")
    sent = room.send("s1", owl, subject="One", body="and only")
    first, second = room.post("poll", "s2", format="hook"), room.post("poll", "s2", format="hook")
    assert [message["id"] for message in first["messages"]] == [sent["id"]]
    assert first["text"].startswith("You have 1 unread message:\n- From: ")
    assert (second["messages"], second["text"]) == ([], "")
    (letter,) = room.get(f"messages/{sent['id']}/ledger", "s1")["letters"]
    assert (letter["stage"], letter["event"], letter["read"]) == ("shown", "poll", 0.0)


def test_who_waits_is_woken_by_the_commit(room: Room, owl: str) -> None:
    drain(room, "s2")
    with ThreadPoolExecutor(1) as thread:
        polling = thread.submit(room.post, "poll", "s2", timeout=60, wait=50)
        until(lambda: room.home.ask("GET", "/v1/status")["idle"] == 0.0, "it waits")
        begun = monotonic()
        sent = room.send("s1", owl, body="wake up")
        assert [message["id"] for message in polling.result(30)["messages"]] == [sent["id"]]
        assert monotonic() - begun < 20


def test_who_waits_in_vain_is_told_when_the_time_is_up(room: Room) -> None:
    drain(room, "s2")
    told = room.post("poll", "s2", wait=0.3)
    assert told["messages"] == []
    assert told["waited"] >= 0.3


def test_who_hangs_up_while_waiting_is_shown_nothing(room: Room, owl: str) -> None:
    drain(room, "s2")
    before = room.home.ask("GET", "/v1/status")["idle"]
    waiting = socket.socket(socket.AF_UNIX)
    waiting.connect(str(room.home.socket))
    body = json.dumps({"session": "s2", "wait": 60}).encode()
    waiting.sendall(b"POST /v1/mail/poll HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))
    until(lambda: room.home.ask("GET", "/v1/status")["idle"] == 0.0, "it waits")
    waiting.close()
    until(lambda: room.home.ask("GET", "/v1/status")["idle"] > 0.0, "it waits no more")
    sent = room.send("s1", owl, body="still here")
    assert [message["id"] for message in room.post("poll", "s2")["messages"]] == [sent["id"]]
    assert before >= 0.0


def test_what_was_not_printed_is_given_back(room: Room, owl: str) -> None:
    drain(room, "s2")
    sent = room.send("s1", owl, body="lost in the pipe")
    assert len(room.post("poll", "s2", id="p1")["messages"]) == 1
    assert room.post("poll", "s2", undo="p1")["undone"] == 1
    assert [message["id"] for message in room.post("poll", "s2")["messages"]] == [sent["id"]]


def test_a_daemon_that_goes_lets_go_of_who_waits(home: DaemonHome) -> None:
    with home.daemon() as daemon, ThreadPoolExecutor(1) as thread:
        room = Room(home)
        room.begin("s1")
        polling = thread.submit(room.post, "poll", "s1", timeout=60, wait=50)
        until(lambda: home.ask("GET", "/v1/status")["idle"] == 0.0, "it waits")
        daemon.send_signal(signal.SIGTERM)
        assert polling.result(30)["messages"] == []
        daemon.wait(30)


# -- trouble -------------------------------------------------------------------------------------------


def test_mail_that_cannot_be_opened_is_503_with_the_reason(home: DaemonHome) -> None:
    (home.state / "mail.db").mkdir()
    with home.daemon():
        with pytest.raises(RequestRefused, match=r"answers 503.*the mail cannot be reached: .*mail.db") as caught:
            Room(home).get("inbox", "s1")
        assert json.loads(caught.value.text)["kind"] == "MailUnreachable"
        assert home.hook("PreToolUse", home.edit("x")).exit_code == 0
        shutil.rmtree(home.state / "mail.db")
        room = Room(home)
        until(lambda: _begins(room), "the mail is opened by itself when it can be")


def _begins(room: Room) -> bool:
    try:
        return bool(room.begin("s1"))
    except RequestRefused:
        return False


# -- the documents -------------------------------------------------------------------------------------


def test_every_refusal_is_explained() -> None:
    """The mail's errors have classes of their own, which the test of the documents does not know."""
    root = Path(__file__).parents[2]
    explained = " ".join((root / "docs/troubleshooting.md").read_text("utf-8").split())
    daemon = root / "src/fairlead/daemon"
    files = [*(daemon / "mail").glob("*.py"), *(daemon / "http").glob("*.py")]
    told = [
        part
        for file in files
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in mail.__all__
        for argument in node.args
        for part in parts(argument)
    ]
    assert len(told) >= 10
    assert [part for part in told if part not in explained] == []
