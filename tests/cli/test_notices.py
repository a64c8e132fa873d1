"""Notices about single commands: each that asks for it is told of, where notifications are on."""

from __future__ import annotations

import subprocess
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


def test_a_command_that_asks_for_it_is_told_of_when_it_begins_and_when_it_ends(project: Project) -> None:
    assert stop(project, "true") == {
        Note("Fairlead - Stop", "Running: true"),
        Note("Fairlead - Stop", "Command passed: true"),
        Note("Fairlead - Stop", "Running: false"),
        Note("Fairlead - Stop Failed", "Command failed: false"),
    }


def test_a_command_that_is_not_to_be_shown_is_told_of_without_its_text(project: Project) -> None:
    project.policy(
        "notifications: {enabled: true}\n"
        "stop: {commands: [{run: 'true', notifyPerCommand: true, showCommand: false}]}\n"
    )
    assert set(project.fire("Stop", {"session_id": "s", "cwd": str(project.folder)}).notes) == {
        Note("Fairlead - Stop", "Running a command"),
        Note("Fairlead - Stop", "Command passed"),
    }


def test_a_command_that_is_not_due_is_not_told_of(project: Project) -> None:
    subprocess.run(["git", "init", "-q", str(project.folder)], check=True)
    project.policy(POLICY.replace("ON", "true").replace("notifyPerCommand", "when: '*.rs', notifyPerCommand"))
    assert project.fire("Stop", {"session_id": "s", "cwd": str(project.folder)}).notes == []


def test_without_notifications_nothing_is_told(project: Project) -> None:
    assert stop(project, "false") == set()
