"""Reading a policy: a valid one becomes a `Policy`; of any other all mistakes are reported, with their position."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import inspect
from policy.cases import for_each

from fairlead.policy.config import _types as t
from fairlead.policy.config._errors import Diagnostic, PolicyError
from fairlead.policy.config._reader import read_hints, read_policy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

FILE = ".fairlead.yaml"


def mistakes(text: str | bytes) -> list[str]:
    with pytest.raises(PolicyError) as caught:
        read_policy(text, FILE)
    return str(caught.value).splitlines()


def mistake(text: str | bytes) -> str:
    (only,) = mistakes(text)
    return only


# -- valid files ---------------------------------------------------------------------------------------


@for_each("text", ["", "\n", "# nothing yet\n", "---\n", "~\n", "{}", "\ufeff", b"\xef\xbb\xbf{}"])
def test_an_empty_file_is_the_default(text: str | bytes) -> None:
    assert read_policy(text, FILE) == t.Policy()


def test_a_section_without_a_value_is_left_out() -> None:
    text = "stop:\npreToolUse:\n  uneditableFiles:\n  bash:\npermissionRequest:\nsubagentStop:\n  commands:\n"
    assert read_policy(text, FILE) == t.Policy()


EVERY_KEY = """\
# yaml-language-server: $schema=https://example.com/conclaude-schema.json
stop:
  commands:
    - run: |
        if true; then
          echo fine
        fi
      message: "Fix the tests"
      showCommand: false
      showStdout: true
      showStderr: null
      maxOutputLines: 10000
      timeout: 3600
      notifyPerCommand: true
  infinite: true
  infiniteMessage: null
stopFailure: {commands: [{run: echo failed}]}
subagentStop:
  commands:
    "*": [{run: echo any}]
    "code[rx]-?": [{run: echo coder, timeout: 1}]
skillStart: &patterns {commands: {"pdf*": [{run: echo skill}]}}
preToolUse:
  preventRootAdditions: false
  preventRootAdditionsMessage: "{file_path} by {tool}"
  preventAdditions: [dist, "build/**"]
  uneditableFiles:
    - .conclaude.yml
    - {pattern: "*.lock", message: no, agent: "code*"}
  preventUpdateGitIgnored: true
  toolUsageValidation:
    - {tool: Write, pattern: "src/**", action: allow}
    - {tool: Bash, pattern: "", action: block, commandPattern: "rm -rf*", matchMode: prefix, message: no, agent: main}
  preventGeneratedFileEdits: false
  generatedFileMessage: "{file_path} {marker}"
permissionRequest: {default: DENY, allow: [Read, "mcp__*"], deny: null}
userPromptSubmit:
  contextRules:
    - {pattern: "(?i)sidebar|side bar", prompt: "Read @docs/sidebar.md", enabled: true, caseInsensitive: true}
  commands: [{run: echo, pattern: "^fix", caseInsensitive: true, showStdout: true}]
  slashCommands: {commands: {"/deploy*": [{run: echo deploy}]}}
teammateIdle: *patterns
taskCompleted: *patterns
taskCreated: *patterns
configChange: *patterns
setup: *patterns
worktreeCreate: {command: git worktree add, timeout: 60}
postCompact: *patterns
cwdChanged: *patterns
fileChanged: *patterns
instructionsLoaded: *patterns
permissionDenied: *patterns
userPromptExpansion: *patterns
elicitation: *patterns
elicitationResult: *patterns
postToolBatch: {commands: [{run: echo batch}]}
messageDisplay: {commands: [{run: echo shown}], onlyFinal: false}
notifications:
  enabled: true
  hooks: ["*", Stop, pre_tool_use]
  showErrors: true
  showSuccess: true
  showSystemEvents: false
"""


def test_every_key_of_conclaude_is_read_unchanged() -> None:
    policy = read_policy(EVERY_KEY, FILE)
    assert policy.stop.commands[0] == t.Command(
        run="if true; then\n  echo fine\nfi\n",
        message="Fix the tests",
        show_command=False,
        show_stdout=True,
        max_output_lines=10000,
        timeout=3600,
        notify_per_command=True,
    )
    assert policy.stop.infinite
    assert list(policy.subagent_stop.commands) == ["*", "code[rx]-?"]
    assert policy.pre_tool_use.uneditable_files == [
        ".conclaude.yml",
        t.FileRule(pattern="*.lock", message="no", agent="code*"),
    ]
    assert policy.pre_tool_use.tool_usage_validation[1].pattern == "*"
    assert policy.permission_request == t.PermissionRequest(default="DENY", allow=["Read", "mcp__*"])
    assert policy.elicitation_result == policy.skill_start == read_policy(EVERY_KEY, FILE).setup
    assert not policy.notifications.show_system_events


def test_plain_scalars_are_read_as_in_yaml_1_2() -> None:
    """`no`, dates and leading zeros are text, as they are to conclaude."""
    text = "stop: {infiniteMessage: no, commands: [{run: 2024-01-01, message: 0123}, {run: 12:30, message: '7'}]}"
    stop = read_policy(text, FILE).stop
    assert stop.infinite_message == "no"
    assert [(c.run, c.message) for c in stop.commands] == [("2024-01-01", "0123"), ("12:30", "7")]


def test_a_file_of_one_megabyte_is_read() -> None:
    message = "generated " * 25
    rules = "".join(f"    - pattern: src/{number}/**\n      message: {message}\n" for number in range(4_000))
    text = f"preToolUse:\n  uneditableFiles:\n{rules}"
    assert len(text) > 1_000_000
    assert len(read_policy(text, FILE).pre_tool_use.uneditable_files) == 4_000


# -- mistakes ------------------------------------------------------------------------------------------

FIVE_MISTAKES = """\
stop:
  rounds: many
  commands:
    - run: make test
      timeout: 0
preToolUse:
  uneditableFile: [.env]
  toolUsageValidation:
    - tool: Bash
      action: forbid
notifications:
  hooks: [Stopp]
"""


def test_all_mistakes_are_reported_at_once() -> None:
    assert mistakes(FIVE_MISTAKES) == [
        (
            ".fairlead.yaml:2:3: unknown key `rounds` in `stop`; "
            "use `infinite: true` to keep the agent going, and `maxBlocks` to limit it"
        ),
        (
            ".fairlead.yaml:5:16: the number 0 for `stop.commands[0].timeout`; "
            "expected a whole number of seconds from 1 to 3600"
        ),
        ".fairlead.yaml:7:3: unknown key `uneditableFile` in `preToolUse`; did you mean `uneditableFiles`?",
        (
            ".fairlead.yaml:10:15: "
            'the text "forbid" for `preToolUse.toolUsageValidation[0].action`; '
            "expected `allow`, `block` or `warn`, so write `block`"
        ),
        ".fairlead.yaml:12:11: `notifications.hooks[0]` is 'Stopp', which is not an event; did you mean Stop?",
    ]


def test_mistakes_come_in_the_order_of_the_file() -> None:
    """That a key is missing is known at the end of its mapping, but belongs to its beginning."""
    assert [line.split(": ")[0] for line in mistakes("stop: {commands: [{qqq: x}, 1]}\nzzz: 1")] == [
        f"{FILE}:1:19",
        f"{FILE}:1:20",
        f"{FILE}:1:29",
        f"{FILE}:2:1",
    ]


@for_each("pattern", ["[]a]", "[!]]", "[^a]b", "a]", r"\[a", "[[]a", "[a][b]"])
def test_a_glob_with_closed_brackets_is_valid(pattern: str) -> None:
    text = json.dumps({"preToolUse": {"uneditableFiles": [pattern]}})
    assert read_policy(text, FILE).pre_tool_use.uneditable_files == [pattern]


@for_each("pattern", ["[", "a[b", "[]", "[!]", "[a][b", r"\[a[b"])
def test_a_glob_with_an_open_bracket_is_a_mistake(pattern: str) -> None:
    assert "has a `[` that is never closed" in mistake(json.dumps({"preToolUse": {"uneditableFiles": [pattern]}}))


@for_each("pattern", ["a\\", "[[:what:]]", "src/[[:what:]]/x"])
def test_a_file_pattern_that_git_would_ignore_is_a_mistake(pattern: str) -> None:
    for document in (
        {"preToolUse": {"uneditableFiles": [pattern]}},
        {"stop": {"commands": [{"run": "x", "when": pattern}]}},
    ):
        assert "is not a gitignore pattern: " in mistake(json.dumps(document))


def test_a_mistake_has_its_position() -> None:
    with pytest.raises(PolicyError) as caught:
        read_policy("stop: {infinite: 1}", FILE)
    assert caught.value.mistakes == (
        Diagnostic(FILE, 1, 18, "the number 1 for `stop.infinite`; expected true or false"),
    )


LIST_OF_PATTERNS = (
    '1:{}: the text "{}" for `preToolUse.uneditableFiles`; expected a list, each entry text that is not empty, '
    "or a mapping with `pattern`, so write {}"
)
SECONDS = "1:37: {} for `stop.commands[0].timeout`; expected a whole number of seconds from 1 to 3600{}"
NO_URL = (
    "`notifications.channels[0]` is not a URL; write it with its scheme, such as `ntfy://ntfy.sh/topic`, "
    "or as a variable, `${NAME}`"
)


@for_each(
    ("text", "expected"),
    [
        (
            "- stop",
            (
                "1:1: a list as the policy; expected a mapping with `stop`, `stopFailure`, `subagentStart`, "
                "`subagentStop`, `skillStart`, `preToolUse`, …"
            ),
        ),
        ("pre_tool_use: {}", "1:1: unknown key `pre_tool_use`; did you mean `preToolUse`?"),
        (
            "stop: {zzz: 1}",
            (
                "1:8: unknown key `zzz` in `stop`; the keys here are `commands`, `infinite`, "
                "`infiniteMessage`, `parallel`, `maxBlocks`"
            ),
        ),
        (
            "stop: {<<: {infinite: true}}",
            (
                "1:8: unknown key `<<` in `stop`; merge keys are not supported; repeat the whole value "
                "with an alias, or write the keys out"
            ),
        ),
        ("stop: {infinite: yes}", '1:18: the text "yes" for `stop.infinite`; expected true or false, so write true'),
        (
            "stop: {maxBlocks: '5'}",
            (
                '1:19: the text "5" for `stop.maxBlocks`; expected a whole number, 0 or more, '
                "without quotes or leading zeros"
            ),
        ),
        (
            "mail: {stay: sometimes}",
            '1:14: the text "sometimes" for `mail.stay`; expected `always`, `no` or `wake`',
        ),
        ("mail: {stay: false}", "1:14: false for `mail.stay`; expected `always`, `no` or `wake`"),
        (
            "mail: {wait: 10m}",
            ('1:14: the text "10m" for `mail.wait`; expected a whole number of seconds from 1 to 3000, so write 600'),
        ),
        (
            "stop: {commands: {run: make}}",
            (
                "1:18: a mapping for `stop.commands`; expected a list, each entry "
                "a mapping with `run`, so begin each with `- `"
            ),
        ),
        (
            "stop: {commands: [{}]}",
            ("1:19: `run` is missing in `stop.commands[0]`; add it: expected text that is not empty"),
        ),
        (
            "stop: {commands: [{run: 7}]}",
            ('1:25: the number 7 for `stop.commands[0].run`; expected text that is not empty, so write "7" in quotes'),
        ),
        ("preToolUse: {uneditableFiles: .env}", LIST_OF_PATTERNS.format("31", ".env", "[.env]")),
        ("preToolUse: {uneditableFiles: '*.lock'}", LIST_OF_PATTERNS.format("31", "*.lock", '["*.lock"]')),
        (
            "stop: {commands: make test}",
            (
                '1:18: the text "make test" for `stop.commands`; expected a list, each entry '
                "a mapping with `run`, so write [{run: make test}]"
            ),
        ),
        (
            "stop: {commands: ['echo: done']}",
            (
                '1:19: the text "echo: done" for `stop.commands[0]`; '
                'expected a mapping with `run`, so write {run: "echo: done"}'
            ),
        ),
        (
            'stop: {commands: {"*": [{run: make}]}}',
            (
                "1:18: a mapping for `stop.commands`; expected a list, each entry a mapping with `run`, "
                "so write the list alone, without a pattern before it"
            ),
        ),
        (
            "subagentStop: {commands: [{run: make}]}",
            (
                "1:26: a list for `subagentStop.commands`; expected a mapping from patterns to a list, each entry "
                'a mapping with `run`, so write `commands: {"*": [{run: make check}]}`, with a pattern before each list'
            ),
        ),
        (
            "subagentStop: {commands: {run: make}}",
            (
                '1:32: the text "make" for `subagentStop.commands.run`; expected a list, each entry a mapping with '
                '`run`, so write {"*": [{run: make}]}: the key of a list is a pattern'
            ),
        ),
        (
            "subagentStart: {context: Be quick.}",
            (
                '1:26: the text "Be quick." for `subagentStart.context`; expected a mapping from patterns to text, '
                'so write `context: {"*": the text}`, with a pattern before each text'
            ),
        ),
        (
            "permissionRequest: deny",
            (
                '1:20: the text "deny" for `permissionRequest`; '
                "expected a mapping with `default`, so write {default: deny}"
            ),
        ),
        (
            "stop: {commands: [{command: make}]}",
            "1:20: unknown key `command` in `stop.commands[0]`; did you mean `run`?",
        ),
        ("stop: {commands: [{cmd: make}]}", "1:20: unknown key `cmd` in `stop.commands[0]`; did you mean `run`?"),
        ("stop: {commands: [{script: make}]}", "1:20: unknown key `script` in `stop.commands[0]`; did you mean `run`?"),
        (
            "userPromptSubmit: {commands: [{cmd: make}]}",
            "1:32: unknown key `cmd` in `userPromptSubmit.commands[0]`; did you mean `run`?",
        ),
        ("stop: {commands: [{run: a, timeout: 5m}]}", SECONDS.format('the text "5m"', ", so write 300")),
        ("stop: {commands: [{run: a, timeout: 30 seconds}]}", SECONDS.format('the text "30 seconds"', ", so write 30")),
        ("stop: {commands: [{run: a, timeout: 500ms}]}", SECONDS.format('the text "500ms"', "")),
        ("stop: {commands: [{run: a, timeout: 9h}]}", SECONDS.format('the text "9h"', "")),
        ("stop: {commands: [{run: a, timeout: 1.5}]}", SECONDS.format("the number 1.5", "")),
        ("stop: {commands: [{run: a, timeout: 7200}]}", SECONDS.format("the number 7200", "")),
        (
            "stop: {commands: [{run: a, timeout: 60000}]}",
            SECONDS.format("the number 60000", ", so write 60 if milliseconds were meant"),
        ),
        (
            "preToolUse: {uneditableFiles: [{pattern: a, action: Deny}]}",
            (
                '1:53: the text "Deny" for `preToolUse.uneditableFiles[0].action`; '
                "expected `block` or `warn`, so write `block`"
            ),
        ),
        (
            "preToolUse: {bash: {unparsable: block}}",
            (
                '1:33: the text "block" for `preToolUse.bash.unparsable`; '
                "expected `allow`, `ask` or `deny`, so write `deny`"
            ),
        ),
        (
            "hooks: {Stop: []}",
            (
                "1:8: a mapping for `hooks`; expected a list, each entry text that is not empty: Python files. Hooks "
                "by event belong in the client's settings (see fairlead hooks)"
            ),
        ),
        ("uneditableFiles: [a]", "1:1: unknown key `uneditableFiles`; it belongs in `preToolUse`"),
        ("notifications: {channels: [foo]}", f"1:28: {NO_URL}"),
        ("notifications: {channels: [$TOPIC]}", f"1:28: {NO_URL}"),
        ("notifications: {channels: ['ntfy://']}", f"1:28: {NO_URL}"),
        (
            "notifications: {channels: ['ntfy://${TOPIC']}",
            (
                "1:28: `notifications.channels[0]` has a `${` without a name and a `}`; "
                "write `${NAME}` for an environment variable"
            ),
        ),
        ("stop: {}\nstop: {}", "2:1: the key `stop` is already on line 1; merge the two"),
        ("? [a]\n: 1", "1:3: a list as a key; expected text"),
        (
            'subagentStop: {commands: {"": []}}',
            '1:27: `subagentStop.commands[""]` is an invalid pattern: it is empty; write `*` for everything',
        ),
        (
            'subagentStop: {commands: {"a[": []}}',
            (
                '1:27: `subagentStop.commands["a["]` has a `[` that is never closed; '
                "close it, or write `[[]` for the character itself"
            ),
        ),
        (
            "preToolUse: {preventAdditions: ['#x']}",
            (
                "1:33: `preToolUse.preventAdditions[0]` is a comment in gitignore, "
                "so it matches nothing; write `\\#` for the character itself"
            ),
        ),
        (
            "permissionRequest: {default: maybe}",
            ("1:30: `permissionRequest.default` is 'maybe'; expected `allow` or `deny`"),
        ),
        (
            "userPromptSubmit: {contextRules: [{pattern: (, prompt: x}]}",
            (
                "1:45: `userPromptSubmit.contextRules[0].pattern` is not a regular expression: "
                "missing ), unterminated subpattern at position 0; put a backslash before a literal character"
            ),
        ),
        (
            "userPromptSubmit: {commands: [{run: x, pattern: (a+)+}]}",
            (
                "1:49: `userPromptSubmit.commands[0].pattern` "
                "may backtrack forever: its repeated part can match one text in several ways; write `a+`, not `(a+)+`"
            ),
        ),
        (
            "notifications: {hooks: [Everything]}",
            ("1:25: `notifications.hooks[0]` is 'Everything', which is not an event; write `*` for all of them"),
        ),
        ('stop: {infiniteMessage: "a\\0"}', "1:25: `stop.infiniteMessage` contains a NUL character; remove it"),
        (
            "tests: [{name: a, expect: allow, payload: {a: 1, a: 2}}]",
            ("1:50: the key `a` is already on line 1; merge the two"),
        ),
    ],
)
def test_a_message_says_what_is_wrong_and_what_would_be_right(text: str, expected: str) -> None:
    assert mistake(text) == f"{FILE}:{expected}"


@for_each(
    ("text", "expected"),
    [
        ("stop:\n\tinfinite: true", "2:1: a tab in the indentation; use spaces"),
        ("subagentStop:\n  commands:\n    *: []", '3:5: text that starts with * must be quoted; write "*"'),
        ("a: *b", '1:4: there is no &b above; to write it as text, use "*b"'),
        ("a: @b", '1:4: text that starts with @ must be quoted; write "@b"'),
        ("a: [*.lock, b]", '1:5: text that starts with * must be quoted; write "*.lock"'),
        ("a: [c, *.[ch] ]", '1:8: text that starts with * must be quoted; write "*.[ch]"'),
        ("a:\n  - **/*.{js,ts} # all", '2:5: text that starts with * must be quoted; write "**/*.{js,ts}"'),
        ('a:\r\n  - *"b\r\n', "2:5: text that starts with * must be quoted; write '*\"b'"),
        ("a:\n  - !.env.example", '2:5: text that starts with ! must be quoted; write "!.env.example"'),
        ("a: [!docs/*.md, b]", '1:5: text that starts with ! must be quoted; write "!docs/*.md"'),
        ("a: !keep me", '1:4: text that starts with ! must be quoted; write "!keep me"'),
        ("a: 'b", "1:4: the quote that opens here is never closed; close it"),
        (
            "a: [b",
            ("1:4: the bracket that opens here is not closed, or a comma is missing in it; close it, or add the comma"),
        ),
        (
            "a: b: c",
            ("1:5: a second `:` in one line, or a key that is indented too far; put text that contains `: ` in quotes"),
        ),
        ('a: "\\d"', "1:5: not an escape sequence of double quotes; use single quotes, or double the backslash"),
        (
            "- a\nb: c",
            "2:1: wrong indentation; give the entries of one list or mapping the same indentation",
        ),
        ("a: !!python/name:os x", "1:4: the tag tag:yaml.org,2002:python/name:os is not supported; remove it"),
        ("a: 1\n---\nb: 2", "2:1: a second document starts here; a policy is one document, so remove the line `---`"),
        ("a: &x [*x]", "1:8: the alias *x is inside the value that it refers to; write the value out"),
        (
            "a: b\n  \x07",
            ("2:3: YAML does not allow the character U+0007; remove it, or write it in double quotes as \\u0007"),
        ),
        (b"a: b\nc: \xff", "2:4: the byte 0xFF is not UTF-8; save the file as UTF-8"),
        ("[" * 5000, "1:101: nested more than 100 levels deep; a policy needs fewer than 10"),
    ],
)
def test_invalid_yaml_is_one_mistake_with_its_position(text: str | bytes, expected: str) -> None:
    assert mistake(text) == f"{FILE}:{expected}"


def test_aliases_that_multiply_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)]
    assert mistake("\n".join(lines)).endswith(": aliases refer to more than 100000 values; write the values out")


def test_aliases_that_nest_are_refused() -> None:
    lines = [f"a0: &a0 {'[' * 50}{']' * 50}", *(f"a{n}: &a{n} {'[' * 40}*a{n - 1}{']' * 40}" for n in range(1, 30))]
    assert ": nested more than 100 levels deep" in mistake("\n".join(lines))


def test_a_file_that_is_too_large_is_refused() -> None:
    expected = ".fairlead.yaml: larger than 4194304 bytes, the limit; a policy is a page or two"
    assert mistake("#" * (4 * 1024 * 1024 + 1)) == expected


def test_at_most_a_hundred_mistakes_are_reported() -> None:
    assert len(mistakes("\n".join(f"key{number}: 1" for number in range(10_000)))) == 100


@for_each("channel", ["ntfy://ntfy.sh/x", "mailto://${USER}@example.com", "${URL}", "${A}/${B}"])
def test_a_channel_is_a_url_or_comes_from_the_environment(channel: str) -> None:
    assert read_policy(json.dumps({"notifications": {"channels": [channel]}}), FILE).notifications.channels == [channel]


# -- hints --------------------------------------------------------------------------------------------

CHECKS_FILES = (
    "checks the files that a command touches, not the command; "
    "to check the command, write `commandPattern` instead of `pattern`"
)


@for_each(
    ("rule", "expected"),
    [
        ({"tool": "Bash", "pattern": "rm *"}, CHECKS_FILES),
        ({"tool": "Bash", "pattern": "sudo*"}, CHECKS_FILES),
        (
            {"tool": "Write", "commandPattern": "rm *"},
            "never matches: Write has no command; write `tool: Bash`, or `pattern` for the file",
        ),
        (
            {"tool": "Write", "pattern": "*.js", "commandPattern": "rm *"},
            "checks only the file: Write has no command; remove `commandPattern`, or write `tool: Bash`",
        ),
    ],
)
def test_a_rule_that_does_not_check_what_it_seems_to_gets_a_hint(rule: dict[str, str], expected: str) -> None:
    """Conclaude accepts such rules, and its files work unchanged."""
    text = json.dumps({"preToolUse": {"toolUsageValidation": [{**rule, "action": "block"}]}})
    assert len(read_policy(text, FILE).pre_tool_use.tool_usage_validation) == 1
    assert [hint.message for hint in read_hints(text, FILE)] == [f"`preToolUse.toolUsageValidation[0]` {expected}"]


@for_each(
    "rule",
    [
        {"tool": "Bash", "pattern": "*.env"},
        {"tool": "Bash", "pattern": "secrets/"},
        {"tool": "Bash", "pattern": "", "commandPattern": "rm *"},
        {"tool": "Bash"},
        {"tool": "*", "commandPattern": "rm *"},
        {"tool": "mcp__shell__run", "commandPattern": "rm *"},
        {"tool": "Write", "pattern": "two words.txt"},
    ],
)
def test_a_clear_rule_gets_no_hint(rule: dict[str, str]) -> None:
    text = json.dumps({"preToolUse": {"toolUsageValidation": [{**rule, "action": "block"}]}})
    assert read_hints(text, FILE) == ()


def hints_of(text: str) -> list[str]:
    read_policy(text, FILE)
    return [hint.message for hint in read_hints(text, FILE)]


@for_each(
    ("text", "expected"),
    [
        ("notifications: {hooks: [stop]}", "`notifications.hooks[0]` is 'stop'; the event is written `Stop`"),
        (
            "preToolUse: {toolUsageValidation: [{tool: Wirte, action: block}]}",
            "`preToolUse.toolUsageValidation[0].tool` is 'Wirte', a tool that no client has; did you mean `Write`?",
        ),
        (
            "permissionRequest: {default: deny, allow: [read]}",
            "`permissionRequest.allow[0]` is 'read', a tool that no client has; did you mean `Read`?",
        ),
        (
            "preToolUse: {toolUsageValidation: [{tool: Bash, action: block, commandPattern: rm}]}",
            (
                "`preToolUse.toolUsageValidation[0]` matches `rm` without arguments only; "
                "write `rm *`, or `matchMode: prefix` for both"
            ),
        ),
        (
            "preToolUse: {uneditableFiles: [../other/.env]}",
            (
                "`preToolUse.uneditableFiles[0]` never matches, as it has `..`; "
                "for files outside of the folder write `//` and the absolute path"
            ),
        ),
        (
            "preToolUse: {unreadableFiles: [{pattern: $HOME/.ssh/*}]}",
            "`preToolUse.unreadableFiles[0].pattern` has a variable, which is not expanded; write `~/.ssh/*`",
        ),
        (
            "preToolUse: {preventAdditions: ['~ann/x']}",
            (
                "`preToolUse.preventAdditions[0]` is a name that begins with `~`; "
                "for what is in your home folder write `~/` before it"
            ),
        ),
        (
            r"preToolUse: {preventAdditions: ['src\main.py']}",
            r"`preToolUse.preventAdditions[0]` has a `\`, which escapes the next character; write `/` between folders",
        ),
    ],
)
def test_what_is_valid_but_hardly_meant_gets_a_hint(text: str, expected: str) -> None:
    assert hints_of(text) == [expected]


@for_each(
    "text",
    [
        "notifications: {hooks: [Stop, '*']}",
        "preToolUse: {toolUsageValidation: [{tool: Write, action: block}, {tool: SomethingNewer, action: block}]}",
        "preToolUse: {toolUsageValidation: [{tool: Bash, action: block, commandPattern: rm, matchMode: prefix}]}",
        "preToolUse: {toolUsageValidation: [{tool: mcp__x__wirte, action: block}]}",
        "preToolUse: {uneditableFiles: [./.env, '*.{lock,pem}', '~/.ssh/**', //etc/**, '!./a', 'a..b', '\\#x']}",
    ],
)
def test_what_works_gets_no_hint(text: str) -> None:
    assert hints_of(text) == []


# -- keys of older versions of conclaude ----------------------------------------------------------------


def test_keys_of_older_versions_of_conclaude_are_read_as_those_of_today() -> None:
    text = """\
rules:
  preventRootAdditions: false
  uneditableFiles: [.env]
preToolUse:
  uneditableFiles: [a.lock]
  grepRules: [{filePattern: "src/**/*.ts", forbiddenPattern: "it's", description: Say it otherwise}]
stop:
  run: make check
  rounds: 3
  commands: [{run: make test}]
gitWorktree: {enabled: true}
"""
    policy = read_policy(text, FILE)

    assert policy.pre_tool_use.uneditable_files == ["a.lock", ".env"]
    assert policy.pre_tool_use.prevent_root_additions is False
    assert (policy.stop.infinite, policy.stop.max_blocks) == (True, 3)
    grep = """git grep -nE --untracked -e 'it'"'"'s' -- ':(glob)src/**/*.ts'; test $? -eq 1"""
    found = [(command.run, command.message) for command in policy.stop.commands]
    assert sorted(found, key=str) == sorted(
        [(grep, "Say it otherwise"), ("make check", None), ("make test", None)], key=str
    )
    old = "is a key of older versions of conclaude;"
    assert [f"{hint.line}:{hint.column} {hint.message}" for hint in read_hints(text, FILE)] == [
        f"1:1 `rules` {old} its keys are read as keys of `preToolUse`: move them there",
        f"6:3 `preToolUse.grepRules` {old} it is read as `git grep` at the stop: write the check in `stop.commands`",
        f"8:3 `stop.run` {old} it is read as a command: write it as an entry of `stop.commands`",
        f"9:3 `stop.rounds` {old} it is read as `stop.infinite: true` and `stop.maxBlocks: 3`: write these",
        f"11:1 `gitWorktree` {old} it has no effect: write what creates a worktree in `worktreeCreate`",
    ]


@for_each(
    ("text", "mistake"),
    [
        ("rules: 3", "1:1: unknown key `rules`; its keys are in `preToolUse` now"),
        ("rules: {uneditableFile: [a]}", "1:9: unknown key `uneditableFile` in `preToolUse`; did you mean"),
        ("stop: {run: [a]}", "1:8: unknown key `run` in `stop`; write it as the `run` of an entry in `commands`"),
        ("rules: {uneditableFiles: 3}", "1:26: the number 3 for `preToolUse.uneditableFiles`; expected a list"),
    ],
)
def test_a_mistake_in_such_a_key_is_still_one(text: str, mistake: str) -> None:
    assert mistakes(text)[0].startswith(f"{FILE}:{mistake}")


def test_a_forbidden_text_of_an_older_rule_is_found(tmp_path: Path) -> None:
    policy = read_policy('stop: {grepRules: [{filePattern: "**/*.ts", forbiddenPattern: "TODO|FIXME"}]}', FILE)
    (command,) = policy.stop.commands

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(["bash", "-c", command.run], cwd=tmp_path, capture_output=True, text=True, check=False)

    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / "a.js").write_text("TODO\n")
    assert run().returncode == 0
    (tmp_path / "a.ts").write_text("x\nFIXME\n")
    assert (run().returncode, run().stdout) == (1, "a.ts:2:FIXME\n")


def test_an_empty_file_gets_no_hint() -> None:
    assert read_hints("", FILE) == ()


# -- every possible mistake, generated from the types --------------------------------------------------

Place = tuple[str, inspect.Type, bool, "Callable[[Any], Any]"]
WRONG = "@@WRONG@@"
OF_KIND = {"null": "null", "bool": "true", "int": "7", "float": "1.5", "text": "o d d", "list": "[]", "mapping": "{}"}
KINDS = {
    inspect.StructType: {"mapping"},
    inspect.DictType: {"mapping"},
    inspect.ListType: {"list"},
    inspect.StrType: {"text"},
    inspect.LiteralType: set(),
    inspect.IntType: {"int"},
    inspect.BoolType: {"bool"},
    inspect.NoneType: {"null"},
    inspect.AnyType: set(OF_KIND),
}


def options(kind: inspect.Type) -> tuple[inspect.Type, ...]:
    return kind.types if isinstance(kind, inspect.UnionType) else (kind,)


def example_of(kind: inspect.Type) -> Any:
    first = options(kind)[0]
    if isinstance(first, inspect.StructType):
        return smallest(first)
    if isinstance(first, inspect.LiteralType):
        return first.values[0]
    return {} if isinstance(first, inspect.DictType) else "allow"


def smallest(struct: inspect.StructType) -> dict[str, Any]:
    return {field.encode_name: example_of(field.type) for field in struct.fields if field.required}


def places(kind: inspect.Type, path: str, put: Callable[[Any], Any], *, left_out: bool = False) -> Iterator[Place]:
    """Every value that a policy can hold: its name, type, whether it may be null, and how to put another there."""
    yield path, kind, left_out, put
    for option in options(kind):
        if isinstance(option, inspect.StructType):
            for field in option.fields:
                yield from places_in(field, path, put, smallest(option))
        elif isinstance(option, inspect.ListType):
            yield from places(option.item_type, f"{path}[]", lambda value: put([value]))
        elif isinstance(option, inspect.DictType):
            yield from places(option.value_type, f"{path}{{}}", lambda value: put({"k": value}))


def places_in(field: inspect.Field, path: str, put: Callable[[Any], Any], around: dict[str, Any]) -> Iterator[Place]:
    collections = inspect.StructType | inspect.DictType | inspect.ListType
    left_out = not field.required and any(isinstance(option, collections) for option in options(field.type))
    name = field.encode_name
    yield from places(field.type, f"{path}.{name}", lambda value: put({**around, name: value}), left_out=left_out)


def wrong_values(kind: inspect.Type, *, left_out: bool) -> Iterator[str]:
    accepted = set().union(*(KINDS[type(option)] for option in options(kind))) | ({"null"} if left_out else set())
    yield from (text for name, text in OF_KIND.items() if name not in accepted)
    for option in options(kind):
        if isinstance(option, inspect.IntType):
            yield from (str(edge) for edge in (option.ge and option.ge - 1, option.le and option.le + 1) if edge)
            yield "-1"
        if isinstance(option, inspect.StrType) and option.min_length:
            yield '""'


POLICY = inspect.type_info(t.Policy)
assert isinstance(POLICY, inspect.StructType)
PLACES = list(places(POLICY, "", lambda value: value))


def test_the_generator_reaches_every_key() -> None:
    schema = json.dumps(msgspec.json.schema(t.Policy)["$defs"])
    reached = {path.rpartition(".")[2].strip("[]{}") for path, *_ in PLACES}
    assert len(PLACES) > 400
    assert all(f'"{name}"' in schema for name in reached - {""})
    assert {"run", "when", "tests", "expect", "unparsable", "slashCommands", "onlyFinal", "channels"} <= reached


@for_each("field", POLICY.fields)
def test_every_wrong_value_of_every_key_is_a_mistake_with_its_position_and_advice(field: inspect.Field) -> None:
    """The wrong value stands alone on line 2, so that is where the one mistake must be."""
    tried = 0
    for path, kind, left_out, put in places_in(field, "", lambda value: value, {}):
        for wrong in wrong_values(kind, left_out=left_out):
            text = json.dumps(put(WRONG)).replace(f'"{WRONG}"', f"\n  {wrong}\n")
            line = mistake(text)
            assert line.startswith(f"{FILE}:2:3: "), (path, wrong, line)
            assert "; expected " in line, (path, wrong, line)
            tried += 1
    assert tried


@for_each("field", POLICY.fields)
def test_every_unknown_and_every_missing_key_is_a_mistake_with_its_position_and_advice(field: inspect.Field) -> None:
    for path, kind, _, put in places_in(field, "", lambda value: value, {}):
        for option in options(kind):
            if isinstance(option, inspect.StructType):
                inner = json.dumps({**smallest(option), "qqq": 1})[1:]
                text = json.dumps(put(WRONG)).replace(f'"{WRONG}"', f"{{\n  {inner}")
                assert "; the keys here are " in mistake(text), path
                for name in smallest(option):
                    less = {key: value for key, value in smallest(option).items() if key != name}
                    text = json.dumps(put(WRONG)).replace(f'"{WRONG}"', f"\n  {json.dumps(less)}\n")
                    assert mistake(text).startswith(f"{FILE}:2:3: `{name}` is missing in "), path


# -- any text -----------------------------------------------------------------------------------------

YAML_LIKE = st.text(alphabet="abc:-[]{}*&!|>'\"#%@`?, \n\t0123~<=.\\", max_size=60)
SECTIONS = st.sampled_from([name for name, *_ in ((f.encode_name, f) for f in POLICY.fields)])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["commands", "*", "run", "pattern", "hooks", "tool", "default"]), inner, max_size=3
        )
    ),
    max_leaves=12,
)


def outcome(text: str | bytes) -> tuple[t.Policy | None, tuple[Diagnostic, ...]]:
    try:
        return read_policy(text, FILE), ()
    except PolicyError as error:
        return None, error.mistakes


@settings(deadline=None, max_examples=300)
@given(st.text() | YAML_LIKE | st.binary(max_size=80))
@example("\ud800")
@example("? ? ?")
@example("!<")
@example('"\\ud800"')
@example("a: 99999999999999999999999")
def test_no_text_raises_anything_but_a_policy_error(text: str | bytes) -> None:
    policy, found = outcome(text)
    assert isinstance(policy, t.Policy) or found
    assert all(mistake.file == FILE and mistake.message for mistake in found)


@settings(deadline=None, max_examples=300)
@given(st.dictionaries(SECTIONS, VALUES, max_size=3))
def test_no_document_raises_anything_but_a_policy_error(document: dict[str, Any]) -> None:
    policy, found = outcome(json.dumps(document))
    assert all(mistake.line >= 1 and "; " in mistake.message for mistake in found)
    if policy is not None:
        assert msgspec.convert(msgspec.to_builtins(policy), t.Policy) == policy
