"""Claude Code's environment variables, and the paths of its own folder and settings."""

from __future__ import annotations

import os

from fairlead.clients.protocol import OwnFiles, Program, Variables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

PROJECT_DIR = "CLAUDE_PROJECT_DIR"
CONFIG_DIR = "CLAUDE_CONFIG_DIR"
ENV_FILE = "CLAUDE_ENV_FILE"
PLUGIN_ROOT = "CLAUDE_PLUGIN_ROOT"
ENTRYPOINT = "CLAUDE_CODE_ENTRYPOINT"
"""How the client was started: `cli` in a terminal, `sdk-…` without one."""
SESSION_ID = ("CLAUDE_CODE_SESSION_ID", "CLAUDE_SESSION_ID")
"""The client sets the first one. The second one is ours, exported through `ENV_FILE` for older clients."""

VARIABLES = Variables(
    project_dir=PROJECT_DIR,
    config_dir=CONFIG_DIR,
    env_file=ENV_FILE,
    plugin_root=PLUGIN_ROOT,
    session_id=SESSION_ID,
    while_waiting=(ENTRYPOINT, CONFIG_DIR),
)

CONFIG_FOLDER = ".claude"
SETTINGS = ("settings.json", "settings.local.json")
REMOTE_SETTINGS = "remote-settings.json"
"""The file in which the client stores settings that an administrator sends."""
MOVED_SETTINGS = ("CLAUDE_CODE_MANAGED_SETTINGS_PATH", "CLAUDE_CODE_REMOTE_SETTINGS_PATH")
MANAGED_FOLDERS = {"linux": "/etc/claude-code", "darwin": "/Library/Application Support/ClaudeCode"}
"""The folder for an administrator's settings, by platform."""

PROGRAM = Program(
    names=("claude",),
    packages=("@anthropic-ai/claude-code", "claude/versions"),  # the second is the folder of the native build
    sdk_packages=("claude_agent_sdk", "claude-agent-sdk", "claude_code_sdk", "@anthropic-ai/claude-code"),
    options_without_hooks=frozenset({"--settings", "--setting-sources", "--bare", "--safe-mode", "--restricted"}),
    variables_without_hooks=frozenset(
        {
            CONFIG_DIR,
            "CLAUDE_CODE_SIMPLE",
            "CLAUDE_CODE_SAFE_MODE",
            "CLAUDE_CODE_RESTRICTED",
            "CLAUDE_CODE_PERSONAL_HOOKS_OFF",
            *MOVED_SETTINGS,
        }
    ),
    off_switches=frozenset({"disableAllHooks", "allowManagedHooksOnly"}),
    command_variables=("CLAUDECODE",),
)
"""As of 2.1.325. `--dangerously-skip-permissions` is not among the options: hooks run under it."""


def config_folder(environ: Mapping[str, str], cwd: str = "/") -> str:
    """Return the client's own folder: `CLAUDE_CONFIG_DIR`, relative to `cwd`, or else `~/.claude`."""
    moved = environ.get(CONFIG_DIR, "")
    return os.path.join(cwd, moved) if moved else f"{environ.get('HOME', '')}/{CONFIG_FOLDER}"


def current_config_folder() -> str:
    """Return the client's own folder for the environment of this process."""
    return os.environ.get(CONFIG_DIR) or os.path.expanduser(f"~/{CONFIG_FOLDER}")


def own_files(environ: Mapping[str, str]) -> OwnFiles:
    """Return the files that decide which hooks the client runs."""
    home = environ.get("HOME") or os.path.expanduser("~")
    folders = (environ.get(CONFIG_DIR, ""), f"{home}/{CONFIG_FOLDER}")
    return OwnFiles(
        files=(
            *(f"{folder}/{name}" for folder in folders if folder for name in (*SETTINGS, REMOTE_SETTINGS)),
            *(path for name in MOVED_SETTINGS if (path := environ.get(name))),
        ),
        folders=(
            *(f"{folder}/" for folder in MANAGED_FOLDERS.values()),
            f"{home}/.local/share/claude/versions/",
            f"{home}/{CONFIG_FOLDER}/local/",
        ),
        project_files=tuple(f"{CONFIG_FOLDER}/{name}" for name in SETTINGS),
        hints=(CONFIG_FOLDER, *SETTINGS),
    )


def is_headless(environ: Mapping[str, str]) -> bool:
    """Return whether the client runs without a terminal (`-p`, the SDK). Then it waits for background hooks."""
    return environ.get(ENTRYPOINT, "").startswith("sdk")
