"""A `Struct` in Python, with the features of msgspec's that are needed to decide one event.

These are fields, defaults, equality and copies. The fields of a class are known by the text of their annotations, which
are never evaluated. Nothing is validated: values come from constructors, and from files that this version has written.
`tests/test_structs.py` compares this `Struct` with msgspec's.
"""

from __future__ import annotations

import sys

from fairlead.structs._errors import NeedsMsgspec
from fairlead.structs._msgpack import unpack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_NO_DEFAULT: Any = object()
_set = object.__setattr__
_MUTABLE = frozenset({list, dict, set})
_PUNCTUATION = str.maketrans("[]|,", "    ")


class ValidationError(ValueError):
    """Never raised here: an invalid value raises `NeedsMsgspec`."""


class Raw(bytes):
    """Encoded JSON that is part of a value."""

    __slots__ = ()


class _Field:
    __slots__ = ("default", "factory", "name")

    def __init__(self, default: Any, factory: Callable[[], Any] | None, name: str | None) -> None:
        self.default, self.factory, self.name = default, factory, name

    def value(self, name: str) -> Any:
        """Return the default of a field. Raise `TypeError` if it has none; `name` is the name of the field."""
        if self.factory is not None:
            return self.factory()
        if self.default is _NO_DEFAULT:
            raise TypeError(f"Missing required argument '{name}'")
        return self.default


def field(*, default: Any = _NO_DEFAULT, default_factory: Any = None, name: str | None = None) -> Any:
    """Return the description of a field: its default, and its name in encoded values."""
    return _Field(default, default_factory, name)


class StructMeta(type):
    """The metaclass of `Struct`: makes a slot for each annotated name, and keeps the default of the name."""

    __struct_fields__: tuple[str, ...]
    __struct_defaults__: dict[str, Any]
    """By field: its default, or the `_Field` that describes it."""
    __struct_options__: dict[str, Any]

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any) -> StructMeta:
        """Create a class. Its options are those of msgspec."""
        base: Any = bases[0] if bases else None
        own = namespace.get("__annotations__", {})
        if base:
            own = {key: annotation for key, annotation in own.items() if annotation[:8] != "ClassVar"}
        defaults = base.__struct_defaults__.copy() if base else {}
        for key in own:
            default = namespace.pop(key, _NO_DEFAULT)
            if type(default) in _MUTABLE:  # an empty list, dict or set must not be shared
                default = _Field(_NO_DEFAULT, type(default), None)
            defaults[key] = default
        if options.get("eq") is False and "__eq__" not in namespace:
            namespace |= {"__eq__": object.__eq__, "__hash__": object.__hash__}
        namespace["__slots__"] = tuple(own)
        namespace["__struct_options__"] = {**base.__struct_options__, **options} if base else options
        namespace["__struct_defaults__"] = defaults
        namespace["__struct_types__"] = {**(base.__struct_types__ if base else {}), **own}
        namespace["__struct_fields__"] = tuple(defaults)
        return super().__new__(mcs, name, bases, namespace)

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **_options: Any) -> None:
        """Accept the options, which `type` does not know."""


class Struct(metaclass=StructMeta):
    """A value with the fields that its class annotates."""

    if TYPE_CHECKING:
        __struct_fields__: tuple[str, ...]
        __struct_types__: dict[str, str]

    def __init__(self, *args: Any, **values: Any) -> None:
        """Set the fields to the given values or their defaults. Raise `TypeError` for a missing or unknown field."""
        kind = type(self)
        if args:
            if kind.__struct_options__.get("kw_only") or len(args) > len(kind.__struct_defaults__):
                raise TypeError(f"{kind.__name__}: extra positional arguments")
            values.update(zip(kind.__struct_defaults__, args, strict=False))
        for name, known in kind.__struct_defaults__.items():
            if name in values:
                _set(self, name, values.pop(name))
            elif known is _NO_DEFAULT:
                raise TypeError(f"Missing required argument '{name}'")
            else:
                _set(self, name, known.value(name) if type(known) is _Field else known)
        if values:
            raise TypeError(f"Unexpected keyword argument '{next(iter(values))}'")
        self.__post_init__()

    def __post_init__(self) -> None:
        """Check the fields. Does nothing here; subclasses override it."""

    def __setattr__(self, name: str, value: object) -> None:
        """Set a field. Raise `AttributeError` if the class is frozen."""
        if type(self).__struct_options__.get("frozen"):
            raise AttributeError(f"immutable type: '{type(self).__name__}'")
        _set(self, name, value)

    def __eq__(self, other: object) -> bool:
        """Compare all fields with those of a value of the same class."""
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__struct_fields__)

    def __hash__(self) -> int:
        """Return the hash of all fields."""
        return hash((type(self), *(getattr(self, name) for name in self.__struct_fields__)))

    def __repr__(self) -> str:
        """Return the call that would create this value."""
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__struct_fields__)
        return f"{type(self).__name__}({fields})"


force_setattr = _set


def replace(value: Any, /, **changes: Any) -> Any:
    """Return a copy in which some fields have other values."""
    return type(value)(**{**asdict(value), **changes})


def asdict(value: Any) -> dict[str, Any]:
    """Return the fields of a value by name. Structs in them are not converted."""
    return {name: getattr(value, name) for name in value.__struct_fields__}


def to_builtins(value: Any) -> Any:
    """Return a value as plain data, as it is encoded."""
    if isinstance(value, Struct):
        kind: Any = type(value)
        omits = kind.__struct_options__.get("omit_defaults")
        return {
            encoded: to_builtins(getattr(value, name))
            for name, encoded in encoded_names(kind).items()
            if not (omits and is_default(value, name))
        }
    if isinstance(value, dict):
        return {key: to_builtins(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_builtins(item) for item in value]
    return value


def encoded_names(kind: Any) -> dict[str, str]:
    """Return, by field, its name in encoded values."""
    camel = kind.__struct_options__.get("rename") == "camel"
    return {
        name: (known.name if type(known) is _Field else None) or (_camel(name) if camel else name)
        for name, known in kind.__struct_defaults__.items()
    }


def is_default(value: Any, name: str) -> bool:
    """Return whether a field has its default value, so that `omit_defaults` leaves it out."""
    known, item = type(value).__struct_defaults__[name], getattr(value, name)
    if type(known) is not _Field:
        return item is known or item == known
    return item == known.factory() if known.factory is not None else item is known.default or item == known.default


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


# -- construction from plain data ----------------------------------------------------------------------


def decode_msgpack(data: bytes, *, type: Any) -> Any:  # noqa: A002 - the name that msgspec uses
    """Decode what msgspec has encoded. Raise `ValueError` if it is damaged, and `NeedsMsgspec` like `convert`."""
    return convert(unpack(data), type)


def convert(value: Any, kind: Any) -> Any:
    """Return a value of a class from its encoded form. The types of plain values are not validated.

    Raise `NeedsMsgspec` for unknown or missing fields, or if the value is no dict (for an `array_like` class, no list).
    """
    if kind.__struct_options__.get("array_like"):
        if type(value) is not list:
            raise NeedsMsgspec(kind.__name__)
        given = dict(zip(kind.__struct_defaults__, value, strict=False))
    else:
        given = _given(value, kind)
    types = kind.__struct_types__
    for name, item in given.items():
        if type(item) in {dict, list}:
            given[name] = _convert_item(item, types[name], kind)
    try:
        return kind(**given)
    except TypeError:
        raise NeedsMsgspec(kind.__name__) from None


def _given(value: Any, kind: Any) -> dict[str, Any]:
    if type(value) is not dict:
        raise NeedsMsgspec(kind.__name__)
    fields = {encoded: name for name, encoded in encoded_names(kind).items()}
    if not value.keys() <= fields.keys():
        raise NeedsMsgspec(kind.__name__)
    return {fields[key]: item for key, item in value.items()}


def _convert_item(item: Any, annotation: str, owner: Any) -> Any:
    """Convert a dict or list by the text of its annotation: `Stop`, `list[Command]`, `dict[Pattern, list[Command]]`.

    `owner` is the class with the annotation.
    """
    kind = _kind_in(annotation, owner)
    if type(item) is dict:
        if annotation.startswith("dict["):
            inner = annotation[5:-1].partition(", ")[2]
            return {key: _convert_item(one, inner, owner) for key, one in item.items()} if kind else item
        return convert(item, kind) if kind else item
    if type(item) is not list:
        return item
    if kind and "[" not in annotation:  # an array-like struct
        return convert(item, kind)
    if kind:
        inner = annotation.partition("[")[2].rpartition("]")[0]
        item = [_convert_item(element, inner, owner) for element in item]
    return tuple(item) if annotation.startswith("tuple[") else item


def _kind_in(annotation: str, owner: Any) -> Any:
    """Return the first struct that an annotation of the class `owner` mentions; `None` if it mentions none."""
    known = sys.modules[owner.__module__].__dict__
    for word in annotation.translate(_PUNCTUATION).split():
        kind = known.get(word)
        if isinstance(kind, StructMeta):
            return kind
    return None
