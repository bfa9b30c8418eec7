"""Pools of maxima that always give the positions as well, by PyTorch's names.

Arguments, errors and results are those of the functions without ``_with_indices``, with ``return_indices``.
"""

from __future__ import annotations

from ...tensor import Tensor
from . import adaptive, arranged, fractional

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    Numbers = int | Sequence[int]
    Ratios = float | Sequence[float]
    Sizes = int | Sequence[int | None] | None
    Both = tuple[Tensor, Tensor]


def max_pool1d_with_indices(
    x: Tensor, kernel_size: Numbers, stride: Numbers | None = None, padding: Numbers = 0, dilation: Numbers = 1,
    ceil_mode: bool = False, return_indices: bool = False,
) -> Both:  # fmt: skip
    """The maximum of each window of one axis, and its position. See :meth:`Tensor.max_pool1d`.

    Raises:
      ValueError: if no window fits.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.max_pool1d_with_indices(Tensor([[1.0, 3.0, 2.0, 5.0]]), 2)
      (Tensor([[3., 5.]]), Tensor([[1, 3]]))
    """
    found: Both = x.max_pool1d(kernel_size, stride, padding, dilation, ceil_mode, True)
    return found


def max_pool2d_with_indices(
    x: Tensor, kernel_size: Numbers, stride: Numbers | None = None, padding: Numbers = 0, dilation: Numbers = 1,
    ceil_mode: bool = False, return_indices: bool = False,
) -> Both:  # fmt: skip
    """The maximum of each window of two axes, and its position. See
    :func:`~tg_frontend.nn.functional.arranged.max_pool2d`.

    Raises:
      ValueError: if no window fits.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.max_pool2d_with_indices(Tensor([[[1.0, 2.0], [3.0, 6.0]]]), 2)
      (Tensor([[[6.]]]), Tensor([[[3]]]))
    """
    found: Both = arranged.max_pool2d(x, kernel_size, stride, padding, dilation, ceil_mode, True)
    return found


def max_pool3d_with_indices(
    x: Tensor, kernel_size: Numbers, stride: Numbers | None = None, padding: Numbers = 0, dilation: Numbers = 1,
    ceil_mode: bool = False, return_indices: bool = False,
) -> Both:  # fmt: skip
    """The maximum of each window of three axes, and its position. See :meth:`Tensor.max_pool3d`.

    Raises:
      ValueError: if no window fits.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.max_pool3d_with_indices(Tensor([[[[1.0, 2.0], [7.0, 6.0]]]]), (1, 2, 2))
      (Tensor([[[[7.]]]]), Tensor([[[[2]]]]))
    """
    found: Both = x.max_pool3d(kernel_size, stride, padding, dilation, ceil_mode, True)
    return found


def adaptive_max_pool1d_with_indices(x: Tensor, output_size: Sizes, return_indices: bool = False) -> Both:
    """The maxima of windows that divide the last axis, and their positions. See
    :func:`~tg_frontend.nn.functional.adaptive.adaptive_max_pool1d`.

    Raises:
      ValueError: if the input has another number of axes, or the size is none.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.adaptive_max_pool1d_with_indices(Tensor([[1.0, 3.0, 2.0, 5.0]]), 1)
      (Tensor([[5.]]), Tensor([[3]]))
    """
    found: Both = adaptive.adaptive_max_pool1d(x, output_size, True)
    return found


def adaptive_max_pool2d_with_indices(x: Tensor, output_size: Sizes, return_indices: bool = False) -> Both:
    """The maxima of windows that divide the last two axes, and their positions. See
    :func:`~tg_frontend.nn.functional.adaptive.adaptive_max_pool2d`.

    Raises:
      ValueError: if the input has another number of axes, or the size is none.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.adaptive_max_pool2d_with_indices(Tensor([[[1.0, 2.0], [3.0, 6.0]]]), 1)
      (Tensor([[[6.]]]), Tensor([[[3]]]))
    """
    found: Both = adaptive.adaptive_max_pool2d(x, output_size, True)
    return found


def adaptive_max_pool3d_with_indices(x: Tensor, output_size: Sizes, return_indices: bool = False) -> Both:
    """The maxima of windows that divide the last three axes, and their positions. See
    :func:`~tg_frontend.nn.functional.adaptive.adaptive_max_pool3d`.

    Raises:
      ValueError: if the input has another number of axes, or the size is none.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.adaptive_max_pool3d_with_indices(Tensor([[[[1.0, 2.0], [7.0, 6.0]]]]), 1)
      (Tensor([[[[7.]]]]), Tensor([[[[2]]]]))
    """
    found: Both = adaptive.adaptive_max_pool3d(x, output_size, True)
    return found


def fractional_max_pool2d_with_indices(
    x: Tensor, kernel_size: Numbers, output_size: Numbers | None = None, output_ratio: Ratios | None = None,
    return_indices: bool = False, _random_samples: Tensor | None = None,
) -> Both:  # fmt: skip
    """The maxima of windows that begin at random, and their positions. See
    :func:`~tg_frontend.nn.functional.fractional.fractional_max_pool2d`.

    Raises:
      ValueError: as there.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.fractional_max_pool2d_with_indices(Tensor([[[1.0, 2.0], [3.0, 6.0]]]), 2, output_size=1)
      (Tensor([[[6.]]]), Tensor([[[3]]]))
    """
    found: Both = fractional.fractional_max_pool2d(
        x, kernel_size, output_size, output_ratio, True, _random_samples
    )
    return found


def fractional_max_pool3d_with_indices(
    x: Tensor, kernel_size: Numbers, output_size: Numbers | None = None, output_ratio: Ratios | None = None,
    return_indices: bool = False, _random_samples: Tensor | None = None,
) -> Both:  # fmt: skip
    """The maxima of windows that begin at random, and their positions. See
    :func:`~tg_frontend.nn.functional.fractional.fractional_max_pool3d`.

    Raises:
      ValueError: as there.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.fractional_max_pool3d_with_indices(Tensor([[[[1.0, 2.0], [7.0, 6.0]]]]), (1, 2, 2), output_size=1)
      (Tensor([[[[7.]]]]), Tensor([[[[2]]]]))
    """
    found: Both = fractional.fractional_max_pool3d(
        x, kernel_size, output_size, output_ratio, True, _random_samples
    )
    return found
