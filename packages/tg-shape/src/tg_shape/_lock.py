"""The lock under which nodes, views and trackers are interned."""

from __future__ import annotations

import os
from threading import RLock

LOCK = RLock()

# Held over a fork, so that a child finds the tables whole and the lock free.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=LOCK.release)
