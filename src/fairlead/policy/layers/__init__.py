"""How the rules of several policy files are combined: by the files of a call, by trust, by their order."""
