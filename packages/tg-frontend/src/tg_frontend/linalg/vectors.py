"""Eigenvectors of triangular matrices."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor
from ..transform.scan import scan
from ..transform.traced_once import traced_once
from .matrices import BLOCK, diagonal_of, epsilon, extent, numbers


@traced_once
def triangular_vectors(re: Tensor, im: Tensor) -> tuple[Tensor, Tensor]:
    """The eigenvectors (count, n, n), as columns, of complex upper triangles whose elements are about 1 at most.

    Row by row from the bottom, within blocks of rows to which what is known of the vectors goes by a product. Equal
    eigenvalues are taken for such as are apart by eps; as a column may grow by that in each row, it is divided by its
    largest part as it grows. Source: Golub and Van Loan, "Matrix Computations", 4th edition, section 7.6.4.
    """
    count, n, _ = re._ints()
    size = min(BLOCK, n)
    more = -n % size
    values = Tensor.complex(diagonal_of(re), diagonal_of(im))
    # rows that are not there are added above, where they see the vectors and are not seen by them
    re, im = (x.pad(((0, 0), (more, 0), (more, 0))).contiguous() for x in (re, im))
    places, inside, columns = numbers(n + more, re), numbers(size, re), numbers(n, re) + more
    least = epsilon(re)

    def block(x: Tensor, j: Tensor) -> tuple[Tensor, None]:
        own = j * size + inside
        rows = [part.index_select(1, own).contiguous() for part in (re, im)]
        beyond = places >= (j + 1) * size
        flat = x.reshape((count, n + more, 2 * n))
        one, other = ((beyond.where(part, 0).contiguous() @ flat).contiguous() for part in rows)
        known = _complex_of(one.reshape((count, size, 2, n)), other.reshape((count, size, 2, n)), 2).contiguous()
        among = Tensor.stack(*(part.index_select(2, own) for part in rows), dim=1).contiguous()

        def step(state: Any, i: Tensor) -> tuple[Any, None]:
            here, scale = state  # with real parts (0) and imaginary ones (1) beside one another, as x has them
            row = among.index_select(2, i.reshape((1,))).squeeze(2)
            products = ((inside > i).where(row, 0).contiguous() @ here.reshape((count, size, 2 * n))).contiguous()
            one, other = (products[:, part].reshape((count, 2, n)) for part in (0, 1))
            total = _complex_of(one, other, 1) + known.index_select(1, i.reshape((1,))).squeeze(1) * scale
            gap = (inside == i).where(row, 0).sum(2, keepdim=True)
            gap = Tensor.complex(gap[:, 0], gap[:, 1]) - values
            gap = (gap.abs() < least).where(least, gap)
            k = j * size + i
            total = Tensor.complex(total[:, 0], total[:, 1])
            found = (columns > k).where(-total / gap, (columns == k).cast(re.dtype))
            shrink = 1 / extent(found).maximum(1)
            found, shrink = (found * shrink).contiguous(), shrink.unsqueeze(1).contiguous()
            found = Tensor.stack(found.real, found.imag, dim=1).unsqueeze(1)
            mine = (inside == i).reshape((-1, 1, 1))
            return (mine.where(found, here * shrink.unsqueeze(1)), scale * shrink), None

        nothing = Tensor.zeros(count, size, 2, n, dtype=re.dtype, device=re.device).contiguous()
        start = nothing, Tensor.ones(count, 1, n, dtype=re.dtype, device=re.device).contiguous()
        (here, scale), _ = scan(step, start, inside, reverse=True)
        now = ((places >= j * size) & (places < (j + 1) * size)).reshape((-1, 1, 1))
        within = (places - j * size).clamp(0, size - 1)
        return now.where(here.index_select(1, within), x * scale.unsqueeze(1)), None

    start = Tensor.zeros(count, n + more, 2, n, dtype=re.dtype, device=re.device).contiguous()
    x, _ = scan(block, start, numbers((n + more) // size, re), reverse=True)
    return x[:, more:, 0], x[:, more:, 1]


def _complex_of(one: Tensor, other: Tensor, dim: int) -> Tensor:
    """one + 1j * other, of complex numbers whose parts are side by side along an axis."""
    re, im = (part.squeeze(dim) for part in other.split(1, dim=dim))
    return one + Tensor.stack(-im, re, dim=dim)
