/* The few C library functions that the launcher calls, for Linux on x86-64 and arm64, linked without a C library.
 * A C library initializes more than we need: a static glibc executes `cpuid` about fifty times, and a virtual machine
 * traps each of them. That takes 0.5 ms, five times the rest of our start. Where this file does not work,
 * hatch_build.py links the platform's library instead; nothing else changes. */
#include "hook.h"

#include <asm/unistd.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

char **environ;
static int last_error;

int *__errno_location(void) { return &last_error; }

int main(int argc, char **argv);

__attribute__((used)) static _Noreturn void begin(long *stack)
{
    int argc = (int)stack[0];
    char **argv = (char **)(stack + 1);
    environ = argv + argc + 1;
    _exit(main(argc, argv));
}

#if defined(__x86_64__) && defined(__LP64__)
__asm__(".globl _start\n_start: xor %ebp, %ebp\n mov %rsp, %rdi\n and $-16, %rsp\n call begin\n hlt\n");
__asm__("back_from_signal: mov $15, %eax\n syscall\n"); /* rt_sigreturn */
extern void back_from_signal(void);
#define RESTORER back_from_signal
#define SA_RESTORER_FLAG 0x04000000UL

static long call6(long number, long a, long b, long c, long d, long e, long f)
{
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}
#elif defined(__aarch64__) && defined(__LP64__)
__asm__(".globl _start\n_start: mov x29, #0\n mov x30, #0\n mov x0, sp\n bl begin\n");
#define RESTORER 0 /* the kernel provides its own */
#define SA_RESTORER_FLAG 0UL

static long call6(long number, long a, long b, long c, long d, long e, long f)
{
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
}
#else
#error "no system calls known for this processor: link the C library"
#endif

static long result_of(long result)
{
    if (result >= 0 || result < -4095) /* an address may look negative */
        return result;
    last_error = (int)-result;
    return -1;
}

#define CALL_6(number, a, b, c, d, e, f, ...) \
    result_of(call6(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f)))
#define CALL(...) CALL_6(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0) /* with as many arguments as it has */

_Noreturn void _exit(int code)
{
    for (;;)
        CALL(__NR_exit_group, code);
}

/* ---- files ---- */

ssize_t read(int fd, void *at, size_t size) { return CALL(__NR_read, fd, at, size); }
ssize_t write(int fd, const void *at, size_t size) { return CALL(__NR_write, fd, at, size); }
int close(int fd) { return (int)CALL(__NR_close, fd); }
off_t lseek(int fd, off_t to, int from) { return CALL(__NR_lseek, fd, to, from); }
int dup2(int fd, int to) { return (int)CALL(__NR_dup3, fd, to); } /* never onto itself here */
int pipe(int ends[2]) { return (int)CALL(__NR_pipe2, ends); }
int unlink(const char *path) { return (int)CALL(__NR_unlinkat, AT_FDCWD, path); }
int rename(const char *from, const char *to) { return (int)CALL(__NR_renameat2, AT_FDCWD, from, AT_FDCWD, to); }
int memfd_create(const char *name, unsigned flags) { return (int)CALL(__NR_memfd_create, name, flags); }

int open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    unsigned mode = flags & O_CREAT ? va_arg(more, unsigned) : 0;
    va_end(more);
    return (int)CALL(__NR_openat, AT_FDCWD, path, flags, mode);
}

#define WITH_VALUE(name, request, type) \
    int name(int fd, request what, ...) \
    { \
        va_list more; \
        va_start(more, what); \
        type value = va_arg(more, type); \
        va_end(more); \
        return (int)CALL(__NR_##name, fd, what, value); \
    }
WITH_VALUE(fcntl, int, int)
WITH_VALUE(ioctl, unsigned long, void *)

int stat(const char *path, struct stat *found) { return (int)CALL(__NR_newfstatat, AT_FDCWD, path, found); }
ssize_t readlink(const char *path, char *at, size_t room) { return CALL(__NR_readlinkat, AT_FDCWD, path, at, room); }
int chdir(const char *path) { return (int)CALL(__NR_chdir, path); }
char *getcwd(char *at, size_t room) { return CALL(__NR_getcwd, at, room) < 0 ? NULL : at; }

/* ---- sockets, time, memory ---- */

int socket(int family, int type, int protocol) { return (int)CALL(__NR_socket, family, type, protocol); }
ssize_t sendmsg(int fd, const struct msghdr *m, int flags) { return CALL(__NR_sendmsg, fd, m, flags); }
ssize_t recv(int fd, void *at, size_t n, int flags) { return CALL(__NR_recvfrom, fd, at, n, flags); }
int connect(int fd, const struct sockaddr *to, socklen_t size) { return (int)CALL(__NR_connect, fd, to, size); }

int getsockopt(int fd, int level, int name, void *restrict at, socklen_t *restrict size)
{
    return (int)CALL(__NR_getsockopt, fd, level, name, at, size);
}

int poll(struct pollfd *files, nfds_t count, int milliseconds)
{
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    return (int)CALL(__NR_ppoll, files, count, milliseconds < 0 ? NULL : &time);
}

int clock_gettime(clockid_t clock, struct timespec *time) { return (int)CALL(__NR_clock_gettime, clock, time); }

void *mmap(void *at, size_t size, int access, int flags, int fd, off_t from)
{
    return (void *)CALL(__NR_mmap, at, size, access, flags, fd, from);
}

/* ---- processes and signals ---- */

pid_t getpid(void) { return (pid_t)CALL(__NR_getpid); }
pid_t getppid(void) { return (pid_t)CALL(__NR_getppid); }
uid_t getuid(void) { return (uid_t)CALL(__NR_getuid); }
pid_t fork(void) { return (pid_t)CALL(__NR_clone, SIGCHLD); }
int kill(pid_t pid, int number) { return (int)CALL(__NR_kill, pid, number); }
int execv(const char *path, char *const *args) { return (int)CALL(__NR_execve, path, args, environ); }
pid_t setsid(void) { return (pid_t)CALL(__NR_setsid); }
pid_t waitpid(pid_t pid, int *status, int how) { return (pid_t)CALL(__NR_wait4, pid, status, how); }
int waitid(idtype_t kind, id_t pid, siginfo_t *found, int how) { return (int)CALL(__NR_waitid, kind, pid, found, how); }

struct kernel_action {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)(void);
    uint64_t mask;
};

void (*signal(int number, void (*handler)(int)))(int)
{
    struct kernel_action before, after = {handler, SA_RESTORER_FLAG | SA_RESTART, RESTORER, 0};
    if (CALL(__NR_rt_sigaction, number, &after, &before, sizeof after.mask) < 0)
        return SIG_ERR;
    return before.handler;
}

/* ---- strings; the compiler itself emits calls of the first three ---- */

void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        ((char *)to)[i] = ((const char *)from)[i];
        __asm__ volatile("" ::: "memory"); /* or the compiler would replace the loop by a call of memcpy */
    }
    return to;
}

void *memset(void *at, int value, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        ((char *)at)[i] = (char)value;
        __asm__ volatile("" ::: "memory");
    }
    return at;
}

int memcmp(const void *one, const void *other, size_t size)
{
    const unsigned char *a = one, *b = other;
    for (size_t i = 0; i < size; i++)
        if (a[i] != b[i])
            return a[i] - b[i];
    return 0;
}

size_t strlen(const char *at)
{
    size_t size = 0;
    for (; at[size]; size++)
        __asm__ volatile("" ::: "memory");
    return size;
}

int strncmp(const char *a, const char *b, size_t size)
{
    for (; size && *a && *a == *b; size--, a++, b++)
        continue;
    return size ? (unsigned char)*a - (unsigned char)*b : 0;
}

char *strchr(const char *at, int c)
{
    for (; *at != (char)c; at++)
        if (!*at)
            return NULL;
    return (char *)at;
}

char *getenv(const char *name)
{
    size_t size = strlen(name);
    for (char **at = environ; *at; at++)
        if (strncmp(*at, name, size) == 0 && (*at)[size] == '=')
            return *at + size + 1;
    return NULL;
}
