"""Reports which policy files are trusted, and where several policies differ from the nearest alone. For people."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import msgspec

from fairlead.policy.config._errors import PolicyError
from fairlead.policy.config._files import find_policy_files, read_policy_text, user_wide_file
from fairlead.policy.trust._session_snapshots import running_sessions
from fairlead.policy.trust._store import read_trusted
from fairlead.policy.trust._withheld import withheld_settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fairlead.policy.config._types import Layer

TrustState = Literal["session", "person", "changed"]
"""`session`: trusted by sessions that begin here. `person`: trusted by a person. `changed`: changed since then."""


class FileTrust(msgspec.Struct, frozen=True):
    """Whether a policy file is trusted."""

    file: str
    state: TrustState
    changed_sessions: int = 0
    """Running sessions that began with another version of it."""


def trust_states(cwd: str) -> tuple[FileTrust, ...]:
    """Return the policy files that apply in a folder, without the user-wide one, and whether they are trusted."""
    user_wide = user_wide_file()
    files = dict.fromkeys(policy_file.file for policy_file in find_policy_files(cwd) if policy_file.file != user_wide)
    return tuple(_state_of(file) for file in files)


def _state_of(file: str) -> FileTrust:
    from hashlib import sha256

    entry = read_trusted(file)
    try:
        digest = sha256(read_policy_text(file)).hexdigest()
    except PolicyError:
        return FileTrust(file, "session")
    recorded = (session.files.get(file) for session in running_sessions())
    changed = sum(snapshot is not None and snapshot.digest != digest for snapshot in recorded)
    state: TrustState = "session" if entry is None else "person" if entry.digest == digest else "changed"
    return FileTrust(file, state, 0 if state == "person" else changed)


def changed_meanings(layers: Sequence[Layer]) -> Iterator[str]:
    """Yield messages about layers, nearest first, that now apply although earlier versions ignored them."""
    user_wide = user_wide_file()
    own = [layer for layer in layers if layer.file != user_wide]
    for near, far in pairwise(own):
        if near.file == far.file:
            continue
        yield (
            f"{far.file}: it applies here too, its rules and its commands; earlier versions read the nearest file "
            f"alone, {near.file}"
        )
        if (withheld := withheld_settings(near, own[own.index(far) :])) and not _is_trusted(near):
            yield (
                f"{near.file}: in a session that begins above {near.folder} it is not trusted, so this does not apply: "
                f"{', '.join(withheld)}. To allow it: fairlead trust {near.file}"
            )


def _is_trusted(layer: Layer) -> bool:
    entry = read_trusted(layer.file)
    return entry is not None and entry.digest == layer.digest
