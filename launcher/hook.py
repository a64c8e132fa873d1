#!/usr/bin/env python3
"""The launcher in Python, for machines without a C compiler. It does the same as hook.c, in the same order.

It imports nothing that Python has not already loaded, except `_socket`: each import costs time on every event.
It is one long file, because pip installs a script on its own.
"""
# ruff: noqa: D103, PLR2004, SLF001 - functions and numbers are those of the C files, and documented there

import _signal  # type: ignore[import-not-found]  # `signal` would load `enum`
import _socket
import errno
import posix
import sys
import time

VERSION = "@VERSION@"  # filled in by hatch_build.py
MAX_PAYLOAD = 64 << 20
MAX_BODY = 80 << 20
MAX_HEAD = 16 << 10
MAX_VALUE = 4096
MAX_WAIT = 2_000_000_000
MAX_WAITS = 100_000
MAX_STOP = 3_590_000
MAX_SHORT = 20_000
MAX_SESSION_END = 8_000
MAX_OTHER = 40_000
WAITS_PATH = b"/v1/waits/"
SHELL = "/bin/sh"
OR_EXPLAIN = (
    "\nexcept Exception as e: sys.exit(f'fairlead: {sys.executable} cannot load it: {type(e).__name__}: {e}')\n"
)
EVENT_PROGRAM = f"import sys\ntry: from fairlead.cli.main import launched{OR_EXPLAIN}launched()"
PLAN_PROGRAM = f"import sys\ntry: from fairlead.execute import main{OR_EXPLAIN}main()"
# Ours, the terminal's, and those of each client (`variables` in src/fairlead/clients): a further client adds its own.
PASSED_VARIABLES = (
    b"FAIRLEAD_HOME HOME XDG_CONFIG_HOME XDG_RUNTIME_DIR XDG_STATE_HOME "
    b"CLAUDE_CONFIG_DIR CLAUDE_PROJECT_DIR CLAUDE_ENV_FILE TMUX TMUX_PANE "
    b"FAIRLEAD_STAY CLAUDE_CODE_ENTRYPOINT"
).split()
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
NAME = LETTERS + "0123456789_-"
ERROR_TEXTS = {
    errno.ENOENT: "no such file",
    errno.ENOTDIR: "no such folder",
    errno.EACCES: "permission denied",
    errno.ENOEXEC: "not a program",
    errno.ENOSPC: "no space left",
    errno.EPIPE: "broken pipe",
    errno.EBADF: "stdout is closed",
    errno.E2BIG: "the arguments are too long",
    errno.EAGAIN: "too many processes",
    errno.EMFILE: "too many open files",
    errno.ENOMEM: "no memory left",
}
DARWIN = sys.platform == "darwin"
env = posix.environ


class Call:
    """The arguments and the input of the launcher."""

    def __init__(self, argv: list[str]) -> None:
        self.id = f"{time.time_ns():016x}-{posix.getpid():x}"
        self.payload: bytes | None = None  # None: stdin was not read
        self.stdin_complete = False
        self.token, self.milliseconds = b"", 0
        self.status_command: str | None = None
        self.daemon: _socket.socket | None = None  # the connection that expects an acknowledgement
        self.split_arguments(argv)
        self.read_wait_arguments()
        self.event = self.args[0] if self.args else ""
        self.is_gate = any(word.replace("_", "").replace("-", "").lower() == "pretooluse" for word in self.args)
        self.has_check = False
        self.wake = "--wake" in self.args
        clients, others = split_option([word for word in self.args[1:] if word != "--wake"], "--client")
        self.client = clients[-1] if clients else "claude"
        names = all(is_name(client, NAME) for client in clients)
        self.for_daemon = is_name(self.event, LETTERS) and names and (not others or bool(self.token))

    def split_arguments(self, argv: list[str]) -> None:
        """Split off the launcher's own options: --python, --then of a status line, --id of a wait."""
        own = {"--python"}
        values: dict[str, str] = {}
        self.args: list[str] = []
        while argv:
            name, equals, value = argv[0].partition("=")
            if name in own and (equals or len(argv) > 1):
                values[name] = value if equals else argv[1]
                argv = argv[1:] if equals else argv[2:]
                continue
            self.args.append(argv[0])
            argv = argv[1:]
            own |= {"StatusLine": {"--then"}, "--wait": {"--id"}}.get(self.args[0], set())
        self.python = values.get("--python", "")
        self.status_command = values.get("--then")
        self.status_line = self.args[:1] == ["StatusLine"]
        if len(own_id := values.get("--id", "")) < 40 and is_name(own_id, NAME):
            self.id = own_id

    def read_wait_arguments(self) -> None:
        """Read --wait TOKEN MILLISECONDS before the event."""
        if len(self.args) < 4 or self.args[0] != "--wait" or not is_name(self.args[1], NAME):
            return
        if number := read_number(self.args[2].encode("utf-8", "surrogateescape"), MAX_WAIT):
            self.token, self.milliseconds = self.args[1].encode(), number
            self.args = self.args[3:]


def split_option(words: list[str], name: str) -> tuple[list[str], list[str]]:
    values, others, at = [], [], 0
    while at < len(words):
        if words[at] == name and at + 1 < len(words):
            at += 1
            values.append(words[at])
        elif words[at].startswith(f"{name}="):
            values.append(words[at][len(name) + 1 :])
        else:
            others.append(words[at])
        at += 1
    return values, others


def is_name(word: str, of: str) -> bool:
    return 0 < len(word) <= 64 and all(c in of for c in word)


def runtime_folder() -> bytes | None:
    if own := env.get(b"FAIRLEAD_HOME"):
        return absolute_path(own) + b"/run"
    for base in (env.get(b"XDG_RUNTIME_DIR", b""), b"/run/user/%d" % posix.getuid()):
        if base.startswith(b"/") and is_folder(base):
            return base + b"/fairlead"
    moved, home = env.get(b"XDG_STATE_HOME", b""), env.get(b"HOME")
    if moved.startswith(b"/") and not DARWIN:
        return moved + b"/fairlead/run"
    usual = b"/Library/Application Support/fairlead/run" if DARWIN else b"/.local/state/fairlead/run"
    return None if home is None else home.rstrip(b"/") + usual


def absolute_path(path: bytes) -> bytes:
    """Return the same as os.path.abspath, which is not loaded if Python was started with -S."""
    path = path if path.startswith(b"/") else posix.getcwdb() + b"/" + path
    steps: list[bytes] = []
    for step in path.split(b"/"):
        if step == b"..":
            del steps[-1:]
        elif step not in {b"", b"."}:
            steps.append(step)
    two = path.startswith(b"//") and not path.startswith(b"///")
    return (b"//" if two else b"/") + b"/".join(steps)


def is_folder(path: bytes) -> bool:
    try:
        return posix.stat(path).st_mode & 0o170000 == 0o040000
    except OSError:
        return False


def connect_daemon() -> _socket.socket | None:
    try:
        folder = runtime_folder()
        if folder is None:
            return None
        daemon = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        if daemon.fileno() < 3:
            daemon = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, move_above_stderr(daemon.detach()))
        daemon.settimeout(0)
        daemon.connect(folder + b"/daemon.sock")
        level, name = (0, 1) if DARWIN else (_socket.SOL_SOCKET, _socket.SO_PEERCRED)
        peer = daemon.getsockopt(level, name, 128)
    except OSError:
        return None
    is_same_user = int.from_bytes(peer[4:8], sys.byteorder) == posix.getuid()
    is_daemon = DARWIN or holds_lock(folder, int.from_bytes(peer[:4], sys.byteorder))
    return daemon if is_same_user and is_daemon else None


def holds_lock(folder: bytes, pid: int) -> bool:
    try:
        fd = posix.open(folder + b"/daemon.lock", posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NOFOLLOW)
        text = posix.read(fd, 16)
        posix.close(fd)
    except OSError:
        return False
    return text == b"%d\n" % pid


def move_above_stderr(fd: int) -> int:
    low = []
    while fd < 3:
        low.append(fd)
        fd = posix.dup(fd)
    for each in low:
        posix.close(each)
    return fd


def read_payload(call: Call) -> bool:
    got = bytearray()
    while len(got) <= MAX_PAYLOAD:
        try:
            more = posix.read(0, min(1 << 20, MAX_PAYLOAD + 1 - len(got)))
        except BlockingIOError:
            wait_for(0, writing=False)
            continue
        except OSError:
            break
        if not more:
            call.payload, call.stdin_complete = bytes(got), True
            return True
        got += more
    call.payload = bytes(got) if got else None
    return False


class Answer:
    """The answer of the daemon; with status 303, a wait."""

    def __init__(self, status: int) -> None:
        self.status = status
        self.exit_code = self.stdout_size = self.size = self.milliseconds = 0
        self.token = self.body = b""
        self.ack = ""  # the name of the receipt that the daemon expects


def ask_daemon(daemon: _socket.socket | None, call: Call) -> Answer | None:
    waits = 0
    start = time.monotonic()
    while daemon is not None:
        answer = exchange(daemon, call)
        if answer is not None and answer.ack:
            call.daemon = daemon
            return answer
        daemon.close()
        if answer is None or answer.status != 303 or call.status_command is not None:
            return answer
        call.token = answer.token
        end = start + max_wait(call) / 1000
        left = answer.milliseconds if call.wake else int((end - time.monotonic()) * 1000)
        call.milliseconds = max(min(answer.milliseconds, left), 0)
        daemon = connect_daemon() if waits < MAX_WAITS and left > 0 else None
        waits += 1
    return None


def max_wait(call: Call) -> int:
    """Return for how many milliseconds an event may wait in all, so that the waits end before the client's timeout."""
    limits = {
        "stop": MAX_STOP,
        "sessionend": MAX_SESSION_END,
        "userpromptsubmit": MAX_SHORT,
        "premodelswitch": MAX_SHORT,
    }
    return MAX_STOP if waits_for_person(call) else limits.get(call.event.lower(), MAX_OTHER)


def waits_for_person(call: Call) -> bool:
    """Return whether we wait for a person's answer. If the wait fails, the client's own question stays open."""
    return not call.is_gate and call.token.startswith(b"answer-")


def exchange(daemon: _socket.socket, call: Call) -> Answer | None:
    try:
        head = request_head(call)
        deadline = time.monotonic() + timeout_ms(call) / 1000
        daemon.settimeout(seconds_until(deadline))
        daemon.sendall(head if call.token else head + (call.payload or b""))
        answer = receive(daemon, deadline)
        return answer if answer is not None and may_exit(call, answer) else None
    except (OSError, ValueError):
        return None


def may_exit(call: Call, answer: Answer) -> bool:
    code = max(answer.exit_code, 0)  # missing (-1) if the answer prints nothing
    return code == 0 or (code <= 2 and not call.status_line and (code == 2 or not call.is_gate))


def timeout_ms(call: Call) -> int:
    if call.token:
        return call.milliseconds + 2000
    return read_number(env.get(b"FAIRLEAD_DEADLINE_MS", b""), 60000) or (300 if call.status_line else 2000)


def seconds_until(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise ValueError
    return left


def request_head(call: Call) -> bytes:
    here = posix.getcwdb()
    passed = [(name, env[name]) for name in PASSED_VARIABLES if name in env]
    if len(here) >= MAX_VALUE or any(len(value) > MAX_VALUE for _, value in passed):
        raise ValueError
    pid = client_pid()
    start = start_of(pid)
    event, client, size = call.event.encode(), call.client.encode(), len(call.payload or b"")
    path = (b"/v1/wakes/" if call.wake else b"/v1/events/") + event
    post = [b"POST %s?client=%s HTTP/1.1" % (path, client), b"content-type: application/json"]
    lines = [
        *([b"GET %s%s HTTP/1.1" % (WAITS_PATH, call.token)] if call.token else post),
        b"host: fairlead",
        b"connection: close",
        b"fairlead-acks: 2",
        b"fairlead-version: " + VERSION.encode(),
        b"fairlead-pid: %d" % pid,
        *([b"fairlead-start: " + start] if start else []),
        b"fairlead-cwd: " + percent_encode(here),
        b"fairlead-env: " + b";".join([name + b"=" + percent_encode(value) for name, value in passed]),
        b"fairlead-id: " + call.id.encode(),  # what differs from call to call is last
        *([] if call.token else [b"content-length: %d" % size]),
    ]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def percent_encode(value: bytes) -> bytes:
    return b"".join([b"%%%02X" % c if c < 0x21 or c > 0x7E or c in b"%;=" else b"%c" % c for c in value])


def client_pid() -> int:
    return read_number(env.get(b"CLAUDE_PID", b""), 2**31 - 1) or posix.getppid()


def start_of(pid: int) -> bytes:
    try:
        fd = posix.open(f"/proc/{pid}/stat", posix.O_RDONLY | posix.O_CLOEXEC)
        fields = posix.read(fd, 1024).rpartition(b")")[2].split()
        posix.close(fd)
    except OSError:
        return b""
    return fields[19] if len(fields) > 20 and fields[19].isdigit() else b""


def receive(daemon: _socket.socket, deadline: float) -> Answer | None:
    got, end, whole = bytearray(), -1, MAX_HEAD
    while end < 0 or len(got) < whole:
        daemon.settimeout(seconds_until(deadline))
        more = daemon.recv(min(1 << 20, whole + 1 - len(got)) if end >= 0 else 64 << 10)
        got += more
        if not more or not got.startswith(b"HTTP/1.1 "[: len(got)]):
            return None
        if end >= 0:
            continue
        end = got.find(b"\r\n\r\n", 0, MAX_HEAD)
        if end >= 0:
            answer = read_head(bytes(got[:end]))
            whole = end + 4 + answer.size
        elif len(got) >= MAX_HEAD:
            return None
    answer.body = bytes(got[end + 4 :])
    return answer if len(got) == whole else None


MAX_NUMBERS = {b"content-length": MAX_BODY, b"fairlead-exit": 255, b"fairlead-stdout": MAX_BODY}


def read_head(head: bytes) -> Answer:
    """Parse the head. Raises ValueError for anything but the three statuses that we can handle."""
    first, *lines = head.split(b"\r\n")
    text = head.replace(b"\r\n", b"")
    if first[:9] != b"HTTP/1.1 " or first[9:12] not in {b"200", b"202", b"303"} or first[12:13] not in {b"", b" "}:
        raise ValueError
    if b"\0" in text or b"\r" in text or b"\n" in text:
        raise ValueError
    answer = Answer(int(first[9:12]))
    found: dict[bytes, int] = {}
    for line in lines:
        name, colon, value = line.partition(b":")
        if not name or not colon or any(c <= 0x20 or c >= 0x7F for c in name):
            raise ValueError
        set_header(answer, found, name.lower(), value.strip(b" \t"))
    answer.size, answer.stdout_size = found.get(b"content-length", -1), found.get(b"fairlead-stdout", -1)
    answer.exit_code = found.get(b"fairlead-exit", -1)
    is_valid = {
        200: answer.exit_code >= 0 and 0 <= answer.stdout_size <= answer.size,
        202: answer.size > 0,
        303: answer.size == 0 and answer.milliseconds > 0 and answer.token,
    }
    if not is_valid[answer.status]:
        raise ValueError
    return answer


def set_header(answer: Answer, found: dict[bytes, int], name: bytes, value: bytes) -> None:
    maximum = MAX_WAIT if name == b"fairlead-wait" and answer.status == 303 else MAX_NUMBERS.get(name)
    if maximum is not None:
        number = None if name in found else read_number(value, maximum)
        if number is None:
            raise ValueError
        found[name] = number
        if name == b"fairlead-wait":
            answer.milliseconds = number
    elif name == b"location" and answer.status == 303:
        token = value.removeprefix(WAITS_PATH)
        if answer.token or token == value or not is_name(token.decode("latin-1"), NAME):
            raise ValueError
        answer.token = token
    elif name == b"fairlead-ack" and answer.status != 303:
        name_of_receipt = value.decode("latin-1")
        if answer.ack or not is_name(name_of_receipt, NAME + "."):
            raise ValueError
        answer.ack = name_of_receipt
    elif name == b"transfer-encoding":
        raise ValueError


def read_number(word: bytes, maximum: int) -> int | None:
    number = int(word) if 0 < len(word) < 20 and word.isdigit() else None
    return number if number is not None and number <= maximum else None


def wait_for(fd: int, *, writing: bool) -> None:
    import select  # noqa: PLC0415 - rarely needed

    select.select([] if writing else [fd], [fd] if writing else [], [])


def write_all(fd: int, content: bytes) -> int:
    left = memoryview(content)
    while left:
        try:
            left = left[posix.write(fd, left) :]
        except BlockingIOError:
            wait_for(fd, writing=True)
        except OSError as error:
            return error.errno or errno.EIO
    return 0


def to_file(content: bytes, name: str) -> int:
    for folder in (None, env.get(b"TMPDIR", b""), b"/tmp"):
        try:
            fd = move_above_stderr(create_unlinked(folder, name))
        except OSError:
            continue
        if write_all(fd, content) == 0:
            posix.lseek(fd, 0, 0)
            posix.set_inheritable(fd, True)  # noqa: FBT003 - positional only
            return fd
        posix.close(fd)
    return -1


def create_unlinked(folder: bytes | None, name: str) -> int:
    if folder is None:
        return posix.memfd_create("fairlead") if sys.platform == "linux" else -1
    path = folder + b"/fairlead-" + name.encode()
    fd = posix.open(path, posix.O_RDWR | posix.O_CREAT | posix.O_EXCL | posix.O_CLOEXEC, 0o600)
    posix.unlink(path)
    return fd


def copy_rest(source: int, to: int) -> None:
    while True:
        try:
            some = posix.read(source, 64 << 10)
        except BlockingIOError:
            wait_for(source, writing=False)
            continue
        except OSError:
            return
        if not some or write_all(to, some):
            return


def pipe_from_process(call: Call) -> int:
    reading, writing = map(move_above_stderr, posix.pipe())
    child = posix.fork()
    if child == 0:
        if posix.fork() == 0:
            posix.closerange(0 if call.stdin_complete else 1, 3)
            posix.close(reading)
            if write_all(writing, call.payload or b"") == 0 and not call.stdin_complete:
                copy_rest(0, writing)
        posix._exit(0)
    posix.close(writing)
    posix.waitpid(child, 0)
    return reading


def restore_stdin(call: Call) -> bool:
    try:
        if call.payload is not None:
            fd = to_file(call.payload, call.id) if call.stdin_complete else -1
            fd = fd if fd >= 0 else pipe_from_process(call)
            posix.dup2(fd, 0)
            posix.close(fd)
    except OSError:
        return False
    return True


def fail(call: Call, what: str, *, printed: bool) -> None:
    if call.status_line:
        posix._exit(0)
    prefix = "fairlead cannot handle this event"
    if call.is_gate or call.has_check:
        what_failed = "check this call, so it" if call.is_gate else "run the policy's check, so the event"
        prefix = f"fairlead cannot {what_failed} is blocked"
    reason = f"{prefix}: {what}. Reinstall Fairlead if this continues"
    if call.is_gate and not printed:
        answer = '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny",'
        write_all(1, f'{answer}"permissionDecisionReason":"{reason}"}}}}\n'.encode())
    write_all(2, reason.encode() + b"\n")
    posix._exit(2 if call.is_gate or call.has_check else 1)


def pythons(call: Call) -> list[str]:
    """Return the candidates of hook.c, and this Python as the last one."""
    if call.python:
        return [call.python]
    path = __file__
    try:
        while True:
            target = posix.readlink(path)
            path = target if target.startswith("/") else path[: path.rfind("/") + 1] + target
    except OSError:
        folder = path[: path.rfind("/") + 1]
    return [f"{folder}python3", f"{folder}python", *([sys.executable] if sys.executable else [])]


def run_python(call: Call, words: list[str]) -> None:
    if not restore_stdin(call):
        fail(call, "the payload cannot be passed to Python", printed=False)
    blocked = {_signal.SIGTERM, _signal.SIGINT, _signal.SIGHUP}
    is_long = call.status_line or call.wake or bool(call.token)
    is_supervised = call.is_gate or call.has_check or not is_long
    before = _signal.pthread_sigmask(_signal.SIG_BLOCK, blocked) if is_supervised else set()
    error = errno.ENOENT
    for python in pythons(call):
        args = [python, "-E", "-P", "-c", *words]
        try:
            if is_supervised:
                supervise(call, posix.posix_spawn(python, args, env, setsigmask=before), before)
            posix.execv(python, args)
        except OSError as problem:
            error = problem.errno or errno.ENOENT
            if error != errno.ENOENT:
                break
    raw = (call.python or "the Python beside fairlead-hook").encode("utf-8", "surrogateescape")[:1024]
    shown = "".join([chr(c) if 0x20 <= c < 0x7F and c not in b'"\\' else "?" for c in raw])
    fail(call, f"cannot run {shown}: {ERROR_TEXTS.get(error, f'error {error}')}", printed=False)


def supervise(call: Call, child: int, before: set[int]) -> None:
    def forward_signal(number: int, _: object) -> None:
        try:
            posix.kill(child, number)
        except OSError:
            return  # the child got the signal, too, and has ended

    for number in (_signal.SIGTERM, _signal.SIGINT, _signal.SIGHUP):
        if _signal.getsignal(number) is not _signal.SIG_IGN:
            _signal.signal(number, forward_signal)
    _signal.pthread_sigmask(_signal.SIG_SETMASK, before)
    code = posix.waitstatus_to_exitcode(posix.waitpid(child, 0)[1])
    blocks = call.is_gate or call.has_check  # the client continues after any exit code but 2
    if code in {0, 2} or (code > 0 and not blocks):
        posix._exit(code)
    how = f"ended with exit code {code}" if code >= 0 else f"was killed by signal {-code}"
    fail(call, f"Python {how}", printed=True)


def evaluate_locally(call: Call) -> None:
    pid = client_pid()
    start = start_of(pid).decode()
    launched = f"{call.id},{pid},{start}" if start else f"{call.id},{pid}"
    # Whatever ran before the wait must not run again.
    waited = ["--waited"] if call.token and not call.is_gate else []
    run_python(call, [EVENT_PROGRAM, *call.args, *waited, *(["--launched", launched] if call.args else [])])


def run_plan(call: Call, plan: bytes, *, ack: str) -> None:
    fd = to_file(plan, call.id)
    if fd < 0:
        evaluate_locally(call)
    words = [PLAN_PROGRAM, call.event, "--client", call.client, "--id", call.id, "--plan-fd", str(fd)]
    if ack and call.daemon is not None:
        posix.set_inheritable(call.daemon.fileno(), True)  # noqa: FBT003 - positional only
        words += ["--receipt", ack, "--ack-fd", str(call.daemon.fileno())]
    run_python(call, words)


def run_status_command(call: Call) -> None:
    restore_stdin(call)
    for number in (_signal.SIGPIPE, _signal.SIGXFSZ):  # Python ignores them, and the next program would inherit that
        _signal.signal(number, _signal.SIG_DFL)
    try:
        posix.execve(SHELL, [SHELL, "-c", call.status_command or ""], environment())
    finally:
        posix._exit(127)


def environment() -> dict[bytes, bytes]:
    """Return the environment that we were started with. In the C locale, Python adds LC_CTYPE to its own."""
    try:
        fd = posix.open("/proc/self/environ", posix.O_RDONLY | posix.O_CLOEXEC)
        text = b"".join(iter(lambda: posix.read(fd, 1 << 20), b""))
        posix.close(fd)
    except OSError:
        return env
    pairs = [item.partition(b"=") for item in text.split(b"\0") if b"=" in item]
    return {name: value for name, _, value in pairs}


def give_receipt(name: str, *, printed: bool) -> None:
    """Rename the receipt before the answer is printed, or remove it afterwards. It outlives the daemon."""
    folder = runtime_folder()
    if not name or folder is None:
        return
    path = folder + b"/receipts/" + name.encode()
    try:
        if printed:
            posix.unlink(path + b".printing")
        else:
            posix.rename(path, path + b".printing")
    except OSError:
        pass


def print_answer(call: Call, answer: Answer) -> None:
    stdout, stderr, code = answer.body[: answer.stdout_size], answer.body[answer.stdout_size :], answer.exit_code
    give_receipt(answer.ack, printed=False)
    if error := write_all(1, stdout):
        if call.status_line:
            posix._exit(0)
        write_all(2, f"fairlead: cannot write the answer: {ERROR_TEXTS.get(error, 'unknown error')}\n".encode())
        posix._exit(2)
    if write_all(2, stderr) == 0 and call.daemon is not None:
        give_receipt(answer.ack, printed=True)
        write_all(call.daemon.fileno(), b"\n")
    posix._exit(code)


def main(call: Call) -> None:
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)  # SIGINT ends this process, like any other program
    daemon = connect_daemon() if call.for_daemon else None
    can_ask = daemon is not None and (call.token or (not posix.isatty(0) and read_payload(call)))
    if daemon is not None and not can_ask:
        daemon.close()
    answer = ask_daemon(daemon, call) if can_ask else None
    if call.status_command is not None:
        run_status_command(call)
    _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)  # otherwise the exit code of our child could be lost
    if answer and answer.status == 200:
        print_answer(call, answer)
    if answer:
        call.has_check = answer.exit_code == 2
        run_plan(call, answer.body, ack=answer.ack)
    if waits_for_person(call):  # the event is already decided, and there is nothing to print
        posix._exit(0)
    evaluate_locally(call)


if __name__ == "__main__":
    this = Call(sys.argv[1:])
    try:
        main(this)
    except BaseException as problem:  # noqa: BLE001 - Python's own exit code, 1, would let a gated event pass
        fail(this, f"internal error: {type(problem).__name__}", printed=False)
