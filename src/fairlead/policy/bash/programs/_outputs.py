"""The output of known commands, as patterns of the files that another command gets by a pipe or a substitution.

For example, `find src -name '*.py' | xargs rm` removes nothing outside `src`, whatever it finds.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from fairlead.policy.bash._words import ANY_DEPTH, ONE_OF, is_glob, is_unknown, plain, quote
from fairlead.policy.bash.programs._calls import ProgramCall, basename, parse_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

NUMBER: Final = "[0-9]*"
HASH: Final = "[0-9a-f][0-9a-f][0-9a-f][0-9a-f]*"
NAME: Final = "[A-Za-z0-9]*"
_EXACT_TESTS: Final = {"-name", "-iname", "-type", "-print", "-print0", "-o", "-or", "-a", "-and", "-depth", "-exec"}
"""The tests of `find` with which it finds every file whose name matches."""
_MAX_WORDS: Final = 64


def _one_of(words: Iterable[str]) -> tuple[str, ...]:
    """Mark patterns with `ONE_OF`, because the command prints only some of the matching files."""
    return tuple(
        word if word[:1] == ONE_OF or not (is_glob(word) or ANY_DEPTH in word) else ONE_OF + word for word in words
    )


class Output(NamedTuple):
    """What a command may print, as words: mostly one for each possible line.

    A word is marked text (see `_words`), and may be a pattern.
    """

    words: tuple[str, ...]
    is_prefix: bool = False
    """Each line only starts with the word, followed by a colon, as in the output of `grep -rn`."""


_Producer: TypeAlias = "Callable[[ProgramCall, Output | None], Output | None]"


def output_of(call: ProgramCall, before: Output | None) -> Output | None:
    """Return the output of a command; `None` if the output is not known or has too many words.

    `before` is the output that it gets as its input; `None` if there is none, or it is not known.
    """
    producer = PRODUCERS.get(call.program)
    if producer is None or any(map(is_unknown, call.args)):
        return None
    output = producer(call, before)
    return None if output is None or len(output.words) > _MAX_WORDS else output


def find_matches(root: str, tests: list[str]) -> list[str]:
    """Return patterns of the files below the folder `root` that `find` may find with these tests."""
    root = f"{root.rstrip('/')}/{ANY_DEPTH}"
    words = [f"{root}{name}" for name in _names(tests) or ["*"]]
    return (
        words
        if _EXACT_TESTS.issuperset(test for test in map(plain, tests) if test[:1] in "-!")
        else list(_one_of(words))
    )


def _names(tests: list[str]) -> list[str] | None:
    """Return patterns of the names of found files; `None` if a found file may have any name."""
    texts = [plain(test) for test in tests]
    if "," in texts or any(a in {"!", "-not"} and b == "(" for a, b in pairwise(texts)):
        return None
    branches: list[list[str]] = [[]]
    for index, test in enumerate(texts):
        if test in {"-o", "-or"}:
            branches.append([])
        elif (
            test in {"-name", "-iname"}
            and index + 1 < len(texts)
            and (index == 0 or texts[index - 1] not in {"!", "-not"})
        ):
            if is_unknown(tests[index + 1]):
                return None
            branches[-1].append(texts[index + 1] if test == "-name" else _any_case(texts[index + 1]))
    return [branch[0] for branch in branches] if all(branches) else None


def _any_case(pattern: str) -> str:
    return "".join(f"[{c.lower()}{c.upper()}]" if c.isalpha() else c for c in pattern)


def _find(call: ProgramCall, _: Output | None) -> Output | None:
    roots, tests = find_roots(call.args)
    if {"-exec", "-execdir", "-printf", "-fprintf", "-ok", "-ls"} & {plain(test) for test in tests}:
        return None
    return Output(tuple(word for root in roots for word in find_matches(root, tests)))


def find_roots(args: list[str]) -> tuple[list[str], list[str]]:
    """Return the folders (`.` if none is given) and the tests in the arguments of `find`."""
    links = {"-H", "-L", "-P"}
    start = next(
        (index for index, arg in enumerate(args) if arg[:1] in {"-", "(", "!"} and arg not in links), len(args)
    )
    return [arg for arg in args[:start] if arg not in links] or ["."], args[start:]


def _fd(call: ProgramCall, _: Output | None) -> Output | None:
    opts = parse_options(call.args, "etdEcjxX", "extension type max-depth exclude exec exec-batch base-directory")
    if opts.has("x", "X", "exec", "exec-batch", "base-directory"):
        return None
    names = [f"*.{plain(word)}" for word in opts.values("e", "extension")] or ["*"]
    roots = opts.operands[1:] or ["."]
    return Output(_one_of(f"{root.rstrip('/')}/{ANY_DEPTH}{name}" for root in roots for name in names))


def _grep(call: ProgramCall, before: Output | None) -> Output | None:
    opts = parse_options(
        call.args,
        "eABCmfdDgtT",
        "regexp file after-context before-context context max-count include exclude exclude-dir glob type color",
    )
    patterns = opts.values("e", "regexp") or opts.operands[:1]
    files = opts.operands if opts.has("e", "f", "regexp", "file") else opts.operands[1:]
    recursive = opts.has("r", "R", "recursive") or call.program in {"rg", "ag"}
    if not files and (call.piped or not recursive):
        return None if before is None or opts.has("o", "only-matching", "c", "count") else _grep_lines(before, patterns)
    if not (opts.has("l", "L", "files-with-matches", "files-without-match", "files") or recursive or len(files) > 1):
        return None
    if opts.has("h", "no-filename"):
        return None
    names = [plain(word) for word in opts.values("include", "g", "glob") if word[:1] != "!" and "/" not in word] or [
        "*"
    ]
    below = [f"{root.rstrip('/')}/{ANY_DEPTH}{name}" for root in files or ["."] for name in names] if recursive else []
    return Output(
        _one_of(below if recursive else files), is_prefix=not opts.has("l", "L", "files-with-matches", "files")
    )


def _grep_lines(before: Output, patterns: list[str]) -> Output:
    """Return what grep prints of its input.

    If it searches for an ending (`.py$`), a pattern that matches every name gets it: `src/**/*` → `src/**/*.py`.
    """
    match = re.fullmatch(r"\\\.(?:\((\w+(?:\|\w+)*)\)|(\w+))\$", plain(patterns[0])) if len(patterns) == 1 else None
    if match is None or before.is_prefix:
        return Output(_one_of(before.words), before.is_prefix)
    endings = (match[1] or match[2]).split("|")
    return Output(tuple(_with_ending(word, end) for word in before.words for end in endings))


def _with_ending(word: str, ending: str) -> str:
    return f"{word[:-1]}*.{ending}" if word.endswith(f"{ANY_DEPTH}*") else word


def _git(call: ProgramCall, _: Output | None) -> Output | None:
    args = [plain(arg) for arg in call.args]
    if args[:1] == ["rev-parse"]:
        return (
            None if any(arg.startswith(("--git", "--show", "--is", "--absolute")) for arg in args) else _rev_parse(args)
        )
    if args[:1] in (["merge-base"], ["hash-object"], ["write-tree"], ["commit-tree"]):
        return Output((HASH,))
    if args[:2] in (["branch", "--show-current"], ["symbolic-ref", "--short"], ["describe", "--tags"]):
        return Output((NAME,))
    if args[:2] == ["rev-list", "--count"]:
        return Output((NUMBER,))
    shows_names = {"--name-only", "-l", "--files-with-matches"} & set(args)
    if args[:1] == ["ls-files"] or (args[:1] in (["diff"], ["grep"], ["show"], ["diff-tree"]) and shows_names):
        paths = call.args[args.index("--") + 1 :] if "--" in args else []
        return Output(_one_of(_tracked(call.args[1:] if args[0] == "ls-files" and not paths else paths)))
    return None


def _rev_parse(args: list[str]) -> Output:
    return Output((NAME if {"--abbrev-ref", "--symbolic-full-name"} & set(args) else HASH,))


def _tracked(args: list[str]) -> tuple[str, ...]:
    """Return patterns of the tracked files that pathspecs match."""
    paths = [plain(word) for word in parse_options(args, "xX", "exclude exclude-from").operands]
    if not paths or any(path.startswith(":") for path in paths):
        return (f"./{ANY_DEPTH}*",)
    return tuple(word for path in paths for word in _pathspec(path))


def _pathspec(path: str) -> list[str]:
    """Return patterns of the files that a pathspec matches. Its `*` matches slashes."""
    if not is_glob(path):
        return [quote(path), f"{quote(path.rstrip('/'))}/{ANY_DEPTH}*"]
    folder, _, name = path.rpartition("/")
    root = (
        folder
        if not is_glob(folder)
        else folder[: min(folder.find(c) for c in "*?[" if c in folder)].rpartition("/")[0]
    )
    return [f"{root or '.'}/{ANY_DEPTH}{name or '*'}"]


def _ls(call: ProgramCall, _: Output | None) -> Output | None:
    opts = parse_options(call.args, "wIT")
    if opts.has("l", "R", "recursive", "s", "i"):
        return None
    if not opts.operands:
        return Output(("*", ".[!.]*") if opts.has("a", "A", "all", "almost-all") else ("*",))
    if opts.has("d", "directory") or all("." in basename(word)[1:] for word in opts.operands):
        return Output(tuple(opts.operands))
    return Output((*opts.operands, "*", *((".[!.]*",) if opts.has("a", "A") else ())))


def _echo(call: ProgramCall, _: Output | None) -> Output | None:
    return _printed([word for word in call.args if not re.fullmatch(r"-[neE]+", word)])


def _printed(words: list[str]) -> Output:
    kept = [[word] if is_glob(word) or ANY_DEPTH in word else list(map(quote, plain(word).split())) for word in words]
    return Output(tuple(part for parts in kept for part in parts))


def _printf(call: ProgramCall, _: Output | None) -> Output | None:
    args = call.args[1:] if call.args[:1] == ["--"] else call.args
    form = plain(args[0]) if args else ""
    if re.fullmatch(r"(?:%s(?:\\n|\\0|\s)*)+", form):
        return _printed(args[1:])
    text = re.sub(r"\\[n0t]", "\n", form)
    return None if "%" in text or "\\" in text else Output(tuple(map(quote, text.split())))


def _same(_: ProgramCall, before: Output | None) -> Output | None:
    return before


def _same_if_piped(call: ProgramCall, before: Output | None) -> Output | None:
    valued = {"head": "nc", "tail": "ncs", "sort": "koStT", "uniq": "fsw", "shuf": "n"}.get(call.program, "")
    if before is None or [word for word in parse_options(call.args, valued).operands if word != "-"]:
        return None
    return before if call.program in {"sort", "uniq", "tac", "cat"} else before._replace(words=_one_of(before.words))


def _tr(call: ProgramCall, before: Output | None) -> Output | None:
    blanks = all(re.fullmatch(r"(?:\\n|\\0|\\t|\s)+", plain(word)) for word in call.args if word[:1] != "-")
    return before if blanks else None


def _sed(call: ProgramCall, before: Output | None) -> Output | None:
    scripts = [plain(word) for word in call.args if word[:1] != "-"]
    prints = len(scripts) == 1 and re.fullmatch(r"s(.)\^\\?\./\1\1|[\d,$ ]+[pdq]", scripts[0])
    return before._replace(words=_one_of(before.words)) if prints and before else None


def _cut(call: ProgramCall, before: Output | None) -> Output | None:
    opts = parse_options(call.args, "dfbc", "delimiter fields")
    first = opts.values("d", "delimiter") == [":"] and opts.values("f", "fields") == ["1"]
    return Output(before.words) if before and before.is_prefix and first and not opts.operands else None


def _awk(call: ProgramCall, before: Output | None) -> Output | None:
    texts = [plain(word) for word in call.args]
    if before is None or texts[-1:] != ["{print $1}"] or not before.is_prefix:
        return None
    return Output(before.words) if texts[:-1] in (["-F:"], ["-F", ":"]) else None


def _basename(call: ProgramCall, _: Output | None) -> Output | None:
    opts = parse_options(call.args, "s", "suffix")
    several = opts.has("a", "multiple", "s", "suffix")
    words = opts.operands if several else opts.operands[:1]
    suffixes = opts.values("s", "suffix") or ([] if several else opts.operands[1:2])
    names = [_last_part(word) for word in words]
    return Output(tuple(name.removesuffix(suffix) for name in names for suffix in suffixes or [""]))


def _last_part(word: str) -> str:
    return basename(word).rpartition(ANY_DEPTH)[2]


def _dirname(call: ProgramCall, _: Output | None) -> Output | None:
    return Output(tuple(_parent(word) for word in call.args if word[:1] != "-"))


def _parent(word: str) -> str:
    if ANY_DEPTH in word:
        return word.rpartition(ANY_DEPTH)[0] + ANY_DEPTH + "*"
    return word.rstrip("/").rpartition("/")[0] or ("/" if word[:1] == "/" else ".")


def _real_path(call: ProgramCall, _: Output | None) -> Output | None:
    opts = parse_options(call.args, "", "relative-to relative-base")
    other = opts.has("relative-to", "relative-base") or (call.program == "readlink" and not opts.has("f", "e", "m"))
    return None if other else Output(tuple(opts.operands))


def _mktemp(call: ProgramCall, _: Output | None) -> Output | None:
    opts = parse_options(call.args, "p", "tmpdir suffix")
    template = next(iter(opts.operands), "")
    suffix = "".join(opts.values("suffix"))
    folder = next((word for word in opts.values("p", "tmpdir") if word), "/tmp")  # noqa: S108  # where mktemp puts it
    name = template or "tmp.XXXXXXXXXX"  # no pattern, which would match existing files: the file is new
    outside = opts.has("t", "p", "tmpdir") or not template
    return Output((f"{folder.rstrip('/')}/{name}{suffix}" if outside else name + suffix,))


def _seq(call: ProgramCall, _: Output | None) -> Output | None:
    opts = parse_options(call.args, "sf", "separator format")
    numbers = [plain(word) for word in opts.operands]
    if opts.has("s", "f", "separator", "format", "w") or not all(word.isdigit() for word in numbers) or not numbers:
        return None if opts.has("f", "format") else Output((NUMBER,))
    first, step, last = (
        int(numbers[0]) if numbers[1:] else 1,
        int(numbers[1]) if numbers[2:] else 1,
        int(numbers[-1]),
    )
    values = range(first, last + 1, step or 1)
    return Output(tuple(map(str, values)) if len(values) <= _MAX_WORDS else (NUMBER,))


def _wc(call: ProgramCall, _: Output | None) -> Output | None:
    return None if parse_options(call.args).operands else Output((NUMBER,))


def _constant(*words: str) -> _Producer:
    return lambda _call, _before: Output(words)


def _date(call: ProgramCall, _: Output | None) -> Output | None:
    forms = [plain(word)[1:] for word in call.args if plain(word)[:1] == "+"]
    if forms and re.fullmatch(r"[%\w:.-]+", forms[0]):
        return Output((re.sub(r"%-?\w", "*", forms[0]) if not forms[0].startswith("%") else "[0-9A-Z]*",))
    return Output(("[0-9A-Z]*",)) if not forms else None


PRODUCERS: Final[dict[str, _Producer]] = {
    "find": _find,
    **dict.fromkeys(("fd", "fdfind"), _fd),
    **dict.fromkeys(("grep", "egrep", "fgrep", "rg", "ag"), _grep),
    "git": _git,
    "ls": _ls,
    "echo": _echo,
    "printf": _printf,
    "tee": _same,
    **dict.fromkeys(("head", "tail", "sort", "uniq", "shuf", "tac", "cat"), _same_if_piped),
    "tr": _tr,
    "sed": _sed,
    "cut": _cut,
    "awk": _awk,
    "basename": _basename,
    "dirname": _dirname,
    **dict.fromkeys(("realpath", "readlink"), _real_path),
    "mktemp": _mktemp,
    "pwd": _constant("."),
    "date": _date,
    "seq": _seq,
    "wc": _wc,
    **dict.fromkeys(("nproc", "bc", "pgrep"), _constant(NUMBER)),
    "uuidgen": _constant(HASH),
    **dict.fromkeys(("uname", "hostname", "whoami", "arch"), _constant(NAME)),
    "id": _constant(NAME),
}
"""Program → the function that returns its output."""
