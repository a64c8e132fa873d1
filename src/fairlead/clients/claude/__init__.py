"""Claude Code: its events, tools, session files and settings. Other packages use only `CLIENT`."""

from __future__ import annotations

from fairlead.lazy import lazy_exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fairlead.clients.claude._client import CLIENT

__all__ = ["CLIENT"]

__getattr__ = lazy_exports(__name__, {"_client": ("CLIENT",)})
