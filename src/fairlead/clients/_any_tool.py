"""The normal form of a call of an unknown tool: one of an MCP server, or of a newer client.

All strings of the input are examined, also nested ones. The name of the tool tells what it does (`read_file`, `move`),
and the key of a value what the value is (`path`, `command`, `code`); see `_tool_words`. A text that only mentions a
file is not a path: the values of prose keys are never examined, and the value of an unknown key counts only if all of
it is a path. An extra key can make the call stricter, never laxer, because the agent writes the input, and servers
ignore unknown keys.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any

from fairlead.clients._git_tools import git_command
from fairlead.clients._tool_calls import InlineCode, PathAccess, ToolCall, local_path, paths_in, shell_call
from fairlead.clients._tool_words import KeyMeaning, key_meaning, language_named, stricter, tool_meaning, verb_named
from fairlead.structs import decode_json, replace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fairlead.clients._tool_calls import PathMode, ToolKind
    from fairlead.clients._tool_words import Verb
    from fairlead.clients.protocol import Client

MAX_DEPTH = 12
MAX_STRINGS = 2_000
"""How many strings of an input are examined."""
MAX_PATH = 4096
_MAX_JSON = 256 * 1024
_VERB_KEYS = ("operation", "action", "op", "method", "mode", "verb")
_LANGUAGE_KEYS = ("language", "lang", "runtime", "kernel", "interpreter")
_ENVIRONMENT_KEYS = frozenset({"env", "environment"})
_TYPED_KEYS = frozenset({"text", "input", "keys", "data", "line", "lines", "content", "stdin", "body", "source"})
_PATH = re.compile(r"[^\s\"'`<>|;(){}=,]*(?:/|(?<![^/])\.\w|\w\.[A-Za-z]\w{0,9}\Z)[^\s\"'`<>|;(){}=,]*|~\S*")
"""Text that can only be a path: it has a slash, a leading dot or a file extension, and no blank."""
_OTHER_URL = re.compile(
    r"(?!https?:|wss?:|ftps?:|ssh:|git:|s3:|data:|mailto:)[a-z][\w+.-]*://[^/]*(/.+)", re.IGNORECASE
)
"""A URL whose scheme may mean a local file."""
_MOUNT = re.compile(r"([/.~][^:\s]*):/")
"""A folder that is mounted into a container: `./data:/data`."""
_CODE = re.compile(r"[\s(;=]")
"""Characters of code that a name does not have."""
_SQL_FILES = re.compile(
    r"\b(?:copy|load|outfile|dumpfile|infile|attach|read_\w+|pg_\w*read\w*|lo_import|lo_export|readfile|writefile)\b",
    re.IGNORECASE,
)
"""SQL that may access a file."""
_GLOB_CHARACTERS = frozenset("*?[")
_MAX_PARTS = 64
_MAX_BASES = 4
_GLOB = re.compile(r"[\w./~@{},*?!\[\]-]+")
_UNKNOWN = KeyMeaning("?")
_CONTENTS = KeyMeaning("prose")
_MODES: dict[Verb, PathMode] = {
    "list": "list",
    "read": "read",
    "search": "read",
    "send": "read",
    "copy": "read",
    "extract": "read",
    "write": "write",
    "make_folder": "make_folder",
    "move": "move",
    "delete": "delete",
    "run": "any",
    "unknown": "any",
}


def tool_call(client: Client, tool: str, tool_input: Mapping[str, Any]) -> ToolCall:
    """Return the normal form of a call, by the client's `tool_kinds`, `command_keys` and `path_keys`.

    A tool that is not in `tool_kinds` is classified by its name and the keys of its input. Raise `TypeError` if the
    input of a shell tool has no command.
    """
    kind = client.kind_of(tool)
    if kind == "shell":
        return shell_call(tool, tool_input, client.command_keys)
    if kind == "other":
        return generic_call(tool, tool_input, client.path_keys)
    modes: dict[ToolKind, PathMode] = {"file_read": "read", "search": "read"}
    mode = modes.get(kind, "write")
    paths = (PathAccess(path, mode, below=kind == "search") for path in paths_in(tool_input, client.path_keys))
    return ToolCall(kind, tuple(paths), subagent=client.subagent_request(tool_input) if kind == "spawn" else None)


def generic_call(
    tool: str, tool_input: Mapping[str, Any], path_keys: tuple[str, ...] = (), language: str = ""
) -> ToolCall:
    """Return the normal form of a call by the tool's name and its input.

    The values of `path_keys` are always paths. `language` is the language of code, unless the tool's name or the input
    names another.
    """
    if (git := git_command(tool, tool_input)) is not None:
        return ToolCall(command=git[0], folder=local_path(git[1]))
    reader = _Reader(tool, tool_input, path_keys, language)
    reader.read()
    return ToolCall(
        paths=tuple(dict.fromkeys(reader.paths)),
        command="\n".join(reader.commands) if reader.commands else None,
        folder=reader.folder,
        code=tuple(reader.code),
        unknown=tuple(reader.unknown),
    )


class _Reader:
    """Reads one input, and collects the paths, commands and code of the call."""

    def __init__(self, tool: str, tool_input: Mapping[str, Any], path_keys: tuple[str, ...], language: str) -> None:
        self.tool = tool
        self.paths: list[PathAccess] = []
        self.commands: list[str] = []
        self.code: list[InlineCode] = []
        self.unknown: list[str] = []
        self.folder = ""
        self._input = tool_input
        self._path_keys = path_keys
        self._meaning = tool_meaning(tool)
        self._verb: Verb = self._meaning.verb
        self._language = self._meaning.language or language
        self._bases: list[str] = []
        self._left = MAX_STRINGS
        """How many strings may still be examined; negative if some were not."""

    def read(self) -> None:
        self._read_verbs()
        self._is_recursive = self._input.get("recursive") is True
        self._below = self._is_recursive or self._verb in {"search", "send", "copy"}
        self._read_mapping(self._input, _UNKNOWN, 0)
        self._join_bases()
        if self._left < 0 and self._verb not in {"list", "read", "search"}:
            self.unknown.append(f"what else the input of {self.tool} names: it is too large to be examined")

    def _read_verbs(self) -> None:
        named = [verb_named(value) for key in _VERB_KEYS if isinstance(value := self._input.get(key), str)]
        command = self._input.get("command")
        if self._meaning.is_editor and isinstance(command, str):
            self._verb = verb_named(command)
        self._verb = stricter(self._verb, *named)

    # -- the walk --------------------------------------------------------------------------------------

    def _read(self, value: Any, key: str, meaning: KeyMeaning, depth: int) -> None:
        if depth > MAX_DEPTH:
            self._left = -1
        elif isinstance(value, str):
            self._left -= 1
            if self._left >= 0:
                self._read_string(value, key, meaning, depth)
        elif isinstance(value, dict):
            self._read_mapping(value, meaning, depth)
        elif isinstance(value, list):
            if key == "path" and 1 < len(value) < _MAX_PARTS and _is_strings(value):
                self._read("/".join(value), key, meaning, depth + 1)  # a path in parts
            for item in value[: self._left + 1]:
                self._read(item, key, meaning, depth + 1)

    def _read_mapping(self, mapping: Mapping[str, Any], above: KeyMeaning, depth: int) -> None:
        done = self._read_command(mapping, depth)
        for key, value in mapping.items():
            if key not in done:
                is_path = self._read_key(key, above)
                meaning = _CONTENTS if is_path and isinstance(value, str) else _below(above, key_meaning(key))
                self._read(value, key, meaning, depth + 1)

    def _read_key(self, key: str, above: KeyMeaning) -> bool:
        """Add a key that is a path itself, as in `files: {"a.txt": "text"}`. Return whether it is one."""
        self._left -= 1
        is_path = self._left >= 0 and len(key) <= MAX_PATH and ("/" in key or "." in key) and bool(_PATH.fullmatch(key))
        if is_path:
            self._add_path(key, above)
        return is_path

    def _read_string(self, text: str, key: str, meaning: KeyMeaning, depth: int) -> None:
        role = "path" if key in self._path_keys else meaning.role
        if text[:1] in {"{", "["} and role not in {"prose", "code"} and self._read_json(text, key, meaning, depth):
            return
        if self._is_run(text, key, role):
            self._read_code(text)
            return
        if key in {"patch", "diff"} or text.startswith("*** Begin Patch"):
            self._read_patch(text)
        elif role == "code" or (self._language == "sql" and key == "query"):
            self._read_code(text)
        elif role in {"command", "program"}:
            self.commands.append(text)
        elif len(text) <= MAX_PATH:
            self._read_path(text, role, meaning)

    def _is_run(self, text: str, key: str, role: str) -> bool:
        """Return whether a text is typed into a shell, or run by an interpreter that the tool's name contains."""
        if self._meaning.is_typing and key in _TYPED_KEYS:
            return True
        is_code = self._meaning.runs_code and (self._language or self._meaning.is_typing) and _CODE.search(text)
        return bool(is_code) and (
            role in {"?", "path?"} or key in _TYPED_KEYS or (role == "args" and self._verb == "run")
        )

    def _read_json(self, text: str, key: str, meaning: KeyMeaning, depth: int) -> bool:
        if len(text) > _MAX_JSON:
            return False
        try:
            value = decode_json(text)
        except (ValueError, RecursionError):
            return False
        self._read(value, key, meaning, depth + 1)
        return True

    # -- paths -----------------------------------------------------------------------------------------

    def _read_path(self, text: str, role: str, meaning: KeyMeaning) -> None:
        if text[:5].lower() == "file:":
            self._add_path(text, meaning)
        elif role == "path":
            self._read_paths(text, meaning)
        elif role == "base":
            self._bases.append(text)
            self._add(text, "list" if self._verb not in {"delete", "move"} else _MODES[self._verb])
        elif role == "glob":
            self._read_glob(text)
        elif role == "name":
            self._bases += [access.path.rpartition("/")[0] for access in self.paths[:1] if "/" in access.path]
            self._add_path(text, meaning)
        elif role == "path?" and not re.search(r"\s", text):
            self._read_possible_path(text, meaning)
        elif role == "?" and (mount := _MOUNT.match(text)) is not None:
            self._add(mount[1], "any")
        elif role == "?" and _PATH.fullmatch(text):
            self._add(text, "any" if _MODES[self._verb] not in {"read", "list"} else _MODES[self._verb])

    def _read_glob(self, text: str) -> None:
        if not _GLOB.fullmatch(text):
            return
        mode = _MODES[self._verb] if self._verb != "search" else "list"
        self._add(text, mode, glob=True)
        if mode in {"write", "delete", "move"}:  # servers differ in what a star matches
            folder = re.split(r"[^/]*[*?\[{]", text, maxsplit=1)[0] or "."
            name = text.rpartition("/")[2]
            among = () if set(name) <= {"*"} else (name,)
            self.paths.append(PathAccess(folder, "write", below=True, among=among))

    def _read_paths(self, text: str, meaning: KeyMeaning) -> None:
        """Add a path, or several that are separated by commas or line ends."""
        parts = re.split(r"[,\n]", text) if "," in text or "\n" in text else ()
        for path in (text, *parts):
            self._add_path(path.strip() if parts else path, meaning)
        if meaning.is_folder:
            self._bases.append(text)

    def _read_possible_path(self, text: str, meaning: KeyMeaning) -> None:
        """Add the value of a key such as `to`. A single word may be no path: it is left out if the verb is `send`."""
        if _PATH.fullmatch(text) or self._verb in {"copy", "extract", "move", "delete"}:
            self._add_path(text, meaning)
        elif self._verb != "send":
            self._add(text, "any" if _MODES[self._verb] not in {"read", "list"} else _MODES[self._verb])

    def _add_path(self, text: str, meaning: KeyMeaning) -> None:
        path = local_path(text)
        if path:
            self._add(path, self._mode(meaning))
        elif (other := _OTHER_URL.fullmatch(text)) is not None:
            self._add(other[1], "any" if _MODES[self._verb] not in {"read", "list"} else _MODES[self._verb])

    def _mode(self, meaning: KeyMeaning) -> PathMode:
        """Return the mode of a path: a write if its key names a destination, else the mode of the tool's verb."""
        if meaning.is_destination and self._verb not in {"list", "delete", "search"}:
            return "make_folder" if self._verb == "make_folder" else "write"
        return _MODES[self._verb]

    def _add(self, path: str, mode: PathMode, *, glob: bool = False) -> None:
        if not path:
            return
        writes_below = mode == "write" and (self._verb == "extract" or self._is_recursive)
        below = writes_below or (mode == "read" and self._below)
        glob = glob or not _GLOB_CHARACTERS.isdisjoint(path)
        self.paths.append(PathAccess(path, mode, below=below, glob=glob))

    def _join_bases(self) -> None:
        """Add the relative paths again, below the folders that the input gives as their base."""
        bases = dict.fromkeys(filter(None, map(local_path, self._bases)))
        if self._below and all(access.path in bases for access in self.paths):
            self.paths += [PathAccess(base, "read", below=True) for base in bases]
        relative = [access for access in self.paths if access.path[0] not in "/~" and access.path not in bases]
        for base in tuple(bases)[:_MAX_BASES]:
            for access in relative:
                self.paths.append(replace(access, path=f"{base.rstrip('/')}/{access.path}"))

    def _read_patch(self, text: str) -> None:
        from fairlead.clients._patches import patch_paths

        mode: PathMode | None = None if self._verb not in {"list", "read", "search"} else "list"
        for access in patch_paths(text):
            self._left -= 1
            if self._left >= 0:
                self.paths.append(access if mode is None else replace(access, mode=mode))

    # -- commands and code -----------------------------------------------------------------------------

    def _read_command(self, mapping: Mapping[str, Any], depth: int) -> set[str]:
        """Read the command of a mapping, with its arguments, variables and folder. Return the keys that were read."""
        keys = {key: key_meaning(key).role for key in mapping}
        heads = [key for key, role in keys.items() if role in {"program", "command"} and self._is_command(mapping, key)]
        arguments = [key for key, role in keys.items() if role == "args" and _is_strings(mapping[key])]
        if not heads:  # `argv` alone is a command with its program
            heads = [key for key in arguments if key == "argv" and mapping[key]]
            arguments = [key for key in arguments if key not in heads]
        if not heads and arguments and self._verb == "run":
            self.commands += [shlex.join(mapping[key]) for key in arguments if mapping[key]]
            self._read_folder(mapping, depth)
            return set(arguments)
        if not heads:
            return set()
        variables = [key for key in keys if key in _ENVIRONMENT_KEYS and isinstance(mapping[key], dict)]
        words = shlex.join(word for key in arguments for word in mapping[key])
        texts_of = [key for key, role in keys.items() if role == "args" and isinstance(mapping[key], str)]
        words = " ".join((words, *(mapping[key] for key in texts_of))).strip()
        prefix = "".join(f"{word} " for key in variables for word in _assignments(mapping[key]))
        texts = [text for key in heads for text in _command_texts(key, mapping[key])]
        for text in texts:
            self.commands.append(f"{prefix}{text} {words}".strip() if words else f"{prefix}{text}")
            if words and mapping.get("shell") is True:
                self.commands.append(" ".join((text, *(word for key in arguments for word in mapping[key]))))
        self._read_folder(mapping, depth)
        return {*heads, *arguments, *texts_of, *variables}

    def _is_command(self, mapping: Mapping[str, Any], key: str) -> bool:
        value = mapping[key]
        if self._meaning.is_editor and isinstance(value, str) and verb_named(value) != "unknown":
            return False
        return (isinstance(value, str) and bool(value.strip())) or (_is_strings(value) and bool(value))

    def _read_folder(self, mapping: Mapping[str, Any], depth: int) -> None:
        folders = [
            value for key, value in mapping.items() if key_meaning(key).role == "base" and isinstance(value, str)
        ]
        folder = local_path(folders[0]) if folders else ""
        if folder and not self.folder and (depth == 0 or len(self.commands) == 1):
            self.folder = folder
        elif folder and folder != self.folder:
            self.commands[-1] = f"cd {shlex.quote(folder)} && {self.commands[-1]}"

    def _read_code(self, text: str) -> None:
        named = (language_named(value) for key in _LANGUAGE_KEYS if isinstance(value := self._input.get(key), str))
        language = next(filter(None, named), self._language) or ("bash" if self._meaning.is_typing else "")
        if self._verb in {"list", "read", "search"} and language != "sql":
            return
        if len(text) <= MAX_PATH and _PATH.fullmatch(text):
            self.commands.append(shlex.quote(text if "/" in text else f"./{text}"))
        if language == "bash":
            self.commands.append(text)
        elif language != "sql" or _SQL_FILES.search(text):
            self.code.append(InlineCode(language, text))


def _below(above: KeyMeaning, own: KeyMeaning) -> KeyMeaning:
    """Return the meaning of a key in a nested mapping. It inherits from `above`, the meaning of the mapping's key."""
    role = above.role if own.role == "?" and above.role in {"path", "path?", "prose"} else own.role
    return KeyMeaning(role, own.is_destination or above.is_destination, own.is_folder)


def _is_strings(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _command_texts(key: str, value: str | list[str]) -> Iterator[str]:
    """Yield the commands in a value. A list is one program with its arguments.

    If the key is a plural, or if the first of several items contains a blank, each item is a command instead.
    """
    if isinstance(value, str):
        yield value
    elif key.lower().endswith("s") or (" " in value[0] and len(value) > 1):
        yield from value
    else:
        yield shlex.join(value) if len(value) > 1 else value[0]


def _assignments(variables: Mapping[str, Any]) -> Iterator[str]:
    for name, value in variables.items():
        if re.fullmatch(r"[A-Za-z_]\w*", str(name)):
            yield f"{name}={shlex.quote(str(value))}"
