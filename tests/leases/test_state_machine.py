"""Random histories of leases, with daemons that are killed: none is lost, none is held twice or by the dead."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fairlead.daemon.leases._service import LeaseService
from fairlead.leases import Holder, WantedLease
from fairlead.sessions import Session

if TYPE_CHECKING:
    from fairlead.leases import Lease

SESSIONS = ("s1", "s2", "s3")
FILES = ("/p/a", "/p/b", "/p/src", "/p/src/c")
WHO, WHAT = st.sampled_from(SESSIONS), st.sets(st.sampled_from(FILES), min_size=1, max_size=2)
LONG = 1e12
"""A time that never comes."""


@dataclass
class Sessions:
    """The sessions that the service asks about."""

    ended: dict[str, float]
    is_checked: bool = True

    def get(self, name: str) -> Session | None:
        return Session(id=name, ended=self.ended.get(name), end_reason="other" if name in self.ended else "")


class NoMail:
    """A mail service that is not open yet."""

    def service_within(self, _: float) -> None:
        return None


class Errors:
    def report(self, text: str) -> None:
        raise AssertionError(text)


class LeaseMachine(RuleBasedStateMachine):
    """Takes and releases leases, ends sessions and kills daemons; the model is a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.sessions = Sessions({})
        self.model: dict[tuple[str, str], bool] = {}
        """By session and path: whether it is shared."""
        self.service = self.started()

    def started(self) -> LeaseService:
        parts: Any = NoMail(), self.sessions, Errors(), self.folder.name
        service = LeaseService(*parts)
        service.open()
        return service

    def living(self) -> dict[tuple[str, str], bool]:
        return {key: shared for key, shared in self.model.items() if key[0] not in self.sessions.ended}

    @rule(session=WHO, paths=WHAT, shared=st.booleans())
    def take(self, session: str, paths: set[str], *, shared: bool) -> None:
        if session in self.sessions.ended:
            return
        wanted = [WantedLease(path=path, shared=shared, until=LONG) for path in sorted(paths)]
        taken, against = self.service.take(wanted, Holder(session, "", session))
        expected = {
            (other, path)
            for (other, path), is_shared in self.living().items()
            if other != session and not (shared and is_shared) and any(meet(path, one) for one in paths)
        }
        assert {(lease.holder.session, lease.path) for lease in against} == expected
        assert bool(taken) is not bool(against)
        if taken:
            self.model |= {(session, path): shared for path in paths}

    @rule(session=WHO)
    def release(self, session: str) -> None:
        own = [lease for lease in self.service.in_force() if lease.holder.session == session]
        self.service.release(own)
        self.model = {key: shared for key, shared in self.living().items() if key[0] != session}

    @rule(session=WHO)
    def end(self, session: str) -> None:
        self.sessions.ended[session] = 1.0

    @precondition(lambda self: self.sessions.ended)
    @rule()
    def begin_again(self) -> None:
        """A session that is resumed holds nothing of what it held, once the daemon has noticed its end."""
        self.service.run_once()
        self.model = self.living()
        self.sessions.ended.clear()

    @rule()
    def kill(self) -> None:
        """Start another daemon: all that the last one said is in the file."""
        self.service = self.started()

    @rule()
    def tend(self) -> None:
        self.service.run_once()
        assert all(not self.service.holder_has_ended(lease) for lease in self.service.table.leases)

    @invariant()
    def none_is_lost_and_none_held_by_the_dead(self) -> None:
        held = {(lease.holder.session, lease.path): lease.shared for lease in self.service.in_force()}
        assert held == self.living()

    @invariant()
    def no_two_sessions_hold_the_same_file_unless_both_share_it(self) -> None:
        leases = self.service.in_force()
        assert [pair for pair in pairs(leases) if not (pair[0].shared and pair[1].shared)] == []

    def teardown(self) -> None:
        self.folder.cleanup()


def pairs(leases: list[Lease]) -> list[tuple[Lease, Lease]]:
    return [
        (one, other)
        for one in leases
        for other in leases
        if one.holder.session < other.holder.session and meet(one.path, other.path)
    ]


def meet(one: str, other: str) -> bool:
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


TestLeases = LeaseMachine.TestCase
TestLeases.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)
