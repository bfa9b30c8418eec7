"""Convolutions of the sizes that residual networks are made of, and transposed ones, as in decoders."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

from ..case import Array, normal
from ..libraries import Library
from ..workload import Goal, Registry

TRANSPOSED: tuple[tuple[str, tuple[int, ...], tuple[int, ...], int, int, int, int], ...] = (
    # name, input, weight, stride, padding, what is added at the end, groups
    ("4x4 stride 2", (4, 64, 32, 32), (64, 32, 4, 4), 2, 1, 0, 1),
    ("3x3 stride 2", (4, 64, 31, 29), (64, 32, 3, 3), 2, 1, 1, 1),
    ("2x2 stride 2", (4, 64, 32, 32), (64, 32, 2, 2), 2, 0, 0, 1),
    ("4 stride 2", (4, 64, 512), (64, 32, 4), 2, 1, 0, 1),
    ("4x4 stride 2, 4 groups", (4, 64, 33, 33), (64, 8, 4, 4), 2, 1, 0, 4),
)


def odd_one(seed: int) -> tuple[str, tuple[int, ...], tuple[int, ...], int, int, int, int]:
    """A transposed convolution of sizes that nobody chose.

    >>> odd_one(0)[1:]
    ((3, 17, 47, 45), (17, 31, 5, 5), 3, 2, 1, 1)
    """
    rng = random.Random(seed)
    stride = rng.choice((2, 3))
    kernel, (inputs, outputs, high, wide) = rng.choice((3, 5)), (rng.randrange(15, 64, 2) for _ in range(4))
    shape = (3, inputs, high, wide)
    return "of the month", shape, (inputs, outputs, kernel, kernel), stride, kernel // 2, stride - 2, 1


def drawn(*shapes: tuple[int, ...]) -> list[Array]:
    """Arrays of some shapes."""
    return [normal(*shape, seed=seed) for seed, shape in enumerate(shapes)]


def transposed(
    stride: int, padding: int, extra: int, groups: int, weight_first: bool = False
) -> Callable[..., Any]:  # fmt: skip
    """A transposed convolution of an image and a weight, or the other way about."""

    def fn(library: Library, a: Any, b: Any) -> Any:
        x, weight = (b, a) if weight_first else (a, b)
        return library.conv_transpose(x, weight, stride, padding, extra, groups)

    return fn


def register_transposed(registry: Registry) -> None:
    """Appends transposed convolutions and their two gradients."""
    for name, x, weight, stride, padding, extra, groups in (
        *TRANSPOSED, odd_one(int(time.strftime("%Y%m", time.gmtime()))),
    ):  # fmt: skip
        spatial = [(i - 1) * stride + k - 2 * padding + extra for i, k in zip(x[2:], weight[2:], strict=True)]
        what = f"conv_transpose {name}"
        options = (stride, padding, extra, groups)
        registry.kernel(
            what, "convolutions", partial(drawn, x, weight), transposed(*options), "GFLOP/s",
            2.0 * prod(x) * prod(weight[1:]), limit="", tolerance=1e-3, reference=("torch", "jax"),
        )  # fmt: skip
        shape = (x[0], groups * weight[1], *spatial)
        registry.gradient(
            f"gradient of {what}", "convolutions", partial(drawn, x, weight), transposed(*options), shape,
            tolerance=1e-3,
        )  # fmt: skip
        registry.gradient(
            f"gradient of the weight of {what}", "convolutions", partial(drawn, weight, x),
            transposed(*options, weight_first=True), shape, tolerance=1e-3,
        )  # fmt: skip


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
    register_transposed(registry)
