/* fairlead-hook <Event> [--client NAME] [--python PATH] [options of fairlead <Event>]
 * fairlead-hook StatusLine [--then COMMAND] [--client NAME] [--python PATH]
 * fairlead-hook <Event> --wake [--client NAME] [--python PATH]
 * fairlead-hook --wait TOKEN MILLISECONDS <Event> [--id ID] [--client NAME] [--python PATH] [options of <Event>]
 *
 * The client starts this for each event. It asks the daemon; without one, or if its answer is not understood, Python
 * evaluates the event, with the same arguments and the same stdin.
 * A status line is not an event: it is reported to the daemon, and then COMMAND is run as the client would run it.
 * With --wake another hook reports the event; we wait in the background for a reason to start a turn.
 * With --wait the event was reported already, and we only wait for its answer. */
#include "hook.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char NAME_CHARACTERS[] = "0123456789_-"; /* besides letters */

static bool equals(const char *one, const char *other)
{
    return strncmp(one, other, strlen(other) + 1) == 0;
}

/* Whether an argument is a spelling that HookEvent.find accepts: PreToolUse, pre_tool_use, pre-tool-use. */
static bool names_gate(const char *word)
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
    return equals_ignoring_case(letters, size, "pretooluse");
}

/* Read the option `--name value` or `--name=value`; return its number of arguments, or 0 for another option. */
static int option(char **args, int left, const char *name, const char **value)
{
    size_t size = strlen(name);
    if (strncmp(args[0], name, size) != 0)
        return 0;
    if (args[0][size] == '=') {
        *value = args[0] + size + 1;
        return 1;
    }
    if (args[0][size] || left < 2)
        return 0;
    *value = args[1];
    return 2;
}

/* --python is for us, as are --then of a status line and --id of a wait; the rest is for Python. */
static void split_arguments(struct call *call, int argc, char **argv)
{
    const char *id = "";
    call->args = argv;
    for (int i = 1, taken; i < argc; i += taken) {
        bool is_wait = call->arg_count && equals(call->args[0], "--wait");
        taken = option(argv + i, argc - i, "--python", &call->python);
        if (!taken && call->status_line)
            taken = option(argv + i, argc - i, "--then", &call->status_command);
        if (!taken && is_wait)
            taken = option(argv + i, argc - i, "--id", &id);
        if (taken)
            continue;
        call->args[call->arg_count++] = argv[i];
        call->status_line = equals(call->args[0], "StatusLine");
        taken = 1;
    }
    if (strlen(id) < sizeof call->id && is_name(id, strlen(id), NAME_CHARACTERS))
        memcpy(call->id, id, strlen(id) + 1);
}

/* Read --wait TOKEN MILLISECONDS before the event. Invalid values are left for Python to refuse. */
static void read_wait_arguments(struct call *call)
{
    uint64_t *number = &call->wait.milliseconds;
    if (call->arg_count < 4 || !equals(call->args[0], "--wait"))
        return;
    const char *token = call->args[1], *time = call->args[2];
    if (!is_name(token, strlen(token), NAME_CHARACTERS))
        return;
    if (!read_number(time, strlen(time), MAX_WAIT, number) || *number == 0)
        return;
    memcpy(call->wait.token, token, strlen(token));
    call->args += 3;
    call->arg_count -= 3;
}

static void read_event_arguments(struct call *call)
{
    call->client = "claude";
    call->event = call->arg_count ? call->args[0] : "";
    call->for_daemon = is_name(call->event, strlen(call->event), "");
    for (int i = 0; i < call->arg_count; i++) {
        call->is_gate = call->is_gate || names_gate(call->args[i]);
        call->wake = call->wake || equals(call->args[i], "--wake");
    }
    for (int i = 1, taken; call->for_daemon && i < call->arg_count; i += taken) {
        taken = option(call->args + i, call->arg_count - i, "--client", &call->client);
        if (!taken && equals(call->args[i], "--wake"))
            taken = 1;
        if (!taken && call->wait.token[0]) /* the daemon has the event already; its options are for Python */
            taken = 1;
        call->for_daemon = taken > 0 && is_name(call->client, strlen(call->client), NAME_CHARACTERS);
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

/* Rename the file that says that this answer was not printed, or remove it: it survives the daemon. */
static void give_receipt(const char *name, bool printed)
{
    char before[MAX_PATH], after[MAX_PATH];
    struct text from = text_in(before, sizeof before), to = text_in(after, sizeof after);
    if (!runtime_folder(&from) || !add(&from, "/receipts/") || !add(&from, name))
        return;
    if (!add(&to, before) || !add(&to, ".printing"))
        return;
    if (printed)
        unlink(after);
    else
        rename(before, after);
}

/* An answer that cannot be printed must not count as consent. */
_Noreturn void print_answer(const struct call *call, const struct answer *answer, const char *body)
{
    char memory[120];
    struct text line = text_in(memory, sizeof memory);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    if (answer->ack[0])
        give_receipt(answer->ack, false);
    int error = write_all(1, body, answer->stdout_size);
    if (error && call->status_line)
        quit(0);
    if (error == EPIPE && call->command && !answer->ack[0]) /* as for every program whose reader has gone */
        quit(1);
    if (error) {
        add(&line, call->command && answer->ack[0] ? "fairlead: the mail cannot be printed, so it counts as not shown: "
                                                   : "fairlead: cannot write the answer: ");
        add(&line, error_text(error) ? error_text(error) : "unknown error");
        print_error_line(&line);
        quit(call->command ? 1 : 2);
    }
    error = write_all(2, body + answer->stdout_size, answer->body - answer->stdout_size);
    if (!error && answer->ack[0]) {
        give_receipt(answer->ack, true);
        write_all(call->daemon, "\n", 1);
    }
    quit((int)answer->exit_code);
}

/* Whether we are started as `fairlead`. */
static bool is_command(int argc, char **argv)
{
    const char *name = argc ? argv[0] : "";
    for (const char *at = name; *at; at++)
        name = *at == '/' ? at + 1 : name;
    return equals(name, "fairlead");
}

int main(int argc, char **argv)
{
    uint64_t columns;
    struct call call = {0};
    struct answer answer = {0};
    struct bytes got;
    make_id(&call);
    if (is_command(argc, argv))
        run_command(&call, argc, argv);
    split_arguments(&call, argc, argv);
    read_wait_arguments(&call);
    read_event_arguments(&call);
    int daemon = call.for_daemon ? connect_daemon() : -1; /* before stdin is read: without a daemon, Python reads it */
    bool can_ask = daemon >= 0 && (call.wait.token[0] || (!is_terminal(0, &columns) && read_payload(&call)));
    if (daemon >= 0 && !can_ask)
        close(daemon);
    bool answered = can_ask && ask_daemon(daemon, &call, &answer, &got);
    if (call.status_command)
        run_status_command(&call);
    if (answered && answer.status == 200)
        print_answer(&call, &answer, got.at + answer.head);
    if (answered) {
        struct bytes body = {got.at + answer.head, answer.body}, plan = body;
        call.has_check = answer.exit_code == 2;
        if (answer.steps_size)
            carry_out(&call, &answer, body);
        plan.at += answer.steps_size;
        plan.size -= answer.steps_size;
        run_plan(&call, plan, answer.ack);
    }
    if (waits_for_person(&call)) /* the event was decided before: there is nothing to print */
        quit(0);
    evaluate_locally(&call);
}
