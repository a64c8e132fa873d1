"""The scripts of a `package.json`, which npm, yarn, pnpm and bun run, with their `pre` and `post` scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead.policy.bash.tasks._types import TaskCommand
from fairlead.structs import decode_json

if TYPE_CHECKING:
    from collections.abc import Iterator


def package_commands(text: str, args: list[str]) -> Iterator[TaskCommand]:
    """Yield the commands of a script and of its `pre` and `post` scripts.

    `args` are the name of the script, and the arguments that are appended to it.
    """
    name, rest = args[0], args[1:]
    scripts = _scripts(text)
    for step in (f"pre{name}", name, f"post{name}"):
        command = scripts.get(step)
        if isinstance(command, str):
            yield TaskCommand(" ".join([command, *map(_quoted, rest)]) if step == name else command)


def _scripts(text: str) -> dict[str, Any]:
    try:
        document = decode_json(text)
    except ValueError:
        return {}
    scripts = document.get("scripts") if isinstance(document, dict) else None
    return scripts if isinstance(scripts, dict) else {}


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"
