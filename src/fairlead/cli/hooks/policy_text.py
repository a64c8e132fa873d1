"""Adds a file to the list `hooks` of a policy, or removes it. Edits the text, so that all else keeps its bytes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_FLOW = re.compile(rb"(?m)^hooks:[ \t]*\[(?P<items>[^\]\n]*)\]")
_BLOCK = re.compile(rb"(?m)^hooks:[ \t]*(?:#.*)?\n(?P<items>(?:[ \t]*-.*(?:\n|\Z))*)")
_PLAIN = re.compile(r"[\w./~-]+")


def with_hook(text: bytes, name: str) -> bytes:
    """Return the text of a policy with one more file at the end of its list `hooks`, which is created if missing."""
    item = (name if _PLAIN.fullmatch(name) else "'{}'".format(name.replace("'", "''"))).encode()
    if flow := _FLOW.search(text):
        items = flow["items"].strip()
        return _replaced(text, flow, b", ".join(filter(None, (items, item))))
    if block := _BLOCK.search(text):
        items = block["items"]
        indent = re.match(rb"[ \t]*", items)[0] if items else b"  "  # type: ignore[index] # it matches anything
        end = b"" if not items or items.endswith(b"\n") else b"\n"
        return _replaced(text, block, items + end + indent + b"- " + item + b"\n")
    end = b"" if not text or text.endswith(b"\n") else b"\n"
    return text + end + b"hooks:\n  - " + item + b"\n"


def without_hook(text: bytes, names: Iterable[str]) -> bytes:
    """Return the text of a policy without some files in its list `hooks`. `names` are the files as they are listed."""
    unwanted = {name.encode() for name in names}
    if flow := _FLOW.search(text):
        kept = [item for item in flow["items"].split(b",") if _bare(item) not in unwanted]
        return _replaced(text, flow, b",".join(kept).strip())
    if block := _BLOCK.search(text):
        lines = block["items"].splitlines(keepends=True)
        kept = [line for line in lines if _bare(line.strip().removeprefix(b"-")) not in unwanted]
        if kept:
            return _replaced(text, block, b"".join(kept))
        return text[: block.start()] + text[block.end() :]
    return text


def _bare(item: bytes) -> bytes:
    """Return an item of the list without quotes and comment."""
    return re.sub(rb"\s#.*", b"", item).strip().strip(b"'\"")


def _replaced(text: bytes, match: re.Match[bytes], items: bytes) -> bytes:
    return text[: match.start("items")] + items + text[match.end("items") :]
