"""The wheel has what it needs, and nothing else."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--outdir", folder, ROOT], check=True, capture_output=True
    )
    return next(folder.glob("*.whl"))


def test_the_wheel_holds_the_package_its_types_its_samples_and_its_licence(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    sources = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src").rglob("*.py")}
    meta = {name for name in names if ".dist-info/" in name}
    data = {"py.typed", "policy/schema.json", "policy/template.yaml", "testing/samples.json"}
    assert names - meta == sources | {f"fairlead/{name}" for name in data}
    assert any(name.endswith("licenses/LICENSE") for name in meta)


def test_the_wheel_runs_from_where_it_is_installed(wheel: Path, tmp_path: Path) -> None:
    """Into a folder of its own, so that nothing of this checkout is on the path."""
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--target", tmp_path, wheel],
        check=True,
        capture_output=True,
    )
    program = "import sys; sys.path.insert(0, sys.argv[1]); import fairlead; from fairlead.testing import samples;"
    program += "print(fairlead.__file__, len(list(samples())))"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program, tmp_path], check=True, capture_output=True, text=True
    )
    assert done.stdout == f"{tmp_path}/fairlead/__init__.py 92\n"
