"""The guards of a policy on tool calls and permission requests. Compiled once for many calls.

Fails closed: `answer` denies if a guard raises, and so does the hook manager.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from fairlead.clients import client_named
from fairlead.events import HookOutput, PermissionRequest, PreToolUse
from fairlead.policy._globs import glob_test
from fairlead.policy.config._merge import merge_layers
from fairlead.policy.guards._agent_rules import AgentRules
from fairlead.policy.guards._bash_guard import BashGuard
from fairlead.policy.guards._call_guard import CallGuard
from fairlead.policy.guards._file_rules import FileRules
from fairlead.policy.guards._own_files import OwnFiles
from fairlead.policy.guards._tool_rules import ToolRules
from fairlead.policy.guards._verdict import Evaluation, RuleCheck, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fairlead.events import Event
    from fairlead.policy.config._types import Layer

__all__ = ["GUARD_NAME", "PERMISSION_NAME", "Guards", "RuleCheck", "Verdict"]

GUARD_NAME = "policy.guards"
PERMISSION_NAME = "policy.permissions"


class Guards:
    """All guards of a policy. `layers` are its files, nearest first."""

    def __init__(self, layers: Sequence[Layer], environ: Mapping[str, str] | None = None) -> None:
        settings = merge_layers(layers).pre_tool_use
        self._unparsable = settings.bash.unparsable
        self._home = layers[0].folder if layers else "/"
        self._own = OwnFiles(layers, os.environ if environ is None else environ) if settings.protect_own_files else None
        self._tools = ToolRules(layers)
        self._agents = AgentRules(layers)
        self._files = FileRules(layers, settings)
        bash = BashGuard(self._tools, self._files, self._own, has_policy=any(map(_restricts_agents, layers)))
        self._calls = CallGuard(self._tools, self._files, self._own, bash)
        self._permissions = _Permissions(layers)

    def check(self, event: PreToolUse) -> Verdict:
        """Check a tool call."""
        client = client_named(event.client)
        tool = event.tool_name
        evaluation = Evaluation(tool, event.agent_type, event.cwd or self._home, also=client.same_tools.get(tool, tool))
        call = client.tool_call(tool, event.tool_input)
        evaluation.has_command = call.command is not None
        if evaluation.has_command and call.kind != "shell":
            evaluation.also = client.default_tools.get("shell", tool)
        blocked = self._agents.check(evaluation, call) or self._calls.check(evaluation, call)
        return evaluation.verdict(blocked, self._unparsable)

    def answer(self, event: Event) -> HookOutput:
        """Return the output for an event that guards decide. A guard that fails denies."""
        try:
            if isinstance(event, PreToolUse):
                return self.check(event).output
            if isinstance(event, PermissionRequest):
                return self.check_permission(event).output
        except Exception as error:  # noqa: BLE001 - a gate fails closed, whatever went wrong
            name = GUARD_NAME if isinstance(event, PreToolUse) else PERMISSION_NAME
            return HookOutput.deny(f"hook {name!r} failed, so this is denied: {type(error).__name__}: {error}")
        return HookOutput()

    def check_permission(self, event: PermissionRequest) -> Verdict:
        """Answer a permission request."""
        return self._permissions.check(event.tool_name)


class _Permissions:
    """The section `permissionRequest`: the globs of all files, and the default of the nearest file that has one."""

    def __init__(self, layers: Iterable[Layer]) -> None:
        sections = [(layer.file, layer.policy.permission_request) for layer in layers]
        given = [(file, section) for file, section in sections if section is not None]
        self._default = next(((file, section.default.lower()) for file, section in given), None)
        self._deny = [_Glob(file, "deny", *glob) for file, section in given for glob in enumerate(section.deny or ())]
        self._allow = [
            _Glob(file, "allow", *glob) for file, section in given for glob in enumerate(section.allow or ())
        ]

    def check(self, tool: str) -> Verdict:
        if self._default is None:
            return Verdict(HookOutput())
        checks: list[RuleCheck] = []
        if (glob := _first(self._deny, tool, checks)) is not None:
            reason = f"Tool '{tool}' blocked by permissionRequest.deny pattern: {glob.pattern}"
            return Verdict(HookOutput.deny(reason), tuple(checks))
        if _first(self._allow, tool, checks) is not None:
            return Verdict(HookOutput.grant(), tuple(checks))
        file, default = self._default
        checks.append(RuleCheck("permissionRequest.default", default, file, matched=True, why="no pattern matched"))
        reason = f"Tool '{tool}' blocked by permissionRequest.default setting"
        return Verdict(HookOutput.grant() if default == "allow" else HookOutput.deny(reason), tuple(checks))


class _Glob:
    __slots__ = ("missed", "pattern", "test")

    def __init__(self, file: str, key: str, at: int, pattern: str) -> None:
        self.pattern = pattern
        self.test = glob_test(pattern)
        self.missed = RuleCheck(
            f"permissionRequest.{key}[{at}]", pattern, file, matched=False, why="the pattern does not match"
        )


def _first(globs: Iterable[_Glob], tool: str, checks: list[RuleCheck]) -> _Glob | None:
    for glob in globs:
        if glob.test is None or glob.test(tool):
            checks.append(msgspec.structs.replace(glob.missed, matched=True, why=f"{tool} matches"))
            return glob
        checks.append(glob.missed)
    return None


def _restricts_agents(layer: Layer) -> bool:
    """Return whether a file sets anything but how the user is notified."""
    return layer.given is None or layer.given.keys() != {"attention"}
