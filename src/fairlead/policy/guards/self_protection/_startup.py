"""Checks changes of files that a shell or a login reads when it starts, such as `.bashrc`.

An agent may edit these files. But afterwards the names of `fairlead` and of a client must still start the same
programs, and no variable may switch the hooks off.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fairlead.clients import Client
    from fairlead.policy.guards.self_protection._findings import Finding

_NAMES = (
    *(".bashrc", ".bash_profile", ".bash_login", ".bash_aliases", ".profile", ".zshrc", ".zprofile", ".zshenv"),
    *(".zlogin", ".kshrc", ".cshrc", ".tcshrc", ".pam_environment", ".xprofile", ".xsessionrc", "config.fish"),
    *("/etc/environment", "/etc/profile", "/etc/bash.bashrc", "/etc/zsh/zshenv", "/etc/zsh/zshrc"),
)
_FOLDERS = ("/profile.d/", "/environment.d/", "/fish/conf.d/", "/fish/functions/")
_LOADERS = r"LD_PRELOAD|LD_AUDIT|DYLD_INSERT_LIBRARIES"


def is_startup_file(path: str) -> bool:
    """Return whether a shell or a login reads a file when it starts."""
    if path.endswith(_NAMES):
        return True
    for folder in _FOLDERS:  # noqa: SIM110 - a generator costs more than what it does here
        if folder in path:
            return True
    return False


class StartupRules:
    """The rules on what may be written into a start-up file."""

    def __init__(self, clients: Iterable[Client]) -> None:
        import re

        clients = tuple(clients)
        programs = "|".join(
            [
                "fairlead-hook",
                "fairlead-python",
                "fairlead",
                *(re.escape(n) for client in clients for n in client.program.names),
            ]
        )
        names = "|".join(sorted(name for client in clients for name in client.program.variables_without_hooks))
        self._program = re.compile(
            rf"\b(?:alias|function)\s+(?:-\S+\s+)*({programs})\b|(?<![\w./-])({programs})\s*\(\)"
        )
        self._variable = re.compile(rf"(?:^|[\s;'\"])({names}|FAIRLEAD_\w+|{_LOADERS})(?:=|\s+\S)", re.MULTILINE)

    def findings(self, text: str) -> Iterator[Finding]:
        """Yield the forbidden effects that a text in a start-up file would have."""
        from fairlead.policy.guards.self_protection._findings import Finding

        if match := self._program.search(text):
            yield Finding(f"putting another program in the place of {match[1] or match[2]} at the start of a shell")
        if match := self._variable.search(text):
            yield Finding(f"setting {match[1]} for every later session")
