"""A kernel whose stores run part after part on blocks of rows: a nest for each part, and the loops around them all."""

from __future__ import annotations

from dataclasses import dataclass

from tg_shape import Variable

from .nest import Nest

PART = "part "
"""How a line of a kernel's log begins that says what was done to one of its parts."""


@dataclass(frozen=True, slots=True)
class RowNest:
    """A kernel whose stores run part after part on blocks of rows.

    Attributes:
      whole: the kernel as one nest, of which the parts are made.
      shared: the outer dimensions and their extents; the last one counts blocks.
      block: rows in a block.
      parts: one nest for each store.
      scratch: the number of elements of each internal slot's block.
      last: the same parts for the rows that are left over; none where blocks divide the rows.
    """

    whole: Nest
    shared: tuple[tuple[Variable, int], ...]
    block: int
    parts: tuple[Nest, ...]
    scratch: dict[int, int]
    last: tuple[Nest, ...] = ()

    @property
    def log(self) -> tuple[str, ...]:
        """The actions applied, part by part."""
        named = [*((str(n), part) for n, part in enumerate(self.parts)),
                 *((f"{n} of the last rows", part) for n, part in enumerate(self.last))]
        return tuple(f"{PART}{name}: {action}" for name, part in named for action in part.log)
