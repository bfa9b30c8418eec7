"""A method of Tensor as a layer: its settings are given once, its operands with each call."""

from __future__ import annotations

from inspect import Parameter, signature

from ..tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, ClassVar

OPERANDS = frozenset(
    "x Y target other positive negative var indices targets input_lengths target_lengths log_probs".split()
)
"""What arguments of methods are called that are given with each call."""


class Applied:
    """A layer that calls a method of Tensor with settings of its own.

    Settings are the arguments of the method that are no operands, by position or by name, in any spelling that the
    method takes.

    Attributes:
      positional: settings that may be given without their names, in this order, where that is not the method's.
      defaults: settings that are other ones here than in the method.

    Raises:
      TypeError: if the method has no such setting; told when the layer is made.
    """

    _method: ClassVar[Callable[..., Any]]
    positional: ClassVar[tuple[str, ...] | None] = None
    defaults: ClassVar[Mapping[str, object]] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        own = [p for p in signature(self._method).parameters.values() if p.name not in OPERANDS]
        name = type(self).__name__
        order = [p.name for p in own] if self.positional is None else self.positional
        if len(args) > len(order):
            raise TypeError(f"{name}() takes {len(order)} settings without a name at most, got {len(args)}")
        given = dict(zip(order, args, strict=False))
        spelled = {key: _own_name(key, own, name) for key in kwargs}
        if twice := [key for key, known in spelled.items() if known in given]:
            raise TypeError(f"{name}: {twice[0]!r} is given twice")
        given.update({spelled[key]: value for key, value in kwargs.items()})
        missing = [p.name for p in own if p.default is Parameter.empty and p.name not in given]
        if missing:
            raise TypeError(f"{name}: {missing[0]!r} is missing")
        self.settings = {**self.defaults, **given}

    def __call__(self, x: Tensor, *operands: Tensor) -> Any:
        """What the method makes of ``x`` and the other operands."""
        return type(self)._method(x, *operands, **self.settings)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in self.settings.items())})"


def _own_name(given: str, parameters: list[Parameter], layer: str) -> str:
    """What the method calls a setting."""
    from ..keywords import SPELLINGS

    names = [p.name for p in parameters]
    found = next((name for name in names if given == name or given in SPELLINGS.get(name, ())), None)
    if found is None:
        raise TypeError(f"{layer}() got an unexpected keyword {given!r}; it takes {', '.join(names) or 'no settings'}")
    return found
