"""Questions of sessions that are answered on another host."""
