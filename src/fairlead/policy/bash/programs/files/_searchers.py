"""The effects of programs that search files: which files they search, and which they skip by default."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fairlead.policy.bash._words import plain
from fairlead.policy.bash.programs._calls import (
    Access,
    Effect,
    ParsedOptions,
    Program,
    ProgramCall,
    accesses,
    parse_options,
)
from fairlead.policy.paths._selection import Selection

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fairlead.policy.paths._selection import LeftOut

_GREPS: Final = (
    "grep",
    "egrep",
    "fgrep",
    "rgrep",
    "zgrep",
    "bzgrep",
    "xzgrep",
    "zegrep",
    "zfgrep",
    "pcregrep",
    "pcre2grep",
    "ugrep",
    "ggrep",
)
_GREP_LONG: Final = (
    "regexp file after-context before-context context max-count include exclude exclude-dir exclude-from label "
    "binary-files directories devices color colour"
)
_RG_LONG: Final = (
    "regexp file after-context before-context context max-count glob iglob type type-not ignore-file max-depth "
    "max-filesize threads encoding engine replace sort sortr color colors pre pre-glob path-separator "
    "context-separator max-columns field-match-separator type-add type-clear dfa-size-limit regex-size-limit"
)
_TYPES: Final = {
    "py": ("*.py", "*.pyi"), "js": ("*.js", "*.jsx", "*.mjs", "*.cjs", "*.vue"),
    "ts": ("*.ts", "*.tsx", "*.mts", "*.cts"),
    "rust": ("*.rs",), "go": ("*.go",), "c": ("*.c", "*.h"), "cpp": ("*.cpp", "*.hpp", "*.cc", "*.h", "*.cxx"),
    "java": ("*.java", "*.jsp"), "md": ("*.md", "*.markdown", "*.mdx"), "markdown": ("*.md", "*.markdown", "*.mdx"),
    "json": ("*.json",), "yaml": ("*.yaml", "*.yml"), "toml": ("*.toml", "Cargo.lock"), "html": ("*.html", "*.htm"),
    "css": ("*.css", "*.scss"), "ruby": ("*.rb", "Gemfile", "Rakefile"), "sql": ("*.sql", "*.psql"),
    "txt": ("*.txt",), "xml": ("*.xml", "*.xsl"), "make": ("Makefile", "makefile", "*.mk"), "php": ("*.php",),
}  # fmt: skip
"""File types of ripgrep → patterns of names. Any other type is used as a suffix."""
_SHELL_FILES: Final = ("*",)
_NO_SUFFIX: Final = frozenset(
    {"sh", "bash", "zsh", "config", "all", "log", "license", "readme", "dotenv", "env", "cert", "pem"}
)
"""Types whose files may have any name, even that of a hidden file."""


def _grep(call: ProgramCall) -> Iterable[Effect]:
    opts = parse_options(call.args, "eABCmfdD", _GREP_LONG)
    has_pattern = opts.has("e", "f", "regexp", "file")
    files = opts.operands if has_pattern else opts.operands[1:]
    recursive = (
        opts.has("r", "R", "recursive", "dereference-recursive")
        or call.program == "rgrep"
        or "recurse" in opts.values("d", "directories")
    )
    if not (recursive or has_pattern):
        return accesses("read", files)
    return _grep_below(opts, files, recursive=recursive)


def _grep_below(opts: ParsedOptions, files: list[str], *, recursive: bool) -> Iterator[Effect]:
    among = tuple(plain(word) for word in opts.values("include"))
    without = [] if among else [plain(word) for word in opts.values("exclude")]  # the last match decides
    without += [plain(word).rstrip("/") + "/" for word in opts.values("exclude-dir")]
    selection = Selection(among, tuple(without)) if recursive else Selection()
    for word in files or (["."] if recursive else []):
        yield Access("read", word, recursive, selection=selection)
    yield from accesses("read", opts.values("f", "file", "exclude-from"))


def _rg(call: ProgramCall) -> Iterator[Effect]:
    opts = parse_options(call.args, "eABCmgftTjMdrE", _RG_LONG)
    lists = opts.has("files", "type-list")
    has_pattern = lists or opts.has("e", "f", "regexp", "file")
    files = opts.operands if has_pattern else opts.operands[1:]
    if call.piped and not files and not lists:
        return  # it searches its stdin
    selection = _rg_selection(opts)
    for word in files or ["."]:
        yield Access("list" if lists else "read", word, below=True, selection=selection)
    yield from accesses("read", opts.values("f", "file"))
    if opts.has("pre"):
        from fairlead.policy.bash.programs._calls import RunCommand

        yield from (RunCommand([word]) for word in opts.values("pre"))


def _rg_selection(opts: ParsedOptions) -> Selection:
    globs = [plain(word) for word in opts.values("g", "glob", "iglob")]
    included = [glob for glob in globs if not glob.startswith("!")]
    types = [name for value in opts.values("t", "type") for name in _type_names(plain(value))]
    unrestricted = len(opts.given.get("u", ())) + len(opts.given.get("unrestricted", ()))
    skips: list[LeftOut] = []
    if not (included or unrestricted > 1 or opts.has("hidden", ".")):
        skips.append("hidden")
    if not (included or unrestricted or opts.has("no-ignore", "no-ignore-vcs")):
        skips.append("ignored")
    excluded = [] if included else [glob[1:] for glob in globs if glob.startswith("!")]  # the last match decides
    return Selection((*included, *types), tuple(excluded), tuple(skips))


def _type_names(name: str) -> tuple[str, ...]:
    return _SHELL_FILES if name in _NO_SUFFIX else _TYPES.get(name, (f"*.{name}",))


def _ag(call: ProgramCall) -> Iterator[Effect]:
    opts = parse_options(
        call.args, "ABCmGp", "ignore ignore-dir file-search-regex path-to-ignore depth after before context"
    )
    lists = opts.has("g", "files-with-matches-only", "list-file-types")
    everything = opts.has("u", "unrestricted")
    skips: list[LeftOut] = [] if everything or opts.has("hidden") else ["hidden"]
    if not (everything or opts.has("a", "all-types", "U", "skip-vcs-ignores", "t")):
        skips.append("ignored")
    selection = Selection((), tuple(plain(word) for word in opts.values("ignore", "ignore-dir")), tuple(skips))
    for word in opts.operands[1:] or ([] if call.piped else ["."]):
        yield Access("list" if lists else "read", word, below=True, selection=selection)


def _ack(call: ProgramCall) -> Iterator[Effect]:
    opts = parse_options(call.args, "ABCm", "type ignore-dir ignore-file after-context before-context context match")
    files = opts.operands if opts.has("f", "g", "match") else opts.operands[1:]
    without = tuple(plain(word).rstrip("/") + "/" for word in opts.values("ignore-dir"))
    lists = opts.has("f", "g")
    for word in files or ([] if call.piped else ["."]):
        yield Access("list" if lists else "read", word, below=True, selection=Selection((), without))


def _query(call: ProgramCall) -> Iterator[Effect]:
    """Yield the effects of jq and yq. The first operand is a filter, unless an option names a file with the filter."""
    opts = parse_options(
        call.args, "fLI", "from-file indent slurpfile rawfile arg argjson args jsonargs input-format output-format"
    )
    words, files = _without_arguments(call.args), opts.operands
    files = parse_options(words, "fLI", "from-file indent").operands
    if not opts.has("f", "from-file"):
        files = files[1:]
    if call.program == "yq" and parse_options(words).operands[:1] in (["eval"], ["e"], ["ea"], ["eval-all"]):
        files = files[1:]
    in_place = call.program in {"yq", "gojq", "dasel", "tomlq", "xq"} and opts.has("i", "inplace", "in-place")
    for word in files:
        yield Access("read", word)
        if in_place:
            yield Access("write", word)
    yield from accesses("read", [*opts.values("f", "from-file"), *_named_inputs(call.args)])


def _without_arguments(args: list[str]) -> list[str]:
    """Return the arguments without `--arg name value` and similar options."""
    kept, index = [], 0
    while index < len(args):
        if args[index] in {"--arg", "--argjson", "--slurpfile", "--rawfile", "--argfile"}:
            index += 3
        else:
            kept.append(args[index])
            index += 1
    return kept


def _named_inputs(args: list[str]) -> list[str]:
    names = {"--slurpfile", "--rawfile", "--argfile"}
    return [word for index, arg in enumerate(args) if arg in names for word in args[index + 2 : index + 3]]


SEARCHERS: Final[dict[str, Program]] = {
    **dict.fromkeys(_GREPS, _grep),
    **dict.fromkeys(("jq", "yq", "gojq", "jaq", "tomlq", "xq"), _query),
    "rg": _rg,
    "ripgrep": _rg,
    "ag": _ag,
    "ack": _ack,
}
