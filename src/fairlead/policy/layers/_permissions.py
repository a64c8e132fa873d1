"""The answers of the section `permissionRequest` to the client's permission requests."""

from __future__ import annotations

from fairlead.events import HookOutput
from fairlead.policy._globs import glob_test
from fairlead.policy.guards._evaluation import GuardResult, RuleCheck
from fairlead.structs import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlead.policy.config._types import Layer


class Permissions:
    """The section `permissionRequest`: the globs of all files, and the default of the nearest file that has one.

    A file that is not trusted can only deny: it denies the tools that its globs deny and, if its default is `deny`,
    those that its globs do not allow.
    """

    def __init__(self, layers: Iterable[Layer]) -> None:
        layers = tuple(layers)
        self._untrusted = tuple(
            Permissions((replace(layer, trusted=True),))
            for layer in layers
            if not layer.trusted and layer.policy.permission_request is not None
        )
        sections = [(layer.file, layer.policy.permission_request) for layer in layers if layer.trusted]
        given = [(file, section) for file, section in sections if section is not None]
        self._default = next(((file, section.default.lower()) for file, section in given), None)
        self._deny = [_Glob(file, "deny", *glob) for file, section in given for glob in enumerate(section.deny or ())]
        self._allow = [
            _Glob(file, "allow", *glob) for file, section in given for glob in enumerate(section.allow or ())
        ]

    def check(self, tool: str) -> GuardResult:
        """Return the answer to a request for a tool: an empty output if no file decides it."""
        for section in self._untrusted:
            result = section.check(tool)
            if result.output.blocked:
                return result
        if self._default is None:
            return GuardResult(HookOutput())
        checks: list[RuleCheck] = []
        if (glob := _first(self._deny, tool, checks)) is not None:
            reason = f"Tool '{tool}' blocked by permissionRequest.deny pattern: {glob.pattern}"
            return GuardResult(HookOutput.deny(reason), tuple(checks))
        if _first(self._allow, tool, checks) is not None:
            return GuardResult(HookOutput.grant(), tuple(checks))
        file, default = self._default
        checks.append(RuleCheck("permissionRequest.default", default, file, matched=True, why="no pattern matched"))
        reason = f"Tool '{tool}' blocked by permissionRequest.default setting"
        return GuardResult(HookOutput.grant() if default == "allow" else HookOutput.deny(reason), tuple(checks))


class _Glob:
    __slots__ = ("missed", "pattern", "test")

    def __init__(self, file: str, key: str, index: int, pattern: str) -> None:
        self.pattern = pattern
        self.test = glob_test(pattern)
        self.missed = RuleCheck(
            f"permissionRequest.{key}[{index}]", pattern, file, matched=False, why="the pattern does not match"
        )


def _first(globs: Iterable[_Glob], tool: str, checks: list[RuleCheck]) -> _Glob | None:
    for glob in globs:
        if glob.test is None or glob.test(tool):
            checks.append(replace(glob.missed, matched=True, why=f"{tool} matches"))
            return glob
        checks.append(glob.missed)
    return None
