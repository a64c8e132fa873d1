"""Checks whether a Python file can be a hook file, without running it.

As a script, this prints why it cannot be one, if so. It is run by the interpreter that will load the file, so it
imports only the standard library.
"""

import ast
import sys
from collections.abc import Iterator

_MANAGER_NAME = "hooks"
_INDIRECT = frozenset({"__dict__", "__getattr__", "eval", "exec", "globals", "locals", "setattr", "vars"})
"""Names by which code can define a variable whose name is only in a text, so that it is not found in the source."""
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def find_problem(path: str) -> str:
    """Return why a file cannot be a hook file; "" if it may be one. Raise `OSError` if it cannot be read."""
    with open(path, "rb") as file:
        source = file.read()
    try:
        tree = ast.parse(source, path)
        compile(tree, path, "exec", dont_inherit=True)
    except SyntaxError as error:
        return f"{path}:{error.lineno or 1}: {type(error).__name__}: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return f"{path}:1: {type(error).__name__}: {error}"
    if any(_may_define(node) for node in ast.walk(tree)) or any(_defines(node) for node in _module_level(tree)):
        return ""
    return (
        f"{path}: nothing in it is named {_MANAGER_NAME!r}; a hook file has `{_MANAGER_NAME} = HookManager()`, and "
        f"hooks that are registered with `@{_MANAGER_NAME}.on(…)`"
    )


def _module_level(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that are not within a function, a class or a lambda."""
    waiting = list(ast.iter_child_nodes(tree))
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.AnnAssign) and node.value is None:
            continue  # an annotation alone defines nothing
        if not isinstance(node, _SCOPES):
            waiting += ast.iter_child_nodes(node)


def _defines(node: ast.AST) -> bool:
    if isinstance(node, ast.Name):
        return node.id == _MANAGER_NAME and isinstance(node.ctx, ast.Store)
    if isinstance(node, ast.alias):
        return (node.asname or node.name.partition(".")[0]) in {_MANAGER_NAME, "*"}
    # functions, classes, exceptions and patterns
    return _MANAGER_NAME in {getattr(node, "name", None), getattr(node, "rest", None)}


def _may_define(node: ast.AST) -> bool:
    """Return whether a node, in any scope, may define the manager's name in the module."""
    if isinstance(node, ast.Global):
        return _MANAGER_NAME in node.names
    return not _INDIRECT.isdisjoint(
        {getattr(node, "id", None), getattr(node, "attr", None), getattr(node, "name", None)}
    )


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr] # it is no StringIO
    sys.stdout.write(find_problem(sys.argv[1]))
