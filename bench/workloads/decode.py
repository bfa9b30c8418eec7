"""Decoding with a language model of 135M parameters, with random weights: in fp32, and in blocks of 4-bit integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..case import Array, Case, aligned, normal
from ..libraries import Library
from ..workload import Goal, Registry, Workload

LAYERS, WIDTH, HEADS, GROUPS, HEAD, INNER, VOCABULARY = 30, 576, 9, 3, 64, 1536, 49152
START, POSITIONS = 16, 144
BLOCK = 32

MATRICES = {
    "q": (WIDTH, WIDTH), "k": (GROUPS * HEAD, WIDTH), "v": (GROUPS * HEAD, WIDTH), "o": (WIDTH, WIDTH),
    "gate": (INNER, WIDTH), "up": (INNER, WIDTH), "down": (WIDTH, INNER),
}  # fmt: skip
"""Outputs and inputs of a layer's matrices."""

PARAMETERS = LAYERS * sum(outputs * inputs for outputs, inputs in MATRICES.values()) + VOCABULARY * WIDTH


def tables() -> dict[str, Array]:
    """Cosines and sines of the rotary embedding, shape (positions, HEAD / 2)."""
    angles = np.arange(POSITIONS)[:, None] * (10000.0 ** (-np.arange(HEAD // 2) / (HEAD // 2)))[None]
    return {"cos": aligned(np.cos(angles).astype(np.float32)), "sin": aligned(np.sin(angles).astype(np.float32))}


def weights() -> dict[str, Array]:
    """Everything in fp32; the embedding is also the classifier."""
    made = tables() | {"embedding": normal(VOCABULARY, WIDTH, seed=1, scale=0.5)}
    made["norm"] = np.ones(WIDTH, np.float32)
    for layer in range(LAYERS):
        for i, (name, (outputs, inputs)) in enumerate(MATRICES.items()):
            seed = 1000 + 10 * layer + i
            made[f"{layer}.{name}"] = normal(outputs, inputs, seed=seed, scale=0.5 * inputs**-0.5)
        made[f"{layer}.norm1"] = made[f"{layer}.norm2"] = np.ones(WIDTH, np.float32)
    return made


def quantized() -> dict[str, Array]:
    """The same model with its matrices in blocks; the embedding's rows are looked up in fp32."""
    made: dict[str, Array] = {}
    for name, values in weights().items():
        if name.rpartition(".")[2] in MATRICES or name == "embedding":
            packed, scale, least = pack(values)
            made |= {f"{name}:packed": packed, f"{name}:scale": scale, f"{name}:least": least}
        if name.rpartition(".")[2] not in MATRICES:
            made[name] = values
    return made


def pack(values: Array) -> tuple[Array, Array, Array]:
    """Blocks of 32 along the last axis as 4-bit integers, with a scale and a minimum in fp16 each.

    >>> packed, scale, least = pack(np.arange(32, dtype=np.float32)[None] / 31 * 15)
    >>> packed.shape, float(scale[0, 0]), float(least[0, 0])
    ((1, 1, 16), 1.0, 0.0)
    """
    blocks = values.reshape(values.shape[0], -1, BLOCK)
    least = blocks.min(-1)
    scale = np.maximum((blocks.max(-1) - least) / 15, np.float32(1e-8))
    digits = np.clip(np.rint((blocks - least[..., None]) / scale[..., None]), 0, 15).astype(np.uint8)
    packed = aligned(digits[..., :16] | digits[..., 16:] << 4)
    return packed, aligned(scale.astype(np.float16)), aligned(least.astype(np.float16))


def token_step(
    product: Callable[[Library, dict[str, Any], Any, str], Any],
) -> Callable[[Library, dict[str, Any], list[Any], Any, Any], tuple[Any, list[Any]]]:
    """One token through the model, with ``product(library, params, x, name)`` for x times a matrix."""

    def step(
        library: Library, p: dict[str, Any], caches: list[Any], token: Any, position: Any
    ) -> tuple[Any, list[Any]]:
        def heads(x: Any, count: int) -> Any:
            return library.reshape(x, count, 1, HEAD)

        x = library.embed(p["embedding"], token)
        after = []
        for layer in range(LAYERS):
            y = library.rmsnorm(x, p[f"{layer}.norm1"])
            q, k, v = (product(library, p, y, f"{layer}.{name}") for name in "qkv")
            q = library.rotate(heads(q, HEADS), p["cos"], p["sin"], position)
            k = library.rotate(heads(k, GROUPS), p["cos"], p["sin"], position)
            mixed, cache = library.cached_attention(q, k, heads(v, GROUPS), caches[layer], position)
            after.append(cache)
            x = x + product(library, p, library.reshape(mixed, 1, WIDTH), f"{layer}.o")
            y = library.rmsnorm(x, p[f"{layer}.norm2"])
            gate, up = (product(library, p, y, f"{layer}.{name}") for name in ("gate", "up"))
            x = x + product(library, p, library.silu(gate) * up, f"{layer}.down")
        return product(library, p, library.rmsnorm(x, p["norm"]), "embedding"), after

    return step


def plain(library: Library, p: dict[str, Any], x: Any, name: str) -> Any:
    """x times a matrix in fp32."""
    return library.linear(x, p[name])


def blocked(library: Library, p: dict[str, Any], x: Any, name: str) -> Any:
    """x times a matrix in blocks of 4-bit integers."""
    return library.linear_q4(x, p[f"{name}:packed"], p[f"{name}:scale"], p[f"{name}:least"])


def decoding(params: Callable[[], dict[str, Array]], product: Callable[..., Any]) -> Callable[[Library], Case]:
    """What builds the decoding."""
    tokens = [int(t) for t in np.random.default_rng(3).integers(0, VOCABULARY, POSITIONS)]
    caches = [(2, GROUPS, POSITIONS, HEAD)] * LAYERS
    return lambda library: library.decoding(token_step(product), params(), caches, tokens, START)


def register(registry: Registry) -> None:
    """Appends the workloads of this module."""
    registry.add(
        Workload(
            "decode 135M, fp32", "decoding", decoding(weights, plain), "tokens/s", work=4.0 * PARAMETERS,
            limit="read", goals=(Goal("share", 0.85),), tolerance=1e-3,
        )  # fmt: skip
    )
    registry.add(
        Workload(
            "decode 135M, 4-bit blocks", "decoding", decoding(quantized, blocked), "tokens/s",
            work=PARAMETERS * (0.5 + 4 / BLOCK), limit="read", goals=(Goal("rate", 150),), tolerance=1e-3,
        )  # fmt: skip
    )
