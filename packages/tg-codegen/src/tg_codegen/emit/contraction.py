"""Contractions: the operands of a matrix instruction, gathered from the loops that it stands for.

A reduction loop of kind CONTRACT is done by one instruction, together with the vector lanes of the outputs. Operands
are values at several places of the iteration space at once: the variable that stands for the lanes of the outputs is
replaced by one that runs over the operand's elements, whose place in the instruction's matrix tells lane and iteration.
"""

from __future__ import annotations

from dataclasses import dataclass

from tg_shape import Expr, Variable, sint

from ..ir.matrix import MatrixInstruction
from ..ir.uop import UOp
from ..nest.env import Env
from ..nest.matrix_products import instruction_for
from ..nest.nest import Axis, Kind, Node
from .access import Access
from .loops import Loops
from .scope import Context


@dataclass(frozen=True, slots=True)
class Contraction:
    """An instruction and its operands."""

    instruction: MatrixInstruction
    a: UOp
    b: UOp


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
