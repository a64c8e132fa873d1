"""Which file a path names, which pattern matches it, and what lies below a folder."""
