"""A step of training the model of ``examples/train_gpt.py`` at the size that it has unless told otherwise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..case import Array, Case, normal
from ..libraries import Library
from ..workload import Goal, Registry, Workload

BYTES = 256
NAME = "byte-level GPT train step, 16x128x96"


@dataclass(frozen=True)
class Shape:
    """Of a model and its batches, as the example's options name it."""

    context: int = 128
    width: int = 96
    heads: int = 4
    layers: int = 3
    batch: int = 16


def weights(shape: Shape) -> dict[str, Array]:
    """The model's weights by the names that the example's checkpoints give them."""
    width = shape.width
    matrices = {"bytes": (BYTES, width), "places": (shape.context, width), "head": (BYTES, width)}
    norms, biases = ["norm"], dict[str, int]()
    for layer in range(shape.layers):
        block = f"blocks.{layer}"
        matrices |= {
            f"{block}.attention.qkv": (3 * width, width), f"{block}.attention.out": (width, width),
            f"{block}.up": (4 * width, width), f"{block}.down": (width, 4 * width),
        }  # fmt: skip
        biases |= {f"{block}.up": 4 * width, f"{block}.down": width}
        norms += [f"{block}.norm1", f"{block}.norm2"]
    made = {
        f"{name}.weight": normal(*size, seed=i, scale=size[1] ** -0.5)
        for i, (name, size) in enumerate(matrices.items())
    }
    made |= {f"{name}.bias": normal(size, seed=i, scale=0.1) for i, (name, size) in enumerate(biases.items())}
    for name in norms:
        made |= {f"{name}.weight": np.ones(width, np.float32), f"{name}.bias": np.zeros(width, np.float32)}
    return made


def loss(library: Library, p: dict[str, Any], ids: Any, following: Any, shape: Shape) -> Any:
    """How badly each byte's successor is told.

    Args:
      library: what computes it.
      p: what :func:`weights` gives.
      ids: shape (batch * context,), integers.
      following: shape (batch * context,), integers.
      shape: the model's.
    """
    batch, length, width, heads = shape.batch, shape.context, shape.width, shape.heads

    def norm(x: Any, name: str) -> Any:
        return library.layernorm(x, p[f"{name}.weight"], p[f"{name}.bias"])

    x = library.reshape(library.embed(p["bytes.weight"], ids), batch, length, width) + p["places.weight"]
    for layer in range(shape.layers):
        block = f"blocks.{layer}"
        qkv = library.linear(norm(x, f"{block}.norm1"), p[f"{block}.attention.qkv.weight"])
        qkv = library.permute(library.reshape(qkv, batch, length, 3, heads, width // heads), 2, 0, 3, 1, 4)
        y = library.permute(library.attention(qkv[0], qkv[1], qkv[2], causal=True), 0, 2, 1, 3)
        x = x + library.linear(library.reshape(y, batch, length, width), p[f"{block}.attention.out.weight"])
        y = library.linear(norm(x, f"{block}.norm2"), p[f"{block}.up.weight"], p[f"{block}.up.bias"])
        x = x + library.linear(library.gelu(y), p[f"{block}.down.weight"], p[f"{block}.down.bias"])
    logits = library.linear(norm(x, "norm"), p["head.weight"])
    return library.cross_entropy(library.reshape(logits, batch * length, BYTES), following)


def training(library: Library, shape: Shape = Shape()) -> Case:
    """Steps of AdamW with clipped gradients, on one batch."""
    ids = np.random.default_rng(6).integers(0, BYTES, (shape.batch, shape.context + 1)).astype(np.int32)
    return library.training(
        lambda library, p, x, y: loss(library, p, x, y, shape), weights(shape), ids[:, :-1].reshape(-1),
        ids[:, 1:].reshape(-1), 3e-3, clip=1.0, decay=0.01,
    )  # fmt: skip


def register(registry: Registry) -> None:
    """Appends the workloads of this module."""
    registry.add(
        Workload(
            NAME,
            "training",
            training,
            "ms",
            goals=(Goal("torch", 1.0),),
            tolerance=1e-2,
            reference=("torch", "jax", "tinygrad"),
        )  # fmt: skip
    )
