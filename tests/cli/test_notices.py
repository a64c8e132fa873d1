"""Notices about single commands: each that asks for one is told of, where notifications are on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from conformance.project import Note, Project

if TYPE_CHECKING:
    from pathlib import Path

POLICY = """
notifications: {enabled: ON}
stop:
  commands:
    - {run: "true", notifyPerCommand: true}
    - {run: "true"}
    - {run: "false", notifyPerCommand: true}
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def stop(project: Project, enabled: str) -> set[Note]:
    project.policy(POLICY.replace("ON", enabled))
    payload = {"session_id": "s", "cwd": str(project.folder)}
    return set(project.fire("Stop", payload).notes)


def test_a_command_that_asks_for_it_is_told_of(project: Project) -> None:
    assert stop(project, "true") == {
        Note("Fairlead - Stop", "Command passed: true"),
        Note("Fairlead - Stop Failed", "Command failed: false"),
    }


def test_without_notifications_nothing_is_told(project: Project) -> None:
    assert stop(project, "false") == set()
