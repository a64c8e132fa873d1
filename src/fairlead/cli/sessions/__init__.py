"""Commands about sessions: list and wait, act on one, answer its questions, look back."""
