"""Several hosts as one team: their identities, who is a member, and the relay between them.

Knows no daemon, no HTTP and no mail: what a parcel says is for those who send and receive it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.lazy import lazy_exports

if TYPE_CHECKING:
    from fairlead.team._errors import (
        BadTeamSettings,
        HostCloned,
        NotInTeam,
        RelayRefused,
        RelayTooNew,
        RelayUnreachable,
        TeamError,
    )
    from fairlead.team._history_types import (
        HistoryFilter,
        JournalMark,
        TeamEvent,
        TeamSession,
    )
    from fairlead.team._keys import (
        PrivateKey,
        fingerprint,
        generate_key,
    )
    from fairlead.team._membership import (
        Membership,
        RelaySource,
        load_membership,
        membership_file,
        new_host_id,
        prepare_hello,
        remove_membership,
        save_membership,
        update_membership,
    )
    from fairlead.team._names import (
        check_host_name,
        check_relay_url,
        default_host_name,
        redact_url,
    )
    from fairlead.team._sealing import (
        sign_certificate,
        sign_event,
        sign_parcel,
        sign_session,
        sign_snapshot,
        verify_certificate,
        verify_event,
        verify_parcel,
        verify_session,
        verify_snapshot,
    )
    from fairlead.team._trust import (
        Anchor,
        Trust,
        judge,
        merge_certificates,
    )
    from fairlead.team._types import (
        MAX_PARCEL_BYTES,
        Certificate,
        Hello,
        Host,
        HostState,
        Parcel,
        RelayLoad,
        Snapshot,
        SnapshotKind,
        Verdict,
        Welcome,
    )

__all__ = [
    "MAX_PARCEL_BYTES",
    "Anchor",
    "BadTeamSettings",
    "Certificate",
    "Hello",
    "HistoryFilter",
    "Host",
    "HostCloned",
    "HostState",
    "JournalMark",
    "Membership",
    "NotInTeam",
    "Parcel",
    "PrivateKey",
    "RelayLoad",
    "RelayRefused",
    "RelaySource",
    "RelayTooNew",
    "RelayUnreachable",
    "Snapshot",
    "SnapshotKind",
    "TeamError",
    "TeamEvent",
    "TeamSession",
    "Trust",
    "Verdict",
    "Welcome",
    "check_host_name",
    "check_relay_url",
    "default_host_name",
    "fingerprint",
    "generate_key",
    "judge",
    "load_membership",
    "membership_file",
    "merge_certificates",
    "new_host_id",
    "prepare_hello",
    "redact_url",
    "remove_membership",
    "save_membership",
    "sign_certificate",
    "sign_event",
    "sign_parcel",
    "sign_session",
    "sign_snapshot",
    "update_membership",
    "verify_certificate",
    "verify_event",
    "verify_parcel",
    "verify_session",
    "verify_snapshot",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "_errors": (
            "BadTeamSettings",
            "HostCloned",
            "NotInTeam",
            "RelayRefused",
            "RelayTooNew",
            "RelayUnreachable",
            "TeamError",
        ),
        "_history_types": (
            "HistoryFilter",
            "JournalMark",
            "TeamEvent",
            "TeamSession",
        ),
        "_keys": (
            "PrivateKey",
            "fingerprint",
            "generate_key",
        ),
        "_membership": (
            "Membership",
            "RelaySource",
            "load_membership",
            "membership_file",
            "new_host_id",
            "prepare_hello",
            "remove_membership",
            "save_membership",
            "update_membership",
        ),
        "_names": (
            "check_host_name",
            "check_relay_url",
            "default_host_name",
            "redact_url",
        ),
        "_sealing": (
            "sign_certificate",
            "sign_event",
            "sign_parcel",
            "sign_session",
            "sign_snapshot",
            "verify_certificate",
            "verify_event",
            "verify_parcel",
            "verify_session",
            "verify_snapshot",
        ),
        "_trust": (
            "Anchor",
            "Trust",
            "judge",
            "merge_certificates",
        ),
        "_types": (
            "MAX_PARCEL_BYTES",
            "Certificate",
            "Hello",
            "Host",
            "HostState",
            "Parcel",
            "RelayLoad",
            "Snapshot",
            "SnapshotKind",
            "Verdict",
            "Welcome",
        ),
    },
)
