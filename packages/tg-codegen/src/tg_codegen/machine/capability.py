"""Compute capabilities of NVIDIA GPUs, as ``sm_90`` or ``sm_90a``.

Source: *CUDA C++ Programming Guide*, "Compute Capabilities"; *PTX ISA*, "``.target``", for the letters.
"""

from __future__ import annotations

import re

CAPABILITIES = (
    50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 88, 89, 90, 100, 101, 103, 110, 120, 121,
)  # fmt: skip
_ARCHITECTURE, _FAMILY = 90, 100  # from which on there are the letters a and f


def capability(arch: str, least: int = 0) -> int:
    """The number of a compute capability.

    Args:
      arch: ``sm_`` and the number, and a letter where it has features of its own.
      least: the first that will do.

    Raises:
      ValueError: if there is no such compute capability.

    >>> capability("sm_90a")
    90
    """
    match = re.fullmatch(r"sm_([1-9]\d*)([af]?)", arch)
    number = int(match[1]) if match else 0
    letters_from = {"a": _ARCHITECTURE, "f": _FAMILY}.get(match[2] if match else "", 0)
    if number not in CAPABILITIES or number < max(least, letters_from):
        known = ", ".join(f"sm_{n}" for n in CAPABILITIES if n >= least)
        first = f" from sm_{least} on" if least else ""
        raise ValueError(f"{arch!r} is not an architecture{first}; there are {known}, with a from sm_90, f from sm_100")
    return number


def newest(number: int) -> str:
    """The newest known compute capability up to a device's: what is compiled for a device that is newer than this.

    >>> newest(90), newest(999)
    ('sm_90', 'sm_121')
    """
    return f"sm_{max((n for n in CAPABILITIES if n <= number), default=CAPABILITIES[0])}"
