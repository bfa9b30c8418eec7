"""What a tensor says of itself by PyTorch's names: where it is, of which kind it is, what becomes of its gradient."""

from __future__ import annotations

from tg_shape import sint

from ..autograd.graph import Node, node_of
from ..host import transfer
from .base import B
from .writing import brings_to_layers


def size(x: B, dim: int | None = None) -> sint | tuple[sint, ...]:
    """The shape, or the size of one axis.

    Raises:
      IndexError: if the axis is out of range.

    Example:
      >>> from tg_frontend import Tensor
      >>> x = Tensor([[1, 2, 3], [4, 5, 6]])
      >>> x.size(), x.size(1)
      ((2, 3), 3)
    """
    if dim is not None and x.ndim == 0:
        raise IndexError("size: a tensor of shape () has no axes")
    return x.shape if dim is None else x.shape[x._axis(dim, "size")]


def itemsize(x: B) -> int:
    """Bytes of one element: the same as :meth:`element_size`.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0]).itemsize
      4
    """
    return x.dtype.itemsize


def grad_fn(x: B) -> Node | None:
    """The function that this tensor is the result of, where a gradient flows through it; None for a leaf.

    ``name()`` says which, ``next_functions`` what made its operands. That of a complex tensor is of one of its parts.

    Example:
      >>> from tg_frontend import Tensor
      >>> x = Tensor([1.0], requires_grad=True)
      >>> x.grad_fn, (x * 2).grad_fn
      (None, <MulBackward>)
    """
    made = [part for part in x._floats() if not part.is_leaf]
    return node_of(made[0]) if made else None


def requires_grad(x: B) -> bool | None:
    """Whether ``backward`` gives this tensor a ``grad``; None leaves it open. Set to True, it is a leaf.

    Parameters of layers, and what is computed from them, leave it open and read True: ``backward`` gives those
    parameters gradients where nothing else asks for one. Set to True, what is computed from them stays as it is.

    Raises:
      TypeError: when set to True, and the elements are not floats.
      RuntimeError: when set to another value than True on what was computed from tensors that require a gradient.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> x = Tensor([1.0], requires_grad=True)
      >>> (x * 2).requires_grad, x.detach().requires_grad, nn.Linear(2, 3).weight.requires_grad
      (True, False, True)
    """
    wish = x._wish
    return True if wish is None and any(map(brings_to_layers, x._floats())) else wish


def set_requires_grad(x: B, value: bool | None) -> None:
    """Says whether ``backward`` is to give a tensor a ``grad``."""
    x._wish = value


def retains_grad(x: B) -> bool:
    """Whether :meth:`retain_grad` has asked for the gradient of this result; False for a leaf, which has it anyway.

    Example:
      >>> from tg_frontend import Tensor
      >>> x = Tensor([1.0], requires_grad=True)
      >>> x.retains_grad, (x * 2).retain_grad().retains_grad
      (False, True)
    """
    hooks = [getattr(part, "_hooks", None) for part in x._floats() if not part.is_leaf]
    return any(one is not None and one.kept[0] for one in hooks)


def is_cuda(x: B) -> bool:
    """Whether the tensor is on a device of CUDA.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0], device="CPU").is_cuda
      False
    """
    return x.device.partition(":")[0] == "CUDA"


def is_mps(x: B) -> bool:
    """Whether the tensor is on a device of Apple's, by PyTorch's name for them.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0], device="CPU").is_mps
      False
    """
    return x.device.partition(":")[0] == "METAL"


def is_cpu(x: B) -> bool:
    """Whether the tensor is in the host's memory.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0], device="CPU").is_cpu
      True
    """
    return transfer.is_addressable(x.device)


def is_meta(x: B) -> bool:
    """False: every tensor has elements, which are computed when they are wanted.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0]).is_meta
      False
    """
    return False


def is_nested(x: B) -> bool:
    """False: every tensor has one shape.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0]).is_nested
      False
    """
    return False


def is_quantized(x: B) -> bool:
    """False: no tensor holds a scale beside its elements.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0]).is_quantized
      False
    """
    return False
