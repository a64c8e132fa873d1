"""Reads the values of a client's JSON, which may be missing, of any type and of any length."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

MAX_ID = 200
MAX_TEXT = 200
MAX_PATH = 400


def object_of(document: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return the value of a key that should be an object; an empty object if it is not."""
    value = document.get(key)
    return value if isinstance(value, dict) else {}


def text_of(document: Mapping[str, Any], key: str) -> str:
    """Return the value of a key that should be a string; "" if it is not."""
    value = document.get(key)
    return value if isinstance(value, str) else ""
