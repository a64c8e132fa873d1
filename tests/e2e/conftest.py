"""The real clients, or the reason why they cannot be run here."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NoReturn

import pytest
from e2e import clients

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def client() -> Path:
    """The newest client. It may only be run by `sealed.run`."""
    try:
        return clients.newest()
    except clients.Unavailable as reason:
        unavailable(str(reason))


@pytest.fixture(scope="session")
def oldest_client(pytestconfig: pytest.Config) -> Path:
    """The oldest client that hooks are installed for. It may only be run by `sealed.run`."""

    def say(text: str) -> None:
        with pytestconfig.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
            print(f"\n{text}", file=sys.stderr, flush=True)

    try:
        return clients.oldest(say)
    except clients.Unavailable as reason:
        unavailable(str(reason))


def unavailable(reason: str) -> NoReturn:
    """Skip where a person may lack something; fail where everything should be there."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"the real client cannot be run: {reason}")
    pytest.skip(f"the real client cannot be run: {reason}")
