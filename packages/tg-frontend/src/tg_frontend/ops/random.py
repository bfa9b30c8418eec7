"""Random tensors. They are reproducible: see :func:`manual_seed`."""

from __future__ import annotations

import math

from tg_dtype import dtypes
from tg_runtime import capturing
from tg_shape import sint

from ..array.array import A, Array
from ..array.base import DTypeLike
from ..array.ingest import placed
from ..array.shapes import broadcast_shape
from ..host.coerce import to_dtype
from ..memory import disk
from .creation import checked_shape, placed_like
from .elementary import cos, log, sqrt
from .streams import STREAMS, random_words, uniform_fractions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


_STATE_NBYTES = 16


def _outside_of_a_record(what: str) -> None:
    if capturing():
        raise RuntimeError(
            f"{what}: inside of a function while TinyJit records it; a replay draws on and would not do this again: "
            "do it outside of the function"
        )


def manual_seed(seed: int = 0) -> None:
    """Makes the random numbers that follow a function of ``seed``. Without it, each process draws its own.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor.manual_seed(42)
      >>> a = Tensor.rand(3)
      >>> Tensor.manual_seed(42)
      >>> (a == Tensor.rand(3)).all().item()
      True
    """
    _outside_of_a_record("manual_seed")
    STREAMS.reseed(seed)


def get_rng_state(cls: type[A]) -> A:
    """Where the random numbers are: seed and count of draws, 16 bytes (uint8), to be saved and restored.

    There is one state for all devices, as the numbers do not depend on the device. A replay of TinyJit counts the
    same draws as a call of the function would.

    Raises:
      RuntimeError: if TinyJit is recording; a replay would not read it again.

    Example:
      >>> from tg_frontend import Tensor
      >>> state = Tensor.get_rng_state()
      >>> a = Tensor.rand(3)
      >>> Tensor.set_rng_state(state)
      >>> (a == Tensor.rand(3)).all().item()
      True
    """
    _outside_of_a_record("get_rng_state")
    return cls(STREAMS.state(), device=disk.HOST)


def set_rng_state(state: Any) -> None:
    """Goes on with the random numbers where :meth:`get_rng_state` read the state.

    Args:
      state: the tensor that it gave, on any device, or its 16 bytes.

    Raises:
      ValueError: if it is no such state.
      RuntimeError: if TinyJit is recording; a replay would not set it again.

    Example:
      >>> from tg_frontend import Tensor
      >>> state = Tensor.get_rng_state()
      >>> first = Tensor.randn(3)
      >>> Tensor.set_rng_state(state)
      >>> (first == Tensor.randn(3)).all().item()
      True
    """
    _outside_of_a_record("set_rng_state")
    raw = state.to(disk.HOST).data() if isinstance(state, Array) else state
    data = bytes(raw) if isinstance(raw, (bytes, bytearray, memoryview)) else b""
    if len(data) != _STATE_NBYTES:
        raise ValueError(f"set_rng_state: {_STATE_NBYTES} bytes of get_rng_state are wanted, got {state!r}")
    STREAMS.restore(data)


def fractions(cls: type[A], shape: tuple[sint, ...], device: str | None, dtype: DTypeLike | None, what: str) -> A:
    """Uniform from 0 to below 1, not computed yet.

    Raises:
      TypeError: if the dtype is no float.
    """
    kind = to_dtype(dtype) if dtype is not None else dtypes.default_float
    if kind.kind != "float":
        raise TypeError(f"{what}: random fractions are floats, not {kind.name}; there is randint")
    return cls._wrap(uniform_fractions(random_words(shape, placed(device)), kind), None)


def _finish(x: A, requires_grad: bool | None) -> A:
    out = x.detach().contiguous()
    out._wish = requires_grad
    return out


def rand(
    cls: type[A],
    *shape: Any,
    device: str | None = None,
    dtype: DTypeLike | None = None,
    requires_grad: bool | None = None,
) -> A:
    """Uniform from 0 to below 1.

    Raises:
      ValueError: if a size is negative.
      TypeError: if the dtype is no float.

    Example:
      >>> from tg_frontend import Tensor
      >>> x = Tensor.rand(100)
      >>> x.shape, (x >= 0).all().item(), (x < 1).all().item()
      ((100,), True, True)
    """
    return _finish(fractions(cls, checked_shape(shape, "rand"), device, dtype, "rand"), requires_grad)


def uniform(
    cls: type[A],
    *shape: Any,
    low: float = 0.0,
    high: float = 1.0,
    device: str | None = None,
    dtype: DTypeLike | None = None,
    requires_grad: bool | None = None,
) -> A:
    """Uniform from ``low`` to below ``high``.

    Raises:
      ValueError: if ``low`` is above ``high``, or one is not finite.

    Example:
      >>> from tg_frontend import Tensor
      >>> x = Tensor.uniform(100, low=-2, high=3)
      >>> (x >= -2).all().item(), (x < 3).all().item()
      (True, True)
    """
    if not (low <= high and math.isfinite(high - low)):
        raise ValueError(f"uniform: from {low} to {high} is no range")
    kind = to_dtype(dtype) if dtype is not None else dtypes.default_float
    wide = dtypes.float32 if kind.kind == "float" and kind.itemsize < 4 else kind
    unit = fractions(cls, checked_shape(shape, "uniform"), device, wide, "uniform")
    return _finish((unit * (high - low) + low).cast(kind), requires_grad)


def _gauss(cls: type[A], shape: tuple[sint, ...], device: str | None, dtype: DTypeLike | None, what: str) -> A:
    kind = to_dtype(dtype) if dtype is not None else dtypes.default_float
    if kind.kind != "float":
        raise TypeError(f"{what}: the dtype must be a float, not {kind.name}")
    wide = dtypes.float64 if kind.itemsize == 8 else dtypes.float32
    u, v = (fractions(cls, shape, device, wide, what) for _ in range(2))
    return sqrt(log(1 - u) * -2) * cos(v * (2 * math.pi))


def randn(
    cls: type[A],
    *shape: Any,
    device: str | None = None,
    dtype: DTypeLike | None = None,
    requires_grad: bool | None = None,
) -> A:
    """Normal with mean 0 and standard deviation 1.

    Raises:
      ValueError: if a size is negative.
      TypeError: if the dtype is no float.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor.manual_seed(0)
      >>> abs(Tensor.randn(1000).mean().item()) < 0.1
      True
    """
    kind = to_dtype(dtype) if dtype is not None else dtypes.default_float
    return _finish(_gauss(cls, checked_shape(shape, "randn"), device, kind, "randn").cast(kind), requires_grad)


def normal(
    cls: type[A],
    *shape: Any,
    mean: float = 0.0,
    std: float = 1.0,
    size: Sequence[int] | None = None,
    device: str | None = None,
    dtype: DTypeLike | None = None,
    requires_grad: bool | None = None,
) -> A:
    """Normal with the given mean and standard deviation.

    Args:
      shape: sizes, or one tuple of them. Or as PyTorch has it: a mean and a deviation, of which one may be a tensor, or
        both, whose shape the result has; or two numbers and a tuple of sizes.
      size: the sizes, if they are not in ``shape``.

    Raises:
      ValueError: if the standard deviation is negative or NaN.
      TypeError: if there are sizes beside tensors.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor.manual_seed(0)
      >>> round(Tensor.normal(1000, mean=5, std=0.01).mean().item(), 1)
      5.0
    """
    if size is not None:
        if len(shape) > 2:
            raise TypeError(f"normal: sizes in {shape}, and size={tuple(size)}")
        mean = shape[0] if shape else mean
        std = shape[1] if len(shape) > 1 else std
        shape = (tuple(size),)
    tensors = isinstance(mean, Array) or isinstance(std, Array)
    if tensors and (len(shape) > 1 or (shape and isinstance(shape[0], (tuple, list)))):
        raise TypeError(f"normal: sizes {shape} beside tensors, whose shape the result has")
    if tensors and not shape:
        return _around(cls, mean, std, [], device, dtype, requires_grad)
    around = any(isinstance(part, Array) for part in shape[:2])
    if shape and (isinstance(shape[0], float) or around or tensors):
        centre, spread, *rest = (*shape, mean, std)[:2] if len(shape) == 1 else shape
        return _around(cls, centre, std if len(shape) == 1 else spread, rest, device, dtype, requires_grad)
    if len(shape) == 3 and isinstance(shape[2], (tuple, list)):
        mean, std, shape = shape[0], shape[1], (shape[2],)
    if not std >= 0:
        raise ValueError(f"normal: a standard deviation is 0 or more, got {std}")
    kind = to_dtype(dtype) if dtype is not None else dtypes.default_float
    unit = _gauss(cls, checked_shape(shape, "normal"), device, kind, "normal")
    return _finish((unit * std + mean).cast(kind), requires_grad)


def _around(
    cls: type[A], mean: Any, std: Any, sizes: list[Any], device: str | None, dtype: DTypeLike | None,
    requires_grad: bool | None,
) -> A:  # fmt: skip
    """Normal numbers with a mean and a deviation for each element; numbers for all, with sizes beside them."""
    given = [part for part in (mean, std) if isinstance(part, Array)]
    if not given:
        return normal(cls, *sizes, mean=mean, std=std, device=device, dtype=dtype, requires_grad=requires_grad)
    if sizes:
        raise TypeError(f"normal: sizes {sizes} beside tensors, whose shape the result has")
    kind = to_dtype(dtype) if dtype is not None else given[0].dtype
    shape = broadcast_shape("normal", *(part.shape for part in given))
    unit = _gauss(cls, shape, device or given[0].device, kind, "normal")
    out: A = (unit * std + mean).cast(kind)
    return _finish(out, requires_grad)


def randint(
    cls: type[A],
    *shape: Any,
    low: int = 0,
    high: int = 10,
    device: str | None = None,
    dtype: DTypeLike | None = None,
    requires_grad: bool | None = None,
) -> A:
    """Integers from ``low`` to below ``high``, each as likely to within (high - low) / 2**32.

    Args:
      shape: sizes, or one tuple of them. Or as PyTorch has it: the upper bound, or both bounds, and a tuple of sizes.
      dtype: of the elements: an integer, a bool, or a float that holds them.

    Raises:
      ValueError: if the range is empty, wider than 2**32, or more than the dtype holds.
      TypeError: if a bound is no integer, or complex numbers are wanted.

    Example:
      >>> from tg_frontend import Tensor
      >>> x = Tensor.randint(100, low=3, high=5)
      >>> sorted(set(x.tolist()))
      [3, 4]
    """
    if 1 < len(shape) < 4 and isinstance(shape[-1], (tuple, list)):
        low, high = (low, shape[0]) if len(shape) == 2 else shape[:2]
        shape = (shape[-1],)
    kind = to_dtype(dtype) if dtype is not None else dtypes.default_int
    if kind.kind == "float":
        return _finish(
            randint(cls, *shape, low=low, high=high, device=device, dtype=dtypes.int64).cast(kind), requires_grad
        )
    truths = kind.kind == "bool"
    if not isinstance(low, int) or not isinstance(high, int) or not (truths or dtypes.is_int(kind)):
        raise TypeError(f"randint: bounds and dtype are integers, got {low!r}, {high!r} and {kind.name}")
    if not 0 < high - low <= 1 << 32:
        raise ValueError(f"randint: from {low} to below {high} are {high - low} numbers; 1 to 2**32 are possible")
    if low < dtypes.min(kind) or high - 1 > dtypes.max(kind):
        raise ValueError(f"randint: {low} to {high - 1} do not fit {kind.name}")
    words = random_words(checked_shape(shape, "randint"), placed(device))[0]
    wide = cls._wrap(words)
    if high - low < 1 << 32:
        wide = wide % (high - low)
    if truths:
        return _finish((wide + low).cast(kind), requires_grad)
    # wraps to the right number for a negative low
    return _finish(wide.cast(kind) + low, requires_grad)


def randint_like(
    x: A, *bounds: int, low: int = 0, high: int = 10, device: str | None = None, dtype: DTypeLike | None = None,
    requires_grad: bool | None = None,
) -> A:  # fmt: skip
    """Integers from ``low`` to below ``high``, in this tensor's shape, dtype and device, unless others are given.

    Args:
      bounds: the upper one, or both, instead of by name.

    Raises:
      ValueError: if the range is empty, or wider than 2**32.
      TypeError: if a bound is no integer.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1.0, 2.0]]).randint_like(3, 4)
      Tensor([[3., 3.]])
    """
    if len(bounds) > 2:
        raise TypeError(f"randint_like: bounds are one number or two, got {bounds}")
    low, high = (*bounds, low, high)[:2] if len(bounds) != 1 else (low, bounds[0])
    name, kind = placed_like(x, device, dtype)
    whole = kind if dtypes.is_int(kind) else dtypes.default_int
    found = randint(type(x), *x.shape, low=low, high=high, device=name, dtype=whole)
    return _finish(found.cast(kind), requires_grad)


def rand_like(
    x: A, device: str | None = None, dtype: DTypeLike | None = None, requires_grad: bool | None = None
) -> A:
    """Uniform from 0 to below 1, in this tensor's shape, dtype and device, unless others are given.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1.0, 2.0]]).rand_like().shape
      (1, 2)
    """
    name, kind = placed_like(x, device, dtype)
    return rand(type(x), *x.shape, device=name, dtype=kind, requires_grad=requires_grad)


def randn_like(
    x: A, device: str | None = None, dtype: DTypeLike | None = None, requires_grad: bool | None = None
) -> A:
    """Normal with mean 0 and deviation 1, in this tensor's shape, dtype and device, unless others are given.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1.0, 2.0]]).randn_like(dtype="float64").dtype
      dtypes.float64
    """
    name, kind = placed_like(x, device, dtype)
    return randn(type(x), *x.shape, device=name, dtype=kind, requires_grad=requires_grad)
