"""What `fairlead hooks` takes and says about how agents stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fairlead.clients import Installer, InstallPlan

STAY_LINES: dict[str, tuple[str, ...]] = {
    "": (),
    "always": ("agents stay: always; at the end of a turn they wait for mail",),
    "wake": ("agents stay: wake; at the end of a turn they stop, and mail wakes them",),
    "no": ("agents stay: no",),
}
"""What `status` says of each way."""


def stay_wish(given: Mapping[str, str], installer: Installer) -> str | None:
    """Read `--stay` and `--persistent`; without one of them, it is left as it is."""
    wish = given.get("--stay", "always" if "--persistent" in given else None)
    if "--persistent" in given and wish != "always":
        raise UsageError(f"--persistent is --stay always, so --stay {wish} cannot be meant, too")
    if wish is not None and wish not in installer.STAYS:
        raise UsageError(f"--stay: expected one of {', '.join(installer.STAYS)}, got {wish!r}")
    return wish


def stay_lines(plan: InstallPlan, installer: Installer) -> Iterator[str]:
    """Say how agents stay from now on, where that was asked for or is so already."""
    stay = installer.stay_of(plan.result.text) or plan.result.stay
    yield from (f"  {line}" for line in STAY_LINES[stay])
