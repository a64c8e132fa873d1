"""The effects of programs that are not in the table: the words of their arguments that may name files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fairlead.policy.bash.programs._calls import Access, Effect, ProgramCall

if TYPE_CHECKING:
    from collections.abc import Iterator

_OUTPUTS: Final = {"-o", "-out", "--out", "--output", "--outfile", "--out-file", "--output-file"}


def any_program(call: ProgramCall) -> Iterator[Effect]:
    """Yield the effects of a program that is not in the table: writing its output file, if that exists."""
    for at, arg in enumerate(call.args):
        name, equals, value = arg.partition("=")
        if name in _OUTPUTS:
            yield Access("write", value if equals else "".join(call.args[at + 1 : at + 2]), if_exists=True)
