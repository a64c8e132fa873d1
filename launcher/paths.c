/* Finds the folder of the daemon's socket, by the rules of src/fairlead/paths.py; tests/launcher compares the two.
 * Fails where Python would need the password database: then the event is evaluated locally. */
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

/* Remove the last component, but not the root. */
static void remove_component(struct text *path, size_t root)
{
    while (path->size > root && path->at[path->size - 1] != '/')
        path->size--;
    if (path->size > root)
        path->size--;
    path->at[path->size] = 0;
}

static bool add_component(struct text *path, size_t root, const char *name, size_t size)
{
    if (size == 0 || (size == 1 && name[0] == '.'))
        return true;
    if (size == 2 && name[0] == '.' && name[1] == '.') {
        remove_component(path, root);
        return true;
    }
    return (path->size == root || add(path, "/")) && add_bytes(path, name, size);
}

static bool add_components(struct text *path, size_t root, const char *names)
{
    for (;;) {
        size_t size = 0;
        while (names[size] && names[size] != '/')
            size++;
        if (!add_component(path, root, names, size))
            return false;
        if (!names[size])
            return true;
        names += size + 1;
    }
}

/* Like os.path.abspath: purely textual, and two leading slashes are kept. */
static bool add_absolute(struct text *path, const char *name)
{
    char here[MAX_VALUE];
    if (name[0] == '/') {
        bool two = name[1] == '/' && name[2] != '/';
        return add(path, two ? "//" : "/") && add_components(path, path->size, name);
    }
    if (!getcwd(here, sizeof here) || here[0] != '/' || !add(path, "/"))
        return false;
    return add_components(path, 1, here) && add_components(path, 1, name);
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

/* Add the runtime folder to an empty text. */
bool runtime_folder(struct text *path)
{
    char memory[40];
    struct text standard = text_in(memory, sizeof memory);
    const char *own = getenv("FAIRLEAD_HOME"), *moved = getenv("XDG_RUNTIME_DIR");
    if (own && own[0])
        return add_absolute(path, own) && add(path, "/run");
    if (is_folder(moved))
        return add(path, moved) && add(path, "/fairlead");
    if (add(&standard, "/run/user/") && add_number(&standard, getuid(), 10, 1) && is_folder(standard.at))
        return add(path, standard.at) && add(path, "/fairlead");
    return add_state_folder(path) && add(path, "/run");
}
