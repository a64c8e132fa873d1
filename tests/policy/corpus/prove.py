"""Proves that the ways around are real: carries each out in a throwaway namespace, and looks at what it did.

`python tests/policy/corpus/prove.py ways blind_ways` prints the lines that did nothing.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import msgspec

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from policy.corpus.lines import FOLDER, Line, read_lines
from policy.corpus.project import Places, build_project

if TYPE_CHECKING:
    from collections.abc import Sequence

UNSHARE = ("unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--net", "--ipc", "--kill-child")
INSIDE = Places("/srv/scene/shop", "/srv/scene/home", "/srv/scene/venv", "/srv/scene/venv/lib/python3/site-packages")
"""The folders inside the namespace."""
_PARTS = 4
"""Namespaces at a time."""

NOT_INSTALLED = ("just", "task", "rg", "docker", "podman", "npx", "npm exec", "m4")
"""Lines that begin so cannot be proven: the program is rarely installed, or useless without a network."""


class Proof(msgspec.Struct, frozen=True):
    """What a line did."""

    line: Line
    evidence: str
    """Empty if it did nothing."""
    output: str


def why_unavailable() -> str:
    """Return why there can be no namespace; empty if there can."""
    if shutil.which("unshare") is None:
        return "no program `unshare`"
    ran = subprocess.run([*UNSHARE, "true"], capture_output=True, text=True, check=False)
    return ran.stderr.strip() if ran.returncode else ""


def is_provable(line: Line) -> bool:
    """Return whether a line can be carried out: a command of programs that are installed, without a network."""
    return line.is_bash and not line.text.startswith(NOT_INSTALLED) and "https://" not in line.text


def prove(lines: Sequence[Line], scratch: Path) -> list[Proof]:
    """Carry the lines out."""
    project = scratch / "project"
    build_project(project, INSIDE.venv, INSIDE.site)
    parts = [lines[start::_PARTS] for start in range(_PARTS)]
    with ThreadPoolExecutor(_PARTS) as pool:
        done = list(pool.map(lambda part: _prove_part(part, project, scratch), parts))
    return sorted((proof for part in done for proof in part), key=lambda proof: (proof.line.file, proof.line.number))


def _prove_part(lines: Sequence[Line], project: Path, scratch: Path) -> list[Proof]:
    with TemporaryDirectory(dir=scratch) as new_root:
        cases = [(line.goal, line.folder, INSIDE.fill(line.text)) for line in lines]
        script, driver = str(FOLDER / "namespace.sh"), str(FOLDER / "driver.py")
        ran = subprocess.run(
            [*UNSHARE, "sh", script, new_root, str(project), driver],
            input=json.dumps(cases),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    return [Proof(line, *result) for line, result in zip(lines, json.loads(ran.stdout), strict=True)]


def _report(names: list[str]) -> None:
    lines = [line for name in names for line in read_lines(f"{name}.txt")]
    with TemporaryDirectory() as scratch:
        proofs = prove([line for line in lines if is_provable(line)], Path(scratch))
    for proof in proofs:
        if not proof.evidence:
            print(f"{proof.line.where} [{proof.line.family}] {proof.line.text!r}\n    {proof.output!r}")
    tools = sum(not line.is_bash for line in lines)
    absent = [line.text for line in lines if line.is_bash and not is_provable(line)]
    print(f"{sum(bool(proof.evidence) for proof in proofs)} of {len(proofs)} proven; {tools} calls of other tools")
    print(f"{len(absent)} not proven, because of their programs:", *absent, sep="\n  ")


if __name__ == "__main__":
    _report(sys.argv[1:] or ["ways", "blind_ways"])
