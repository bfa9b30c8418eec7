"""Windows of signals, by PyTorch's names: ``tinytg.signal.windows``.

Each is a function of the number of elements. A symmetric one (``sym``) is the same from both ends, for filters;
otherwise it is one period of a periodic one, for spectra: the first elements of the symmetric one that is longer by 1.
"""

from __future__ import annotations

from ..array.base import DTypeLike
from ..keywords import offered
from ..special import tapers
from ..tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]


def bartlett(
    M: int, *, sym: bool = True, dtype: DTypeLike | None = None, device: str | None = None,
    requires_grad: bool | None = None,
) -> Tensor:  # fmt: skip
    """A triangle, 0 at both ends.

    Raises:
      ValueError: if ``M`` is negative.
      TypeError: if ``M`` is no integer, or the dtype no float.

    Example:
      >>> from tg_frontend.signal.windows import bartlett
      >>> bartlett(5).round(4)
      Tensor([0. , 0.5, 1. , 0.5, 0. ])
    """
    return tapers.bartlett(Tensor, M, sym, dtype, device, requires_grad)


def blackman(
    M: int, *, sym: bool = True, dtype: DTypeLike | None = None, device: str | None = None,
    requires_grad: bool | None = None,
) -> Tensor:  # fmt: skip
    """The Blackman window: 0.42 - 0.5 cos + 0.08 cos of twice the angle.

    Raises:
      ValueError: if ``M`` is negative.
      TypeError: if ``M`` is no integer, or the dtype no float.

    Example:
      >>> from tg_frontend.signal.windows import blackman
      >>> blackman(5).abs().round(4)
      Tensor([0.  , 0.34, 1.  , 0.34, 0.  ])
    """
    return tapers.blackman(Tensor, M, sym, dtype, device, requires_grad)


def cosine(
    M: int, *, sym: bool = True, dtype: DTypeLike | None = None, device: str | None = None,
    requires_grad: bool | None = None,
) -> Tensor:  # fmt: skip
    """Half a period of the sine.

    Raises:
      ValueError: if ``M`` is negative.
      TypeError: if ``M`` is no integer, or the dtype no float.

    Example:
      >>> from tg_frontend.signal.windows import cosine
      >>> cosine(3).round(4)
      Tensor([0.5, 1. , 0.5])
    """
    return tapers.cosine(Tensor, M, sym, dtype, device, requires_grad)


def exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, dtype: DTypeLike | None = None,
    device: str | None = None,
    requires_grad: bool | None = None,
) -> Tensor:  # fmt: skip
    """exp(-|k - center| / tau).

    Args:
      center: where it is 1; the middle if it is not given.
      tau: in how many elements it falls to 1/e.

    Raises:
      ValueError: if ``M`` is negative.
      TypeError: if ``M`` is no integer, or the dtype no float.
      ValueError: if ``tau`` is not positive, or a center is given of a symmetric window.

    Example:
      >>> from tg_frontend.signal.windows import exponential
      >>> exponential(3).round(4)
      Tensor([0.3679, 1.    , 0.3679])
    """
    return tapers.exponential(Tensor, M, center, tau, sym, dtype, device, requires_grad)


def gaussian(
    M: int, *, std: float = 1.0, sym: bool = True, dtype: DTypeLike | None = None, device: str | None = None,
    requires_grad: bool | None = None,
) -> Tensor:  # fmt: skip
    """The bell curve around the middle.

    Args:
      std: its standard deviation, in elements.

    Raises:
      ValueError: if ``M`` is negative.
      TypeError: if ``M`` is no integer, or the dtype no float.
      ValueError: if ``std`` is not positive.

    Example:
      >>> from tg_frontend.signal.windows import gaussian
      >>> gaussian(3).round(4)
      Tensor([0.6065, 1.    , 0.6065])
    """
    return tapers.gaussian(Tensor, M, std, sym, dtype, device, requires_grad)


def general_cosine(
    M: int, *, a: Any, sym: bool = True, dtype: DTypeLike | None = None, device: str | None = None,
    requires_grad: bool | None = None,
) -> Tensor:  # fmt: skip
    """The sum of (-1)**i * a[i] * cos(i * angle).

    Args:
      a: the coefficients.

    Raises:
      ValueError: if ``M`` is negative.
      TypeError: if ``M`` is no integer, or the dtype no float.
      TypeError: if the coefficients are no sequence of numbers.
      ValueError: if there are none.

    Example:
      >>> from tg_frontend.signal.windows import general_cosine
      >>> general_cosine(5, a=[0.5, 0.5]).round(4)
      Tensor([0. , 0.5, 1. , 0.5, 0. ])
    """
    return tapers.general_cosine(Tensor, M, a, sym, dtype, device, requires_grad)


def general_hamming(
    M: int, *, alpha: float = 0.54, sym: bool = True, dtype: DTypeLike | None = None, device: str | None = None,
    requires_grad: bool | None = None,
) -> Tensor:  # fmt: skip
    """alpha - (1 - alpha) * cos(angle).

    Args:
      alpha: the coefficient.

    Raises:
      ValueError: if ``M`` is negative.
      TypeError: if ``M`` is no integer, or the dtype no float.

    Example:
      >>> from tg_frontend.signal.windows import general_hamming
      >>> general_hamming(5, alpha=0.5).round(4)
      Tensor([0. , 0.5, 1. , 0.5, 0. ])
    """
    return tapers.general_hamming(Tensor, M, alpha, sym, dtype, device, requires_grad)


def hamming(
    M: int, *, sym: bool = True, dtype: DTypeLike | None = None, device: str | None = None,
    requires_grad: bool | None = None,
) -> Tensor:  # fmt: skip
    """0.54 - 0.46 * cos(angle).

    Raises:
      ValueError: if ``M`` is negative.
      TypeError: if ``M`` is no integer, or the dtype no float.

    Example:
      >>> from tg_frontend.signal.windows import hamming
      >>> hamming(3).round(4)
      Tensor([0.08, 1.  , 0.08])
    """
    return tapers.hamming(Tensor, M, sym, dtype, device, requires_grad)


def hann(
    M: int, *, sym: bool = True, dtype: DTypeLike | None = None, device: str | None = None,
    requires_grad: bool | None = None,
) -> Tensor:  # fmt: skip
    """0.5 - 0.5 * cos(angle): the sine squared.

    Raises:
      ValueError: if ``M`` is negative.
      TypeError: if ``M`` is no integer, or the dtype no float.

    Example:
      >>> from tg_frontend.signal.windows import hann
      >>> hann(5).round(4)
      Tensor([0. , 0.5, 1. , 0.5, 0. ])
    """
    return tapers.hann(Tensor, M, sym, dtype, device, requires_grad)


def kaiser(
    M: int, *, beta: float = 12.0, sym: bool = True, dtype: DTypeLike | None = None, device: str | None = None,
    requires_grad: bool | None = None,
) -> Tensor:  # fmt: skip
    """The Kaiser window: I0(beta * sqrt(1 - place**2)) / I0(beta) for places from -1 to 1.

    Args:
      beta: how narrow it is.

    Raises:
      ValueError: if ``M`` is negative.
      TypeError: if ``M`` is no integer, or the dtype no float.
      ValueError: if ``beta`` is negative.

    Example:
      >>> from tg_frontend.signal.windows import kaiser
      >>> kaiser(3, beta=2.0).round(4)
      Tensor([0.4387, 1.    , 0.4387])
    """
    return tapers.kaiser(Tensor, M, beta, sym, dtype, device, requires_grad)


def nuttall(
    M: int, *, sym: bool = True, dtype: DTypeLike | None = None, device: str | None = None,
    requires_grad: bool | None = None,
) -> Tensor:  # fmt: skip
    """Nuttall's window of four cosines.

    Raises:
      ValueError: if ``M`` is negative.
      TypeError: if ``M`` is no integer, or the dtype no float.

    Example:
      >>> from tg_frontend.signal.windows import nuttall
      >>> nuttall(5).round(4)
      Tensor([4.00e-04, 2.27e-01, 1.00e+00, 2.27e-01, 4.00e-04])
    """
    return tapers.nuttall(Tensor, M, sym, dtype, device, requires_grad)


offered(globals(), __all__, "windows")
