"""What a plan is: commands to run, as data that can travel from the process that decides to the one that acts."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

OnFailure: TypeAlias = Literal["block-first", "never", "block-on-2"]
"""What a failing command does.

block-first  the first failure, of any kind, blocks, and the rest is not run
block-on-2   exit code 2 blocks, and the rest is not run; any other failure is logged
never        all are run; a failure is logged
"""

Shown: TypeAlias = Literal["model", "person", "log"]
"""Where the output goes that commands are asked to show: to the model as context, to the person as a message, or
to stderr alone (at `Stop` context would keep the agent going; at `PreCompact` it would change the summary)."""


class Step(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One command to run."""

    run: str
    folder: str
    """Of the policy file: what `when` is relative to."""
    cwd: str
    shell: str = "bash"
    timeout: float | None = None
    message: str | None = None
    show_command: bool = True
    show_stdout: bool = False
    show_stderr: bool = False
    max_output_lines: int | None = None
    notify: bool = False
    pattern: str | None = None
    """The key of the file that brought it."""
    when: tuple[str, ...] = ()
    observes: bool = False
    """It never blocks, whatever the plan says."""


class Plan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All that an event asks for. An empty one asks for nothing."""

    event_name: str
    session_id: str
    steps: tuple[Step, ...] = ()
    on_failure: OnFailure = "never"
    shown: Shown = "log"
    parallel: bool = False
    env: dict[str, str] = {}
    context: str | None = None
    """Text for the model, whatever the commands say."""
    log: tuple[str, ...] = ()
    """Lines for stderr."""
    infinite: str | None = None
    """What keeps the agent going when all is well."""
    max_blocks: int = 0
    """So many blocks in a row, then the agent may stop; 0 is no limit."""
    first_stop: bool | None = None
    """No block came before in this turn; `None` if the client does not say."""
    gives_path: bool = False
    """The command's last line is the path of the worktree that it made."""
