"""Checks commands that may switch the guards off: Fairlead's own, package managers, signals, clients without hooks.

The hook is started by the client, not by the agent's shell. So a variable in a command only matters if the command
starts a client, or if the variable outlives the command. `PYTHONPATH=src pytest` changes nothing for a guard.
"""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING

from fairlead.clients import OTHER_AGENT_PACKAGES, OTHER_AGENTS, known_clients
from fairlead.policy.bash.programs._calls import basename
from fairlead.policy.guards._evaluation import RuleCheck
from fairlead.policy.guards.self_protection._clients import (
    CONTAINER_PROGRAMS,
    LOADER_VARIABLES,
    check_client,
    check_container,
    check_copies,
    check_other_agent,
    client_variables,
    is_ours,
    variables_of,
)
from fairlead.policy.guards.self_protection._environment import environment_prefixes
from fairlead.policy.guards.self_protection._findings import (
    TEXT_PROGRAMS,
    Finding,
    is_any,
    is_open,
    operands,
    option_values,
    refusal,
)
from fairlead.policy.guards.self_protection._packages import PACKAGE_MANAGERS, check_packages
from fairlead.policy.guards.self_protection._processes import FINDERS, PROCESSES, sets_variables
from fairlead.policy.guards.self_protection._startup import is_startup_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from fairlead.policy.bash._analysis import Analysis, SimpleCommand
    from fairlead.policy.guards._evaluation import Evaluation
    from fairlead.policy.guards.self_protection._startup import StartupRules
    from fairlead.policy.paths._resolve import ResolvedPath

_RULE = RuleCheck("preToolUse.protectOwnFiles", "true", "", matched=False, why="it leaves the guards in force")
_NAMES = frozenset({"fairlead", "fairlead-hook", "fairlead-python"})
_PERSON_ONLY_COMMANDS = frozenset(
    {
        *(("uninstall",), ("install",), ("hooks", "uninstall"), ("hooks", "install")),
        *(("hooks", "add"), ("hooks", "remove")),
        *(("daemon", "stop"), ("daemon", "restart"), ("trust",), ("untrust",), ("answer",)),
        *(("sessions", word) for word in ("go", "interrupt", "end", "transcript", "copy")),
    }
)
"""The first words of Fairlead's commands that only a person may run."""
_LAUNCHED = "--launched"
"""An option that the launcher adds, with a value."""
_NAMING_OPTIONS = frozenset(
    {
        *("-C", "--prefix", "--cwd", "--dir", "--directory", "--project", "--name", "-n", "-p", "--workdir", "-w"),
        *("--filter", "--tag", "-t", "-k", "--group", "--workspace", "--package", "--context", "--namespace"),
    }
)
"""Options of other programs whose value may be `fairlead`, as the name of a folder or a project."""
_MAX_FOLDERS = 8
_SHOWS_ONLY = frozenset({"-h", "--help", "--dry-run", "--list"})
_FORGED_EVENTS = frozenset({"sessionstart", "setup"})
"""Events by which Fairlead learns that a person has begun a session."""
_INTERPRETERS = r"(?:python|pypy|node|deno|bun|perl|ruby|php|lua|osascript|tclsh|Rscript)[\d.]*"
_SCHEDULERS = frozenset({"at", "batch", "crontab", "systemd-run", "tmux", "screen", "launchctl", "dtach", "expect"})
_SWITCH_OFF = (
    r"(?i)fairlead(?:-hook)?\W+(?:[\w.]+\W+){0,3}?(?:uninstall|install|stop|restart|untrust|trust|hooks\W+(?:add|remove)|sessions\W+(?:end|interrupt)|--force)\b|/v1/stop\b"
    r"|/v1/events/SessionStart|/v1/answers/|fairlead(?:-python)?\W+answer\s+\w+\s+allow"
)
_CODE = (
    r"(?i)fairlead[\s\S]{0,400}?(?:uninstall|\b(?:untrust|trust|stop|kill|terminate|unlink|rmtree|main)\b)|"
    r"(?:kill|uninstall|rmtree|unlink)[\s\S]{0,200}?fairlead"
)
_REMOVES = r"(?i)rmtree|rename|replace|move|remove|unlink|rmdir|rmSync|rm_r|FileUtils|\brm\b|delete"
# These patterns are compiled when they are first used: an event without a daemon pays for each.
_MARKS = (
    *("fairlead", "/v1/", "daemon.sock", "daemon.lock", "ld_preload", "ld_audit", "dyld_insert", "-m pip", "-mpip"),
    *("-m venv", "-m virtualenv", "-m ensurepip", "-m uv", "-m pipx", "-m conda", "-m poetry", "rmtree", "rename("),
    *("fileutils", "rmsync", "move(", "setup.py", "easy_install"),
)
"""A command is only checked if it contains one of these or a client's words, or calls a program that is checked."""


class SelfProtectionCheck:
    """Checks whether the commands of an analysis switch the guards off."""

    def __init__(
        self,
        startup: StartupRules,
        contains_own: Callable[[ResolvedPath, str], bool],
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._startup = startup
        self._contains_own = contains_own
        """Takes a folder and the working directory; returns whether the folder contains protected files."""
        self._clients = tuple(known_clients())
        programs = {*PROCESSES, *FINDERS, *PACKAGE_MANAGERS, *OTHER_AGENTS, *map(_program_name, OTHER_AGENT_PACKAGES)}
        programs |= CONTAINER_PROGRAMS
        marks = {*_MARKS, *environment_prefixes()}
        for client in self._clients:
            program = client.program
            marks.update(program.names, program.sdk_packages, program.off_switches, program.variables_without_hooks)
        self._programs = frozenset(programs)
        self._marks = tuple(dict.fromkeys(mark.lower() for mark in marks))
        self._environ = environ

    def check(self, evaluation: Evaluation, analysis: Analysis, command: str) -> str | None:
        """Return why a command may not run; `None` if it may.

        Findings that may be harmless are added to the evaluation as questions.
        """
        text = " ".join([item.text for item in analysis.commands])
        if not self._may_matter(analysis, f"{text}\n{command}".lower()):
            return None
        findings = list(dict.fromkeys(self._findings(analysis, text, command, evaluation)))
        certain = next((finding for finding in findings if finding.is_certain), None)
        if certain is not None:
            evaluation.start_subject(command)
            return evaluation.add_match(_RULE, certain.what, "block", refusal(evaluation.tool, certain.what))
        evaluation.unknowns += [f"it may be meant for {finding.what}" for finding in findings]
        return None

    def _may_matter(self, analysis: Analysis, text: str) -> bool:
        for command in analysis.commands:
            if command.words and _program_name(command.words[0]) in self._programs:
                return True
        for mark in self._marks:  # noqa: SIM110 - a loop takes a third of the time of `any`
            if mark in text:
                return True
        return False

    def _findings(self, analysis: Analysis, text: str, command: str, evaluation: Evaluation) -> Iterator[Finding]:
        cwd, simple = evaluation.cwd, [item for item in analysis.commands if item.words]
        commands = [simple_command.words for simple_command in simple]
        programs = {basename(words[0]) for words in commands}
        lower = f"{text} {command}".lower()
        folders = _folders(commands, cwd)
        for simple_command in simple:
            words = simple_command.words
            yield from _check_fairlead(words, {*analysis.assigned, *variables_of(simple_command)})
            yield from check_packages(words, folders, lower, lambda path: _in_environment(path, cwd))
            yield from _check_process(words, lower, programs)
            yield from check_client(simple_command, analysis, self._clients, self._environ)
            yield from check_other_agent(words)
            yield from check_container(words, self._clients)
            yield from _check_folder(words, cwd)
        yield from check_copies(simple, self._clients)
        yield from self._check_variables(simple, analysis.assigned)
        yield from _check_text(commands, programs, f"{text}\n{command}")
        if any(re.fullmatch(_INTERPRETERS, program) for program in programs):
            yield from self._check_code(_inline_code(commands, command))
            yield from self._check_removal(command, analysis, evaluation)
        if any(file.mode == "write" and is_startup_file(file.path) for file in analysis.files):
            yield from self._startup.findings(command)

    # -- variables and code ------------------------------------------------------------------------------

    def _check_variables(self, commands: Sequence[SimpleCommand], assigned: Sequence[str]) -> Iterator[Finding]:
        """Check variables that are exported or kept for later processes.

        Variables of the client itself also count if they are only set for a command that may run other programs.
        """
        kept = {name for command in commands for name in sets_variables(command.program, command.words[1:])}
        given = {*assigned, *(name for command in commands for name in variables_of(command))}
        runs_others = any(command.program not in _NAMES | TEXT_PROGRAMS for command in commands)
        for client in self._clients:
            names = client.program.variables_without_hooks & (given if runs_others else kept)
            names |= {name for name in kept if name in client_variables(client) or is_ours(name)}
            if names:
                yield Finding(f"giving {client.title} other settings ({', '.join(sorted(names))})")
        ours = set(filter(is_ours, given))
        if ours and runs_others:
            yield Finding(f"giving other folders to Fairlead ({', '.join(sorted(ours))})", is_certain=False)

    def _check_code(self, command: str) -> Iterator[Finding]:
        """Check inline code by what it mentions."""
        if re.search(_CODE, command) or "fairlead/daemon.sock" in command or "fairlead/run/daemon.sock" in command:
            yield Finding("changing or stopping Fairlead from inline code", is_certain=False)
        for client in self._clients:
            program = client.program
            off = program.options_without_hooks | program.variables_without_hooks
            nested = any(name in command for name in program.names) and any(word in command for word in off)
            if nested or any(package in command for package in program.sdk_packages):
                yield Finding(f"starting {client.title} from inline code", is_certain=False)

    def _check_removal(self, command: str, analysis: Analysis, evaluation: Evaluation) -> Iterator[Finding]:
        """Check the folders named in inline code that removes or moves files."""
        if not re.search(_REMOVES, command):
            return
        named = {
            file.path for file in analysis.files if file.mode == "write" and re.fullmatch(_INTERPRETERS, file.program)
        }
        for path in named:
            target = evaluation.paths.resolve(path)
            if target.is_folder and self._contains_own(target, evaluation.cwd):
                yield Finding(f"removing {path}, which contains files of Fairlead or its policy", is_certain=False)


# -- Fairlead's own commands ---------------------------------------------------------------------------


def _check_fairlead(words: Sequence[str], variables: set[str]) -> Iterator[Finding]:
    args = _fairlead_args(words)
    if args is None:
        return
    if _LAUNCHED in args:  # the command line leaves it out, with the word behind it
        index = args.index(_LAUNCHED)
        args = [*args[:index], *args[index + 2 :]]
    named = operands(args)
    while named and _is_fairlead(named[0]):  # `uvx --from fairlead fairlead …`
        named = named[1:]
    line = " ".join(["fairlead", *named[:2]])
    if not _SHOWS_ONLY.isdisjoint(args) or named[:1] == ["help"]:
        return
    if any(map(is_any, named[: 2 if named[:1] in (["hooks"], ["daemon"], ["sessions"]) else 1])):
        yield Finding(f"running `{line}`, of which is not known what it does")
    elif not _PERSON_ONLY_COMMANDS.isdisjoint([tuple(named[:1]), *((named[0], word) for word in named[1:])]):
        yield Finding(f"running `{line}`")
    elif named[:1] == ["init"] and not {"--force", "--install"}.isdisjoint(args):
        yield Finding("replacing the policy with `fairlead init`")
    elif named and named[0].replace("-", "").replace("_", "").lower() in _FORGED_EVENTS:
        yield Finding("telling Fairlead that a session begins")
    elif not LOADER_VARIABLES.isdisjoint(variables) and basename(words[0]) in _NAMES:
        yield Finding("running Fairlead with other code than its own")


def _fairlead_args(words: Sequence[str]) -> Sequence[str] | None:
    """Return Fairlead's arguments in a command, whatever program starts it; `None` if the command does not run it."""
    if basename(words[0]) in _NAMES:
        return words[1:]
    if basename(words[0]) in TEXT_PROGRAMS:
        return None
    for index, word in enumerate(words[1:], 1):
        before = words[index - 1]
        if word.startswith("-mfairlead"):
            return words[index + 1 :]
        if _is_fairlead(word) and before not in _NAMING_OPTIONS:
            return words[index + 1 :]
    return None


def _is_fairlead(word: str) -> bool:
    name = basename(re.split(r"[@=\[]", word.rpartition("#")[2], maxsplit=1)[0])
    return name in _NAMES or name.startswith(("fairlead.cli", "fairlead.__main__"))


def _check_text(commands: Sequence[Sequence[str]], programs: set[str], text: str) -> Iterator[Finding]:
    """Check a command line in an argument, which a program may run at once, or later and outside of the session."""
    if not _SCHEDULERS.isdisjoint(programs) and (found := re.search(_SWITCH_OFF, text)):
        yield Finding(f"running `{_shortened(found[0])}`")
    for words in commands:
        if basename(words[0]) in TEXT_PROGRAMS or basename(words[0]) in _NAMES:
            continue
        for word in words[1:]:
            if found := re.search(_SWITCH_OFF, word):
                yield Finding(f"running `{_shortened(found[0])}`", is_certain="/v1/" in found[0])


# -- the parts of a command ----------------------------------------------------------------------------


def _check_process(words: Sequence[str], text: str, programs: set[str]) -> Iterator[Finding]:
    program = basename(words[0])
    judge = PROCESSES.get(program)
    if judge is None and "kill" in programs:
        judge = FINDERS.get(program)
    if judge is not None:
        yield from judge(words[1:], text)
    if any(word.endswith(("fairlead/daemon.sock", "fairlead/run/daemon.sock")) for word in words[1:]):
        yield Finding("talking to Fairlead's daemon", is_certain=program not in TEXT_PROGRAMS)


def _inline_code(commands: Sequence[Sequence[str]], command: str) -> str:
    """Return the code that interpreters are given: words with blanks or calls in them, and here-documents."""
    interpreted = (words for words in commands if re.fullmatch(_INTERPRETERS, basename(words[0])))
    code = [word for words in interpreted for word in words[1:] if re.search(r"[\s(;]", word)]
    return "\n".join([*code, command] if "<<" in command else code)


def _folders(commands: Sequence[Sequence[str]], cwd: str) -> list[str]:
    """Return the folders in which one of the commands may run: `cwd`, and those that `cd` and `pushd` enter."""
    folders = [cwd]
    for words in commands:
        if words[0] in {"cd", "pushd"} and words[1:] and not is_open(words[-1]):
            folders.append(os.path.normpath(os.path.join(folders[-1], os.path.expanduser(words[-1]))))
    return [*dict.fromkeys(folders)][:_MAX_FOLDERS]


def _check_folder(words: Sequence[str], cwd: str) -> Iterator[Finding]:
    """Check programs that change files in a folder that an option names."""
    if basename(words[0]) in {"git", "patch"} and any(
        _in_environment(path, cwd) for path in option_values(words[1:], "-C", "-d", "--directory") if not is_open(path)
    ):
        yield Finding("changing files in the environment that Fairlead runs from")


def _program_name(word: str) -> str:
    """Return the name of a program without its folder and its version: `pip` for `/usr/bin/pip3.11`."""
    return basename(word).partition("@")[0].rstrip("0123456789.")


def _in_environment(path: str, cwd: str) -> bool:
    """Return whether a path is in the environment that Fairlead runs from. A program there may be a symbolic link."""
    full = os.path.join(cwd, os.path.expanduser(path))
    folder = os.path.realpath(os.path.dirname(full))
    paths = (f"{os.path.realpath(full)}/", f"{folder}/")
    beside = os.path.realpath(os.path.dirname(sys.executable))
    return folder == beside or any(candidate.startswith(environment_prefixes()) for candidate in paths)


def _shortened(text: str) -> str:
    return " ".join(text.split())[:80]
