"""Text that no file or database accepts, made valid Unicode. Standard library only: it is used on every event."""

from __future__ import annotations


def replace_surrogates(text: str) -> str:
    """Join surrogate pairs into their characters and replace unpaired surrogates, which UTF-8 cannot encode."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
