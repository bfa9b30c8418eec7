"""Register tiles of convolutions whose window moves along the lanes' operand: each vector serves several results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tg_shape import Variable, upper

from ...nest.nest import Node, Root
from ...nest.windows import overlapping
from ..planner import UNROLL_MAX, Planner
from .panels import scattered
from .registers import FEW_ROWS, RegisterTile

ADDRESS_REGISTERS = 2
"""Vector registers that such a tile leaves to what compilers read ahead: with none to spare, they spill."""
WINDOW_TERMS = (4, 3, 2)
"""Terms of the reduction that are unrolled together: with more, there are more vectors than registers."""


@dataclass(frozen=True, slots=True)
class WindowTile:
    """A tile of ``rows`` by all results of ``window``, of which neighbours have vectors in common.

    Attributes:
      window: the output dimension along which the reduction's window moves.
      rows: results that multiply the same vectors with other scalars.
      terms: iterations of the innermost reduced dimension that are unrolled.
    """

    window: Root
    rows: int
    terms: int

    @property
    def results(self) -> RegisterTile:
        """The results that registers hold at a time, each a vector."""
        return RegisterTile(self.rows * upper(self.window.extent), 1)


def window_tile(planner: Planner, rows: Root, lanes: Root, vectors: Sequence[Node]) -> WindowTile | None:
    """A tile in which vectors are read once for several results and terms; None if there is none.

    It is legal where an output dimension and the innermost reduced one overlap in what the lanes read: result ``w``
    reads its term ``t`` at ``by * w + step * t``. Registers have to hold the accumulators, the distinct vectors and a
    scalar.
    """
    last = [r for r in planner.nest.roots.values() if r.reduce][-1]
    target = planner.target
    shared: dict[Variable, tuple[int, int]] = {}
    for load in (n for n in vectors if scattered(planner, n, lanes)):
        for near, far, factor in overlapping(load, planner.nest):
            if last.var in (near, far):
                shared |= {far: (factor, 1)} if near is last.var else {near: (1, factor)}
    for window in planner.rows:
        if window.var in shared and 2 <= upper(window.extent) <= UNROLL_MAX:
            width, (by, step) = upper(window.extent), shared[window.var]
            options = (
                WindowTile(window, count, terms) for count in range(FEW_ROWS, 1, -1) for terms in WINDOW_TERMS
                if upper(rows.extent) % count == 0 and upper(last.extent) % terms == 0
                and count * width * terms <= target.copies
                and count * width + (read := positions(width, by, terms, step)) + 1
                <= target.registers - ADDRESS_REGISTERS
                and read < width * terms
            )
            return next(options, None)
    return None


def positions(results: int, by: int, terms: int, step: int) -> int:
    """How many places some results read, each its terms ``step`` apart, if the results are ``by`` apart.

    >>> positions(3, 1, 4, 1), positions(3, 2, 4, 1), positions(3, 1, 2, 2)
    (6, 8, 5)
    """
    return len({by * result + step * term for result in range(results) for term in range(terms)})
