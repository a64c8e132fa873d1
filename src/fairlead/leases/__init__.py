"""Leases on files: who may change which files, and until when. Values and rules only; the daemon stores the leases."""

from __future__ import annotations

from fairlead.leases._table import LeaseTable, WantedLease
from fairlead.leases._types import Holder, Lease, LeaseError, TeamGrant, lease_path

__all__ = [
    "Holder",
    "Lease",
    "LeaseError",
    "LeaseTable",
    "TeamGrant",
    "WantedLease",
    "lease_path",
]
