"""Adam, with decoupled weight decay and without."""

from __future__ import annotations

from tg_dtype import DType

from ...keywords import public
from ...tensor import Tensor
from .elementwise import Elementwise, rest
from .group import pair

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .elementwise import State
    from .group import Group, Pair
    from .optimizer import Parameters


class Momented(Elementwise):
    """What Adam and its relatives share: running means of the gradient and of its square, and their settings."""

    kept = ("exp_avg", "exp_avg_sq")

    def __init__(
        self, params: Parameters, lr: float | Tensor, betas: Pair, eps: float, weight_decay: float, **settings: Any
    ) -> None:
        super().__init__(params, lr, betas=betas, eps=eps, weight_decay=weight_decay, **settings)

    def _means(self, g: Tensor, group: Group, state: State) -> tuple[Tensor, Tensor]:
        b1, b2 = (group.number("betas", g.dtype, n) for n in (0, 1))
        return state["exp_avg"] * b1 + g * (1 - b1), state["exp_avg_sq"] * b2 + g * g * (1 - b2)


@public
class Adam(Momented):
    """Adam (Kingma and Ba, 2015).

    Args:
      params: see :class:`~tg_frontend.nn.optim.optimizer.Optimizer`.
      lr: learning rate.
      betas: shares of the running means of the gradient and of its square that are kept; ``b1`` and ``b2`` give each by
        itself.
      eps: added to the root of the mean square.
      weight_decay: times the parameter, added to its gradient.
      amsgrad: use the largest mean square so far (Reddi, Kale and Kumar, 2018).
      maximize: climb.
      decoupled_weight_decay: take weight decay off the parameter instead, as :class:`AdamW` does.

    Raises:
      ValueError: if one of ``betas`` is not from 0 to below 1, or another number is negative.

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
        self, params: Parameters, lr: float | Tensor = 0.001, betas: Pair = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0.0, amsgrad: bool = False, *, maximize: bool = False,
        decoupled_weight_decay: bool = False, b1: float | None = None, b2: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            params, lr, pair(betas, b1, b2, type(self).__name__), eps, weight_decay, amsgrad=amsgrad, maximize=maximize,
            decoupled_weight_decay=decoupled_weight_decay,
        )  # fmt: skip

    def _names(self, param: Tensor, group: Group) -> tuple[str, ...]:
        return (*self.kept, "max_exp_avg_sq") if group["amsgrad"] else self.kept

    def _common(self, group: Group, old: State, new: State, kind: DType) -> dict[str, Any]:
        step = new["step"]
        first, second = (rest(group.number("betas", kind, n), step) for n in (0, 1))
        # Both corrections belong to numbers, so that an element takes one root and one division.
        return {"rate": (group.number("lr", kind) / first).contiguous(), "scale": second.rsqrt().contiguous()}

    def _moved(
        self, x: Tensor, g: Tensor, group: Group, state: State, numbers: dict[str, Any]
    ) -> tuple[Tensor, State]:  # fmt: skip
        mean, square = self._means(g, group, state)
        new = {"exp_avg": mean, "exp_avg_sq": square}
        if "max_exp_avg_sq" in state:
            square = new["max_exp_avg_sq"] = state["max_exp_avg_sq"].maximum(square)
        return x - mean / (square.sqrt() * numbers["scale"] + group["eps"]) * numbers["rate"], new


@public
class AdamW(Adam):
    """:class:`Adam` with decoupled weight decay (Loshchilov and Hutter, 2019): it is taken off the parameter.

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
        self, params: Parameters, lr: float | Tensor = 0.001, betas: Pair = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0.01, amsgrad: bool = False, *, maximize: bool = False,
        b1: float | None = None, b2: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize, decoupled_weight_decay=True, b1=b1, b2=b2
        )
