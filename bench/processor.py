"""Which processor this is, for people."""

from __future__ import annotations

import platform
from pathlib import Path


def processor() -> str:
    """The processor's name, with its model where the name says little."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    found = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    family = f" (family {found['cpu family']}, model {found['model']})" if "cpu family" in found else ""
    return found.get("model name", platform.machine()) + family
