"""Programs that read, search, write, pack and send files."""
