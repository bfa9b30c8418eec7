"""Eigenvalues of symmetric matrices and singular values, by Jacobi's rotations.

Half as many pairs as there are columns are rotated at a time, all pairs in turn (a round-robin tournament), and that
several times, until all are orthogonal. Sources: Golub and Van Loan, "Matrix Computations", 4th edition, sections 8.5
(symmetric matrices, parallel orderings) and 8.6.3 (one-sided rotations); accuracy: Demmel and Veselić, "Jacobi's method
is more accurate than QR", 1992.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tg_dtype import dtypes

from ..tensor import Tensor
from ..transform.custom import Function, FunctionContext
from ..transform.scan import scan
from ..transform.while_loop import while_loop
from .matrices import adjoint, check_matrix, diagonal_of, eye, flat, lower, numbers, over_gaps, unflat
from .orthogonal import full_rank_signs, reflected

_SWEEPS = 40
"""Tournaments, at the most: about log2(n) + 5 are enough."""


class Eigh(NamedTuple):
    """a = V @ diag(w) @ V.T."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class SVD(NamedTuple):
    """a = U @ diag(S) @ Vh."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def _rounds(n: int) -> list[list[int]]:
    """For each round of a tournament the partner of each of ``n``; itself where it rests.

    Example:
      >>> _rounds(3)
      [[0, 2, 1], [2, 1, 0], [1, 0, 2]]
    """
    even = n + n % 2
    ring = list(range(even))
    out = []
    for _ in range(max(even - 1, 1)):
        partners = list(range(even))
        for i in range(even // 2):
            a, b = ring[i], ring[even - 1 - i]
            partners[a], partners[b] = b, a
        out.append([i if p >= n else p for i, p in enumerate(partners[:n])])
        ring = [ring[0], ring[-1], *ring[1:-1]]
    return out


def _epsilon(x: Tensor) -> float:
    return 2.0**-52 if x.dtype is dtypes.float64 else 2.0**-23


def _angles(near: Tensor, far: Tensor, between: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
    """1 less the cosine, and the signed sine, of each one's rotation with its partner.

    Of the cosine itself the last bit would be lost thousands of times in the same direction (Rutishauser, "The Jacobi
    method for real symmetric matrices", 1966).

    Args:
      near: what each has on the diagonal (count, n).
      far: what its partner has.
      between: what both have off it.
      first: whether it is the first of the two.
    """
    # t = tan of the angle: the lesser root of t * t + 2 * theta * t - 1 = 0
    low, high = first.where(near, far), first.where(far, near)
    theta = (high - low) / (2 * (between == 0).where(1, between))
    t = (theta < 0).where(-1.0, 1.0) / (theta.abs() + (theta * theta + 1).sqrt())
    t = (between == 0).where(0, t)
    c = 1 / (t * t + 1).sqrt()
    s = t * c
    return s * s / (1 + c), first.where(-s, s)


def _turned(x: Tensor, partner: Tensor, axis: int, h: Tensor, s: Tensor) -> Tensor:
    """Rows or columns (count, n, n) of an axis rotated with their partners."""
    h, s = (one.unsqueeze(3 - axis) for one in (h, s))
    return x - (h * x - s * x.index_select(axis, partner))


def _eigen(a: Tensor) -> tuple[Tensor, Tensor]:
    """Ascending eigenvalues (count, n) and eigenvectors (count, n, n) of symmetric (count, n, n)."""
    count, n, _ = a._ints()
    place, rounds = numbers(n, a), Tensor(_rounds(n), dtype=dtypes.int32, device=a.device)
    most = a.abs().max((1, 2), keepdim=True)
    scale = (most == 0).where(1, most)
    small = _epsilon(a) * 0.25

    def turn(state: Any, partner: Tensor) -> tuple[Any, None]:
        rest, vectors = state
        diagonal = diagonal_of(rest)
        across = rest.gather(2, partner.reshape((1, -1, 1)).expand(count, n, 1)).squeeze(2)
        rests, first = partner == place, place < partner
        # both of a pair must take the same number, or they turn by different angles where what they have is as small
        across = first.where(across, across.index_select(1, partner))
        h, s = _angles(diagonal, diagonal.index_select(1, partner), across, first)
        h, s = rests.where(0, h), rests.where(0, s)
        rest = _turned(_turned(rest, partner, 1, h, s), partner, 2, h, s)
        return (rest, _turned(vectors, partner, 2, h, s)), None

    def off(x: Tensor) -> Tensor:
        """How far each is from diagonal."""
        return lower(x, -1).abs().max() if n > 1 else x.sum() * 0

    def sweep(state: Any) -> Any:
        rest, vectors, number = state
        (rest, vectors), _ = scan(turn, (rest, vectors), rounds)
        return (rest + adjoint(rest)) * 0.5, vectors, number + 1

    start = (a / scale, eye(n, a).expand(count, n, n).contiguous(), Tensor(0, dtype=dtypes.int32, device=a.device))
    rest, vectors, _ = while_loop(lambda s: (off(s[0]) > small) & (s[2] < _SWEEPS), sweep, start)
    values = diagonal_of(rest) * scale.squeeze(2)
    order = values.argsort(1)
    return values.gather(1, order), vectors.gather(2, order.unsqueeze(1).expand(count, n, n))


class _Eigh(Function):
    """Source of the gradient: Giles, "An extended collection of matrix derivative results", 2008, section 3.1."""

    @staticmethod
    def forward(ctx: FunctionContext, a: Tensor) -> tuple[Tensor, Tensor]:
        values, vectors = _eigen(lower(a) + adjoint(lower(a, -1)))
        ctx.save_for_backward(values, vectors)
        return values, vectors

    @staticmethod
    def backward(ctx: FunctionContext, *grads: Tensor) -> Any:
        of_values, of_vectors = grads
        values, vectors = ctx.saved_tensors
        gaps = values.unsqueeze(1) - values.unsqueeze(2)
        inner = over_gaps(adjoint(vectors) @ of_vectors, gaps) + of_values.diag_embed()
        return vectors @ inner @ adjoint(vectors)


def eigh(a: Tensor, UPLO: str = "L") -> Eigh:
    """The ascending eigenvalues w and orthonormal eigenvectors V (columns) of symmetric matrices.

    Where eigenvalues are equal, no gradient is known through the eigenvectors (it is NaN or infinite).

    Args:
      a: shape (…, n, n).
      UPLO: which triangle is read: ``"L"`` or ``"U"``.

    Raises:
      ValueError: if the matrices are not square, or there is no such triangle.
      TypeError: if they hold anything else than float32 or float64.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.eigh(Tensor([[2.0, 1.0], [1.0, 2.0]])).eigenvalues.round(4)
      Tensor([1., 3.])
    """
    check_matrix(a, "eigh", square=True)
    if UPLO.upper() not in ("L", "U"):
        raise ValueError(f"eigh: UPLO {UPLO!r}; there are L and U")
    if 0 in a._ints():
        return Eigh(a.sum(-1), a * 1)
    values, vectors = _Eigh.apply(flat(a if UPLO.upper() == "L" else adjoint(a)))
    return Eigh(values.reshape(a.shape[:-1]), unflat(vectors, a))


def eigvalsh(a: Tensor, UPLO: str = "L") -> Tensor:
    """The ascending eigenvalues of symmetric matrices.

    Args:
      a: shape (…, n, n).
      UPLO: which triangle is read: ``"L"`` or ``"U"``.

    Raises:
      ValueError: if the matrices are not square, or there is no such triangle.
      TypeError: if they hold anything else than float32 or float64.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.eigvalsh(Tensor([[2.0, 1.0], [1.0, 2.0]])).round(4)
      Tensor([1., 3.])
    """
    return eigh(a, UPLO).eigenvalues


def _singular(a: Tensor) -> tuple[Tensor, Tensor]:
    """Columns that are orthogonal (count, m, n), by decreasing length, and the rotations (count, n, n) that made them.

    For m >= n.
    """
    count, _, n = a._ints()
    place, rounds = numbers(n, a), Tensor(_rounds(n), dtype=dtypes.int32, device=a.device)
    most = a.abs().max((1, 2), keepdim=True)
    scale = (most == 0).where(1, most)
    small = _epsilon(a) * 4

    def turn(state: Any, partner: Tensor) -> tuple[Any, Tensor]:
        columns, rotations = state
        across = (columns * columns.index_select(2, partner)).sum(1)
        squares = (columns * columns).sum(1)
        others = squares.index_select(1, partner)
        both = (squares * others).sqrt()
        rests = (partner == place) | (across.abs() <= small * 0.25 * both)
        h, s = _angles(squares, others, across, place < partner)
        h, s = rests.where(0, h), rests.where(0, s)
        angle = (both == 0).where(0, across.abs() / (both == 0).where(1, both))
        worst = (partner == place).where(0, angle).max()
        return (_turned(columns, partner, 2, h, s), _turned(rotations, partner, 2, h, s)), worst

    def sweep(state: Any) -> Any:
        columns, rotations, _, number = state
        (columns, rotations), worst = scan(turn, (columns, rotations), rounds)
        return columns, rotations, worst.max(), number + 1

    start = (
        a / scale, eye(n, a).expand(count, n, n).contiguous(), Tensor(1.0, dtype=a.dtype, device=a.device),
        Tensor(0, dtype=dtypes.int32, device=a.device),
    )  # fmt: skip
    columns, rotations, _, _ = while_loop(lambda s: (s[2] > small) & (s[3] < _SWEEPS), sweep, start)
    order = (columns * columns).sum(1).argsort(1, descending=True)
    columns = columns.gather(2, order.unsqueeze(1).expand(*columns.shape)) * scale
    return columns, rotations.gather(2, order.unsqueeze(1).expand(*rotations.shape))


def _three(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """All of U (count, m, m), the singular values (count, n) and V (count, n, n), for m >= n."""
    # of the triangle the columns are shorter, and rotations nearly done where it is graded
    turned, rest = reflected(a)
    n = a._ints()[2]
    columns, rotations = _singular(rest[:, :n])
    left, triangle = reflected(columns)  # nearly diagonal: what completes the basis comes along
    signs = full_rank_signs(triangle)
    values = diagonal_of(triangle) * signs
    inner = left * signs.unsqueeze(1)
    u = Tensor.cat(turned[:, :, :n] @ inner, turned[:, :, n:], dim=2)
    return u, values, rotations


class _SVD(Function):
    """Source of the gradient: Townsend, "Differentiating the singular value decomposition", 2016."""

    @staticmethod
    def forward(ctx: FunctionContext, a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        u, values, v = _three(a)
        ctx.save_for_backward(u, values, v)
        return u, values, v

    @staticmethod
    def backward(ctx: FunctionContext, *grads: Tensor) -> Any:
        of_all, of_values, of_v = grads
        whole, s, v = ctx.saved_tensors
        n, m = s._ints()[1], whole._ints()[1]
        u, of_u = whole[:, :, :n], of_all[:, :, :n]  # the columns beyond are any that complete the basis
        gaps = (s.unsqueeze(1) - s.unsqueeze(2)) * (s.unsqueeze(1) + s.unsqueeze(2))
        in_u, in_v = adjoint(u) @ of_u, adjoint(v) @ of_v
        turned, turned_v = (over_gaps(inside - adjoint(inside), gaps) for inside in (in_u, in_v))
        inner = turned * s.unsqueeze(1) + s.unsqueeze(2) * turned_v
        into = u @ (inner + of_values.diag_embed()) @ adjoint(v)
        if m > n:
            outside, sizes = of_u - u @ in_u, s.unsqueeze(1)
            nothing = (outside == 0) & (sizes == 0)
            into = into + nothing.where(0, outside / nothing.where(1, sizes)) @ adjoint(v)
        return into


def _decomposed(a: Tensor) -> tuple[Tensor, Tensor, Tensor, bool]:
    """All of U, S and V of the higher of a and its transpose, and whether that is the transpose."""
    many = flat(a)
    wide = many._ints()[1] < many._ints()[2]
    u, s, v = _SVD.apply(adjoint(many) if wide else many)
    return u, s, v, wide


def svd(a: Tensor, full_matrices: bool = True) -> SVD:
    """Orthonormal columns U, descending singular values S, and orthonormal rows Vh with a = U @ diag(S) @ Vh.

    Where singular values are equal, no gradient is known through U and Vh (it is NaN or infinite).

    Args:
      a: shape (…, m, n).
      full_matrices: U and Vh are square, completed to a basis by any vectors, through which no gradient flows.

    Raises:
      ValueError: if there is no matrix.
      TypeError: if it holds anything else than float32 or float64.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.svd(Tensor([[0.0, 2.0], [1.0, 0.0]])).S.round(4)
      Tensor([2., 1.])
    """
    check_matrix(a, "svd")
    m, n = a._ints()[-2:]
    if 0 in a._ints():
        lead, least = a._ints()[:-2], min(m, n)
        sides = (m, n) if full_matrices else (least, least)
        u, v = (Tensor.eye(k, side, dtype=a.dtype, device=a.device).expand(*lead, k, side).contiguous()
                for k, side in zip((m, n), sides, strict=True))  # fmt: skip
        return SVD(u, Tensor.zeros(*lead, least, dtype=a.dtype, device=a.device), adjoint(v))
    u, s, v, wide = _decomposed(a)
    if not full_matrices:
        u = u[:, :, : min(m, n)]
    left, right = (v, u) if wide else (u, v)
    return SVD(unflat(left, a), s.reshape((*a.shape[:-2], min(m, n))), unflat(adjoint(right), a))


def svdvals(a: Tensor) -> Tensor:
    """The descending singular values.

    Raises:
      ValueError: if there is no matrix.
      TypeError: if it holds anything else than float32 or float64.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.svdvals(Tensor([[0.0, 2.0], [1.0, 0.0]])).round(4)
      Tensor([2., 1.])
    """
    return svd(a, full_matrices=False).S
