"""The launch: where a work-item stands among those that run a kernel, and which loops that decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tg_shape import Variable, sint

from ..ir.errors import EmitError
from ..machine.target import Target
from ..nest.launch_shape import group_shape, item_shape
from ..nest.nest import Nest
from ..nest.spec import FRAGMENT
from .symbols import Symbols


@dataclass(frozen=True, slots=True)
class Launch:
    """The indices of a work-item; none of all this on a CPU.

    Attributes:
      counters: by name, the counters of the loops that run across work-groups and work-items.
      items: the indices of a work-item in its group, and how many there are of each.
      warp: its number in its warp, where matrix instructions are done by warps.
    """

    counters: Mapping[str, sint] = field(default_factory=dict)
    items: tuple[tuple[Variable, int], ...] = ()
    warp: sint = 0

    def item(self) -> tuple[sint, int]:
        """A work-item's number in its group, and how many there are."""
        number: sint = 0
        count = 1
        for index, size in self.items:
            number = number + index * count
            count *= size
        return number, count


def launch(nest: Nest, target: Target, symbols: Symbols) -> Launch:
    """The launch of a nest.

    Raises:
      EmitError: if the loops do not fit into the indices that the target has.
    """
    try:
        layouts = {"gidx": group_shape(nest, target.global_max), "lidx": item_shape(nest, target.warp)}
    except ValueError as error:
        raise EmitError(str(error)) from None
    counters: dict[str, sint] = {}
    found: tuple[tuple[Variable, int], ...] = ()
    for prefix, layout in layouts.items():
        indices = [symbols.special(f"{prefix}{number}", size) for number, size in enumerate(layout.sizes)]
        for slot in layout.slots:
            counters.update((axis.name, layout.counter(axis, indices)) for axis in slot)
        if prefix == "lidx":
            found = tuple((index, int(size)) for index, size in zip(indices, layout.sizes, strict=True))
    warp = next((counters[axis.name] for axis in nest.axes if axis.kind in FRAGMENT and axis.name in counters), 0)
    return Launch(counters, found, warp)
