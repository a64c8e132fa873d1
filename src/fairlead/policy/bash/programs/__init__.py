"""What known programs do to files: a table from the name of a program to the effects of a call."""
