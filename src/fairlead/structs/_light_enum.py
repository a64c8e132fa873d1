"""An `Enum` in Python, for names of events: importing the module `enum` takes 3 ms, a tenth of a whole decision."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


class EnumMeta(type):
    """The metaclass of `Enum`: makes a member of each text in the class whose name does not begin with `_`."""

    __members__: dict[str, Any]

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> EnumMeta:
        """Create a class and its members."""
        texts = {key: value for key, value in namespace.items() if type(value) is str and not key.startswith("_")}
        cls = super().__new__(mcs, name, bases, {key: item for key, item in namespace.items() if key not in texts})
        cls.__members__ = {}
        for key, value in texts.items():
            member: Any = object.__new__(cls)  # type: ignore[arg-type]
            member.__dict__.update(name=key, value=value)
            cls.__members__[key] = member
            setattr(cls, key, member)
        return cls

    def __call__(cls, value: object) -> Any:
        """Return the member with a value. Raise `ValueError` if there is none."""
        for member in cls:
            if value in {member, member.value}:
                return member
        raise ValueError(f"{value!r} is not a valid {cls.__name__}")

    def __getitem__(cls, name: str) -> Any:
        """Return the member with a name. Raise `KeyError` if there is none."""
        return cls.__members__[name]

    def __iter__(cls) -> Iterator[Any]:
        """Return the members, in their order."""
        return iter(cls.__members__.values())

    def __len__(cls) -> int:
        """Return how many members there are."""
        return len(cls.__members__)


class Enum(metaclass=EnumMeta):
    """The base of classes whose members are texts."""

    if TYPE_CHECKING:
        name: str
        value: str

    def __repr__(self) -> str:
        """Return the same text as `enum`."""
        return f"<{type(self).__name__}.{self.name}: {self.value!r}>"
