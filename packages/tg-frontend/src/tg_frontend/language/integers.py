"""Products in integers: rows that are rounded to 16 bits, times weights as the digits of their file.

Rows are rounded in runs, each with a scale of its own: its greatest magnitude becomes 127 * 256. A number is two digits
of 8 bits, ``256 * high + low``, each of which is multiplied with the weights; a run's products are summed exactly, in
32 bits, and only then is the sum scaled. Weights are put in order once, as processors' dot products of short vectors
read them: of 16 outputs each four digits side by side (``vpdpbusd``, AVX-512 VNNI).

Of 4 bits, two digits share a byte. A single row, which waits for memory, parts them as it reads them; many rows would
do so many times, and have them parted once for each product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..files.gguf.digits import Digits
from ..tensor import Tensor

OUTPUTS = 16
"""Outputs whose weights are read together: a vector of 64 bytes has four weights of each."""
DEPTH = 4
BASE = 256
LARGEST = 127.0 * BASE
LEAST = 1e-30
"""Magnitudes that are rounded to 0: what they would be multiplied with is no float32."""


@dataclass(frozen=True)
class Rounded:
    """Rows as integers.

    Attributes:
      high: int8 of shape (rows, runs, elements of a run).
      low: likewise.
      scale: of each run, float32 of shape (rows, runs).
      total: the sum of a run's numbers times its scale, of the same shape.
    """

    high: Tensor
    low: Tensor
    scale: Tensor
    total: Tensor


def rounded(x: Tensor, run: int) -> Rounded:
    """Rows as integers, to the nearest and to the even one of two.

    Args:
      x: shape (rows, inputs).
      run: how many elements share a scale.
    """
    runs = x.reshape(x.shape[0], -1, run)
    greatest = runs.abs().max(-1, keepdim=True)
    numbers = (runs * (greatest > LEAST).where(LARGEST / greatest, 0.0)).round().cast("int32")
    high = (numbers + BASE // 2) >> 8  # the nearest multiple of the base, so that what is left has a sign
    low = numbers - (high << 8)
    high, low = high.cast("int8"), low.cast("int8")
    high.realize(low, greatest)  # what follows reads two bytes of each number, not four
    scale = greatest.squeeze(-1) / LARGEST
    total = (high.sum(-1, dtype="int32") * BASE + low.sum(-1, dtype="int32")).float() * scale
    scale.realize(total)
    return Rounded(high, low, scale, total)


class IntegerWeight:
    """Weights of one sort that are multiplied with the same rows, one below the other.

    Attributes:
      outputs: of all together.
      runs: of a row.
      run: elements of a run.

    Args:
      parts: each with values of shape (outputs, runs, run), of the same sort; outputs are multiples of 16.
    """

    def __init__(self, parts: Sequence[Digits]) -> None:
        first, *rest = parts
        values, scale = first.values, first.scale
        least = first.least
        if rest:
            values, scale = values.cat(*(part.values for part in rest)), scale.cat(*(part.scale for part in rest))
            leasts = [part.least for part in rest if part.least is not None]
            least = None if least is None else least.cat(*leasts)
        self.outputs, self.runs, self.run = values._ints()
        self.bits, self.zero = first.bits, first.zero
        self.values = self._ordered(values).contiguous()
        self.scale = self._panels(scale).contiguous()
        self.least = None if least is None else self._panels(least).contiguous()
        self.values.realize(*(x for x in (self.scale, self.least) if x is not None))

    def _panels(self, x: Tensor) -> Tensor:
        """Numbers of runs, shape (outputs, runs), as (panels, runs, outputs of a panel)."""
        return x.reshape(-1, OUTPUTS, self.runs).transpose(1, 2)

    def _ordered(self, values: Tensor) -> Tensor:
        """Digits as (panels, runs, groups of four, outputs of a panel, 4); of 4 bits those of two halves of a run."""
        halves = 8 // self.bits
        x = values.reshape(-1, OUTPUTS, self.runs, halves, self.run // halves // DEPTH, DEPTH)
        x = x.permute(0, 2, 3, 4, 1, 5)
        return x[:, :, 0] if halves == 1 else x[:, :, 0] | (x[:, :, 1] << 4)

    @property
    def room_shape(self) -> tuple[int, ...]:
        """That of the digits with a byte each: (panels, runs, groups of four, outputs of a panel, 4)."""
        return self.outputs // OUTPUTS, self.runs, self.run // DEPTH, OUTPUTS, DEPTH

    def __call__(self, x: Rounded, room: Tensor | None = None) -> Tensor:
        """Products with each of the weights, shape (rows, outputs).

        Args:
          x: the rows.
          room: memory for digits, uint8 of ``room_shape``; it is another weight's afterwards.
        """
        rows = int(x.scale.shape[0])
        digits = self.values if self.bits == 8 else (self.values & 15).stack(self.values >> 4, dim=2)
        if room is not None and self.bits != 8:
            digits = room.assign(digits.reshape(*self.room_shape)).realize()
        shape = [int(size) for size in digits.shape[2:-2]]  # of a run, without the four that are side by side
        within = (*range(3, 3 + len(shape)), 4 + len(shape))
        high, low = (
            (digits.cast("int32") * part.reshape(rows, 1, self.runs, *shape, 1, DEPTH).cast("int32"))
            .sum(within, dtype="int32") for part in (x.high, x.low)
        )
        sums = high * BASE + low
        scale, total = (part.reshape(rows, 1, self.runs, 1) for part in (x.scale, x.total))
        scaled = sums.float() * scale
        if self.least is None:
            terms = (scaled - self.zero * total if self.zero else scaled) * self.scale.float()
        else:
            terms = scaled * self.scale.float() + total * self.least.float()
        out = terms.sum(2).reshape(rows, self.outputs)
        return out if room is None else out.realize()
