"""Which policy files are trusted: by the session that began with them, or by a person."""
