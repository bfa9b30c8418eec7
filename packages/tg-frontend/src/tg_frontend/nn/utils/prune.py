"""Weights of which elements become 0 and stay it, by the names of ``torch.nn.utils.prune``."""

from __future__ import annotations

from ...tensor import Tensor
from ..absent import refusing
from .parameters import parameters_to_vector
from .pruning import (
    BasePruningMethod,
    CustomFromMask,
    Identity,
    L1Unstructured,
    LnStructured,
    PruningContainer,
    RandomStructured,
    RandomUnstructured,
    method_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

__all__ = [
    "BasePruningMethod", "CustomFromMask", "Identity", "L1Unstructured", "LnStructured", "PruningContainer",
    "RandomStructured", "RandomUnstructured", "custom_from_mask", "global_unstructured", "identity", "is_pruned",
    "l1_unstructured", "ln_structured", "random_structured", "random_unstructured", "remove",
]  # fmt: skip


def identity(module: Any, name: str) -> Any:
    """Changes a layer as pruning does, with a mask of ones. See :class:`Identity`.

    Args:
      module: the layer; it is changed, and returned.
      name: of a tensor of it.

    Raises:
      ValueError: if there is no such tensor.

    Example:
      >>> from tg_frontend import nn
      >>> layer = nn.utils.prune.identity(nn.Linear(2, 3), "bias")
      >>> layer.bias_mask
      Tensor([1., 1., 1.])
    """
    Identity.apply(module, name)
    return module


def random_unstructured(module: Any, name: str, amount: float) -> Any:
    """Prunes elements drawn at random. See :class:`RandomUnstructured`.

    Args:
      module: the layer; it is changed, and returned.
      name: of a tensor of it.
      amount: how many of the elements that are left: an integer, or a part from 0 to 1.

    Raises:
      TypeError: if the amount is no number.
      ValueError: if there is no such tensor, or the amount is negative or more than there is.

    Example:
      >>> from tg_frontend import nn
      >>> layer = nn.utils.prune.random_unstructured(nn.Linear(2, 3), "weight", amount=1)
      >>> int((layer.weight_mask == 0).sum().item())
      1
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Any, name: str, amount: float, importance_scores: Tensor | None = None) -> Any:
    """Prunes the elements of least magnitude. See :class:`L1Unstructured`.

    Args:
      module: the layer; it is changed, and returned.
      name: of a tensor of it.
      amount: how many of the elements that are left: an integer, or a part from 0 to 1.
      importance_scores: what is taken in place of the elements, of the same shape.

    Raises:
      TypeError: if the amount is no number.
      ValueError: if there is no such tensor, or the amount is negative or more than there is.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> layer = nn.Linear(2, 1)
      >>> _ = layer.weight.assign(Tensor([[-2.0, 1.0]]))
      >>> nn.utils.prune.l1_unstructured(layer, "weight", amount=0.5).weight.tolist()
      [[-2.0, 0.0]]
    """
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: Any, name: str, amount: float, dim: int) -> Any:
    """Prunes slices along an axis drawn at random. See :class:`RandomStructured`.

    Args:
      module: the layer; it is changed, and returned.
      name: of a tensor of it, of two axes or more.
      amount: how many of the slices in which something is left: an integer, or a part from 0 to 1.
      dim: the axis.

    Raises:
      TypeError: if the amount is no number.
      ValueError: if there is no such tensor, or the amount is negative or more than there is.
      IndexError: if there is no such axis.

    Example:
      >>> from tg_frontend import nn
      >>> layer = nn.utils.prune.random_structured(nn.Linear(2, 3), "weight", amount=2, dim=0)
      >>> sorted(layer.weight_mask.sum(1).tolist())
      [0.0, 0.0, 2.0]
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Any, name: str, amount: float, n: Any, dim: int, importance_scores: Tensor | None = None
) -> Any:
    """Prunes slices along an axis with the least norms. See :class:`LnStructured`.

    Args:
      module: the layer; it is changed, and returned.
      name: of a tensor of it, of two axes or more.
      amount: how many of the slices in which something is left: an integer, or a part from 0 to 1.
      n: the norm: a number, or what ``Tensor.norm`` takes beside.
      dim: the axis.
      importance_scores: what is taken in place of the elements, of the same shape.

    Raises:
      TypeError: if the amount is no number.
      ValueError: if there is no such tensor, or the amount is negative or more than there is.
      IndexError: if there is no such axis.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> layer = nn.Linear(2, 2)
      >>> _ = layer.weight.assign(Tensor([[3.0, 4.0], [1.0, 1.0]]))
      >>> nn.utils.prune.ln_structured(layer, "weight", amount=0.5, n=2, dim=0).weight.tolist()
      [[3.0, 4.0], [0.0, 0.0]]
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Any, name: str, mask: Tensor) -> Any:
    """Prunes what a mask says. See :class:`CustomFromMask`.

    Args:
      module: the layer; it is changed, and returned.
      name: of a tensor of it.
      mask: ones and zeros of the shape of the tensor.

    Raises:
      ValueError: if there is no such tensor, or the mask has another shape.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> layer = nn.utils.prune.custom_from_mask(nn.Linear(5, 3), "bias", Tensor([0, 1, 0]))
      >>> layer.bias_mask
      Tensor([0., 1., 0.])
    """
    CustomFromMask.apply(module, name, mask=mask)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Any, str]], pruning_method: Any,
    importance_scores: Mapping[tuple[Any, str], Tensor] | None = None, **kwargs: Any,
) -> None:  # fmt: skip
    """Prunes elements of several tensors of layers as if they were one.

    Args:
      parameters: layers, each with the name of a tensor of it.
      pruning_method: a class, such as :class:`L1Unstructured`, whose ``PRUNING_TYPE`` is ``"unstructured"``.
      importance_scores: by layer and name, what is taken in place of the elements.
      kwargs: what the method is made with, such as ``amount``.

    Raises:
      TypeError: if they are no such pairs, no dict, or no such method.
      ValueError: if there is no such tensor, or the amount is negative or more than there is.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> a, b = nn.Linear(2, 1, bias=False), nn.Linear(2, 1, bias=False)
      >>> _ = a.weight.assign(Tensor([[1.0, 2.0]])), b.weight.assign(Tensor([[3.0, 4.0]]))
      >>> pairs = [(a, "weight"), (b, "weight")]
      >>> nn.utils.prune.global_unstructured(pairs, nn.utils.prune.L1Unstructured, amount=3)
      >>> a.weight.tolist(), b.weight.tolist()
      ([[0.0, 0.0]], [[0.0, 4.0]])
    """
    pairs, scores = list(parameters), {} if importance_scores is None else importance_scores
    if not isinstance(scores, dict):
        raise TypeError(f"global_unstructured: importance_scores is a dict, not a {type(scores).__name__}")
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(f"global_unstructured: a method that prunes elements is wanted, not {type(method).__name__}")
    tensors = [getattr(module, name) for module, name in pairs]
    weights = [scores.get(pair, tensor) for pair, tensor in zip(pairs, tensors, strict=True)]
    for pair, weight, tensor in zip(pairs, weights, tensors, strict=True):
        if weight.shape != tensor.shape:
            raise ValueError(f"global_unstructured: scores of shape {weight.shape} for {pair[1]}, {tensor.shape}")
    before = [getattr(module, f"{name}_mask", tensor.ones_like()) for (module, name), tensor in
              zip(pairs, tensors, strict=True)]  # fmt: skip
    container = PruningContainer(method)
    mask = container.compute_mask(parameters_to_vector(weights).detach(), parameters_to_vector(before).detach())
    begin = 0
    for (module, name), tensor in zip(pairs, tensors, strict=True):
        size = int(tensor.numel())
        custom_from_mask(module, name, mask[begin : begin + size].reshape(tensor.shape))
        begin += size


def remove(module: Any, name: str) -> Any:
    """Makes a tensor of a layer one that it learns again, with the zeros that it has.

    Args:
      module: the layer; it is changed, and returned.
      name: of the tensor.

    Raises:
      ValueError: if it is not pruned.

    Example:
      >>> from tg_frontend import nn
      >>> layer = nn.utils.prune.identity(nn.Linear(2, 3), "weight")
      >>> sorted(nn.utils.prune.remove(layer, "weight").state_dict())
      ['bias', 'weight']
    """
    method = method_of(module, name)
    if method is None:
        raise ValueError(f"remove: {name!r} of a {type(module).__name__} is not pruned")
    method.remove(module)
    return module


def is_pruned(module: Any) -> bool:
    """Whether a tensor of a layer, or of a layer in it, is pruned.

    Example:
      >>> from tg_frontend import nn
      >>> model = nn.Sequential(nn.Linear(2, 3))
      >>> before = nn.utils.prune.is_pruned(model)
      >>> _ = nn.utils.prune.identity(model[0], "weight")
      >>> before, nn.utils.prune.is_pruned(model)
      (False, True)
    """
    return any(method_of(part) is not None for part in module.modules())


if not TYPE_CHECKING:  # who checks types is to see that a name is not there
    __getattr__ = refusing("nn.utils.prune")
