"""What a shell command does, worked out from its syntax tree without running it."""
