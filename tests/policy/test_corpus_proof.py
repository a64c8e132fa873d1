"""The corpus is broad, and its ways around are real: each is carried out in a throwaway namespace."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from policy.corpus.lines import Line, read_lines
from policy.corpus.prove import is_provable, prove, why_unavailable

if TYPE_CHECKING:
    from pathlib import Path

MAX_NOT_PROVEN = 15
EACH = os.environ.get("FAIRLEAD_WAYS", "some") == "all"
"""Whether each way is carried out: half a minute of processor time. Else it is one of each family."""


def ways() -> list[Line]:
    return read_lines("ways.txt") + read_lines("blind_ways.txt")


def test_the_corpus_is_broad() -> None:
    """No family is counted so often that it decides the rate."""
    families = Counter(line.family for line in ways())
    assert len(families) >= 40
    assert max(families.values()) <= 10
    assert families.total() >= 450
    assert len(read_lines("everyday.txt") + read_lines("blind_everyday.txt")) >= 450
    assert not [line.where for line in ways() if line.expected != "held"]


def test_no_line_is_there_twice() -> None:
    lines = ways() + read_lines("everyday.txt") + read_lines("blind_everyday.txt")
    counts = Counter((line.folder, line.text) for line in lines)
    assert [text for text, count in counts.items() if count > 1] == []


def test_few_ways_need_a_program_that_is_not_installed() -> None:
    assert len([line for line in ways() if line.is_bash and not is_provable(line)]) <= MAX_NOT_PROVEN


@pytest.fixture
def namespaces() -> None:
    """Skip where the system allows no namespaces. Under CI, a system that has `unshare` is expected to allow them."""
    if reason := why_unavailable():
        if os.environ.get("CI") == "true" and not reason.startswith("no program"):
            pytest.fail(f"no namespaces: {reason}")
        pytest.skip(f"no namespaces: {reason}")


@pytest.mark.timeout(180)
@pytest.mark.usefixtures("namespaces")
def test_ways_really_change_or_read_a_protected_file(tmp_path: Path) -> None:
    """Each command is carried out, in a namespace that sees nothing of this disk but the system's folders.

    Neither the product nor its policies have a part in it, so that one of each family shows that the proof works;
    `.ci/run` carries out all.
    """
    lines = [line for line in ways() if is_provable(line)]
    proofs = prove(lines if EACH else list({line.family: line for line in lines}.values()), tmp_path)
    failed = [f"{proof.line.where}: {proof.line.text}\n{proof.output}" for proof in proofs if not proof.evidence]
    assert not failed, "\n\n".join(failed)


@pytest.mark.usefixtures("namespaces")
def test_a_harmless_command_proves_nothing(tmp_path: Path) -> None:
    harmless = ("true", "ls -la; cat README.md", "git stash; git stash pop", "git push", "ls /home /root; touch /usr/x")
    goals = ("edit", "read", "root", "self", "call")
    lines = [Line("", at, "", goal, "pass", "", text) for goal in goals for at, text in enumerate(harmless)]
    assert [(proof.line.goal, proof.line.text) for proof in prove(lines, tmp_path) if proof.evidence] == []
