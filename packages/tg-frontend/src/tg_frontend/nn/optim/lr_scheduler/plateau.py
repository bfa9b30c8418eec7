"""A schedule that looks at a measure."""

from __future__ import annotations

import math

from tg_dtype import dtypes

from ....tensor import Tensor
from .base import LRScheduler, numbers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ..optimizer import Optimizer


class ReduceLROnPlateau(LRScheduler):
    """The rate times ``factor`` whenever a measure has not become better for a while.

    Args:
      optimizer: see :class:`LRScheduler`.
      mode: "min" if a lower measure is better, "max" if a higher one.
      factor: see above.
      patience: steps without betterment that are waited for.
      threshold: what counts as better: by this share ("rel"), or by this much ("abs").
      threshold_mode: "rel" or "abs".
      cooldown: steps after a change in which none is counted.
      min_lr: the least rate, or one a group.
      eps: a change that is less is not made.

    Raises:
      ValueError: if the factor is 1 or more, or there is no such mode.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> optimizer = nn.optim.SGD([Tensor([1.0])], lr=0.5)
      >>> schedule = nn.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
      >>> for loss in (3.0, 3.0, 3.0):
      ...     schedule.step(loss)
      >>> optimizer.lr.item()
      0.25
    """

    def __init__(
        self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10,
        threshold: float = 1e-4, threshold_mode: str = "rel", cooldown: int = 0,
        min_lr: float | Sequence[float] = 0.0, eps: float = 1e-8,
    ) -> None:  # fmt: skip
        if factor >= 1 or mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ValueError(f"ReduceLROnPlateau: factor {factor}, mode {mode!r}, threshold_mode {threshold_mode!r}")
        groups = len(getattr(optimizer, "param_groups", ())) or 1
        least: Any = min_lr
        self.min_lrs: list[float] = list(least) if isinstance(least, (list, tuple)) else [float(least)] * groups
        if len(self.min_lrs) != groups:
            raise ValueError(f"ReduceLROnPlateau: {len(self.min_lrs)} numbers in min_lr for {groups} groups")
        self.mode, self.shrink, self.patience, self.threshold = mode, factor, patience, threshold
        self.threshold_mode, self.cooldown, self.eps = threshold_mode, cooldown, eps
        self.best, self.num_bad_epochs, self.cooldown_counter = self._worst(), 0, 0
        super().__init__(optimizer)

    def _worst(self) -> float:
        return math.inf if self.mode == "min" else -math.inf

    def is_better(self, a: float, best: float) -> bool:
        """Whether a measure is better than another.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> nn.optim.lr_scheduler.ReduceLROnPlateau(nn.optim.SGD([Tensor([1.0])])).is_better(1.0, 2.0)
          True
        """
        if self.threshold_mode == "rel":
            return a < best * (1 - self.threshold) if self.mode == "min" else a > best * (1 + self.threshold)
        return a < best - self.threshold if self.mode == "min" else a > best + self.threshold

    def get_lr(self) -> list[float]:
        """The rates as they are.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> nn.optim.lr_scheduler.ReduceLROnPlateau(nn.optim.SGD([Tensor([1.0])], lr=0.5)).get_lr()
          [0.5]
        """
        return [group.given("lr") for group in self.optimizer.param_groups]

    def _rate(self, step: int, group: int) -> float:
        return self.optimizer.param_groups[group].given("lr")

    def step(self, metrics: Any = None, epoch: int | None = None) -> None:  # type: ignore[override]
        """Makes one step.

        Args:
          metrics: the measure: a number, or a tensor of one element.
          epoch: accepted as PyTorch does; the number of steps.

        Raises:
          TypeError: if there is no measure.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> schedule = nn.optim.lr_scheduler.ReduceLROnPlateau(nn.optim.SGD([Tensor([1.0])]))
          >>> schedule.step(Tensor(2.0))
          >>> schedule.best
          2.0
        """
        if metrics is None:
            if self.last_epoch >= 0:
                raise TypeError("ReduceLROnPlateau: step() takes the measure that is looked at")
            self.last_epoch = 0
            self._last = [*self.get_lr()]
            return
        now = float(metrics.item() if hasattr(metrics, "item") else metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self.is_better(now, self.best):
            self.best, self.num_bad_epochs = now, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            old = self.get_lr()
            new = [max(rate * self.shrink, least) for rate, least in zip(old, self.min_lrs, strict=True)]
            self._set([b if a - b > self.eps else a for a, b in zip(old, new, strict=True)])
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last = [*self.get_lr()]

    def state_dict(self) -> dict[str, Tensor]:
        """The number of steps, the base rates, and what is counted.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> schedule = nn.optim.lr_scheduler.ReduceLROnPlateau(nn.optim.SGD([Tensor([1.0])]))
          >>> sorted(schedule.state_dict())
          ['base_lr', 'best', 'cooldown_counter', 'last_epoch', 'num_bad_epochs', 'rates']
        """
        device = self.optimizer.device

        def number(*values: float) -> Tensor:
            return Tensor(list(values), dtype=dtypes.float32, device=device)

        return {
            **super().state_dict(), "best": number(self.best), "num_bad_epochs": number(self.num_bad_epochs),
            "cooldown_counter": number(self.cooldown_counter), "rates": number(*self.get_lr()),
        }  # fmt: skip

    def _spelled(self, state_dict: Mapping[str, Any]) -> Mapping[str, Any]:
        """PyTorch's state has the rates of the last step alone."""
        return state_dict if "base_lr" in state_dict else {**state_dict, "base_lr": self.base_lrs}

    def _loaded(self, state_dict: Mapping[str, Any]) -> None:
        self.best = numbers(state_dict["best"])[0]
        self.num_bad_epochs = int(numbers(state_dict["num_bad_epochs"])[0])
        self.cooldown_counter = int(numbers(state_dict["cooldown_counter"])[0])
        rates = state_dict.get("rates", state_dict.get("_last_lr"))
        if rates is not None:
            self._set(numbers(rates))
