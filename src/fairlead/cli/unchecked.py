"""Blocks an event that could not be decided because this installation is broken, if the policy has a check for it.

Any other module, of Fairlead or of another package, may be broken. So the policy is not parsed, only searched for the
section that would have the check.
"""

from __future__ import annotations

import os

from fairlead.lazy import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_BLOCKS = 5
"""How often an event is blocked because its check cannot be run. Equal to the default of `stop.maxBlocks`."""
SECTIONS = {
    "Stop": "stop",
    "UserPromptSubmit": "slashCommands",
    "TaskCompleted": "taskCompleted",
    "TeammateIdle": "teammateIdle",
    "PreCompact": "preCompact",
    "ConfigChange": "configChange",
    "WorktreeRemove": "worktreeRemove",
    "Setup": "setup",
}
"""Event → the section of a policy whose commands can block it."""
_BLOCK_CONTINUES = frozenset({"Stop", "TaskCompleted", "TeammateIdle"})
# A copy of `NAMES` in `policy/config/_lookup.py`, because that module may be broken.
_NAMES = (".fairlead.yaml", ".fairlead.yml", ".conclaude.yaml", ".conclaude.yml")
_SEPARATORS = str.maketrans({"{": " ", ",": " ", '"': None, "'": None})


def block_unchecked(args: Sequence[str]) -> tuple[int, str]:
    """Return the exit code and a message for an event that could not be decided; 1 and "" if it seems to have no check.

    The exit code is 2, which blocks. An event whose block keeps an agent going passes with 1 after `MAX_BLOCKS` blocks.
    `args` is the command line: the event's name and its options. Not for PreToolUse, which is always blocked.
    """
    event = args[0] if args else ""
    section = SECTIONS.get(event)
    file = next(_files_with(section), "") if section else ""
    if not file:
        return 1, ""
    what = f"the check `{section}` of {file} could not be made"
    if event in _BLOCK_CONTINUES and _count_block(args) > MAX_BLOCKS:
        return 1, f"fairlead: blocked {MAX_BLOCKS} times, so the event now passes, although {what}"
    return 2, f"fairlead: {what}, so the event is blocked. Reinstall Fairlead if this continues"


def _files_with(section: str) -> Iterator[str]:
    """Yield the policy files that seem to have a section: in this folder, the project, their parents, and user-wide."""
    starts = []
    with suppress(ImportError):
        from fairlead.clients import DEFAULT_CLIENT, client_or_default

        starts.append(os.environ.get(client_or_default(DEFAULT_CLIENT).variables.project_dir, ""))
    with suppress(OSError):  # the folder may be gone
        starts.append(os.getcwd())
    folders = dict.fromkeys(above for start in starts if start.startswith("/") for above in _upward(start))
    files = [f"{folder}/{name}" for folder in folders for name in _NAMES]
    with suppress(ImportError):
        from fairlead.paths import config_folder

        files.append(f"{config_folder()}/config.yaml")
    for path in files:
        with suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
            if any(_has_key(line, section) for line in file):
                yield path


def _upward(folder: str) -> Iterator[str]:
    folder = folder.rstrip("/")
    while folder:
        yield folder
        folder = folder.rpartition("/")[0]
    yield ""


def _has_key(line: str, key: str) -> bool:
    words = f" {line.translate(_SEPARATORS)}".replace(" :", ":")
    return f" {key}:" in words and not line.lstrip().startswith("#")


def _count_block(args: Sequence[str]) -> int:
    """Count this block, and return how often the event was blocked for this process of the client.

    Return 0 if that cannot be counted. Above `MAX_BLOCKS`, remove the count, so that the next turn is blocked again.
    """
    try:
        from fairlead.paths import make_private, state_folder

        folder = f"{state_folder()}/blocks"
        make_private(folder)
        client = args[args.index("--launched") + 1].partition(",")[2].replace(",", "-") if "--launched" in args else ""
        name = f"{folder}/unchecked-{args[0]}-{''.join(c for c in client if c in '0123456789-')}"
        file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.write(file, b".")
            count = os.fstat(file).st_size
        finally:
            os.close(file)
        if count > MAX_BLOCKS:
            os.unlink(name)  # the next turn is blocked again
    except (OSError, ImportError):
        return 0
    return count
