"""Reads the requirements in pyproject.toml, as declared or each at its lowest version.

`python tools/requirements.py` prints the lowest versions. Only the standard library is used: `setup_venv.py` runs this
before anything is installed.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOWERED_EXTRAS = ("notify", "team")
"""Extras whose lowest versions are tested too, in place of the versions that `dev` pins.

Not `sdk`: its wheel includes the real client, and tests compare that client's messages.
"""

_BOUNDED = re.compile(r"(?P<name>[A-Za-z0-9._-]+(?:\[[a-z,]+\])?)>=(?P<version>[0-9][0-9a-z.]*)(?:,\s*<[0-9.]+)?")
_NAME = re.compile(r"[A-Za-z0-9._-]+")


def declared(extra: str | None = None) -> list[str]:
    """Return the requirements of the project, or those of one of its extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found: list[str] = project["optional-dependencies"][extra] if extra else project["dependencies"]
    return found


def at_lowest(requirement: str) -> str:
    """Turn `name>=1.2` or `name>=1.2,<2` into `name==1.2`.

    Raises:
        ValueError: The requirement has another form, so its lowest version is unknown.

    """
    match = _BOUNDED.fullmatch(requirement)
    if match is None:
        raise ValueError(f"pyproject.toml: {requirement!r} has no lower bound; write name>=version")
    return f"{match['name']}=={match['version']}"


def lowest(extra: str | None = None) -> list[str]:
    """Return the project's requirements at their lowest versions, then those of `extra` that do not contradict them."""
    pinned = [at_lowest(each) for each in declared()]
    if extra is None:
        return pinned
    pinned += [at_lowest(each) for name in LOWERED_EXTRAS for each in declared(name)]
    names = {name_of(each) for each in pinned}
    return pinned + [each for each in declared(extra) if name_of(each) not in names]


def name_of(requirement: str) -> str:
    """Return the normalized name of the package that is required."""
    match = _NAME.match(requirement)
    if match is None:
        raise ValueError(f"pyproject.toml: {requirement!r} is not a requirement")
    return re.sub(r"[-_.]+", "-", match[0]).lower()


if __name__ == "__main__":
    print(*lowest(), *(at_lowest(each) for name in LOWERED_EXTRAS for each in declared(name)), sep="\n")
