"""The types of a plan: the commands to run, as data that the daemon sends to the process that runs them."""

from __future__ import annotations

from fairlead.structs import LIGHT, Struct

TYPE_CHECKING = False
if TYPE_CHECKING or not LIGHT:
    from typing import Literal, TypeAlias

    OnFailure: TypeAlias = Literal["block-first", "never", "block-on-2"]
    """The effect of a failing command.

    block-first  the first failure of any kind blocks, and the remaining commands do not run
    block-on-2   exit code 2 blocks, and the remaining commands do not run; any other failure is logged
    never        all commands run; a failure is logged

    With the first two, a command that could not be run blocks too, unless its step says otherwise.
    """
    Shown: TypeAlias = Literal["model", "person", "log"]
    """Where the output of commands is shown: to the model as context, to the user as a message, or on stderr alone.

    Some events only use stderr: at `Stop` context would keep the agent going, at `PreCompact` it would change the
    summary."""


class Step(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One command to run."""

    run: str
    folder: str
    """The folder of the policy file, which `when` is relative to."""
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
    """The pattern of the command in the policy file; `None` for a command without one."""
    when: tuple[str, ...] = ()
    loose_when: bool = False
    """Whether `*` in `when` also matches slashes, as in conclaude."""
    observes: bool = False
    """Whether it never blocks, whatever the plan's `on_failure` is."""
    passes_unchecked: bool = False
    """Whether a command that could not be run does not block (`onFailure: pass`)."""


class Plan(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The commands and texts of a policy for one event. May be empty."""

    event_name: str
    session_id: str
    steps: tuple[Step, ...] = ()
    on_failure: OnFailure = "never"
    shown: Shown = "log"
    parallel: bool = False
    env: dict[str, str] = {}
    context: str | None = None
    """Text for the model, independent of the commands."""
    log: tuple[str, ...] = ()
    """Lines for stderr."""
    infinite: str | None = None
    """The message that keeps the agent going if all commands pass; `None` if it may stop then."""
    max_blocks: int = 0
    """The maximum number of blocks in a row, after which the agent may stop; 0 is no limit."""
    first_stop: bool | None = None
    """Whether no earlier stop of this turn was blocked; `None` if the client does not send it."""
    gives_path: bool = False
    """Whether the last line of the output is the path of the worktree that the command created."""
