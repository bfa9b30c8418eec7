"""A part of the graph, cut out: what is computed from some nodes, on placeholders of its own.

The part can be scheduled by itself, again and again, whatever becomes of the graph that it was cut from. Where it uses
a value that does not depend on these nodes, that value becomes one more placeholder.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..ops import LEAVES, MEMORY, Ops
from .lazybuffer import LazyBuffer
from .operand_layout import results_side_by_side

_NEW = (Ops.CONTIGUOUS, Ops.COPY, Ops.CUSTOM)
"""Of what has memory of its own, those that fill it with what they compute."""


OFTEN = 32
"""How often a part is computed, at the least, for operands of its products to be copied into a better layout first:
reading and writing 64 K elements by threads in turn takes as long as what products of 32 rows gain in so many times."""


class Isolated(NamedTuple):
    """A part of the graph on placeholders of its own.

    Attributes:
      parameters: what stands for the nodes that it depends on, in their order.
      captured: the nodes outside whose values it uses, too; each a base.
      placeholders: what stands for these.
      outputs: what it computes: a base each, all different, that nothing else of the part is.
    """

    parameters: tuple[LazyBuffer, ...]
    captured: tuple[LazyBuffer, ...]
    placeholders: tuple[LazyBuffer, ...]
    outputs: tuple[LazyBuffer, ...]


def bases_first(roots: Iterable[LazyBuffer]) -> list[LazyBuffer]:
    """The bases that some nodes are computed from, their own included, each after its operands."""
    order: dict[LazyBuffer, None] = {}
    stack = [(root.base, False) for root in roots]
    while stack:
        node, ready = stack.pop()
        if node in order:
            continue
        if ready:
            order[node] = None
            continue
        stack.append((node, True))
        stack.extend((src.base, False) for src in node.srcs if src.base not in order)
    return list(order)


def depending(order: Iterable[LazyBuffer], on: Iterable[LazyBuffer]) -> set[LazyBuffer]:
    """Those of the bases, given after their operands, that depend on some of them."""
    found = set(on)
    for node in order:
        if any(src.base in found for src in node.srcs):
            found.add(node)
    return found


def within(order: Sequence[LazyBuffer], parameters: Iterable[LazyBuffer]) -> set[LazyBuffer]:
    """Those of the bases, given after their operands, that a part computes anew for other values of ``parameters``.

    These are what depends on them, and with it what it writes in place: memory that is not there yet, of which the part
    makes its own, so that it finds the same in it each time; and updates, which are nothing without the memory.
    """
    parameters = list(parameters)
    found = depending(order, parameters)
    while more := _written(order, found):
        parameters += more
        found = depending(order, parameters)
    return found


def _written(order: Sequence[LazyBuffer], inside: set[LazyBuffer]) -> list[LazyBuffer]:
    """What is not among the bases and is a part of what they write in place: versions of memory, and updates."""
    found: dict[LazyBuffer, None] = {}
    for node in order:
        if node.op is not Ops.ASSIGN or node not in inside:
            continue
        versions = [node.srcs[0].base]
        while versions[-1] not in inside and versions[-1].op in (Ops.ASSIGN, Ops.BUFFER_VIEW):
            versions.append(versions[-1].srcs[0].base)
        if versions[-1].op is not Ops.BUFFER:
            found.update(dict.fromkeys(versions))
        if node.srcs[1].op is Ops.UPDATE:
            found[node.srcs[1]] = None
    return [node for node in found if node not in inside]


def _remembered(order: Iterable[LazyBuffer]) -> set[LazyBuffer]:
    """Those of the bases that are not made of constants alone."""
    found: set[LazyBuffer] = set()
    for node in order:
        heavy = node.op in MEMORY or node.op in (Ops.REDUCE, Ops.GATHER)
        if heavy or any(src.base in found for src in node.srcs):
            found.add(node)
    return found


def _copies(
    order: Iterable[LazyBuffer], inside: set[LazyBuffer], outside: set[LazyBuffer]
) -> dict[tuple[LazyBuffer, LazyBuffer], LazyBuffer]:
    """What sums of products use from outside, by product and operand: in a better layout, where there is one."""
    found: dict[tuple[LazyBuffer, LazyBuffer], LazyBuffer] = {}
    for node in order:
        if node.op is not Ops.REDUCE or node not in inside:
            continue
        (product,) = node.srcs
        if product.op is not Ops.MUL or product.base is not product:
            continue
        for src in product.srcs:
            if src.base in outside and src.base not in inside:
                copy = results_side_by_side(product, node.arg[1], src)
                if copy is not None:
                    found[product, src] = copy
    return found


def isolate(outputs: Sequence[LazyBuffer], parameters: Sequence[LazyBuffer], times: int = 1) -> Isolated:
    """Cuts out what is computed from ``parameters``.

    Args:
      outputs: what is wanted.
      parameters: bases, without operands.
      times: how often it is going to be computed.

    Raises:
      ValueError: if memory that is there, or a parameter, is written in it, or a size is symbolic.
    """
    order = bases_first(outputs)
    inside = within(order, parameters)
    outside = _remembered(order)
    copies = _copies(order, inside, outside) if times >= OFTEN else {}
    of: dict[LazyBuffer, LazyBuffer] = {}
    captured: list[LazyBuffer] = []

    def stand_in(node: LazyBuffer) -> LazyBuffer:
        if node not in of:
            of[node] = LazyBuffer.empty(node.shape, node.dtype, node.device)
            captured.append(node)
        return of[node]

    places = tuple(LazyBuffer.empty(node.shape, node.dtype, node.device) for node in parameters)
    of.update(zip(parameters, places, strict=True))

    def operand(node: LazyBuffer, src: LazyBuffer) -> LazyBuffer:
        copy = copies.get((node, src))
        return seen(src) if copy is None else stand_in(copy.base).seen(copy.st)

    def seen(node: LazyBuffer) -> LazyBuffer:
        base = node.base
        if base not in of and base in outside and base not in inside:
            stand_in(base)
        new = of.get(base, base)
        return new if node is base else new.seen(node.st)

    for node in order:
        if not node.st.numeric:
            raise ValueError(f"a size is symbolic, {node.shape}")
        if node in of or node not in inside:
            continue
        if node.op is Ops.ASSIGN and (node.srcs[0].base in parameters or node.srcs[0].base not in inside):
            raise ValueError(f"memory of shape {node.srcs[0].base.shape} is written in place")
        of[node] = node.on([operand(node, src) for src in node.srcs])
    wanted: dict[LazyBuffer, None] = {}
    for output in outputs:
        new = seen(output)
        given = new.op in MEMORY and new.op not in _NEW
        wanted[new.clone() if new.base is not new or new.op in LEAVES or given or new in wanted else new] = None
    return Isolated(places, tuple(captured), tuple(of[node] for node in captured), tuple(wanted))
