"""Analyses a shell command from its syntax tree, without running it.

From the outside in:

- `_analysis`: the entry, with a cache. `_types`: the result. `_context`: reads files, within limits.
- `_interpreter`: walks the statements of a script, and puts the parts below together.
- `_assignments`, `_redirects`, `_expansion`, `_syntax`: read the nodes of the syntax tree.
- `_commands`: analyses a command whose words are known. `programs`: what known programs do.
- `scripts`: finds and analyses the scripts that commands run. `tasks`: the commands in task files.
- `shell`: the state of the shell. `_collector`: collects the result. `_words`: words as marked text.

A word contains commands, a command runs scripts, and a script contains commands: what a part needs of one that contains
it is an interface in `_recursion`.
"""
