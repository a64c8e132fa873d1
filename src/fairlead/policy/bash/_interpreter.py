"""Walks the syntax tree of a shell command, each statement in the order in which the shell would run it."""

from __future__ import annotations

import re
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import TYPE_CHECKING, Final

from tree_sitter import Language, Parser

from fairlead.policy.bash._builtins import NO_INPUT, Input
from fairlead.policy.bash._collector import Collector, merge_folders
from fairlead.policy.bash._commands import REDIRECTS, TooComplex
from fairlead.policy.bash._expansion import WORDS, Scope
from fairlead.policy.bash._scripts import PRIVATE, ScriptAnalyser, is_too_long
from fairlead.policy.bash._words import TooManyWords, as_value, is_glob, is_unknown, quote
from fairlead.policy.bash.programs._calls import Access
from fairlead.policy.bash.programs._outputs import Output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

    from tree_sitter import Node

    from fairlead.policy.bash._context import AnalysisContext
    from fairlead.policy.bash._types import Analysis

_ASCII: Final = bytes(range(128)) + b"u" * 128
_MAX_SCRIPT_DEPTH: Final = 5
_MAX_NODE_DEPTH: Final = 60
_MAX_STATEMENTS: Final = 20_000
_HERE_STRING_LAST: Final = re.compile(rb"""(\d*>{1,2}\s*[\w./~-]+)\s+(<<<\s*(?:'[^']*'|"[^"]*"|[^\s;|&<>]+))""")
"""Matches a here-string after an output redirection, an order that the parser does not know."""
_WITH_OUTPUT: Final = {"command", "pipeline", "redirected_statement", "file_redirect"}
_TAKES_ARGUMENTS: Final = {"command", "list", "pipeline"}
_ROOT_COMMAND: Final = re.compile(r"git rev-parse --show-toplevel(?:\s+2>\s*/dev/null)?")
_EXITS: Final = {"exit", "return", "break", "continue"}


def interpret(command: str, context: AnalysisContext | None = None) -> Analysis:
    """Analyse a command; see `analyse`."""
    collector = Collector(context)
    if is_too_long(command):
        collector.add_unknown(f"the command is too long to check ({len(command)} characters)")
        return collector.result()
    if not command.isascii() and PRIVATE.search(command):
        collector.add_unknown("the command contains private characters of Unicode")
        command = PRIVATE.sub("\ufffd", command)
    try:
        Interpreter(command, collector, Scope()).run()
    except (TooComplex, RecursionError):
        collector.add_unknown("the command is nested too deep, or too long, to check")
    except TooManyWords:
        collector.add_unknown("the braces in the command expand to too many words")
    return collector.result()


def _heredocs(node: Node) -> Iterator[Node]:
    for child in node.children:
        if child.type == "heredoc_redirect":
            yield child
        yield from _heredocs(child)


@cache
def _parser() -> Parser:
    return Parser(Language(_grammar().language()))


def _tree(source: bytes) -> Node:
    """Parse a script.

    For characters above 255 the grammar's scanner reads beyond the end of C's character tables, and may crash. A shell
    treats these characters as letters, so each of their bytes is replaced by a letter.
    """
    return _parser().parse(source.translate(_ASCII)).root_node


def _grammar() -> ModuleType:
    """Import only the extension module of the grammar: its package takes 11 ms to load queries that are not used."""
    package = PathFinder.find_spec("tree_sitter_bash")
    locations = package.submodule_search_locations if package else None
    spec = PathFinder.find_spec("tree_sitter_bash._binding", locations)
    if spec is None or spec.loader is None:
        raise ImportError("tree_sitter_bash is not installed")
    binding = module_from_spec(spec)
    spec.loader.exec_module(binding)
    return binding


class Interpreter(ScriptAnalyser):
    """Walks one script. Each script that it runs gets an interpreter of its own, with the same collector."""

    def __init__(self, command: str, collector: Collector, scope: Scope, depth: int = 0) -> None:
        super().__init__(command.encode("utf-8", "replace"), collector, scope)
        self.depth = depth
        self.level = 0

    def run(self) -> None:
        """Walk the whole script."""
        if self.depth > _MAX_SCRIPT_DEPTH:
            raise TooComplex
        root = _tree(self.source)
        if root.has_error and b"<<<" in self.source:
            self.source = _HERE_STRING_LAST.sub(rb"\2 \1", self.source)
            root = _tree(self.source)
        if root.has_error and b"<<" in self.source:
            root = self._with_here_strings(root)
        if root.has_error:
            self._errors(root)
        self.sequence(root)

    def _with_here_strings(self, root: Node) -> Node:
        """Parse again with each here-document as a here-string, after which the parser makes fewer errors."""
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
                self._add_syntax_error(node if node.end_byte > node.start_byte else node.parent or node)
                return
        for child in node.children:
            if child.has_error:
                self._errors(child)

    def _add_syntax_error(self, node: Node) -> None:
        near = " ".join(self.text(node)[:40].split()) or "the end"
        self.collector.add_unknown(f"the shell syntax cannot be parsed near: {near}")

    def script(self, text: str, *, same_shell: bool, args: tuple[str, ...] = ()) -> None:
        """Walk a script that this one runs; only `eval` and `trap` run it in the same shell."""
        inner = Interpreter(text, self.collector, self.scope, self.depth + 1)
        inner.calling = self.calling
        if same_shell:
            inner.run()
            return
        saved = self.scope.enter_subshell()
        if args:
            inner.set_arguments(args[1:])
            self.scope.variables["0"] = None if is_unknown(args[0]) else (as_value(args[0]),)
        inner.run()
        self.scope.leave_subshell(saved)

    def statement(self, node: Node, stdin: Input = NO_INPUT) -> None:
        """Walk a statement of any kind."""
        self.scope.statements += 1
        self.level += 1
        if self.level > _MAX_NODE_DEPTH or self.scope.statements > _MAX_STATEMENTS:
            raise TooComplex
        kind = node.type
        handler = _STATEMENTS.get(kind)
        if handler is not None:
            handler(self, node, stdin)
        elif kind in WORDS:
            self.piece(node, quoted=False)
        elif node.child_count:
            self.sequence(node, stdin)
        if kind not in _WITH_OUTPUT:
            self.output = None
        self.level -= 1

    def sequence(self, node: Node, stdin: Input = NO_INPUT) -> None:
        """Walk statements in order. A `cd` may fail, so both folders are possible after it."""
        scope, certain = self.scope, self.scope.certain
        scope.certain = certain and node.type == "program"
        for child in node.children:
            if not child.is_named:
                continue
            before, scope.entered = scope.folders, None
            self.statement(child, stdin)
            if scope.folders is not before:
                scope.folders = merge_folders(
                    scope.folders, before, scope.entered if self._starts_with_cd(child) else None
                )
        scope.certain = certain

    def _starts_with_cd(self, node: Node) -> bool:
        while node.type in {"list", "redirected_statement"}:
            node = node.children[0]
        return node.type == "command" and self.text(node.children[0]) in {"cd", "pushd"}

    def subshell(self, node: Node, stdin: Input = NO_INPUT) -> None:
        """Walk statements in a subshell, which does not change this shell."""
        saved = self.scope.enter_subshell()
        self.sequence(node, stdin)
        self.scope.leave_subshell(saved)

    def substituted(self, node: Node) -> Output | None:
        """Walk a substitution; return its output, or `None` if it is not known."""
        self.output = None
        self.subshell(node)
        output, self.output = self.output, None
        statements = [child for child in node.children if child.is_named]
        if len(statements) == 1 and output is None and _ROOT_COMMAND.fullmatch(self.text(statements[0])):
            return self._repository_root()
        return output if len(statements) == 1 else None

    def _repository_root(self) -> Output | None:
        """Return the folder that `git rev-parse --show-toplevel` prints."""
        context, folder = self.collector.context, self.scope.folders[0].path
        if context is None or folder is None or len(self.scope.folders) > 1:
            return None
        root = context.repository_root(folder)
        return None if root is None else Output((quote(root),))

    def define(self, node: Node, _: Input) -> None:
        """Store the body of a function, and walk it once without unknown effects, as only a call sets the arguments."""
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is None or body is None:
            self.subshell(node)
            return
        unknown = dict(self.collector.unknown), dict(self.collector.unknown_reads)
        self.scope.functions[self.text(name)] = self, body
        self.calling.append(self.text(name))
        self.subshell(node)
        self.calling.pop()
        self.collector.unknown, self.collector.unknown_reads = unknown

    def call_function(self, name: str, args: list[str], stdin: Input) -> None:
        """Walk the body of a function that the command defines, with the arguments of the call."""
        if len(self.calling) >= _MAX_SCRIPT_DEPTH:
            return
        analyser, body = self.scope.functions[name]
        variables = self.scope.variables
        saved = {key: value for key, value in variables.items() if key.isdigit() or key in {"@", "*"}}
        self.set_arguments(args)
        self.calling.append(name)
        if isinstance(analyser, Interpreter):
            saved_calling, analyser.calling = analyser.calling, self.calling
            analyser.statement(body, stdin)
            analyser.calling = saved_calling
        self.calling.pop()
        for key in [key for key in variables if key.isdigit() or key in {"@", "*"}]:
            del variables[key]
        variables.update(saved)
        self.output = None

    def compound(self, node: Node, stdin: Input) -> None:
        """Walk `{ …; }`."""
        opening = node.children[0]
        if opening.type == "{" and not self.source[opening.end_byte : opening.end_byte + 1].isspace():
            self._add_syntax_error(node)
        self.sequence(node, stdin)

    def loop(self, node: Node, stdin: Input) -> None:
        """Walk a loop: twice, if the first round changes variables or the folder."""
        if node.type == "for_statement":
            self._loop_variable(node)
        before = (dict(self.scope.variables), self.scope.folders)
        self.sequence(node, stdin)
        if before != (self.scope.variables, self.scope.folders):
            self.sequence(node, stdin)

    def _loop_variable(self, node: Node) -> None:
        name = node.child_by_field_name("variable")
        words = self.words([child for child in node.children if child.type in WORDS])
        if name is not None:
            known = words and not any(map(is_unknown, words))
            self.scope.variables[self.text(name)] = tuple(map(as_value, words)) if known else None

    def and_or(self, node: Node, stdin: Input) -> None:
        """Walk `a && b` or `a || b`."""
        left, operator, right = node.children[0], node.children[1].type, node.children[-1]
        before = self.scope.folders
        self.statement(left, stdin._replace(words=()) if stdin.words else stdin)
        middle = self.scope.folders
        if operator == "||" and middle is not before and not self._is_exit(right):
            self.scope.folders = merge_folders(middle, before)
        certain, self.scope.certain = self.scope.certain, False
        self.statement(right, stdin)
        self.scope.certain = certain
        if operator == "||" and self._is_exit(right):
            self.scope.folders = middle
            self.scope.entered = None

    def _is_exit(self, node: Node) -> bool:
        return node.type == "command" and self.text(node.children[0]) in _EXITS

    def pipeline(self, node: Node, stdin: Input) -> None:
        """Walk `a | b`, each command in a subshell."""
        commands = [child for child in node.children if child.is_named]
        for index, child in enumerate(commands):
            own = stdin if index == 0 else self._output_of(commands[index - 1])
            if stdin.words:
                own = own._replace(words=stdin.words if index == len(commands) - 1 else ())
            if index == 0 and _is_list_with_redirect(child):
                self.statement(child, own)  # the parser takes `cd a && b 2>&1 | c` for `{ cd a && b; } 2>&1 | c`
                continue
            saved = self.scope.enter_subshell()
            self.statement(child, own)
            self.scope.leave_subshell(saved)

    def _output_of(self, node: Node) -> Input:
        """Return the input of the next command in a pipeline; after `cat file`, the input names the file."""
        own = Input(piped=True, output=self.output)
        if self.collector.context is None or node.type != "command" or self.text(node.children[0]) != "cat":
            return own
        if "cat" in self.scope.functions or "cat" in self.scope.aliases:
            return own
        files = self.words([child for child in node.children[1:] if child.type in WORDS])
        if len(files) != 1 or files[0].startswith("-") or is_glob(files[0]) or self.file_text(files[0]) is None:
            return own
        return own._replace(file=files[0])

    def with_redirects(self, node: Node, stdin: Input) -> None:
        """Walk a statement with redirections."""
        children = node.children
        body = children[0] if children[0].type not in REDIRECTS else None
        redirects = [child for child in children if child.type in REDIRECTS]
        later = body is not None and body.type == "list"  # the redirection belongs to its last command
        inner = self.input(redirects, stdin) if later else self.redirected(redirects, stdin)
        if body is not None:
            self.statement(body, inner)
        if inner.words and body is not None and body.type not in _TAKES_ARGUMENTS:
            self.words(inner.words)
        elif inner.words and body is None:
            self.call(self.words(inner.words), inner)
        if later:
            self.redirect_all(redirects)
        if self.collector.context is not None:
            self.note_output(body, redirects, inner)
        for redirect in redirects:
            if redirect.type == "heredoc_redirect":
                self._after_heredoc(redirect, body, inner)

    def _after_heredoc(self, redirect: Node, body: Node | None, stdin: Input) -> None:
        """Walk the commands after `<<EOF` on its line, which the parser places below the redirection."""
        copies = body is not None and self.text(body).strip() == "cat"
        for child in redirect.children:
            if child.type == "pipeline":
                self.pipeline(child, Input(stdin.text, piped=True) if copies else Input(None, piped=True))
            elif child.is_named and child.type not in WORDS and not child.type.startswith(("heredoc_", "file_")):
                self.statement(child)

    def test(self, node: Node, stdin: Input) -> None:
        """Walk a test: `[ a > b ]` writes b, `[[ a > b ]]` compares."""
        if node.children[0].type == "[":
            for child in node.children:
                if child.type == "binary_expression" and child.children[1].type in {">", "<"}:
                    sign = child.children[1].type
                    for word in self.words(child.children[2:]):
                        access = Access("write" if sign == ">" else "read", word)
                        self.collector.add_access(access, sign, self.scope.folders)
        self.sequence(node, stdin)


def _is_list_with_redirect(node: Node) -> bool:
    return node.type == "redirected_statement" and node.children[0].type == "list"


_STATEMENTS: Final[dict[str, Callable[[Interpreter, Node, Input], None]]] = {
    "command": Interpreter.command,
    "list": Interpreter.and_or,
    "pipeline": Interpreter.pipeline,
    "redirected_statement": Interpreter.with_redirects,
    "file_redirect": Interpreter.redirect,
    "variable_assignment": Interpreter.assignment,
    "declaration_command": Interpreter.declaration,
    "unset_command": Interpreter.declaration,
    "subshell": Interpreter.subshell,
    "function_definition": Interpreter.define,
    "compound_statement": Interpreter.compound,
    "test_command": Interpreter.test,
    "for_statement": Interpreter.loop,
    "c_style_for_statement": Interpreter.loop,
    "while_statement": Interpreter.loop,
    "comment": lambda *_: None,
}
"""Type of a node → the method that walks it; any other node is walked as a sequence."""
