"""Several optimisers as one."""

from __future__ import annotations

from ...keywords import public
from ...tensor import Tensor
from .optimizer import Optimizer, dedupe
from .states import nested_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


@public
class OptimizerGroup(Optimizer):
    """Several optimisers as one.

    Raises:
      ValueError: if there is none.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> weight, bias = Tensor([1.0, 2.0]), Tensor([1.0])
      >>> group = nn.optim.OptimizerGroup(nn.optim.SGD([weight], lr=0.25), nn.optim.SGD([bias], lr=0.5))
      >>> _ = ((weight * weight).sum() + bias).backward()
      >>> group.step()
      >>> weight, bias
      (Tensor([0.5, 1. ], requires_grad=True), Tensor([0.5], requires_grad=True))
    """

    def __init__(self, *optimizers: Optimizer) -> None:
        if not optimizers:
            raise ValueError("OptimizerGroup: at least one optimiser is wanted")
        vars(self)["defaults"] = {}
        self.optimizers = list(optimizers)
        self.params = dedupe([param for optimizer in optimizers for param in optimizer.params])
        self.buffers = dedupe([param for optimizer in optimizers for param in optimizer.buffers])
        self.param_groups = [group for optimizer in optimizers for group in optimizer.param_groups]
        self.device = optimizers[0].device

    @property
    def lr(self) -> Tensor:
        """The learning rate of the first optimiser; setting it sets that of all.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> group = nn.optim.OptimizerGroup(nn.optim.SGD([Tensor([1.0])]), nn.optim.Adam([Tensor([1.0])]))
          >>> group.lr = 0.25
          >>> [optimizer.lr.item() for optimizer in group.optimizers]
          [0.25, 0.25]
        """
        return self.optimizers[0].lr

    @lr.setter
    def lr(self, value: Tensor | float) -> None:
        for optimizer in self.optimizers:
            optimizer.lr = value

    def state_dict(self) -> dict[str, Any]:
        """The state of each optimiser, by its number.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> group = nn.optim.OptimizerGroup(nn.optim.SGD([Tensor([1.0])], lr=0.5))
          >>> nn.state.get_state_dict(group.state_dict())
          {'0.param_groups.0.lr': Tensor([0.5])}
        """
        return {str(n): one.state_dict() for n, one in enumerate(self.optimizers)}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Overwrites the state of each optimiser with what :meth:`state_dict` gave.

        Raises:
          KeyError: if a name is missing on one side.
          ValueError: if shapes differ.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> old, new = (nn.optim.OptimizerGroup(nn.optim.SGD([Tensor([1.0])], lr=lr)) for lr in (0.5, 0.25))
          >>> new.load_state_dict(old.state_dict())
          >>> new.lr
          Tensor([0.5])
        """
        nested = state_dict if isinstance(state_dict.get("0"), dict) else nested_of(state_dict)
        missing = [str(n) for n in range(len(self.optimizers)) if str(n) not in nested]
        if missing:
            raise KeyError(f"OptimizerGroup: not in the state: {', '.join(missing)}")
        for n, one in enumerate(self.optimizers):
            one.load_state_dict(nested[str(n)])

    def __getitem__(self, position: int) -> Optimizer:
        return self.optimizers[position]

    def schedule_step(self) -> list[Tensor]:
        """Makes one step of each optimiser without computing it.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> weight = Tensor([1.0, 2.0])
          >>> group = nn.optim.OptimizerGroup(nn.optim.SGD([weight], lr=0.25))
          >>> _ = (weight * weight).sum().backward()
          >>> [param.shape for param in group.schedule_step()]
          [(2,)]
        """
        return [tensor for optimizer in self.optimizers for tensor in optimizer.schedule_step()]
