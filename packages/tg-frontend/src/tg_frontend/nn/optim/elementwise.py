"""What optimisers share that compute each element of a parameter from that of its gradient and of what is kept."""

from __future__ import annotations

import math
from abc import abstractmethod

from tg_dtype import DType, dtypes

from ...tensor import Tensor
from .optimizer import Optimizer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping
    from typing import Any

    from .group import Group

    State = dict[str, Tensor]

class Elementwise(Optimizer):
    """Tensors of its shape are kept for each parameter, and the number of its steps.

    Parameters of a group that have had the same steps share the tensor that counts these, so that a step counts once.

    Attributes:
      kept: what PyTorch calls the tensors that are kept for each parameter.
      counted: whether steps are counted.
      shares: settings that are below 1, beside ``betas``.
      decoupled: whether weight decay is taken off the parameter, and not added to its gradient.
      own_decay: whether :meth:`_moved` sees to it.
    """

    by_parts = True
    may_skip = True
    kept: tuple[str, ...] = ()
    counted = True
    shares: tuple[str, ...] = ()
    decoupled = False
    own_decay = False

    def _check(self, values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            numbers = value if isinstance(value, (tuple, list)) else (value,)
            for number in numbers:
                plain = isinstance(number, (int, float)) and name != "lr"
                if plain and not (number >= 0 and (number < 1 or not (name == "betas" or name in self.shares))):
                    raise ValueError(f"{type(self).__name__}: {name} is {value}")
        betas = values.get("betas")
        if betas is not None and len(betas) != 2:
            raise ValueError(f"{type(self).__name__}: betas is {betas}; two numbers are wanted")

    def _begun(self, params: list[Tensor], group: Group) -> list[State]:
        shared = {name: self._number(value) for name, value in self._first(group).items()}
        return [self._begin_parts(param, group) | (shared if self._counts(group) else {}) for param in params]

    def _begin(self, param: Tensor, group: Group) -> State:
        return {name: self._state(param) for name in self._names(param, group)}

    def _number(self, value: float) -> Tensor:
        made = Tensor(float(value), device=self.device, dtype=dtypes.float32, requires_grad=False)
        return made.contiguous().realize()

    def _names(self, param: Tensor, group: Group) -> tuple[str, ...]:
        """The tensors to keep for a parameter, in its shape."""
        return self.kept

    def _counts(self, group: Group) -> bool:
        """Whether steps are counted in a group."""
        return self.counted

    def _first(self, group: Group) -> dict[str, float]:
        """The numbers that parameters share, before the first step."""
        return {"step": 0.0}

    def _counted(self, group: Group, old: State) -> State:
        """These numbers after another step."""
        return {"step": old["step"] + 1}

    def _common(self, group: Group, old: State, new: State, kind: DType) -> dict[str, Any]:
        """What is the same for all elements: computed once for parameters that have had the same steps.

        Args:
          group: the settings.
          old: the shared numbers before this step.
          new: and after it.
          kind: the dtype to compute in.
        """
        return {}

    @abstractmethod
    def _moved(self, x: Tensor, g: Tensor, group: Group, state: State, numbers: dict[str, Any]) -> tuple[Tensor, State]:
        """A parameter after a step, and what is kept for it, all of one dtype."""

    def _step(self, ready: list[tuple[Tensor, Tensor]]) -> list[Tensor]:
        gradients = {id(param): gradient for param, gradient in ready}
        of = {id(param): kept for param, kept in zip(self.params, self._kept, strict=True)}
        changed: list[Tensor] = []
        for group in self.param_groups:
            for alike in _alike([(param, of[id(param)]) for param in group["params"]], gradients):
                kept = alike[0][1]
                shared = {name: kept[name] for name in self._first(group) if name in kept}
                new = self._counted(group, shared) if shared else {}
                known: dict[DType, dict[str, Any]] = {}
                for param, g, own in (
                    one for whole, state in alike for one in _by_parts(
                        whole, gradients[id(whole)], {name: t for name, t in state.items() if name not in shared}
                    )
                ):  # fmt: skip
                    kind = dtypes.float64 if param.dtype is dtypes.float64 else dtypes.float32
                    if kind not in known:
                        old, now = ({name: t.cast(kind) for name, t in part.items()} for part in (shared, new))
                        known[kind] = {"lr": group.number("lr", kind), **self._common(group, old, now, kind)}
                    changed += self._stepped(param, g.cast(kind), group, own, known[kind], kind)
                for name, value in new.items():
                    self._write(shared[name], value)
                    changed.append(shared[name])
        return changed

    def _stepped(
        self, param: Tensor, g: Tensor, group: Group, kept: State, numbers: dict[str, Any], kind: DType
    ) -> list[Tensor]:  # fmt: skip
        """One parameter's step; returns what was assigned to beside it."""
        x, decay = param.detach().cast(kind), group.number("weight_decay", kind) if "weight_decay" in group else 0
        if group.get("maximize"):
            g = -g
        if on(decay) and not self.own_decay:
            decoupled = self.decoupled or ("decoupled_weight_decay" in group and group["decoupled_weight_decay"])
            x, g = (x * (1 - numbers["lr"] * decay), g) if decoupled else (x, g + x * decay)
        moved, new = self._moved(x, g, group, kept, numbers)
        for name, value in new.items():
            self._write(kept[name], value)
        self._write(param, moved)
        return [kept[name] for name in new]


def _by_parts(param: Tensor, gradient: Tensor, kept: State) -> Iterator[tuple[Tensor, Tensor, State]]:
    """A parameter, its gradient and what is kept for it; of a complex one, the real parts of all, and the others."""
    for n, (part, slope) in enumerate(zip(param._floats(), gradient._floats(), strict=True)):
        yield part, slope, {name: tensor._floats()[n] for name, tensor in kept.items()}


def _alike(params: list[tuple[Tensor, State]], ready: Container[int]) -> list[list[tuple[Tensor, State]]]:
    """The parameters that make this step, apart where they have not had the same steps before."""
    sharing: dict[int, list[tuple[Tensor, State]]] = {}
    for param, kept in params:
        sharing.setdefault(id(kept.get("step")), []).append((param, kept))
    found = []
    for every in sharing.values():
        here = [one for one in every if id(one[0]) in ready]
        if 0 < len(here) < len(every) and "step" in here[0][1]:
            first = here[0][1]
            shared = [name for name in first if all(kept.get(name) is first[name] for _, kept in every)]
            own = {name: first[name].clone().realize() for name in shared}
            for _, kept in here:
                kept.update(own)
        if here:
            found.append(here)
    return found


def on(value: Any) -> bool:
    """Whether a setting is in use: a tensor, whose number may change, or another number than 0."""
    return isinstance(value, Tensor) or bool(value)


def rest(share: Any, step: Tensor) -> Tensor:
    """1 less a power of a share, with all its digits."""
    if isinstance(share, Tensor):
        return -(share.log() * step).expm1()
    return -(step * math.log(share)).expm1() if share else step * 0 + 1
