/* Runs what comes after us: Python where the daemon is not enough, or a person's own status line.
 * Shuts the gate where Python is not enough either.
 */
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

static char COLD[] = "import sys; from fairlead.cli.main import main; sys.exit(main())";
static char ACT[] = "from fairlead.act import main; main()";
static char SHELL[] = "/bin/sh";

_Noreturn void leave(int code)
{
    _exit(code);
}

const char *reason_of(int error)
{
    switch (error) {
    case ENOENT: return "no such file";
    case ENOTDIR: return "no such folder";
    case EACCES: return "permission denied";
    case ENOEXEC: return "not a program";
    case ENOSPC: return "no space left";
    case EPIPE: return "nobody reads it";
    case EBADF: return "it is closed";
    case E2BIG: return "too many words";
    case EAGAIN: return "too many processes";
    case EMFILE: return "too many open files";
    case ENOMEM: return "no memory left";
    default: return NULL;
    }
}

static void add_reason(struct text *text, int error)
{
    if (reason_of(error)) {
        add(text, reason_of(error));
        return;
    }
    add(text, "error ");
    add_number(text, (uint64_t)error, 10, 1);
}

/* Only what can stand in a JSON string as it is; a name that holds more is still told by the rest. */
static void add_shown(struct text *text, const char *name)
{
    for (size_t i = 0; name[i] && i < 1024; i++) {
        bool plain = name[i] >= ' ' && name[i] < 127 && name[i] != '"' && name[i] != '\\';
        add_bytes(text, plain ? name + i : "?", 1);
    }
}

/* Say it on stderr. There is nobody to tell that it could not be said. */
void complain(struct text *line)
{
    add(line, "\n");
    write_all(2, line->at, line->size);
}

/* End, as nothing can decide this event: on a gate that blocks. */
static _Noreturn void fail(const struct call *call, const char *what, bool printed)
{
    char reason_memory[2048], memory[4096];
    struct text reason = text_in(reason_memory, sizeof reason_memory);
    struct text json = text_in(memory, sizeof memory);
    if (call->status_line)
        leave(0);
    signal(SIGPIPE, SIG_IGN);
    add(&reason, call->gate ? "fairlead cannot check this call, so it is blocked: " : "fairlead cannot handle this event: ");
    add(&reason, what);
    add(&reason, ". Run: fairlead doctor");
    if (call->gate && !printed) {
        add(&json, "{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"deny\","
                   "\"permissionDecisionReason\":\"");
        add(&json, reason.at);
        add(&json, "\"}}\n");
        write_all(1, json.at, json.size);
    }
    complain(&reason);
    leave(call->gate ? 2 : 1);
}

static _Noreturn void fail_by(const struct call *call, const char *what, const char *name, int error)
{
    char memory[1536];
    struct text text = text_in(memory, sizeof memory);
    add(&text, what);
    add_shown(&text, name);
    add(&text, ": ");
    add_reason(&text, error);
    fail(call, memory, false);
}

/* The folder of this program, links followed: an install may be linked to from anywhere. */
static bool own_folder(struct text *path)
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

/* Become Python. Comes back with the error of the last that could not be run; args[0] then names it. */
static int become(const struct call *call, char **args)
{
    static char memory[MAX_PATH];
    struct text path = text_in(memory, sizeof memory);
    if (call->python ? !add(&path, call->python) : !own_folder(&path))
        return ENOENT;
    args[0] = memory;
    if (!call->python)
        add(&path, "python3");
    execv(memory, args);
    if (!call->python && errno == ENOENT) {
        memory[path.size - 1] = 0; /* python */
        execv(memory, args);
    }
    return errno;
}

static volatile sig_atomic_t running;

/* The client may signal its process alone, and then only we know who does the work. */
static void pass_on(int number)
{
    if (running > 0)
        kill((pid_t)running, number);
}

static void pass_on_signals(const sigset_t *before)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (signal(numbers[i], pass_on) == SIG_IGN)
            signal(numbers[i], SIG_IGN);
    sigprocmask(SIG_SETMASK, before, NULL);
}

static int status_of(pid_t child)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return status;
}

static _Noreturn void end_like(const struct call *call, int status)
{
    char memory[80];
    struct text what = text_in(memory, sizeof memory);
    if (WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 2))
        leave(WEXITSTATUS(status));
    add(&what, WIFEXITED(status) ? "Python ended with exit code " : "Python was ended by signal ");
    add_number(&what, (uint64_t)(WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status)), 10, 1);
    fail(call, memory, true);
}

/* Run Python as a child, so that somebody is left to shut the gate if it falls. */
static _Noreturn void watch(const struct call *call, char **args)
{
    int report[2], error = 0;
    sigset_t held, before;
    sigemptyset(&held);
    sigaddset(&held, SIGTERM);
    sigaddset(&held, SIGINT);
    sigaddset(&held, SIGHUP);
    signal(SIGCHLD, SIG_DFL); /* a client that ignores it would leave us without the exit code */
    if (!new_pipe(report, false))
        fail_by(call, "cannot start ", "Python", errno);
    sigprocmask(SIG_BLOCK, &held, &before);
    pid_t child = fork();
    if (child < 0)
        fail_by(call, "cannot start ", "Python", errno);
    if (child == 0) {
        sigprocmask(SIG_SETMASK, &before, NULL);
        error = become(call, args);
        write_all(report[1], (char *)&error, sizeof error);
        leave(127);
    }
    running = child;
    pass_on_signals(&before);
    close(report[1]);
    ssize_t size = read(report[0], &error, sizeof error);
    while (size < 0 && errno == EINTR)
        size = read(report[0], &error, sizeof error);
    int status = status_of(child);
    running = 0;
    if (size > 0)
        fail_by(call, "cannot run ", call->python ? call->python : "the Python beside fairlead-hook", error);
    end_like(call, status);
}

static _Noreturn void run(const struct call *call, char **args)
{
    if (!as_stdin(call))
        fail(call, "the payload cannot be handed on", false);
    if (call->gate)
        watch(call, args);
    int error = become(call, args);
    fail_by(call, "cannot run ", call->python ? call->python : "the Python beside fairlead-hook", error);
}

_Noreturn void cold_road(const struct call *call)
{
    static char launched[] = "--launched", waited[] = "--waited";
    static char memory[128];
    struct text caller = text_in(memory, sizeof memory);
    char **args = reserve(((size_t)call->count + 9) * sizeof *args);
    if (!args)
        fail(call, reason_of(ENOMEM), false);
    char *first[] = {COLD, "-E", "-P", "-c", COLD};
    int count = 5;
    memcpy(args, first, sizeof first);
    for (int i = 0; i < call->count; i++)
        args[count++] = call->words[i];
    if (call->wait.token[0] && !call->gate) /* what was done before the wait is not to be done again */
        args[count++] = waited;
    if (call->count) {
        args[count++] = launched;
        add(&caller, call->id);
        add_caller(&caller);
        args[count++] = memory;
    }
    run(call, args);
}

/* Who wants to hear that the answer is printed is handed on: if it never is, the connection ends without a word. */
_Noreturn void act(const struct call *call, struct bytes plan, bool ack)
{
    char memory[16], daemon_memory[16];
    struct text number = text_in(memory, sizeof memory), daemon = text_in(daemon_memory, sizeof daemon_memory);
    int fd = as_file(plan, call->id);
    if (fd < 0)
        cold_road(call);
    add_number(&number, (uint64_t)fd, 10, 1);
    add_number(&daemon, (uint64_t)call->daemon, 10, 1);
    bool told = ack && fcntl(call->daemon, F_SETFD, 0) == 0;
    char *args[] = {ACT,    "-E",           "-P",          "-c",   ACT,           (char *)call->event, "--client",
                    (char *)call->client, "--id", (char *)call->id, "--plan-fd", memory,
                    told ? "--ack-fd" : NULL, daemon_memory, NULL};
    run(call, args);
}

/* Become what would have been run without us, as the client runs it. */
_Noreturn void go_on(const struct call *call)
{
    char *args[] = {SHELL, "-c", (char *)call->then, NULL};
    as_stdin(call);
    execv(SHELL, args);
    leave(127);
}
