"""The entry point that launchers up to version 0.1.0 start for a plan: `from fairlead.act import main`."""

from fairlead.execute import main as main  # noqa: PLC0414 - exported for installed launchers
