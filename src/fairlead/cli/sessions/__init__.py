"""Commands about sessions: list them, wait for one, act on one, answer its questions, show their history."""
