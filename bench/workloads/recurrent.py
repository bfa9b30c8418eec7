"""What is done step by step: running sums and the like, loops, recurrent layers; forward, backward and in training."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..case import Array, Case, normal, uniform
from ..libraries import Library
from ..libraries.base import Loss
from ..workload import Registry, Workload
from .training import LEARNING_RATE, Params, dense, labels

FLOAT = 4
STEPS, BATCH, INPUTS, HIDDEN = 200, 32, 64, 128


def weights(gates: int = 4) -> dict[str, Array]:
    """Of a layer: inputs, hidden states, biases."""
    rows, scale = gates * HIDDEN, HIDDEN**-0.5
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


def gated(library: Library, p: Params, x: Any, y: Any) -> Any:
    """A gated recurrent unit, whose last hidden state is told apart."""
    hidden = library.gru(x, p["ih"], p["hh"], p["bias"], p["bias_hh"])[-1]
    return library.cross_entropy(library.linear(hidden, p["w1"], p["b1"]), y)


def gated_weights() -> dict[str, Array]:
    """Of a gated recurrent unit."""
    return weights(3) | {"bias_hh": normal(3 * HIDDEN, seed=4, scale=HIDDEN**-0.5)}


def plain(library: Library, start: Any, x: Any, w: Any) -> Any:
    """A plain recurrent layer, written as a loop."""
    return library.scan(lambda hidden, part: library.tanh(hidden @ w + part), start, x)


def average(library: Library, start: Any, x: Any) -> Any:
    """An exponential moving average, written as a loop."""
    return library.scan(lambda mean, part: mean * 0.9 + part * 0.1, start, x)


def roots(library: Library, x: Any) -> Any:
    """Square roots by Newton's method."""
    return library.repeat(lambda root: ((root * root - x) * (root * root - x)).sum() > 1e-3,
                          lambda root: (root + x / root) * 0.5, x)  # fmt: skip


def trained(registry: Registry, name: str, loss: Loss, held: Callable[[], dict[str, Array]]) -> None:
    """Appends steps of training a recurrent layer and what tells its states apart."""
    def build(library: Library) -> Case:
        return library.training(
            loss, held() | dense(HIDDEN, 10, 1), normal(STEPS, BATCH, INPUTS, seed=99), labels(BATCH), LEARNING_RATE
        )  # fmt: skip

    registry.add(
        Workload(name, "step by step", build, "ms", tolerance=2e-3, reference=("torch", "jax", "tinygrad"))
    )  # fmt: skip


def loops(registry: Registry) -> None:
    """Appends loops over a function of the user's, and slopes of running sums."""
    steps, rows, width = 199, 31, 97
    many, lanes = 997, 3989
    looped: tuple[tuple[str, Callable[[], list[Array]], Callable[..., Any], tuple[int, ...]], ...] = (
        (
            f"scan of {steps} products {rows}x{width}",
            lambda: [normal(rows, width), normal(steps, rows, width, seed=1), normal(width, width, seed=2, scale=0.1)],
            plain, (steps, rows, width),
        ),
        (
            f"scan of {many} averages of {lanes}", lambda: [normal(lanes), normal(many, lanes, seed=1)],
            average, (many, lanes),
        ),
    )  # fmt: skip
    for name, arrays, function, shape in looped:
        registry.kernel(name, "step by step", arrays, function, "ms", 1.0)
        registry.gradient(f"gradient of {name}", "step by step", arrays, function, shape, tolerance=1e-3)
    registry.kernel("while_loop, roots of 10007", "step by step", lambda: [1 + uniform(10_007)], roots, "ms", 1.0)
    registry.kernel(
        f"associative_scan of {rows}x16381 pairs", "step by step",
        lambda: [uniform(rows, 16381), normal(rows, 16381, seed=1)],
        lambda library, factor, term: library.recurrence(factor, term), "ms", 1.0,
    )  # fmt: skip
    n, m = 1021, 2039
    slopes: tuple[tuple[str, Callable[[], list[Array]], Callable[[Library, Any], Any]], ...] = (
        ("cumsum", lambda: [uniform(n, m)], lambda library, x: library.cumsum(x, 1)),
        ("cumprod", lambda: [1 + normal(n, m) / 100], lambda library, x: library.cumprod(x, 1)),
        ("cummax", lambda: [normal(n, m)], lambda library, x: library.cummax(x, 1)),
        ("logcumsumexp", lambda: [normal(n, m)], lambda library, x: library.logcumsumexp(x, 1)),
    )
    for what, arrays, running in slopes:
        registry.gradient(f"gradient of {what} {n}x{m}", "step by step", arrays, running, (n, m), tolerance=1e-3)


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

    registry.kernel(
        f"GRU of {STEPS} steps, {BATCH}x{INPUTS} to {HIDDEN}", "step by step",
        lambda: [normal(STEPS, BATCH, INPUTS), *gated_weights().values()],
        lambda library, *tensors: library.gru(*tensors), "ms", 1.0,
    )  # fmt: skip
    for kind, loss, held in (("LSTM", classifier, weights), ("GRU", gated, gated_weights)):
        trained(registry, f"{kind} train step, {STEPS} steps, batch {BATCH}", loss, held)
    loops(registry)
