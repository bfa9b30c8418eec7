"""Gradients of convolutions by themselves, by the names of ``torch.nn.grad``."""

from __future__ import annotations

from ..autograd.differentiation import MODE, Switch
from ..keywords import offered
from ..tensor import Tensor
from ..transform.outputs import grad
from . import functional
from .absent import refusing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tg_shape import sint

    Numbers = int | Sequence[int]

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]


def _at(size: Sequence[sint], other: Tensor, grad_output: Tensor, convolution: Callable[[Tensor], Tensor]) -> Tensor:
    """The gradient of a convolution with another tensor at one of this size, wherever it is: it is linear there.

    Raises:
      ValueError: if ``grad_output`` is not of the shape of the result.
    """
    at = Tensor.zeros(*size, dtype=other.dtype, device=other.device, requires_grad=True)
    with Switch(MODE, "recording", True):
        out = convolution(at)
    if grad_output.shape != out.shape:
        raise ValueError(f"grad_output of shape {grad_output.shape}; the result is of shape {out.shape}")
    again = MODE.recording and True in (other.requires_grad, grad_output.requires_grad)
    return grad(out, at, grad_output, create_graph=again)[0]


def _at_input(
    convolution: Callable[..., Tensor], size: Sequence[sint], weight: Tensor, grad_output: Tensor, *rest: Numbers
) -> Tensor:
    return _at(size, weight, grad_output, lambda x: convolution(x, weight, None, *rest))


def _at_weight(
    convolution: Callable[..., Tensor], input: Tensor, size: Sequence[sint], grad_output: Tensor, *rest: Numbers
) -> Tensor:
    return _at(size, input, grad_output, lambda weight: convolution(input, weight, None, *rest))


def conv1d_input(
    input_size: Sequence[sint], weight: Tensor, grad_output: Tensor, stride: Numbers = 1, padding: Numbers = 0,
    dilation: Numbers = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """The gradient of :func:`tg_frontend.nn.functional.conv1d` at its input.

    Args:
      input_size: shape of the input.
      weight: as for the convolution, and so are the others.
      grad_output: the gradient at the result.

    Raises:
      ValueError: if ``grad_output`` is not of the shape of the result.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.grad.conv1d_input((1, 1, 4), Tensor([[[1.0, 2.0]]]), Tensor.ones(1, 1, 3))
      Tensor([[[1., 3., 3., 2.]]])
    """
    return _at_input(functional.conv1d, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv1d_weight(
    input: Tensor, weight_size: Sequence[sint], grad_output: Tensor, stride: Numbers = 1, padding: Numbers = 0,
    dilation: Numbers = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """The gradient of :func:`tg_frontend.nn.functional.conv1d` at its weight.

    Args:
      input: as for the convolution, and so are the others.
      weight_size: shape of the weight.
      grad_output: the gradient at the result.

    Raises:
      ValueError: if ``grad_output`` is not of the shape of the result.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.grad.conv1d_weight(Tensor([[[1.0, 2.0, 3.0, 4.0]]]), (1, 1, 2), Tensor.ones(1, 1, 3))
      Tensor([[[6., 9.]]])
    """
    return _at_weight(functional.conv1d, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv2d_input(
    input_size: Sequence[sint], weight: Tensor, grad_output: Tensor, stride: Numbers = 1, padding: Numbers = 0,
    dilation: Numbers = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """The gradient of :func:`tg_frontend.nn.functional.conv2d` at its input; see :func:`conv1d_input`.

    Raises:
      ValueError: if ``grad_output`` is not of the shape of the result.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.grad.conv2d_input((1, 1, 2, 3), Tensor([[[[1.0, 2.0]]]]), Tensor.ones(1, 1, 2, 2))[0, 0]
      Tensor([[1., 3., 2.],
              [1., 3., 2.]])
    """
    return _at_input(functional.conv2d, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv2d_weight(
    input: Tensor, weight_size: Sequence[sint], grad_output: Tensor, stride: Numbers = 1, padding: Numbers = 0,
    dilation: Numbers = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """The gradient of :func:`tg_frontend.nn.functional.conv2d` at its weight; see :func:`conv1d_weight`.

    Raises:
      ValueError: if ``grad_output`` is not of the shape of the result.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.grad.conv2d_weight(Tensor.ones(1, 1, 3, 3), (1, 1, 2, 2), Tensor.ones(1, 1, 2, 2))[0, 0]
      Tensor([[4., 4.],
              [4., 4.]])
    """
    return _at_weight(functional.conv2d, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv3d_input(
    input_size: Sequence[sint], weight: Tensor, grad_output: Tensor, stride: Numbers = 1, padding: Numbers = 0,
    dilation: Numbers = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """The gradient of :func:`tg_frontend.nn.functional.conv3d` at its input; see :func:`conv1d_input`.

    Raises:
      ValueError: if ``grad_output`` is not of the shape of the result.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.grad.conv3d_input((1, 1, 1, 1, 3), Tensor.ones(1, 1, 1, 1, 2), Tensor.ones(1, 1, 1, 1, 2))[0, 0, 0]
      Tensor([[1., 2., 1.]])
    """
    return _at_input(functional.conv3d, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv3d_weight(
    input: Tensor, weight_size: Sequence[sint], grad_output: Tensor, stride: Numbers = 1, padding: Numbers = 0,
    dilation: Numbers = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """The gradient of :func:`tg_frontend.nn.functional.conv3d` at its weight; see :func:`conv1d_weight`.

    Raises:
      ValueError: if ``grad_output`` is not of the shape of the result.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.grad.conv3d_weight(Tensor.ones(1, 1, 2, 2, 2), (1, 1, 1, 1, 2), Tensor.ones(1, 1, 2, 2, 1))[0, 0, 0]
      Tensor([[4., 4.]])
    """
    return _at_weight(functional.conv3d, input, weight_size, grad_output, stride, padding, dilation, groups)


offered(globals(), __all__, "nn.grad")

if not TYPE_CHECKING:
    __getattr__ = refusing("nn.grad")
