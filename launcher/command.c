/* fairlead COMMAND [options]: has the daemon run a command, and prints its output.
 * What the daemon declines, and everything without a daemon, is left to Python. This file knows no command. */
#include "hook.h"

#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static void end_interrupted(int number)
{
    (void)number;
    write_all(2, "fairlead: interrupted\n", 22);
    quit(130);
}

bool is_terminal(int fd, uint64_t *columns)
{
    struct winsize size = {0};
    bool is = ioctl(fd, TIOCGWINSZ, &size) == 0;
    *columns = size.ws_col;
    return is;
}

/* Add the facts about our process that a command may need, beside those that are sent with events. */
void add_command(struct text *head, const struct call *call)
{
    uint64_t columns[3];
    add(head, "\r\nfairlead-terminals: ");
    for (int fd = 0; fd < 3; fd++)
        add(head, is_terminal(fd, columns + fd) ? "1" : "0");
    add(head, ",");
    add_number(head, columns[1], 10, 1);
    add(head, call->stdin_complete ? "\r\nfairlead-stdin: 1\r\nfairlead-words: " : "\r\nfairlead-words: ");
    add_number(head, (uint64_t)call->arg_count, 10, 1);
}

/* Ask with each word and its NUL, followed by stdin if it was read. */
static bool ask(struct call *call, struct answer *answer, struct bytes *got)
{
    size_t size = call->payload.size;
    for (int i = 0; i < call->arg_count; i++)
        size += strlen(call->args[i]) + 1;
    char *at = map_memory(size + 1);
    int daemon = at ? connect_daemon() : -1;
    if (daemon < 0)
        return false;
    call->report = (struct bytes){at, size};
    for (int i = 0; i < call->arg_count; i++) {
        memcpy(at, call->args[i], strlen(call->args[i]) + 1);
        at += strlen(at) + 1;
    }
    if (call->payload.size)
        memcpy(at, call->payload.at, call->payload.size);
    return ask_daemon(daemon, call, answer, got);
}

_Noreturn void run_command(struct call *call, int argc, char **argv)
{
    struct answer answer = {0};
    struct bytes got;
    call->command = true;
    call->args = argv + 1;
    call->arg_count = argc - 1;
    call->event = call->arg_count && is_name(call->args[0], strlen(call->args[0]), "-") ? call->args[0] : "fairlead";
    if (argc > 1 && argv[1][0] >= 'A' && argv[1][0] <= 'Z') { /* an event that a person tries out: Python decides it */
        call->id[0] = 0;
        evaluate_locally(call);
    }
    handle_signal(SIGINT, end_interrupted);
    bool answered = ask(call, &answer, &got);
    if (answered && answer.status == 202 && read_payload(call)) /* it reads stdin */
        answered = ask(call, &answer, &got);
    if (answered && answer.status == 200)
        print_answer(call, &answer, got.at + answer.head);
    evaluate_locally(call);
}
