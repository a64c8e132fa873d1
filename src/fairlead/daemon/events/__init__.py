"""One hook event, from the bytes on the socket to the reply."""
