"""L-BFGS: steps along directions that the last gradients tell, with several evaluations a step."""

from __future__ import annotations

from ...autograd.differentiation import MODE, Switch
from ...keywords import public
from ...tensor import Tensor
from .hooks import sees_to_hooks
from .line_search import Point, strong_wolfe
from .optimizer import Optimizer, parts_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .optimizer import Parameters

_LEAST_CURVATURE = 1e-10  # of a pair of differences that is remembered


class _Memory:
    """What is remembered between steps.

    Attributes:
      direction: the last direction; None before the first step.
      size: of the last step along it.
      pairs: differences of parameters and of gradients, the newest last.
      gradient: before the last step.
      scale: of the first guess at the inverse of the curvature.
      count: steps so far.
    """

    def __init__(self) -> None:
        self.direction: Tensor | None = None
        self.size = 0.0
        self.pairs: list[tuple[Tensor, Tensor]] = []
        self.gradient: Tensor | None = None
        self.scale = 1.0
        self.count = 0


@public
class LBFGS(Optimizer):
    """L-BFGS, as PyTorch has it. ``step`` takes a function that computes the loss.

    The function is called several times a step; it is to call ``zero_grad`` and ``backward`` and to return the loss.
    All parameters are in one group. A TinyJit cannot record a step, which decides on the host; it may record what the
    function computes.

    Source: Liu and Nocedal, "On the limited memory BFGS method for large scale optimization", 1989; and Nocedal and
    Wright, "Numerical optimization", algorithm 7.4.

    Args:
      params: see :class:`Optimizer`.
      lr: the size of steps.
      max_iter: directions a step.
      max_eval: evaluations a step; 1.25 ``max_iter`` if not given.
      tolerance_grad: a step ends where no gradient is greater.
      tolerance_change: and where parameters or the loss change by less.
      history_size: gradients that are remembered.
      line_search_fn: None, for steps of the size ``lr``; or ``"strong_wolfe"``, for sizes that fulfil the strong
        conditions of Wolfe (see :mod:`tg_frontend.nn.optim.line_search`), of which ``lr`` is the first that is tried.

    Raises:
      ValueError: if there is more than one group, ``history_size`` is below 1, or another line search is asked for.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> weight = Tensor([1.0, 2.0])
      >>> optimizer = nn.optim.LBFGS([weight], lr=0.5)
      >>> def loss():
      ...     optimizer.zero_grad()
      ...     return ((weight - 3) ** 2).sum().backward()
      >>> _ = optimizer.step(loss)
      >>> weight.round(3)
      Tensor([3., 3.], requires_grad=True)
    """

    by_parts = True

    def __init__(
        self, params: Parameters, lr: float | Tensor = 1.0, max_iter: int = 20, max_eval: int | None = None,
        tolerance_grad: float = 1e-7, tolerance_change: float = 1e-9, history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:  # fmt: skip
        if line_search_fn not in (None, "strong_wolfe"):
            raise ValueError(f'LBFGS: there is no line search {line_search_fn!r}; None or "strong_wolfe" is wanted')
        if history_size < 1:
            raise ValueError(f"LBFGS: history_size is at least 1, got {history_size!r}")
        super().__init__(
            params, lr, max_iter=max_iter, max_eval=max_iter * 5 // 4 if max_eval is None else max_eval,
            tolerance_grad=tolerance_grad, tolerance_change=tolerance_change, history_size=history_size,
            line_search_fn=line_search_fn,
        )  # fmt: skip
        if len(self.param_groups) > 1:
            raise ValueError("LBFGS: all parameters belong in one group")
        self._memory = _Memory()

    def schedule_step(self) -> list[Tensor]:
        """Refused: how a step goes on depends on the loss.

        Raises:
          RuntimeError: if it is called: a step is made by :meth:`step` alone.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> nn.optim.LBFGS([Tensor([1.0])]).schedule_step()
          Traceback (most recent call last):
          ...
          RuntimeError: LBFGS: a step computes the loss several times: call step() with a function that does
        """
        raise RuntimeError("LBFGS: a step computes the loss several times: call step() with a function that does")

    def _gradient(self) -> Tensor:
        grads = [p.zeros_like() if p.grad is None else p.grad.detach() for p in parts_of(self.params)]
        flat = [grad.reshape(-1) for grad in grads]
        return (flat[0].cat(*flat[1:]) if len(flat) > 1 else flat[0]).contiguous().realize()

    def _move(self, begin: list[Tensor], direction: Tensor, size: float) -> None:
        """Writes to the parameters what they were at the beginning of the line and a step from there."""
        done, place = [], 0
        for param, old in zip(parts_of(self.params), begin, strict=True):
            count = int(param.numel())
            part = direction[place : place + count].reshape(param.shape)
            param.assign((old + part * size).cast(param.dtype))
            done.append(param)
            place += count
        done[0].realize(*done[1:])

    def _search(
        self, closure: Callable[[], Any], begin: Point, direction: Tensor, size: float
    ) -> tuple[Point, int]:
        """Moves along a direction by a size that fulfils the conditions of Wolfe.

        Returns:
          Where that is, and how often the loss was evaluated.
        """
        with Switch(MODE, "recording", False):
            old = [part.detach().clone() for part in parts_of(self.params)]
            old[0].realize(*old[1:])
            farthest = float(direction.abs().max().item())

        def at(size: float) -> Point:
            with Switch(MODE, "recording", False):
                self._move(old, direction, size)
            loss, g = float(closure().item()), self._gradient()
            with Switch(MODE, "recording", False):
                return Point(size, loss, float((g * direction).sum().item()), g)

        found, count = strong_wolfe(at, begin, size, farthest, self.param_groups[0]["tolerance_change"])
        with Switch(MODE, "recording", False):
            self._move(old, direction, found.size)
        return found, count

    def _direction(self, g: Tensor) -> Tensor:
        """Along which the loss falls, by the differences that are remembered."""
        memory, group = self._memory, self.param_groups[0]
        if memory.direction is None or memory.gradient is None:
            return (-g).realize()
        change, step = (g - memory.gradient).realize(), (memory.direction * memory.size).realize()
        curvature = float((change * step).sum().item())
        if curvature > _LEAST_CURVATURE:
            memory.pairs = [*memory.pairs, (step, change)][-group["history_size"] :]
            memory.scale = curvature / float((change * change).sum().item())
        q, shares = -g, []
        for step, change in reversed(memory.pairs):
            share = (step * q).sum() / (change * step).sum()
            q = (q - change * share).realize()
            shares.append(share)
        r = q * memory.scale
        for (step, change), share in zip(memory.pairs, reversed(shares), strict=True):
            r = (r + step * (share - (change * r).sum() / (change * step).sum())).realize()
        return r.realize()

    @sees_to_hooks
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Makes up to ``max_iter`` steps.

        Args:
          closure: computes the loss and its gradients.

        Returns:
          The loss before.

        Raises:
          ValueError: if there is no closure.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> weight = Tensor([1.0])
          >>> optimizer = nn.optim.LBFGS([weight], max_iter=1)
          >>> optimizer.step(lambda: (weight * weight).sum().backward())
          Tensor(1., requires_grad=True)
        """
        if closure is None:
            raise ValueError("LBFGS: step() takes a function that computes the loss and its gradients")
        return self._hooked_step(self._searched, closure)

    def _searched(self, closure: Callable[[], Any]) -> Any:
        group, memory = self.param_groups[0], self._memory
        first = closure()
        loss, evaluations, g = float(first.item()), 1, self._gradient()
        with Switch(MODE, "recording", False):
            if float(g.abs().max().item()) <= group["tolerance_grad"]:
                return first
        for number in range(group["max_iter"]):
            with Switch(MODE, "recording", False):
                memory.count += 1
                direction = self._direction(g)
                size = group["lr"]
                if memory.count == 1:
                    size *= min(1.0, 1 / float(g.abs().sum().item()))
                memory.direction, memory.gradient, memory.size = direction, g, size
                slope = float((g * direction).sum().item())
                if slope > -group["tolerance_change"]:
                    break
                farthest = float(direction.abs().max().item())
            before = loss
            if group["line_search_fn"] is not None:
                found, count = self._search(closure, Point(0.0, loss, slope, g), direction, float(size))
                memory.size, loss, g, evaluations = found.size, found.loss, found.gradient, evaluations + count
            else:
                with Switch(MODE, "recording", False):
                    self._move([part.detach() for part in parts_of(self.params)], direction, size)
                if number + 1 == group["max_iter"]:
                    break
                loss, g, evaluations = float(closure().item()), self._gradient(), evaluations + 1
            if evaluations >= group["max_eval"] or float(g.abs().max().item()) <= group["tolerance_grad"]:
                break
            moved = farthest * memory.size
            if moved <= group["tolerance_change"] or abs(loss - before) < group["tolerance_change"]:
                break
        return first

    def state_dict(self) -> dict[str, Any]:
        """The settings. What is remembered of gradients is not in it: a run that is resumed begins anew with these.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> nn.optim.LBFGS([Tensor([1.0])]).state_dict()["param_groups"][0]["max_iter"]
          20
        """
        return super().state_dict()
