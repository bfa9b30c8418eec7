"""A step of training a language model of many equal layers, which is as much a workload of compilers as of kernels."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..case import Array, Case, normal
from ..libraries import Library
from ..workload import Registry, Workload

LAYERS, BATCH, POSITIONS, WIDTH, HEADS, VOCABULARY = 24, 4, 64, 256, 4, 1000
LEARNING_RATE = 1e-3
NAME = f"{LAYERS}-layer transformer train step, {BATCH}x{POSITIONS}x{WIDTH}"


def weights(layers: int = LAYERS) -> dict[str, Array]:
    """A decoder's weights; those of a layer begin with its number."""
    made = {
        "tokens": normal(VOCABULARY, WIDTH, seed=1, scale=0.1), "places": normal(POSITIONS, WIDTH, seed=2, scale=0.1),
    }  # fmt: skip
    for layer in range(layers):
        shapes = {"q": (WIDTH, WIDTH), "k": (WIDTH, WIDTH), "v": (WIDTH, WIDTH), "o": (WIDTH, WIDTH),
                  "up": (4 * WIDTH, WIDTH), "down": (WIDTH, 4 * WIDTH)}  # fmt: skip
        for i, (name, (outputs, inputs)) in enumerate(shapes.items()):
            seed = 10 * layer + i
            made[f"{layer}.{name}"] = normal(outputs, inputs, seed=seed, scale=inputs**-0.5)
            made[f"{layer}.{name}+"] = normal(outputs, seed=seed, scale=0.1)
        made |= _norm(f"{layer}.1") | _norm(f"{layer}.2")
    return made | _norm("last") | {"out": normal(VOCABULARY, WIDTH, seed=3, scale=WIDTH**-0.5)}


def _norm(name: str) -> dict[str, Array]:
    return {f"{name}*": np.ones(WIDTH, np.float32), f"{name}+": np.zeros(WIDTH, np.float32)}


def loss(
    library: Library, p: dict[str, Any], tokens: Any, following: Any, layers: int = LAYERS, checkpoints: bool = False
) -> Any:
    """How badly each token's successor is told from it and the tokens before it.

    Args:
      library: what computes it.
      p: what :func:`weights` gives.
      tokens: shape (batch * positions,), integers.
      following: shape (batch * positions,), integers.
      layers: how many of them.
      checkpoints: whether what is inside of a layer is computed again on the way back.
    """
    width = WIDTH // HEADS

    def norm(x: Any, name: str) -> Any:
        return library.layernorm(x, p[f"{name}*"], p[f"{name}+"])

    def linear(x: Any, name: str) -> Any:
        return library.linear(x, p[name], p[f"{name}+"])

    def heads(x: Any) -> Any:
        return library.permute(library.reshape(x, BATCH, POSITIONS, HEADS, width), 0, 2, 1, 3)

    def block(layer: int, x: Any) -> Any:
        y = norm(x, f"{layer}.1")
        q, k, v = (heads(linear(y, f"{layer}.{name}")) for name in "qkv")
        mixed = library.permute(library.attention(q, k, v, causal=True), 0, 2, 1, 3)
        x = x + linear(library.reshape(mixed, BATCH, POSITIONS, WIDTH), f"{layer}.o")
        y = library.gelu(linear(norm(x, f"{layer}.2"), f"{layer}.up"))
        return x + linear(y, f"{layer}.down")

    x = library.reshape(library.embed(p["tokens"], tokens), BATCH, POSITIONS, WIDTH) + p["places"]
    for layer in range(layers):
        x = library.checkpoint(partial(block, layer), x) if checkpoints else block(layer, x)
    logits = library.linear(norm(x, "last"), p["out"])
    return library.cross_entropy(library.reshape(logits, BATCH * POSITIONS, VOCABULARY), following)


def batch() -> tuple[Array, Array]:
    """Tokens, and the token after each."""
    drawn = np.random.default_rng(5).integers(0, VOCABULARY, (BATCH, POSITIONS + 1)).astype(np.int32)
    return drawn[:, :-1].reshape(-1), drawn[:, 1:].reshape(-1)


def training(library: Library, checkpoints: bool = False) -> Case:
    """Steps of Adam."""
    return library.training(partial(loss, checkpoints=checkpoints), weights(), *batch(), LEARNING_RATE)


def register(registry: Registry) -> None:
    """Appends the workloads of this module."""
    registry.add(
        Workload(
            NAME, "training", training, "ms", tolerance=1e-2, reference=("torch", "jax", "tinygrad"),
        )  # fmt: skip
    )
