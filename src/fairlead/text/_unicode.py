"""Makes text valid Unicode, so that files and databases accept it. Standard library only: used on every event."""

from __future__ import annotations


def replace_surrogates(text: str) -> str:
    """Return a text that UTF-8 can encode: surrogate pairs become their characters, other surrogates become �."""
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
    """Return the result of `replace_surrogates` for each text."""
    return [text if text.isascii() else replace_surrogates(text) for text in texts]
