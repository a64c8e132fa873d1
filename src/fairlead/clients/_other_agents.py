"""Programs of other coding agents. No hooks of Fairlead run in one that is not a client here."""

from __future__ import annotations

_ANY: frozenset[str] = frozenset()

OTHER_AGENTS: dict[str, frozenset[str]] = {
    **dict.fromkeys(("codex", "gemini", "qwen", "cursor-agent", "opencode", "aider", "auggie", "droid", "crush"), _ANY),
    **dict.fromkeys(("openhands", "plandex", "cline", "kiro-cli", "amp"), _ANY),
    "copilot": frozenset({"-p", "--prompt", "--allow-all-tools", "--allow-all", "--yolo"}),
    "goose": frozenset({"run", "session"}),
    "q": frozenset({"chat"}),
}
"""Name of the program → the words of which one starts an agent, if another program has the same name; empty: any."""

OTHER_AGENT_PACKAGES: dict[str, str] = {
    "@openai/codex": "codex",
    "@google/gemini-cli": "gemini",
    "@qwen-code/qwen-code": "qwen",
    "opencode-ai": "opencode",
    "aider-chat": "aider",
    "@augmentcode/auggie": "auggie",
    "@sourcegraph/amp": "amp",
    "@charmland/crush": "crush",
    "@github/copilot": "copilot",
}
"""Package, as `npx` and the like name it → its program."""
