"""What is done step by step: running sums and the like, and a long short-term memory, forward and in training."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..case import Array, normal, uniform
from ..libraries import Library
from ..workload import Registry, Workload
from .training import LEARNING_RATE, Params, dense, labels

FLOAT = 4
STEPS, BATCH, INPUTS, HIDDEN = 200, 32, 64, 128


def weights() -> dict[str, Array]:
    """Of a layer: inputs, hidden states, biases."""
    rows, scale = 4 * HIDDEN, HIDDEN**-0.5
    return {
        "ih": normal(rows, INPUTS, seed=1, scale=scale), "hh": normal(rows, HIDDEN, seed=2, scale=scale),
        "bias": normal(rows, seed=3, scale=scale),
    }  # fmt: skip


def sequence(steps: int) -> list[Array]:
    """Inputs of so many steps, and the weights of a layer."""
    return [normal(steps, BATCH, INPUTS), *weights().values()]


def classifier(library: Library, p: Params, x: Any, y: Any) -> Any:
    """A long short-term memory, whose last hidden state is told apart."""
    hidden = library.lstm(x, p["ih"], p["hh"], p["bias"])[-1]
    return library.cross_entropy(library.linear(hidden, p["w1"], p["b1"]), y)


def register(registry: Registry) -> None:
    """Appends the workloads of this module."""
    n, m, long = 4096, 2048, 10_000_000
    scans: tuple[tuple[str, Callable[[], list[Array]], Callable[[Library, Any], Any], int], ...] = (
        (f"cumsum {n}x{n} along rows", lambda: [uniform(n, n)], lambda library, x: library.cumsum(x, 1), n * n),
        (f"cumsum {n}x{n} along columns", lambda: [uniform(n, n)], lambda library, x: library.cumsum(x, 0), n * n),
        ("cumsum of 10M", lambda: [normal(1, long)], lambda library, x: library.cumsum(x, 1), long),
        (f"cumprod {m}x{m}", lambda: [1 + normal(m, m) / 100], lambda library, x: library.cumprod(x, 1), m * m),
        (f"cummax {m}x{m}", lambda: [normal(m, m)], lambda library, x: library.cummax(x, 1), m * m),
        (f"logcumsumexp {m}x{m}", lambda: [normal(m, m)], lambda library, x: library.logcumsumexp(x, 1), m * m),
    )  # fmt: skip
    for name, arrays, function, size in scans:
        registry.kernel(name, "step by step", arrays, function, "GB/s", 2.0 * FLOAT * size, tolerance=1e-3)
    for steps in (STEPS, 1000):
        registry.kernel(
            f"LSTM of {steps} steps, {BATCH}x{INPUTS} to {HIDDEN}", "step by step",
            partial(sequence, steps),
            lambda library, *tensors: library.lstm(*tensors), "ms", 1.0,
        )  # fmt: skip

    def build(library: Library) -> Any:
        return library.training(
            classifier, weights() | dense(HIDDEN, 10, 1), normal(STEPS, BATCH, INPUTS, seed=99), labels(BATCH),
            LEARNING_RATE,
        )  # fmt: skip

    registry.add(
        Workload(
            f"LSTM train step, {STEPS} steps, batch {BATCH}", "step by step", build, "ms", tolerance=2e-3,
            reference=("torch", "jax", "tinygrad"),
        )  # fmt: skip
    )
