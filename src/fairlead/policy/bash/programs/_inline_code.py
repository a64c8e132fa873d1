"""Programs that are given code on their command line: sed, awk, and the interpreters' `-c` and `-e`.

The code is not run and not parsed: it is searched for words that touch files, and for the paths it mentions.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from fairlead.policy.bash._words import is_unknown, plain, quote, unescape
from fairlead.policy.bash.programs._calls import Call, Doubt, Effect, Program, Script, Use, options, uses

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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
_LONGEST_PATH: Final = 256
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


def _interpreter(call: Call) -> Iterator[Effect]:
    letters, other, long = _INLINE[call.program]
    args, in_place = _without_in_place(call)
    found = options(args, letters + other, long)
    codes = found.values(*letters, *({"eval", "print", "run"} & found.given.keys()))
    operands = found.operands
    if in_place:
        yield from uses("write", [word for word in operands if word])
    if not codes and not found.has("m") and (not operands or operands[0] == "-"):
        if call.stdin is not None:
            codes, operands = [quote(call.stdin)], operands[1:]
        elif call.piped and not found.has("version", "V", "v", "h", "help"):
            yield Doubt(f"{call.program} runs code that another command prints")
    for code in codes:
        yield from _code(call.program, code, operands)


def _without_in_place(call: Call) -> tuple[list[str], bool]:
    """Take `-i`, `-pi`, `-i.bak` out: what follows the letter is a suffix, no option."""
    if call.program not in {"perl", "ruby"}:
        return call.args, False
    kept, found = [], False
    for arg in call.args:
        match = re.match(r"-([a-zA-DF-Z0-9]*?)i", arg)
        if match and "e" not in match[1]:
            found = True
            if match[1]:
                kept.append("-" + match[1])
        else:
            kept.append(arg)
    return kept, found


def _code(program: str, word: str, operands: list[str]) -> Iterator[Effect]:
    code = plain(word)
    if is_unknown(word):
        yield Doubt(f"{program} runs code that is only known when it runs")
    if _HIDES.search(code):
        yield Doubt(f"{program} runs code that is built while it runs")
    runs, writes = _RUNS.search(code), _WRITES.search(code)
    if not (runs or writes or _READS.search(code)):
        return
    texts = list(_literals(code))
    yield from _mentions(texts, writes=bool(runs or writes), runs=bool(runs))
    yield from (Use("write" if writes else "read", operand) for operand in operands if operand)
    if writes and (_BUILDS.search(code) or not (texts or operands)):
        yield Doubt(f"{program} writes files whose names are built while it runs")


def _literals(code: str) -> Iterator[str]:
    """Each text between quotes, and texts that are joined, as one."""
    joined = _JOINT.sub("", code)
    seen = set()
    for source in (code,) if joined == code else (code, joined):
        for groups in _LITERAL.findall(source):
            text = unescape(next((group for group in groups if group), ""))
            if text not in seen:
                seen.add(text)
                yield text


def _mentions(texts: Iterable[str], *, writes: bool, runs: bool) -> Iterator[Effect]:
    for text in texts:
        path = text.lstrip("+<>| ").strip()
        if not path or len(path) > _LONGEST_PATH or _NO_PATH.fullmatch(path):
            continue
        if runs and " " in path:
            yield Script(path)
        else:
            sure = " " not in path and any(c in path for c in "./~")
            yield Use("write" if writes else "read", quote(path), if_exists=not sure)
            if writes:
                yield Use("read", quote(path))


def _sed(call: Call) -> Iterator[Effect]:
    args = [arg for arg in call.args if arg and not _SED_IN_PLACE.fullmatch(arg)]
    in_place = any(_SED_IN_PLACE.fullmatch(arg) for arg in call.args)
    found = options(args, "efl", "expression file line-length")
    scripts = found.values("e", "expression")
    files = found.operands
    if not found.has("e", "f", "expression", "file"):
        scripts, files = files[:1], files[1:]
    yield from uses("write" if in_place else "read", files)
    yield from uses("read", found.values("f", "file"))
    for word in scripts:
        yield from _sed_script(plain(word))


def _sed_script(text: str) -> Iterator[Effect]:
    for first, second in _SED_WRITE.findall(text):
        yield Use("write", quote(first or second))
    for match in _SED_RUN.finditer(text):
        yield Script(match[1]) if match[1] else Doubt("sed runs what it edits as a command")
    for path in re.findall(r"(?:^|[;{}\n\d$])\s*r\s+([^\s;}]+)", text):
        yield Use("read", quote(path))


def _awk(call: Call) -> Iterator[Effect]:
    found = options(call.args, "Fvfief", "assign field-separator file include source")
    in_place = "inplace" in found.values("i", "include")
    codes, files = found.values("e", "source"), found.operands
    if not found.has("f", "file", "e", "source"):
        codes, files = files[:1], files[1:]
    yield from uses("write" if in_place else "read", [word for word in files if "=" not in word])
    for word in codes:
        yield from _awk_program(plain(word))


def _awk_program(code: str) -> Iterator[Effect]:
    for sign, path in _AWK_FILE.findall(code):
        yield Use("read" if sign == "<" else "write", quote(unescape(path)))
    for groups in _AWK_SHELL.findall(code):
        yield Script(unescape(groups[0] or groups[1]))
    if _AWK_HIDDEN.search(code):
        yield Doubt("awk writes to, or runs, what is only known when it runs")
    for path in re.findall(r'ARGV\[\w+\]\s*=\s*"([^"]+)"', code):
        yield Use("read", quote(unescape(path)))


CODE: Final[dict[str, Program]] = {
    **dict.fromkeys(_INLINE, _interpreter),
    **dict.fromkeys(("sed", "gsed"), _sed),
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), _awk),
}
