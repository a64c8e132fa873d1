"""Set-up for all tests."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """Restore the default handlers of signals. In the background (`nohup make test &`) a shell ignores some of them."""
    for number, handler in (
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGHUP, signal.SIG_DFL),
        (signal.SIGQUIT, signal.SIG_DFL),
    ):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, handler)
