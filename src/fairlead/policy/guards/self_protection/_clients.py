"""Checks commands that start an agent: a client without the hooks or with other hooks, or an agent without any.

The hook is started by the client, not by the agent's shell. So a variable in a command only matters if the command
starts a client, or if the variable outlives the command. `PYTHONPATH=src pytest` changes nothing for a guard.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fairlead.clients import OTHER_AGENT_PACKAGES, OTHER_AGENTS
from fairlead.paths import FOLDER_VARIABLES
from fairlead.policy.bash.programs._calls import basename
from fairlead.policy.bash.programs._containers import container_command
from fairlead.policy.guards.self_protection._findings import TEXT_PROGRAMS, Finding, is_open, operands

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from fairlead.clients import Client
    from fairlead.policy.bash._analysis import Analysis, SimpleCommand

LOADER_VARIABLES = frozenset(
    {
        *("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONUSERBASE", "PYTHONPLATLIBDIR", "PYTHONINSPECT"),
        *("LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "DYLD_INSERT_LIBRARIES", "DYLD_LIBRARY_PATH"),
        *("BASH_ENV", "ENV", "NODE_OPTIONS", "BUN_OPTIONS"),
    }
)
"""Variables by which a program loads other code than its own."""
_HARMLESS_VARIABLES = frozenset({"FAIRLEAD_DEBUG", "FAIRLEAD_COMPLETE", "FAIRLEAD_STAY", "FAIRLEAD_RULES"})
_CLEARING = frozenset({"-i", "-", "--ignore-environment", "-u", "--unset"})
"""Options of `env` that remove variables."""
_EXPORTS = frozenset({"export", "declare", "typeset", "readonly", "local", "set"})
_RUNNERS = frozenset(
    {"sh", "bash", "zsh", "dash", "ksh", "fish", "make", "npm", "pnpm", "yarn", "just", "task", "eval"}
)
"""Programs whose commands are analysed, and inherit the variables of the program."""
CONTAINER_PROGRAMS = frozenset({"docker", "podman", "nerdctl", "kubectl", "oc", "docker-compose"})
_STARTERS = frozenset(
    {"npx", "bunx", "uvx", "pnpm", "yarn", "npm", "dlx", "exec", "x", "env", "sudo", "nohup", "time", "tini", "run"}
)
"""Words before the name of the program that a command starts."""
_OTHER_USERS = frozenset({"sudo", "doas", "su", "runuser", "chroot"})
_COPIERS = frozenset({"cp", "mv", "ln", "install", "which", "command", "type", "rsync"})
_ASSIGNMENT = r"(?:--?\w[\w-]*[= ]|-[eE])?([A-Za-z_]\w*)\+?="
_NO_AGENT = frozenset(
    {"login", "logout", "mcp", "help", "version", "update", "upgrade", "config", "auth", "completion"}
)


def check_client(
    command: SimpleCommand, analysis: Analysis, clients: Iterable[Client], environ: Mapping[str, str]
) -> Iterator[Finding]:
    """Check a command that starts a client, by its options, its variables and its folder."""
    words = command.words
    for client in clients:
        if not client.program.matches(words):
            continue
        around = [other for other in analysis.commands if _may_start(other, client)]
        variables = {*analysis.assigned, *(name for other in (command, *around) for name in variables_of(other))}
        without = f"starting {client.title} without Fairlead's hooks"
        if _takes_hooks_off(client, words) or _turns_off(client, variables):
            yield Finding(without)
        elif (any(map(is_open, words[1:])) and not _is_prompt(words)) or any(map(_clears, around)):
            yield Finding(without, is_certain=False)
        elif any(other.program in _OTHER_USERS for other in around):
            yield Finding(f"starting {client.title} as another user, who has other hooks", is_certain=False)
        elif any(other.program in {"cd", "pushd"} for other in analysis.commands) and not _has_user_wide_hooks(
            client, environ
        ):
            yield Finding(f"starting {client.title} in a folder where no hooks are installed", is_certain=False)


def check_copies(commands: Sequence[SimpleCommand], clients: Iterable[Client]) -> Iterator[Finding]:
    """Check commands that start a copy of a client's program.

    One command copies or looks up the program. Another command starts a program by its path, with options of the client
    that turn the hooks off.
    """
    for client in clients:
        program = client.program
        copied = any(
            command.program in _COPIERS and any(basename(word) in program.names for word in command.words[1:])
            for command in commands
        )
        if copied and any("/" in command.words[0] and _takes_hooks_off(client, command.words) for command in commands):
            yield Finding(f"starting a copy of {client.title} without Fairlead's hooks", is_certain=False)


def _has_user_wide_hooks(client: Client, environ: Mapping[str, str]) -> bool:
    files = client.own_files(environ).files
    return any(b"fairlead-hook" in _read(file) for file in files)


def check_other_agent(words: Sequence[str]) -> Iterator[Finding]:
    """Check a command that starts an agent which Fairlead does not support."""
    index = next((index for index, word in enumerate(words[:4]) if word == "run"), -1) + 1
    words = words[index:] if basename(words[0]) in {"pipx", "uv"} and index else words
    if not words:
        return
    package = words[0][:1] + words[0][1:].partition("@")[0]
    program = OTHER_AGENT_PACKAGES.get(package, basename(words[0]))
    starts = OTHER_AGENTS.get(program)
    if starts is None or (starts and starts.isdisjoint(words)) or _only_shows(words[1:]):
        return
    yield Finding(f"starting {program}, an agent whose tool calls no policy checks", is_certain=False)


def check_container(words: Sequence[str], clients: Iterable[Client]) -> Iterator[Finding]:
    """Check a command that starts a program in a container, where a client has no hooks and no policy."""
    if basename(words[0]) not in CONTAINER_PROGRAMS:
        return
    image, *inner = container_command(words) or [""]
    name = basename(image.partition("@")[0]).partition(":")[0]
    commands = [[name, *inner], *_shell_commands(_unwrapped(inner))]
    for command in commands:
        for client in clients:
            is_image = name in map(basename, client.program.packages)
            if (is_image or client.program.matches(command)) and not _only_shows(command[1:]):
                yield Finding(f"starting {client.title} in a container, where no hooks are installed", is_certain=False)
        yield from check_other_agent(command)


def _unwrapped(words: Sequence[str]) -> Sequence[str]:
    """Return the words of a command from its own program on: `sudo -n env A=1 claude` → `claude`."""
    index = 0
    while index < len(words) and (
        basename(words[index]) in _STARTERS or words[index].startswith("-") or "=" in words[index]
    ):
        index += 1
    return words[index:]


def _shell_commands(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the command, or the commands in the text of `sh -c`."""
    if words and basename(words[0]) in _RUNNERS and any(re.fullmatch(r"-[a-z]*c", word) for word in words[1:3]):
        yield from (parts for text in re.split(r"[;&|\n]+", words[-1]) if (parts := _unwrapped(text.split())))
    elif words:
        yield words


def _only_shows(args: Sequence[str]) -> bool:
    shows = {"--version", "-V", "-v", "--help", "-h"}
    return not shows.isdisjoint(args) or any(word in _NO_AGENT for word in operands(args)[:1])


def _takes_hooks_off(client: Client, words: Sequence[str]) -> bool:
    program = client.program
    return any(
        word.partition("=")[0] in program.options_without_hooks or word in program.off_switches for word in words
    )


def _turns_off(client: Client, variables: set[str]) -> bool:
    return not client_variables(client).isdisjoint(variables) or any(map(is_ours, variables))


def is_ours(variable: str) -> bool:
    """Return whether a variable moves Fairlead's folders, or changes what it does."""
    return variable.startswith("FAIRLEAD_") and variable not in _HARMLESS_VARIABLES


def client_variables(client: Client) -> set[str]:
    """Return the variables that make a client run other hooks, or its hooks run other code."""
    return {*client.program.variables_without_hooks, *LOADER_VARIABLES, *FOLDER_VARIABLES}


def _is_prompt(words: Sequence[str]) -> bool:
    """Return whether all unknown words are prompts and not options: texts with blanks, or the value after `-p`."""
    unknown = [at for at, word in enumerate(words) if is_open(word)]
    return all(" " in words[at] or words[at - 1] in {"-p", "--print", "--"} for at in unknown)


def variables_of(command: SimpleCommand) -> set[str]:
    """Return the names of the variables that a command sets, also in the arguments of programs such as `env`."""
    words = command.variables if command.program in TEXT_PROGRAMS else (*command.variables, *command.words)
    return {match[1] for word in words if (match := re.match(_ASSIGNMENT, word))}


def _may_start(command: SimpleCommand, client: Client) -> bool:
    """Return whether a command may start a client with its own variables: a wrapper, a shell or a script."""
    program = command.program
    if not command.words:
        return False
    if program in _EXPORTS or program in _RUNNERS or "/" in command.words[0]:
        return True
    return program not in TEXT_PROGRAMS and any(name in command.text for name in client.program.names)


def _clears(command: SimpleCommand) -> bool:
    return command.program == "env" and not _CLEARING.isdisjoint(command.words[1:])


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(1 << 20)
    except OSError:
        return b""
