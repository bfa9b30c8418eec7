"""Products and powers of matrices, and what is made of decompositions: pseudo-inverses, least squares, ranks."""

from __future__ import annotations

from itertools import pairwise
from math import prod
from typing import Any, NamedTuple

from tg_dtype import dtypes

from ..host.transfer import is_array
from ..tensor import Tensor
from ..transform.custom import Function, FunctionContext
from ..transform.scan import scan
from .elimination import inv, solve
from .matrices import adjoint, check_matrix, epsilon, eye, flat, square, unflat
from .spectral import Mirrored, eigvalsh, svd, svdvals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class LeastSquares(NamedTuple):
    """The solution of least squares, and what was found on the way."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


def matrix_power(a: Tensor, n: int) -> Tensor:
    """The n-th power of square matrices, by squaring; of the inverse for negative ones.

    Raises:
      ValueError: if the matrices are not square.
      TypeError: if ``n`` is no integer, or the matrices are to be inverted and hold no floats.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.matrix_power(Tensor([[1.0, 1.0], [0.0, 1.0]]), 5)
      Tensor([[1., 5.],
              [0., 1.]])
    """
    what = "matrix_power"
    if not isinstance(n, int) or isinstance(n, bool):
        raise TypeError(f"{what}: n is an integer, got {n!r}")
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"{what}: matrices of shape {a.shape[-2:]} are not square")
    if n < 0:
        return matrix_power(inv(a), -n)
    if n == 0:
        return eye(a._ints()[-1], a).expand(*a.shape).contiguous()
    out, square = None, a
    while True:
        if n & 1:
            out = square if out is None else out @ square
        n >>= 1
        if not n:
            assert out is not None
            return out
        square = square @ square


_PADE = (
    64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0,
    10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0,
)  # fmt: skip
_PADE_NORM = 5.371920351148152
_SQUARINGS = 32


def matrix_exp(a: Tensor) -> Tensor:
    """The exponential of square matrices, by Padé's approximation of degree 13 and squaring.

    Source: Higham, "The scaling and squaring method for the matrix exponential revisited", 2005. Matrices of a norm
    above 2**34 are scaled no further, and overflow.

    Raises:
      ValueError: if the matrices are not square.
      TypeError: if they hold anything else than float32, float64, complex64 or complex128.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.matrix_exp(Tensor([[0.0, 1.0], [0.0, 0.0]]))
      Tensor([[1., 1.],
              [0., 1.]])
    """
    check_matrix(a, "matrix_exp", square=True)
    if 0 in a._ints():
        return a * 1
    x = flat(a)
    norm = x.detach().abs().sum(1).max(1)
    times = (norm / _PADE_NORM).maximum(1).log2().ceil().minimum(_SQUARINGS)
    x = x / times.exp2().reshape((-1, 1, 1))
    b, one = _PADE, eye(x._ints()[1], x)
    x2 = x @ x
    x4 = x2 @ x2
    x6 = x2 @ x4
    odd = x @ (x6 @ (b[13] * x6 + b[11] * x4 + b[9] * x2) + b[7] * x6 + b[5] * x4 + b[3] * x2 + b[1] * one)
    even = x6 @ (b[12] * x6 + b[10] * x4 + b[8] * x2) + b[6] * x6 + b[4] * x4 + b[2] * x2 + b[0] * one
    start = solve(even - odd, even + odd)
    steps = Tensor.arange(_SQUARINGS, dtype=dtypes.int32, device=a.device)

    def square(power: Tensor, k: Tensor) -> tuple[Tensor, None]:
        return (k < times).reshape((-1, 1, 1)).where(power @ power, power), None

    out, _ = scan(square, start, steps)
    return unflat(out, a)


def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """The product of several matrices, in the order that takes the fewest multiplications.

    The first and the last may be vectors. Source: Cormen et al., "Introduction to Algorithms", 15.2.

    Raises:
      ValueError: if there are fewer than two, or the shapes do not fit.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.multi_dot([Tensor([1.0, 2.0]), Tensor([[1.0, 0.0], [0.0, 3.0]]), Tensor([1.0, 1.0])])
      Tensor(7.)
    """
    what, chain = "multi_dot", list(tensors)
    if len(chain) < 2:
        raise ValueError(f"{what}: two tensors or more are wanted, got {len(chain)}")
    first, last = chain[0].ndim == 1, chain[-1].ndim == 1
    if first:
        chain[0] = chain[0].unsqueeze(0)
    if last:
        chain[-1] = chain[-1].unsqueeze(1)
    shapes = [one.shape for one in tensors]
    if any(one.ndim != 2 for one in chain) or any(p.shape[1] != q.shape[0] for p, q in pairwise(chain)):
        raise ValueError(f"{what}: shapes {shapes} do not follow one another")
    sizes = [chain[0]._ints()[0], *(one._ints()[1] for one in chain)]
    best: dict[tuple[int, int], tuple[int, int]] = {(i, i): (0, i) for i in range(len(chain))}
    for length in range(1, len(chain)):
        for i in range(len(chain) - length):
            j = i + length
            best[i, j] = min(
                (best[i, k][0] + best[k + 1, j][0] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j))

    def multiplied(i: int, j: int) -> Tensor:
        if i == j:
            return chain[i]
        k = best[i, j][1]
        return multiplied(i, k) @ multiplied(k + 1, j)

    out = multiplied(0, len(chain) - 1)
    out = out.squeeze(0) if first else out
    return out.squeeze(-1) if last else out


def _tolerance(s: Tensor, atol: Any, rtol: Any, m: int, n: int) -> Tensor:
    """Below what singular values count as 0: shape (…, 1), as tolerances have that are tensors."""
    if rtol is None:
        usual = max(m, n) * epsilon(s)
        rtol = (atol > 0).where(0.0, usual) if isinstance(atol, Tensor) else 0.0 if atol else usual
    out: Tensor = (s.max(-1, keepdim=True) * rtol).maximum(0.0 if atol is None else atol)
    return out


def _for_each(tolerance: Any, a: Tensor) -> Any:
    """A tolerance as it broadcasts to singular values: a number, or one for each matrix as a tensor."""
    if isinstance(tolerance, (list, tuple)) or is_array(tolerance):
        tolerance = Tensor(tolerance, device=a.device)
    return tolerance.unsqueeze(-1) if isinstance(tolerance, Tensor) else tolerance


def matrix_rank(
    a: Tensor, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Tensor:
    """How many singular values are above a tolerance: the greater of ``atol`` and ``rtol`` times the greatest of them.

    Args:
      a: shape (…, m, n).
      tol: numpy's and older PyTorch's word for an ``atol`` beside which no ``rtol`` is computed.
      atol: a number, or one for each matrix, and so are ``tol`` and ``rtol``.
      rtol: the greater of m and n times the dtype's epsilon if neither is given.
      hermitian: whether the matrices are symmetric: eigenvalues are used, and the lower triangle alone is read.

    Raises:
      ValueError: if there is no matrix.
      TypeError: if it holds anything else than float32, float64, complex64 or complex128.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.matrix_rank(Tensor([[1.0, 2.0], [2.0, 4.0]]))
      Tensor(1, dtype=int64)
    """
    check_matrix(a, "matrix_rank", square=hermitian)
    m, n = a._ints()[-2:]
    if 0 in (m, n):
        return Tensor.zeros(*a._ints()[:-2], dtype=dtypes.int64, device=a.device)
    s = eigvalsh(a).abs() if hermitian else svdvals(a)
    if tol is not None:
        if atol is not None or rtol is not None:
            raise ValueError("matrix_rank: tol stands for atol and rtol; give either")
        atol, rtol = tol, 0.0
    atol, rtol = (_for_each(one, a) for one in (atol, rtol))
    return (s > _tolerance(s, atol, rtol, m, n)).sum(-1)


class _Pinv(Function):
    """Source of the gradient: Golub and Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares
    problems whose variables separate", 1973."""

    @staticmethod
    def forward(ctx: FunctionContext, a: Tensor, atol: Any, rtol: Any) -> tuple[Tensor, Tensor]:
        u, s, vh = svd(a, full_matrices=False)
        keep = s > _tolerance(s, atol, rtol, *a._ints()[1:])
        inverse = keep.where(1 / keep.where(s, 1), 0)
        out = adjoint(vh) @ (inverse.unsqueeze(2) * adjoint(u))
        ctx.save_for_backward(a, out)
        return out, s

    @staticmethod
    def backward(ctx: FunctionContext, *grads: Tensor) -> Any:
        grad, _ = grads  # nobody differentiates the singular values
        a, p = ctx.saved_tensors
        pt, gt = adjoint(p), adjoint(grad)
        left, right = gt - a @ (p @ gt), gt - gt @ (p @ a).contiguous()
        into = -(pt @ grad @ pt) + left @ (p @ pt) + (pt @ p) @ right
        return into, None, None


def pinv(
    a: Tensor, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Tensor:
    """The pseudo-inverses of Moore and Penrose; singular values below a tolerance count as 0.

    Args:
      a: shape (…, m, n).
      rcond: another name for ``rtol``.
      atol: a number, or one for each matrix, and so are ``rcond`` and ``rtol``; see :func:`matrix_rank`.
      rtol: times the greatest singular value; the greater of m and n times the dtype's epsilon if neither is given.
      hermitian: whether the matrices are symmetric, of which the lower triangle alone is read then.

    Raises:
      ValueError: if there is no matrix.
      TypeError: if it holds anything else than float32, float64, complex64 or complex128.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.pinv(Tensor([[3.0], [4.0]])).round(4)
      Tensor([[0.12, 0.16]])
    """
    check_matrix(a, "pinv", square=hermitian)
    if rcond is not None:
        if rtol is not None:
            raise ValueError("pinv: rcond is another name for rtol; give either")
        rtol = rcond
    if 0 in a._ints():
        return adjoint(a).contiguous()
    if hermitian:
        a = Mirrored.apply(a)
    atol, rtol = (
        one.expand(*a._ints()[:-2], 1).reshape((-1, 1)) if isinstance(one := _for_each(given, a), Tensor) else one
        for given in (atol, rtol)
    )
    return unflat(_Pinv.apply(flat(a), atol, rtol)[0], a)


def lstsq(a: Tensor, b: Tensor, rcond: float | None = None, *, driver: str | None = None) -> LeastSquares:
    """The least x, of all that make the sum of (a @ x - b) squared least.

    Args:
      a: shape (…, m, n).
      b: shape (…, m, k), or (m,) for one matrix.
      rcond: singular values below it, times the greatest, count as 0; the greater of m and n times the dtype's
        epsilon if not given.
      driver: the name of a LAPACK routine, as PyTorch takes it. All give the solution that "gelsd" gives: also "gels",
        which needs matrices of full rank there.

    Returns:
      The solution (…, n, k); the sums of squares that are left (…, k), empty unless m > n; the ranks; and the singular
      values.

    Raises:
      ValueError: if the shapes do not fit, or there is no such driver.
      TypeError: if the dtypes are others than float32, float64, complex64 and complex128, or differ.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.lstsq(Tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]), Tensor([1.0, 3.0, 5.0])).solution.round(4)
      Tensor([1., 2.])
    """
    what = "lstsq"
    check_matrix(a, what)
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise ValueError(f"{what}: driver {driver!r}; gels, gelsy, gelsd or gelss are wanted")
    if b.ndim == 1:
        found = lstsq(a, b.unsqueeze(1), rcond)
        return found._replace(solution=found.solution.squeeze(-1))
    check_matrix(b, what)
    if a.dtype is not b.dtype:
        raise TypeError(f"{what}: a matrix of {a.dtype.name} and right sides of {b.dtype.name}")
    if a.shape[:-1] != b.shape[:-1]:
        raise ValueError(f"{what}: a matrix of shape {a.shape} and right sides of shape {b.shape}")
    m, n = a._ints()[-2:]
    if 0 in a._ints():
        inverse, s = adjoint(a).contiguous(), svdvals(a)
    else:
        inverse, s = _Pinv.apply(flat(a), None, rcond)
        inverse, s = unflat(inverse, a), s.reshape((*a.shape[:-2], min(m, n))).detach()
    x = inverse @ b
    rest = a @ x - b
    left = square(rest).sum(-2) if m > n else Tensor.empty(0, dtype=a.real.dtype, device=a.device)
    there = s > _tolerance(s, None, rcond, m, n) if min(m, n) else s.ne(0)
    return LeastSquares(x, left, there.sum(-1), s)


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """The sums of products along an axis, of complex numbers with the first one conjugated; the shapes broadcast.

    Raises:
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.vecdot(Tensor([1.0, 2.0]), Tensor([3.0, 4.0]))
      Tensor(11.)
    """
    return (x.conj() * y).sum(dim)


def tensorinv(a: Tensor, ind: int = 2) -> Tensor:
    """The inverse of a tensor as a map from its last axes to its first ``ind``.

    Raises:
      ValueError: if both have not the same size, or ``ind`` is not positive.
      TypeError: if it holds anything else than float32, float64, complex64 or complex128.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.tensorinv(Tensor.eye(6).reshape(6, 2, 3), ind=1).shape
      (2, 3, 6)
    """
    shape = a._ints()
    if ind < 1 or prod(shape[:ind]) != prod(shape[ind:]):
        raise ValueError(f"tensorinv: shape {a.shape} cut at {ind}: both parts have the same size")
    return inv(a.reshape((prod(shape[:ind]), -1))).reshape((*shape[ind:], *shape[:ind]))


def tensorsolve(a: Tensor, b: Tensor, dims: Sequence[int] | None = None) -> Tensor:
    """The x for which the sum of a over its last axes, times x, is b.

    Args:
      dims: axes of ``a`` that are moved to its end first.

    Raises:
      ValueError: if the shapes do not fit.
      TypeError: if the dtypes are others than float32, float64, complex64 and complex128, or differ.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.tensorsolve(Tensor.eye(6).reshape(2, 3, 6), Tensor.ones(2, 3)).shape
      (6,)
    """
    if dims is not None:
        a = a.movedim(tuple(dims), tuple(range(a.ndim - len(dims), a.ndim)))
    shape = a._ints()[b.ndim :]
    if prod(shape) != b.numel() or prod(a._ints()[: b.ndim]) != b.numel():
        raise ValueError(f"tensorsolve: a tensor of shape {a.shape} for one of shape {b.shape}")
    return solve(a.reshape((-1, prod(shape))), b.reshape((-1,))).reshape(shape)


def vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """The powers 0 to N - 1 of each element, along a new last axis.

    Args:
      N: how many; as many as there are elements along the last axis if not given.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.vander(Tensor([2.0, 3.0]), N=3)
      Tensor([[1., 2., 4.],
              [1., 3., 9.]])
    """
    if x.ndim < 1:
        x = x.reshape(1)
    count = x._ints()[-1] if N is None else N
    wide = x.unsqueeze(-1)
    powers = [wide.ones_like()]
    for _ in range(1, count):
        powers.append(powers[-1] * wide)
    return Tensor.cat(*powers[:count], dim=-1) if count else wide[..., :0]


def cross(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """The vector products along an axis of three; the shapes broadcast.

    Raises:
      ValueError: if the axis has another size.
      IndexError: if it is out of range.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.cross(Tensor([1.0, 0.0, 0.0]), Tensor([0.0, 1.0, 0.0]))
      Tensor([0., 0., 1.])
    """
    return x.cross(y, dim)


def diagonal(x: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """A diagonal of each of many matrices, as the last axis.

    Args:
      offset: how far above the main one.
      dim1: axis of the rows.
      dim2: axis of the columns.

    Raises:
      ValueError: if both axes are the same.
      IndexError: if one is out of range.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.diagonal(Tensor([[1.0, 2.0], [3.0, 4.0]]), offset=1)
      Tensor([2.])
    """
    return x.diagonal(offset, dim1, dim2)


def matmul(x: Tensor, y: Tensor) -> Tensor:
    """The products of matrices, as :meth:`Tensor.matmul` has them.

    Raises:
      ValueError: if the shapes do not fit.

    Example:
      >>> from tg_frontend import Tensor, linalg
      >>> linalg.matmul(Tensor([[1.0, 2.0]]), Tensor([[3.0], [4.0]]))
      Tensor([[11.]])
    """
    return x.matmul(y)
