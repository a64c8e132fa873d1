"""What a launcher is told: output to print, a plan to run, or a token to wait for."""

from __future__ import annotations

import msgspec

from fairlead.journal import Verdict

OK = 200
PLAN = 202
WAIT = 303
BAD_REQUEST = 400
NOT_FOUND = 404
NOT_THIS_DAEMON = 421
UPGRADE_REQUIRED = 426
UNAVAILABLE = 503


class HookReply(msgspec.Struct, frozen=True):
    """The reply to one hook. Its status is one of HTTP's: print this (200), run this (202), wait for this (303)."""

    status: int
    exit: int = 0
    stdout: bytes = b""
    """In a 202, the decision as JSON."""
    stderr: bytes = b""
    verdict: Verdict = "none"
    reason: str = ""
    undo_id: str = ""
    """The event's id, if an extension must know that the reply was not delivered."""
    token: str = ""
    """In a 303, what to ask for."""
    milliseconds: int = 0
    """In a 303, how long the wait may take."""

    def headers(self) -> list[tuple[bytes, bytes]]:
        """Return the HTTP headers."""
        headers = [
            (b"fairlead-exit", b"%d" % self.exit),
            (b"fairlead-stdout", b"%d" % len(self.stdout)),
            (b"content-length", b"%d" % (len(self.stdout) + len(self.stderr))),
        ]
        if self.token:
            headers.append((b"location", b"/v1/waits/%b" % self.token.encode()))
            headers.append((b"fairlead-wait", b"%d" % self.milliseconds))
        return headers


def error_reply(status: int, text: str) -> HookReply:
    """Return a reply that makes the launcher decide without this daemon."""
    return HookReply(status, stdout=text.encode(errors="replace"))
