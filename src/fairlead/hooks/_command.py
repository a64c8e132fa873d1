"""A hook that is a command: the event's payload on its stdin, the answer on its stdout."""

from __future__ import annotations

import os
import re
from time import monotonic
from typing import TYPE_CHECKING

from fairlead.errors import RegistrationError
from fairlead.events import Event, HookEvent, HookOutput, encode_json, to_payload
from fairlead.events._names import snake
from fairlead.hooks._hook import DEFAULT_TIMEOUT, Hook, Phase

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fairlead.hooks._context import HookContext
    from fairlead.hooks._match import Matcher

_PLACEHOLDER = re.compile(r"\$\{(\w+)\}")


class CommandHook(Hook):
    """Runs a command at each event: by a shell, or, if `args` is given, directly.

    The command gets the client's payload on its stdin, with the event's name as `event` too, and `EVENT` in
    its environment. Exit 2 blocks with stderr as the reason; no output allows; any other failure counts as the
    hook's failure. It runs in a process group of its own, which is killed when time is up.
    """

    keeps_deadline = True

    def __init__(  # noqa: PLR0913 - one parameter for each thing a command can be given
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
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Take a shell's text as `command`, or a program with its `args`."""
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
        self.env = dict(env or {})

    def execute(self, event: Event, ctx: HookContext) -> HookOutput:
        """Run the command and read its answer."""
        from fairlead.hooks._answer import read_answer
        from fairlead.process import run_process

        env = {**os.environ, "EVENT": snake(event.event_name), **ctx.env, **self.env}
        done = run_process(
            self._argv(env, event.client),
            stdin_for(event),
            cwd=_cwd(event, ctx),
            env=env,
            deadline=ctx.deadline if ctx.deadline is not None else monotonic() + self.timeout,
            cancellation=ctx.cancellation,
        )
        return read_answer(event, done.exit_code, done.stdout, done.stderr)

    def _argv(self, env: Mapping[str, str], client: str) -> list[str]:
        if self.args is None:
            return [self.shell, "-c", self.command]
        return [_filled(part, env, client) for part in (self.command, *self.args)]


def stdin_for(event: Event) -> bytes:
    """Write what a command reads: the client's payload, and the event's name under `event` as well."""
    payload = to_payload(event)
    payload.setdefault("event", snake(event.event_name))  # FileChanged has an `event` of its own
    return encode_json(payload)


def _filled(part: str, env: Mapping[str, str], client: str) -> str:
    """Put in the two folders that the client puts in; without a shell nobody else would."""
    from fairlead.clients import client_or_default

    variables = client_or_default(client).variables
    folders = {variables.project_dir, variables.plugin_root}
    return _PLACEHOLDER.sub(lambda found: env.get(found[1], found[0]) if found[1] in folders else found[0], part)


def _cwd(event: Event, ctx: HookContext) -> str | None:
    """Run where the caller says; else where the agent is, unless that folder is gone."""
    if ctx.cwd and ctx.cwd != event.cwd:
        return ctx.cwd
    return event.cwd if event.cwd and os.path.isdir(event.cwd) else None
