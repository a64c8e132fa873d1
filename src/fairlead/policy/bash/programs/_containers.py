"""The effects of programs that run commands in containers or on other machines, as far as they reach files here."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from fairlead.policy.bash._words import plain, quote
from fairlead.policy.bash.programs._calls import (
    Effect,
    Mention,
    ParsedOptions,
    Program,
    ProgramCall,
    RunCommand,
    accesses,
    basename,
    options_before_operand,
    parse_options,
    run_script,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_THIS_MACHINE: Final = re.compile(r"(?:.*@)?(?:localhost|127\.\d+\.\d+\.\d+|::1|0\.0\.0\.0)")
_SSH_RUNS: Final = re.compile(r"(?:ProxyCommand|LocalCommand|KnownHostsCommand)[= ](.*)", re.IGNORECASE | re.DOTALL)
_RUN_LONG: Final = (
    "volume mount workdir env env-file name network publish user entrypoint platform label memory cpus gpus "
    "restart hostname add-host cap-add cap-drop device dns expose ip link log-driver pull runtime security-opt "
    "shm-size tmpfs ulimit volumes-from cidfile label-file log-opt stop-signal project-name profile file"
)
_RUN_LETTERS: Final = "vwepulmhf"


def _ssh(call: ProgramCall) -> Iterator[Effect]:
    opts, words = options_before_operand(call.args, "BbcDEeFIiJLlmOopQRSWw", "")
    yield from accesses("write", opts.values("E"))
    yield from accesses("read", opts.values("F"))
    for word in opts.values("o"):
        match = _SSH_RUNS.match(plain(word))
        if match:
            yield run_script(quote(match[1]), "ssh")
    if words and _THIS_MACHINE.fullmatch(plain(words[0])):
        yield run_script(" ".join(map(plain, words[1:])), "ssh")


def _docker(call: ProgramCall) -> Iterator[Effect]:
    opts, words = options_before_operand(
        call.args, "fpHcl", "file project-name project-directory env-file host context"
    )
    yield from (Mention(word, reads_only=True, below=False) for word in opts.values("f", "file", "env-file"))
    if words[:1] in (["container"], ["compose"], ["image"]):
        more, words = options_before_operand(words[1:], "fp", "file project-name project-directory env-file profile")
        yield from (Mention(word, reads_only=True, below=False) for word in more.values("f", "file", "env-file"))
    command = plain(words[0]) if words else ""
    if command in {"run", "create", "exec"}:
        yield from _container(words[1:])
    elif command == "cp":
        yield from _copied(words[1:])
    elif command in {"save", "export"}:
        yield from accesses("write", parse_options(words[1:], "o", "output").values("o", "output"))


def _copied(args: list[str]) -> Iterator[Effect]:
    """Yield the effects of `cp CONTAINER:PATH PATH`, in either direction."""
    operands = parse_options(args, "cn", "container namespace retries").operands
    for word in operands[:-1]:
        yield from accesses("read", [word] if ":" not in word else (), below=True)
    for word in operands[-1:]:
        yield from accesses("write", [word] if ":" not in word else (), below=True)


def _container(args: list[str]) -> Iterator[Effect]:
    opts, words = options_before_operand(args, _RUN_LETTERS, _RUN_LONG)
    mounts = dict(_mounts(opts))
    yield from (Mention(word, reads_only=True, below=False) for word in opts.values("env-file", "label-file"))
    for host, inside in mounts.items():
        yield Mention(host, reads_only=inside.endswith(":ro"), below=False)
    command = [_on_host(word, mounts) for word in words[1:]]
    entry = opts.values("entrypoint")
    folder = next((_on_host(word, mounts) for word in opts.values("w", "workdir")), None)
    if mounts and (command or entry):
        # the image decides in which folder the command starts: most likely in a mounted one
        yield RunCommand([*entry, *command], folder if folder in mounts else next(iter(mounts)))


def container_command(words: Sequence[str]) -> list[str]:
    """Return the image, followed by the words of the command that `docker run`, `docker exec` and the like start.

    The image is "" if the command names none, as for an existing container. The list is empty for a call of `kubectl`
    that starts no command.
    """
    args = list(words[1:])
    index = next((index for index, word in enumerate(args) if word in {"run", "create", "exec"}), len(args))
    if basename(words[0]) in {"kubectl", "oc"}:
        return ["", *args[args.index("--") + 1 :]] if "--" in args[index:] else []
    opts, rest = options_before_operand(args[index + 1 :], _RUN_LETTERS, _RUN_LONG)
    image = "" if args[index : index + 1] == ["exec"] else rest[0] if rest else ""
    return [image, *opts.values("entrypoint"), *rest[1:]]


def _mounts(opts: ParsedOptions) -> Iterator[tuple[str, str]]:
    """Yield each mounted folder of this machine, with its path in the container and the mount's options: `/app:ro`."""
    for word in opts.values("v", "volume"):
        host, _, inside = word.partition(":")
        if host.startswith((".", "/", "~")):
            yield host, inside
    for word in opts.values("mount"):
        fields = dict(field.partition("=")[::2] for field in plain(word).split(","))
        host = fields.get("src") or fields.get("source") or ""
        inside = fields.get("dst") or fields.get("target") or fields.get("destination") or ""
        if host:
            yield host, inside + (":ro" if "readonly" in fields or "ro" in fields else "")


def _on_host(word: str, mounts: dict[str, str]) -> str:
    """Return a word with each path in the container replaced by the path on this machine."""
    for host, inside in mounts.items():
        at = inside.partition(":")[0].rstrip("/")
        if at:
            pattern = rf"(?<![\w./-]){re.escape(at)}(?=/|$|[^\w.-])"
            word = re.sub(pattern, (host.rstrip("/") or "/").replace("\\", r"\\"), word)
    return word


def _kubectl(call: ProgramCall) -> Iterator[Effect]:
    _, words = options_before_operand(call.args, "ns", "namespace context kubeconfig cluster user")
    if words[:1] == ["cp"]:
        yield from _copied(words[1:])
    else:
        yield from (Mention(word, reads_only=True, below=False) for word in _option_values(words))


def _option_values(words: list[str]) -> list[str]:
    opts = parse_options(words, "fk", "filename from-file from-env-file kustomize")
    files = opts.values("f", "filename", "from-file", "from-env-file")
    return [word.rpartition("=")[2] for word in files]


CONTAINERS: Final[dict[str, Program]] = {
    "ssh": _ssh,
    **dict.fromkeys(("docker", "podman", "nerdctl"), _docker),
    **dict.fromkeys(("kubectl", "oc"), _kubectl),
}
