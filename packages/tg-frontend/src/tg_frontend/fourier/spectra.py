"""Spectra over time: transforms of overlapping pieces of a signal, and the signal put together again."""

from __future__ import annotations

import math

from tg_runtime import capturing

from ..array.array import A, Array
from .axes import operand
from .transforms import complex_transform, real_inverse, real_transform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _steps(n_fft: Any, hop_length: Any, win_length: Any, what: str) -> tuple[int, int, int]:
    """Sizes of pieces, of steps between them and of the window.

    Raises:
      TypeError: if one is no integer.
      ValueError: if one is not positive, or the window is longer than a piece.
    """
    hop = n_fft // 4 if hop_length is None and isinstance(n_fft, int) else hop_length
    width = n_fft if win_length is None else win_length
    for name, value in (("n_fft", n_fft), ("hop_length", hop), ("win_length", width)):
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(f"{what}: {name} is an integer, got {value!r}")
        if value < 1:
            raise ValueError(f"{what}: {name} is {value}; it is at least 1")
    if width > n_fft:
        raise ValueError(f"{what}: a window of {width} for pieces of n_fft={n_fft}")
    return n_fft, hop, width


def _window(x: Any, window: Any, n: int, width: int, what: str) -> Any:
    """The window in the middle of n numbers.

    Raises:
      TypeError: if it is no tensor.
      ValueError: if it is not of shape (width,).
    """
    if window is None:
        window = x.real.new_ones((width,))
    if not isinstance(window, Array):
        raise TypeError(f"{what}: the window is a tensor, got a {type(window).__name__}")
    if window.shape != (width,):
        raise ValueError(f"{what}: the window has shape {window.shape}, win_length is {width}")
    left = (n - width) // 2
    return window.pad([(left, n - width - left)])


def stft(
    x: A,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: A | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
) -> A:
    """The short-time Fourier transform: of overlapping pieces of a signal, each times a window.

    Args:
      x: shape (count,) or (batch, count): real or complex numbers.
      n_fft: how long pieces are.
      hop_length: from the beginning of one piece to that of the next; ``n_fft // 4`` if it is not given.
      win_length: how long the window is; ``n_fft`` if it is not given. A shorter one stands in the middle of a piece.
      window: shape (win_length,); ones if it is not given.
      center: whether piece t is around number ``t * hop_length``; then both ends are padded by ``n_fft // 2``.
      pad_mode: how, as of :meth:`pad`.
      normalized: whether everything is divided by the root of ``n_fft``.
      onesided: whether only frequencies 0 to ``n_fft // 2`` are given; so if it is not given and all numbers are real.
      return_complex: True for complex numbers, which is also meant if it is not given.

    Returns:
      Shape (…, frequencies, pieces).

    Raises:
      ValueError: if the signal has another number of axes or is shorter than a piece, a size is not positive, the
        window does not fit, or one side is wanted of complex numbers.
      TypeError: if a size is no integer or the window no tensor; or ``return_complex`` is False: use
        :meth:`view_as_real`.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0, 0.0, -1.0, 0.0] * 4).stft(4, 4, center=False).abs()[:, 0].round()
      Tensor([0., 2., 0.])
    """
    n, hop, width = _steps(n_fft, hop_length, win_length, "stft")
    if return_complex is False:
        raise TypeError("stft: return_complex=False is not offered; use view_as_real() of the result")
    signal: Any = operand(x, "stft")
    if signal.ndim not in (1, 2):
        raise ValueError(f"stft: a signal has shape (count,) or (batch, count), got {signal.shape}")
    full = _window(signal, window, n, width, "stft")
    real = not signal.is_complex() and not full.is_complex()
    if onesided and not real:
        raise ValueError("stft: onesided=True is for real numbers")
    flat = signal if signal.ndim == 2 else signal.unsqueeze(0)
    if center:
        flat = flat.pad([(0, 0), (n // 2, n // 2)], mode=pad_mode)
    count = flat._ints()[1]
    if count < n:
        raise ValueError(f"stft: a signal of shape {signal.shape} is shorter than a piece of n_fft={n}")
    pieces = flat.unfold(1, n, hop) * full
    scale = 1 / math.sqrt(n) if normalized else 1.0
    if real and onesided is not False:
        out = real_transform(pieces, 2, n, scale)
    else:
        out = complex_transform(pieces, 2, n, scale, False)
    out = out.transpose(1, 2)
    found: A = out if signal.ndim == 2 else out.squeeze(0)
    return found


def istft(
    x: A,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: A | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> A:
    """The signal whose :meth:`stft` this is, or comes nearest to this: pieces are added, and divided by their windows.

    A complex window is squared, not its absolute value, as in PyTorch.

    Source: D. W. Griffin and J. S. Lim, "Signal estimation from modified short-time Fourier transform", 1984.

    Args:
      x: shape (frequencies, pieces) or (batch, frequencies, pieces), complex.
      n_fft: how long pieces are.
      hop_length: as of :meth:`stft`.
      win_length: as of :meth:`stft`.
      window: as of :meth:`stft`.
      center: as of :meth:`stft`.
      normalized: as of :meth:`stft`.
      onesided: whether only frequencies 0 to ``n_fft // 2`` are there; as many as there are if it is not given.
      length: how many numbers come out: more are zeros, less are cut off.
      return_complex: whether the signal is of complex numbers.

    Returns:
      Shape (count,) or (batch, count).

    Raises:
      ValueError: if the shape does not fit, or a number of the signal is in no window.
      TypeError: if this is not complex, a size is no integer, or the window no tensor.

    Example:
      >>> from tg_frontend import Tensor
      >>> x = Tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
      >>> x.stft(4).istft(4).round()
      Tensor([1., 2., 3., 4., 5., 6., 7., 8.])
    """
    n, hop, width = _steps(n_fft, hop_length, win_length, "istft")
    z: Any = x
    if not z.is_complex():
        raise TypeError(f"istft: complex numbers are wanted, got a tensor of {z.dtype.name}")
    if z.ndim not in (2, 3):
        raise ValueError(f"istft: shape (frequencies, pieces), perhaps of a batch, is wanted, got {z.shape}")
    half = z._ints()[-2] != n if onesided is None else onesided
    wanted = n // 2 + 1 if half else n
    if z._ints()[-2] != wanted or z._ints()[-1] < 1:
        raise ValueError(f"istft: shape {z.shape} for pieces of n_fft={n}: {wanted} frequencies are wanted")
    if half and return_complex:
        raise ValueError("istft: return_complex=True wants all frequencies: onesided=False")
    full = _window(z, window, n, width, "istft")
    scale = math.sqrt(n) / n if normalized else 1 / n
    flat = (z if z.ndim == 3 else z.unsqueeze(0)).transpose(1, 2)
    if return_complex:
        pieces = complex_transform(flat, 2, n, scale, True)
    else:  # of all frequencies the first half tells the signal, as in PyTorch
        pieces = real_inverse(flat[:, :, : n // 2 + 1], 2, n, scale)
    out = _added(pieces * full, hop)
    square = full * full
    weight = _added(square.reshape((1, 1, n)).expand(1, z._ints()[-1], n), hop)
    start = n // 2 if center else 0
    count = weight._ints()[1]
    if length is not None and length < 0:
        raise ValueError(f"istft: a signal has no length of {length}")
    stop = count - start if length is None else min(start + length, count)
    out, weight = (part.shrink([None, (start, max(start, stop))]) for part in (out, weight))
    if not capturing() and bool((weight.abs() < 1e-11).any().item()):
        raise ValueError("istft: some numbers of the signal are in no window: choose a smaller hop_length")
    out = out / weight
    if length is not None and length > out._ints()[1]:
        out = out.pad([(0, 0), (0, length - out._ints()[1])])
    found: A = out if z.ndim == 3 else out.squeeze(0)
    return found


def _added(pieces: Any, hop: int) -> Any:
    """Pieces of shape (batch, count, n) added where they overlap: shape (batch, (count - 1) * hop + n)."""
    batch, count, n = pieces._ints()
    total = (count - 1) * hop + n
    # cut into strips of ``hop``: strip k of piece t is strip t + k of the signal
    strips = -(-n // hop)
    rows = pieces.pad([(0, 0), (0, 0), (0, strips * hop - n)]).reshape((batch, count, strips, hop))
    out = None
    for k in range(strips):
        row = rows.shrink([None, None, (k, k + 1), None]).reshape((batch, count, hop))
        row = row.pad([(0, 0), (k, strips - 1 - k), (0, 0)])
        out = row if out is None else out + row
    assert out is not None
    return out.reshape((batch, (count + strips - 1) * hop)).shrink([None, (0, total)])
