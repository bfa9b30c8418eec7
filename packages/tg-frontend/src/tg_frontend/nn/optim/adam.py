"""Adam, with decoupled weight decay and without."""

from __future__ import annotations

from tg_dtype import dtypes

from ...keywords import public
from ...tensor import Tensor
from .optimizer import Optimizer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


@public
class AdamW(Optimizer):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019).

    Args:
      params: see :class:`Optimizer`.
      lr: learning rate.
      b1: share of the running mean of the gradient that is kept.
      b2: share of the running mean of its square that is kept.
      eps: added to the root of the mean square.
      weight_decay: times learning rate and parameter, taken off the parameter.

    Raises:
      ValueError: if ``b1`` or ``b2`` is not from 0 to below 1, or another number is negative.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> weight = Tensor([1.0, 2.0])
      >>> optimizer = nn.optim.AdamW([weight], lr=0.25, weight_decay=0.5)
      >>> _ = (weight * weight).sum().backward()
      >>> optimizer.step()
      >>> weight.round(4)
      Tensor([0.625, 1.5  ], requires_grad=True)
    """

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 0.001,
        b1: float = 0.9,
        b2: float = 0.999,
        eps: float = 1e-8,
        weight_decay: float = 0.01,
    ) -> None:
        super().__init__(params, lr)
        if not 0 <= b1 < 1 or not 0 <= b2 < 1 or eps < 0 or weight_decay < 0:
            raise ValueError(f"{type(self).__name__}: b1 {b1}, b2 {b2}, eps {eps}, weight_decay {weight_decay}")
        self.b1, self.b2, self.eps, self.weight_decay = b1, b2, eps, weight_decay
        # 1 less the powers of b1 and b2 so far, by a recurrence that keeps all their digits: tensors, so that a TinyJit
        # follows them
        self.b1_c = Tensor([0.0], device=self.device, dtype=dtypes.float32, requires_grad=False)
        self.b2_c = Tensor([0.0], device=self.device, dtype=dtypes.float32, requires_grad=False)
        self.m = [self._state(param) for param in self.params]
        self.v = [self._state(param) for param in self.params]

    settings = ("b1", "b2", "eps", "weight_decay")

    def _named(self) -> dict[str, Tensor]:
        out = {"param_groups.0.bias_correction1": self.b1_c, "param_groups.0.bias_correction2": self.b2_c}
        for n, (m, v) in enumerate(zip(self.m, self.v, strict=True)):
            out |= {f"state.{n}.exp_avg": m, f"state.{n}.exp_avg_sq": v}
        return out

    def _step(self, ready: list[tuple[Tensor, Tensor]]) -> list[Tensor]:
        state = {id(param): (m, v) for param, m, v in zip(self.params, self.m, self.v, strict=True)}
        self.b1_c.assign(self.b1_c * self.b1 + (1 - self.b1))
        self.b2_c.assign(self.b2_c * self.b2 + (1 - self.b2))
        changed = [self.b1_c, self.b2_c]
        for param, gradient in ready:
            m, v = state[id(param)]
            g = gradient.cast(m.dtype)
            m.assign(m * self.b1 + g * (1 - self.b1))
            v.assign(v * self.b2 + g * g * (1 - self.b2))
            changed += [m, v]
            wide, lr = param.detach().cast(m.dtype), self.lr.cast(m.dtype)
            # Both corrections belong to numbers, so that an element takes one root and one division.
            rate, scale = lr / self.b1_c.cast(m.dtype), self.b2_c.cast(m.dtype).rsqrt()
            kept = wide * (1 - lr * self.weight_decay) if self.weight_decay else wide
            param.assign((kept - m / (v.sqrt() * scale + self.eps) * rate).cast(param.dtype))
        return changed


@public
class Adam(AdamW):
    """Adam (Kingma and Ba, 2015): :class:`AdamW` without weight decay.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> weight = Tensor([1.0, 2.0])
      >>> optimizer = nn.optim.Adam([weight], lr=0.25)
      >>> _ = (weight * weight).sum().backward()
      >>> optimizer.step()
      >>> weight.round(4)
      Tensor([0.75, 1.75], requires_grad=True)
    """

    def __init__(
        self, params: Iterable[Tensor], lr: float = 0.001, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8
    ) -> None:
        super().__init__(params, lr, b1, b2, eps, 0.0)
