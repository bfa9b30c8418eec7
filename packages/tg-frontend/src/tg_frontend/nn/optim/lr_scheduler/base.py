"""What schedules of the learning rate share: a function of the number of steps, written into the optimiser."""

from __future__ import annotations

from tg_dtype import dtypes

from ....tensor import Tensor
from ..optimizer import Optimizer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class LRScheduler:
    """What schedules share. A subclass implements :meth:`factor`, or :meth:`get_lr` as PyTorch's do.

    The rate is that of the schedule alone while nobody else sets it. Where somebody does, another schedule of the same
    optimiser for instance, a step changes the rate that it finds as it would have changed its own.

    Args:
      optimizer: whose rates are set, at once and with each step; the rates that its groups have now are the base.
      last_epoch: steps made before; -1 for none, as in PyTorch.

    Attributes:
      optimizer: see above.
      base_lrs: the rates that the groups had.
      last_epoch: how many steps were made.

    Raises:
      TypeError: if it is no optimiser.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> class Halving(nn.optim.lr_scheduler.LRScheduler):
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
        self.optimizer, self.last_epoch = optimizer, last_epoch
        for group in optimizer.param_groups:
            group.setdefault("initial_lr", group["lr"])
        self.base_lrs = [float(group["initial_lr"]) for group in optimizer.param_groups]
        self._last: list[float | None] = [None] * len(self.base_lrs)
        self._alone = [True] * len(self.base_lrs)  # whether nobody else has set the rate so far
        self.step()

    @property
    def base_lr(self) -> float:
        """The base rate of the first group.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> nn.optim.lr_scheduler.ConstantLR(nn.optim.SGD([Tensor([1.0])], lr=0.5)).base_lr
          0.5
        """
        return self.base_lrs[0]

    def factor(self, step: int) -> float:
        """What the base rate is multiplied with after ``step`` steps.

        Raises:
          NotImplementedError: if the schedule is not of this kind.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> schedule = nn.optim.lr_scheduler.LambdaLR(nn.optim.SGD([Tensor([1.0])], lr=0.5), lambda step: 0.5**step)
          >>> [schedule.factor(step) for step in range(3)]
          [1.0, 0.5, 0.25]
        """
        raise NotImplementedError(f"{type(self).__name__} has neither factor() nor get_lr()")

    def _factor(self, step: int, group: int) -> float:
        """The same for one of the groups."""
        return self.factor(step)

    def _rate(self, step: int, group: int) -> float:
        """The rate of a group after ``step`` steps, if nobody else sets it."""
        return self.base_lrs[group] * self._factor(step, group)

    def _next(self, rate: float, step: int, group: int) -> float:
        """The rate of a group after ``step`` steps, if it was ``rate`` before the last one."""
        if step <= 0:
            return rate * self._factor(0, group)
        before = self._factor(step - 1, group)
        return rate * self._factor(step, group) / before if before else self._rate(step, group)

    def get_lr(self) -> list[float]:
        """The rates of the groups after ``last_epoch`` steps.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> schedule = nn.optim.lr_scheduler.LambdaLR(nn.optim.SGD([Tensor([1.0])], lr=0.5), lambda step: 0.5**step)
          >>> schedule.get_lr()
          [0.5]
        """
        out = []
        for n, group in enumerate(self.optimizer.param_groups[: len(self.base_lrs)]):
            now, mine = group.given("lr"), self._last[n]
            self._alone[n] = self._alone[n] and now == (self.base_lrs[n] if mine is None else mine)
            out.append(self._rate(self.last_epoch, n) if self._alone[n] else self._next(now, self.last_epoch, n))
        return out

    def step(self, epoch: int | None = None) -> None:
        """Makes one step: to be called after the optimiser's, outside of a TinyJit.

        Args:
          epoch: the number of steps that were made with this one, if it is not one more than before.

        Raises:
          ValueError: if the rate would be negative.
          RuntimeError: if TinyJit is recording, whose replays would not call it again.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> schedule = nn.optim.lr_scheduler.LambdaLR(nn.optim.SGD([Tensor([1.0])], lr=0.5), lambda step: 0.5**step)
          >>> schedule.step()
          >>> schedule.optimizer.lr
          Tensor([0.25])
        """
        before = self.last_epoch
        self.last_epoch = before + 1 if epoch is None else epoch
        try:
            if epoch is None:
                rates = self.get_lr()
            else:
                rates = [self._rate(epoch, n) for n in range(len(self.base_lrs))]
                self._alone = [True] * len(rates)
            self._set(rates)
        except (ValueError, RuntimeError):
            self.last_epoch = before
            raise

    def _set(self, rates: list[float]) -> None:
        for n, (group, rate) in enumerate(zip(self.optimizer.param_groups, rates, strict=False)):
            group["lr"] = self._last[n] = rate

    def get_last_lr(self) -> list[float]:
        """The rates that the last step has set, one a group.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> schedule = nn.optim.lr_scheduler.LambdaLR(nn.optim.SGD([Tensor([1.0])], lr=0.5), lambda step: 0.5**step)
          >>> schedule.get_last_lr()
          [0.5]
        """
        return [rate for rate in self._last if rate is not None]

    def state_dict(self) -> dict[str, Tensor]:
        """The number of steps, and the base rates.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> schedule = nn.optim.lr_scheduler.LambdaLR(nn.optim.SGD([Tensor([1.0])], lr=0.5), lambda step: 0.5**step)
          >>> {name: value.tolist() for name, value in schedule.state_dict().items()}
          {'last_epoch': [0], 'base_lr': [0.5]}
        """
        return {
            "last_epoch": Tensor([self.last_epoch], dtype=dtypes.int64, device=self.optimizer.device),
            "base_lr": Tensor(self.base_lrs, dtype=dtypes.float64, device="CPU"),
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Goes on where :meth:`state_dict` was read, and sets the rates. PyTorch's own states are taken, too.

        Raises:
          KeyError: if a name is missing.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> schedule = nn.optim.lr_scheduler.LambdaLR(nn.optim.SGD([Tensor([1.0])], lr=0.5), lambda step: 0.5**step)
          >>> saved = schedule.state_dict()
          >>> schedule.step()
          >>> schedule.load_state_dict(saved)
          >>> schedule.get_last_lr()
          [0.5]
        """
        state_dict = self._spelled(state_dict)
        bases = "base_lrs" if "base_lrs" in state_dict else "base_lr"
        missing = [name for name in ("last_epoch", bases) if name not in state_dict]
        if missing:
            raise KeyError(f"{type(self).__name__}: not in the state: {', '.join(missing)}")
        self.base_lrs = numbers(state_dict[bases])
        self.last_epoch = int(numbers(state_dict["last_epoch"])[0])
        self._loaded(state_dict)
        self._alone = [True] * len(self.base_lrs)
        self._set([self._rate(self.last_epoch, n) for n in range(len(self.base_lrs))])

    def _spelled(self, state_dict: Mapping[str, Any]) -> Mapping[str, Any]:
        """A state by the names that are here."""
        return state_dict

    def _loaded(self, state_dict: Mapping[str, Any]) -> None:
        """Takes what else a schedule keeps."""


def numbers(value: Any) -> list[float]:
    """What a state has, as numbers."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    return [float(number) for number in value] if isinstance(value, (list, tuple)) else [float(value)]
