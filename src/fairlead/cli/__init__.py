"""The command line. `commands` lists each command and its module, which is imported when the command is used."""
