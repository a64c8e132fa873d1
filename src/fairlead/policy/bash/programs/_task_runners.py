"""The effects of programs that run the tasks of a project: make, npm, yarn, pnpm, bun, just, task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fairlead.policy.bash._words import plain
from fairlead.policy.bash.programs._calls import (
    Effect,
    Program,
    ProgramCall,
    RunCommand,
    RunFile,
    UnknownEffect,
    accesses,
    parse_options,
    run_script,
)
from fairlead.policy.bash.programs._unknown_programs import any_program, mentions
from fairlead.policy.bash.programs._wrappers import WRAPPERS
from fairlead.structs import replace

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAKEFILES: Final = ("GNUmakefile", "makefile", "Makefile")
_JUSTFILES: Final = ("justfile", "Justfile", ".justfile")
_TASKFILES: Final = ("Taskfile.yml", "Taskfile.yaml", "taskfile.yml", "taskfile.yaml", "Taskfile.dist.yml")
_SCRIPT_RUNNERS: Final = (
    *("tsx", "ts-node", "ts-node-esm", "vite-node", "babel-node", "esno", "nodemon", "ipython", "ipython3", "pythonw"),
)
_STDIN: Final = frozenset({"-", "/dev/stdin"})
_LIFECYCLES: Final = {
    "test": ("test",), "t": ("test",), "tst": ("test",), "start": ("start",), "stop": ("stop",),
    "restart": ("restart",), "install": ("install", "prepare"), "i": ("install", "prepare"),
    "ci": ("install", "prepare"), "publish": ("prepublishOnly", "pack", "prepare", "publish"),
    "pack": ("pack", "prepare"), "version": ("version",), "it": ("install", "prepare", "test"),
}  # fmt: skip
"""Commands of npm → the scripts that they run, each with its `pre` and `post` scripts."""
_BUILT_IN: Final = {
    "add", "audit", "bin", "cache", "config", "create", "dedupe", "dlx", "exec", "global", "help", "import", "info",
    "init", "link", "list", "login", "logout", "node", "outdated", "owner", "patch", "plugin", "policies", "remove",
    "set", "store", "unlink", "up", "update", "upgrade", "versions", "view", "why", "workspace", "workspaces", "x",
    "rebuild", "prune", "ls", "ll", "root", "fetch", "env", "licenses", "fund", "search", "token", "whoami", "pkg",
}  # fmt: skip
"""Commands of yarn and pnpm that are not names of scripts."""


def _make(call: ProgramCall) -> Iterator[Effect]:
    opts = parse_options(
        call.args, "CfIoWE", "directory file makefile include-dir eval old-file assume-old new-file what-if jobs"
    )
    folders = opts.values("C", "directory")
    if folders:
        yield RunCommand([call.program, *_without_folder(call.args)], "/".join(folders))
        return
    yield from (
        UnknownEffect(f"make reads rules from its command line: {plain(text)}") for text in opts.values("E", "eval")
    )
    files = opts.values("f", "file", "makefile")
    if any(plain(file) in _STDIN for file in files):
        yield UnknownEffect("make reads its rules from another command", runs=True)
        return
    if opts.has("n", "dry-run", "just-print", "recon", "v", "version", "h", "help"):
        return
    goals = [word for word in opts.operands if not word.isdigit()]
    for name, _, value in (word.partition("=") for word in goals):
        if name.rstrip(":") in {"SHELL", ".SHELLFLAGS", "MAKEFLAGS"}:
            yield run_script(value, "make")
        elif value:
            yield from mentions([value])
    yield from accesses("read", files)
    yield from (RunFile(file, "make", goals) for file in files or _MAKEFILES)


def _without_folder(args: list[str]) -> list[str]:
    kept, rest = [], iter(args)
    for arg in rest:
        if arg in {"-C", "--directory"}:
            next(rest, None)
        elif not arg.startswith(("-C", "--directory=")):
            kept.append(arg)
    return kept


def _npm(call: ProgramCall) -> Iterator[Effect]:
    """Yield the effects of npm, yarn and pnpm."""
    opts = parse_options(_before_separator(call.args), "Cw", "prefix cwd dir workspace filter loglevel")
    folder = next(iter(opts.values("C", "prefix", "cwd", "dir")), None)
    scripts = () if opts.has("ignore-scripts") and opts.operands[:1] != ["run"] else _npm_scripts(call, opts.operands)
    effects = [*scripts, *any_program(call)]
    if folder is None:
        yield from effects
        return
    for effect in effects:
        if isinstance(effect, RunFile):
            words = [call.program, "run", *effect.args] if effect.args else []
            yield RunCommand(words, folder)
        else:
            yield effect


def _npm_scripts(call: ProgramCall, operands: list[str]) -> Iterator[Effect]:
    if not operands:
        names = ["install", "prepare"] if call.program == "yarn" and not call.args else []
        yield from (RunFile("package.json", "npm", [name]) for name in names)
        return
    command, *names = operands
    extra = call.args[call.args.index("--") + 1 :] if "--" in call.args else []
    if command in {"run", "run-script", "rum", "urn"}:
        if names:
            yield RunFile("package.json", "npm", [*names, *extra])
    elif command in _LIFECYCLES and not (command in {"install", "i"} and names):
        for name in _LIFECYCLES[command]:
            yield RunFile("package.json", "npm", [name, *extra] if name in {"test", "start"} else [name])
    elif call.program in {"yarn", "pnpm"} and command not in _BUILT_IN:
        yield RunFile("package.json", "npm", [*operands, *extra])
    elif call.program in WRAPPERS:
        yield from WRAPPERS[call.program](call)


def _before_separator(args: list[str]) -> list[str]:
    return args[: args.index("--")] if "--" in args else args


def _just(call: ProgramCall) -> Iterator[Effect]:
    opts = parse_options(call.args, "fdc", "justfile working-directory command set shell dotenv-path")
    if opts.has("l", "list", "summary", "n", "dry-run", "show", "evaluate", "fmt", "choose"):
        return
    if opts.has("c", "command"):
        yield RunCommand([*opts.values("c", "command"), *opts.operands])
        return
    files = opts.values("f", "justfile")
    yield from (RunFile(file, "just", opts.operands) for file in files or _JUSTFILES)


def _task(call: ProgramCall) -> Iterator[Effect]:
    opts = parse_options(call.args, "tdoIC", "taskfile dir output interval concurrency")
    if opts.has("l", "list", "a", "list-all", "n", "dry", "summary", "init", "status"):
        return
    files = opts.values("t", "taskfile")
    yield from (RunFile(file, "task", opts.operands) for file in files or _TASKFILES)


def _run_parallel(call: ProgramCall) -> Iterator[Effect]:
    """Yield the effects of `concurrently 'a' 'b'`."""
    opts = parse_options(call.args, "nc", "names prefix-colors prefix kill-others-on-fail")
    yield from (run_script(word, call.program) for word in opts.operands)


def _run_names(call: ProgramCall) -> Iterator[Effect]:
    """Yield the effects of `npm-run-all a b`, which runs scripts of the package."""
    for name in parse_options(call.args).operands:
        yield RunFile("package.json", "npm", [name])


def _go(call: ProgramCall) -> Iterator[Effect]:
    """Yield the effects of `go run file.go` and of other subcommands of go."""
    if call.args[:1] == ["run"]:
        yield from (RunFile(word, "go", []) for word in call.args[1:] if word.endswith(".go"))
    yield from any_program(call)


def _bun(call: ProgramCall) -> Iterator[Effect]:
    """Yield the effects of bun, which runs scripts of the package, but also files."""
    from fairlead.policy.bash.programs._inline_code import INLINE_CODE

    args = call.args[1:] if call.args[:1] == ["run"] else call.args
    yield from INLINE_CODE["bun"](replace(call, args=args))
    if args and args[0][:1] != "-" and args[0] not in _BUILT_IN:
        yield RunFile("package.json", "npm", args)


def _script_runner(call: ProgramCall) -> Iterator[Effect]:
    """Yield the effects of programs that run a script with another interpreter: `tsx x.ts`."""
    files = [word for word in call.args if word[:1] != "-"]
    language = "python" if call.program in {"ipython", "ipython3", "pythonw"} else "node"
    yield from (RunFile(word, language, files[index + 1 :]) for index, word in enumerate(files[:2]))
    yield from any_program(call)


def _npx(call: ProgramCall) -> Iterator[Effect]:
    words = [word for index, word in enumerate(call.args) if index and call.args[index - 1] in {"-c", "--call"}]
    yield from (run_script(word, call.program) for word in words)
    if not words:
        yield from WRAPPERS[call.program](call)


TASK_RUNNERS: Final[dict[str, Program]] = {
    **dict.fromkeys(("make", "gmake"), _make),
    **dict.fromkeys(("npm", "yarn", "pnpm"), _npm),
    **dict.fromkeys(("npm-run-all", "run-s", "run-p"), _run_names),
    "concurrently": _run_parallel,
    "just": _just,
    "bun": _bun,
    "npx": _npx,
    **dict.fromkeys(_SCRIPT_RUNNERS, _script_runner),
    **dict.fromkeys(("task", "go-task"), _task),
    "go": _go,
}
