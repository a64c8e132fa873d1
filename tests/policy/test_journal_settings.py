"""The section `journal` of the user-wide policy: what is kept of payloads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from daemon.daemon_home import scratch_home, until

from fairlead.policy import PolicyError, read_policy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from daemon.daemon_home import DaemonHome

COMMAND = "deploy --token=hunter2 corp-123"


@pytest.fixture
def home() -> Iterator[DaemonHome]:
    with scratch_home() as made:
        yield made


def kept(home: DaemonHome, session: str) -> str:
    """Let an event happen, and return its line."""
    payload = home.payload(session_id=session, tool_name="Bash", tool_input={"command": COMMAND})
    assert home.hook("PreToolUse", payload).exit_code == 0
    until(lambda: [record for record in home.happened() if record.session == session], "it is written down")
    folder = home.state / "journal"
    lines = [line for file in sorted(folder.iterdir()) for line in file.read_text().splitlines()]
    return next(line for line in lines if f'"session":"{session}"' in line)


def test_secrets_are_left_out_by_default_and_more_by_a_setting(home: DaemonHome) -> None:
    config = home.state / "config.yaml"
    with home.daemon():
        line = kept(home, "s1")
        assert "hunter2" not in line
        assert "corp-123" in line
        config.write_text("journal: {redact: ['corp-[0-9]+']}\n")
        number = iter(range(2, 10_000))
        until(lambda: "corp-123" not in kept(home, f"s{next(number)}"), "the setting applies")
        config.write_text("journal: {payloads: none}\n")
        until(lambda: "deploy" not in kept(home, f"s{next(number)}"), "the setting applies")


@pytest.mark.parametrize("setting", ["none", "redacted", "full"])
def test_the_settings_apply_without_a_daemon(home: DaemonHome, setting: str) -> None:
    (home.state / "config.yaml").write_text(f"journal: {{payloads: {setting}}}\n")
    payload = home.payload(tool_name="Bash", tool_input={"command": COMMAND})
    assert home.cold("PreToolUse", payload, "--launched", "0000000000000001-1", FAIRLEAD_NO_DAEMON="1").exit_code == 0
    until(lambda: home.spooled() or home.happened(), "it is recorded")
    files = [*home.spooled(), *(home.state / "journal").glob("*")]
    text = "".join(file.read_text() for file in files)

    assert ("hunter2" in text) is (setting == "full")
    assert ("deploy" in text) is (setting != "none")


def test_mistakes_are_reported() -> None:
    with pytest.raises(PolicyError, match="payloads"):
        read_policy("journal: {payloads: some}", "config.yaml")
    with pytest.raises(PolicyError, match="is not a regular expression"):
        read_policy("journal: {redact: ['(']}", "config.yaml")
