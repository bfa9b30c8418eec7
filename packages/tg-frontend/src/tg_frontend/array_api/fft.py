"""The extension for Fourier transforms."""

from __future__ import annotations

from .. import fft as ours
from ..tensor import Tensor
from .operands import tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn",
    "rfft", "rfftfreq", "rfftn",
]  # fmt: skip


def fft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The transform along an axis."""
    return ours.fft(tensor(x, "fft"), n, axis, norm)


def ifft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The inverse transform along an axis."""
    return ours.ifft(tensor(x, "ifft"), n, axis, norm)


def rfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The transform of real numbers along an axis: its first half."""
    return ours.rfft(tensor(x, "rfft"), n, axis, norm)


def irfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """Real numbers from the first half of their transform."""
    return ours.irfft(tensor(x, "irfft"), n, axis, norm)


def hfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The real transform of the first half of a Hermitian sequence."""
    return ours.hfft(tensor(x, "hfft"), n, axis, norm)


def ihfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The inverse of :func:`hfft`."""
    return ours.ihfft(tensor(x, "ihfft"), n, axis, norm)


def fftn(
    x: Tensor, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
) -> Tensor:
    """The transform along several axes."""
    return ours.fftn(tensor(x, "fftn"), s, axes, norm)


def ifftn(
    x: Tensor, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
) -> Tensor:
    """The inverse transform along several axes."""
    return ours.ifftn(tensor(x, "ifftn"), s, axes, norm)


def rfftn(
    x: Tensor, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
) -> Tensor:
    """The transform of real numbers along several axes: of the last its first half."""
    return ours.rfftn(tensor(x, "rfftn"), s, axes, norm)


def irfftn(
    x: Tensor, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
) -> Tensor:
    """Real numbers from what :func:`rfftn` gives."""
    return ours.irfftn(tensor(x, "irfftn"), s, axes, norm)


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: str | None = None) -> Tensor:
    """Frequencies of the elements of a transform."""
    return ours.fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: str | None = None) -> Tensor:
    """Frequencies of the elements of a transform of real numbers."""
    return ours.rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """The frequency 0 moved to the middle."""
    return ours.fftshift(tensor(x, "fftshift"), axes)


def ifftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """The inverse of :func:`fftshift`."""
    return ours.ifftshift(tensor(x, "ifftshift"), axes)
