"""Turns facts into findings, grouped in the order in which an event passes through the installation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.doctor.checks import _daemon as daemon
from fairlead.doctor.checks import _programs as programs
from fairlead.doctor.checks import _runs as runs
from fairlead.doctor.checks import _settings as settings
from fairlead.doctor.checks import _state as state

if TYPE_CHECKING:
    from fairlead.doctor._facts import Facts
    from fairlead.doctor._findings import Finding


def examine(facts: Facts) -> list[tuple[str, list[Finding]]]:
    """Return a title and the findings for each group of checks. Groups without findings are left out."""
    groups: list[tuple[str, list[Finding]]] = [
        ("client", [*settings.check_client(facts.client)]),
        ("install", [*settings.check_install(facts), *settings.check_double(facts), *settings.check_rivals(facts)]),
        ("questions", [*settings.check_answers(facts)]),
        ("status line", [*settings.check_status_line(facts)]),
        ("settings", [*settings.check_files(facts), *settings.check_gate(facts)]),
        ("programs", [*programs.check_programs(facts), *programs.check_path(facts)]),
        ("daemon", [*daemon.check_daemon(facts)]),
        ("hooks, run as the client does", [*runs.check_runs(facts)]),
        ("hooks of others", [*runs.check_foreign(facts)]),
        ("policy", [*state.check_policy(facts.policy)]),
        ("state", [*state.check_state(facts)]),
    ]
    return [(title, findings) for title, findings in groups if findings]
