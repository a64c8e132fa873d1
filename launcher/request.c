/* Builds the head of the request, with the facts about the caller that the daemon cannot know otherwise. */
#include "hook.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Ours, the terminal's, and those of each client (`variables` in src/fairlead/clients): a further client adds its own. */
#define EVENT_VARIABLES 12
static const char *const PASSED_VARIABLES[] = {
    "FAIRLEAD_HOME",     "HOME",               "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME",
    "CLAUDE_CONFIG_DIR", "CLAUDE_PROJECT_DIR", "CLAUDE_ENV_FILE", "TMUX",            "TMUX_PANE",
    "FAIRLEAD_STAY",     "CLAUDE_CODE_ENTRYPOINT",
    /* A command also needs these: who asks, and how its output is formatted. */
    "CLAUDE_CODE_SESSION_ID", "CLAUDE_SESSION_ID", "COLUMNS", "NO_COLOR", "TERM", "LC_ALL", "LC_CTYPE", "LANG",
    "PYTHONIOENCODING", "PYTHONUTF8", "FAIRLEAD_NO_DAEMON", "_FAIRLEAD_COMPLETE",
};

static uint64_t client_pid(void)
{
    const char *named = getenv("CLAUDE_PID");
    uint64_t pid;
    if (named && read_number(named, strlen(named), INT32_MAX, &pid) && pid > 0)
        return pid;
    return (uint64_t)getppid();
}

/* Add field 22 of its stat: a pid is reused, but not with the same start time. */
static bool add_start(struct text *head, const char *before, uint64_t pid)
{
    char memory[1024];
    struct text path = text_in(memory, sizeof memory);
    add(&path, "/proc/");
    add_number(&path, pid, 10, 1);
    add(&path, "/stat");
    int fd = open(memory, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return true;
    ssize_t size = read(fd, memory, sizeof memory);
    close(fd);
    ssize_t at = size;
    while (at > 0 && memory[at - 1] != ')') /* the process name may contain spaces and brackets */
        at--;
    for (int field = 2; at > 0 && at < size && field < 22; at++)
        field += memory[at] == ' ';
    ssize_t end = at;
    while (end < size && memory[end] >= '0' && memory[end] <= '9')
        end++;
    if (at <= 0 || end == at || end >= size)
        return true;
    return add(head, before) && add_bytes(head, memory + at, (size_t)(end - at));
}

static bool add_variables(struct text *head, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *name = PASSED_VARIABLES[i], *value = getenv(name);
        if (!value)
            continue;
        if (strlen(value) > MAX_VALUE)
            return false;
        if (head->at[head->size - 1] != ' ')
            add(head, ";");
        if (!add(head, name) || !add(head, "=") || !add_encoded(head, value))
            return false;
    }
    return true;
}

bool add_caller(struct text *text)
{
    uint64_t pid = client_pid();
    return add(text, ",") && add_number(text, pid, 10, 1) && add_start(text, ",", pid);
}

/* Add the request line: for a command, for the answer to an event, or for one that we waited for. */
static void add_request_line(struct text *head, const struct call *call)
{
    if (call->wait.token[0] || call->command) {
        add(head, call->wait.token[0] ? "GET /v1/waits/" : "POST /v1/commands/");
        add(head, call->wait.token[0] ? call->wait.token : call->event);
        add(head, " HTTP/1.1");
        return;
    }
    add(head, call->wake ? "POST /v1/wakes/" : call->report.size ? "POST /v1/plans/" : "POST /v1/events/");
    add(head, call->event);
    add(head, "?client=");
    add(head, call->client);
    add(head, " HTTP/1.1\r\ncontent-type: application/json");
}

/* Headers that differ from call to call are last, so that the daemon can compare the others at once. */
bool request_head(struct text *head, const struct call *call)
{
    char here[MAX_VALUE];
    uint64_t pid = client_pid();
    if (!getcwd(here, sizeof here) || here[0] != '/')
        return false;
    add_request_line(head, call);
    add(head, "\r\nhost: fairlead\r\nconnection: close\r\nfairlead-acks: 2\r\nfairlead-steps: 1");
    add(head, "\r\nfairlead-version: " FAIRLEAD_VERSION "\r\nfairlead-pid: ");
    add_number(head, pid, 10, 1);
    add_start(head, "\r\nfairlead-start: ", pid);
    add(head, "\r\nfairlead-cwd: ");
    add_encoded(head, here);
    add(head, "\r\nfairlead-env: ");
    if (!add_variables(head, call->command ? sizeof PASSED_VARIABLES / sizeof *PASSED_VARIABLES : EVENT_VARIABLES))
        return false;
    if (call->command)
        add_command(head, call);
    add(head, "\r\nfairlead-id: ");
    add(head, call->id);
    if (!call->wait.token[0]) {
        add(head, "\r\ncontent-length: ");
        add_number(head, call->report.size ? call->report.size : call->payload.size, 10, 1);
    }
    return add(head, "\r\n\r\n");
}
