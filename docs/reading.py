"""Reads the code for the reference: what a class declares, with the texts below it, and signatures as written."""

# ruff: noqa: INP001 - a part of generate.py, no package

from __future__ import annotations

import ast
import inspect
import re
import sys
from importlib import import_module
from textwrap import dedent
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType


_LONG = 90


class Field(NamedTuple):
    """An attribute that a class declares, with the text below it."""

    name: str
    annotation: str
    default: str
    doc: str


class Member(NamedTuple):
    """A method or property."""

    name: str
    signature: str
    returns: str
    doc: str
    is_property: bool


def definition(thing: Any) -> Any:
    """Parse the source of a class or function."""
    return ast.parse(dedent(inspect.getsource(thing))).body[0]


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module, with those below an `if`."""
    for node in body:
        if isinstance(node, ast.If):
            yield from _statements([*node.body, *node.orelse])
        else:
            yield node


def assignment(name: str, package: ModuleType) -> str:
    """Find the line of a package that assigns a name."""
    homes = [module for path, module in sys.modules.items() if path.startswith(f"{package.__name__}.")]
    for home in homes:
        for node in _statements(ast.parse(inspect.getsource(home)).body):
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
                return ast.unparse(node).replace("'", '"')
            if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == name and node.value is not None:
                return f"{name} = {ast.unparse(node.value).strip(chr(39))}"
    raise SystemExit(f"{name}: neither class nor function, and its assignment was not found")


def fields(cls: type) -> list[Field]:
    """Give the fields that a class itself declares, without those of the class as such."""
    found = []
    body = definition(cls).body
    for node, after in zip(body, [*body[1:], None], strict=True):
        if not isinstance(node, ast.AnnAssign) or "ClassVar" in (annotation := ast.unparse(node.annotation)):
            continue
        name = ast.unparse(node.target)
        if not name.startswith("_"):
            found.append(Field(name, annotation.strip("'"), _default(node.value, cls), _text_below(after)))
    return found


def members(cls: type, *, private: bool = False) -> list[Member]:
    """Give the public methods and properties that a class itself defines; of overloads the last."""
    found: dict[str, Member] = {}
    for node in definition(cls).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (private or not node.name.startswith("_")):
            is_property = any(ast.unparse(decorator) == "property" for decorator in node.decorator_list)
            returns = "" if node.returns is None else ast.unparse(node.returns)
            doc = ast.get_docstring(node) or ""
            found[node.name] = Member(node.name, signature(node, cls), returns, doc, is_property)
    return list(found.values())


def signature(node: ast.FunctionDef | ast.AsyncFunctionDef, cls: type | None = None) -> str:
    """Write a signature as it stands in the source, without `self`, and with the values of constants."""
    args = node.args
    if cls is not None:
        args.args = args.args[1:]
    module = import_module("fairlead.hooks") if cls is None else sys.modules[cls.__module__]
    args.kw_defaults = [_valued(default, module) for default in args.kw_defaults]
    returns = "" if node.returns is None or ast.unparse(node.returns) == "Any" else f" -> {ast.unparse(node.returns)}"
    return f"{_called(node, cls)}({_spaced(ast.unparse(args))}){returns}"


def _called(node: ast.FunctionDef | ast.AsyncFunctionDef, cls: type | None) -> str:
    if isinstance(node, ast.AsyncFunctionDef):
        return f"await {node.name}"
    on_class = any(ast.unparse(decorator) == "classmethod" for decorator in node.decorator_list)
    return f"{cls.__name__}.{node.name}" if cls is not None and on_class else node.name


def _spaced(args: str) -> str:
    """Write defaults as people do, and long lists with one argument to a line."""
    args = args.replace("'", '"')
    args = re.sub(r"(?<=[\w\]'\"])=(?=[\w'\"(\[{])", " = ", args)
    if len(args) <= _LONG:
        return args
    depth, parts = 0, [""]
    for char in args:
        depth += (char in "([{") - (char in ")]}")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return "".join(f"\n    {part.strip()}," for part in parts) + "\n"


def _valued(default: ast.expr | None, module: ModuleType) -> ast.expr | None:
    value = getattr(module, default.id, None) if isinstance(default, ast.Name) else None
    return ast.Constant(value) if isinstance(value, int | float) else default


def _default(value: ast.expr | None, cls: type) -> str:
    if value is None:
        return "" if getattr(cls, "__total__", True) else "none"  # a TypedDict whose keys may be left out
    if isinstance(value, ast.Call):  # msgspec.field(default=…) or msgspec.field(default_factory=…)
        given = {keyword.arg: keyword.value for keyword in value.keywords}
        if "default" not in given and "default_factory" not in given:
            return ""
        value = given.get("default") or ast.Call(given["default_factory"], [], [])
    return f"`{ast.unparse(_valued(value, sys.modules[cls.__module__]) or value)}`"


def _text_below(node: ast.stmt | None) -> str:
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return " ".join(ast.literal_eval(node.value).split()) if is_text else ""  # type: ignore[union-attr]
