"""Elements of a tensor on the host: memory, arrays, lists, numbers."""

from __future__ import annotations

from tg_dtype import ConstType, dtypes, interop
from tg_lazy import LazyBuffer
from tg_lazy.ops import LEAVES
from tg_runtime import capturing
from tg_shape import prod
from tg_shape.view import contiguous_strides

from ..host import transfer
from ..memory import disk
from ..memory.realization import realize_all
from .base import B
from .lending import check_lendable

_SPARE = 2  # times as many elements as are read are computed for good, if they are what they are seen in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray


def host_memory(x: B) -> LazyBuffer:
    """This tensor's elements, realised and row-major.

    Raises:
      ValueError: if the shape is symbolic and bound to no value.
    """
    if capturing():
        raise RuntimeError(
            f"a tensor of shape {x.shape} was read inside of a function while TinyJit records it; "
            "a replay would not read it again: return it instead"
        )
    x._ints()  # a size that is bound to no value must be named before anything is computed
    lazy = x.lazydata
    if not (lazy.base.is_realized and lazy.st.contiguous):
        _cut_off(x)
        if transfer.runs_nothing(lazy.device):
            lazy = lazy.copy_to(disk.HOST)
        else:
            kept = _kept(x)
            if kept is not None:
                realize_all([kept])
                lazy = x.lazydata
        lazy = lazy.contiguous()
        realize_all([lazy])
    return lazy


def host_bytes(x: B) -> memoryview:
    """The elements' bytes, row-major, computed now: they are copied or used up at once.

    Those of a view that are a run of the host's memory are there; nothing is computed or copied for it.
    """
    shape, lazy = x._ints(), x.lazydata
    begin = None if capturing() or not transfer.is_addressable(lazy.device) else _begin(lazy, shape)
    if begin is None:
        return transfer.download(host_memory(x), shape)
    _cut_off(x)
    return transfer.download(lazy, shape, begin)


def _begin(lazy: LazyBuffer, shape: tuple[int, ...]) -> int | None:
    """Where in memory the elements of a view begin that are a run of it; None for those of others."""
    storage = lazy.base.storage
    if storage is None or not lazy.base.is_realized or storage.dtype is not lazy.dtype or len(lazy.st.views) != 1:
        return None
    view = lazy.st.views[0]
    whole = zip(view.shape, view.strides, contiguous_strides(view.shape), strict=True)
    if view.mask is not None or view.shape != shape or any(n != 1 and step != one for n, step, one in whole):
        return None
    return view.offset if isinstance(view.offset, int) else None


def _cut_off(x: B) -> None:
    """Lets go of what a tensor was computed from, unless a gradient may flow there once it was read."""
    if x._ctx is not None and not (x._ctx.lasting or x._ctx.learnt):
        x._let_go()


def is_at_hand(x: B) -> bool:
    """Whether the host can read the elements, and nothing is computed or waited for: what can be checked, is.

    They are in memory of the host, and those of a call: not of one that is recorded, nor one of many in ``vmap``.
    """
    lazy = x.lazydata
    at_home = lazy.device.partition(":")[0] in (disk.HOST, "NUMPY")
    return at_home and not capturing() and lazy.base.is_realized and lazy.shape == x.shape


def _kept(x: B) -> LazyBuffer | None:
    """What of a value that is not in memory yet is computed for good: the next reading finds it. None if nothing.

    A part of something larger is computed by itself, again at each reading: the rest may never be wanted.
    """
    lazy, home = x.lazydata, x._home
    base = lazy.base
    if base.is_realized or base.op in LEAVES:
        return None
    apart = home is not None and not home.direct  # seen in a node of others
    held = home.root.shape if home is not None and apart else base.shape
    if not all(isinstance(dim, int) for dim in (*held, *lazy.shape)) or prod(held) > _SPARE * prod(lazy.shape):
        return None
    if home is not None and apart:
        home.settle()
    return x.lazydata.base


def _elements(x: B) -> memoryview:
    """What ``x.data()`` gives: see :func:`~tg_frontend.array.elements.data`."""
    x._lend()
    lazy = host_memory(x)
    flat = transfer.download(lazy, x._ints())
    code, shape = lazy.dtype.fmt, x._ints()
    if code is None or code == "e":
        return flat
    return transfer.shaped(flat, code, shape)


def numpy(x: B) -> NDArray[Any]:
    """The elements as a numpy array of its own; float32 for the floats that numpy has not.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 2], [3, 4]]).numpy().tolist()
      [[1, 2], [3, 4]]
    """
    if x.dtype.kind == "float" and x.dtype.fmt is None:
        return numpy(x._wrap(x.lazydata.cast(dtypes.float32)))
    return transfer.as_array(host_bytes(x), x.dtype, x._ints()).copy()


def __array__(x: B, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
    """For ``numpy.asarray``: the memory itself where numpy can use it (see ``__dlpack__``), else a copy.

    ``numpy.array``, which asks for ``copy=True``, gets a copy.

    Raises:
      RuntimeError: if the tensor requires a gradient, which would be lost: ``detach()`` it, or call ``numpy()``.
      ValueError: if ``copy=False``, and the device's memory or the dtype is none that numpy can use.
    """
    check_lendable(x, "__array__")
    name = interop.to_numpy_name(x.dtype)
    shared = name is not None and transfer.is_addressable(x.device) and (dtype is None or name == str(dtype))
    if copy is True or (copy is None and not shared):
        out = numpy(x)
        return out if dtype is None else out.astype(dtype)
    x._lend()
    lazy = host_memory(x)
    if not shared:
        raise ValueError(f"__array__: a tensor of {x.dtype.name} on {x.device} as {dtype or name} is a copy")
    return transfer.as_array(transfer.download(lazy, x._ints()), lazy.dtype, x._ints())


def nested(x: B) -> Any:
    """The elements as nested lists, computed now."""
    return transfer.nest(transfer.unpack(host_bytes(x), x.dtype), x._ints())


def tolist(x: B) -> Any:
    """The elements as nested lists; a number for the shape ().

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 2], [3, 4]]).tolist()
      [[1, 2], [3, 4]]
    """
    return nested(x)


def item(x: B) -> ConstType:
    """The only element as a Python number.

    Raises:
      ValueError: if there is not exactly one.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0, 2.0]).sum().item()
      3.0
    """
    if x.numel() != 1:
        raise ValueError(f"item: a tensor of shape {x.shape} has not exactly one element")
    values = x.lazydata.reshape(())
    return nested(type(x)._wrap(values))  # type: ignore[no-any-return]


def __reduce__(x: B) -> tuple[Any, ...]:
    """For pickle and copy: the elements, computed now; not the graph that they came from."""
    elements = bytes(host_bytes(x))
    leaf = None if x._ctx is not None else x._wish
    marks = {name: True for name in ("_parameter", "_transient") if getattr(x, name, False)}
    return transfer.restored, (type(x), elements, x.dtype, x._ints(), x.device, leaf), (None, marks) if marks else None
