"""Containers of layers: lists and dicts of them, one of which is called as a whole."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from ..keywords import public
from ..tensor import Tensor
from .absent import refused
from .initial import parameter
from .layering import Layer
from .module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self, SupportsIndex


@public
class ModuleList(Module, list[Any]):
    """A list of layers, as any list is.

    Example:
      >>> from tg_frontend import nn
      >>> len(nn.state.get_parameters(nn.ModuleList([nn.Linear(2, 3), nn.Linear(3, 2)])))
      4
    """

    __hash__ = object.__hash__  # type: ignore[assignment]

    def __init__(self, modules: Iterable[Any] | None = None) -> None:
        list.__init__(self, () if modules is None else modules)

    def __getitem__(self, position: Any) -> Any:
        found = list.__getitem__(self, position)
        return type(self)(found) if isinstance(position, slice) else found

    def append(self, module: Any) -> Self:  # type: ignore[override]
        """Adds a layer at the end. Returns the list.

        Example:
          >>> from tg_frontend import nn
          >>> len(nn.ModuleList().append(nn.Linear(2, 3)))
          1
        """
        list.append(self, module)
        return self

    def extend(self, modules: Iterable[Any]) -> Self:  # type: ignore[override]
        """Adds layers at the end. Returns the list.

        Example:
          >>> from tg_frontend import nn
          >>> len(nn.ModuleList().extend([nn.ReLU(), nn.ReLU()]))
          2
        """
        list.extend(self, modules)
        return self


@public
class Sequential(ModuleList):
    """Layers one after another: a list of callables that is called itself.

    Args:
      layers: callables of one tensor; or one list of them; or one dict, whose keys are names in the state.

    Raises:
      TypeError: if one is not callable.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> model = nn.Sequential(nn.Linear(3, 5), Tensor.relu, nn.Linear(5, 2))
      >>> model(Tensor.ones(7, 3)).shape, sorted(nn.state.get_state_dict(model))
      ((7, 2), ['0.bias', '0.weight', '2.bias', '2.weight'])
    """

    _names: tuple[str, ...] = ()

    if TYPE_CHECKING:

        def __call__(self, *args: Any, **kwargs: Any) -> Tensor: ...

    def __init__(self, *layers: Any) -> None:
        only = layers[0] if len(layers) == 1 else None
        listed = only.values() if isinstance(only, dict) else only if isinstance(only, (list, tuple)) else layers
        if isinstance(only, Sequential):
            listed = layers  # a model that is a layer of another
        list.__init__(self, listed)
        if isinstance(only, dict):
            self._names = tuple(str(name) for name in only)
        for one in self:
            if not callable(one):
                raise TypeError(f"Sequential: {one!r} is no layer: it cannot be called")

    def _named_items(self) -> list[tuple[str, Any]]:
        """The layers by name: those of a dict by its keys, others by their positions."""
        names = (*self._names, *(str(n) for n in range(len(self._names), len(self))))
        return list(zip(names, self, strict=False))

    def __getattr__(self, name: str) -> Any:
        for known, one in self._named_items():
            if known == name:
                return one
        raise AttributeError(f"Sequential has no layer {name!r}")

    def __getitem__(self, position: Any) -> Any:
        if not isinstance(position, slice):
            return list.__getitem__(self, position)
        return Sequential(dict(self._named_items()[position]) if self._names else list.__getitem__(self, position))

    def insert(self, position: SupportsIndex, module: Any) -> Self:  # type: ignore[override]
        """Puts a layer before another. Returns the model.

        Example:
          >>> from tg_frontend import nn
          >>> len(nn.Sequential(nn.Linear(2, 3)).insert(0, nn.ReLU()))
          2
        """
        list.insert(self, position, module)
        self._names = ()
        return self

    def __delitem__(self, position: Any) -> None:
        names = [name for name, _ in self._named_items()]
        list.__delitem__(self, position)
        if self._names:
            del names[position]
            self._names = tuple(names)

    def pop(self, position: SupportsIndex = -1) -> Any:
        """Takes a layer out, and returns it.

        Example:
          >>> from tg_frontend import nn
          >>> nn.Sequential(nn.ReLU(), nn.Tanh()).pop()
          Tanh()
        """
        found = self[position]
        del self[position]
        return found

    def forward(self, x: Tensor) -> Tensor:
        """What the last layer makes of what the one before it makes, and so on."""
        for one in self:
            x = one(x)
        return x


@public
class ModuleDict(Module, dict[str, Any]):
    """Layers by name, as any dict; each is an attribute, too.

    Example:
      >>> from tg_frontend import nn
      >>> layers = nn.ModuleDict({"up": nn.Linear(2, 3)})
      >>> sorted(nn.state.get_state_dict(layers)), layers.up is layers["up"]
      (['up.bias', 'up.weight'], True)
    """

    __hash__ = object.__hash__  # type: ignore[assignment]

    def __init__(self, modules: Mapping[str, Any] | Iterable[tuple[str, Any]] | None = None) -> None:
        dict.__init__(self, () if modules is None else modules)

    def __getattr__(self, name: str) -> Any:
        return _entry(self, name)


@public
class ParameterList(Module, list[Any]):
    """A list of tensors that a model learns, as any list; what is no tensor stays what it is.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> [name for name, _ in nn.ParameterList([Tensor.ones(2), Tensor.ones(3)]).named_parameters()]
      ['0', '1']
    """

    __hash__ = object.__hash__  # type: ignore[assignment]

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        list.__init__(self, () if values is None else map(_learnt, values))

    def append(self, value: Any) -> Self:  # type: ignore[override]
        """Adds a tensor. Returns the list.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> len(nn.ParameterList().append(Tensor.ones(2)))
          1
        """
        list.append(self, _learnt(value))
        return self

    def extend(self, values: Iterable[Any]) -> Self:  # type: ignore[override]
        """Adds several tensors. Returns the list.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> len(nn.ParameterList().extend([Tensor.ones(2), Tensor.ones(3)]))
          2
        """
        list.extend(self, map(_learnt, values))
        return self

    def insert(self, position: SupportsIndex, value: Any) -> None:
        """Puts a tensor before a position.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> learnt = nn.ParameterList([Tensor.ones(3)])
          >>> learnt.insert(0, Tensor.ones(2))
          >>> learnt[0].shape
          (2,)
        """
        list.insert(self, position, _learnt(value))

    def __iadd__(self, values: Iterable[Any]) -> Self:  # type: ignore[misc]
        return self.extend(values)

    def __setitem__(self, position: Any, value: Any) -> None:
        list.__setitem__(self, position, map(_learnt, value) if isinstance(position, slice) else _learnt(value))


@public
class ParameterDict(Module, dict[str, Any]):
    """Tensors that a model learns by name, as any dict; each is an attribute, too.

    Those of a plain dict are taken in the order of their names, as in PyTorch: optimisers number their states by it.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> learnt = nn.ParameterDict({"scale": Tensor.ones(2)})
      >>> [name for name, _ in learnt.named_parameters()], learnt.scale
      (['scale'], Tensor([1., 1.]))
    """

    __hash__ = object.__hash__  # type: ignore[assignment]

    def __init__(self, parameters: Mapping[str, Any] | Iterable[tuple[str, Any]] | None = None) -> None:
        dict.__init__(self)
        self.update(() if parameters is None else parameters)

    def __setitem__(self, name: str, value: Any) -> None:
        dict.__setitem__(self, name, _learnt(value))

    def setdefault(self, name: str, default: Any = None) -> Any:
        """What there is under a name; where there is nothing, what is given is from now on.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> nn.ParameterDict().setdefault("scale", Tensor.ones(2)).shape
          (2,)
        """
        if name not in self:
            self[name] = default
        return self[name]

    def update(self, parameters: Any = (), /, **named: Any) -> None:
        """Takes over tensors by name; those of a plain dict in the order of their names.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> learnt = nn.ParameterDict()
          >>> learnt.update({"b": Tensor([1.0]), "a": Tensor([2.0])})
          >>> list(learnt)
          ['a', 'b']
        """
        for name, value in dict(_in_order(parameters), **named).items():
            self[name] = value

    def copy(self) -> Self:
        """Another one of the same tensors.

        Example:
          >>> from tg_frontend import Tensor, nn
          >>> learnt = nn.ParameterDict({"scale": Tensor.ones(2)})
          >>> learnt.copy().scale is learnt.scale
          True
        """
        return type(self)(OrderedDict(self))

    def __or__(self, other: Any) -> Any:
        found = type(self)(OrderedDict(self))
        found.update(other)
        return found

    def __ior__(self, other: Any) -> Self:  # type: ignore[override]  # what dict takes, and gives itself
        self.update(other)
        return self

    def __getattr__(self, name: str) -> Any:
        return _entry(self, name)


def _learnt(value: Any) -> Any:
    """A tensor as a parameter, unless it requires no gradient; anything else as it is."""
    return parameter(value) if isinstance(value, Tensor) and value._wish is not False else value


def _in_order(parameters: Any) -> Any:
    """What a dict takes over: a plain dict in the order of its names."""
    if isinstance(parameters, (ParameterDict, OrderedDict)) or not isinstance(parameters, Mapping):
        return parameters
    return sorted(parameters.items())


def _entry(owner: dict[str, Any], name: str) -> Any:
    """What a dict of layers or tensors has under a name."""
    if name in owner:
        return owner[name]
    kind = type(owner).__name__
    refused("nn.Module", name, f"{kind!r} object has no attribute {name!r}, and there is no such key")


class Identity(Layer):
    """The tensor itself, whatever else is given when it is made.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.Identity()(Tensor([1, 2]))
      Tensor([1, 2])
    """

    def __init__(self, *args: object, **kwargs: object) -> None:
        pass

    def forward(self, x: Tensor) -> Tensor:
        """``x``."""
        return x
