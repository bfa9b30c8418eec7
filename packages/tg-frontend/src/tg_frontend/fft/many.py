"""Transforms along several axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..fourier.axes import axes_and_lengths, factor, length_of, operand
from ..fourier.transforms import complex_transform, real_inverse, real_transform
from ..tensor import Tensor

Axes = Sequence[int] | None


def _complex(
    x: Any, axes: Sequence[int], lengths: Sequence[int | None], norm: str | None, inverse: bool, what: str
) -> Any:
    for axis, n in zip(axes, lengths, strict=True):
        count = length_of(n, x._ints()[axis], what)
        x = complex_transform(x, axis, count, factor(norm, count, not inverse, what), inverse)
    return x


def _some(axes: list[int], what: str) -> None:
    if not axes:
        raise ValueError(f"{what}: at least one axis is transformed")


def _all(input: Any, s: Any, dim: Any, norm: str | None, inverse: bool, what: str) -> Tensor:
    x = operand(input, what)
    axes, lengths = axes_and_lengths(x, s, dim, what)
    factor(norm, 1, True, what)
    out: Tensor = _complex(x, axes, lengths, norm, inverse, what)
    return out if out.is_complex() else out.cast("complex128" if out.dtype.itemsize == 8 else "complex64")


def fftn(input: Tensor, s: Sequence[int] | None = None, dim: Axes = None, norm: str | None = None) -> Tensor:
    """``fft`` along several axes, one after the other.

    Args:
      input: real or complex numbers.
      s: how many are transformed along each axis; -1 is all.
      dim: the axes; all if it is not given, or the last ones if ``s`` has fewer.
      norm: as of ``fft``, for each axis.

    Raises:
      ValueError: if a length is less than 1, there is no such norm, an axis is given twice, or ``s`` and ``dim`` differ
        in length.
      IndexError: if an axis is out of range.
      TypeError: if the input is no tensor.

    Example:
      >>> from tg_frontend import Tensor, fft
      >>> fft.fftn(Tensor([[1.0, 1.0], [1.0, 1.0]]))[0, 0].real
      Tensor(4.)
    """
    return _all(input, s, dim, norm, False, "fftn")


def fft2(
    input: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] = (-2, -1), norm: str | None = None
) -> Tensor:
    """:func:`fftn` along the last two axes, or two others.

    Raises:
      ValueError: as of :func:`fftn`.
      IndexError: if an axis is out of range.
      TypeError: as of :func:`fftn`.

    Example:
      >>> from tg_frontend import Tensor, fft
      >>> fft.fft2(Tensor([[1.0, 1.0], [1.0, 1.0]]))[0, 0].real
      Tensor(4.)
    """
    return _all(input, s, dim, norm, False, "fft2")


def ifftn(input: Tensor, s: Sequence[int] | None = None, dim: Axes = None, norm: str | None = None) -> Tensor:
    """``ifft`` along several axes, one after the other.

    Args:
      input: real or complex numbers.
      s: how many are transformed along each axis; -1 is all.
      dim: the axes; all if it is not given, or the last ones if ``s`` has fewer.
      norm: as of ``ifft``, for each axis.

    Raises:
      ValueError: if a length is less than 1, there is no such norm, an axis is given twice, or ``s`` and ``dim`` differ
        in length.
      IndexError: if an axis is out of range.
      TypeError: if the input is no tensor.

    Example:
      >>> from tg_frontend import Tensor, fft
      >>> fft.ifftn(Tensor([[1.0, 1.0], [1.0, 1.0]]))[0, 0].real
      Tensor(1.)
    """
    return _all(input, s, dim, norm, True, "ifftn")


def ifft2(
    input: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] = (-2, -1), norm: str | None = None
) -> Tensor:
    """:func:`ifftn` along the last two axes, or two others.

    Raises:
      ValueError: as of :func:`ifftn`.
      IndexError: if an axis is out of range.
      TypeError: as of :func:`ifftn`.

    Example:
      >>> from tg_frontend import Tensor, fft
      >>> fft.ifft2(Tensor([[4.0, 0.0], [0.0, 0.0]])).real
      Tensor([[1., 1.],
              [1., 1.]])
    """
    return _all(input, s, dim, norm, True, "ifft2")


def rfftn(input: Tensor, s: Sequence[int] | None = None, dim: Axes = None, norm: str | None = None) -> Tensor:
    """``rfft`` along the last of several axes, ``fft`` along the others.

    Raises:
      ValueError: as of :func:`fftn`, and if there is no axis.
      IndexError: if an axis is out of range.
      TypeError: if the input is complex, or no tensor.

    Example:
      >>> from tg_frontend import Tensor, fft
      >>> fft.rfftn(Tensor.ones(4, 6)).shape
      (4, 4)
    """
    return _real(input, s, dim, norm, False, "rfftn")


def _real(input: Any, s: Any, dim: Any, norm: str | None, inverse: bool, what: str) -> Tensor:
    """From real numbers; ``inverse`` as of :func:`ihfftn`."""
    x = operand(input, what, real=True)
    axes, lengths = axes_and_lengths(x, s, dim, what)
    _some(axes, what)
    count = length_of(lengths[-1], x._ints()[axes[-1]], what)
    out: Any = real_transform(x, axes[-1], count, factor(norm, count, not inverse, what))
    if inverse:
        out = out.conj()
    done: Tensor = _complex(out, axes[:-1], lengths[:-1], norm, inverse, what)
    return done


def irfftn(input: Tensor, s: Sequence[int] | None = None, dim: Axes = None, norm: str | None = None) -> Tensor:
    """The inverse of :func:`rfftn`: real numbers.

    Args:
      input: numbers 0 to n // 2 along the last axis.
      s: how many come out along each axis; of the last an even number if it is not given.
      dim: the axes; all if it is not given, or the last ones if ``s`` has fewer.
      norm: as of ``ifft``, for each axis.

    Raises:
      ValueError: as of :func:`fftn`, and if there is no axis.
      IndexError: if an axis is out of range.
      TypeError: if the input is no tensor.

    Example:
      >>> from tg_frontend import Tensor, fft
      >>> x = Tensor([[1.0, 2.0], [3.0, 5.0]])
      >>> fft.irfftn(fft.rfftn(x)).round()
      Tensor([[1., 2.],
              [3., 5.]])
    """
    return _to_real(input, s, dim, norm, False, "irfftn")


def _to_real(input: Any, s: Any, dim: Any, norm: str | None, forward: bool, what: str) -> Tensor:
    """To real numbers; ``forward`` as of :func:`hfftn`."""
    x = operand(input, what)
    axes, lengths = axes_and_lengths(x, s, dim, what)
    _some(axes, what)
    count = length_of(lengths[-1], 2 * (x._ints()[axes[-1]] - 1), what)
    x = _complex(x, axes[:-1], lengths[:-1], norm, not forward, what)
    out: Tensor = real_inverse(x.conj() if forward else x, axes[-1], count, factor(norm, count, forward, what))
    return out


def rfft2(
    input: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] = (-2, -1), norm: str | None = None
) -> Tensor:
    """:func:`rfftn` along the last two axes, or two others.

    Raises:
      ValueError: as of :func:`rfftn`.
      IndexError: if an axis is out of range.
      TypeError: as of :func:`rfftn`.

    Example:
      >>> from tg_frontend import Tensor, fft
      >>> fft.rfft2(Tensor.ones(4, 6)).shape
      (4, 4)
    """
    return _real(input, s, dim, norm, False, "rfft2")


def irfft2(
    input: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] = (-2, -1), norm: str | None = None
) -> Tensor:
    """:func:`irfftn` along the last two axes, or two others.

    Raises:
      ValueError: as of :func:`irfftn`.
      IndexError: if an axis is out of range.
      TypeError: as of :func:`irfftn`.

    Example:
      >>> from tg_frontend import Tensor, fft
      >>> fft.irfft2(fft.rfft2(Tensor.ones(4, 6))).shape
      (4, 6)
    """
    return _to_real(input, s, dim, norm, False, "irfft2")


def hfftn(input: Tensor, s: Sequence[int] | None = None, dim: Axes = None, norm: str | None = None) -> Tensor:
    """``hfft`` along the last of several axes, after ``fft`` along the others: real numbers.

    Raises:
      ValueError: as of :func:`fftn`, and if there is no axis.
      IndexError: if an axis is out of range.
      TypeError: if the input is no tensor.

    Example:
      >>> from tg_frontend import Tensor, fft
      >>> fft.hfftn(Tensor.ones(4, 4, dtype="complex64")).shape
      (4, 6)
    """
    return _to_real(input, s, dim, norm, True, "hfftn")


def ihfftn(input: Tensor, s: Sequence[int] | None = None, dim: Axes = None, norm: str | None = None) -> Tensor:
    """The inverse of :func:`hfftn`.

    Raises:
      ValueError: as of :func:`fftn`, and if there is no axis.
      IndexError: if an axis is out of range.
      TypeError: if the input is complex, or no tensor.

    Example:
      >>> from tg_frontend import Tensor, fft
      >>> fft.ihfftn(Tensor.ones(4, 6)).shape
      (4, 4)
    """
    return _real(input, s, dim, norm, True, "ihfftn")


def hfft2(
    input: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] = (-2, -1), norm: str | None = None
) -> Tensor:
    """:func:`hfftn` along the last two axes, or two others.

    Raises:
      ValueError: as of :func:`hfftn`.
      IndexError: if an axis is out of range.
      TypeError: as of :func:`hfftn`.

    Example:
      >>> from tg_frontend import Tensor, fft
      >>> fft.hfft2(Tensor.ones(4, 4, dtype="complex64")).shape
      (4, 6)
    """
    return _to_real(input, s, dim, norm, True, "hfft2")


def ihfft2(
    input: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] = (-2, -1), norm: str | None = None
) -> Tensor:
    """:func:`ihfftn` along the last two axes, or two others.

    Raises:
      ValueError: as of :func:`ihfftn`.
      IndexError: if an axis is out of range.
      TypeError: as of :func:`ihfftn`.

    Example:
      >>> from tg_frontend import Tensor, fft
      >>> fft.ihfft2(Tensor.ones(4, 6)).shape
      (4, 4)
    """
    return _real(input, s, dim, norm, True, "ihfft2")
