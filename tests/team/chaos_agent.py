"""An agent of the chaos, as a program: it is the client of its session, and sends, replies, reads and polls.

Arguments: its label and its seed. Lines of stdin: `{"targets": […]}` starts the sending, `stop` ends it, the end of
stdin ends the process. What it has done are lines of JSON on stdout.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from random import Random
from threading import Event, Thread
from time import monotonic, sleep
from typing import Any

from fairlead.ipc import DaemonUnavailable, RequestRefused, request

PATIENCE = 60.0
PAUSE = 0.02
MESSAGE = re.compile(r'^📬 New message from .*: "(<[a-z]+:\d+>)"$', re.MULTILINE)

SUMMED = re.compile(r"… and (\d+) more, which are not shown one by one")


class ChaosAgent:
    """One session; everything it asks for is asked again until the daemon has answered."""

    def __init__(self, label: str, seed: str) -> None:
        self.label = label
        self.random = Random(f"{label}{seed}")
        self.session = os.environ["CLAUDE_CODE_SESSION_ID"]
        self.launcher = os.environ["CHAOS_LAUNCHER"]
        self.number = 0
        self.targets: list[str] = []
        self.received: list[int] = []
        """The numbers of messages that it can reply to."""
        self.seen: set[str] = set()
        self.was_told_to_stop = self.is_quiet = False
        self.may_send, self.is_over = Event(), Event()
        os.environ["CLAUDE_PID"] = str(os.getpid())

    def run(self) -> None:
        """Work until stdin ends."""
        self.hook("SessionStart", source="startup")
        note(ready=True)
        Thread(target=self.listen, daemon=True).start()
        while not self.is_over.is_set():
            if self.may_send.is_set():
                self.random.choices((self.send, self.reply, self.poll, self.prompt), (4, 3, 3, 1))[0]()
            else:
                if self.was_told_to_stop and not self.is_quiet:
                    self.is_quiet = True
                    note(quiet=True)
                self.poll()
            sleep(PAUSE)

    def listen(self) -> None:
        """Follow stdin."""
        for line in sys.stdin:
            if line.strip() == "stop":
                self.may_send.clear()
                self.was_told_to_stop = True
            else:
                self.targets = json.loads(line)["targets"]
                self.may_send.set()
        self.is_over.set()

    # -- what agents do ----------------------------------------------------------------------------------

    def send(self) -> None:
        """Send to one or both of the others."""
        to = self.random.sample(self.targets, self.random.randint(1, len(self.targets)))
        self.write("send", {"to": to})

    def reply(self) -> None:
        """Reply to something."""
        if self.received:
            number = self.random.choice(self.received[-5:])
            if self.random.random() < 0.5:
                self.ask("GET", f"messages/{number}?variable={self.session}")
            fields = {"body": "as asked", "all": self.random.random() < 0.3}
            self.write(f"messages/{number}/reply", fields)

    def write(self, path: str, fields: dict[str, Any]) -> None:
        """Send or reply once, by a key."""
        self.number += 1
        subject = f"<{self.label}:{self.number}>"
        intent = self.random.choice(("inform", "request"))
        started = monotonic()
        sent = self.ask("POST", path, {**fields, "subject": subject, "intent": intent, "key": subject})
        to = [one["name"] for one in sent["recipients"]]
        note(sent=subject, id=sent["id"], to=to, sender=sent["from"], seconds=monotonic() - started)

    def poll(self) -> None:
        """Take new mail, by the socket. The same poll again gives back what an answer that was lost has taken."""
        taken = self.ask("POST", "poll", {"id": f"poll-{self.label}-{os.urandom(8).hex()}"})
        if taken["messages"]:
            self.received += [one["id"] for one in taken["messages"] if one["subject"].startswith("<")]
            self.note_shown([one["subject"] for one in taken["messages"] if one["subject"].startswith("<")])

    def prompt(self) -> None:
        """Take new mail, by a hook."""
        answer = json.loads(self.hook("UserPromptSubmit", prompt="go on") or "{}")
        text = answer.get("hookSpecificOutput", {}).get("additionalContext", "")
        self.note_shown(MESSAGE.findall(text))
        if summed := SUMMED.search(text):
            self.look_into_inbox(int(summed[1]))

    def look_into_inbox(self, count: int) -> None:
        """Read the subjects of so many messages that were counted and not shown, as the text says."""
        found: list[str] = []
        before = 0
        while len(found) < count:
            query = f"variable={self.session}&limit=200&before={before}"
            page = self.ask("GET", f"inbox?{query}")
            rows = [one for one in page["messages"] if one["stage"] == "shown"]
            found += [one["subject"] for one in rows if one["subject"] not in self.seen]
            before = page["more"]
            if not before:
                break
        self.note_shown([one for one in found[::-1] if one.startswith("<")])

    def note_shown(self, subjects: list[str]) -> None:
        self.seen.update(subjects)
        note(shown=subjects)

    # -- asking ------------------------------------------------------------------------------------------

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """Ask the daemon until one answers."""
        deadline = monotonic() + PATIENCE
        fields = None if body is None else {**body, "variable": self.session, "cwd": os.getcwd()}  # noqa: PTH109
        while True:
            try:
                return request(method, f"/v1/mail/{path}", fields, timeout=30.0)
            except (DaemonUnavailable, RequestRefused) as error:
                if monotonic() > deadline or (isinstance(error, RequestRefused) and error.status < 500):
                    note(failed=f"{path}: {error}")
                    raise
                sleep(PAUSE)

    def hook(self, event: str, **fields: object) -> str:
        """Run the hook of an event, and return what the agent sees."""
        payload = {"session_id": self.session, "cwd": os.getcwd(), "hook_event_name": event, **fields}  # noqa: PTH109
        command, given = [self.launcher, event], json.dumps(payload)
        done = subprocess.run(command, input=given, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:  # its stderr is ours, which is kept
            note(failed=f"hook {event}: exit {done.returncode}")
            raise SystemExit(f"the hook of {event} ended with {done.returncode}: {done.stdout}")
        return done.stdout


def note(**fact: object) -> None:
    """Print a fact."""
    print(json.dumps(fact), flush=True)


if __name__ == "__main__":
    ChaosAgent(*sys.argv[1:]).run()
