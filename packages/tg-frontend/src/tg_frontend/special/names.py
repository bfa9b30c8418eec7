"""Functions that have another name, or another order of arguments, than the method of Tensor that does the same."""

from __future__ import annotations

from ..array.array import A
from ..ops.activation import sigmoid
from . import gamma, incomplete_gamma

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def gammaln(x: A) -> A:
    """The logarithm of the gamma function's magnitude, as ``Tensor.lgamma``.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.special import gammaln
      >>> gammaln(Tensor([5.0])).round(4)
      Tensor([3.1781])
    """
    return gamma.lgamma(x)


def psi(x: A) -> A:
    """The derivative of :func:`gammaln`, as ``Tensor.digamma``.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.special import psi
      >>> psi(Tensor([5.0])).round(4)
      Tensor([1.5061])
    """
    return gamma.digamma(x)


def polygamma(n: int, x: A) -> A:
    """The n-th derivative of :func:`psi`, as ``Tensor.polygamma``.

    Raises:
      ValueError: if ``n`` is negative.
      TypeError: if ``n`` is no integer.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.special import polygamma
      >>> polygamma(1, Tensor([5.0])).round(4)
      Tensor([0.2213])
    """
    return gamma.polygamma(x, n)


def multigammaln(x: A, p: int) -> A:
    """The logarithm of the multivariate gamma function, as ``Tensor.mvlgamma``.

    Raises:
      ValueError: if ``p`` is below 1.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.special import multigammaln
      >>> multigammaln(Tensor([5.0]), 2).round(4)
      Tensor([6.2042])
    """
    return gamma.mvlgamma(x, p)


def expit(x: A) -> A:
    """1 / (1 + exp(-x)), as ``Tensor.sigmoid``.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.special import expit
      >>> expit(Tensor([0.0, 1.0])).round(4)
      Tensor([0.5   , 0.7311])
    """
    return sigmoid(x)


def gammainc(x: A, other: Any) -> A:
    """The lower incomplete gamma function, as ``Tensor.igamma``.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.special import gammainc
      >>> gammainc(Tensor([1.0, 2.0]), 1.0).round(4)
      Tensor([0.6321, 0.2642])
    """
    return incomplete_gamma.igamma(x, other)


def gammaincc(x: A, other: Any) -> A:
    """The upper incomplete gamma function, as ``Tensor.igammac``.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.special import gammaincc
      >>> gammaincc(Tensor([1.0, 2.0]), 1.0).round(4)
      Tensor([0.3679, 0.7358])
    """
    return incomplete_gamma.igammac(x, other)
