"""The state and the counters of the connection to the relay. Written by the thread of the team, read by all."""

from __future__ import annotations

from time import time
from typing import Literal

ConnectionState = Literal["connecting", "connected", "unreachable", "refused"]


class ConnectionLog:
    """The state of the connection, since when and why, and counters of packets. Each field is replaced as a whole."""

    def __init__(self) -> None:
        self.state: ConnectionState = "connecting"
        self.since = time()
        self.why = ""
        """The reason why there is no connection; "" if there is one, or before the first attempt."""
        self.error = ""
        """The class name of the error that is the reason; "" without one."""
        self.location = ""
        self.revision = ""
        """The revision of the relay's schema."""
        self.offset = 0.0
        """How many seconds the relay's clock is ahead of this host's."""
        self.round_trip = 0.0
        self.last_read = 0.0
        """The Unix time at which everything was last read from the relay; 0 before that."""
        self.connections = 0
        self.pushed = 0
        self.received = 0
        self.refused = 0
        self.repeats = 0
        """Packets that were received again."""

    def note_connected(self, location: str, revision: str, offset: float, round_trip: float) -> None:
        """Record a new connection."""
        self.location, self.revision, self.offset, self.round_trip = location, revision, offset, round_trip
        self.connections += 1
        self._enter("connected", "", "")

    def note_lost_connection(self, error: Exception, *, is_refusal: bool) -> None:
        """Record that there is no connection, and why. `is_refusal`: the relay refuses this host."""
        self._enter("refused" if is_refusal else "unreachable", str(error), type(error).__name__)

    def _enter(self, state: ConnectionState, why: str, error: str) -> None:
        if state != self.state:
            self.since = time()
        self.state, self.why, self.error = state, why, error
