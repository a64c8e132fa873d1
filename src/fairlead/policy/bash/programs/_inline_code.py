"""The effects of programs with code on their command line: sed, awk, and interpreters with `-c` or `-e`.

The code is neither run nor parsed: it is searched for functions that access files, and for the paths that it contains.
"""

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

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_WRITES: Final = re.compile(
    r"""['"][rbt]*[wax]\+?[bt]*['"] | ['"]r[bt]*\+ | ['"]\s*\+?[>|] |
    open\s{0,9}\(?\s{0,9}\w{1,40}\s{0,9},\s{0,9}['"]?\+?> |
    write_?(?:text|bytes|file|lines) | [Ww]riteFile | appendFile | createWriteStream | file_put_contents |
    unlink | \brm(?:Sync|dir|tree)?\b | rmtree |
    os\.(?:remove|rename|replace|truncate|symlink|link|open|chmod|mknod|mkdir) |
    shutil | \b(?:rename|truncate|symlink|copyFile|cpSync|chmod|touch|hardlink_to|symlink_to|link_to)(?:Sync)?\b |
    removedirs | makedirs | \bmkdir | \.save\b | \.dump\( | File\.(?:write|delete|rename|open|new) | FileUtils |
    IO\.write | spurt | Deno\.(?:write|remove|rename|truncate) | Path\([^)]{0,199}\)\.(?:replace|rename|open) |
    (?:from|import)\s+os\b.{0,99}\b(?:remove|replace)\b | -[a-z]{0,9}i\b.{0,99}<> | copy\(""",
    re.VERBOSE | re.DOTALL,
)
_READS: Final = re.compile(
    r"\bopen\b|[Rr]ead|slurp|file_get_contents|\bload|<\w*>|fileinput|linecache|\brequire\b|\bcat\b|argv"
)
_RUNS: Final = re.compile(
    r"\bsystem\b|popen|subprocess|\bexec|spawn|child_process|`|\bqx\b|%x|os\.\w*exec|\bsh\b", re.IGNORECASE
)
_HIDES: Final = re.compile(
    r"(?<![.\w])eval\b|(?<![.\w])exec\s*\(\s*(?!['\"])|b64decode|__import__|getattr\s*\(|atob\s*\(|fromhex"
)
_BUILDS: Final = re.compile(r"\bchr\b|fromCharCode|\bpack\b|\bjoin\s*\(|\bdecode\b|\[::-1\]|reverse|\bformat\b|%\s*\(")
_LITERAL: Final = re.compile(
    r"""'((?:[^'\\\n]|\\.)*)'|"((?:[^"\\\n]|\\.)*)"|`([^`\n]*)`|\bq[qwrx]?\s*[({\[/|!]([^)}\]/|!\n]*)|%[wqQx][({\[]([^)}\]\n]*)"""
)
_JOINT: Final = re.compile(r"""(['"])(?:\s*[+.]\s*|\s+)[rbuf]?\1""")
_NO_PATH: Final = re.compile(r"[rwaxbt+]{1,3}|utf-?8|ascii|latin-?1|\s*|-|[.]")
_MAX_PATH_LENGTH: Final = 256
_SED_WRITE: Final = re.compile(r"(?:^|[;{}\n\d$]|/[gpiImM\d]*)\s*[wW]\s+([^\s;}]+)|/[gpiImM\d]*[wW]\s+([^\s;}]+)")
_SED_RUN: Final = re.compile(r"(?:^|[;{}\n\d$])\s*e(?:\s+([^\n;}]+)|$)|/[gpiImM\d]*e[gpw]*(?:$|[;}\n])")
_SED_IN_PLACE: Final = re.compile(r"-[nErsuz]*[iI].*|--in?(?:-.*)?")
_AWK_FILE: Final = re.compile(r"""(>>?|<)\s*"((?:[^"\\]|\\.)+)\"""")
_AWK_SHELL: Final = re.compile(
    r"""(?:system\s*\(\s*|\|&?\s*)"((?:[^"\\]|\\.)+)"|"((?:[^"\\]|\\.)+)"\s*\|&?\s*getline"""
)
_AWK_HIDDEN: Final = re.compile(r"print[^;}\n]{0,199}(?:>>?|\|)\s*[A-Za-z_($]|system\s*\(\s*[^\s\"]")

_INLINE: Final = {
    "python": ("c", "mWX", ""), "pypy": ("c", "mWX", ""), "perl": ("eE", "IMmF", ""), "ruby": ("e", "IrCF", ""),
    "node": ("ep", "r", "eval print require"), "nodejs": ("ep", "r", "eval print require"),
    "bun": ("ep", "", "eval print"),
    "php": ("rBRE", "dcz", "run"), "lua": ("e", "l", ""), "osascript": ("e", "l", ""), "Rscript": ("e", "", ""),
}  # fmt: skip
"""Interpreter → the letters whose value is code, letters with another value, long options with a value."""


def _interpreter(call: ProgramCall) -> Iterator[Effect]:
    letters, other, long = _INLINE[call.program]
    args, in_place = _without_in_place(call)
    opts = parse_options(args, letters + other, long)
    codes = opts.values(*letters, *({"eval", "print", "run"} & opts.given.keys()))
    operands = opts.operands
    if in_place:
        yield from accesses("write", [word for word in operands if word])
    if opts.has("m") and call.program in {"python", "pypy"}:
        at = next((at for at, arg in enumerate(call.args) if re.match(r"-[a-zA-Z]*m", arg)), 0)
        name = call.args[at].partition("m")[2]
        yield from _module(opts.values("m")[0], operands)
        yield RunCommand([name, *call.args[at + 1 :]] if name else call.args[at + 1 :], implied=True)
        return
    if not codes and not opts.has("m") and (not operands or operands[0] == "-"):
        if call.stdin is not None:
            codes, operands = [quote(call.stdin)], operands[1:]
        elif call.file is not None:
            yield RunFile(call.file, call.program, operands[1:])
        elif call.piped and not opts.has("version", "V", "v", "h", "help"):
            yield UnknownEffect(f"{call.program} runs code from another command")
    if not codes and operands and operands[0] != "-":
        yield from _script_file(call.program, operands)
    for code in codes:
        if is_unknown(code):
            yield UnknownEffect(f"{call.program} runs code that is only known when it runs")
        yield RunCode(call.program, plain(code), operands)


def _script_file(program: str, operands: list[str]) -> Iterator[Effect]:
    """Yield the effects of running a script file."""
    yield Access("read", operands[0])
    yield RunFile(operands[0], program, operands[1:])


def _module(name: str, args: list[str]) -> Iterator[Effect]:
    """Yield the effects of `python -m name`, if the module is a file of the project."""
    path = name.replace(".", "/")
    yield RunFile(f"{path}.py", "python", args)
    yield RunFile(f"{path}/__main__.py", "python", args)


def _without_in_place(call: ProgramCall) -> tuple[list[str], bool]:
    """Remove `-i`, `-pi` and `-i.bak`: the letter is followed by a suffix, not by an option."""
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


def code_effects(run: RunCode) -> Iterator[Effect]:
    """Yield the effects of code, on a command line or in a file."""
    program, code, operands = run
    if program in _OWN_SYNTAX:
        yield from _OWN_SYNTAX[program](code)
        return
    if _HIDES.search(code):
        yield UnknownEffect(f"{program} runs code that is built while it runs")
    runs, writes = _RUNS.search(code), _WRITES.search(code)
    if not (runs or writes or _READS.search(code)):
        return
    texts = list(_literals(code))
    yield from _mentioned_paths(texts, writes=bool(runs or writes), runs=bool(runs))
    yield from (Access("write" if writes else "read", operand) for operand in operands if operand)
    if writes and (_BUILDS.search(code) or not (texts or operands)):
        yield UnknownEffect(f"{program} writes files whose names are built while it runs")


def _literals(code: str) -> Iterator[str]:
    """Yield each string literal, and literals that are concatenated as one."""
    joined = _JOINT.sub("", code)
    seen = set()
    for source in (code,) if joined == code else (code, joined):
        for groups in _LITERAL.findall(source):
            text = unescape(next((group for group in groups if group), ""))
            if text not in seen:
                seen.add(text)
                yield text


def _mentioned_paths(texts: Iterable[str], *, writes: bool, runs: bool) -> Iterator[Effect]:
    for text in texts:
        path = text.lstrip("+<>| ").strip()
        if not path or len(path) > _MAX_PATH_LENGTH or _NO_PATH.fullmatch(path):
            continue
        if runs and " " in path:
            yield RunScript(path)
        else:
            is_path = " " not in path and any(c in path for c in "./~")
            yield Access("write" if writes else "read", quote(path), if_exists=not is_path)
            if writes:
                yield Access("read", quote(path))


def _sed(call: ProgramCall) -> Iterator[Effect]:
    args = [arg for arg in call.args if arg and not _SED_IN_PLACE.fullmatch(arg)]
    in_place = any(_SED_IN_PLACE.fullmatch(arg) for arg in call.args)
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
        yield from _awk_program(plain(word))


def _awk_program(code: str) -> Iterator[Effect]:
    for sign, path in _AWK_FILE.findall(code):
        yield Access("read" if sign == "<" else "write", quote(unescape(path)))
    for groups in _AWK_SHELL.findall(code):
        yield RunScript(unescape(groups[0] or groups[1]))
    if _AWK_HIDDEN.search(code):
        yield UnknownEffect("which file awk writes, or which command it runs, is only known when it runs")
    for path in re.findall(r'ARGV\[\w+\]\s*=\s*"([^"]+)"', code):
        yield Access("read", quote(unescape(path)))


_OWN_SYNTAX: Final[dict[str, Callable[[str], Iterator[Effect]]]] = {
    "awk": _awk_program,
    "sed": _sed_script,
    "sqlite": sqlite_commands,
}
"""Languages whose code is not searched for literals."""

INLINE_CODE: Final[dict[str, Program]] = {
    **dict.fromkeys(_INLINE, _interpreter),
    **dict.fromkeys(("sed", "gsed"), _sed),
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), _awk),
}
