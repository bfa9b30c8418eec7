"""One compiled kernel for many that differ only in where they begin in memory.

A loop over the rows of a tensor makes a kernel for each row. The first is compiled as it is. When a second comes that
differs from it in nothing but the places where views begin, one is compiled that has variables there, and serves this
one and all that follow.
"""

from __future__ import annotations

from dataclasses import dataclass

from tg_lazy import LazyOp
from tg_lazy.ast.beginnings import beginning_at, beginnings, variable_of
from tg_lazy.graph.lazybuffer import graph_lock
from tg_shape import Variable

from ..device.compiled import Compiled, Interpreted
from .settings import BEAM

MOST_FAMILIES = 1 << 12
"""Families of kernels that a device remembers, at the most."""
VALUES_END = 1 << 31
"""What the values of variables are less than: kernels take them as integers of 32 bits."""


@dataclass(slots=True)
class Family:
    """Kernels that differ in where they begin.

    Attributes:
      first: where that one begins which came first.
      varying: the slots in which others began elsewhere.
    """

    first: dict[int, int]
    varying: frozenset[int] = frozenset()


def shared_form(device: Compiled, ast: LazyOp) -> tuple[LazyOp, dict[Variable, int]] | None:
    """A kernel with variables in the places where ``ast`` begins, and their values; None for the first one."""
    if isinstance(device, Interpreted) or BEAM.value:
        return None
    places = beginnings(ast)
    variables = {slot: found for slot in places if (found := variable_of(ast, slot)).vmax < VALUES_END}
    if not variables:
        return None
    places = {slot: places[slot] for slot in variables}
    whole = beginning_at(ast, variables)
    with graph_lock:
        family = device.families.get(whole)
        if family is None:
            while len(device.families) >= MOST_FAMILIES:
                del device.families[next(iter(device.families))]
            device.families[whole] = Family(places)
            return None
        family.varying |= {slot for slot, begin in places.items() if begin != family.first[slot]}
        varying = family.varying
    if places == family.first or not varying:
        return None
    form = beginning_at(ast, {slot: variables[slot] for slot in varying})
    return form, {variables[slot]: places[slot] for slot in varying}
