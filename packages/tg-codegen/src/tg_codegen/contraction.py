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
from .nest import Axis, Kind, Node
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
    node: Node, columns: Variable, rows: Variable | None, available: Iterable[MatrixInstruction]
) -> tuple[MatrixInstruction, Node, Node] | None:
    """The first instruction that does a reduction whose results are lanes along ``columns``, with its operands.

    Only the instruction's second operand depends on the columns, and, where several threads do it together, only the
    first on ``rows``.
    """
    pair = factors(node)
    if pair is None or (columns in pair[0].free) is (columns in pair[1].free):
        return None
    a, b = pair if columns in pair[1].free else reversed(pair)
    if rows is not None and (rows not in a.free or rows in b.free):
        return None
    wanted = (a.dtype, b.dtype, node.dtype, rows is not None)
    for found in available:
        if (found.a, found.b, found.acc, found.threads > 1) == wanted:
            return found, a, b
    return None


def contraction(
    emitter: Loops, node: Node, axis: Axis, env: Env, roots: tuple[Variable, ...], context: Context
) -> Contraction | None:
    """The instruction that does a loop of kind CONTRACT at ``env``; None if its terms must be taken one by one."""
    here = [a for a in emitter.nest.axes if a.root in node.free]
    rows = next((a for a in here if a.kind is Kind.FRAGMENT_ROWS), None)
    columns = next((a for a in here if a.kind in (Kind.VECTOR, Kind.FRAGMENT_COLUMNS) and a.name in env.axis), None)
    if columns is None:
        return None
    shape = (emitter.fixed(rows) if rows else 1, emitter.fixed(columns), emitter.fixed(axis))
    available = [m for m in emitter.target.matrices if m.shape == shape]
    found = instruction_for(node, columns.root, rows.root if rows else None, available)
    if found is None:
        return None
    instruction, a, b = found
    whole = env.open(axis.name, axis.root, axis.stride, emitter.several(f"{axis.name}_element", emitter.fixed(axis)))
    if emitter.guard(whole, roots) != 1:
        return None
    operands = []
    for operand, fragment, beside, number in ((a, 0, rows, 0), (b, 1, columns, 1)):
        elements = instruction.fragments[fragment]
        place = elements.place(emitter.several(f"{axis.name}_element", elements.count), emitter.warp)
        at = env if beside is None else moved(env, beside, place[number])
        at = at.open(axis.name, axis.root, axis.stride, place[1 - number])
        operands.append(emitter.value(operand, at, context).broadcast(elements.count))
    return Contraction(instruction, *operands)


def moved(env: Env, axis: Axis, value: sint) -> Env:
    """``env`` with an open loop at another place."""
    root = env.root[axis.root] + (value - env.axis[axis.name]) * axis.stride
    return Env({**env.root, axis.root: root}, {**env.axis, axis.name: value}, env.exact)


def swapped(env: Env, lane: Variable, value: sint) -> Env:
    """``env`` with the lanes at another place."""
    swap: dict[Expr, sint] = {lane: value}
    roots = {root: Access.at(at, swap) for root, at in env.root.items()}
    return Env(roots, {name: Access.at(at, swap) for name, at in env.axis.items()}, env.exact)
