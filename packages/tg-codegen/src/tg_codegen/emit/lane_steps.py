"""Steps of computed indices from lane to lane: where they are 1, a gather's lanes read neighbours, in one load."""

from __future__ import annotations

from collections.abc import Mapping

from tg_dtype import DType, dtypes
from tg_lazy import Ops
from tg_shape import Expr, Variable, bounds_of, sint

from ..nest.env import Env
from ..nest.nest import Node
from ..nest.spec import NodeOp
from .index import lane_step
from .place_sums import place_sum

FAR = 1 << 29
"""By how much an index is moved, at the least, that may be inside of a buffer although it wrapped around before."""


def step_of(node: Node, env: Env, lane: Variable, lanes: int) -> int | None:
    """By how much an index grows from each of ``lanes`` lanes to the next; None if that is not known.

    What may wrap around from one lane to the next within a buffer, as 255 + 1 does in 8 bits, is not known. In signed
    integers of 32 bits and more, what wraps around is outside of every buffer on both sides. Not so what wrapped around
    in 32 bits, was widened, and is moved far after that: of -2**31 + 2**31 the next lane down is 2**32 - 1.
    """
    steps: dict[Node, int | None] = {}
    moved: dict[Node, int] = {}  # by how much, at the most, what may have wrapped around before it was widened
    for here in node.toposort():
        src = [steps[s] for s in here.src]
        step: int | None = None
        if all(lane not in value.variables() for value in map(env.root.__getitem__, here.free)
               if isinstance(value, Expr)):
            step = 0
        elif here.op is NodeOp.INDEX:
            if fits(here.arg, here.dtype):
                step = lane_step(env.of(here.arg), lane, lanes)
        elif not dtypes.is_int(here.dtype) or dtypes.is_unsigned(here.dtype) or here.dtype.itemsize < 4:
            pass
        elif here.op is Ops.CAST and dtypes.is_int(here.src[0].dtype):
            step = src[0]
        elif here.op in (Ops.ADD, Ops.SUB) and src[0] is not None and src[1] is not None:
            step = src[0] + src[1] if here.op is Ops.ADD else src[0] - src[1]
        elif here.op is Ops.MUL:
            for one, other in ((0, 1), (1, 0)):
                if here.src[one].op is NodeOp.CONST and src[other] is not None:
                    step = int(here.src[one].arg) * src[other]  # type: ignore[operator]
        if step:
            far = moved_by(here, moved)
            if far is not None:
                moved[here] = far
                step = step if far < FAR else None
        steps[here] = step
    return steps[node]


def moved_by(node: Node, moved: Mapping[Node, int]) -> int | None:
    """By how much a node's value was moved after it wrapped around in 32 bits and was widened; None if it was not.

    Args:
      node: an integer that is not the same for all lanes.
      moved: the same of its operands, where there is such a number.
    """
    if node.op is Ops.CAST:
        (source,) = node.src
        if node.dtype.itemsize < source.dtype.itemsize:
            return None  # the lanes follow one another again in fewer bits
        wider = node.dtype.itemsize > source.dtype.itemsize and source.op is not NodeOp.INDEX
        return moved.get(source, 0 if wider else None)
    around = [source for source in node.src if source in moved]
    if not around:
        return None
    if node.op is Ops.MUL or len(around) > 1:
        return FAR
    (other,) = (source for source in node.src if source is not around[0])
    number = place_sum(other, {})
    return FAR if number is None else moved[around[0]] + max(map(abs, number.bounds({})))


def fits(expr: sint, dtype: DType) -> bool:
    """Whether all values of an expression are values of an integer type."""
    low, high = bounds_of(expr)
    return dtypes.is_int(dtype) and dtypes.min(dtype) <= low and high <= dtypes.max(dtype)
