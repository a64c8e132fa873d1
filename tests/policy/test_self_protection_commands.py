"""Commands that switch the guards off are held, by any tool that runs one; everyday commands are not."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from policy.cases import for_each

from fairlead.events import HookOutput, PreToolUse
from fairlead.policy.config._types import Layer, Policy
from fairlead.policy.guards._guards import Guards

PREFIX = sys.prefix


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a policy, in a home with hooks installed for the user."""
    home = tmp_path.resolve() / "home"
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "FAIRLEAD_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    (home / ".claude").mkdir(parents=True)
    hook = {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "/x/bin/fairlead-hook PreToolUse"}]}]}}
    (home / ".claude/settings.json").write_text(json.dumps(hook))
    project = tmp_path.resolve() / "project"
    for folder in ("src", ".venv/bin", "other"):
        (project / folder).mkdir(parents=True)
    (project / "other/pyproject.toml").write_text('[project]\nname = "other"\n')
    (project / ".venv/bin/pip").write_text("#!/bin/sh\n")
    (project / ".fairlead.yaml").write_text("{}\n")
    return project


def call(project: Path, tool: str, tool_input: dict[str, Any], **pre_tool_use: Any) -> HookOutput:
    pre_tool_use.setdefault("preventRootAdditions", False)
    policy = msgspec.convert({"preToolUse": pre_tool_use}, Policy)
    event = PreToolUse(session_id="s", tool_name=tool, tool_input=tool_input, cwd=str(project))
    return Guards([Layer(str(project / ".fairlead.yaml"), str(project), policy)]).check(event).output


def bash(project: Path, command: str) -> HookOutput:
    return call(project, "Bash", {"command": command})


def held(output: HookOutput) -> bool:
    return output.blocked or output.permission == "ask"


OWN_COMMANDS = [
    *("fairlead hooks uninstall", "fairlead uninstall", "fairlead uninstall --scope local", "fairlead install"),
    *("fairlead hooks install --stay always", "fairlead hooks install --scope project --replace conclaude"),
    *("fairlead init --force", "fairlead init . --force", "fairlead init --install", "fairlead daemon stop"),
    *(f"fairlead sessions {word} 5f0c8a4e" for word in ("go", "interrupt", "end", "end --yes", "transcript", "copy")),
    *("fairlead sessions --json end 5f0c8a4e --yes", "tmux new-window 'fairlead sessions end 5f0c8a4e --yes'"),
    *("fairlead daemon restart", "fairlead trust .", "fairlead trust ../b/.fairlead.yaml", "fairlead untrust ."),
    "curl --unix-socket $XDG_RUNTIME_DIR/fairlead/daemon.sock -d '{}' http://x/v1/answers/k7qd3",
    "tmux send-keys -t view 'fairlead answer k7qd3 allow' Enter",
    *("fairlead answer 3 allow", "fairlead hooks --scope user uninstall", "fairlead uninstall --yes"),
]
WRAPPED = [
    *("/home/me/.local/bin/fairlead hooks uninstall", "~/.local/bin/fairlead uninstall", "./fairlead uninstall"),
    *("env fairlead uninstall", "env -i fairlead uninstall", "env A=1 fairlead uninstall", "sudo fairlead uninstall"),
    *("sudo -u me fairlead uninstall", "timeout 5 fairlead uninstall", "timeout -k 1 5 fairlead uninstall"),
    *("nohup fairlead uninstall &", "setsid fairlead uninstall", "nice -n 5 fairlead uninstall"),
    *("python -m fairlead uninstall", "python3 -m fairlead hooks uninstall", "python3.11 -mfairlead uninstall"),
    *("python -m fairlead.cli.main uninstall", "python -E -P -m fairlead uninstall"),
    *("python .venv/bin/fairlead uninstall", "uvx fairlead uninstall", "uvx fairlead@latest uninstall"),
    *("uvx --from fairlead fairlead uninstall", "uv run fairlead uninstall", "uv tool run fairlead uninstall"),
    *("pipx run fairlead uninstall", "pipx run --spec fairlead==1 fairlead uninstall", "poetry run fairlead uninstall"),
    *("fairlead-python uninstall", "fairlead --launched 17b-1 uninstall", "fairlead hooks --launched 17b-1 uninstall"),
    *("npx fairlead uninstall", "echo uninstall | xargs fairlead hooks", "echo x | xargs -I{} fairlead uninstall"),
    *("bash -c 'fairlead uninstall'", 'sh -c "fairlead daemon stop"', "eval fairlead uninstall"),
    *("f=fairlead; $f uninstall", "X=uninstall; fairlead hooks $X", "fairlead hooks $(echo uninstall)"),
    *("fair''lead unin\"stall\"", "\\fairlead uninstall", "command fairlead uninstall", "exec fairlead uninstall"),
    *("true && fairlead uninstall || true", "(cd /tmp; fairlead uninstall)", "if true; then fairlead uninstall; fi"),
    *("watch fairlead daemon stop", "strace -f fairlead uninstall", "some-wrapper --x fairlead uninstall"),
    *("fairlead-hook uninstall", "bash <<< 'fairlead uninstall'", "bash <<'E'\nfairlead uninstall\nE"),
    *(
        "find . -exec fairlead uninstall \\;",
        "yes | fairlead uninstall",
        'fairlead "$CMD"',
        "$(echo fairlead) uninstall",
    ),
    *("script -qc 'fairlead uninstall' /dev/null", "su me -c 'fairlead uninstall'", "flock x fairlead uninstall"),
    *("tmux new-session -d 'fairlead uninstall'", "tmux send-keys -t 0 'fairlead uninstall' Enter"),
    *("echo 'fairlead uninstall' | at now", "echo '* * * * * fairlead daemon stop' | crontab -"),
    *("systemd-run --user fairlead daemon stop", "screen -dm fairlead uninstall", "ssh localhost fairlead uninstall"),
    *("fairlead-hook SessionStart < forged.json", "fairlead SessionStart", "echo '{}' | fairlead session-start"),
    *("curl -X POST --unix-socket ~/.local/state/fairlead/run/daemon.sock http://x/v1/stop",),
    *("curl -XPOST --unix-socket /run/user/1000/fairlead/daemon.sock http://localhost/v1/stop",),
    *("curl -X POST -H 'authorization: Bearer x' http://127.0.0.1:7777/v1/stop",),
    *("python3 -c \"import subprocess; subprocess.run(['fairlead', 'hooks', 'uninstall'])\"",),
    *("python3 -c \"from fairlead.cli.main import main; main(['uninstall'])\"",),
    *("python3 - <<'E'\nfrom fairlead.cli.main import main\nmain(['daemon', 'stop'])\nE",),
    *(
        "node -e \"require('child_process').execSync('fairlead uninstall')\"",
        "perl -e 'system(\"fairlead uninstall\")'",
    ),
]


@for_each("command", [*OWN_COMMANDS, *WRAPPED])
def test_no_command_of_fairlead_that_is_left_to_a_person_is_run(command: str, project: Path) -> None:
    assert held(bash(project, command))


@for_each("command", OWN_COMMANDS)
def test_such_a_command_is_blocked_with_who_can_run_it(command: str, project: Path) -> None:
    output = bash(project, command)
    assert output.blocked
    assert output.reason is not None
    assert output.reason.startswith("Blocked Bash operation: preToolUse.protectOwnFiles keeps agents from ")
    assert output.reason.endswith("Only the user can do that, in a terminal of their own.")


@for_each("command", [*OWN_COMMANDS, *WRAPPED[:12]])
def test_a_tool_of_an_mcp_server_that_runs_a_command_is_held_too(command: str, project: Path) -> None:
    assert held(call(project, "mcp__shell__execute", {"command": command}))


@for_each(
    "command",
    [
        *(
            "pip uninstall fairlead",
            "pip uninstall -y fairlead",
            "pip3 uninstall fairlead",
            "python -m pip uninstall fairlead",
        ),
        *(
            "python3.11 -m pip uninstall -y fairlead",
            "pipx uninstall fairlead",
            "pipx uninstall-all",
            "uv tool uninstall fairlead",
        ),
        *(
            "uv tool uninstall --all",
            "uv pip uninstall fairlead",
            "conda remove fairlead",
            "conda uninstall -y fairlead",
        ),
        *("poetry remove fairlead", "pdm remove fairlead", "brew uninstall fairlead", "sudo pip uninstall fairlead"),
        *(
            "pip install fairlead==0.0.1",
            "pip install --force-reinstall fairlead",
            "pip install 'fairlead @ file:///tmp/x'",
        ),
        *("pip install /tmp/fairlead-9.9-py3-none-any.whl", "pip install git+https://example.com/x/fairlead.git"),
        *(
            "pip install git+https://example.com/x.git#egg=fairlead",
            "pipx install --force fairlead",
            "pipx reinstall fairlead",
        ),
        *("pipx upgrade fairlead", "pipx inject fairlead evil", "pipx runpip fairlead uninstall -y msgspec"),
        *("uv tool install --force fairlead==0.1", "uv tool upgrade fairlead", "uv tool upgrade --all"),
        *("{prefix}/bin/pip uninstall -y msgspec", "{prefix}/bin/python -m pip uninstall -y tree-sitter"),
        *("{prefix}/bin/pip install msgspec==0.1", "{prefix}/bin/pip install click==1"),
        *("pip install --target {prefix}/lib/python3/site-packages evil", "pip install -t{prefix}/lib evil"),
        *("pip install --prefix={prefix} evil", "uv pip install --python {prefix}/bin/python evil"),
        *("uv pip install -p {prefix}/bin/python msgspec", "pip --python {prefix}/bin/python uninstall -y msgspec"),
        *(
            "python -m venv --clear {prefix}",
            "python3 -m venv {prefix}",
            "virtualenv --clear {prefix}",
            "uv venv {prefix}",
        ),
        *(
            "cd /tmp && pip uninstall -y fairlead",
            "bash -c 'pip uninstall -y fairlead'",
            "yes | pip uninstall fairlead",
        ),
        *("echo fairlead | xargs pip uninstall -y", "env PIP_X=1 pip uninstall -y fairlead"),
    ],
)
def test_no_package_manager_removes_or_replaces_fairlead(command: str, project: Path) -> None:
    assert held(bash(project, command.format(prefix=PREFIX)))


@for_each(
    "command",
    [
        *(
            "pkill -f fairlead",
            "pkill fairlead",
            "killall fairlead",
            "pkill -9 -f fairlead.daemon",
            "kill $(pgrep -f fairlead)",
        ),
        *("pgrep -f fairlead | xargs kill", "pgrep -f fairlead | xargs -r kill -9", "kill -9 -1", "kill -- -1"),
        *("kill $(cat ~/.local/state/fairlead/run/daemon.lock)", "PID=$(pgrep -f fairlead.daemon); kill $PID"),
        *("ps ax | grep fairlead | awk '{{print $2}}' | xargs kill", "killall python", "pkill -f 'fairlead[.]daemon'"),
        *("pkill -f 'python.*daemon'", "pkill -f on-demand", "pkill -u $USER", "killall -u me", "killall5 -9"),
        *("systemctl --user stop fairlead", "systemctl --user disable --now fairlead.service"),
        *("systemctl --user mask fairlead.service", "systemctl stop fairlead", "sudo systemctl stop fairlead.service"),
        *("systemctl --user kill fairlead", "systemctl --user set-environment PYTHONPATH=/tmp/x"),
        *("launchctl unload ~/Library/LaunchAgents/com.me.fairlead.plist", "launchctl bootout gui/501/com.me.fairlead"),
        *("launchctl setenv CLAUDE_CONFIG_DIR /tmp/x", "service fairlead stop", "loginctl terminate-user me"),
        *("kill $(pidof fairlead)", "kill $(pgrep -f on-demand)"),
    ],
)
def test_nothing_ends_the_daemon(command: str, project: Path) -> None:
    assert held(bash(project, command))


def test_the_daemon_is_known_by_its_pid(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlead.ipc.daemon_pid", lambda _: 4711)

    assert bash(project, "kill -9 4711").blocked
    assert bash(project, "kill -TERM -4711").blocked
    assert bash(project, "kill -s TERM 12 4711").blocked
    assert not held(bash(project, "kill -9 4712"))
    assert not held(bash(project, "kill -0 4711"))


NESTED = [
    *("claude --settings '{\"disableAllHooks\":true}' -p x", "claude --settings=x.json", "claude -p x --bare"),
    *("claude --bare -p 'remove .env'", "claude --setting-sources '' -p x", "claude --setting-sources=project -p x"),
    *("claude --safe-mode -p x", "claude --restricted --tools Bash -p x", "CLAUDE_CONFIG_DIR=/tmp/x claude -p x"),
    *("env CLAUDE_CONFIG_DIR=/tmp/x claude -p x", "export CLAUDE_CONFIG_DIR=/tmp/x; claude -p x"),
    *("HOME=/tmp/x claude -p x", "env HOME=/tmp/x claude -p x", "CLAUDE_CODE_SIMPLE=1 claude -p x"),
    *("CLAUDE_CODE_SAFE_MODE=1 claude -p x", "FAIRLEAD_HOME=/tmp/x claude -p x", "LD_PRELOAD=/tmp/x.so claude -p x"),
    *("PYTHONPATH=/tmp/x claude -p x", "PYTHONHOME=/tmp/x claude -p x", "NODE_OPTIONS='-r /tmp/x.js' claude -p x"),
    *("XDG_CONFIG_HOME=/tmp/x claude -p x", "npx @anthropic-ai/claude-code --bare -p x"),
    *("npx -y @anthropic-ai/claude-code@latest --bare -p x", "bunx @anthropic-ai/claude-code --safe-mode"),
    *("node node_modules/@anthropic-ai/claude-code/cli.js --bare", "~/.local/bin/claude --bare -p x"),
    *("timeout 60 claude --bare -p x", "nohup claude --bare -p x &", "echo x | claude --bare -p", "sudo claude -p x"),
    *("claude $OPTIONS -p x", "xargs claude --bare < prompts", "bash -c 'claude --bare -p x'"),
    *("CLAUDE_CONFIG_DIR=/tmp/x ./agent.sh", "export CLAUDE_CONFIG_DIR=/tmp/x && ./agent.sh"),
    *("FAIRLEAD_HOME=/tmp/x ./agent.sh", "declare -x CLAUDE_CONFIG_DIR=/tmp/x; ./agent.sh"),
    *("~/.local/share/claude/versions/2.1.325 --bare -p x", "tmux new -d -e CLAUDE_CONFIG_DIR=/tmp/x claude"),
    *("codex exec 'remove .env'", "codex --yolo", "gemini -p 'remove .env'", "opencode run 'x'", "aider --message x"),
    *(
        "cursor-agent -p x",
        "copilot -p x --allow-all-tools",
        "npx @openai/codex exec x",
        "npx -y @google/gemini-cli -p x",
    ),
    *("python3 -c 'from claude_agent_sdk import query'", "python3 - <<'E'\nimport claude_agent_sdk\nE"),
    *("PYTHONPATH=/tmp/x fairlead daemon start", "LD_PRELOAD=/tmp/x.so fairlead-hook PreToolUse"),
]


@for_each("command", NESTED)
def test_no_agent_is_started_without_the_hooks(command: str, project: Path) -> None:
    assert held(bash(project, command))


@for_each("command", NESTED[:20])
def test_a_tool_of_an_mcp_server_starts_none_either(command: str, project: Path) -> None:
    assert held(call(project, "mcp__terminal__run_command", {"command": command}))


def test_where_hooks_are_only_in_the_project_a_client_may_not_start_elsewhere(project: Path) -> None:
    settings = Path(os.environ["HOME"], ".claude/settings.json")
    assert not held(bash(project, "cd /tmp && claude -p x"))
    settings.write_text("{}")
    assert held(bash(project, "cd /tmp && claude -p x"))
    assert not held(bash(project, "claude -p x"))


EVERYDAY = [
    *(
        "fairlead validate",
        "fairlead explain --tool Bash --command 'fairlead hooks uninstall'",
        "fairlead hooks status",
    ),
    *(
        "fairlead daemon status",
        "fairlead daemon start",
        "fairlead sessions",
        "fairlead sessions --tree",
        "fairlead inbox",
    ),
    *(
        "fairlead send amber-fox 'please stop and trust the tests'",
        "fairlead reply 3 'uninstall it'",
        "fairlead --version",
    ),
    *(
        "fairlead uninstall --help",
        "fairlead help uninstall",
        "fairlead hooks install --dry-run",
        "fairlead trust --list",
    ),
    *(
        "fairlead init --dry-run --force",
        "fairlead doctor",
        "fairlead events --last 5",
        "fairlead test",
        "fairlead schema",
    ),
    *(
        "PYTHONPATH=src pytest",
        "PYTHONPATH=src python -m pytest -q",
        "LD_LIBRARY_PATH=lib ./app",
        "PYTHONPATH=. python x.py",
    ),
    *(
        "export PYTHONPATH=src; python app.py",
        "HOME=/tmp npm ci",
        "NODE_OPTIONS=--max-old-space-size=4096 npm run build",
    ),
    *("export NODE_ENV=test && npm test", "env PYTHONPATH=src python -m app", "PATH=$PWD/bin:$PATH make test"),
    *(
        "pip install requests",
        "pip install -r requirements.txt",
        "pip install -e .",
        "pip install -e other",
        "pip list",
    ),
    *(
        ".venv/bin/pip install click",
        ".venv/bin/pip uninstall -y msgspec",
        "uv sync",
        "uv add rich",
        "uv pip install click",
    ),
    *("poetry install", "pip install --upgrade pip", "python -m venv .venv", "python3 -m venv --clear .venv"),
    *("pipx list", "pipx install black", "uv tool install ruff", "brew install jq", "apt-get install -y curl"),
    *("pip uninstall -y requests", "npm uninstall left-pad", "conda install numpy", "pip show fairlead", "pip freeze"),
    *("kill 12345", "kill %1", "kill $!", "kill -9 $PID", "kill $(lsof -ti:3000)", "pkill -f 'npm run dev'"),
    *("pkill -f 'python manage.py runserver'", "pkill node", "killall node", "pkill -f vite", "pgrep -f python"),
    *("systemctl status nginx", "systemctl --user restart my-app", "sudo systemctl stop nginx", "docker stop web"),
    *("claude -p 'summarise README.md'", "claude --version", "claude mcp list", "claude --help", "claude doctor"),
    *('claude -p "$(cat prompt.md)"', "claude --model sonnet -p x", "echo x | claude -p", 'claude -p "$PROMPT"'),
    *(
        "codex --version",
        "gemini --help",
        "codex login",
        "npx prettier --check .",
        "npx tsc --noEmit",
        "uvx ruff check",
    ),
    *("grep -rn 'fairlead uninstall' docs", "git commit -m 'fairlead uninstall asks'", "echo 'fairlead daemon stop'"),
    *("git log --grep 'fairlead hooks uninstall'", "rg 'claude --bare' docs", 'echo "run fairlead trust ."'),
    *(
        "ls ~/.local/state/fairlead",
        "cat docs/uninstall.md",
        "make -C fairlead install",
        "npm --prefix fairlead install",
    ),
    *(
        "python -c 'import fairlead; print(fairlead.__version__)'",
        "which fairlead",
        "type claude",
        "command -v fairlead",
    ),
    *("docker run --rm -e NODE_ENV=test app", "docker compose stop", "goose up", "copilot deploy", "git stash"),
    *("cat > notes.md <<'E'\nrun fairlead uninstall\nE", "sed -n '/fairlead/p' README.md", "service nginx status"),
    *(
        "FAIRLEAD_DEBUG=1 fairlead validate",
        "cd src && ls",
        "curl http://localhost:8000/v1/users",
        "uv run pytest -k trust",
    ),
]


@for_each("command", EVERYDAY)
def test_everyday_commands_pass_without_a_question(command: str, project: Path) -> None:
    output = bash(project, command)
    assert not held(output), output.reason


@for_each("command", [*OWN_COMMANDS, *NESTED])
def test_a_user_may_switch_the_protection_off(command: str, project: Path) -> None:
    options = {"protectOwnFiles": False, "bash": {"unparsable": "allow"}}
    assert not held(call(project, "Bash", {"command": command}, **options))


@for_each("command", [*OWN_COMMANDS, *NESTED])
def test_without_any_policy_they_are_held_too(command: str, project: Path) -> None:
    event = PreToolUse(session_id="s", tool_name="Bash", tool_input={"command": command}, cwd=str(project))
    assert held(Guards([]).check(event).output)
