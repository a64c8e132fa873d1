/* Files and memory: reads stdin, and restores it for the next program. */
#include "hook.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Map memory, which costs nothing until it is written to. It is never freed, since this process ends soon. */
void *map_memory(size_t size)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

/* If stdin, stdout or stderr was closed at our start, a file of ours must not take its number. */
int move_above_stderr(int fd)
{
    if (fd < 0 || fd > 2)
        return fd;
    int moved = fcntl(fd, F_DUPFD, 3);
    close(fd);
    return moved;
}

int64_t now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

/* Read once; try again after a signal. */
ssize_t read_some(int fd, void *at, size_t room)
{
    ssize_t size = read(fd, at, room);
    while (size < 0 && errno == EINTR)
        size = read(fd, at, room);
    return size;
}

/* Wait for the end of a child; return its status, or -1. */
int await_end(pid_t child)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return status;
}

/* Handle a signal, unless it is ignored: then it stays so. */
void handle_signal(int number, void (*handler)(int))
{
    if (signal(number, handler) == SIG_IGN)
        signal(number, SIG_IGN);
}

/* Open a pipe; one that is not `kept` is closed on exec. */
bool new_pipe(int ends[2], bool kept)
{
    if (pipe(ends) != 0)
        return false;
    for (int i = 0; i < 2; i++) {
        ends[i] = move_above_stderr(ends[i]);
        if (!kept)
            fcntl(ends[i], F_SETFD, FD_CLOEXEC);
    }
    return ends[0] >= 0 && ends[1] >= 0;
}

/* Wait if a call would block: the client's end of the pipe may be non-blocking, and we share it. */
static bool can_retry(int fd, short events)
{
    struct pollfd wait = {.fd = fd, .events = events};
    if (errno == EAGAIN || errno == EWOULDBLOCK)
        poll(&wait, 1, -1);
    else if (errno != EINTR)
        return false;
    return true;
}

/* Return 0, or the error. */
int write_all(int fd, const char *at, size_t size)
{
    while (size) {
        ssize_t written = write(fd, at, size);
        if (written < 0 && !can_retry(fd, POLLOUT))
            return errno;
        at += written > 0 ? written : 0;
        size -= written > 0 ? (size_t)written : 0;
    }
    return 0;
}

/* Read stdin to its end. If an error or the limit cuts it off, the daemon is not asked. */
bool read_payload(struct call *call)
{
    static char first[(size_t)64 << 10];
    size_t room = sizeof first;
    struct bytes *got = &call->payload;
    *got = (struct bytes){first, 0};
    for (;;) {
        if (got->size == room) {
            char *larger = room == sizeof first ? map_memory(MAX_PAYLOAD + 1) : NULL;
            if (!larger)
                return false;
            memcpy(larger, first, sizeof first);
            got->at = larger;
            room = MAX_PAYLOAD + 1;
        }
        ssize_t size = read(0, got->at + got->size, room - got->size);
        if (size < 0 && !can_retry(0, POLLIN))
            return false;
        if (size == 0)
            return call->stdin_read = call->stdin_complete = true;
        got->size += size > 0 ? (size_t)size : 0;
        call->stdin_read = got->size > 0;
    }
}

static int create_unlinked(const char *folder, const char *name)
{
    char memory[MAX_PATH];
    struct text path = text_in(memory, sizeof memory);
    if (!folder || !add(&path, folder) || !add(&path, "/fairlead-") || !add(&path, name))
        return -1;
    int fd = open(memory, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (fd >= 0)
        unlink(memory);
    return fd;
}

static int fill(int fd, struct bytes content)
{
    fd = move_above_stderr(fd);
    if (fd < 0)
        return -1;
    if (write_all(fd, content.at, content.size) == 0 && lseek(fd, 0, SEEK_SET) == 0)
        return fd;
    close(fd);
    return -1;
}

/* Write content to an unnamed file for the program that we run; -1 if none can be created. */
int to_file(struct bytes content, const char *name)
{
    void (*before)(int) = signal(SIGXFSZ, SIG_IGN); /* a file size limit must not kill us: the gate would fail open */
    int fd = -1;
#if defined(__linux__) && !defined(FAIRLEAD_NO_MEMFD)
    fd = fill(memfd_create("fairlead", 0), content);
#endif
    if (fd < 0)
        fd = fill(create_unlinked(getenv("TMPDIR"), name), content);
    if (fd < 0)
        fd = fill(create_unlinked("/tmp", name), content);
    signal(SIGXFSZ, before);
    return fd;
}

/* Copy what is left of stdin, if it was not read to its end. */
static void copy_rest(int from, int to)
{
    static char some[(size_t)64 << 10];
    for (;;) {
        ssize_t size = read(from, some, sizeof some);
        if (size == 0 || (size < 0 && !can_retry(from, POLLIN)) || (size > 0 && write_all(to, some, (size_t)size)))
            return;
    }
}

/* The last resort: a detached process that writes to a pipe, and ends when the pipe is closed. */
static int pipe_from_process(const struct call *call)
{
    int ends[2];
    if (!new_pipe(ends, true))
        return -1;
    pid_t child = fork();
    if (child == 0) {
        if (fork() == 0) {
            close(ends[0]);
            if (call->stdin_complete)
                close(0);
            close(1);
            close(2);
            if (write_all(ends[1], call->payload.at, call->payload.size) == 0 && !call->stdin_complete)
                copy_rest(0, ends[1]);
        }
        _exit(0);
    }
    close(ends[1]);
    if (child > 0) {
        await_end(child);
        return ends[0];
    }
    close(ends[0]);
    return -1;
}

bool restore_stdin(const struct call *call)
{
    if (!call->stdin_read)
        return true;
    int fd = call->stdin_complete ? to_file(call->payload, call->id) : -1;
    if (fd < 0)
        fd = pipe_from_process(call);
    if (fd < 0 || dup2(fd, 0) < 0)
        return false;
    close(fd);
    return true;
}
