"""Sessions for the tests: always the same, at the same time."""

from __future__ import annotations

from fairlead.sessions import AttentionNeeded, Evidence, Idle, Session, Usage, Working
from fairlead.tui.model._projects import Location

NOW = 1_790_000_000.0
SHOP, LEAD, TREE = "/code/webshop", "/code/fairlead", "/code/fairlead-issue-5"
LOCATIONS = {
    SHOP: Location(SHOP, SHOP, "main"),
    LEAD: Location(LEAD, LEAD, "main"),
    TREE: Location(LEAD, TREE, "issue-5"),
}
MODELS = ("claude-opus-4-8-20260701", "claude-sonnet-5-20260801", "claude-haiku-5")


def session(name: str, **fields: object) -> Session:
    """A session that started an hour ago, and was active 10 seconds ago."""
    defaults: dict[str, object] = {"started": NOW - 3600, "last_activity": NOW - 10, "since": NOW - 10, "cwd": SHOP}
    return Session(id=name, **{**defaults, **fields})  # type: ignore[arg-type]  # fields of a session


def usage(percent: float, cost: float, model: str = MODELS[0]) -> Usage:
    return Usage(model=model, context_percent=percent, context_window=200_000, cost_usd=cost)


def sample_sessions() -> list[Session]:
    """Five main sessions in two projects and three worktrees, two of which need the user, and four subagents."""
    return [
        session(
            "5f0c8a4e-1111",
            cwd=SHOP,
            title="Checkout: pay by invoice",
            state=AttentionNeeded("Permission"),
            evidence=Evidence("PermissionRequest", NOW - 125, "Bash", ""),
            since=NOW - 125,
            last_activity=NOW - 125,
            usage=usage(41, 1.2),
            pid=4711,
            tmux="/tmp/tmux-1000/default,812,0",
            pane="%3",
        ),
        session(
            "77aa12bc-2222",
            cwd=SHOP,
            title="Find the slow query",
            state=Working("Edit"),
            evidence=Evidence("PreToolUse", NOW - 4, "Edit", f"{SHOP}/src/orders/query.py"),
            since=NOW - 600,
            usage=usage(83, 3.75, MODELS[1]),
        ),
        session(
            "77aa12bc-2222/a1",
            parent="77aa12bc-2222",
            agent_id="a1",
            agent_type="Explore",
            description="who calls load_orders",
            state=Working("Grep"),
            evidence=Evidence("PreToolUse", NOW - 2, "Grep"),
            started=NOW - 95,
            since=NOW - 95,
            usage=Usage(model=MODELS[2], tokens=412_000, context_tokens=31_250),
        ),
        session(
            "77aa12bc-2222/a2",
            parent="77aa12bc-2222",
            agent_id="a2",
            agent_type="test-writer",
            description="tests for paging",
            started=NOW - 300,
            ended=NOW - 60,
            end_reason="completed",
        ),
        session(
            "c0ffee00-3333",
            cwd=TREE,
            first_prompt="build the live view of the sessions",
            state=AttentionNeeded("Question: which colours?"),
            evidence=Evidence("PreToolUse", NOW - 31, "AskUserQuestion"),
            since=NOW - 31,
            usage=usage(12, 0.4),
        ),
        session(
            "c0ffee00-3333/b1",
            parent="c0ffee00-3333",
            cwd=TREE,
            agent_id="b1",
            agent_type="reviewer",
            description="read the diff",
            state=Working("Read"),
            evidence=Evidence("PreToolUse", NOW - 1, "Read", f"{TREE}/src/app.py"),
            since=NOW - 40,
            started=NOW - 40,
        ),
        session(
            "c0ffee00-3333/b1/c1",
            parent="c0ffee00-3333/b1",
            cwd=TREE,
            agent_id="c1",
            agent_type="Explore",
            state=Working("Glob"),
            evidence=Evidence("PreToolUse", NOW - 1, "Glob"),
            since=NOW - 20,
            started=NOW - 20,
        ),
        session(
            "deadbeef-4444",
            cwd=LEAD,
            title="Release notes",
            state=Idle(),
            evidence=Evidence("Stop", NOW - 900),
            since=NOW - 900,
            last_activity=NOW - 900,
            usage=usage(96, 2.05),
        ),
        session("0ld00000-5555", cwd=LEAD, title="Yesterday", last_activity=NOW - 9 * 3600, since=NOW - 9 * 3600),
        session("e0de0000-6666", cwd=SHOP, title="Done long ago", ended=NOW - 500, end_reason="prompt_input_exit"),
    ]
