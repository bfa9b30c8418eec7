"""Functions for the processes of ``test_processes.py``, where a spawned one finds them."""

from __future__ import annotations

import numpy as np

from tinytg import Tensor, TinyJit

SIDE = 200  # so that a product is worth more than one thread


def matrix(seed: int) -> np.ndarray:
    """Numbers that differ with the seed."""
    return np.random.default_rng(seed).random((SIDE, SIDE), np.float32)


def product(seed: int) -> float:
    """How far a product, computed by all threads, is from numpy's.

    numpy's own product does not survive a fork beside threads that use it; ``einsum`` calls no library for it.
    """
    a = matrix(seed)
    x = Tensor(a)
    return float(np.abs((x @ x).numpy() - np.einsum("ij,jk->ik", a, a)).max())


def trained(seed: int) -> list[float]:
    """What a recorded step makes of a tensor in ten calls."""
    w = Tensor(np.full((4,), float(seed), np.float32)).contiguous().realize()

    @TinyJit
    def step(x: Tensor) -> Tensor:
        w.assign(w + x)
        return w.sum().realize()

    one = Tensor([1.0] * 4).realize()
    for _ in range(10):
        step(one)
    found: list[float] = w.tolist()
    return found


def sample(index: int) -> np.ndarray:
    """What a data loader's worker makes."""
    return (Tensor(np.full((8,), index, np.float32)) * 2).numpy()


def total(t: Tensor) -> Tensor:
    """A tensor of a tensor, each of which goes between processes as its elements."""
    return t.sum()
