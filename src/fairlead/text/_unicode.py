"""Makes text valid Unicode, so that files and databases accept it. Standard library only: used on every event."""

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


def cut(text: str, max_length: int) -> str:
    """Return a text cut to a length, with unpaired surrogates replaced."""
    return replace_surrogates(text[:max_length] if len(text) > max_length else text)


def replace_surrogates_in(*texts: str) -> list[str]:
    """Return each of several texts as valid Unicode."""
    return [text if text.isascii() else replace_surrogates(text) for text in texts]
