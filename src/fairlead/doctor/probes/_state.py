"""Finds out about the state folder, the spool, the journal, the databases and the daemon's log.

Nothing is repaired or set aside: a daemon may have the same files open.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from contextlib import closing, suppress
from pathlib import Path
from time import monotonic
from urllib.parse import quote

from fairlead.daemon import daemon_log_file
from fairlead.doctor._facts import DatabaseFacts, StateFacts
from fairlead.doctor.probes._daemon import entry
from fairlead.journal import MAX_SPOOL_FILES, count_spooled, journal_folder, spool_folder
from fairlead.paths import state_folder

_CHECK_TIMEOUT = 5.0
"""Seconds for the check of all pages of a database, which takes about 0.1 s per 100 MB."""
_STEPS = 10_000
_NOT_CHECKED = {sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
"""Errors that are no damage: the check took too long, or a daemon that creates or upgrades the database locks it."""
_PRIMARY_CODE = 0xFF
"""The lower byte of an extended error code is the primary one."""
_LOG_TAIL = 4096
_STARTED = "fairlead: listening at "


def probe_state() -> StateFacts:
    """Return the facts about the state folder."""
    folder = state_folder()
    return StateFacts(
        folder=entry(folder),
        write_error=_write_error(folder),
        free_bytes=_free_bytes(folder),
        spooled=_count(spool_folder()),
        max_spooled=MAX_SPOOL_FILES,
        unreadable=_count(f"{spool_folder()}/broken"),
        journal_bytes=_size(journal_folder()),
        store=_database(f"{folder}/fairlead.db"),
        mail=_database(f"{folder}/mail.db"),
        log=daemon_log_file(),
        last_log_line=_last_log_line(daemon_log_file()),
    )


def _write_error(folder: str) -> str:
    """Return why a folder cannot be written; "" if it can. Writes a file: permissions do not show a full disk."""
    existing = next(path for path in (Path(folder), *Path(folder).parents) if os.path.lexists(path))
    try:
        with tempfile.NamedTemporaryFile(prefix=".doctor.", dir=existing) as file:
            file.write(bytes(_LOG_TAIL))
            file.flush()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _free_bytes(folder: str) -> int | None:
    for path in (Path(folder), *Path(folder).parents):
        with suppress(OSError):
            return shutil.disk_usage(path).free
    return None


def _count(folder: str) -> int:
    try:
        return count_spooled(folder)
    except OSError:
        return 0


def _size(folder: str) -> int:
    size = 0
    with suppress(OSError):
        for item in os.scandir(folder):
            with suppress(OSError):
                size += item.stat(follow_symlinks=False).st_size
    return size


def _last_log_line(path: str) -> str:
    """Return the last line of the log; "" if there is none, or if it only says that a daemon has started."""
    try:
        with Path(path).open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _LOG_TAIL))
            lines = file.read().decode(errors="replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1].strip() if lines and not lines[-1].startswith(_STARTED) else ""


# -- the databases ---------------------------------------------------------------------------------------


def _database(file: str) -> DatabaseFacts:
    set_aside = tuple(_set_aside(Path(file)))
    if not os.path.lexists(file):
        return DatabaseFacts(file, set_aside=set_aside)
    from fairlead.store import HEAD_REVISION, known_revisions

    revision, problem, was_checked = _check_database(file)
    is_known_revision = revision in {"", HEAD_REVISION} or revision in known_revisions()
    return DatabaseFacts(file, True, revision, HEAD_REVISION, is_known_revision, problem, was_checked, set_aside)  # noqa: FBT003 - it is there


def _set_aside(file: Path) -> list[str]:
    """Return the damaged databases that were replaced, the oldest first; none if the folder cannot be read."""
    try:
        names = sorted(os.listdir(file.parent))
    except OSError:
        return []
    beside = ("-wal", "-shm", "-journal")
    found = (name for name in names if name.startswith(f"{file.name}.damaged-") and not name.endswith(beside))
    return [str(file.with_name(name)) for name in found]


def _check_database(file: str) -> tuple[str, str, bool]:
    """Return the revision and the problem, each "" for none, and whether all pages could be checked in time.

    Opens the file read-only.
    """
    from fairlead.store import REVISION_TABLE

    deadline = monotonic() + _CHECK_TIMEOUT
    try:
        if Path(file).stat().st_size == 0:
            return "", "it is empty", True
        with closing(sqlite3.connect(f"file:{quote(file)}?mode=ro", uri=True, timeout=1.0)) as connection:
            connection.set_progress_handler(lambda: monotonic() > deadline, _STEPS)
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if REVISION_TABLE not in tables:
                return "", "it is not a database of Fairlead" if tables else "", True
            row = connection.execute(f"SELECT version_num FROM {REVISION_TABLE}").fetchone()  # noqa: S608 - our own name
            problems = [str(line) for (line,) in connection.execute("PRAGMA quick_check(1)")]
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorcode", 0) & _PRIMARY_CODE in _NOT_CHECKED:
            return "", "", False
        return "", str(error), True
    except (OSError, sqlite3.Error) as error:
        return "", str(error), True
    return str(row[0]) if row else "", "" if problems in ([], ["ok"]) else " ".join(problems), True
