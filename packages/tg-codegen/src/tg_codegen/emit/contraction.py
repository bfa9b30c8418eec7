"""Contractions: the operands of a matrix instruction, gathered from the loops that it stands for.

A reduction loop of kind CONTRACT is done by one instruction, together with the vector lanes of the outputs, or with
those of the same reduction. Operands are values at several places of the iteration space at once: the variable that
stands for the lanes is replaced by one that runs over the operand's elements, whose place in the instruction's matrix
tells lane and iteration.
"""

from __future__ import annotations

from dataclasses import dataclass

from tg_shape import Variable, coefficient, sint

from ..ir.errors import EmitError
from ..ir.matrix import MatrixInstruction
from ..ir.uop import UOp
from ..nest.env import Env
from ..nest.matrix_products import instruction_for, paired_instruction_for
from ..nest.nest import Axis, Node
from ..nest.spec import Kind, NodeOp
from .site import Site
from .space import fixed
from .vectors import woven
from .whole import Whole


@dataclass(frozen=True, slots=True)
class Contraction:
    """An instruction and its operands."""

    instruction: MatrixInstruction
    a: UOp
    b: UOp


def contraction(
    whole: Whole, node: Node, axis: Axis, env: Env, roots: tuple[Variable, ...], site: Site
) -> Contraction | None:
    """The instruction that does a loop of kind CONTRACT at ``env``; None if its terms must be taken one by one.

    Raises:
      EmitError: if it is one of tile registers, and an operand is not packed as it wants it.
    """
    here = [a for a in whole.nest.axes if a.root in node.free]
    rows = next((a for a in here if a.kind is Kind.FRAGMENT_ROWS), None)
    columns = next((a for a in here if a.kind in (Kind.VECTOR, Kind.FRAGMENT_COLUMNS) and a.name in env.axis), None)
    beside = [a for a in whole.nest.axes if a.kind is Kind.LANES and a.root is axis.root]
    terms = next((a for a in beside if a.name in env.axis), None)
    if terms is not None:
        rows = columns = terms
    if columns is None:
        return None
    depth = next((a for a in whole.nest.axes if a.kind is Kind.DEPTH and a.root is axis.root), None)
    side_by_side = fixed(axis)
    count = side_by_side * (fixed(depth) if depth else 1)
    shape = (fixed(rows) if rows else 1, fixed(columns), count)
    available = [m for m in whole.target.matrices if m.shape == shape]
    if terms is not None:
        found = paired_instruction_for(node, available)
    else:
        found = instruction_for(node, columns.root, rows.root if rows else None, available)
    if found is None:
        return None
    instruction, a, b = found
    element = whole.symbols.several(f"{axis.name}_element", count)

    def at_term(env: Env, term: sint) -> Env:
        if depth is None:
            return env.open(axis.name, axis.root, axis.stride, term)
        env = env.open(axis.name, axis.root, axis.stride, term % side_by_side)
        return env.open(depth.name, depth.root, depth.stride, term // side_by_side)

    inside = whole.space.guard(at_term(env, element), roots) == 1
    if instruction.tiled:
        # copies of loads have zeros beyond the last term; what else is packed may have anything there
        if not all(factor in whole.staged and (inside or factor.op is NodeOp.LOAD) for factor in (a, b)):
            raise EmitError(f"{axis.name}: tile registers multiply what is packed; if terms are left over, loads alone")
    elif not inside:
        return None
    operands = []
    apart = instruction.threads == 1 and not (instruction.tiled or terms) and in_rows(whole, b, columns, axis)
    for operand, fragment, lanes, number in ((a, 0, rows, 0), (b, 1, columns, 1)):
        elements = instruction.fragments[fragment]
        if apart and operand is b:
            operands.append(woven([
                whole.value(b, env.open(axis.name, axis.root, axis.stride, term), site).broadcast(fixed(columns))
                for term in range(fixed(axis))]))
            continue
        place = elements.place(whole.symbols.several(f"{axis.name}_element", elements.count), whole.launch.warp)
        at = env if lanes is None else moved(env, lanes, place[number])
        at = at_term(at, place[1 - number])
        operands.append(whole.value(operand, at, site).broadcast(elements.count))
    return Contraction(instruction, *operands)


def in_rows(whole: Whole, node: Node, columns: Axis, axis: Axis) -> bool:
    """Whether an operand is read from where its lanes are neighbours in memory, and the terms of one lane lie apart."""
    loads = [n for n in node.toposort() if n.op is NodeOp.LOAD and columns.root in n.free]
    return bool(loads) and not any(n in whole.staged for n in node.toposort()) and all(
        coefficient(load.arg[1], columns.root) == 1 and coefficient(load.arg[1], axis.root) != 1 for load in loads)


def moved(env: Env, axis: Axis, value: sint) -> Env:
    """``env`` with an open loop at another place."""
    root = env.root[axis.root] + (value - env.axis[axis.name]) * axis.stride
    return Env({**env.root, axis.root: root}, {**env.axis, axis.name: value}, env.exact, env)
