"""The settings, variables and options that make git run other programs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from fairlead.policy.bash._words import OPEN, plain
from fairlead.policy.bash.programs._calls import Access, Effect, RunCommand, RunScript, UnknownEffect, run_script
from fairlead.policy.bash.programs._git_arguments import parse_git

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_RUNS: Final = re.compile(
    r"""core\.(?:fsmonitor|pager|editor|sshcommand|askpass|gitproxy|alternaterefscommand)
    | pager\..+ | sequence\.editor | interactive\.difffilter
    | diff\.external | diff\..+\.(?:command|textconv) | (?:diff|merge)tool\..+\.(?:cmd|path) | merge\..+\.driver
    | filter\..+\.(?:clean|smudge|process) | credential\.(?:.+\.)?helper | gpg\.(?:.+\.)?program
    | gpg\.ssh\.defaultkeycommand | sendemail\.(?:.+\.)?(?:smtpserver|\w+cmd)
    | (?:browser|man|guitool)\..+\.(?:cmd|path)
    | remote\..+\.(?:uploadpack|receivepack) | trailer\..+\.(?:command|cmd) | tar\..+\.command
    | uploadpack\.packobjectshook | imap\.tunnel | hook\..+\.command | lfs\..*\.(?:path|clean|smudge)
    | submodule\..+\.update""",
    re.VERBOSE | re.DOTALL,
)
"""Settings whose value is a command."""
_LOADS: Final = re.compile(
    r"core\.(?:hookspath|worktree)|init\.templatedir|include\.path|includeif\..+\.path|remote\..+\.vcs", re.DOTALL
)
"""Settings whose value is a file or folder with commands, or another folder to work in."""
_URLS: Final = re.compile(r"remote\..+\.(?:push)?url|url\..+\.(?:push)?insteadof|submodule\..+\.url", re.DOTALL)
_NO_COMMAND: Final = frozenset({"", "true", "false", "yes", "no", "on", "off", "0", "1", "/dev/null"})

_COMMAND_VARIABLES: Final = (
    *("GIT_EXTERNAL_DIFF", "GIT_SSH_COMMAND", "GIT_SSH", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_PAGER"),
    *("GIT_ASKPASS", "SSH_ASKPASS", "GIT_PROXY_COMMAND", "EDITOR", "VISUAL", "PAGER", "LESSOPEN"),
)
_LOADING_VARIABLES: Final = (
    *("GIT_EXEC_PATH", "GIT_TEMPLATE_DIR", "GIT_CONFIG", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"),
    *("GIT_CONFIG_PARAMETERS", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR"),
    *("GIT_NAMESPACE", "GIT_REPLACE_REF_BASE", "GIT_SHALLOW_FILE", "GIT_GRAFT_FILE", "GIT_ATTR_SOURCE"),
)
_NO_SETTINGS: Final = frozenset({"", "/dev/null"})


def setting_effects(key: str, value: str) -> Iterator[Effect]:
    """Yield the effects of a setting. The value is marked text."""
    text = plain(value).strip()
    name = key.strip().lower()
    if name.startswith("alias."):
        yield RunScript(text[1:] if text.startswith("!") else f"git {text}")
    elif _RUNS.fullmatch(name):
        if name.startswith("submodule."):
            if text.startswith("!"):
                yield run_script(value.removeprefix("!"), "git")
        elif text.lower() not in _NO_COMMAND:
            yield run_script(value.removeprefix("!"), f"git with {key}")
    elif _LOADS.fullmatch(name):
        if text not in _NO_SETTINGS:
            yield UnknownEffect(f"what git runs or works on with {key}={text}")
    elif _URLS.fullmatch(name):
        yield from url_effects([value])
        if name.startswith("url."):
            yield from url_effects([key[len("url.") :]])


def url_effects(urls: Iterable[str]) -> Iterator[Effect]:
    """Yield the effects of repository URLs. A URL with `ext::` runs a command."""
    for url in map(plain, urls):
        if url.startswith("ext::"):
            yield RunScript(url[len("ext::") :].replace("% ", " "))
        elif re.match(r"[a-z0-9+-]+::", url):
            yield UnknownEffect(f"what the helper of git for {url} does")


def variable_effects(variables: Mapping[str, tuple[str, ...] | None]) -> Iterator[Effect]:
    """Yield the effects of the variables that git reads."""
    for name in _COMMAND_VARIABLES:
        values = variables.get(name, ())
        if values is None:
            yield UnknownEffect(f"which command {name} names is only known when it runs")
        yield from (run_script(value, name) for value in values or () if plain(value).strip() not in _NO_COMMAND)
    for name in _LOADING_VARIABLES:
        values = variables.get(name, ())
        if values is None or any(plain(value) not in _NO_SETTINGS for value in values):
            yield UnknownEffect(f"what git runs or works on with {name}")
    for name, values in variables.items():
        if name.startswith("GIT_TRACE"):
            yield from (Access("write", value) for value in values or () if "/" in value)
        elif name.startswith("GIT_CONFIG_KEY_"):
            yield from _numbered_setting(variables, name)


def _numbered_setting(variables: Mapping[str, tuple[str, ...] | None], name: str) -> Iterator[Effect]:
    keys, values = variables[name], variables.get(name.replace("_KEY_", "_VALUE_"), ())
    if keys is None or values is None:
        yield UnknownEffect(f"which setting of git {name} is, is only known when it runs")
    for key in map(plain, keys or ()):
        for value in values or ():
            yield from setting_effects(key, value)


# -- options of subcommands ----------------------------------------------------------------------------

_NETWORK: Final = {"fetch", "pull", "push", "clone", "ls-remote", "fetch-pack", "send-pack", "archive"}


def option_effects(name: str, args: list[str]) -> Iterator[Effect]:
    """Yield the effects of the commands in the arguments of a subcommand. The arguments are marked text."""
    plain_args = tuple(args)
    if name in _NETWORK:
        letters = "u" if name == "clone" else ""
        opts = parse_git(plain_args, letters, "upload-pack receive-pack exec template config")
        yield from _scripts(opts.values("upload-pack", "receive-pack", "exec", "u"), name)
        yield from url_effects(opts.words)
    elif name in {"rebase", "difftool", "filter-branch", "grep", "send-email"}:
        yield from _option_scripts(name, plain_args)
    elif name == "bisect" and args[:1] == ["run"]:
        yield RunCommand(args[1:])
    elif name == "submodule":
        yield from _submodule(args)
    elif name in {"for-each-repo", "merge-index"}:
        yield from _runner(name, plain_args)
    elif name == "shell":
        yield from _scripts(parse_git(plain_args, "c").values("c"), name)


_MAIL_COMMANDS: Final = ("to-cmd", "cc-cmd", "header-cmd", "sendmail-cmd", "smtp-server")
_SCRIPT_OPTIONS: Final[dict[str, tuple[str, str, tuple[str, ...]]]] = {
    "rebase": ("xsXC", "exec onto strategy strategy-option", ("x", "exec")),
    "difftool": ("xt", "extcmd tool", ("x", "extcmd")),
    "grep": ("eABCmfO", "open-files-in-pager=", ("O", "open-files-in-pager")),
    "send-email": ("", " ".join(_MAIL_COMMANDS), _MAIL_COMMANDS),
}  # fmt: skip
_FILTERS: Final = ("setup", "subdirectory-filter", "env-filter", "tree-filter", "index-filter", "parent-filter",
                   "msg-filter", "commit-filter", "tag-name-filter")  # fmt: skip


def _option_scripts(name: str, args: tuple[str, ...]) -> Iterator[Effect]:
    if name == "filter-branch":
        opts = parse_git(args, "d", " ".join(_FILTERS) + " original state-branch")
        yield from _scripts(opts.values(*(option for option in _FILTERS if option != "subdirectory-filter")), name)
        return
    letters, valued, options = _SCRIPT_OPTIONS[name]
    yield from _scripts(parse_git(args, letters, valued).values(*options), name)


def _scripts(words: Iterable[str], name: str) -> Iterator[Effect]:
    yield from (run_script(word, f"git {name}") for word in words if word)


def _submodule(args: list[str]) -> Iterator[Effect]:
    words = [word for word in args if word not in {"--quiet", "-q", "--cached"}]
    if words[:1] != ["foreach"]:
        yield from url_effects(words)
        return
    words = words[1:]
    while words and words[0].startswith("-"):
        words.pop(0)
    if any(OPEN in word for word in words):
        yield UnknownEffect("git submodule foreach runs a command that is only known when it runs")
    elif words:
        script = plain(" ".join(words))
        yield RunScript(script)
        if ".." in script:  # the script runs in a folder of the project; its name does not matter
            yield RunScript(f"cd submodule && {script}")


def _runner(name: str, args: tuple[str, ...]) -> Iterator[Effect]:
    opts = parse_git(args, "", "config")
    words = opts.words
    if name == "for-each-repo" and words:
        yield UnknownEffect(f"in which repositories git {' '.join(map(plain, words))} runs")
    elif words:
        yield RunScript(plain(words[0]))
