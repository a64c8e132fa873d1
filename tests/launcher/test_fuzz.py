"""The launcher under sanitizers, with random arguments, environments, answers and payloads. For longer: `make fuzz`."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from fuzz.sanitized import PLAN_ANSWER, SanitizedLaunchers, encode_case
from launcher.build import unavailable

if TYPE_CHECKING:
    from pathlib import Path

CASES = 80


def test_no_argument_answer_or_payload_breaks_the_launcher(home: Path, programs: dict[str, Path | str]) -> None:
    program = programs["sanitized"]
    if isinstance(program, str):
        unavailable(program)
    target, random = SanitizedLaunchers(home, program), Random(1)
    for _ in range(CASES):
        target.run(target.make(random))


def test_a_report_of_a_wait_has_no_payload(home: Path, programs: dict[str, Path | str]) -> None:
    """Found by fuzzing: it was copied from no address."""
    program = programs["sanitized"]
    if isinstance(program, str):
        unavailable(program)
    target = SanitizedLaunchers(home, program)
    target.run(encode_case(["--wait", "token", "50", "Stop"], [PLAN_ANSWER]))
