"""The programs of other coding agents. Fairlead's hooks do not run in an agent that is not one of its clients."""

from __future__ import annotations

_ANY: frozenset[str] = frozenset()

OTHER_AGENTS: dict[str, frozenset[str]] = {
    **dict.fromkeys(("codex", "gemini", "qwen", "cursor-agent", "opencode", "aider", "auggie", "droid", "crush"), _ANY),
    **dict.fromkeys(("openhands", "plandex", "cline", "kiro-cli", "amp"), _ANY),
    "copilot": frozenset({"-p", "--prompt", "--allow-all-tools", "--allow-all", "--yolo"}),
    "goose": frozenset({"run", "session"}),
    "q": frozenset({"chat"}),
}
"""Program → the arguments that start an agent, if another program has the same name. Empty: any arguments do."""

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
"""Package name, as `npx` and similar programs take it → the program in it."""
