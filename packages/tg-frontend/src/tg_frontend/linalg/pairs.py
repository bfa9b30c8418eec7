"""Diagonal blocks of two rows made triangular, in complex numbers: what is left to do after chains of double shifts.

All are turned at once. Source: Golub and Van Loan, "Matrix Computations", 4th edition, section 7.4.1.
"""

from __future__ import annotations

from typing import NamedTuple

from ..tensor import Tensor
from .matrices import diagonal_of, numbers


def _beside(x: Tensor, second: Tensor, dim: int) -> Tensor:
    """For each row or column of (count, m, n) its partner: that before a second of a pair, else that after it."""
    n = x._ints()[dim]
    edges = tuple((1, 1) if d == dim else (0, 0) for d in range(3))
    padded = x.pad(edges)
    before, after = (padded[:, :n], padded[:, 2:]) if dim == 1 else (padded[:, :, :n], padded[:, :, 2:])
    return second.unsqueeze(3 - dim).where(before, after)


class Turns(NamedTuple):
    """A unitary matrix G that turns pairs of rows, and leaves others.

    Attributes:
      own: for each row its factor in G @ x, (count, n), complex.
      other: that of its partner, (count, n); 0 where there is none.
      second: whether it is the second of a pair.
    """

    own: Tensor
    other: Tensor
    second: Tensor

    def applied(self, x: Tensor) -> Tensor:
        """G @ x, for complex x of shape (count, n, m)."""
        re, im = (_beside(part, self.second, 1) * self.other.unsqueeze(2) for part in (x.real, x.imag))
        return self.own.unsqueeze(2) * x + Tensor.complex(re, im)


def triangular(h: Tensor, begins: Tensor) -> tuple[Tensor, Tensor, Turns]:
    """What is left of matrices with diagonal blocks of one or two rows when each block is made triangular.

    Args:
      h: shape (count, n, n), of real numbers.
      begins: which rows are the first of their blocks, (count, n).

    Returns:
      The eigenvalues (count, n), those of a pair conjugate or both real; T, upper triangular, complex; and G, with
      h = G @ T @ G.mH.
    """
    n = h._ints()[1]
    place = numbers(n, h)
    second = begins.logical_not()
    first = second[:, 1:].pad(((0, 0), (0, 1)))
    paired = first | second

    along, up, down = diagonal_of(h), h.diagonal(1, 1, 2), h.diagonal(-1, 1, 2)
    before, after = along.pad(((0, 0), (1, 0)))[:, :n], along.pad(((0, 0), (0, 1)))[:, 1:]
    above, below = (second.where(x.pad(((0, 0), (1, 0))), x.pad(((0, 0), (0, 1)))) for x in (up, down))
    a, d = second.where(before, along), second.where(along, after)
    half = (a - d) * 0.5
    product = above * below
    square = half * half + product
    root = square.abs().sqrt()
    is_real = square >= 0
    reach = half + (half < 0).where(-root, root)
    nearer = product / (reach == 0).where(1, reach)
    value = is_real.where(first.where(d + reach, d - nearer), (a + d) * 0.5)
    height = is_real.where(0, first.where(root, -root))
    value = Tensor.complex(paired.where(value, along), paired.where(height, 0))
    # the eigenvector of the first one: (its value less d, what is below the diagonal)
    re, im, y = is_real.where(reach, half), is_real.where(0.0, root), below
    most = re.abs().maximum(im.abs()).maximum(y.abs())
    re, im, y = (part / (most == 0).where(1, most) for part in (re, im, y))  # squares of small numbers are 0
    length = paired.where((re * re + im * im + y * y).sqrt(), 1)
    one = Tensor.complex(paired.where(re / length, 1), paired.where(im / length, 0) * second.where(-1, 1))
    other = paired.where(y / length, 0) * first.where(-1, 1)
    turns = Turns(one, other, second)
    # G.mH has the conjugates, and minus the others
    left = one.conj().unsqueeze(2) * Tensor.complex(h, h * 0)
    re = (left.real - _beside(h, second, 1) * other.unsqueeze(2)).contiguous()
    im = left.imag.contiguous()
    beside = Tensor.complex(*(_beside(part, second, 2) * other.unsqueeze(1) for part in (re, im)))
    t = one.unsqueeze(1) * Tensor.complex(re, im) - beside
    own, over = (place == place.reshape((-1, 1))), place > place.reshape((-1, 1))
    t = Tensor.complex(*(
        own.where(part.unsqueeze(1), over.where(whole, 0))
        for part, whole in ((value.real, t.real), (value.imag, t.imag))
    ))  # fmt: skip
    return value, t, turns


def paired(x: Tensor, second: Tensor, values: Tensor) -> Tensor:
    """Vectors (count, n, n) of real matrices: those of real eigenvalues are so, those of others conjugate in pairs.

    The real part of a complex vector of a real eigenvalue is one, too, though a shorter one.

    Args:
      x: the vectors of ``values``, columns whose largest element is real.
      second: whether each eigenvalue belongs to the second row of a pair.
      values: see :func:`triangular`.
    """
    follows = (second & (values.imag != 0)).unsqueeze(1)
    re, im = (follows.where(_beside(part.contiguous(), second, 2), part) for part in (x.real, x.imag))
    im = (values.imag == 0).unsqueeze(1).where(0, follows.where(-im, im))
    return Tensor.complex(re, im)
