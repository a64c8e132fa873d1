"""`CommandHook`, which runs a command that reads the event's payload from stdin and writes its answer to stdout."""

from __future__ import annotations

import os
import re
from time import monotonic
from typing import TYPE_CHECKING

from fairlead.errors import HookTimeout, RegistrationError
from fairlead.events import Event, HookEvent, HookOutput, encode_json, snake_case, to_payload
from fairlead.hooks._hook import DEFAULT_TIMEOUT, Hook, Phase
from fairlead.hooks._match import meets_condition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fairlead.hooks._context import HookContext
    from fairlead.hooks._match import Matcher

_PLACEHOLDER = re.compile(r"\$\{(\w+)\}")


class CommandHook(Hook):
    """Runs a command at each event, by a shell, or directly if `args` are given.

    The command gets the client's payload on its stdin, with the event's name in snake case added as `event`, and that
    name as `EVENT` in its environment. Exit code 2 blocks, with stderr as the reason. Exit code 0 without output
    allows. Any other exit code is a failure of the hook, unless the output blocks. The command runs in a process group
    of its own, which is killed at the timeout.
    """

    keeps_deadline = True

    def __init__(
        self,
        name: str,
        command: str,
        events: Iterable[type[Event] | HookEvent],
        *,
        matcher: Matcher | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        priority: int = 0,
        phase: Phase = "check",
        args: Sequence[str] | None = None,
        shell: str | None = None,
        condition: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Create a hook; the arguments that `Hook` has are described there.

        Raise `RegistrationError` for a blank command. `command` is a script for `shell` (/bin/sh by default), or with
        `args` the program to run. `condition` limits the hook to some tool calls, such as `Bash(git *)`. `env` has
        additional environment variables.
        """
        if not command.strip():
            raise RegistrationError(f"hook {name!r}: the command is empty")
        self.name = name
        self.command = command
        self.events = tuple(events)
        self.matcher = matcher
        self.timeout = timeout
        self.priority = priority
        self.phase = phase
        self.args = None if args is None else tuple(args)
        self.shell = shell or "/bin/sh"
        self.condition = condition
        self.env = dict(env or {})

    def execute(self, event: Event, ctx: HookContext) -> HookOutput:
        """Run the command and return its answer. If the event does not meet the condition, return no opinion.

        Raise `HookTimeout` or `CommandFailed` if the command is not in time or fails.
        """
        if self.condition is not None and not meets_condition(event, self.condition):
            return HookOutput.allow()
        from fairlead.hooks._answer import read_answer
        from fairlead.process import run_process

        env = {**os.environ, "EVENT": snake_case(event.event_name), **ctx.env, **self.env}
        result = run_process(
            self._argv(env, event.client),
            stdin_for(event),
            cwd=_cwd(event, ctx),
            env=env,
            deadline=ctx.deadline if ctx.deadline is not None else monotonic() + self.timeout,
            cancellation=ctx.cancellation,
        )
        if result.exit_code is None:
            raise HookTimeout("the command did not end in time and was killed")
        return read_answer(event, result.exit_code, result.stdout, result.stderr)

    def _argv(self, env: Mapping[str, str], client: str) -> list[str]:
        if self.args is None:
            return [self.shell, "-c", self.command]
        return [_filled(part, env, client) for part in (self.command, *self.args)]


def stdin_for(event: Event) -> bytes:
    """Return the stdin of a command: the client's payload, with the event's name in snake case added as `event`."""
    payload = to_payload(event)
    payload.setdefault("event", snake_case(event.event_name))  # FileChanged has an `event` of its own
    return encode_json(payload)


def _filled(part: str, env: Mapping[str, str], client: str) -> str:
    """Return an argument in which the variables of the project's and the plugin's folder have their values.

    `${CLAUDE_PROJECT_DIR}/lint` → `/home/me/app/lint`. Any other `${…}` stays. No shell does this here.
    """
    from fairlead.clients import client_or_default

    variables = client_or_default(client).variables
    folders = {variables.project_dir, variables.plugin_root}
    return _PLACEHOLDER.sub(lambda match: env.get(match[1], match[0]) if match[1] in folders else match[0], part)


def _cwd(event: Event, ctx: HookContext) -> str | None:
    """Return the caller's working directory, or else the agent's; `None` if that is unknown or does not exist."""
    if ctx.cwd and ctx.cwd != event.cwd:
        return ctx.cwd
    return event.cwd if event.cwd and os.path.isdir(event.cwd) else None
