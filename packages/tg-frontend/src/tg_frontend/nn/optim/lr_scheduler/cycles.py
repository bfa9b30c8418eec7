"""Schedules of rate and momentum in cycles."""

from __future__ import annotations

import math

from .base import LRScheduler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from ..optimizer import Optimizer


def _each(value: Any, groups: int, what: str) -> list[float]:
    found = list(value) if isinstance(value, (list, tuple)) else [value] * groups
    if len(found) != groups:
        raise ValueError(f"{what}: {len(found)} numbers for {groups} groups")
    return [float(number) for number in found]


class _Cycle(LRScheduler):
    """What these share: the momentum, or the first of ``betas``, follows as a tensor."""

    _momentum: str | None = None

    def _follow_momentum(self, optimizer: Optimizer) -> None:
        defaults = getattr(optimizer, "defaults", {})
        self._momentum = next((name for name in ("momentum", "betas") if name in defaults), None)
        if self._momentum is None:
            name = type(self).__name__
            raise ValueError(f"{name}: the optimiser has neither momentum nor betas: cycle_momentum=False")
        for group in optimizer.param_groups:
            group.live(self._momentum, 0 if self._momentum == "betas" else None)

    def _momentum_at(self, step: int, group: int) -> float:
        raise NotImplementedError

    def _set(self, rates: list[float]) -> None:
        super()._set(rates)
        if self._momentum is None:
            return
        for n, group in enumerate(self.optimizer.param_groups[: len(self.base_lrs)]):
            value = self._momentum_at(self.last_epoch, n)
            group[self._momentum] = (value, *group["betas"][1:]) if self._momentum == "betas" else value

    def _next(self, rate: float, step: int, group: int) -> float:
        return self._rate(step, group)

    def factor(self, step: int) -> float:
        """The rate by the base rate, which is not 0."""
        return self._rate(step, 0) / self.base_lr


class CyclicLR(_Cycle):
    """Rates that go up and down in lines, and momentum down and up (Smith, 2017).

    Args:
      optimizer: see :class:`LRScheduler`.
      base_lr: the least rate, or one a group.
      max_lr: the greatest rate, or one a group.
      step_size_up: steps of the way up.
      step_size_down: steps of the way down; as many if not given.
      mode: "triangular"; "triangular2" halves the height with each cycle; "exp_range" multiplies it with ``gamma`` each
        step.
      gamma: see above.
      scale_fn: takes the number of the cycle, from 1, or of the step, gives what the height is multiplied with.
      scale_mode: "cycle" or "iterations": what ``scale_fn`` takes.
      cycle_momentum: whether momentum follows.
      base_momentum: the least momentum, or one a group.
      max_momentum: the greatest momentum, or one a group.
      last_epoch: see :class:`LRScheduler`.

    Raises:
      ValueError: if there is no such mode, or the optimiser has no momentum to cycle.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> optimizer = nn.optim.SGD([Tensor([1.0])], lr=0.5, momentum=0.5)
      >>> schedule = nn.optim.lr_scheduler.CyclicLR(optimizer, 0.25, 0.75, 2, base_momentum=0.5, max_momentum=1.0)
      >>> rates = []
      >>> for _ in range(5):
      ...     rates.append((optimizer.lr.item(), optimizer.momentum))
      ...     schedule.step()
      >>> rates
      [(0.25, 1.0), (0.5, 0.75), (0.75, 0.5), (0.5, 0.75), (0.25, 1.0)]
    """

    def __init__(
        self, optimizer: Optimizer, base_lr: float | Sequence[float], max_lr: float | Sequence[float],
        step_size_up: int = 2000, step_size_down: int | None = None, mode: str = "triangular", gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None, scale_mode: str = "cycle", cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.8, max_momentum: float | Sequence[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        groups = len(getattr(optimizer, "param_groups", ())) or 1
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError(f"CyclicLR: mode {mode!r}; there are triangular, triangular2, exp_range")
        self.lowest, self.max_lrs = (_each(value, groups, "CyclicLR") for value in (base_lr, max_lr))
        self.up, self.down = step_size_up, step_size_up if step_size_down is None else step_size_down
        self.mode, self.gamma, self.scale_fn, self.scale_mode = mode, gamma, scale_fn, scale_mode
        self.base_momentums, self.max_momentums = (
            _each(value, groups, "CyclicLR") for value in (base_momentum, max_momentum)
        )
        if cycle_momentum:
            self._follow_momentum(optimizer)
        for group, lowest in zip(getattr(optimizer, "param_groups", ()), self.lowest, strict=False):
            if last_epoch == -1:
                group["lr"] = group["initial_lr"] = lowest
        super().__init__(optimizer, last_epoch)

    def _height(self, step: int) -> float:
        total = self.up + self.down
        cycle = math.floor(1 + step / total)
        place = 1 + step / total - cycle
        share = self.up / total
        height = place / share if place <= share else (place - 1) / (share - 1)
        if self.scale_fn is not None:
            return height * self.scale_fn(cycle if self.scale_mode == "cycle" else step)
        if self.mode == "triangular2":
            return height / 2.0 ** (cycle - 1)
        return height * self.gamma**step if self.mode == "exp_range" else height

    def _rate(self, step: int, group: int) -> float:
        low, high = self.lowest[group], self.max_lrs[group]
        return low + (high - low) * self._height(step)

    def _momentum_at(self, step: int, group: int) -> float:
        low, high = self.base_momentums[group], self.max_momentums[group]
        return high - (high - low) * self._height(step)


class OneCycleLR(_Cycle):
    """One way up to ``max_lr`` and one far down, momentum the other way (Smith and Topin, 2018).

    Args:
      optimizer: see :class:`LRScheduler`.
      max_lr: the greatest rate, or one a group.
      total_steps: steps of the whole; or ``epochs`` times ``steps_per_epoch``.
      epochs: see above.
      steps_per_epoch: see above.
      pct_start: the share of the way up.
      anneal_strategy: "cos" or "linear": the shape of the ways.
      cycle_momentum: whether momentum follows.
      base_momentum: the least momentum, or one a group.
      max_momentum: the greatest momentum, or one a group.
      div_factor: the greatest rate by the first.
      final_div_factor: the first rate by the last.
      three_phase: go down to the first rate as fast as up, then further.
      last_epoch: see :class:`LRScheduler`.

    Raises:
      ValueError: if the number of steps is not told, or is passed; or a setting is out of range.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> optimizer = nn.optim.SGD([Tensor([1.0])], lr=0.5, momentum=0.9)
      >>> schedule = nn.optim.lr_scheduler.OneCycleLR(optimizer, 1.0, total_steps=10, anneal_strategy="linear")
      >>> rates = []
      >>> for _ in range(9):
      ...     rates.append(round(optimizer.lr.item(), 2))
      ...     schedule.step()
      >>> rates
      [0.04, 0.52, 1.0, 0.86, 0.71, 0.57, 0.43, 0.29, 0.14]
    """

    def __init__(
        self, optimizer: Optimizer, max_lr: float | Sequence[float], total_steps: int | None = None,
        epochs: int | None = None, steps_per_epoch: int | None = None, pct_start: float = 0.3,
        anneal_strategy: str = "cos", cycle_momentum: bool = True, base_momentum: float | Sequence[float] = 0.85,
        max_momentum: float | Sequence[float] = 0.95, div_factor: float = 25.0, final_div_factor: float = 1e4,
        three_phase: bool = False, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        groups = len(getattr(optimizer, "param_groups", ())) or 1
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError("OneCycleLR: total_steps, or epochs and steps_per_epoch, are wanted")
            total_steps = epochs * steps_per_epoch
        if total_steps < 1 or not 0 <= pct_start <= 1 or anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"OneCycleLR: total_steps {total_steps}, pct_start {pct_start}, anneal_strategy {anneal_strategy!r}"
            )
        self.total_steps, self.anneal_strategy = total_steps, anneal_strategy
        self.max_lrs = _each(max_lr, groups, "OneCycleLR")
        self._momenta = [_each(value, groups, "OneCycleLR") for value in (max_momentum, base_momentum)]
        first, last = 1 / div_factor, 1 / div_factor / final_div_factor
        top = pct_start * total_steps - 1
        # where each way ends, and its two ends: shares of the greatest rate, and which momentum
        self._ways: list[tuple[float, float, float, int, int]] = [(top, first, 1.0, 0, 1)]
        if three_phase:
            self._ways += [(2 * top, 1.0, first, 1, 0), (total_steps - 1, first, last, 0, 0)]
        else:
            self._ways.append((total_steps - 1, 1.0, last, 1, 0))
        if cycle_momentum:
            self._follow_momentum(optimizer)
        for group, high in zip(getattr(optimizer, "param_groups", ()), self.max_lrs, strict=False):
            if last_epoch == -1:
                group["lr"] = group["initial_lr"] = high * first
        super().__init__(optimizer, last_epoch)

    def _place(self, step: int) -> tuple[float, tuple[float, float, float, int, int]]:
        if step > self.total_steps:
            raise ValueError(f"OneCycleLR: step {step} of {self.total_steps}")
        begin = 0.0
        for way in self._ways:
            if step <= way[0] or way is self._ways[-1]:
                return (step - begin) / (way[0] - begin), way
            begin = way[0]
        raise AssertionError

    def _between(self, a: float, b: float, part: float) -> float:
        return b + (a - b) * ((1 + math.cos(math.pi * part)) / 2 if self.anneal_strategy == "cos" else 1 - part)

    def _rate(self, step: int, group: int) -> float:
        part, (_, a, b, _, _) = self._place(step)
        return self.max_lrs[group] * self._between(a, b, part)

    def _momentum_at(self, step: int, group: int) -> float:
        part, (_, _, _, a, b) = self._place(step)
        return self._between(self._momenta[a][group], self._momenta[b][group], part)
