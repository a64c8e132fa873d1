"""The table of programs: from the name of a program to the effects of a call.

Reads nothing from the disk: an access that depends on the disk has a condition, such as `if_folder`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fairlead.policy.bash.programs._deferred import DEFERRED
from fairlead.policy.bash.programs._git import git
from fairlead.policy.bash.programs._sqlite import sqlite
from fairlead.policy.bash.programs._task_runners import TASK_RUNNERS
from fairlead.policy.bash.programs._wrappers import WRAPPERS
from fairlead.policy.bash.programs.files._archives import ARCHIVES
from fairlead.policy.bash.programs.files._readers import READERS
from fairlead.policy.bash.programs.files._searchers import SEARCHERS
from fairlead.policy.bash.programs.files._transfers import TRANSFERS
from fairlead.policy.bash.programs.files._writers import WRITERS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlead.policy.bash.programs._calls import Effect, Program, ProgramCall

INLINE_CODE_PROGRAMS: Final = (
    *("python", "pypy", "perl", "ruby", "node", "nodejs", "bun", "php", "lua", "osascript", "Rscript", "deno", "tclsh"),
    *("expect", "guile", "julia", "luajit", "elixir", "raku", "groovy", "scala"),
    *("psql", "mysql", "gdb", "lldb", "emacs"),
    *("sed", "gsed", "awk", "gawk", "mawk", "nawk"),
)


def _inline_code(call: ProgramCall) -> Iterable[Effect]:
    from fairlead.policy.bash.programs._inline_code import INLINE_CODE

    return INLINE_CODE[call.program](call)


PROGRAMS: Final[dict[str, Program]] = {
    **READERS,
    **SEARCHERS,
    **WRITERS,
    **ARCHIVES,
    **TRANSFERS,
    **dict.fromkeys(INLINE_CODE_PROGRAMS, _inline_code),
    **WRAPPERS,
    **DEFERRED,
    **TASK_RUNNERS,
    "git": git,
    **dict.fromkeys(("sqlite3", "sqlite"), sqlite),
}
"""Program → the function that returns its effects; see `_unknown_programs` for any other program."""
