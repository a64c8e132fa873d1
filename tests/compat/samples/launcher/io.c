/* Files and memory: taking stdin in, and putting it back as it was. */
#include "hook.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Memory that costs nothing until it is written to; it is never given back, as we end soon. */
void *reserve(size_t size)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

/* Whoever started us with stdin, stdout or stderr closed must not find our own file there. */
int above_standard(int fd)
{
    if (fd < 0 || fd > 2)
        return fd;
    int moved = fcntl(fd, F_DUPFD, 3);
    close(fd);
    return moved;
}

/* A pipe; one that is not kept ends where another program begins. */
bool new_pipe(int ends[2], bool kept)
{
    if (pipe(ends) != 0)
        return false;
    for (int i = 0; i < 2; i++) {
        ends[i] = above_standard(ends[i]);
        if (!kept)
            fcntl(ends[i], F_SETFD, FD_CLOEXEC);
    }
    return ends[0] >= 0 && ends[1] >= 0;
}

/* The client's end may be non-blocking, and we share it. */
static bool waited(int fd, short events)
{
    struct pollfd wait = {.fd = fd, .events = events};
    if (errno == EAGAIN || errno == EWOULDBLOCK)
        poll(&wait, 1, -1);
    else if (errno != EINTR)
        return false;
    return true;
}

/* Give 0, or the error. */
int write_all(int fd, const char *at, size_t size)
{
    while (size) {
        ssize_t written = write(fd, at, size);
        if (written < 0 && !waited(fd, POLLOUT))
            return errno;
        at += written > 0 ? written : 0;
        size -= written > 0 ? (size_t)written : 0;
    }
    return 0;
}

/* Read stdin to its end. What is cut off, by an error or the limit, is for no daemon. */
bool read_payload(struct call *call)
{
    static char first[(size_t)64 << 10];
    size_t room = sizeof first;
    struct bytes *got = &call->payload;
    *got = (struct bytes){first, 0};
    for (;;) {
        if (got->size == room) {
            char *larger = room == sizeof first ? reserve(MAX_PAYLOAD + 1) : NULL;
            if (!larger)
                return false;
            memcpy(larger, first, sizeof first);
            got->at = larger;
            room = MAX_PAYLOAD + 1;
        }
        ssize_t size = read(0, got->at + got->size, room - got->size);
        if (size < 0 && !waited(0, POLLIN))
            return false;
        if (size == 0)
            return call->taken = call->whole = true;
        got->size += size > 0 ? (size_t)size : 0;
        call->taken = got->size > 0;
    }
}

static int new_file(const char *folder, const char *name)
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

static int holding(int fd, struct bytes content)
{
    fd = above_standard(fd);
    if (fd < 0)
        return -1;
    if (write_all(fd, content.at, content.size) == 0 && lseek(fd, 0, SEEK_SET) == 0)
        return fd;
    close(fd);
    return -1;
}

/* Put it into a file without a name, for the process that we run to read; -1 if there is no place for one. */
int as_file(struct bytes content, const char *name)
{
    void (*before)(int) = signal(SIGXFSZ, SIG_IGN); /* a limit on files must not end us: the gate would be open */
    int fd = -1;
#if defined(__linux__) && !defined(FAIRLEAD_NO_MEMFD)
    fd = holding(memfd_create("fairlead", 0), content);
#endif
    if (fd < 0)
        fd = holding(new_file(getenv("TMPDIR"), name), content);
    if (fd < 0)
        fd = holding(new_file("/tmp", name), content);
    signal(SIGXFSZ, before);
    return fd;
}

/* What is left of stdin, if it was not read to its end. */
static void pour(int from, int to)
{
    static char some[(size_t)64 << 10];
    for (;;) {
        ssize_t size = read(from, some, sizeof some);
        if (size == 0 || (size < 0 && !waited(from, POLLIN)) || (size > 0 && write_all(to, some, (size_t)size)))
            return;
    }
}

/* The last resort: a process of nobody's that writes into a pipe, and ends when nobody reads it. */
static int fed_by_process(const struct call *call)
{
    int ends[2];
    if (!new_pipe(ends, true))
        return -1;
    pid_t child = fork();
    if (child == 0) {
        if (fork() == 0) {
            close(ends[0]);
            if (call->whole)
                close(0);
            close(1);
            close(2);
            if (write_all(ends[1], call->payload.at, call->payload.size) == 0 && !call->whole)
                pour(0, ends[1]);
        }
        _exit(0);
    }
    close(ends[1]);
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        continue;
    if (child > 0)
        return ends[0];
    close(ends[0]);
    return -1;
}

bool as_stdin(const struct call *call)
{
    if (!call->taken)
        return true;
    int fd = call->whole ? as_file(call->payload, call->id) : -1;
    if (fd < 0)
        fd = fed_by_process(call);
    if (fd < 0 || dup2(fd, 0) < 0)
        return false;
    close(fd);
    return true;
}
