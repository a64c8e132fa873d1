"""`fairlead trust` and `fairlead untrust`: which policy files may loosen rules and have commands run."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click
import msgspec

from fairlead.cli.policy.trust_hooks import (
    TrustError,
    changes_to_text,
    is_hook_file,
    record_trust,
    trust_hook_file,
)
from fairlead.cli.support.command import Command
from fairlead.cli.support.invocation import print_lines
from fairlead.cli.support.person import require_person
from fairlead.errors import FairleadError, UsageError
from fairlead.policy import (
    Layer,
    deleted_file_warning,
    find_policy_files,
    list_trusted,
    parse_layer,
    read_hook_file,
    read_policy_text,
    read_trusted,
    remove_trusted,
    user_wide_file,
    withheld_settings,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.policy import TrustedFile


class ListedFile(msgspec.Struct, frozen=True):
    """A trusted file, as `--list` shows it."""

    file: str
    digest: str
    at: float
    """The Unix time at which it was trusted."""
    state: str
    """`trusted`, `changed` since it was trusted, or `missing`."""


# -- what is shown -------------------------------------------------------------------------------------


def to_text(file: str, text: bytes, before: TrustedFile | None, layer: Layer) -> Iterator[str]:
    """Yield what a person is asked to trust: the file or its changes, and the settings that apply only with the trust.

    `before` is the version that is trusted so far; `None` if there is none.
    """
    yield from changes_to_text(file, text, before)
    withheld = withheld_settings(layer, ())
    if withheld:
        yield f"With your trust it also applies: {', '.join(withheld)}"
    elif layer.policy.hooks:
        yield "It only has rules, and hooks that you have trusted, which apply already."
    else:
        yield "It only has rules, which apply already."


def list_files() -> tuple[ListedFile, ...]:
    """Return the trusted files, each with its state."""
    return tuple(ListedFile(entry.file, entry.digest, entry.at, _state(entry)) for entry in list_trusted())


def _state(entry: TrustedFile) -> str:
    if is_hook_file(entry.file) and os.path.exists(entry.file):
        return "changed" if read_hook_file(entry.file).problem else "trusted"
    try:
        return "trusted" if read_policy_text(entry.file) == entry.text else "changed"
    except FairleadError:
        return "missing"


def _print_list(*, as_json: bool) -> int:
    files = list_files()
    if as_json:
        print(msgspec.json.format(msgspec.json.encode(files), indent=2).decode())
    else:
        print_lines(
            [f"{listed.state:8} {listed.file}" for listed in files]
            or ["nobody has trusted a file with `fairlead trust` yet"]
        )
    return 0


# -- the commands --------------------------------------------------------------------------------------


@click.command(
    "trust",
    cls=Command,
    arguments=(("PATH", "a policy, a Python file with hooks, or a folder with a policy in it or above (default: .)"),),
    examples=("fairlead trust", "fairlead trust vendor/tool/.fairlead.yaml", "fairlead trust --list --json"),
    exit_codes=(
        (0, "trusted, or listed"),
        (1, "not confirmed, run by an agent, or the file or the policy is not valid"),
    ),
)
@click.argument("path", metavar="[PATH]", default=".", type=click.Path())
@click.option("--yes", "assume_yes", is_flag=True, help="Do not ask for a confirmation.")
@click.option("--list", "lists", is_flag=True, help="List the files that are trusted, and change nothing.")
@click.option("--json", "as_json", is_flag=True, help="With --list, print JSON.")
def trust(*, path: str, assume_yes: bool, lists: bool, as_json: bool) -> int:
    """Trust a policy file, or a file with hooks, as it is now.

    The rules of every policy file apply. Only a trusted one can loosen a rule, have a command run, grant a permission
    or add text to a prompt: the user-wide file, the policy of the folder in which you start a session, as it is then,
    and those that you trust here. A file that changes afterwards is not trusted any more. Only a person can trust.

    A Python file that a policy lists under `hooks` is trusted together with the modules of the project that it imports.
    Until it is trusted, its hooks do not run, and every event that can be blocked is denied.
    """
    if lists:
        return _print_list(as_json=as_json)
    if as_json:
        raise UsageError("--json is for --list alone")
    if is_hook_file(path):
        trust_hook_file(path, assume_yes=assume_yes)
        return 0
    file = _policy_at(path)
    text = read_policy_text(file)
    layer, before = parse_layer(text, file), read_trusted(file)
    if before is not None and before.text == text:
        print(f"{file} is trusted already")
        return 0
    print_lines(to_text(file, text, before, layer))
    record_trust(file, text, assume_yes=assume_yes)
    return 0


@click.command(
    "untrust",
    cls=Command,
    arguments=(("PATH", "a policy file, or a folder: its policy, or the nearest above it (default: the current one)"),),
    examples=("fairlead untrust vendor/tool",),
    exit_codes=((0, "no longer trusted"), (1, "it was not trusted, not confirmed, or run by an agent")),
)
@click.argument("path", metavar="[PATH]", default=".", type=click.Path())
@click.option("--yes", "assume_yes", is_flag=True, help="Do not ask for a confirmation.")
def untrust(*, path: str, assume_yes: bool) -> int:
    """Revoke the trust in a policy file.

    Its rules still apply. A session that began in its folder still trusts the version of that time.
    """
    file = os.path.abspath(path) if read_trusted(path) else _policy_at(path)
    if read_trusted(file) is None:
        raise UsageError(f"{file} is not trusted; see fairlead trust --list")
    require_person(f"revoke the trust in {file}", assume_yes=assume_yes)
    try:
        remove_trusted(file)
    except OSError as error:
        raise TrustError(f"cannot record that {file} is not trusted: {error.strerror or error}") from None
    print(f"no longer trusted: {file}")
    return 0


def _policy_at(path: str) -> str:
    """Return the policy file at a path: the file itself or, for a folder, the nearest one in it or above it.

    The user-wide file is not considered. Raise `UsageError` if the path does not exist, or no policy is found.
    """
    if not os.path.lexists(path):
        raise UsageError(f"{path}: no such file or folder")
    if not os.path.isdir(path):
        return os.path.abspath(path)
    user_wide = user_wide_file()
    files = [policy.file for policy in find_policy_files(path, also_deleted=True) if policy.file != user_wide]
    nearest = next(filter(os.path.lexists, files), None)
    if nearest is None:
        missing = f"{os.path.abspath(path)}: no policy here or in the folders above; `fairlead init` writes one"
        raise UsageError(str(deleted_file_warning(files[0])) if files else missing)
    return nearest
