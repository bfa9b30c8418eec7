"""Products by their own names: outer, inner, Kronecker and cross products, of batches, and added to something."""

from __future__ import annotations

from tg_shape import prod

from ..array.arithmetic import check_factor
from ..array.array import A
from ..array.base import DTypeLike
from ..array.casts import wide
from ..array.operands import as_tensor, together
from ..host.transfer import number_of
from .axes import movedim
from .diagonal import diagonal
from .linear import dot, promoted
from .repetition import roll

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def _of_axes(x: A, axes: int, what: str) -> None:
    if x.ndim != axes:
        kind = {1: "a vector", 2: "a matrix", 3: "a batch of matrices"}[axes]
        raise ValueError(f"{what}: {kind} is wanted, got shape {x.shape}")


def outer(x: A, other: A) -> A:
    """The product of each element of a vector with each of another: shape (m, n).

    Raises:
      ValueError: if one is no vector.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2]).outer(Tensor([10, 20])).tolist()
      [[10, 20], [20, 40]]
    """
    a, b = promoted(x, other, "outer")
    _of_axes(a, 1, "outer")
    _of_axes(b, 1, "outer")
    return a.unsqueeze(1) * b.unsqueeze(0)


def inner(x: A, other: Any) -> A:
    """Sums of products over the last axes: shape of x and of other without these; a number multiplies.

    Raises:
      ValueError: if the last axes differ.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2, 3]).inner(Tensor([4, 5, 6]))
      Tensor(32)
    """
    if isinstance(other, (bool, int, float)):
        return x * other
    y = as_tensor(x, other, "inner")
    return x * y if x.ndim == 0 or y.ndim == 0 else contracted(*promoted(x, y, "inner"), ((-1,), (-1,)), "inner")


def vdot(x: A, other: A) -> A:
    """The sum of products of two vectors.

    Raises:
      ValueError: if they are no vectors of one length.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2, 3]).vdot(Tensor([4, 5, 6]))
      Tensor(32)
    """
    _of_axes(x, 1, "vdot")
    _of_axes(as_tensor(x, other, "vdot"), 1, "vdot")
    return dot(x, other)


def tensordot(x: A, other: A, dims: int | Sequence[int | Sequence[int]] = 2) -> A:
    """Sums of products over some axes of each: the remaining ones of x, then of other.

    Args:
      dims: how many of the last axes of x and of the first of other; or an axis of each, or two lists of axes,
        in pairs. One of size 1 goes with any.

    Raises:
      ValueError: if the sizes of a pair differ, or an axis is named twice.
      IndexError: if an axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor.ones(2, 3, 5).tensordot(Tensor.ones(5, 3, 4), ((1, 2), (1, 0))).shape
      (2, 4)
    """
    a, b = promoted(x, other, "tensordot")
    first, second = _paired(a, b, dims)
    for i, j in zip(first, second, strict=False):  # as PyTorch has it, one of size 1 is repeated: the other is summed
        if a.shape[i] == 1 != b.shape[j]:
            b = b.sum(j, keepdim=True, dtype=b.dtype)
        elif b.shape[j] == 1 != a.shape[i]:
            a = a.sum(i, keepdim=True, dtype=a.dtype)
    sizes = [a.shape[i] for i in first]
    if sizes != [b.shape[i] for i in second] or any(len({*one}) != len(one) for one in (first, second)):
        raise ValueError(f"tensordot: axes {first} of shape {a.shape} and {second} of {b.shape} do not pair")
    left, right = ([i for i in range(t.ndim) if i not in one] for t, one in ((a, first), (b, second)))
    rows, columns = [a.shape[i] for i in left], [b.shape[i] for i in right]
    flat = a.permute(*left, *first).reshape((prod(rows), prod(sizes)))
    return dot(flat, b.permute(*second, *right).reshape((prod(sizes), prod(columns)))).reshape((*rows, *columns))


def _paired(a: A, b: A, dims: int | Sequence[int | Sequence[int]]) -> tuple[list[int], list[int]]:
    """The axes of both that are summed over, each list in the order of the pairs."""
    if isinstance(dims, int):
        if not 0 <= dims <= min(a.ndim, b.ndim):
            raise ValueError(f"tensordot: {dims} axes of shapes {a.shape} and {b.shape}")
        dims = (range(a.ndim - dims, a.ndim), range(dims))
    paired = [(one,) if isinstance(one, int) else one for one in dims]
    first, second = ([t._axis(d, "tensordot") for d in one] for t, one in zip((a, b), paired, strict=True))
    return first, second


def contracted(a: A, b: A, dims: int | Sequence[int | Sequence[int]], what: str) -> A:
    """As :func:`tensordot`, of pairs of one size each, as numpy and the array API standard want them.

    Raises:
      ValueError: if the sizes of a pair differ, be it that one of them is 1.
    """
    first, second = _paired(a, b, dims)
    if [a.shape[i] for i in first] != [b.shape[i] for i in second]:
        raise ValueError(f"{what}: axes {first} of shape {a.shape} and {second} of {b.shape} do not pair")
    left: Any = a
    out: A = left.tensordot(b, (first, second))
    return out


def kron(x: A, other: A) -> A:
    """The Kronecker product: each element of x times all of other, in blocks.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 10]).kron(Tensor([1, 2, 3]))
      Tensor([ 1,  2,  3, 10, 20, 30])
    """
    a, b = promoted(x, other, "kron")
    axes = max(a.ndim, b.ndim)
    one, two = ((1,) * (axes - t.ndim) + t.shape for t in (a, b))
    wide = a.reshape(tuple(d for dim in one for d in (dim, 1))) * b.reshape(tuple(d for dim in two for d in (1, dim)))
    return wide.reshape(tuple(m * n for m, n in zip(one, two, strict=True)))


def cross(
    x: A, other: A, dim: int | None = None, *, axisa: int = -1, axisb: int = -1, axisc: int = -1
) -> A:
    """The cross product of vectors of three along an axis; the other axes broadcast.

    Args:
      dim: the axis, of both and of the result; if None, those that follow.
      axisa: the axis of ``x``.
      axisb: that of ``other``.
      axisc: that of the result.

    Raises:
      ValueError: if the axis is not of size 3.
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 0, 0]).cross(Tensor([0, 1, 0]))
      Tensor([0, 0, 1])
    """
    a, b = promoted(x, other, "cross")
    if dim is None and not axisa == axisb == axisc == -1:
        return movedim(cross(movedim(a, axisa, -1), movedim(b, axisb, -1), -1), -1, axisc)
    dim = -1 if dim is None else dim
    axes = [t._axis(dim, "cross") for t in (a, b)]
    if any(t.ndim == 0 or t.shape[axis] != 3 for t, axis in zip((a, b), axes, strict=True)):
        raise ValueError(f"cross: axis {dim} of shapes {a.shape} and {b.shape} is not of size 3 in both")
    (a1, a2), (b1, b2) = ((roll(t, -1, axis), roll(t, -2, axis)) for t, axis in zip((a, b), axes, strict=True))
    out: A = a1 * b2 - a2 * b1
    return out


def trace(x: A, offset: int = 0, dim1: int = 0, dim2: int = 1, dtype: DTypeLike | None = None) -> A:
    """The sum of the diagonal of a matrix, or of each of several: shape (...), without the two axes.

    Args:
      offset: how far the diagonal is above the main one.
      dim1: the axis of rows; ``dim2`` that of columns.
      dtype: accumulate and return in this dtype instead.

    Raises:
      ValueError: if there are not two axes.
      IndexError: if an axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1.0, 2.0], [3.0, 4.0]]).trace()
      Tensor(5.)
    """
    if x.ndim < 2:
        raise ValueError(f"trace: a matrix is wanted, got shape {x.shape}")
    return diagonal(x, offset, dim1, dim2).sum(-1, dtype=dtype)


def mm(x: A, mat2: A) -> A:
    """The product of two matrices.

    Raises:
      ValueError: if they are no matrices, or do not fit.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 2]]).mm(Tensor([[3], [4]]))
      Tensor([[11]])
    """
    _of_axes(x, 2, "mm")
    _of_axes(as_tensor(x, mat2, "mm"), 2, "mm")
    return dot(x, mat2)


def mv(x: A, vec: A) -> A:
    """The product of a matrix and a vector.

    Raises:
      ValueError: if they are none, or do not fit.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 2]]).mv(Tensor([3, 4]))
      Tensor([11])
    """
    _of_axes(x, 2, "mv")
    _of_axes(as_tensor(x, vec, "mv"), 1, "mv")
    return dot(x, vec)


def bmm(x: A, mat2: A) -> A:
    """The products of two batches of matrices: (b, m, k) and (b, k, n) give (b, m, n).

    Raises:
      ValueError: if they are no batches of one size, or do not fit.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor.ones(5, 2, 3).bmm(Tensor.ones(5, 3, 4)).shape
      (5, 2, 4)
    """
    return dot(x, _batch(x, mat2, "bmm"))


def _batch(x: A, mat2: Any, what: str) -> A:
    """A batch of matrices, as many as there are in ``x``."""
    other = as_tensor(x, mat2, what)
    _of_axes(x, 3, what)
    _of_axes(other, 3, what)
    if x.shape[0] != other.shape[0]:
        raise ValueError(f"{what}: batches of {x.shape[0]} and {other.shape[0]} matrices")
    return other


def _sum(x: A, product: A, beta: float, alpha: float, what: str) -> A:
    """beta * x + alpha * product; what is times 0 does not count, be it NaN. Bools times integers stay bools."""
    for name, factor in (("beta", beta), ("alpha", alpha)):
        check_factor(factor, name, what, x, product)
    if x.dtype.kind == product.dtype.kind == "bool":
        beta, alpha = bool(beta), bool(alpha)
    scaled = product if alpha == 1 else product * alpha
    return scaled if beta == 0 else (x if beta == 1 else x * beta) + scaled


def addmm(x: A, mat1: A, mat2: A, *, beta: float = 1, alpha: float = 1) -> A:
    """beta * x + alpha * (mat1 @ mat2); x broadcasts, and does not count where beta is 0.

    Raises:
      ValueError: if mat1 and mat2 are no matrices, or the shapes do not fit; if a factor is a float, and all tensors
        are of integers or bools. So it is for :meth:`addmv`, :meth:`addr`, :meth:`baddbmm` and :meth:`addbmm`.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1.0]]).addmm(Tensor([[1.0, 2.0]]), Tensor([[3.0], [4.0]]), beta=2)
      Tensor([[13.]])
    """
    return _sum(x, mm(mat1, mat2), beta, alpha, "addmm")


def addmv(x: A, mat: A, vec: A, *, beta: float = 1, alpha: float = 1) -> A:
    """beta * x + alpha * (mat @ vec); x broadcasts, and does not count where beta is 0.

    Raises:
      ValueError: if mat is no matrix or vec no vector, or the shapes do not fit.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0]).addmv(Tensor([[1.0, 2.0]]), Tensor([3.0, 4.0]))
      Tensor([12.])
    """
    return _sum(x, mv(mat, vec), beta, alpha, "addmv")


def addr(x: A, vec1: A, vec2: A, *, beta: float = 1, alpha: float = 1) -> A:
    """beta * x + alpha * outer(vec1, vec2); x broadcasts, and does not count where beta is 0.

    Raises:
      ValueError: if vec1 and vec2 are no vectors, or the shapes do not fit.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1.0, 1.0]]).addr(Tensor([2.0]), Tensor([3.0, 4.0]))
      Tensor([[7., 9.]])
    """
    return _sum(x, outer(vec1, vec2), beta, alpha, "addr")


def baddbmm(x: A, batch1: A, batch2: A, *, beta: float = 1, alpha: float = 1) -> A:
    """beta * x + alpha * bmm(batch1, batch2); x broadcasts, and does not count where beta is 0.

    Raises:
      ValueError: if the batches do not fit.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0]).baddbmm(Tensor.ones(2, 1, 3), Tensor.ones(2, 3, 1)).tolist()
      [[[4.0]], [[4.0]]]
    """
    return _sum(x, bmm(batch1, batch2), beta, alpha, "baddbmm")


def addbmm(x: A, batch1: A, batch2: A, *, beta: float = 1, alpha: float = 1) -> A:
    """beta * x + alpha * the sum of bmm(batch1, batch2) over the batch; x broadcasts.

    Raises:
      ValueError: if the batches do not fit.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1.0]]).addbmm(Tensor.ones(2, 1, 3), Tensor.ones(2, 3, 1))
      Tensor([[7.]])
    """
    other = _batch(batch1, batch2, "addbmm")
    (b, n, m), (_, k, p) = batch1.shape, other.shape
    if m != k:
        raise ValueError(f"addbmm: batches of shapes {batch1.shape} and {other.shape}")
    product = dot(batch1.permute(1, 0, 2).reshape((n, b * m)), other.reshape((b * k, p)))  # which is rounded once
    return _sum(x, product, beta, alpha, "addbmm")


def addcmul(x: A, tensor1: Any, tensor2: Any, *, value: float = 1) -> A:
    """x + value * tensor1 * tensor2.

    Raises:
      ValueError: if ``value`` is a float, and all tensors are of integers or bools.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0, 2.0]).addcmul(Tensor([3.0, 4.0]), Tensor([5.0, 6.0]), value=0.5)
      Tensor([ 8.5, 14. ])
    """
    x, tensor1, tensor2 = together(x, tensor1, tensor2, what="addcmul")
    tensor1 = as_tensor(x, tensor1, "addcmul")
    if not isinstance(number_of(tensor2), float):
        check_factor(value, "value", "addcmul", x, tensor1)
    several = tensor1, tensor2, value
    out: A = wide(x, _addcmul, *several) if x.dtype.kind == "float" else _addcmul(x, *several)
    return out


def _addcmul(x: A, tensor1: A, tensor2: Any, value: Any) -> A:
    product = tensor1 * tensor2
    out: A = x + (product if value == 1 else product * value)
    return out


def addcdiv(x: A, tensor1: Any, tensor2: Any, *, value: float = 1) -> A:
    """x + value * tensor1 / tensor2.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0, 2.0]).addcdiv(Tensor([3.0, 4.0]), Tensor([2.0, 8.0]))
      Tensor([2.5, 2.5])
    """
    x, tensor1, tensor2 = together(x, tensor1, tensor2, what="addcdiv")
    tensor1 = as_tensor(x, tensor1, "addcdiv")
    several = tensor1, tensor2, value
    out: A = wide(x, _addcdiv, *several) if x.dtype.kind == "float" else _addcdiv(x, *several)
    return out


def _addcdiv(x: A, tensor1: A, tensor2: Any, value: Any) -> A:
    quotient = tensor1 / tensor2
    out: A = x + (quotient if value == 1 else quotient * value)
    return out
