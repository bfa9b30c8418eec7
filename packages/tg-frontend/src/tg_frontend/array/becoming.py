"""Making a tensor another one in place: another name, a view of what it was, a result without its graph."""

from __future__ import annotations

from weakref import ref

from tg_runtime import Device

from ..autograd.differentiation import MODE, Severed, Switch
from ..autograd.functions import Became, Copy, Same
from ..memory.home import Clock
from ..memory.realization import Moves
from .base import B
from .casts import to
from .writing import brings, lineage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def replace(x: B, other: B) -> B:
    """Makes this tensor another name of what ``other`` is: they share memory. Returns it.

    Gradients of it flow to ``other``, and no more to what it was computed from; what was computed from it before has
    none. A leaf that requires a gradient, or a parameter of a layer, stays the leaf that it is.

    Raises:
      ValueError: if the shapes differ.
      TypeError: if the dtypes differ.
      RuntimeError: if this tensor is such a leaf, and ``other`` was computed from what requires a gradient: detach it.

    Example:
      >>> from tg_frontend import Tensor
      >>> x, y = Tensor([1, 2]), Tensor([3, 4])
      >>> x.replace(y)
      Tensor([3, 4])
    """
    if other.shape != x.shape:
        raise ValueError(f"replace: a tensor of shape {other.shape} for one of shape {x.shape}")
    if other.dtype is not x.dtype:
        raise TypeError(f"replace: a tensor of {other.dtype.name} for one of {x.dtype.name}")
    if other is x:
        return x
    _ = x.lazydata, other.lazydata  # and with them the graphs of the newest versions
    home, brought = other._memory(), brings(other)
    stays = x._ctx is None and (x._wants_grad is True or x._parameter)
    if stays and brought and other._ctx is not None:
        raise RuntimeError(
            f"replace: a leaf of shape {x.shape} that wants a gradient is no name of what was computed; detach() that"
        )
    if not stays:
        sever(x)
        x._wants_grad = None if other._wants_grad is None else False
        if brought:
            named = other._apply(Same())
            x._ctx, x._wants_grad = named._ctx, named._wants_grad
    x._lazy, x._home, x._place, x._cut = other.lazydata, home, other._place, other._cut
    Moves.number += 1
    return x


def sever(x: B) -> None:
    """Cuts a tensor off what it was computed from: functions that were applied to it before have no gradient."""
    if x._ctx is not None and (x._ctx.wanted or x._ctx.learnt):
        Clock.now += 1
        x._severed, Severed.any = Clock.now, True
    x._ctx = None


def adopt(x: B, other: B) -> None:
    """Takes the elements of ``other``, which are copied when one of the two is written."""
    x._let_go()
    x._lazy, x._cut = other.lazydata, None
    x._part()
    Moves.number += 1


def become(x: B, view: Callable[[B], B], what: str) -> B:
    """Makes this tensor a view of what it was, in the same memory. Returns it.

    Args:
      view: makes the view of a tensor.

    Raises:
      RuntimeError: if this tensor is a leaf that requires a gradient.
    """
    if x._wish and x._ctx is None and MODE.recording:
        raise RuntimeError(f"{what}: a leaf of shape {x.shape} that requires a gradient stays as it is")
    line = lineage(x)
    before = x._wrap(x.lazydata, x._wish)
    before._ctx, before._home, before._place, before._cut = x._ctx, x._home, x._place, x._cut
    before._severed = getattr(x, "_severed", 0)
    with Switch(MODE, "recording", before._ctx is not None):
        after = view(before)
        x._lazy, x._home, x._place, x._cut = after.lazydata, after._home, after._place, after._cut
        if line.owner is not None and line.owner() is x:
            line.owner = ref(before)
        x._ctx = None
        if after._ctx is not None:
            Clock.now += 1
            became = Became()
            x._ctx = after._apply(became)._ctx
            became.before, became.since = before, Clock.now
    Moves.number += 1
    return x


def to_(x: B, device: str | None) -> B:
    """Moves this tensor, and its gradient, to another device. Returns it.

    Gradients of what was computed flow back to the device that it comes from.

    Raises:
      UnknownDevice: if no package offers such a device; the message lists what there is.
      DeviceUnavailable: if this machine lacks what the device needs.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2]).to_("NUMPY").device
      'NUMPY'
    """
    name = Device.canonicalize(device)
    if name != x.device:
        Device[name]
        if x._ctx is None:
            x.lazydata = x.lazydata.copy_to(name)
        else:
            become(x, lambda before: before._apply(Copy(name)), "to_")
        if x.grad is not None:
            rows = x.grad._row_sparse()
            x.grad = to(x.grad, name) if rows is None else x._value(rows.copy_to(name))
    return x
