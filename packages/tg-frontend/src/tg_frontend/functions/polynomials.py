"""Polynomials as numpy's functions of these names have them: rows of coefficients, that of the highest power first."""

from __future__ import annotations

from ..array.casts import floating, wide
from ..linalg import eigvals, lstsq, vander
from ..tensor import Tensor
from .editing import trim_zeros
from .kinds import promote_types
from .sequences import convolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def _row(p: Tensor, what: str) -> Tensor:
    """Coefficients, one at least.

    Raises:
      ValueError: if they are no row.
    """
    if p.ndim > 1:
        raise ValueError(f"{what}: a row of coefficients is wanted, got shape {p.shape}")
    return p.reshape(-1)


def polyval(p: Tensor, x: Tensor) -> Tensor:
    """The values of a polynomial, by Horner's rule.

    Args:
      p: its coefficients, shape (n,).
      x: where, of any shape.

    Raises:
      ValueError: if ``p`` is no row.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import polyval
      >>> polyval(Tensor([3.0, 0.0, 1.0]), Tensor([0.0, 5.0]))
      Tensor([ 1., 76.])
    """
    row = _row(p, "polyval")
    kind = promote_types(row.dtype, x.dtype) if len(row) else x.dtype  # a single factor would not decide over x
    x, row = x.cast(kind), row.cast(kind)
    return wide(x, _horner, row) if kind.kind == "float" else _horner(x, row)


def _horner(x: Tensor, row: Tensor) -> Tensor:
    out = x.zeros_like()
    for factor in row:
        out = out * x + factor
    return out


def polyadd(a1: Tensor, a2: Tensor) -> Tensor:
    """The sum of two polynomials.

    Args:
      a1: one, shape (n,).
      a2: the other, shape (m,).

    Raises:
      ValueError: if one is no row.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import polyadd
      >>> polyadd(Tensor([1, 2]), Tensor([9, 5, 4]))
      Tensor([9, 6, 6])
    """
    one, other = _aligned(a1, a2, "polyadd")
    return one + other


def _aligned(a1: Tensor, a2: Tensor, what: str) -> tuple[Tensor, Tensor]:
    """Coefficients of two polynomials, as many of each."""
    one, other = _row(a1, what), _row(a2, what)
    size = max(len(one), len(other))
    return one.pad(((size - len(one), 0),)), other.pad(((size - len(other), 0),))


def polysub(a1: Tensor, a2: Tensor) -> Tensor:
    """The difference of two polynomials.

    Args:
      a1: one, shape (n,).
      a2: the other, shape (m,).

    Raises:
      ValueError: if one is no row.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import polysub
      >>> polysub(Tensor([2, 10, -2]), Tensor([3, 10, -4]))
      Tensor([-1,  0,  2])
    """
    one, other = _aligned(a1, a2, "polysub")
    return one - other


def polymul(a1: Tensor, a2: Tensor) -> Tensor:
    """The product of two polynomials; leading zeros of both are left out, for which the elements are computed now.

    Args:
      a1: one, shape (n,).
      a2: the other, shape (m,).

    Raises:
      ValueError: if one is no row.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import polymul
      >>> polymul(Tensor([1.0, 2.0, 3.0]), Tensor([9.0, 5.0, 1.0]))
      Tensor([ 9., 23., 38., 17.,  3.])
    """
    return convolve(_leading(a1, "polymul"), _leading(a2, "polymul"))


def _leading(p: Tensor, what: str) -> Tensor:
    """Coefficients without leading zeros; a single zero of nothing else."""
    row = trim_zeros(_row(p, what), "f")
    return row if len(row) else p.new_zeros(1)


def polyder(p: Tensor, m: int = 1) -> Tensor:
    """A derivative of a polynomial.

    Args:
      p: its coefficients, shape (n,).
      m: which derivative.

    Raises:
      ValueError: if ``m`` is negative, or ``p`` no row.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import polyder
      >>> polyder(Tensor([1, 1, 1, 1])), polyder(Tensor([1.0, 1.0, 1.0]), 2)
      (Tensor([3, 2, 1]), Tensor([2.]))
    """
    if m < 0:
        raise ValueError(f"polyder: there is no derivative {m}")
    row = _row(p, "polyder")
    for _ in range(m):
        n = len(row)
        row = row[: max(n - 1, 0)] * Tensor.arange(n - 1, 0, -1, device=p.device) if n > 1 else row[:0]
    return row


def polyint(p: Tensor, m: int = 1, k: complex | Sequence[complex] | None = None) -> Tensor:
    """An integral of a polynomial.

    Args:
      p: its coefficients, shape (n,).
      m: how often it is integrated.
      k: what each integral is at 0, the first of them first: one number for all, or ``m`` of them; 0 if None.

    Raises:
      ValueError: if ``m`` is negative, there are not ``m`` numbers, or ``p`` is no row.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import polyint
      >>> polyint(Tensor([6.0, 4.0, 2.0]), k=3)
      Tensor([2., 2., 2., 3.])
    """
    if m < 0:
        raise ValueError(f"polyint: no polynomial is integrated {m} times")
    starts = [0.0] * m if k is None else [k] * m if isinstance(k, (int, float, complex)) else list(k)
    if len(starts) == 1:
        starts *= m
    if len(starts) < m:
        raise ValueError(f"polyint: {len(starts)} constants for {m} integrals")
    row = _row(p, "polyint")
    for start in starts[:m]:
        row = floating(row)
        row = (row / Tensor.arange(len(row), 0, -1, device=p.device)).cat(row.new_zeros(1) + start)
    return row


def poly(seq_of_zeros: Tensor) -> Tensor:
    """The polynomial with these roots, whose first coefficient is 1; of a square matrix, its characteristic one.

    Args:
      seq_of_zeros: shape (n,); or (n, n), whose eigenvalues are meant.

    Returns:
      shape (n + 1,); complex if the roots are.

    Raises:
      ValueError: for another shape.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import poly
      >>> poly(Tensor([-1.0, 1.0, 1.0, 10.0]))
      Tensor([  1., -11.,   9.,  11., -10.])
    """
    shape = seq_of_zeros._ints()
    if len(shape) == 2 and shape[0] == shape[1] > 0:
        found = poly(eigvals(floating(seq_of_zeros)))
        return found if seq_of_zeros.is_complex() else found.real
    if len(shape) > 1:
        raise ValueError(f"poly: roots are a row, or a square matrix, got shape {seq_of_zeros.shape}")
    row = floating(seq_of_zeros).reshape(-1)
    out = row.new_ones(1)
    for root in row:
        out = out.pad(((0, 1),)) - out.pad(((1, 0),)) * root
    return out


def roots(p: Tensor) -> Tensor:
    """Where a polynomial is 0: the eigenvalues of its companion matrix. The coefficients are computed now.

    Source: Horn and Johnson, "Matrix Analysis", 1999, pages 146 and 147.

    Args:
      p: its coefficients, shape (n,).

    Returns:
      As many as its degree, complex; in no order.

    Raises:
      ValueError: if ``p`` is no row.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import roots
      >>> roots(Tensor([1.0, -3.0, 2.0])).real.sort()[0].round(decimals=4)
      Tensor([1., 2.])
    """
    row = floating(trim_zeros(_row(p, "roots"), "f"))
    inner = trim_zeros(row, "b")
    zeros, n = len(row) - len(inner), len(inner)
    if n < 2:
        return row.new_zeros(max(zeros, 0)) * (1 + 0j)
    first = -inner[1:] / inner[0]
    below = Tensor.eye(n - 2, n - 1, dtype=inner.dtype, device=inner.device)
    found: Tensor = eigvals(first.reshape(1, n - 1).cat(below))
    return found.cat(found.new_zeros(zeros)) if zeros else found


def polyfit(x: Tensor, y: Tensor, deg: int, rcond: float | None = None, w: Tensor | None = None) -> Tensor:
    """The polynomial that is nearest to given values, by least squares.

    Args:
      x: where they are given, shape (m,).
      y: the values, shape (m,) or (m, k).
      deg: its degree.
      rcond: singular values below this times the largest are taken for 0; m times the precision of ``x`` if None.
      w: weights of the differences, not of their squares: shape (m,).

    Returns:
      shape (deg + 1,) or (deg + 1, k).

    Raises:
      ValueError: if the shapes do not fit, or the degree is negative.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import polyfit
      >>> polyfit(Tensor([0.0, 1.0, 2.0, 3.0]), Tensor([1.0, 3.0, 5.0, 7.0]), 1).round(decimals=4)
      Tensor([2., 1.])
    """
    if deg < 0:
        raise ValueError(f"polyfit: there is no degree {deg}")
    if x.ndim != 1 or not len(x) or y.ndim not in (1, 2) or len(y) != len(x):
        raise ValueError(f"polyfit: values of shape {y.shape} at places of shape {x.shape}; (m,) or (m, k) at (m,) fit")
    places, values = floating(x), floating(y)
    powers = vander(places, N=deg + 1).flip(1)
    columns = values.reshape(len(y), -1)
    if w is not None:
        if w.shape != x.shape:
            raise ValueError(f"polyfit: weights of shape {w.shape} for places of shape {x.shape}")
        powers, columns = powers * w.unsqueeze(1), columns * w.unsqueeze(1)
    kind = promote_types(powers.dtype, columns.dtype)
    powers, columns = powers.cast(kind), columns.cast(kind)
    size = (powers * powers.conj()).real.sum(0).sqrt()  # columns of length 1 make a system that is better to solve
    eps = 2.0 ** -(52 if places.real.dtype.itemsize == 8 else 23)
    found = lstsq(powers / size, columns, rcond=len(x) * eps if rcond is None else rcond)[0] / size.unsqueeze(1)
    return found if y.ndim == 2 else found.reshape(-1)
