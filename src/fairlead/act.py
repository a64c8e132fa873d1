"""The entry point for launchers up to version 0.1.0: they carry out a plan by `from fairlead.act import main`."""

from fairlead.execute import main as main  # noqa: PLC0414 - exported for installed launchers
