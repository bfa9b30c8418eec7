"""Blocks of quantised weights as whole numbers: what products in integers multiply, and what they scale sums with.

A weight is ``scale * (digit - zero) + least``, where scale and least are those of its run. The decoders of
:mod:`.blocks` say the same in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ...tensor import Tensor
from .blocks import _bits, _halves, _packed_scales, _planes, _quarters, _split, _words


@dataclass(frozen=True)
class Digits:
    """Weights as whole numbers.

    Attributes:
      values: uint8 of shape (..., runs, elements of a run).
      bits: how many a value has: 4 or 8.
      zero: the value that stands for 0, where there is no ``least``.
      scale: of each run, float16 or float32 of shape (..., runs).
      least: what is added to each weight of a run, of the same shape; None for nothing.
    """

    values: Tensor
    bits: int
    zero: int
    scale: Tensor
    least: Tensor | None = None

    @property
    def sort(self) -> tuple[int, ...]:
        """Weights for which this is equal can stand in one tensor, one below the other."""
        return self.bits, self.zero, self.least is not None, self.scale.dtype.itemsize, *self.values._ints()[1:]


def _half(x: Tensor, at: int) -> Tensor:
    """The float16 at a byte of each block: shape (..., 1)."""
    return _words(x[..., at : at + 2], 2).bitcast("float16")


def _runs(x: Tensor, elements: int) -> Tensor:
    return _split(x, -1, elements)


def _q4_0(x: Tensor) -> Digits:
    return Digits(_runs(_halves(x[..., 2:], 16), 32), 4, 8, _half(x, 0))


def _q4_1(x: Tensor) -> Digits:
    return Digits(_runs(_halves(x[..., 4:], 16), 32), 4, 0, _half(x, 0), _half(x, 2))


def _q5_0(x: Tensor) -> Digits:
    return Digits(_runs(_halves(x[..., 6:], 16) | (_bits(x[..., 2:6]) << 4), 32), 8, 16, _half(x, 0))


def _q5_1(x: Tensor) -> Digits:
    return Digits(_runs(_halves(x[..., 8:], 16) | (_bits(x[..., 4:8]) << 4), 32), 8, 0, _half(x, 0), _half(x, 2))


def _q8_0(x: Tensor) -> Digits:
    return Digits(_runs(x[..., 2:] ^ 128, 32), 8, 128, _half(x, 0))


def _q4_k(x: Tensor) -> Digits:
    scale, least = _packed_scales(x)
    return Digits(_runs(_halves(x[..., 16:], 32), 32), 4, 0, scale.squeeze(-1), -least.squeeze(-1))


def _q5_k(x: Tensor) -> Digits:
    scale, least = _packed_scales(x)
    values = _halves(x[..., 48:], 32) | (_planes(x[..., 16:48]) << 4)
    return Digits(_runs(values, 32), 8, 0, scale.squeeze(-1), -least.squeeze(-1))


def _q6_k(x: Tensor) -> Digits:
    values = _halves(x[..., :128], 64) | (_quarters(x[..., 128:192], 32) << 4)
    return Digits(_runs(values, 16), 8, 32, _half(x, 208).float() * x[..., 192:208].bitcast("int8").float())


_OF_KINDS: dict[str, Callable[[Tensor], Digits]] = {
    "Q4_0": _q4_0, "Q4_1": _q4_1, "Q5_0": _q5_0, "Q5_1": _q5_1, "Q8_0": _q8_0, "Q4_K": _q4_k, "Q5_K": _q5_k,
    "Q6_K": _q6_k,
}  # fmt: skip


def digits_of(kind: str, packed: Tensor) -> Digits | None:
    """A matrix in blocks as whole numbers, with its rows' runs beside each other.

    Args:
      kind: of the blocks.
      packed: uint8 of shape (rows, blocks, nbytes).

    Returns:
      None where the elements of that kind are no such numbers.
    """
    if kind not in _OF_KINDS:
        return None
    found = _OF_KINDS[kind](packed)
    least = None if found.least is None else found.least.flatten(1)
    return replace(found, values=found.values.flatten(1, 2), scale=found.scale.flatten(1), least=least)
