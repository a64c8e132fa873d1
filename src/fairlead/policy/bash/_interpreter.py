"""Walks the syntax tree of a script, each statement in the order in which the shell would run it.

Here the parts of the analysis are put together, and their recursion is tied (see `_recursion`). What a word, a
redirection or a command does is known to those parts.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from fairlead.policy.bash._assignments import AssignmentAnalyser
from fairlead.policy.bash._collector import Collector
from fairlead.policy.bash._commands import CommandAnalyser
from fairlead.policy.bash._expansion import WordExpander
from fairlead.policy.bash._redirects import RedirectAnalyser
from fairlead.policy.bash._syntax import REDIRECTS, WORDS, Source, is_too_long, words_of
from fairlead.policy.bash._words import TooManyWords, as_value, is_glob, is_unknown, quote, replace_private
from fairlead.policy.bash.programs._calls import Access
from fairlead.policy.bash.programs._outputs import Output
from fairlead.policy.bash.scripts._files import CommandFiles
from fairlead.policy.bash.shell._folders import merge_folders
from fairlead.policy.bash.shell._scope import NO_INPUT, Input, Scope, TooComplex

if TYPE_CHECKING:
    from collections.abc import Callable

    from tree_sitter import Node

    from fairlead.policy.bash._context import AnalysisContext
    from fairlead.policy.bash._types import Analysis

_MAX_SCRIPT_DEPTH: Final = 5
"""The maximum number of texts that run one another as scripts."""
_MAX_NODE_DEPTH: Final = 60
_MAX_STATEMENTS: Final = 20_000
_WITH_OUTPUT: Final = {"command", "pipeline", "redirected_statement", "file_redirect"}
"""Statements whose output may be known."""
_TAKES_ARGUMENTS: Final = {"command", "list", "pipeline"}
_ROOT_COMMAND: Final = re.compile(r"git rev-parse --show-toplevel(?:\s+2>\s*/dev/null)?")
_EXITS: Final = {"exit", "return", "break", "continue"}


def interpret(command: str, context: AnalysisContext | None = None) -> Analysis:
    """Return the analysis of a command, as `analyse` does, but without a cache."""
    collector = Collector()
    if is_too_long(command):
        collector.add_unknown(f"the command is too long to check ({len(command)} characters)")
        return collector.result()
    clean = replace_private(command)
    if clean != command:
        collector.add_unknown("the command contains private characters of Unicode")
    scope = Scope()
    files = None if context is None else CommandFiles(context, collector, scope)
    interpreter = Interpreter(clean, scope, collector, files)
    try:
        interpreter.run()
    except (TooComplex, RecursionError):
        collector.add_unknown("the command is nested too deep, or too long, to check")
    except TooManyWords:
        collector.add_unknown("the braces in the command expand to too many words")
    finally:
        interpreter.release()
    return collector.result(scope.assigned)


class Interpreter:
    """Walks one script. Each script that it runs gets an interpreter of its own, with the same scope and collector.

    Its methods raise `TooComplex`, `TooManyWords`, and the `NeedsThread` of the context.
    """

    def __init__(
        self, text: str, scope: Scope, collector: Collector, files: CommandFiles | None, script_depth: int = 0
    ) -> None:
        self._scope = scope
        self._collector = collector
        self._files = files
        self._script_depth = script_depth
        self._node_depth = 0
        self._source = Source(text)
        self._words = WordExpander(self._source, scope, self)
        self._commands = CommandAnalyser(scope, collector, files, self)

    def run(self) -> None:
        """Analyse the whole script."""
        if self._script_depth > _MAX_SCRIPT_DEPTH:
            raise TooComplex
        root = self._source.parse(self._read_heredoc)
        if root.has_error:
            for error in self._source.syntax_errors(root):
                self._collector.add_unknown(error)
        self._analyse_sequence(root)

    def release(self) -> None:
        """Drop the parts of the analysis, which refer back to this object, so that it is freed at once."""
        self.__dict__.clear()

    def _redirects(self) -> RedirectAnalyser:
        """Return a new analyser of redirections. Most scripts need none, so it is not made in the constructor."""
        return RedirectAnalyser(
            self._source, self._words, self._scope, self._collector, files=self._files, scripts=self
        )

    def _assignments(self) -> AssignmentAnalyser:
        """Return a new analyser of assignments. Most scripts need none, so it is not made in the constructor."""
        return AssignmentAnalyser(self._source, self._words, self._scope, self._collector, self._commands)

    def _read_heredoc(self, node: Node) -> str:
        return self._redirects().read_heredoc(node)

    # -- what the parts of the analysis need (see _recursion) -----------------------------------------------

    def analyse_script(self, text: str, *, same_shell: bool, args: tuple[str, ...] = ()) -> None:
        """Analyse a script that this one runs; only `eval`, `trap` and `source` run it in the same shell.

        `args`: `$0`, `$1` and the following, for a script in a subshell.
        """
        inner = Interpreter(text, self._scope, self._collector, self._files, self._script_depth + 1)
        if same_shell:
            inner.run()
            return
        saved = self._scope.enter_subshell()
        if args:
            self._scope.set_arguments(args[1:])
            self._scope.variables["0"] = None if is_unknown(args[0]) else (as_value(args[0]),)
        inner.run()
        self._scope.leave_subshell(saved)

    def analyse_subshell(self, node: Node, stdin: Input = NO_INPUT) -> None:
        """Analyse statements in a subshell, which does not change this shell."""
        saved = self._scope.enter_subshell()
        self._analyse_sequence(node, stdin)
        self._scope.leave_subshell(saved)

    def analyse_substitution(self, node: Node) -> Output | None:
        """Analyse a substitution; return its output, or `None` if it is not known."""
        commands = self._commands
        commands.output = None
        self.analyse_subshell(node)
        output, commands.output = commands.output, None
        statements = [child for child in node.children if child.is_named]
        if len(statements) == 1 and output is None and _ROOT_COMMAND.fullmatch(self._source.text_of(statements[0])):
            return self._repository_root()
        return output if len(statements) == 1 else None

    def _repository_root(self) -> Output | None:
        """Return the folder that `git rev-parse --show-toplevel` prints; `None` if it is not known."""
        folder = self._scope.folders[0].path
        if self._files is None or folder is None or len(self._scope.folders) > 1:
            return None
        root = self._files.context.repository_root(folder)
        return None if root is None else Output((quote(root),))

    # -- statements -----------------------------------------------------------------------------------------

    def _analyse_statement(self, node: Node, stdin: Input = NO_INPUT) -> None:
        """Analyse a statement of any kind."""
        self._scope.statements += 1
        self._node_depth += 1
        if self._node_depth > _MAX_NODE_DEPTH or self._scope.statements > _MAX_STATEMENTS:
            raise TooComplex
        kind = node.type
        analyse = self._STATEMENTS.get(kind)
        if analyse is not None:
            analyse(self, node, stdin)
        elif kind in WORDS:
            self._words.expand_part(node, quoted=False)
        elif node.child_count:
            self._analyse_sequence(node, stdin)
        if kind not in _WITH_OUTPUT:
            self._commands.output = None
        self._node_depth -= 1

    def _analyse_sequence(self, node: Node, stdin: Input = NO_INPUT) -> None:
        """Analyse statements in order. A `cd` may fail, so both folders are possible after it."""
        scope, certain = self._scope, self._scope.certain
        scope.certain = certain and node.type == "program"
        for child in node.children:
            if not child.is_named:
                continue
            before, scope.entered = scope.folders, None
            self._analyse_statement(child, stdin)
            if scope.folders is not before:
                scope.folders = merge_folders(
                    scope.folders, before, scope.entered if self._starts_with_cd(child) else None
                )
        scope.certain = certain

    def _starts_with_cd(self, node: Node) -> bool:
        while node.type in {"list", "redirected_statement"}:
            node = node.children[0]
        return node.type == "command" and self._source.text_of(node.children[0]) in {"cd", "pushd"}

    def _analyse_command(self, node: Node, stdin: Input) -> None:
        """Analyse a simple command, with assignments and redirections before and after it."""
        words = self._words.split_command(node)
        if words is None:
            self._expand_command(node, stdin)
        else:
            if stdin.words:
                words += self._words.expand_words(stdin.words)
            self._commands.analyse_command(words, stdin)

    def _expand_command(self, node: Node, stdin: Input) -> None:
        words, redirects, assignments = [], [], []
        for child in node.children:
            kind = child.type
            if kind in WORDS:
                words.append(child)
            elif kind in REDIRECTS:
                redirects.append(child)
            elif kind == "variable_assignment":
                assignments.append(child)
            elif kind == "ERROR":
                words += words_of(child)
            elif child.child_count:  # the parser takes the subshell of `time (…)` for an argument
                self._analyse_statement(child)
        if redirects:
            files = self._redirects()
            stdin = files.analyse_redirects(redirects, stdin)
            files.record_output(None, redirects, stdin)
        words += stdin.words
        if assignments:
            self._analyse_with_assignments(assignments, words, stdin)
        else:
            self._commands.analyse_command(self._words.expand_words(words), stdin)

    def _analyse_with_assignments(self, assignments: list[Node], words: list[Node], stdin: Input) -> None:
        """Analyse a command with assignments before it, which only apply to this command."""
        scope = self._scope
        before, exported, names = scope.variables, scope.exported, dict(scope.assigned)
        scope.variables, scope.exported = dict(before), dict(exported)
        for assignment in assignments:
            self._assignments().analyse_assignment(assignment, exported=True)
        scope.assigned = names
        assigned = [name for name, value in scope.variables.items() if name not in before or before[name] != value]
        texts = tuple(map(self._source.text_of, assignments))
        self._commands.analyse_command(self._words.expand_words(words), stdin, variables=texts)
        scope.exported = exported
        for name in assigned:  # other variables may be set by the command: `IFS= read name`
            scope.variables.pop(name, None)
            scope.variables.update({name: before[name]} if name in before else {})

    def _analyse_and_or(self, node: Node, stdin: Input) -> None:
        """Analyse `a && b` or `a || b`."""
        left, operator, right = node.children[0], node.children[1].type, node.children[-1]
        scope, before = self._scope, self._scope.folders
        self._analyse_statement(left, stdin._replace(words=()) if stdin.words else stdin)
        middle = scope.folders
        if operator == "||" and middle is not before and not self._is_exit(right):
            scope.folders = merge_folders(middle, before)
        certain, scope.certain = scope.certain, False
        self._analyse_statement(right, stdin)
        scope.certain = certain
        if operator == "||" and self._is_exit(right):
            scope.folders = middle
            scope.entered = None

    def _is_exit(self, node: Node) -> bool:
        return node.type == "command" and self._source.text_of(node.children[0]) in _EXITS

    def _analyse_pipeline(self, node: Node, stdin: Input) -> None:
        """Analyse `a | b`, each command in a subshell."""
        commands = [child for child in node.children if child.is_named]
        for index, child in enumerate(commands):
            own = stdin if index == 0 else self._piped_input(commands[index - 1])
            if stdin.words:
                own = own._replace(words=stdin.words if index == len(commands) - 1 else ())
            if index == 0 and _is_list_with_redirect(child):
                # the parser takes `cd a && b 2>&1 | c` for `{ cd a && b; } 2>&1 | c`
                self._analyse_statement(child, own)
                continue
            saved = self._scope.enter_subshell()
            self._analyse_statement(child, own)
            self._scope.leave_subshell(saved)

    def _piped_input(self, node: Node) -> Input:
        """Return the input of the command after `node` in a pipeline; after `cat x.sh`, its `file` is `x.sh`."""
        own = Input(piped=True, output=self._commands.output)
        if self._files is None or node.type != "command" or self._source.text_of(node.children[0]) != "cat":
            return own
        if "cat" in self._scope.functions or "cat" in self._scope.aliases:
            return own
        files = self._words.expand_words([child for child in node.children[1:] if child.type in WORDS])
        if len(files) != 1 or files[0].startswith("-") or is_glob(files[0]) or self._files.read_text(files[0]) is None:
            return own
        return own._replace(file=files[0])

    def _analyse_redirected(self, node: Node, stdin: Input) -> None:
        """Analyse a statement with redirections."""
        children = node.children
        body = children[0] if children[0].type not in REDIRECTS else None
        redirects = [child for child in children if child.type in REDIRECTS]
        later = body is not None and body.type == "list"  # the redirection belongs to its last command
        analyse = self._redirects().read_input if later else self._redirects().analyse_redirects
        inner = analyse(redirects, stdin)
        if body is not None:
            self._analyse_statement(body, inner)
        if inner.words and body is not None and body.type not in _TAKES_ARGUMENTS:
            self._words.expand_words(inner.words)
        elif inner.words and body is None:
            self._commands.analyse_command(self._words.expand_words(inner.words), inner)
        if later:
            self._redirects().collect_files(redirects)
        if self._files is not None:
            self._redirects().record_output(body, redirects, inner)
        for redirect in redirects:
            if redirect.type == "heredoc_redirect":
                self._analyse_after_heredoc(redirect, body, inner)

    def _analyse_after_heredoc(self, redirect: Node, body: Node | None, stdin: Input) -> None:
        """Analyse the commands after `<<EOF` on its line, which the parser places below the redirection."""
        copies = body is not None and self._source.text_of(body).strip() == "cat"
        for child in redirect.children:
            if child.type == "pipeline":
                self._analyse_pipeline(child, Input(stdin.text if copies else None, piped=True))
            elif child.is_named and child.type not in WORDS and not child.type.startswith(("heredoc_", "file_")):
                self._analyse_statement(child)

    def _define_function(self, node: Node, _: Input) -> None:
        """Store the body of a function, and analyse it without unknown effects, because only a call sets arguments."""
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is None or body is None:
            self.analyse_subshell(node)
            return
        scope, text = self._scope, self._source.text_of(name)
        unknown = self._collector.unknown_effects()
        scope.functions[text] = partial(self._analyse_statement, body)
        scope.calling.append(text)
        self.analyse_subshell(node)
        scope.calling.pop()
        self._collector.restore_unknown_effects(unknown)

    def _analyse_compound(self, node: Node, stdin: Input) -> None:
        """Analyse `{ …; }`."""
        opening = node.children[0]
        if opening.type == "{" and not self._source.data[opening.end_byte : opening.end_byte + 1].isspace():
            self._collector.add_unknown(self._source.syntax_error(node))
        self._analyse_sequence(node, stdin)

    def _analyse_loop(self, node: Node, stdin: Input) -> None:
        """Analyse a loop: twice, if the first round changes variables or the folder."""
        if node.type == "for_statement":
            self._assign_loop_variable(node)
        before = (dict(self._scope.variables), self._scope.folders)
        self._analyse_sequence(node, stdin)
        if before != (self._scope.variables, self._scope.folders):
            self._analyse_sequence(node, stdin)

    def _assign_loop_variable(self, node: Node) -> None:
        name = node.child_by_field_name("variable")
        words = self._words.expand_words(words_of(node))
        if name is not None:
            known = words and not any(map(is_unknown, words))
            self._scope.variables[self._source.text_of(name)] = tuple(map(as_value, words)) if known else None

    def _analyse_test(self, node: Node, stdin: Input) -> None:
        """Analyse a test: `[ a > b ]` writes b, `[[ a > b ]]` compares."""
        if node.children[0].type == "[":
            for child in node.children:
                if child.type == "binary_expression" and child.children[1].type in {">", "<"}:
                    sign = child.children[1].type
                    for word in self._words.expand_words(child.children[2:]):
                        access = Access("write" if sign == ">" else "read", word)
                        self._collector.add_access(access, sign, self._scope.folders)
        self._analyse_sequence(node, stdin)

    def _analyse_file_redirect(self, node: Node, _: Input) -> None:
        self._redirects().collect_file(node)

    def _analyse_assignment(self, node: Node, _: Input) -> None:
        self._assignments().analyse_assignment(node)

    def _analyse_declaration(self, node: Node, _: Input) -> None:
        self._assignments().analyse_declaration(node)

    _STATEMENTS: ClassVar[dict[str, Callable[[Interpreter, Node, Input], None]]] = {
        "command": _analyse_command,
        "list": _analyse_and_or,
        "pipeline": _analyse_pipeline,
        "redirected_statement": _analyse_redirected,
        "file_redirect": _analyse_file_redirect,
        "variable_assignment": _analyse_assignment,
        "declaration_command": _analyse_declaration,
        "unset_command": _analyse_declaration,
        "subshell": analyse_subshell,
        "function_definition": _define_function,
        "compound_statement": _analyse_compound,
        "test_command": _analyse_test,
        "for_statement": _analyse_loop,
        "c_style_for_statement": _analyse_loop,
        "while_statement": _analyse_loop,
        "comment": lambda *_: None,
    }
    """Type of a node → the method that analyses it; any other node is analysed as a sequence."""


def _is_list_with_redirect(node: Node) -> bool:
    return node.type == "redirected_statement" and node.children[0].type == "list"
