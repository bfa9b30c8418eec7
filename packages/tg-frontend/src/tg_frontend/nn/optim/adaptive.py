"""Optimisers that scale the steps of each element by what its gradients were, as PyTorch has them; and Lion."""

from __future__ import annotations

from abc import abstractmethod

from tg_dtype import dtypes

from ...keywords import public
from ...tensor import Tensor
from .optimizer import Optimizer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class Elementwise(Optimizer):
    """What these share: tensors that are kept for each parameter, and numbers that are kept for all.

    Attributes:
      kept: what PyTorch calls the tensors that are kept for each parameter.
      counted: what the numbers are called that each step brings up to date.
    """

    kept: tuple[str, ...] = ()
    counted: tuple[str, ...] = ()

    def __init__(self, params: Iterable[Tensor], lr: float, weight_decay: float, **numbers: float) -> None:
        super().__init__(params, lr)
        for name, number in {"weight_decay": weight_decay, **numbers}.items():
            if not number >= 0 or (name in ("b1", "b2", "alpha", "rho") and number >= 1):
                raise ValueError(f"{type(self).__name__}: {name} is {number}")
        self.weight_decay = weight_decay
        self.state = [[self._state(param) for _ in self.kept] for param in self.params]
        self.counts = [
            Tensor([0.0], device=self.device, dtype=dtypes.float32, requires_grad=False) for _ in self.counted
        ]

    def _named(self) -> dict[str, Tensor]:
        out = {f"param_groups.0.{name}": count for name, count in zip(self.counted, self.counts, strict=True)}
        for n, tensors in enumerate(self.state):
            out |= {f"state.{n}.{name}": tensor for name, tensor in zip(self.kept, tensors, strict=True)}
        return out

    def _count(self, *counts: Tensor) -> tuple[Tensor, ...]:
        """The numbers after another step."""
        return counts

    @abstractmethod
    def _moved(self, x: Tensor, g: Tensor, lr: Tensor, state: list[Tensor], counts: list[Tensor]) -> list[Tensor]:
        """A parameter after a step, and what is kept for it, all of one dtype."""

    decoupled = False
    """Whether weight decay is taken off the parameter, and not added to its gradient."""

    def _step(self, ready: list[tuple[Tensor, Tensor]]) -> list[Tensor]:
        for count, after in zip(self.counts, self._count(*self.counts), strict=True):
            count.assign(after)
        of = {id(param): tensors for param, tensors in zip(self.params, self.state, strict=True)}
        changed = [*self.counts]
        for param, gradient in ready:
            tensors = of[id(param)]
            kind = tensors[0].dtype
            wide, g, lr = param.detach().cast(kind), gradient.cast(kind), self.lr.cast(kind)
            if self.weight_decay and self.decoupled:
                wide = wide * (1 - lr * self.weight_decay)
            elif self.weight_decay:
                g = g + wide * self.weight_decay
            moved, *new = self._moved(wide, g, lr, tensors, [count.cast(kind) for count in self.counts])
            for tensor, value in zip(tensors, new, strict=True):
                tensor.assign(value)
            changed += tensors
            param.assign(moved.cast(param.dtype))
        return changed


@public
class RMSprop(Elementwise):
    """Steps over the root of a running mean of squares (Hinton, "Neural networks for machine learning", 2012).

    Args:
      params: see :class:`Optimizer`.
      lr: learning rate.
      alpha: share of the mean of squares that is kept.
      eps: added to the root.
      weight_decay: times the parameter, added to its gradient.
      momentum: share of the last step that is kept.
      centered: take the square of the running mean off the mean of squares.

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

    kept = ("square_avg", "momentum_buffer", "grad_avg")
    settings = ("alpha", "eps", "weight_decay", "momentum", "centered")

    def __init__(
        self, params: Iterable[Tensor], lr: float = 0.01, alpha: float = 0.99, eps: float = 1e-8,
        weight_decay: float = 0.0, momentum: float = 0.0, centered: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, lr, weight_decay, alpha=alpha, eps=eps, momentum=momentum)
        self.alpha, self.eps, self.momentum, self.centered = alpha, eps, momentum, centered

    def _moved(self, x: Tensor, g: Tensor, lr: Tensor, state: list[Tensor], counts: list[Tensor]) -> list[Tensor]:
        square, last, mean = state
        square = square * self.alpha + g * g * (1 - self.alpha)
        if self.centered:
            mean = mean * self.alpha + g * (1 - self.alpha)
        step = g / ((square - mean * mean if self.centered else square).sqrt() + self.eps)
        if self.momentum:
            step = last = last * self.momentum + step
        return [x - step * lr, square, last, mean]


@public
class Adagrad(Elementwise):
    """Steps over the root of the sum of squares (Duchi, Hazan and Singer, 2011).

    Args:
      params: see :class:`Optimizer`.
      lr: learning rate.
      lr_decay: times the number of the step, by which the learning rate is divided beside 1.
      weight_decay: times the parameter, added to its gradient.
      initial_accumulator_value: with which the sums begin.
      eps: added to the root.

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

    kept, counted = ("sum",), ("step",)
    settings = ("lr_decay", "weight_decay", "eps")

    def __init__(
        self, params: Iterable[Tensor], lr: float = 0.01, lr_decay: float = 0.0, weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0, eps: float = 1e-10,
    ) -> None:  # fmt: skip
        first = initial_accumulator_value
        super().__init__(params, lr, weight_decay, lr_decay=lr_decay, initial_accumulator_value=first, eps=eps)
        self.lr_decay, self.eps = lr_decay, eps
        if first:
            for (total,) in self.state:
                total.assign(total.full_like(first))

    def _count(self, *counts: Tensor) -> tuple[Tensor, ...]:
        return (counts[0] + 1,)

    def _moved(self, x: Tensor, g: Tensor, lr: Tensor, state: list[Tensor], counts: list[Tensor]) -> list[Tensor]:
        total = state[0] + g * g
        rate = lr / ((counts[0] - 1) * self.lr_decay + 1)
        return [x - g / (total.sqrt() + self.eps) * rate, total]


@public
class Adadelta(Elementwise):
    """Steps in the ratio of the roots of two running means of squares, of steps and of gradients (Zeiler, 2012).

    Args:
      params: see :class:`Optimizer`.
      lr: by which each step is multiplied.
      rho: share of the means that is kept.
      eps: added under both roots.
      weight_decay: times the parameter, added to its gradient.

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

    kept = ("square_avg", "acc_delta")
    settings = ("rho", "eps", "weight_decay")

    def __init__(
        self, params: Iterable[Tensor], lr: float = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0.0
    ) -> None:
        super().__init__(params, lr, weight_decay, rho=rho, eps=eps)
        self.rho, self.eps = rho, eps

    def _moved(self, x: Tensor, g: Tensor, lr: Tensor, state: list[Tensor], counts: list[Tensor]) -> list[Tensor]:
        square = state[0] * self.rho + g * g * (1 - self.rho)
        step = (state[1] + self.eps).sqrt() / (square + self.eps).sqrt() * g
        return [x - step * lr, square, state[1] * self.rho + step * step * (1 - self.rho)]


class Momented(Elementwise):
    """What Adam's relatives share: two shares that are kept, and 1 less the powers of these so far."""

    counted: tuple[str, ...] = ("bias_correction1", "bias_correction2", "step")
    settings: tuple[str, ...] = ("b1", "b2", "eps", "weight_decay")

    def __init__(
        self, params: Iterable[Tensor], lr: float, b1: float, b2: float, eps: float, weight_decay: float,
        **numbers: float,
    ) -> None:  # fmt: skip
        super().__init__(params, lr, weight_decay, b1=b1, b2=b2, eps=eps, **numbers)
        self.b1, self.b2, self.eps = b1, b2, eps

    def _count(self, *counts: Tensor) -> tuple[Tensor, ...]:
        first, second, steps = counts
        return first * self.b1 + (1 - self.b1), second * self.b2 + (1 - self.b2), steps + 1


@public
class Adamax(Momented):
    """Adam by the greatest gradient rather than the mean of squares (Kingma and Ba, 2015, section 7.1).

    Args:
      params: see :class:`Optimizer`.
      lr: learning rate.
      b1: share of the running mean of the gradient that is kept.
      b2: by which the greatest gradient decays.
      eps: added to magnitudes.
      weight_decay: times the parameter, added to its gradient.

    Raises:
      ValueError: if a number is negative, or ``b1`` or ``b2`` is 1 or more.

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
        self, params: Iterable[Tensor], lr: float = 0.002, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(params, lr, b1, b2, eps, weight_decay)

    def _moved(self, x: Tensor, g: Tensor, lr: Tensor, state: list[Tensor], counts: list[Tensor]) -> list[Tensor]:
        mean = state[0] * self.b1 + g * (1 - self.b1)
        most = (state[1] * self.b2).maximum(g.abs() + self.eps)
        return [x - mean / most * (lr / counts[0]), mean, most]


@public
class NAdam(Momented):
    """Adam with Nesterov's momentum (Dozat, 2016).

    Args:
      params: see :class:`Optimizer`.
      lr: learning rate.
      b1: share of the running mean of the gradient that is kept.
      b2: share of the running mean of its square that is kept.
      eps: added to the root of the mean square.
      weight_decay: times the parameter, added to its gradient.
      momentum_decay: how fast the momentum comes up to ``b1``.

    Raises:
      ValueError: if a number is negative, or ``b1`` or ``b2`` is 1 or more.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> weight = Tensor([1.0, 2.0])
      >>> optimizer = nn.optim.NAdam([weight], lr=0.25)
      >>> _ = (weight * weight).sum().backward()
      >>> optimizer.step()
      >>> weight.round(2)
      Tensor([0.74, 1.74], requires_grad=True)
    """

    kept = ("exp_avg", "exp_avg_sq")
    counted = (*Momented.counted, "mu_rest")
    settings = (*Momented.settings, "momentum_decay")

    def __init__(
        self, params: Iterable[Tensor], lr: float = 0.002, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8,
        weight_decay: float = 0.0, momentum_decay: float = 0.004,
    ) -> None:  # fmt: skip
        super().__init__(params, lr, b1, b2, eps, weight_decay, momentum_decay=momentum_decay)
        self.momentum_decay = momentum_decay

    def _mu(self, steps: Tensor) -> Tensor:
        return (1 - 0.5 * 0.96 ** (steps * self.momentum_decay)) * self.b1

    def _count(self, *counts: Tensor) -> tuple[Tensor, ...]:
        *first, rest = counts
        common = super()._count(*first)
        mu = self._mu(common[2])
        return (*common, rest * mu + (1 - mu))  # 1 less the product so far, which keeps all digits

    def _moved(self, x: Tensor, g: Tensor, lr: Tensor, state: list[Tensor], counts: list[Tensor]) -> list[Tensor]:
        mean = state[0] * self.b1 + g * (1 - self.b1)
        square = state[1] * self.b2 + g * g * (1 - self.b2)
        root = (square / counts[1]).sqrt() + self.eps
        mu, after, rest = self._mu(counts[2]), self._mu(counts[2] + 1), counts[3]
        next_rest = rest * after + (1 - after)
        return [x - (g * ((1 - mu) / rest) + mean * (after / next_rest)) / root * lr, mean, square]


@public
class RAdam(Momented):
    """Adam whose steps are scaled only once the variance of that scale is known (Liu et al., 2020).

    Args:
      params: see :class:`Optimizer`.
      lr: learning rate.
      b1: share of the running mean of the gradient that is kept.
      b2: share of the running mean of its square that is kept.
      eps: added to the root of the mean square.
      weight_decay: times the parameter, added to its gradient.

    Raises:
      ValueError: if a number is negative, or ``b1`` or ``b2`` is 1 or more.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> weight = Tensor([1.0, 2.0])
      >>> optimizer = nn.optim.RAdam([weight], lr=0.25)
      >>> _ = (weight * weight).sum().backward()
      >>> optimizer.step()
      >>> weight.round(4)
      Tensor([0.5, 1. ], requires_grad=True)
    """

    kept = ("exp_avg", "exp_avg_sq")

    def __init__(
        self, params: Iterable[Tensor], lr: float = 0.001, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(params, lr, b1, b2, eps, weight_decay)

    def _moved(self, x: Tensor, g: Tensor, lr: Tensor, state: list[Tensor], counts: list[Tensor]) -> list[Tensor]:
        mean = state[0] * self.b1 + g * (1 - self.b1)
        square = state[1] * self.b2 + g * g * (1 - self.b2)
        most = 2 / (1 - self.b2) - 1
        length = most - counts[2] * 2 * (1 - counts[1]) / counts[1]
        known = length > 5
        long = known.where(length, 6)
        share = ((long - 4) * (long - 2) * most / ((most - 4) * (most - 2) * long)).sqrt()
        scale = known.where(counts[1].sqrt() * share / (square.sqrt() + self.eps), 1)
        return [x - mean / counts[0] * scale * lr, mean, square]


@public
class Lion(Elementwise):
    """Steps of one size in the direction of a mean's sign.

    Source: Chen et al., "Symbolic discovery of optimization algorithms", 2023.

    Args:
      params: see :class:`Optimizer`.
      lr: learning rate.
      b1: share of the mean in the direction of the step.
      b2: share of the mean that is kept.
      weight_decay: times learning rate and parameter, taken off the parameter.

    Raises:
      ValueError: if a number is negative, or ``b1`` or ``b2`` is 1 or more.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> weight = Tensor([1.0, -2.0])
      >>> optimizer = nn.optim.Lion([weight], lr=0.25)
      >>> _ = (weight * weight).sum().backward()
      >>> optimizer.step()
      >>> weight
      Tensor([ 0.75, -1.75], requires_grad=True)
    """

    kept, decoupled = ("exp_avg",), True
    settings = ("b1", "b2", "weight_decay")

    def __init__(
        self, params: Iterable[Tensor], lr: float = 1e-4, b1: float = 0.9, b2: float = 0.99, weight_decay: float = 0.0
    ) -> None:
        super().__init__(params, lr, weight_decay, b1=b1, b2=b2)
        self.b1, self.b2 = b1, b2

    def _moved(self, x: Tensor, g: Tensor, lr: Tensor, state: list[Tensor], counts: list[Tensor]) -> list[Tensor]:
        way = (state[0] * self.b1 + g * (1 - self.b1)).sign()
        return [x - way * lr, state[0] * self.b2 + g * (1 - self.b2)]
