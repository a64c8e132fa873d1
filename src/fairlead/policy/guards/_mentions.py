"""Adds questions about protected files that a command passes to programs with unknown effects."""

from __future__ import annotations

from fairlead.policy.guards._evaluation import Evaluation
from fairlead.policy.paths._search import TooManyFiles, expand

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fairlead.policy.bash._analysis import FileAccess
    from fairlead.policy.guards._evaluation import RuleCheck
    from fairlead.policy.guards._file_rules import FileRules
    from fairlead.policy.guards.self_protection._files import ProtectedOwnFiles
    from fairlead.policy.paths._resolve import ResolvedPath


_UNCERTAIN = "whether {program} %s {file} is only known when it runs"
_QUESTIONS = {
    "any": "what {program} does with {file} is not known",
    "read": "what {program} shows of {file} is not known",
    "write": _UNCERTAIN % "writes",
    "create": _UNCERTAIN % "creates",
    "delete": _UNCERTAIN % "deletes",
    "move": _UNCERTAIN % "moves",
}

_REMOVES = frozenset({"delete", "move"})


def add_mentions(
    evaluation: Evaluation, mentions: Sequence[FileAccess], files: FileRules, own: ProtectedOwnFiles | None
) -> None:
    """Add a question for each mentioned file that a rule protects."""
    if not (own or files.uneditable or files.unreadable):
        return
    for mention in mentions:
        if mention.mode == "read" and not files.unreadable:
            evaluation.paths.touch(mention.path, whole=mention.below)
            continue
        matched = _protecting_rule(evaluation, mention, files, own)
        if matched is not None:
            target, rule = matched
            evaluation.checks.append(rule)
            evaluation.unknowns.append(_question(mention, target, rule))


def _question(mention: FileAccess, target: ResolvedPath, rule: RuleCheck) -> str:
    inside = "" if mention.path.rstrip("/") in {target.given, ""} or mention.glob else f", below {mention.path}"
    what = _QUESTIONS[mention.mode].format(program=mention.program, file=target.given + inside)
    return f"{what}; {rule.setting} '{rule.rule}' protects it"


def _protecting_rule(
    evaluation: Evaluation, mention: FileAccess, files: FileRules, own: ProtectedOwnFiles | None
) -> tuple[ResolvedPath, RuleCheck] | None:
    scratch = Evaluation(evaluation.tool, evaluation.agent, evaluation.cwd, evaluation.tool_alias)
    scratch.paths = evaluation.paths
    reads_only, shows = mention.mode == "read", mention.mode in {"any", "read", "move"}
    for target in _targets(evaluation, mention):
        if target.is_folder and not reads_only:
            evaluation.changed_folders[target.real] = None
        blocked = files.unreadable.check(scratch, target) if shows else None
        if blocked is None and not reads_only:
            blocked = files.uneditable.check(scratch, target) or _check_own(scratch, target, own)
        if blocked is None and mention.below and not mention.glob and target.is_folder:
            blocked = None if reads_only else files.uneditable.check_below(scratch, target, mention.selection)
            if blocked is None and own is not None and mention.mode in _REMOVES:
                blocked = own.check(scratch, target, whole=True, among=mention.selection.among)
            if blocked is None and shows:
                blocked = files.unreadable.check_below(scratch, target, mention.selection)
        if blocked is not None:
            given = scratch.subjects[-1][1] if scratch.subjects else target.given
            return evaluation.paths.resolve(given), scratch.checks[-1]
    return None


def _targets(evaluation: Evaluation, mention: FileAccess) -> Iterable[ResolvedPath]:
    yield evaluation.paths.resolve(mention.path)
    if mention.glob:
        try:
            yield from expand(mention.path, evaluation.paths)
        except TooManyFiles:
            return


def _check_own(evaluation: Evaluation, target: ResolvedPath, own: ProtectedOwnFiles | None) -> str | None:
    """Return why a mentioned path may not be changed as one of our own files; `None` if it may.

    A folder above our files only counts if it is not the project itself, because many programs work on that.
    """
    if own is None:
        return None
    inside = not f"{evaluation.cwd.rstrip('/')}/".startswith(target.real.rstrip("/") + "/")
    return own.check(evaluation, target, whole=inside)
