"""A base class for models that are written as PyTorch's are: ``forward``, ``parameters()``, ``state_dict()``."""

from __future__ import annotations

from types import MappingProxyType

from ..autograd.differentiation import Mode
from ..keywords import checked
from ..tensor import Tensor
from . import states
from .absent import refused
from .describing import HOOKS, describe
from .hooks import EVERYWHERE, Hooked
from .initial import LEARNT, parameter
from .placed import Placed
from .state import get_parameters, is_learnt, parts_of, tensors_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, ClassVar, NoReturn, Self

    from .states import Keys


class Module(Hooked, Placed):
    """What a model may inherit from, and need not: calls go to ``forward``, and its tensors are found by name.

    Tensors and layers are attributes; nothing is registered, and ``super().__init__()`` may be called or not. Of the
    tensors, it learns those that are parameters (see :func:`tg_frontend.nn.Parameter`) or require a gradient.

    Attributes:
      training: whether this model is in training, whatever stands around; None for what ``Tensor.train`` says.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> class Model(nn.Module):
      ...     def __init__(self):
      ...         super().__init__()
      ...         self.inner = nn.Linear(3, 5)
      ...     def forward(self, x):
      ...         return self.inner(x).relu()
      >>> model = Model()
      >>> model(Tensor.ones(2, 3)).shape, sorted(model.state_dict())
      ((2, 5), ['inner.bias', 'inner.weight'])
      >>> model
      Model(
        (inner): Linear(in_features=3, out_features=5, bias=True)
      )
    """

    training: bool | None = None
    _tree: ClassVar[bool] = True  # it is shown with its parts
    _as_written: ClassVar[bool] = True  # errors in what a person wrote into forward() name what they called there
    _tensors_first: ClassVar[bool] = True  # before layers, in states
    _derived: tuple[str, ...] = ()  # attributes that are computed from others, and are in no state
    _transient_names: tuple[str, ...] = ()  # attributes with tensors that are in no state

    def __init__(self) -> None:
        """There is nothing to set."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the model computes: to be written by who inherits.

        Raises:
          NotImplementedError: if it was not.

        Example:
          >>> from tg_frontend import nn
          >>> nn.Module().forward()
          Traceback (most recent call last):
          ...
          NotImplementedError: Module has no forward(): write what it computes
        """
        raise NotImplementedError(f"{type(self).__name__} has no forward(): write what it computes")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What ``forward`` gives, in training or not as :meth:`train` and :meth:`eval` say."""
        hooked = self._hooks or EVERYWHERE
        if self.training is None or self.training is Tensor.training:
            return self._call_hooked(self.forward, args, kwargs) if hooked else self.forward(*args, **kwargs)
        with Tensor.train(self.training):
            return self._call_hooked(self.forward, args, kwargs) if hooked else self.forward(*args, **kwargs)

    if not TYPE_CHECKING:  # who checks types is to see that a name is not there

        def __getattr__(self, name: str) -> NoReturn:
            refused("nn.Module", name, f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        return describe(self)

    def extra_repr(self) -> str:
        """What is shown of the model beside its parts: to be written by who inherits.

        Example:
          >>> from tg_frontend import nn
          >>> class Scale(nn.Module):
          ...     def extra_repr(self):
          ...         return "by=2"
          >>> Scale()
          Scale(by=2)
        """
        return ""

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Any]]:
        """This model and every layer in it by name, each once: what can be called and holds or computes tensors.

        Example:
          >>> from tg_frontend import nn
          >>> [name for name, _ in nn.Module().named_modules()]
          ['']
        """
        seen: set[int] = set()
        stack: list[tuple[str, Any]] = [(prefix, self)]
        while stack:
            path, part = stack.pop()
            listed = isinstance(part, (list, tuple, dict))
            plain = isinstance(part, (Tensor, type)) or not hasattr(part, "__dict__") or hasattr(part, "__code__")
            if id(part) in seen or (plain and not listed):
                continue
            seen.add(id(part))
            if callable(part) or part is self or isinstance(part, Module):
                yield path, part
            inner = [(f"{path}.{name}" if path else str(name), value) for name, value in parts_of(part)]
            stack.extend(reversed([item for item in inner if item[0].rpartition(".")[2] not in HOOKS]))

    def modules(self) -> Iterator[Any]:
        """This model and every layer in it, each once.

        Example:
          >>> from tg_frontend import nn
          >>> len(list(nn.Module().modules()))
          1
        """
        return (module for _, module in self.named_modules())

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """The layers that are attributes of this model, by name.

        Example:
          >>> from tg_frontend import nn
          >>> list(nn.Module().named_children())
          []
        """
        found = {id(part): (str(name), part) for name, part in reversed(parts_of(self)) if isinstance(part, Module)}
        plain = ((name, part) for name, part in self.named_modules() if name and "." not in name)
        found = {**{id(part): (name, part) for name, part in plain}, **found}
        return (found[id(part)] for _, part in self.named_modules() if id(part) in found)

    def children(self) -> Iterator[Any]:
        """The layers that are attributes of this model.

        Example:
          >>> from tg_frontend import nn
          >>> list(nn.Module().children())
          []
        """
        return (part for _, part in self.named_children())

    def add_module(self, name: str, module: Any) -> None:
        """Sets an attribute to a layer; in a dict or a Sequential, adds it under that name.

        Example:
          >>> from tg_frontend import nn
          >>> model = nn.Module()
          >>> model.add_module("inner", nn.ReLU())
          >>> model.inner
          ReLU()
        """
        if isinstance(self, dict):
            self[name] = module
        elif hasattr(self, "_named_items"):
            names = [known for known, _ in self._named_items()]
            self.append(module)  # type: ignore[attr-defined]
            self._names = (*names, name)
        else:
            setattr(self, name, module)

    def register_module(self, name: str, module: Any) -> None:
        """As :meth:`add_module`.

        Example:
          >>> from tg_frontend import nn
          >>> model = nn.Module()
          >>> model.register_module("inner", nn.Tanh())
          >>> model.inner
          Tanh()
        """
        self.add_module(name, module)

    def get_submodule(self, target: str) -> Any:
        """The layer of a dotted name, as :meth:`named_modules` has it.

        Raises:
          AttributeError: if there is none.

        Example:
          >>> from tg_frontend import nn
          >>> nn.Sequential(nn.ReLU(), nn.Linear(2, 3)).get_submodule("1")
          Linear(in_features=2, out_features=3, bias=True)
        """
        return _found(self, target, dict(self.named_modules()), "layer")

    def set_submodule(self, target: str, module: Any, strict: bool = False) -> None:
        """Puts another layer under a dotted name.

        Args:
          target: the name.
          module: the layer.
          strict: whether there has to be a layer of that name already.

        Raises:
          AttributeError: if there is no layer that it would be a part of; or none of that name, with ``strict``.
          ValueError: if the name is empty.

        Example:
          >>> from tg_frontend import nn
          >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
          >>> model.set_submodule("1", nn.Tanh())
          >>> model[1]
          Tanh()
        """
        if not target:
            raise ValueError("set_submodule: an empty name")
        path, _, name = target.rpartition(".")
        owner: Any = self.get_submodule(path) if path else self
        known = {str(key) for key, _ in parts_of(owner)}
        if strict and name not in known:
            raise AttributeError(f"{type(self).__name__} has no layer {target!r}")
        if name in known and (isinstance(owner, list) or hasattr(owner, "_named_items")):
            owner[[str(key) for key, _ in parts_of(owner)].index(name)] = module
        elif isinstance(owner, list) and not hasattr(owner, "_named_items"):
            raise AttributeError(f"{type(self).__name__} has no layer {target!r}: a list of {len(owner)} layers")
        else:
            owner.add_module(name, module)

    def get_parameter(self, target: str) -> Tensor:
        """The parameter of a dotted name.

        Raises:
          AttributeError: if there is none.

        Example:
          >>> from tg_frontend import nn
          >>> nn.Sequential(nn.ReLU(), nn.Linear(2, 3)).get_parameter("1.weight").shape
          (3, 2)
        """
        found: Tensor = _found(self, target, dict(self.named_parameters()), "parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The tensor of a dotted name that is no parameter.

        Raises:
          AttributeError: if there is none.

        Example:
          >>> from tg_frontend import nn
          >>> nn.BatchNorm1d(2).get_buffer("running_mean")
          Tensor([0., 0.])
        """
        found: Tensor = _found(self, target, dict(self.named_buffers()), "buffer")
        return found

    def named_parameters(self, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
        """The floating tensors that require gradients, and parameters that are frozen, by name, each once.

        Example:
          >>> from tg_frontend import nn
          >>> layer = nn.Linear(2, 3).requires_grad_(False)
          >>> [name for name, _ in layer.named_parameters()]
          ['weight', 'bias']
        """
        done: set[int] = set()
        for name, tensor in tensors_of(self, prefix).items():
            if id(tensor) not in done and is_learnt(tensor):
                done.add(id(tensor))
                yield name, tensor

    def parameters(self) -> Iterator[Tensor]:
        """The floating tensors that require gradients, and parameters that are frozen, each once.

        Example:
          >>> from tg_frontend import nn
          >>> list(nn.Module().parameters())
          []
        """
        return (tensor for _, tensor in self.named_parameters())

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """The other tensors, by name: running statistics, counts, and what needs no gradient.

        Example:
          >>> from tg_frontend import nn
          >>> list(nn.Module().named_buffers())
          []
        """
        learnt = {id(tensor) for tensor in self.parameters()}
        return ((name, tensor) for name, tensor in tensors_of(self).items() if id(tensor) not in learnt)

    def buffers(self) -> Iterator[Tensor]:
        """The tensors that are no parameters.

        Example:
          >>> from tg_frontend import nn
          >>> list(nn.Module().buffers())
          []
        """
        return (tensor for _, tensor in self.named_buffers())

    @property
    def _modules(self) -> Mapping[str, Any]:
        """The layers that are attributes, by name, as PyTorch's programs ask for them: to be read."""
        return MappingProxyType(dict(self.named_children()))

    @property
    def _parameters(self) -> Mapping[str, Tensor]:
        """The tensors that are attributes and may have gradients, likewise."""
        return self._own_tensors(True)

    @property
    def _buffers(self) -> Mapping[str, Tensor]:
        """The other tensors that are attributes, likewise."""
        return self._own_tensors(False)

    def _own_tensors(self, learnt: bool) -> Mapping[str, Tensor]:
        own = {str(name): part for name, part in parts_of(self) if isinstance(part, Tensor)}
        return MappingProxyType({name: part for name, part in own.items() if is_learnt(part) is learnt})

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Sets an attribute to a tensor that needs no gradient.

        Args:
          persistent: whether what the attribute holds is in the state of the model, now and when it is set anew.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> model = nn.Module()
          >>> model.register_buffer("mean", Tensor.zeros(2))
          >>> model.register_buffer("mask", Tensor.ones(2), persistent=False)
          >>> [name for name, _ in model.named_buffers()], list(model.state_dict())
          (['mean', 'mask'], ['mean'])
        """
        others = tuple(known for known in self._transient_names if known != name)
        if others != self._transient_names or not persistent:
            self._transient_names = others if persistent else (*others, name)
        if tensor is not None:
            tensor.requires_grad = False
            tensor._parameter = False
        setattr(self, name, tensor)

    def register_parameter(self, name: str, tensor: Tensor | None) -> None:
        """Sets an attribute to a tensor that the model learns.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> model = nn.Module()
          >>> model.register_parameter("scale", Tensor.ones(2))
          >>> [name for name, _ in model.named_parameters()]
          ['scale']
        """
        setattr(self, name, tensor if tensor is None else parameter(tensor))

    def state_dict(self, *, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> dict[str, Any]:
        """The tensors by name; see :func:`tg_frontend.nn.state.get_state_dict`.

        What :meth:`get_extra_state` of a layer gives has the name ``_extra_state`` there.

        Args:
          destination: a dict that they are put into; a new one if not given.
          prefix: put in front of every name.
          keep_vars: of no effect: the tensors are those of the model.

        Example:
          >>> from tg_frontend import nn
          >>> list(nn.Linear(2, 3).state_dict(prefix="first."))
          ['first.weight', 'first.bias']
        """
        return states.gathered(self, Module, {} if destination is None else destination, prefix)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Keys:
        """Puts tensors into the model by name; see :func:`tg_frontend.nn.state.load_state_dict`.

        Returns:
          The names that were ``missing_keys`` in the state, and ``unexpected_keys`` of it.

        Raises:
          StateError: if a name is missing on one side, with ``strict``: a KeyError and a RuntimeError.
          ArgumentError: if shapes differ: a ValueError and a RuntimeError.

        Example:
          >>> from tg_frontend import nn
          >>> nn.Module().load_state_dict({})
          <All keys matched successfully>
        """
        return states.loaded(self, Module, state_dict, strict, assign)

    def get_extra_state(self) -> Any:
        """What is in the state of the model beside tensors: to be written, with :meth:`set_extra_state`.

        Raises:
          RuntimeError: if it was not.

        Example:
          >>> from tg_frontend import nn
          >>> class Counter(nn.Module):
          ...     count = 3
          ...     def get_extra_state(self):
          ...         return self.count
          ...     def set_extra_state(self, state):
          ...         self.count = state
          >>> Counter().state_dict()
          {'_extra_state': 3}
        """
        raise RuntimeError(f"{type(self).__name__} has no get_extra_state(): write what it gives")

    def set_extra_state(self, state: Any) -> None:
        """Takes what :meth:`get_extra_state` gave, when a state is loaded: to be written.

        Raises:
          RuntimeError: if it was not.

        Example:
          >>> from tg_frontend import nn
          >>> nn.Module().set_extra_state(3)
          Traceback (most recent call last):
          ...
          RuntimeError: Module has no set_extra_state(): write what it does with a state
        """
        raise RuntimeError(f"{type(self).__name__} has no set_extra_state(): write what it does with a state")

    def train(self, mode: bool = True) -> Self:
        """Sets for this model and those in it whether they are in training. Returns the model.

        Example:
          >>> from tg_frontend import nn
          >>> nn.Module().train().training
          True
        """
        Mode.told = True
        for module in self.modules():
            if isinstance(module, Module):
                module.training = mode
        return self

    def eval(self) -> Self:
        """As ``train(False)``.

        Example:
          >>> from tg_frontend import nn
          >>> nn.Module().eval().training
          False
        """
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Sets for all parameters whether they are to have gradients. Returns the model.

        Example:
          >>> from tg_frontend import nn
          >>> _ = nn.Module().requires_grad_(False)
        """
        for tensor in get_parameters(self):
            if tensor.dtype.kind in LEARNT and is_learnt(tensor):
                tensor.requires_grad = requires_grad
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops the gradients of all tensors; or fills them with zeros.

        Example:
          >>> from tg_frontend import nn
          >>> nn.Module().zero_grad()
        """
        for tensor in get_parameters(self):
            if set_to_none or tensor.grad is None:
                tensor.grad = None
            else:
                tensor.grad.assign(0)

    def apply(self, fn: Callable[[Any], object]) -> Self:
        """Calls a function on every layer, the innermost first, and on the model last. Returns the model.

        Example:
          >>> from tg_frontend import nn
          >>> _ = nn.Module().apply(print)
          Module()
        """
        waiting: list[tuple[str, Any]] = []
        for name, module in self.named_modules():
            while waiting and waiting[-1][0] and not name.startswith(f"{waiting[-1][0]}."):
                fn(waiting.pop()[1])
            waiting.append((name, module))
        for _, module in reversed(waiting):
            fn(module)
        return self


def _found(model: Module, target: str, named: dict[str, Any], what: str) -> Any:
    if target not in named:
        known = ", ".join(name for name in list(named)[:8] if name) or "none"
        raise AttributeError(f"{type(model).__name__} has no {what} {target!r}; there are {known}")
    return named[target]


setattr(Module, "__init__", checked(Module.__init__, "Module"))  # noqa: B010
