"""Updates: the dimensions whose iterations may meet in one element, so that they are done in their order."""

from __future__ import annotations

from tg_shape import Variable, coefficient, upper

from .nest import GATHERED, Nest, Store


def separate_roots(store: Store, nest: Nest) -> frozenset[Variable]:
    """The dimensions of an update that meet nowhere: two of their iterations never write one element.

    They are digits of the address, and so is the computed place: each step of one is beyond what the smaller ones reach
    together. An embedding's gradient is such an update: its features are side by side in each row, whichever rows the
    indices name. Where values are for distinct elements, every dimension is.
    """
    assert store.update is not None
    if store.update.distinct:
        return frozenset(store.roots)
    digits: list[tuple[int, int, Variable]] = []
    extents = {GATHERED: store.update.size, **{root: nest.roots[root].extent for root in store.roots}}
    for variable, extent in extents.items():
        step = coefficient(store.index, variable)
        if step is None:
            return frozenset()
        if step:
            digits.append((abs(step), upper(extent), variable))
    reach = 1
    for step, extent, _ in sorted(digits, key=lambda digit: digit[:2]):
        if step < reach:
            return frozenset()
        reach += step * (extent - 1)
    return frozenset(variable for _, _, variable in digits if variable is not GATHERED)


def ordered_roots(nest: Nest) -> frozenset[Variable]:
    """The dimensions of updates that are done in their order."""
    return frozenset(
        root for store in nest.stores if store.update is not None
        for root in frozenset(store.roots) - separate_roots(store, nest))
