"""The wheel has what it needs, and nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
WARNING = "THE LAUNCHER IS NOT COMPILED"


def build(folder: Path, *words: str, **env: str) -> str:
    """Build, and give what was said."""
    done = subprocess.run(
        [sys.executable, "-m", "build", *words, "--outdir", folder, ROOT],
        env={**os.environ, **env},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a source distribution, and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("made")
    build(folder)
    return folder


@pytest.fixture(scope="module")
def wheel(made: Path) -> Path:
    return next(made.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Into a folder of its own, so that nothing of this checkout is on the path."""
    return install(wheel, tmp_path_factory.mktemp("installed"))


def install(wheel: Path, folder: Path) -> Path:
    words = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), str(wheel)]
    subprocess.run(words, check=True, capture_output=True)
    return folder


def shuts_the_gate(program: Path, folder: Path) -> bool:
    """Whether it is the launcher and runs: without a daemon and a Python, it must block."""
    done = subprocess.run(
        [program, "PreToolUse", "--python", folder / "no-python"],
        env={"FAIRLEAD_HOME": str(folder), "PATH": os.environ["PATH"]},
        capture_output=True,
        check=False,
    )
    return done.returncode == 2 and b'"permissionDecision":"deny"' in done.stdout


def test_the_wheel_holds_the_package_its_types_its_samples_its_launcher_and_its_licence(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    sources = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src").rglob("*.py")}
    meta = {name for name in names if ".dist-info/" in name}
    scripts = {name for name in names if ".data/scripts/" in name}
    data = {"py.typed", "clients/skill.md", "policy/schema.json", "policy/init/template.yaml", "testing/samples.json"}
    assert names - meta - scripts == sources | {f"fairlead/{name}" for name in data}
    assert [name.rpartition("/")[2] for name in scripts] == ["fairlead-hook"]
    assert any(name.endswith("licenses/LICENSE") for name in meta)


def test_the_source_distribution_can_build_the_launcher(made: Path) -> None:
    with tarfile.open(next(made.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    launcher = {f"launcher/{file.name}" for file in (ROOT / "launcher").iterdir() if file.is_file()}
    assert {"hatch_build.py", "pyproject.toml", *launcher} <= names


def test_a_compiled_launcher_ties_the_wheel_to_a_platform_but_to_no_python(wheel: Path, installed: Path) -> None:
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    assert "-py3-none-" in wheel.name
    assert not wheel.name.endswith("-any.whl")
    program = installed / "bin" / "fairlead-hook"
    assert program.read_bytes()[:2] != b"#!"
    assert shuts_the_gate(program, installed)


def test_without_a_compiler_the_wheel_is_for_all_and_says_so(tmp_path: Path) -> None:
    said = build(tmp_path, "--wheel", FAIRLEAD_NO_COMPILER="1")
    assert WARNING in said
    wheel = next(tmp_path.glob("*.whl"))
    assert wheel.name.endswith("-py3-none-any.whl")
    folder = install(wheel, tmp_path / "installed")
    program = folder / "bin" / "fairlead-hook"
    assert program.read_text(encoding="utf-8").startswith(f"#!{sys.executable}\n")
    assert "@VERSION@" not in program.read_text(encoding="utf-8")
    assert shuts_the_gate(program, folder)


def test_a_compiler_that_does_not_work_is_none(tmp_path: Path) -> None:
    assert WARNING in build(tmp_path, "--wheel", CC="false")


def test_the_install_that_these_tests_run_in_has_the_launcher_too(tmp_path: Path) -> None:
    """An editable one, as `make` makes it."""
    assert shuts_the_gate(Path(sys.executable).with_name("fairlead-hook"), tmp_path)


def test_the_wheel_runs_from_where_it_is_installed(installed: Path) -> None:
    paths = [str(installed), *(path for path in sys.path if path.endswith("site-packages"))]
    program = f"import sys; sys.path[:0] = {paths}; import fairlead; from fairlead.testing import samples;"
    program += "print(fairlead.__file__, len(list(samples())))"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout == f"{installed}/fairlead/__init__.py 92\n"
