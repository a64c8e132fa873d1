"""The effects of programs that run other commands: shells, `sudo`, `env`, `xargs`, `find` and others."""

from __future__ import annotations

import re
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from fairlead.policy.bash._words import plain, quote, unknown
from fairlead.policy.bash.programs._calls import (
    Access,
    Effect,
    Program,
    ProgramCall,
    RunCommand,
    RunFile,
    RunScript,
    UnknownEffect,
    accesses,
    options_before_operand,
    parse_options,
    run_script,
)
from fairlead.policy.bash.programs._containers import CONTAINERS
from fairlead.policy.bash.programs._outputs import find_matches, find_roots, output_of
from fairlead.structs import replace

if TYPE_CHECKING:
    from collections.abc import Iterator

_PREFIXES: Final = {
    "sudo": ("ugCDhpRrTtU", 0), "doas": ("uC", 0), "nohup": ("", 0), "time": ("fo", 0), "timeout": ("ks", 1),
    "nice": ("n", 0), "ionice": ("cn", 0), "exec": ("a", 0), "builtin": ("", 0), "coproc": ("", 0), "setsid": ("", 0),
    "stdbuf": ("ioe", 0), "strace": ("eopsuaEIOPSX", 0), "ltrace": ("eopsu", 0), "chrt": ("TPD", 1), "taskset": ("", 1),
    "unbuffer": ("", 0), "busybox": ("", 0), "toybox": ("", 0), "caffeinate": ("tw", 0), "xvfb-run": ("aenps", 0),
    "npx": ("p", 0), "bunx": ("", 0), "uvx": ("", 0), "chronic": ("", 0), "faketime": ("f", 1), "gtimeout": ("ks", 1),
    "chroot": ("", 1), "unshare": ("", 0), "firejail": ("", 0), "proxychains": ("f", 0),
    "noglob": ("", 0),
    "then": ("", 0), "do": ("", 0), "else": ("", 0), "entr": ("", 0), "direnv": ("", 2),
    "command": ("", 0), "arch": ("", 0), "{": ("", 0), "!": ("", 0),
}  # fmt: skip
"""Program → its options with a value, and the number of operands before the command."""

_PREFIX_LONG: Final = "user group host prompt chdir kill-after signal adjustment class classdata format output"
_SUBCOMMANDS: Final = {
    "uv": {"run"}, "poetry": {"run"}, "pdm": {"run"}, "pipenv": {"run"}, "hatch": {"run"}, "conda": {"run"},
    "npm": {"exec", "x"}, "pnpm": {"exec", "dlx"}, "yarn": {"exec", "dlx"}, "bundle": {"exec"}, "mise": {"exec", "x"},
    "pixi": {"run"}, "rye": {"run"}, "pipx": {"run"},
}  # fmt: skip
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*\+?=")
_FROM_PIPE: Final = unknown("(input from a pipe)")
_XARGS_LONG: Final = "max-args max-procs delimiter arg-file max-lines max-chars process-slot-var"
_SHELL_SETUP: Final = re.compile(
    r"\$\((?:ssh-agent(?: -\w)?|(?:direnv|mise|starship|zoxide) \w+ \w+|(?:py|rb|nod)env (?:virtualenv-)?init [\w -]*|"
    r"fnm env[\w -]*|(?:/[\w/]+/)?brew shellenv|dircolors(?: -b)?|opam env|minikube docker-env)\)"
)
"""Commands that print the setup of a shell, for `eval`."""
_STARTUP_FILES: Final = frozenset({"--rcfile", "--init-file"})
_HOME_FILES: Final = ("~/.bashrc", "~/.profile", "~/.bash_profile", "~/.bash_login", "~/.zshrc", "~/.zprofile")
_SHELLS: Final = ("sh", "bash", "zsh", "dash", "ksh", "mksh", "ash", "rbash", "fish", "su", "runuser")


def _prefix(call: ProgramCall) -> Iterator[Effect]:
    valued, skipped = _PREFIXES[call.program]
    opts, words = options_before_operand(call.args, valued, _PREFIX_LONG)
    if call.program == "command" and opts.has("v", "V"):
        return
    words = words[skipped:]
    variables, words = _assignments(words)
    yield from accesses("write", opts.values("o", "output") if call.program in {"time", "strace", "ltrace"} else ())
    if words:
        folder = next(iter(opts.values("D", "chdir")), None) if call.program == "sudo" else None
        yield RunCommand(words, folder, variables)
    elif call.program == "sudo" and opts.has("s", "i", "shell", "login"):
        yield from _shell(ProgramCall("sh", [], call.stdin, call.piped))


def _env(call: ProgramCall) -> Iterator[Effect]:
    opts, words = options_before_operand(call.args, "uCS", "unset chdir split-string")
    for text in opts.values("S", "split-string"):
        yield run_script(text + "".join(" " + word for word in words), "env -S")
        return
    variables, words = _assignments(words[1:] if words[:1] == ["-"] else words)
    if words:
        yield RunCommand(words, next(iter(opts.values("C", "chdir")), None), variables)


def _assignments(words: list[str]) -> tuple[tuple[str, ...], list[str]]:
    """Return the assignments (`NAME=value`) before a command, and the words of the command."""
    count = next((index for index, word in enumerate(words) if not _ASSIGNMENT.match(word)), len(words))
    return tuple(words[:count]), words[count:]


def _subcommand(call: ProgramCall) -> Iterator[Effect]:
    words = call.args
    if words and words[0][:1] == "-":
        _, words = options_before_operand(words, "C", "directory project prefix")
    if words and words[0] in _SUBCOMMANDS[call.program]:
        _, rest = options_before_operand(words[1:], "pnc", "with python extra group env-file package project directory")
        if rest:
            yield RunCommand(rest)


def _shell(call: ProgramCall) -> Iterator[Effect]:
    args, reads_stdin, code = list(call.args), False, False
    yield from (RunFile(file, "sh", []) for option, file in pairwise(args) if option in _STARTUP_FILES)
    while args and args[0][:1] in {"-", "+"} and len(args[0]) > 1:
        arg = args.pop(0)
        if arg == "--":
            break
        if arg in {*_STARTUP_FILES, "-o", "+o", "-O", "+O", "--command"}:
            code |= arg == "--command"
            args = args if code else args[1:]
        elif not arg.startswith("--"):
            code |= "c" in arg
            reads_stdin |= "s" in arg
            args = args[1:] if arg.endswith(("o", "O")) else args
        elif arg in {"--version", "--help"}:
            return
    yield from (RunFile(word, "start-up", []) for word in _HOME_FILES if _reads_startup_files(call.args))
    if call.program in {"su", "runuser"}:
        args, code = _as_user(args, code=code)
    if code:
        yield from (run_script(word, call.program, args[1:]) for word in args[:1])
    elif reads_stdin or not args or plain(args[0]) in {"-", "/dev/stdin", "/proc/self/fd/0"}:
        yield from _stdin_script(call)
    elif plain(args[0]).startswith(("/dev/fd/", "/proc/")):
        yield UnknownEffect(f"{call.program} runs the output of another command", runs=True)
    else:
        yield Access("read", args[0])
        yield RunFile(args[0], "sh", args[1:], required=True)


def _reads_startup_files(args: list[str]) -> bool:
    """Return whether a shell is interactive or a login shell."""
    return any(re.fullmatch(r"-[a-z]*[il][a-z]*|--login", arg) for arg in args)


def _as_user(args: list[str], *, code: bool) -> tuple[list[str], bool]:
    """Return the arguments of `su` from its script on, and whether it has one: `-c` may follow the user's name."""
    if not code and "-c" in args:
        return args[args.index("-c") + 1 :], True
    return args, code


def _stdin_script(call: ProgramCall) -> Iterator[Effect]:
    if call.stdin is not None:
        yield RunScript(call.stdin)
    elif call.file is not None:
        yield RunFile(call.file, "sh", [])
    elif call.piped:
        yield UnknownEffect(f"{call.program} runs the output of another command", runs=True)


def _eval(call: ProgramCall) -> Iterator[Effect]:
    words = call.args[1:] if call.args[:1] == ["--"] else call.args
    text = " ".join(words)
    if not _SHELL_SETUP.fullmatch(plain(text)):
        yield run_script(text, call.program)


def _option_script(call: ProgramCall) -> Iterator[Effect]:
    """Yield the effects of `script -c 'text'`, `flock file -c 'text'` and `nix-shell --run 'text'`."""
    opts = parse_options(call.args, "cw", "command run")
    yield from (run_script(word, call.program) for word in opts.values("c", "command", "run"))
    if call.program == "flock" and not opts.has("c"):
        yield RunCommand(options_before_operand(call.args, "wE", "timeout")[1][1:])
    yield from accesses("write", opts.operands[:1] if call.program == "script" else ())


def _watch(call: ProgramCall) -> Iterator[Effect]:
    yield run_script(" ".join(options_before_operand(call.args, "n", "interval")[1]), call.program)


def _trap(call: ProgramCall) -> Iterator[Effect]:
    operands = parse_options(call.args).operands
    if len(operands) > 1 and operands[0]:
        yield run_script(operands[0], call.program)


def _xargs(call: ProgramCall) -> Iterator[Effect]:
    opts, words = options_before_operand(call.args, "IEdLnPsaJ", _XARGS_LONG)
    files = _input_words(call)
    marker = next(iter(opts.values("I", "J", "replace")), "{}" if opts.has("i", "replace") else None) or None
    yield from accesses("read", opts.values("a", "arg-file"))
    if not words:
        return
    if marker:
        for file in files:
            yield RunCommand(_fill(words, file, plain(marker)))
    else:
        yield RunCommand([*words, *files])


def _input_words(call: ProgramCall) -> list[str]:
    """Return the words of the input, or patterns that match them; one unknown word if they are not known."""
    if call.stdin is not None:
        return [quote(word) for word in call.stdin.split()]
    return [_FROM_PIPE] if call.lines is None else list(call.lines)


def _parallel(call: ProgramCall) -> Iterator[Effect]:
    _, words = options_before_operand(call.args, "jnNLPI", "jobs delay timeout")
    files = words[words.index(":::") + 1 :] if ":::" in words else _input_words(call)
    words = words[: words.index(":::")] if ":::" in words else words
    for file in files:
        whole = _fill(words, file)
        yield run_script(" ".join(whole if whole != words else [*words, file]), call.program)


def _find(call: ProgramCall) -> Iterator[Effect]:
    roots, tests = find_roots(call.args)
    for root in roots:
        yield from _found_files(root, tests)


def _found_files(root: str, tests: list[str]) -> Iterator[Effect]:
    for index, test in enumerate(tests):
        if test == "-delete":  # `-type d -delete` removes only empty folders
            yield from accesses(
                "delete", () if ("-type", "d") in pairwise(tests[:index]) else find_matches(root, tests[:index])
            )
        elif test in {"-fprint", "-fprint0", "-fls", "-fprintf"}:
            yield from accesses("write", tests[index + 1 : index + 2])
        elif test in {"-exec", "-execdir", "-ok", "-okdir"}:
            words = tests[index + 1 :]
            end = next((i for i, word in enumerate(words) if word in {";", "+"}), len(words))
            for file in find_matches(root, tests[:index]):
                yield RunCommand(_fill(words[:end], file))


def _fd(call: ProgramCall) -> Iterator[Effect]:
    starts = [index for index, arg in enumerate(call.args) if arg in {"-x", "-X", "--exec", "--exec-batch"}]
    for index in starts[:1]:
        words = call.args[index + 1 :]
        output = output_of(replace(call, args=call.args[:index]), None)
        for file in (_FROM_PIPE,) if output is None else output.words:
            filled = _fill(words, file)
            yield RunCommand(filled if filled != words else [*words, file])


def _fill(words: list[str], file: str, placeholder: str = "{}") -> list[str]:
    """Return the words with the placeholder, quoted or not, replaced by a file."""
    return [word.replace(placeholder, file).replace(quote(placeholder), file) for word in words]


def _unknown_if_enabled(text: str, call: ProgramCall) -> Iterator[Effect]:
    if {"expand_aliases", "-p", "-f"} & set(call.args):
        yield UnknownEffect(text)


WRAPPERS: Final[dict[str, Program]] = {
    **CONTAINERS,
    **dict.fromkeys(_PREFIXES, _prefix),
    **dict.fromkeys(_SUBCOMMANDS, _subcommand),
    **dict.fromkeys(_SHELLS, _shell),
    **dict.fromkeys(("script", "flock", "nix-shell"), _option_script),
    "env": _env,
    "eval": _eval,
    "watch": _watch,
    "trap": _trap,
    "xargs": _xargs,
    "parallel": _parallel,
    "find": _find,
    "fd": _fd,
    "hash": partial(_unknown_if_enabled, "a name may run another program than before"),
    "enable": partial(_unknown_if_enabled, "the shell loads a command from a file"),
    "shopt": partial(_unknown_if_enabled, "aliases are enabled: a name may run another program"),
}
