"""Every command, by the sections of `fairlead --help`, with the module that has it. Plain data, which imports none.

To add a command, write a module with a Click command in it, and add its `Entry` here.
"""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    """One command, or a group of them."""

    name: str
    summary: str
    """The first sentence of the command's help."""
    target: str = ""
    """Where the Click command is, below `fairlead.cli`: `mail.inbox:inbox`. A group has none."""
    subcommands: tuple[Entry, ...] = ()
    default: str = ""
    """The subcommand that runs if none is named."""
    about: str = ""
    """What the help of a group says below its usage."""
    examples: tuple[str, ...] = ()
    """Of a group."""
    note: str = ""
    """What the help of a group says at its end."""
    is_hidden: bool = False


class Section(NamedTuple):
    """Commands below one heading of the help."""

    title: str
    entries: tuple[Entry, ...]


_INSTALL = Entry("install", "Add Fairlead's hooks to the client's settings.", "hooks.install:install")
_UNINSTALL = Entry("uninstall", "Remove Fairlead's hooks and restore the settings file.", "hooks.install:uninstall")

_HOOKS = (
    _INSTALL,
    Entry("status", "Show in which settings files the hooks are installed.", "hooks.status:status"),
    _UNINSTALL,
)

_DAEMON = (
    Entry("run", "Run the daemon in the foreground.", "daemon:run"),
    Entry("start", "Start the daemon in the background.", "daemon:start"),
    Entry("stop", "Stop the daemon after it has finished its current work.", "daemon:stop"),
    Entry("status", "Show whether the daemon runs, and its load.", "daemon:status"),
)

_SESSIONS = (
    Entry("list", "List the sessions and their subagents.", "sessions:list_sessions"),
    Entry("wait", "Wait until a session needs you, is idle, or has ended.", "sessions:wait"),
)

_TOPICS = (
    Entry("list", "List the topics and their subscribers.", "mail.topics:list_topics"),
    Entry("join", "Subscribe to a topic.", "mail.topics:join"),
    Entry("leave", "Unsubscribe from a topic.", "mail.topics:leave"),
)

_IDENTITY = (
    Entry("current", "Show your name, session and project.", "mail.identity:current"),
    Entry("save", "Save a note that `restore` shows again.", "mail.identity:save"),
    Entry("restore", "Show who you are, what you saved, and what you owe.", "mail.identity:restore"),
    Entry("rename", "Take another name.", "mail.identity:rename"),
)

SECTIONS = (
    Section(
        "Policy",
        (
            Entry("init", "Write a policy file to start from.", "policy.init:init"),
            Entry("validate", "Check a policy file and list every mistake.", "policy.validate:validate"),
            Entry("visualize", "Show which files each rule of a policy matches now.", "policy.visualize:visualize"),
            Entry("explain", "Show what a tool call does, and which rule decides it.", "policy.explain:explain"),
            Entry("test", "Run the tests of a policy file.", "policy.test:test"),
            Entry("trust", "Trust a policy file as it is now.", "policy.trust:trust"),
            Entry("untrust", "Take back the trust in a policy file.", "policy.trust:untrust"),
            Entry("schema", "Print the JSON Schema of the policy file.", "policy.schema:schema"),
        ),
    ),
    Section(
        "Install",
        (
            _INSTALL,
            _UNINSTALL,
            Entry(
                "hooks",
                "Install, inspect or remove the hooks.",
                subcommands=_HOOKS,
                about="Install, inspect or remove Fairlead's hooks in the client's settings.",
                examples=("fairlead hooks status",),
            ),
            Entry("doctor", "Diagnose the installation and say what to do.", "doctor:doctor"),
            Entry("completion", "Print the completion script of a shell.", "completion:completion"),
            Entry("demo", "Play a team of agents in a scratch home.", "demo.command:demo"),
            Entry("version", "Print the version.", "version:version"),
        ),
    ),
    Section(
        "Sessions",
        (
            Entry("watch", "Show every session and subagent, live.", "watch:watch"),
            Entry(
                "sessions",
                "List sessions, or wait for one.",
                subcommands=_SESSIONS,
                default="list",
                about="List the sessions and their subagents, or wait for one. Without a command it lists them.",
                examples=(
                    "fairlead sessions --tree",
                    "fairlead sessions wait --until attention && notify-send 'an agent needs you'",
                    "set -g status-right '#(fairlead sessions --line)'            in ~/.tmux.conf",
                ),
            ),
            Entry("events", "Show past events and their answers.", "events:events"),
        ),
    ),
    Section(
        "Mail",
        (
            Entry("agents", "List the agents you can write to.", "mail.agents:agents"),
            Entry("send", "Send a message to agents, a topic, everyone, or the user.", "mail.send:send"),
            Entry("inbox", "List your unread messages.", "mail.inbox:inbox"),
            Entry("read", "Show a whole message and mark it as read.", "mail.read:read"),
            Entry("reply", "Answer a message in its thread.", "mail.reply:reply"),
            Entry("status", "Show what is unread and owed, or the delivery status of a message.", "mail.status:status"),
            Entry("poll", "Show new mail; `--wait` blocks until there is some.", "mail.poll:poll"),
            Entry(
                "topics",
                "List, join or leave topics.",
                subcommands=_TOPICS,
                default="list",
                about=(
                    "List, join or leave topics. A message to #build goes to every subscriber of the topic build "
                    "except its sender. Without a command it lists them."
                ),
                examples=(
                    "fairlead topics join build",
                    "fairlead send '#build' \"The build is red since 4f3a1c.\"",
                ),
            ),
            Entry(
                "identity",
                "Show or change who you are.",
                subcommands=_IDENTITY,
                default="current",
                about="Show or change who you are. Without a command it shows your name, session and project.",
                examples=("fairlead identity", "fairlead identity rename reviewer"),
            ),
            Entry("heartbeat", "Mark the session as alive.", "mail.heartbeat:heartbeat"),
            Entry("tasks", "List the incomplete tasks of a session.", "mail.tasks:tasks"),
        ),
    ),
    Section(
        "Daemon",
        (
            Entry(
                "daemon",
                "Run, start, stop or inspect the daemon.",
                subcommands=_DAEMON,
                about=(
                    "Run, start, stop or inspect the daemon, which answers events in about a millisecond. Events start "
                    "it when needed, and it stops after half an hour without one, so you rarely need these commands. "
                    "FAIRLEAD_NO_DAEMON=1 keeps events from starting one; each is then evaluated by its own process."
                ),
                examples=("fairlead daemon start && fairlead daemon status",),
            ),
        ),
    ),
)

ROOT = Entry(
    "fairlead",
    "Fairlead, the hook runtime for coding agents.",
    note=(
        "`fairlead COMMAND --help` shows the options of a command, `fairlead EVENT --help` those of an event. "
        "An event is written as the client writes it: PreToolUse."
    ),
)
