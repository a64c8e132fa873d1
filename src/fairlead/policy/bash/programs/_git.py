"""The effects of git: the files that its command line names, the programs that it runs, and the call itself.

The other files that a call changes or shows depend on the repository: see `fairlead.policy.git`.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from fairlead.policy.bash._words import ANY_DEPTH, is_unknown, plain, quote, unknown
from fairlead.policy.bash.programs._calls import (
    Access,
    Effect,
    GitCommand,
    ProgramCall,
    RunCommand,
    UnknownEffect,
    accesses,
    basename,
)
from fairlead.policy.bash.programs._git_arguments import OWN_COMMANDS, parse_git
from fairlead.policy.bash.programs._git_runs import option_effects, setting_effects, url_effects, variable_effects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Words = list[str]

_GLOBAL_VALUES: Final = {
    *("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--super-prefix", "--config-env", "--attr-source"),
}
_CHOOSES_REPOSITORY: Final = {
    "--git-dir": "GIT_DIR",
    "--work-tree": "GIT_WORK_TREE",
    "--index-file": "GIT_INDEX_FILE",
}
"""Options that choose the repository → their environment variables. The last has no option in git."""
_PATHSPECS: Final = {
    f"--{kind}-pathspecs": f"GIT_{kind.upper()}_PATHSPECS" for kind in ("literal", "glob", "noglob", "icase")
}
"""Options that change the meaning of a pathspec → their environment variables."""
_MAX_ALIASES: Final = 4


def git(call: ProgramCall) -> Iterable[Effect]:
    """Return the effects of a call of git."""
    args = call.args
    if args and args[0][:1] != "-" and not call.variables:
        return _command(call, args, ())
    return _with_options(call)


def _with_options(call: ProgramCall) -> Iterator[Effect]:
    """Yield the effects of the options and variables before the subcommand, then the call without these options."""
    folder, args = None, list(call.args)
    chosen: list[str] = []
    aliases: dict[str, str] = {}
    while args and args[0].startswith("-"):
        option, equals, value = args.pop(0).partition("=")
        if option in _GLOBAL_VALUES and not equals and args:
            value = args.pop(0)
        if option == "-C":
            folder = value if folder is None or value.startswith(("/", "~")) else f"{folder}/{value}"
        elif option in _CHOOSES_REPOSITORY:
            chosen.append(f"{_CHOOSES_REPOSITORY[option]}={value}")
        elif option in _PATHSPECS:
            chosen.append(f"{_PATHSPECS[option]}=1")
        else:
            yield from _global_option(option, value, aliases)
    if len(args) < len(call.args):
        if args:
            yield RunCommand(["git", *_expand_aliases(args, aliases)], folder or None, tuple(chosen), implied=True)
        return
    yield from variable_effects(call.variables)
    if args:
        yield from _command(call, args, tuple(_chosen_by_variables(call)))


def _global_option(option: str, value: str, aliases: dict[str, str]) -> Iterator[Effect]:
    if option in {"-c", "--config-env"}:
        key, equals, setting = plain(value).partition("=")
        if option == "--config-env" or is_unknown(value):
            yield from _unknown_setting("" if is_unknown(value.partition("=")[0]) else key)
        elif key.lower().startswith("alias.") and not setting.startswith("!"):
            aliases[key[len("alias.") :]] = setting
        else:
            yield from setting_effects(key, quote(setting) if equals else "true")
    elif option == "--exec-path" and value:
        yield UnknownEffect(f"which programs git runs from {plain(value)}")
    elif option in {"--attr-source", "--namespace"} and value:
        yield UnknownEffect(f"what git works on with {option}={plain(value)}")


def _unknown_setting(key: str) -> Iterator[Effect]:
    """Yield an unknown effect if git may run something because of a setting. `key` is "" if its name is not known."""
    if not key or any(setting_effects(key, "x")):
        yield UnknownEffect(f"which value the setting {key or '-c'} of git has is only known when it runs")


def _expand_aliases(args: Words, aliases: dict[str, str]) -> Words:
    """Return the arguments of git with an alias expanded that an option `-c` of the same call defines."""
    for _ in range(_MAX_ALIASES):
        alias = aliases.get(plain(args[0]))
        if alias is None:
            break
        args = [*map(quote, split_words(alias)), *args[1:]]
    return args


def split_words(text: str) -> Words:
    """Split the text of an alias as git does; at blanks, if a quote is not closed."""
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _chosen_by_variables(call: ProgramCall) -> Iterator[str]:
    """Yield the options that correspond to the environment variables of a call."""
    for option, name in _CHOOSES_REPOSITORY.items():
        values = call.variables.get(name, ())
        yield from (f"{option}={value}" for value in ((unknown(f"${name}"),) if values is None else values))
    yield from (option for option, name in _PATHSPECS.items() if name in call.variables)


def _command(call: ProgramCall, args: Words, options: tuple[str, ...]) -> Iterator[Effect]:
    name, rest = plain(args[0]), args[1:]
    if is_unknown(args[0]):
        yield UnknownEffect(f"which command of git runs is only known when it runs: {name}")
        return
    if name not in OWN_COMMANDS:
        yield RunCommand([f"git-{name}", *rest], implied=True)
    yield from option_effects(name, rest)
    handler = _COMMANDS.get(name)
    if handler is not None:
        yield from handler(rest)
    yield GitCommand(
        name,
        tuple(plain(word.replace(ANY_DEPTH, "")) for word in rest),  # `*` in a pathspec matches slashes
        options=tuple(map(plain, options)),
        stdin=call.stdin,
        piped=call.piped,
        unknown=tuple(plain(word) for word in (*rest, *options) if is_unknown(word)),
    )


# -- files that the command line names -----------------------------------------------------------------


def _diff(args: Words) -> Iterator[Effect]:
    opts = parse_git(tuple(args), "SGnUOl", "output format pretty author since until")
    yield from accesses("write", opts.values("output"))
    if opts.has("no-index"):
        yield from accesses("read", opts.words, below=True)
    yield from accesses("read", opts.values("O"))


def _blame(args: Words) -> Iterator[Effect]:
    opts = parse_git(tuple(args), "LSMC", "contents ignore-rev ignore-revs-file since date")
    yield from accesses("read", [*opts.values("contents"), *opts.words])


def _move(args: Words) -> Iterator[Effect]:
    operands = parse_git(tuple(args)).words
    yield from accesses("move", operands[:-1], below=True)
    for target in operands[-1:]:
        yield Access("write", target)
        for source in operands[:-1]:
            yield Access("write", f"{target.rstrip('/')}/{basename(source)}", if_folder=target)


def _clone(args: Words) -> Iterator[Effect]:
    opts = parse_git(
        tuple(args),
        "bocju",
        "branch origin config depth jobs reference template separate-git-dir filter upload-pack shallow-since "
        "shallow-exclude server-option reference-if-able bundle-uri",
    )
    yield from accesses("create", [*opts.words[1:2], *opts.values("separate-git-dir")])
    yield from _settings(opts.values("c", "config"))
    yield from _template(opts.values("template"))


def _settings(words: Iterable[str]) -> Iterator[Effect]:
    for word in words:
        key, _, value = word.partition("=")
        yield from setting_effects(plain(key), value)


def _template(values: Iterable[str]) -> Iterator[Effect]:
    yield from (UnknownEffect(f"which hooks git runs from {plain(value)}") for value in values if value)


def _init(args: Words) -> Iterator[Effect]:
    opts = parse_git(tuple(args), "b", "template separate-git-dir initial-branch object-format shared=")
    yield from accesses("create", [*opts.words, *opts.values("separate-git-dir")])
    yield from _template(opts.values("template"))


def _worktree(args: Words) -> Iterator[Effect]:
    opts = parse_git(tuple(args[1:]), "bB", "reason expire")
    action = args[0] if args else ""
    if action == "add":
        yield from accesses("create", opts.words[:1])
    elif action == "remove":
        yield from accesses("delete", opts.words[:1], below=True)
    elif action == "move":
        yield from accesses("move", opts.words[:1], below=True)
        yield from accesses("create", opts.words[1:2])


_GETS: Final = {"get", "get-all", "get-regexp", "get-urlmatch", "get-color", "get-colorbool", "list", "l", "unset",
                "unset-all", "remove-section", "rename-section"}  # fmt: skip
_CONFIG_ACTIONS: Final = {"list", "get", "set", "unset", "edit", "rename-section", "remove-section"}


def _config(args: Words) -> Iterator[Effect]:
    opts = parse_git(tuple(args), "f", "file blob type default value comment")
    words = opts.words
    action = words[0] if words and words[0] in _CONFIG_ACTIONS else None
    words = words[1:] if action else words
    reads = opts.has(*_GETS) or action in _GETS or (action is None and len(words) < 2)  # noqa: PLR2004 - a key alone
    yield from accesses("read" if reads else "write", opts.values("f", "file"))
    if not reads and words:
        for value in words[1:2] or [""]:
            yield from setting_effects(plain(words[0]), value)


def _commit(args: Words) -> Iterator[Effect]:
    opts = parse_git(
        tuple(args),
        "mFCct",
        "message file author date template reuse-message reedit-message fixup squash trailer cleanup "
        "pathspec-from-file",
    )
    yield from accesses("read", [*opts.values("F", "file", "t", "template", "pathspec-from-file")])


def _message_file(args: Words) -> Iterator[Effect]:
    opts = parse_git(tuple(args), "mFusX", "message file cleanup")
    yield from accesses("read", opts.values("F", "file"))


def _output(args: Words) -> Iterator[Effect]:
    """Yield the accesses to the files that options of `archive` and `format-patch` name."""
    opts = parse_git(tuple(args), "o", "output output-directory prefix add-file add-virtual-file format remote exec")
    yield from accesses("write", opts.values("o", "output", "output-directory"))
    yield from accesses("read", opts.values("add-file"))


def _bundle(args: Words) -> Iterator[Effect]:
    if args[:1] == ["create"]:
        yield from accesses("write", parse_git(tuple(args[1:])).words[:1])


def _files(args: Words) -> Iterator[Effect]:
    """Yield the accesses to the files that `hash-object` and `interpret-trailers` are given."""
    opts = parse_git(tuple(args), "t", "path trailer where if-exists if-missing")
    in_place = opts.has("in-place")
    yield from accesses("write" if in_place else "read", opts.words)


def _merge_file(args: Words) -> Iterator[Effect]:
    opts = parse_git(tuple(args), "L", "marker-size diff-algorithm")
    yield from accesses("read", opts.words)
    yield from accesses("write", [] if opts.has("p", "stdout") else opts.words[:1])


def _remote(args: Words) -> Iterator[Effect]:
    yield from url_effects(parse_git(tuple(args), "tm").words)


def _submodule(args: Words) -> Iterator[Effect]:
    words = [word for word in args if not word.startswith("-")]
    if words[:1] == ["add"]:
        yield from accesses("create", words[2:3])
    elif words[:1] == ["deinit"]:
        yield from accesses("delete", words[1:], below=True)


def _checkout_index(args: Words) -> Iterator[Effect]:
    opts = parse_git(tuple(args), "", "prefix stage")
    yield from (Access("write", prefix.rstrip("/") or prefix) for prefix in opts.values("prefix") if prefix)


def _external(args: Words) -> Iterator[Effect]:
    del args
    yield UnknownEffect("which files the tool changes that git opens")


_COMMANDS: Final[dict[str, Callable[[Words], Iterator[Effect]]]] = {
    **dict.fromkeys(("diff", "log", "show", "whatchanged", "diff-tree", "diff-index", "diff-files", "reflog"), _diff),
    **dict.fromkeys(("blame", "annotate"), _blame),
    **dict.fromkeys(("merge", "tag", "notes"), _message_file),
    **dict.fromkeys(("archive", "format-patch"), _output),
    **dict.fromkeys(("hash-object", "interpret-trailers"), _files),
    "mv": _move,
    "clone": _clone,
    "init": _init,
    "worktree": _worktree,
    "config": _config,
    "commit": _commit,
    "bundle": _bundle,
    "merge-file": _merge_file,
    "remote": _remote,
    "submodule": _submodule,
    "checkout-index": _checkout_index,
    "mergetool": _external,
}
