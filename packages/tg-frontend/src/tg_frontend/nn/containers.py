"""Containers of layers: lists and dicts of them, one of which is called as a whole."""

from __future__ import annotations

from ..keywords import public
from ..tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@public
class Sequential(list[object]):
    """Layers one after another: a list of callables that is called itself.

    Args:
      layers: callables of one tensor; or one list or dict of them.

    Raises:
      TypeError: if one is not callable.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> model = nn.Sequential(nn.Linear(3, 5), Tensor.relu, nn.Linear(5, 2))
      >>> model(Tensor.ones(7, 3)).shape, sorted(nn.state.get_state_dict(model))
      ((7, 2), ['0.bias', '0.weight', '2.bias', '2.weight'])
    """

    def __init__(self, *layers: Any) -> None:
        only = layers[0] if len(layers) == 1 else None
        listed = only.values() if isinstance(only, dict) else only if isinstance(only, (list, tuple)) else layers
        super().__init__(listed)
        for layer in self:
            if not callable(layer):
                raise TypeError(f"Sequential: {layer!r} is no layer: it cannot be called")

    def __call__(self, x: Tensor) -> Tensor:
        """What the last layer makes of what the one before it makes, and so on."""
        return x.sequential(self)


class ModuleList(list[object]):
    """A list of layers, as any list is.

    Example:
      >>> from tg_frontend import nn
      >>> len(nn.state.get_parameters(nn.ModuleList([nn.Linear(2, 3), nn.Linear(3, 2)])))
      4
    """


class ModuleDict(dict[str, object]):
    """Layers by name, as any dict.

    Example:
      >>> from tg_frontend import nn
      >>> sorted(nn.state.get_state_dict(nn.ModuleDict({"up": nn.Linear(2, 3)})))
      ['up.bias', 'up.weight']
    """


class Identity:
    """The tensor itself, whatever else is given when it is made.

    Example:
      >>> from tg_frontend import Tensor, nn
      >>> nn.Identity()(Tensor([1, 2]))
      Tensor([1, 2])
    """

    def __init__(self, *args: object, **kwargs: object) -> None:
        pass

    def __call__(self, x: Tensor) -> Tensor:
        """``x``."""
        return x

    def __repr__(self) -> str:
        return "Identity()"
