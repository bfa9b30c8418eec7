"""Operands of products in 16 bits: what is read again and again is converted once, in whole vectors.

A vector of halves takes two instructions to become one of floats, and a scalar that all lanes share as many; a tile of
rows would spend as much on them as on its multiply-adds. So what is packed is packed as floats, and the rows of a tile
are converted before it, from where they lie.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from tg_dtype import dtypes
from tg_lazy import Ops
from tg_shape import coefficient, upper

from ...ir.matrix import MatrixInstruction
from ...machine.target import Target
from ...nest.nest import Axis, Nest, Node
from ...nest.scratch import stages_fit
from ...nest.spec import SERIAL_OUTPUT, Kind
from ...nest.windows import overlapping
from ..actions import Convert, LoopAction, loads_of, reductions_of


def gains(instruction: MatrixInstruction, target: Target) -> bool:
    """Whether an instruction of one thread takes less than the multiply-adds of its terms, of converted factors.

    >>> from tg_codegen.ir.matrix import AVX512_BF16
    >>> from tg_codegen.machine.costs import CPUCosts
    >>> [gains(AVX512_BF16, Target(cpu=CPUCosts(pair_product=cycles))) for cycles in (0.5, 2.0)]
    [True, False]
    """
    return target.cpu.product(instruction.a) < instruction.shape[2] / target.cpu.units


def conversion(nest: Nest, load: Node) -> Node | None:
    """What makes a wider float of each element of a load, if that is all that is made of it."""
    users = [n for n in nest.nodes() if load in n.src]
    if len(users) != 1 or users[0].op is not Ops.CAST or not dtypes.is_float(load.dtype):
        return None
    return users[0] if dtypes.is_float(users[0].dtype) and users[0].dtype.itemsize > load.dtype.itemsize else None


def kept_bytes(nest: Nest, load: Node) -> int:
    """Bytes of an element of a load where it is packed: of what it is converted to, if it is.

    Windows that overlap are packed by coordinate, as they are.
    """
    found = None if overlapping(load, nest) else conversion(nest, load)
    return (load if found is None else found).dtype.itemsize


def row_conversions(nest: Nest, target: Target) -> list[LoopAction]:
    """Converts the rows' operand of a product: as much at a time as stays in the second-level cache.

    Its elements have to be neighbours along the reduction, or along the rows of a tile.
    """
    reductions = reductions_of(nest)
    lanes = {a.root for a in nest.axes if a.kind is Kind.VECTOR}
    if len(reductions) != 1 or not lanes or any(a.kind is Kind.CONTRACT for a in nest.axes):
        return []
    found: list[LoopAction] = []
    node, staged = reductions[0], {stage.node for stage in nest.stages}
    for number, load in enumerate(loads_of(nest)):
        cast = conversion(nest, load)
        if cast is None or {cast, load} & staged or lanes & load.free or not isinstance(load.arg[2], int):
            continue
        if load not in node.toposort() or not load.free >= set(node.arg[1]) or overlapping(load, nest):
            continue
        for around, inner in levels(nest, load):
            action = Convert(number, around)
            if by_vectors(inner, load, cast, target) and stages_fit(action.apply(nest), target):
                found.append(action)
                break
    return found


def levels(nest: Nest, load: Node) -> Iterator[tuple[str | None, list[Axis]]]:
    """Where a load may be kept: in which loop (``None``: at the top), and the loops inside, outermost place first.

    A thread keeps only what it wants itself.
    """
    axes = [a for a in nest.axes if a.root in load.free]
    around = [a for a in axes if a.kind in SERIAL_OUTPUT and upper(a.extent) > 1]
    if not any(a.kind is Kind.THREAD for a in around):
        yield None, axes
    for number, axis in enumerate(around):
        yield axis.name, [a for a in axes if a not in around[: number + 1]]


def by_vectors(inner: Sequence[Axis], load: Node, cast: Node, target: Target) -> bool:
    """Whether the elements that some loops read are converted in vectors, and stay near until they are used."""
    if any(not isinstance(axis.extent, int) for axis in inner):
        return False
    reach, costs = 1, target.cpu
    steps = [((coefficient(load.arg[1], a.root) or 0) * a.stride, upper(a.extent)) for a in inner]
    for step, extent in sorted(steps):
        if step == reach:
            reach *= extent
    vectors = -(-reach * cast.dtype.itemsize // target.vector_bytes)
    nbytes = prod(extent for _, extent in steps) * cast.dtype.itemsize
    fewer = vectors * (costs.conversion + costs.store) < reach * costs.conversion
    return fewer and nbytes <= target.resident_bytes
