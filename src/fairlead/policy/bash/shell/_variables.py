"""The effects of variables that make programs run something: `EDITOR`, `BASH_ENV`, `NODE_OPTIONS` and others."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from fairlead.policy.bash._words import is_unknown, plain, quote
from fairlead.policy.bash.programs._calls import Effect, RunFile, RunScript

if TYPE_CHECKING:
    from collections.abc import Iterator

_COMMANDS: Final = frozenset(
    {
        *("EDITOR", "VISUAL", "PAGER", "MANPAGER", "BROWSER", "FCEDIT", "PROMPT_COMMAND", "LESSOPEN", "LESSCLOSE"),
        *("GIT_EDITOR", "GIT_PAGER", "GIT_SEQUENCE_EDITOR", "GIT_SSH_COMMAND", "GIT_SSH", "GIT_EXTERNAL_DIFF"),
        *("GIT_ASKPASS", "SSH_ASKPASS", "GIT_PROXY_COMMAND", "SUDO_ASKPASS", "RUSTC_WRAPPER", "TAR_OPTIONS"),
    }
)
"""Variables whose value is a command."""
_FILES: Final = {"BASH_ENV": "sh", "ENV": "sh", "PYTHONSTARTUP": "python", "MAKEFILES": "make"}
"""Variables whose value is a file that is run."""
_OPTIONS: Final = {"NODE_OPTIONS": "node", "RUBYOPT": "ruby", "PERL5OPT": "perl"}
_LOADED: Final = re.compile(r"(?:--(?:require|import|loader|experimental-loader)[= ]|-r ?|-M)(\S+)")


def variable_effects(name: str, value: str) -> Iterator[Effect]:
    """Yield the commands and files that programs run because of an environment variable."""
    if is_unknown(value) or not value:
        return
    text = plain(value)
    if name in _COMMANDS:
        yield RunScript(text.lstrip("|").replace("%s", ""))
    elif name in _FILES:
        yield from (RunFile(quote(word), _FILES[name], []) for word in text.split())
    elif name in _OPTIONS:
        yield from (RunFile(quote(word), _OPTIONS[name], []) for word in _LOADED.findall(text))
