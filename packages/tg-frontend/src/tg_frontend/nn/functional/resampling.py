"""Images of other sizes."""

from __future__ import annotations

from ...tensor import Tensor
from .adaptive import adaptive_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def interpolate(
    x: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None, antialias: bool = False,
) -> Tensor:  # fmt: skip
    """The axes behind the first two resampled. See :meth:`tg_frontend.Tensor.interpolate`.

    Args:
      size: the new sizes, one number or one an axis.
      scale_factor: or by how much they grow, one number or one an axis; sizes are rounded down.
      mode: also ``area``, the means that ``adaptive_avg_pool2d`` takes.
      align_corners: of all but nearest: whether the first and last elements keep their places.
      recompute_scale_factor: whether the factors that count are those of the sizes that were rounded down.
      antialias: of ``bilinear``, ``bicubic`` and ``lanczos``: whether an element of a smaller picture is the weighted
        mean of all that it stands for.

    Raises:
      ValueError: if there is no such mode, not one of ``size`` and ``scale_factor``, or they do not fit the shape.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.interpolate(Tensor([[[1.0, 3.0]]]), scale_factor=2)
      Tensor([[[1., 1., 3., 3.]]])
    """
    n = x.ndim - 2
    if (size is None) == (scale_factor is None) or n < 1:
        raise ValueError(f"interpolate: one of size and scale_factor, and an input of 3 axes at least, got {x.shape}")
    if size is None and (recompute_scale_factor or mode == "area"):
        factors = scale_factor if isinstance(scale_factor, (tuple, list)) else (scale_factor,) * n
        size, scale_factor = tuple(int(dim * factor) for dim, factor in zip(x.shape[2:], factors, strict=True)), None
    if mode == "area":
        if antialias:
            raise ValueError("interpolate: mode 'area' takes means; antialias is for bilinear, bicubic and lanczos")
        return adaptive_mean(x, n, size, "interpolate")
    return x.interpolate(size, scale_factor, mode, align_corners, antialias)


def upsample(
    x: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Tensor:
    """The same as :func:`interpolate`.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.upsample(Tensor([[[1.0, 3.0]]]), scale_factor=2)
      Tensor([[[1., 1., 3., 3.]]])
    """
    return interpolate(x, size, scale_factor, mode, align_corners)


def upsample_nearest(x: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """:func:`interpolate` of mode ``nearest``.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.upsample_nearest(Tensor([[[1.0, 3.0]]]), 4)
      Tensor([[[1., 1., 3., 3.]]])
    """
    return interpolate(x, size, scale_factor)


def upsample_bilinear(x: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """:func:`interpolate` of mode ``bilinear``, where the corners keep their places.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.upsample_bilinear(Tensor([[[[1.0, 3.0]]]]), (1, 3))
      Tensor([[[[1., 2., 3.]]]])
    """
    return interpolate(x, size, scale_factor, "bilinear", True)
