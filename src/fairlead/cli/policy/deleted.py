"""Finds the policy file that was deleted from a folder, and whose last good version still applies."""

from __future__ import annotations

import os

from fairlead.policy import find_policy_files


def deleted_policy(folder: str) -> str:
    """Return the policy file that was deleted from a folder and still applies to events; "" if there is none."""
    files = find_policy_files(folder, also_deleted=True)
    own = (policy.file for policy in files if os.path.dirname(policy.file) == os.path.abspath(folder))
    return next((file for file in own if not os.path.lexists(file)), "")
