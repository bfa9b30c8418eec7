"""Mixed precision by PyTorch's names: autocast, and a scaler that keeps gradients of 16 bits from vanishing."""

from __future__ import annotations

from tg_dtype import dtypes

from ..autograd.differentiation import MODE, Switch
from ..tensor import Tensor
from .absent import refusing
from .optim.optimizer import Optimizer
from .optim.several import OptimizerGroup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

__all__ = ["GradScaler", "autocast"]


def autocast(
    device_type: str | None = None, dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None
) -> Switch:
    """As :meth:`tg_frontend.Tensor.autocast`.

    Raises:
      ValueError: if ``dtype`` is no float of 16 bits.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> with nn.amp.autocast(dtype="float16"):
      ...     (Tensor.ones(2, 3) @ Tensor.ones(3, 4)).dtype.name
      'float16'
    """
    block: Switch = Tensor.autocast(device_type, dtype, enabled, cache_enabled)
    return block


class GradScaler:
    """Multiplies the loss, so that gradients do not vanish in float16, and divides gradients before a step.

    A step whose gradients overflowed is left out, and the scale falls; it rises after a number of steps that did not.
    Nothing of this waits for the device: parameters and states are written with what they hold where a step is left
    out, so that a TinyJit may record it all. Source: Micikevicius et al., "Mixed precision training", 2018, section
    3.2; names and defaults are those of ``torch.amp.GradScaler``.

    Args:
      device: where the scale is; the default device if not given. "cuda" and the like are taken as they are elsewhere.
      init_scale: the scale at first.
      growth_factor: by which the scale rises.
      backoff_factor: by which it falls.
      growth_interval: steps without overflow after which it rises.
      enabled: False for a scaler that does nothing.

    Raises:
      ValueError: if the scale cannot rise or fall by these factors.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> weight = Tensor([1.0, 2.0])
      >>> optimizer, scaler = nn.optim.SGD([weight], lr=0.25), nn.amp.GradScaler(init_scale=1024.0)
      >>> _ = scaler.scale((weight * weight).sum()).backward()
      >>> scaler.step(optimizer)
      >>> scaler.update()
      >>> weight, scaler.get_scale()
      (Tensor([0.5, 1. ], requires_grad=True), 1024.0)
    """

    def __init__(
        self, device: str | None = None, init_scale: float = 2.0**16, growth_factor: float = 2.0,
        backoff_factor: float = 0.5, growth_interval: int = 2000, enabled: bool = True,
    ) -> None:  # fmt: skip
        if growth_factor <= 1 or not 0 < backoff_factor < 1:
            raise ValueError(f"GradScaler: growth_factor {growth_factor}, backoff_factor {backoff_factor}")
        self.growth_factor, self.backoff_factor = growth_factor, backoff_factor
        self.growth_interval, self.enabled = growth_interval, enabled
        where = None if device is None or device.lower() in ("cuda", "cpu", "mps", "xpu") else device
        self._scale = Tensor(float(init_scale), dtype=dtypes.float32, device=where, requires_grad=False).contiguous()
        self._growth = Tensor(0, dtype=dtypes.int32, device=where, requires_grad=False).contiguous()
        self._scale.realize(self._growth)
        self._found: dict[int, Tensor] = {}  # by optimiser: whether a gradient overflowed
        self._stepped: set[int] = set()

    def is_enabled(self) -> bool:
        """Whether it does something.

        Example:
          >>> from tg_frontend import nn
          >>> nn.amp.GradScaler(enabled=False).is_enabled()
          False
        """
        return self.enabled

    def scale(self, outputs: Any) -> Any:
        """A loss, or a list of losses, times the scale.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> nn.amp.GradScaler(init_scale=4.0).scale(Tensor(2.0))
          Tensor(8.)
        """
        if not self.enabled:
            return outputs
        if isinstance(outputs, (list, tuple)):
            return type(outputs)(self.scale(one) for one in outputs)
        return outputs * self._scale.to(outputs.device).cast(outputs.dtype)

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divides the gradients by the scale, in place: to clip them, for instance. :meth:`step` does so otherwise.

        Raises:
          RuntimeError: if it was done before in this step.
          ValueError: if a gradient has 16 bits: parameters of float32 have others.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> weight = Tensor([3.0, 4.0])
          >>> optimizer, scaler = nn.optim.SGD([weight]), nn.amp.GradScaler()
          >>> _ = scaler.scale((weight * weight).sum()).backward()
          >>> scaler.unscale_(optimizer)
          >>> weight.grad
          Tensor([6., 8.])
        """
        if not self.enabled:
            return
        if id(optimizer) in self._found:
            raise RuntimeError("GradScaler: unscale_() was called already since the last update()")
        grads = list({id(p.grad): p.grad for p in optimizer.params if p.grad is not None}.values())
        if not grads:
            raise RuntimeError("GradScaler: no parameter has a gradient; call backward() before unscale_() or step()")
        with Switch(MODE, "recording", False):
            found = None
            for grad in grads:
                if grad.is_sparse:
                    raise RuntimeError("GradScaler: a gradient is row-sparse: param.grad = param.grad.to_dense()")
                if grad.dtype.itemsize < 4:
                    raise ValueError(f"GradScaler: a gradient of {grad.dtype.name}: keep parameters in float32")
                unscaled = grad.detach() * (1 / self._scale.to(grad.device)).cast(grad.dtype)
                grad.assign(unscaled)
                over = grad.detach().isfinite().all().logical_not()
                found = over if found is None else found | over.to(found.device)
            assert found is not None
            self._found[id(optimizer)] = found.contiguous()

    def step(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        """Makes a step with gradients divided by the scale, unless one of them overflowed.

        Returns:
          What the optimiser's ``step`` gives.

        Raises:
          RuntimeError: if it was called twice since :meth:`update`, or the optimiser must look at the host whether to
            step, and a TinyJit is recording.
          TypeError: if a function is given that computes the loss.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> weight = Tensor([1.0])
          >>> optimizer, scaler = nn.optim.SGD([weight], lr=0.5), nn.amp.GradScaler()
          >>> _ = scaler.scale(weight.sum() * 1e38).backward()
          >>> scaler.step(optimizer)
          >>> scaler.update()
          >>> weight, scaler.get_scale()
          (Tensor([1.], requires_grad=True), 32768.0)
        """
        if not self.enabled:
            return optimizer.step(*args, **kwargs)
        if args or "closure" in kwargs:
            raise TypeError("GradScaler: step() takes no function that computes the loss")
        if id(optimizer) in self._stepped:
            raise RuntimeError("GradScaler: step() was called already since the last update()")
        if id(optimizer) not in self._found:
            self.unscale_(optimizer)
        found = self._found[id(optimizer)]
        self._stepped.add(id(optimizer))
        parts = optimizer.optimizers if isinstance(optimizer, OptimizerGroup) else [optimizer]
        if not all(part.may_skip for part in parts):
            return None if found.item() else optimizer.step()
        try:
            for part in parts:
                part._skip = found.to(part.device)
            return optimizer.step()
        finally:
            for part in parts:
                part._skip = None

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Brings the scale up to date; to be called after the steps.

        Args:
          new_scale: the scale from here on, if it is to be a certain one.

        Raises:
          RuntimeError: if no gradient was looked at.

        Example:
          >>> from tg_frontend import nn
          >>> scaler = nn.amp.GradScaler()
          >>> scaler.update(8.0)
          >>> scaler.get_scale()
          8.0
        """
        if not self.enabled:
            return
        with Switch(MODE, "recording", False):
            scale, growth = self._scale, self._growth
            if new_scale is not None:
                scale.assign(new_scale.detach().reshape(()) if isinstance(new_scale, Tensor) else float(new_scale))
            elif not self._found:
                raise RuntimeError("GradScaler: update() belongs behind step(): no gradient was looked at")
            else:
                over, *others = [found.to(scale.device) for found in self._found.values()]
                for other in others:
                    over = over | other
                rises = growth + 1 >= self.growth_interval
                risen = scale * self.growth_factor
                risen = risen.isfinite().where(risen, scale)
                count = over.where(0, rises.where(0, growth + 1)).cast(growth.dtype)
                value = over.where(scale * self.backoff_factor, rises.where(risen, scale))
                value, count = value.contiguous(), count.contiguous()
                scale.assign(value)
                growth.assign(count)
            scale.realize(growth)
        self._found.clear()
        self._stepped.clear()

    def get_scale(self) -> float:
        """The scale; 1 if it does nothing.

        Example:
          >>> from tg_frontend import nn
          >>> nn.amp.GradScaler().get_scale()
          65536.0
        """
        return float(self._scale.item()) if self.enabled else 1.0

    def state_dict(self) -> dict[str, Any]:
        """The scale, and how many steps have not overflowed since it changed; the factors as numbers.

        Example:
          >>> from tg_frontend import nn
          >>> nn.amp.GradScaler().state_dict()["scale"]
          Tensor(65536.)
        """
        if not self.enabled:
            return {}
        return {
            "scale": self._scale, "growth_factor": self.growth_factor, "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval, "_growth_tracker": self._growth,
        }  # fmt: skip

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Goes on where :meth:`state_dict` was read; PyTorch's is taken, too.

        Raises:
          KeyError: if the scale is missing.

        Example:
          >>> from tg_frontend import nn
          >>> scaler = nn.amp.GradScaler()
          >>> scaler.load_state_dict(nn.amp.GradScaler(init_scale=2.0).state_dict())
          >>> scaler.get_scale()
          2.0
        """
        if not self.enabled:
            return
        missing = [name for name in ("scale", "_growth_tracker") if name not in state_dict]
        if missing:
            raise KeyError(f"GradScaler: not in the state: {', '.join(missing)}")
        self._scale.assign(_number(state_dict["scale"]))
        self._growth.assign(int(_number(state_dict["_growth_tracker"])))
        self._scale.realize(self._growth)
        for name in ("growth_factor", "backoff_factor", "growth_interval"):
            setattr(self, name, state_dict.get(name, getattr(self, name)))


def _number(value: Any) -> float:
    item: Callable[[], Any] | None = getattr(value, "item", None)
    return float(item() if item is not None else value)

if not TYPE_CHECKING:  # who checks types is to see that a name is not there
    __getattr__ = refusing("nn.amp")
