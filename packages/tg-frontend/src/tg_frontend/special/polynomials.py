"""Orthogonal polynomials of a degree that is a number or a tensor: by their recurrences, of three terms each.

What is computed has as many steps as the greatest degree. Gradients are those by the argument.
"""

from __future__ import annotations

from tg_dtype import dtypes
from tg_runtime import capturing

from ..array.array import A, Array
from ..array.casts import wide
from ..array.operands import pair

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Step = Callable[[Any, Any, Any, int], Any]

MOST = 1000
"""The greatest degree."""


def chebyshev_polynomial_t(x: A, n: Any) -> A:
    """The Chebyshev polynomial of the first kind, T: cos(n * t) of cos(t).

    Raises:
      ValueError: if a degree is above 1000.
      RuntimeError: if the degrees are a tensor, inside of a TinyJit.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.special import chebyshev_polynomial_t
      >>> chebyshev_polynomial_t(Tensor([0.25, 1.0]), 3).round(4)
      Tensor([-0.6875,  1.    ])
    """
    return _polynomial("chebyshev_polynomial_t", x, n, lambda x: x, _chebyshev)


def chebyshev_polynomial_u(x: A, n: Any) -> A:
    """The Chebyshev polynomial of the second kind, U: sin((n + 1) * t) / sin(t) of cos(t).

    Raises:
      ValueError: if a degree is above 1000.
      RuntimeError: if the degrees are a tensor, inside of a TinyJit.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.special import chebyshev_polynomial_u
      >>> chebyshev_polynomial_u(Tensor([0.25, 1.0]), 3).round(4)
      Tensor([-0.875,  4.   ])
    """
    return _polynomial("chebyshev_polynomial_u", x, n, lambda x: x * 2, _chebyshev)


def chebyshev_polynomial_v(x: A, n: Any) -> A:
    """The Chebyshev polynomial of the third kind, V: cos((n + 1/2) * t) / cos(t / 2) of cos(t).

    Raises:
      ValueError: if a degree is above 1000.
      RuntimeError: if the degrees are a tensor, inside of a TinyJit.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.special import chebyshev_polynomial_v
      >>> chebyshev_polynomial_v(Tensor([0.25, 1.0]), 3).round(4)
      Tensor([-0.125,  1.   ])
    """
    return _polynomial("chebyshev_polynomial_v", x, n, lambda x: x * 2 - 1, _chebyshev)


def chebyshev_polynomial_w(x: A, n: Any) -> A:
    """The Chebyshev polynomial of the fourth kind, W: sin((n + 1/2) * t) / sin(t / 2) of cos(t).

    Raises:
      ValueError: if a degree is above 1000.
      RuntimeError: if the degrees are a tensor, inside of a TinyJit.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.special import chebyshev_polynomial_w
      >>> chebyshev_polynomial_w(Tensor([0.25, 1.0]), 3).round(4)
      Tensor([-1.625,  7.   ])
    """
    return _polynomial("chebyshev_polynomial_w", x, n, lambda x: x * 2 + 1, _chebyshev)


def shifted_chebyshev_polynomial_t(x: A, n: Any) -> A:
    """The Chebyshev polynomial of the first kind at 2 * x - 1, for x from 0 to 1.

    Raises:
      ValueError: if a degree is above 1000.
      RuntimeError: if the degrees are a tensor, inside of a TinyJit.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.special import shifted_chebyshev_polynomial_t
      >>> shifted_chebyshev_polynomial_t(Tensor([0.25, 1.0]), 3).round(4)
      Tensor([1., 1.])
    """
    return _polynomial("shifted_chebyshev_polynomial_t", x, n, lambda x: x, _chebyshev, shifted=True)


def shifted_chebyshev_polynomial_u(x: A, n: Any) -> A:
    """The Chebyshev polynomial of the second kind at 2 * x - 1, for x from 0 to 1.

    Raises:
      ValueError: if a degree is above 1000.
      RuntimeError: if the degrees are a tensor, inside of a TinyJit.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.special import shifted_chebyshev_polynomial_u
      >>> shifted_chebyshev_polynomial_u(Tensor([0.25, 1.0]), 3).round(4)
      Tensor([1., 4.])
    """
    return _polynomial("shifted_chebyshev_polynomial_u", x, n, lambda x: x * 2, _chebyshev, shifted=True)


def shifted_chebyshev_polynomial_v(x: A, n: Any) -> A:
    """The Chebyshev polynomial of the third kind at 2 * x - 1, for x from 0 to 1.

    Raises:
      ValueError: if a degree is above 1000.
      RuntimeError: if the degrees are a tensor, inside of a TinyJit.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.special import shifted_chebyshev_polynomial_v
      >>> shifted_chebyshev_polynomial_v(Tensor([0.25, 1.0]), 3).round(4)
      Tensor([1., 1.])
    """
    return _polynomial("shifted_chebyshev_polynomial_v", x, n, lambda x: x * 2 - 1, _chebyshev, shifted=True)


def shifted_chebyshev_polynomial_w(x: A, n: Any) -> A:
    """The Chebyshev polynomial of the fourth kind at 2 * x - 1, for x from 0 to 1.

    Raises:
      ValueError: if a degree is above 1000.
      RuntimeError: if the degrees are a tensor, inside of a TinyJit.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.special import shifted_chebyshev_polynomial_w
      >>> shifted_chebyshev_polynomial_w(Tensor([0.25, 1.0]), 3).round(4)
      Tensor([1., 7.])
    """
    return _polynomial("shifted_chebyshev_polynomial_w", x, n, lambda x: x * 2 + 1, _chebyshev, shifted=True)


def hermite_polynomial_h(x: A, n: Any) -> A:
    """The physicists' Hermite polynomial: orthogonal with the weight exp(-x**2).

    Raises:
      ValueError: if a degree is above 1000.
      RuntimeError: if the degrees are a tensor, inside of a TinyJit.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.special import hermite_polynomial_h
      >>> hermite_polynomial_h(Tensor([0.25, 1.0]), 3).round(4)
      Tensor([-2.875, -4.   ])
    """
    return _polynomial("hermite_polynomial_h", x, n, lambda x: x * 2, _hermite)


def hermite_polynomial_he(x: A, n: Any) -> A:
    """The probabilists' Hermite polynomial: orthogonal with the weight exp(-x**2 / 2).

    Raises:
      ValueError: if a degree is above 1000.
      RuntimeError: if the degrees are a tensor, inside of a TinyJit.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.special import hermite_polynomial_he
      >>> hermite_polynomial_he(Tensor([0.25, 1.0]), 3).round(4)
      Tensor([-0.7344, -2.    ])
    """
    return _polynomial("hermite_polynomial_he", x, n, lambda x: x, _hermite_of_chances)


def laguerre_polynomial_l(x: A, n: Any) -> A:
    """The Laguerre polynomial: orthogonal with the weight exp(-x) above 0.

    Raises:
      ValueError: if a degree is above 1000.
      RuntimeError: if the degrees are a tensor, inside of a TinyJit.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.special import laguerre_polynomial_l
      >>> laguerre_polynomial_l(Tensor([0.25, 1.0]), 3).round(4)
      Tensor([ 0.3411, -0.6667])
    """
    return _polynomial("laguerre_polynomial_l", x, n, lambda x: 1 - x, _laguerre)


def legendre_polynomial_p(x: A, n: Any) -> A:
    """The Legendre polynomial: orthogonal with the weight 1 from -1 to 1.

    Raises:
      ValueError: if a degree is above 1000.
      RuntimeError: if the degrees are a tensor, inside of a TinyJit.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.special import legendre_polynomial_p
      >>> legendre_polynomial_p(Tensor([0.25, 1.0]), 3).round(4)
      Tensor([-0.3359,  1.    ])
    """
    return _polynomial("legendre_polynomial_p", x, n, lambda x: x, _legendre)


def _chebyshev(x: Any, now: Any, before: Any, k: int) -> Any:
    return x * 2 * now - before


def _hermite(x: Any, now: Any, before: Any, k: int) -> Any:
    return (x * now - before * k) * 2


def _hermite_of_chances(x: Any, now: Any, before: Any, k: int) -> Any:
    return x * now - before * k


def _laguerre(x: Any, now: Any, before: Any, k: int) -> Any:
    return ((2 * k + 1 - x) * now - before * k) / (k + 1)


def _legendre(x: Any, now: Any, before: Any, k: int) -> Any:
    return (x * now * (2 * k + 1) - before * k) / (k + 1)


def _polynomial(
    label: str, x: A, n: Any, first: Callable[[Any], Any], step: Step, shifted: bool = False
) -> A:
    """The polynomial of degree ``n`` (0 if that is negative), from those of degrees 0 and 1.

    Args:
      label: its name in messages.
      x: the argument; it may be a number if ``n`` is a tensor.
      n: the degree, of which the whole part counts.
      first: the polynomial of degree 1, of the argument.
      step: that of degree k + 1, from the argument, those of k and k - 1, and k.
      shifted: whether the argument stands for 2 * x - 1.
    """
    degrees: Any = None
    if isinstance(n, Array):
        if not isinstance(x, Array):
            x = n.full_like(x, dtype=None if n.dtype.kind == "float" else dtypes.default_float)
        x, degrees = x + n.detach() * 0, n.detach().cast(dtypes.int32)
        if capturing():
            raise RuntimeError(f"{label}: degrees in a tensor are read, which a replay of TinyJit would not do again")
        most = int(degrees.max().item()) if degrees.numel() else 0
        degrees = pair(degrees, x.detach().cast(dtypes.float32), label)[0]
    elif isinstance(n, (int, float)):
        most = int(n)
    else:
        raise TypeError(f"{label}: the degree is a number or a tensor, got {n!r}")
    if most > MOST:
        raise ValueError(f"{label}: degrees up to {MOST} are possible, got {most}")

    def compute(x: A) -> A:
        place = x * 2 - 1 if shifted else x
        before, now = place * 0 + 1, first(place)
        if degrees is None:
            if most <= 0:
                return before if most == 0 else before * 0
            for k in range(1, most):
                before, now = now, step(place, now, before, k)
            return now  # type: ignore[no-any-return]
        out: Any = (degrees == 0).where(before, 0)
        for k in range(1, most + 1):
            out = (degrees == k).where(now, out)
            before, now = now, step(place, now, before, k)
        return out  # type: ignore[no-any-return]

    return wide(x, compute)
