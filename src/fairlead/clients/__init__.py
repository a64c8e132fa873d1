"""The clients: coding agents whose hooks Fairlead answers. `protocol` has their base class.

Clients and their modules are imported on first use, so that deciding an event does not import the installer.
"""

from __future__ import annotations

import sys

from fairlead.errors import FairleadError
from fairlead.events import DEFAULT_CLIENT
from fairlead.lazy import lazy_exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fairlead.clients._ancestors import client_above
    from fairlead.clients._install_types import (
        EventSetting,
        InstalledHook,
        Installer,
        InstallPlan,
        InstallRequest,
        InstallStatus,
        Launcher,
        SettingsFile,
        StatusLineChoice,
        StatusLineKind,
        Version,
        format_version,
    )
    from fairlead.clients._installs import install_lock
    from fairlead.clients._other_agents import OTHER_AGENT_PACKAGES, OTHER_AGENTS
    from fairlead.clients._patches import patch_paths
    from fairlead.clients._programs import (
        COMPILE_LAUNCHER,
        LAUNCHER,
        PYTHON_LAUNCHER,
        find_launcher,
        is_git_ignored,
        is_program,
        is_python_launcher,
        launcher_folders,
    )
    from fairlead.clients._reports import (
        STARTING,
        ClientSessionFile,
        StatusLine,
        SubagentResult,
        Task,
        TranscriptReader,
        Usage,
    )
    from fairlead.clients._settings_file import InstallError
    from fairlead.clients._skill import SkillChange, put_skill, remove_skill
    from fairlead.clients._tool_calls import (
        Choice,
        InlineCode,
        PathAccess,
        PathMode,
        SubagentRequest,
        ToolCall,
        ToolKind,
    )
    from fairlead.clients.protocol import Client, ClientAnswer, OwnFiles

__all__ = [
    "CLIENTS",
    "COMPILE_LAUNCHER",
    "DEFAULT_CLIENT",
    "LAUNCHER",
    "OTHER_AGENTS",
    "OTHER_AGENT_PACKAGES",
    "PYTHON_LAUNCHER",
    "STARTING",
    "Choice",
    "Client",
    "ClientAnswer",
    "ClientSessionFile",
    "EventSetting",
    "InlineCode",
    "InstallError",
    "InstallPlan",
    "InstallRequest",
    "InstallStatus",
    "InstalledHook",
    "Installer",
    "Launcher",
    "OwnFiles",
    "PathAccess",
    "PathMode",
    "SettingsFile",
    "SkillChange",
    "StatusLine",
    "StatusLineChoice",
    "StatusLineKind",
    "SubagentRequest",
    "SubagentResult",
    "Task",
    "ToolCall",
    "ToolKind",
    "TranscriptReader",
    "UnknownClientError",
    "Usage",
    "Version",
    "client_above",
    "client_in",
    "client_named",
    "client_or_default",
    "find_launcher",
    "format_version",
    "install_lock",
    "is_git_ignored",
    "is_program",
    "is_python_launcher",
    "known_clients",
    "launcher_folders",
    "loaded_client",
    "patch_paths",
    "put_skill",
    "remove_skill",
    "session_in",
]

CLIENTS: dict[str, str] = {
    "claude": "fairlead.clients.claude:CLIENT",
}
"""The value of `--client` → `module:attribute` of the client object."""

ENTRY_POINTS = "fairlead.clients"
"""The group of entry points by which other packages add clients. It is searched for names that `CLIENTS` lacks."""

_MAX_MISSING = 64
_loaded: dict[str, Client] = {}
_missing: dict[str, Client] = {}


class UnknownClientError(FairleadError):
    """No client has this name."""


def client_named(name: str) -> Client:
    """Return the client with a name. Raise `UnknownClientError` if there is none."""
    client = _loaded.get(name)
    return client if client is not None else _load(name)


def client_or_default(name: str) -> Client:
    """Return the client with a name; a plain `Client`, without tools and files, if no installed client has it."""
    client = _loaded.get(name)
    if client is None:
        client = _missing.get(name)
    if client is not None:
        return client
    try:
        return _load(name)
    except UnknownClientError:
        from fairlead.clients.protocol import Client

        if len(_missing) >= _MAX_MISSING:
            _missing.clear()
        return _missing.setdefault(name, Client())


def known_clients() -> Iterator[Client]:
    """Yield all clients of `CLIENTS`, and the clients of other packages that this process has used before."""
    yield from [client_named(name) for name in dict.fromkeys((*CLIENTS, *_loaded))]


def loaded_client(name: str) -> Client | None:
    """Return a client that this process has used before; `None` if it would have to be imported first."""
    return _loaded.get(name)


def session_in(environ: Mapping[str, str]) -> str:
    """Return the session id that a client has set in an environment; "" if there is none."""
    return next((environ[name] for name in client_in(environ).variables.session_id if environ.get(name)), "")


def client_in(environ: Mapping[str, str]) -> Client:
    """Return the client that has set a session id in an environment; the default client if none has."""
    for client in known_clients():
        if any(environ.get(name) for name in client.variables.session_id):
            return client
    return client_named(DEFAULT_CLIENT)


def _load(name: str) -> Client:
    where = CLIENTS.get(name) or _entry_point(name)
    if where is None:
        raise UnknownClientError(f"expected one of {', '.join(CLIENTS)}, got {name!r}")
    module, _, attribute = where.partition(":")
    __import__(module)
    client: Client = getattr(sys.modules[module], attribute)
    return _loaded.setdefault(name, client)


def _entry_point(name: str) -> str | None:
    from importlib.metadata import entry_points

    return next((point.value for point in entry_points(group=ENTRY_POINTS, name=name)), None)


__getattr__ = lazy_exports(
    __name__,
    {
        "_ancestors": ("client_above",),
        "_install_types": (
            "EventSetting",
            "InstallPlan",
            "InstallRequest",
            "InstallStatus",
            "InstalledHook",
            "Installer",
            "Launcher",
            "SettingsFile",
            "StatusLineChoice",
            "StatusLineKind",
            "Version",
            "format_version",
        ),
        "_installs": ("install_lock",),
        "_other_agents": ("OTHER_AGENTS", "OTHER_AGENT_PACKAGES"),
        "_programs": (
            "COMPILE_LAUNCHER",
            "LAUNCHER",
            "PYTHON_LAUNCHER",
            "find_launcher",
            "is_git_ignored",
            "is_program",
            "is_python_launcher",
            "launcher_folders",
        ),
        "_reports": (
            "STARTING",
            "ClientSessionFile",
            "StatusLine",
            "SubagentResult",
            "Task",
            "TranscriptReader",
            "Usage",
        ),
        "_settings_file": ("InstallError",),
        "_skill": ("SkillChange", "put_skill", "remove_skill"),
        "_patches": ("patch_paths",),
        "_tool_calls": ("Choice", "InlineCode", "PathAccess", "PathMode", "SubagentRequest", "ToolCall", "ToolKind"),
        "protocol": ("ClientAnswer", "Client", "OwnFiles"),
    },
)
