"""A clock that is wrong for the processes of one home: a library that shifts what the system says."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

_SOURCE = """
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *at) {
    int result = syscall(SYS_clock_gettime, clock, at);
    if (result == 0 && clock == CLOCK_REALTIME) at->tv_sec += SHIFT;
    return result;
}

int gettimeofday(struct timeval *at, void *zone) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    at->tv_sec = exact.tv_sec;
    at->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *at) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (at) *at = exact.tv_sec;
    return exact.tv_sec;
}
"""


def wrong_clock(folder: Path, seconds: int) -> dict[str, str]:
    """Return the environment in which the clock is ahead by some seconds. Skips the test without a compiler."""
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler, which makes the clock wrong")
    source, library = folder / "clock.c", folder / "clock.so"
    source.write_text(_SOURCE)
    subprocess.run(["cc", "-shared", "-fPIC", f"-DSHIFT={seconds}", "-o", library, source], check=True)
    return {"LD_PRELOAD": str(library)}
