/* Declarations shared by plan.c, which reads plans and reports results, and steps.c, which runs the steps. */
#ifndef FAIRLEAD_PLAN_H
#define FAIRLEAD_PLAN_H

#include "hook.h"

#define MAX_STEPS 64

/* The first and the last bytes of a stream, in lines that are cut at LINE_SIZE bytes. fairlead.process gets the same
 * result from them as from the whole stream, because it keeps less: 512 KiB at either end, and 8 KiB of a line. */
#define LINE_SIZE ((size_t)8 * 1024 + 1)
#define KEPT_SIZE ((size_t)600 * 1024)
struct capture {
    int fd; /* the pipe; -1 if it is closed */
    char *first, *last;
    size_t first_size, last_size, last_start; /* `last` is a ring once it is full */
    size_t column, skipped_lines;
};

enum result { NOT_RUN, SKIPPED, EXITED, SIGNALED, TIMED_OUT, NO_PROGRAM, NO_FOLDER };

struct step {
    const char *ends_on; /* the result that ends a sequence, as in src/fairlead/execute/_native.py; "skip": not run */
    uint64_t timeout;    /* milliseconds; 0: none */
    const char *folder;
    char **env, **argv;
    size_t env_count;

    pid_t pid; /* 0 if it does not run */
    int64_t started, took;
    enum result result;
    int value; /* the exit code, the signal or the error */
    struct capture captures[2];
};

struct plan {
    bool parallel;
    struct bytes input; /* what each step reads on stdin */
    char **removed, **env;
    size_t removed_count, env_count;
    struct step steps[MAX_STEPS];
    size_t count;
    bool cancelled; /* a signal ended us */
};

/* plan.c */
bool read_plan(struct bytes from, struct bytes payload, struct plan *plan);

/* steps.c */
bool run_steps(struct plan *plan, const char *name);
size_t kept_bytes(const struct capture *capture, char *to);

#endif
