/* Parses the head of the daemon's answer. Pure: bytes in, sizes out; fuzzed by tests/launcher/fuzz.c.
 * It is strict: an answer that it does not understand is ignored, and the event is evaluated locally.
 */
#include "hook.h"

#include <string.h>

static const char STATUS_START[] = "HTTP/1.1 ";

static const char WAITS_PATH[] = "/v1/waits/";

enum header { LENGTH = 1, EXIT = 2, STDOUT = 4, WAIT = 8, LOCATION = 16, STEPS = 32 };

static bool set_number(struct answer *answer, unsigned *seen, enum header which, const char *at, size_t size)
{
    uint64_t number;
    if (*seen & which || !read_number(at, size, which == EXIT ? 255 : MAX_BODY, &number))
        return false;
    *seen |= which;
    if (which == LENGTH)
        answer->body = (size_t)number;
    else if (which == EXIT)
        answer->exit_code = (unsigned)number;
    else if (which == STEPS)
        answer->steps_size = (size_t)number;
    else
        answer->stdout_size = (size_t)number;
    return true;
}

/* The two headers of a wait: its time and its token. */
static bool set_wait_time(struct answer *answer, unsigned *seen, const char *at, size_t size)
{
    uint64_t *number = &answer->wait.milliseconds;
    if (*seen & WAIT || !read_number(at, size, MAX_WAIT, number) || *number == 0)
        return false;
    *seen |= WAIT;
    return true;
}

static bool set_wait_token(struct answer *answer, unsigned *seen, const char *at, size_t size)
{
    size_t from = sizeof WAITS_PATH - 1;
    if (*seen & LOCATION || size < from || memcmp(at, WAITS_PATH, from) != 0 ||
        !is_name(at + from, size - from, "0123456789_-"))
        return false;
    *seen |= LOCATION;
    memcpy(answer->wait.token, at + from, size - from); /* the rest is zeros */
    return true;
}

static bool set_ack(struct answer *answer, const char *at, size_t size)
{
    if (answer->ack || size != 1 || *at != '1')
        return false;
    return answer->ack = true;
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
    if (equals_ignoring_case(at, name, "content-length"))
        return set_number(answer, seen, LENGTH, at + from, size - from);
    if (equals_ignoring_case(at, name, "fairlead-exit"))
        return set_number(answer, seen, EXIT, at + from, size - from);
    if (equals_ignoring_case(at, name, "fairlead-stdout"))
        return set_number(answer, seen, STDOUT, at + from, size - from);
    if (answer->status == 202 && equals_ignoring_case(at, name, "fairlead-steps"))
        return set_number(answer, seen, STEPS, at + from, size - from);
    if (answer->status == 303 && equals_ignoring_case(at, name, "fairlead-wait"))
        return set_wait_time(answer, seen, at + from, size - from);
    if (answer->status == 303 && equals_ignoring_case(at, name, "location"))
        return set_wait_token(answer, seen, at + from, size - from);
    if (answer->status != 303 && equals_ignoring_case(at, name, "fairlead-ack"))
        return set_ack(answer, at + from, size - from);
    return !equals_ignoring_case(at, name, "transfer-encoding");
}

static bool is_valid(const struct answer *answer, unsigned seen)
{
    if (answer->status == 202)
        return seen & LENGTH && answer->body > answer->steps_size;
    if (answer->status == 303)
        return seen & LENGTH && answer->body == 0 && seen & WAIT && seen & LOCATION;
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
