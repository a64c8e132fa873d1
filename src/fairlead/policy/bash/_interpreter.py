"""The walk through the tree of a shell command: each statement in the order in which the shell would meet it."""

from __future__ import annotations

import re
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import TYPE_CHECKING, Final

from tree_sitter import Language, Parser

from fairlead.policy.bash._collector import Collector, merge
from fairlead.policy.bash._commands import NO_INPUT, REDIRECTS, Input, TooMuch
from fairlead.policy.bash._expansion import WORDS, Scope
from fairlead.policy.bash._redirects import Redirects
from fairlead.policy.bash._words import TooManyWords, is_unknown, store
from fairlead.policy.bash.programs._calls import Use

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

    from tree_sitter import Node

    from fairlead.policy.bash._types import Analysis

LONGEST: Final = 64 * 1024
_ASCII: Final = bytes(range(128)) + b"u" * 128
_DEEPEST_SCRIPT: Final = 5
_DEEPEST_NODE: Final = 60
_MOST_STATEMENTS: Final = 20_000
_SLOW: Final = re.compile(r"\||\$\{|<<|`")
"""The parser takes quadratic time for these: 30 000 pipes took it 50 s."""
_MOST_SLOW: Final = 2_000
_PRIVATE: Final = re.compile("[\U00100000-\U0010ffff]")
_PIPED: Final = Input(piped=True)
_TAKE_WORDS: Final = {"command", "list", "pipeline"}
_LEAVING: Final = {"exit", "return", "break", "continue"}


def walk(command: str) -> Analysis:
    """Take a command apart; see `analyse`."""
    record = Collector()
    slow = len(_SLOW.findall(command)) if len(command) > _MOST_SLOW else 0
    if len(command) > LONGEST or slow > _MOST_SLOW:
        record.doubt(f"the command is too long to be understood ({len(command)} characters)")
        return record.result()
    if not command.isascii() and _PRIVATE.search(command):
        record.doubt("the command holds characters that mean nothing (Unicode's private plane)")
        command = _PRIVATE.sub("\ufffd", command)
    try:
        Interpreter(command, record, Scope()).whole()
    except (TooMuch, RecursionError):
        record.doubt("the command is nested too deep, or too long, to be understood")
    except TooManyWords:
        record.doubt("the braces in the command make too many words")
    return record.result()


def _heredocs(node: Node) -> Iterator[Node]:
    for child in node.children:
        if child.type == "heredoc_redirect":
            yield child
        yield from _heredocs(child)


@cache
def _parser() -> Parser:
    return Parser(Language(_grammar().language()))


def _tree(source: bytes) -> Node:
    """Parse. The grammar's scanner looks characters above 255 up beyond the end of C's tables, and may crash.

    A shell takes them for letters, so the parser is shown letters, byte for byte.
    """
    return _parser().parse(source.translate(_ASCII)).root_node


def _grammar() -> ModuleType:
    """Load the grammar's binary alone: the package around it costs 11 ms for queries that are not used here."""
    package = PathFinder.find_spec("tree_sitter_bash")
    places = package.submodule_search_locations if package else None
    spec = PathFinder.find_spec("tree_sitter_bash._binding", places)
    if spec is None or spec.loader is None:
        raise ImportError("tree_sitter_bash is not installed")
    binding = module_from_spec(spec)
    spec.loader.exec_module(binding)
    return binding


class Interpreter(Redirects):
    """One text, walked once; scripts inside it are walks of their own with the same record."""

    def __init__(self, command: str, record: Collector, scope: Scope, depth: int = 0) -> None:
        super().__init__(command.encode("utf-8", "replace"), record, scope)
        self.depth = depth
        self.level = 0

    def whole(self) -> None:
        """Walk it all."""
        if self.depth > _DEEPEST_SCRIPT:
            raise TooMuch
        root = _tree(self.source)
        if root.has_error and b"<<" in self.source:
            root = self._straightened(root)
        if root.has_error:
            self._errors(root)
        self.sequence(root)

    def _straightened(self, root: Node) -> Node:
        """Read again with each here-document as a here-string, behind which the parser understands more."""
        source = self.source
        for node in reversed(list(_heredocs(root))):
            parts = {child.type: child for child in node.children}
            start, body, end = (parts.get(f"heredoc_{name}") for name in ("start", "body", "end"))
            if start is None or body is None or end is None:
                return root
            text = self.heredoc(node).encode()
            source = source[: body.start_byte] + source[end.end_byte :]
            here = b"<<< '" + text.replace(b"'", b"'\\''") + b"' "
            source = source[: node.start_byte] + here + source[start.end_byte :]
        again = _tree(source)
        if again.has_error:
            return root
        self.source = source
        return again

    def _errors(self, node: Node) -> None:
        if node.is_error or node.is_missing:
            around = self.source[max(node.start_byte - 1, 0) : node.end_byte + 1]
            if b"<>" not in around or len(around) > len("x<>x"):  # the parser does not know `<>`
                self._not_understood(node if node.end_byte > node.start_byte else node.parent or node)
                return
        for child in node.children:
            if child.has_error:
                self._errors(child)

    def _not_understood(self, node: Node) -> None:
        near = " ".join(self.text(node)[:40].split()) or "the end"
        self.record.doubt(f"the shell syntax is not understood near: {near}")

    def script(self, text: str, *, same_shell: bool) -> None:
        """Walk a text inside this one; only `eval` runs it in the same shell."""
        inner = Interpreter(text, self.record, self.scope, self.depth + 1)
        if same_shell:
            inner.whole()
            return
        kept = self.scope.fork()
        inner.whole()
        self.scope.back(kept)

    def statement(self, node: Node, given: Input = NO_INPUT) -> None:
        """One statement, of whatever kind."""
        self.scope.statements += 1
        self.level += 1
        if self.level > _DEEPEST_NODE or self.scope.statements > _MOST_STATEMENTS:
            raise TooMuch
        kind = node.type
        handler = _STATEMENTS.get(kind)
        if handler is not None:
            handler(self, node, given)
        elif kind in WORDS:
            self.piece(node, quoted=False)
        elif node.child_count:
            self.sequence(node, given)
        self.level -= 1

    def sequence(self, node: Node, given: Input = NO_INPUT) -> None:
        """Statements one after the other: where one may fail to change the folder, both folders are possible."""
        scope, sure = self.scope, self.scope.sure
        scope.sure = sure and node.type == "program"
        for child in node.children:
            if not child.is_named:
                continue
            before, scope.entered = scope.places, None
            self.statement(child, given)
            if scope.places is not before:
                scope.places = merge(scope.places, before, scope.entered if self._begins_with_cd(child) else None)
        scope.sure = sure

    def _begins_with_cd(self, node: Node) -> bool:
        while node.type in {"list", "redirected_statement"}:
            node = node.children[0]
        return node.type == "command" and self.text(node.children[0]) in {"cd", "pushd"}

    def apart(self, node: Node, given: Input = NO_INPUT) -> None:
        """Statements in a shell of their own: what they set is forgotten."""
        kept = self.scope.fork()
        self.sequence(node, given)
        self.scope.back(kept)

    def compound(self, node: Node, given: Input) -> None:
        opening = node.children[0]
        if opening.type == "{" and not self.source[opening.end_byte : opening.end_byte + 1].isspace():
            self._not_understood(node)
        self.sequence(node, given)

    def loop(self, node: Node, given: Input) -> None:
        """Twice, if the first round changes what the second would do."""
        if node.type == "for_statement":
            self._loop_variable(node)
        before = (dict(self.scope.variables), self.scope.places)
        self.sequence(node, given)
        if before != (self.scope.variables, self.scope.places):
            self.sequence(node, given)

    def _loop_variable(self, node: Node) -> None:
        name = node.child_by_field_name("variable")
        words = self.words([child for child in node.children if child.type in WORDS])
        if name is not None:
            known = words and not any(map(is_unknown, words))
            self.scope.variables[self.text(name)] = tuple(map(store, words)) if known else None

    def either(self, node: Node, given: Input) -> None:
        left, operator, right = node.children[0], node.children[1].type, node.children[-1]
        before = self.scope.places
        self.statement(left, given._replace(words=()) if given.words else given)
        middle = self.scope.places
        if operator == "||" and middle is not before and not self._leaves(right):
            self.scope.places = merge(middle, before)
        sure, self.scope.sure = self.scope.sure, False
        self.statement(right, given)
        self.scope.sure = sure
        if operator == "||" and self._leaves(right):
            self.scope.places = middle
            self.scope.entered = None

    def _leaves(self, node: Node) -> bool:
        return node.type == "command" and self.text(node.children[0]) in _LEAVING

    def pipeline(self, node: Node, given: Input) -> None:
        commands = [child for child in node.children if child.is_named]
        for at, child in enumerate(commands):
            own = given if at == 0 else _PIPED
            if given.words:
                own = own._replace(words=given.words if at == len(commands) - 1 else ())
            if at == 0 and _is_list_with_redirect(child):
                self.statement(child, own)  # the parser takes `cd a && b 2>&1 | c` for `{ cd a && b; } 2>&1 | c`
                continue
            kept = self.scope.fork()
            self.statement(child, own)
            self.scope.back(kept)

    def with_redirects(self, node: Node, given: Input) -> None:
        children = node.children
        body = children[0] if children[0].type not in REDIRECTS else None
        redirects = [child for child in children if child.type in REDIRECTS]
        later = body is not None and body.type == "list"  # the redirection belongs to the last of the list
        inner = self.input(redirects, given) if later else self.redirected(redirects, given)
        if body is not None:
            self.statement(body, inner)
        if inner.words and body is not None and body.type not in _TAKE_WORDS:
            self.words(inner.words)
        elif inner.words and body is None:
            self.call(self.words(inner.words), inner)
        if later:
            self.redirect_all(redirects)
        for redirect in redirects:
            if redirect.type == "heredoc_redirect":
                self._behind_heredoc(redirect, body, inner)

    def _behind_heredoc(self, redirect: Node, body: Node | None, given: Input) -> None:
        """What follows on the line of `<<EOF`: the parser hangs it below the redirection."""
        copies = body is not None and self.text(body).strip() == "cat"
        for child in redirect.children:
            if child.type == "pipeline":
                self.pipeline(child, Input(given.text, piped=True) if copies else Input(None, piped=True))
            elif child.is_named and child.type not in WORDS and not child.type.startswith(("heredoc_", "file_")):
                self.statement(child)

    def test(self, node: Node, given: Input) -> None:
        """`[ a > b ]` writes b; `[[ a > b ]]` compares."""
        if node.children[0].type == "[":
            for child in node.children:
                if child.type == "binary_expression" and child.children[1].type in {">", "<"}:
                    sign = child.children[1].type
                    for word in self.words(child.children[2:]):
                        use = Use("write" if sign == ">" else "read", word)
                        self.record.use(use, sign, self.scope.places)
        self.sequence(node, given)


def _is_list_with_redirect(node: Node) -> bool:
    return node.type == "redirected_statement" and node.children[0].type == "list"


_STATEMENTS: Final[dict[str, Callable[[Interpreter, Node, Input], None]]] = {
    "command": Interpreter.command,
    "list": Interpreter.either,
    "pipeline": Interpreter.pipeline,
    "redirected_statement": Interpreter.with_redirects,
    "file_redirect": Interpreter.redirect,
    "variable_assignment": Interpreter.assignment,
    "declaration_command": Interpreter.declaration,
    "unset_command": Interpreter.declaration,
    "subshell": Interpreter.apart,
    "function_definition": Interpreter.apart,
    "compound_statement": Interpreter.compound,
    "test_command": Interpreter.test,
    "for_statement": Interpreter.loop,
    "c_style_for_statement": Interpreter.loop,
    "while_statement": Interpreter.loop,
    "comment": lambda *_: None,
}
"""Node of the tree → how it is walked; any other node is walked as a sequence."""
