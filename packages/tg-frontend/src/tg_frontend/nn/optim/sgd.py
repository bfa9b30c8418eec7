"""Gradient descent."""

from __future__ import annotations

from tg_dtype import dtypes

from ...keywords import public
from ...ops.row_sparse import add_scaled
from ...tensor import Tensor
from .optimizer import Optimizer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


@public
class SGD(Optimizer):
    """Gradient descent with momentum, as PyTorch has it.

    A row-sparse gradient is taken off the rows that it holds; no others are touched. With momentum all rows move.

    Args:
      params: see :class:`Optimizer`.
      lr: learning rate.
      momentum: share of the last step's velocity that is kept.
      weight_decay: times the parameter, added to its gradient.
      nesterov: look ahead along the velocity.

    Raises:
      ValueError: for ``nesterov`` without momentum, or a negative number.
      RuntimeError: if ``step()`` finds a row-sparse gradient and there is weight decay.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> weight = Tensor([1.0, 2.0])
      >>> optimizer = nn.optim.SGD([weight], lr=0.25, momentum=0.5)
      >>> for _ in range(2):
      ...     optimizer.zero_grad()
      ...     loss = (weight * weight).sum().backward()
      ...     optimizer.step()
      >>> weight
      Tensor([0., 0.], requires_grad=True)
    """

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 0.001,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
    ) -> None:
        super().__init__(params, lr)
        if momentum < 0 or weight_decay < 0 or (nesterov and momentum == 0):
            raise ValueError(f"SGD: momentum {momentum}, weight_decay {weight_decay}, nesterov {nesterov}")
        self.momentum, self.weight_decay, self.nesterov = momentum, weight_decay, nesterov
        self.b = [self._state(param) for param in self.params] if momentum else []

    row_sparse = True
    settings = ("momentum", "weight_decay", "nesterov")

    def _named(self) -> dict[str, Tensor]:
        return {f"state.{n}.momentum_buffer": b for n, b in enumerate(self.b)}

    def _step(self, ready: list[tuple[Tensor, Tensor]]) -> list[Tensor]:
        velocity = {id(param): b for param, b in zip(self.params, self.b, strict=False)}
        changed = []
        for param, gradient in ready:
            if gradient.is_sparse and self.weight_decay:
                raise RuntimeError(
                    f"SGD: {self._called(param)} has a row-sparse gradient, and weight decay, {self.weight_decay}, is "
                    "for all rows: leave it out, or make the gradient dense, param.grad = param.grad.to_dense()"
                )
        for param, gradient in ready:
            if gradient.is_sparse:
                changed += self._step_of_rows(param, gradient, velocity.get(id(param)))
                continue
            wide = param.detach().cast(dtypes.float64 if param.dtype is dtypes.float64 else dtypes.float32)
            step = gradient.cast(wide.dtype)
            if self.weight_decay:
                step = step + wide * self.weight_decay
            if self.momentum:
                b = velocity[id(param)]
                b.assign(b * self.momentum + step)
                changed.append(b)
                step = step + b * self.momentum if self.nesterov else b
            param.assign((wide - step * self.lr.cast(wide.dtype)).cast(param.dtype))
        return changed

    def _step_of_rows(self, param: Tensor, gradient: Tensor, b: Tensor | None) -> list[Tensor]:
        """A step with a row-sparse gradient: all rows move by the velocity, if there is one, else those with one."""
        wide = dtypes.float64 if param.dtype is dtypes.float64 else dtypes.float32
        lr = self.lr.cast(wide)
        if b is not None:
            b.assign(b * self.momentum)
            add_scaled(b, gradient, lr.full_like(1))
            share = lr * self.momentum if self.nesterov else lr
            param.assign((param.detach().cast(wide) - b * share).cast(param.dtype))
        if b is None or self.nesterov:
            add_scaled(param, gradient, -lr)
        return [] if b is None else [b]
