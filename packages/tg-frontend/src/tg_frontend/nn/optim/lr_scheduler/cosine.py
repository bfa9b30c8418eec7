"""Schedules along cosines."""

from __future__ import annotations

import math

from .base import LRScheduler

TYPE_CHECKING = False
if TYPE_CHECKING:

    from ..optimizer import Optimizer


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the base rate down to ``eta_min`` in ``T_max`` steps, after ``warmup`` steps up from 0.

    As in PyTorch, which has no ``warmup`` here, the rate goes up again beyond ``T_max``; with a warm-up it stays at
    ``eta_min``. The warm-up is in a line: step 0 has the rate base / (warmup + 1).

    Raises:
      ValueError: if ``T_max`` is not positive, or ``warmup`` is negative.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> optimizer = nn.optim.SGD([Tensor([1.0])], lr=0.5)
      >>> schedule = nn.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2)
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
        return self._rate(step, 0) / self.base_lr

    def _rate(self, step: int, group: int) -> float:
        base = self.base_lrs[group]
        if step < self.warmup:
            return base * (step + 1) / (self.warmup + 1)
        return self.eta_min + (base - self.eta_min) * self._share(step)

    def _share(self, step: int) -> float:
        part = (step - self.warmup) / self.T_max
        return (1 + math.cos(math.pi * (min(part, 1.0) if self.warmup else part))) / 2

    def _next(self, rate: float, step: int, group: int) -> float:
        before = self._share(step - 1) if step > 0 else 0.0
        if step <= 0:
            return rate
        if self.warmup or before == 0:
            return self._rate(step, group)
        return (rate - self.eta_min) * self._share(step) / before + self.eta_min


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half cosines from the base rate down to ``eta_min``, each ``T_mult`` times as long as the one before.

    Source: Loshchilov and Hutter, "SGDR: stochastic gradient descent with warm restarts", 2017.

    Args:
      optimizer: see :class:`LRScheduler`.
      T_0: steps of the first.
      T_mult: see above.
      eta_min: the least rate.
      last_epoch: see :class:`LRScheduler`.

    Raises:
      ValueError: if ``T_0`` or ``T_mult`` is no positive integer.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> optimizer = nn.optim.SGD([Tensor([1.0])], lr=0.5)
      >>> schedule = nn.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
      >>> rates = []
      >>> for _ in range(4):
      ...     rates.append(round(optimizer.lr.item(), 4))
      ...     schedule.step()
      >>> rates
      [0.5, 0.25, 0.5, 0.25]
    """

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if T_0 < 1 or T_mult < 1 or T_0 != int(T_0) or T_mult != int(T_mult):
            raise ValueError(f"CosineAnnealingWarmRestarts: T_0 {T_0}, T_mult {T_mult}")
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        super().__init__(optimizer, last_epoch)

    def factor(self, step: int) -> float:
        """The rate by the base rate, which is not 0."""
        return self._rate(step, 0) / self.base_lr

    def _rate(self, step: float, group: int) -> float:
        length: float = self.T_0
        while step >= length:
            step -= length
            length *= self.T_mult
        part = (1 + math.cos(math.pi * step / length)) / 2
        return self.eta_min + (self.base_lrs[group] - self.eta_min) * part

    def _next(self, rate: float, step: int, group: int) -> float:
        return self._rate(step, group)
