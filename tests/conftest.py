"""What holds for all tests."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """Have signals do what they do. Who runs the tests beside other work (`nohup make test &`) has some ignored."""
    for number, usual in (
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGHUP, signal.SIG_DFL),
        (signal.SIGQUIT, signal.SIG_DFL),
    ):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, usual)
