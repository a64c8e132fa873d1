"""Runs a test over a table of cases: one test for pytest, one report with every case that fails."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Test = Callable[..., None]


def for_each(names: str | tuple[str, ...], cases: Iterable[Any]) -> Callable[[Test], Test]:
    """Call a test for each case. The cases share the fixtures, so a test must not change them.

    `names` are the arguments that a case fills, as in `pytest.mark.parametrize`, which makes a test of each case: for
    hundreds of cases that prove one table, that takes most of the time.
    """
    table = list(cases)
    assert table, "no cases"

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def run_all(**fixtures: Any) -> None:
            failed = [line for case in table if (line := _failure(test, fixtures, names, case))]
            assert not failed, f"{len(failed)} of {len(table)} cases failed:\n\n" + "\n\n".join(failed)

        signature = inspect.signature(test)
        own = {names} if isinstance(names, str) else set(names)
        fixtures = [value for name, value in signature.parameters.items() if name not in own]
        run_all.__signature__ = signature.replace(parameters=fixtures)  # type: ignore[attr-defined]  # pytest reads it
        return run_all

    return decorate


def _failure(test: Test, fixtures: dict[str, Any], names: str | tuple[str, ...], case: Any) -> str | None:
    values = {names: case} if isinstance(names, str) else dict(zip(names, case, strict=True))
    try:
        test(**fixtures, **values)
    except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - every case is reported
        return f"{case!r}\n{type(error).__name__}: {error}"
    return None
