/* What the files of the launcher share. docs/architecture.md tells the way of one event.
 *
 * It is C11 on POSIX, without stdio, locale or heap: this process lives for one event, and its start is most of its
 * cost. It knows no policy. Whatever it does not understand it leaves to Python, which is slow and right.
 */
#ifndef FAIRLEAD_HOOK_H
#define FAIRLEAD_HOOK_H

#define _GNU_SOURCE /* memfd_create, struct ucred; so this header comes first */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_PAYLOAD ((size_t)64 << 20) /* fairlead.events.MAX_PAYLOAD */
#define MAX_BODY ((size_t)80 << 20)
#define MAX_HEAD ((size_t)16 << 10)
#define MAX_VALUE ((size_t)4096)
#define MAX_PATH ((size_t)8192)
#define MAX_TOKEN ((size_t)64)
#define MAX_WAIT ((uint64_t)2000000000) /* milliseconds: 23 days, which `poll` can count */
#ifndef MAX_WAITS
#define MAX_WAITS 100000 /* one after the other, for one event */
#endif

struct bytes {
    char *at;
    size_t size;
};

/* What the daemon wants to be asked again for, by which name, and how long that may take; no name: nothing. */
struct wait {
    uint64_t milliseconds;
    char token[72];
};

/* What we were called with, and what came in. */
struct call {
    const char *event, *client, *python; /* python: NULL if it is to be looked for */
    const char *then;                    /* the person's own status line, to be run behind us; NULL if there is none */
    char **words;                        /* ours, without what is for the launcher alone */
    int count;
    bool plain; /* nothing in it but what a daemon can answer */
    bool gate;  /* PreToolUse: what fails must block */
    bool wake;        /* Stop --wake: the client does not wait for us, our end wakes its session */
    bool status_line; /* StatusLine: what fails must be silent, for a person would read it */
    bool taken;       /* stdin was read, and is in payload */
    bool whole;       /* to its end */
    struct bytes payload;
    struct wait wait;
    int daemon; /* who wants to hear that the answer is printed; of no meaning without such an answer */
    char id[40];
};

/* text.c: text in a buffer of fixed size, always ended by NUL; one that does not fit is `full`. */
struct text {
    char *at;
    size_t room, size;
    bool full;
};
struct text text_in(char *at, size_t room);
bool add(struct text *text, const char *words);
bool add_bytes(struct text *text, const char *at, size_t size);
bool add_number(struct text *text, uint64_t number, unsigned base, unsigned digits);
bool add_encoded(struct text *text, const char *at);
bool read_number(const char *at, size_t size, uint64_t most, uint64_t *number);
bool same_letters(const char *at, size_t size, const char *lower);
bool is_name(const char *at, size_t size, const char *also);

/* places.c */
bool runtime_folder(struct text *path);

/* request.c */
bool request_head(struct text *head, const struct call *call);
bool add_caller(struct text *text); /* ,PID,START of the client, as --launched takes it */

/* answer.c */
enum state { PARTIAL, WHOLE, GARBAGE };
struct answer {
    unsigned status, exit_code;
    size_t head, body, stdout_size; /* bytes; head counts the empty line too */
    struct wait wait;               /* of a 303 */
    bool ack;                       /* who answers wants to hear that it is printed; not of a 303 */
};
enum state read_head(const char *at, size_t size, struct answer *answer);

/* exchange.c: the daemon's end */
int dial(void);
bool ask(int daemon, struct call *call, struct answer *answer, struct bytes *got);

/* io.c */
void *reserve(size_t size);
int above_standard(int fd);
bool new_pipe(int ends[2], bool kept);
int write_all(int fd, const char *at, size_t size);
bool read_payload(struct call *call);
int as_file(struct bytes content, const char *name);
bool as_stdin(const struct call *call);

/* python.c: none of the first four comes back */
_Noreturn void cold_road(const struct call *call);
_Noreturn void act(const struct call *call, struct bytes plan, bool ack);
_Noreturn void go_on(const struct call *call);
_Noreturn void leave(int code);
void complain(struct text *line);
const char *reason_of(int error);

#endif
