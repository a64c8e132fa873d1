/* Fuzzes the parser with mutated answers, under sanitizers. The same seed gives the same mutations.
 *
 *   fuzz COUNT SEED     mutate; exit with 1 at the first answer that breaks an invariant
 *   fuzz                repeatedly read "SIZE\n" and SIZE bytes, and print the parser's result
 */
#include "hook.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const SEEDS[] = {
    "HTTP/1.1 200 OK\r\nfairlead-exit: 0\r\nfairlead-stdout: 3\r\ncontent-length: 5\r\n\r\nabcde",
    "HTTP/1.1 202 Accepted\r\ndate: x\r\ncontent-length: 2\r\n\r\n{}",
    "HTTP/1.1 202 Accepted\r\nfairlead-steps: 1\r\ncontent-length: 3\r\n\r\ns{}",
    "HTTP/1.1 200\r\nContent-Length:0\r\nFAIRLEAD-EXIT:255\r\nfairlead-stdout:\t0 \r\n\r\n",
    "HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n",
    "HTTP/1.1 303 See Other\r\nlocation: /v1/waits/aZ_-9\r\nfairlead-wait: 30000\r\ncontent-length: 0\r\n\r\n",
    "HTTP/1.1 303\r\nFairlead-Wait:86400000\r\ncontent-length:0\r\nLOCATION:\t/v1/waits/"
    "0123456789012345678901234567890123456789012345678901234567890123 \r\n\r\n",
    "HTTP/1.1 200 OK\r\nfairlead-exit: 2\r\nfairlead-stdout: 83886080\r\ncontent-length: 83886080\r\n\r\nabcde",
};
static const char *const PIECES[] = {
    "\r\n", "\r", "\n", ":", " ", "\r\n\r\n", "0", "255", "256", "18446744073709551616", "-1", "content-length: 1\r\n",
    "fairlead-exit: 1\r\n", "fairlead-stdout: 1\r\n", "transfer-encoding: chunked\r\n", "HTTP/1.1 ", "200", "\xff",
    "fairlead-steps: 1\r\n", "303", "location: /v1/waits/x\r\n", "fairlead-wait: 1\r\n", "/v1/waits/", "/", "86400001",
};

static uint64_t state;

static size_t random_below(size_t limit)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (size_t)(state % limit);
}

static size_t replace(char *at, size_t size, size_t room, size_t from, size_t removed, const char *with, size_t added)
{
    if (from + removed > size || size - removed + added > room)
        return size;
    memmove(at + from + added, at + from + removed, size - from - removed);
    memcpy(at + from, with, added);
    return size - removed + added;
}

static size_t mutate(char *at, size_t size, size_t room)
{
    size_t from = random_below(size + 1);
    const char *piece = PIECES[random_below(sizeof PIECES / sizeof *PIECES)];
    char byte = (char)random_below(256), filler[256];
    memset(filler, 'x', sizeof filler);
    switch (random_below(6)) {
    case 0: return replace(at, size, room, from, 1, &byte, 1);
    case 1: return replace(at, size, room, from, random_below(8), "", 0);
    case 2: return replace(at, size, room, from, 0, piece, strlen(piece));
    case 3: return replace(at, size, room, from, random_below(8), piece, strlen(piece));
    case 4: return random_below(4) ? size : from;
    default: return random_below(50) ? size : replace(at, size, room, from, 0, filler, sizeof filler);
    }
}

/* Parse a copy of exactly its size, so that reading one byte too many is detected. */
static enum state parse(const char *at, size_t size, struct answer *answer)
{
    char *copy = malloc(size ? size : 1);
    memcpy(copy, at, size);
    enum state found = read_head(copy, size, answer);
    free(copy);
    return found;
}

static bool is_consistent(const struct answer *answer)
{
    const struct wait *wait = &answer->wait;
    size_t size = strnlen(wait->token, sizeof wait->token);
    if (answer->status == 303)
        return answer->body == 0 && wait->milliseconds > 0 && wait->milliseconds <= MAX_WAIT && size <= MAX_TOKEN &&
               is_name(wait->token, size, "0123456789_-");
    if (size > 0 || wait->milliseconds > 0)
        return false;
    return answer->status == 202 ? answer->body > answer->steps_size : answer->status == 200 && answer->stdout_size <= answer->body;
}

static bool is_within_limits(const char *at, size_t size, const struct answer *answer)
{
    return answer->head <= size && answer->head >= 4 && memcmp(at + answer->head - 4, "\r\n\r\n", 4) == 0 &&
           answer->body <= MAX_BODY && answer->stdout_size <= MAX_BODY && answer->exit_code <= 255 &&
           is_consistent(answer);
}

/* The result for a prefix must agree with the result for the whole: bytes arrive in pieces. */
static bool prefix_agrees(const char *at, size_t size)
{
    struct answer part, whole;
    enum state late = parse(at, size, &whole);
    size_t cut = random_below(size + 1);
    enum state early = parse(at, cut, &part);
    if (late == WHOLE && !is_within_limits(at, size, &whole))
        return false;
    if (early == PARTIAL)
        return true;
    return early == late && (early == GARBAGE || memcmp(&part, &whole, sizeof part) == 0);
}

static int fuzz(long count)
{
    static char at[40000];
    size_t seen[3] = {0};
    for (long i = 0; i < count; i++) {
        const char *seed = SEEDS[random_below(sizeof SEEDS / sizeof *SEEDS)];
        size_t size = strlen(seed);
        memcpy(at, seed, size);
        for (size_t times = 1 + random_below(random_below(100) ? 6 : 300); times; times--)
            size = mutate(at, size, sizeof at);
        struct answer answer;
        seen[parse(at, size, &answer)]++;
        if (!prefix_agrees(at, size)) {
            fwrite(at, 1, size, stdout);
            return 1;
        }
    }
    printf("%zu %zu %zu\n", seen[PARTIAL], seen[WHOLE], seen[GARBAGE]);
    return 0;
}

static int print_results(void)
{
    static char at[40000];
    size_t size;
    while (scanf("%zu", &size) == 1 && getchar() == '\n' && size <= sizeof at && fread(at, 1, size, stdin) == size) {
        struct answer answer = {0};
        if (parse(at, size, &answer) == WHOLE)
            printf("%u %u %zu %zu %zu %u %s\n", answer.status, (unsigned)answer.exit_code, (size_t)answer.stdout_size,
                   (size_t)answer.body, (size_t)answer.head, (unsigned)answer.wait.milliseconds, answer.wait.token);
        else
            puts("none");
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return print_results();
    state = strtoull(argv[2], NULL, 10) * 2654435761u + 88172645463325252u;
    return fuzz(atol(argv[1]));
}
