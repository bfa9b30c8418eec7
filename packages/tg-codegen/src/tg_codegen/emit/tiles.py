"""Tiles: strided accesses as vectors along another loop, transposed in registers.

Where lanes are far apart in memory but the copies of an unrolled loop are neighbours, one vector is read or written
for each lane, along the unrolled loop, and the square of registers is transposed. Several unrolled loops may be such a
one together: their copies are the digits of its number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tg_dtype import DType
from tg_shape import Expr, Variable, coefficient, sint, substitute

from ..ir.uop import UOp, const
from ..machine.memory import STRIDES
from ..nest.env import Env
from ..nest.nest import Axis
from ..nest.spec import UNROLLED
from .access import Access
from .known import Key
from .loops import Loops
from .space import IterationSpace, fixed
from .vectors import concatenated, dealt, turned


@dataclass(frozen=True, slots=True)
class TransposedTile:
    """Some copies of an unrolled loop, which are neighbours in memory, by all lanes, which are not.

    Attributes:
      lane: the variable that stands for the lanes.
      copy: a variable that stands for the copies.
      env: the environment with the unrolled loop at ``copy``; where there are several, the fastest has them all.
      number: which of the copies was asked for.
    """

    lane: Variable
    copy: Variable
    env: Env
    number: int


class Tiles:
    """Access to tiles of one nest."""

    def __init__(self, space: IterationSpace, loops: Loops, access: Access) -> None:
        self.space, self.loops, self.access, self.symbols = space, loops, access, access.symbols
        self._columns: dict[Key, list[UOp]] = {}

    def tile(
        self, index: sint, valid: sint, roots: Iterable[Variable], env: Env, stored: bool = False
    ) -> TransposedTile | None:
        """The tile to which an access at ``index``, an expression over ``roots``, belongs; None if to none."""
        roots = tuple(roots)
        lane = self.symbols.lane_of(*(env.root[root] for root in roots))
        if lane is None or self.symbols.lanes[lane] & (self.symbols.lanes[lane] - 1):
            return None
        step = self.access.step(env.of(index), lane)
        if step is None or step in (-1, 0, 1) or (1 < step <= STRIDES and not stored):
            return None
        together = self.digits(index, valid, roots, env)
        if len(together) > 1:
            return self.along(together, lane, env)
        for name, value in env.axis.items():
            axis = self.space.by_name.get(name)
            if axis is not None and axis.kind in UNROLLED and axis.root in roots and isinstance(value, int):
                for falling in (False, True):
                    found = self.along([axis], lane, env, falling)
                    if found is not None and self.access.step(found.env.of(index), found.copy) == 1:
                        return found
        return None

    def digits(self, index: sint, valid: sint, roots: tuple[Variable, ...], env: Env) -> list[Axis]:
        """Unrolled loops whose copies together are neighbours in memory, wherever the others are; the fastest first.

        Each takes all of a dimension, on which no condition depends.
        """
        tested = valid.variables() if isinstance(valid, Expr) else ()
        steps: dict[int | None, Axis] = {}
        for name, value in env.axis.items():
            axis = self.space.by_name.get(name)
            if (
                axis is not None and axis.kind in UNROLLED and isinstance(value, int) and axis.root in roots
                and axis.root not in tested and axis.root in env.exact and len(self.space.by_root[axis.root]) == 1
            ):  # fmt: skip
                steps[coefficient(index, axis.root)] = axis
        found, count = list[Axis](), 1
        while (axis := steps.pop(count, None)) is not None:
            found.append(axis)
            count *= fixed(axis)
        return found

    def along(
        self, axes: Sequence[Axis], lane: Variable, env: Env, falling: bool = False
    ) -> TransposedTile | None:
        """The tile of ``lane`` by the copies around those at ``env`` of one loop, or of loops that are its digits.

        Those of a loop that walks backwards through memory are counted from the last one. None if that would be one
        copy.
        """
        count, value = 1, 0
        for axis in axes:
            at = env.axis[axis.name]
            assert isinstance(at, int)
            value += at * count
            count *= fixed(axis)
        start, width = part(count, value, self.symbols.lanes[lane])
        if width < 2:
            return None
        fastest = axes[0]
        copy = self.loops.copies(fastest, width)
        number = value - start
        moved = env.root[fastest.root] + ((width - 1 - copy if falling else copy) - number) * fastest.stride
        return TransposedTile(
            lane, copy, env.moved(fastest.root, moved), width - 1 - number if falling else number)

    def is_loaded(self, pointer: UOp, dtype: DType, index: sint, valid: sint) -> bool:
        """Whether one copy of a tile was loaded before: then all of them were."""
        return (pointer, dtype, index, valid) in self._columns

    def load(self, pointer: UOp, dtype: DType, index: sint, valid: sint, tile: TransposedTile) -> UOp:
        """The wanted copy of a tile: a vector over its lanes. ``index`` and ``valid`` are over its two variables."""
        key = (pointer, dtype, index, valid)
        found = self._columns.get(key)
        if found is None:
            found = self._columns[key] = self.columns(pointer, dtype, index, valid, tile.lane, tile.copy)
        return found[tile.number]

    def columns(
        self, pointer: UOp, dtype: DType, index: sint, valid: sint, lane: Variable, copy: Variable
    ) -> list[UOp]:
        """A vector over ``lane`` for every value of ``copy``, along which ``index`` is contiguous."""
        width, lanes = self.symbols.lanes[copy], self.symbols.lanes[lane]
        if isinstance(valid, int) and self.access.step(substitute(index, {copy: 0}), lane) == width:
            start = substitute(index, {lane: 0, copy: 0})
            return dealt([self.access.read(pointer, dtype.vec(lanes), start + n * lanes, valid) for n in range(width)])
        rows = self.rows(pointer, dtype, index, valid, lane, copy)
        return turned([concatenated(rows[number::width]) for number in range(width)])

    def rows(
        self, pointer: UOp, dtype: DType, index: sint, valid: sint, lane: Variable, copy: Variable
    ) -> list[UOp]:
        """A vector over ``copy``, along which ``index`` is contiguous, for every value of ``lane``."""
        width = self.symbols.lanes[copy]
        rows = []
        for number in range(self.symbols.lanes[lane]):
            here = substitute(valid, {lane: number})
            if isinstance(here, int) and not here:
                rows.append(const(0, dtype.vec(width)))
            else:
                place = substitute(index, {lane: number, copy: 0})
                rows.append(self.access.read(pointer, dtype.vec(width), place, here))
        return rows

    def writes(
        self, pointer: UOp, index: sint, valid: sint, values: dict[int, UOp], tile: TransposedTile
    ) -> Iterator[UOp]:
        """The STOREs of a tile; ``values`` are its copies by number, of which those not valid may be missing."""
        lanes, width = self.symbols.lanes[tile.lane], self.symbols.lanes[tile.copy]
        missing = const(0, next(iter(values.values())).dtype.scalar())
        rows = turned([values.get(number, missing).broadcast(lanes) for number in range(width)])
        for number in range(lanes):
            here = substitute(valid, {tile.lane: number})
            if not (isinstance(here, int) and not here):
                region, row = divmod(number, width)
                value = rows[row] if width == lanes else rows[row].gep(*range(region * width, (region + 1) * width))
                yield self.access.write(pointer, substitute(index, {tile.lane: number, tile.copy: 0}), here, value)


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
