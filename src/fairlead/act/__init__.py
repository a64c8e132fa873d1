"""Runs a plan in the caller's process: its commands get the caller's environment and limits, and end with it."""

from fairlead.act._results import Outcome, StepResult
from fairlead.act._run import run

__all__ = ["Outcome", "StepResult", "run"]
