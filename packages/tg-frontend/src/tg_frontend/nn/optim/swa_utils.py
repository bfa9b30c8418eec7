"""Averages of models that are trained, by PyTorch's names."""

from __future__ import annotations

import copy
import math

from tg_dtype import dtypes

from ...autograd.differentiation import MODE, Switch
from ...tensor import Tensor
from ..initial import LEARNT
from ..module import Module
from ..normalization import BatchNorm
from ..state import tensors_of
from .lr_scheduler.base import LRScheduler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from .optimizer import Optimizer

__all__ = ["SWALR", "AveragedModel", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn", "update_bn"]


def get_ema_avg_fn(decay: float = 0.999) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """The exponential moving average, for :class:`AveragedModel`.

    Raises:
      ValueError: if ``decay`` is not between 0 and 1.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.optim.swa_utils.get_ema_avg_fn(0.75)(Tensor([4.0]), Tensor([8.0]), Tensor(1))
      Tensor([5.])
    """
    if not 0 <= decay <= 1:
        raise ValueError(f"get_ema_avg_fn: a decay of {decay}")
    return lambda averaged, new, count: averaged * decay + new * (1 - decay)


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[[list[Tensor], list[Tensor], Tensor], None]:
    """The exponential moving average of many tensors, in place.

    Raises:
      ValueError: if ``decay`` is not between 0 and 1.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> averages = [Tensor([4.0])]
      >>> nn.optim.swa_utils.get_ema_multi_avg_fn(0.75)(averages, [Tensor([8.0])], Tensor(1))
      >>> averages
      [Tensor([5.])]
    """
    return _of_many(get_ema_avg_fn(decay))


def get_swa_avg_fn() -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """The mean of all (Izmailov et al., 2018), for :class:`AveragedModel`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.optim.swa_utils.get_swa_avg_fn()(Tensor([4.0]), Tensor([8.0]), Tensor(1))
      Tensor([6.])
    """
    return lambda averaged, new, count: averaged + (new - averaged) / (count + 1)


def get_swa_multi_avg_fn() -> Callable[[list[Tensor], list[Tensor], Tensor], None]:
    """The mean of all of many tensors, in place, for :class:`AveragedModel`.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> averages = [Tensor([4.0])]
      >>> nn.optim.swa_utils.get_swa_multi_avg_fn()(averages, [Tensor([8.0])], Tensor(1))
      >>> averages
      [Tensor([6.])]
    """
    return _of_many(get_swa_avg_fn())


def _of_many(one: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Callable[[list[Tensor], list[Tensor], Tensor], None]:
    """An average of one tensor as that of many, in place."""

    def average(averages: list[Tensor], new: list[Tensor], count: Tensor) -> None:
        for tensor, value in zip(averages, new, strict=True):
            tensor.assign(one(tensor.detach(), value, count).cast(tensor.dtype))

    return average


class AveragedModel(Module):
    """A model whose parameters are averages of those of another.

    ``update_parameters`` computes on tensors alone: a TinyJit may record it.

    Args:
      model: the other; a copy is made.
      device: where the averages are; where those are if not given.
      avg_fn: of the average, the new tensor and how many were averaged, the average; the mean of all if not given.
      multi_avg_fn: of lists of them, in place.
      use_buffers: whether running statistics are averaged, too; they are copied otherwise.

    Attributes:
      module: the model.
      n_averaged: how often :meth:`update_parameters` was called.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> model = nn.Linear(1, 1, bias=False)
      >>> _ = model.weight.assign([[4.0]])
      >>> average = nn.optim.swa_utils.AveragedModel(model, avg_fn=nn.optim.swa_utils.get_ema_avg_fn(0.75))
      >>> for _ in range(2):
      ...     average.update_parameters(model)
      ...     _ = model.weight.assign([[8.0]])
      >>> average(Tensor([1.0]))
      Tensor([5.])
    """

    def __init__(
        self, model: Any, device: str | None = None, avg_fn: Callable[[Tensor, Tensor, Tensor], Tensor] | None = None,
        multi_avg_fn: Callable[[list[Tensor], list[Tensor], Tensor], None] | None = None, use_buffers: bool = False,
    ) -> None:  # fmt: skip
        if avg_fn is not None and multi_avg_fn is not None:
            raise ValueError("AveragedModel: avg_fn or multi_avg_fn, not both")
        self.module = copy.deepcopy(model)
        first = list(tensors_of(self.module).values())
        where = device or (first[0].device if first else None)
        self.n_averaged = Tensor.zeros(dtype=dtypes.int32, device=where, requires_grad=False).contiguous()
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers
        for tensor in first:
            tensor.requires_grad = False
        if device is not None:
            self.to(device)
        if first:
            first[0].realize(*first[1:], self.n_averaged)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the averaged model computes."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Any) -> None:
        """Takes the parameters of ``model`` into the averages; the first time they are copied.

        Example:
          >>> from tg_frontend import nn
          >>> model = nn.Linear(2, 3)
          >>> average = nn.optim.swa_utils.AveragedModel(model)
          >>> average.update_parameters(model)
          >>> average.n_averaged.item()
          1
        """
        own, new = tensors_of(self.module), tensors_of(model)
        floats = [n for n, t in own.items() if t.dtype.kind in LEARNT and (self.use_buffers or _learnt(new[n]))]
        rest = [name for name in own if name not in floats]
        with Switch(MODE, "recording", False):
            count = self.n_averaged
            values = {name: new[name].detach().to(own[name].device) for name in own}
            begun = count > 0
            if self.multi_avg_fn is not None:
                before = {name: begun.where(own[name].detach(), values[name]) for name in floats}
                for name in floats:
                    own[name].assign(before[name].cast(own[name].dtype))
                self.multi_avg_fn([own[name] for name in floats], [values[name] for name in floats], count)
            else:
                average = self.avg_fn or get_swa_avg_fn()
                for name in floats:
                    tensor, value = own[name], values[name]
                    mean = average(tensor.detach(), value, count).cast(tensor.dtype)
                    tensor.assign(begun.where(mean, value.cast(tensor.dtype)))
            for name in rest:
                own[name].assign(values[name].cast(own[name].dtype))
            self.n_averaged.assign(count + 1)
        self.n_averaged.realize(*own.values())


def _learnt(tensor: Tensor) -> bool:
    return tensor._wish is not False


def update_bn(loader: Iterable[Any], model: Any, device: str | None = None) -> None:
    """Computes the running statistics of batch normalisations anew: the mean over the batches of a loader.

    Args:
      loader: gives inputs of the model, or tuples that begin with one.
      model: the model.
      device: where inputs are brought.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> model = nn.Sequential(nn.BatchNorm1d(1))
      >>> nn.optim.swa_utils.update_bn([Tensor([[1.0], [3.0]]), Tensor([[5.0], [7.0]])], model)
      >>> model[0].running_mean
      Tensor([4.])
    """
    layers = [one for one in Module.modules(model) if isinstance(one, BatchNorm)]
    if not layers:
        return
    kept = [layer.momentum for layer in layers]
    for layer in layers:
        layer.reset_running_stats()
        layer.momentum = None
    with Tensor.train(), Switch(MODE, "recording", False):
        for batch in loader:
            x = batch[0] if isinstance(batch, (list, tuple)) else batch
            out = model(x if device is None else x.to(device))
            (out if isinstance(out, Tensor) else x).realize(*tensors_of(layers).values())
    for layer, momentum in zip(layers, kept, strict=True):
        layer.momentum = momentum


class SWALR(LRScheduler):
    """The rate goes to ``swa_lr`` in ``anneal_epochs`` steps, then stays.

    Args:
      optimizer: see :class:`~tg_frontend.nn.optim.lr_scheduler.LRScheduler`.
      swa_lr: the rate at the end, or one a group.
      anneal_epochs: see above.
      anneal_strategy: "cos" or "linear".
      last_epoch: steps made before.

    Raises:
      ValueError: if there is no such strategy.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> optimizer = nn.optim.SGD([Tensor([1.0])], lr=0.5)
      >>> schedule = nn.optim.swa_utils.SWALR(optimizer, swa_lr=0.25, anneal_epochs=2, anneal_strategy="linear")
      >>> rates = []
      >>> for _ in range(4):
      ...     rates.append(optimizer.lr.item())
      ...     schedule.step()
      >>> rates
      [0.5, 0.375, 0.25, 0.25]
    """

    def __init__(
        self, optimizer: Optimizer, swa_lr: float | list[float], anneal_epochs: int = 10, anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if anneal_strategy not in ("cos", "linear") or anneal_epochs < 0:
            raise ValueError(f"SWALR: anneal_strategy {anneal_strategy!r}, anneal_epochs {anneal_epochs}")
        groups = len(getattr(optimizer, "param_groups", ())) or 1
        self.swa_lrs = [float(x) for x in swa_lr] if isinstance(swa_lr, (list, tuple)) else [float(swa_lr)] * groups
        self.anneal_epochs, self.anneal_strategy = anneal_epochs, anneal_strategy
        super().__init__(optimizer, last_epoch)

    def factor(self, step: int) -> float:
        """The rate by the base rate, which is not 0."""
        return self._rate(step, 0) / self.base_lr

    def _rate(self, step: int, group: int) -> float:
        part = min(1.0, step / max(1, self.anneal_epochs)) if self.anneal_epochs else 1.0
        share = (1 - math.cos(math.pi * part)) / 2 if self.anneal_strategy == "cos" else part
        return self.base_lrs[group] + (self.swa_lrs[group] - self.base_lrs[group]) * share

    def _next(self, rate: float, step: int, group: int) -> float:
        return self._rate(step, group)
