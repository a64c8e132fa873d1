/* Text in buffers of fixed size. */
#include "hook.h"

#include <string.h>

struct text text_in(char *at, size_t room)
{
    at[0] = 0;
    return (struct text){.at = at, .room = room};
}

bool add_bytes(struct text *text, const char *at, size_t size)
{
    if (text->full || size >= text->room - text->size) {
        text->full = true;
        return false;
    }
    if (size) /* nothing may be at NULL */
        memcpy(text->at + text->size, at, size);
    text->size += size;
    text->at[text->size] = 0;
    return true;
}

bool add(struct text *text, const char *string)
{
    return add_bytes(text, string, strlen(string));
}

/* Add a number with at least this many digits, padded with zeros. */
bool add_number(struct text *text, uint64_t number, unsigned base, unsigned digits)
{
    char reversed[20], forward[20];
    unsigned size = 0;
    do {
        reversed[size++] = "0123456789abcdef"[number % base];
        number /= base;
    } while (size < sizeof reversed && (number || size < digits));
    for (unsigned i = 0; i < size; i++)
        forward[i] = reversed[size - 1 - i];
    return add_bytes(text, forward, size);
}

/* Percent-encode: paths may contain any byte, and a header value may not. */
bool add_encoded(struct text *text, const char *at)
{
    for (const char *start = at;; at++) {
        if (*at > 0x20 && *at < 0x7f && !strchr("%;=", *at)) /* a char may be signed, or not */
            continue;
        if (!add_bytes(text, start, (size_t)(at - start)))
            return false;
        if (!*at)
            return true;
        const char *digits = "0123456789ABCDEF";
        const char code[] = {'%', digits[(unsigned char)*at >> 4], digits[*at & 15]};
        if (!add_bytes(text, code, sizeof code))
            return false;
        start = at + 1;
    }
}

/* Parse digits only: no sign, no space, no overflow. */
bool read_number(const char *at, size_t size, uint64_t max, uint64_t *number)
{
    uint64_t sum = 0;
    if (size == 0 || size > 19)
        return false;
    for (size_t i = 0; i < size; i++) {
        if (at[i] < '0' || at[i] > '9')
            return false;
        sum = sum * 10 + (uint64_t)(at[i] - '0');
    }
    *number = sum;
    return sum <= max;
}

/* Whether it is 1 to 64 ASCII letters or characters of `others`. */
bool is_name(const char *at, size_t size, const char *others)
{
    for (size_t i = 0; i < size; i++) {
        char c = at[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!letter && (!c || !strchr(others, c)))
            return false;
    }
    return size > 0 && size <= MAX_TOKEN;
}

/* Compare ASCII ignoring case, as for header names; `lower` is in lower case already. */
bool equals_ignoring_case(const char *at, size_t size, const char *lower)
{
    for (size_t i = 0; i < size; i++) {
        char c = at[i] >= 'A' && at[i] <= 'Z' ? (char)(at[i] + 32) : at[i];
        if (!lower[i] || c != lower[i])
            return false;
    }
    return !lower[size];
}
