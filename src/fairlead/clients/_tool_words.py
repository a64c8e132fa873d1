"""The meaning of the words in names of unknown tools, and in the keys of their inputs."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal, NamedTuple, TypeVar

Verb = Literal[
    "list", "read", "search", "unknown", "run", "send", "copy", "extract", "write", "make_folder", "move", "delete"
]
"""What a tool does, according to its name.

`search` and `send` read everything below a folder, `copy` reads one path and writes another, and `extract` writes below
a folder.
"""

Role = Literal["path", "path?", "base", "glob", "name", "command", "args", "program", "code", "prose", "?"]
"""What the value of a key is.

path     a path, whatever it looks like
path?    a path, if it looks like one: one word
base     the folder that paths are relative to
glob     a pattern of file names
name     the name of a file in the folder of another path, as in `new_name`
command  a shell command
args     the arguments of a program
program  a program
code     code of a language
prose    text for people or for a model, or the contents of a file: never a path
?        unknown: a path only if it cannot be anything else
"""

_MAX_VERB = 40
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

_T = TypeVar("_T", bound=str)


def _by_word(table: dict[_T, str]) -> dict[str, _T]:
    return {word: meaning for meaning, words in table.items() for word in words.split()}


_VERBS: dict[str, Verb] = _by_word(
    {
        "list": "list ls tree stat exists info metadata enumerate",
        "read": "read get find glob view show describe cat head tail open load fetch inspect check diff count lookup "
        "preview print analyze analyse explain summarize validate query lint",
        "search": "search grep rg index scan",
        "run": "run exec execute eval evaluate shell bash terminal spawn invoke repl",
        "send": "upload send attach share publish post submit",
        "copy": "copy cp duplicate archive zip tar compress pack backup convert export import sync",
        "extract": "extract unzip unpack decompress untar",
        "write": "write edit save put append insert touch create make new add update set replace patch modify apply "
        "overwrite store format generate change prepend upsert truncate restore revert undo chmod chown link "
        "symlink download fix refactor commit",
        "make_folder": "mkdir",
        "move": "move mv rename relocate",
        "delete": "clear empty delete remove rm rmdir unlink trash erase wipe destroy purge shred drop",
    }
)
_STRICTNESS: tuple[Verb, ...] = (
    *("list", "read", "search", "unknown", "run", "send", "copy", "extract"),
    *("make_folder", "write", "move", "delete"),
)
_FOLDER_WORDS = frozenset({"dir", "directory", "folder", "directories", "folders"})
_FILE_WORDS = _FOLDER_WORDS | {"file", "files", "path", "paths"}
_LIST_WORDS = frozenset({"info", "metadata", "stat", "tree", "exists"})
_TYPING_WORDS = frozenset(
    {"terminal", "shell", "bash", "sh", "zsh", "ssh", "process", "tmux", "pty", "console", "stdin", "keys", "repl"}
)
"""Words in the names of tools that type text into a program, such as `send_keys`."""

_ROLES: dict[str, Role] = _by_word(
    {
        "path": "path paths file files filename filenames filepath filepaths pathname dir dirs directory directories "
        "folder folders notebook uri uris",
        "path?": "source sources src destination dest dst target targets from to input inputs output outputs outfile "
        "infile archive location document documents resource resources attachment attachments local remote "
        "entry entries item items asset assets origin image",
        "base": "cwd workdir root base workspace repo repository",
        "glob": "glob globs pattern patterns include includes mask wildcard",
        "command": "command commands cmd cmds cmdline shell bash run exec",
        "args": "args argv arguments",
        "program": "program executable binary",
        "code": "code script snippet sql expression javascript python js function",
        "prose": "content contents text texts message messages body description title query queries prompt comment "
        "comments note notes summary subject reason explanation thought thoughts question questions answer answers "
        "instruction instructions string strings str replacement markdown html log label labels topic reply thinking "
        "intent goal objective diff patch url header keyword keywords tag tags q selector element "
        "locator xpath css regex",
    }
)
_BASE_WORDS = frozenset({"working", "work", "base", "root", "project", "repo", "repository", "workspace", "current"})
_PROSE_ALONE = frozenset({"old", "new"})
_DESTINATIONS = frozenset(
    {"destination", "dest", "dst", "to", "target", "targets", "output", "outputs", "outfile", "out", "new", "save"}
    | {"link", "export", "download"}
)
_LANGUAGES = _by_word(
    {
        "python": "python py python3 ipython jupyter notebook nb cell kernel",
        "javascript": "javascript js node typescript ts browser page deno bun nodejs",
        "bash": "bash sh shell zsh terminal",
        "sql": "sql postgres postgresql sqlite mysql mariadb duckdb",
        **{name: name for name in ("ruby", "perl", "php", "lua", "awk")},
    }
)


class ToolMeaning(NamedTuple):
    """The meaning of the name of a tool."""

    verb: Verb
    is_typing: bool
    """Whether the tool types text into a shell or another program."""
    language: str
    """The language of code in the input; "" if the name does not contain one."""
    is_editor: bool
    """Whether the tool is a text editor whose input has a verb as its `command`, such as `str_replace`."""
    runs_code: bool
    """Whether the tool may run code from keys that are not for code."""


class KeyMeaning(NamedTuple):
    """The meaning of a key of a tool's input."""

    role: Role
    is_destination: bool = False
    """Whether the key names a path that is written: `destination`."""
    is_folder: bool = False
    """Whether the key names a folder: `directory`."""


def words_of(name: str) -> list[str]:
    """Return the words of a name in snake_case, kebab-case or camelCase, in lower case."""
    return [word.lower() for word in _WORD.findall(name[:200])]


@lru_cache(maxsize=512)
def tool_meaning(tool: str) -> ToolMeaning:
    """Return the meaning of a tool's name; for an MCP tool, of the part after the server."""
    server, _, name = tool.rpartition("__")
    words, server_words = words_of(name), words_of(server.rpartition("__")[2])
    language = next((_LANGUAGES[word] for word in (*words, *server_words) if word in _LANGUAGES), "")
    editor = {"str", "replace"} <= set(words) or {"text", "editor"} <= set(words)
    verb = _verb(words)
    is_typing = not _TYPING_WORDS.isdisjoint(words) or (verb == "run" and not _TYPING_WORDS.isdisjoint(server_words))
    return ToolMeaning(verb, is_typing, language, editor, runs_code=_runs_code(words, verb))


def _runs_code(words: list[str], verb: Verb) -> bool:
    named = any(word in _LANGUAGES for word in words if word not in {"browser", "page"})
    return verb == "run" or "cell" in words or (verb == "unknown" and named)


def _verb(words: list[str]) -> Verb:
    """Return the first verb of a name (`get_edit_history`); with "and" or "or" the strictest (`read_and_delete`)."""
    verbs = [_VERBS[word] for word in words if word in _VERBS]
    if not verbs:
        return "unknown"
    verb = stricter(*verbs) if {"and", "or"} & set(words) else verbs[0]
    named = set(words)
    if verb == "search" and _FILE_WORDS & named:
        return "read"  # `search_files` may search contents or names
    if verb == "read" and (_LIST_WORDS & named or ("find" in named and _FILE_WORDS & named)):
        return "list"
    return "make_folder" if verb == "write" and _FOLDER_WORDS & named and {"create", "make", "new"} & named else verb


def stricter(*verbs: Verb) -> Verb:
    """Return the verb that changes the most."""
    return max(verbs, key=_STRICTNESS.index)


def verb_named(word: str) -> Verb:
    """Return the verb that a value names: `str_replace` → `write`; `unknown` if it names none, or is a longer text."""
    return _verb(words_of(word)) if len(word) <= _MAX_VERB and " " not in word else "unknown"


@lru_cache(maxsize=1024)
def key_meaning(key: str) -> KeyMeaning:
    """Return the meaning of a key. The last word with a role decides: `text_file` is a path, `file_text` is prose."""
    words = words_of(key)
    named = set(words)
    role: Role = next((_ROLES[word] for word in reversed(words) if word in _ROLES), "?")
    if words and named <= _PROSE_ALONE:
        role = "prose"
    elif words == ["name", "path"]:
        role = "?"  # the path of a symbol in a file
    elif role in {"path", "path?"} and named & _BASE_WORDS and not named & {"in", "file", "files"}:
        role = "base"
    elif words and words[-1] in {"name", "names"} and named & {"new", "file", "old"}:
        role = "name"
    return KeyMeaning(role, not named.isdisjoint(_DESTINATIONS), not named.isdisjoint(_FOLDER_WORDS))


def language_named(text: str) -> str:
    """Return the language that a value names; "" if it is not a known language."""
    return _LANGUAGES.get(text.strip().lower(), "")
