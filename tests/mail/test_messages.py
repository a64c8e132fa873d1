"""Every error message of the mail is explained in the documentation."""

from __future__ import annotations

import ast
from pathlib import Path

from fairlead import mail
from fairlead.errors import FairleadError
from fairlead.mail import _errors

ROOT = Path(__file__).parents[2]
ERRORS = {name: value for name, value in vars(_errors).items() if isinstance(value, type)}


def test_every_message_of_an_error_is_explained() -> None:
    explained = " ".join((ROOT / "docs/troubleshooting.md").read_text("utf-8").split())
    assert [part for part in message_parts() if part not in explained] == []


def test_every_error_is_a_mail_error_and_listed_in_the_tree() -> None:
    ours = {name: error for name, error in ERRORS.items() if error is not FairleadError}
    assert all(issubclass(error, mail.MailError) for error in ours.values())
    assert all(name in (_errors.__doc__ or "") for name in ours)
    assert set(ours) <= set(mail.__all__)


def message_parts() -> list[str]:
    """Return the constant parts of all error messages that are long enough to search for."""
    found = []
    for package in ("mail", "store"):
        for file in sorted((ROOT / "src/fairlead" / package).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                if isinstance(node, ast.Call) and ast.unparse(node.func) in ERRORS:
                    found += [part for argument in node.args for part in constants(argument)]
    assert len(found) > 30
    return found


def constants(text: ast.expr) -> list[str]:
    nodes = text.values if isinstance(text, ast.JoinedStr) else [text]
    values = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return [value.strip(" :;,'`()") for value in values if len(value.strip(" :;,'`()")) >= 12]
