/* Sends events to a daemon as launchers do: a new connection for each, one write, and the answer to its end.

   load SOCKET REQUESTS CLIENTS EVENTS RATE

   REQUESTS is a file: the number of sessions, then for each of them the number of its requests, and these with their
   lengths; all numbers are 32 bits, in native byte order. Client N sends those of the sessions N, N + CLIENTS, ...,
   one after the other, and again from the first. With RATE 0 a client sends its next event when the last is answered;
   otherwise all together send RATE events per second, with the random gaps of a Poisson process. Time is measured from
   when an event was due, not from when it could be sent. Prints JSON. In C, and asleep between two events, so that it
   takes less from the daemon than what is measured: two CPUs may be two threads of one core. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define ID "\r\nfairlead-id: "

typedef struct {
    char *text, *id;
    uint32_t size;
} Request;

typedef struct {
    int fd;
    uint32_t session, next; /* the request that is sent next */
    double due;
    int ok;
} Client;

static struct sockaddr_un address = {.sun_family = AF_UNIX};
static Request **sessions;
static uint32_t *sizes, session_count, client_count;
static uint64_t id, seed = 88172645463325252u;
static double rate;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void load(const char *path) {
    int fd = open(path, O_RDONLY);
    struct stat about;
    if (fd < 0 || fstat(fd, &about)) fail(path);
    char *at = mmap(NULL, (size_t)about.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    if (at == MAP_FAILED) fail(path);
    memcpy(&session_count, at, 4), at += 4;
    sessions = calloc(session_count, sizeof *sessions);
    sizes = calloc(session_count, sizeof *sizes);
    for (uint32_t s = 0; s < session_count; s++) {
        memcpy(&sizes[s], at, 4), at += 4;
        sessions[s] = calloc(sizes[s], sizeof **sessions);
        for (uint32_t r = 0; r < sizes[s]; r++) {
            Request *request = &sessions[s][r];
            memcpy(&request->size, at, 4), request->text = at + 4, at += 4 + request->size;
            char *found = memmem(request->text, request->size, ID, strlen(ID));
            if (!found) errno = EINVAL, fail("a request without an id");
            request->id = found + strlen(ID);
        }
    }
}

/* Every event has its own id, or it would be taken for a repeated one. */
static void renew(char *place) {
    char digits[17];
    snprintf(digits, sizeof digits, "%016llx", (unsigned long long)id++);
    memcpy(place, digits, 16);
}

static double gap(void) {
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return -log(((double)(seed >> 11) + 0.5) / 9007199254740992.0) * client_count / rate;
}

/* Return 0 if the daemon's queue is full. */
static int begin(Client *client, int epoll) {
    Request *request = &sessions[client->session][client->next];
    client->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (client->fd < 0) fail("socket");
    if (connect(client->fd, (struct sockaddr *)&address, sizeof address)) {
        if (errno != EAGAIN) fail("connect");
        close(client->fd), client->fd = -1;
        return 0;
    }
    renew(request->id);
    if (send(client->fd, request->text, request->size, MSG_NOSIGNAL) != (ssize_t)request->size) fail("send");
    struct epoll_event wish = {.events = EPOLLIN, .data.ptr = client};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, client->fd, &wish)) fail("epoll_ctl");
    client->ok = -1;
    if (++client->next == sizes[client->session]) {
        client->next = 0;
        client->session += client_count;
        if (client->session >= session_count) client->session %= client_count;
        if (client->session >= session_count) client->session %= session_count;
    }
    return 1;
}

/* Have `epoll_wait` return when the next event is due; 0 for none. */
static void wake_at(int timer, double when) {
    struct itimerspec at = {.it_value = {(time_t)when, (long)((when - floor(when)) * 1e9)}};
    if (timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL)) fail("timerfd_settime");
}

/* Return 1 when the answer is complete. */
static int read_answer(Client *client) {
    char buffer[65536];
    for (;;) {
        ssize_t got = recv(client->fd, buffer, sizeof buffer, 0);
        if (got < 0 && errno == EAGAIN) return 0;
        if (got <= 0) break;
        if (client->ok < 0) client->ok = got > 12 && !memcmp(buffer, "HTTP/1.1 200", 12);
    }
    close(client->fd), client->fd = -1;
    return 1;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    if (argc != 6 || strlen(argv[1]) >= sizeof address.sun_path) return 2;
    strcpy(address.sun_path, argv[1]);
    load(argv[2]);
    client_count = (uint32_t)atoi(argv[3]);
    long total = atol(argv[4]), begun = 0, done = 0, bad = 0;
    rate = atof(argv[5]);
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    id = (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;

    int epoll = epoll_create1(EPOLL_CLOEXEC);
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    struct epoll_event due = {.events = EPOLLIN | EPOLLET, .data.ptr = NULL};
    if (timer < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &due)) fail("timerfd");
    Client *clients = calloc(client_count, sizeof *clients);
    double *took = calloc((size_t)total, sizeof *took), start = now();
    for (uint32_t c = 0; c < client_count; c++)
        clients[c] = (Client){-1, c % session_count, 0, rate ? start + gap() : start, -1};
    while (done < total) {
        double next = INFINITY, at = now();
        for (uint32_t c = 0; c < client_count && begun < total; c++) {
            if (clients[c].fd >= 0) continue;
            if (clients[c].due <= at && begin(&clients[c], epoll)) begun++;
            else next = fmin(next, clients[c].due);
        }
        if (next > at && next != INFINITY) wake_at(timer, next);
        struct epoll_event ready[64];
        int count = epoll_wait(epoll, ready, 64, next <= at ? 0 : -1);
        for (int r = 0; r < count; r++) {
            Client *client = ready[r].data.ptr;
            if (!client || !read_answer(client)) continue;
            double end = now();
            took[done++] = end - client->due;
            bad += client->ok != 1;
            client->due = rate ? client->due + gap() : end;
        }
    }
    double seconds = now() - start;
    qsort(took, (size_t)total, sizeof *took, ascending);
    printf("{\"events\": %ld, \"bad\": %ld, \"seconds\": %.6f, \"p50\": %.6f, \"p99\": %.6f, \"longest\": %.6f}\n",
           total, bad, seconds, took[total / 2], took[total - 1 - total / 100], took[total - 1]);
    return 0;
}
