"""Adafactor, which keeps the mean squares of a matrix as those of its rows and columns."""

from __future__ import annotations

from tg_dtype import DType

from ...keywords import public
from ...tensor import Tensor
from .elementwise import Elementwise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .elementwise import State
    from .group import Group
    from .optimizer import Parameters

_EPS = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
"""The distance from 1 to the next number of a dtype."""


@public
class Adafactor(Elementwise):
    """Steps over the roots of mean squares that are kept by row and by column (Shazeer and Stern, 2018).

    Args:
      params: see :class:`~tg_frontend.nn.optim.optimizer.Optimizer`.
      lr: the greatest relative learning rate.
      beta2_decay: the power of the number of steps that is the newest share of the mean squares.
      eps: the least root of a mean square (the dtype's own if None), and the least scale of a parameter.
      d: the greatest root of the mean square of a step, relative to its scale.
      weight_decay: times learning rate and parameter, taken off the parameter.
      maximize: climb.

    Raises:
      ValueError: if a number is out of range.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> weight = Tensor([1.0, 2.0])
      >>> optimizer = nn.optim.Adafactor([weight], lr=0.25)
      >>> _ = (weight * weight).sum().backward()
      >>> optimizer.step()
      >>> weight.round(4)
      Tensor([0.6047, 1.6047], requires_grad=True)
    """

    by_parts = False  # PyTorch has none either: of which numbers a mean square is, is not defined
    own_decay = True

    def __init__(
        self, params: Parameters, lr: float | Tensor = 0.01, beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3), d: float = 1.0, weight_decay: float = 0.0, *,
        maximize: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(
            params, lr, beta2_decay=beta2_decay, eps=tuple(eps), d=d, weight_decay=weight_decay, maximize=maximize
        )

    def _check(self, values: Mapping[str, Any]) -> None:
        least, scale = values["eps"]
        fine = values["beta2_decay"] <= 0 and values["d"] >= 1 and values["weight_decay"] >= 0
        if not fine or (least is not None and not least >= 0) or not scale >= 0:
            shown = ", ".join(f"{name} {values[name]}" for name in ("beta2_decay", "eps", "d", "weight_decay"))
            raise ValueError(f"Adafactor: {shown}")

    def _begin(self, param: Tensor, group: Group) -> State:
        if param.ndim < 2:
            return {"variance": self._state(param)}
        kind = self._state(param).dtype
        lead, (rows, columns) = param.shape[:-2], param.shape[-2:]

        def zeros(*shape: Any) -> Tensor:
            return Tensor.zeros(*shape, dtype=kind, device=param.device, requires_grad=False).contiguous()

        return {"row_var": zeros(*lead, rows, 1), "col_var": zeros(*lead, 1, columns)}

    def _common(self, group: Group, old: State, new: State, kind: DType) -> dict[str, Any]:
        step, lr = new["step"], group.number("lr", kind)
        return {
            "share": (step ** group["beta2_decay"]).contiguous(),
            "rate": lr.minimum(step.rsqrt()).contiguous(),
        }  # fmt: skip

    def _moved(
        self, x: Tensor, g: Tensor, group: Group, state: State, numbers: dict[str, Any]
    ) -> tuple[Tensor, State]:  # fmt: skip
        least, smallest = group["eps"]
        least = _EPS.get(x.dtype.name, _EPS["float32"]) if least is None else least
        share, squares, count = numbers["share"], g * g, float(int(x.numel()))

        def mean(name: str, newest: Tensor) -> Tensor:
            old = state[name]
            moved: Tensor = old + (newest - old) * share
            return moved

        if "variance" in state:
            new = {"variance": mean("variance", squares)}
            variance = new["variance"]
        else:
            rows, columns = (mean(*part) for part in (
                ("row_var", squares.mean(-1, keepdim=True)), ("col_var", squares.mean(-2, keepdim=True))
            ))  # fmt: skip
            new = {"row_var": rows, "col_var": columns}
            variance = rows * columns / rows.mean(-2, keepdim=True).maximum(least)
        step = variance.maximum(least * least).rsqrt() * g
        size = (step * step).sum().sqrt() / (count ** 0.5 * group["d"])
        scale = ((x * x).sum().sqrt() / count ** 0.5).maximum(smallest)
        x = x * (1 - numbers["lr"] * group["weight_decay"]) if group["weight_decay"] else x
        return x - step * (scale * numbers["rate"] / size.maximum(1)), new
