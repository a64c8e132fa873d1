"""`fairlead lease`: takes leases on files, lists them, and ends them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click
import msgspec

from fairlead.cli.support.caller import CallerOptions, caller_options
from fairlead.cli.support.command import Command
from fairlead.cli.support.daemon_client import Request, ask_mail, print_document
from fairlead.cli.support.invocation import Screen, current, stdout_screen
from fairlead.cli.support.param_types import Duration
from fairlead.durations import DAY
from fairlead.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.cli.support.daemon_client import Document

_MAX_SECONDS = DAY


class Options(msgspec.Struct, frozen=True):
    """The options of the command line."""

    paths: tuple[str, ...] = ()
    seconds: float | None = None
    """How long the lease lasts; `None` for the daemon's default."""
    why: str = ""
    shared: bool = False
    release: bool = False
    """Whether to end leases instead of taking them."""
    local: bool = False
    """Whether to take the leases for this host only."""
    here: bool = False
    """Whether to list only the leases of this host."""


def to_request(options: Options) -> Request:
    """Return the request that lists, takes or releases leases.

    Raise `UsageError` if options contradict each other, if a path is missing, or if the lease would last too long.
    """
    takes = options.seconds is not None or options.why or options.shared or options.local
    if options.here and (options.release or options.paths):
        raise UsageError("lease: --here is for the list; for a lease on this host only: --local")
    if options.release:
        if takes:
            raise UsageError("lease: --release ends leases; --for, --why, --shared and --local are for new ones")
        return Request("POST", "leases/release", {"paths": list(options.paths)})
    if not options.paths:
        if takes:
            raise UsageError("lease: which files? Name a path, or a pattern in quotes: 'src/**/*.py'")
        return Request("GET", "leases", {"here": "true"} if options.here else {})
    if options.seconds is not None and options.seconds > _MAX_SECONDS:
        raise UsageError("lease: --for: a lease lasts at most 24h; take it again when it ends")
    fields: dict[str, object] = {"paths": list(options.paths), "why": options.why, "shared": options.shared}
    if options.local:
        fields["local"] = True
    if options.seconds is not None:
        fields["seconds"] = options.seconds
    return Request("POST", "leases", fields)


def to_text(document: Document, options: Options, cwd: str, screen: Screen) -> Iterator[str]:
    """Yield a line for each lease that was listed, taken or released. Paths below `cwd` are shown relative to it."""
    from fairlead.cli.support.mail_text import table
    from fairlead.text import duration, one_line

    leases, now = document["leases"], document["now"]
    if options.release:
        for row in leases:
            yield f"released {_relative_path(row, cwd)}"
        if not document.get("told", True):
            yield "the other hosts learn of it when the team's relay is reached"
        if not leases:
            yield "you hold no leases"
    elif options.paths:
        for row in leases:
            shared = ", shared" if row["shared"] else ""
            held = f"{one_line(row['holder'])} holds {_relative_path(row, cwd)} for {duration(row['until'] - now)}"
            yield f"{held}{shared}{_scope(row)}"
    elif leases:
        yield from table([_cells(row, cwd, now) for row in leases], screen)
    else:
        yield "no leases; to take one: fairlead lease PATH"


def _cells(row: Document, cwd: str, now: float) -> tuple[str, ...]:
    from fairlead.text import duration, one_line

    you = " (you)" if row["yours"] else ""
    kind = "shared" if row["shared"] else "exclusive"
    if row.get("team") is False:
        kind += ", this host"
    left = f"{duration(row['until'] - now)} left"
    return _relative_path(row, cwd), f"{one_line(row['holder'])}{you}", kind, left, one_line(row["why"])


def _scope(row: Document) -> str:
    """Return on which hosts a lease applies, such as `, on all hosts of the team`; "" if this host is in no team."""
    from fairlead.text import one_line

    if row.get("team") is None:
        return ""
    why = one_line(row.get("why_local", ""))
    return ", on all hosts of the team" if row["team"] else f", on this host only{f': {why}' if why else ''}"


def _relative_path(row: Document, cwd: str) -> str:
    """Return the path of a lease, relative to the folder `cwd` if it is that folder or below it."""
    from fairlead.text import one_line

    path: str = row["path"]
    below = f"{cwd.rstrip('/')}/"
    return one_line(path.removeprefix(below) if path != cwd else ".")


@click.command(
    "lease",
    cls=Command,
    arguments=(
        (
            "PATH...",
            "a file; a folder, with all below it; or a gitignore pattern in quotes: 'src/**/*.py'",
        ),
    ),
    examples=(
        "fairlead lease src/parser.py --for 1h --why 'splitting it into two modules'",
        "fairlead lease 'migrations/*.sql' --shared",
        "fairlead lease",
        "fairlead lease --release src/parser.py",
        "fairlead lease notes.md --local",
    ),
    exit_codes=(
        (0, "taken, listed or released"),
        (1, "nothing was changed: another session holds one of the files, or stderr says why"),
    ),
)
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@click.option(
    "--for", "seconds", metavar="DURATION", type=Duration(positive=True), help="How long, up to 24h; 30m by default."
)
@click.option("--why", metavar="TEXT", default="", help="What you do with them, for those who want to change them.")
@click.option("--shared", is_flag=True, help="Others may take a shared lease on the same files, too.")
@click.option("--local", is_flag=True, help="In a team of hosts: for this host only, which needs no relay.")
@click.option("--here", is_flag=True, help="List the leases of this host only.")
@click.option("--release", is_flag=True, help="End your leases on these paths; without a path, all of yours.")
@caller_options
def lease(caller: CallerOptions, **given: Any) -> int:
    """Take, list or release leases on the files that you work on.

    While you hold a lease, agents of other sessions that are about to change the files are warned or blocked, as the
    policy says (`leases: warn`, `block` or `off`), and you are notified. It ends when its time is up, with `--release`,
    or with your session. The agents of one session share its leases. Without a path it lists all leases.

    In a team of hosts, a lease on files of a git repository counts on all of them.
    """
    options = Options(**given)
    if options.paths == ("list",) and not os.path.lexists(current().absolute("list")):
        raise UsageError("lease: there is no file 'list'; `fairlead lease` lists the leases; for a new file: ./list")
    document = ask_mail(to_request(options), caller)
    cwd = os.path.normpath(current().cwd())
    return print_document(document, caller, to_text(document, options, cwd, stdout_screen()))
