"""Kernels that write images: a texel is written whole, so its four channels are the lanes of a vector."""

from __future__ import annotations

from tg_dtype import ImageDType
from tg_shape import Variable, coefficient, sint

from ..ir.errors import EmitError
from ..machine.memory import CHANNELS
from ..nest.nest import Kind, Nest, Store
from .actions import Action, Mark, Split

ITEMS = 16  # work-items in a group: drivers give images to small tiles


def writes_images(nest: Nest) -> bool:
    """Whether an output of the kernel is an image."""
    return any(_is_image(nest, store.slot) for store in nest.stores)


def spread_texels(nest: Nest) -> list[Action]:
    """Actions for a nest of :func:`whole_texels`: a work-item writes a texel, and reduces alone."""
    actions: list[Action] = []
    loops = [a for a in nest.axes if a.kind is Kind.LOOP and not nest.roots[a.root].reduce]
    for axis in sorted(loops, key=lambda a: -_most(a.extent))[:3]:
        if axis.name == loops[-1].name and _most(axis.extent) > ITEMS:
            actions.append(Split(axis.name, ITEMS, Kind.LOCAL.name))
        actions.append(Mark(axis.name, Kind.GLOBAL.name))
    return actions


def _most(extent: sint) -> int:
    return extent if isinstance(extent, int) else extent.vmax


def whole_texels(nest: Nest) -> Nest:
    """The nest with the channels of written images in lanes; as it is where it writes no image.

    Raises:
      EmitError: the elements that it writes are not whole texels, or one image is both read and written.
    """
    roots = dict.fromkeys(_lanes(nest, store) for store in nest.stores if _is_image(nest, store.slot))
    if len(roots) > 1:
        raise EmitError("a kernel writes images whose channels lie along different dimensions")
    for root in roots:
        axis = nest.of_root(root)[0]
        nest = Split(axis.name, CHANNELS, Kind.VECTOR.name).apply(nest)
    return nest


def _is_image(nest: Nest, slot: int) -> bool:
    return isinstance(nest.buffers[slot].dtype, ImageDType)


def _lanes(nest: Nest, store: Store) -> Variable:
    """The dimension along which a store's elements are the channels of texels."""
    name = nest.buffers[store.slot].dtype.name
    if any(n.op.name in ("LOAD", "GATHER") and n.arg[0] == store.slot for n in nest.nodes()):
        raise EmitError(f"{name} is both read and written by one kernel")
    for root in store.roots:
        extent = nest.roots[root].extent
        if coefficient(store.index, root) != 1 or not isinstance(extent, int) or extent % CHANNELS:
            continue
        others = [coefficient(store.index, other) for other in store.roots if other is not root]
        first = 0 if isinstance(store.index, int) else store.index.substitute(dict.fromkeys(store.roots, 0))
        if not isinstance(first, int):
            continue
        if all(step is not None and step % CHANNELS == 0 for step in others) and first % CHANNELS == 0:
            if isinstance(store.valid, int) or root not in store.valid.variables():
                return root
    raise EmitError(f"{name} is written by whole texels of {CHANNELS} channels: the elements stored are none")
