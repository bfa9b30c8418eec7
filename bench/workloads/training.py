"""Steps of training, forward, backward and Adam: a multilayer perceptron, convnets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..case import Array, Case, normal
from ..libraries import Library
from ..workload import Goal, Registry, Workload

Params = dict[str, Any]
LEARNING_RATE = 1e-3


def dense(inputs: int, outputs: int, seed: int) -> dict[str, Array]:
    """Weights of a fully connected layer, named after ``seed``."""
    scale = (2 / inputs) ** 0.5
    return {f"w{seed}": normal(outputs, inputs, seed=seed, scale=scale), f"b{seed}": normal(outputs, seed=seed) * 0}


def conv(channels: int, outputs: int, kernel: int, seed: int) -> dict[str, Array]:
    """Weights of a convolution, named after ``seed``."""
    scale = (2 / (channels * kernel * kernel)) ** 0.5
    weight = normal(outputs, channels, kernel, kernel, seed=seed, scale=scale)
    return {f"w{seed}": weight, f"b{seed}": normal(outputs, seed=seed) * 0}


def norm(channels: int, seed: int) -> dict[str, Array]:
    """Weights of a normalisation, named after ``seed``."""
    return {f"g{seed}": np.ones(channels, np.float32), f"s{seed}": np.zeros(channels, np.float32)}


def labels(count: int) -> Array:
    """Classes 0 to 9."""
    return np.random.default_rng(count).integers(0, 10, count).astype(np.int32)


def perceptron(library: Library, p: Params, x: Any, y: Any) -> Any:
    """784-512-512-10."""
    x = library.relu(library.linear(x, p["w1"], p["b1"]))
    x = library.relu(library.linear(x, p["w2"], p["b2"]))
    return library.cross_entropy(library.linear(x, p["w3"], p["b3"]), y)


def convnet(library: Library, p: Params, x: Any, y: Any) -> Any:
    """Four convolutions, two batch normalisations and pools, on 28x28."""
    for first in (1, 3):
        for i in (first, first + 1):
            x = library.relu(library.conv2d(x, p[f"w{i}"], p[f"b{i}"]))
        x = library.max_pool(library.batch_norm(x, p[f"g{i}"], p[f"s{i}"]), 2, 2)
    x = library.reshape(x, x.shape[0], 576)
    return library.cross_entropy(library.linear(x, p["w5"], p["b5"]), y)


def digits(library: Library, p: Params, x: Any, y: Any) -> Any:
    """Two convolutions on 8x8, for the digits of scikit-learn."""
    x = library.relu(library.conv2d(x, p["w1"], p["b1"], padding=1))
    x = library.max_pool(library.relu(library.conv2d(x, p["w2"], p["b2"], padding=1)), 2, 2)
    x = library.reshape(x, x.shape[0], 512)
    return library.cross_entropy(library.linear(x, p["w3"], p["b3"]), y)


def trained(
    loss: Callable[[Library, Params, Any, Any], Any], params: Callable[[], dict[str, Array]], shape: tuple[int, ...]
) -> Callable[[Library], Case]:
    """What builds the training of a model on one batch of ``shape``."""
    return lambda library: library.training(
        loss, params(), normal(*shape, seed=99), labels(shape[0]), LEARNING_RATE
    )


def register(registry: Registry) -> None:
    """Appends the workloads of this module."""
    torch_first = ("torch", "jax", "tinygrad")
    registry.add(
        Workload(
            "MLP train step, batch 128", "training",
            trained(perceptron, lambda: dense(784, 512, 1) | dense(512, 512, 2) | dense(512, 10, 3), (128, 784)), "ms",
            goals=(Goal("seconds", 2e-3),), tolerance=2e-3, reference=torch_first, quick=True,
        )  # fmt: skip
    )

    def convnet_params() -> dict[str, Array]:
        convs = conv(1, 32, 5, 1) | conv(32, 32, 5, 2) | conv(32, 64, 3, 3) | conv(64, 64, 3, 4)
        return convs | norm(32, 2) | norm(64, 4) | dense(576, 10, 5)

    registry.add(
        Workload(
            "CNN train step, batch 128", "training", trained(convnet, convnet_params, (128, 1, 28, 28)), "ms",
            goals=(Goal("seconds", 26e-3),), tolerance=1e-2, reference=torch_first,
        )  # fmt: skip
    )
    registry.add(
        Workload(
            "digits convnet train step, batch 64", "training",
            trained(digits, lambda: conv(1, 16, 3, 1) | conv(16, 32, 3, 2) | dense(512, 10, 3), (64, 1, 8, 8)), "ms",
            tolerance=2e-3, reference=torch_first, cold=True, quick=True,
        )  # fmt: skip
    )
