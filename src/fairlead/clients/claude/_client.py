"""The client class of Claude Code. Modules that few processes need are imported on use: each import costs time."""

from __future__ import annotations

from fairlead.clients.claude import _render, _tools
from fairlead.clients.claude._environment import PROGRAM, VARIABLES, config_folder, is_headless, own_files
from fairlead.clients.protocol import Capabilities, Client

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from fairlead.clients._install_types import Installer
    from fairlead.clients._reports import ClientSessionFile, StatusLine, SubagentResult, Task, TranscriptReader
    from fairlead.clients._tool_calls import Choice
    from fairlead.events import Event, HookOutput, PostToolUse

_AUTOMATIC = ("<task-notification>", "[SYSTEM NOTIFICATION")
"""The beginning of prompts that the client writes, for a finished background task or a hook that wakes the agent."""


class ClaudeCode(Client):
    """Claude Code, 2.1.139 and newer."""

    name = "claude"
    title = "Claude Code"
    capabilities = Capabilities(
        blocks=_render.BLOCKS,
        blocks_by_exit_code=_render.BLOCKS_BY_EXIT_CODE,
        waits_at_stop=True,
        wakes=True,
        asks_beside_hooks=True,
    )
    variables = VARIABLES
    program = PROGRAM

    # -- events ----------------------------------------------------------------------------------------

    render = staticmethod(_render.render)
    to_json = staticmethod(_render.to_json)
    refuse_json = staticmethod(_render.refuse_json)

    def command_payload(self, event: Event, payload: bytes) -> bytes:
        """Return the payload unchanged, because our names of events and fields are those of Claude Code."""
        del event
        return payload

    # -- tools -----------------------------------------------------------------------------------------

    tool_kinds = _tools.TOOL_KINDS
    same_tools = _tools.SAME_TOOLS
    questions = _tools.QUESTIONS
    default_tools = _tools.DEFAULT_TOOLS
    file_tools = _tools.FILE_TOOLS
    path_keys = _tools.PATH_KEYS
    shell_mark = b'"Bash"'
    tool_call = staticmethod(_tools.tool_call)
    without_files = staticmethod(_tools.without_files)
    file_of = staticmethod(_tools.file_of)
    path_of = staticmethod(_tools.path_of)
    summary_of = staticmethod(_tools.summary_of)
    subagent_request = staticmethod(_tools.subagent_request)

    def question_of(self, tool: str, tool_input: Mapping[str, Any]) -> str:
        """Return what a call asks the user about: its command, file with changes, plan, or questions."""
        from fairlead.clients.claude._questions import question_of

        return question_of(tool, tool_input)

    def choices_of(self, tool: str, tool_input: Mapping[str, Any]) -> tuple[Choice, ...]:
        """Return the questions of a call, with their options.

        Empty if it asks none, if one of them cannot be read, or if two have the same text.
        """
        from fairlead.clients.claude._questions import choices_of

        return choices_of(tool, tool_input)

    def approval(self, tool: str, tool_input: Mapping[str, Any], answers: Sequence[str]) -> HookOutput:
        """Return the output that allows a call, with the answers to its questions."""
        from fairlead.clients.claude._questions import approval

        return approval(tool, tool_input, answers)

    def may_run_commands(self, tool: str) -> bool:
        """Return whether calls of a tool can contain a shell command."""
        return self.kind_of(tool) == "shell" or tool.startswith(_tools.MCP_PREFIX)

    def subagent_result(self, event: PostToolUse) -> SubagentResult | None:
        """Return the subagent that a call has created; `None` if the response has no id of one."""
        from fairlead.clients._reports import SubagentResult

        response = event.tool_response
        agent_id = response.get("agentId") if type(response) is dict else None
        if type(agent_id) is not str or not agent_id:
            return None
        model = response.get("resolvedModel")
        return SubagentResult(agent_id, response.get("status") == "completed", model if type(model) is str else "")

    def background_task(self, event: PostToolUse) -> str:
        """Return the id of the background task that a call has started; "" if it has started none.

        "unknown" if the call runs in the background, and the response has no id.
        """
        response = event.tool_response
        task = response.get("backgroundTaskId") if type(response) is dict else None
        if type(task) is str and task:
            return task
        return "unknown" if event.tool_input.get("run_in_background") is True or event.tool_name == "Monitor" else ""

    # -- sessions --------------------------------------------------------------------------------------

    config_folder = staticmethod(config_folder)
    is_headless = staticmethod(is_headless)

    def find_sessions(self) -> list[ClientSessionFile]:
        """Return the sessions that the client lists as running."""
        from fairlead.clients.claude._session_files import find_session_files

        return find_session_files()

    def transcripts(self) -> TranscriptReader:
        """Return a reader of the client's transcripts."""
        from fairlead.clients.claude._transcripts import Transcripts

        return Transcripts()

    interrupt_keys = ("Escape",)

    def transcript_text(self, path: str) -> Iterator[str]:
        """Yield a transcript as text for people."""
        from fairlead.clients.claude._transcript_text import transcript_text

        return transcript_text(path)

    def subagent_transcript(self, transcript: str, agent_id: str) -> str:
        """Return the path of a subagent's transcript; "" if `transcript`, the path of its session's, is empty."""
        from fairlead.clients.claude._transcripts import subagent_transcript

        return subagent_transcript(transcript, agent_id)

    def read_tasks(self, folder: str, session: str) -> tuple[Task, ...] | None:
        """Return the to-do list of a session from the client's `folder`; `None` if the session has none."""
        from fairlead.clients.claude._tasks import read_tasks

        return read_tasks(folder, session)

    def read_status_line(self, payload: bytes) -> StatusLine:
        """Parse the payload of a status line; return an empty value if it is not valid."""
        from fairlead.clients.claude._status_line import read_status_line

        return read_status_line(payload)

    def export_session(self, env_file: str, session: str, cwd: str = "") -> bool:
        """Write a session's id to `env_file`, which its commands read. Return whether it is there now."""
        from fairlead.clients.claude._env_file import export_session

        return export_session(env_file, session, cwd)

    def is_automatic(self, prompt: str) -> bool:
        """Return whether the client wrote a prompt itself, for a task that has ended or a hook that wakes the agent."""
        return prompt.lstrip().startswith(_AUTOMATIC)

    def ended_task(self, prompt: str) -> str:
        """Return the id of the background task whose end an automatic prompt announces; "" if it has none."""
        _, _, rest = prompt.partition("<task-id>")
        task_id, end, _ = rest.partition("</task-id>")
        return task_id if end else ""

    def short_model(self, model: str) -> str:
        """Return a model's id without its maker: `claude-opus-4-1` → `opus-4-1`."""
        return model.removeprefix("claude-")

    # -- settings --------------------------------------------------------------------------------------

    own_files = staticmethod(own_files)

    def hook_files(self, environ: Mapping[str, str], folders: Iterable[str]) -> tuple[str, ...]:
        """Return the code files that installed hooks load."""
        from fairlead.clients.claude._hook_files import hook_files

        return hook_files(environ, folders)

    @property
    def installer(self) -> Installer:
        """The package that installs our hooks."""
        from fairlead.clients.claude import settings

        return settings


CLIENT = ClaudeCode()
