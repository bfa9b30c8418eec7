"""The gradients that a recorded function leaves at tensors from before: a replay leaves them there, too.

``backward`` sets ``grad`` where there is none, and adds to it where there is one: two different records. So a record
fits only if the tensors have a gradient, or have none, as they did when it was made.
"""

from __future__ import annotations

from operator import attrgetter, call, is_
from typing import TYPE_CHECKING
from weakref import ref

from tg_lazy.lazybuffer import LEAVES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .tensor import Tensor


_grad = attrgetter("grad")


class Grads:
    """What a function did to the ``grad`` of tensors.

    Args:
      changes: each tensor that got another one: whether it had one before, and the new.
    """

    __slots__ = ("_changes", "_left", "_still", "_tensors")

    def __init__(self, changes: Iterable[tuple[Tensor, bool, Tensor | None]]) -> None:
        self._changes = [
            # a constant is handed out anew: what is written to one tensor of it is not in the next
            (ref(tensor), had, grad, None if grad is None or grad.lazydata.base.op not in LEAVES else grad.lazydata)
            for tensor, had, grad in changes
        ]
        # most often all are there from the replay before: a look without a step of Python for each
        steady = all(had and grad is not None and constant is None for _, had, grad, constant in self._changes)
        self._tensors = [one for one, *_ in self._changes]
        self._left = [grad for _, _, grad, _ in self._changes] if steady else None
        self._still = False

    def changed(self) -> str:
        """Which tensor has a gradient and had none, or the reverse, in words; nothing if it is as it was."""
        self._still = self._are_there()
        if self._still:
            return ""
        for one, had, _, _ in self._changes:
            tensor = one()
            if tensor is not None and (tensor.grad is not None) is not had:
                return f"a tensor of shape {tensor.shape} had {'a' if had else 'no'} gradient when it was recorded"
        return ""

    def leave(self) -> None:
        """Sets the gradients as the function does."""
        if self._still:
            return
        for one, _, grad, constant in self._changes:
            tensor = one()
            if tensor is not None:
                tensor.grad = grad if constant is None else type(tensor)._value(constant)

    def _are_there(self) -> bool:
        if self._left is None:
            return False
        try:
            return all(map(is_, map(_grad, map(call, self._tensors)), self._left))
        except AttributeError:  # a tensor is gone
            return False
