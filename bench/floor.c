/* The floor of a round trip. `floor SOCKET` sends its stdin to a Unix socket and waits for an answer, as any hook does
 * that asks a daemon. `floor SOCKET serve` is the daemon, which decides nothing. */
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static char memory[65536];

static int serve(int line, struct sockaddr_un *at)
{
    if (bind(line, (struct sockaddr *)at, sizeof *at) || listen(line, 512))
        return 1;
    for (;;) {
        int caller = accept(line, NULL, NULL);
        if (caller < 0)
            return 1;
        if (read(caller, memory, sizeof memory) > 0 && write(caller, "ok\n", 3) < 0)
            return 1;
        close(caller);
    }
}

int main(int count, char **words)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    if (count < 2 || strlen(words[1]) >= sizeof at.sun_path)
        return 1;
    strcpy(at.sun_path, words[1]);
    int line = socket(AF_UNIX, SOCK_STREAM, 0);
    if (count > 2)
        return serve(line, &at);
    if (connect(line, (struct sockaddr *)&at, sizeof at))
        return 1;
    ssize_t size = read(0, memory, sizeof memory);
    return size < 0 || write(line, memory, (size_t)size) != size || read(line, memory, sizeof memory) < 1;
}
