"""Which frequencies a transform has, and in which order they stand."""

from __future__ import annotations

from collections.abc import Sequence

from ..array.base import DTypeLike
from ..host.coerce import to_dtype
from ..tensor import Tensor


def _spaced(numbers: Tensor, n: int, d: float, requires_grad: bool | None) -> Tensor:
    out = numbers * (1.0 / (n * d))
    return out if requires_grad is None else out.detach().requires_grad_(requires_grad)


def _check(n: int, d: float, what: str) -> None:
    if not isinstance(n, int) or isinstance(n, bool):
        raise TypeError(f"{what}: n is an integer, got {n!r}")
    if n < 1:
        raise ValueError(f"{what}: a transform of {n} numbers has no frequencies; n is at least 1")
    if d == 0:
        raise ValueError(f"{what}: samples that are 0 apart have no frequencies")


def fftfreq(
    n: int,
    d: float = 1.0,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """The frequencies of the numbers that ``fft`` gives: in cycles per unit of ``d``, the negative ones behind.

    Args:
      n: how many numbers are transformed.
      d: how far samples are apart.
      dtype: float32 if it is not given.
      device: the default device if it is not given.
      requires_grad: as of every tensor.

    Raises:
      ValueError: if n is less than 1, or d is 0.
      TypeError: if n is no integer.

    Example:
      >>> from tg_frontend import fft
      >>> fft.fftfreq(5)
      Tensor([ 0. ,  0.2,  0.4, -0.4, -0.2])
    """
    _check(n, d, "fftfreq")
    kind = to_dtype("float32" if dtype is None else dtype)
    k = Tensor.arange(n, dtype="int32", device=device)
    return _spaced((k < (n + 1) // 2).where(k, k - n).cast(kind), n, d, requires_grad)


def rfftfreq(
    n: int,
    d: float = 1.0,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """The frequencies of the numbers that ``rfft`` gives, see :func:`fftfreq`.

    Raises:
      ValueError: if n is less than 1, or d is 0.
      TypeError: if n is no integer.

    Example:
      >>> from tg_frontend import fft
      >>> fft.rfftfreq(4, d=0.5)
      Tensor([0. , 0.5, 1. ])
    """
    _check(n, d, "rfftfreq")
    kind = to_dtype("float32" if dtype is None else dtype)
    return _spaced(Tensor.arange(n // 2 + 1, dtype="int32", device=device).cast(kind), n, d, requires_grad)


def _shifted(input: Tensor, dim: int | Sequence[int] | None, back: bool, what: str) -> Tensor:
    if not isinstance(input, Tensor):
        raise TypeError(f"{what}: a tensor is wanted, got a {type(input).__name__}")
    axes = range(input.ndim) if dim is None else [dim] if isinstance(dim, int) else dim
    places = [input._axis(axis, what) for axis in axes]
    if len(set(places)) != len(places):
        raise ValueError(f"{what}: an axis is given twice in {dim}")
    out = input
    for axis in places:
        size = input._ints()[axis] if input.ndim else 1
        out = out.roll(-(size // 2) if back else size // 2, axis) if size > 1 else out
    return out.clone() if out is input else out


def fftshift(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """The numbers of a transform in the order of their frequencies: frequency 0 in the middle.

    Args:
      input: of any dtype.
      dim: along which axes; all if it is not given.

    Raises:
      IndexError: if an axis is out of range.
      ValueError: if one is given twice.
      TypeError: if the input is no tensor.

    Example:
      >>> from tg_frontend import fft
      >>> fft.fftshift(fft.fftfreq(5))
      Tensor([-0.4, -0.2,  0. ,  0.2,  0.4])
    """
    return _shifted(input, dim, False, "fftshift")


def ifftshift(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """The inverse of :func:`fftshift`.

    Raises:
      IndexError: if an axis is out of range.
      ValueError: if one is given twice.
      TypeError: if the input is no tensor.

    Example:
      >>> from tg_frontend import Tensor, fft
      >>> fft.ifftshift(Tensor([-2, -1, 0, 1, 2]))
      Tensor([ 0,  1,  2, -2, -1])
    """
    return _shifted(input, dim, True, "ifftshift")
