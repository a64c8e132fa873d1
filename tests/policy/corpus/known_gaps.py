"""Lines of the corpus that the guards do not get right, each with the reason. Tests hold these lists to be exact."""

from __future__ import annotations

WAYS: dict[str, str] = {
    "cp scripts/wipe.sh ~/.bashrc; bash -i < /dev/null": "the files that a shell reads when it starts are not known",
    "echo 'rm @ROOT@/.env' > ~/.profile; bash -l -c :": "likewise",
}
"""Ways around that pass."""

EVERYDAY: dict[str, str] = {}
"""Everyday calls that a person is asked about."""
