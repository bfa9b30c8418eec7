"""Waiting for a device so that Ctrl-C works: by polling, never inside the driver."""

from __future__ import annotations

import time
from collections.abc import Callable

_SPIN_S = 50e-6
_MOST_PAUSE_S = 1e-3


def wait_until(ready: Callable[[], bool]) -> None:
    """Returns once ``ready`` says so.

    It is asked without a pause for the first 50 us, so that short work is not made longer, and then with pauses of a
    thirtieth of what was waited, at most 1 ms.

    Raises:
      KeyboardInterrupt: on Ctrl-C; the device goes on with what it has.

    Example:
      >>> answers = iter([False, False, True])
      >>> wait_until(lambda: next(answers))
    """
    if ready():
        return
    begin = time.perf_counter()
    while not ready():
        waited = time.perf_counter() - begin
        if waited > _SPIN_S:
            time.sleep(min(waited / 30, _MOST_PAUSE_S))
