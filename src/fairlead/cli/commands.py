"""All commands by the sections of `fairlead --help`, each with its module. Plain data that imports none of them.

To add a command, write a module with a Click command in it, and add its `CommandEntry` here.
"""

from __future__ import annotations

from typing import NamedTuple


class CommandEntry(NamedTuple):
    """One command, or a group of them."""

    name: str
    summary: str
    """The first paragraph of the command's help, one sentence, which the list of commands shows."""
    target: str = ""
    """The Click command as `module:function` below `fairlead.cli`, such as `mail.inbox:inbox`; "" for a group."""
    subcommands: tuple[CommandEntry, ...] = ()
    default: str = ""
    """The subcommand of a group that runs if none is named; "" if one must be named."""
    about: str = ""
    """The text below the usage in the help of a group; "" to show the summary there."""
    examples: tuple[str, ...] = ()
    """The examples in the help of a group."""
    note: str = ""
    """The text at the end of the help of a group."""
    is_hidden: bool = False
    is_served: bool = False
    """Whether the daemon can run the command for a launcher. Such a command takes milliseconds, and reads its folder,
    environment, stdin and terminal from `invocation.current()`."""


class CommandSection(NamedTuple):
    """Commands below one heading of the help."""

    title: str
    entries: tuple[CommandEntry, ...]


_INSTALL = CommandEntry("install", "Add Fairlead's hooks to the client's settings.", "hooks.install:install")
_UNINSTALL = CommandEntry(
    "uninstall", "Remove Fairlead's hooks and restore the settings file.", "hooks.install:uninstall"
)

_HOOKS = (
    _INSTALL,
    CommandEntry("status", "Show in which settings files the hooks are installed.", "hooks.status:status"),
    _UNINSTALL,
    CommandEntry(
        "add", "Run hooks of your own: trust a Python file and list it in the policy.", "hooks.user_hooks:add"
    ),
    CommandEntry("remove", "Remove a file with hooks of your own from the policy.", "hooks.user_hooks:remove"),
    CommandEntry(
        "list", "List the files with hooks of your own, and whether they are trusted.", "hooks.user_hooks:list_files"
    ),
)

_DAEMON = (
    CommandEntry("run", "Run the daemon in the foreground.", "daemon:run"),
    CommandEntry("start", "Start the daemon in the background.", "daemon:start"),
    CommandEntry("stop", "Stop the daemon after it has finished its current work.", "daemon:stop"),
    CommandEntry("status", "Show whether the daemon runs, and its load.", "daemon:status", is_served=True),
)

_SESSIONS = (
    CommandEntry("list", "List the sessions and their subagents.", "sessions.listing:list_sessions", is_served=True),
    CommandEntry("wait", "Wait until a session needs you, is idle, or has ended.", "sessions.listing:wait"),
    CommandEntry("go", "Go to the tmux pane of a session.", "sessions.actions:go"),
    CommandEntry("mail", "Send a message to the agent of a session.", "sessions.actions:mail"),
    CommandEntry("interrupt", "Interrupt what a session does.", "sessions.actions:interrupt"),
    CommandEntry("end", "End a session.", "sessions.actions:end"),
    CommandEntry("transcript", "Show the conversation of a session in a pager.", "sessions.actions:transcript"),
    CommandEntry("copy", "Copy the id of a session to the clipboard.", "sessions.actions:copy"),
)

_TOPICS = (
    CommandEntry("list", "List the topics and their subscribers.", "mail.topics:list_topics", is_served=True),
    CommandEntry("join", "Subscribe to a topic.", "mail.topics:join", is_served=True),
    CommandEntry("leave", "Unsubscribe from a topic.", "mail.topics:leave", is_served=True),
)

_IDENTITY = (
    CommandEntry("current", "Show your name, session and project.", "mail.identity:current", is_served=True),
    CommandEntry("save", "Save a note that `restore` shows again.", "mail.identity:save", is_served=True),
    CommandEntry(
        "restore", "Show who you are, what you saved, and what you owe.", "mail.identity:restore", is_served=True
    ),
    CommandEntry("rename", "Take another name.", "mail.identity:rename", is_served=True),
)

_TEAM = (
    CommandEntry(
        "status", "Show the team: its relay, its hosts, and what is on its way.", "team.status:status", is_served=True
    ),
    CommandEntry("join", "Join a team of hosts, or found one.", "team.join:join"),
    CommandEntry("confirm", "Confirm that a host is a member of the team.", "team.hosts:confirm"),
    CommandEntry("remove", "Remove a host from the team permanently.", "team.hosts:remove"),
    CommandEntry("leave", "Leave the team.", "team.hosts:leave"),
    CommandEntry("schema", "Print the SQL of the relay's tables, for an administrator.", "team.schema:schema"),
)

SECTIONS = (
    CommandSection(
        "Policy",
        (
            CommandEntry("init", "Write a policy file to start from.", "policy.init:init"),
            CommandEntry("validate", "Check a policy file and list every mistake.", "policy.validate:validate"),
            CommandEntry(
                "visualize", "Show which files each rule of a policy matches now.", "policy.visualize:visualize"
            ),
            CommandEntry(
                "explain",
                "Show what a tool call does, and which rule decides it.",
                "policy.explain:explain",
                is_served=True,
            ),
            CommandEntry("test", "Run the tests of a policy file.", "policy.test:test"),
            CommandEntry("trust", "Trust a policy file, or a file with hooks, as it is now.", "policy.trust:trust"),
            CommandEntry("untrust", "Revoke the trust in a policy file.", "policy.trust:untrust"),
            CommandEntry("schema", "Print the JSON Schema of the policy file.", "policy.schema:schema", is_served=True),
        ),
    ),
    CommandSection(
        "Install",
        (
            _INSTALL,
            _UNINSTALL,
            CommandEntry(
                "hooks",
                "Install, inspect or remove the hooks, or add your own.",
                subcommands=_HOOKS,
                about="Install, inspect or remove Fairlead's hooks in the client's settings; add hooks of your own.",
                examples=("fairlead hooks status", "fairlead hooks add guards.py"),
            ),
            CommandEntry("doctor", "Diagnose the installation and say what to do.", "doctor:doctor"),
            CommandEntry("completion", "Print the completion script of a shell.", "completion:completion"),
            CommandEntry("demo", "Play a team of agents in a scratch home.", "demo.command:demo"),
            CommandEntry("version", "Print the version.", "version:version", is_served=True),
        ),
    ),
    CommandSection(
        "Sessions",
        (
            CommandEntry("watch", "Show every session and subagent, live.", "watch:watch"),
            CommandEntry(
                "sessions",
                "List sessions, wait for one, or act on one.",
                subcommands=_SESSIONS,
                default="list",
                about=(
                    "List the sessions and their subagents, wait for one, or act on one. Without a command it lists "
                    "them."
                ),
                examples=(
                    "fairlead sessions --tree",
                    "fairlead sessions go 5f0c8a4e",
                    "fairlead sessions wait --until attention && notify-send 'an agent needs you'",
                    "set -g status-right '#(fairlead sessions --line)'            in ~/.tmux.conf",
                ),
            ),
            CommandEntry(
                "answer",
                "Answer a question of a session, or list the open ones.",
                "sessions.answer:answer",
                is_served=True,
            ),
            CommandEntry(
                "history",
                "Show what sessions did and cost, including ended ones.",
                "sessions.history:history",
                is_served=True,
            ),
            CommandEntry("events", "Show past events and their answers.", "events:events", is_served=True),
        ),
    ),
    CommandSection(
        "Mail",
        (
            CommandEntry("agents", "List the agents you can write to.", "mail.agents:agents", is_served=True),
            CommandEntry(
                "send", "Send a message to agents, a topic, everyone, or the user.", "mail.send:send", is_served=True
            ),
            CommandEntry("inbox", "List your unread messages.", "mail.inbox:inbox", is_served=True),
            CommandEntry("read", "Show a whole message and mark it as read.", "mail.read:read", is_served=True),
            CommandEntry("reply", "Answer a message in its thread.", "mail.reply:reply", is_served=True),
            CommandEntry(
                "status",
                "Show what is unread and owed, or the delivery status of a message.",
                "mail.status:status",
                is_served=True,
            ),
            CommandEntry(
                "poll", "Show new mail; `--wait 10m` blocks until there is some.", "mail.poll:poll", is_served=True
            ),
            CommandEntry(
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
            CommandEntry(
                "identity",
                "Show or change who you are.",
                subcommands=_IDENTITY,
                default="current",
                about="Show or change who you are. Without a command it shows your name, session and project.",
                examples=("fairlead identity", "fairlead identity rename reviewer"),
            ),
            CommandEntry(
                "lease",
                "Take, list or release leases on the files that you work on.",
                "mail.lease:lease",
                is_served=True,
            ),
            CommandEntry("heartbeat", "Mark the session as alive.", "mail.heartbeat:heartbeat", is_served=True),
            CommandEntry("tasks", "List the incomplete tasks of a session.", "mail.tasks:tasks", is_served=True),
        ),
    ),
    CommandSection(
        "Team",
        (
            CommandEntry(
                "team",
                "Join several hosts into one team.",
                subcommands=_TEAM,
                default="status",
                about=(
                    "Join several hosts into one team, so that their agents can write to each other. A PostgreSQL "
                    "database relays the mail. A host works without the database, and sends its mail as soon as the "
                    "database can be reached again. Without a command, the status is shown."
                ),
                examples=(
                    "fairlead team join postgresql://fairlead@db.example.com/team",
                    "fairlead team status",
                    'fairlead send amber-fox@server "Is the migration done?"',
                ),
            ),
        ),
    ),
    CommandSection(
        "Daemon",
        (
            CommandEntry(
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

ROOT = CommandEntry(
    "fairlead",
    "Fairlead, the hook runtime for coding agents.",
    note=(
        "`fairlead COMMAND --help` shows the options of a command, `fairlead EVENT --help` those of an event. "
        "An event is written as the client writes it: PreToolUse."
    ),
)
