"""The requirements in pyproject.toml are complete, have true lower bounds, and stay small."""

from __future__ import annotations

import ast
import os
import sys
from importlib.metadata import Distribution, distribution, packages_distributions
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import requirements
from packaging.requirements import Requirement

if TYPE_CHECKING:
    from collections.abc import Iterator

SRC = Path(__file__).parent.parent / "src"
EXTRAS = ("notify", "sdk", "team")


def names(*extras: str | None) -> set[str]:
    return {requirements.name_of(each) for extra in extras for each in requirements.declared(extra)}


def imported() -> set[str]:
    """Return the top-level names of all modules that the package imports, anywhere in its files."""
    found: set[str] = set()
    for file in SRC.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
    return found


def test_every_package_that_is_imported_is_declared() -> None:
    """A package that comes only with another one may be gone in that one's next release."""
    packages = packages_distributions()
    third_party = imported() - set(sys.stdlib_module_names) - {"fairlead"}
    used = {name: {requirements.name_of(each) for each in packages[name]} for name in third_party}
    assert {name for name, owners in used.items() if not owners & names(None, *EXTRAS)} == set()


@pytest.mark.parametrize(
    ("requirement", "lowest"),
    [
        ("msgspec>=0.21", "msgspec==0.21"),
        ("uvicorn>=0.35,<0.55", "uvicorn==0.35"),
        ("uvicorn>=0.35, <0.55", "uvicorn==0.35"),
        ("tree-sitter-bash>=0.25.1", "tree-sitter-bash==0.25.1"),
        ("psycopg[binary]>=3.2.3", "psycopg[binary]==3.2.3"),
    ],
)
def test_the_lowest_version_is_the_lower_bound(requirement: str, lowest: str) -> None:
    assert requirements.at_lowest(requirement) == lowest


@pytest.mark.parametrize(
    "requirement", ["msgspec", "msgspec<1", "msgspec>0.21", "msgspec>=0.21; python_version<'3.12'"]
)
def test_a_requirement_without_a_lower_bound_is_an_error(requirement: str) -> None:
    with pytest.raises(ValueError, match="has no lower bound; write name>=version"):
        requirements.at_lowest(requirement)


def test_each_requirement_is_lowered_and_none_is_pinned_twice() -> None:
    lowered = [Requirement(each) for each in requirements.lowest("dev")]
    assert len(lowered) == len({requirements.name_of(each.name) for each in lowered})
    bounds = {
        each.name: each
        for each in map(
            Requirement, requirements.declared() + requirements.declared("notify") + requirements.declared("team")
        )
    }
    for each in lowered:
        assert each.name not in bounds or str(each.specifier).replace("==", ">=") in str(bounds[each.name].specifier)
    assert names(None, "notify", "team", "dev") == {requirements.name_of(each.name) for each in lowered}


def test_these_tests_run_on_the_versions_that_are_declared() -> None:
    """`make test-lowest` runs them on the lowest ones."""
    on_the_lowest = Path(sys.prefix).name == ".venv-lowest"
    for each in map(Requirement, requirements.lowest() if on_the_lowest else requirements.declared()):
        assert each.specifier.contains(distribution(each.name).version), each


def test_what_the_product_needs_is_small() -> None:
    """`make run` may take 130 MB. Besides these packages .venv has pip and its launchers, 26 MB."""
    needed = {each.metadata["Name"]: disk_usage(each) for each in closure("fairlead")}
    assert sum(needed.values()) < 104 * 2**20, sorted(needed.items(), key=lambda item: -item[1])[:5]
    assert not {"claude-agent-sdk", "pytest", "mypy"} & set(needed)


def closure(root: str) -> Iterator[Distribution]:
    """Yield a package and all that it requires, directly or not, without extras."""
    waiting, seen = [root], set()
    while waiting:
        name = requirements.name_of(waiting.pop())
        if name in seen:
            continue
        seen.add(name)
        package = distribution(name)
        yield package
        required = map(Requirement, package.requires or ())
        waiting += [each.name for each in required if not each.marker or each.marker.evaluate({"extra": ""})]


def disk_usage(package: Distribution) -> int:
    paths = {Path(os.path.abspath(str(file.locate()))) for file in package.files or ()}  # noqa: PTH100 - not resolved
    return sum(path.stat().st_blocks * 512 for path in paths if path.exists())
