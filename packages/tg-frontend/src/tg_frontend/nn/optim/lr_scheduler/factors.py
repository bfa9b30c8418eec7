"""Schedules that multiply the rate: a factor for each number of steps."""

from __future__ import annotations

import math
from bisect import bisect_right

from .base import LRScheduler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..optimizer import Optimizer


class LambdaLR(LRScheduler):
    """The base rate times a function of the number of steps.

    Args:
      optimizer: see :class:`LRScheduler`.
      lr_lambda: takes the number of steps made, gives the factor; or a list of such functions, one a group.
      last_epoch: see :class:`LRScheduler`.

    Raises:
      ValueError: if there are more or fewer functions than groups.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> optimizer = nn.optim.SGD([Tensor([1.0])], lr=0.5)
      >>> schedule = nn.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.5**step)
      >>> schedule.step()
      >>> optimizer.lr.item()
      0.25
    """

    def __init__(
        self, optimizer: Optimizer, lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        groups = len(getattr(optimizer, "param_groups", ())) or 1
        self.lr_lambda = lr_lambda
        self._lambdas = [lr_lambda] * groups if callable(lr_lambda) else list(lr_lambda)
        if len(self._lambdas) != groups:
            raise ValueError(f"{type(self).__name__}: {len(self._lambdas)} functions for {groups} groups")
        super().__init__(optimizer, last_epoch)

    def factor(self, step: int) -> float:
        """What the function says."""
        return self._lambdas[0](step)

    def _factor(self, step: int, group: int) -> float:
        return self._lambdas[group](step)


class MultiplicativeLR(LambdaLR):
    """The rate times a function of the number of steps, with each step anew.

    Args:
      optimizer: see :class:`LRScheduler`.
      lr_lambda: takes the number of steps made, gives the factor; or a list of such functions, one a group.
      last_epoch: see :class:`LRScheduler`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> optimizer = nn.optim.SGD([Tensor([1.0])], lr=0.5)
      >>> schedule = nn.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda step: 0.5)
      >>> for _ in range(2):
      ...     schedule.step()
      >>> optimizer.lr.item()
      0.125
    """

    def factor(self, step: int) -> float:
        """The product of what the function says of each step."""
        return self._factor(step, 0)

    def _factor(self, step: int, group: int) -> float:
        return math.prod(self._lambdas[group](n) for n in range(1, step + 1))


class StepLR(LRScheduler):
    """The rate times ``gamma`` after every ``step_size`` steps.

    Raises:
      ValueError: if ``step_size`` is not positive.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> optimizer = nn.optim.SGD([Tensor([1.0])], lr=0.5)
      >>> schedule = nn.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
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
      >>> schedule = nn.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1, 3], gamma=0.5)
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


class ConstantLR(LRScheduler):
    """The rate times ``factor`` for the first ``total_iters`` steps.

    Raises:
      ValueError: if the factor is not between 0 and 1.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> optimizer = nn.optim.SGD([Tensor([1.0])], lr=0.5)
      >>> schedule = nn.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2)
      >>> rates = []
      >>> for _ in range(4):
      ...     rates.append(optimizer.lr.item())
      ...     schedule.step()
      >>> rates
      [0.25, 0.25, 0.5, 0.5]
    """

    def __init__(
        self, optimizer: Optimizer, factor: float = 1 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if not 0 <= factor <= 1:
            raise ValueError(f"ConstantLR: a factor of {factor}")
        self.start, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def factor(self, step: int) -> float:
        """The factor, and 1 in the end."""
        return self.start if step < self.total_iters else 1.0


class LinearLR(LRScheduler):
    """A factor that goes in a line from ``start_factor`` to ``end_factor`` in ``total_iters`` steps, then stays.

    Raises:
      ValueError: if ``total_iters`` is not positive.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> optimizer = nn.optim.SGD([Tensor([1.0])], lr=0.5)
      >>> schedule = nn.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.5, total_iters=2)
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


class ExponentialLR(LRScheduler):
    """The rate times ``gamma`` after each step.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> optimizer = nn.optim.SGD([Tensor([1.0])], lr=0.5)
      >>> schedule = nn.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
      >>> schedule.step()
      >>> optimizer.lr.item()
      0.25
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, step: int) -> float:
        """A power of gamma."""
        return self.gamma**step


class PolynomialLR(LRScheduler):
    """A power of what is left of ``total_iters`` steps; 0 behind them.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> optimizer = nn.optim.SGD([Tensor([1.0])], lr=1.0)
      >>> schedule = nn.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=2, power=2.0)
      >>> schedule.step()
      >>> optimizer.lr.item()
      0.25
    """

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def factor(self, step: int) -> float:
        """The power."""
        return float((1 - min(step, self.total_iters) / self.total_iters) ** self.power)
