"""Positions as rotations: cosines and sines of each position's angles, as tables.

Sources: Su et al. 2021, "RoFormer"; Peng et al. 2023, "YaRN".
"""

from __future__ import annotations

import math

from tg_dtype import dtypes

from ..tensor import Tensor
from .description import Rotation


def _speeds(rotation: Rotation, slower: list[float] | None) -> tuple[list[float], float]:
    """Radians a position, for each pair of elements; and what the rotation multiplies with."""
    pairs = rotation.width // 2
    speeds = [rotation.base ** (-i / pairs) for i in range(pairs)]
    if slower is not None:
        if len(slower) != pairs:
            raise ValueError(f"language model: rope_freqs.weight has {len(slower)} elements for {pairs} pairs")
        speeds = [speed / by for speed, by in zip(speeds, slower, strict=True)]
    if rotation.scaling == "linear":
        return [speed / rotation.factor for speed in speeds], 1.0
    if rotation.scaling == "none":
        return speeds, 1.0

    def pair_of(turns: float) -> float:
        """The pair, a fraction, that turns so often within the original context."""
        return pairs * math.log(rotation.original / (turns * 2 * math.pi)) / math.log(rotation.base)

    low = max(math.floor(pair_of(rotation.fast)), 0)
    high = min(math.ceil(pair_of(rotation.slow)), rotation.width - 1)
    out = []
    for i, speed in enumerate(speeds):
        stretched = min(max((i - low) / max(high - low, 0.001), 0.0), 1.0)
        out.append(speed * (1 - stretched) + speed / rotation.factor * stretched)
    grown = 0.1 * math.log(rotation.factor) + 1.0 if rotation.factor > 1 else 1.0
    return out, rotation.strength * grown


def tables(rotation: Rotation, positions: int, slower: list[float] | None, device: str) -> tuple[Tensor, Tensor]:
    """Cosines and sines, each of shape (positions, width / 2).

    Args:
      rotation: what turns.
      positions: how many.
      slower: what each pair's speed is divided by, as Llama 3.1 has it; None for nothing.
      device: where they are used.

    Raises:
      ValueError: if ``slower`` has another length.
    """
    speeds, strength = _speeds(rotation, slower)
    rate = Tensor(speeds, dtype=dtypes.float64, device="CPU")
    angles = Tensor.arange(positions, dtype=dtypes.float64, device="CPU").unsqueeze(1) * rate
    parts = [(x * strength).cast(dtypes.float32).to(device).contiguous() for x in (angles.cos(), angles.sin())]
    parts[0].realize(parts[1])
    return parts[0], parts[1]


def rotate(x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool) -> Tensor:
    """Turns pairs of elements.

    Args:
      x: shape (rows, heads, head).
      cos: shape (rows, width / 2); elements of a head beyond ``width`` stay.
      sin: like ``cos``.
      interleaved: whether pairs are neighbours.

    Returns:
      shape (rows, heads, head).
    """
    width = 2 * int(cos.shape[-1])
    c, s = cos.unsqueeze(1), sin.unsqueeze(1)
    turned, rest = x[..., :width], x[..., width:]
    if interleaved:
        pairs = turned.reshape(*x.shape[:-1], width // 2, 2)
        a, b = pairs[..., 0], pairs[..., 1]
        out = (a * c - b * s).stack(b * c + a * s, dim=-1).reshape(*turned.shape)
    else:
        a, b = turned[..., : width // 2], turned[..., width // 2 :]
        out = (a * c - b * s).cat(b * c + a * s, dim=-1)
    return out if width == x.shape[-1] else out.cat(rest, dim=-1)
