"""Products of matrices of few bits with scales beside them: one for all, one a row, or one for each block.

How many scales there are and how they lie is PyTorch's: see ``aten/src/ATen/native/cuda/ScaledBlas.cpp`` there.
"""

from __future__ import annotations

from enum import Enum
from math import prod
from typing import TypeVar

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


_Kind = TypeVar("_Kind", ScalingType, SwizzleType)
_BLOCKS = {
    ScalingType.BlockWise1x16: (1, 16), ScalingType.BlockWise1x32: (1, 32), ScalingType.BlockWise1x128: (1, 128),
    ScalingType.BlockWise128x128: (128, 128),
}  # fmt: skip
"""How many rows, and how many elements of the summed axis, share a scale."""
_TILE = (128, 4)
"""Rows and columns of a tile of swizzled scales: "1D block scaling factors layout" in NVIDIA's manual of cuBLAS."""
_PADDED = 4
"""The first axis of scales of 128x128 may be filled up to a multiple of this."""


def _up(count: int, unit: int) -> int:
    """How many units it takes."""
    return -(-count // unit)


def _unswizzled(scale: Tensor, rows: int, columns: int) -> Tensor:
    """Scales that lie in tiles, of which each holds row after row 32 rows apart, as a matrix.

    Args:
      scale: of so many elements as whole tiles have.

    Returns:
      shape (rows, columns).
    """
    down, across = _up(rows, _TILE[0]), _up(columns, _TILE[1])
    tiles = scale.reshape(down, across, 32, 4, _TILE[1]).permute(0, 3, 2, 1, 4)
    return tiles.reshape(down * _TILE[0], across * _TILE[1])[:rows, :columns]


def _of_blocks(x: Tensor, scale: Tensor, kind: ScalingType, swizzled: bool, what: str) -> Tensor:
    """The scale of each element.

    Args:
      x: shape (rows, K), K being summed over.

    Raises:
      ValueError: if there are not as many scales as blocks.
      NotImplementedError: for swizzled scales of 128x128.
    """
    rows, inner = x._ints()
    high, wide = _BLOCKS[kind]
    down, across = _up(rows, high), _up(inner, wide)
    if high > 1 and swizzled:
        raise NotImplementedError(f"scaled_mm: {what} has scales of {kind.name}, which are not swizzled")
    if swizzled:
        wanted: tuple[tuple[int, ...], ...] = ((_up(down, _TILE[0]) * _TILE[0] * _up(across, _TILE[1]) * _TILE[1],),)
        fits = prod(scale._ints()) == wanted[0][0]
    elif high > 1:  # they are given transposed
        wanted = tuple({(across, down), (_up(across, _PADDED) * _PADDED, down)})
        fits = scale._ints() in wanted
    else:
        wanted = ((down, across),)
        fits = scale._ints() == wanted[0] or (scale.ndim == 1 and prod(scale._ints()) == down * across)
    if not fits:
        shapes = " or ".join(map(str, sorted(wanted)))
        raise ValueError(f"scaled_mm: scales of {what} have shape {scale.shape}; {kind.name} of a matrix that has "
                         f"{rows} rows of {inner} are {shapes}{' swizzled' if swizzled else ''}")  # fmt: skip
    if swizzled:
        scale = _unswizzled(scale, down, across)
    elif high > 1:
        scale = scale[:across].T
    each = scale.cast(dtypes.float32).reshape(down, 1, across, 1).expand(down, high, across, wide)
    return each.reshape(down * high, across * wide)[:rows, :inner]


def _listed(given: Any) -> list[Any]:
    return list(given) if isinstance(given, (list, tuple)) else [given]


def _of(kind: type[_Kind], given: Any) -> _Kind:
    try:
        return kind(given)
    except ValueError:
        raise ValueError(f"scaled_mm: {given!r} is no {kind.__name__}") from None


def _scaled(x: Tensor, scale: Any, recipe: Any, swizzle: Any, what: str) -> tuple[Tensor, Tensor | None]:
    """A matrix in float32, multiplied with the scales of its blocks, and what of its scales multiplies products.

    Args:
      x: shape (rows, K), K being summed over.

    Returns:
      shape (rows, K), and shape (1,) or (rows,), or None.

    Raises:
      NotImplementedError: for a swizzle of scales that have none.
      ValueError: if the scales have another shape, or are not as many as the recipes.
    """
    scales, kinds = _listed(scale), [_of(ScalingType, one) for one in _listed(recipe)]
    orders = [SwizzleType.NO_SWIZZLE if one is None else _of(SwizzleType, one) for one in _listed(swizzle)]
    orders += [SwizzleType.NO_SWIZZLE] * (len(kinds) - len(orders))
    if len(scales) != len(kinds) or len(orders) != len(kinds):
        raise ValueError(f"scaled_mm: {what} has {len(scales)} scales, {len(kinds)} recipes and {len(orders)} swizzles")
    out, rows, factor = x.cast(dtypes.float32), x._ints()[0], None
    for found, kind, order in zip(scales, kinds, orders, strict=True):
        swizzled = order is not SwizzleType.NO_SWIZZLE
        if kind in _BLOCKS:
            out = out * _of_blocks(x, found, kind, swizzled, what)
            continue
        if swizzled:
            raise NotImplementedError(f"scaled_mm: scales of {what} are {kind.name}, in the order of rows: no swizzle")
        wanted = 1 if kind is ScalingType.TensorWise else rows
        if prod(found._ints()) != wanted:
            raise ValueError(f"scaled_mm: scales of {what} have shape {found.shape}; {kind.name} are {wanted}")
        factor = found.reshape(-1) if factor is None else factor * found.reshape(-1)
    return out, factor


def scaled_mm(
    mat_a: Tensor, mat_b: Tensor, scale_a: Any, scale_recipe_a: Any, scale_b: Any, scale_recipe_b: Any,
    swizzle_a: Any = None, swizzle_b: Any = None, bias: Tensor | None = None, output_dtype: Any = dtypes.bfloat16,
    contraction_dim: Sequence[int] = (), use_fast_accum: bool = False,
) -> Tensor:  # fmt: skip
    """The product of two matrices of few bits, each with scales beside it; sums are of float32.

    Scales multiply what they belong to. ``TensorWise`` is one number; ``RowWise`` one for each row of ``mat_a`` and
    each column of ``mat_b``; ``BlockWise1xN`` one for each N elements of such a row or column, shape (M, K / N) and
    (N, K / N), of which the last block may be short; ``BlockWise128x128`` one for each square of 128, shape
    (K / 128, M / 128) and (K / 128, N / 128), of which the first axis may be filled up to a multiple of 4.

    Args:
      mat_a: shape (M, K), of fp8 for instance.
      mat_b: shape (K, N).
      scale_a: numbers, of a shape that the recipe says; or a list of them, one for each recipe.
      scale_recipe_a: a :class:`ScalingType`, or a list: ``[BlockWise1x16, TensorWise]`` are blocks, and one for all.
      scale_b: and ``scale_recipe_b``: likewise of ``mat_b``.
      swizzle_a: ``SwizzleType.SWIZZLE_32_4_4`` if the scales of ``BlockWise1xN`` lie in tiles of (128, 4), which are
        whole; or a list, one for each recipe.
      swizzle_b: likewise.
      bias: shape (N,), added to the product.
      output_dtype: of the result; that of ``mat_a`` if None.
      contraction_dim: the axes that are summed over, if given: the last of ``mat_a`` and the first of ``mat_b``.
      use_fast_accum: of no effect.

    Raises:
      ValueError: if shapes do not fit, a recipe or a swizzle is none, or sums are over other axes.
      NotImplementedError: for a swizzle of other scales.

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
    if tuple(contraction_dim) not in ((), (1, 0), (-1, -2), (1, -2), (-1, 0)):
        raise ValueError(f"scaled_mm: contraction_dim {tuple(contraction_dim)}; it is (1, 0): transpose before")
    a, rows = _scaled(mat_a, scale_a, scale_recipe_a, swizzle_a, "mat_a")
    b, columns = _scaled(mat_b.T, scale_b, scale_recipe_b, swizzle_b, "mat_b")
    out = a.matmul(b.T)
    out = out if rows is None else out * rows.reshape(-1, 1)
    out = out if columns is None else out * columns
    out = out if bias is None else out + bias
    return out.cast(mat_a.dtype if output_dtype is None else output_dtype)
