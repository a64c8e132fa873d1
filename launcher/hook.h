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

struct bytes {
    char *at;
    size_t size;
};

/* What we were called with, and what came in. */
struct call {
    const char *event, *client, *python; /* python: NULL if it is to be looked for */
    char **words;                        /* ours, without --python and its value */
    int count;
    bool plain; /* nothing in it but what a daemon can answer */
    bool gate;  /* PreToolUse: what fails must block */
    bool taken; /* stdin was read, and is in payload */
    struct bytes payload;
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
};
enum state read_head(const char *at, size_t size, struct answer *answer);

/* exchange.c: the daemon's end */
int dial(void);
bool exchange(int daemon, const struct call *call, struct answer *answer, struct bytes *got);

/* io.c */
void *reserve(size_t size);
int above_standard(int fd);
bool new_pipe(int ends[2], bool kept);
int write_all(int fd, const char *at, size_t size);
bool read_payload(struct call *call);
int as_file(struct bytes content, const char *name);
bool as_stdin(const struct call *call);

/* python.c: none of these comes back */
_Noreturn void cold_road(const struct call *call);
_Noreturn void act(const struct call *call, struct bytes plan);
_Noreturn void leave(int code);
void complain(struct text *line);
const char *reason_of(int error);

#endif
