/* Declarations shared by the files of the launcher. docs/architecture.md describes the path of one event.
 * It is C11 on POSIX, without stdio, locale or heap: this process lives for one event, and its start is most of its
 * cost. It knows no policy. Everything that it does not understand is left to Python, which is slow and correct. */
#ifndef FAIRLEAD_HOOK_H
#define FAIRLEAD_HOOK_H

#define _GNU_SOURCE /* memfd_create, struct ucred; so this header is included first */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define MAX_PAYLOAD ((size_t)64 << 20) /* fairlead.events.MAX_PAYLOAD */
#define MAX_BODY ((size_t)80 << 20)
#define MAX_HEAD ((size_t)16 << 10)
#define MAX_VALUE ((size_t)4096)
#define MAX_PATH ((size_t)8192)
#define MAX_TOKEN ((size_t)64)
#define MAX_WAIT ((uint64_t)2000000000) /* milliseconds: 23 days, which fits `poll` */
#ifndef MAX_WAITS
#define MAX_WAITS 100000 /* consecutive waits for one event */
#define MAX_STOP 3590000 /* milliseconds that they may take together: less than clients/claude/settings/_events.py says */
#define MAX_SHORT 20000 /* at UserPromptSubmit and PreModelSwitch */
#define MAX_SESSION_END 8000
#define MAX_OTHER 40000
#endif

struct bytes {
    char *at;
    size_t size;
};

/* A wait that the daemon asked for: the token to ask with, and how long that may take. Empty token: no wait. */
struct wait {
    uint64_t milliseconds;
    char token[72];
};

/* Our arguments and our input. */
struct call {
    const char *event, *client, *python; /* python: NULL if it must be searched for */
    const char *status_command;          /* the user's own status line, to be run after us; NULL if there is none */
    char **args;                         /* without the options that are for the launcher only */
    int arg_count;
    bool command;        /* not an event, but a command of the user */
    bool for_daemon;     /* has only arguments that a daemon can handle */
    bool is_gate;        /* PreToolUse: a failure must block */
    bool has_check;      /* there is a plan, and if it cannot be carried out, that must block */
    bool wake;           /* --wake: the client does not wait for us, our end wakes its session */
    bool status_line;    /* StatusLine: a failure must be silent, because the user sees our output */
    bool stdin_read;     /* stdin was read into payload */
    bool stdin_complete; /* to its end */
    struct bytes payload;
    struct wait wait;
    struct bytes report; /* the results of a plan, which are then sent to the daemon; or the words of a command */
    int daemon; /* the connection that expects an acknowledgement; only valid if the answer asks for one */
    char id[40];
};

/* text.c: text in a buffer of fixed size, always NUL-terminated; `full` if something did not fit. */
struct text {
    char *at;
    size_t room, size;
    bool full;
};
struct text text_in(char *at, size_t room);
bool add(struct text *text, const char *string);
bool add_bytes(struct text *text, const char *at, size_t size);
bool add_number(struct text *text, uint64_t number, unsigned base, unsigned digits);
bool add_encoded(struct text *text, const char *at);
bool read_number(const char *at, size_t size, uint64_t max, uint64_t *number);
bool equals_ignoring_case(const char *at, size_t size, const char *lower);
bool is_name(const char *at, size_t size, const char *others);

/* paths.c */
bool runtime_folder(struct text *path);

/* command.c */
bool is_terminal(int fd, uint64_t *columns);
void add_command(struct text *head, const struct call *call);
_Noreturn void run_command(struct call *call, int argc, char **argv);

/* request.c */
bool request_head(struct text *head, const struct call *call);
bool add_caller(struct text *text); /* ,PID,START of the client, as --launched expects it */

/* answer.c */
enum state { PARTIAL, WHOLE, GARBAGE };
struct answer {
    unsigned status;
    uint64_t exit_code, head, body, stdout_size; /* bytes; head includes the empty line */
    uint64_t steps_size;            /* for a 202: the part of the body that is for us; 0 if it is for Python alone */
    struct wait wait;               /* for a 303 */
    char ack[72]; /* if not empty, the daemon expects an acknowledgement when it is printed: the receipt's name */
};
enum state read_head(const char *at, size_t size, struct answer *answer);

/* exchange.c: the connection to the daemon */
int connect_daemon(void);
bool ask_daemon(int daemon, struct call *call, struct answer *answer, struct bytes *got);
bool waits_for_person(const struct call *call);

/* io.c */
void *map_memory(size_t size);
int move_above_stderr(int fd);
bool new_pipe(int ends[2], bool kept);
int64_t now_ms(void);
ssize_t read_some(int fd, void *at, size_t room);
int await_end(pid_t child);
void handle_signal(int number, void (*handler)(int));
int write_all(int fd, const char *at, size_t size);
bool read_payload(struct call *call);
int to_file(struct bytes content, const char *name);
bool restore_stdin(const struct call *call);

/* plan.c: returns if Python must run the plan */
void carry_out(struct call *call, const struct answer *planned, struct bytes body);

/* hook.c */
_Noreturn void print_answer(const struct call *call, const struct answer *answer, const char *body);

/* python.c: the first five do not return */
_Noreturn void evaluate_locally(const struct call *call);
_Noreturn void run_plan(const struct call *call, struct bytes plan, const char *ack);
_Noreturn void settle_locally(const struct call *call, struct bytes plan, const char *ack);
_Noreturn void run_status_command(const struct call *call);
_Noreturn void quit(int code);
void print_error_line(struct text *line);
const char *error_text(int error);

#endif
