"""The types of a policy file: one for each section, with its defaults and ranges. Opens no file.

The names and defaults are those of `.conclaude.yaml`, which works unchanged. Settings that conclaude does not have are
marked as new. The JSON Schema, the reference and the error messages are generated from these types.
"""

from __future__ import annotations

from fairlead.structs import LIGHT, Struct, field

TYPE_CHECKING = False

USER_WIDE = "config.yaml"
"""The name of the user-wide file, in the user's config folder."""

MAX_SECONDS = 3600
MAX_WAIT = 3000
"""Seconds. The client ends a Stop hook after an hour, and the policy's commands need some of it."""

if TYPE_CHECKING or not LIGHT:  # the light structs do not read annotations
    from typing import Annotated, Any, Literal

    from msgspec import Meta

    Seconds = Annotated[int, Meta(ge=1, le=MAX_SECONDS)]
    Lines = Annotated[int, Meta(ge=1, le=10000)]
    Pattern = Annotated[str, Meta(min_length=1)]
    Action = Literal["block", "warn"]
    StayMode = Literal["always", "wake", "no"]
    IntegrityMode = Literal["restore", "report", "off"]
    LeaseMode = Literal["block", "warn", "off"]
    CopyMode = Literal["off", "blocked", "all"]


class Section(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Base class of everything in a policy file. Keys are in camelCase; unknown keys are errors."""


# -- commands ------------------------------------------------------------------------------------------


class Command(Section, frozen=True, kw_only=True):
    """A command to run: a script of one or more lines."""

    run: Annotated[str, Meta(min_length=1)]
    message: str | None = None
    """Shown to the agent if the command fails."""
    show_command: bool | None = None
    """Include the command in the message to the agent; true by default."""
    show_stdout: bool | None = None
    show_stderr: bool | None = None
    max_output_lines: Lines | None = None
    """The maximum number of lines of each stream to show: the first and the last."""
    timeout: Seconds | None = None
    notify_per_command: bool | None = None
    working_dir: str | None = None
    """New. Relative to the folder of the policy file, which is the default."""
    shell: str | None = None
    """New. `bash` by default."""
    when: Pattern | list[Pattern] | None = None
    """New. Run only if a file that matches has changed, according to git. gitignore patterns."""
    on_failure: Literal["block", "pass"] | None = None
    """New. What happens if the command could not run: it was not found, not started, killed, or timed out. `block` is
    the default where the event can be blocked; `pass` only reports it."""


class PatternSection(Section, frozen=True, kw_only=True):
    """Commands for an event, by a glob on its subject."""

    commands: dict[Pattern, list[Command]] = {}
    """The commands of `*` run first, then the others in the order of the file."""


class ListSection(Section, frozen=True, kw_only=True):
    """Commands for an event that has no subject."""

    commands: list[Command] = []


# -- the end of a turn ---------------------------------------------------------------------------------


class Stop(ListSection, frozen=True, kw_only=True):
    """Checks before the agent may stop: the first that fails blocks the stop."""

    infinite: bool = False
    """Block the stop even if all checks pass."""
    infinite_message: str | None = None
    parallel: bool = False
    """New. Run the checks at the same time; their output is shown in the order of the file."""
    max_blocks: Annotated[int, Meta(ge=0)] = 5
    """New. The maximum number of blocks in a row, after which the agent may stop; 0 is no limit."""


class MessageDisplay(ListSection, frozen=True, kw_only=True):
    """Commands that run when a message is shown."""

    only_final: bool = True
    """Run only when the message is complete."""


# -- subagents -----------------------------------------------------------------------------------------


class SubagentStart(PatternSection, frozen=True, kw_only=True):
    """Commands that run when a subagent starts, by its id or type."""

    context: dict[Pattern, str] = {}
    """New. Text for the subagent's context, by its id or type."""
    deny: list[Pattern] = []
    """New. Globs on the types of subagents that must not be started."""


# -- guards --------------------------------------------------------------------------------------------


class FileRule(Section, frozen=True, kw_only=True):
    """A gitignore pattern, relative to the folder of the policy file."""

    pattern: Pattern
    message: str | None = None
    agent: Pattern = "*"
    """Glob on the agent's type; the main agent is `main`."""
    action: Action = "block"
    """New. `warn` allows the call, and shows the user a message."""


class ToolRule(Section, frozen=True, kw_only=True):
    """A rule on the use of a tool: by its file, or, for Bash, by the command."""

    tool: Pattern
    action: Literal["block", "allow", "warn"]
    pattern: str = "*"
    """gitignore pattern on the file. An empty one, which conclaude requires beside `commandPattern`, counts as `*`."""
    command_pattern: Pattern | None = None
    """Glob on each simple command of a Bash call."""
    match_mode: Literal["full", "prefix"] = "full"
    message: str | None = None
    agent: Pattern = "*"


class Bash(Section, frozen=True, kw_only=True):
    """New. How Bash calls are checked."""

    unparsable: Literal["ask", "deny", "allow"] = "ask"
    """What to do with a command that cannot be checked: a variable as program or file, a syntax error."""


class PreToolUse(Section, frozen=True, kw_only=True):
    """Rules on tool calls."""

    prevent_root_additions: bool = True
    """Block new files in the folder of the policy file itself."""
    prevent_root_additions_message: str | None = None
    """Replaces the message; `{file_path}` and `{tool}` are filled in."""
    prevent_additions: list[Pattern] = []
    """Block new files that match. gitignore patterns."""
    uneditable_files: list[Pattern | FileRule] = []
    """Block changes to files that match. gitignore patterns."""
    unreadable_files: list[Pattern | FileRule] = []
    """New. Block reading files that match. gitignore patterns."""
    prevent_update_git_ignored: bool = False
    """Block changes to files that git ignores."""
    prevent_generated_file_edits: bool = True
    """Block changes to files that are marked as generated, for example with `DO NOT EDIT`."""
    generated_file_message: str | None = None
    """Replaces the message; `{file_path}` and `{marker}` are filled in."""
    tool_usage_validation: list[ToolRule] = []
    protect_own_files: bool = True
    """New. Block changes to the policy, the client's settings and Fairlead's own files, and commands that switch the
    guards off."""
    integrity: IntegrityMode = "report"
    """New. What to do if a tool has changed a file of `uneditableFiles` in spite of the rules. Needs the daemon.

    `report`: tell the agent and the user. `restore`: also restore the file. `off`: do not check."""
    bash: Bash = field(default_factory=Bash)


class PermissionRequest(Section, frozen=True, kw_only=True):
    """Answers to the client's permission requests, by globs on the tool's name; `deny` is checked first."""

    default: str
    """`allow` or `deny`, in upper or lower case."""
    allow: list[Pattern] | None = None
    deny: list[Pattern] | None = None


# -- prompts -------------------------------------------------------------------------------------------


class ContextRule(Section, frozen=True, kw_only=True):
    """Text for the model if a prompt matches; `@path` in it is replaced by the text of that file."""

    pattern: Pattern
    """Regular expression, searched for in the prompt."""
    prompt: str
    enabled: bool = True
    case_insensitive: bool = False


class PromptCommand(Command, frozen=True, kw_only=True):
    """A command for prompts that match a regular expression; without one, for all prompts."""

    pattern: Pattern | None = None
    case_insensitive: bool = False


class SlashCommands(Section, frozen=True, kw_only=True):
    """Commands by the slash command in a prompt."""

    commands: dict[Pattern, list[Command]] = {}


class UserPromptSubmit(Section, frozen=True, kw_only=True):
    """Texts and commands for a prompt."""

    context_rules: list[ContextRule] = []
    commands: list[PromptCommand] = []
    slash_commands: SlashCommands | None = None


# -- other --------------------------------------------------------------------------------------------


class WorktreeCreate(Section, frozen=True, kw_only=True):
    """A command that creates the worktree instead of the client, and prints its path."""

    command: str | None = None
    timeout: Seconds | None = None


class Notifications(Section, frozen=True, kw_only=True):
    """Which events the user is notified of."""

    enabled: bool = False
    hooks: list[Pattern] = []
    """Names of events, or `*`."""
    show_errors: bool = False
    show_success: bool = False
    show_system_events: bool = True
    channels: list[Pattern] = []
    """New. Apprise URLs; `${NAME}` is replaced by an environment variable, so that the file contains no secret."""


class Attention(Section, frozen=True, kw_only=True):
    """New. How the user is notified that a session needs them. Only in the user-wide file."""

    desktop: bool = True
    channels: list[Pattern] = []
    """Apprise URLs; `${NAME}` is replaced by a variable of the daemon, which only keeps names like `FAIRLEAD_X`."""
    quiet_hours: Pattern | list[Pattern] = []
    """Such as `22:00-07:00`, in local time. A session that still needs you when they end is reported then."""
    grace: Annotated[int, Meta(ge=0, le=MAX_SECONDS)] = 2
    """Seconds to wait before notifying: a request that is answered within this time is not reported."""
    when_in_front: bool = False
    """Notify even if the session's tmux pane is the active one."""
    answer: bool = False
    """Permission requests can also be answered with `fairlead answer` and in `fairlead watch`."""
    answer_timeout: Annotated[int, Meta(ge=1, le=MAX_SECONDS)] = 3580
    """Seconds during which that is possible; after that, only the client can answer."""


class Mail(Section, frozen=True, kw_only=True):
    """New. How mail reaches an agent that has finished its work."""

    stay: StayMode | None = None
    """`always`: it waits for mail instead of stopping. `wake`: it stops, and mail wakes it. `no`: it stops.

    The default is the value of `fairlead hooks install --stay`, or else `no`."""
    wait: Annotated[int, Meta(ge=1, le=MAX_WAIT)] | None = None
    """Seconds that `always` waits before it reports that there is no mail, and waits again; 570 by default."""
    max_turns_per_thread: Annotated[int, Meta(ge=0)] | None = None
    """How many turns mail of one thread may cause without a prompt; then it waits for one. 20 by default; 0: no limit.

    A turn counts if mail wakes an agent, or keeps an agent going that has finished. A prompt resets the count."""
    max_turns_per_hour: Annotated[int, Meta(ge=0)] | None = None
    """How many turns mail may cause within an hour without a prompt; 60 by default; 0: no limit."""


class Journal(Section, frozen=True, kw_only=True):
    """New. What the journal keeps of the payloads of events, and for how long. Only in the user-wide file."""

    payloads: Literal["full", "redacted", "none"] = "redacted"
    """`redacted`: everything except what looks like a secret. `none`: only ids and names. `full`: everything."""
    redact: list[Pattern] = []
    """Regular expressions for more secrets, such as `corp-[0-9a-f]{32}`; the text that they match is replaced."""
    keep_days: Annotated[int, Meta(ge=1, le=3650)] = 30
    """Days after which events, with the history of their sessions, are deleted."""


class Team(Section, frozen=True, kw_only=True):
    """New. Settings of this host in its team of hosts. Only in the user-wide file."""

    events: CopyMode = "off"
    """Which events are copied, without secrets, to the history of the team: none (`off`), those `blocked`, or `all`."""
    keep_days: Annotated[int, Meta(ge=1, le=3650)] = 30
    """Days after which the relay deletes the copied events of this host."""
    give_up_days: Annotated[int, Meta(ge=1, le=365)] = 14
    """Days without contact to a host after which undelivered mail to that host bounces."""
    answers: bool | list[Pattern] = False
    """The hosts on which a person can answer the questions of this host's sessions: all, those listed by name, or none.
    Needs `attention.answer`."""


class PolicyTest(Section, frozen=True, kw_only=True):
    """New. A test of the policy: a payload and the expected answer."""

    name: str
    payload: dict[str, Any]
    expect: Literal["allow", "block", "ask", "warn"]
    reason: str | None = None
    """Text that the reason of the answer must contain."""


class Policy(Section, frozen=True, kw_only=True):
    """A policy file. Every section is optional."""

    stop: Stop = field(default_factory=Stop)
    stop_failure: ListSection = field(default_factory=ListSection)
    subagent_start: SubagentStart = field(default_factory=SubagentStart)
    subagent_stop: PatternSection = field(default_factory=PatternSection)
    skill_start: PatternSection = field(default_factory=PatternSection)
    pre_tool_use: PreToolUse = field(default_factory=PreToolUse)
    post_tool_use: PatternSection = field(default_factory=PatternSection)
    post_tool_use_failure: PatternSection = field(default_factory=PatternSection)
    permission_request: PermissionRequest | None = None
    permission_denied: PatternSection = field(default_factory=PatternSection)
    user_prompt_submit: UserPromptSubmit = field(default_factory=UserPromptSubmit)
    user_prompt_expansion: PatternSection = field(default_factory=PatternSection)
    session_start: PatternSection = field(default_factory=PatternSection)
    session_end: PatternSection = field(default_factory=PatternSection)
    setup: PatternSection = field(default_factory=PatternSection)
    notification: PatternSection = field(default_factory=PatternSection)
    teammate_idle: PatternSection = field(default_factory=PatternSection)
    task_created: PatternSection = field(default_factory=PatternSection)
    task_completed: PatternSection = field(default_factory=PatternSection)
    pre_compact: PatternSection = field(default_factory=PatternSection)
    post_compact: PatternSection = field(default_factory=PatternSection)
    config_change: PatternSection = field(default_factory=PatternSection)
    cwd_changed: PatternSection = field(default_factory=PatternSection)
    file_changed: PatternSection = field(default_factory=PatternSection)
    instructions_loaded: PatternSection = field(default_factory=PatternSection)
    elicitation: PatternSection = field(default_factory=PatternSection)
    elicitation_result: PatternSection = field(default_factory=PatternSection)
    worktree_create: WorktreeCreate = field(default_factory=WorktreeCreate)
    worktree_remove: PatternSection = field(default_factory=PatternSection)
    post_tool_batch: ListSection = field(default_factory=ListSection)
    message_display: MessageDisplay = field(default_factory=MessageDisplay)
    notifications: Notifications = field(default_factory=Notifications)
    attention: Attention = field(default_factory=Attention)
    mail: Mail = field(default_factory=Mail)
    journal: Journal = field(default_factory=Journal)
    team: Team = field(default_factory=Team)
    leases: LeaseMode = "warn"
    """New. What happens if an agent changes a file that another session has leased. Needs the daemon.

    `warn`: the agent gets a message with the holder of the lease. `block`: the call is blocked. `off`: nothing happens,
    and sessions that change the same file get no message about each other."""
    hooks: list[Pattern] = []
    """New. Python files with hooks of your own, relative to the policy file. `fairlead hooks add` adds one.

    Each must be trusted: `fairlead trust FILE`."""
    tests: list[PolicyTest] = []
    """New. Tests that `fairlead test` runs."""


class Layer(Struct, frozen=True):
    """The policy of one file. Its patterns and working folders are relative to `folder`."""

    file: str
    folder: str
    policy: Policy
    given: dict[str, Any] | None = None
    """The values that the file sets; `None` means all values that differ from the defaults."""
    trusted: bool = True
    """Whether it may loosen rules and have commands run. If not, its rules still apply."""
    runs_commands: bool = True
    """Whether its commands run if it is trusted: not if they would run twice, in a worktree and its main checkout."""
    digest: str = ""
    """SHA-256 of the file's bytes; "" if it was not read from a file."""

    @property
    def is_conclaude(self) -> bool:
        """Whether the file was written for conclaude, in whose file patterns `*` also matches slashes."""
        return self.file.rpartition("/")[2].startswith(".conclaude.")
