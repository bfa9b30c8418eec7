"""Windows of images as columns of a matrix, and back."""

from __future__ import annotations

from ...ops.windows import Windows, WindowsAdded, window_counts
from ...tensor import Tensor
from .sizes import numbers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    Numbers = int | Sequence[int]


def unfold(
    x: Tensor, kernel_size: Numbers, dilation: Numbers = 1, padding: Numbers = 0, stride: Numbers = 1
) -> Tensor:
    """The windows of two axes as columns.

    Args:
      x: shape (batch, channels, height, width); the batch may lack.

    Returns:
      shape (batch, channels * elements of a window, windows).

    Raises:
      ValueError: if the input has another number of axes, or no window fits.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.unfold(Tensor([[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]), 2)
      Tensor([[1., 2.],
              [2., 3.],
              [4., 5.],
              [5., 6.]])
    """
    if x.ndim == 3:
        return unfold(x.unsqueeze(0), kernel_size, dilation, padding, stride).squeeze(0)
    if x.ndim != 4:
        raise ValueError(f"unfold: input of shape {x.shape}; ([batch,] channels, height, width) is wanted")
    kernel, gaps = numbers(kernel_size, 2, "unfold: kernel_size"), numbers(dilation, 2, "unfold: dilation")
    pads, steps = numbers(padding, 2, "unfold: padding", 0), numbers(stride, 2, "unfold: stride")
    x = x.pad([None, None, *((p, p) for p in pads)])
    if any(isinstance(n, int) and n < 1 for n in window_counts(x.shape[2:], kernel, steps, gaps)):
        raise ValueError(f"unfold: no window of {kernel} fits into shape {x.shape}, padding included")
    found = x._of_floats([part._apply(Windows(kernel, steps, gaps)) for part in x._floats()])
    columns = found.permute(0, 1, 4, 5, 2, 3)
    batch, channels, height, width = columns.shape[0], columns.shape[1], columns.shape[4], columns.shape[5]
    return columns.reshape(batch, channels * kernel[0] * kernel[1], height * width)


def fold(
    x: Tensor, output_size: Numbers, kernel_size: Numbers, dilation: Numbers = 1, padding: Numbers = 0,
    stride: Numbers = 1,
) -> Tensor:  # fmt: skip
    """The columns of :func:`unfold` put back as windows, which are added where they overlap.

    Args:
      x: shape (batch, channels * elements of a window, windows); the batch may lack.
      output_size: (height, width) of the result.

    Raises:
      ValueError: if the shape does not fit the sizes.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.fold(Tensor.ones(1, 4, 2), (2, 3), 2)
      Tensor([[[[1., 2., 1.],
                [1., 2., 1.]]]])
    """
    if x.ndim == 2:
        return fold(x.unsqueeze(0), output_size, kernel_size, dilation, padding, stride).squeeze(0)
    sizes, kernel = numbers(output_size, 2, "fold: output_size"), numbers(kernel_size, 2, "fold: kernel_size")
    gaps, pads = numbers(dilation, 2, "fold: dilation"), numbers(padding, 2, "fold: padding", 0)
    steps, elements = numbers(stride, 2, "fold: stride"), kernel[0] * kernel[1]
    outer = tuple(size + 2 * p for size, p in zip(sizes, pads, strict=True))
    counts = window_counts(outer, kernel, steps, gaps)
    if x.ndim != 3 or x.shape[1] % elements != 0 or x.shape[2] != counts[0] * counts[1] or min(map(int, counts)) < 1:
        raise ValueError(
            f"fold: input of shape {x.shape}; (batch, a multiple of {elements}, {'*'.join(map(str, counts))}) is wanted"
        )
    channels = int(x.shape[1]) // elements
    grid = x.reshape(x.shape[0], channels, *kernel, *counts).permute(0, 1, 4, 5, 2, 3)
    return grid._of_floats([part._apply(WindowsAdded(sizes, pads, steps, gaps)) for part in grid._floats()])
