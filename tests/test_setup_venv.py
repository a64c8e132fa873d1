"""Setting up an environment: each step is reported, and an error says what to do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from setup_venv import NO_NETWORK, Environment, SetupError, activity

TOOLS = Path(__file__).parent.parent / "tools"
SCRIPT = TOOLS / "setup_venv.py"


def run(*words: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words], env={**os.environ, **env}, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Collecting alembic>=1.16", "looking for alembic"),
        ("  Downloading textual-8.2.8-py3-none-any.whl (727 kB)", "downloading textual 8.2.8 (727 kB)"),
        ("  Downloading http://example/a/b_c-1.0-py3.whl.metadata", "downloading b_c 1.0"),
        ("  Using cached msgspec-0.22.0-cp311-cp311-any.whl (219 kB)", "using the cached msgspec 0.22.0 (219 kB)"),
        ("Installing collected packages: uvloop, click, rich", "unpacking 3 packages"),
        ("Installing collected packages: fairlead", "unpacking fairlead"),
        ("  Installing build dependencies: started", "installing build dependencies"),
        ("  Building editable for fairlead (pyproject.toml): started", "building editable for fairlead"),
        ("WARNING: Retrying (Retry(total=4)) after connection", "the package index does not answer; trying again"),
        ("Requirement already satisfied: rich>=14.2", "starting pip"),
    ],
)
def test_the_last_line_of_pip_that_tells_is_shown(line: str, expected: str) -> None:
    assert activity([line, "Looking in indexes: somewhere"]) == expected


def test_an_index_that_cannot_be_reached(tmp_path: Path) -> None:
    folder = tmp_path / "venv"
    done = run(SCRIPT, folder, PIP_INDEX_URL="http://127.0.0.1:9/", PIP_RETRIES="1", PIP_FIND_LINKS="")
    assert done.returncode == 1
    version = ".".join(map(str, sys.version_info[:3]))
    lines = [line for line in done.stderr.splitlines() if " s: " not in line]  # those of a slow machine
    assert lines == [
        f"Setting up {folder}: about 110 MB; 15 seconds to a minute, depending on the network.",
        f"[1/3] Creating the environment (Python {version})",
        "[2/3] Downloading and installing the packages",
        "",
        *NO_NETWORK.format(python=f"{folder}/bin/python", log=f"{folder}/setup.log").splitlines(),
    ]
    assert "No matching distribution found" in (folder / "setup.log").read_text()


def test_a_requirement_that_cannot_be_met_shows_what_pip_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    environment = Environment(Path(sys.prefix))
    environment.log = tmp_path / "setup.log"
    with pytest.raises(SetupError) as error:
        environment.install("no-such-package>=1")
    assert str(error.value).splitlines()[-2:] == [
        "ERROR: No matching distribution found for no-such-package>=1",
        f"pip failed. Its complete output is in {tmp_path}/setup.log.",
    ]


def test_a_python_without_ensurepip(tmp_path: Path) -> None:
    code = f"""if True:
        import sys, runpy
        sys.modules["ensurepip"] = None
        sys.argv = ["setup_venv.py", {str(tmp_path / "venv")!r}]
        runpy.run_path({str(SCRIPT)!r}, run_name="__main__")
    """
    done = run("-c", code, PYTHONPATH=str(TOOLS))
    assert done.returncode == 1
    assert done.stderr.splitlines()[-2:] == [
        f"{sys.executable} has no ensurepip module, which creates virtual environments.",
        "Install it (Debian and Ubuntu: apt install python3-venv) or use another Python: make PYTHON=python3.12",
    ]


@pytest.mark.parametrize("python", ["no-such-python", "false"])
def test_make_names_the_python_that_does_not_do(tmp_path: Path, python: str) -> None:
    (tmp_path / "Makefile").write_bytes((TOOLS.parent / "Makefile").read_bytes())
    for name in ("pyproject.toml", "hatch_build.py"):
        (tmp_path / name).touch()
    done = subprocess.run(
        ["make", "-C", tmp_path, "run", f"PYTHON={python}"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert f"Fairlead needs Python 3.11 or newer. {python} is: " in done.stderr
    assert "Name another one: make PYTHON=python3.12" in done.stderr
