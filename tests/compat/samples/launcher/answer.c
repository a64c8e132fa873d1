/* Reads the head of the daemon's answer. Pure: bytes in, sizes out; tests/launcher/fuzz.c throws mutations at it.
 * It is strict, since the cold road answers whatever this cannot.
 */
#include "hook.h"

#include <string.h>

static const char START[] = "HTTP/1.1 ";

static const char WAITS[] = "/v1/waits/";

enum header { LENGTH = 1, EXIT = 2, STDOUT = 4, WAIT = 8, PLACE = 16 };

static bool take(struct answer *answer, unsigned *seen, enum header which, const char *at, size_t size)
{
    uint64_t number;
    if (*seen & which || !read_number(at, size, which == EXIT ? 255 : MAX_BODY, &number))
        return false;
    *seen |= which;
    if (which == LENGTH)
        answer->body = (size_t)number;
    else if (which == EXIT)
        answer->exit_code = (unsigned)number;
    else
        answer->stdout_size = (size_t)number;
    return true;
}

/* The two that say for what to wait, and how long. */
static bool take_wait(struct answer *answer, unsigned *seen, const char *at, size_t size)
{
    uint64_t *number = &answer->wait.milliseconds;
    if (*seen & WAIT || !read_number(at, size, MAX_WAIT, number) || *number == 0)
        return false;
    *seen |= WAIT;
    return true;
}

static bool take_place(struct answer *answer, unsigned *seen, const char *at, size_t size)
{
    size_t from = sizeof WAITS - 1;
    if (*seen & PLACE || size < from || memcmp(at, WAITS, from) != 0 ||
        !is_name(at + from, size - from, "0123456789_-"))
        return false;
    *seen |= PLACE;
    memcpy(answer->wait.token, at + from, size - from); /* the rest of it is zeros */
    return true;
}

static bool take_ack(struct answer *answer, const char *at, size_t size)
{
    if (answer->ack || size != 1 || *at != '1')
        return false;
    return answer->ack = true;
}

/* One line without its end. A header that is none of ours may say what it likes, but must be one. */
static bool read_line(const char *at, size_t size, struct answer *answer, unsigned *seen)
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
    if (same_letters(at, name, "content-length"))
        return take(answer, seen, LENGTH, at + from, size - from);
    if (same_letters(at, name, "fairlead-exit"))
        return take(answer, seen, EXIT, at + from, size - from);
    if (same_letters(at, name, "fairlead-stdout"))
        return take(answer, seen, STDOUT, at + from, size - from);
    if (answer->status == 303 && same_letters(at, name, "fairlead-wait"))
        return take_wait(answer, seen, at + from, size - from);
    if (answer->status == 303 && same_letters(at, name, "location"))
        return take_place(answer, seen, at + from, size - from);
    if (answer->status != 303 && same_letters(at, name, "fairlead-ack"))
        return take_ack(answer, at + from, size - from);
    return !same_letters(at, name, "transfer-encoding");
}

static bool sound(const struct answer *answer, unsigned seen)
{
    if (answer->status == 202)
        return seen & LENGTH && answer->body > 0;
    if (answer->status == 303)
        return seen & LENGTH && answer->body == 0 && seen & WAIT && seen & PLACE;
    return seen == (LENGTH | EXIT | STDOUT) && answer->stdout_size <= answer->body;
}

/* The status line: only the three answers that we can act on are read any further. */
static bool read_status(const char *at, size_t size, struct answer *answer)
{
    uint64_t status;
    size_t from = sizeof START - 1;
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
    size_t known = size < sizeof START - 1 ? size : sizeof START - 1;
    unsigned seen = 0;
    if (memcmp(at, START, known) != 0)
        return GARBAGE;
    *answer = (struct answer){0};
    for (size_t from = 0, limit = size < MAX_HEAD ? size : MAX_HEAD;;) {
        size_t end = from + line_size(at + from, limit - from);
        if (limit - end < 2) /* the line's end is not here yet, or never comes */
            return limit == MAX_HEAD || (end < limit && at[end] != '\r') ? GARBAGE : PARTIAL;
        if (at[end] != '\r' || at[end + 1] != '\n')
            return GARBAGE;
        if (end == from) {
            answer->head = end + 2;
            return sound(answer, seen) ? WHOLE : GARBAGE;
        }
        bool good = from ? read_line(at + from, end - from, answer, &seen) : read_status(at, end, answer);
        if (!good)
            return GARBAGE;
        from = end + 2;
    }
}
