"""What a waiting packet compares: ``WAIT_REG_MEM_FUNCTION`` of PM4, and ``func`` of SDMA's POLL_REGMEM."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

COMPARISONS: Final[dict[int, Callable[[int, int], bool]]] = {
    0: lambda value, reference: True, 1: lambda value, reference: value < reference,
    2: lambda value, reference: value <= reference, 3: lambda value, reference: value == reference,
    4: lambda value, reference: value != reference, 5: lambda value, reference: value >= reference,
    6: lambda value, reference: value > reference,
}  # fmt: skip
"""By function; what is compared is the word under the mask, then the reference."""
