"""Ranges of numbers: in equal steps, or in equal factors."""

from __future__ import annotations

import math

from tg_dtype import dtypes, sum_acc_dtype
from tg_shape import Expr, ceildiv, sint

from ..array.array import A, Array
from ..array.axes import iota
from ..array.base import DTypeLike
from ..array.ingest import placed
from ..array.movement import shrink
from ..host.coerce import check_fits, to_dtype
from .axes import movedim
from .creation import as_leaf, device_or_dtype, full

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_EXACT_IN_FLOAT32 = 1 << 24


def arange(
    cls: type[A],
    start: Any,
    stop: Any = None,
    step: Any = 1,
    device: str | None = None,
    dtype: DTypeLike | None = None,
    requires_grad: bool | None = None,
) -> A:
    """``start``, ``start + step``, … below ``stop`` (above it for a negative step). One bound means 0 to it.

    It takes no memory. Integers beyond ``dtypes.default_int`` are int64. A tensor of no axes stands for its number.

    Raises:
      ValueError: if the step is 0, or something is not finite.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor.arange(5, 0, -2).tolist()
      [5, 3, 1]
    """
    device, dtype = device_or_dtype(device, dtype)
    bounds: tuple[Any, Any, Any] = (0, start, step) if stop is None else (start, stop, step)
    numbers: list[Any] = [value.item() if isinstance(value, Array) and value.ndim == 0 else value for value in bounds]
    first, last, step = numbers
    for value in (first, last, step):
        if not isinstance(value, (int, float, Expr)) or isinstance(value, bool):
            raise TypeError(f"arange: bounds and step are numbers, got {value!r} of type {type(value).__name__}")
    if step == 0:
        raise ValueError("arange: the step is 0")
    if any(isinstance(value, float) and not math.isfinite(value) for value in (first, last, step)):
        raise ValueError(f"arange: bounds and step are finite, got {first}, {last} and {step}")
    floats = any(isinstance(value, float) for value in (first, last, step))
    kind = to_dtype(dtype) if dtype is not None else dtypes.default_float if floats else dtypes.default_int
    if floats:
        count: sint = max(0, math.ceil((last - first) / step))
    else:
        between: Any = last - first  # no float
        count = ceildiv(between, step)
        count = max(0, count) if isinstance(count, int) else count
    name = placed(device)
    if not floats and isinstance(first, int) and kind.kind != "float":
        ends = (first, first + (count - 1) * step) if isinstance(count, int) and count else ()
        if dtype is None and any(not dtypes.min(kind) <= value <= dtypes.max(kind) for value in ends):
            kind = dtypes.int64
        for value in ends:
            if kind.kind != "bool" and not dtypes.min(kind) <= value <= dtypes.max(kind):
                raise OverflowError(f"arange: {value} is no {kind.name}")
    if floats and count:
        check_fits((first, first + (count - 1) * step), kind, "arange")
    counting = dtypes.int64 if floats or kind.itemsize > 4 else dtypes.int32
    out = iota(cls, count, counting, name)
    if kind.kind == "float":
        # Computed in at least 32 bits, rounded once.
        wide = sum_acc_dtype(kind)
        out = out.cast(wide)
    if step != 1:
        out = out.mul(step)
    if not (isinstance(first, (int, float)) and first == 0):
        out = out.add(first)
    out = out.cast(kind)
    return as_leaf(out, requires_grad)


def linspace(
    cls: type[A],
    start: Any,
    stop: Any,
    steps: int = 50,
    device: str | None = None,
    dtype: DTypeLike | None = None,
    requires_grad: bool | None = None,
    *,
    endpoint: bool = True,
    axis: int = 0,
) -> A:
    """``steps`` values in equal distances from ``start`` to ``stop``, both included.

    Args:
      start: a number, or a tensor, and so is ``stop``: the result has the axis of steps, and then those of the bounds.
      endpoint: if False, ``stop`` is left out: it is where the next value would be; integers are rounded down then, as
        by numpy, and cut towards 0 otherwise, as by PyTorch.
      axis: where the axis of steps stands.

    Raises:
      IndexError: if the axis is out of range.
      TypeError: if a bound is no number.
      ValueError: if ``steps`` is negative, or the dtype is bool.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor.linspace(0, 1, 5)
      Tensor([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    if not isinstance(steps, int) or steps < 0:
        raise ValueError(f"linspace: {steps!r} is not a number of steps")
    if not endpoint or axis != 0:
        kind = to_dtype(dtype) if dtype is not None else dtypes.default_float
        down = not endpoint and kind.kind in ("int", "uint")  # as numpy has it, whose keyword this is
        out = linspace(cls, start, stop, steps if endpoint else steps + 1, device, dtypes.float64 if down else dtype)
        if down and steps and not isinstance(start, Array) and not isinstance(stop, Array):
            check_fits((start, math.floor(stop - (stop - start) / steps)), kind, "linspace")
        out = out.floor().cast(kind) if down else out
        values = out if endpoint else shrink(out, [(0, steps), *(None for _ in out.shape[1:])])
        return as_leaf(movedim(values, 0, axis).contiguous(), requires_grad)
    if isinstance(start, Array) or isinstance(stop, Array):
        return _between(cls, start, stop, steps, device, dtype, requires_grad)
    for value in (start, stop):
        if not isinstance(value, (int, float)):
            raise TypeError(f"linspace: bounds are numbers, got {value!r} of type {type(value).__name__}")
    kind = to_dtype(dtype) if dtype is not None else dtypes.default_float
    if kind.kind == "bool":
        raise ValueError("linspace: steps between two bools are not bools; give another dtype")
    check_fits((start, stop)[:steps], kind, "linspace")
    wide = sum_acc_dtype(kind) if kind.kind == "float" else dtypes.default_float
    if kind.kind != "float" and max(abs(start), abs(stop)) >= _EXACT_IN_FLOAT32:
        wide = dtypes.float64
    i = iota(cls, steps, dtypes.int32, placed(device)).cast(wide)
    step = (stop - start) / max(steps - 1, 1)
    # From the nearer end, so that either is exact.
    out = i * step + start if steps < 2 else (i < steps // 2).where(i * step + start, (i - (steps - 1)) * step + stop)
    return as_leaf(out.cast(kind), requires_grad)


def _between(
    cls: type[A], start: Any, stop: Any, steps: int, device: str | None, dtype: DTypeLike | None,
    requires_grad: bool | None,
) -> A:  # fmt: skip
    """As :func:`linspace`, where a bound is a tensor: one new axis in front of the bounds' own."""
    kind = to_dtype(dtype) if dtype is not None else dtypes.default_float
    for bound in (start, stop):
        if isinstance(bound, complex) or (isinstance(bound, Array) and bound.dtype.kind == "complex"):
            raise TypeError(f"linspace: complex bounds of {kind.name}")
    given = next(bound for bound in (start, stop) if isinstance(bound, Array))
    name = placed(device) if device is not None else given.device
    wide = sum_acc_dtype(kind) if kind.kind == "float" else dtypes.float64
    low, high = (
        (bound.detach().to(name) if isinstance(bound, Array) else cls(bound, device=name, dtype=wide)).cast(wide)
        for bound in (start, stop)
    )
    step = (high - low) / max(steps - 1, 1)
    i = iota(cls, steps, dtypes.int32, name).cast(wide).reshape((steps, *(1 for _ in step.shape)))
    out = i * step + low if steps < 2 else (i < steps // 2).where(i * step + low, (i - (steps - 1)) * step + high)
    return as_leaf(out.cast(kind), requires_grad)


def logspace(
    cls: type[A],
    start: Any,
    stop: Any,
    steps: int = 50,
    base: float = 10.0,
    device: str | None = None,
    dtype: DTypeLike | None = None,
    requires_grad: bool | None = None,
    *,
    endpoint: bool = True,
    axis: int = 0,
) -> A:
    """Powers of ``base``, with exponents in equal distances from ``start`` to ``stop``, both included.

    Args:
      endpoint: and ``axis``: see :meth:`linspace`.

    Raises:
      TypeError: if a bound is no number.
      ValueError: if ``steps`` is negative, or the base is.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor.logspace(0, 2, 3)
      Tensor([  1.,  10., 100.])
    """
    if base < 0:
        raise ValueError(f"logspace: powers of {base!r} with broken exponents")
    kind = to_dtype(dtype) if dtype is not None else dtypes.default_float
    wide = dtypes.float64 if kind == dtypes.float64 else dtypes.float32
    exponents = linspace(cls, start, stop, steps, device, wide, endpoint=endpoint, axis=axis)
    powers = full(cls, (), base, exponents.device, exponents.dtype) ** exponents
    return as_leaf(powers.cast(kind), requires_grad)
