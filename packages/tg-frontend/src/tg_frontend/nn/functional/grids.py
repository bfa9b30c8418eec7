"""Images sampled at places that a grid tells."""

from __future__ import annotations

import math

from tg_dtype import dtypes

from ...tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_MODES, _PADDINGS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
_CUBIC = -0.75  # the slope of the cubic convolution kernel that PyTorch uses


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool = False) -> Tensor:
    """The places that affine maps give each element of an image, for :func:`grid_sample`.

    Args:
      theta: shape (batch, 2, 3), or (batch, 3, 4) for volumes.
      size: shape of the image: (batch, channels, [depth,] height, width).
      align_corners: whether -1 and 1 are the centres of the outermost elements, or their outer edges.

    Returns:
      shape (batch, [depth,] height, width, 2 or 3).

    Raises:
      ValueError: if the shapes do not fit.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.affine_grid(Tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]), (1, 1, 1, 2))
      Tensor([[[[-0.5,  0. ],
                [ 0.5,  0. ]]]])
    """
    n = len(size) - 2
    if n not in (2, 3) or theta.shape != (size[0], n, n + 1):
        raise ValueError(f"affine_grid: theta of shape {theta.shape} for size {tuple(size)}; (batch, n, n + 1) fits")
    lines = []
    for axis, count in reversed(list(enumerate(size[2:]))):
        at = Tensor.arange(count, device=theta.device).cast(theta.dtype)
        at = (2 * at / max(count - 1, 1) - (count > 1)) if align_corners else (2 * at + 1) / count - 1
        lines.append(at.reshape(tuple(-1 if i == axis else 1 for i in range(n))).expand(*size[2:]))
    base = Tensor.stack(*lines, Tensor.ones(*size[2:], dtype=theta.dtype, device=theta.device), dim=-1)
    out = base.reshape(1, -1, n + 1) @ theta.transpose(1, 2)
    return out.reshape(size[0], *size[2:], n)


def _reflected(at: Tensor, low: float, high: float) -> Tensor:
    """Places beyond two bounds, reflected at them."""
    span = high - low
    if span <= 0:
        return at * 0
    beyond = (at - low).abs()
    turns = (beyond / span).floor()
    rest = beyond - turns * span
    even = (turns / 2).floor() * 2
    return even.eq(turns).where(rest + low, high - rest)


def _inside(at: Tensor, count: int, padding_mode: str, align_corners: bool) -> Tensor:
    if padding_mode == "reflection":
        low, high = (0.0, count - 1.0) if align_corners else (-0.5, count - 0.5)
        at = _reflected(at, low, high)
    return at if padding_mode == "zeros" else at.maximum(0).minimum(count - 1)


def _cubic(t: Tensor) -> list[Tensor]:
    a = _CUBIC

    def near(d: Tensor) -> Tensor:
        return ((a + 2) * d - (a + 3)) * d * d + 1

    def far(d: Tensor) -> Tensor:
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def grid_sample(
    x: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool = False
) -> Tensor:
    """Values of images at the places of a grid.

    Args:
      x: shape (batch, channels, [depth,] height, width).
      grid: shape (batch, *places, 2 or 3): x, y (, z), from -1 to 1.
      mode: "bilinear" (along all axes), "nearest", or "bicubic" of two axes.
      padding_mode: what lies outside: "zeros", the "border", or a "reflection".
      align_corners: whether -1 and 1 are the centres of the outermost elements, or their outer edges.

    Returns:
      shape (batch, channels, *places).

    Raises:
      ValueError: if the shapes do not fit, or there is no such mode.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.grid_sample(Tensor([[[[1.0, 3.0]]]]), Tensor([[[[0.0, 0.0], [0.5, 0.0]]]]))
      Tensor([[[[2., 3.]]]])
    """
    what, n = "grid_sample", x.ndim - 2
    if mode not in _MODES or padding_mode not in _PADDINGS:
        raise ValueError(f"{what}: mode {mode!r}, padding_mode {padding_mode!r}; there are {_MODES}, {_PADDINGS}")
    if n not in (2, 3) or grid.ndim != x.ndim or grid.shape[0] != x.shape[0] or grid.shape[-1] != n:
        raise ValueError(f"{what}: a grid of shape {grid.shape} for an image of shape {x.shape}")
    if (mode == "bicubic" and n != 2) or 0 in x.shape[2:]:
        raise ValueError(f"{what}: mode {mode!r} for an image of shape {x.shape}")
    sizes = tuple(int(dim) for dim in x.shape[2:])
    flat = x.reshape(x.shape[0], x.shape[1], math.prod(sizes))
    places = []
    for axis, count in enumerate(sizes):
        at = grid[..., n - 1 - axis].flatten(1)
        at = (at + 1) / 2 * (count - 1) if align_corners else ((at + 1) * count - 1) / 2
        places.append(at if mode == "bicubic" else _inside(at, count, padding_mode, align_corners))
    corners: list[tuple[list[Tensor], Tensor | None]] = [([], None)]
    for count, at in zip(sizes, places, strict=True):
        if mode == "nearest":
            choices: list[tuple[Tensor, Tensor | None]] = [(at.detach().round(), None)]
        else:
            below = at.detach().floor()
            part = at - below
            if mode == "bilinear":
                choices = [(below, 1 - part), (below + 1, part)]
            else:
                near = [_inside(below + k, count, padding_mode, align_corners) for k in range(-1, 3)]
                choices = list(zip(near, _cubic(part), strict=True))
        corners = [
            ([*found, one], weight if share is None else share if weight is None else weight * share)
            for found, weight in corners for one, share in choices
        ]  # fmt: skip
    out = None
    for found, weight in corners:
        term = _picked(flat, sizes, found)
        term = term if weight is None else term * weight.unsqueeze(1)
        out = term if out is None else out + term
    assert out is not None
    return out.cast(x.dtype).reshape((*x.shape[:2], *grid.shape[1:-1]))


def _picked(flat: Tensor, sizes: tuple[int, ...], places: list[Tensor]) -> Tensor:
    """The elements of images at whole places; 0 outside."""
    inside, at = None, None
    for count, place in zip(sizes, places, strict=True):
        here = (place >= 0) & (place <= count - 1)
        inside = here if inside is None else inside & here
        whole = here.where(place, 0).cast(dtypes.int32)
        at = whole if at is None else at * count + whole
    assert inside is not None and at is not None
    index = at.unsqueeze(1).expand(flat.shape[0], flat.shape[1], at.shape[1])
    return inside.unsqueeze(1).where(flat.gather(2, index), 0)
