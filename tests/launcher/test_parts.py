"""The parts of the launchers compared with each other: the parser of answers, and the path of the socket."""

from __future__ import annotations

import itertools
import os
import random
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from launcher.build import ROOT, SOURCES, compile_c, compiler_warnings, load, unavailable
from launcher.fakes import answer_200, answer_202, answer_303

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

HERE = ROOT / "tests" / "launcher"
STRICT = {"ASAN_OPTIONS": "exitcode=99", "UBSAN_OPTIONS": "exitcode=99"}


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the programs `fuzz` and `paths`."""
    folder = tmp_path_factory.mktemp("parts")
    for name, part in (("fuzz", "answer.c"), ("paths", "paths.c")):
        problem = compile_c(folder / name, HERE / f"{name}.c", SOURCES / part, SOURCES / "text.c")
        if problem:
            unavailable(problem)
    return folder


@pytest.fixture(scope="module")
def twin() -> Any:
    return load(SOURCES / "hook.py")


@pytest.mark.usefixtures("parts")
def test_the_compiler_has_no_warnings() -> None:
    assert compiler_warnings() == ""


def test_no_mutation_of_an_answer_breaks_the_parser(parts: Path) -> None:
    done = subprocess.run([parts / "fuzz", "100000", "1"], capture_output=True, text=True, env=STRICT, check=False)
    assert (done.stderr, done.returncode) == ("", 0)
    partial, whole, garbage = map(int, done.stdout.split())
    assert min(partial, whole, garbage) > 1000, "each outcome occurred"


def test_both_launchers_parse_answers_alike(parts: Path, twin: Any) -> None:
    answers = mutations(5000)
    text = b"".join(b"%d\n%s" % (len(answer), answer) for answer in answers)
    done = subprocess.run([parts / "fuzz"], input=text, capture_output=True, env=STRICT, check=True)
    compiled_results = done.stdout.decode().splitlines()
    assert len(set(compiled_results)) > 20
    for answer, result in zip(answers, compiled_results, strict=True):
        assert twin_result(twin, answer) == result, answer


def mutations(count: int) -> list[bytes]:
    rng = random.Random(7)
    plain, plan, wait = answer_200(b"abc", b"de", 2), answer_202(b"{}"), answer_303("a_Z-0", 86_400_000)
    seeds = [plain, plan, plain.replace(b": ", b":\t"), wait, answer_303("x" * 64, 1)]
    lines = [b"content-length: 1\r\n", b"location: /v1/waits/x\r\n", b"fairlead-wait: 7\r\n", b"303", b"200", b"/v1/"]
    pieces = [b"\r\n", b"\r", b"\n", b":", b" ", b"\0", b"\xff", b"1", b"256", b"\xb2", b"_", b"/", b"", *lines]
    mutated = []
    for _ in range(count):
        answer = rng.choice(seeds)
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(answer) + 1)
            answer = answer[:at] + rng.choice(pieces) + answer[at + rng.choice([0, 0, 1, 2]) :]
        mutated.append(answer)
    return mutated


def twin_result(twin: Any, answer: bytes) -> str:
    end = answer.find(b"\r\n\r\n", 0, twin.MAX_HEAD)
    if end < 0:
        return "none"
    try:
        got = twin.read_head(answer[:end])
    except ValueError:
        return "none"
    sizes = f"{max(got.exit_code, 0)} {max(got.stdout_size, 0)} {got.size} {end + 4}"
    return f"{got.status} {sizes} {got.milliseconds} {got.token.decode()}"


def by_python(env: Mapping[str, str], cwd: Path) -> str:
    """Return what `fairlead.paths` returns."""
    program = "import sys; sys.path.insert(0, sys.argv[1]); from fairlead import paths; print(paths.runtime_folder())"
    command = [sys.executable, "-I", "-c", program, str(ROOT / "src")]
    done = subprocess.run(command, env=env, cwd=cwd, capture_output=True, check=True)
    return os.fsdecode(done.stdout.removesuffix(b"\n"))


def by_twin(twin: Any, env: Mapping[str, str], cwd: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(cwd)
    monkeypatch.setattr(twin, "env", {os.fsencode(key): os.fsencode(value) for key, value in env.items()})
    folder = twin.runtime_folder()
    return "none" if folder is None else os.fsdecode(folder)


def by_c(parts: Path, env: Mapping[str, str], cwd: Path) -> str:
    done = subprocess.run([parts / "paths"], env={**STRICT, **env}, cwd=cwd, capture_output=True, check=True)
    return os.fsdecode(done.stdout.removesuffix(b"\n"))


ENVIRONMENTS = (
    {"HOME": "/home/x"},
    {"HOME": "/home/x///"},
    {"HOME": "/"},
    {"HOME": ""},
    {"HOME": "relative/home"},
    {"HOME": "/h", "XDG_STATE_HOME": "/state/"},
    {"HOME": "/h", "XDG_STATE_HOME": "state"},
    {"HOME": "/h", "XDG_STATE_HOME": ""},
    {"XDG_STATE_HOME": "/state"},
    {"HOME": "/h", "XDG_RUNTIME_DIR": "/"},
    {"HOME": "/h", "XDG_RUNTIME_DIR": "HERE"},
    {"HOME": "/h", "XDG_RUNTIME_DIR": "HERE/../here//"},
    {"HOME": "/h", "XDG_RUNTIME_DIR": "HERE/link"},
    {"HOME": "/h", "XDG_RUNTIME_DIR": "HERE/file"},
    {"HOME": "/h", "XDG_RUNTIME_DIR": "HERE/missing"},
    {"HOME": "/h", "XDG_RUNTIME_DIR": "here"},
    {"HOME": "/h", "XDG_RUNTIME_DIR": ""},
    {"HOME": "/h", "FAIRLEAD_HOME": ""},
    {"HOME": "/h", "FAIRLEAD_HOME": "own", "XDG_RUNTIME_DIR": "/"},
    {"HOME": "/h", "FAIRLEAD_HOME": "../\N{SNOWMAN}\udcff/./x//"},
    {"FAIRLEAD_HOME": "~/x"},
)


def test_all_find_the_same_runtime_folder(
    parts: Path, twin: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    (here / "link").symlink_to(tmp_path)
    (here / "file").touch()
    for template in ENVIRONMENTS:
        env = {key: value.replace("HERE", str(here)) for key, value in template.items()}
        expected = by_python(env, here)
        assert by_c(parts, env, here) == expected, env
        assert by_twin(twin, env, here, monkeypatch) == expected, env


def test_without_home_the_folder_is_left_to_python(
    parts: Path, twin: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    default = f"/run/user/{os.getuid()}"
    expected = f"{default}/fairlead" if os.path.isdir(default) else "none"  # noqa: PTH112 - as paths.py
    assert by_c(parts, {}, tmp_path) == expected
    assert by_twin(twin, {}, tmp_path, monkeypatch) == expected


def test_paths_are_made_absolute_as_in_python(
    parts: Path, twin: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = ["/", "//", ".", "..", "a", "a.", "/b"]
    paths = sorted({"".join(path) for size in range(1, 5) for path in itertools.product(steps, repeat=size)})
    monkeypatch.chdir(tmp_path)
    done = subprocess.run([parts / "paths", *paths], env=STRICT, capture_output=True, text=True, check=True)
    expected = [f"{os.path.abspath(path)}/run" for path in paths]  # noqa: PTH100 - as paths.py
    assert done.stdout.splitlines() == expected
    assert [f"{os.fsdecode(twin.absolute_path(path.encode()))}/run" for path in paths] == expected
