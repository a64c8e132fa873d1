"""The base class of clients: everything that Fairlead has to know about a coding agent whose hooks it answers.

A client is one object of a subclass of `Client`, named in one line of `fairlead.clients.CLIENTS`, or in an entry point
of the group `fairlead.clients` of another package. No code outside `fairlead.clients` knows a file name, a key, an
environment variable or a tool of a client, except through this class. A client does not have the features that its
subclass leaves out.

**Events.** `fairlead.events` is the vocabulary of all of Fairlead. `parse` turns the client's payload into it, `render`
turns an output into the client's answer. The hook that a client starts is `fairlead-hook <Event> --client <name>`, with
*our* name of the event: the launcher, which cannot ask Python, knows by it which failures must block.

**Tools.** An event keeps the names and inputs of the client's own tools, and policies match those names. `tool_call` is
the normal form that the guards check: the kind of the tool, the command, the code, and each path with what is done to
it.

**Variables.** The launcher sends a fixed list of variables to the daemon (`launcher/request.c`, `launcher/hook.py`). To
add a client, add to that list the variables that `variables` names, and the variable with the client's process id.
"""

from __future__ import annotations

from fairlead.clients._tool_calls import Choice, InlineCode, PathAccess, SubagentRequest, ToolCall
from fairlead.errors import UsageError
from fairlead.events import EVENT_NAMES, HookEvent, HookOutput, encode, parse
from fairlead.structs import LIGHT, Struct, force_setattr

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from fairlead.clients._install_types import Installer
    from fairlead.clients._reports import ClientSessionFile, StatusLine, SubagentResult, Task, TranscriptReader
    from fairlead.events import Event, PostToolUse, SubagentStart

if TYPE_CHECKING or not LIGHT:
    from typing import Any, TypeVar

    from fairlead.clients._tool_calls import PathMode, ToolKind

    E = TypeVar("E", bound="Event")

__all__ = [
    "NO_REASON",
    "Capabilities",
    "Choice",
    "Client",
    "ClientAnswer",
    "InlineCode",
    "OwnFiles",
    "PathAccess",
    "PathMode",
    "Program",
    "SubagentRequest",
    "ToolCall",
    "ToolKind",
    "Variables",
]

NO_REASON = "blocked by a hook that gave no reason"


class ClientAnswer(Struct, frozen=True):
    """The exit code and the output of the process that the client started."""

    exit_code: int = 0
    stdout: bytes = b""
    stderr: str = ""


class OwnFiles(Struct, frozen=True):
    """The files that decide which hooks a client runs. No agent may change them."""

    files: tuple[str, ...] = ()
    """Absolute paths."""
    folders: tuple[str, ...] = ()
    """Absolute paths of folders, each with a slash at its end."""
    project_files: tuple[str, ...] = ()
    """Paths relative to any folder that a session may run in: `.claude/settings.json`."""
    hints: tuple[str, ...] = ()
    """Words by which a command that cannot be analysed may mention one of these files."""


class Variables(Struct, frozen=True, kw_only=True):
    """The environment variables that a client sets for its hooks and commands; empty where it has none."""

    project_dir: str = ""
    """The variable with the folder of the session's project."""
    config_dir: str = ""
    """The variable that moves the client's own folder."""
    env_file: str = ""
    """The variable with the path of a file of `export` lines, which the commands of the session read."""
    plugin_root: str = ""
    """The variable with the folder of the plugin that a hook belongs to."""
    session_id: tuple[str, ...] = ()
    """Variables that contain the session's id, the most reliable first."""
    while_waiting: tuple[str, ...] = ()
    """Variables that the daemon needs from a hook that waits for mail."""


class Program(Struct, frozen=True, kw_only=True):
    """The client's own program, and how it is started without the hooks of the user."""

    names: tuple[str, ...] = ()
    """File names of the program."""
    packages: tuple[str, ...] = ()
    """Packages that contain it: their names are used by programs such as `npx`, and are part of its path."""
    sdk_packages: tuple[str, ...] = ()
    """Packages by which other programs, such as a script that an agent has written, start it."""
    options_without_hooks: frozenset[str] = frozenset()
    """Options that make it run other hooks than the installed ones, or none."""
    variables_without_hooks: frozenset[str] = frozenset()
    """Environment variables that make it run other hooks than the installed ones, or none."""
    off_switches: frozenset[str] = frozenset()
    """Keys of its settings that turn hooks off. They can also be arguments of its own commands."""
    command_variables: tuple[str, ...] = ()
    """Variables that it sets for each command that it runs, besides `Variables.session_id`."""

    def matches(self, words: Sequence[str]) -> bool:
        """Return whether a command line starts the program: by its name, or as a script of its package."""
        if any(word.rpartition("/")[2] in self.names for word in words[:1]):
            return True
        return any(f"/{package}/" in f"/{_without_version(word)}/" for package in self.packages for word in words[:4])


def _without_version(package: str) -> str:
    """Return a scoped package's name, or a path in it, without a version: `@scope/name@1.2` → `@scope/name`."""
    package = package.removeprefix("npm:")
    return package[:1] + package[1:].partition("@")[0] if package[:1] == "@" else package


class Capabilities(Struct, frozen=True, kw_only=True):
    """What the client can do with an answer."""

    blocks: frozenset[str] = frozenset({"PreToolUse"})
    """Events at which a block takes effect. At all other events, the user gets a message instead."""
    blocks_by_exit_code: frozenset[str] = frozenset({"PreToolUse"})
    """Events at which exit code 2 blocks."""
    waits_at_stop: bool = False
    """It waits for a Stop hook as long as that runs, so an agent can wait for mail in it (`mail.stay: always`)."""
    wakes: bool = False
    """A hook that runs in the background can start another turn (`mail.stay: wake`)."""
    asks_beside_hooks: bool = False
    """It asks the user while a hook of PermissionRequest runs, and takes the first answer (`attention.answer`)."""


class Client:
    """A coding agent. The defaults describe a client that uses our names of events, and supports nothing else."""

    name: str = ""
    """What `--client` takes."""
    title: str = "the client"
    """Its name in messages to the user."""
    event_names: Mapping[str, str] = {}
    """The client's name of an event → our name, where they differ."""
    capabilities: Capabilities = Capabilities()
    variables: Variables = Variables()
    program: Program = Program()

    # -- events: from the client's payload, and to its answer ------------------------------------------

    def event_named(self, name: str) -> HookEvent | None:
        """Return the event with a name, the client's or ours; `None` if there is none."""
        return HookEvent.find(self.event_names.get(name, name))

    def parse(self, payload: bytes, event: str) -> Event:
        """Return the event of a payload. `event` is the name that the hook was started with.

        Raise `PayloadError` for an invalid payload, and `UnknownEventError` for an unknown name. But an unknown name is
        accepted if the payload contains it, too: a newer client has sent it. Otherwise it is misspelt.
        """
        if event not in EVENT_NAMES and HookEvent.find(event) is None and (b'"%s"' % event.encode()) not in payload:
            HookEvent.parse(event)
        parsed = parse(payload, event)
        return parsed if parsed.client == self.name else self.own(parsed)

    def own(self, event: E) -> E:
        """Set an event's `client` to this client, whose tool names and inputs it has. Return the same event."""
        if event.client != self.name:
            force_setattr(event, "client", self.name)
        return event

    def render(self, event: Event, output: HookOutput) -> ClientAnswer:
        """Return the client's form of an output: what the hook's process prints, and its exit code."""
        if output.blocked and event.event_name in self.capabilities.blocks_by_exit_code:
            return ClientAnswer(2, stderr=output.reason or NO_REASON)
        return ClientAnswer()

    def to_json(self, event: Event, output: HookOutput) -> dict[str, Any]:
        """Return the client's form of an output as JSON, for hooks that are asked over HTTP. Empty: no opinion."""
        del event
        return {"decision": "block", "reason": output.reason or NO_REASON} if output.blocked else {}

    def is_gate(self, event: str, payload: bytes = b"") -> bool:
        """Return whether an event is `PreToolUse`, and so must be blocked if it cannot be decided.

        `event` is the expected name. A payload that contains the name of `PreToolUse` is enough, even an invalid one.
        """
        if self.event_named(event) is HookEvent.PreToolUse:
            return True
        names = ("PreToolUse", *(name for name, ours in self.event_names.items() if ours == "PreToolUse"))
        return any(b'"%s"' % name.encode() in payload for name in names)

    def refuse(self, event: str, payload: bytes, reason: str) -> ClientAnswer:
        """Return the answer to a payload that cannot be parsed. Fails closed on a gate."""
        return ClientAnswer(2 if self.is_gate(event, payload) else 1, stderr=reason)

    def refuse_json(self, event: str, reason: str) -> dict[str, Any]:
        """Return the JSON answer to an event that cannot be decided. Fails closed on a gate."""
        return {"decision": "block", "reason": reason} if self.is_gate(event) else {"systemMessage": reason}

    def command_payload(self, event: Event, payload: bytes) -> bytes:
        """Return what the policy's commands read on stdin: the event in our vocabulary."""
        del payload
        return encode(event)

    # -- tools -----------------------------------------------------------------------------------------

    tool_kinds: Mapping[str, ToolKind] = {}
    """The kind of each tool that the client is known to have."""
    same_tools: Mapping[str, str] = {}
    """Old name of a tool → its new name, and new name → old name. A rule with either name matches the tool."""
    questions: Mapping[str, str] = {}
    """Tool whose call is a question to the user → what it asks for, in a few words."""
    default_tools: Mapping[ToolKind, str] = {}
    """Kind of tool → the tool that examples use."""
    file_tools: frozenset[str] = frozenset()
    """Tools that cannot be called without a file."""
    command_keys: tuple[str, ...] = ("command",)
    """The keys of the command in the input of a `shell` tool."""
    path_keys: tuple[str, ...] = ("file_path", "path", "absolute_path", "dir_path", "file", "paths", "files")
    """The keys of paths in the input of any tool."""
    shell_mark: bytes = b'"command"'
    """Bytes that the payload of each shell command contains. The daemon decides large commands in a thread."""

    def kind_of(self, tool: str) -> ToolKind:
        """Return the kind of a tool."""
        return self.tool_kinds.get(tool, "other")

    def tool_call(self, tool: str, tool_input: Mapping[str, Any]) -> ToolCall:
        """Return the normal form of a tool call. Raise `TypeError` if the input does not have the tool's form."""
        from fairlead.clients._any_tool import tool_call

        return tool_call(self, tool, tool_input)

    def without_files(self, tool: str, tool_input: Mapping[str, Any], globs: Sequence[str]) -> dict[str, Any] | None:
        """Return the input of a search that also leaves out the files of `globs`; `None` if the tool cannot do that.

        `globs` have the syntax of ripgrep: `**/.env*`, `**/secrets/`.
        """
        del tool, tool_input, globs
        return None

    def tool_input(self, tool: str, *, command: str = "", path: str = "") -> dict[str, Any]:
        """Return an input by which a tool runs a command, or is used on a file: the reverse of `tool_call`."""
        del tool
        given = {self.command_keys[0]: command, self.path_keys[0]: path}
        return {key: value for key, value in given.items() if value}

    def file_of(self, tool_input: Mapping[str, Any]) -> str | None:
        """Return the one file that a call is about; `None` if there is none."""
        return next((path for key in self.path_keys if isinstance(path := tool_input.get(key), str)), None)

    def path_of(self, tool_input: Mapping[str, Any]) -> str:
        """Return the one file or folder that a call is about, for display; "" if there is none."""
        return self.file_of(tool_input) or ""

    def summary_of(self, tool_input: Mapping[str, Any]) -> str:
        """Return the value that says most about a call, for display."""
        return self.path_of(tool_input)

    def question_of(self, tool: str, tool_input: Mapping[str, Any]) -> str:
        """Return the question to the user about a call, for display. Details may follow the first line."""
        del tool
        return self.summary_of(tool_input)

    def choices_of(self, tool: str, tool_input: Mapping[str, Any]) -> tuple[Choice, ...]:
        """Return the choices that a call gives the user; empty if it can only be allowed or denied."""
        del tool, tool_input
        return ()

    def approval(self, tool: str, tool_input: Mapping[str, Any], answers: Sequence[str]) -> HookOutput:
        """Return the output that allows a call, after the user was asked. `answers` has one answer for each choice."""
        del tool, tool_input, answers
        return HookOutput.grant()

    def may_run_commands(self, tool: str) -> bool:
        """Return whether calls of a tool can have a shell command."""
        return self.kind_of(tool) == "shell"

    def may_change_files(self, tool: str) -> bool:
        """Return whether a tool may change files that its call does not name: it runs commands, or is not known."""
        return self.kind_of(tool) == "shell" or tool not in self.tool_kinds

    def mcp_prefix(self, server: str) -> str:
        """Return the prefix of the names of an MCP server's tools."""
        return f"mcp__{server}__"

    def subagent_request(self, tool_input: Mapping[str, Any]) -> SubagentRequest:
        """Return the subagent that the input of a `spawn` tool asks for."""
        del tool_input
        return SubagentRequest()

    def subagent_result(self, event: PostToolUse) -> SubagentResult | None:
        """Return the subagent that a call of a `spawn` tool started; `None` if the answer does not name it."""
        del event
        return None

    def background_task(self, event: PostToolUse) -> str:
        """Return the id of the background task in which a command continues to run; "" if it has ended."""
        del event
        return ""

    # -- sessions: what the client itself says about them ------------------------------------------------

    def find_sessions(self) -> list[ClientSessionFile]:
        """Return the sessions that the client lists as running; what cannot be read is left out."""
        return []

    def transcripts(self) -> TranscriptReader | None:
        """Return a reader of token usage from transcripts; `None` if the client has none that can be read."""
        return None

    interrupt_keys: tuple[str, ...] = ()
    """The keys, as tmux names them, that interrupt a session when pressed in its terminal; none if not known."""

    def transcript_text(self, path: str) -> Iterator[str]:
        """Yield the parts of a transcript as text for people. Raise `OSError` or `ValueError` if it cannot be read."""
        raise ValueError(f"the form of {self.title}'s transcripts is not known: {path}")

    def subagent_transcript(self, transcript: str, agent_id: str) -> str:
        """Return the path of a subagent's transcript, given that of its session; "" if it is not known."""
        del transcript, agent_id
        return ""

    def agent_transcript(self, event: SubagentStart) -> str:
        """Return the path of a starting subagent's transcript.

        It is from the event, or else where the client will create the file; "" if that is not known.
        """
        sent = event.agent_transcript_path
        return sent or self.subagent_transcript(event.transcript_path or "", event.agent_id)

    def config_folder(self, environ: Mapping[str, str], cwd: str) -> str:
        """Return the client's own folder for a process with this environment and working directory; "" if none."""
        del environ, cwd
        return ""

    def read_tasks(self, folder: str, session: str) -> tuple[Task, ...] | None:
        """Return the to-do list of a session from the client's own folder; `None` if it keeps none."""
        del folder, session
        return None

    def read_status_line(self, payload: bytes) -> StatusLine:
        """Parse the payload of a status line. Fields that are missing or malformed are left out."""
        from fairlead.clients._reports import StatusLine

        del payload
        return StatusLine()

    def export_session(self, env_file: str, session: str, cwd: str = "") -> bool:
        """Write a session's id into the file that its commands read. Return whether the file has the id now.

        `env_file` is the path of the file, relative to the folder `cwd` or absolute.
        """
        del env_file, session, cwd
        return False

    def is_headless(self, environ: Mapping[str, str]) -> bool:
        """Return whether the client runs without a user, and so waits for every hook before it ends."""
        del environ
        return False

    def is_automatic(self, prompt: str) -> bool:
        """Return whether the client itself wrote a prompt.

        It does so when a background task has ended, or when a hook wakes the session.
        """
        del prompt
        return False

    def ended_task(self, prompt: str) -> str:
        """Return the id of the background task whose end an automatic prompt announces; "" if none."""
        del prompt
        return ""

    def short_model(self, model: str) -> str:
        """Return a model's id without the parts that all models of the client share."""
        return model

    # -- settings and programs -------------------------------------------------------------------------

    def own_files(self, environ: Mapping[str, str]) -> OwnFiles:
        """Return the files that decide which hooks the client runs."""
        del environ
        return OwnFiles()

    def hook_files(self, environ: Mapping[str, str], folders: Iterable[str]) -> tuple[str, ...]:
        """Return the code files that hooks load (`--hooks`, `--rules`), by the settings of the user and `folders`."""
        del environ, folders
        return ()

    @property
    def installer(self) -> Installer:
        """The installer of our hooks in the client's settings. Raise `UsageError` if there is none."""
        raise UsageError(f"hooks cannot be installed in {self.title} yet; see its documentation of hooks")
