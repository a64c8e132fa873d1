"""The guards on shell commands. The one on Bash is made with the first command: its modules are slow to import."""

from __future__ import annotations

from fairlead.lazy import cached_property
from fairlead.policy.guards._git_guard import GitGuard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fairlead.policy.guards._bash_guard import BashGuard
    from fairlead.policy.guards._file_rules import FileRules
    from fairlead.policy.guards._git_guard import WatchedFiles
    from fairlead.policy.guards._tool_rules import ToolRules
    from fairlead.policy.guards.self_protection._files import ProtectedOwnFiles


class ShellGuards:
    """The guard on commands, and the guard on git that it needs."""

    def __init__(
        self,
        tools: ToolRules,
        files: FileRules,
        own: ProtectedOwnFiles | None,
        watched: WatchedFiles | None = None,
        *,
        has_policy: bool,
    ) -> None:
        self._rules = tools, files, own
        self._has_policy = has_policy
        self.git = GitGuard(files, own, watched)

    @cached_property
    def bash(self) -> BashGuard:
        """The guard on commands."""
        from fairlead.policy.guards._bash_guard import BashGuard

        return BashGuard(*self._rules, self.git, has_policy=self._has_policy)
