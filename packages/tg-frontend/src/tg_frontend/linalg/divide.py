"""Divide and conquer: tridiagonal and bidiagonal matrices, torn apart by the middle and put together again.

All pieces of one size are put together at once, from single elements on, which takes as many steps as the size has
bits; each is a secular equation (`secular.py`) and a product of matrices. A step looks at all pairs of elements, of
which few are of one piece at first: until pieces are of 64 elements, each 64 are a matrix of their own.

Sources: Cuppen, "A divide and conquer method for the symmetric tridiagonal eigenproblem", 1981; Gu and Eisenstat, "A
divide-and-conquer algorithm for the bidiagonal SVD", 1995.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from tg_dtype import dtypes

from ..tensor import Tensor
from ..transform.scan import scan
from .matrices import epsilon, eye, numbers
from .secular import Poles, solved

_ROUND = 16
"""Bidiagonal matrices that are longer are made as long as a multiple of it, as vectors are."""
_PIECE = 64
"""So many elements are a matrix of their own at first, where there are more than twice as many: a power of two."""


class _Pieces(NamedTuple):
    """Which pieces are put together in a step, for each of n places.

    Attributes:
      segment: the number of the two that it belongs to.
      middle: the last place of the first of the two; 0 where there is one alone.
      joined: whether there are two.
      first: whether it is in the first one.
    """

    segment: Tensor
    middle: Tensor
    joined: Tensor
    first: Tensor


def _pieces(n: int, size: Tensor, like: Tensor) -> _Pieces:
    place = numbers(n, like)
    segment = place // (size * 2)
    middle = segment * (size * 2) + size - 1
    joined = middle + 1 < n
    middle = joined.where(middle, 0).contiguous()
    return _Pieces(segment.contiguous(), middle, joined, (place <= middle) | joined.logical_not())


def _sizes(first: int, n: int, like: Tensor) -> Tensor:
    """The sizes of pieces that are put together until there is one of ``n``, from ``first`` on, both powers of two."""
    powers = [2**i for i in range(first.bit_length() - 1, max(n - 1, 1).bit_length())]
    return Tensor(powers, dtype=dtypes.int32, device=like.device)


def _length(n: int, multiple: int) -> int:
    """How long matrices of ``n`` elements are made that are cut into pieces first."""
    multiple = _PIECE if n > 2 * _PIECE else multiple
    return -(-n // multiple) * multiple


_Step: TypeAlias = Callable[[Any, Tensor, Sequence[Tensor]], Any]
"""Takes a state, a size and what is fixed, and gives the next state."""


def _put_together(step: _Step, state: Sequence[Tensor], fixed: Sequence[Tensor]) -> list[Tensor]:
    """Makes a step for each size, of pieces alone first where there are several.

    Args:
      step: what puts together pieces of a size.
      state: for each element a number (count, n), and then bases, see :class:`_Basis`, of pieces of one element.
      fixed: numbers for each element (count, n), and at last the norm (count, 1).
    """
    count, n = state[0]._ints()
    if n > 2 * _PIECE:
        pieces, many = n // _PIECE, count * n // _PIECE
        *each, norm = fixed
        own = [x.reshape((many, _PIECE)) for x in each]
        norm = norm.expand(count, pieces).reshape((many, 1)).contiguous()
        start = [_cut(x, many) for x in state]
        found = _stepped(step, start, [*own, norm], _sizes(1, _PIECE, norm))
        state = [_joined(x, count).contiguous() for x in found]
        return _stepped(step, state, fixed, _sizes(_PIECE, n, norm))
    return _stepped(step, state, fixed, _sizes(1, n, state[0]))


def _stepped(step: _Step, state: Sequence[Tensor], fixed: Sequence[Tensor], sizes: Tensor) -> list[Tensor]:
    found = scan(lambda state, size: (step(state, size, fixed), None), tuple(state), sizes)[0]
    return list(found)


def _cut(x: Tensor, many: int) -> Tensor:
    """Numbers of each element, or bases of pieces of one element, for matrices of :data:`_PIECE` elements."""
    shape = x._ints()
    if len(shape) == 2:
        return x.reshape((many, _PIECE)).contiguous()
    return x[:1, : min(shape[1], _PIECE), :_PIECE].expand(many, min(shape[1], _PIECE), _PIECE).contiguous()


def _joined(x: Tensor, count: int) -> Tensor:
    """Numbers of each element, or bases, for the matrices that pieces are cut from."""
    many, *rest = x._ints()
    pieces = many // count
    if len(rest) == 1:
        return x.reshape((count, pieces * _PIECE))
    x = x.reshape((count, pieces, *rest))
    if rest[0] != _PIECE:  # first and last elements alone
        return x.transpose(1, 2).reshape((count, rest[0], pieces * _PIECE))
    here = eye(pieces, x).reshape((1, pieces, 1, pieces, 1)) != 0
    n = pieces * _PIECE
    return here.where(x.unsqueeze(3), 0).reshape((count, n, n))


class _Basis:
    """The vectors of all pieces, or what it takes to put pieces together when nobody asks for vectors.

    Args:
      values: all of them, (count, n, n); or the first and the last element of each, (count, 2, n).
      whole: whether it is all of them.
    """

    def __init__(self, values: Tensor, whole: bool) -> None:
        self.values, self.whole = values, whole

    @staticmethod
    def start(like: Tensor, whole: bool) -> Tensor:
        """Those of pieces of one element, for ``like`` of shape (count, n)."""
        count, n = like._ints()
        ones = eye(n, like) if whole else Tensor.ones(2, n, dtype=like.dtype, device=like.device)
        return ones.expand(count, *ones.shape).contiguous()

    def middle(self, pieces: _Pieces) -> tuple[Tensor, Tensor]:
        """The last elements of those in first pieces, and the first ones of those in second pieces: (count, n) each."""
        count, _, n = self.values._ints()
        first, last = self.values[:, :1], self.values[:, 1:]
        if self.whole:
            at = pieces.middle.reshape((1, 1, n)).expand(count, 1, n)
            last, first = self.values.gather(1, at), self.values.gather(1, (at + 1).minimum(n - 1))
        return pieces.first.where(last.squeeze(1), 0), pieces.first.where(0, first.squeeze(1))

    def turned(self, pieces: _Pieces, by: Tensor) -> Tensor:
        """Those of what was put together, by the vectors of the secular equations (count, n, n)."""
        if self.whole:
            return self.values @ by
        ends = Tensor.cat(pieces.first.where(self.values[:, :1], 0), pieces.first.where(0, self.values[:, 1:]), dim=1)
        return pieces.joined.where(ends @ by, self.values)


def symmetric(d: Tensor, e: Tensor, vectors: bool) -> tuple[Tensor, Tensor]:
    """Eigenvalues (count, n), in no order, of matrices with ``d`` on the diagonal and ``e`` (count, n - 1) beside it.

    Returns:
      They, and the eigenvectors (count, n, n); without ``vectors`` the first and the last elements of these.
    """
    n = d._ints()[1]
    if n == 1:
        return d, _Basis.start(d, vectors)
    sizes, length = e.abs(), _length(n, 1)
    norm = (d.abs().max(1, keepdim=True) + 2 * sizes.max(1, keepdim=True)).contiguous()
    d = d - sizes.pad(((0, 0), (0, 1))) - sizes.pad(((0, 0), (1, 0)))
    d, beside = d.pad(((0, 0), (0, length - n))), e.pad(((0, 0), (0, length - n + 1))).contiguous()

    def step(state: Any, size: Tensor, fixed: Sequence[Tensor]) -> Any:
        (beside, norm), d, basis = fixed, state[0], _Basis(state[1], vectors)
        pieces = _pieces(d._ints()[1], size, d)
        between = pieces.joined.where(beside.index_select(1, pieces.middle), 0)
        rho = between.abs().contiguous()
        last, first = basis.middle(pieces)
        z = last + (between < 0).where(-first, first)
        z = (rho * z.abs() <= epsilon(d) * norm).where(0, z).contiguous()
        roots = solved(Poles(d, z, d, rho, rho * 2.5, pieces.segment, norm, False))
        return roots.values, basis.turned(pieces, roots.right)

    start = [d.contiguous(), _Basis.start(d, vectors)]
    values, basis = _put_together(step, start, [beside, norm])
    return values[:, :n], basis[:, :n, :n] if vectors else basis[:, :, :n]


def singular(d: Tensor, e: Tensor, vectors: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Singular values (count, n), in no order, of matrices with ``d`` on the diagonal, ``e`` (count, n - 1) above it.

    A piece of k columns has k - 1 rows, and a column in its null space, which is its last one. The row between two
    pieces becomes the first row of the matrix of the secular equation: its products with all columns, of which those
    in the null spaces are turned into one.

    Returns:
      They, and the left and the right singular vectors (count, n, n); without ``vectors`` nothing of use beside them.
    """
    n = d._ints()[1]
    length = _length(n + 1, _ROUND if n > _ROUND else 1)  # one for the null space of all
    more = length - n
    d, e = d.pad(((0, 0), (0, more))).contiguous(), Tensor.cat(e, d[:, :1] * 0, dim=1).pad(((0, 0), (0, more)))
    norm = d.abs().max(1, keepdim=True) + e.abs().max(1, keepdim=True)
    norm = (norm == 0).where(1, norm).contiguous()

    def step(state: Any, size: Tensor, fixed: Sequence[Tensor]) -> Any:
        (d, e, norm), length = fixed, state[0]._ints()[1]
        least, place = norm * (epsilon(d) / 8), numbers(length, d)  # singular values up to it count as 0
        values, left, right = state[0], _Basis(state[1], vectors), _Basis(state[2], vectors)
        pieces = _pieces(length, size, d)
        own, beside = (pieces.joined.where(x.index_select(1, pieces.middle), 0) for x in (d, e))
        last, first = right.middle(pieces)
        z = (own * last + beside * first).contiguous()
        end = ((pieces.segment + 1) * (size * 2) - 1).minimum(length - 1).contiguous()
        is_middle = pieces.joined & (place == pieces.middle)
        is_end = pieces.joined & (place == end)
        one, other = z.index_select(1, pieces.middle), z.index_select(1, end)
        both = (one * one + other * other).sqrt()
        nothing = both == 0
        c, s = nothing.where(1, one / nothing.where(1, both)), nothing.where(0, other / nothing.where(1, both))
        z = (is_end | (z.abs() <= least)).where(0, z)
        z = is_middle.where(both.maximum(least), z).contiguous()
        order = is_middle.where(-1, is_end.where(norm * 8, values))  # the pole at 0 is the first one
        values = (is_middle | is_end).where(0, values).contiguous()
        reach = (own * own + beside * beside).sqrt() * 1.25 + least
        roots = solved(Poles(values, z, order, 1.0, reach, pieces.segment, norm, True))
        assert roots.left is not None, "there are two sides"
        by = _null_space(roots.right, pieces, (is_middle, is_end, end), (c, s)).contiguous()
        new_left = left.turned(pieces, roots.left) if vectors else left.values
        return roots.values, new_left, right.turned(pieces, by)

    start = _Basis.start(d, vectors)
    values, left, right = _put_together(step, [d * 0, start, start], [d, e.contiguous(), norm])
    values = (values <= norm * (epsilon(d) / 4)).where(0, values)
    return values[:, :n], left[:, :n, :n], right[:, :n, :n]


def _null_space(
    by: Tensor, pieces: _Pieces, places: tuple[Tensor, Tensor, Tensor], turn: tuple[Tensor, Tensor]
) -> Tensor:  # fmt: skip
    """The right vectors, of columns of which those in the middle and at the end of a segment were turned before."""
    (is_middle, is_end, end), (c, s) = places, turn
    count, n, _ = by._ints()
    row = by.gather(1, pieces.middle.reshape((1, 1, n)).expand(count, 1, n))
    same = pieces.segment.reshape((-1, 1)) == pieces.segment
    is_middle, is_end, c, s = (x.unsqueeze(-1) for x in (is_middle, is_end, c, s))
    out = is_middle.where(c * by, is_end.where(same.where(s * row, 0), by))
    return (numbers(n, by) == end.unsqueeze(-1)).where(is_middle.where(-s, is_end.where(c, out)), out)
