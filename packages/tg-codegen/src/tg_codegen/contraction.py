"""Contractions: the operands of a matrix instruction, gathered from the loops that it stands for.

A reduction loop of kind CONTRACT is done by one instruction, together with the vector lanes of the outputs. Operands
are values at several places of the iteration space at once: the variable that stands for the lanes of the outputs is
replaced by one that runs over the operand's elements, whose place in the instruction's matrix tells lane and iteration.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tg_dtype import DType, dtypes
from tg_lazy import Ops
from tg_shape import Expr, Variable, sint

from .access import Access
from .loops import Loops
from .matrix import MatrixInstruction
from .nest import Axis, Node
from .scope import Context, Env
from .uop import UOp


@dataclass(frozen=True, slots=True)
class Contraction:
    """An instruction and its operands."""

    instruction: MatrixInstruction
    a: UOp
    b: UOp


def factors(node: Node) -> tuple[Node, Node] | None:
    """What a sum of products multiplies, before it is widened; None if the reduction is not such a sum."""
    if node.arg[0] is not Ops.ADD or node.src[0].op is not Ops.MUL:
        return None
    narrow = tuple(s.src[0] if s.op is Ops.CAST and exact(s.src[0].dtype, s.dtype) else s for s in node.src[0].src)
    return narrow[0], narrow[1]


def exact(narrow: DType, wide: DType) -> bool:
    """Whether every number of one dtype is one of the other, so that a product may be taken before or after."""
    if dtypes.is_float(narrow):
        return dtypes.is_float(wide) and narrow.itemsize < wide.itemsize
    signs = dtypes.is_unsigned(narrow) or not dtypes.is_unsigned(wide)
    return dtypes.is_int(narrow) and dtypes.is_int(wide) and narrow.itemsize < wide.itemsize and signs


def instruction_for(
    node: Node, lanes: Variable, available: Iterable[MatrixInstruction]
) -> tuple[MatrixInstruction, Node, Node] | None:
    """The first instruction that does a reduction whose results are lanes along ``lanes``, with its operands.

    Only one of the two operands depends on the lanes; it is the instruction's second.
    """
    pair = factors(node)
    if pair is None or (lanes in pair[0].free) is (lanes in pair[1].free):
        return None
    a, b = pair if lanes in pair[1].free else reversed(pair)
    for found in available:
        if (found.a, found.b, found.acc) == (a.dtype, b.dtype, node.dtype):
            return found, a, b
    return None


def contraction(
    emitter: Loops, node: Node, axis: Axis, env: Env, roots: tuple[Variable, ...], context: Context
) -> Contraction | None:
    """The instruction that does a loop of kind CONTRACT at ``env``; None if its terms must be taken one by one."""
    lane = emitter.lane_of(*(env.root[root] for root in node.free))
    vectors = [root for root in node.free if lane is not None and depends(env.root[root], lane)]
    if lane is None or len(vectors) != 1:
        return None
    found = instruction_for(node, vectors[0], emitter.target.matrices)
    if found is None:
        return None
    instruction, a, b = found
    if (emitter.lanes[lane], emitter.fixed(axis)) != instruction.shape[1:]:
        return None
    whole = env.open(axis.name, axis.root, axis.stride, emitter.several(f"{axis.name}_element", emitter.fixed(axis)))
    if emitter.guard(whole, roots) != 1:
        return None
    operands = []
    for operand, fragment, row in ((a, instruction.fragments[0], 1), (b, instruction.fragments[1], 0)):
        number = emitter.several(f"{axis.name}_element", fragment.count)
        place = fragment.place(number)
        here = env if row else swapped(env, lane, place[1])
        here = here.open(axis.name, axis.root, axis.stride, place[row])
        operands.append(emitter.value(operand, here, context).broadcast(fragment.count))
    return Contraction(instruction, *operands)


def swapped(env: Env, lane: Variable, value: sint) -> Env:
    """``env`` with the lanes at another place."""
    swap: dict[Expr, sint] = {lane: value}
    roots = {root: Access.at(at, swap) for root, at in env.root.items()}
    return Env(roots, {name: Access.at(at, swap) for name, at in env.axis.items()}, env.exact)


def depends(value: sint, variable: Variable) -> bool:
    """Whether a value depends on a variable."""
    return isinstance(value, Expr) and variable in value.variables()
