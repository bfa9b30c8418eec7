"""Images are written by whole texels: the four channels of a texel are the lanes of a vector from the beginning."""

from __future__ import annotations

from tg_dtype import ImageDType
from tg_shape import Variable, coefficient, substitute

from ..ir.errors import EmitError
from ..machine.memory import CHANNELS
from .nest import Nest, Store
from .spec import READS, Kind


def writes_images(nest: Nest) -> bool:
    """Whether an output of the kernel is an image."""
    return any(is_image(nest, store.slot) for store in nest.stores)


def is_image(nest: Nest, slot: int) -> bool:
    """Whether a buffer is an image."""
    return isinstance(nest.buffers[slot].dtype, ImageDType)


def with_texels(nest: Nest) -> Nest:
    """The nest with the channels of written images in lanes; as it is where it writes no image.

    Raises:
      EmitError: if the elements that it writes are not whole texels, or one image is both read and written.
    """
    roots = dict.fromkeys(channels(nest, store) for store in nest.stores if is_image(nest, store.slot))
    if len(roots) > 1:
        raise EmitError("a kernel writes images whose channels lie along different dimensions")
    for root in roots:
        nest = nest.split(nest.of_root(root)[0], CHANNELS, Kind.VECTOR)
    return nest


def channels(nest: Nest, store: Store) -> Variable:
    """The dimension along which a store's elements are the channels of texels.

    Raises:
      EmitError: if there is none, or the image is read as well.
    """
    name = nest.buffers[store.slot].dtype.name
    if any(n.op in READS and n.arg[0] == store.slot for n in nest.nodes()):
        raise EmitError(f"{name} is both read and written by one kernel")
    for root in store.roots:
        extent = nest.roots[root].extent
        if coefficient(store.index, root) != 1 or not isinstance(extent, int) or extent % CHANNELS:
            continue
        others = [coefficient(store.index, other) for other in store.roots if other is not root]
        first = substitute(store.index, dict.fromkeys(store.roots, 0))
        if not isinstance(first, int):
            continue
        if all(step is not None and step % CHANNELS == 0 for step in others) and first % CHANNELS == 0:
            if isinstance(store.valid, int) or root not in store.valid.variables():
                return root
    raise EmitError(f"{name} is written by whole texels of {CHANNELS} channels: the elements stored are none")
