"""Lines of the corpus that the guards do not get right, each with the reason. Tests hold these lists to be exact."""

from __future__ import annotations

WAYS: dict[str, str] = {
    "git clone -q . /tmp/c && cat /tmp/c/config/credentials.json": "a clone is everyday, and its copy is another file",
    "git worktree add -q /tmp/w v1 && cat /tmp/w/certs/server.pem": (
        "the worktree has the policy of its repository from the next call on, but does not exist yet in this one"
    ),
}
"""Ways around that pass."""

EVERYDAY: dict[str, str] = {
    "source <(kubectl completion bash)": "runs the output of a program",
    "git bisect start && git bisect bad && git bisect good v2": "which commits git checks out is not known",
    'psql "$DATABASE_URL" -f migrations/0001_init.sql': "a program outside the tables, given a protected name",
}
"""Everyday calls that a person is asked about."""
