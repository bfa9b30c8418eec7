"""The gradients that a recorded function leaves at tensors from before: a replay leaves them there, too.

``backward`` sets ``grad`` where there is none, and adds to it where there is one: two different records. So a record
fits only if the tensors have a gradient, or have none, as they did when it was made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import ref

from tg_lazy.lazybuffer import LEAVES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .tensor import Tensor


class Grads:
    """What a function did to the ``grad`` of tensors.

    Args:
      changes: each tensor that got another one: whether it had one before, and the new.
    """

    __slots__ = ("_changes",)

    def __init__(self, changes: Iterable[tuple[Tensor, bool, Tensor | None]]) -> None:
        self._changes = [
            # a constant is handed out anew: what is written to one tensor of it is not in the next
            (ref(tensor), had, grad, None if grad is None or grad.lazydata.base.op not in LEAVES else grad.lazydata)
            for tensor, had, grad in changes
        ]

    def changed(self) -> str:
        """Which tensor has a gradient and had none, or the reverse, in words; nothing if it is as it was."""
        for one, had, _, _ in self._changes:
            tensor = one()
            if tensor is not None and (tensor.grad is not None) is not had:
                return f"a tensor of shape {tensor.shape} had {'a' if had else 'no'} gradient when it was recorded"
        return ""

    def leave(self) -> None:
        """Sets the gradients as the function does."""
        for one, _, grad, constant in self._changes:
            tensor = one()
            if tensor is not None:
                tensor.grad = grad if constant is None else type(tensor)._value(constant)
