"""Transforms along one axis."""

from __future__ import annotations

from ..fourier.axes import axis_of, factor, length_of, operand
from ..fourier.transforms import complex_transform, real_inverse, real_transform
from ..tensor import Tensor


def fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The discrete Fourier transform: number k is the sum of ``x[j] * exp(-2 pi i j k / n)``.

    Args:
      input: real or complex numbers.
      n: how many are transformed: others are left out, missing ones are 0. All, if it is not given.
      dim: along which axis.
      norm: ``"backward"`` (or None) leaves the sums as they are and divides the inverse by n; ``"forward"`` divides
        this one; ``"ortho"`` divides both by the root of n.

    Returns:
      Complex numbers, n along the axis.

    Raises:
      ValueError: if n is less than 1, or there is no such norm or no axis.
      IndexError: if the axis is out of range.
      TypeError: if the input is no tensor.

    Example:
      >>> from tg_frontend import Tensor, fft
      >>> fft.fft(Tensor([3.0, 1.0, -1.0, 0.0]))
      Tensor([3.+0.j, 4.-1.j, 1.+0.j, 4.+1.j])
    """
    return _complex(input, n, dim, norm, False, "fft")


def ifft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of :func:`fft`.

    Raises:
      ValueError: if n is less than 1, or there is no such norm or no axis.
      IndexError: if the axis is out of range.
      TypeError: if the input is no tensor.

    Example:
      >>> from tg_frontend import Tensor, fft
      >>> fft.ifft(Tensor([0.0, 2.0, 0.0, 2.0])).real
      Tensor([ 1.,  0., -1.,  0.])
    """
    return _complex(input, n, dim, norm, True, "ifft")


def _complex(input: Tensor, n: int | None, dim: int, norm: str | None, inverse: bool, what: str) -> Tensor:
    x = operand(input, what)
    axis = axis_of(x, dim, what)
    count = length_of(n, x._ints()[axis], what)
    out: Tensor = complex_transform(x, axis, count, factor(norm, count, not inverse, what), inverse)
    return out


def rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """:func:`fft` of real numbers: numbers 0 to n // 2, of which the others are conjugates.

    Raises:
      ValueError: if n is less than 1, or there is no such norm or no axis.
      IndexError: if the axis is out of range.
      TypeError: if the input is complex, or no tensor.

    Example:
      >>> from tg_frontend import Tensor, fft
      >>> fft.rfft(Tensor([1.0, 2.0, 3.0]))[0]
      Tensor(6.+0.j)
    """
    x = operand(input, "rfft", real=True)
    axis = axis_of(x, dim, "rfft")
    count = length_of(n, x._ints()[axis], "rfft")
    out: Tensor = real_transform(x, axis, count, factor(norm, count, True, "rfft"))
    return out


def irfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of :func:`rfft`: n real numbers.

    Args:
      input: numbers 0 to n // 2 of a transform of real numbers; imaginary parts of the first, and of the last if n is
        even, are taken for 0.
      n: how many numbers come out; an even number if it is not given: 2 (m - 1) of m.
      dim: along which axis.
      norm: as of :func:`ifft`.

    Raises:
      ValueError: if n is less than 1, or there is no such norm or no axis.
      IndexError: if the axis is out of range.
      TypeError: if the input is no tensor.

    Example:
      >>> from tg_frontend import Tensor, fft
      >>> fft.irfft(fft.rfft(Tensor([1.0, 2.0, 3.0, 4.0]))).round()
      Tensor([1., 2., 3., 4.])
    """
    x = operand(input, "irfft")
    axis = axis_of(x, dim, "irfft")
    count = length_of(n, 2 * (x._ints()[axis] - 1), "irfft")
    out: Tensor = real_inverse(x, axis, count, factor(norm, count, False, "irfft"))
    return out


def hfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """:func:`fft` of numbers of which n // 2 + 1 are given and the others are conjugates: n real numbers.

    Raises:
      ValueError: if n is less than 1, or there is no such norm or no axis.
      IndexError: if the axis is out of range.
      TypeError: if the input is no tensor.

    Example:
      >>> from tg_frontend import Tensor, fft
      >>> fft.hfft(Tensor([2.5 + 0j, -0.5 - 0.5j, -0.5 + 0j])).round()
      Tensor([1., 2., 3., 4.])
    """
    x = operand(input, "hfft")
    axis = axis_of(x, dim, "hfft")
    count = length_of(n, 2 * (x._ints()[axis] - 1), "hfft")
    out: Tensor = real_inverse(x.conj(), axis, count, factor(norm, count, True, "hfft"))
    return out


def ihfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of :func:`hfft`.

    Raises:
      ValueError: if n is less than 1, or there is no such norm or no axis.
      IndexError: if the axis is out of range.
      TypeError: if the input is complex, or no tensor.

    Example:
      >>> from tg_frontend import Tensor, fft
      >>> fft.ihfft(Tensor([1.0, 2.0, 3.0, 4.0]))
      Tensor([ 2.5-0.j , -0.5-0.5j, -0.5-0.j ])
    """
    x = operand(input, "ihfft", real=True)
    axis = axis_of(x, dim, "ihfft")
    count = length_of(n, x._ints()[axis], "ihfft")
    out: Tensor = real_transform(x, axis, count, factor(norm, count, False, "ihfft")).conj()
    return out
