"""The entry point for plans of launchers up to version 0.1.0, which run `from fairlead.act import main`."""

from fairlead.execute import main as main  # noqa: PLC0414 - exported for installed launchers
