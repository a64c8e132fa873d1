"""Tools to test hooks: events from real payloads, assertions, and a recorder."""

from fairlead.testing._assertions import assert_allows, assert_blocks
from fairlead.testing._recorder import Recorder
from fairlead.testing._samples import make, make_payload, samples

__all__ = ["Recorder", "assert_allows", "assert_blocks", "make", "make_payload", "samples"]
