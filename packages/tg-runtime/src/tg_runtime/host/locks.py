"""Locks that a forked child finds open: the thread that held one in the parent does not exist there."""

from __future__ import annotations

import os
import threading


def fork_safe_lock() -> threading.RLock:
    """A reentrant lock that is new in every forked child."""
    lock = threading.RLock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lock._at_fork_reinit)  # type: ignore[attr-defined]
    return lock
