"""Optimisers whose steps are in proportion to the norm of the parameter: LARS and LAMB."""

from __future__ import annotations

from tg_dtype import DType

from ...keywords import public
from ...tensor import Tensor
from .adam import Momented
from .elementwise import Elementwise, on, rest
from .group import pair

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .elementwise import State
    from .group import Group, Pair
    from .optimizer import Parameters


def _norm(x: Tensor) -> Tensor:
    return (x * x).sum().sqrt()


def _ratio(x: Tensor, step: Tensor) -> Tensor:
    """The first divided by the second, and 1 where one of them is 0."""
    return (x > 0).where((step > 0).where(x / (step > 0).where(step, 1), 1), 1)


@public
class LARS(Elementwise):
    """Gradient descent with a rate of its own for each parameter: its norm over that of its gradient.

    Source: You, Gitman and Ginsburg, "Large batch training of convolutional networks", 2017.

    Args:
      params: see :class:`~tg_frontend.nn.optim.optimizer.Optimizer`.
      lr: learning rate.
      momentum: share of the last step that is kept.
      weight_decay: times the parameter, added to its gradient.
      nesterov: look ahead along the step.
      classic: the momentum is that of steps, and not of gradients.
      tcoef: trust coefficient: the share of its norm by which a parameter moves at a rate of 1; 0 for no such rate.
      maximize: climb.

    Raises:
      ValueError: if a number is negative.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> weight = Tensor([3.0, 4.0])
      >>> optimizer = nn.optim.LARS([weight], lr=1.0, momentum=0.0, weight_decay=0.0, tcoef=0.1)
      >>> _ = weight.sum().backward()
      >>> optimizer.step()
      >>> weight.round(3)
      Tensor([2.646, 3.646], requires_grad=True)
    """

    by_parts = False  # norms are of whole parameters
    counted, own_decay = False, True

    def __init__(
        self, params: Parameters, lr: float | Tensor = 0.001, momentum: float = 0.9, weight_decay: float = 1e-4,
        nesterov: bool = False, classic: bool = True, tcoef: float = 0.001, *, maximize: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(
            params, lr, momentum=momentum, weight_decay=weight_decay, nesterov=nesterov, classic=classic, tcoef=tcoef,
            maximize=maximize,
        )  # fmt: skip

    def _names(self, param: Tensor, group: Group) -> tuple[str, ...]:
        return ("momentum_buffer",) if on(vars(group)["momentum"]) else ()

    def _moved(
        self, x: Tensor, g: Tensor, group: Group, state: State, numbers: dict[str, Any]
    ) -> tuple[Tensor, State]:  # fmt: skip
        decay, momentum, new, lr = group["weight_decay"], group.number("momentum", g.dtype), {}, numbers["lr"]
        if group["tcoef"]:
            size, slope = _norm(x), _norm(g)
            rate = _ratio(size * group["tcoef"], (slope > 0).where(slope + size * decay, 0))
            lr = lr * rate
        g = g + x * decay if decay else g
        g = g * lr if group["classic"] else g
        if "momentum_buffer" in state:
            velocity = new["momentum_buffer"] = state["momentum_buffer"] * momentum + g
            g = g + velocity * momentum if group["nesterov"] else velocity
        return x - (g if group["classic"] else g * lr), new


@public
class LAMB(Momented):
    """Adam with a rate of its own for each parameter: its norm over that of its step.

    Source: You et al., "Large batch optimization for deep learning: training BERT in 76 minutes", 2020.

    Args:
      params: see :class:`~tg_frontend.nn.optim.optimizer.Optimizer`.
      lr: learning rate.
      betas: shares of the running means of the gradient and of its square that are kept; ``b1`` and ``b2`` give each by
        itself.
      eps: added to the root of the mean square.
      weight_decay: times the parameter, added to its step.
      adam: leave the rate out, which makes it AdamW.
      maximize: climb.

    Raises:
      ValueError: if one of ``betas`` is not from 0 to below 1, or another number is negative.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> weight = Tensor([3.0, 4.0])
      >>> optimizer = nn.optim.LAMB([weight], lr=0.1)
      >>> _ = weight.sum().backward()
      >>> optimizer.step()
      >>> weight.round(3)
      Tensor([2.646, 3.646], requires_grad=True)
    """

    by_parts = False  # norms are of whole parameters
    own_decay = True

    def __init__(
        self, params: Parameters, lr: float | Tensor = 0.001, betas: Pair = (0.9, 0.999), eps: float = 1e-6,
        weight_decay: float = 0.0, adam: bool = False, *, maximize: bool = False,
        b1: float | None = None, b2: float | None = None,
    ) -> None:  # fmt: skip
        both = pair(betas, b1, b2, type(self).__name__)
        super().__init__(params, lr, both, eps, weight_decay, adam=adam, maximize=maximize)

    def _common(self, group: Group, old: State, new: State, kind: DType) -> dict[str, Any]:
        first, second = (rest(group.number("betas", kind, n), new["step"]) for n in (0, 1))
        return {"first": first.contiguous(), "scale": second.rsqrt().contiguous()}

    def _moved(
        self, x: Tensor, g: Tensor, group: Group, state: State, numbers: dict[str, Any]
    ) -> tuple[Tensor, State]:  # fmt: skip
        mean, square = self._means(g, group, state)
        step = mean / numbers["first"] / (square.sqrt() * numbers["scale"] + group["eps"])
        step = step + x * group["weight_decay"] if group["weight_decay"] else step
        rate = 1 if group["adam"] else _ratio(_norm(x), _norm(step))
        return x - step * rate * numbers["lr"], {"exp_avg": mean, "exp_avg_sq": square}
