"""The real client, or the reason why it cannot be run here."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

import pytest
from e2e import sealed


@pytest.fixture(scope="session")
def client() -> Path:
    """The client that the SDK's wheel brings. It may only be run by `sealed.run`."""
    if reason := sealed.impossible():
        unavailable(reason)
    sdk = find_spec("claude_agent_sdk")
    if sdk is None or sdk.origin is None:
        unavailable("claude-agent-sdk is not installed")
    bundled = Path(sdk.origin).with_name("_bundled") / "claude"
    if not os.access(bundled, os.X_OK):
        unavailable("this platform's claude-agent-sdk brings no client")
    return bundled


def unavailable(reason: str) -> NoReturn:
    """Skip where a person may lack something; fail where everything should be there."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"the real client cannot be run: {reason}")
    pytest.skip(f"the real client cannot be run: {reason}")
