/* Asks the daemon, within a deadline. `false` and -1 always mean that Python must handle the event. */
#include "hook.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#ifndef MSG_NOSIGNAL /* macOS has a socket option instead */
#define MSG_NOSIGNAL 0
#endif

static const char SLOW[] = "fairlead: the daemon has not answered for a second; if it hangs, see fairlead doctor\n";

#ifdef SO_PEERCRED
/* The daemon's lock has its pid. The guards keep agents from writing there; see docs/howto/self-protection.md */
static bool holds_lock(struct text *folder, uint64_t pid)
{
    char memory[16];
    uint64_t number = 0;
    int fd = add(folder, "/daemon.lock") ? open(folder->at, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
    ssize_t size = read(fd, memory, sizeof memory);
    close(fd);
    return size > 1 && memory[size - 1] == '\n' && read_number(memory, (size_t)size - 1, pid, &number) && number == pid;
}
#endif

/* The socket of another user, or of another process, could allow everything. */
static bool is_daemon(int fd, struct text *folder)
{
#ifdef SO_PEERCRED
    struct ucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == getuid() &&
           holds_lock(folder, (uint64_t)peer.pid);
#else
    uid_t uid;
    gid_t gid;
    return folder && getpeereid(fd, &uid, &gid) == 0 && uid == getuid();
#endif
}

static int new_socket(void)
{
#ifdef SOCK_NONBLOCK
    return move_above_stderr(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0));
#else
    int on = 1, fd = move_above_stderr(socket(AF_UNIX, SOCK_STREAM, 0));
    if (fd >= 0) {
        fcntl(fd, F_SETFL, O_NONBLOCK);
        setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
    }
    return fd;
#endif
}

/* Connecting to a Unix socket succeeds at once or fails: a daemon whose queue is full cannot answer. */
int connect_daemon(void)
{
    char memory[MAX_PATH];
    struct text path = text_in(memory, sizeof memory);
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t folder = runtime_folder(&path) ? path.size : 0;
    if (!folder || !add(&path, "/daemon.sock") || path.size >= sizeof to.sun_path)
        return -1;
    memcpy(to.sun_path, memory, path.size + 1);
    path.size = folder;
    int fd = new_socket();
    if (fd < 0)
        return -1;
    if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0 && is_daemon(fd, &path))
        return fd;
    close(fd);
    return -1;
}

/* A status line must be drawn quickly. A wait takes the time that the daemon named, plus some for the exchange. */
static int64_t timeout_ms(const struct call *call)
{
    const char *set = getenv("FAIRLEAD_DEADLINE_MS");
    uint64_t number;
    if (call->wait.token[0])
        return (int64_t)call->wait.milliseconds + 2000;
    if (set && read_number(set, strlen(set), 60000, &number) && number > 0)
        return (int64_t)number;
    return call->status_line ? 300 : call->command ? 5000 : 2000;
}

static bool wait_ready(int fd, short events, int64_t deadline)
{
    struct pollfd wait = {.fd = fd, .events = events};
    for (;;) {
        int64_t left = deadline - now_ms();
        if (left <= 0)
            return false;
        int count = poll(&wait, 1, (int)left);
        if (count > 0)
            return true;
        if (count < 0 && errno != EINTR)
            return false;
    }
}

static bool is_retryable(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

static bool send_all(int fd, struct text head, struct bytes payload, int64_t deadline)
{
    struct iovec parts[] = {{head.at, head.size}, {payload.at, payload.size}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    while (parts[0].iov_len + parts[1].iov_len > 0) {
        ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL);
        if (sent < 0 && !(is_retryable() && wait_ready(fd, POLLOUT, deadline)))
            return false;
        for (int i = 0; i < 2 && sent > 0; i++) {
            size_t gone = (size_t)sent < parts[i].iov_len ? (size_t)sent : parts[i].iov_len;
            parts[i].iov_base = (char *)parts[i].iov_base + gone;
            parts[i].iov_len -= gone;
            sent -= (ssize_t)gone;
        }
    }
    return true;
}

/* Make room for the whole answer, and one byte more to detect a longer one than announced. */
static bool grow(struct bytes *got, size_t *room, size_t whole)
{
    if (whole < *room)
        return true;
    char *larger = map_memory(whole + 1);
    if (!larger)
        return false;
    memcpy(larger, got->at, got->size);
    got->at = larger;
    *room = whole + 1;
    return true;
}

static bool receive(int fd, struct answer *answer, struct bytes *got, int64_t deadline)
{
    static char first[(size_t)64 << 10];
    size_t room = sizeof first, whole = 0;
    *got = (struct bytes){first, 0};
    while (whole == 0 || got->size < whole) {
        if (!wait_ready(fd, POLLIN, deadline))
            return false;
        ssize_t size = recv(fd, got->at + got->size, room - got->size, 0);
        if (size == 0 || (size < 0 && !is_retryable()))
            return false;
        got->size += size > 0 ? (size_t)size : 0;
        enum state state = whole ? WHOLE : read_head(got->at, got->size, answer);
        if (state == GARBAGE)
            return false;
        if (state == PARTIAL)
            continue;
        whole = answer->head + answer->body;
        if (!grow(got, &room, whole))
            return false;
    }
    return got->size == whole;
}

/* Whether an exit code is one that this event may have: the client takes any but 2 for consent. */
static bool may_exit(const struct call *call, const struct answer *answer)
{
    return answer->exit_code == 0 || call->command || (answer->exit_code <= 2 && !call->status_line &&
                                      (answer->exit_code == 2 || !call->is_gate));
}

static bool exchange(int daemon, const struct call *call, struct answer *answer, struct bytes *got)
{
    static char memory[(size_t)192 << 10]; /* every value at its maximum, with each byte encoded */
    struct text head = text_in(memory, sizeof memory);
    uint64_t columns;
    if (!request_head(&head, call))
        return false;
    int64_t deadline = now_ms() + timeout_ms(call);
    struct bytes body = call->report.size ? call->report : call->payload;
    if (call->wait.token[0])
        body = (struct bytes){0};
    if (!send_all(daemon, head, body, deadline))
        return false;
    bool is_watched = call->command && !call->wait.token[0] && is_terminal(2, &columns);
    if (is_watched && !wait_ready(daemon, POLLIN, now_ms() + 1000))
        write_all(2, SLOW, sizeof SLOW - 1);
    return receive(daemon, answer, got, deadline) && may_exit(call, answer);
}

/* Whether we wait for a person's answer. The client asks, too, so if the wait breaks off, its own question stays. */
bool waits_for_person(const struct call *call)
{
    static const char prefix[] = "answer-"; /* daemon/answers/_service.py */
    return !call->is_gate && strncmp(call->wait.token, prefix, sizeof prefix - 1) == 0;
}

/* How long the waits of an event may take together. For a wake and for a command no client waits. */
static int64_t max_wait(const struct call *call)
{
    if (call->wake || call->command)
        return INT64_MAX / 2;
    const char *event = call->event;
    size_t size = strlen(event);
    if (waits_for_person(call) || equals_ignoring_case(event, size, "stop"))
        return MAX_STOP;
    if (equals_ignoring_case(event, size, "userpromptsubmit") || equals_ignoring_case(event, size, "premodelswitch"))
        return MAX_SHORT;
    return equals_ignoring_case(event, size, "sessionend") ? MAX_SESSION_END : MAX_OTHER;
}

/* Ask until there is an answer: the daemon may answer with a wait instead. Closes the connection, unless the daemon
 * expects an acknowledgement. */
bool ask_daemon(int daemon, struct call *call, struct answer *answer, struct bytes *got)
{
    int64_t start = now_ms();
    for (unsigned waits = 0; daemon >= 0; waits++) {
        bool answered = exchange(daemon, call, answer, got);
        call->daemon = daemon;
        if (answered && answer->ack[0])
            return true;
        close(daemon);
        if (!answered || answer->status != 303 || call->status_command)
            return answered;
        call->wait = answer->wait;
        int64_t left = start + max_wait(call) - now_ms();
        if ((int64_t)call->wait.milliseconds > left)
            call->wait.milliseconds = left > 0 ? (uint64_t)left : 0;
        daemon = waits < MAX_WAITS && left > 0 ? connect_daemon() : -1;
    }
    return false;
}
