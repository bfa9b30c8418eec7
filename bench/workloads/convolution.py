"""Convolutions of the sizes that residual networks are made of."""

from __future__ import annotations

from typing import Any

from ..case import normal
from ..libraries import Library
from ..workload import Goal, Registry


def register(registry: Registry) -> None:
    """Appends the workloads of this module."""

    def conv3(library: Library, x: Any, w: Any) -> Any:
        return library.conv2d(x, w, padding=1)

    def conv7(library: Library, x: Any, w: Any) -> Any:
        return library.conv2d(x, w, stride=2, padding=3)

    registry.kernel(
        "conv 3x3, 8x64x56x56 -> 64", "convolutions",
        lambda: [normal(8, 64, 56, 56, seed=1), normal(64, 64, 3, 3, seed=2)], conv3, "GFLOP/s",
        2.0 * 8 * 64 * 64 * 9 * 56 * 56, goals=(Goal("share", 0.8),), quick=True,
    )  # fmt: skip
    registry.kernel(
        "conv 7x7 stride 2, 8x3x224x224 -> 64", "convolutions",
        lambda: [normal(8, 3, 224, 224, seed=1), normal(64, 3, 7, 7, seed=2)], conv7, "GFLOP/s",
        2.0 * 8 * 64 * 3 * 49 * 112 * 112, goals=(Goal("rate", 300),),
    )  # fmt: skip
