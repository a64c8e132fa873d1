"""Runs a command in this process, through the same entry point as a user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest


def run(command: str, args: Sequence[str] = ()) -> int:
    """Run a command and return its exit code."""
    return main([*command.split(), *args])


def error_of(capsys: pytest.CaptureFixture[str], command: str, args: Sequence[str] = ()) -> str:
    """Return the one line that a command prints which fails with exit code 1."""
    assert run(command, args) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("fairlead: ")
    assert err.count("\n") == 1
    return err.removeprefix("fairlead: ").removesuffix("\n")
