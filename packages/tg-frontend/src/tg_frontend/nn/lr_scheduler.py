"""Schedules of the learning rate, by PyTorch's names: a function of the number of steps, written into the optimiser.

A schedule writes the rate into the optimiser's tensor, so that a training step under TinyJit follows it. Its state is
one number: a run that is resumed goes on where it was saved.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_right

from tg_dtype import dtypes

from ..tensor import Tensor
from .optim import Optimizer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


class LRScheduler(ABC):
    """What schedules share. A subclass implements :meth:`factor`.

    Args:
      optimizer: whose rate is set, at once and with each step; the rate that it has now is the base.
      last_epoch: steps made before; -1 for none, as in PyTorch.

    Attributes:
      optimizer: see above.
      base_lr: the rate that the optimiser had.
      last_epoch: how many steps were made.

    Raises:
      TypeError: if it is no optimiser.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> class Halving(nn.lr_scheduler.LRScheduler):
      ...     def factor(self, step):
      ...         return 0.5**step
      >>> optimizer = nn.optim.SGD([Tensor([1.0])], lr=0.5)
      >>> schedule = Halving(optimizer)
      >>> schedule.step()
      >>> optimizer.lr
      Tensor([0.25])
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(self).__name__}: a {type(optimizer).__name__} is no optimiser")
        self.optimizer, self.base_lr, self.last_epoch = optimizer, float(optimizer.lr.item()), last_epoch
        self.step()

    @abstractmethod
    def factor(self, step: int) -> float:
        """What the base rate is multiplied with after ``step`` steps.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> schedule = nn.lr_scheduler.LambdaLR(nn.optim.SGD([Tensor([1.0])], lr=0.5), lambda step: 0.5**step)
          >>> [schedule.factor(step) for step in range(3)]
          [1.0, 0.5, 0.25]
        """

    def step(self) -> None:
        """Makes one step: to be called after the optimiser's, outside of a TinyJit.

        Raises:
          ValueError: if the rate would be negative.
          RuntimeError: if TinyJit is recording, whose replays would not call it again.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> schedule = nn.lr_scheduler.LambdaLR(nn.optim.SGD([Tensor([1.0])], lr=0.5), lambda step: 0.5**step)
          >>> schedule.step()
          >>> schedule.optimizer.lr
          Tensor([0.25])
        """
        self.optimizer.lr = self._rate(self.last_epoch + 1)
        self.last_epoch += 1

    def _rate(self, step: int) -> float:
        return self.base_lr * self.factor(step)

    def get_last_lr(self) -> list[float]:
        """The rate now, in a list as in PyTorch.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> schedule = nn.lr_scheduler.LambdaLR(nn.optim.SGD([Tensor([1.0])], lr=0.5), lambda step: 0.5**step)
          >>> schedule.get_last_lr()
          [0.5]
        """
        return [self._rate(self.last_epoch)]

    def state_dict(self) -> dict[str, Tensor]:
        """The number of steps, and the base rate.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> schedule = nn.lr_scheduler.LambdaLR(nn.optim.SGD([Tensor([1.0])], lr=0.5), lambda step: 0.5**step)
          >>> schedule.state_dict()
          {'last_epoch': Tensor([0], dtype=int64), 'base_lr': Tensor([0.5])}
        """
        return {
            "last_epoch": Tensor([self.last_epoch], dtype=dtypes.int64, device=self.optimizer.device),
            "base_lr": Tensor([self.base_lr], dtype=dtypes.float32, device=self.optimizer.device),
        }

    def load_state_dict(self, state_dict: Mapping[str, Tensor]) -> None:
        """Goes on where :meth:`state_dict` was read, and sets the rate.

        Raises:
          KeyError: if a name is missing.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> schedule = nn.lr_scheduler.LambdaLR(nn.optim.SGD([Tensor([1.0])], lr=0.5), lambda step: 0.5**step)
          >>> saved = schedule.state_dict()
          >>> schedule.step()
          >>> schedule.load_state_dict(saved)
          >>> schedule.get_last_lr()
          [0.5]
        """
        missing = [name for name in ("last_epoch", "base_lr") if name not in state_dict]
        if missing:
            raise KeyError(f"{type(self).__name__}: not in the state: {', '.join(missing)}")
        self.base_lr = float(state_dict["base_lr"].item())
        self.last_epoch = int(state_dict["last_epoch"].item())
        self.optimizer.lr = self._rate(self.last_epoch)


class LambdaLR(LRScheduler):
    """The base rate times a function of the number of steps.

    Args:
      optimizer: see :class:`LRScheduler`.
      lr_lambda: takes the number of steps made, gives the factor.
      last_epoch: see :class:`LRScheduler`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> optimizer = nn.optim.SGD([Tensor([1.0])], lr=0.5)
      >>> schedule = nn.lr_scheduler.LambdaLR(optimizer, lambda step: 0.5**step)
      >>> schedule.step()
      >>> optimizer.lr.item()
      0.25
    """

    def __init__(self, optimizer: Optimizer, lr_lambda: Callable[[int], float], last_epoch: int = -1) -> None:
        self.lr_lambda = lr_lambda
        super().__init__(optimizer, last_epoch)

    def factor(self, step: int) -> float:
        """What the function says."""
        return self.lr_lambda(step)


class StepLR(LRScheduler):
    """The rate times ``gamma`` after every ``step_size`` steps.

    Raises:
      ValueError: if ``step_size`` is not positive.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> optimizer = nn.optim.SGD([Tensor([1.0])], lr=0.5)
      >>> schedule = nn.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
      >>> rates = []
      >>> for _ in range(4):
      ...     rates.append(optimizer.lr.item())
      ...     schedule.step()
      >>> rates
      [0.5, 0.5, 0.25, 0.25]
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        if step_size < 1:
            raise ValueError(f"StepLR: a step size of {step_size}")
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, step: int) -> float:
        """A power of gamma."""
        return self.gamma ** (step // self.step_size)


class MultiStepLR(LRScheduler):
    """The rate times ``gamma`` after each of the given numbers of steps.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> optimizer = nn.optim.SGD([Tensor([1.0])], lr=0.5)
      >>> schedule = nn.lr_scheduler.MultiStepLR(optimizer, milestones=[1, 3], gamma=0.5)
      >>> rates = []
      >>> for _ in range(4):
      ...     rates.append(optimizer.lr.item())
      ...     schedule.step()
      >>> rates
      [0.5, 0.25, 0.25, 0.125]
    """

    def __init__(
        self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, step: int) -> float:
        """A power of gamma."""
        return self.gamma ** bisect_right(self.milestones, step)


class LinearLR(LRScheduler):
    """A factor that goes in a line from ``start_factor`` to ``end_factor`` in ``total_iters`` steps, then stays.

    Raises:
      ValueError: if ``total_iters`` is not positive.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> optimizer = nn.optim.SGD([Tensor([1.0])], lr=0.5)
      >>> schedule = nn.lr_scheduler.LinearLR(optimizer, start_factor=0.5, total_iters=2)
      >>> rates = []
      >>> for _ in range(4):
      ...     rates.append(optimizer.lr.item())
      ...     schedule.step()
      >>> rates
      [0.25, 0.375, 0.5, 0.5]
    """

    def __init__(
        self, optimizer: Optimizer, start_factor: float = 1 / 3, end_factor: float = 1.0, total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if total_iters < 1:
            raise ValueError(f"LinearLR: {total_iters} steps")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def factor(self, step: int) -> float:
        """A point of the line."""
        part = min(step / self.total_iters, 1.0)
        return self.start_factor + (self.end_factor - self.start_factor) * part


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the base rate down to ``eta_min`` in ``T_max`` steps, after ``warmup`` steps up from 0.

    The warm-up is in a line: step 0 has the rate base / (warmup + 1). PyTorch, which has no ``warmup`` here, goes up
    again beyond ``T_max``; this stays at ``eta_min``.

    Raises:
      ValueError: if ``T_max`` is not positive, or ``warmup`` is negative.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> optimizer = nn.optim.SGD([Tensor([1.0])], lr=0.5)
      >>> schedule = nn.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2)
      >>> rates = []
      >>> for _ in range(3):
      ...     rates.append(round(optimizer.lr.item(), 4))
      ...     schedule.step()
      >>> rates
      [0.5, 0.25, 0.0]
    """

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1, warmup: int = 0
    ) -> None:
        if T_max < 1 or warmup < 0:
            raise ValueError(f"CosineAnnealingLR: {T_max} steps down and {warmup} up")
        self.T_max, self.eta_min, self.warmup = T_max, eta_min, warmup
        super().__init__(optimizer, last_epoch)

    def factor(self, step: int) -> float:
        """The rate by the base rate, which is not 0."""
        return self._rate(step) / self.base_lr

    def _rate(self, step: int) -> float:
        if step < self.warmup:
            return self.base_lr * (step + 1) / (self.warmup + 1)
        part = min((step - self.warmup) / self.T_max, 1.0)
        return self.eta_min + (self.base_lr - self.eta_min) * (1 + math.cos(math.pi * part)) / 2
