"""Matrix products."""

from __future__ import annotations

from tg_dtype import least_upper_dtype, sum_acc_dtype

from ..array.array import A
from ..array.base import DTypeLike
from ..array.movement import stretch
from ..array.operands import as_tensor
from ..array.shapes import broadcast_shape
from ..array.writing import in_place
from ..autograd.functions import Mul, Reshape, Sum
from ..host.coerce import to_dtype

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def contract(x: A, other: A, axes: tuple[int, ...], dtype: DTypeLike | None = None) -> A:
    """Operands of one shape, multiplied and summed along ``axes``, which stay with size 1.

    Products and sums are made in at least 32 bits, and rounded once.
    """
    wide = to_dtype(dtype) if dtype is not None else sum_acc_dtype(x.dtype)
    out = x.cast(wide)._apply(Mul(), other.cast(wide))._apply(Sum(axes))
    return out if dtype is not None else out.cast(x.dtype)


def promoted(x: A, other: Any, what: str) -> tuple[A, A]:
    """The operands of a product in the dtype to which both promote.

    Raises:
      ValueError: if they are on different devices.
    """
    w = as_tensor(x, other, what)
    if x.device != w.device:
        raise ValueError(f"{what}: operands on {x.device} and {w.device}; use .to()")
    dtype = least_upper_dtype(x.dtype, w.dtype)
    return x.cast(dtype), w.cast(dtype)


def dot(x: A, w: Any, dtype: DTypeLike | None = None) -> A:
    """The product of matrices, stacks of them (which broadcast), or vectors, as numpy's ``matmul``.

    Args:
      w: shape (…, K, N), or (K,).
      dtype: accumulate and return in this dtype. If not given, narrow floats are accumulated in float32.

    Returns:
      shape (…, M, N) for this tensor of shape (…, M, K); a vector's own axis is left out.

    Raises:
      ValueError: if the K of the two differ, the other axes do not broadcast, or an operand is a number.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 2], [3, 4]]).dot(Tensor([1, 10]))
      Tensor([21, 43])
    """
    x, y = promoted(x, w, "matmul")
    if x.ndim == 0 or y.ndim == 0:
        raise ValueError(f"matmul: shapes {x.shape} and {y.shape}: vectors or matrices are wanted, not numbers")
    a = x.reshape((1, *x.shape)) if x.ndim == 1 else x
    b = y.reshape((*y.shape, 1)) if y.ndim == 1 else y
    if a.shape[-1] != b.shape[-2]:
        raise ValueError(f"matmul: shapes {x.shape} and {y.shape}: {a.shape[-1]} columns for {b.shape[-2]} rows")
    m, k, n = a.shape[-2], a.shape[-1], b.shape[-1]
    lead = broadcast_shape("matmul", a.shape[:-2] or (1,), b.shape[:-2] or (1,)) if a.ndim + b.ndim > 4 else ()
    full = (*lead, m, n, k)
    # these fit: nothing has to be looked at again
    a = stretch(a._apply(Reshape((*a.shape[:-1], 1, k))), full)
    b = b.transpose(-1, -2)
    b = stretch(b._apply(Reshape((*b.shape[:-2], 1, n, k))), full)
    out = contract(a, b, (len(lead) + 2,), dtype)
    return out._apply(Reshape((*lead, *(() if x.ndim == 1 else (m,)), *(() if y.ndim == 1 else (n,)))))


def matmul(t: A, x: Any, reverse: bool = False, dtype: DTypeLike | None = None) -> A:
    """The same as :meth:`dot`; ``reverse`` exchanges the operands.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 2], [3, 4]]).matmul(Tensor([[1], [10]]))
      Tensor([[21],
              [43]])
    """
    return dot(as_tensor(t, x, "matmul"), t, dtype) if reverse else dot(t, x, dtype)


def __matmul__(x: A, w: Any) -> A:
    return dot(x, w)


def __rmatmul__(t: A, x: Any) -> A:
    return matmul(t, x, reverse=True)


def __imatmul__(t: A, x: Any) -> A:
    return in_place(t, dot(t, x), "@=")


def linear(x: A, weight: A, bias: A | None = None, dtype: DTypeLike | None = None) -> A:
    """x @ weight + bias; a weight of one axis is multiplied element by element.

    Args:
      weight: shape (K, N), not transposed.
      bias: shape (N,).
      dtype: multiply, accumulate and return in this dtype (that of the sum with a bias, if there is one).

    Raises:
      ValueError: if the shapes do not fit.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1.0, 2.0]]).linear(Tensor([[1.0], [10.0]]), Tensor([0.5]))
      Tensor([[21.5]])
    """
    if weight.ndim == 1:
        out = x.mul(weight) if dtype is None else x.cast(dtype).mul(weight.cast(dtype))
    else:
        out = dot(x, weight, dtype)
    return out if bias is None else out + bias


def sequential(x: A, layers: list[Any]) -> A:
    """This tensor through callables, one after another.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([-4.0, 4.0]).sequential([Tensor.abs, Tensor.sqrt])
      Tensor([2., 2.])
    """
    out = x
    for layer in layers:
        out = layer(out)
    return out
