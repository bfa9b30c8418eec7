"""Hooks of several tensors, by the names of ``torch.autograd.graph``."""

from __future__ import annotations

from functools import partial

from ..autograd.graph import Node
from ..autograd.hooks import Handles, Several
from ..keywords import offered
from ..tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

__all__ = ["Node", "register_multi_grad_hook"]


def register_multi_grad_hook(tensors: Sequence[Tensor], fn: Callable[[Any], None], *, mode: str = "all") -> Handles:
    """Calls a function with the gradients of several tensors, whenever one of them gets one.

    Args:
      tensors: the tensors.
      fn: for "all" it is called with a list of gradients, None for tensors that got none, at the end of the way back;
        for "any" with the gradient that is known first. What it returns is not looked at.
      mode: "all" or "any".

    Returns:
      A handle, whose ``remove()`` ends that.

    Raises:
      ValueError: if there is no such mode, or no tensor.
      TypeError: if something is no tensor, or no function.
      RuntimeError: if a tensor refuses a gradient.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.transform.graph import register_multi_grad_hook
      >>> x, y = Tensor([1.0], requires_grad=True), Tensor([2.0], requires_grad=True)
      >>> handle = register_multi_grad_hook([x, y], print)
      >>> _ = (x * y).backward()
      [Tensor([2.]), Tensor([1.])]
      >>> _ = (y * 3).backward()
      [None, Tensor([3.])]
      >>> handle.remove()
    """
    what = "register_multi_grad_hook"
    if mode not in ("all", "any"):
        raise ValueError(f"{what}: mode is 'all' or 'any', got {mode!r}")
    if not callable(fn):
        raise TypeError(f"{what}: a function of gradients is wanted, got {fn!r}")
    listed = list(tensors)
    for place, one in enumerate(listed):
        if not isinstance(one, Tensor):
            raise TypeError(f"{what}: tensors[{place}] is a tensor, got a {type(one).__name__}")
        if one._wish is False:
            raise RuntimeError(f"{what}: tensors[{place}], of shape {one.shape}, refuses a gradient and never gets one")
    if not listed:
        raise ValueError(f"{what}: there is no tensor")
    several = Several(fn, len(listed), mode == "any")
    return Handles([one.register_hook(partial(several.at, place)) for place, one in enumerate(listed)])


offered(globals(), ["register_multi_grad_hook"], "autograd.graph", {"register_multi_grad_hook": "any"})
