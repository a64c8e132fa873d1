"""A regular expression of the policy that is slow on long prompts delays neither its event nor those of others."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from daemon.daemon_home import DaemonHome

POLICY = """
userPromptSubmit:
  contextRules:
    - {pattern: "test.*unit.*test.*x", prompt: slow}
    - {pattern: unit, prompt: found}
"""


def test_a_slow_pattern_is_searched_in_a_process_that_can_be_interrupted(home: DaemonHome) -> None:
    """In the daemon the search took as long as it took: minutes, on this prompt."""
    home.policy(POLICY)
    prompt = home.payload(hook_event_name="UserPromptSubmit", prompt="test unit " * 1000)
    with home.daemon():
        started = monotonic()
        answer = home.hook("UserPromptSubmit", prompt)
        seconds = monotonic() - started
        assert [record.route for record in home.happened()] in ([], ["cold"])

    assert (answer.exit_code, answer.answer["hookSpecificOutput"]["additionalContext"]) == (0, "found")
    assert seconds < 20
