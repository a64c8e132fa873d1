/* Parses the head of the daemon's answer. Pure: bytes in, sizes out; fuzzed by tests/launcher/fuzz.c.
 * It is strict: an answer that it does not understand is ignored, and the event is evaluated locally. */
#include "hook.h"

#include <string.h>

static const char STATUS_START[] = "HTTP/1.1 ";
static const char WAITS_PATH[] = "/v1/waits/";

enum header { LENGTH = 1, EXIT = 2, STDOUT = 4 };

/* The headers that are numbers: the field of each, its largest value, and the status that has it (0: any). */
static const struct { const char *name; size_t field; uint64_t max; unsigned status; } NUMBERS[] = {
    {"content-length", offsetof(struct answer, body), MAX_BODY, 0},
    {"fairlead-exit", offsetof(struct answer, exit_code), 255, 0},
    {"fairlead-stdout", offsetof(struct answer, stdout_size), MAX_BODY, 0},
    {"fairlead-steps", offsetof(struct answer, steps_size), MAX_BODY, 202},
    {"fairlead-wait", offsetof(struct answer, wait.milliseconds), MAX_WAIT, 303},
};

/* Copy a name into zeros, once. */
static bool set_name(char *to, const char *at, size_t size, const char *others)
{
    if (to[0] || !is_name(at, size, others))
        return false;
    memcpy(to, at, size);
    return true;
}

/* Parse one header line without its end. Headers that are not ours may have any value, but must be valid. */
static bool read_header(const char *at, size_t size, struct answer *answer, unsigned *seen)
{
    size_t name = 0;
    while (name < size && at[name] > ' ' && at[name] < 127 && at[name] != ':')
        name++;
    if (name == 0 || name == size || at[name] != ':')
        return false;
    size_t from = name + 1;
    while (from < size && (at[from] == ' ' || at[from] == '\t'))
        from++;
    while (size > from && (at[size - 1] == ' ' || at[size - 1] == '\t'))
        size--;
    for (unsigned i = 0; i < sizeof NUMBERS / sizeof *NUMBERS; i++) {
        bool applies = !NUMBERS[i].status || NUMBERS[i].status == answer->status;
        if (!applies || !equals_ignoring_case(at, name, NUMBERS[i].name))
            continue;
        bool again = *seen >> i & 1;
        uint64_t *number = (uint64_t *)((char *)answer + NUMBERS[i].field);
        *seen |= 1U << i;
        return !again && read_number(at + from, size - from, NUMBERS[i].max, number);
    }
    if (answer->status == 303 && equals_ignoring_case(at, name, "location")) {
        size_t path = sizeof WAITS_PATH - 1;
        return size - from > path && memcmp(at + from, WAITS_PATH, path) == 0 &&
               set_name(answer->wait.token, at + from + path, size - from - path, "0123456789_-");
    }
    if (answer->status != 303 && equals_ignoring_case(at, name, "fairlead-ack"))
        return set_name(answer->ack, at + from, size - from, "0123456789_-.");
    return !equals_ignoring_case(at, name, "transfer-encoding");
}

static bool is_valid(const struct answer *answer, unsigned seen)
{
    if (answer->status == 202)
        return seen & LENGTH && answer->body > answer->steps_size;
    if (answer->status == 303)
        return seen & LENGTH && answer->body == 0 && answer->wait.milliseconds && answer->wait.token[0];
    return seen == (LENGTH | EXIT | STDOUT) && answer->stdout_size <= answer->body;
}

/* Parse the status line: only the three statuses that we can handle are accepted. */
static bool read_status(const char *at, size_t size, struct answer *answer)
{
    uint64_t status;
    size_t from = sizeof STATUS_START - 1;
    if (size < from + 3 || !read_number(at + from, 3, 999, &status) || (size > from + 3 && at[from + 3] != ' '))
        return false;
    answer->status = (unsigned)status;
    return status == 200 || status == 202 || status == 303;
}

static size_t line_size(const char *at, size_t size)
{
    size_t end = 0;
    while (end < size && at[end] != '\r' && at[end] != '\n' && at[end] != 0)
        end++;
    return end;
}

enum state read_head(const char *at, size_t size, struct answer *answer)
{
    size_t known = size < sizeof STATUS_START - 1 ? size : sizeof STATUS_START - 1;
    unsigned seen = 0;
    if (memcmp(at, STATUS_START, known) != 0)
        return GARBAGE;
    *answer = (struct answer){0};
    for (size_t from = 0, limit = size < MAX_HEAD ? size : MAX_HEAD;;) {
        size_t end = from + line_size(at + from, limit - from);
        if (limit - end < 2) /* the end of the line has not arrived yet, or never will */
            return limit == MAX_HEAD || (end < limit && at[end] != '\r') ? GARBAGE : PARTIAL;
        if (at[end] != '\r' || at[end + 1] != '\n')
            return GARBAGE;
        if (end == from) {
            answer->head = end + 2;
            return is_valid(answer, seen) ? WHOLE : GARBAGE;
        }
        bool valid = from ? read_header(at + from, end - from, answer, &seen) : read_status(at, end, answer);
        if (!valid)
            return GARBAGE;
        from = end + 2;
    }
}
