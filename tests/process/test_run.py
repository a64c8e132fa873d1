"""Running a process: its result, its deadline, and what is kept of its output."""

from __future__ import annotations

from time import monotonic

import pytest

from fairlead.errors import CommandFailed, HookCancelled
from fairlead.process import CancellationToken, ProcessResult, run_process
from fairlead.process._output import MAX_STDERR, FirstAndLastLines


def run(script: str, stdin: bytes = b"", *, seconds: float = 20, max_lines: int | None = None) -> ProcessResult:
    return run_process(["/bin/sh", "-c", script], stdin, deadline=monotonic() + seconds, max_lines=max_lines)


def test_the_result_has_the_exit_code_and_both_streams() -> None:
    assert run("cat; echo bad >&2; exit 3", b"in") == ProcessResult(3, b"in", b"bad\n")
    assert run("kill -9 $$").exit_code == -9


def test_without_max_lines_the_output_is_kept_byte_by_byte_within_bounds() -> None:
    result = run("printf 'a\\r\\nb\\n\\n'; head -c 3000000 /dev/zero >&2")

    assert (result.stdout, len(result.stderr)) == (b"a\r\nb\n\n", MAX_STDERR)
    with pytest.raises(CommandFailed, match=r"^the command printed more than 1048576 bytes$"):
        run("yes")


def test_with_max_lines_the_first_and_the_last_lines_are_kept_of_both_streams() -> None:
    result = run("printf '1\\r\\n2\\n3\\n4\\n\\n'; seq 5 >&2", max_lines=3)

    assert result == ProcessResult(0, b"1\n2\n... (2 lines omitted)", b"1\n2\n... (2 lines omitted)\n5")


@pytest.mark.parametrize("max_lines", [None, 10])
def test_at_the_deadline_it_is_killed_and_what_it_printed_is_kept(max_lines: int | None) -> None:
    start = monotonic()

    result = run("printf early; sleep 30", seconds=0.5, max_lines=max_lines)

    assert result == ProcessResult(None, b"early")
    assert monotonic() - start < 15


def test_a_cancelled_run_raises_and_one_that_cannot_start_names_the_program() -> None:
    token = CancellationToken()
    token.cancel()

    with pytest.raises(HookCancelled):
        run_process(["/bin/sleep", "30"], deadline=monotonic() + 20, cancellation=token)
    with pytest.raises(CommandFailed, match=r"^cannot start '/no/such/program'"):
        run_process(["/no/such/program"], deadline=monotonic() + 20)


@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize("limit", [1, 2, 3, 7, 10_000])
def test_lines_are_kept_the_same_however_they_arrive(limit: int, end: str) -> None:
    lines = [f"line {number}" for number in range(25_000)]
    data = ("\n".join(lines) + end).encode()
    first, last = lines[: limit - limit // 2], lines[len(lines) - limit // 2 :]
    expected = "\n".join([*first, f"... ({len(lines) - limit} lines omitted)", *last])
    for size in (1000, 65536, len(data) - 12, len(data)):
        kept = FirstAndLastLines(limit)
        for start in range(0, len(data), size):
            kept.add(data[start : start + size])
        assert kept.getvalue().decode() == expected
