"""Channels exchanged with space, and with one another."""

from __future__ import annotations

from ..array.array import A
from .rearrange import rearrange


def pixel_shuffle(x: A, upscale_factor: int) -> A:
    """Channels turned to pixels: (…, c * r * r, h, w) gives (…, c, h * r, w * r).

    Source: Shi et al., "Real-Time Single Image and Video Super-Resolution", CVPR 2016.

    Raises:
      ValueError: if there are fewer than three axes, or the channels are no multiple of r * r.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[[1]], [[2]], [[3]], [[4]]]).pixel_shuffle(2).tolist()
      [[[1, 2], [3, 4]]]
    """
    r = upscale_factor
    if x.ndim < 3 or r < 1 or x.shape[-3] % (r * r) != 0:
        raise ValueError(f"pixel_shuffle: channels of shape {x.shape} are no multiple of {r} * {r}")
    return rearrange(x, "... (c i j) h w -> ... c (h i) (w j)", i=r, j=r)


def pixel_unshuffle(x: A, downscale_factor: int) -> A:
    """Pixels turned to channels, as :meth:`pixel_shuffle` undoes it: (…, c, h * r, w * r) gives (…, c * r * r, h, w).

    Raises:
      ValueError: if there are fewer than three axes, or a side is no multiple of r.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[[1, 2], [3, 4]]]).pixel_unshuffle(2).flatten().tolist()
      [1, 2, 3, 4]
    """
    r = downscale_factor
    if x.ndim < 3 or r < 1 or x.shape[-1] % r != 0 or x.shape[-2] % r != 0:
        raise ValueError(f"pixel_unshuffle: sides of shape {x.shape} are no multiples of {r}")
    return rearrange(x, "... c (h i) (w j) -> ... (c i j) h w", i=r, j=r)


def channel_shuffle(x: A, groups: int) -> A:
    """Channels dealt out: the first of each group, then the second of each, and so on; channels are axis 1.

    Source: Zhang et al., "ShuffleNet", CVPR 2018.

    Raises:
      ValueError: if there are fewer than three axes, or the channels are no multiple of the groups.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2, 3, 4]).reshape(1, 4, 1).channel_shuffle(2).flatten().tolist()
      [1, 3, 2, 4]
    """
    if x.ndim < 3 or groups < 1 or x.shape[1] % groups != 0:
        raise ValueError(f"channel_shuffle: {groups} groups of channels of shape {x.shape}")
    return rearrange(x, "n (g c) ... -> n (c g) ...", g=groups)
