"""A compiled program, of which no guard can know what it does, edits a protected file in the real client."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from e2e.conftest import unavailable
from e2e.installed import with_hooks
from e2e.model import after, bash, call

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from e2e import sealed
    from e2e.installed import Machine
    from e2e.model import Turn

POLICY = """
    preToolUse:
      preventRootAdditions: false
      integrity: {mode}
      uneditableFiles: [.env]
    """
CHANGED = "- .env was changed (preToolUse.uneditableFiles '.env')"
BEFORE, AFTER = "KEY=1\n", "KEY=2\n"
PROGRAM = """
#include <stdio.h>
#include <unistd.h>
int main(int count, char **words) {
    volatile int key = 1;
    char name[] = "/dow";
    for (char *at = name; *at; at++) *at ^= key;
    if (count > 1) sleep(2);
    FILE *file = fopen(name, "w");
    return file == NULL || fputs("KEY=2\\n", file) < 0 || fclose(file) != 0;
}
"""
"""Writes `.env`, whose name is neither in the command nor in the program; with an argument, after two seconds."""


@pytest.fixture
def here(client: Path) -> Iterator[Machine]:
    """A machine with the hooks, a protected file, and the program in the project."""
    with with_hooks(client) as made:
        _compile(made.project / "format")
        (made.project / ".env").write_text(BEFORE)
        yield made


def _compile(program: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        unavailable("there is no C compiler")
    command = [compiler, "-x", "c", "-o", str(program), "-"]
    subprocess.run(command, input=PROGRAM, text=True, check=True, capture_output=True)
    assert os.access(program, os.X_OK)
    assert b".env" not in program.read_bytes()


def shown_to_user(run: sealed.Run) -> str:
    """What the client tells the user beside the model's answers."""
    rows = [json.loads(row) for row in run.stdout.splitlines()]
    return "\n".join(row["content"] for row in rows if row.get("subtype") == "informational")


def as_stream(here: Machine, *script: Turn) -> sealed.Run:
    return here.prompt(script, words=("--output-format", "stream-json", "--verbose"))


def test_a_compiled_program_edits_a_protected_file_and_it_is_put_back(here: Machine) -> None:
    here.policy(POLICY.format(mode="restore"))

    run = as_stream(here, here.when_warm([bash("true")]), [bash("./format")], "Done.")

    (kept,) = (here.state / "integrity").iterdir()
    assert ((here.project / ".env").read_text(), kept.read_text()) == (BEFORE, AFTER)
    assert run.requests[-1].holds("This call has changed files that the policy protects from you")
    assert run.requests[-1].holds("- .env was changed (preToolUse.uneditableFiles '.env'); it was put back.")
    assert f"{CHANGED} by `./format`. It was put back; the changed version is {kept}." in shown_to_user(run)


def test_without_the_wish_to_restore_it_is_reported_and_left(here: Machine) -> None:
    here.policy(POLICY.format(mode="report"))

    run = as_stream(here, here.when_warm([bash("./format")]), "Done.")

    assert (here.project / ".env").read_text() == AFTER
    assert run.requests[-1].holds("- .env was changed (preToolUse.uneditableFiles '.env'); it is left as it is now.")
    assert f"{CHANGED} by `./format`. It is left as it is now." in shown_to_user(run)


def test_what_a_background_command_does_is_reported_at_the_next_call(here: Machine) -> None:
    here.policy(POLICY.format(mode="restore"))
    background = call("Bash", command="./format later", description="scripted", run_in_background=True)
    has_changed = f"until grep -qs 2 {here.project}/.env; do sleep 0.05; done"

    run = as_stream(here, here.when_warm([background]), after(has_changed, [bash("true")]), "Done.")

    assert (here.project / ".env").read_text() == AFTER
    assert f"{CHANGED} while several calls could have done it: `./format later`" in shown_to_user(run)
