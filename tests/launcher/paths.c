/* Prints the runtime folder: for the current environment, or once for each argument as FAIRLEAD_HOME. */
#include "hook.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    char memory[MAX_PATH];
    for (int i = argc > 1; i < argc; i++) {
        struct text path = text_in(memory, sizeof memory);
        if (i)
            setenv("FAIRLEAD_HOME", argv[i], 1);
        puts(runtime_folder(&path) ? memory : "none");
    }
    return 0;
}
