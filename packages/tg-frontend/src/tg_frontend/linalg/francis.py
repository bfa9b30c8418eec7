"""Schur's form of real matrices: Hessenberg's form by reflections, then chains of double shifts in real numbers.

The chains leave diagonal blocks of one and two rows; a unitary turn of each of these makes the matrix triangular.
Source: Golub and Van Loan, "Matrix Computations", 4th edition, sections 7.4 (both forms) and 7.5 (deflation).
"""

from __future__ import annotations

from typing import Any

from tg_dtype import dtypes

from ..tensor import Tensor
from ..transform.traced_once import traced_once
from ..transform.while_loop import while_loop
from .bulges import bulges_of, swept
from .compact import multiplied
from .hessenberg import hessenberg
from .matrices import adjoint, diagonal_of, epsilon, eye, numbers
from .shifts import shifts_of

_SWEEPS = 10
"""For each row, at the most: about a fifth of one is enough for large matrices, and two or three for small ones."""
_SLOWEST = 34
"""Rows below which a matrix has the sweeps of so many: what repeats itself waits for an unusual shift."""
_FEW = 32
"""Rows of a block that is done in a window of its own, beside all others."""
GRADED = 2.0**-10
"""What is below the diagonal counts as nothing beside eps times the diagonal, or times this and the largest element."""


def _below(h: Tensor) -> Tensor:
    """What is just below the diagonal of (count, n, n or more): (count, n - 1)."""
    return h.diagonal(-1, 1, 2)


def _negligible(h: Tensor) -> Tensor:
    """For each element below the diagonal whether it is as good as zero: (count, n - 1)."""
    along = diagonal_of(h).abs()
    beside = along[:, 1:] + along[:, :-1]
    return (_below(h).abs() > epsilon(h) * beside.maximum(GRADED)).logical_not()


def _begins(small: Tensor) -> Tensor:
    """Whether each row is the first one of a diagonal block, (count, n)."""
    return Tensor.cat(Tensor.ones(small.shape[0], 1, dtype=dtypes.bool, device=small.device), small, dim=1)


def _starts(begins: Tensor) -> Tensor:
    """The first row of each row's block, (count, n)."""
    place = numbers(begins._ints()[1], begins)
    return (begins.unsqueeze(1) & (place <= place.reshape((-1, 1)))).where(place, 0).max(2)


def _block(begins: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """The first and the last row of the last block of more than ``most`` rows, (count, 1); 0 and -1 without any."""
    place = numbers(begins._ints()[1], begins)
    starts = _starts(begins)
    hi = (place - starts >= most).where(place, -1).max(1, keepdim=True)
    return (place == hi).where(starts, 0).max(1, keepdim=True), hi


def blocks_of_two(begins: Tensor) -> Tensor:
    """Whether no block has more rows than two, (count,): else a matrix has not converged."""
    return _block(begins, 2)[1].squeeze(1) < 0


def whole_blocks(a: Tensor) -> Tensor:
    """Matrices with rows and columns of zeros at their ends, where they are taken apart in blocks.

    Vectors and tiles fit then without a rest. What is added stays apart: it has the last eigenvalues, and the vectors
    of others are zero there.
    """
    n = a._ints()[1]
    more = -n % _FEW if n > 2 * _FEW else 0
    return a.pad(((0, 0), (0, more), (0, more))).contiguous() if more else a


@traced_once
def condensed(a: Tensor, vectors: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Diagonal blocks of one or two rows in the place of matrices (count, n, n) whose elements are 1 at most.

    Returns:
      H, and the transpose of Z with a = Z @ H @ Z.T, or without ``vectors`` anything; and which rows are the first of
      their blocks, (count, n).
    """
    count, n, _ = a._ints()
    turned = eye(n, a).expand(count, n, n).contiguous()
    if n < 3:
        return a, turned, _begins(_below(a) == 0)
    h, axes, triangles = hessenberg(a)
    if vectors:
        turned = adjoint(multiplied(axes, turned, triangles)).contiguous()
        h = Tensor.cat(h, turned, dim=2)  # what is turned with it, from the left
    if n > 2 * _FEW:  # long blocks one after the other, then all others side by side
        h = _taken_apart(h, _FEW, bulges_of(n))
        begins = _begins(_negligible(h))
        too_long = (_block(begins, _FEW)[1] >= 0).contiguous()  # a window would cut it
        owner = _starts(begins) // _FEW
        windows = _windows(h, owner)
        start = eye(2 * _FEW, h).expand(*windows.shape)
        windows = _taken_apart(Tensor.cat(windows, start, dim=2), 2, 1)
        turns = _whole(windows[:, :, 2 * _FEW :].contiguous(), owner)
        # all from the left and of one shape: one kernel
        h, *beside = ((turns @ part.contiguous()).contiguous() for part in h.split(n, dim=2))
        h = adjoint((turns @ adjoint(h).contiguous()).contiguous())
        h = Tensor.cat(h, *beside, dim=2) if vectors else h
        begins = _of_owners(_begins(_negligible(windows)).contiguous(), owner) & too_long.logical_not()
    else:
        h = _taken_apart(h, 2, bulges_of(n))
        begins = _begins(_negligible(h))
    return h[:, :, :n], h[:, :, n:] if vectors else turned, begins


def _taken_apart(h: Tensor, most: int, bulges: int) -> Tensor:
    """Hessenberg matrices in which no diagonal block has more than ``most`` rows, and what stands beside them.

    Args:
      h: shape (count, n, m): the first n columns are the matrices, and all are turned from the left.
      most: at least 2.
      bulges: of a chain, at the most.
    """
    n = h._ints()[1]
    place, bound = numbers(n, h), _SWEEPS * max(n, _SLOWEST)

    def sweep(state: Any) -> Any:
        h, number = state
        begins = _begins(_negligible(h))
        lo, hi = _block(begins, most)
        lo, hi = lo.contiguous(), hi.contiguous()
        gone = begins.unsqueeze(2) & (numbers(h._ints()[2], h) == place.reshape((-1, 1)) - 1)
        h = gone.where(0, h).contiguous()
        return swept(h, shifts_of(h, lo, hi, bulges, number), lo, hi), number + 1

    def goes_on(state: Any) -> Tensor:
        left: Tensor = (_block(_begins(_negligible(state[0])), most)[1] >= 0).any() & (state[1] < bound)
        return left

    h, _ = while_loop(goes_on, sweep, (h.contiguous(), Tensor(0, dtype=dtypes.int32, device=h.device)))
    return h


def _windows(h: Tensor, owner: Tensor) -> Tensor:
    """Diagonal blocks of a few rows, shared out among windows of twice as many, each of which begins so many later.

    Args:
      h: shape (count, n, n or more).
      owner: the window of each row, (count, n).

    Returns:
      For each window what its blocks are, its other rows being zero beside the diagonal: (windows, size, size).
    """
    count, n, wide = h._ints()
    size, many = 2 * _FEW, -(-n // _FEW)
    window, place = numbers(many, h).reshape((-1, 1)), numbers(size, h)
    rows = window * _FEW + place
    own = owner.gather(1, rows.minimum(n - 1).reshape((1, -1)).expand(count, -1)).reshape((count, many, size))
    own = (own == window) & (rows < n)
    places = rows.unsqueeze(2) * wide + rows.unsqueeze(1)
    inside = h.reshape((count, n * wide)).gather(1, places.minimum(n * wide - 1).reshape((1, -1)).expand(count, -1))
    inside = inside.reshape((count, many, size, size))
    inside = ((own.unsqueeze(3) & own.unsqueeze(2)) | (place == place.reshape((-1, 1)))).where(inside, 0)
    return inside.reshape((count * many, size, size)).contiguous()


def _of_owners(x: Tensor, owner: Tensor) -> Tensor:
    """What each row has in its own window: (windows, size) gives (count, n)."""
    count, n = owner._ints()
    return x.reshape((count, -1)).gather(1, owner * _FEW + numbers(n, x))


def _whole(turns: Tensor, owner: Tensor) -> Tensor:
    """The product of what was done in each of :func:`_windows`: (windows, size, size) gives (count, n, n)."""
    count, n = owner._ints()
    own, other, place = owner.unsqueeze(2), owner.unsqueeze(1), numbers(n, turns)
    places = (own * _FEW + place.reshape((-1, 1))) * (2 * _FEW) + (place - own * _FEW)
    found = turns.reshape((count, -1)).gather(1, places.reshape((count, n * n))).reshape((count, n, n))
    return (own == other).where(found, 0).contiguous()
