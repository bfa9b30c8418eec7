"""Tiles: strided accesses as vectors along another loop, transposed in registers.

Where lanes are far apart in memory but the copies of an unrolled loop are neighbours, one vector is read or written
for each lane, along the unrolled loop, and the square of registers is transposed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tg_dtype import DType, dtypes
from tg_lazy import Ops
from tg_shape import Variable, sint

from ..ir.uop import UOp, const, shuffle, vectorize
from ..machine.memory import STRIDES
from ..machine.target import Target
from ..nest.env import Env
from ..nest.nest import UNROLLED, Axis, Nest
from ..nest.trim import conditions
from .loops import Loops
from .transpose import transpose


@dataclass(frozen=True, slots=True)
class Tile:
    """Some copies of an unrolled loop, which are neighbours in memory, by all lanes, which are not.

    Attributes:
      lane: the variable that stands for the lanes.
      copy: a variable that stands for the copies.
      env: the environment with the unrolled loop at ``copy``.
      number: which of the copies was asked for.
    """

    lane: Variable
    copy: Variable
    env: Env
    number: int


class Tiles(Loops):
    """Access to tiles of one nest."""

    def __init__(self, nest: Nest, target: Target) -> None:
        super().__init__(nest, target)
        self.named = {axis.name: axis for axis in nest.axes}
        self.columns: dict[tuple[object, ...], list[UOp]] = {}

    def tile(self, index: sint, roots: Iterable[Variable], env: Env, stored: bool = False) -> Tile | None:
        """The tile to which an access at ``index``, an expression over ``roots``, belongs; None if to none."""
        roots = tuple(roots)
        lane = self.lane_of(*(env.root[root] for root in roots))
        if lane is None or self.lanes[lane] & (self.lanes[lane] - 1):
            return None
        step = self.step(self.at(index, env.root), lane, self.lanes[lane])
        if step is None or step in (-1, 0, 1) or (1 < step <= STRIDES and not stored):
            return None
        for name, value in env.axis.items():
            axis = self.named.get(name)
            if axis is not None and axis.kind in UNROLLED and axis.root in roots and isinstance(value, int):
                found = self.along(axis, value, lane, env)
                if found is not None and self.step(
                        self.at(index, found.env.root), found.copy, self.lanes[found.copy]) == 1:
                    return found
        return None

    def along(self, axis: Axis, value: int, lane: Variable, env: Env) -> Tile | None:
        """The tile of ``lane`` by the copies of ``axis`` around ``value``; None if that would be one copy."""
        start, width = part(self.fixed(axis), value, self.lanes[lane])
        if width < 2:
            return None
        copy = self.copies(axis, width)
        root = {**env.root, axis.root: env.root[axis.root] + (copy + (start - value)) * axis.stride}
        return Tile(lane, copy, Env(root, env.axis, env.exact), value - start)

    def copies(self, axis: Axis, width: int) -> Variable:
        """A variable that stands for ``width`` copies of a loop at once."""
        return self.several(f"{axis.name}_copy", width)

    def place(self, index: sint, valid: sint, roots: Sequence[Variable], env: Env) -> tuple[sint, sint]:
        """An index over ``roots``, and whether it is valid and inside of the roots' extents, at ``env``."""
        holds: sint = 1
        for condition in conditions(valid):
            here = self.at(condition, env.root)
            if here not in self.implied:
                holds = holds & here
        return self.at(index, env.root), holds & self.guard(env, roots)

    def is_loaded(self, pointer: UOp, dtype: DType, index: sint, valid: sint) -> bool:
        """Whether a copy of a tile was asked for before, so that all of them are there."""
        return (pointer, dtype, index, valid) in self.columns

    def load_tile(self, pointer: UOp, dtype: DType, index: sint, valid: sint, tile: Tile) -> UOp:
        """The wanted copy of a tile: a vector over its lanes. ``index`` and ``valid`` are over its two variables."""
        key = (pointer, dtype, index, valid)
        found = self.columns.get(key)
        if found is None:
            found = self.columns[key] = self.load_columns(pointer, dtype, index, valid, tile.lane, tile.copy)
        return found[tile.number]

    def load_columns(
        self, pointer: UOp, dtype: DType, index: sint, valid: sint, lane: Variable, copy: Variable
    ) -> list[UOp]:
        """A vector over ``lane`` for every value of ``copy``, along which ``index`` is contiguous."""
        width, lanes = self.lanes[copy], self.lanes[lane]
        if isinstance(valid, int) and self.step(self.at(index, {copy: 0}), lane, lanes) == width:
            start = self.at(index, {lane: 0, copy: 0})
            return dealt([self.read(pointer, dtype.vec(lanes), start + n * lanes, valid) for n in range(width)])
        rows = self.load_rows(pointer, dtype, index, valid, lane, copy)
        return turned([joined(rows[number::width]) for number in range(width)])

    def load_rows(
        self, pointer: UOp, dtype: DType, index: sint, valid: sint, lane: Variable, copy: Variable
    ) -> list[UOp]:
        """A vector over ``copy``, along which ``index`` is contiguous, for every value of ``lane``."""
        width = self.lanes[copy]
        rows = []
        for number in range(self.lanes[lane]):
            here = self.at(valid, {lane: number})
            if isinstance(here, int) and not here:
                rows.append(const(0, dtype.vec(width)))
            else:
                place = self.at(index, {lane: number, copy: 0})
                rows.append(self.read(pointer, dtype.vec(width), place, here))
        return rows

    def write_tile(
        self, pointer: UOp, index: sint, valid: sint, values: dict[int, UOp], tile: Tile
    ) -> Iterator[UOp]:
        """The STOREs of a tile; ``values`` are its copies by number, of which those not valid may be missing."""
        lanes, width = self.lanes[tile.lane], self.lanes[tile.copy]
        missing = const(0, next(iter(values.values())).dtype.scalar())
        rows = turned([values.get(number, missing).broadcast(lanes) for number in range(width)])
        for number in range(lanes):
            here = self.at(valid, {tile.lane: number})
            if not (isinstance(here, int) and not here):
                block, row = divmod(number, width)
                value = rows[row] if width == lanes else rows[row].gep(*range(block * width, (block + 1) * width))
                yield self.write(pointer, self.at(index, {tile.lane: number, tile.copy: 0}), here, value)


def part(extent: int, at: int, most: int) -> tuple[int, int]:
    """The start and the size of the power of two, at most ``most``, in which ``at`` lies when ``extent`` is cut up.

    >>> [part(7, at, 4) for at in (0, 3, 4, 6)]
    [(0, 4), (0, 4), (4, 2), (6, 1)]
    """
    start, width = 0, most
    while at >= start + width or start + width > extent:
        if start + width <= extent:
            start += width
        else:
            width //= 2
    return start, width


def joined(vectors: Sequence[UOp]) -> UOp:
    """Vectors one behind the other."""
    if len(vectors) & (len(vectors) - 1):
        return vectorize(*(vector.gep(n) for vector in vectors for n in range(vector.dtype.count)))
    while len(vectors) > 1:
        lanes = range(2 * vectors[0].dtype.count)
        vectors = [shuffle(a, b, *lanes) for a, b in zip(vectors[::2], vectors[1::2], strict=True)]
    return vectors[0]


def dealt(vectors: Sequence[UOp]) -> list[UOp]:
    """The elements of 2**n vectors, one behind the other, dealt to as many vectors in turn.

    >>> from tg_codegen.ir.uop import vectorize
    >>> rows = [vectorize(*(const(n, dtypes.int32) for n in row)) for row in ((0, 1), (2, 3))]
    >>> [[lane.arg for lane in vector.src] for vector in dealt(rows)]
    [[0, 2], [1, 3]]
    """
    if len(vectors) == 1:
        return list(vectors)
    lanes = 2 * vectors[0].dtype.count
    pairs = list(zip(vectors[::2], vectors[1::2], strict=True))
    halves = [dealt([shuffle(a, b, *range(first, lanes, 2)) for a, b in pairs]) for first in (0, 1)]
    return [vector for both in zip(*halves, strict=True) for vector in both]


def turned(vectors: list[UOp]) -> list[UOp]:
    """:func:`tg_codegen.emit.transpose.transpose`; bools, which may be single bits, as bytes."""
    if not dtypes.is_bool(vectors[0].dtype):
        return transpose(vectors)
    columns = transpose([vector.cast(dtypes.uint8) for vector in vectors])
    return [column.alu(Ops.CMPNE, const(0, column.dtype)) for column in columns]
