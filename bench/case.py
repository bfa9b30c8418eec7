"""What a workload becomes in one library: something to call, and a result to compare."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Unsupported(Exception):
    """A library cannot express a workload; the message says what it lacks."""


@dataclass(frozen=True)
class Case:
    """A workload, ready to run in one library.

    Attributes:
      run: does the work once, waits until it is done and returns the library's own tensor.
      host: the values of what ``run`` returned, in the host's memory.
      mode: how the library executes it: ``eager``, ``jit``, ``compiled``.
      stateful: whether a run changes what the next one gives.
    """

    run: Callable[[], Any]
    host: Callable[[Any], Array]
    mode: str
    stateful: bool = False


def aligned(values: Array) -> Array:
    """A copy that begins at a cache line, so that no library suffers from where another's allocator put the data.

    >>> aligned(np.ones(3, np.float32)).ctypes.data % 64
    0
    """
    raw = np.empty(values.nbytes + 64, np.uint8)
    start = -raw.ctypes.data % 64
    out = raw[start : start + values.nbytes].view(values.dtype).reshape(values.shape)
    out[...] = values
    return out


def normal(*shape: int, seed: int = 0, scale: float = 1.0) -> Array:
    """Normally distributed float32, the same in every process."""
    drawn = np.random.default_rng((seed, *shape)).standard_normal(shape, np.float32)
    return aligned(drawn if scale == 1.0 else drawn * np.float32(scale))


def uniform(*shape: int, seed: int = 0) -> Array:
    """Uniform float32 in [0, 1), the same in every process."""
    return aligned(np.random.default_rng((seed, *shape)).random(shape, np.float32))
