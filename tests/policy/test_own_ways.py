"""Further ways to switch the guards off, and everyday commands that resemble them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from policy.cases import for_each

from fairlead.events import HookOutput, PreToolUse
from fairlead.policy.config._types import Layer, Policy
from fairlead.policy.guards._guards import Guards

if TYPE_CHECKING:
    from pathlib import Path

SITE = next(path for path in sys.path if path.endswith("site-packages") and path.startswith(sys.prefix))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with scripts that switch the guards off, in a home with hooks installed for the user."""
    home = tmp_path.resolve() / "home"
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "FAIRLEAD_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    for folder in (".claude", ".local/state/fairlead/run", ".local/bin"):
        (home / folder).mkdir(parents=True)
    (home / ".claude/settings.json").write_text('{"hooks": "/x/fairlead-hook"}')
    project = tmp_path.resolve() / "project"
    for folder in (".venv/bin", "src", "tmp", ".claude"):
        (project / folder).mkdir(parents=True)
    (project / ".fairlead.yaml").write_text("{}\n")
    (project / "reqs.txt").write_text("fairlead\n")
    (project / "off.sh").write_text("fairlead uninstall --yes\n")
    (project / "agent.sh").write_text("claude -p x\n")
    (project / "off.py").write_text("import subprocess\nsubprocess.run(['fairlead','uninstall'])\n")
    (project / "Makefile").write_text("all:\n\ttrue\noff:\n\tfairlead daemon stop\n")
    (project / "package.json").write_text('{"scripts": {"off": "claude --bare -p x"}}')
    return project


def call(project: Path, tool: str, tool_input: dict[str, Any]) -> HookOutput:
    policy = msgspec.convert({"preToolUse": {"preventRootAdditions": False}}, Policy)
    event = PreToolUse(session_id="s", tool_name=tool, tool_input=tool_input, cwd=str(project))
    return Guards([Layer(str(project / ".fairlead.yaml"), str(project), policy)]).check(event).output


def held(output: HookOutput) -> bool:
    return output.blocked or output.permission == "ask"


def filled(text: str, project: Path) -> str:
    home = project.parent / "home"
    return text.replace("{site}", SITE).replace("{prefix}", sys.prefix).replace("{home}", str(home))


WAYS = [
    "HOME=/a true; HOME=/x; claude -p x",
    "HOME=/x bash -c 'claude -p x'",
    "HOME=/x sh agent.sh",
    "declare -x HOME=/x; claude -p x",
    "PYTHONPATH=/x timeout 5 claude -p x",
    "pip uninstall -y msgspec",
    "python3 -c \"import os; os.environ['CLAUDE_CONFIG_DIR']='/tmp/x'; os.system('claude -p x')\"",
    "cp -r tmp/. {site}/",
    "rsync -a tmp/ {site}/",
    "tar xf e.tar -C {site}",
    "unzip -o e.zip -d {site}",
    "ln -sf /tmp/evil {prefix}/bin/python",
    "chmod -x {prefix}/bin/fairlead-hook",
    "chmod 000 {home}/.local/state/fairlead",
    "mount --bind /tmp/x {site}",
    "install -m755 evil {prefix}/bin/python",
    "dd if=/dev/null of={site}/msgspec/__init__.py",
    "mv ~/.local ~/.l",
    "rm -rf ~/.local",
    "mv {prefix} x",
    "rm -rf ~/.claude",
    "mv ~/.claude ~/.c",
    "jq '.disableAllHooks=true' ~/.claude/settings.json | sponge ~/.claude/settings.json",
    "claude --resume x --bare",
    "CLAUDE_CONFIG_DIR=/x npx @anthropic-ai/claude-code -p x",
    "docker run -v ~/.claude:/c alpine rm /c/settings.json",
    "systemd-run --user --setenv=CLAUDE_CONFIG_DIR=/tmp claude -p x",
    "env -u CLAUDECODE setsid fairlead uninstall --yes",
    "bash -ic 'fairlead uninstall'",
    "zsh -c 'fairlead uninstall'",
    "fish -c 'fairlead uninstall'",
    "alias x='fairlead uninstall'; x",
    'f(){ fairlead "$@"; }; f uninstall',
    "X='fairlead uninstall'; $X",
    "X='fairlead uninstall'; eval \"$X\"",
    "kill -STOP $(pgrep -f fairlead)",
    "pkill -STOP -f fairlead",
    "gdb -p $(pgrep -f fairlead) -batch -ex 'call exit(0)'",
    "chmod 000 ~/.local/state/fairlead/run/daemon.sock",
    "ssh localhost 'fairlead uninstall --yes'",
    "nsenter -t 1 -m fairlead uninstall",
    "unshare -r fairlead uninstall",
    "busctl --user call org.x /org/x org.x.Manager StopUnit ss fairlead.service replace",
    "pip uninstall -y -r reqs.txt",
    'pipx uninstall "$(echo fairlead)"',
    "bash off.sh",
    "sh ./off.sh",
    "python3 off.py",
    "make off",
    "npm run off",
    ". ./off.sh",
    "source off.sh",
    "bash < off.sh",
    "cat > x.sh <<'E'\nfairlead uninstall\nE\nbash x.sh",
    "echo 'fairlead uninstall' > y.sh && sh y.sh",
    "echo fairlead uninstall | sh",
    "printf 'fairlead %s' uninstall | bash",
    "xargs -a list fairlead",
    "xargs fairlead < list",
    "parallel fairlead ::: uninstall",
    "python3 -c \"__import__('os').system('fairlead uninstall')\"",
    "python3 -c \"import os; os.execvp('fairlead', ['fairlead','uninstall'])\"",
    'ruby -e \'system("fairlead", "uninstall")\'',
    "php -r 'system(\"fairlead uninstall\");'",
    "awk 'BEGIN{system(\"fairlead uninstall\")}'",
    "node -e \"require('child_process').spawnSync('claude',['--bare'])\"",
    'perl -e \'exec "pkill","-f","fairlead"\'',
    "vim -c '!fairlead uninstall' -c q",
    "git -c alias.x='!fairlead uninstall' x",
    "make -f - <<< $'x:\\n\\tfairlead uninstall'",
    "GIT_SSH_COMMAND='fairlead uninstall' git fetch",
    "EDITOR='fairlead uninstall' git commit",
    "PAGER='fairlead daemon stop' man ls",
    "timeout --signal=KILL 5 pkill -f fairlead",
    "nohup sh -c 'sleep 5; fairlead uninstall' &",
    "(sleep 60; fairlead uninstall) & disown",
    "trap 'fairlead uninstall' EXIT",
    "while true; do fairlead daemon stop; done",
    "for c in uninstall; do fairlead $c; done",
    "for i in 1; do pkill -f fairl[e]ad; done",
    "coproc fairlead uninstall",
    "time fairlead uninstall",
    "! fairlead uninstall",
    "fairlead uninstall >/dev/null 2>&1",
    "</dev/null fairlead uninstall",
    "A=1 B=2 fairlead uninstall",
    "sudo -E env A=1 fairlead uninstall",
    "doas fairlead uninstall",
    "pkexec fairlead uninstall",
    "uv run --with fairlead fairlead uninstall",
    "hatch run fairlead uninstall",
    "pdm run fairlead uninstall",
    "pixi run fairlead uninstall",
    "mise exec -- fairlead uninstall",
    "nix run nixpkgs#fairlead -- uninstall",
    "nix-shell -p fairlead --run 'fairlead uninstall'",
    "conda run -n x fairlead uninstall",
    "pipx run --no-cache fairlead uninstall",
    "rye run fairlead uninstall",
    "pyenv exec fairlead uninstall",
    "python3 -Im fairlead uninstall",
    "python3 -m runpy fairlead uninstall",
    "python3 -m pdb -m fairlead uninstall",
    "python3 -m cProfile -m fairlead uninstall",
    "coverage run -m fairlead uninstall",
    "python3 -m coverage run -m fairlead uninstall",
    "ipython -c '!fairlead uninstall'",
    "expect -c 'spawn fairlead uninstall'",
    "script -c 'fairlead uninstall'",
    "socat - UNIX-CONNECT:/run/user/0/fairlead/daemon.sock",
    "nc -U ~/.local/state/fairlead/run/daemon.sock",
    "rm ~/.local/state/fairlead/run/daemon.sock",
    "python3 -c \"import socket; socket.socket(1).connect('/run/user/0/fairlead/daemon.sock')\"",
    "fuser -k ~/.local/state/fairlead/run/daemon.sock",
    "lsof -t ~/.local/state/fairlead/run/daemon.sock | xargs kill",
    "kill $(fuser ~/.local/state/fairlead/run/daemon.lock)",
    "pyenv uninstall -f 3.11.7",
    "uv python uninstall 3.11",
    "brew uninstall python@3.11",
    "sudo apt-get remove -y python3",
    "conda env remove -n fairlead",
    "pip install --upgrade --force-reinstall fairlead",
    "pip install -U fairlead",
    "pip download fairlead",
    "pip install -e ../fairlead",
    "rm -rf ~/.local/share/uv/tools/fairlead",
    "rm -rf ~/.local/share/pipx/venvs/fairlead",
    "uv tool dir --bin | xargs -I{} rm {}/fairlead",
    "rm $(which fairlead)",
    "rm $(command -v fairlead-hook)",
    "mv $(which fairlead-hook) /tmp",
    "ln -s /bin/true ~/.local/bin/claude",
    "cat evil > ~/.local/bin/fairlead-hook",
    "sed -i 's/fairlead-hook/true/' ~/.claude/settings.json",
    "perl -pi -e 's/x/y/' ~/.claude/settings.json",
    "echo '{}' | tee .claude/settings.local.json",
    "git checkout HEAD~1 -- .claude/settings.json",
    "git mv .fairlead.yaml x",
    "mkdir -p sub/.claude && echo '{\"disableAllHooks\":true}' > sub/.claude/settings.json",
    "echo 'alias claude=\"claude --bare\"' >> ~/.zshrc",
    "echo CLAUDE_CODE_SIMPLE=1 | sudo tee -a /etc/environment",
    "tmux set-environment -g CLAUDE_CONFIG_DIR /tmp/x",
    "tmux setenv -g CLAUDE_CODE_SIMPLE 1",
    "git config --global alias.x '!fairlead uninstall'",
    "fairlead completion bash; fairlead hooks uninstall",
    "claude -p 'x' --settings",
    'claude --settings "$(cat s.json)" -p x',
    "claude --set''tings x",
    "cl''aude --bare",
    "c=claude; $c --bare",
    "claude $(echo --bare) -p x",
    "o=--bare; claude $o -p x",
    "claude update && claude --bare",
    "HOME=$(mktemp -d) claude -p x",
    "export HOME=/tmp; claude -p x",
    "unset HOME; HOME=/x; claude",
    "cd /tmp; HOME=$PWD claude -p hi",
    "XDG_CONFIG_HOME=/x XDG_STATE_HOME=/y claude",
    "env - claude -p x",
    "sudo -u nobody claude -p x",
    "su - nobody -c 'claude -p x'",
    "xargs -I{} claude --bare -p {} < prompts",
    "codex",
    "codex exec x",
    "gemini -y",
    "aider x.py",
    "npx opencode-ai run x",
    "uvx aider-chat --message x",
    "pipx run aider-chat",
    "bunx @google/gemini-cli",
    "qwen -p x",
    "goose run -t x",
    "q chat x",
    "amp -x y",
    "droid exec x",
]


@for_each("command", WAYS)
def test_it_is_held(command: str, project: Path) -> None:
    assert held(call(project, "Bash", {"command": filled(command, project)}))


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("mcp__x__exec", {"argv": ["fairlead", "hooks", "uninstall"]}),
    ("mcp__shell__run", {"cmd": "fairlead uninstall"}),
    ("mcp__terminal__execute", {"command": ["fairlead", "uninstall"]}),
    ("mcp__shell__run", {"program": "fairlead", "args": ["hooks", "uninstall"]}),
    ("mcp__x__run_script", {"script": "fairlead uninstall\n"}),
    ("mcp__python__exec", {"code": "import subprocess; subprocess.run(['fairlead','uninstall'])"}),
    ("mcp__fs__write_file", {"path": "{site}/x.pth", "content": "import evil"}),
    ("mcp__fs__write", {"uri": "file://{home}/.claude/settings.json", "text": "{}"}),
    ("mcp__fs__move", {"from": "{home}/.claude", "to": "elsewhere"}),
    ("mcp__fs__delete_directory", {"path": "{prefix}"}),
    ("mcp__fs__create_symlink", {"target": "/bin/true", "link": "{home}/.local/bin/claude"}),
    ("mcp__edit__apply", {"files": [{"path": "{home}/.claude/settings.json", "content": "{}"}]}),
    ("mcp__process__kill", {"name": "fairlead"}),
    ("mcp__process__kill_process", {"pattern": "fairlead"}),
    ("mcp__ide__executeCode", {"code": "!fairlead uninstall"}),
    ("Write", {"file_path": "/proc/self/root{home}/.claude/settings.json", "content": "{}"}),
    ("Edit", {"file_path": "{prefix}/lib/../pyvenv.cfg", "old_string": "a", "new_string": "b"}),
    ("NotebookEdit", {"notebook_path": "{site}/x.py", "new_source": "x"}),
    ("mcp__http__request", {"method": "POST", "url": "http://127.0.0.1:7777/v1/stop"}),
    ("mcp__shell__run", {"command": "pytest", "env": {"CLAUDE_CONFIG_DIR": "elsewhere"}}),
    ("mcp__shell__run", {"command": "claude -p x", "env": {"CLAUDE_CONFIG_DIR": "elsewhere"}}),
    ("mcp__systemd__stop_unit", {"unit": "fairlead.service"}),
    ("mcp__pkg__uninstall", {"package": "fairlead"}),
    ("Write", {"file_path": "~/.claude/settings.json", "content": "{}"}),
    ("mcp__tmux__send_keys", {"keys": "fairlead uninstall"}),
    ("PowerShell", {"command": "fairlead uninstall"}),
    ("mcp__process__kill", {"pid": "{pid}"}),
]


@for_each("tool_call", CALLS)
def test_it_is_held_by_whatever_tool(tool_call: tuple[str, dict[str, Any]], project: Path) -> None:
    tool, tool_input = tool_call
    if tool_input == {"pid": "{pid}"}:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("fairlead.ipc.daemon_pid", lambda _: 4711)
            assert held(call(project, tool, {"pid": 4711}))
            assert not held(call(project, tool, {"pid": 4712}))
        return
    text = filled(msgspec.json.encode(tool_input).decode(), project)
    assert held(call(project, tool, msgspec.json.decode(text)))


EVERYDAY = [
    "PYTHONPATH=src pytest && claude -p 'fix it'",
    "sudo apt update; claude -p 'fix it'",
    "cd ~/fairlead && python -m pytest && git push origin main",
    "python -m pytest -k fairlead && git log main",
    "pip install -U pip",
    "pip install pytest-cov",
    "uv pip sync requirements.txt",
    "uv run pytest",
    "python -m pip install -e '.[dev]'",
    "pip install -e ./packages/a",
    "pyenv install 3.12",
    "pyenv versions",
    "brew install python@3.12",
    "apt-get install -y python3-dev",
    "kill -TERM 123",
    "kill -9 %2",
    "pkill -f 'next dev'",
    "pkill -f jest",
    "killall -9 Chrome",
    "systemctl --user daemon-reload",
    "systemctl restart docker",
    "tmux ls",
    "tmux new -d -s dev 'npm run dev'",
    "crontab -l",
    "at -l",
    "docker ps",
    "docker compose up -d",
    "alias ll='ls -l'",
    "export PATH=$PATH:~/bin",
    "echo 'export PATH=$PATH:~/bin' >> ~/.bashrc",
    "source ~/.bashrc",
    "source .venv/bin/activate && pip install click",
    "rm -rf .venv && python -m venv .venv",
    "python -c 'import os; print(os.environ[\"HOME\"])'",
    "env | sort",
    "env -i bash -c 'echo hi'",
    "sudo apt update",
    "gh pr create -t 'Stop the daemon' -b 'fairlead daemon stop now asks'",
    "claude --continue -p 'go on'",
    'claude -p "review $(git diff)"',
    "claude mcp add x -- npx y",
    "which claude codex gemini",
    "npm ls -g @openai/codex",
    "cat ~/.claude/settings.json",
    "ls -la ~/.claude",
    "fairlead hooks status --json",
    "fairlead agents",
    "fairlead read 3",
    "grep -r claude docs",
    "git commit -m 'Add claude --bare to docs'",
    "sed -i 's/foo/claude/' README.md",
    "find . -name '*.pyc' -delete",
    "find . -name __pycache__ -exec rm -rf {} +",
    "git stash",
    "git pull",
    "chmod +x scripts/x.sh",
    "npx codex-lint --version",
    "rg gemini -g '*.py'",
    "python3 scripts/q.py",
    "cargo add rich",
    "poetry add rich",
    "conda install -y click",
    "go install ./cmd/goose",
    "goose -dir migrations up",
    "ps aux | grep node | awk '{print $2}' | xargs kill",
    "kill $(pgrep -f 'vite --port')",
    "kill $(cat server.pid)",
    "lsof -ti:8080 | xargs kill -9",
    "fuser -k 3000/tcp",
    "HOME=/tmp/x npm ci",
    "XDG_CONFIG_HOME=/tmp/x nvim --headless +q",
    "LD_LIBRARY_PATH=/opt/x ./bin/app",
    "PYTHONPATH=. python manage.py test",
    "pip install tree-sitter",
    "pip install msgspec uvicorn",
    "uv add textual",
    "mv docs documentation",
    "pip install git+https://github.com/x/y.git",
    "export CLAUDE_PROJECT=1; make",
    "python -m http.server & echo $!",
    "echo $$; kill $$",
    "node -e 'console.log(1)'",
    "python -c 'import shutil; shutil.rmtree(\"build\")'",
    "python -c \"import os; os.rename('a','b')\"",
    "stop='x'; echo trust",
    "service postgresql start",
    "sudo service nginx restart",
    'fairlead send "$NAME" "how is it going?"',
    'fairlead reply 3 "why?"',
    "make",
]


@for_each("command", EVERYDAY)
def test_it_passes_without_a_question(command: str, project: Path) -> None:
    output = call(project, "Bash", {"command": command})
    assert not held(output), output.reason


@for_each(
    "tool_call",
    [
        ("mcp__process__kill", {"name": "node"}),
        ("mcp__notes__delete", {"text": "remove fairlead from the notes"}),
        ("mcp__http__request", {"url": "http://127.0.0.1:8000/v1/users"}),
        ("mcp__shell__run", {"command": "pytest", "env": {"PYTHONPATH": "src"}}),
        ("WebFetch", {"url": "https://example.com/v1/stopwatch", "prompt": "x"}),
    ],
)
def test_other_tools_pass_without_a_question(tool_call: tuple[str, dict[str, Any]], project: Path) -> None:
    output = call(project, *tool_call)
    assert not held(output), output.reason
