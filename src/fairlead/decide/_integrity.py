"""Warns each session once that the integrity check and leases have no effect without a daemon."""

from __future__ import annotations

import os
from contextlib import suppress
from time import time

from fairlead.clients import client_or_default
from fairlead.events import HookOutput, PostToolUse, PostToolUseFailure, PreToolUse
from fairlead.paths import make_private, state_folder
from fairlead.structs import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fairlead.decide._context import PolicyContext
    from fairlead.decide._decision import Decision
    from fairlead.events import Event

_MAX_AGE = 30 * 24 * 3600
"""Seconds after which the file of a session is removed."""
_NO_LEASES = (
    "leases: block has no effect on this call, because it was handled without the daemon, which knows the leases: "
    "files that other sessions have leased are not protected. fairlead doctor says why there is no daemon."
)
_MESSAGE = (
    "preToolUse.integrity is restore, but this call was handled without the daemon: protected files that it may have "
    "changed are not noticed and not put back. fairlead doctor says why there is no daemon."
)


def warn_without_daemon(event: Event, policy: PolicyContext, decision: Decision) -> Decision:
    """Return a decision made without a daemon, with a message to the user if its event needs a check by the daemon.

    Each of the two messages is shown once in a session.
    """
    if isinstance(event, PreToolUse):
        return _warn_about_leases(event, policy, decision)
    if not isinstance(event, PostToolUse | PostToolUseFailure) or not _restores(policy):
        return decision
    if not client_or_default(event.client).may_change_files(event.tool_name) or not _is_first(event.session_id, ""):
        return decision
    return replace(decision, output=HookOutput(system_message=_MESSAGE).merge(decision.output))


def _blocks_by_lease(policy: PolicyContext) -> bool:
    """Return whether the policy blocks calls that change files leased by other sessions."""
    if not any(layer.policy.leases == "block" for layer in policy.layers):
        return False
    from fairlead.policy import merge_layers

    return merge_layers(policy.layers).leases == "block"


def _warn_about_leases(event: PreToolUse, policy: PolicyContext, decision: Decision) -> Decision:
    client = client_or_default(event.client)
    changes = client.kind_of(event.tool_name) == "file_write" or client.may_change_files(event.tool_name)
    if not changes or not _blocks_by_lease(policy) or not _is_first(event.session_id, "leases"):
        return decision
    return replace(decision, output=HookOutput(system_message=_NO_LEASES).merge(decision.output))


def _restores(policy: PolicyContext) -> bool:
    """Return whether the policy says that changed files are restored.

    Layers are only merged if one of them sets it, which is rare.
    """
    if not any(layer.policy.pre_tool_use.integrity == "restore" for layer in policy.layers):
        return False
    from fairlead.policy import merge_layers

    return merge_layers(policy.layers).pre_tool_use.integrity == "restore"


def _is_first(session_id: str, what: str) -> bool:
    """Return whether a session gets the warning `what` for the first time, and record that in a file.

    Returns `True` as well if the file cannot be written. Removes the files of old sessions.
    """
    from hashlib import sha256

    folder = f"{state_folder()}/unchecked"
    file = f"{folder}/{sha256((what + session_id).encode(errors='replace')).hexdigest()}"
    try:
        make_private(folder)
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return False
    except OSError:
        return True
    with suppress(OSError):
        for entry in [*os.scandir(folder)]:
            with suppress(FileNotFoundError):  # another process has removed it
                if entry.stat().st_mtime < time() - _MAX_AGE:
                    os.unlink(entry.path)
    return True
