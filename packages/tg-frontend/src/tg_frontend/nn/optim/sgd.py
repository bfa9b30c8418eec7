"""Gradient descent."""

from __future__ import annotations

from tg_dtype import DType, dtypes

from ...keywords import public
from ...ops.row_sparse import add_scaled
from ...tensor import Tensor
from .elementwise import Elementwise, on

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .elementwise import State
    from .group import Group
    from .optimizer import Parameters


@public
class SGD(Elementwise):
    """Gradient descent with momentum, as PyTorch has it.

    A row-sparse gradient is taken off the rows that it holds; no others are touched. With momentum all rows move.

    Args:
      params: see :class:`~tg_frontend.nn.optim.optimizer.Optimizer`.
      lr: learning rate.
      momentum: share of the last step's velocity that is kept.
      dampening: share of the gradient that is not added to the velocity, from the second step on.
      weight_decay: times the parameter, added to its gradient.
      nesterov: look ahead along the velocity.
      maximize: climb.

    Raises:
      ValueError: for ``nesterov`` without momentum or with dampening, or a negative number.
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

    row_sparse = True

    def __init__(
        self, params: Parameters, lr: float | Tensor = 0.001, momentum: float = 0.0, dampening: float = 0.0,
        weight_decay: float = 0.0, nesterov: bool = False, *, maximize: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(
            params, lr, momentum=momentum, dampening=dampening, weight_decay=weight_decay, nesterov=nesterov,
            maximize=maximize,
        )  # fmt: skip

    def _check(self, values: Mapping[str, Any]) -> None:
        super()._check(values)
        if values["nesterov"] and (not on(values["momentum"]) or on(values["dampening"])):
            raise ValueError(
                f"SGD: nesterov wants momentum and no dampening, got {values['momentum']} and {values['dampening']}"
            )

    def _names(self, param: Tensor, group: Group) -> tuple[str, ...]:
        return ("momentum_buffer",) if on(vars(group)["momentum"]) else ()

    def _counts(self, group: Group) -> bool:
        return on(vars(group)["momentum"]) and on(vars(group)["dampening"])

    def _known(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        known = dict(super()._known(given))
        counts = any(self._counts(group) for group in self.param_groups)
        if "momentum_buffer" in known and counts and "step" not in known:
            known["step"] = 1  # PyTorch has no buffer before the first step
        return known

    def _common(self, group: Group, old: State, new: State, kind: DType) -> dict[str, Any]:
        return {"first": new["step"] <= 1 if new else None}

    def _moved(
        self, x: Tensor, g: Tensor, group: Group, state: State, numbers: dict[str, Any]
    ) -> tuple[Tensor, State]:  # fmt: skip
        momentum, dampening = (group.number(name, g.dtype) for name in ("momentum", "dampening"))
        new: dict[str, Tensor] = {}
        if on(momentum):
            added = g * (1 - dampening) if on(dampening) else g
            if on(dampening) and numbers["first"] is not None:
                added = numbers["first"].where(g, added)
            velocity = state["momentum_buffer"] * momentum + added
            new["momentum_buffer"] = velocity
            g = g + velocity * momentum if group["nesterov"] else velocity
        return x - g * numbers["lr"], new

    def _step(self, ready: list[tuple[Tensor, Tensor]]) -> list[Tensor]:
        group_of = {id(param): group for group in self.param_groups for param in group["params"]}
        of = {id(param): kept for param, kept in zip(self.params, self._kept, strict=True)}
        for param, _ in ready:  # momentum that was set later
            if on(vars(group_of[id(param)])["momentum"]) and "momentum_buffer" not in of[id(param)]:
                of[id(param)]["momentum_buffer"] = self._state(param)
        rows = [(param, gradient) for param, gradient in ready if gradient.is_sparse]
        for param, _ in rows:
            decay = vars(group_of[id(param)])["weight_decay"]
            if on(decay):
                raise RuntimeError(
                    f"SGD: {self._called(param)} has a row-sparse gradient, and weight decay, {decay}, is "
                    "for all rows: leave it out, or make the gradient dense, param.grad = param.grad.to_dense()"
                )
        changed = super()._step([(param, gradient) for param, gradient in ready if not gradient.is_sparse])
        for param, gradient in rows:
            changed += self._step_of_rows(param, gradient, group_of[id(param)], of[id(param)].get("momentum_buffer"))
        return changed

    def _step_of_rows(self, param: Tensor, gradient: Tensor, group: Group, b: Tensor | None) -> list[Tensor]:
        """A step with a row-sparse gradient: all rows move by the velocity, if there is one, else those with one."""
        wide = dtypes.float64 if param.dtype is dtypes.float64 else dtypes.float32
        lr, momentum = vars(group)["lr"].cast(wide), group.number("momentum", wide)
        if group["maximize"]:
            lr = -lr
        if self._skip is not None:
            lr = self._skip.where(0, lr)
        if b is not None:
            if on(group.number("dampening", wide)) or self._skip is not None:
                raise RuntimeError(
                    f"SGD: {self._called(param)} has a row-sparse gradient, which goes with momentum but neither with "
                    "dampening nor with a gradient scaler: make it dense, param.grad = param.grad.to_dense()"
                )
            b.assign(b * momentum)
            add_scaled(b, gradient, lr.full_like(1))
            share = lr * momentum if group["nesterov"] else lr
            param.assign((param.detach().cast(wide) - b * share).cast(param.dtype))
        if b is None or group["nesterov"]:
            add_scaled(param, gradient, -lr)
        return [] if b is None else [b]
