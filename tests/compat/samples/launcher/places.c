/* Where the daemon's socket is, by the rules of src/fairlead/places.py; tests/launcher holds the two together.
 * Where Python would need the password database, there is no answer: the cold road finds it.
 */
#include "hook.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_folder(const char *path)
{
    struct stat found;
    return path && path[0] == '/' && stat(path, &found) == 0 && S_ISDIR(found.st_mode);
}

/* Take the last step off again; there is none above the root. */
static void step_back(struct text *path, size_t root)
{
    while (path->size > root && path->at[path->size - 1] != '/')
        path->size--;
    if (path->size > root)
        path->size--;
    path->at[path->size] = 0;
}

static bool add_step(struct text *path, size_t root, const char *step, size_t size)
{
    if (size == 0 || (size == 1 && step[0] == '.'))
        return true;
    if (size == 2 && step[0] == '.' && step[1] == '.') {
        step_back(path, root);
        return true;
    }
    return (path->size == root || add(path, "/")) && add_bytes(path, step, size);
}

static bool add_steps(struct text *path, size_t root, const char *steps)
{
    for (;;) {
        size_t size = 0;
        while (steps[size] && steps[size] != '/')
            size++;
        if (!add_step(path, root, steps, size))
            return false;
        if (!steps[size])
            return true;
        steps += size + 1;
    }
}

/* As os.path.abspath: by the words alone, and two slashes at the start are not one. */
static bool add_absolute(struct text *path, const char *name)
{
    char here[MAX_VALUE];
    if (name[0] == '/') {
        bool two = name[1] == '/' && name[2] != '/';
        return add(path, two ? "//" : "/") && add_steps(path, path->size, name);
    }
    if (!getcwd(here, sizeof here) || here[0] != '/' || !add(path, "/"))
        return false;
    return add_steps(path, 1, here) && add_steps(path, 1, name);
}

static bool add_home(struct text *path)
{
    const char *home = getenv("HOME");
    if (!home)
        return false;
    size_t size = strlen(home);
    while (size && home[size - 1] == '/')
        size--;
    return add_bytes(path, home, size);
}

static bool add_state_folder(struct text *path)
{
#ifdef __APPLE__
    return add_home(path) && add(path, "/Library/Application Support/fairlead");
#else
    const char *moved = getenv("XDG_STATE_HOME");
    bool based = moved && moved[0] == '/' ? add(path, moved) : add_home(path) && add(path, "/.local/state");
    return based && add(path, "/fairlead");
#endif
}

/* Add the folder to an empty text. */
bool runtime_folder(struct text *path)
{
    char memory[40];
    struct text usual = text_in(memory, sizeof memory);
    const char *own = getenv("FAIRLEAD_HOME"), *moved = getenv("XDG_RUNTIME_DIR");
    if (own && own[0])
        return add_absolute(path, own) && add(path, "/run");
    if (is_folder(moved))
        return add(path, moved) && add(path, "/fairlead");
    if (add(&usual, "/run/user/") && add_number(&usual, getuid(), 10, 1) && is_folder(usual.at))
        return add(path, usual.at) && add(path, "/fairlead");
    return add_state_folder(path) && add(path, "/run");
}
