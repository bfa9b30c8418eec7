"""Dimensions joined and cut: a nest over other dimensions, with every index in terms of these.

Neighbours that every access walks as one are always joined: where a loop over both is split at the inner one's extent,
the loops that there were are back. Where a dimension is cut is a decision (:mod:`tg_codegen.plan.cut_dimension`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tg_shape import Expr, Variable, sint, substitute, symbolic_stride, topological

from .nest import Axis, Nest, Node, NodeTable, Root, with_expressions
from .spec import Kind, NodeOp


def join_dimensions(nest: Nest) -> Nest:
    """Joins neighbouring dimensions that every access walks as one.

    ``out[i*B + j] = f(x[i*B + j])`` over i and j becomes one loop over ``i*B + j``.
    """
    changed = True
    while changed:
        changed = False
        for first, second in zip(nest.axes, nest.axes[1:], strict=False):
            joined = join_pair(nest, first, second)
            if joined is not None:
                nest, changed = joined, True
                break
    return nest


def join_pair(nest: Nest, outer: Axis, inner: Axis) -> Nest | None:
    """The nest with two dimensions made one, or None where an access or a symbolic extent forbids it."""
    if outer.kind is not inner.kind or not (isinstance(outer.extent, int) and isinstance(inner.extent, int)):
        return None
    a, b, width = outer.root, inner.root, inner.extent
    for store in nest.stores:
        if (a in store.roots) is not (b in store.roots):
            return None
    for node in nest.nodes():
        if node.op is NodeOp.REDUCE and (a in node.arg[1]) is not (b in node.arg[1]):
            return None
    if any(not walks_linearly(index, valid, a, b, width) for index, valid in accesses(nest)):
        return None
    extent = outer.extent * width
    joined = Root(Variable(f"{a.name}{b.name}", 0, extent - 1), extent, nest.roots[a].reduce)
    # every access walks them as one; the joined dimension keeps a's place among the roots
    return over_dimensions(nest, {a: (joined,), b: ()}, {a: 0, b: joined.var}, inner.name)


def walks_linearly(index: sint, valid: sint, a: Variable, b: Variable, width: int) -> bool:
    """Whether an access depends on a and b only through ``a*width + b``, linearly."""
    if isinstance(valid, Expr) and valid.variables() & {a, b}:
        return False
    if isinstance(index, int):
        return True
    outer, inner = symbolic_stride(index, a), symbolic_stride(index, b)
    return outer is not None and inner is not None and outer == inner * width


def accesses(nest: Nest) -> Iterator[tuple[sint, sint]]:
    """Indices and masks of a nest; 0 and 1 stand for those that something does not have."""
    for store in nest.stores:
        yield from store.accesses()
    for node in nest.nodes():
        if node.op is NodeOp.LOAD:
            yield node.arg[1], node.arg[2]
        elif node.op is NodeOp.INDEX:
            yield node.arg, 1
        elif node.op is NodeOp.SELECT:
            yield 0, node.arg


def quotients(nest: Nest) -> list[Expr]:
    """Quotients and remainders in a nest's accesses."""
    whole = dict.fromkeys(e for access in accesses(nest) for e in access if isinstance(e, Expr))
    return list(dict.fromkeys(e for top in whole for e in topological(top) if e.op in ("floordiv", "mod")))


def cut(nest: Nest, root: Root, width: int) -> Nest:
    """The nest with ``root`` in two: a part of ``width`` iterations, and what counts those parts."""
    count = int(root.extent) // width
    outer = Root(Variable(f"{root.var.name}o", 0, count - 1), count, root.reduce)
    inner = Root(Variable(f"{root.var.name}i", 0, width - 1), width, root.reduce)
    name = next(a.name for a in nest.axes if a.root is root.var)
    return over_dimensions(nest, {root.var: (outer, inner)}, {root.var: outer.var * width + inner.var}, name)


def over_dimensions(nest: Nest, into: Mapping[Variable, tuple[Root, ...]], swap: Mapping[Expr, sint], at: str) -> Nest:
    """The nest over other dimensions.

    Args:
      nest: its loops are those of whole dimensions.
      into: by what each dimension is replaced; the new ones stand at its place among the others.
      swap: the dimensions that go, in terms of the new ones.
      at: the loop whose place theirs take.
    """
    table = NodeTable()
    table.roots = {new.var: new for v, r in nest.roots.items() for new in into.get(v, (r,))}

    def to(expr: sint) -> sint:
        return substitute(expr, swap)

    def over(roots: tuple[Variable, ...]) -> tuple[Variable, ...]:
        return tuple(new.var for v in roots for new in into.get(v, (nest.roots[v],)))

    made: dict[Node, Node] = {}
    for node in nest.nodes():
        arg = with_expressions(node.op, node.arg, to)
        if node.op is NodeOp.REDUCE:
            arg = (arg[0], over(arg[1]))
        made[node] = table.make(node.op, node.dtype, tuple(made[s] for s in node.src), arg)
    stores = tuple(s.over(over(s.roots), made, to) for s in nest.stores)
    fresh = [new for roots in into.values() for new in roots]
    axes: list[Axis] = []
    for axis in nest.axes:
        if axis.name == at:
            axes += [Axis(r.var.name, r.var, 1, r.extent, Kind.REDUCE if r.reduce else Kind.LOOP) for r in fresh]
        elif axis.root not in into:
            axes.append(axis)
    return Nest(stores, nest.buffers, table.roots, tuple(axes))
