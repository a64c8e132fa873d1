"""The files that the guards depend on: the policy, the client's settings, Fairlead's own. No agent may change them."""

from __future__ import annotations

import os
from time import monotonic

from fairlead.clients import known_clients
from fairlead.lazy import cache, cached_property
from fairlead.policy.guards._evaluation import RuleCheck
from fairlead.policy.guards.self_protection._environment import environment_paths, library_prefixes
from fairlead.policy.guards.self_protection._startup import is_startup_file
from fairlead.policy.paths._resolve import BaseFolder
from fairlead.policy.trust._hook_files import hook_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from fairlead.clients import ToolCall
    from fairlead.policy.config._types import Layer
    from fairlead.policy.guards._evaluation import Evaluation
    from fairlead.policy.guards.self_protection._commands import SelfProtectionCheck
    from fairlead.policy.guards.self_protection._findings import Finding
    from fairlead.policy.guards.self_protection._startup import StartupRules
    from fairlead.policy.paths._resolve import ResolvedPath

_ANYWHERE = (
    *("/.fairlead.yaml", "/.fairlead.yml", "/.conclaude.yaml", "/.conclaude.yml"),
    *("/fairlead-hook", "/bin/fairlead", "/bin/fairlead-python"),  # what the client's settings run, in any folder
)
_SERVICES = ("/systemd/", "/launchagents/", "/launchdaemons/", "/autostart/")
"""Folders in the paths of files that start a service."""
_TOOL_FOLDERS = (".local/share/uv/tools", ".local/share/pipx/venvs", ".local/pipx/venvs")
"""Folders in which tool managers install each tool in an environment of its own."""
_HOOK_FILES_INTERVAL = 1.0
"""Seconds after which the client's settings are searched again for the files that hooks load."""
_CODE_SUFFIXES = frozenset({"", ".*", ".py", ".py*", ".p*", ".pth", ".so", ".s*", ".cfg", ".c*", ".dylib", ".zip"})
"""Suffixes of file name patterns that match code which Python loads. Not compiled files, which Python makes again."""
_HINTS = ("fairlead", "conclaude")
_RECORDS = ("journal", "spool", "mail.db", "fairlead.db", "sessions.json")
"""Names in the state folder that no agent may read."""
_CHECKED_KINDS = frozenset({"other", "fetch"})
"""Kinds of tools whose whole input is checked, because any part of it may name a file or a program."""
_RULE = RuleCheck("preToolUse.protectOwnFiles", "true", "", matched=False, why="it is not one of these files")


class ProtectedOwnFiles:
    """The files that no agent may change, wherever they are."""

    def __init__(self, layers: Iterable[Layer], environ: Mapping[str, str] = os.environ) -> None:
        layers = tuple(layers)
        self._environ = environ
        self._clients = tuple(known_clients())
        clients = [client.own_files(environ) for client in self._clients]
        programs = (f"/bin/{name}" for client in self._clients for name in client.program.names)
        self._project_files = tuple(name for own in clients for name in own.project_files)
        self._anywhere = (*_ANYWHERE, *programs, *(f"/{name}".lower() for name in self._project_files))
        self._hints = (*_HINTS, *(hint.lower() for own in clients for hint in own.hints))
        managed = tuple(folder for own in clients for folder in own.folders)
        folders = (*_prefixes(_folders(environ)), *managed)
        hooks = (hook_path(layer.file, name) for layer in layers for name in layer.policy.hooks)
        files = (*(layer.file for layer in layers), *hooks, *(file for own in clients for file in own.files))
        exact = (*_prefixes(files), *_environment_prefixes())
        self._prefixes = tuple(prefix.lower() for prefix in (*exact, *folders, *library_prefixes()))
        in_folders = (f"{layer.folder}/{name}" for layer in layers for name in self._project_files)
        self._in_use = (*files, *environment_paths(), *folders, *in_folders)
        self._state = tuple(prefix.rstrip("/") for prefix in _prefixes(_state_folders(environ)))
        self._projects = tuple(layer.folder for layer in layers)
        self._hook_files: dict[str, tuple[float, tuple[str, ...]]] = {}

    @cached_property
    def commands(self) -> SelfProtectionCheck:
        """The rules on commands. Made with the first command, because their patterns take milliseconds to compile."""
        from fairlead.policy.guards.self_protection._commands import SelfProtectionCheck

        return SelfProtectionCheck(self._startup, self._contains_own, self._environ)

    @cached_property
    def _startup(self) -> StartupRules:
        from fairlead.policy.guards.self_protection._startup import StartupRules

        return StartupRules(self._clients)

    def check(
        self, evaluation: Evaluation, target: ResolvedPath, *, whole: bool, among: Sequence[str] = ()
    ) -> str | None:
        """Return why a file may not be changed; `None` if it may.

        With `whole`, a folder that contains such a file is refused, too; with `among`, only if the name of that file
        matches one of these patterns.
        """
        evaluation.start_subject(target.given)
        names = list(filter(self._contains, target.names)) or self._loaded_by_hooks(target, evaluation.cwd)
        if not names and whole and target.is_folder:
            names = [name for name in self._below(target, evaluation.cwd) if not among or _is_named(name, among)]
        elif not names and target.links > 1:
            names = list(self._same(target, evaluation.cwd))
        if not names:
            evaluation.checks.append(_RULE)
            return None
        return evaluation.add_match(
            _RULE, f"{names[0]} is one of them", "block", _refusal(evaluation.tool, target.given)
        )

    def check_read(self, evaluation: Evaluation, path: str, *, below: bool) -> str | None:
        """Return why a file may not be read; `None` if it may. The journal and the mail are kept from agents.

        `below`: the files in a folder are read, too.
        """
        if not self._may_be_record(path):
            return None
        target = evaluation.paths.resolve(path)
        names = [name for name in target.names if self._is_record(name, below=below)]
        if not names:
            return None
        evaluation.start_subject(target.given)
        return evaluation.add_match(
            _RULE, f"{names[0]} is one of them", "block", _read_refusal(evaluation.tool, target.given)
        )

    def _may_be_record(self, path: str) -> bool:
        """Return whether a path may lead to the journal or the mail. Reads nothing from the disk."""
        return "fairlead" in path.lower() or path.startswith(self._state) or any(name in path for name in _RECORDS)

    def _is_record(self, name: str, *, below: bool) -> bool:
        if below and any(name.rstrip("/") in {folder, os.path.dirname(folder)} for folder in self._state):
            return True  # but not a search through the whole home
        rest = next((name[len(folder) + 1 :] for folder in self._state if name.startswith(f"{folder}/")), "")
        first = rest.partition("/")[0]
        if any(character in first for character in "*?["):
            from fnmatch import fnmatchcase

            return any(fnmatchcase(record, first) for record in _RECORDS)
        return first.startswith(_RECORDS)

    def contains(self, target: ResolvedPath) -> bool:
        """Return whether a file is one that no agent may change."""
        return any(map(self._contains, target.names))

    def check_input(self, evaluation: Evaluation, call: ToolCall, tool_input: Mapping[str, Any]) -> str | None:
        """Return why a tool may not be called with an input; `None` if it may.

        Ignores the paths and the commands in the input, which other guards check.
        """
        if call.kind not in _CHECKED_KINDS and not _writes_startup_file(evaluation, call):
            return None
        finding = next(self._input_findings(evaluation, call, tool_input), None)
        if finding is None:
            return None
        from fairlead.policy.guards.self_protection._findings import refusal

        return evaluation.add_match(_RULE, finding.what, "block", refusal(evaluation.tool, finding.what))

    def _input_findings(
        self, evaluation: Evaluation, call: ToolCall, tool_input: Mapping[str, Any]
    ) -> Iterator[Finding]:
        if _writes_startup_file(evaluation, call):
            yield from (finding for text in _strings(tool_input) for finding in self._startup.findings(text))
        if call.kind in _CHECKED_KINDS:
            from fairlead.policy.guards.self_protection._tool_inputs import check_tool_input

            yield from check_tool_input(evaluation.tool, tool_input, self._clients)

    def _contains(self, name: str) -> bool:
        lower = name.lower()  # on a case-sensitive disk this protects a little more than needed
        return (
            lower.endswith(self._anywhere)
            or f"{lower}/".startswith(self._prefixes)
            or ("fairlead" in lower and any(part in lower for part in _SERVICES))
        )

    def _loaded_by_hooks(self, target: ResolvedPath, cwd: str) -> list[str]:
        """Return the names of a file that the client's settings pass to `--hooks` or `--rules`; empty if none."""
        until, files = self._hook_files.get(cwd, (0.0, ()))
        if monotonic() >= until:
            folders = (*self._projects, cwd)
            files = _prefixes(file for client in self._clients for file in client.hook_files(self._environ, folders))
            self._hook_files = {cwd: (monotonic() + _HOOK_FILES_INTERVAL, files)}
        return [name for name in target.names if f"{name}/".startswith(files)] if files else []

    def is_mentioned(self, text: str) -> bool:
        """Return whether a text mentions files that no agent may change."""
        lower = text.lower()
        return any(hint in lower for hint in self._hints)

    def _contains_own(self, target: ResolvedPath, cwd: str) -> bool:
        return any(self._below(target, cwd))

    def _below(self, target: ResolvedPath, cwd: str) -> Iterable[str]:
        above = tuple(name.rstrip("/") + "/" for name in target.names)
        for file in self._near(cwd):
            if file.startswith(above) and os.path.lexists(file):
                yield file

    def _same(self, target: ResolvedPath, cwd: str) -> Iterable[str]:
        """Yield the protected files that are the same file as the target, because of a hard link."""
        for file in self._near(cwd):
            try:
                status = os.stat(file)
            except OSError:
                continue
            if (status.st_dev, status.st_ino) == target.version[:2]:
                yield file

    def _near(self, cwd: str) -> Iterable[str]:
        yield from self._in_use
        yield from (f"{folder}/{name}" for folder in _upward(cwd) for name in self._project_files)


def _is_name_of_code(folder: str, pattern: str) -> bool:
    """Return whether files that match a name pattern, below a folder of libraries and programs, may be code."""
    if not any(character in pattern for character in "*?["):
        return os.path.lexists(f"{folder}/{pattern}")
    return os.path.splitext(pattern)[1] in _CODE_SUFFIXES


def _writes_startup_file(evaluation: Evaluation, call: ToolCall) -> bool:
    for access in call.paths:
        if access.mode == "write" and any(map(is_startup_file, evaluation.paths.resolve(access.path).names)):
            return True
    return False


def _is_named(path: str, patterns: Sequence[str]) -> bool:
    """Return whether a file matches one of the name patterns; for a folder, whether it may contain such a file."""
    if os.path.isdir(path):
        return any(_is_name_of_code(path, pattern) for pattern in patterns)
    from fnmatch import fnmatchcase

    return any(fnmatchcase(path.rpartition("/")[2], pattern) for pattern in patterns)


def _refusal(tool: str, path: str) -> str:
    return (
        f"Blocked {tool} operation: preToolUse.protectOwnFiles protects the policy, the client's settings and "
        f"Fairlead's own files. Only the user may change them. File: {path}"
    )


def _read_refusal(tool: str, path: str) -> str:
    return (
        f"Blocked {tool} operation: preToolUse.protectOwnFiles keeps the journal and the mail of all sessions from "
        f"agents. `fairlead inbox` shows your own mail, `fairlead events` what happened. File: {path}"
    )


def _upward(folder: str) -> Iterable[str]:
    while folder not in {"", "/"}:
        yield folder
        folder = folder.rpartition("/")[0]


def _folders(environ: Mapping[str, str]) -> Iterable[str]:
    """Yield the folders for config, state and sockets that Fairlead may use, on any system."""
    home = environ.get("HOME") or os.path.expanduser("~")
    if own := environ.get("FAIRLEAD_HOME"):
        yield own
    moved = (environ.get(name, "") for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"))
    yield from (f"{folder}/fairlead" for folder in moved if folder.startswith("/"))
    yield f"{home}/.config/fairlead"
    yield f"{home}/.local/state/fairlead"
    yield f"/run/user/{os.getuid()}/fairlead"
    yield from (f"{home}/{folder}/fairlead" for folder in _TOOL_FOLDERS)
    yield f"{home}/Library/Application Support/fairlead"
    yield f"{home}/Library/Caches/TemporaryItems/fairlead"


def _state_folders(environ: Mapping[str, str]) -> Iterable[str]:
    """Yield the folders that may contain the journal and the mail."""
    home, moved = environ.get("HOME") or os.path.expanduser("~"), environ.get("XDG_STATE_HOME", "")
    if own := environ.get("FAIRLEAD_HOME"):
        yield own
    if moved.startswith("/"):
        yield f"{moved}/fairlead"
    yield f"{home}/.local/state/fairlead"
    yield f"{home}/Library/Application Support/fairlead"


@cache
def _environment_prefixes() -> tuple[str, ...]:
    return _prefixes(environment_paths())


def _prefixes(paths: Iterable[str]) -> tuple[str, ...]:
    """Return every name of each path, with a slash at its end."""
    return tuple(prefix for path in paths for prefix in BaseFolder.at(path).prefixes)


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (text for inner in value.values() for text in _strings(inner))
    elif isinstance(value, list):
        yield from (text for inner in value for text in _strings(inner))
