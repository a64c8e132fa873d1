/* fairlead-hook <Event> [--client NAME] [--python PATH] [options of fairlead <Event>]
 *
 * What the client starts for each event. It asks the daemon; where there is none, or what it says is not understood,
 * Python decides in its place ("the cold road"), with the same words and the same stdin.
 */
#include "hook.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static bool is_name(const char *at, const char *also)
{
    size_t size = 0;
    for (; at[size]; size++) {
        char c = at[size];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (size == 64 || (!letter && !strchr(also, c)))
            return false;
    }
    return size > 0;
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

/* --python is for us, and the rest is for Python. */
static void sort_words(struct call *call, int argc, char **argv)
{
    call->words = argv;
    for (int i = 1, taken; i < argc; i += taken) {
        taken = option(argv + i, argc - i, "--python", &call->python);
        if (taken)
            continue;
        call->words[call->count++] = argv[i];
        taken = 1;
    }
}

static void read_words(struct call *call)
{
    call->client = "claude";
    call->event = call->count ? call->words[0] : "";
    call->plain = is_name(call->event, "");
    for (int i = 0; i < call->count; i++)
        call->gate = call->gate || is_gate(call->words[i]);
    for (int i = 1, taken; call->plain && i < call->count; i += taken) {
        taken = option(call->words + i, call->count - i, "--client", &call->client);
        call->plain = taken > 0 && is_name(call->client, "0123456789_-");
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
    if (error) {
        add(&line, "fairlead: cannot write the answer: ");
        add(&line, reason_of(error) ? reason_of(error) : "it is refused");
        complain(&line);
        leave(call->gate ? 2 : 1);
    }
    write_all(2, body + answer->stdout_size, answer->body - answer->stdout_size);
    leave((int)answer->exit_code);
}

int main(int argc, char **argv)
{
    struct call call = {0};
    struct answer answer = {0};
    struct bytes got;
    make_id(&call);
    sort_words(&call, argc, argv);
    read_words(&call);
    int daemon = call.plain ? dial() : -1; /* before stdin is read: if nobody is there, Python reads it as it is */
    if (daemon < 0)
        cold_road(&call);
    bool answered = !isatty(0) && read_payload(&call) && exchange(daemon, &call, &answer, &got);
    if (answered && answer.status == 200)
        print(&call, &answer, got.at + answer.head);
    close(daemon);
    if (answered)
        act(&call, (struct bytes){got.at + answer.head, answer.body});
    cold_road(&call);
}
