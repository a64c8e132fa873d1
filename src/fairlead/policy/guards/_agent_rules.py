"""The rules on starting subagents. The client cannot stop a subagent that is starting, so the call is blocked."""

from __future__ import annotations

from fairlead.policy._globs import glob_test
from fairlead.policy.guards._evaluation import RuleCheck

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fairlead.clients import ToolCall
    from fairlead.policy.config._types import Layer
    from fairlead.policy.guards._evaluation import Evaluation


class AgentRules:
    """The rules of all layers that deny types of subagents."""

    def __init__(self, layers: Iterable[Layer]) -> None:
        self._rules = [
            (
                glob_test(pattern),
                RuleCheck(f"subagentStart.deny[{index}]", pattern, layer.file, matched=False, why=_NO_MATCH),
            )
            for layer in layers
            for index, pattern in enumerate(layer.policy.subagent_start.deny)
        ]

    def check(self, evaluation: Evaluation, call: ToolCall) -> str | None:
        """Return why this call may not start its subagent; `None` if it may, or if it starts none."""
        if not self._rules or call.subagent is None:
            return None
        kind = call.subagent.type
        evaluation.start_subject(kind)
        return next((reason for test, rule in self._rules if (reason := _check(evaluation, kind, test, rule))), None)


_NO_MATCH = "the pattern does not match"


def _check(evaluation: Evaluation, kind: str, test: Callable[[str], object] | None, rule: RuleCheck) -> str | None:
    if test is not None and not test(kind):
        evaluation.checks.append(rule)
        return None
    message = (
        f"Blocked {evaluation.tool} operation: subagents of type '{kind}' are denied by {rule.setting} '{rule.rule}'"
    )
    return evaluation.add_match(rule, f"{kind} matches", "block", message)
