"""Text that can be written: whatever came is kept, but for half a surrogate pair, which no file or socket takes."""

from __future__ import annotations


def writable(text: str) -> str:
    """Join surrogate pairs to their characters, and replace what has lost its other half."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
