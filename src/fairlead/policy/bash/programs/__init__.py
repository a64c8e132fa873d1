"""What known programs do to the files and commands they are given."""
