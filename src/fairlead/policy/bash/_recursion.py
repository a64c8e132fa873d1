"""Where the analysis is recursive: a word contains commands, a command runs scripts, and a script contains commands.

Each part of the analysis knows those below it, and of those above it only an interface of this module. `Interpreter`
implements the first two and `CommandAnalyser` the third; both pass themselves to the parts that they are made of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tree_sitter import Node

    from fairlead.policy.bash.programs._calls import Effect
    from fairlead.policy.bash.programs._outputs import Output


class SubstitutionAnalyser(Protocol):
    """Analyses the commands in the words of a script."""

    def analyse_subshell(self, node: Node) -> None:
        """Analyse the statements below a node in a subshell. Raises `TooComplex`."""

    def analyse_substitution(self, node: Node) -> Output | None:
        """Analyse `$(…)`, `` `…` `` or `<(…)`; return its output, or `None` if it is not known. Raises `TooComplex`."""


class ScriptAnalyser(Protocol):
    """Analyses a text as a shell script."""

    def analyse_script(self, text: str, *, same_shell: bool, args: tuple[str, ...] = ()) -> None:
        """Analyse a script; in a subshell, unless it runs in the same shell. Raises `TooComplex`.

        `args`: its name and arguments, `$0`, `$1` and the following, for a script in a subshell.
        """


class EffectAnalyser(Protocol):
    """Analyses the effects of a program."""

    def apply_effects(self, effects: Iterable[Effect], program: str) -> None:
        """Collect effects, and analyse the commands and scripts that the program runs. Raises `TooComplex`."""
