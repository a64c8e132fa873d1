"""Shows events being decided, from the outside: the real command, real payloads, and what came back.

It checks what it shows, and ends with exit code 1 if anything came out differently.

Try it:  make run
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from fairlead.testing import make_payload

HERE = Path(__file__).parent

TYPO = """\
from fairlead import HookManager, HookOutput, PreToolUse

hooks = HookManager()


@hooks.on(PreToolUse, matcher="Bash")
def guard(event: PreToolUse) -> HookOutput | None:
    if "sudo" in event.tool_input["comand"]:
        return HookOutput.block("No sudo here.")
    return None
"""

UNFINISHED = """\
from fairlead import HookManager, PreToolUse

hooks = HookManager()


@hooks.on(PreToolUse)
def guard(event: PreToolUse) -> None
    pass
"""

RULE = "if grep -q 'push --force'; then echo 'Ask before you force a push.' >&2; exit 2; fi"
SETTINGS = {"hooks": {"preToolUse": {"no-force": {"command": RULE, "timeout_secs": 5, "matcher": "Bash"}}}}


@dataclass(frozen=True)
class Scene:
    """One event, the command that decides it, and what has to come of it."""

    title: str
    event: str
    option: str
    told: dict[str, Any]
    """What the scene changes in a payload of the real client, and the part of it that is shown."""
    exit_code: int
    answer: str
    """What the answer has to contain."""
    rule: str = ""

    @property
    def command(self) -> str:
        """The command line as a person would type it."""
        return f"fairlead {self.event} {self.option} < payload.json"


@dataclass(frozen=True)
class Ending:
    """What came of a scene."""

    exit_code: int
    answer: str
    seconds: float


def bash(command: str) -> dict[str, Any]:
    """What the client says about a shell command."""
    return {"tool_name": "Bash", "tool_input": {"command": command}}


SCENES = (
    Scene(
        "A harmless command passes.",
        "PreToolUse",
        "--hooks security.py",
        bash("git status"),
        0,
        "nothing to object",
    ),
    Scene(
        "A dangerous one is blocked, and the agent reads why.",
        "PreToolUse",
        "--hooks security.py",
        bash("sudo rm -rf /"),
        2,
        "deny: Blocked: contains 'rm -rf'",
    ),
    Scene(
        "The guard can be a shell command: a rule in a settings file.",
        "PreToolUse",
        "--rules settings.json",
        bash("git push --force"),
        2,
        "deny: Ask before you force a push.",
        rule=RULE,
    ),
    Scene(
        "A hook that crashes denies: a gate never fails open.",
        "PreToolUse",
        "--hooks typo.py",
        bash("ls"),
        2,
        "deny: hook 'typo.guard' failed, so this is denied: KeyError: 'comand'",
    ),
    Scene(
        "So does a file that cannot be loaded, and it says where.",
        "PreToolUse",
        "--hooks unfinished.py",
        bash("ls"),
        2,
        "line 7: SyntaxError: expected ':'",
    ),
    Scene(
        "A subagent starts, and the monitor hears of it.",
        "SubagentStart",
        "--hooks subagent_monitor.py",
        {"agent_type": "Explore", "agent_id": "a6c7e1d2"},
        0,
        "INFO subagent started: id=a6c7e1d2 type=Explore desc=None",
    ),
)


def main() -> int:
    """Play every scene; 1 if one of them came out differently."""
    show = Screen()
    show.opening()
    with TemporaryDirectory(prefix="fairlead-tour-") as folder:
        furnish(Path(folder))
        play(SCENES[0], Path(folder))  # the first run after an install compiles the modules: not worth measuring
        endings = []
        for number, scene in enumerate(SCENES, 1):
            endings.append(play(scene, Path(folder)))
            show.scene(number, scene, endings[-1])
    wrong = sum(not as_told(scene, ending) for scene, ending in zip(SCENES, endings, strict=True))
    show.end(wrong, median(ending.seconds for ending in endings))
    return 1 if wrong else 0


def furnish(folder: Path) -> None:
    """Put the files of the scenes into a folder: two of the examples as they are, and three more."""
    for name in ("security.py", "subagent_monitor.py"):
        shutil.copy(HERE / name, folder)
    (folder / "typo.py").write_text(TYPO)
    (folder / "unfinished.py").write_text(UNFINISHED)
    (folder / "settings.json").write_text(json.dumps(SETTINGS))


def play(scene: Scene, folder: Path) -> Ending:
    """Run the command as the client would."""
    payload = folder / "payload.json"
    payload.write_text(json.dumps(make_payload(scene.event, cwd=str(folder), **scene.told)))
    command = [sys.executable, "-m", "fairlead", scene.event, *scene.option.split()]
    with payload.open() as stdin:
        start = perf_counter()
        done = subprocess.run(command, cwd=folder, stdin=stdin, capture_output=True, text=True, check=False)  # noqa: S603
        return Ending(done.returncode, answer_in(done.stdout, done.stderr), perf_counter() - start)


def answer_in(stdout: str, stderr: str) -> str:
    """Give the essential part of what the command said."""
    if stdout.startswith("{"):
        verdict = json.loads(stdout)["hookSpecificOutput"]
        return f"{verdict['permissionDecision']}: {verdict['permissionDecisionReason']}"
    return stderr.strip() or "nothing to object"


def as_told(scene: Scene, ending: Ending) -> bool:
    """Whether it came out as the scene says."""
    return ending.exit_code == scene.exit_code and scene.answer in ending.answer


class Screen:
    """Prints the tour; in colour on a terminal, unless NO_COLOR is set."""

    def __init__(self) -> None:
        """Look at where the text goes."""
        self.colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")

    def opening(self) -> None:
        """Say what this is."""
        print(f"{self.paint('1', 'Fairlead')} decides events, by the command that a client would run.\n")

    def scene(self, number: int, scene: Scene, ending: Ending) -> None:
        """Show a scene and what came of it."""
        print(f"{self.paint('1;36', str(number))}  {self.paint('1', scene.title)}")
        print(f"   {self.paint('36', '$')} {scene.command}")
        if scene.rule:
            print(f"   {self.paint('2', 'rule')}    {scene.rule}")
        print(f"   {self.paint('2', 'stdin')}   {json.dumps(scene.told)}")
        badge = self.paint("1;32" if ending.exit_code == 0 else "1;31", f"exit {ending.exit_code}")
        print(f"   {badge}  {ending.answer}")
        if not as_told(scene, ending):
            print(f"   {self.paint('1;33', f'expected: exit {scene.exit_code}, {scene.answer}')}")
        print()

    def end(self, wrong: int, seconds: float) -> None:
        """Say how it went, how long it took, and what to read next."""
        for line in self._last_lines(wrong, seconds):
            print(line)

    def _last_lines(self, wrong: int, seconds: float) -> Iterator[str]:
        if wrong:
            yield self.paint("1;31", f"{wrong} of {len(SCENES)} came out differently.")
        else:
            yield f"All {len(SCENES)} came out as they should."
        yield f"An event took {seconds * 1000:.0f} ms (median), the start of Python included; see docs/benchmarks.md."
        yield "Next: docs/quickstart.md, a hook of your own in five minutes."

    def paint(self, style: str, text: str) -> str:
        """Give the text a style, where there is colour."""
        return f"\033[{style}m{text}\033[0m" if self.colour else text


if __name__ == "__main__":
    sys.exit(main())
