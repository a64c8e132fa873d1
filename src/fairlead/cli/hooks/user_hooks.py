"""`fairlead hooks add`, `remove` and `list`: change or show the hook files that a policy lists."""

from __future__ import annotations

import os
import sys

import click
import msgspec

from fairlead.cli.hooks.policy_text import with_hook, without_hook
from fairlead.cli.policy.deleted import deleted_policy
from fairlead.cli.policy.trust_hooks import TrustError, trust_hook_file
from fairlead.cli.support.command import Command
from fairlead.cli.support.invocation import print_lines
from fairlead.cli.support.person import require_person, yes_option
from fairlead.errors import FairleadError, UsageError
from fairlead.policy import (
    deleted_file_warning,
    find_layers_in_force,
    find_policy_files,
    hook_path,
    parse_layer,
    read_hook_file,
    read_policy_text,
    read_trusted,
    runs_if_listed,
    user_wide_file,
    write_trusted,
)

_NEW_POLICY = """\
# Written by `fairlead hooks add`. `fairlead init` writes a policy with rules to start from.
preToolUse:
  preventRootAdditions: false
"""
_user_option = click.option("--user", "is_user", is_flag=True, help="In the user-wide policy, for all projects.")


class PolicyTextError(FairleadError):
    """A policy file cannot be changed by a command."""


class ListedHookFile(msgspec.Struct, frozen=True):
    """A hook file that a policy lists."""

    file: str
    policy: str
    is_trusted: bool
    problem: str = ""
    """Why its hooks do not run, and what to do; "" if it is trusted."""


@click.command(
    "add",
    cls=Command,
    arguments=(("FILE", "a Python file with a HookManager named `hooks`"),),
    examples=("fairlead hooks add guards.py", "fairlead hooks add --user ~/hooks/audit.py"),
    exit_codes=(
        (0, "it is trusted and listed"),
        (1, "not confirmed, run by an agent, or the file or the policy is not valid"),
    ),
)
@click.argument("file", type=click.Path())
@_user_option
@yes_option
def add(*, file: str, is_user: bool, yes: bool) -> int:
    """Run hooks of your own: trust a Python file and list it in the policy.

    The daemon loads the file once, in a separate process, and calls its hooks at the events that they are for. The
    file is listed under `hooks` in the nearest policy, or in a new one in this folder. Only a person can add hooks.
    """
    path = os.path.abspath(file)
    if not path.endswith(".py"):
        raise UsageError(f"{file} is not a Python file; its name ends with .py")
    policy = _policy_file(is_user=is_user)
    before = _read(policy)
    name = _name_in(policy, path)
    trust_hook_file(path, assume_yes=yes)
    if path in _listed(before, policy):
        print(f"{policy} lists it already")
        return 0
    text = with_hook(before, name)
    is_trusted = _change(policy, before, text, (*_listed(before, policy), path))
    is_at_once = is_trusted or runs_if_listed(policy, path)
    print(f"listed in {policy}; it is in force {_start_text(policy, is_at_once=is_at_once)}")
    return 0


def _start_text(policy: str, *, is_at_once: bool) -> str:
    if is_at_once:
        return "from the next event on"
    return f"in sessions that begin from now on; for those that run already: fairlead trust {policy}"


def _change(policy: str, before: bytes, text: bytes, expected: tuple[str, ...]) -> bool:
    """Replace the text of a policy file, and return whether the new text is trusted.

    It is trusted if the file is new or the user-wide one, or if its previous text `before` was trusted. Except for the
    user-wide file, that is recorded. `expected` are the hook files that the new text must list. Raise `PolicyTextError`
    if it does not list them or cannot be written, and `TrustError` if the trust cannot be recorded.
    """
    entry, is_new = read_trusted(policy), not os.path.lexists(policy)
    _write(policy, text, expected)
    if policy == user_wide_file():
        return True
    if not is_new and (entry is None or entry.text != before):
        return False
    try:
        write_trusted(policy, text)
    except OSError as error:
        raise TrustError(f"cannot record that {policy} is trusted: {error.strerror or error}") from None
    return True


@click.command(
    "remove",
    cls=Command,
    arguments=(("FILE", "a Python file that the policy lists"),),
    examples=("fairlead hooks remove guards.py",),
    exit_codes=((0, "it is no longer listed"), (1, "it was not listed, not confirmed, or run by an agent")),
)
@click.argument("file", type=click.Path())
@_user_option
@yes_option
def remove(*, file: str, is_user: bool, yes: bool) -> int:
    """Remove a file with hooks of your own from the policy.

    It stays trusted; `fairlead untrust` revokes that.
    """
    path = os.path.abspath(file)
    policy = _policy_file(is_user=is_user)
    before = _read(policy)
    listed = _listed(before, policy)
    if path not in listed:
        raise UsageError(f"{policy} does not list {path}; see fairlead hooks list")
    require_person(f"remove {path} from {policy}", assume_yes=yes)
    names = [name for name in parse_layer(before, policy).policy.hooks if hook_path(policy, name) == path]
    is_trusted = _change(policy, before, without_hook(before, names), tuple(other for other in listed if other != path))
    end = "" if is_trusted else f"; sessions that began with it keep its hooks until: fairlead trust {policy}"
    print(f"{policy} no longer lists {path}{end}")
    return 0


@click.command(
    "list",
    cls=Command,
    examples=("fairlead hooks list", "fairlead hooks list --json"),
    exit_codes=((0, "listed"), (1, "a policy is not valid")),
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_files(*, as_json: bool) -> int:
    """List the files with hooks of your own, and whether they are trusted.

    These are the hook files of all policies that apply in this folder, also of a policy file that was deleted and still
    applies.
    """
    files = []
    loaded = find_layers_in_force(os.getcwd())
    for warning in loaded.warnings:
        print(warning, file=sys.stderr)
    for layer in loaded.layers:
        for name in layer.policy.hooks:
            state = read_hook_file(hook_path(layer.file, name))
            files.append(ListedHookFile(state.file, layer.file, not state.problem, state.problem))
    if as_json:
        print(msgspec.json.format(msgspec.json.encode(files), indent=2).decode())
    else:
        lines = [f"trusted  {hook.file}" if hook.is_trusted else f"refused  {hook.problem}" for hook in files]
        print_lines(lines or ["no policy lists hooks here; add some with: fairlead hooks add FILE.py"])
    return 0


def _policy_file(*, is_user: bool) -> str:
    user_wide = user_wide_file()
    if is_user:
        return user_wide
    nearest = (policy.file for policy in find_policy_files(os.getcwd()) if policy.file != user_wide)
    file = next(nearest, f"{os.getcwd()}/.fairlead.yaml")
    if os.path.basename(file).startswith(".conclaude."):
        raise PolicyTextError(f"{file}: conclaude does not know `hooks`; rename the file to .fairlead.yaml first")
    return file


def _read(policy: str) -> bytes:
    if os.path.lexists(policy):
        text = read_policy_text(policy)
        parse_layer(text, policy)
        return text
    if policy == user_wide_file():
        return b""
    if deleted := deleted_policy(os.path.dirname(policy)):  # a new file would replace its rules
        raise PolicyTextError(str(deleted_file_warning(deleted)))
    return _NEW_POLICY.encode()


def _listed(text: bytes, policy: str) -> tuple[str, ...]:
    return tuple(hook_path(policy, name) for name in parse_layer(text, policy).policy.hooks)


def _name_in(policy: str, path: str) -> str:
    """Return a path as the policy lists it: relative if it is below the folder of the policy."""
    folder = os.path.dirname(policy) + "/"
    return path.removeprefix(folder)


def _write(policy: str, text: bytes, expected: tuple[str, ...]) -> None:
    """Replace the text of a policy file.

    Raise `PolicyTextError` if the new text does not list exactly the expected files, or if it cannot be written.
    """
    try:
        is_right = _listed(text, policy) == expected
    except FairleadError:
        is_right = False
    if not is_right:
        names = ", ".join(_name_in(policy, path) for path in expected)
        raise PolicyTextError(f"{policy}: its `hooks` cannot be changed by a command; write them yourself: [{names}]")
    try:
        os.makedirs(os.path.dirname(policy), exist_ok=True)
        temporary = f"{policy}.{os.getpid()}.new"
        with open(temporary, "wb") as file:
            file.write(text)
        if os.path.exists(policy):
            os.chmod(temporary, os.stat(policy).st_mode & 0o7777)
        os.replace(temporary, os.path.realpath(policy))
    except OSError as error:
        raise PolicyTextError(f"{policy}: cannot be written: {error.strerror or error}") from None
