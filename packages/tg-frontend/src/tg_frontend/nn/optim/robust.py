"""Rprop, which looks at the signs of gradients alone, and averaged stochastic gradient descent."""

from __future__ import annotations

from tg_dtype import DType

from ...keywords import public
from ...tensor import Tensor
from .elementwise import Elementwise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .elementwise import State
    from .group import Group
    from .optimizer import Parameters


@public
class Rprop(Elementwise):
    """Steps of a size of their own for each element, which grows while the gradient keeps its sign.

    Where the sign turns, the size shrinks and the element stays. Source: Riedmiller and Braun, "A direct adaptive
    method for faster backpropagation learning", 1993.

    Args:
      params: see :class:`~tg_frontend.nn.optim.optimizer.Optimizer`.
      lr: the size of the first step.
      etas: by which sizes are multiplied where the sign turns, and where it stays.
      step_sizes: the least and the greatest size.
      maximize: climb.

    Raises:
      ValueError: if the first of ``etas`` is not between 0 and 1, or the second not above 1.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> weight = Tensor([1.0, 2.0])
      >>> optimizer = nn.optim.Rprop([weight], lr=0.25)
      >>> _ = (weight * weight).sum().backward()
      >>> optimizer.step()
      >>> weight
      Tensor([0.75, 1.75], requires_grad=True)
    """

    kept = ("prev", "step_size")

    def __init__(
        self, params: Parameters, lr: float | Tensor = 0.01, etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50.0), *, maximize: bool = False,
    ) -> None:  # fmt: skip
        for name, pair in (("etas", etas), ("step_sizes", step_sizes)):
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise ValueError(f"Rprop: {name} is {pair!r}; two numbers are wanted")
        if not 0 < etas[0] < 1 < etas[1]:
            raise ValueError(f"Rprop: etas is {etas}; one number between 0 and 1, and one above 1 are wanted")
        super().__init__(params, lr, etas=tuple(etas), step_sizes=tuple(step_sizes), maximize=maximize)

    def _common(self, group: Group, old: State, new: State, kind: DType) -> dict[str, Any]:
        return {"first": (old["step"] == 0).contiguous()}

    def _moved(
        self, x: Tensor, g: Tensor, group: Group, state: State, numbers: dict[str, Any]
    ) -> tuple[Tensor, State]:  # fmt: skip
        (shrink, grow), (least, most) = group["etas"], group["step_sizes"]
        turn = g * state["prev"]
        factor = (turn > 0).where(grow, (turn < 0).where(shrink, 1.0))
        before = numbers["first"].where(numbers["lr"], state["step_size"])
        size = (before * factor).clip(least, most)
        g = (turn < 0).where(0.0, g)
        return x - g.sign() * size, {"prev": g, "step_size": size}


@public
class ASGD(Elementwise):
    """Gradient descent, and an average of the parameters beside it.

    Source: Polyak and Juditsky, "Acceleration of stochastic approximation by averaging", 1992.

    Args:
      params: see :class:`~tg_frontend.nn.optim.optimizer.Optimizer`.
      lr: learning rate.
      lambd: how fast the learning rate and the parameters decay.
      alpha: the power by which the learning rate does.
      t0: the step from which on parameters are averaged.
      weight_decay: times the parameter, added to its gradient.
      maximize: climb.

    Attributes:
      state: ``"ax"`` of each parameter is the average.

    Raises:
      ValueError: if a number is negative.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> weight = Tensor([1.0, 2.0])
      >>> optimizer = nn.optim.ASGD([weight], lr=0.25, lambd=0.0)
      >>> _ = (weight * weight).sum().backward()
      >>> optimizer.step()
      >>> weight
      Tensor([0.5, 1. ], requires_grad=True)
    """

    kept = ("ax",)

    def __init__(
        self, params: Parameters, lr: float | Tensor = 0.01, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6,
        weight_decay: float = 0.0, *, maximize: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, lr, lambd=lambd, alpha=alpha, t0=t0, weight_decay=weight_decay, maximize=maximize)

    def _first(self, group: Group) -> dict[str, float]:
        return {"step": 0.0, "eta": 0.0, "mu": 1.0}

    def _counted(self, group: Group, old: State) -> State:
        step, lr = old["step"] + 1, group.number("lr", old["step"].dtype)
        eta = lr / (step * lr * group["lambd"] + 1) ** group["alpha"]
        return {"step": step, "eta": eta, "mu": 1 / (step - group["t0"]).maximum(1)}

    def _common(self, group: Group, old: State, new: State, kind: DType) -> dict[str, Any]:
        eta = (old["step"] == 0).where(group.number("lr", kind), old["eta"])
        return {"eta": eta.contiguous(), "mu": old["mu"].contiguous()}

    def _moved(
        self, x: Tensor, g: Tensor, group: Group, state: State, numbers: dict[str, Any]
    ) -> tuple[Tensor, State]:  # fmt: skip
        eta = numbers["eta"]
        moved = x * (1 - eta * group["lambd"]) - g * eta
        mean = state["ax"] + (moved - state["ax"]) * numbers["mu"]
        return moved, {"ax": mean}
