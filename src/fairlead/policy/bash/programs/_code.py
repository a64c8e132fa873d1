"""The effects of code in Python, JavaScript, Perl, Ruby, PHP, Lua and others, on a command line or in a file.

The code is neither run nor parsed: it is searched for functions that access files or run commands, and for literals. A
literal in code that writes files counts only if a rule protects the file of that name: most literals are not paths.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from fairlead.policy.bash._words import ANY_DEPTH, ONE_OF, quote, unescape
from fairlead.policy.bash.programs._calls import (
    Access,
    Effect,
    Mention,
    Mode,
    RunCode,
    RunCommand,
    RunScript,
    UnknownEffect,
    Unpack,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_WRITES: Final = re.compile(
    r"""(?:,|mode\s*=|\.open\(|\bopen\()\s*['"][rbt]*[wax]\+?[bt]*['"] | ['"]r[bt]*\+ | ['"]\s*\+?[>|] | \bq\(\s*\+?> |
    open\s{0,9}\(?\s{0,9}\w{1,40}\s{0,9},\s{0,9}['"]?\+?> |
    write_?(?:text|bytes|file|lines) | [Ww]rite(?:Text)?File | appendFile | createWriteStream | file_put_contents |
    unlink | \brm(?:Sync|dir|tree)?\b | rmtree |
    os\.(?:remove|rename|replace|truncate|symlink|link|open|chmod|mknod|mkdir) |
    shutil | \b(?:rename|truncate|symlink|copyFile|cpSync|chmod|touch|hardlink_to|symlink_to|link_to)(?:Sync)?\b |
    removedirs | makedirs | \bmkdir | \.save\b | \.dump\( | File\.(?:write|delete|rename|open|new) | FileUtils |
    IO\.write | spurt | (?:Deno|Bun)\.(?:write|remove|rename|truncate) |
    Path\([^)]{0,199}\)\.(?:replace|rename|open) | file\s+(?:delete|rename|copy) | os\.(?:remove|rename) |
    (?:from|import)\s+os\b.{0,99}\b(?:remove|replace)\b | -[a-z]{0,9}i\b.{0,99}<> | copy\( |
    \.to_(?:csv|json|parquet|excel|pickle)\b | savefig | \.(?:extract|extractall|backup)\( |
    delete-file | write-region | \bopen\s+\S+\s+[wa]\+?\s*[\]\n;] | \b(?:ATTACH|VACUUM\s+INTO|INTO\s+OUTFILE)\b""",
    re.VERBOSE | re.DOTALL,
)
_READS: Final = re.compile(
    r"\bopen\b|[Rr]ead|slurp|file_get_contents|\bload|<\w*>|fileinput|linecache|\brequire\b|\bcat\b|argv|\bsource\b"
)
_RUN_NAMES: Final = (
    r"(?:system|popen\d?|run|call|check_call|check_output|getoutput|getstatusoutput|shell_exec|passthru|proc_open|"
    r"exec\w*|spawn\w*|fork|Command|os\.execute|io\.popen|capture2e?|capture3)"
)
_RUNS: Final = re.compile(
    r"\bsystem\b|popen|subprocess|\bexec|spawn|child_process|`|\bqx\b|%x|os\.\w*exec|\bsh\b|do shell script|Open3",
    re.IGNORECASE,
)
_DYNAMIC_CODE: Final = re.compile(
    r"(?<![.\w])eval\b|(?<![.\w])exec\s*\(\s*(?!['\"])|b64decode|__import__|getattr\s*\(|atob\s*\(|fromhex|"
    r"base64['\"]|unhexlify|\bFunction\s*\(|from_base64|decode64|pack\s*\(?['\"]H"
)
_COMPUTES_TEXT: Final = re.compile(
    r"\bchr\b|fromCharCode|\bpack\b|\bdecode\b|\[::-1\]|\breverse|\bformat\b|%\s*\(|\btranslate\b|\bordin?al|\bbytes\("
)
_STRING: Final = r"""(?:[rbufRBUF]{0,2}'((?:[^'\\\n]|\\.)*)'|[rbufRBUF]{0,2}"((?:[^"\\\n]|\\.)*)"|`([^`\n]*)`)"""
_LITERAL: Final = re.compile(
    r"""'((?:[^'\\\n]|\\.)*)'|"((?:[^"\\\n]|\\.)*)"|`([^`\n]*)`|\bq[qwrx]?\s*[({\[/|!]([^)}\]/|!\n]*)|%[wqQx][({\[]([^)}\]\n]*)"""
)
_WORD: Final = re.compile(r"[\w./~+@%-]+")
_QUOTED: Final = re.compile(r"""[rbufRBUF]{0,2}(?:'((?:[^'\\\n]|\\.)*)'|"((?:[^"\\\n]|\\.)*)")""")
_CONCATENATED: Final = re.compile(r"\s*(?:\+|\.|\.\.|~)?\s*")
_JOINED: Final = re.compile(r"\)?\s*(?:/|,)\s*(?:\w+\(\s*)?|\)\s*\.\s*(?:joinpath|join)\(\s*")
_FILLED: Final = re.compile(r"\s*%\s*\(?\s*")
_NO_PATH: Final = re.compile(
    r"(?!file:)\w+://.*|.*\n.*|[rwaxbt+]{1,3}|utf-?8|ascii|latin-?1|\s*|-|[.]|\d[\d.]*|\{\}|\[\]", re.DOTALL
)
_MAX_PATH_LENGTH: Final = 256

_CERTAIN_CALLS: Final[tuple[tuple[re.Pattern[str], Mode], ...]] = (
    (re.compile(rf"\bopen\(\s*{_STRING}\s*,\s*(?:mode\s*=\s*)?['\"][rbt]*[wax]"), "write"),
    (re.compile(rf"\bPath\(\s*{_STRING}\s*\)\.(?:write_text|write_bytes|touch|open\(['\"][wax])"), "write"),
    (re.compile(rf"\b(?:write|append)(?:Text)?File(?:Sync)?\(\s*{_STRING}"), "write"),
    (
        re.compile(rf"\b(?:createWriteStream|file_put_contents|File\.write|IO\.write|Bun\.write)\(?\s*{_STRING}"),
        "write",
    ),
    (re.compile(rf"\b(?:rmtree|rmSync|rmdirSync|rm_rf|rm_r|remove_dir_all)\(?\s*{_STRING}"), "delete"),
    (re.compile(rf"\b(?:rename|renameSync|move|mv)\(\s*{_STRING}"), "move"),
)
"""Calls that certainly access the file that their first argument names."""
_WRITTEN: Final = re.compile(
    r"""\bopen\s*\(\s*([^,()'"\n]+(?:\([^()\n]*\))?)\s*,\s*(?:mode\s*=\s*)?['"][rbt]*[wax] |
    \b(?:unlink|remove|rename|replace|rmtree|truncate|(?:write|append)File(?:Sync)?|unlinkSync|rmSync|renameSync|
    file_put_contents|File\.write)\s*\(\s*([^,\n]{1,160}) | ([\w.]+)\.(?:write_text|write_bytes|unlink|rename)\(""",
    re.VERBOSE,
)
"""Calls that change a file, with the expression that names it."""
_ARCHIVES: Final = re.compile(rf"\b(?:tarfile\.open|TarFile|ZipFile|unpack_archive)\(\s*{_STRING}")
_EXTRACTS: Final = re.compile(
    rf"\.extractall\(\s*(?:path\s*=\s*)?(?:{_STRING})?|\bunpack_archive\([^,()]+(?:,\s*(?:extract_dir\s*=\s*)?{_STRING})?"
)
_SEARCHES: Final = re.compile(rf"\b(?:glob|iglob|rglob|globSync|Dir\.glob|Dir\[)\s*\(?\s*{_STRING}")
_WALKS: Final = (
    re.compile(
        r"(?:\bos\.(?:listdir|walk|scandir)|(?<![.\w])(?:listdir|walk|scandir)|\breaddir(?:Sync)?|\bopendir|"
        rf"\bDir\.(?:entries|children|each_child|foreach))\b\s*\(?\s*(?:(?:my\s+)?\$?\w+\s*,\s*)?(?:{_STRING}|([A-Za-z_]\w*)|\))"
    ),
    re.compile(rf"(?:\bPath\(\s*(?:{_STRING})?\s*\)|([A-Za-z_]\w*))\.iterdir\("),
)
"""Calls that list a folder, which a literal or a variable names."""
_ENDINGS: Final = re.compile(
    r"""\bends_?[wW]ith\??\(\s*\(?\s*((?:'[^'\n]*'|"[^"\n]*")(?:\s*,\s*(?:'[^'\n]*'|"[^"\n]*"))*)|"""
    r"""\.suffix\s*==\s*('[^'\n]*'|"[^"\n]*")"""
)
_ENVIRONMENT: Final = re.compile(r"environ|getenv|\bENV\b|process\.env|\$_ENV|Deno\.env")
_ITEM: Final = r"""[rbf]?(?:'[^'\n]*'|"[^"\n]*")"""
_ITEMS: Final = rf"{_ITEM}(?:\s*,\s*{_ITEM})*"
_LISTED_COMMAND: Final = re.compile(rf"\b{_RUN_NAMES}\s*\(?\s*(?:{_STRING}\s*,\s*)?[\[(]\s*({_ITEMS})\s*,?\s*[\])]")
_GIVEN_COMMAND: Final = re.compile(rf"\b{_RUN_NAMES}\s*\(?\s*{_STRING}((?:\s*,\s*(?:'[^'\n]*'|\"[^\"\n]*\"))*)")


def reads_environment(code: str) -> bool:
    """Return whether code reads environment variables."""
    return bool(_ENVIRONMENT.search(code))


def code_effects(run: RunCode) -> Iterator[Effect]:
    """Yield the effects of code, on a command line or in a file."""
    program, code, operands = run
    if program in _ANALYSED_LANGUAGES:
        from fairlead.policy.bash.programs._inline_code import LANGUAGE_EFFECTS

        yield from LANGUAGE_EFFECTS[program](code)
        return
    if _DYNAMIC_CODE.search(code):
        yield UnknownEffect(f"{program} runs code that is built while it runs", runs=True)
    runs, writes, reads = _RUNS.search(code), _WRITES.search(code), _READS.search(code)
    texts = list(_literals(code, program))
    if not (runs or writes or reads):
        yield from (Mention(word, reads_only=program in _WELL_KNOWN, below=False) for word in _paths(texts))
        return
    if runs:
        yield from _commands(code, texts)
    if writes:
        yield from _certain_accesses(code)
    yield from _named_files(texts, writes=bool(writes or runs))
    yield from _searched_files(code, writes=bool(writes or runs))
    if writes:
        yield from _unpacked_archives(code)
    yield from (Access("write" if writes else "read", operand, literal=True) for operand in operands if operand)
    if writes and (_builds_names(code) or not (texts or operands)):
        yield UnknownEffect(f"{program} writes files whose names are built while it runs")


def _unpacked_archives(code: str) -> Iterator[Effect]:
    """Yield each archive that the code unpacks, once for each folder that the code unpacks archives to."""
    targets = [_first(match.groups()) or "." for match in _EXTRACTS.finditer(code)]
    for match in _ARCHIVES.finditer(code) if targets else ():
        archive = _first(match.groups())
        kind = "zip" if archive.endswith((".zip", ".whl", ".jar")) else "tar"
        yield from (Unpack(quote(archive), quote(folder), kind, 0) for folder in targets)


def _first(groups: Iterable[str | None]) -> str:
    return unescape(next((group for group in groups if group), ""))


def _certain_accesses(code: str) -> Iterator[Effect]:
    """Yield the accesses of the calls in `_CERTAIN_CALLS` whose first argument is a literal path."""
    for pattern, mode in _CERTAIN_CALLS:
        for match in pattern.finditer(code):
            path = _first(match.groups())
            if path and "{" not in path and "$" not in path and len(path) <= _MAX_PATH_LENGTH:
                yield Access(mode, quote(path), below=mode != "write")


def _named_files(texts: list[str], *, writes: bool) -> Iterator[Effect]:
    """Yield a read, and with `writes` a write, of each file that a literal names.

    These accesses matter only if a rule protects the file.
    """
    for path in _paths(texts):
        if writes:
            yield Access("write", path, literal=True)
        yield Access("read", path, literal=True)


def _paths(texts: list[str]) -> Iterator[str]:
    for text in texts:
        path = text.lstrip("+<>| ").strip()
        if path and len(path) <= _MAX_PATH_LENGTH and not _NO_PATH.fullmatch(path):
            yield ONE_OF + _as_pattern(path) if "{" in path and "/" not in path[:1] else quote(path)
            yield from map(quote, _tokens(path))


def _tokens(text: str) -> Iterable[str]:
    """Return the words of a literal that may name files, such as `.env` in `ATTACH '.env'`; empty for a single word."""
    if " " not in text:
        return ()
    return [part for part in re.split(r"[\s'\"`;|&()<>=,]+", text) if "." in part or "/" in part]


def _as_pattern(path: str) -> str:
    """Return a formatted string as a pattern: `{name}.env` and `${name}.env` match any file with this ending."""
    return re.sub(r"\$?\{[^{}]*\}", "*", path)


def _searched_files(code: str, *, writes: bool) -> Iterator[Effect]:
    """Yield an access to any one of the files that the code searches for: which one is only known when it runs."""
    mode: Mode = "write" if writes else "read"
    for match in _SEARCHES.finditer(code):
        folder, _, name = _first(match.groups()).rpartition("/")
        root = re.split(r"[*?\[]", folder)[0].rstrip("/") or "."
        yield Access(mode, f"{ONE_OF}{quote(root)}/{ANY_DEPTH}{name or '*'}")
    endings = [f"*{ending}" for groups in _ENDINGS.findall(code) for ending in _quoted("".join(groups))] or ["*"]
    for match in [match for pattern in _WALKS for match in pattern.finditer(code)]:
        *literal, name = match.groups()
        root = (_assigned(code, name) if name else _first(literal)).rstrip("/") or "."
        yield from (Access(mode, f"{ONE_OF}{quote(root)}/{ANY_DEPTH}{ending}") for ending in endings)


def _assigned(code: str, name: str) -> str:
    """Return the first literal that is assigned to a variable; the current folder if there is none."""
    match = re.search(rf"(?<![\w.]){name}\s*=\s*(?:\w+\.)?(?:Path\(\s*)?{_STRING}", code)
    return _first(match.groups()) if match else "."


def _quoted(source: str) -> list[str]:
    return [unescape(single or double) for single, double in re.findall(r"'([^']*)'|\"([^\"]*)\"", source)]


def _commands(code: str, texts: list[str]) -> Iterator[Effect]:
    """Yield the commands that the code may run: the arguments of functions that run commands, and some of `texts`.

    A text counts if it starts with the name of a known program and a blank.
    """
    from fairlead.policy.bash.programs._table import PROGRAMS

    scripts: dict[str, None] = {}
    for *first, rest in _LISTED_COMMAND.findall(code):
        words = [*filter(None, [_first(first)]), *_quoted(rest)]
        if words and not (len(words) == 1 and " " in words[0]):
            yield RunCommand([quote(word) for word in words])
    for *first, rest in _GIVEN_COMMAND.findall(code):
        text = _first(first)
        if rest and " " not in text:
            yield RunCommand([quote(word) for word in (text, *_quoted(rest))])
        elif text:
            scripts[text] = None
    scripts |= dict.fromkeys(
        text for text in texts if " " in text and text.split(maxsplit=1)[:1] and text.split(maxsplit=1)[0] in PROGRAMS
    )
    yield from (RunScript(text) for text in scripts)


def _builds_names(code: str) -> bool:
    """Return whether the code computes the name of a file that it changes, so that no literal shows it."""
    for pattern, _ in _CERTAIN_CALLS:
        code = pattern.sub("", code)
    if not _WRITES.search(code):
        return False
    expressions = [part for groups in _WRITTEN.findall(code) for part in groups if part]
    if not expressions:
        return bool(_COMPUTES_TEXT.search(code))
    seen: set[str] = set()
    while expressions:
        expression = expressions.pop()
        if _COMPUTES_TEXT.search(expression):
            return True
        for name in set(re.findall(r"[A-Za-z_]\w*", re.sub(r"'[^'\n]*'|\"[^\"\n]*\"", "", expression))) - seen:
            seen.add(name)
            expressions += re.findall(rf"(?<![\w.]){name}\s*=\s*([^=\n;][^\n;]{{0,200}})", code)
            expressions += re.findall(rf"\bfor\s+{name}\s+in\s+([^\n:]{{1,200}})", code)
    return False


def _literals(code: str, program: str) -> Iterator[str]:
    """Yield each string literal, the texts of combined literals, and in languages without quotes every word."""
    seen = {_first(groups): None for groups in _LITERAL.findall(code)}
    seen |= dict.fromkeys(_joined_literals(code))
    if program in _BARE_WORDS:
        seen |= dict.fromkeys(_WORD.findall(code))
    seen.pop("", None)
    yield from seen


def _joined_literals(code: str) -> Iterator[str]:
    """Yield the combined text of adjacent literals after each literal: `'a' + 'b' + 'c'` → `ab`, `abc`.

    Parts of a path, and literals separated by a comma, are joined by a slash: `Path('a') / 'b'` → `a/b`. A literal is
    filled into the one before it: `'%s' % 'a'` → `a`.
    """
    text, end = "", -1
    for match in _QUOTED.finditer(code):
        part, gap = _first(match.groups()), code[end : match.start()] if 0 <= end < match.start() else "-"
        if end == match.start() or _CONCATENATED.fullmatch(gap):
            text += part
        elif _JOINED.fullmatch(gap):
            text = f"{text}/{part}"
        elif _FILLED.fullmatch(gap):
            text = text.replace("%s", part, 1)
        else:
            text = part
        end = match.end()
        if text is not part and len(text) <= _MAX_PATH_LENGTH:
            yield text


_BARE_WORDS: Final = frozenset({"tclsh", "wish", "expect", "gdb", "lldb", "emacs", "guile", "osascript", "psql"})
"""Languages in which a word needs no quotes."""
_ANALYSED_LANGUAGES: Final = frozenset({"awk", "sed", "sqlite"})
_WELL_KNOWN: Final = frozenset({"python", "pypy", "node", "nodejs", "bun", "deno", "perl", "ruby", "php"})
"""Languages whose functions that write files are known."""
