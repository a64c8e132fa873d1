"""JSON as msgspec reads and writes it, with the C functions of the module `json`.

`json` itself takes 2 ms to import. Input that msgspec would read differently raises `NeedsMsgspec`: text that is not
JSON, numbers beyond a float, surrogates. Only CPython has these functions, so light structs are only used there.
"""

from __future__ import annotations

from _json import encode_basestring, make_scanner

from fairlead.structs._errors import NeedsMsgspec
from fairlead.structs._light import Raw, Struct, encoded_names, is_default

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_WHITESPACE = " \t\n\r"
_INFINITY = float("inf")


def decode_json(data: bytes | bytearray | str) -> Any:
    """Decode JSON. Raise `NeedsMsgspec` if it is invalid, or has escaped surrogates."""
    try:
        text = data if isinstance(data, str) else data.decode()
        if "\\ud" in text or "\\uD" in text:
            raise NeedsMsgspec("surrogates")
        text = text.strip(_WHITESPACE)
        value, end = _scan(text, 0)
    except (ValueError, RecursionError, StopIteration) as error:
        raise NeedsMsgspec(str(error)) from None
    if end != len(text):
        raise NeedsMsgspec("text behind the value")
    return value


def _refuse(number: str) -> float:
    raise NeedsMsgspec(number)


def _finite(number: str) -> float:
    return value if -_INFINITY < (value := float(number)) < _INFINITY else _refuse(number)


class _Scanning:
    """The options of the scanner, as a `JSONDecoder` has them."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = staticmethod(_finite)
    parse_int = int
    parse_constant = staticmethod(_refuse)


_scan: Any = make_scanner(_Scanning)  # type: ignore[arg-type]  # it takes whatever has these attributes


def encode_json(value: Any) -> bytes:
    """Encode a value or a struct as JSON. Raise `UnicodeEncodeError` if a text has unpaired surrogates.

    Raise `NeedsMsgspec` for values that only msgspec can encode.
    """
    return _encode(value).encode()


def _encode(value: Any) -> str:
    if type(value) is str:
        return encode_basestring(value)
    if isinstance(value, Struct | Raw):
        return _encode_struct(value) if isinstance(value, Struct) else value.decode()
    if type(value) in {tuple, list}:
        return f"[{','.join(map(_encode, value))}]"
    if type(value) is dict and all(type(key) is str for key in value):
        return f"{{{','.join(f'{encode_basestring(key)}:{_encode(item)}' for key, item in value.items())}}}"
    if value is None or type(value) is bool:
        return {None: "null", True: "true", False: "false"}[value]
    if type(value) is int or (type(value) is float and -_INFINITY < value < _INFINITY):
        return repr(value)
    raise NeedsMsgspec(type(value).__name__)


def _encode_struct(value: Any) -> str:
    kind: Any = type(value)
    options, names = kind.__struct_options__, encoded_names(kind)
    tag = [f"{_encode(options['tag_field'])}:{_encode(options['tag'])}"] if "tag" in options else []
    fields = [
        f"{encode_basestring(encoded)}:{_encode(getattr(value, name))}"
        for name, encoded in names.items()
        if not (options.get("omit_defaults") and is_default(value, name))
    ]
    return f"{{{','.join(tag + fields)}}}"


def json_decoder(kind: Any) -> Callable[[bytes], Any]:
    """Return a function that wraps JSON as `Raw`, without a check; for another type, one that raises `NeedsMsgspec`."""
    return Raw if kind is Raw else _refuse_type


def _refuse_type(data: bytes) -> Any:
    raise NeedsMsgspec(data[:80])
