"""numpy's functions of corresponding elements, of vectors beside matrices, and of places on diagonals."""

from __future__ import annotations

from tg_dtype import dtypes

from ..array.casts import floating
from ..linalg.products import multi_dot
from ..tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def cbrt(x: Tensor) -> Tensor:
    """The cube root, of negative numbers as well; its slope at 0 is infinite.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import cbrt
      >>> cbrt(Tensor([-8.0, 0.0, 27.0])).round(decimals=5)
      Tensor([-2.,  0.,  3.])
    """
    value = floating(x)
    return value.sign() * value.abs() ** (1 / 3)


def polygamma(n: int, input: Tensor) -> Tensor:
    """The n-th derivative of the digamma function: ``Tensor.polygamma`` with the order first, as PyTorch has it.

    Args:
      n: the order, from 0.
      input: where.

    Raises:
      TypeError: if the order is no integer.
      ValueError: if it is negative.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import polygamma
      >>> polygamma(1, Tensor([1.0])).round(decimals=4)
      Tensor([1.6449])
    """
    return input.polygamma(n)


def modf(x: Tensor) -> tuple[Tensor, Tensor]:
    """The fraction and the whole part, both with the sign of the number.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import modf
      >>> modf(Tensor([1.5, -2.25]))
      (Tensor([ 0.5 , -0.25]), Tensor([ 1., -2.]))
    """
    value = floating(x)
    whole = value.trunc()
    return value.isinf().where(0, value - whole).copysign(value), whole


def iscomplex(x: Tensor) -> Tensor:
    """Which elements have an imaginary part that is not 0.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import iscomplex
      >>> iscomplex(Tensor([1 + 1j, 2 + 0j]))
      Tensor([ True, False])
    """
    return x.isreal().logical_not()


def array_equiv(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors broadcast to one shape, and are equal in it: computed now.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import array_equiv
      >>> array_equiv(Tensor([1, 2]), Tensor([[1, 2], [1, 2]]))
      True
    """
    try:
        Tensor.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        return False
    return bool((a == b).all().item())


def chain_matmul(*matrices: Tensor) -> Tensor:
    """The product of several matrices, in the order that takes the fewest multiplications; see ``linalg.multi_dot``.

    Raises:
      ValueError: if the shapes do not fit, or there are none.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import chain_matmul
      >>> chain_matmul(Tensor.ones(2, 3), Tensor.ones(3, 4), Tensor.ones(4, 1))
      Tensor([[12.],
              [12.]])
    """
    return matrices[0] if len(matrices) == 1 else multi_dot(list(matrices))


def matvec(x1: Tensor, x2: Tensor) -> Tensor:
    """Matrices times vectors: shapes (…, m, n) and (…, n) give (…, m); leading axes broadcast.

    Raises:
      ValueError: if the shapes do not fit.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import matvec
      >>> matvec(Tensor([[1.0, 2.0], [3.0, 4.0]]), Tensor([[1.0, 0.0], [0.0, 1.0]]))
      Tensor([[1., 3.],
              [2., 4.]])
    """
    return (x1 @ x2.unsqueeze(-1)).squeeze(-1)


def vecmat(x1: Tensor, x2: Tensor) -> Tensor:
    """Conjugates of vectors times matrices: shapes (…, m) and (…, m, n) give (…, n); leading axes broadcast.

    Raises:
      ValueError: if the shapes do not fit.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import vecmat
      >>> vecmat(Tensor([1.0, 2.0]), Tensor([[1.0, 2.0], [3.0, 4.0]]))
      Tensor([ 7., 10.])
    """
    return (x1.conj().unsqueeze(-2) @ x2).squeeze(-2)


def diag_indices(n: int, ndim: int = 2) -> tuple[Tensor, ...]:
    """The places on the main diagonal, one tensor for each axis: ``x[diag_indices(3)]``.

    Args:
      n: the size of each axis.
      ndim: how many axes.

    Raises:
      ValueError: if the size is negative.

    Example:
      >>> from tg_frontend.functions import diag_indices
      >>> diag_indices(3)
      (Tensor([0, 1, 2]), Tensor([0, 1, 2]))
    """
    return (Tensor.arange(n, dtype=dtypes.default_int),) * ndim


def diag_indices_from(x: Tensor) -> tuple[Tensor, ...]:
    """The places on the main diagonal of a tensor whose axes have one size, of which there are two at least.

    Raises:
      ValueError: if they have not.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import diag_indices_from
      >>> x = Tensor([[1, 2], [3, 4]])
      >>> x[diag_indices_from(x)]
      Tensor([1, 4])
    """
    if x.ndim < 2 or len(set(x.shape)) > 1:
        raise ValueError(f"diag_indices_from: axes of one size are wanted, two at least, got shape {x.shape}")
    return diag_indices(x._ints()[0], x.ndim)


def ravel_multi_index(
    multi_index: Any, dims: int | Sequence[int], mode: str | Sequence[str] = "raise", order: str = "C"
) -> Tensor:
    """The positions in a flattened tensor of those whose positions along each axis are given.

    Args:
      multi_index: integers for each axis, which broadcast: a tuple of tensors and numbers; or a tensor of such rows.
      dims: the shape of the tensor that the positions are of.
      mode: what becomes of positions out of range; see ``Tensor.ravel_multi_index``.
      order: ``"C"``, the last axis changes fastest; ``"F"``, the first one does.

    Raises:
      TypeError: if the positions are no integers.
      ValueError: if there are not as many as axes, or one is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import ravel_multi_index
      >>> ravel_multi_index((Tensor([1, 0]), 2), (2, 3))
      Tensor([5, 2])
    """
    if isinstance(multi_index, (tuple, list)):
        device = next((one.device for one in multi_index if isinstance(one, Tensor)), None)
        rows = [one if isinstance(one, Tensor) else Tensor(one, device=device) for one in multi_index]
        multi_index = Tensor.stack(*Tensor.broadcast_tensors(*rows)) if rows else Tensor([])
    made = multi_index if isinstance(multi_index, Tensor) else Tensor(multi_index)
    return made.ravel_multi_index(dims, mode, order)


def tril_indices_from(x: Tensor, k: int = 0) -> tuple[Any, ...]:
    """The places on and below a diagonal of a matrix: rows, and columns.

    Raises:
      ValueError: if it is no matrix.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import tril_indices_from
      >>> x = Tensor([[1, 2], [3, 4]])
      >>> x[tril_indices_from(x)]
      Tensor([1, 3, 4])
    """
    rows, columns = _matrix(x, "tril_indices_from")
    return tuple(Tensor.tril_indices(rows, columns, k, device=x.device).unbind(0))


def triu_indices_from(x: Tensor, k: int = 0) -> tuple[Any, ...]:
    """The places on and above a diagonal of a matrix: rows, and columns.

    Raises:
      ValueError: if it is no matrix.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.functions import triu_indices_from
      >>> x = Tensor([[1, 2], [3, 4]])
      >>> x[triu_indices_from(x)]
      Tensor([1, 2, 4])
    """
    rows, columns = _matrix(x, "triu_indices_from")
    return tuple(Tensor.triu_indices(rows, columns, k, device=x.device).unbind(0))


def _matrix(x: Tensor, what: str) -> tuple[int, int]:
    if x.ndim != 2:
        raise ValueError(f"{what}: a matrix is wanted, got shape {x.shape}")
    rows, columns = x._ints()
    return rows, columns
