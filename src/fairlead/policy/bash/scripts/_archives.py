"""Reads the file names in an archive or a patch. Unpacks nothing, and reads a limited amount."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fairlead.policy.bash._words import is_unknown, quote

if TYPE_CHECKING:
    from fairlead.policy.bash._context import AnalysisContext
    from fairlead.policy.bash.programs._calls import Unpack
    from fairlead.policy.bash.scripts._files import CommandFiles

_MAX_TAR_BYTES: Final = 8 * 1024 * 1024
_MAX_UNPACKED_BYTES: Final = 64 * 1024 * 1024
_MAX_ZIP_BYTES: Final = 512 * 1024 * 1024
_MAX_MEMBERS: Final = 2_000


def unpacked_files(unpack: Unpack, files: CommandFiles) -> list[str] | None:
    """Return the words for the files that are written when an archive is unpacked, or a patch applied.

    Returns `None` if they are not known: the archive cannot be read, is too large, or has too many files. Raises
    `NeedsThread` if the context may not wait.
    """
    if is_unknown(unpack.word):
        return None
    found = [_member_names(unpack.kind, path, files.context) for path in files.paths_of(unpack.word)]
    names = next((names for names in found if names is not None), None)
    if names is None:
        return None
    paths = ("/".join(name.split("/")[unpack.strip :]) for name in names)
    folder = "" if unpack.folder == "." else f"{unpack.folder.rstrip('/')}/"
    return [folder + quote(path) for path in paths if path]


def _member_names(kind: str, path: str, context: AnalysisContext) -> list[str] | None:
    """Return the names of the files in an archive or a patch; `None` if they are not known."""
    if kind == "patch":
        return _patched(path, context)
    size = context.size_of(path)
    if size is None or size > (_MAX_ZIP_BYTES if kind == "zip" else _MAX_TAR_BYTES):
        return None
    absolute = context.absolute(path)
    names = _zip_names(absolute) if kind == "zip" else _tar_names(absolute)
    return names if names is not None and len(names) <= _MAX_MEMBERS else None


def _patched(path: str, context: AnalysisContext) -> list[str] | None:
    from fairlead.policy.bash.programs.files._archives import patched_files

    contents = context.read_file(path)
    if contents is None or contents.data is None:
        return None
    return patched_files(contents.data.decode("utf-8", "replace"))


def _zip_names(path: str) -> list[str] | None:
    from zipfile import BadZipFile, ZipFile

    try:
        with ZipFile(path) as archive:
            return [name for name in archive.namelist()[: _MAX_MEMBERS + 1] if not name.endswith("/")]
    except (OSError, BadZipFile, ValueError, NotImplementedError):
        return None


def _tar_names(path: str) -> list[str] | None:
    import tarfile

    names: list[str] = []
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                if not member.isdir():
                    names.append(member.name)
                if len(names) > _MAX_MEMBERS or archive.offset > _MAX_UNPACKED_BYTES:
                    return None
    except Exception:  # noqa: BLE001 - each kind of compression has errors of its own for a damaged file
        return None
    return names
