/* fairlead-hook <Event> [--client NAME] [--python PATH] [options of fairlead <Event>]
 * fairlead-hook StatusLine [--then COMMAND] [--client NAME] [--python PATH]
 * fairlead-hook Stop --wake [--client NAME] [--python PATH]
 * fairlead-hook --wait TOKEN MILLISECONDS <Event> [--id ID] [--client NAME] [--python PATH] [options of <Event>]
 *
 * What the client starts for each event. It asks the daemon; where there is none, or what it says is not understood,
 * Python decides in its place ("the cold road"), with the same words and the same stdin.
 *
 * A status line is no event: it is told to the daemon, and then COMMAND is run as if we were not there.
 * With --wake the end of a turn is told already; we wait for what is worth to begin another.
 * With --wait the event is told already, and we only wait for the answer that was promised.
 */
#include "hook.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char NAME[] = "0123456789_-"; /* and letters */

static bool is(const char *word, const char *other)
{
    return strncmp(word, other, strlen(other) + 1) == 0;
}

/* As HookEvent.find reads it: PreToolUse, pre_tool_use, pre-tool-use. */
static bool is_gate(const char *word)
{
    char letters[16];
    size_t size = 0;
    for (; *word; word++) {
        if (*word == '_' || *word == '-')
            continue;
        if (size == sizeof letters)
            return false;
        letters[size++] = *word;
    }
    return same_letters(letters, size, "pretooluse");
}

/* The value of an option, as `--name value` or `--name=value`; how many words it takes, or 0 if it is not this one. */
static int option(char **words, int left, const char *name, const char **value)
{
    size_t size = strlen(name);
    if (strncmp(words[0], name, size) != 0)
        return 0;
    if (words[0][size] == '=') {
        *value = words[0] + size + 1;
        return 1;
    }
    if (words[0][size] || left < 2)
        return 0;
    *value = words[1];
    return 2;
}

/* --python is for us, and so are --then of a status line and --id of a wait; the rest is for Python. */
static void sort_words(struct call *call, int argc, char **argv)
{
    const char *id = "";
    call->words = argv;
    for (int i = 1, taken; i < argc; i += taken) {
        bool waits = call->count && is(call->words[0], "--wait");
        taken = option(argv + i, argc - i, "--python", &call->python);
        if (!taken && call->status_line)
            taken = option(argv + i, argc - i, "--then", &call->then);
        if (!taken && waits)
            taken = option(argv + i, argc - i, "--id", &id);
        if (taken)
            continue;
        call->words[call->count++] = argv[i];
        call->status_line = is(call->words[0], "StatusLine");
        taken = 1;
    }
    if (strlen(id) < sizeof call->id && is_name(id, strlen(id), NAME))
        memcpy(call->id, id, strlen(id) + 1);
}

/* What to wait for stands before the event. What makes no sense there is left for Python to refuse. */
static void read_wait(struct call *call)
{
    uint64_t *number = &call->wait.milliseconds;
    if (call->count < 4 || !is(call->words[0], "--wait"))
        return;
    const char *token = call->words[1], *time = call->words[2];
    if (!is_name(token, strlen(token), NAME) || !read_number(time, strlen(time), MAX_WAIT, number) || *number == 0)
        return;
    memcpy(call->wait.token, token, strlen(token));
    call->words += 3;
    call->count -= 3;
}

static void read_words(struct call *call)
{
    call->client = "claude";
    call->event = call->count ? call->words[0] : "";
    call->plain = is_name(call->event, strlen(call->event), "");
    for (int i = 0; i < call->count; i++) {
        call->gate = call->gate || is_gate(call->words[i]);
        call->wake = call->wake || is(call->words[i], "--wake");
    }
    for (int i = 1, taken; call->plain && i < call->count; i += taken) {
        taken = option(call->words + i, call->count - i, "--client", &call->client);
        if (!taken && is(call->words[i], "--wake"))
            taken = 1;
        if (!taken && call->wait.token[0]) /* the daemon knows the event already; its options are for Python */
            taken = 1;
        call->plain = taken > 0 && is_name(call->client, strlen(call->client), NAME);
    }
}

static void make_id(struct call *call)
{
    struct timespec time;
    struct text id = text_in(call->id, sizeof call->id);
    clock_gettime(CLOCK_REALTIME, &time);
    add_number(&id, (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec, 16, 16);
    add(&id, "-");
    add_number(&id, (uint64_t)getpid(), 16, 1);
}

/* An answer that cannot be printed must not read as consent. */
static _Noreturn void print(const struct call *call, const struct answer *answer, const char *body)
{
    char memory[80];
    struct text line = text_in(memory, sizeof memory);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    int error = write_all(1, body, answer->stdout_size);
    if (error && call->status_line)
        leave(0);
    if (error) {
        add(&line, "fairlead: cannot write the answer: ");
        add(&line, reason_of(error) ? reason_of(error) : "it is refused");
        complain(&line);
        leave(call->gate ? 2 : 1);
    }
    error = write_all(2, body + answer->stdout_size, answer->body - answer->stdout_size);
    if (!error && answer->ack)
        write_all(call->daemon, "\n", 1);
    leave((int)answer->exit_code);
}

int main(int argc, char **argv)
{
    struct call call = {0};
    struct answer answer = {0};
    struct bytes got;
    make_id(&call);
    sort_words(&call, argc, argv);
    read_wait(&call);
    read_words(&call);
    int daemon = call.plain ? dial() : -1; /* before stdin is read: if nobody is there, others read it as it is */
    bool asks = daemon >= 0 && (call.wait.token[0] || (!isatty(0) && read_payload(&call)));
    if (daemon >= 0 && !asks)
        close(daemon);
    bool answered = asks && ask(daemon, &call, &answer, &got);
    if (call.then)
        go_on(&call);
    if (answered && answer.status == 200)
        print(&call, &answer, got.at + answer.head);
    if (answered)
        act(&call, (struct bytes){got.at + answer.head, answer.body}, answer.ack);
    cold_road(&call);
}
