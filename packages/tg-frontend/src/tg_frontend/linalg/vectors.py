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

    def block(state: Any, j: Tensor) -> tuple[Any, None]:
        x = Tensor.complex(*state)
        own = j * size + inside
        rows = [part.index_select(1, own).contiguous() for part in (re, im)]
        beyond = places >= (j + 1) * size
        known = Tensor.complex(*(beyond.where(part, 0) for part in rows)) @ x
        among = [part.index_select(2, own).contiguous() for part in rows]

        def step(state: Any, i: Tensor) -> tuple[Any, None]:
            here, scale = Tensor.complex(*state[:2]), state[2]
            row = Tensor.complex(*(part.index_select(1, i.reshape((1,))) for part in among))
            total = Tensor.complex(*((inside > i).where(part, 0) for part in (row.real, row.imag))) @ here
            before = known.index_select(1, i.reshape((1,)))
            total = (total + Tensor.complex(before.real * scale, before.imag * scale)).squeeze(1)
            gap = (inside == i).where(row, 0).sum(2) - values
            gap = (gap.abs() < least).where(least, gap)
            k = j * size + i
            found = (columns > k).where(-total / gap, (columns == k).cast(re.dtype))
            shrink = 1 / extent(found).maximum(1)
            found = (found * shrink).unsqueeze(1)
            mine = (inside == i).reshape((-1, 1))
            shrink = shrink.unsqueeze(1)
            parts = zip((found.real, found.imag), state[:2], strict=True)
            return (*(mine.where(one, old * shrink) for one, old in parts), scale * shrink), None

        nothing = Tensor.zeros(count, size, n, dtype=re.dtype, device=re.device).contiguous()
        known = Tensor.complex(known.real.contiguous(), known.imag.contiguous())
        start = nothing, nothing * 0, Tensor.ones(count, 1, n, dtype=re.dtype, device=re.device).contiguous()
        (*here, scale), _ = scan(step, start, inside, reverse=True)
        now = ((places >= j * size) & (places < (j + 1) * size)).reshape((-1, 1))
        within = (places - j * size).clamp(0, size - 1)
        return tuple(
            now.where(part.index_select(1, within), old * scale) for part, old in zip(here, state, strict=True)
        ), None  # fmt: skip

    start = Tensor.zeros(count, n + more, n, dtype=re.dtype, device=re.device).contiguous()
    (re, im), _ = scan(block, (start, start * 0), numbers((n + more) // size, re), reverse=True)
    return re[:, more:], im[:, more:]
