"""The output of hooks, and how several outputs merge into one. Merging is associative."""

from __future__ import annotations

from itertools import product

from fairlead.structs import LIGHT, Struct, force_setattr, replace

TYPE_CHECKING = False
if TYPE_CHECKING or not LIGHT:
    from typing import Any, Literal, TypeVar

    T = TypeVar("T")
    Permission = Literal["allow", "ask", "defer", "deny"]


_STRICTNESS: dict[str | None, int] = {None: 0, "allow": 1, "ask": 2, "defer": 3, "deny": 4}
_FLAG = bool, "True or False"
_TEXT = (str, type(None)), "a string"
_TYPES: dict[str, tuple[type | tuple[type, ...], str]] = {
    "continue_execution": _FLAG,
    "stop_reason": _TEXT,
    "suppress_logging": _FLAG,
    "system_message": _TEXT,
    "updated_input": ((dict, type(None)), "a dict"),
    "additional_context": _TEXT,
    "permission_reason": _TEXT,
    "extra": (dict, "a dict"),
}
_VALID_TYPES = frozenset(product(*(types if isinstance(types, tuple) else (types,) for types, _ in _TYPES.values())))
"""The exact types of the fields in nearly every output: one lookup is cheaper than eight `isinstance` checks."""


class HookOutput(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The output of a hook. `HookOutput()` has no opinion; only `block` and `deny` block."""

    continue_execution: bool = True
    """Whether what the event announces may go on; `False` blocks it."""
    stop_reason: str | None = None
    """The reason of the block."""
    suppress_logging: bool = False
    """Whether the event is kept out of the host's logs."""
    system_message: str | None = None
    """A message to the user."""
    updated_input: dict[str, Any] | None = None
    """The whole new input of the tool; `None` to leave it unchanged."""
    additional_context: str | None = None
    """Text that is added to the model's context."""
    permission: Permission | None = None
    """The permission decision on the tool call. `allow` skips the client's own permission prompt."""
    permission_reason: str | None = None
    """The reason of the permission decision; after merging, the reason of the strictest decision."""
    extra: dict[str, Any] = {}
    """Output keys of a client that have no field here. They are passed on unchanged."""

    def __post_init__(self) -> None:
        """Validate the fields, and set `continue_execution` to `False` if `permission` is `deny`.

        Raise `ValueError` for an unknown permission, and `TypeError` for a field of a wrong type.
        """
        if self.permission not in _STRICTNESS:
            raise ValueError(f"permission must be allow, ask, defer or deny, not {self.permission!r}")
        types = (
            type(self.continue_execution),
            type(self.stop_reason),
            type(self.suppress_logging),
            type(self.system_message),
            type(self.updated_input),
            type(self.additional_context),
            type(self.permission_reason),
            type(self.extra),
        )
        if types not in _VALID_TYPES:
            self._check_types()
        if self.permission == "deny" and self.continue_execution:
            force_setattr(self, "continue_execution", False)  # noqa: FBT003 - a setter

    def _check_types(self) -> None:
        for field, (types, wanted) in _TYPES.items():
            value = getattr(self, field)
            if not isinstance(value, types):
                raise TypeError(f"{field} must be {wanted}, not {type(value).__name__}")

    @classmethod
    def allow(cls) -> HookOutput:
        """Return an output without an opinion. To permit a tool call without asking the user, use `grant`."""
        return cls()

    @classmethod
    def block(cls, reason: str) -> HookOutput:
        """Return an output that blocks the action that the event announces."""
        return cls(continue_execution=False, stop_reason=reason)

    @classmethod
    def deny(cls, reason: str) -> HookOutput:
        """Return an output that denies the tool call; on other events it blocks."""
        return cls(continue_execution=False, stop_reason=reason, permission="deny", permission_reason=reason)

    @classmethod
    def ask(cls, reason: str) -> HookOutput:
        """Return an output that leaves the tool call to the user's decision."""
        return cls(permission="ask", permission_reason=reason)

    @classmethod
    def defer(cls, reason: str | None = None) -> HookOutput:
        """Return an output that ends the turn of a non-interactive client, and leaves the tool call to the host."""
        return cls(permission="defer", permission_reason=reason)

    @classmethod
    def grant(cls, reason: str | None = None) -> HookOutput:
        """Return an output that permits the tool call without asking the user."""
        return cls(permission="allow", permission_reason=reason)

    def with_system_message(self, message: str) -> HookOutput:
        """Return a copy with this message to the user, which replaces an earlier one."""
        return replace(self, system_message=message)

    def with_context(self, context: str) -> HookOutput:
        """Return a copy with this text for the model's context, which replaces an earlier one."""
        return replace(self, additional_context=context)

    def with_updated_input(self, updated_input: dict[str, Any]) -> HookOutput:
        """Return a copy that replaces the whole input of the tool."""
        return replace(self, updated_input=updated_input)

    def with_suppressed_logging(self) -> HookOutput:
        """Return a copy that keeps the event out of the host's logs."""
        return replace(self, suppress_logging=True)

    @property
    def blocked(self) -> bool:
        """Whether this output blocks."""
        return not self.continue_execution

    @property
    def reason(self) -> str | None:
        """The reason of the block, or else of the permission decision; `None` if there is none."""
        if self.continue_execution:
            return self.permission_reason
        return self.stop_reason if self.stop_reason is not None else self.permission_reason

    def merge(self, later: HookOutput) -> HookOutput:
        """Return this output merged with the output of a later hook.

        A block and the stricter permission win, and contexts are joined. If both set another field, `later` wins.
        """
        if later == NO_OPINION:
            return self
        if self == NO_OPINION:
            return later
        permission, reason = self._stricter(later)
        return HookOutput(
            continue_execution=self.continue_execution and later.continue_execution,
            stop_reason=_latest(self.stop_reason, later.stop_reason),
            suppress_logging=self.suppress_logging or later.suppress_logging,
            system_message=_latest(self.system_message, later.system_message),
            updated_input=_latest(self.updated_input, later.updated_input),
            additional_context=_joined(self.additional_context, later.additional_context),
            permission=permission,
            permission_reason=reason,
            extra={**self.extra, **later.extra},
        )

    def _stricter(self, later: HookOutput) -> tuple[Permission | None, str | None]:
        mine, theirs = _STRICTNESS[self.permission], _STRICTNESS[later.permission]
        if mine == theirs:
            return self.permission, _latest(self.permission_reason, later.permission_reason)
        stricter = self if mine > theirs else later
        return stricter.permission, stricter.permission_reason


def _latest(earlier: T | None, later: T | None) -> T | None:
    return earlier if later is None else later


def _joined(earlier: str | None, later: str | None) -> str | None:
    if earlier is None or later is None:
        return _latest(earlier, later)
    return f"{earlier}\n{later}"


NO_OPINION = HookOutput()
"""The output of a hook that has nothing to say: most hooks, at most events."""
