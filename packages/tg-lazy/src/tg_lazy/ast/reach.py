"""Views that leave their buffer for some values of their variables, and so are checked before each launch.

``x[:, n]`` of four columns is right for ``n`` from 0 to 3, though the variable may go to 4 because ``x[:, :n]`` may.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from typing import NamedTuple

from tg_shape import Variable, View

from ..ops import Ops
from .nodes import LazyOp

_MOST_VARIABLES = 4  # of a view whose corners are all tried


class Doubt(NamedTuple):
    """A view that leaves its buffer for some values of its variables.

    Attributes:
      view: from indices to positions.
      size: elements of the buffer.
    """

    view: View
    size: int


def doubts(ast: LazyOp) -> tuple[Doubt, ...]:
    """The views of a kernel that leave their buffers for some values of the variables: at a corner of their ranges."""
    found: dict[Doubt, None] = {}
    for node in ast.toposort():
        if node.op not in (Ops.LOAD, Ops.GATHER, Ops.STORE, Ops.UPDATE):
            continue
        for tracker in (node.arg[1], node.arg[3]) if node.op is Ops.UPDATE else node.arg[1:2]:
            if tracker is not None and not tracker.numeric:
                doubt = Doubt(tracker.views[0], ast.arg[node.arg[0]].size)
                if not _certain(doubt):
                    found[doubt] = None
    return tuple(found)


def _certain(doubt: Doubt) -> bool:
    variables = sorted(doubt.view.variables(), key=lambda v: v.name)
    if len(variables) > _MOST_VARIABLES:
        return False
    corners = product(*((v.vmin, v.vmax) for v in variables))
    return all(_inside(doubt, dict(zip(variables, corner, strict=True))) is None for corner in corners)


def _inside(doubt: Doubt, values: Mapping[Variable, int]) -> tuple[int, int] | None:
    """The least and the greatest position, if one of them is outside of the buffer."""
    reach = doubt.view.reach(values)
    return None if reach is None or (reach[0] >= 0 and reach[1] < doubt.size) else reach


def check_reach(what: str, views: Iterable[Doubt], values: Mapping[Variable, int]) -> None:
    """Checks that every view stays inside its buffer for these values of the variables.

    Raises:
      IndexError: if one does not; ``what`` begins the message.
    """
    for doubt in views:
        reach = _inside(doubt, values)
        if reach is not None:
            told = ", ".join(f"{v.name} = {values[v]}" for v in sorted(doubt.view.variables(), key=lambda v: v.name))
            raise IndexError(
                f"{what}: {told} leads out of a buffer: elements {reach[0]} to {reach[1]} of {doubt.size}"
            )
