"""The wheel contains what it needs and nothing else, and every requirement is declared."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import fairlead

ROOT = Path(__file__).parent.parent
WARNING = "The launcher was not compiled ({}); each event takes about 10 ms longer. Install a C compiler and reinstall."


def build(folder: Path, *words: str, **env: str) -> str:
    """Build the distributions; return the output."""
    done = subprocess.run(
        [sys.executable, "-m", "build", *words, "--outdir", folder, ROOT],
        env={**os.environ, **env},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a source distribution and the wheel that was built from it.

    Of several processes of a run one builds them, and the others wait.
    """
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    folder = shared / "distributions"
    with (shared / "distributions.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            begun = shared / "distributions.begun"
            build(begun)
            begun.rename(folder)
    return folder


@pytest.fixture(scope="module")
def wheel(distributions: Path) -> Path:
    return next(distributions.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, installed into an empty folder: nothing of this checkout is on the path."""
    return install(wheel, tmp_path_factory.mktemp("installed"))


def install(wheel: Path, folder: Path) -> Path:
    words = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), str(wheel)]
    subprocess.run(words, check=True, capture_output=True)
    return folder


def blocks_without_python(program: Path, folder: Path) -> bool:
    """Return whether the launcher runs and fails closed with neither a daemon nor a Python."""
    done = subprocess.run(
        [program, "PreToolUse", "--python", folder / "no-python"],
        env={"FAIRLEAD_HOME": str(folder), "PATH": os.environ["PATH"]},
        capture_output=True,
        check=False,
    )
    return done.returncode == 2 and b'"permissionDecision":"deny"' in done.stdout


def version_of(installed: Path) -> str:
    """Return what `fairlead --version` prints: without a daemon, by way of its Python."""
    env = {"FAIRLEAD_HOME": str(installed), "PYTHONPATH": str(installed), "PATH": os.environ["PATH"]}
    command = [str(installed / "bin" / "fairlead"), "--version"]
    return subprocess.run(command, env=env, capture_output=True, check=True, text=True).stdout


def test_the_wheel_holds_the_package_its_types_its_samples_its_launcher_and_its_licence(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    sources = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src").rglob("*.py")}
    meta = {name for name in names if ".dist-info/" in name}
    scripts = {name for name in names if ".data/scripts/" in name}
    data = {"py.typed", "clients/skill.md", "policy/schema.json", "policy/init/template.yaml", "testing/samples.json"}
    assert names - meta - scripts == sources | {f"fairlead/{name}" for name in data}
    assert {name.rpartition("/")[2] for name in scripts} == {"fairlead-hook", "fairlead"}
    assert any(name.endswith("licenses/LICENSE") for name in meta)


def test_the_source_distribution_can_build_the_launcher(distributions: Path) -> None:
    with tarfile.open(next(distributions.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    launcher = {f"launcher/{file.name}" for file in (ROOT / "launcher").iterdir() if file.is_file()}
    assert {"hatch_build.py", "pyproject.toml", *launcher} <= names


def test_a_compiled_launcher_ties_the_wheel_to_a_platform_but_to_no_python(wheel: Path, installed: Path) -> None:
    if shutil.which("cc") is None:
        assert os.environ.get("CI") != "true", "CI must have a C compiler"
        pytest.skip("there is no C compiler")
    assert "-py3-none-" in wheel.name
    assert not wheel.name.endswith("-any.whl")
    program = installed / "bin" / "fairlead-hook"
    assert program.read_bytes()[:2] != b"#!"
    assert blocks_without_python(program, installed)
    assert (installed / "bin" / "fairlead").read_bytes() == program.read_bytes()
    assert version_of(installed) == f"fairlead {fairlead.__version__}\n"


def test_without_a_compiler_the_wheel_fits_every_platform_and_the_build_warns(tmp_path: Path) -> None:
    output = build(tmp_path, "--wheel", FAIRLEAD_NO_COMPILER="1")
    assert WARNING.format("FAIRLEAD_NO_COMPILER=1") in output
    wheel = next(tmp_path.glob("*.whl"))
    assert wheel.name.endswith("-py3-none-any.whl")
    folder = install(wheel, tmp_path / "installed")
    program = folder / "bin" / "fairlead-hook"
    assert program.read_text(encoding="utf-8").startswith(f"#!{sys.executable}\n")
    assert "@VERSION@" not in program.read_text(encoding="utf-8")
    assert blocks_without_python(program, folder)
    assert (folder / "bin" / "fairlead").read_text(encoding="utf-8").startswith(f"#!{sys.executable}\n")
    assert version_of(folder) == f"fairlead {fairlead.__version__}\n"


@pytest.mark.parametrize(
    ("compiler", "reason"), [("false", "the C compiler failed"), ("no-cc", "no C compiler found: no-cc")]
)
def test_a_compiler_that_does_not_work_counts_as_none(tmp_path: Path, compiler: str, reason: str) -> None:
    assert WARNING.format(reason) in build(tmp_path, "--wheel", CC=compiler)


def test_the_install_that_these_tests_run_in_has_the_launcher_too(tmp_path: Path) -> None:
    """The install is editable, as `make` creates it."""
    assert blocks_without_python(Path(sys.executable).with_name("fairlead-hook"), tmp_path)


def test_the_wheel_runs_from_where_it_is_installed(installed: Path) -> None:
    paths = [str(installed), *(path for path in sys.path if path.endswith("site-packages"))]
    program = f"import sys; sys.path[:0] = {paths}; import fairlead; from fairlead.testing import samples;"
    program += "print(fairlead.__file__, len(list(samples())))"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout == f"{installed}/fairlead/__init__.py 92\n"
