"""Settings files as people have them: foreign keys, hooks of every type and owner, every way to lay them out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

if TYPE_CHECKING:
    from random import Random

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ["héllo", "\u2028", "a\\b", 'quo"te', "line\nbreak", "😀", "//no comment", "{", "],"]
)
PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
VALUE = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=8
)
SECONDS = st.integers(1, 5000) | st.floats(0.5, 100)
ANY = {"if": TEXT, "timeout": SECONDS, "statusMessage": TEXT, "once": st.booleans(), "futureKey": VALUE}
MEASURE = st.sampled_from(["continue", "block"])


def hook(kind: str, required: dict[str, Any], optional: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"type": st.just(kind), **required}, optional={**ANY, **optional})


HOOKS = st.one_of(
    hook(
        "command",
        {"command": TEXT | st.just("~/bin/fairlead-hook-not.sh") | st.just("fairlead PreToolUse --hooks mine.py")},
        {
            "args": st.lists(TEXT, max_size=2),
            "shell": st.sampled_from(["bash", "powershell"]),
            "onFailure": MEASURE,
            "async": st.booleans(),
            "asyncRewake": st.booleans(),
        },
    ),
    hook("prompt", {"prompt": TEXT}, {"model": TEXT, "continueOnBlock": st.booleans()}),
    hook("agent", {"prompt": TEXT}, {"model": TEXT}),
    hook(
        "http",
        {"url": st.just("https://example.org/hook")},
        {"headers": st.dictionaries(TEXT, TEXT, max_size=2), "allowedEnvVars": st.lists(TEXT), "onFailure": MEASURE},
    ),
    hook("mcp_tool", {"server": TEXT, "tool": TEXT}, {"input": st.dictionaries(TEXT, VALUE, max_size=2)}),
)
RIVALS = st.sampled_from(
    [
        {"type": "command", "command": "conclaude Hooks Stop", "timeout": 600},
        {"type": "command", "command": "/opt/bin/conclaude", "args": ["PreToolUse"]},
        {"type": "command", "command": "~/.claude/hooks/substrate/stop.sh"},
    ]
)
COMMANDS = TEXT | st.sampled_from(
    [
        "~/.claude/line.sh",
        "jq -r '.model.display_name'",
        "/opt/fairlead-hook StatusLine | cut -c 1-80",
        "a\nb $HOME `c`",
    ]
)
STATUS_LINES = st.one_of(
    st.fixed_dictionaries(
        {"type": st.just("command"), "command": COMMANDS}, optional={"padding": st.integers(0, 3), "futureKey": VALUE}
    ),
    st.dictionaries(st.sampled_from(["type", "command", "padding"]), VALUE | st.just("command"), max_size=3),
    VALUE,
)
"""As the client runs it, and of every other shape."""
ENVIRONMENTS = st.none() | st.dictionaries(
    st.sampled_from(["A", "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "FAIRLEAD_HOME"]), TEXT | st.just("0"), max_size=3
)
EVENTS = st.sampled_from(["PreToolUse", "Stop", "SessionStart", "WorktreeCreate", "FileChanged", "NotAnEvent"])


def entries(hooks: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    entry = st.fixed_dictionaries({"hooks": st.lists(hooks, max_size=3)}, optional={"matcher": TEXT, "note": VALUE})
    return st.lists(entry, max_size=3)


@st.composite
def settings_texts(draw: st.DrawFn, *, rivals: bool = False) -> str:
    """A settings file that the client accepts."""
    if draw(st.integers(0, 9)) == 0:
        return draw(
            st.sampled_from(["", "\n", "  \r\n", "\ufeff", "{}", "{ }\n", '{"hooks": null}', '{\n"hooks": {}}'])
        )
    document = draw(st.dictionaries(TEXT.filter(lambda key: key != "hooks"), VALUE, max_size=4))
    sections = {
        "hooks": st.dictionaries(EVENTS, entries(HOOKS | RIVALS if rivals else HOOKS), max_size=4),
        "statusLine": STATUS_LINES,
        "env": ENVIRONMENTS,
    }
    for name, section in sections.items():
        if draw(st.booleans()):
            items = list(document.items())
            items.insert(draw(st.integers(0, len(items))), (name, draw(section)))
            document = dict(items)
    random = draw(st.randoms(use_true_random=False))
    text = _laid_out(document, random) if draw(st.booleans()) else _scattered(document, random)
    text = text.replace("\n", "\r\n") if draw(st.booleans()) else text
    before, after = draw(st.sampled_from(["", "\ufeff", "\n"])), draw(st.sampled_from(["", "\n", "\r\n", "  \n\n"]))
    return f"{before}{text}{after}"


def _laid_out(document: Any, random: Random) -> str:
    indent = random.choice([None, 0, 2, 4, "\t"])
    separators = random.choice([None, (",", ":"), (", ", ": ")])
    return json.dumps(document, indent=indent, separators=separators, ensure_ascii=random.random() < 0.5)


def _scattered(value: Any, random: Random) -> str:
    """Blanks anywhere that JSON has them."""

    def blank() -> str:
        return random.choice(["", "", " ", "\n", "\n  ", "\t", "\n\n    "])

    if isinstance(value, dict):
        keys = [
            f"{blank()}{json.dumps(key)}{blank()}:{blank()}{_scattered(item, random)}{blank()}"
            for key, item in value.items()
        ]
        return "{" + (",".join(keys) or blank()) + "}"
    if isinstance(value, list):
        return "[" + (",".join(f"{blank()}{_scattered(item, random)}{blank()}" for item in value) or blank()) + "]"
    return json.dumps(value, ensure_ascii=random.random() < 0.5)
