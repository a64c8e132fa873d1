"""What a policy file may say: one type per section, with its defaults, ranges and words. Knows no file.

The names and defaults are those of `.conclaude.yaml`, which works unchanged; what is new is marked so. The JSON
Schema, the reference and the error messages come from these types.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

USER_WIDE = "config.yaml"
"""The name of the user-wide file, in the user's config folder."""

MAX_SECONDS = 3600
Seconds = Annotated[int, Meta(ge=1, le=MAX_SECONDS)]
Lines = Annotated[int, Meta(ge=1, le=10000)]
Pattern = Annotated[str, Meta(min_length=1)]
Action = Literal["block", "warn"]
Stay = Literal["always", "wake", "no"]
MAX_WAIT = 3000
"""Seconds: the client ends a Stop hook after an hour, which the policy's own commands may need, too."""


class Section(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Base of everything in the file: camelCase names, and no others."""


# -- commands ------------------------------------------------------------------------------------------


class Command(Section, frozen=True, kw_only=True):
    """A script to run. The whole text is one script."""

    run: Annotated[str, Meta(min_length=1)]
    message: str | None = None
    """Told to the agent if the command fails."""
    show_command: bool | None = None
    """Name the command in what is told; yes unless set to false."""
    show_stdout: bool | None = None
    show_stderr: bool | None = None
    max_output_lines: Lines | None = None
    """Keep that many lines of each stream: the first and the last."""
    timeout: Seconds | None = None
    notify_per_command: bool | None = None
    working_dir: str | None = None
    """New. Relative to the file's folder, which is also the default."""
    shell: str | None = None
    """New. `bash` unless given."""
    when: Pattern | list[Pattern] | None = None
    """New. Run only if a file that matches has changed, by git's reckoning."""


Commands = list[Command]
ByPattern = dict[Pattern, Commands]
"""Glob on the event's subject → commands: `*` first, then the others in the order of the file."""


class PatternSection(Section, frozen=True, kw_only=True):
    """Commands for an event, by a pattern on its subject."""

    commands: ByPattern = {}


class ListSection(Section, frozen=True, kw_only=True):
    """Commands for an event that has no subject."""

    commands: Commands = []


# -- the end of a turn ---------------------------------------------------------------------------------


class Stop(ListSection, frozen=True, kw_only=True):
    """Checks before the agent may stop: the first that fails keeps it going."""

    infinite: bool = False
    """Keep the agent going also when all checks pass."""
    infinite_message: str | None = None
    parallel: bool = False
    """New. Run the checks at once; what they say is shown in their order."""
    max_blocks: Annotated[int, Meta(ge=0)] = 5
    """New. After so many blocks in a row the agent may stop all the same; 0 is no limit."""


class MessageDisplay(ListSection, frozen=True, kw_only=True):
    """Commands when a message is shown."""

    only_final: bool = True


# -- subagents -----------------------------------------------------------------------------------------


class SubagentStart(PatternSection, frozen=True, kw_only=True):
    """Commands when a subagent starts, by its id or type."""

    context: dict[Pattern, str] = {}
    """New. Text that the subagent is given, by its id or type."""
    deny: list[Pattern] = []
    """New. Types of subagents, as globs, that must not be started."""


# -- guards --------------------------------------------------------------------------------------------


class FileRule(Section, frozen=True, kw_only=True):
    """A gitignore pattern, relative to the file's folder."""

    pattern: Pattern
    message: str | None = None
    agent: Pattern = "*"
    """Glob on the agent's type; the main agent is `main`."""
    action: Action = "block"
    """New. `warn` lets it pass, and tells the person."""


class ToolRule(Section, frozen=True, kw_only=True):
    """A rule on a tool's use: by the file it is used on, or, for Bash, by the command."""

    tool: Pattern
    action: Literal["block", "allow", "warn"]
    pattern: str = "*"
    """Glob on the file. Empty, as conclaude wants it beside `commandPattern`, it is read as `*`."""
    command_pattern: Pattern | None = None
    """Glob on each simple command of a Bash call."""
    match_mode: Literal["full", "prefix"] = "full"
    message: str | None = None
    agent: Pattern = "*"


class Bash(Section, frozen=True, kw_only=True):
    """New. How Bash calls are looked at."""

    unparsable: Literal["ask", "deny", "allow"] = "ask"
    """What to do about a command that cannot be understood: a variable as program or target, a syntax error."""


class PreToolUse(Section, frozen=True, kw_only=True):
    """What tools must not do."""

    prevent_root_additions: bool = True
    """No new files in the file's own folder."""
    prevent_root_additions_message: str | None = None
    """`{file_path}` and `{tool}` are filled in."""
    prevent_additions: list[Pattern] = []
    uneditable_files: list[Pattern | FileRule] = []
    unreadable_files: list[Pattern | FileRule] = []
    """New."""
    prevent_update_git_ignored: bool = False
    prevent_generated_file_edits: bool = True
    generated_file_message: str | None = None
    """`{file_path}` and `{marker}` are filled in."""
    tool_usage_validation: list[ToolRule] = []
    protect_own_files: bool = True
    """New. The policy, the client's settings and Fairlead's own files cannot be changed by the agent."""
    bash: Bash = msgspec.field(default_factory=Bash)


class PermissionRequest(Section, frozen=True, kw_only=True):
    """Answers to the client's permission requests, by globs on the tool's name; deny comes first."""

    default: str
    """`allow` or `deny`, in any case."""
    allow: list[Pattern] | None = None
    deny: list[Pattern] | None = None


# -- prompts -------------------------------------------------------------------------------------------


class ContextRule(Section, frozen=True, kw_only=True):
    """Text for the model when a prompt matches; `@path` in it is replaced by that file's text."""

    pattern: Pattern
    """Regular expression, found anywhere."""
    prompt: str
    enabled: bool = True
    case_insensitive: bool = False


class PromptCommand(Command, frozen=True, kw_only=True):
    """A command for prompts that match; without a pattern, for all."""

    pattern: Pattern | None = None
    case_insensitive: bool = False


class SlashCommands(Section, frozen=True, kw_only=True):
    """Commands by the slash command that a prompt begins with."""

    commands: ByPattern = {}


class UserPromptSubmit(Section, frozen=True, kw_only=True):
    """What happens when a prompt is sent."""

    context_rules: list[ContextRule] = []
    commands: list[PromptCommand] = []
    slash_commands: SlashCommands | None = None


# -- the rest ------------------------------------------------------------------------------------------


class WorktreeCreate(Section, frozen=True, kw_only=True):
    """A command that makes the worktree in place of the client, and prints its path."""

    command: str | None = None
    timeout: Seconds | None = None


class Notifications(Section, frozen=True, kw_only=True):
    """What the person is told."""

    enabled: bool = False
    hooks: list[Pattern] = []
    """Names of events, or `*`."""
    show_errors: bool = False
    show_success: bool = False
    show_system_events: bool = True
    channels: list[Pattern] = []
    """New. Apprise URLs; `${NAME}` is taken from the environment, so that no secret stands in the file."""


class Attention(Section, frozen=True, kw_only=True):
    """New. How the person is told that a session needs them. Only the user-wide file has a say in it."""

    desktop: bool = True
    channels: list[Pattern] = []
    """Apprise URLs; `${NAME}` is taken from the daemon's environment, which keeps what begins with `FAIRLEAD_`."""
    quiet_hours: Pattern | list[Pattern] = []
    """As `22:00-07:00`, in local time. What still waits at their end is told then."""
    grace: Annotated[int, Meta(ge=0, le=MAX_SECONDS)] = 2
    """Seconds: what is answered within them is not told."""
    when_in_front: bool = False
    """Tell also if the session's tmux pane is the one that the person looks at."""


class Mail(Section, frozen=True, kw_only=True):
    """New. How an agent is reached by the mail of others when it has nothing left to do."""

    stay: Stay | None = None
    """`always`: it waits for mail in place of stopping. `wake`: it stops, and mail wakes it. `no`: it stops.

    Unless given, as `fairlead hooks install --stay` said, which is `no` if it said nothing."""
    wait: Annotated[int, Meta(ge=1, le=MAX_WAIT)] | None = None
    """Seconds for which `always` waits before the agent is told that nothing came, and waits anew; 570 unless given."""


class PolicyTest(Section, frozen=True, kw_only=True):
    """New. A test of the policy: a payload, and what must come of it."""

    name: str
    payload: dict[str, Any]
    expect: Literal["allow", "block", "ask", "warn"]
    reason: str | None = None
    """Must be part of what is told."""


class Policy(Section, frozen=True, kw_only=True):
    """A whole file. Every section may be left out."""

    stop: Stop = msgspec.field(default_factory=Stop)
    stop_failure: ListSection = msgspec.field(default_factory=ListSection)
    subagent_start: SubagentStart = msgspec.field(default_factory=SubagentStart)
    subagent_stop: PatternSection = msgspec.field(default_factory=PatternSection)
    skill_start: PatternSection = msgspec.field(default_factory=PatternSection)
    pre_tool_use: PreToolUse = msgspec.field(default_factory=PreToolUse)
    post_tool_use: PatternSection = msgspec.field(default_factory=PatternSection)
    post_tool_use_failure: PatternSection = msgspec.field(default_factory=PatternSection)
    permission_request: PermissionRequest | None = None
    permission_denied: PatternSection = msgspec.field(default_factory=PatternSection)
    user_prompt_submit: UserPromptSubmit = msgspec.field(default_factory=UserPromptSubmit)
    user_prompt_expansion: PatternSection = msgspec.field(default_factory=PatternSection)
    session_start: PatternSection = msgspec.field(default_factory=PatternSection)
    session_end: PatternSection = msgspec.field(default_factory=PatternSection)
    setup: PatternSection = msgspec.field(default_factory=PatternSection)
    notification: PatternSection = msgspec.field(default_factory=PatternSection)
    teammate_idle: PatternSection = msgspec.field(default_factory=PatternSection)
    task_created: PatternSection = msgspec.field(default_factory=PatternSection)
    task_completed: PatternSection = msgspec.field(default_factory=PatternSection)
    pre_compact: PatternSection = msgspec.field(default_factory=PatternSection)
    post_compact: PatternSection = msgspec.field(default_factory=PatternSection)
    config_change: PatternSection = msgspec.field(default_factory=PatternSection)
    cwd_changed: PatternSection = msgspec.field(default_factory=PatternSection)
    file_changed: PatternSection = msgspec.field(default_factory=PatternSection)
    instructions_loaded: PatternSection = msgspec.field(default_factory=PatternSection)
    elicitation: PatternSection = msgspec.field(default_factory=PatternSection)
    elicitation_result: PatternSection = msgspec.field(default_factory=PatternSection)
    worktree_create: WorktreeCreate = msgspec.field(default_factory=WorktreeCreate)
    worktree_remove: PatternSection = msgspec.field(default_factory=PatternSection)
    post_tool_batch: ListSection = msgspec.field(default_factory=ListSection)
    message_display: MessageDisplay = msgspec.field(default_factory=MessageDisplay)
    notifications: Notifications = msgspec.field(default_factory=Notifications)
    attention: Attention = msgspec.field(default_factory=Attention)
    mail: Mail = msgspec.field(default_factory=Mail)
    tests: list[PolicyTest] = []
    """New. Cases for `fairlead test`."""


class Layer(msgspec.Struct, frozen=True):
    """One file's policy. Its patterns and working folders are relative to `folder`."""

    file: str
    folder: str
    policy: Policy
    given: dict[str, Any] | None = None
    """What the file says, without what it leaves out; unless given, whatever differs from the defaults."""
