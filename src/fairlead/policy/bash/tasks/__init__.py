"""Task files: which commands `make`, `npm run`, `just` and `task` run for a name."""
