"""Optimisers that scale the steps of each element by what its gradients were, as PyTorch has them; and Lion."""

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


@public
class RMSprop(Elementwise):
    """Steps over the root of a running mean of squares (Hinton, "Neural networks for machine learning", 2012).

    Args:
      params: see :class:`~tg_frontend.nn.optim.optimizer.Optimizer`.
      lr: learning rate.
      alpha: share of the mean of squares that is kept.
      eps: added to the root.
      weight_decay: times the parameter, added to its gradient.
      momentum: share of the last step that is kept.
      centered: take the square of the running mean off the mean of squares.
      maximize: climb.

    Raises:
      ValueError: if a number is negative, or ``alpha`` is 1 or more.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> weight = Tensor([1.0, 2.0])
      >>> optimizer = nn.optim.RMSprop([weight], lr=0.1, alpha=0.75)
      >>> _ = (weight * weight).sum().backward()
      >>> optimizer.step()
      >>> weight.round(4)
      Tensor([0.8, 1.8], requires_grad=True)
    """

    def __init__(
        self, params: Parameters, lr: float | Tensor = 0.01, alpha: float = 0.99, eps: float = 1e-8,
        weight_decay: float = 0.0, momentum: float = 0.0, centered: bool = False, *, maximize: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(
            params, lr, alpha=alpha, eps=eps, weight_decay=weight_decay, momentum=momentum, centered=centered,
            maximize=maximize,
        )  # fmt: skip

    shares = ("alpha",)

    def _names(self, param: Tensor, group: Group) -> tuple[str, ...]:
        last = ("momentum_buffer",) if on(vars(group)["momentum"]) else ()
        return ("square_avg", *last, *(("grad_avg",) if group["centered"] else ()))

    def _moved(
        self, x: Tensor, g: Tensor, group: Group, state: State, numbers: dict[str, Any]
    ) -> tuple[Tensor, State]:  # fmt: skip
        alpha, momentum = group.number("alpha", g.dtype), group.number("momentum", g.dtype)
        square = state["square_avg"] * alpha + g * g * (1 - alpha)
        new = {"square_avg": square}
        if "grad_avg" in state:
            mean = new["grad_avg"] = state["grad_avg"] * alpha + g * (1 - alpha)
            square = square - mean * mean
        step = g / (square.sqrt() + group["eps"])
        if "momentum_buffer" in state:
            step = new["momentum_buffer"] = state["momentum_buffer"] * momentum + step
        return x - step * numbers["lr"], new


@public
class Adagrad(Elementwise):
    """Steps over the root of the sum of squares (Duchi, Hazan and Singer, 2011).

    Args:
      params: see :class:`~tg_frontend.nn.optim.optimizer.Optimizer`.
      lr: learning rate.
      lr_decay: times the number of the step, by which the learning rate is divided beside 1.
      weight_decay: times the parameter, added to its gradient.
      initial_accumulator_value: with which the sums begin.
      eps: added to the root.
      maximize: climb.

    Raises:
      ValueError: if a number is negative.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> weight = Tensor([1.0, 2.0])
      >>> optimizer = nn.optim.Adagrad([weight], lr=0.25)
      >>> _ = (weight * weight).sum().backward()
      >>> optimizer.step()
      >>> weight.round(4)
      Tensor([0.75, 1.75], requires_grad=True)
    """

    kept = ("sum",)

    def __init__(
        self, params: Parameters, lr: float | Tensor = 0.01, lr_decay: float = 0.0, weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0, eps: float = 1e-10, *, maximize: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(
            params, lr, lr_decay=lr_decay, eps=eps, weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value, maximize=maximize,
        )  # fmt: skip

    def _begin(self, param: Tensor, group: Group) -> State:
        kept = super()._begin(param, group)
        if group["initial_accumulator_value"]:
            kept["sum"].assign(kept["sum"].full_like(group["initial_accumulator_value"]))
        return kept

    def _common(self, group: Group, old: State, new: State, kind: DType) -> dict[str, Any]:
        step = new["step"]
        lr = group.number("lr", kind)
        return {"rate": lr / ((step - 1) * group["lr_decay"] + 1) if group["lr_decay"] else lr}

    def _moved(
        self, x: Tensor, g: Tensor, group: Group, state: State, numbers: dict[str, Any]
    ) -> tuple[Tensor, State]:  # fmt: skip
        total = state["sum"] + g * g
        return x - g / (total.sqrt() + group["eps"]) * numbers["rate"], {"sum": total}


@public
class Adadelta(Elementwise):
    """Steps in the ratio of the roots of two running means of squares, of steps and of gradients (Zeiler, 2012).

    Args:
      params: see :class:`~tg_frontend.nn.optim.optimizer.Optimizer`.
      lr: by which each step is multiplied.
      rho: share of the means that is kept.
      eps: added under both roots.
      weight_decay: times the parameter, added to its gradient.
      maximize: climb.

    Raises:
      ValueError: if a number is negative, or ``rho`` is 1 or more.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> weight = Tensor([1.0, 2.0])
      >>> optimizer = nn.optim.Adadelta([weight], rho=0.75, eps=0.25)
      >>> _ = (weight * weight).sum().backward()
      >>> optimizer.step()
      >>> weight.round(4)
      Tensor([0.1056, 1.0299], requires_grad=True)
    """

    kept, shares = ("square_avg", "acc_delta"), ("rho",)

    def __init__(
        self, params: Parameters, lr: float | Tensor = 1.0, rho: float = 0.9, eps: float = 1e-6,
        weight_decay: float = 0.0, *, maximize: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, lr, rho=rho, eps=eps, weight_decay=weight_decay, maximize=maximize)

    def _moved(
        self, x: Tensor, g: Tensor, group: Group, state: State, numbers: dict[str, Any]
    ) -> tuple[Tensor, State]:  # fmt: skip
        rho, eps = group.number("rho", g.dtype), group["eps"]
        square = state["square_avg"] * rho + g * g * (1 - rho)
        step = (state["acc_delta"] + eps).sqrt() / (square + eps).sqrt() * g
        steps = state["acc_delta"] * rho + step * step * (1 - rho)
        return x - step * numbers["lr"], {"square_avg": square, "acc_delta": steps}


@public
class Adamax(Momented):
    """Adam by the greatest gradient rather than the mean of squares (Kingma and Ba, 2015, section 7.1).

    Args:
      params: see :class:`~tg_frontend.nn.optim.optimizer.Optimizer`.
      lr: learning rate.
      betas: share of the running mean of the gradient that is kept, and by which the greatest gradient
        decays; ``b1`` and ``b2`` give each by itself.
      eps: added to magnitudes.
      weight_decay: times the parameter, added to its gradient.
      maximize: climb.

    Raises:
      ValueError: if a number is negative, or one of ``betas`` is 1 or more.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> weight = Tensor([1.0, 2.0])
      >>> optimizer = nn.optim.Adamax([weight], lr=0.25)
      >>> _ = (weight * weight).sum().backward()
      >>> optimizer.step()
      >>> weight.round(4)
      Tensor([0.75, 1.75], requires_grad=True)
    """

    kept = ("exp_avg", "exp_inf")

    def __init__(
        self, params: Parameters, lr: float | Tensor = 0.002, betas: Pair = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0.0, *, maximize: bool = False, b1: float | None = None,
        b2: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__(params, lr, pair(betas, b1, b2, type(self).__name__), eps, weight_decay, maximize=maximize)

    def _common(self, group: Group, old: State, new: State, kind: DType) -> dict[str, Any]:
        step = new["step"]
        return {"rate": (group.number("lr", kind) / rest(group.number("betas", kind, 0), step)).contiguous()}

    def _moved(
        self, x: Tensor, g: Tensor, group: Group, state: State, numbers: dict[str, Any]
    ) -> tuple[Tensor, State]:  # fmt: skip
        b1, b2 = (group.number("betas", g.dtype, n) for n in (0, 1))
        mean = state["exp_avg"] * b1 + g * (1 - b1)
        most = (state["exp_inf"] * b2).maximum(g.abs() + group["eps"])
        return x - mean / most * numbers["rate"], {"exp_avg": mean, "exp_inf": most}


@public
class NAdam(Momented):
    """Adam with Nesterov's momentum (Dozat, 2016).

    Args:
      params: see :class:`~tg_frontend.nn.optim.optimizer.Optimizer`.
      lr: learning rate.
      betas: shares of the running means of the gradient and of its square that are kept; ``b1`` and ``b2`` give each by
        itself.
      eps: added to the root of the mean square.
      weight_decay: times the parameter, added to its gradient.
      momentum_decay: how fast the momentum comes up to ``b1``.
      decoupled_weight_decay: take weight decay off the parameter instead.
      maximize: climb.

    Raises:
      ValueError: if a number is negative, or one of ``betas`` is 1 or more.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> weight = Tensor([1.0, 2.0])
      >>> optimizer = nn.optim.NAdam([weight], lr=0.25)
      >>> _ = (weight * weight).sum().backward()
      >>> optimizer.step()
      >>> weight.round(2)
      Tensor([0.74, 1.74], requires_grad=True)
    """

    def __init__(
        self, params: Parameters, lr: float | Tensor = 0.002, betas: Pair = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0.0, momentum_decay: float = 0.004, decoupled_weight_decay: bool = False, *,
        maximize: bool = False, b1: float | None = None, b2: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            params, lr, pair(betas, b1, b2, type(self).__name__), eps, weight_decay, momentum_decay=momentum_decay,
            decoupled_weight_decay=decoupled_weight_decay, maximize=maximize,
        )  # fmt: skip

    def _first(self, group: Group) -> dict[str, float]:
        return {"step": 0.0, "mu_product": 1.0}

    def _counted(self, group: Group, old: State) -> State:
        step = old["step"] + 1
        return {"step": step, "mu_product": old["mu_product"] * self._mu(group, step)}

    def _mu(self, group: Group, steps: Tensor) -> Tensor:
        share: Tensor = 1 - 0.5 * 0.96 ** (steps * group["momentum_decay"])
        return share * group.number("betas", steps.dtype, 0)  # type: ignore[no-any-return]

    def _common(self, group: Group, old: State, new: State, kind: DType) -> dict[str, Any]:
        step, product = new["step"], new["mu_product"]
        mu, after, lr = self._mu(group, step), self._mu(group, step + 1), group.number("lr", kind)
        return {
            "now": (lr * (1 - mu) / (1 - product)).contiguous(),
            "ahead": (lr * after / (1 - product * after)).contiguous(),
            "scale": rest(group.number("betas", kind, 1), step).rsqrt().contiguous(),
        }  # fmt: skip

    def _moved(
        self, x: Tensor, g: Tensor, group: Group, state: State, numbers: dict[str, Any]
    ) -> tuple[Tensor, State]:  # fmt: skip
        mean, square = self._means(g, group, state)
        root = square.sqrt() * numbers["scale"] + group["eps"]
        return x - (g * numbers["now"] + mean * numbers["ahead"]) / root, {"exp_avg": mean, "exp_avg_sq": square}


@public
class RAdam(Momented):
    """Adam whose steps are scaled only once the variance of that scale is known (Liu et al., 2020).

    Args:
      params: see :class:`~tg_frontend.nn.optim.optimizer.Optimizer`.
      lr: learning rate.
      betas: shares of the running means of the gradient and of its square that are kept; ``b1`` and ``b2`` give each by
        itself.
      eps: added to the root of the mean square.
      weight_decay: times the parameter, added to its gradient.
      decoupled_weight_decay: take weight decay off the parameter instead.
      maximize: climb.

    Raises:
      ValueError: if a number is negative, or one of ``betas`` is 1 or more.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> weight = Tensor([1.0, 2.0])
      >>> optimizer = nn.optim.RAdam([weight], lr=0.25)
      >>> _ = (weight * weight).sum().backward()
      >>> optimizer.step()
      >>> weight.round(4)
      Tensor([0.5, 1. ], requires_grad=True)
    """

    def __init__(
        self, params: Parameters, lr: float | Tensor = 0.001, betas: Pair = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0.0, decoupled_weight_decay: bool = False, *, maximize: bool = False,
        b1: float | None = None, b2: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            params, lr, pair(betas, b1, b2, type(self).__name__), eps, weight_decay,
            decoupled_weight_decay=decoupled_weight_decay, maximize=maximize,
        )  # fmt: skip

    def _common(self, group: Group, old: State, new: State, kind: DType) -> dict[str, Any]:
        step = new["step"]
        b1, b2 = (group.number("betas", kind, n) for n in (0, 1))
        second = rest(b2, step)
        most = 2 / (1 - b2) - 1
        length = most - step * 2 * (1 - second) / second
        known = length > 5
        long = known.where(length, 6)
        share = ((long - 4) * (long - 2) * most / ((most - 4) * (most - 2) * long)).sqrt()
        return {
            "rate": (group.number("lr", kind) / rest(b1, step)).contiguous(), "known": known.contiguous(),
            "share": (second.sqrt() * share).contiguous(),
        }  # fmt: skip

    def _moved(
        self, x: Tensor, g: Tensor, group: Group, state: State, numbers: dict[str, Any]
    ) -> tuple[Tensor, State]:  # fmt: skip
        mean, square = self._means(g, group, state)
        scale = numbers["known"].where(numbers["share"] / (square.sqrt() + group["eps"]), 1)
        return x - mean * numbers["rate"] * scale, {"exp_avg": mean, "exp_avg_sq": square}


@public
class Lion(Elementwise):
    """Steps of one size in the direction of a mean's sign.

    Source: Chen et al., "Symbolic discovery of optimization algorithms", 2023.

    Args:
      params: see :class:`~tg_frontend.nn.optim.optimizer.Optimizer`.
      lr: learning rate.
      betas: share of the mean in the direction of the step, and share of the mean that is kept; ``b1`` and ``b2``
        give each by itself.
      weight_decay: times learning rate and parameter, taken off the parameter.
      maximize: climb.

    Raises:
      ValueError: if a number is negative, or one of ``betas`` is 1 or more.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> weight = Tensor([1.0, -2.0])
      >>> optimizer = nn.optim.Lion([weight], lr=0.25)
      >>> _ = (weight * weight).sum().backward()
      >>> optimizer.step()
      >>> weight
      Tensor([ 0.75, -1.75], requires_grad=True)
    """

    kept, decoupled, counted = ("exp_avg",), True, False

    def __init__(
        self, params: Parameters, lr: float | Tensor = 1e-4, betas: Pair = (0.9, 0.99),
        weight_decay: float = 0.0, *, maximize: bool = False, b1: float | None = None,
        b2: float | None = None,
    ) -> None:  # fmt: skip
        both = pair(betas, b1, b2, type(self).__name__)
        super().__init__(params, lr, betas=both, weight_decay=weight_decay, maximize=maximize)

    def _moved(
        self, x: Tensor, g: Tensor, group: Group, state: State, numbers: dict[str, Any]
    ) -> tuple[Tensor, State]:  # fmt: skip
        b1, b2 = (group.number("betas", g.dtype, n) for n in (0, 1))
        way = (state["exp_avg"] * b1 + g * (1 - b1)).sign()
        return x - way * numbers["lr"], {"exp_avg": state["exp_avg"] * b2 + g * (1 - b2)}
