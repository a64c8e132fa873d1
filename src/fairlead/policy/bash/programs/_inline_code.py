"""The effects of programs with code on their command line: sed, awk, and interpreters with `-c` or `-e`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from fairlead.policy.bash._words import is_unknown, plain, quote, unescape
from fairlead.policy.bash.programs._calls import (
    Access,
    Effect,
    Program,
    ProgramCall,
    RunCode,
    RunCommand,
    RunFile,
    RunScript,
    UnknownEffect,
    accesses,
    parse_options,
)
from fairlead.policy.bash.programs._sqlite import sqlite_commands
from fairlead.policy.bash.programs._unknown_programs import mentions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_SED_WRITE: Final = re.compile(r"(?:^|[;{}\n\d$]|/[gpiImM\d]*)\s*[wW]\s+([^\s;}]+)|/[gpiImM\d]*[wW]\s+([^\s;}]+)")
_SED_RUN: Final = re.compile(r"(?:^|[;{}\n\d$])\s*e(?:\s+([^\n;}]+)|$)|/[gpiImM\d]*e[gpw]*(?:$|[;}\n])")
_SED_IN_PLACE: Final = re.compile(r"-[nErsuz]*[iI].*|--in?(?:-.*)?")
_AWK_FILE: Final = re.compile(r"""(>>?|<)\s*"((?:[^"\\]|\\.)+)\"""")
_AWK_SHELL: Final = re.compile(
    r"""(?:system\s*\(\s*|\|&?\s*)"((?:[^"\\]|\\.)+)"|"((?:[^"\\]|\\.)+)"\s*\|&?\s*getline"""
)
_AWK_HIDDEN: Final = re.compile(r"print[^;}\n]{0,199}(?:>>?|\|)\s*[A-Za-z_($]|system\s*\(\s*[^\s\"]")

_PYTHON_IMPORT: Final = re.compile(r"(?:^|[;\n])\s*(?:import|from)\s+([\w.]+)")
_RELATIVE_IMPORT: Final = re.compile(
    r"""\b(?:require|import|from|run_path|load|do|include|require_once|require_relative)\s*\(?\s*['"]([\w-]*\.{0,2}/[\w./-]+)['"]"""
)
_SEARCH_PATH: Final = re.compile(r"""sys\.path\.(?:insert\(\s*\d+\s*,|append\()\s*['"]([\w./-]+)['"]""")
_MAX_LOADED: Final = 12
_OTHER_MODULES: Final = frozenset({"PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONSTARTUP"})
"""Variables that let a module replace one of Python's own."""

_INLINE: Final = {
    "deno": ("", "", ""), "tclsh": ("", "", ""), "expect": ("c", "f", ""), "guile": ("c", "lLs", ""),
    "julia": ("eE", "L", "eval print"), "Rscript": ("e", "", ""), "luajit": ("e", "l", ""),
    "raku": ("e", "IM", ""), "groovy": ("e", "", ""), "scala": ("e", "", ""), "elixir": ("e", "r", "eval"),
    "python": ("c", "mWX", ""), "pypy": ("c", "mWX", ""), "perl": ("eE", "IMmF", ""), "ruby": ("e", "IrCF", ""),
    **dict.fromkeys(("node", "nodejs"), ("ep", "r", "eval print require import loader env-file env-file-if-exists")),
    "bun": ("ep", "", "eval print"),
    "php": ("rBRE", "dcz", "run"), "lua": ("e", "l", ""), "osascript": ("e", "l", ""),
}  # fmt: skip
"""Interpreter → the letters whose value is code, letters with another value, long options with a value."""


_CONSOLES: Final = {
    "psql": ("cfo", "command file output"), "mysql": ("e", "execute"),
    "gdb": ("x", "ex eval-command iex batch-silent"), "lldb": ("osOS", "one-line"), "emacs": ("fl", "eval load"),
}  # fmt: skip
"""Program → the letters and the long options whose value is code."""
_CONSOLE_SHELL: Final = re.compile(
    r"""(?:^|[\n;])\s*(?:\.(?:shell|system)|\\!|shell|!)\s*(.+)|shell-command\s+"([^"]+)"|\|\s*([^\n|]+)""",
    re.MULTILINE,
)
_CONSOLE_OUTPUT: Final = re.compile(
    r"(?:^|[\n;])\s*(?:\.(?:output|once|log|backup|save|dump|excel|clone)|\\o|\\g|\\w|dump\s+\w+\s+\w+)\s+(\S+)",
    re.MULTILINE,
)
_CONSOLE_INPUT: Final = re.compile(r"(?:^|[\n;])\s*(?:\.(?:import|read|open|restore)|\\i|source)\s+(\S+)", re.MULTILINE)


def _interpreter(call: ProgramCall) -> Iterator[Effect]:
    letters, other, long = _INLINE[call.program]
    args, in_place = _without_in_place(call)
    opts = parse_options(args, letters + other, long)
    codes = opts.values(*letters, *({"eval", "print", "run"} & opts.given.keys()))
    operands = opts.operands
    if call.program == "deno" and operands[:1] in (["eval"], ["run"]):
        codes, operands = (operands[1:2], operands[2:]) if operands[0] == "eval" else ([], operands[1:])
    if in_place:
        yield from accesses("write", [word for word in operands if word])
    yield from accesses("read", opts.values("env-file", "env-file-if-exists"))
    yield from (RunFile(word, call.program, []) for word in opts.values("require", "import", "loader", _required(call)))
    if opts.has("m") and call.program in {"python", "pypy"}:
        yield from _module(call, opts.values("m")[0], operands)
    elif codes:
        lines = call.program in {"perl", "ruby"} and opts.has("n", "p")
        yield from accesses("read", operands if lines else ())
        yield from _codes(call.program, codes, operands)
    elif operands and operands[0] != "-":
        yield from _script_file(call.program, operands)
    elif call.stdin is not None:
        yield RunCode(call.program, call.stdin, operands[1:])
    elif call.file is not None:
        yield RunFile(call.file, call.program, operands[1:])
    elif call.piped and not opts.has("version", "V", "v", "h", "help"):
        yield UnknownEffect(f"{call.program} runs code from another command", runs=True)


def _required(call: ProgramCall) -> str:
    """Return the letter of the option that loads a file before the code; `require` if there is none."""
    return "r" if call.program in {"node", "nodejs", "ruby", "elixir"} else "require"


def _codes(program: str, codes: list[str], operands: list[str]) -> Iterator[Effect]:
    for code in codes:
        if is_unknown(code):
            yield UnknownEffect(f"{program} runs code that is only known when it runs", runs=True)
        yield RunCode(program, plain(code), operands)
        yield from _loaded(program, plain(code))


def _loaded(program: str, code: str) -> Iterator[Effect]:
    """Yield the files that code on a command line may import, and thereby run. Missing files are ignored later."""
    suffix = ".py" if program in {"python", "pypy"} else ".js"
    names = [name + end for name in _RELATIVE_IMPORT.findall(code) if name[-5:] != ".json" for end in ("", suffix)]
    if suffix == ".py":
        folders = ("", *(f"{folder}/" for folder in _SEARCH_PATH.findall(code)))
        modules = [name.replace(".", "/") for name in _PYTHON_IMPORT.findall(code)]
        names += [f"{folder}{name}.py" for name in modules for folder in folders]
    yield from (RunFile(quote(name), program, []) for name in names[:_MAX_LOADED])


def _script_file(program: str, operands: list[str]) -> Iterator[Effect]:
    """Yield the effects of running a script file."""
    if plain(operands[0]).startswith(("/dev/fd/", "/proc/self/fd")):
        yield UnknownEffect(f"{program} runs the output of another command", runs=True)
        return
    yield Access("read", operands[0])
    yield RunFile(operands[0], program, operands[1:], required=True)
    if program in {"node", "nodejs"} and "." not in operands[0].rpartition("/")[2]:
        yield RunFile(f"{operands[0]}.js", program, operands[1:])


def _module(call: ProgramCall, name: str, operands: list[str]) -> Iterator[Effect]:
    """Yield the effects of `python -m name`, which runs a file of the project or the program of that name."""
    path, args = name.replace(".", "/"), call.args
    is_known = plain(name) == "json.tool" and _OTHER_MODULES.isdisjoint(call.variables)
    package = ("json.py", "json/__init__.py") if is_known else ()
    for file in (f"{path}.py", f"{path}/__main__.py", *package):
        yield RunFile(file, "python", operands, has_known_fallback=is_known)
    index = next((index for index, arg in enumerate(args) if re.match(r"-[a-zA-Z]*m", arg)), 0)
    joined = args[index].partition("m")[2]
    yield RunCommand([joined, *args[index + 1 :]] if joined else args[index + 1 :], implied=True)


def _without_in_place(call: ProgramCall) -> tuple[list[str], bool]:
    """Return the arguments without `-i`, `-pi` and `-i.bak`, and whether one was given; a suffix may follow the `i`."""
    if call.program not in {"perl", "ruby"}:
        return call.args, False
    kept, in_place = [], False
    for arg in call.args:
        match = re.match(r"-([a-zA-DF-Z0-9]*?)i", arg)
        if match and "e" not in match[1]:
            in_place = True
            if match[1]:
                kept.append("-" + match[1])
        else:
            kept.append(arg)
    return kept, in_place


def _sed(call: ProgramCall) -> Iterator[Effect]:
    in_place = any(_SED_IN_PLACE.fullmatch(arg) for arg in call.args)
    # BSD's `-i` is followed by a suffix, which may be empty
    args = [arg for arg in call.args if (arg or not in_place) and not _SED_IN_PLACE.fullmatch(arg)]
    opts = parse_options(args, "efl", "expression file line-length")
    scripts = opts.values("e", "expression")
    files = opts.operands
    if not opts.has("e", "f", "expression", "file"):
        scripts, files = files[:1], files[1:]
    yield from accesses("write" if in_place else "read", files)
    yield from (effect for word in opts.values("f", "file") for effect in _script_file("sed", [word]))
    for word in scripts:
        yield from _sed_script(plain(word))


def _sed_script(text: str) -> Iterator[Effect]:
    for first, second in _SED_WRITE.findall(text):
        yield Access("write", quote(first or second))
    for match in _SED_RUN.finditer(text):
        yield RunScript(match[1]) if match[1] else UnknownEffect("sed runs the text that it edits as a command")
    for path in re.findall(r"(?:^|[;{}\n\d$])\s*r\s+([^\s;}]+)", text):
        yield Access("read", quote(path))


def _awk(call: ProgramCall) -> Iterator[Effect]:
    opts = parse_options(call.args, "Fvfief", "assign field-separator file include source")
    in_place = "inplace" in opts.values("i", "include")
    codes, files = opts.values("e", "source"), opts.operands
    if not opts.has("f", "file", "e", "source"):
        codes, files = files[:1], files[1:]
    yield from accesses("write" if in_place else "read", [word for word in files if "=" not in word])
    yield from (effect for word in opts.values("f", "file") for effect in _script_file("awk", [word]))
    for word in codes:
        yield from awk_effects(plain(word))


def awk_effects(code: str) -> Iterator[Effect]:
    """Yield the effects of an awk program."""
    for sign, path in _AWK_FILE.findall(code):
        yield Access("read" if sign == "<" else "write", quote(unescape(path)))
    for groups in _AWK_SHELL.findall(code):
        yield RunScript(unescape(groups[0] or groups[1]))
    if _AWK_HIDDEN.search(code):
        yield UnknownEffect("which file awk writes, or which command it runs, is only known when it runs")
    for path in re.findall(r'ARGV\[\w+\]\s*=\s*"([^"]+)"', code):
        yield Access("read", quote(unescape(path)))


def _console(call: ProgramCall) -> Iterator[Effect]:
    """Yield the effects of programs that have their own command language: psql, gdb, emacs."""
    letters, long = _CONSOLES[call.program]
    opts = parse_options(_with_long_names(call.args, long), letters, long)
    codes = [*opts.values(*letters, *long.split())]
    operands = opts.operands
    if call.program == "emacs":
        yield from accesses("write", operands)
    if call.stdin is not None:
        codes.append(quote(call.stdin))
    elif call.piped and call.program in {"psql", "mysql"}:
        yield UnknownEffect(f"{call.program} runs commands from another command", runs=True)
    for code in codes:
        if is_unknown(code):
            yield UnknownEffect(f"{call.program} runs code that is only known when it runs", runs=True)
        yield from _console_code(call.program, plain(code))
    yield from mentions(operands)


def _with_long_names(args: list[str], long: str) -> list[str]:
    """Return the arguments with two dashes before long options: gdb also accepts `-ex`."""
    names = long.split()
    return [f"-{arg}" if arg[:2] != "--" and arg[1:].partition("=")[0] in names else arg for arg in args]


def _console_code(program: str, code: str) -> Iterator[Effect]:
    for command in _CONSOLE_SHELL.findall(code):
        yield RunScript(next(filter(None, command)))
    for path in _CONSOLE_OUTPUT.findall(code):
        yield Access("write", quote(path.strip("'\"")))
    for path in _CONSOLE_INPUT.findall(code):
        yield Access("read", quote(path.strip("'\"")))
    if program in {"psql", "mysql"}:
        yield from mentions(map(quote, re.findall(r"[\w.~-]*[./][\w./~-]*", code)))
    else:
        yield RunCode(program, code, [])


LANGUAGE_EFFECTS: Final[dict[str, Callable[[str], Iterator[Effect]]]] = {
    "awk": awk_effects,
    "sed": _sed_script,
    "sqlite": sqlite_commands,
}
"""Languages with an analysis of their own → the effects of code."""

INLINE_CODE: Final[dict[str, Program]] = {
    **dict.fromkeys(_CONSOLES, _console),
    **dict.fromkeys(_INLINE, _interpreter),
    **dict.fromkeys(("sed", "gsed"), _sed),
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), _awk),
}
