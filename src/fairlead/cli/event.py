"""`fairlead <Event>`: reads a payload, evaluates it under the policy and the named hooks, and answers the client.

Does not import Click: the client waits for this process at every event that no daemon answers.
"""

from __future__ import annotations

import os
import sys
from time import monotonic, perf_counter

from fairlead.cli.event_process import EventOptions, find_policy_of, parse_options, record
from fairlead.clients import client_named
from fairlead.decide import GUARDED_EVENTS, WAKE_EVENTS, Settled, decide, decide_with_hooks
from fairlead.errors import FairleadError
from fairlead.events import HookEvent, HookOutput
from fairlead.execute import cancelled_by_signals, execute, read_stdin, reserved_stdout, write_answer
from fairlead.process import CancellationToken
from fairlead.structs import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlead.decide import Decision, HookCause, PolicyContext
    from fairlead.events import Event
    from fairlead.policy import Guards, Layer

HELP = """\
Fairlead, the hook runtime for coding agents.

Usage: fairlead EVENT [OPTIONS] < payload.json

  Decide one event, as the client's hook: under the policy file that applies in its folder, and by the
  hooks that are named. An event is written as the client writes it, such as PreToolUse.

Options:
  --hooks FILE.py[:NAME]  Run the hooks of the HookManager NAME in that file (default: hooks). An
                          installed module works too: --hooks mypackage.guards:hooks
  --rules FILE            Run the command hooks of that file: settings.json, a plugin's hooks.json, or a
                          skill's or subagent's Markdown with frontmatter.
  --timeout DURATION      Answer within 30s, 2m or a number of seconds. Without it, each hook and command
                          has a limit of its own.
  --client claude         The client that sends the payload and reads the answer (default: claude).
  --launched ID           For the launcher, which found no daemon: record the event and start a daemon.
  --waited, --wake        For the launcher: decide nothing; start a daemon and wait for mail.

Example:
  echo '{"session_id": "s1", "tool_name": "Bash", "tool_input": {"command": "rm -rf /"}}' |
    fairlead PreToolUse --hooks examples/security.py

Exit codes:
  0  go on; the answer is on stdout
  1  the payload or the command line is wrong; on PreToolUse this is 2
  2  blocked; the reason is on stderr
"""

_NOTHING_CAN_OBJECT = "fairlead: there is no policy, and no --hooks or --rules, so nothing can object"


def run(name: str, args: Sequence[str]) -> int:
    """Read a payload from stdin, answer the client, record the event, and return the exit code.

    `name` is the event's name in any spelling, `args` are the options after it. Raise `UsageError` if an option is
    wrong.
    """
    known = HookEvent.find(name)
    kind = known.value if known else name
    options = parse_options(args)
    client = client_named(options.client)
    started_at = perf_counter()
    payload = read_stdin(kind)
    try:
        event = client.parse(payload, kind)
    except FairleadError as error:
        answer = client.refuse(kind, payload, f"fairlead: {error}")
        print(answer.stderr, file=sys.stderr)
        if answer.stdout:
            sys.stdout.buffer.write(answer.stdout)
        record(options, kind, payload, None, "failed", answer.exit_code, str(error), perf_counter() - started_at)
        return answer.exit_code
    if _only_waits(event, options):  # never for a gate, which is always decided
        return _wait(event, payload, options)
    with reserved_stdout() as stdout:
        settled, hook = _decide(event, payload, options)
        if sys.stdout is not None:
            sys.stdout.flush()  # what hooks printed comes before the reason
        for line in settled.log:
            print(line, file=sys.stderr)
        answer = client.render(event, settled.output)
        if answer.stderr:
            print(answer.stderr, file=sys.stderr)
        waits = _waits_for_mail(event, settled, options)
        code = write_answer(stdout, b"" if waits else answer.stdout, answer.exit_code, event)
    if event.event_name == "SessionStart":
        client.export_session(os.environ.get(client.variables.env_file, ""), event.session_id)
    seconds = perf_counter() - started_at
    record(options, kind, payload, event, settled.verdict, code, settled.reason, seconds, hook)
    return _wait(event, payload, options, answer.stdout) if waits else code


def _only_waits(event: Event, options: EventOptions) -> bool:
    """Return whether this process only waits for mail, because another process decides the event or has decided it."""
    return event.event_name in WAKE_EVENTS if options.wake else options.waited and event.event_name == "Stop"


def _waits_for_mail(event: Event, settled: Settled, options: EventOptions) -> bool:
    if event.event_name != "Stop" or options.launched is None:
        return False
    from fairlead.cli.support import wait_for_mail

    return wait_for_mail.applies(event, settled.output)


def _wait(event: Event, payload: bytes, options: EventOptions, answer: bytes = b"") -> int:
    from fairlead.cli.support import wait_for_mail

    if options.wake:
        return wait_for_mail.wake(event, payload, options)
    return wait_for_mail.wait(event, payload, options, answer)


def _decide(event: Event, payload: bytes, options: EventOptions) -> tuple[Settled, str]:
    """Evaluate the event and run its commands. Return the result, and the policy's hook that decided or failed, or "".

    Hooks and policies that cannot be loaded count as hooks that fail: they deny on a gate.
    """
    token = CancellationToken()
    deadline = None if options.timeout is None else monotonic() + options.timeout
    with cancelled_by_signals(token):
        if options.hooks or options.rules or deadline is not None:
            policy = find_policy_of(event, options)
            decision = _decide_with_hooks(event, policy, options, token, deadline)
            if isinstance(decision, Settled):
                return decision, ""
        else:
            policy = find_policy_of(event, options)
            if not (options.launched or policy.layers or policy.broken):
                print(_NOTHING_CAN_OBJECT, file=sys.stderr)
            decision = _with_daemon_warning(event, policy, decide(event, policy, _guards(event, policy.layers)))
        decision, cause = _decide_by_user_hooks(event, payload, policy, decision)
        stdin = client_named(options.client).command_payload(event, payload)
        settled = execute(event, stdin, decision, cancellation=token, deadline=deadline)
    if cause is None:
        return settled, ""
    verdict, reason, hook = cause.recorded(event, settled.verdict, settled.reason)
    return replace(settled, verdict=verdict, reason=reason), hook


def _decide_by_user_hooks(
    event: Event, payload: bytes, policy: PolicyContext, decision: Decision
) -> tuple[Decision, HookCause | None]:
    """Call the hooks that the policy lists. Return the decision with their answer, and which of them decided or failed.

    If the policy lists no hooks, return the decision unchanged, and `None`.
    """
    if not policy.lists_hooks:
        return decision, None
    from fairlead.cli.hooks.decide import decide_by_user_hooks

    return decide_by_user_hooks(event, payload, policy, _guards(event, policy.layers), decision)


def _guards(event: Event, layers: tuple[Layer, ...]) -> Guards | None:
    if event.event_name not in GUARDED_EVENTS:
        return None
    from fairlead.policy import Guards

    return Guards(layers)


def _decide_with_hooks(
    event: Event, policy: PolicyContext, options: EventOptions, token: CancellationToken, deadline: float | None
) -> Decision | Settled:
    """Call the policy's guards and the hooks of `--hooks` and `--rules`, and return the decision.

    If a hook that might have denied cannot be loaded, and the event can be blocked, return a denial (`Settled`)
    instead. Otherwise print the problems to stderr.
    """
    from fairlead.cli.support import load_hooks
    from fairlead.hooks import HookContext, HookManager

    manager = HookManager()
    problems = load_hooks.load_manager(manager, event, options.hooks, options.rules)
    broken = [str(problem) for problem in problems if load_hooks.denies(problem)]
    if broken and event.can_block:
        reason = "; ".join(broken)
        return Settled(output=HookOutput.deny(reason), verdict="blocked", reason=reason)
    for problem in problems:
        print(f"fairlead: {problem}", file=sys.stderr)
    env = load_hooks.rules_env(options.rules)
    context = HookContext(event.session_id, token, cwd=event.cwd, env=env, deadline=deadline)
    if not (options.hooks or options.rules or options.launched or policy.layers or policy.broken):
        print(_NOTHING_CAN_OBJECT, file=sys.stderr)
    if event.event_name in GUARDED_EVENTS:
        from fairlead.policy import register_guards

        register_guards(manager, policy.layers)
    return _with_daemon_warning(event, policy, decide_with_hooks(event, policy, manager, context))


def _with_daemon_warning(event: Event, policy: PolicyContext, decision: Decision) -> Decision:
    """Return the decision, with a warning if the policy has checks for this event that need a daemon."""
    name = event.event_name
    has_leases = name == "PreToolUse" and any(layer.policy.leases == "block" for layer in policy.layers)
    if not has_leases and not (policy.layers and name.startswith("PostToolUse")):
        return decision
    from fairlead.decide import warn_without_daemon

    return warn_without_daemon(event, policy, decision)
