"""Parses payloads into events, and encodes events as payloads. Invalid input raises `PayloadError`."""

from __future__ import annotations

from time import time

from fairlead.errors import PayloadError
from fairlead.events._agent_events import SubagentStart
from fairlead.events._event import DEFAULT_CLIENT, LOCAL_FIELDS, Event, OtherEvent
from fairlead.events._names import TYPES, HookEvent
from fairlead.lazy import cache
from fairlead.structs import LIGHT, NeedsMsgspec, ValidationError, convert, json_decoder
from fairlead.structs import decode_json as _decode
from fairlead.structs import encode_json as _encode
from fairlead.structs import force_setattr as _set

TYPE_CHECKING = False
if TYPE_CHECKING or not LIGHT:
    from collections.abc import Mapping
else:
    from _collections_abc import Mapping  # imported by `os` already; importing `collections` takes a millisecond
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from msgspec.structs import FieldInfo

_INFINITY = float("inf")
MAX_PAYLOAD = 64 * 1024 * 1024
"""The maximum size of a payload in bytes. A larger one is refused before it is decoded."""

ALIASES = {"subagent_type": "agent_type", "subagent_id": "agent_id"}
"""Field names of other documents and older tools → the client's names."""

_NAME_KEYS = ("hook_event_name", "hook_type", "event")
_IDENTITY = frozenset({"session_id", "transcript_path", "cwd", "agent_id", "agent_type", "tool_input"})
_MISSING = r"missing required field `(?P<field>\w+)`"
_MISTYPED = r"Expected `(?P<want>[^`]+)`, got `(?P<got>[^`]+)`(?: - at `\$\.(?P<field>[\w:]+)(?P<rest>.*)`)?"
_BAD_KEY = r"at `key` in `\$\.(?P<field>\w+)"
_WANTED = {"str": "a string", "object": "an object", "array": "a list", "bool": "true or false"}
_PLAIN_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "str | None": (str,),
    "dict[str, Any]": (dict,),
    "dict[str, Any] | None": (dict,),
    "list[Any] | None": (list,),
    "bool | None": (bool,),
    "int | float | None": (int, float),
}
"""Annotation → the accepted types of a JSON value, for processes that do not import msgspec."""


def parse(payload: bytes | bytearray | str | Mapping[str, Any], event: HookEvent | str | None = None) -> Event:
    """Parse a client's payload into a typed event.

    `event` is the expected event. The payload may omit the event's name; if it has a name, this must be the same.
    Unknown fields and events are kept. Raise `PayloadError` if the payload is invalid.
    """
    if type(payload) is bytes and not LIGHT:
        parsed = _parse_expected(payload, event)
        if parsed is not None:
            return parsed
    try:
        raw = _decode(payload) if type(payload) is bytes and len(payload) <= MAX_PAYLOAD else None
    except (ValueError, RecursionError):
        raw = None
    if type(raw) is not dict:
        raw = _read(payload)
    kind, name = _kind(raw, event)
    parsed = _convert(raw, kind, name)
    _check_text(parsed, parsed.required_text)
    return parsed


def to_payload(event: Event) -> dict[str, Any]:
    """Return the payload of an event as a dict: all parsed keys and values, and the event's name."""
    payload: dict[str, Any] = {}
    for field in event.__struct_fields__:
        if field not in LOCAL_FIELDS and (value := getattr(event, field)) is not None:
            payload[field] = value
    if isinstance(event, OtherEvent):
        del payload["event_name"]
    payload["hook_event_name"] = event.extra.get("hook_event_name", event.event_name)
    for key, value in event.extra.items():
        payload.setdefault(key, value)
    return payload


def encode(event: Event) -> bytes:
    """Encode the payload of an event as JSON. Raise `PayloadError` if it is nested too deeply."""
    return encode_json(to_payload(event))


def encode_json(value: Any) -> bytes:
    """Encode a value as JSON, including text with unpaired surrogates (clients cut strings by UTF-16 code units).

    Raise `PayloadError` if it is nested too deeply.
    """
    try:
        try:
            return _encode(value)
        except UnicodeEncodeError:
            import json

            return json.dumps(value, separators=(",", ":")).encode()
    except RecursionError:
        raise PayloadError("payload: nested too deeply") from None


def decode_json(data: bytes | bytearray | str) -> Any:
    """Decode JSON, including text with unpaired surrogates.

    Raise `ValueError` if it is invalid, and `RecursionError` if it is nested too deeply.
    """
    try:
        return _decode(data)
    except ValueError:
        text = data if isinstance(data, str) else data.decode()
        if "\\ud" not in text and "\\uD" not in text:
            raise
        import json

        return json.loads(text, parse_constant=_not_json, parse_float=_finite)


def validate_base_payload(event: Event) -> None:
    """Raise `PayloadError` if `session_id`, `transcript_path` or `cwd` is blank, has a NUL or is not valid Unicode."""
    _check_text(event, Event.required_text)


def validate_subagent_start_payload(event: SubagentStart) -> None:
    """Raise `PayloadError` like `validate_base_payload`, also for the fields that only a SubagentStart requires."""
    validate_base_payload(event)
    _check_text(event, SubagentStart.required_text[len(Event.required_text) :])


# -- payloads as the client sends them -------------------------------------------------------------------


_expected: dict[HookEvent | str | None, Callable[[bytes], Event]] = {}
"""Name of an event → the decoder of its payload."""


def _parse_expected(payload: bytes, name: HookEvent | str | None) -> Event | None:
    """Return the event of a payload whose keys and types are all known; `None` if it has to be read field by field.

    Raise `PayloadError` if a required text is blank, contains NUL or is not valid Unicode.
    """
    if name not in _expected and name in TYPES:
        _expected[name] = json_decoder(TYPES[name])
    decode = _expected.get(name)
    if decode is None or len(payload) > MAX_PAYLOAD or b"null" in payload or b"fairlead:" in payload:
        return None
    try:
        event = decode(payload)
    except (ValueError, RecursionError):
        return None
    if event.received is not None or event.extra or event.metadata is not None or event.client != DEFAULT_CLIENT:
        return None  # it names one of our own fields with escapes
    _set(event, "received", time())
    _check_text(event, event.required_text)
    return event


# -- reading -------------------------------------------------------------------------------------------


def _read(payload: object) -> dict[str, Any]:
    if isinstance(payload, bytes | bytearray | str):
        raw = _read_text(payload)
        if not isinstance(raw, dict):
            raise PayloadError(f"payload: expected a JSON object, got {_json_type(raw)}")
        return raw
    if not isinstance(payload, Mapping):
        raise PayloadError(f"payload: expected JSON or a mapping, got {type(payload).__name__}")
    if not all(isinstance(key, str) for key in payload):
        raise PayloadError("payload: every key must be a string")
    return dict(payload)


def _read_text(payload: bytes | bytearray | str) -> Any:
    if len(payload) > MAX_PAYLOAD:
        raise PayloadError(f"payload: {len(payload)} bytes, more than the {MAX_PAYLOAD} that are read")
    if not payload.strip():
        raise PayloadError("payload: empty; expected a JSON object")
    try:
        return decode_json(payload)
    except RecursionError:
        raise PayloadError("payload: nested too deeply") from None
    except UnicodeError:
        raise PayloadError("payload: not valid UTF-8") from None
    except ValueError as error:
        raise PayloadError(f"payload: not valid JSON: {error}") from None


def _not_json(number: str) -> float:
    raise ValueError(f"{number} is not JSON")


def _finite(number: str) -> float:
    return value if -_INFINITY < (value := float(number)) < _INFINITY else _not_json(number)


def _kind(raw: dict[str, Any], event: HookEvent | str | None) -> tuple[type[Event] | None, str]:
    """Return the type of a payload's event (`None` if it is unknown) and its name.

    `event` is the event that the caller expects, `None` for any. Raise `PayloadError` if neither the caller nor the
    payload names one, if they name different ones, or if the name is blank or no string.
    """
    name = raw.get("hook_event_name")
    known = TYPES.get(name) if type(name) is str else None
    if known is not None and (event is None or event in (name, known.event_type)):
        return known, known.__name__
    if known is None:
        name = _stated_name(raw)
    if event is not None:
        name = _agreed_name(name, event)
        known = None
    if not isinstance(name, str):
        raise PayloadError("missing required field `hook_event_name`", field="hook_event_name")
    if known is None and (found := HookEvent.find(name)):
        known = found.type
    return known, name


def _stated_name(raw: dict[str, Any]) -> str | None:
    for key in _NAME_KEYS:
        name = raw.get(key)
        if name is None or (key == "event" and not (isinstance(name, str) and HookEvent.find(name))):
            continue  # FileChanged has a field `event` of its own
        if not isinstance(name, str):
            raise PayloadError(f"{key}: expected a string, got {_json_type(name)}", field=key)
        if not name.strip():
            raise _blank(key)
        return name
    return None


def _agreed_name(stated: str | None, event: HookEvent | str) -> str:
    wanted = event.value if isinstance(event, HookEvent) else event
    if not wanted.strip():
        raise _blank("hook_event_name")
    if stated is None or stated == wanted:
        return wanted
    same = HookEvent.find(stated)
    if same is None or same is not HookEvent.find(wanted):
        raise PayloadError(f"hook_event_name: expected {wanted}, got {stated}", field="hook_event_name")
    return wanted


def _convert(raw: dict[str, Any], kind: type[Event] | None, name: str) -> Event:
    """Convert a payload in one step if all its keys and types are known, else field by field."""
    if LIGHT:
        return _convert_plain(raw, kind, name)
    if kind is None or raw.get("hook_event_name") != kind.__name__:
        return _convert_leniently(raw, kind, name)
    if None in raw.values() or not raw.keys() <= _known(kind):
        return _convert_leniently(raw, kind, name)
    try:
        event = convert(raw, kind)
    except (ValidationError, UnicodeEncodeError):
        return _convert_leniently(raw, kind, name)
    _set(event, "received", time())
    return event


def _convert_plain(raw: dict[str, Any], kind: type[Event] | None, name: str) -> Event:
    """Convert a payload without msgspec. Unknown keys and nulls go to `extra`. Raise `NeedsMsgspec` if it is needed."""
    if kind is None or raw.get("hook_event_name") != kind.__name__ or not raw.keys().isdisjoint(ALIASES):
        raise NeedsMsgspec(name)
    annotations: dict[str, str] = getattr(kind, "__struct_types__", {})
    fields = {key: raw[key] for key in annotations if key not in LOCAL_FIELDS and raw.get(key) is not None}
    if any(type(value) not in _PLAIN_TYPES.get(annotations[key], ()) for key, value in fields.items()):
        raise NeedsMsgspec(name)
    try:
        event = kind(**fields)
    except TypeError:
        raise NeedsMsgspec(name) from None
    _set(event, "received", time())
    _set(event, "extra", _extra(raw, kind, {}, name))
    return event


def _convert_leniently(raw: dict[str, Any], kind: type[Event] | None, name: str) -> Event:
    """Convert a payload with aliases, unknown keys, nulls or invalid values. Values that fit no field go to `extra`."""
    fields = raw
    if not raw.keys().isdisjoint(ALIASES):
        named = {field: raw[alias] for alias, field in ALIASES.items() if alias in raw}
        fields = {**named, **{key: value for key, value in raw.items() if key not in named or value is not None}}
    if kind is None:
        kind, fields = OtherEvent, {**fields, "event_name": name}
    values = {field: fields[field] for field in _payload_fields(kind) if field in fields}
    set_aside: dict[str, Any] = {}
    while True:  # each pass removes a field, or raises
        try:
            event = convert(values, kind)
            break
        except ValidationError as error:
            field = _optional_field_or_raise(str(error), kind)
        except UnicodeEncodeError:  # msgspec cannot put text with an unpaired surrogate into its error message
            field = _field_with_surrogate(values, kind)
        set_aside[field] = fields[field]
        del values[field]
    _set(event, "received", time())
    _set(event, "extra", _extra(raw, kind, set_aside, name))
    _set(event, "metadata", None)
    return event


def _extra(raw: dict[str, Any], kind: type[Event], set_aside: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the values that fit no field: unknown keys, nulls, and `set_aside`, the values of newer types.

    The event's name is added if the payload spells it in another way than the client.
    """
    known = _known(kind)
    extra = {key: value for key, value in raw.items() if key not in known or value is None}
    extra.update(set_aside)
    stated = raw.get("hook_event_name")
    if stated is not None and stated != (name if kind is OtherEvent else kind.__name__):
        extra["hook_event_name"] = stated
    return extra


@cache
def _known(kind: type[Event]) -> frozenset[str]:
    """Return the payload keys that have a field in the event type, and the event's name."""
    return frozenset({*kind.__struct_fields__, "hook_event_name"} - {*LOCAL_FIELDS, "event_name"})


@cache
def _payload_fields(kind: type[Event]) -> tuple[str, ...]:
    return tuple(field for field in kind.__struct_fields__ if field not in LOCAL_FIELDS)


# -- errors --------------------------------------------------------------------------------------------


def _optional_field_or_raise(message: str, kind: type[Event]) -> str:
    """Return the field that has an invalid value according to `message`, the text of a `ValidationError`.

    Raise `PayloadError` if the field is not optional, or the message names none.
    """
    import re

    if missing := re.search(_MISSING, message):
        raise _missing(kind, missing["field"])
    if bad_key := re.search(_BAD_KEY, message):
        raise PayloadError(f"{bad_key['field']}: every key must be a string", field=bad_key["field"])
    mistyped = re.search(_MISTYPED, message)
    if mistyped is None or mistyped["field"] is None:
        raise PayloadError(f"{kind.__name__}: {message}")
    field = mistyped["field"]
    if not _is_needed(field, kind):
        return field
    want = mistyped["want"].removesuffix(" | null")
    where = field + (mistyped["rest"] or "")
    raise PayloadError(f"{where}: expected {_WANTED.get(want, want)}, got {mistyped['got']}", field=field)


def _fields(kind: type[Event]) -> tuple[FieldInfo, ...]:
    from msgspec.structs import fields

    return fields(kind)


def _is_needed(field: str, kind: type[Event]) -> bool:
    return field in _IDENTITY or any(known.name == field and known.required for known in _fields(kind))


def _field_with_surrogate(values: dict[str, Any], kind: type[Event]) -> str:
    """Return the first field whose text msgspec cannot read.

    Raise `PayloadError` if the field is not optional, or there is none.
    """
    for known in _fields(kind):
        if known.name in values:
            try:
                convert(values[known.name], known.type)
            except UnicodeEncodeError:
                if _is_needed(known.name, kind):
                    raise PayloadError(f"{known.name}: not valid Unicode text", field=known.name) from None
                return known.name
            except ValidationError:
                continue
    raise PayloadError("payload: not valid Unicode text")


def _missing(kind: type[Event], field: str) -> PayloadError:
    alias = next((alias for alias, name in ALIASES.items() if name == field), None)
    also = f" (or `{alias}`)" if alias else ""
    return PayloadError(f"{kind.__name__}: missing required field `{field}`{also}", field=field)


def _check_text(event: Event, fields: tuple[str, ...]) -> None:
    for field in fields:
        value = getattr(event, field)
        if value is None or (value.isascii() and value.isprintable() and value.strip()):
            continue
        if not value or value.isspace():
            raise _blank(field)
        if "\0" in value:
            raise PayloadError(f"{field}: contains a NUL character", field=field)
        if not value.isascii():
            _refuse_surrogates(field, value)


def _blank(field: str) -> PayloadError:
    shown = "subagent_type" if field == "agent_type" else field
    return PayloadError(f"{shown} cannot be empty", field=field)


def _refuse_surrogates(field: str, value: str) -> None:
    """Raise `PayloadError` for unpaired surrogates: no file name, environment variable or database can store them."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise PayloadError(f"{field}: not valid Unicode text", field=field) from None


def _json_type(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")
