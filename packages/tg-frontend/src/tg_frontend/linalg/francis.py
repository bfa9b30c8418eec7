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
    z = turned if vectors else None
    if n > 2 * _FEW:  # long blocks one after the other, then all others side by side
        h, z = _taken_apart(h, z, _FEW, bulges_of(n))
        begins = _begins(_negligible(h))
        too_long = (_block(begins, _FEW)[1] >= 0).contiguous()  # a window would cut it
        owner = _starts(begins) // _FEW
        windows = _windows(h, owner)
        start = eye(2 * _FEW, h).expand(*windows.shape).contiguous()
        windows, turns = _taken_apart(windows, start, 2, bulges_of(_FEW))
        assert turns is not None
        h = adjoint(_turned(turns, adjoint(_turned(turns, h))))
        z = None if z is None else _turned(turns, z)
        begins = _of_owners(_begins(_negligible(windows)).contiguous(), owner) & too_long.logical_not()
    else:
        h, z = _taken_apart(h, z, 2, bulges_of(n))
        begins = _begins(_negligible(h))
    return h, turned if z is None else z, begins


def _taken_apart(h: Tensor, z: Tensor | None, most: int, bulges: int) -> tuple[Tensor, Tensor | None]:
    """Hessenberg matrices in which no diagonal block has more than ``most`` rows.

    Args:
      h: shape (count, n, n).
      z: what is turned with it, from the left, shape (count, n, n); or nothing.
      most: at least 2.
      bulges: of a chain, at the most.
    """
    n = h._ints()[1]
    place, bound = numbers(n, h), _SWEEPS * max(n, _SLOWEST)

    def sweep(state: Any) -> Any:
        h, number, *z = state
        begins = _begins(_negligible(h))
        lo, hi = _block(begins, most)
        lo, hi = lo.contiguous(), hi.contiguous()
        h = (begins.unsqueeze(2) & (place == place.reshape((-1, 1)) - 1)).where(0, h).contiguous()
        shifts = shifts_of(h, lo, hi, bulges, number)
        h, turns = swept(h, z[0] if z else None, shifts, lo, hi)
        return (h, number + 1) if turns is None else (h, number + 1, turns)

    def goes_on(state: Any) -> Tensor:
        left: Tensor = (_block(_begins(_negligible(state[0])), most)[1] >= 0).any() & (state[1] < bound)
        return left

    begin = (h.contiguous(), Tensor(0, dtype=dtypes.int32, device=h.device))
    h, _, *found = while_loop(goes_on, sweep, begin if z is None else (*begin, z.contiguous()))
    return h, found[0] if found else None


def _windows(h: Tensor, owner: Tensor) -> Tensor:
    """Diagonal blocks of a few rows, shared out among windows of twice as many, each of which begins so many later.

    Args:
      h: shape (count, n, n).
      owner: the window of each row, (count, n).

    Returns:
      For each window what its blocks are, its other rows being zero beside the diagonal: (windows, size, size).
    """
    count, n, _ = h._ints()
    more = -n % (2 * _FEW)
    owner = owner.pad(((0, 0), (0, more + _FEW)), value=-1)
    h = h.pad(((0, 0), (0, more + _FEW), (0, more + _FEW)))
    place = numbers(2 * _FEW, h)
    parts = []
    for late in (0, 1):
        begin, blocks = late * _FEW, (n + more) // (2 * _FEW)
        inside = h[:, begin : begin + n + more, begin : begin + n + more]
        inside = inside.reshape((count, blocks, 2 * _FEW, blocks, 2 * _FEW)).diagonal(0, 1, 3).permute(0, 3, 1, 2)
        own = owner[:, begin : begin + n + more].reshape((count, blocks, 2 * _FEW))
        own = own == (2 * numbers(blocks, h) + late).reshape((-1, 1))
        inside = ((own.unsqueeze(2) & own.unsqueeze(3)) | (place == place.reshape((-1, 1)))).where(inside, 0)
        parts.append(inside.reshape((count * blocks, 2 * _FEW, 2 * _FEW)))
    return Tensor.cat(*parts, dim=0).contiguous()


def _of_owners(x: Tensor, owner: Tensor) -> Tensor:
    """What each row has in its own window: (windows, size) gives (count, n)."""
    count, n = owner._ints()
    early, late = (part.reshape((count, -1)) for part in (x[: x._ints()[0] // 2], x[x._ints()[0] // 2 :]))
    late = Tensor.cat(early[:, :_FEW], late, dim=1)
    return (owner % 2 == 0).where(early[:, :n], late[:, :n])


def _turned(turns: Tensor, x: Tensor) -> Tensor:
    """(count, n, m) turned from the left by what was done in each of :func:`_windows`."""
    count, n, m = x._ints()
    more = -n % (2 * _FEW)
    blocks = (n + more) // (2 * _FEW)
    x = x.pad(((0, 0), (0, more + _FEW), (0, 0)))
    for late in (0, 1):
        begin = late * _FEW
        own = turns[late * count * blocks : (late + 1) * count * blocks].reshape((count, blocks, 2 * _FEW, 2 * _FEW))
        inside = x[:, begin : begin + n + more].reshape((count, blocks, 2 * _FEW, m)).contiguous()
        inside = (own.contiguous() @ inside).reshape((count, n + more, m))
        edges = (x[:, :_FEW], inside) if late else (inside, x[:, n + more :])
        x = Tensor.cat(*edges, dim=1).contiguous()
    return x[:, :n]
