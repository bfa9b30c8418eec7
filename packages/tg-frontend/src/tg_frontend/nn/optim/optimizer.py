"""What optimisers share."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from inspect import signature

from tg_dtype import dtypes

from ...autograd.differentiation import MODE, Switch
from ...keywords import public
from ...memory.realization import realize_all
from ...tensor import Tensor
from ..absent import refused
from ..describing import described
from ..initial import LEARNT
from ..state import load_state_dict
from .group import Group
from .hooks import HookedOptimizer, sees_to_hooks
from .states import nested_of, setting_of, tensor_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    Parameters = Iterable[Tensor] | Iterable[Mapping[str, Any]] | Iterable[tuple[str, Tensor]]

_FREE = ("name", "initial_lr", "param_names", "max_lr", "min_lr", "max_momentum", "base_momentum")
"""What PyTorch and its schedules keep in groups beside settings."""


def dedupe(tensors: Sequence[Tensor]) -> list[Tensor]:
    return list({id(tensor): tensor for tensor in tensors}.values())


def _may_thaw(param: Tensor) -> bool:
    """Whether a tensor is a frozen parameter of a layer, which is optimised from when it requires a gradient."""
    return param._parameter and param.dtype.kind in LEARNT


def parts_of(tensors: Iterable[Tensor]) -> list[Tensor]:
    """The tensors that some are made of: themselves, and both parts of complex ones."""
    return [part for tensor in tensors for part in tensor._floats()]


@described
@public
class Optimizer(HookedOptimizer):
    """What optimisers share. A subclass implements :meth:`_step`.

    Args:
      params: tensors, or (name, tensor) pairs; or dicts with tensors under ``"params"`` and settings that differ from
        those of the others, each a group. Those that leave ``requires_grad`` open get it. Those that require a gradient
        are realised, in memory of their own; so are frozen parameters of layers, which stay as they are until they
        require one. Other tensors that require none, and integers, are only realised with each step (running
        statistics, for instance).
      lr: learning rate; or all settings in a dict, as PyTorch's base class takes them.
      settings: the other settings, by name.

    Attributes:
      params: the tensors that are optimised, of all groups.
      buffers: the others.
      param_groups: the groups, each a mapping of its settings and its ``"params"``. ``group["lr"] = 0.1`` writes into a
        tensor, so that a TinyJit sees it; other settings are numbers, and a TinyJit records anew.
      defaults: the settings that were given.
      lr: the learning rate of the first group, a tensor of shape (1,). Setting it, ``optimizer.lr = 0.1``, writes the
        number into those of all groups; so does ``optimizer.lr.assign([0.1])`` for the first.

    Raises:
      ValueError: if the learning rate is negative, there is no tensor to optimise, one is the result of operations that
        require a gradient or is in two groups, or the tensors are on different devices.
      TypeError: if something is no tensor, a setting is no number, or there is no such setting.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> class SignDescent(nn.optim.Optimizer):
      ...     def _step(self, ready):
      ...         for param, gradient in ready:
      ...             param.assign(param.detach() - gradient.sign() * self.lr)
      ...         return []
      >>> weight = Tensor([1.0, 2.0])
      >>> optimizer = SignDescent([weight], lr=0.5)
      >>> _ = (weight * weight).sum().backward()
      >>> optimizer.step()
      >>> weight
      Tensor([0.5, 1.5], requires_grad=True)
    """

    _numbers = "any"  # add_param_group says which optimisers take complex parameters

    def __init__(self, params: Parameters, lr: float | Tensor | Mapping[str, Any], **settings: Any) -> None:
        name = type(self).__name__
        if isinstance(params, Tensor):
            raise TypeError(f"{name}: params is one tensor of shape {params.shape}; give a list of tensors")
        if isinstance(lr, Mapping):
            settings = {**lr, **settings}
            if "lr" not in settings:
                raise ValueError(f"{name}: the settings have no 'lr', a learning rate: {', '.join(settings) or 'none'}")
            lr = settings.pop("lr")
        given: list[Any] = list(params.items()) if isinstance(params, dict) else list(params)
        self.params: list[Tensor] = []
        self.buffers: list[Tensor] = []
        self.param_groups: list[Group] = []
        self._kept: list[dict[str, Tensor]] = []
        self._skip: Tensor | None = None
        vars(self)["defaults"] = {"lr": lr, **settings}
        if not given or not isinstance(given[0], dict):
            given = [{"params": given}]
        for group in given:
            self.add_param_group(group)
        if not any(param._wish for param in self.params):
            count = len(self.params) + len(self.buffers)
            raise ValueError(f"{name}: none of the {count} parameters requires a gradient")

    row_sparse: bool = False
    """Whether :meth:`_step` takes row-sparse gradients as they are; if not, they are refused."""

    may_skip: bool = False
    """Whether :meth:`_step` writes with :meth:`_write` alone, so that a step may be left out on the device."""

    by_parts: bool = False
    """Whether a complex parameter is a pair of parameters, its real and its imaginary part: what is kept for it is
    complex, too, with a part for each, as PyTorch's ``view_as_real`` has it."""

    settings: tuple[str, ...] = ()
    """Attributes with numbers that are part of a recorded step: a TinyJit records anew when one was changed."""

    def add_param_group(self, param_group: Mapping[str, Any]) -> None:
        """Adds parameters with settings of their own.

        Args:
          param_group: ``"params"``, a tensor or several, and the settings that differ.

        Raises:
          ValueError: if one is optimised already, a setting is out of range, or some parameters have names.
          TypeError: if there is no such setting.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> optimizer = nn.optim.SGD([Tensor([1.0])], lr=0.5)
          >>> optimizer.add_param_group({"params": [Tensor([2.0])], "lr": 0.25})
          >>> [group["lr"] for group in optimizer.param_groups]
          [0.5, 0.25]
        """
        name, own = type(self).__name__, dict(param_group)
        if "params" not in own:
            raise ValueError(f"{name}: a group without 'params': {', '.join(map(str, own))}")
        given = own.pop("params")
        tensors, names = [], []
        for position, one in enumerate([given] if isinstance(given, Tensor) else given):
            pair = isinstance(one, tuple) and len(one) == 2 and isinstance(one[0], str)
            names += [one[0]] if pair else []
            tensors.append(one[1] if pair else one)
            if not isinstance(tensors[-1], Tensor):
                raise TypeError(f"{name}: parameter {position} is a {type(tensors[-1]).__name__}, not a Tensor")
            if tensors[-1].is_complex() and not self.by_parts:
                raise TypeError(
                    f"{name}: parameter {position} is complex, which this optimiser does not take; give its .real and "
                    ".imag, which it sees as two parameters, or use another one, nn.optim.Adam for instance"
                )
        self._check_names(len(tensors), names)
        if names:
            own["param_names"] = names
        for key in own:
            near = get_close_matches(str(key), self.defaults, 1, 0.75)
            if key not in self.defaults and key not in _FREE and near:
                raise TypeError(f"{name}: a group has no setting {key!r}; did you mean {near[0]!r}?")
        self._take(tensors, {**self.defaults, **own})

    def _check_names(self, count: int, names: list[str]) -> None:
        """Sees to it that all parameters have names, or none.

        Raises:
          ValueError: if some have.
        """
        named = {bool(names)} | {"param_names" in group for group in self.param_groups if group["params"]}
        if len(names) not in (0, count) or (count and len(named) > 1):
            raise ValueError(f"{type(self).__name__}: parameters with names and without; give all of them one, or none")

    def _take(self, tensors: list[Tensor], values: dict[str, Any]) -> None:
        """Adds a group whose parts are checked."""
        name, lr = type(self).__name__, values["lr"]
        if not isinstance(lr, Tensor) and not (isinstance(lr, (int, float)) and lr >= 0):
            raise ValueError(f"{name}: the learning rate {lr} is negative")
        self._check_numbers(values)
        self._check(values)
        for position, param in enumerate(tensors):
            if param._wish is None:
                param.requires_grad_(param.is_floating_point() or param.is_complex())
            if any(part._ctx is not None for part in param._floats()):
                raise ValueError(f"{name}: parameter {position}, of shape {param.shape}, is a result, not a leaf")
            for number, group in enumerate(self.param_groups):
                if any(param is other for other in group["params"]):
                    raise ValueError(
                        f"{name}: parameter {position} of group {len(self.param_groups)}, of shape {param.shape}, "
                        f"is in group {number}, too"
                    )
        own = dedupe([param for param in tensors if param._wish or _may_thaw(param)])
        taken, known = set(map(id, own)), {id(one): one for one in (*self.buffers, *tensors)}
        self.buffers = [one for number, one in known.items() if number not in taken]
        devices = {param.device: None for param in (*self.params, *own) if param._wish}
        if len(devices) > 1:
            first, *rest = devices
            raise ValueError(f"{name}: parameters on {first} and {', '.join(sorted(rest))}")
        self.device = next(iter([*devices, *(param.device for param in own), "CPU"]))
        parts = parts_of(own)
        for part in parts:
            part._memory().settle()
        # in memory of their own from the start: else the first step would have other kernels than all that follow
        realize_all([part.lazydata for part in parts])
        group = Group(own, self.device, values, name)
        self.params += own
        self.param_groups.append(group)
        self._kept += self._begun(own, group)

    def _check_numbers(self, values: Mapping[str, Any]) -> None:
        """Sees to it that settings are numbers where those that are not given are.

        Raises:
          TypeError: if one is something else.
          ValueError: if one is NaN.
        """
        name = type(self).__name__
        pair = values.get("betas", ())
        given = {**values, **dict(zip(_BETAS, pair if isinstance(pair, (tuple, list)) else (), strict=False))}
        for key, value in given.items():
            if key in _BETAS and not isinstance(value, (int, float, Tensor)):
                raise TypeError(f"{name}: {key} is a number, got {value!r} of type {type(value).__name__}")
        for key, parameter in signature(type(self).__init__).parameters.items():
            if type(parameter.default) not in (int, float) or key not in given:
                continue
            value = given[key]
            if not isinstance(value, (int, float, Tensor)):
                raise TypeError(f"{name}: {key} is a number, got {value!r} of type {type(value).__name__}")
            if value != value and not isinstance(value, Tensor):
                raise ValueError(f"{name}: {key} is NaN")

    def _check(self, values: Mapping[str, Any]) -> None:
        """Raises an error if a setting of a group is out of range."""

    def _begun(self, params: list[Tensor], group: Group) -> list[dict[str, Tensor]]:
        """What is kept for the parameters of a group, before the first step."""
        return [self._begin_parts(param, group) for param in params]

    def _begun_as(self, param: Tensor, groups: list[Mapping[str, Any]]) -> dict[str, Tensor]:
        """What is kept for a parameter before the first step, with the settings of a state."""
        pairs = zip(self.param_groups, groups, strict=True)
        group, values = next(pair for pair in pairs if any(param is p for p in pair[0]["params"]))
        settings = {key: values.get(key, value) for key, value in group.items() if key != "params"}
        return self._begun([param], Group([param], self.device, settings, type(self).__name__))[0]

    def _begin_parts(self, param: Tensor, group: Group) -> dict[str, Tensor]:
        """As :meth:`_begin`, also for a complex parameter."""
        begun = [self._begin(part, group) for part in param._floats()]
        return {name: param._of_floats([kept[name] for kept in begun]) for name in begun[0]}

    def _begin(self, param: Tensor, group: Group) -> dict[str, Tensor]:
        """What is kept for a parameter, before the first step."""
        return {}

    @property
    def state(self) -> dict[Tensor, dict[str, Tensor]]:
        """What is kept for each parameter, by name.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> weight = Tensor([1.0, 2.0])
          >>> nn.optim.Adam([weight]).state[weight]["exp_avg"]
          Tensor([0., 0.])
        """
        return dict(zip(self.params, self._kept, strict=True))

    def __getattr__(self, name: str) -> Any:
        groups, place = vars(self).get("param_groups"), _BETAS.get(name)
        if groups and place is not None and "betas" in vars(self)["defaults"]:
            return groups[0]["betas"][place]
        if groups and name in vars(self)["defaults"]:
            return groups[0][name]
        refused("nn.optim.Optimizer", name, f"{type(self).__name__} has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        defaults, place = vars(self).get("defaults", ()), _BETAS.get(name)
        if place is not None and "betas" in defaults:
            for group in self.param_groups:
                group["betas"] = tuple(value if n == place else old for n, old in enumerate(group["betas"]))
        elif name != "lr" and name in defaults:
            for group in self.param_groups:
                group[name] = value
        else:
            object.__setattr__(self, name, value)

    @property
    def lr(self) -> Tensor:
        """The learning rate of the first group, see the class.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> optimizer = nn.optim.SGD([Tensor([1.0])], lr=0.5)
          >>> optimizer.lr = 0.25
          >>> optimizer.lr
          Tensor([0.25])
        """
        return vars(self.param_groups[0])["lr"]  # type: ignore[no-any-return]

    @lr.setter
    def lr(self, value: Tensor | float) -> None:
        for group in self.param_groups:
            group["lr"] = value

    def state_dict(self) -> dict[str, Any]:
        """The state of every parameter by its number, and the settings of the groups, as PyTorch lays them out.

        Parameters are counted as the optimiser holds them. The tensors are the optimiser's own, the learning rates too:
        what it does later shows in them. ``safe_save`` takes the dict as it is, and writes its tensors by dotted names.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> optimizer = nn.optim.SGD([Tensor([1.0, 2.0])], lr=0.1, momentum=0.9)
          >>> saved = optimizer.state_dict()
          >>> saved["state"][0], saved["param_groups"][0]["momentum"], sorted(nn.state.get_state_dict(saved))
          ({'momentum_buffer': Tensor([0., 0.])}, 0.9, ['param_groups.0.lr', 'state.0.momentum_buffer'])
        """
        for hook in self._of("state_pre"):
            hook.function(self)
        number = {id(param): n for n, param in enumerate(self.params)}
        groups = [
            {**vars(group), "params": [number[id(param)] for param in group["params"]]} for group in self.param_groups
        ]
        whole = {"state": {n: dict(kept) for n, kept in enumerate(self._kept) if kept}, "param_groups": groups}
        found: dict[str, Any] = self._changed("state", whole)
        return found

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Overwrites the settings and the state of every parameter with what :meth:`state_dict` gave.

        PyTorch's own state dicts are taken as they are; and so are dicts of tensors by dotted names, as files hold
        them, which say nothing about settings that are no tensors: these stay.

        Raises:
          KeyError: if a name is missing on one side.
          ValueError: if shapes, or the sizes of groups, differ.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> old, new = (nn.optim.SGD([Tensor([1.0])], lr=lr) for lr in (0.5, 0.25))
          >>> new.load_state_dict(old.state_dict())
          >>> new.lr
          Tensor([0.5])
        """
        name = type(self).__name__
        state_dict = self._changed("load_pre", dict(state_dict))
        nested = state_dict if "param_groups" in state_dict else nested_of(state_dict)
        groups, state = nested.get("param_groups", []), nested.get("state", {})
        groups = [{key: setting_of(value) for key, value in group.items()} for group in
                  (groups.values() if isinstance(groups, dict) else groups)]  # fmt: skip
        if not groups:
            raise KeyError(f"{name}: not in the state: param_groups")
        sizes = [len(group["params"]) for group in groups if "params" in group]
        wanted = [len(group["params"]) for group in self.param_groups]
        if len(groups) != len(wanted) or (sizes and sizes != wanted):
            raise ValueError(f"{name}: the state has groups of {sizes or len(groups)} parameters, not of {wanted}")
        order = [number for group in groups for number in group.get("params", ())] or list(range(len(self.params)))
        own: dict[str, Tensor] = {}
        new: dict[str, Any] = {}
        for n, kept in enumerate(self._kept):
            given = state.get(order[n], state.get(str(order[n]), {}))
            own |= {f"state.{n}.{key}": tensor for key, tensor in kept.items()}
            if not given and kept and sizes:  # of PyTorch's, before the first step
                given = self._begun_as(self.params[n], groups)
            new |= {f"state.{n}.{key}": tensor_of(value, kept.get(key)) for key, value in self._known(given).items()}
        self._unshare(own, new)
        load_state_dict(own, new)
        for group, values in zip(self.param_groups, groups, strict=True):
            for key, value in values.items():
                if key in group and key != "params":
                    group[key] = value
        for hook in self._of("load"):
            hook.function(self)

    def _unshare(self, own: dict[str, Tensor], new: dict[str, Any]) -> None:
        """Gives parameters tensors of their own where they share one and are to have different numbers."""
        users: dict[int, list[str]] = {}
        for name, tensor in own.items():
            users.setdefault(id(tensor), []).append(name)
        for names in users.values():
            given = [new[name] for name in names if name in new]
            if len(names) < 2 or len({float(value.item()) for value in given if isinstance(value, Tensor)}) < 2:
                continue
            for name in names:
                _, number, key = name.split(".")
                own[name] = self._kept[int(number)][key] = own[name].clone().realize()

    def _known(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Of PyTorch's state of a parameter what is kept here, too."""
        return {key: value for key, value in given.items() if value is not None}

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets the gradients; or fills them with zeros, where they are.

        A TinyJit outside of which it is called, and in which gradients of several calls add up, is recorded once if
        gradients stay where they are, and anew whenever there are none.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> weight = Tensor([1.0, 2.0])
          >>> optimizer = nn.optim.SGD([weight], lr=0.25)
          >>> _ = (weight * weight).sum().backward()
          >>> optimizer.zero_grad()
          >>> weight.grad is None
          True
        """
        for part in parts_of(self.params):
            if set_to_none:
                part.grad = None
            elif part.grad is not None and part.grad.is_sparse:
                part.grad._forget_rows()
            elif part.grad is not None:
                part.grad.assign(0)

    def _write(self, target: Tensor, value: Tensor) -> None:
        """Assigns to a parameter or to what is kept for it; not where the step is to be left out."""
        value = value.cast(target.dtype)
        target.assign(value if self._skip is None else self._skip.where(target.detach(), value))

    def _state(self, param: Tensor) -> Tensor:
        """Zeros in memory, of the shape of a parameter and at least float32."""
        dtype = dtypes.float64 if param._floats()[0].dtype is dtypes.float64 else dtypes.float32
        zeros = [
            Tensor.zeros(*param.shape, dtype=dtype, device=param.device, requires_grad=False).contiguous()
            for _ in param._floats()
        ]
        return param._of_floats(zeros)

    def schedule_step(self) -> list[Tensor]:
        """Makes one step without computing it. Parameters without a gradient stay as they are.

        Returns:
          What is to be realised: parameters, state and buffers. Gradients that :meth:`zero_grad` forgets before that
          are not kept, which spares a recorded step their memory.

        Raises:
          RuntimeError: if no parameter has a gradient, one of the buffers has one, or a row-sparse one is not taken.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> weight = Tensor([1.0, 2.0])
          >>> optimizer = nn.optim.SGD([weight], lr=0.25)
          >>> _ = (weight * weight).sum().backward()
          >>> (param,) = optimizer.schedule_step()
          >>> param is weight, weight.realize()
          (True, Tensor([0.5, 1. ], requires_grad=True))
        """
        ready = [(param, param.grad) for param in self.params if param.grad is not None]
        for other in self.buffers:
            if other.grad is not None:
                raise RuntimeError(
                    f"{type(self).__name__}.step: a tensor of shape {other.shape} has a gradient, but required none "
                    "when the optimiser got it: give it to add_param_group() once it does, or make it an nn.Parameter"
                )
        if not ready:
            raise RuntimeError(f"{type(self).__name__}: no parameter has a gradient; call backward() before step()")
        if not self.row_sparse:
            for param, gradient in ready:
                if gradient.is_sparse:
                    raise RuntimeError(
                        f"{type(self).__name__}: {self._called(param)} has a row-sparse gradient, which this optimiser "
                        "cannot take: use nn.optim.SparseAdam or nn.optim.SGD for it, or make the gradient dense, "
                        "param.grad = param.grad.to_dense()"
                    )
        with Switch(MODE, "recording", False):
            changed = self._step(ready)
        return [*changed, *(param for param, _ in ready), *self.buffers]

    @sees_to_hooks
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Makes one step: what was computed from the old parameters, a loss for instance, is computed with it.

        Args:
          closure: called first, to compute gradients.

        Returns:
          What the closure gave; None without one.

        Raises:
          RuntimeError: if no parameter has a gradient.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> weight = Tensor([1.0, 2.0])
          >>> optimizer = nn.optim.SGD([weight], lr=0.25)
          >>> _ = (weight * weight).sum().backward()
          >>> optimizer.step()
          >>> weight
          Tensor([0.5, 1. ], requires_grad=True)
        """
        return self._hooked_step(self._advance, closure)

    def _advance(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = None if closure is None else closure()
        realize_all([part.lazydata for part in parts_of(self.schedule_step())])
        return loss

    def _called(self, param: Tensor) -> str:
        """A parameter, for messages."""
        number = next(n for n, one in enumerate(self.params) if one is param)
        return f"parameter {number}, of shape {param.shape},"

    def _step(self, ready: list[tuple[Tensor, Tensor]]) -> list[Tensor]:
        """Assigns to the parameters; returns the other tensors that it assigned to."""
        raise TypeError(f"{type(self).__name__} does not say how to make a step")


_BETAS = {"b1": 0, "b2": 1}
"""What tinygrad calls the two numbers of ``betas``."""
