"""Tensors made of data, and of what is at each place."""

from __future__ import annotations

import math

from tg_dtype import DType, complex_dtype, dtypes
from tg_runtime import Device

from ..host.coerce import to_dtype
from ..tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from ..array.base import DTypeLike

_ROUNDING = 1e-14
"""By what part of itself a number in geometric progression may be off in float64."""


def tensor(
    data: Any,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool | None = None,
    *,
    copy: bool = True,
    ndmin: int = 0,
) -> Tensor:
    """A tensor of a copy of the data, which may be a tensor, too; that one's gradient does not go through it.

    Args:
      data: whatever ``Tensor`` takes, or a tensor.
      dtype: a dtype, or its name; if not given, of numbers by kind, of arrays and tensors their own.
      device: where the elements live; if not given, the default device, of a tensor its own.
      requires_grad: see ``Tensor``.
      copy: True: :func:`asarray` copies only where it has to.
      ndmin: how many axes there are at least; those that are added stand in front.

    Raises:
      ValueError: if lists are ragged, or without a copy.
      TypeError: if the data is something else.

    Example:
      >>> from tg_frontend.functions import tensor
      >>> tensor([[1, 2], [3, 4]], dtype="float32")
      Tensor([[1., 2.],
              [3., 4.]])
    """
    if not copy:
        raise ValueError("tensor: the data is copied; asarray(data, copy=False) shares it")
    if ndmin:
        made = tensor(data, dtype, device)
        shaped = made.reshape([1] * max(ndmin - made.ndim, 0) + list(made.shape))
        return shaped if requires_grad is None else shaped.requires_grad_(requires_grad)
    if isinstance(data, Tensor):
        return data.detach().new_tensor(data, device=device, dtype=dtype, requires_grad=requires_grad)
    return Tensor(data, device=device, dtype=dtype, requires_grad=requires_grad)


def as_tensor(data: Any, dtype: DTypeLike | None = None, device: str | None = None) -> Tensor:
    """The data as a tensor: a tensor itself, if neither dtype nor device is another one; of anything else a copy.

    Args:
      data: whatever ``Tensor`` takes, or a tensor.
      dtype: a dtype, or its name; if not given, see :func:`tensor`.
      device: where the elements live.

    Raises:
      ValueError: if lists are ragged.
      TypeError: if the data is something else.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import as_tensor
      >>> x = Tensor([1.0, 2.0])
      >>> as_tensor(x) is x, as_tensor([1.0, 2.0])
      (True, Tensor([1., 2.]))
    """
    if not isinstance(data, Tensor):
        return Tensor(data, device=device, dtype=dtype)
    out = data if device is None else data.to(device)
    return out if dtype is None else out.cast(dtype)


def asarray(
    obj: Any,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    copy: bool | None = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """:func:`as_tensor`, with a word about copies.

    Args:
      obj: whatever ``Tensor`` takes, a tensor, or a capsule of DLPack, whose memory is shared.
      dtype: a dtype, or its name.
      device: where the elements live.
      copy: True for new memory in any case; False for none: the memory of another library's array is shared, as
        ``Tensor.from_dlpack`` does.
      requires_grad: see ``Tensor``; where it is given, no gradient goes through to ``obj``.

    Raises:
      ValueError: if there is to be no copy, and there must be one.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import asarray
      >>> x = Tensor([1.0, 2.0])
      >>> asarray(x, copy=False) is x, asarray(x, copy=True) is x
      (True, False)
    """
    lent = type(obj).__name__ == "PyCapsule" or (
        copy is False and not isinstance(obj, Tensor) and hasattr(obj, "__dlpack__")
    )
    given = Tensor.from_dlpack(obj, device, copy) if lent else obj
    out = as_tensor(given, dtype, device)
    if copy is False and out is not given:
        raise ValueError(f"asarray: a {type(obj).__name__} becomes {out.dtype.name} on {out.device} by a copy only")
    if copy and out is obj:
        out = out.clone()
    return out if requires_grad is None else out.detach().requires_grad_(requires_grad)


def from_numpy(array: Any) -> Tensor:
    """A tensor of an array of numpy: a copy; ``Tensor.from_dlpack`` shares memory.

    Raises:
      TypeError: if it is no array.

    Example:
      >>> import numpy as np
      >>> from tg_frontend.functions import from_numpy
      >>> from_numpy(np.arange(3.0))
      Tensor([0., 1., 2.], dtype=float64)
    """
    if type(array).__module__.partition(".")[0] != "numpy" or not hasattr(array, "dtype"):
        raise TypeError(f"from_numpy: an array of numpy is wanted, got a {type(array).__name__}")
    return Tensor(array)


def frombuffer(
    buffer: Any,
    dtype: DTypeLike = "float32",
    count: int = -1,
    offset: int = 0,
    requires_grad: bool | None = None,
) -> Tensor:
    """A tensor of the bytes of something that has them: a copy.

    Args:
      buffer: bytes, a bytearray, a memoryview, an array of Python, ….
      dtype: what the bytes are elements of.
      count: how many elements; all that are there if negative.
      offset: so many bytes are left out at the beginning.
      requires_grad: see ``Tensor``.

    Raises:
      ValueError: if there are fewer bytes, or no whole number of elements.

    Example:
      >>> from tg_frontend.functions import frombuffer
      >>> frombuffer(b"abcd", dtype="uint8", count=2, offset=1)
      Tensor([98, 99], dtype=uint8)
    """
    view = memoryview(buffer)
    raw = view.cast("B") if view.nbytes else memoryview(b"")
    kind = to_dtype(dtype)
    if not 0 <= offset <= len(raw):
        raise ValueError(f"frombuffer: offset {offset} in a buffer of {len(raw)} bytes")
    wanted = len(raw) - offset if count < 0 else count * kind.itemsize
    if wanted > len(raw) - offset:
        raise ValueError(f"frombuffer: {count} elements of {kind.name} behind {offset} of {len(raw)} bytes")
    return Tensor(bytes(raw[offset : offset + wanted]), dtype=kind, requires_grad=requires_grad)


def device(type: Any, index: int | None = None) -> str:
    """The name of a device as tensors have it: PyTorch's object of this name is a string here.

    Args:
      type: a name, ``"cuda"`` or ``"cuda:1"``, in small letters or capitals.
      index: which one of that kind.

    Raises:
      UnknownDevice: if no package offers such a device.
      TypeError: if it is no name.

    Example:
      >>> from tg_frontend.functions import device
      >>> device("cpu")
      'CPU'
    """
    if not isinstance(type, str):
        raise TypeError(f"device: the name of a device is wanted, got {type!r}")
    return Device.canonicalize(type if index is None else f"{type}:{index}")


def randint(
    *bounds: Any, size: Sequence[int] | None = None, low: int | None = None, high: int | None = None,
    dtype: DTypeLike | None = None, device: str | None = None, requires_grad: bool | None = None,
) -> Tensor:  # fmt: skip
    """Integers from ``low``, or 0, to below ``high``, as PyTorch's function takes them; see ``Tensor.randint``.

    Args:
      bounds: ``high`` or both bounds, and the shape behind them, unless that is given by name.
      size: the shape.
      low: the least one.
      high: the first that is too great.
      dtype: of the elements; the default integer if not given.
      device: where the elements live.
      requires_grad: see ``Tensor``.

    Raises:
      TypeError: if there is no shape or no upper bound, or one is given twice.
      ValueError: if the range is empty.

    Example:
      >>> from tg_frontend.functions import randint
      >>> randint(3, 4, (2,)), randint(high=1, size=(1, 2))
      (Tensor([3, 3]), Tensor([[0, 0]]))
    """
    given: list[Any] = list(bounds)
    if size is None and given and isinstance(given[-1], (tuple, list)):
        size = given.pop()
    named = [bound for bound in (low, high) if bound is not None]
    if size is None or len(given) > 2 or (given and named) or (high is None and not given):
        raise TypeError("randint: an upper bound is wanted, perhaps a lower one before it, and a shape")
    least: Any
    most: Any
    least, most = ([0, *given] if given else [low or 0, high])[-2:]
    options: dict[str, Any] = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
    return Tensor.randint(tuple(size), low=least, high=most, **options)


def identity(n: int, dtype: DTypeLike | None = None) -> Tensor:
    """Ones on the diagonal of a square, as ``Tensor.eye``: shape (n, n).

    Raises:
      ValueError: if the size is negative.

    Example:
      >>> from tg_frontend.functions import identity
      >>> identity(2)
      Tensor([[1., 0.],
              [0., 1.]])
    """
    return Tensor.eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None) -> Tensor:
    """Ones on and below a diagonal, zeros above: shape (N, M).

    Args:
      N: how many rows.
      M: how many columns; as many if not given.
      k: which diagonal; 0 is the main one, and one above it is 1.
      dtype: of the elements; the default float if not given.

    Raises:
      ValueError: if a size is negative.

    Example:
      >>> from tg_frontend.functions import tri
      >>> tri(2, 3)
      Tensor([[1., 0., 0.],
              [1., 1., 0.]])
    """
    return Tensor.ones(N, N if M is None else M, dtype=dtype).tril(k)


def indices(dimensions: Sequence[int], dtype: DTypeLike | None = None, sparse: bool = False) -> Any:
    """The place of each element along each axis: shape (len(dimensions), *dimensions).

    Args:
      dimensions: sizes of the axes.
      dtype: of the places; the default integer if not given.
      sparse: a tuple instead, of the places along each axis, where the others have the size 1.

    Raises:
      ValueError: if a size is negative.

    Example:
      >>> from tg_frontend.functions import indices
      >>> indices((2, 3))
      Tensor([[[0, 0, 0],
               [1, 1, 1]],
      <BLANKLINE>
              [[0, 1, 2],
               [0, 1, 2]]])
    """
    kind = dtypes.default_int if dtype is None else to_dtype(dtype)
    shape = tuple(dimensions)
    places = [Tensor.arange(n, dtype=kind).reshape([-1 if i == axis else 1 for i in range(len(shape))])
              for axis, n in enumerate(shape)]  # fmt: skip
    if sparse:
        return tuple(places)
    if not places:
        return Tensor.zeros(0, dtype=kind)
    full = [one.expand(*shape) for one in places]
    return full[0].stack(*full[1:])


def fromfunction(
    function: Callable[..., Any], shape: Sequence[int], *, dtype: DTypeLike = float, **kwargs: Any
) -> Any:  # fmt: skip
    """What a function gives of the places of all elements: it is called once, with a tensor for each axis.

    Args:
      function: takes ``len(shape)`` tensors of this shape, and the keywords.
      shape: of the places.
      dtype: of the places.

    Raises:
      ValueError: if a size is negative.

    Example:
      >>> from tg_frontend.functions import fromfunction
      >>> fromfunction(lambda i, j: i * 10 + j, (2, 3), dtype=int)
      Tensor([[ 0,  1,  2],
              [10, 11, 12]], dtype=int64)
    """
    return function(*indices(shape, dtype), **kwargs)


def geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: DTypeLike | None = None, axis: int = 0
) -> Tensor:
    """Numbers from one to another, each a fixed multiple of the one before: shape (num,).

    They are computed in float64 (complex ones in complex128, along a spiral). Of integers, one that is next to a whole
    number by rounding alone is that number; others are cut towards 0.

    Args:
      start: the first one; or a tensor, and so is ``stop``: the result has the axis of numbers, and those of both.
      stop: the last one, or where the next would be.
      num: how many.
      endpoint: whether ``stop`` is the last one.
      dtype: of the elements; the default float, or the complex dtype of that, if not given.
      axis: where the axis of numbers stands.

    Raises:
      IndexError: if the axis is out of range.
      ValueError: if one of the bounds is 0, or real ones have two signs (of tensors, which are not looked into, that
        gives NaN); if fewer than none are wanted.
      TypeError: if complex bounds are to give real numbers.

    Example:
      >>> from tg_frontend.functions import geomspace
      >>> geomspace(1.0, 1000.0, num=4)
      Tensor([   1.,   10.,  100., 1000.])
    """
    if num < 0:
        raise ValueError(f"geomspace: {num} numbers are wanted")
    known = next((bound for bound in (start, stop) if isinstance(bound, Tensor)), None)
    device = None if known is None else known.device
    first, last = (
        (bound if isinstance(bound, Tensor) else Tensor(bound, device=device, dtype=_exact(bound))).detach()
        for bound in (start, stop)
    )
    is_complex = "complex" in (first.dtype.kind, last.dtype.kind)
    usual = complex_dtype(dtypes.default_float) if is_complex else dtypes.default_float
    kind: DType = usual if dtype is None else to_dtype(dtype)
    if is_complex and kind.kind != "complex":
        raise TypeError(f"geomspace: complex bounds of {kind.name}")
    wide = dtypes.complex128 if kind.kind == "complex" else dtypes.float64
    first, last = first.cast(wide), last.cast(wide)
    wrong = first.eq(0) | last.eq(0)
    if wide is dtypes.float64:
        wrong = wrong | (first.real < 0).ne(last.real < 0)
    if known is None and wrong.any().item():
        raise ValueError(f"geomspace: from {start} to {stop} no multiple leads through numbers of one sign")
    times = last / first
    times = (times.isfinite() & times.ne(0)).where(times.log(), last.abs().log() - first.abs().log())
    powers = Tensor.linspace(0.0, times, num, dtype=wide, endpoint=endpoint)
    near = (Tensor.arange(num, device=first.device) * 2 < num).reshape([num] + [1] * times.ndim)
    # From the nearer end, so that either is exact.
    found = wrong.where(math.nan, near.where(first, last) * near.where(powers, powers - times).exp())
    if kind.kind in ("int", "uint"):
        whole = found.round()
        found = ((found - whole).abs() <= whole.abs() * _ROUNDING).where(whole, found)
    return found.cast(kind).movedim(0, axis)


def _exact(bound: Any) -> DType | None:
    """The dtype in which numbers are taken whole; None of arrays, which have their own."""
    if isinstance(bound, complex):
        return dtypes.complex128
    return dtypes.float64 if isinstance(bound, (int, float)) else None
