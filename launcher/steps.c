/* Runs the steps of a plan, each in a session of its own: bounded in time and memory, and killed as a group.
 * fairlead.process does the same in Python; tests/launcher/test_plans.py compares the two. */
#include "plan.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define GRACE 250         /* milliseconds between SIGTERM and SIGKILL */
#define MAX_READ (1 << 20) /* bytes that are read of one stream before the others get their turn */

extern char **environ;

/* ---- output ---- */

static void keep(struct capture *capture, char byte)
{
    if (capture->first_size < KEPT_SIZE) {
        capture->first[capture->first_size++] = byte;
        return;
    }
    if (capture->last_size < KEPT_SIZE) {
        capture->last[capture->last_size++] = byte;
        return;
    }
    capture->skipped_lines += capture->last[capture->last_start] == '\n';
    capture->last[capture->last_start] = byte;
    capture->last_start = (capture->last_start + 1) % KEPT_SIZE;
}

static void capture_bytes(struct capture *capture, const char *at, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        bool ends = at[i] == '\n';
        if (ends || capture->column < LINE_SIZE)
            keep(capture, at[i]);
        capture->column = ends ? 0 : capture->column + 1;
    }
}

/* Copy what was kept, in order; return its size. */
size_t kept_bytes(const struct capture *capture, char *to)
{
    size_t tail = capture->last_size - capture->last_start;
    if (!capture->first_size)
        return 0;
    memcpy(to, capture->first, capture->first_size);
    memcpy(to + capture->first_size, capture->last + capture->last_start, tail);
    memcpy(to + capture->first_size + tail, capture->last, capture->last_start);
    return capture->first_size + capture->last_size;
}

static void end_capture(struct capture *capture)
{
    if (capture->fd >= 0)
        close(capture->fd);
    capture->fd = -1;
}

/* Read what there is now. */
static void receive_output(struct capture *capture)
{
    static char some[(size_t)64 << 10];
    for (size_t sum = 0; capture->fd >= 0 && sum < MAX_READ;) {
        ssize_t size = read_some(capture->fd, some, sizeof some);
        if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return;
        if (size <= 0) {
            end_capture(capture);
            return;
        }
        capture_bytes(capture, some, (size_t)size);
        sum += (size_t)size;
    }
}

static void receive_outputs(struct step *step)
{
    receive_output(&step->captures[0]);
    receive_output(&step->captures[1]);
}

/* ---- the watcher: ends the steps if we are killed ---- */

struct watched { pid_t group; bool ended; };

static void kill_watched(const pid_t *groups, size_t count, int number)
{
    for (size_t i = 0; i < count; i++)
        if (groups[i])
            kill(-groups[i], number);
}

static _Noreturn void watch(int from)
{
    pid_t groups[MAX_STEPS] = {0};
    size_t count = 0;
    struct watched news;
    setsid();
    for (int fd = 0; fd < 3; fd++) /* the client waits until all who can write to its pipes are gone */
        close(fd);
    for (;;) {
        if (read_some(from, &news, sizeof news) != sizeof news)
            break;
        if (!news.group)
            quit(0);
        for (size_t i = 0; i < count; i++)
            if (groups[i] == news.group)
                groups[i] = 0;
        if (!news.ended && count < MAX_STEPS)
            groups[count++] = news.group;
    }
    kill_watched(groups, count, SIGTERM);
    poll(NULL, 0, GRACE);
    kill_watched(groups, count, SIGKILL);
    quit(0);
}

static int watcher = -1; /* the pipe to it */

static bool start_watcher(void)
{
    int ends[2];
    if (!new_pipe(ends, false))
        return false;
    pid_t child = fork();
    if (child == 0) {
        close(ends[1]);
        watch(ends[0]);
    }
    close(ends[0]);
    watcher = ends[1];
    return child > 0;
}

static void tell_watcher(pid_t group, bool ended)
{
    struct watched news = {.group = group, .ended = ended};
    write_all(watcher, (char *)&news, sizeof news);
}

/* ---- starting ---- */

struct failure { enum result result; int error; };

/* Whether a variable is among others, which are NAME=VALUE, or NAME alone. */
static bool is_among(const char *variable, char **others, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *sign = strchr(others[i], '=');
        size_t size = sign ? (size_t)(sign - others[i]) : strlen(others[i]);
        if (strncmp(variable, others[i], size) == 0 && variable[size] == '=')
            return true;
    }
    return false;
}

static bool is_inherited(const char *variable, const struct plan *plan, const struct step *step)
{
    return !is_among(variable, plan->removed, plan->removed_count) &&
           !is_among(variable, plan->env, plan->env_count) && !is_among(variable, step->env, step->env_count);
}

static char **environment(const struct plan *plan, const struct step *step)
{
    size_t count = 0;
    while (environ[count])
        count++;
    char **all = map_memory((count + plan->env_count + step->env_count + 1) * sizeof *all);
    if (!all)
        return NULL;
    count = 0;
    for (char **at = environ; *at; at++)
        if (is_inherited(*at, plan, step))
            all[count++] = *at;
    for (size_t i = 0; i < plan->env_count; i++)
        if (!is_among(plan->env[i], step->env, step->env_count))
            all[count++] = plan->env[i];
    for (size_t i = 0; i < step->env_count; i++)
        all[count++] = step->env[i];
    return all;
}

/* Execute a program that is searched for in PATH. Returns the error. */
static int exec_program(char **argv)
{
    static char memory[MAX_PATH];
    const char *path = getenv("PATH");
    int error = ENOENT;
    if (strchr(argv[0], '/')) {
        execv(argv[0], argv);
        return errno;
    }
    for (path = path ? path : "/bin:/usr/bin"; path; path = strchr(path, ':') ? strchr(path, ':') + 1 : NULL) {
        struct text file = text_in(memory, sizeof memory);
        const char *end = strchr(path, ':');
        size_t size = end ? (size_t)(end - path) : strlen(path);
        add_bytes(&file, size ? path : ".", size ? size : 1);
        add(&file, "/");
        if (!add(&file, argv[0]))
            continue;
        execv(memory, argv);
        if (errno != ENOENT && errno != ENOTDIR)
            error = errno;
    }
    return error;
}

static _Noreturn void become(const struct plan *plan, const struct step *step, const int ends[3], int report)
{
    struct failure failure = {NO_FOLDER, 0};
    setsid();
    tell_watcher(getpid(), false); /* the child does this: we may be killed before we can */
    signal(SIGPIPE, SIG_DFL); /* a new program inherits ignored signals, but not handlers */
    signal(SIGXFSZ, SIG_DFL);
    for (int i = 0; i < 3; i++)
        dup2(ends[i], i);
    if (chdir(step->folder) != 0) {
        failure.error = errno;
    } else {
        char **all = environment(plan, step);
        failure.result = NO_PROGRAM;
        for (int fd = 3; fd < 256; fd++) /* files of the client's, too */
            fcntl(fd, F_SETFD, FD_CLOEXEC);
        environ = all ? all : environ;
        failure.error = all ? exec_program(step->argv) : ENOMEM;
    }
    write_all(report, (char *)&failure, sizeof failure);
    quit(127);
}

static bool start_capture(struct capture *capture, int fd)
{
    capture->fd = fd;
    capture->first = map_memory(KEPT_SIZE);
    capture->last = map_memory(KEPT_SIZE);
    return fcntl(fd, F_SETFL, O_NONBLOCK) == 0 && capture->first && capture->last;
}

static void set_result(struct step *step, enum result result, int value)
{
    step->result = result;
    step->value = value;
    step->took = now_ms() - step->started;
    step->pid = 0;
    end_capture(&step->captures[0]);
    end_capture(&step->captures[1]);
}

/* Wait until the program runs: its pipe is closed without a report. */
static void await_exec(struct step *step, int report)
{
    struct failure failure;
    ssize_t size = read_some(report, &failure, sizeof failure);
    close(report);
    if (size != sizeof failure)
        return;
    await_end(step->pid);
    tell_watcher(step->pid, true);
    set_result(step, failure.result, failure.error);
}

static void start(const struct plan *plan, struct step *step, const char *name)
{
    int out[2], err[2], report[2];
    step->started = now_ms();
    step->captures[0].fd = step->captures[1].fd = -1;
    int input = to_file(plan->input, name);
    if (input < 0 || !new_pipe(out, false) || !new_pipe(err, false) || !new_pipe(report, false) ||
        !start_capture(&step->captures[0], out[0]) || !start_capture(&step->captures[1], err[0])) {
        set_result(step, NO_PROGRAM, errno);
        return;
    }
    const int ends[3] = {input, out[1], err[1]};
    step->pid = fork();
    if (step->pid == 0)
        become(plan, step, ends, report[1]);
    int error = errno;
    for (int i = 0; i < 3; i++)
        close(ends[i]);
    close(report[1]);
    if (step->pid > 0) {
        await_exec(step, report[0]);
        return;
    }
    close(report[0]);
    set_result(step, NO_PROGRAM, error);
}

/* ---- ending ---- */

static int signals[2] = {-1, -1}; /* a signal writes a byte to this pipe, which ends a wait */
static volatile sig_atomic_t is_cancelled;

static void on_signal(int number)
{
    int error = errno;
    if (number != SIGCHLD)
        is_cancelled = 1;
    if (write(signals[1], "!", 1) < 0)
        errno = 0; /* the pipe is full: the wait ends anyway */
    errno = error;
}

static bool catch_signals(void)
{
    if (!new_pipe(signals, false) || fcntl(signals[0], F_SETFL, O_NONBLOCK) || fcntl(signals[1], F_SETFL, O_NONBLOCK))
        return false;
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, on_signal);
    handle_signal(SIGTERM, on_signal);
    handle_signal(SIGINT, on_signal);
    handle_signal(SIGHUP, on_signal);
    return true;
}

/* Collect a step that has ended. All its output is in the pipes by now. Processes that it left may hold them open. */
static bool collect(struct step *step)
{
    int status = 0;
    pid_t ended = waitpid(step->pid, &status, WNOHANG);
    if (ended == 0 || (ended < 0 && errno == EINTR))
        return false;
    tell_watcher(step->pid, true);
    receive_outputs(step);
    if (ended < 0)
        set_result(step, SIGNALED, SIGKILL); /* another caller of wait has its status: unknown, so it failed */
    else if (WIFEXITED(status))
        set_result(step, EXITED, WEXITSTATUS(status));
    else
        set_result(step, SIGNALED, WTERMSIG(status));
    return true;
}

/* Wait for a signal, which is the first of these files, or for the others. */
static void await_signal(struct pollfd *files, nfds_t count, int64_t milliseconds)
{
    char bytes[64];
    files[0] = (struct pollfd){.fd = signals[0], .events = POLLIN};
    poll(files, count, (int)milliseconds);
    while (read(signals[0], bytes, sizeof bytes) > 0)
        continue;
}

/* End a step and what it has started: ask, then kill. The group outlives its leader while a process of it runs. */
static void end_step(struct step *step)
{
    int64_t give_up = now_ms() + GRACE;
    siginfo_t ended = {0};
    kill(-step->pid, SIGTERM);
    for (int64_t left = GRACE; left > 0; left = give_up - now_ms()) {
        if (waitid(P_PID, (id_t)step->pid, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid)
            break;
        await_signal(&(struct pollfd){0}, 1, left);
    }
    kill(-step->pid, SIGKILL);
    await_end(step->pid);
    tell_watcher(step->pid, true);
    receive_outputs(step);
    set_result(step, TIMED_OUT, 0);
}

/* ---- running ---- */

/* Milliseconds until the next step is overdue. */
static int64_t next_timeout(const struct plan *plan, int64_t now)
{
    int64_t wait = 60000;
    for (size_t i = 0; i < plan->count; i++) {
        const struct step *step = &plan->steps[i];
        int64_t left = step->started + (int64_t)step->timeout - now;
        if (step->pid && step->timeout && left < wait)
            wait = left;
    }
    return wait > 0 ? wait : 0;
}

/* Wait for output, the end of a step, or a signal. */
static void await_changes(const struct plan *plan)
{
    struct pollfd files[1 + 2 * MAX_STEPS];
    nfds_t count = 1;
    for (size_t i = 0; i < plan->count; i++)
        for (int j = 0; j < 2; j++)
            if (plan->steps[i].pid && plan->steps[i].captures[j].fd >= 0)
                files[count++] = (struct pollfd){.fd = plan->steps[i].captures[j].fd, .events = POLLIN};
    await_signal(files, count, next_timeout(plan, now_ms()));
}

/* Handle output, ended steps and signals; return how many steps still run. */
static size_t handle_changes(struct plan *plan)
{
    size_t running = 0;
    for (size_t i = 0; i < plan->count; i++) {
        struct step *step = &plan->steps[i];
        if (!step->pid)
            continue;
        receive_outputs(step);
        if (collect(step))
            continue;
        if (is_cancelled || (step->timeout && now_ms() >= step->started + (int64_t)step->timeout))
            end_step(step);
        running += step->pid != 0;
    }
    return running;
}

static bool ends_sequence(const struct step *step)
{
    char on = step->ends_on[0];
    bool ran = step->result == EXITED && (step->value < 126 || step->value > 192); /* else as shells report it */
    if (!ran)
        return on == 'f' || on == 'b';
    return on == '2' || on == 'b' ? step->value == 2 : (on == 'f' || on == 'r') && step->value != 0;
}

static void run_all(struct plan *plan, const char *name)
{
    for (size_t i = 0; i < plan->count && !is_cancelled; i++) {
        if (plan->steps[i].ends_on[0] == 's') {
            plan->steps[i].result = SKIPPED;
            continue;
        }
        start(plan, &plan->steps[i], name);
        if (plan->parallel)
            continue;
        while (handle_changes(plan))
            await_changes(plan);
        if (ends_sequence(&plan->steps[i]))
            return;
    }
    while (handle_changes(plan))
        await_changes(plan);
}

/* Run the steps, until one ends the sequence. Return false if none was begun. */
bool run_steps(struct plan *plan, const char *name)
{
    if (!catch_signals() || !start_watcher())
        return false;
    run_all(plan, name);
    plan->cancelled = is_cancelled;
    tell_watcher(0, true);
    return true;
}
