"""Requests that other threads make of the thread with the connection: each gets its result or its error."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from fairlead.daemon.team._requests import ConnectionRequests
from fairlead.errors import FairleadError
from fairlead.team import RelayUnreachable

if TYPE_CHECKING:
    from fairlead.daemon.team._connection import TeamConnection

CONNECTION = cast("TeamConnection", None)
"""No request of these tests uses it."""


def fail(error: Exception) -> None:
    raise error


@pytest.mark.parametrize("error", [RelayUnreachable("gone"), RuntimeError("a bug")])
def test_an_error_that_ends_the_connection_is_that_of_the_request(error: Exception) -> None:
    requests = ConnectionRequests()
    failed, later = requests.put(lambda _: fail(error)), requests.put(lambda _: "done")

    with pytest.raises(type(error)):
        requests.execute_all(CONNECTION)

    assert failed.exception(timeout=0) is error
    requests.fail("it was lost")
    assert str(later.exception(timeout=0)) == "the team's relay cannot be reached: it was lost"


def test_a_refused_request_keeps_no_other_from_its_result() -> None:
    requests = ConnectionRequests()
    refused, later = requests.put(lambda _: fail(FairleadError("no"))), requests.put(lambda _: "done")

    requests.execute_all(CONNECTION)

    assert str(refused.exception(timeout=0)) == "no"
    assert later.result(timeout=0) == "done"
