"""What a tool call does as the guards understand it, as text for people. Decides nothing."""

from __future__ import annotations

import os

from fairlead.clients import client_named
from fairlead.policy.paths._resolve import PathResolver
from fairlead.structs import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlead.clients import PathAccess
    from fairlead.events import PreToolUse
    from fairlead.policy.bash._types import Analysis, FileAccess

_VERBS = {
    "write": "writes",
    "create": "writes",
    "make_folder": "writes",
    "delete": "removes",
    "move": "removes",
    "read": "reads",
    "list": "lists",
}


class CallEffects(Struct, frozen=True):
    """The effects of a call, each as text. Empty if the call does nothing that matters to a rule."""

    writes: tuple[str, ...] = ()
    removes: tuple[str, ...] = ()
    """What is removed or moved away."""
    reads: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    """Files of which only names are shown."""
    git: tuple[str, ...] = ()
    """Calls of git. What they change depends on the repository."""
    scripts: tuple[str, ...] = ()
    """Scripts that were read. The effects of their commands are included."""
    programs: tuple[str, ...] = ()
    """Programs whose effects are not known."""
    uncertain: tuple[str, ...] = ()
    """Effects that are only known when the call runs."""


def call_effects(event: PreToolUse) -> CallEffects:
    """Return the effects of a call that has not run. Scripts that it would run are read from the disk."""
    call = client_named(event.client).tool_call(event.tool_name, event.tool_input)
    folder = os.path.join(event.cwd or "/", call.folder)
    named: dict[str, dict[str, None]] = {}
    for path in call.paths:
        _add(named, _verb(path.mode), _tool_path(path))
    analysis = _analysis(call.command, folder) if call.command is not None else None
    if analysis is not None:
        _add_files(named, analysis, PathResolver(folder))
    return CallEffects(
        **{verb: tuple(paths) for verb, paths in named.items() if verb},
        git=_unique(" ".join(("git", git_call.name, *git_call.args)) for git_call in analysis.git) if analysis else (),
        scripts=analysis.scripts if analysis else (),
        programs=analysis.programs if analysis else (),
        uncertain=(*call.unknown, *(analysis.unknown if analysis else ())),
    )


def _analysis(command: str, folder: str) -> Analysis:
    from fairlead.policy.bash._analysis import analyse
    from fairlead.policy.bash._context import AnalysisContext

    return analyse(command, AnalysisContext(folder))


def _add_files(named: dict[str, dict[str, None]], analysis: Analysis, paths: PathResolver) -> None:
    for access in analysis.files:
        if _is_certain(access, paths):
            below = ", and what is below" if access.below and paths.resolve(access.path).is_folder else ""
            _add(named, _verb(access.mode), f"{access.path}{below}")


def _is_certain(access: FileAccess, paths: PathResolver) -> bool:
    """Return whether an access happens, judged by the files that exist now. A literal in code may not be a path."""
    if access.if_folder is not None and not paths.resolve(access.if_folder).is_folder:
        return False
    if access.unless_folder is not None and paths.resolve(access.unless_folder).is_folder:
        return False
    return not (access.if_exists or access.literal) or access.glob or paths.resolve(access.path).exists


def _tool_path(access: PathAccess) -> str:
    among = f" ({', '.join(access.among)})" if access.among else ""
    return f"{access.path}, and what is below{among}" if access.below else access.path


def _verb(mode: str) -> str:
    return _VERBS.get(mode, "")


def _add(named: dict[str, dict[str, None]], verb: str, text: str) -> None:
    named.setdefault(verb, {})[text] = None


def _unique(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))
