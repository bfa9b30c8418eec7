"""Products of matrices in groups, and of matrices with scales beside them."""

from __future__ import annotations

from enum import Enum
from math import prod

from tg_dtype import dtypes

from ...tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class ScalingType(Enum):
    """How many elements of a matrix share a scale, by PyTorch's names.

    Example:
      >>> from tg_frontend.nn import functional as F
      >>> F.ScalingType.RowWise.value
      1
    """

    TensorWise = 0
    RowWise = 1
    BlockWise1x16 = 2
    BlockWise1x32 = 3
    BlockWise1x128 = 4
    BlockWise128x128 = 5


class SwizzleType(Enum):
    """In which order the scales of blocks lie in memory, by PyTorch's names.

    Example:
      >>> from tg_frontend.nn import functional as F
      >>> F.SwizzleType.NO_SWIZZLE.value
      0
    """

    NO_SWIZZLE = 0
    SWIZZLE_32_4_4 = 1


def _ends(offs: Tensor, groups: int | None, length: int) -> list[int]:
    """Where the groups of an axis of this length end.

    Raises:
      TypeError: if ``offs`` holds no integers.
      ValueError: if it is no vector of ``groups`` places that grow.
    """
    if not dtypes.is_int(offs.dtype):
        raise TypeError(f"grouped_mm: offs are integers, got a tensor of {offs.dtype.name}")
    if offs.ndim != 1 or groups not in (None, offs.shape[0]):
        raise ValueError(f"grouped_mm: offs of shape {offs.shape} for {groups or 'some'} groups; one end for each fits")
    ends: list[int] = offs.tolist()
    if any(end < start for start, end in zip([0, *ends], [*ends, length], strict=True)):
        raise ValueError(f"grouped_mm: offs are {ends}; they are to grow from 0 to {length} at most")
    return ends


def _pieces(x: Tensor, ends: list[int], axis: int) -> list[Tensor]:
    """The groups along an axis; what lies behind the last is left out."""
    return [x.narrow(axis, start, end - start) for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def grouped_mm(
    mat_a: Tensor, mat_b: Tensor, *, offs: Tensor | None = None, bias: Tensor | None = None, out_dtype: Any = None
) -> Tensor:
    """Products of several pairs of matrices, whose sizes along one axis may differ from pair to pair.

    Args:
      mat_a: shape (groups, M, K); or (M, K), of which the rows are divided among the groups where ``mat_b`` has three
        axes, and the columns where it has two.
      mat_b: shape (groups, K, N); or (K, N), of which the columns are divided where ``mat_a`` has three axes, and the
        rows where it has two.
      offs: integers, where each group of what is divided ends; what lies behind the last is in none. They are read at
        once. None if both have three axes.
      bias: added to the products.
      out_dtype: what the operands are cast to before.

    Returns:
      shape (groups, M, N) if both have three axes or both have two, else (M, N), with zeros for what is in no group.

    Raises:
      ValueError: if the shapes do not fit, ``offs`` do not grow, or they are given or missing where they should not be.
      TypeError: if ``offs`` holds no integers.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> experts = Tensor([[[1.0]], [[10.0]]])
      >>> F.grouped_mm(Tensor([[1.0], [2.0], [3.0]]), experts, offs=Tensor([1, 3])).flatten()
      Tensor([ 1., 20., 30.])
    """
    what, ranks = "grouped_mm", (mat_a.ndim, mat_b.ndim)
    if not set(ranks) <= {2, 3} or mat_a.shape[-1] != mat_b.shape[-2]:
        raise ValueError(f"{what}: shapes {mat_a.shape} and {mat_b.shape}; matrices, or batches of them, fit")
    if (offs is None) != (ranks == (3, 3)):
        raise ValueError(f"{what}: offs say where groups end in what has two axes; got shapes {mat_a.shape} and "
                         f"{mat_b.shape} with{'out' if offs is None else ''} offs")  # fmt: skip
    if out_dtype is not None:
        mat_a, mat_b = mat_a.cast(out_dtype), mat_b.cast(out_dtype)
    if offs is None:
        if mat_a.shape[0] != mat_b.shape[0]:
            raise ValueError(f"{what}: {mat_a.shape[0]} matrices and {mat_b.shape[0]}")
        out = mat_a.matmul(mat_b)
        return out if bias is None else out + bias
    (rows, inner), columns = mat_a._ints()[-2:], mat_b._ints()[-1]
    if ranks == (2, 2):
        ends = _ends(offs, None, inner)
        parts = zip(_pieces(mat_a, ends, 1), _pieces(mat_b, ends, 0), strict=True)
        out = Tensor.stack(*[a.matmul(b) for a, b in parts])
        return out if bias is None else out + bias
    axis, length = (0, rows) if ranks == (2, 3) else (1, columns)
    ends = _ends(offs, int(mat_b.shape[0] if axis == 0 else mat_a.shape[0]), length)
    if axis == 0:
        products = [a.matmul(mat_b[n]) for n, a in enumerate(_pieces(mat_a, ends, 0))]
    else:
        products = [mat_a[n].matmul(b) for n, b in enumerate(_pieces(mat_b, ends, 1))]
    out = products[0].cat(*products[1:], dim=axis)
    behind = length - ends[-1]
    out = out.pad(((0, behind), None) if axis == 0 else (None, (0, behind))) if behind else out
    return out if bias is None else out + bias


def _scaled(x: Tensor, scale: Any, recipe: Any, rows: int, what: str) -> Tensor:
    """The scales of a matrix, as they multiply products.

    Raises:
      NotImplementedError: for scales of blocks.
      ValueError: if the scales have another shape.
    """
    scales, recipes = ([one] if not isinstance(one, (list, tuple)) else list(one) for one in (scale, recipe))
    kinds = [ScalingType(one) for one in recipes]
    if kinds not in ([ScalingType.TensorWise], [ScalingType.RowWise]) or len(scales) != 1:
        raise NotImplementedError(
            f"scaled_mm: {what} has scales of {', '.join(kind.name for kind in kinds)}; there are TensorWise and "
            "RowWise ones: multiply a matrix with those of blocks, (x.float() * scales), and take matmul()"
        )
    (found,) = scales
    wanted = (1,) if kinds[0] is ScalingType.TensorWise else (x.shape[rows],)
    if prod(found._ints()) != wanted[0]:
        raise ValueError(f"scaled_mm: scales of {what} have shape {found.shape}; {kinds[0].name} are {wanted[0]}")
    out: Tensor = found.reshape(-1, 1) if rows == 0 else found.reshape(1, -1)
    return out


def scaled_mm(
    mat_a: Tensor, mat_b: Tensor, scale_a: Any, scale_recipe_a: Any, scale_b: Any, scale_recipe_b: Any,
    swizzle_a: Any = None, swizzle_b: Any = None, bias: Tensor | None = None, output_dtype: Any = dtypes.bfloat16,
    contraction_dim: Sequence[int] = (), use_fast_accum: bool = False,
) -> Tensor:  # fmt: skip
    """The product of two matrices of few bits, each with scales beside it; sums are of float32.

    Args:
      mat_a: shape (M, K), of fp8 for instance.
      mat_b: shape (K, N).
      scale_a: one number for ``TensorWise``, or M numbers for ``RowWise``.
      scale_recipe_a: a :class:`ScalingType`.
      scale_b: one number, or N numbers.
      scale_recipe_b: a :class:`ScalingType`.
      swizzle_a: ``SwizzleType.NO_SWIZZLE`` or None.
      swizzle_b: likewise.
      bias: shape (N,), added to the product.
      output_dtype: of the result; that of ``mat_a`` if None.
      contraction_dim: the axes that are summed over, if given: the last of ``mat_a`` and the first of ``mat_b``.
      use_fast_accum: of no effect.

    Raises:
      ValueError: if shapes do not fit.
      NotImplementedError: for scales of blocks, or in another order, and for sums over other axes.

    Example:
      >>> from tg_dtype import dtypes
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> a, b = Tensor([[1.0, 2.0]]).cast("fp8e4m3"), Tensor([[4.0], [0.5]]).cast("fp8e4m3")
      >>> whole = F.ScalingType.TensorWise
      >>> F.scaled_mm(a, b, Tensor(2.0), whole, Tensor(10.0), whole, output_dtype=dtypes.float32)
      Tensor([[100.]])
    """
    if mat_a.ndim != 2 or mat_b.ndim != 2 or mat_a.shape[1] != mat_b.shape[0]:
        raise ValueError(f"scaled_mm: shapes {mat_a.shape} and {mat_b.shape}; (M, K) and (K, N) fit")
    for given in (swizzle_a, swizzle_b):
        if any(SwizzleType(one).value for one in (given if isinstance(given, (list, tuple)) else (given,)) if one):
            raise NotImplementedError("scaled_mm: scales lie in the order of their rows, without a swizzle")
    if tuple(contraction_dim) and (contraction_dim[0] % 2, contraction_dim[1] % 2) != (1, 0):
        raise NotImplementedError(
            f"scaled_mm: contraction_dim {tuple(contraction_dim)}; it is (1, 0): transpose before"
        )
    scales = _scaled(mat_a, scale_a, scale_recipe_a, 0, "mat_a"), _scaled(mat_b, scale_b, scale_recipe_b, 1, "mat_b")
    out = mat_a.cast(dtypes.float32).matmul(mat_b.cast(dtypes.float32)) * scales[0] * scales[1]
    out = out if bias is None else out + bias
    return out.cast(mat_a.dtype if output_dtype is None else output_dtype)
