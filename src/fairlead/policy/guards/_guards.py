"""Checks tool calls and permission requests against a policy. `Guards` is compiled once and used for many calls.

It fails closed: if a guard raises, `Guards.answer` denies; for registered guards, the hook manager denies.
"""

from __future__ import annotations

import os

from fairlead.clients import client_named
from fairlead.errors import NeedsThread
from fairlead.events import NO_OPINION, HookOutput, PermissionRequest, PreToolUse
from fairlead.policy.config._errors import PolicyError
from fairlead.policy.config._files import LoadedPolicy, variant_of
from fairlead.policy.config._merge import merge_layers
from fairlead.policy.guards._agent_rules import AgentRules
from fairlead.policy.guards._call_guard import CallGuard
from fairlead.policy.guards._evaluation import Evaluation, FileChange, GuardResult, RuleCheck
from fairlead.policy.guards._file_rules import FileRules
from fairlead.policy.guards._shell_guards import ShellGuards
from fairlead.policy.guards.self_protection._files import ProtectedOwnFiles
from fairlead.policy.layers._by_path import PathPolicies
from fairlead.policy.layers._tool_groups import tool_rules
from fairlead.structs import LIGHT, NeedsMsgspec, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fairlead.clients import Client
    from fairlead.events import Event
    from fairlead.policy.config._errors import Diagnostic
    from fairlead.policy.config._types import Layer
    from fairlead.policy.guards._git_guard import WatchedFiles
    from fairlead.policy.layers._permissions import Permissions

__all__ = ["GUARD_NAME", "PERMISSION_NAME", "GuardResult", "Guards", "RuleCheck"]

GUARD_NAME = "policy.guards"
PERMISSION_NAME = "policy.permissions"

_MAX_ROUNDS = 4
"""The maximum number of rounds of one check: rules found in one round may concern more paths, which may be below other
policies."""
_MAX_WITH_PATH_LAYERS = 64
"""How many sets of policies above the files of calls have their compiled rules cached."""


class Guards:
    """All guards of a policy. `layers` are the policy files of a session, nearest first."""

    def __init__(
        self,
        layers: Sequence[Layer],
        environ: Mapping[str, str] | None = None,
        *,
        by_path: bool = True,
        headless: bool | None = None,
        watched: WatchedFiles | None = None,
    ) -> None:
        """Compile the guards. `by_path`: a call is also checked by the policies above the files that it touches.

        `headless`: whether the client runs without a person; by default, its variables in `environ` decide that.
        `watched`: files whose changes by git are listed although no rule is about them.
        """
        self._headless = headless
        self._watched = watched
        self._layers = tuple(layers)
        self._environ = os.environ if environ is None else environ
        self._paths = PathPolicies(self._layers) if by_path else None
        self._checks = _Checks(self._layers, (), self._environ, watched)
        self._with_path_layers: dict[tuple[int, ...], _Checks] = {}
        self._permissions: Permissions | None = None

    def check(
        self, event: PreToolUse, *, may_wait: bool = True, changes: list[FileChange] | None = None
    ) -> GuardResult:
        """Check a tool call. Without `may_wait`, raises `NeedsThread` instead of reading a policy file or asking git.

        The files that the call changes are added to `changes`. Raises `PolicyError` if a policy above a file is broken.
        """
        checks = self._checks
        headless = self._headless
        if headless is None:
            headless = client_named(event.client).is_headless(self._environ)
        loaded = LoadedPolicy()
        for _ in range(_MAX_ROUNDS):
            evaluation, result = checks.check(event, loaded.unreadable, may_wait=may_wait, headless=headless)
            if self._paths is None or (result.output is not NO_OPINION and result.output.blocked):
                break
            before, loaded = loaded, self._paths.above(evaluation.paths, may_wait=may_wait)
            if len(loaded.layers) <= len(before.layers) and loaded.unreadable == before.unreadable:
                break  # each round only adds paths
            checks = self._checks_with(loaded.layers) if loaded.layers else checks
        if changes is not None:
            changes += evaluation.changes
        return _with_warnings(result, loaded.warnings) if loaded.warnings else result

    def _checks_with(self, path_layers: tuple[Layer, ...]) -> _Checks:
        key = tuple(map(id, path_layers))
        checks = self._with_path_layers.get(key)
        if checks is None:
            if len(self._with_path_layers) >= _MAX_WITH_PATH_LAYERS:
                self._with_path_layers.clear()
            checks = self._with_path_layers[key] = _Checks(self._layers, path_layers, self._environ, self._watched)
        return checks

    def answer(self, event: Event, *, may_wait: bool = True, changes: list[FileChange] | None = None) -> HookOutput:
        """Return the output for a tool call or a permission request; for any other event, an empty one.

        A guard that fails denies; in a process with the light structs, `NeedsMsgspec` is raised instead. Without
        `may_wait`, `NeedsThread` is raised as by `check`.
        """
        try:
            if isinstance(event, PreToolUse):
                return self.check(event, may_wait=may_wait, changes=changes).output
            if isinstance(event, PermissionRequest):
                return self.check_permission(event).output
        except NeedsThread:
            raise
        except PolicyError as error:
            return HookOutput.deny(f"A policy above the files of this call cannot be read, so it is denied: {error}")
        except Exception as error:
            if LIGHT:
                raise NeedsMsgspec from error
            if isinstance(error, PermissionError) and error.filename:
                return HookOutput.deny(f"A rule depends on {error.filename}, which may not be read: make it readable.")
            name = GUARD_NAME if isinstance(event, PreToolUse) else PERMISSION_NAME
            return HookOutput.deny(f"hook {name!r} failed, so this is denied: {type(error).__name__}: {error}")
        return HookOutput()

    def check_permission(self, event: PermissionRequest) -> GuardResult:
        """Return the answer to a permission request: an empty output if no policy decides it."""
        from fairlead.policy.layers._permissions import Permissions

        if self._permissions is None:
            self._permissions = Permissions(self._layers)
        return self._permissions.check(event.tool_name)


class _Checks:
    """The compiled rules of the session's layers, and of `path_layers`, the layers above files that a call touches."""

    def __init__(
        self,
        layers: Sequence[Layer],
        path_layers: Sequence[Layer],
        environ: Mapping[str, str],
        watched: WatchedFiles | None = None,
    ) -> None:
        every = (*layers, *path_layers)
        self._clients: dict[str, Client] = {}
        self._path_layers = path_layers  # holds the layers, so that their ids are not reused
        settings = merge_layers((*layers, *(variant_of(layer, trusted=False) for layer in path_layers))).pre_tool_use
        self._unparsable = settings.bash.unparsable
        self._home = layers[0].folder if layers else "/"
        self._own = ProtectedOwnFiles(every, environ) if settings.protect_own_files else None
        self._tools = tool_rules(layers, path_layers)
        self._agents = AgentRules(every)
        self._files = FileRules(layers, path_layers)
        shell = ShellGuards(self._tools, self._files, self._own, watched, has_policy=any(map(_restricts_agents, every)))
        self._calls = CallGuard(self._tools, self._files, self._own, shell)

    def check(
        self, event: PreToolUse, unreadable: Sequence[Diagnostic], *, may_wait: bool, headless: bool
    ) -> tuple[Evaluation, GuardResult]:
        """Check a tool call; return the evaluation and the result.

        `unreadable` are the errors of policies in folders that the call touches as a whole. Without `may_wait`, raises
        `NeedsThread` instead of waiting for a process.
        """
        evaluation, result = self._check(event, unreadable, may_wait=may_wait, headless=headless)
        narrowed = _without_files(event, evaluation) if evaluation.may_leave_out else None
        if narrowed is None:
            return evaluation, result
        again, passed = self._check(narrowed, unreadable, may_wait=may_wait, headless=headless)
        if passed.output.blocked or passed.output.permission is not None:
            return evaluation, result
        output = passed.output.with_updated_input(dict(narrowed.tool_input))
        return again, replace(passed, output=output.with_context(_left_out(evaluation.may_leave_out)))

    def _check(
        self, event: PreToolUse, unreadable: Sequence[Diagnostic], *, may_wait: bool, headless: bool
    ) -> tuple[Evaluation, GuardResult]:
        client = self._clients.get(event.client) or self._client(event.client)
        tool = event.tool_name
        also = client.same_tools.get(tool, tool)
        evaluation = Evaluation(tool, event.agent_type, event.cwd or self._home, also, may_wait=may_wait)
        call = client.tool_call(tool, event.tool_input)
        evaluation.has_command = call.command is not None
        if call.kind == "search" and client.without_files(tool, event.tool_input, ()) is not None:
            evaluation.leaves_out = {}
        if evaluation.has_command and call.kind != "shell":
            evaluation.tool_alias = client.default_tools.get("shell", tool)
        blocked = None if call.subagent is None else self._agents.check(evaluation, call)
        blocked = blocked or self._calls.check(evaluation, call)
        if blocked is None and self._own is not None:
            blocked = self._own.check_input(evaluation, call, event.tool_input)
        evaluation.ask_about_policies(unreadable, reads_matter=bool(self._files.unreadable))
        result = evaluation.result(blocked, self._unparsable, headless=headless)
        if evaluation.leaves_out and not result.output.blocked:
            narrowed = client.without_files(tool, event.tool_input, [*evaluation.leaves_out])
            output = result.output.with_updated_input(narrowed or {}).with_context(_left_out(evaluation.leaves_out))
            result = replace(result, output=output)
        return evaluation, result

    def _client(self, name: str) -> Client:
        self._clients[name] = client_named(name)
        return self._clients[name]


def _without_files(event: PreToolUse, evaluation: Evaluation) -> PreToolUse | None:
    """Return a shell call, rewritten so that its searches leave out unreadable files; `None` if that is impossible."""
    from fairlead.policy.guards._narrowing import narrowed_command

    for key in client_named(event.client).command_keys:
        command = event.tool_input.get(key)
        narrowed = narrowed_command(command, evaluation.may_leave_out) if isinstance(command, str) else None
        if narrowed is not None:
            return replace(event, tool_input={**event.tool_input, key: narrowed})
    return None


def _left_out(globs: Iterable[str]) -> str:
    names = ", ".join(glob.removeprefix("**/") for glob in globs)
    return f"The search leaves out files whose contents preToolUse.unreadableFiles protects: {names}."


def _with_warnings(result: GuardResult, warnings: tuple[str, ...]) -> GuardResult:
    """Return a result with warnings for the user about the policies above the files of the call."""
    messages = filter(None, (result.output.system_message, *warnings))
    return replace(result, output=result.output.with_system_message("\n".join(messages)))


def _restricts_agents(layer: Layer) -> bool:
    """Return whether a policy file sets anything that can restrict an agent."""
    return not layer.given or not layer.given.keys() <= {"attention", "journal", "leases", "team"}
