"""Programs that run other commands: shells, `sudo` and its kin, `xargs`, `find`."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from functools import partial
from typing import TYPE_CHECKING, Final

from fairlead.policy.bash._words import is_unknown, plain, quote, unknown
from fairlead.policy.bash.programs._calls import (
    Call,
    Doubt,
    Effect,
    Options,
    Program,
    Run,
    Script,
    Use,
    basename,
    options,
    script,
    split_names,
    uses,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_PREFIXES: Final = {
    "sudo": ("ugCDhpRrTtU", 0), "doas": ("uC", 0), "nohup": ("", 0), "time": ("fo", 0), "timeout": ("ks", 1),
    "nice": ("n", 0), "ionice": ("cn", 0), "exec": ("a", 0), "builtin": ("", 0), "coproc": ("", 0), "setsid": ("", 0),
    "stdbuf": ("ioe", 0), "strace": ("eopsuaEIOPSX", 0), "ltrace": ("eopsu", 0), "chrt": ("TPD", 1), "taskset": ("", 1),
    "unbuffer": ("", 0), "busybox": ("", 0), "toybox": ("", 0), "caffeinate": ("tw", 0), "xvfb-run": ("aenps", 0),
    "npx": ("p", 0), "bunx": ("", 0), "uvx": ("", 0), "chronic": ("", 0), "faketime": ("f", 1), "gtimeout": ("ks", 1),
    "chroot": ("", 1), "unshare": ("", 0), "firejail": ("", 0), "proxychains": ("f", 0), "dotenv": ("f", 0),
    "noglob": ("", 0),
    "then": ("", 0), "do": ("", 0), "else": ("", 0), "entr": ("", 0), "direnv": ("", 2),
    "command": ("", 0), "arch": ("", 0), "{": ("", 0), "!": ("", 0),
}  # fmt: skip
"""Prefix → its options with a value, and how many operands stand before the command."""

_PREFIX_LONG: Final = "user group host prompt chdir kill-after signal adjustment class classdata format output"
_SUBCOMMANDS: Final = {
    "uv": {"run"}, "poetry": {"run"}, "pdm": {"run"}, "pipenv": {"run"}, "hatch": {"run"}, "conda": {"run"},
    "npm": {"exec", "x"}, "pnpm": {"exec", "dlx"}, "yarn": {"exec", "dlx"}, "bundle": {"exec"}, "mise": {"exec", "x"},
    "pixi": {"run"}, "rye": {"run"},
}  # fmt: skip
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*\+?=")
_FROM_PIPE: Final = unknown("(what comes through the pipe)")
_XARGS_LONG: Final = "max-args max-procs delimiter arg-file max-lines max-chars process-slot-var"
_EITHER: Final = {"-o", "-or", "!", "-not", ",", "("}
_SHELLS: Final = ("sh", "bash", "zsh", "dash", "ksh", "mksh", "ash", "rbash", "fish", "su", "runuser")


def _prefix(call: Call) -> Iterator[Effect]:
    valued, skipped = _PREFIXES[call.program]
    found, words = _until_operand(call.args, valued, _PREFIX_LONG)
    if call.program == "command" and found.has("v", "V"):
        return
    words = words[skipped:]
    while words and _ASSIGNMENT.match(words[0]):
        words = words[1:]
    yield from uses("write", found.values("o", "output") if call.program in {"time", "strace"} else ())
    if words:
        yield Run(words, next(iter(found.values("D", "chdir")), None) if call.program == "sudo" else None)
    elif call.program == "sudo" and found.has("s", "i", "shell", "login"):
        yield from _shell(Call("sh", [], call.stdin, call.piped))


def _until_operand(args: list[str], valued: str, long: str) -> tuple[Options, list[str]]:
    """Sort the options before the first operand; the rest stays as it is."""
    at = 0
    while at < len(args) and args[at].startswith("-") and args[at] not in {"--", "-"}:
        arg = args[at]
        if arg.startswith("--"):
            at += "=" not in arg and any(name.startswith(arg[2:]) for name in split_names(long))
        else:
            at += next((at for at, c in enumerate(arg) if c in valued), 0) == len(arg) - 1
        at += 1
    found = options(args[:at], valued, long)
    return found, args[at + 1 :] if args[at : at + 1] == ["--"] else args[at:]


def _env(call: Call) -> Iterator[Effect]:
    found, words = _until_operand(call.args, "uCS", "unset chdir split-string")
    for text in found.values("S", "split-string"):
        yield script(text + "".join(" " + word for word in words), "env -S")
        return
    while words and (words[0] == "-" or _ASSIGNMENT.match(words[0])):
        words = words[1:]
    if words:
        yield Run(words, next(iter(found.values("C", "chdir")), None))


def _subcommand(call: Call) -> Iterator[Effect]:
    words = call.args
    if words and words[0][:1] == "-":
        _, words = _until_operand(words, "C", "directory project prefix")
    if words and words[0] in _SUBCOMMANDS[call.program]:
        _, rest = _until_operand(words[1:], "pnc", "with python extra group env-file package project directory")
        if rest:
            yield Run(rest)


def _shell(call: Call) -> Iterator[Effect]:
    args, reads_stdin, code = list(call.args), False, False
    while args and args[0][:1] in {"-", "+"} and len(args[0]) > 1:
        arg = args.pop(0)
        if arg == "--":
            break
        if arg in {"--rcfile", "--init-file", "-o", "+o", "-O", "+O", "--command"}:
            code |= arg == "--command"
            args = args if code else args[1:]
        elif not arg.startswith("--"):
            code |= "c" in arg
            reads_stdin |= "s" in arg
            args = args[1:] if arg.endswith(("o", "O")) else args
        elif arg in {"--version", "--help"}:
            return
    if call.program in {"su", "runuser"}:
        args, code = _as_user(args, code=code)
    if code:
        yield from (script(word, call.program) for word in args[:1])
    elif reads_stdin or not args or plain(args[0]) in {"-", "/dev/stdin", "/proc/self/fd/0"}:
        yield from _stdin_script(call)
    elif plain(args[0]).startswith(("/dev/fd/", "/proc/")):
        yield Doubt(f"{call.program} runs what another command prints")
    else:
        yield Use("read", args[0])


def _as_user(args: list[str], *, code: bool) -> tuple[list[str], bool]:
    """`su user -c 'script'`: the option may follow the name."""
    if not code and "-c" in args:
        return args[args.index("-c") + 1 :], True
    return args, code


def _stdin_script(call: Call) -> Iterator[Effect]:
    if call.stdin is not None:
        yield Script(call.stdin)
    elif call.piped:
        yield Doubt(f"{call.program} runs what another command prints")


def _eval(call: Call) -> Iterator[Effect]:
    words = call.args[1:] if call.args[:1] == ["--"] else call.args
    yield script(" ".join(words), call.program)


def _option_script(call: Call) -> Iterator[Effect]:
    """`script -c 'text'`, `flock file -c 'text'`, `nix-shell --run 'text'`."""
    found = options(call.args, "cw", "command run")
    yield from (script(word, call.program) for word in found.values("c", "command", "run"))
    if call.program == "flock" and not found.has("c"):
        yield Run(_until_operand(call.args, "wE", "timeout")[1][1:])
    yield from uses("write", found.operands[:1] if call.program == "script" else ())


def _watch(call: Call) -> Iterator[Effect]:
    yield script(" ".join(_until_operand(call.args, "n", "interval")[1]), call.program)


def _trap(call: Call) -> Iterator[Effect]:
    operands = options(call.args).operands
    if len(operands) > 1 and operands[0]:
        yield script(operands[0], call.program)


def _xargs(call: Call) -> Iterator[Effect]:
    found, words = _until_operand(call.args, "IEdLnPsaJ", _XARGS_LONG)
    files = [_FROM_PIPE] if call.stdin is None else [quote(word) for word in call.stdin.split()]
    marker = next(iter(found.values("I", "J", "replace")), "{}" if found.has("i", "replace") else None) or None
    yield from uses("read", found.values("a", "arg-file"))
    if not words:
        return
    if marker:
        for file in files:
            yield Run(_fill(words, file, plain(marker)))
    else:
        yield Run([*words, *files])


def _parallel(call: Call) -> Iterator[Effect]:
    _, words = _until_operand(call.args, "jnNLPI", "jobs delay timeout")
    files = words[words.index(":::") + 1 :] if ":::" in words else [_FROM_PIPE]
    words = words[: words.index(":::")] if ":::" in words else words
    for file in files:
        whole = _fill(words, file)
        yield script(" ".join(whole if whole != words else [*words, file]), call.program)


def _find(call: Call) -> Iterator[Effect]:
    start = next(
        (at for at, arg in enumerate(call.args) if arg[:1] in {"-", "(", "!"} and arg not in {"-H", "-L", "-P"}), None
    )
    roots = [arg for arg in call.args[:start] if arg not in {"-H", "-L", "-P"}] or ["."]
    tests = call.args[start:] if start is not None else []
    for root in roots:
        yield from _found(root, tests)


def _found(root: str, tests: list[str]) -> Iterator[Effect]:
    name = _name(tests)
    files = [f"{root.rstrip('/')}/**/{name}" if name else f"{root.rstrip('/')}/**"]
    if name and fnmatch(basename(plain(root)), name):
        files.append(root)
    for at, test in enumerate(tests):
        if test == "-delete":
            yield from uses("delete", files) if name else [Use("delete", root, below=True)]
        elif test in {"-fprint", "-fprint0", "-fls", "-fprintf"}:
            yield from uses("write", tests[at + 1 : at + 2])
        elif test in {"-exec", "-execdir", "-ok", "-okdir"}:
            words = tests[at + 1 :]
            end = next((i for i, word in enumerate(words) if word in {";", "+"}), len(words))
            for file in files:
                yield Run(_fill(words[:end], file))


def _name(tests: list[str]) -> str | None:
    """The pattern that every file found must match, if that can be said."""
    if _EITHER & set(tests):
        return None
    for at, test in enumerate(tests[:-1]):
        value = tests[at + 1]
        if test == "-name" and not is_unknown(value):
            return plain(value)
        if test == "-iname" and not is_unknown(value):
            return "".join(f"[{c.lower()}{c.upper()}]" if c.isalpha() else c for c in plain(value))
    return None


def _fd(call: Call) -> Iterator[Effect]:
    starts = [at for at, arg in enumerate(call.args) if arg in {"-x", "-X", "--exec", "--exec-batch"}]
    for at in starts[:1]:
        words = call.args[at + 1 :]
        filled = _fill(words, _FROM_PIPE)
        yield Run(filled if filled != words else [*words, _FROM_PIPE])


def _fill(words: list[str], file: str, hole: str = "{}") -> list[str]:
    """Put a file where the hole is, quoted or not."""
    return [word.replace(hole, file).replace(quote(hole), file) for word in words]


def _doubtful(text: str, call: Call) -> Iterator[Effect]:
    if {"expand_aliases", "-p", "-f"} & set(call.args):
        yield Doubt(text)


RUNNERS: Final[dict[str, Program]] = {
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
    "hash": partial(_doubtful, "a name is made to run another program"),
    "enable": partial(_doubtful, "the shell loads a command from a file"),
    "shopt": partial(_doubtful, "aliases are switched on: a name may run another program"),
}
