"""Schedules of schedules."""

from __future__ import annotations

from bisect import bisect_right

from tg_dtype import dtypes

from ....tensor import Tensor
from .base import LRScheduler, numbers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ..optimizer import Optimizer


class _Composed(LRScheduler):
    """What these share: the state is that of the parts, by their numbers."""

    parts: list[LRScheduler]

    def _adopt(self, optimizer: Optimizer, schedulers: Sequence[LRScheduler]) -> None:
        name = type(self).__name__
        if not schedulers:
            raise ValueError(f"{name}: at least one schedule is wanted")
        for one in schedulers:
            if getattr(one, "optimizer", None) is not optimizer:
                raise ValueError(f"{name}: a {type(one).__name__} of another optimiser")
        self.optimizer, self.parts = optimizer, list(schedulers)
        self.base_lrs = list(schedulers[0].base_lrs)

    def get_last_lr(self) -> list[float]:
        """The rates that the last step has set, one a group.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> optimizer = nn.optim.SGD([Tensor([1.0])], lr=0.5)
          >>> part = nn.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
          >>> nn.optim.lr_scheduler.ChainedScheduler([part]).get_last_lr()
          [0.5]
        """
        return [group.given("lr") for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Tensor]:
        """The states of the parts, their numbers in front of the names.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> optimizer = nn.optim.SGD([Tensor([1.0])], lr=0.5)
          >>> part = nn.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
          >>> sorted(nn.optim.lr_scheduler.ChainedScheduler([part]).state_dict())
          ['0.base_lr', '0.last_epoch', 'base_lr', 'last_epoch', 'rates']
        """
        own = super().state_dict()
        own["rates"] = Tensor(self.get_last_lr(), dtype=dtypes.float32, device=self.optimizer.device)
        return {**own, **{f"{n}.{name}": t for n, one in enumerate(self.parts) for name, t in one.state_dict().items()}}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Goes on where :meth:`state_dict` was read, and sets the rates. PyTorch's own states are taken, too.

        Raises:
          KeyError: if a name is missing.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> optimizer = nn.optim.SGD([Tensor([1.0])], lr=0.5)
          >>> chain = nn.optim.lr_scheduler.ChainedScheduler([nn.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)])
          >>> saved = chain.state_dict()
          >>> chain.step()
          >>> chain.load_state_dict(saved)
          >>> chain.get_last_lr()
          [0.5]
        """
        state_dict = _by_numbers(state_dict)
        if "rates" not in state_dict or "last_epoch" not in state_dict:
            raise KeyError(f"{type(self).__name__}: not in the state: last_epoch, rates")
        for n, one in enumerate(self.parts):
            head = f"{n}."
            one.load_state_dict({k[len(head) :]: v for k, v in state_dict.items() if k.startswith(head)})
        self.last_epoch = int(numbers(state_dict["last_epoch"])[0])
        rates = numbers(state_dict["rates"])
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
        self._at(rates)

    def _at(self, rates: list[float]) -> None:
        """Tells the parts what the rates are."""
        for one in self.parts:
            one._alone = [len(self.parts) == 1] * len(rates)


def _by_numbers(state: Mapping[str, Any]) -> Mapping[str, Any]:
    """PyTorch's state, in which those of the parts are a list, as it is here."""
    parts = state.get("_schedulers")
    if parts is None:
        return state
    own = {"rates": state["_last_lr"], "last_epoch": state.get("last_epoch", parts[-1].get("last_epoch"))}
    return own | {f"{n}.{name}": value for n, part in enumerate(parts) for name, value in part.items()}


class ChainedScheduler(_Composed):
    """Several schedules at once: each changes the rate that the one before has left.

    Args:
      schedulers: schedules of one optimiser.
      optimizer: that one, if it is to be checked.

    Raises:
      ValueError: if there is none, or they have several optimisers.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> optimizer = nn.optim.SGD([Tensor([1.0])], lr=0.5)
      >>> schedules = nn.optim.lr_scheduler
      >>> halves, gone = schedules.ExponentialLR(optimizer, 0.5), schedules.StepLR(optimizer, 2, 0.5)
      >>> schedule = schedules.ChainedScheduler([halves, gone])
      >>> rates = []
      >>> for _ in range(4):
      ...     rates.append(optimizer.lr.item())
      ...     schedule.step()
      >>> rates
      [0.5, 0.25, 0.0625, 0.03125]
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        listed = list(schedulers)
        self._adopt(listed[0].optimizer if listed and optimizer is None else optimizer, listed)  # type: ignore[arg-type]
        self.last_epoch = listed[-1].last_epoch

    def step(self, epoch: int | None = None) -> None:
        """Makes one step of each.

        Raises:
          ValueError: if a number of steps is given.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> optimizer = nn.optim.SGD([Tensor([1.0])], lr=0.5)
          >>> chain = nn.optim.lr_scheduler.ChainedScheduler([nn.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)])
          >>> chain.step()
          >>> optimizer.lr.item()
          0.25
        """
        if epoch is not None:
            raise ValueError("ChainedScheduler: step() takes no number of steps")
        for one in self.parts:
            one.step()
        self.last_epoch += 1


class SequentialLR(_Composed):
    """Several schedules one after another; each begins anew at its milestone.

    Args:
      optimizer: the optimiser of all.
      schedulers: the schedules.
      milestones: the number of steps after which each but the first begins.
      last_epoch: see :class:`LRScheduler`.

    Raises:
      ValueError: if there is not one milestone fewer than schedules, or they have several optimisers.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> optimizer = nn.optim.SGD([Tensor([1.0])], lr=0.5)
      >>> schedules = nn.optim.lr_scheduler
      >>> first, then = schedules.ConstantLR(optimizer, 0.5, 9), schedules.ExponentialLR(optimizer, 0.5)
      >>> schedule = schedules.SequentialLR(optimizer, [first, then], [2])
      >>> rates = []
      >>> for _ in range(4):
      ...     rates.append(optimizer.lr.item())
      ...     schedule.step()
      >>> rates
      [0.25, 0.25, 0.5, 0.25]
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int], last_epoch: int = -1
    ) -> None:
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(f"SequentialLR: {len(milestones)} milestones for {len(schedulers)} schedules")
        self._adopt(optimizer, schedulers)
        self.milestones, self.last_epoch = list(milestones), last_epoch + 1
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        for one in self.parts:  # they have begun when they were made
            one.last_epoch -= 1
            one._last, one._alone = [None] * len(one.base_lrs), [True] * len(one.base_lrs)
        self.parts[0].step()

    def step(self, epoch: int | None = None) -> None:
        """Makes one step of the schedule whose turn it is.

        Raises:
          ValueError: if a number of steps is given.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> optimizer = nn.optim.SGD([Tensor([1.0])], lr=0.5)
          >>> part = nn.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
          >>> schedule = nn.optim.lr_scheduler.SequentialLR(optimizer, [part], [])
          >>> schedule.step()
          >>> optimizer.lr.item()
          0.25
        """
        if epoch is not None:
            raise ValueError("SequentialLR: step() takes no number of steps")
        self.last_epoch += 1
        turn = bisect_right(self.milestones, self.last_epoch)
        begins = turn > 0 and self.milestones[turn - 1] == self.last_epoch
        self.parts[turn].step(0 if begins else None)

    def _at(self, rates: list[float]) -> None:
        self.parts[bisect_right(self.milestones, self.last_epoch)]._last = [*rates]
