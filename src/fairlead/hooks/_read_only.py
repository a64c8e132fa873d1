"""Read-only JSON containers, so that a hook can change a tool's input only by its output.

If a hook changed the input in place, later guards would check the changed input, but the client would run the original.
"""

from __future__ import annotations

from typing import Any, NoReturn

_CHANGED = "an event is read-only; return HookOutput.allow().with_updated_input({...}) to change the input"


def read_only(value: Any) -> Any:
    """Return a value with all dicts and lists in it copied to read-only ones.

    Raise `RecursionError` if the value is nested too deeply.
    """
    if isinstance(value, dict):
        return ReadOnlyDict({key: read_only(item) if type(item) in _NESTED else item for key, item in value.items()})
    if isinstance(value, list):
        return ReadOnlyList([read_only(item) if type(item) in _NESTED else item for item in value])
    return value


def _refuse(*_: Any, **__: Any) -> NoReturn:
    raise TypeError(_CHANGED)


class ReadOnlyDict(dict[str, Any]):
    """A dict that raises `TypeError` when it is changed. Copying or pickling it results in a plain dict."""

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


class ReadOnlyList(list[Any]):
    """A list that raises `TypeError` when it is changed. Copying or pickling it results in a plain list."""

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = extend = insert = remove = pop = clear = sort = reverse = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)


_NESTED = frozenset({dict, list})
