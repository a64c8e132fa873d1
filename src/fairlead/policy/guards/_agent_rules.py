"""Which subagents may be started. The client cannot stop one that starts, but it can be kept from starting it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.policy.guards._verdict import RuleCheck, glob_test

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fairlead.clients import ToolCall
    from fairlead.policy.config._types import Layer
    from fairlead.policy.guards._verdict import Evaluation


class AgentRules:
    """The types of subagents that are denied."""

    def __init__(self, layers: Iterable[Layer]) -> None:
        self._rules = [
            (
                glob_test(pattern),
                RuleCheck(f"subagentStart.deny[{at}]", pattern, layer.file, matched=False, why=_MISSED),
            )
            for layer in layers
            for at, pattern in enumerate(layer.policy.subagent_start.deny)
        ]

    def check(self, case: Evaluation, call: ToolCall) -> str | None:
        """Say why this call may not start its subagent, if it may not."""
        if not self._rules or call.subagent is None:
            return None
        kind = call.subagent.type
        case.about(kind)
        return next((said for test, look in self._rules if (said := _judge(case, kind, test, look))), None)


_MISSED = "the pattern does not match"


def _judge(case: Evaluation, kind: str, test: Callable[[str], object] | None, look: RuleCheck) -> str | None:
    if test is not None and not test(kind):
        case.looked.append(look)
        return None
    message = f"Blocked {case.tool} operation: subagents of type '{kind}' are denied by {look.setting} '{look.rule}'"
    return case.found(look, f"{kind} matches", "block", message)
