"""Muon: momentum whose matrices are made orthogonal."""

from __future__ import annotations

import math

from ...keywords import public
from ...tensor import Tensor
from .elementwise import Elementwise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from .elementwise import State
    from .group import Group
    from .optimizer import Parameters

_ADJUSTED = ("original", "match_rms_adamw", "none")


def orthogonalized(g: Tensor, coefficients: Sequence[float], steps: int, eps: float) -> Tensor:
    """Near the orthogonal matrix that is nearest to ``g``, by steps of an iteration of Newton and Schulz.

    Singular values come near 1 within about a third, which is what Muon wants. Source: Jordan et al., "Muon: an
    optimizer for hidden layers in neural networks", 2024.

    Args:
      g: shape (rows, columns).
      coefficients: of x, x cubed and x to the fifth, which each step applies to singular values.
      steps: how many.
      eps: the least norm that ``g`` is divided by.
    """
    a, b, c = coefficients
    tall = g.shape[0] > g.shape[1]
    x = g.T if tall else g
    x = x / (x * x).sum().sqrt().maximum(eps)
    for _ in range(steps):
        gram = (x @ x.T).contiguous()
        x = (x * a + (gram * b + (gram @ gram) * c) @ x).contiguous()
    return x.T if tall else x


@public
class Muon(Elementwise):
    """Momentum made orthogonal: every direction of a matrix moves by the same. For matrices of hidden layers.

    Source: Jordan et al., "Muon: an optimizer for hidden layers in neural networks", 2024.

    Args:
      params: see :class:`~tg_frontend.nn.optim.optimizer.Optimizer`; matrices. With
        ``adjust_lr_fn="none"`` also of more axes.
      lr: learning rate.
      weight_decay: times learning rate and parameter, taken off the parameter.
      momentum: share of the running mean of the gradient that is kept.
      nesterov: look ahead along it.
      ns_coefficients: see :func:`orthogonalized`.
      eps: the least norm of a gradient.
      ns_steps: steps of the iteration.
      adjust_lr_fn: "original" (if None) for steps greater by the root of rows over columns, if that is above 1;
        "match_rms_adamw" for steps as great as AdamW's; "none", as tinygrad has it.
      maximize: climb.

    Raises:
      ValueError: if a parameter is no matrix, there is no such adjustment, or a number is negative.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> weight = Tensor([[1.0, 2.0], [3.0, 4.0]])
      >>> optimizer = nn.optim.Muon([weight], lr=0.25, weight_decay=0.0)
      >>> _ = (weight * weight).sum().backward()
      >>> optimizer.step()
      >>> weight.round(1)
      Tensor([[1.2, 1.8],
              [2.8, 3.9]], requires_grad=True)
    """

    by_parts = False  # as in PyTorch
    kept, counted, decoupled = ("momentum_buffer",), False, True

    def __init__(
        self, params: Parameters, lr: float | Tensor = 1e-3, weight_decay: float = 0.1, momentum: float = 0.95,
        nesterov: bool = True, ns_coefficients: Sequence[float] = (3.4445, -4.775, 2.0315), eps: float = 1e-7,
        ns_steps: int = 5, adjust_lr_fn: str | None = None, *, maximize: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(
            params, lr, weight_decay=weight_decay, momentum=momentum, nesterov=nesterov,
            ns_coefficients=tuple(ns_coefficients), eps=eps, ns_steps=ns_steps, adjust_lr_fn=adjust_lr_fn,
            maximize=maximize,
        )  # fmt: skip

    def _check(self, values: Mapping[str, Any]) -> None:
        super()._check({name: value for name, value in values.items() if name != "ns_coefficients"})
        if values["adjust_lr_fn"] not in (None, *_ADJUSTED):
            raise ValueError(f"Muon: adjust_lr_fn {values['adjust_lr_fn']!r}; there are {', '.join(_ADJUSTED)}")
        if len(values["ns_coefficients"]) != 3:
            raise ValueError(f"Muon: ns_coefficients {values['ns_coefficients']}; three numbers are wanted")

    def _begin(self, param: Tensor, group: Group) -> State:
        plain = group["adjust_lr_fn"] == "none"
        if param.ndim < 2 or (param.ndim > 2 and not plain):
            raise ValueError(f"Muon: a parameter of shape {param.shape} is no matrix: give it to another optimiser")
        return super()._begin(param, group)

    def _moved(
        self, x: Tensor, g: Tensor, group: Group, state: State, numbers: dict[str, Any]
    ) -> tuple[Tensor, State]:  # fmt: skip
        momentum = group.number("momentum", g.dtype)
        mean = state["momentum_buffer"] * momentum + g * (1 - momentum)
        way = g * (1 - momentum) + mean * momentum if group["nesterov"] else mean
        if 0 in x.shape:
            return x, {"momentum_buffer": mean}
        matrix = way.reshape(way.shape[0], -1)
        rows, columns = (int(size) for size in matrix.shape)
        adjust = group["adjust_lr_fn"] or "original"
        factor = {
            "original": math.sqrt(max(1, rows / columns)), "match_rms_adamw": 0.2 * math.sqrt(max(rows, columns)),
            "none": 1.0,
        }[adjust]  # fmt: skip
        step = orthogonalized(matrix.contiguous(), group["ns_coefficients"], group["ns_steps"], group["eps"])
        return x - step.reshape(x.shape) * (numbers["lr"] * factor), {"momentum_buffer": mean}
