"""Reads rules from files: settings, a plugin's `hooks.json`, the frontmatter of skills and subagents, YAML."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from fairlead.events import decode_json
from fairlead.hooks.rules._document import rules_from
from fairlead.hooks.rules._types import EntryError, Problem, RuleLocation, Rules

if TYPE_CHECKING:
    from collections.abc import Iterable

    import yaml

_MAX_BYTES = 4 * 1024 * 1024
_MAX_VALUES = 100_000
_MAX_DEPTH = 100
_HOOKS_KEY = re.compile(r"""hooks["']?\s*:""")


def load_rules(path: str | os.PathLike[str], *, plugin_root: str | os.PathLike[str] | None = None) -> Rules:
    """Return the rules of a file. Problems are not raised, but returned in `problems`.

    A `.json` file contains settings, or is a plugin's `hooks.json`. A `.md` file has YAML frontmatter. A `.yaml` or
    `.yml` file has a key `hooks`. `plugin_root` is the folder of the plugin that the file belongs to: see `rules_from`.
    """
    source = os.fspath(path)
    try:
        document = _read_file(source)
    except EntryError as error:
        return Rules(problems=(Problem(source, "$", str(error), dropped=True),))
    return rules_from(document, source, plugin_root=plugin_root)


def _read_file(source: str) -> object:
    suffix = os.path.splitext(source)[1].lower()
    text = _read_text_file(source)
    if not text.strip():
        return {}
    if suffix == ".json":
        return _parse_json(text)
    if suffix == ".md":
        return _parse_frontmatter(text)
    if suffix in {".yaml", ".yml"}:
        return _hooks_only(_parse_yaml(text))
    raise EntryError(RuleLocation(), f"expected a file named .json, .md, .yaml or .yml, not {suffix!r}")


def _read_text_file(source: str) -> str:
    try:
        with open(source, "rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # a path with NUL is a ValueError
        raise EntryError(RuleLocation(), f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > _MAX_BYTES:
        raise EntryError(RuleLocation(), f"larger than {_MAX_BYTES} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise EntryError(RuleLocation(), "not valid UTF-8") from None


def _parse_json(text: str) -> object:
    try:
        return decode_json(text)
    except RecursionError:
        raise EntryError(RuleLocation(), "nested too deeply") from None
    except ValueError as error:
        raise EntryError(RuleLocation(), _json_error(text, error)) from None


def _json_error(text: str, error: ValueError) -> str:
    """Return the message about invalid JSON. Parse it again by the slower `json`, which reports line and column."""
    import json

    try:
        json.loads(text)
    except json.JSONDecodeError as detail:
        return f"not valid JSON at {detail.lineno}:{detail.colno}: {detail.msg}"
    except (ValueError, RecursionError):
        pass
    return f"not valid JSON: {error}"


def _parse_frontmatter(text: str) -> object:
    first, *lines = text.split("\n")
    if first.rstrip() != "---":
        return {}
    for number, line in enumerate(lines):
        if line.rstrip() == "---":
            block = "\n".join(["", *lines[:number]])  # the empty line keeps the line numbers correct
            # Most skills have no hooks, and the client accepts descriptions that are not valid YAML.
            return _hooks_only(_parse_yaml(block)) if _HOOKS_KEY.search(block) else {}
    raise EntryError(RuleLocation(), "the frontmatter opened in line 1 has no closing line ---")


def _hooks_only(document: object) -> object:
    """Return a document with only its key `hooks`; {} if it has none or is null; unchanged if it is not an object."""
    if document is None:
        return {}
    if isinstance(document, Mapping):
        return {"hooks": document["hooks"]} if "hooks" in document else {}
    return document


def _parse_yaml(text: str) -> object:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _check_size(yaml.parse(text, loader))
        return yaml.load(text, loader)  # noqa: S506 - both loaders are safe ones
    except EntryError:
        raise
    except yaml.MarkedYAMLError as error:
        raise EntryError(RuleLocation(), f"not valid YAML{_yaml_position(error)}: {error.problem}") from None
    except Exception as error:  # for a date like 2024-99-99 PyYAML raises other errors
        raise EntryError(RuleLocation(), f"not valid YAML: {' '.join(str(error).split())}") from None


def _yaml_position(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark
    return "" if mark is None else f" at {mark.line + 1}:{mark.column + 1}"


def _check_size(events: Iterable[yaml.Event]) -> None:
    """Raise `EntryError` for a YAML document with more than `_MAX_DEPTH` levels or `_MAX_VALUES` values.

    Loading it could exhaust stack or memory: the C loader recurses without limit, and aliases multiply values. Raise it
    also for an alias within the value that it repeats.
    """
    import yaml

    sizes = [0]  # of the open collections
    anchors: list[str | None] = [None]
    known: dict[str | None, int] = {}
    for event in events:
        if isinstance(event, yaml.CollectionStartEvent):
            sizes.append(1)
            anchors.append(event.anchor)
        elif isinstance(event, yaml.CollectionEndEvent):
            known[anchors.pop()] = size = sizes.pop()
            sizes[-1] += size
        elif isinstance(event, yaml.AliasEvent) and event.anchor in anchors:
            raise EntryError(RuleLocation(), f"the alias *{event.anchor} is inside the value that it repeats")
        else:
            sizes[-1] += known.get(event.anchor, 1) if isinstance(event, yaml.AliasEvent) else 1
        if len(sizes) > _MAX_DEPTH:
            raise EntryError(RuleLocation(), "nested too deeply")
        if sizes[-1] > _MAX_VALUES:
            raise EntryError(
                RuleLocation(), f"contains more than {_MAX_VALUES} values, including those that aliases repeat"
            )
