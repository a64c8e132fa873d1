"""Journals, spools and the other state files of version 0.1.0 are read."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from compat.stage import FAIRLEAD, LAUNCHER, SAMPLES, living, recent, start_of, until

if TYPE_CHECKING:
    from compat.stage import Home

FOX, OWL, CROW, WREN = (f"{n * 8}-{n * 4}-4{n * 3}-8{n * 3}-{n * 12}" for n in "1234")
"""The sessions of the samples: working, idle, ended, and one that needs the user."""
EXPLORE, CODER = f"{FOX}/a5dc68169f39536c4", f"{FOX}/a7fe81120d126f83a"
USUAL: tuple[object, ...] = ("", 0, False, "claude", "daemon", "none", [], {})
"""Defaults, which a record leaves out."""
TELLS = "attention: {desktop: false, grace: 0, channels: ['json://127.0.0.1:9']}\n"


def put(home: Home, *names: str) -> None:
    """Put samples into a home, with their times moved to now."""
    for name in names:
        source, target = SAMPLES / name, home.state / name
        for file in [source] if source.is_file() else sorted(source.iterdir()):
            to = target if source.is_file() else target / file.name
            to.parent.mkdir(mode=0o700, exist_ok=True)
            to.write_bytes(recent(file.read_bytes()))
            to.chmod(0o600)


def lines(home: Home) -> list[dict[str, Any]]:
    """Return the records of the journal's file."""
    return [json.loads(line) for line in (home.state / "journal/00000001.jsonl").read_bytes().splitlines()]


def key_of(record: dict[str, Any]) -> tuple[str, str, float]:
    return record["kind"], record.get("id", ""), record["at"]


def sessions(home: Home) -> dict[str, dict[str, Any]]:
    document = home.fairlead("sessions", "--all", "--json").json
    return {session["id"]: session for session in document["sessions"]}


# -- the journal and the spool ---------------------------------------------------------------------------


def test_the_sample_has_every_kind_of_record() -> None:
    """The sample journal has all kinds of records, all verdicts, cut payloads, subagents and mail that was shown."""
    records = [json.loads(line) for line in (SAMPLES / "journal/00000001.jsonl").read_bytes().splitlines()]
    assert {record["kind"] for record in records} == {"event", "done", "daemon"}
    verdicts = {record.get("verdict", "none") for record in records}
    assert verdicts == {"none", "said", "asked", "allowed", "blocked", "failed"}
    assert {record["agent"] for record in records if "agent" in record} == {"a5dc68169f39536c4", "a7fe81120d126f83a"}
    assert any(record.get("cut") for record in records)
    assert any("You have 1 unread message" in record.get("reason", "") for record in records)


def test_the_journal_is_read_record_for_record(home: Home) -> None:
    """`fairlead events` prints every record of an old journal with every field."""
    shutil.copytree(SAMPLES / "journal", home.state / "journal")

    printed, written = (sorted(records, key=key_of) for records in (home.events("--last", "1000"), lines(home)))
    assert len(printed) == len(written)
    for record, before in zip(printed, written, strict=True):
        assert record == {**record, **before}
        assert all(record[key] in USUAL for key in record.keys() - before.keys())
    text = home.fairlead("events", "--last", "1000").out
    for word in ("PreToolUse", "blocked", "The tests are red.", "TomorrowsEvent", "stopped: signal SIGTERM"):
        assert word in text


def test_the_daemon_goes_on_with_the_journal(home: Home) -> None:
    """A daemon appends to an old segment, changes no line of it, and reports no trouble."""
    put(home, "journal")
    before = lines(home)
    with home.daemon():
        assert home.ask("/v1/status")["troubles"] == 0
    after = lines(home)
    assert after[: len(before)] == before
    assert [record["kind"] for record in after[len(before) :]] == ["daemon", "daemon"], "its start and its stop"


def test_the_spool_is_taken_in(home: Home) -> None:
    """A daemon moves the records of an old spool into the journal, without those that are there already."""
    put(home, "journal", "spool")
    spooled = home.spooled()
    assert {record["kind"] for record in spooled} == {"event", "done"}
    twice = next(record for record in lines(home) if record["kind"] == "event")
    (home.state / f"spool/{twice['id']}.json").write_text(json.dumps(twice), encoding="utf-8")
    before = lines(home)

    with home.daemon():
        until(lambda: not home.spooled(), "the spool is empty")
        assert home.ask("/v1/status")["troubles"] == 0

    added = [record for record in lines(home)[len(before) :] if record["kind"] != "daemon"]
    assert sorted(added, key=lambda record: record["at"]) == sorted(spooled, key=lambda record: record["at"])
    assert not (home.state / "spool/broken").exists()


# -- the sessions ----------------------------------------------------------------------------------------


def test_the_sessions_are_taken_up(home: Home) -> None:
    """A daemon restores every field of each session and subagent from an old snapshot."""
    put(home, "journal", "sessions.json")
    with living() as pid:
        kept = in_process(home, pid)
        with home.daemon():
            restored = sessions(home)
            troubles = home.ask("/v1/status")["troubles"]
    assert troubles == 0
    assert list(restored) == [FOX, EXPLORE, CODER, OWL, CROW, WREN]
    assert [restored[name]["is"] for name in restored] == ["working", "ended", "working", "idle", "ended", "attention"]
    for session in kept["registry"]["sessions"]:
        known = {key: value for key, value in session.items() if key not in {"memory", "state"}}
        assert {key: restored[session["id"]][key] for key in known} == known
    assert restored[WREN]["state"] == {"is": "attention", "reason": "Permission"}


def in_process(home: Home, pid: int) -> dict[str, Any]:
    """Make a live process the one of all sessions of the snapshot; return the snapshot."""
    file = home.state / "sessions.json"
    text, start = file.read_text(encoding="utf-8"), start_of(pid) or 0
    text = re.sub(r'"pid":\d+,"pid_start":\d+', f'"pid":{pid},"pid_start":{start}', text)
    text = re.sub(r'"starts":{[^}]*}', f'"starts":{{"{pid}":{start}}}', text)
    file.write_text(text, encoding="utf-8")
    snapshot: dict[str, Any] = json.loads(text)
    return snapshot


@pytest.mark.parametrize("snapshot", [None, b'{"position": "of another version"}'], ids=["none", "unreadable"])
def test_the_sessions_are_made_anew_from_the_journal(home: Home, snapshot: bytes | None) -> None:
    """Without a readable snapshot, a daemon restores the same sessions and subagents from an old journal."""
    put(home, "journal")
    if snapshot:
        (home.state / "sessions.json").write_bytes(snapshot)
    with home.daemon():
        restored = sessions(home)
    kept = json.loads(recent((SAMPLES / "sessions.json").read_bytes()))["registry"]["sessions"]
    assert set(restored) == {session["id"] for session in kept}
    same = ("started", "cwd", "project", "parent", "agent_type", "description", "call", "first_prompt", "counters")
    for session in kept:  # its processes are gone, and its usage is in no event
        assert {key: restored[session["id"]].get(key, "") for key in same} == {
            key: session.get(key, "") for key in same
        }


def test_the_user_is_not_notified_twice(home: Home) -> None:
    """A question that an old daemon notified the user of is not repeated; a new question is notified."""
    put(home, "journal", "sessions.json", "attention.json")
    (home.state / "config.yaml").write_text(TELLS, encoding="utf-8")
    note = {"session_id": OWL, "hook_event_name": "Notification", "notification_type": "permission_prompt"}
    with living() as pid:
        in_process(home, pid)
        with home.daemon():
            until(
                lambda: home.ask("/v1/status")["attention"]["waiting"] == 1, "the daemon knows that one session waits"
            )
            command = [str(LAUNCHER), "Notification"]
            home.run(command, json.dumps({**note, "message": "?"}).encode(), env={"CLAUDE_PID": str(pid)})
            until(lambda: OWL in (home.state / "attention.json").read_text(), "the user is notified of the other")
            until(lambda: home.ask("/v1/status")["attention"]["told"], "the notification is counted")
            attention = home.ask("/v1/status")["attention"]
    assert (attention["waiting"], attention["told"]) == (2, 1)


def test_blocks_in_a_row_are_counted_on(home: Home) -> None:
    """A session with two recorded blocks may stop at `maxBlocks: 2`; another session may not."""
    put(home, "blocks")
    folder = home.project(policy="stop: {maxBlocks: 2, commands: [{run: exit 1, message: No.}]}\n")
    for session, is_kept_going in ((FOX, False), (OWL, True)):
        payload = {"session_id": session, "cwd": str(folder), "hook_event_name": "Stop", "stop_hook_active": True}
        done = home.run([str(FAIRLEAD), "Stop"], json.dumps(payload).encode(), folder)
        assert done.code == 0
        assert ('"decision":"block"' in done.out) is is_kept_going
