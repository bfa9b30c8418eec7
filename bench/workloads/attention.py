"""Attention, with many short and with few long sequences; of all positions, and of those before."""

from __future__ import annotations

from collections.abc import Sequence

from ..case import Array, normal
from ..workload import Goal, Registry


def register(registry: Registry) -> None:
    """Appends the workloads of this module."""
    for shape, quick in (((4, 8, 512, 64), True), ((1, 4, 4096, 64), False)):
        batch, heads, positions, width = shape

        def arrays(shape: tuple[int, ...] = shape) -> Sequence[Array]:
            return [normal(*shape, seed=seed) for seed in (1, 2, 3)]

        registry.kernel(
            f"attention {'x'.join(map(str, shape))}", "attention", arrays,
            lambda library, q, k, v: library.attention(q, k, v), "GFLOP/s",
            4.0 * batch * heads * positions**2 * width, goals=(Goal("rate", 300),), quick=quick,
        )  # fmt: skip
    for shape in ((1, 4, 4096, 64), (2, 9, 1021, 64)):
        batch, heads, positions, width = shape

        def some(shape: tuple[int, ...] = shape) -> Sequence[Array]:
            return [normal(*shape, seed=seed) for seed in (1, 2, 3)]

        registry.kernel(
            f"causal attention {'x'.join(map(str, shape))}", "attention", some,
            lambda library, q, k, v: library.attention(q, k, v, causal=True), "GFLOP/s",
            2.0 * batch * heads * positions * (positions + 1) * width,
        )  # fmt: skip
