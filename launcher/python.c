/* Runs the next program: Python if the daemon could not answer, or the user's own status line.
 * A gate fails closed if Python fails too. */
#include "hook.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __APPLE__
#include <mach-o/dyld.h>
#include <stdlib.h>
#endif

#define OR_EXPLAIN "\nexcept Exception as e: sys.exit(f'fairlead: {sys.executable} cannot load it: {type(e).__name__}: {e}')\n"
static char EVENT_PROGRAM[] = "import sys\ntry: from fairlead.cli.main import launched" OR_EXPLAIN "launched()";
static char PLAN_PROGRAM[] = "import sys\ntry: from fairlead.execute import main" OR_EXPLAIN "main()";
static char SHELL[] = "/bin/sh";

_Noreturn void quit(int code)
{
    _exit(code);
}

const char *error_text(int error)
{
    switch (error) {
    case ENOENT: return "no such file";
    case ENOTDIR: return "no such folder";
    case EACCES: return "permission denied";
    case ENOEXEC: return "not a program";
    case ENOSPC: return "no space left";
    case EPIPE: return "broken pipe";
    case EBADF: return "stdout is closed";
    case E2BIG: return "the arguments are too long";
    case EAGAIN: return "too many processes";
    case EMFILE: return "too many open files";
    case ENOMEM: return "no memory left";
    default: return NULL;
    }
}

static void add_error_text(struct text *text, int error)
{
    if (error_text(error)) {
        add(text, error_text(error));
        return;
    }
    add(text, "error ");
    add_number(text, (uint64_t)error, 10, 1);
}

/* Add only what needs no escaping in JSON; other characters become `?`. */
static void add_printable(struct text *text, const char *name)
{
    for (size_t i = 0; name[i] && i < 1024; i++) {
        bool plain = name[i] >= ' ' && name[i] < 127 && name[i] != '"' && name[i] != '\\';
        add_bytes(text, plain ? name + i : "?", 1);
    }
}

/* Write a line to stderr. A failure cannot be reported. */
void print_error_line(struct text *line)
{
    add(line, "\n");
    write_all(2, line->at, line->size);
}

/* Exit because nothing can decide this event; a gate blocks, and so does an event with a check. */
static _Noreturn void fail(const struct call *call, const char *what, bool printed)
{
    char reason_memory[2048], memory[4096];
    struct text reason = text_in(reason_memory, sizeof reason_memory);
    struct text json = text_in(memory, sizeof memory);
    if (call->status_line)
        quit(0);
    signal(SIGPIPE, SIG_IGN);
    add(&reason, call->is_gate     ? "fairlead cannot check this call, so it is blocked: "
                 : call->has_check ? "fairlead cannot run the policy's check, so the event is blocked: "
                 : call->command   ? "fairlead cannot run this command: "
                                   : "fairlead cannot handle this event: ");
    add(&reason, what);
    add(&reason, ". Reinstall Fairlead if this continues");
    if (call->is_gate && !printed) {
        add(&json, "{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"deny\","
                   "\"permissionDecisionReason\":\"");
        add(&json, reason.at);
        add(&json, "\"}}\n");
        write_all(1, json.at, json.size);
    }
    print_error_line(&reason);
    quit(call->is_gate || call->has_check ? 2 : 1);
}

static _Noreturn void fail_with_error(const struct call *call, const char *what, const char *name, int error)
{
    char memory[1536];
    struct text text = text_in(memory, sizeof memory);
    add(&text, what);
    add_printable(&text, name);
    add(&text, ": ");
    add_error_text(&text, error);
    fail(call, memory, false);
}

/* Find the folder of this program, following links: an install may be linked from anywhere. */
static bool program_folder(struct text *path)
{
#ifdef __APPLE__
    char found[MAX_PATH];
    uint32_t room = sizeof found;
    if (_NSGetExecutablePath(found, &room) != 0 || !realpath(found, path->at))
        return false;
    path->size = strlen(path->at);
#else
    ssize_t size = readlink("/proc/self/exe", path->at, path->room - 1);
    if (size <= 0)
        return false;
    path->size = (size_t)size;
#endif
    while (path->size && path->at[path->size - 1] != '/')
        path->size--;
    path->at[path->size] = 0;
    return path->size > 0;
}

/* Execute Python. Returns only on failure, with the error; args[0] is then what could not be run. */
static int exec_python(const struct call *call, char **args)
{
    static char memory[MAX_PATH];
    struct text path = text_in(memory, sizeof memory);
    if (call->python ? !add(&path, call->python) : !program_folder(&path))
        return ENOENT;
    if (call->command)
        args += 4; /* without Python's own options */
    args[0] = memory;
    if (!call->python)
        add(&path, call->command ? "fairlead-python" : "python3"); /* a script that names its Python */
    execv(memory, args);
    if (!call->python && !call->command && errno == ENOENT) {
        memory[path.size - 1] = 0; /* python */
        execv(memory, args);
    }
    return errno;
}

static volatile sig_atomic_t child_pid, early_signal;

/* The client may signal only our process, and only we know the child. */
static void forward_signal(int number)
{
    if (child_pid > 0)
        kill((pid_t)child_pid, number);
    else
        early_signal = number;
}

static _Noreturn void exit_like(const struct call *call, int status)
{
    char memory[80];
    struct text what = text_in(memory, sizeof memory);
    bool blocks = call->is_gate || call->has_check; /* the client takes any exit code but 2 for consent */
    if (WIFEXITED(status) && (!blocks || WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 2))
        quit(WEXITSTATUS(status));
    add(&what, WIFEXITED(status) ? "Python ended with exit code " : "Python was killed by signal ");
    add_number(&what, (uint64_t)(WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status)), 10, 1);
    fail(call, memory, true);
}

/* Run Python as a child, so that a gate blocks if it crashes, and the crash is reported at other events. */
static _Noreturn void supervise(const struct call *call, char **args)
{
    int report[2], error = 0;
    handle_signal(SIGTERM, forward_signal); /* the child gets the default back when it becomes Python */
    handle_signal(SIGINT, forward_signal);
    handle_signal(SIGHUP, forward_signal);
    pid_t child = new_pipe(report, false) ? fork() : -1;
    if (child < 0)
        fail_with_error(call, "cannot start ", "Python", errno);
    if (child == 0) {
        error = exec_python(call, args);
        write_all(report[1], (char *)&error, sizeof error);
        quit(127);
    }
    child_pid = child;
    if (early_signal)
        kill(child, early_signal);
    close(report[1]);
    ssize_t size = read_some(report[0], &error, sizeof error);
    int status = await_end(child);
    child_pid = 0;
    if (size > 0)
        fail_with_error(call, "cannot run ", call->python ? call->python : "the Python beside fairlead-hook", error);
    exit_like(call, status);
}

static _Noreturn void run_python(const struct call *call, char **args)
{
    if (!restore_stdin(call))
        fail(call, "the payload cannot be passed to Python", false);
    signal(SIGCHLD, SIG_DFL); /* if the client ignores it, exit codes would be lost, ours and those of checks */
    bool is_long = call->command || call->status_line || call->wake || call->wait.token[0];
    if (call->is_gate || call->has_check || !is_long)
        supervise(call, args);
    int error = exec_python(call, args);
    fail_with_error(call, "cannot run ", call->python ? call->python : "the Python beside fairlead-hook", error);
}

_Noreturn void evaluate_locally(const struct call *call)
{
    static char launched[] = "--launched", waited[] = "--waited";
    static char memory[128];
    struct text caller = text_in(memory, sizeof memory);
    char **args = map_memory(((size_t)call->arg_count + 10) * sizeof *args);
    if (!args)
        fail(call, error_text(ENOMEM), false);
    char *first[] = {EVENT_PROGRAM, "-E", "-P", "-c", EVENT_PROGRAM};
    char *last[] = {launched, memory};
    int count = 5;
    memcpy(args, first, sizeof first);
    add(&caller, call->id);
    if (call->command && call->id[0]) { /* before the command's words, where it cannot be taken for one of them */
        memcpy(args + count, last, sizeof last);
        count += 2;
    }
    for (int i = 0; i < call->arg_count; i++)
        args[count++] = call->args[i];
    if (call->wait.token[0] && !call->is_gate && !call->command) /* it must not be handled twice */
        args[count++] = waited;
    if (call->arg_count && !call->command) {
        add_caller(&caller);
        memcpy(args + count, last, sizeof last);
    }
    run_python(call, args);
}

/* Run Python on a plan, with a file of it, and a file of the results if there are any. The connection is passed on for
 * the acknowledgement: if the answer is never printed, it is closed without one. Return if no file can be made. */
static void run_plan_program(const struct call *call, struct bytes plan, const char *ack, struct bytes results)
{
    char memory[3][16];
    int files[3] = {to_file(plan, call->id), call->daemon, results.size ? to_file(results, call->id) : -1};
    if (files[0] < 0 || (results.size && files[2] < 0))
        return;
    for (int i = 0; i < 3; i++) {
        struct text number = text_in(memory[i], sizeof memory[i]);
        add_number(&number, (uint64_t)(files[i] < 0 ? 0 : files[i]), 10, 1);
    }
    char *args[24] = {
        PLAN_PROGRAM, "-E", "-P", "-c", PLAN_PROGRAM, (char *)call->event,
        "--client", (char *)call->client, "--id", (char *)call->id, "--plan-fd", memory[0],
    };
    int count = 12;
    if (ack[0]) {
        args[count++] = "--receipt";
        args[count++] = (char *)ack;
    }
    if (ack[0] && fcntl(call->daemon, F_SETFD, 0) == 0) {
        args[count++] = "--ack-fd";
        args[count++] = memory[1];
    }
    if (results.size) {
        args[count++] = "--results-fd";
        args[count++] = memory[2];
    }
    run_python(call, args);
}

_Noreturn void run_plan(const struct call *call, struct bytes plan, const char *ack)
{
    run_plan_program(call, plan, ack, (struct bytes){0});
    evaluate_locally(call);
}

/* The daemon has ended while the steps ran. They must not be run again, so only Python can settle the results. */
_Noreturn void settle_locally(const struct call *call, struct bytes plan, const char *ack)
{
    char memory[160];
    struct text line = text_in(memory, sizeof memory);
    signal(SIGPIPE, SIG_DFL);
    if (call->report.size)
        run_plan_program(call, plan, ack, call->report);
    add(&line, "fairlead: the results of the policy's commands are lost: there is no daemon, and no room for a file");
    print_error_line(&line);
    quit(2); /* where a failing command would block, so does one whose result is lost */
}

/* Execute the user's own status line, as the client would run it. */
_Noreturn void run_status_command(const struct call *call)
{
    char *args[] = {SHELL, "-c", (char *)call->status_command, NULL};
    restore_stdin(call);
    execv(SHELL, args);
    quit(127);
}
