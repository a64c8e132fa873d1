"""Looks at what is kept: the state folder, the spool, the journal, the databases and the daemon's last words.

Nothing is mended and nothing set aside: a daemon may have the same files open.
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
from fairlead.doctor._facts import Database, State
from fairlead.doctor.probes._daemon import entry
from fairlead.journal import MAX_SPOOL_FILES, count_spooled, journal_folder, spool_folder
from fairlead.paths import state_folder

_PATIENCE = 5.0
"""Seconds for the look at all pages of the database; some 0.1 s per 100 MB."""
_STEPS = 10_000
_TAIL = 4096
_GOOD_NEWS = "fairlead: listening at "


def look_at_state() -> State:
    """Look at the state folder."""
    folder = state_folder()
    return State(
        folder=entry(folder),
        unwritable=_unwritable(folder),
        free=_free(folder),
        spooled=_count(spool_folder()),
        most_spooled=MAX_SPOOL_FILES,
        broken=_count(f"{spool_folder()}/broken"),
        journal=_size(journal_folder()),
        database=_database(f"{folder}/fairlead.db"),
        mail=_database(f"{folder}/mail.db"),
        log=daemon_log_file(),
        last_words=_last_words(daemon_log_file()),
    )


def _unwritable(folder: str) -> str:
    """Try it: rights alone do not say that a disk is read-only, or full."""
    place = next(path for path in (Path(folder), *Path(folder).parents) if os.path.lexists(path))
    try:
        with tempfile.NamedTemporaryFile(prefix=".doctor.", dir=place) as file:
            file.write(bytes(_TAIL))
            file.flush()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _free(folder: str) -> int | None:
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


def _last_words(path: str) -> str:
    """Give the last line of the log, unless it only says that a daemon began to listen."""
    try:
        with Path(path).open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
            lines = file.read().decode(errors="replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1].strip() if lines and not lines[-1].startswith(_GOOD_NEWS) else ""


# -- the databases ---------------------------------------------------------------------------------------


def _database(file: str) -> Database:
    aside = tuple(
        sorted(str(path) for path in Path(file).parent.glob(f"{Path(file).name}.damaged-*") if _is_first(path))
    )
    if not os.path.lexists(file):
        return Database(file, set_aside=aside)
    from fairlead.store import HEAD_REVISION, known_revisions

    revision, problem, is_whole = _look(file)
    is_known = revision in {"", HEAD_REVISION} or revision in known_revisions()
    return Database(file, True, revision, HEAD_REVISION, is_known, problem, is_whole, aside)  # noqa: FBT003 - it is there


def _is_first(path: Path) -> bool:
    return not path.name.endswith(("-wal", "-shm", "-journal"))


def _look(file: str) -> tuple[str, str, bool]:
    """Give the revision, what is wrong, and whether all pages were looked at. Read-only, and for a while only."""
    from fairlead.store import REVISION_TABLE

    deadline = monotonic() + _PATIENCE
    try:
        if Path(file).stat().st_size == 0:
            return "", "it is empty", True
        with closing(sqlite3.connect(f"file:{quote(file)}?mode=ro", uri=True, timeout=1.0)) as connection:
            connection.set_progress_handler(lambda: monotonic() > deadline, _STEPS)
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if REVISION_TABLE not in tables:
                return "", "it is no database of Fairlead's" if tables else "", True
            row = connection.execute(f"SELECT version_num FROM {REVISION_TABLE}").fetchone()  # noqa: S608 - our own name
            found = [str(line) for (line,) in connection.execute("PRAGMA quick_check(1)")]
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_INTERRUPT:
            return "", "", False
        return "", str(error), True
    except (OSError, sqlite3.Error) as error:
        return "", str(error), True
    return str(row[0]) if row else "", "" if found in ([], ["ok"]) else " ".join(found), True
