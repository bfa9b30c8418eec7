"""Windows of signals: factors, one for each element, that mostly fall toward both ends."""

from __future__ import annotations

import math

from tg_dtype import DType, dtypes

from ..array.array import A
from ..array.axes import iota
from ..array.base import DTypeLike
from ..array.ingest import placed
from ..host.coerce import to_dtype
from ..ops.elementary import cos, exp, sin, sqrt, square
from .modified_bessel import i0

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _window(
    cls: type[A], what: str, count: Any, dtype: DTypeLike | None, device: str | None, requires_grad: bool | None,
    function: Callable[[A], A],
) -> A:  # fmt: skip
    """A function of the places 0, 1, …, as floats; one element alone is 1."""
    if isinstance(count, bool) or not isinstance(count, int):
        raise TypeError(f"{what}: the number of elements is an integer, got {count!r}")
    if count < 0:
        raise ValueError(f"{what}: the number of elements is 0 or more, got {count}")
    kind: DType = to_dtype(dtype) if dtype is not None else dtypes.default_float
    if kind.kind != "float":
        raise TypeError(f"{what}: windows are floats, not {kind.name}")
    wide = kind if kind.itemsize >= 4 else dtypes.float32
    places = iota(cls, count, dtypes.int32, placed(device)).cast(wide)
    found = (places * 0 + 1 if count <= 1 else function(places)).cast(kind)
    out = found._wrap(found.lazydata, None)
    return out if requires_grad is None else out.requires_grad_(requires_grad)


def _periods(count: int, sym: bool) -> int:
    """In how many elements a period ends."""
    return count - 1 if sym else count


def bartlett(
    cls: type[A], count: int, sym: bool, dtype: DTypeLike | None, device: str | None, requires_grad: bool | None
) -> A:
    """A triangle."""

    def triangle(k: A) -> A:
        n = _periods(count, sym)
        return (k * 2 <= n).where(k, n - k) * (2 / n)

    return _window(cls, "bartlett", count, dtype, device, requires_grad, triangle)


def general_cosine(
    cls: type[A], count: int, a: Any, sym: bool, dtype: DTypeLike | None, device: str | None,
    requires_grad: bool | None, what: str = "general_cosine",
) -> A:  # fmt: skip
    """A sum of cosines with these coefficients, and alternating signs."""
    if not isinstance(a, (list, tuple)) or not all(isinstance(factor, (int, float)) for factor in a):
        raise TypeError(f"{what}: coefficients are a list of numbers, got {a!r}")
    if not a:
        raise ValueError(f"{what}: a coefficient at least is wanted")

    def cosines(k: A) -> A:
        n = _periods(count, sym)
        out: A = k * 0 + a[0]
        for i, factor in enumerate(a[1:], 1):
            # The angle from the nearer end, where rounding counts less: the far end is what the near one is.
            near = (k * 2 <= n).where(k, n - k)
            out = out + cos(near * (2 * math.pi * i / n)) * (factor * (-1) ** i)
        return out

    return _window(cls, what, count, dtype, device, requires_grad, cosines)


def blackman(
    cls: type[A], count: int, sym: bool, dtype: DTypeLike | None, device: str | None, requires_grad: bool | None
) -> A:
    """0.42, 0.5, 0.08."""
    return general_cosine(cls, count, [0.42, 0.5, 0.08], sym, dtype, device, requires_grad, "blackman")


def nuttall(
    cls: type[A], count: int, sym: bool, dtype: DTypeLike | None, device: str | None, requires_grad: bool | None
) -> A:
    """Four cosines, as A. Nuttall, Some windows with very good sidelobe behavior (1981), has them."""
    return general_cosine(
        cls, count, [0.3635819, 0.4891775, 0.1365995, 0.0106411], sym, dtype, device, requires_grad, "nuttall"
    )


def general_hamming(
    cls: type[A], count: int, alpha: float, sym: bool, dtype: DTypeLike | None, device: str | None,
    requires_grad: bool | None, what: str = "general_hamming",
) -> A:  # fmt: skip
    """A constant and a cosine."""
    return general_cosine(cls, count, [alpha, 1 - alpha], sym, dtype, device, requires_grad, what)


def hamming(
    cls: type[A], count: int, sym: bool, dtype: DTypeLike | None, device: str | None, requires_grad: bool | None
) -> A:
    """0.54, 0.46."""
    return general_hamming(cls, count, 0.54, sym, dtype, device, requires_grad, "hamming")


def hann(
    cls: type[A], count: int, sym: bool, dtype: DTypeLike | None, device: str | None, requires_grad: bool | None
) -> A:
    """The sine squared, which loses nothing near the ends."""

    def bell(k: A) -> A:
        n = _periods(count, sym)
        return square(sin((k * 2 <= n).where(k, n - k) * (math.pi / n)))

    return _window(cls, "hann", count, dtype, device, requires_grad, bell)


def cosine(
    cls: type[A], count: int, sym: bool, dtype: DTypeLike | None, device: str | None, requires_grad: bool | None
) -> A:
    """Half a period of the sine."""

    def half(k: A) -> A:
        n = count if sym else count + 1
        return sin((k * 2 + 1 <= n).where(k + 0.5, n - 0.5 - k) * (math.pi / n))

    return _window(cls, "cosine", count, dtype, device, requires_grad, half)


def exponential(
    cls: type[A], count: int, center: float | None, tau: float, sym: bool, dtype: DTypeLike | None,
    device: str | None, requires_grad: bool | None,
) -> A:  # fmt: skip
    """A decay to both sides."""
    if not tau > 0:
        raise ValueError(f"exponential: tau is positive, got {tau!r}")
    if sym and center is not None:
        raise ValueError("exponential: a symmetric window has its center in the middle; none can be given")
    middle = _periods(count, sym) / 2 if center is None else center
    return _window(cls, "exponential", count, dtype, device, requires_grad,
                   lambda k: exp((k - middle).abs() * (-1 / tau)))  # fmt: skip


def gaussian(
    cls: type[A], count: int, std: float, sym: bool, dtype: DTypeLike | None, device: str | None,
    requires_grad: bool | None,
) -> A:  # fmt: skip
    """A bell curve."""
    if not std > 0:
        raise ValueError(f"gaussian: a standard deviation is positive, got {std!r}")
    middle = _periods(count, sym) / 2
    return _window(cls, "gaussian", count, dtype, device, requires_grad,
                   lambda k: exp(square((k - middle) * (1 / std)) * -0.5))  # fmt: skip


def kaiser(
    cls: type[A], count: int, beta: float, sym: bool, dtype: DTypeLike | None, device: str | None,
    requires_grad: bool | None, what: str = "kaiser",
) -> A:  # fmt: skip
    """A ratio of modified Bessel functions."""
    if not beta >= 0:
        raise ValueError(f"{what}: beta is 0 or more, got {beta!r}")

    def ratio(k: A) -> A:
        n = _periods(count, sym)
        root = sqrt(k * (n - k)) * (2 * beta / n)  # beta sqrt(1 - place**2) for places from -1 to 1
        return i0(root) / i0(root * 0 + beta)

    return _window(cls, what, count, dtype, device, requires_grad, ratio)


# *** by the names of torch's functions: periodic unless they are told otherwise ***


def bartlett_window(
    cls: type[A], window_length: int, periodic: bool = True, dtype: DTypeLike | None = None,
    device: str | None = None, requires_grad: bool | None = None,
) -> A:  # fmt: skip
    """A triangle of so many elements.

    Raises:
      ValueError: if the length is negative.
      TypeError: if it is no integer, or the dtype no float.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor.bartlett_window(4)
      Tensor([0. , 0.5, 1. , 0.5])
    """
    return bartlett(cls, window_length, not periodic, dtype, device, requires_grad)


def blackman_window(
    cls: type[A], window_length: int, periodic: bool = True, dtype: DTypeLike | None = None,
    device: str | None = None, requires_grad: bool | None = None,
) -> A:  # fmt: skip
    """The Blackman window of so many elements.

    Raises:
      ValueError: if the length is negative.
      TypeError: if it is no integer, or the dtype no float.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor.blackman_window(5, periodic=False).abs().round(2)
      Tensor([0.  , 0.34, 1.  , 0.34, 0.  ])
    """
    return blackman(cls, window_length, not periodic, dtype, device, requires_grad)


def hamming_window(
    cls: type[A], window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46,
    dtype: DTypeLike | None = None, device: str | None = None, requires_grad: bool | None = None,
) -> A:  # fmt: skip
    """alpha - beta * cos(angle), of so many elements.

    Raises:
      ValueError: if the length is negative.
      TypeError: if it is no integer, or the dtype no float.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor.hamming_window(4).round(2)
      Tensor([0.08, 0.54, 1.  , 0.54])
    """
    factors = [alpha, beta]
    return general_cosine(cls, window_length, factors, not periodic, dtype, device, requires_grad, "hamming_window")


def hann_window(
    cls: type[A], window_length: int, periodic: bool = True, dtype: DTypeLike | None = None,
    device: str | None = None, requires_grad: bool | None = None,
) -> A:  # fmt: skip
    """0.5 - 0.5 * cos(angle), of so many elements.

    Raises:
      ValueError: if the length is negative.
      TypeError: if it is no integer, or the dtype no float.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor.hann_window(4).round(2)
      Tensor([0. , 0.5, 1. , 0.5])
    """
    return hann(cls, window_length, not periodic, dtype, device, requires_grad)


def kaiser_window(
    cls: type[A], window_length: int, periodic: bool = True, beta: float = 12.0, dtype: DTypeLike | None = None,
    device: str | None = None, requires_grad: bool | None = None,
) -> A:  # fmt: skip
    """The Kaiser window of so many elements.

    Raises:
      ValueError: if the length or ``beta`` is negative.
      TypeError: if it is no integer, or the dtype no float.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor.kaiser_window(3, periodic=False, beta=2.0).round(4)
      Tensor([0.4387, 1.    , 0.4387])
    """
    return kaiser(cls, window_length, beta, not periodic, dtype, device, requires_grad, "kaiser_window")
