"""The command line. `commands` lists every command with the module that has it; modules are imported on demand."""
