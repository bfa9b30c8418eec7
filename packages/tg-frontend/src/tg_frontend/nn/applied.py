"""A method of Tensor as a layer: its settings are given once, its operands with each call."""

from __future__ import annotations

from inspect import Parameter, Signature, signature

from ..spellings import reached
from .describing import settings_of, shows
from .functional.ordered import ADDED, extras
from .module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, ClassVar

OPERANDS = frozenset(
    "x input Y target other positive negative var indices targets input_lengths target_lengths log_probs".split()
)
"""What arguments of methods are called that are given with each call."""


class Applied(Module):
    """A layer that calls a method of Tensor with settings of its own.

    Settings are the arguments of the method that are no operands, by position or by name, in any spelling that the
    method takes. They are attributes of the layer.

    Attributes:
      positional: settings that may be given without their names, in this order, where that is not the method's.
      defaults: settings that are other ones here than in the method.
      names: what PyTorch's layer calls its settings, where no method does, with the names here.
      inplace: whether the result is written to the input; for layers that take it.

    Raises:
      TypeError: if the method has no such setting; told when the layer is made.
    """

    _method: ClassVar[Callable[..., Any]]
    positional: ClassVar[tuple[str, ...] | None] = None
    names: ClassVar[Mapping[str, str]] = {}
    in_place: ClassVar[bool] = False  # whether it takes ``inplace``
    inplace = False
    __signature__: ClassVar[Signature]
    defaults: ClassVar[Mapping[str, object]] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        own, order, name = self._own(), self._order(), type(self).__name__
        if len(args) > len(order):
            raise TypeError(f"{name}() takes {len(order)} settings without a name at most, got {len(args)}")
        given = dict(zip(order, args, strict=False))
        spelled = {key: key if key in order else _own_name(key, own, name) for key in kwargs}
        if twice := [key for key, known in spelled.items() if known in given]:
            raise TypeError(f"{name}: {twice[0]!r} is given twice")
        given.update({spelled[key]: value for key, value in kwargs.items()})
        if twisted := [key for key, value in given.items() if isinstance(value, complex)]:
            raise TypeError(f"{name}: {twisted[0]} is no complex number, got {given[twisted[0]]!r}")
        inplace = extras(given, order, name)
        missing = [p.name for p in own if p.default is Parameter.empty and p.name not in given]
        if missing:
            raise TypeError(f"{name}: {missing[0]!r} is missing")
        self._given = (*self.defaults, *(key for key in given if key not in self.defaults))
        self._known = tuple(p.name for p in own if p.name != "training")
        vars(self).update({p.name: p.default for p in own if p.name != "training"}, **self.defaults)
        vars(self).update(given)
        if inplace:
            self.inplace = True
        self._check()

    def _check(self) -> None:
        """Raises an error if a setting is out of range; not all layers look before they are called."""

    _tree = False

    def __init_subclass__(cls) -> None:
        """Says what the layer takes, for ``inspect.signature`` and help()."""
        super().__init_subclass__()
        if hasattr(cls, "_method"):
            known = {p.name: p for p in cls._own()}
            order = list(cls._order())
            defaults = {**ADDED, **cls.defaults}
            cls.__signature__ = Signature([
                Parameter(
                    key, Parameter.POSITIONAL_OR_KEYWORD if key in order else Parameter.KEYWORD_ONLY,
                    default=defaults[key] if key in defaults else known[key].default,
                )
                for key in (*order, *(key for key in known if key not in order and key != "training"))
            ])  # fmt: skip

    if not TYPE_CHECKING:  # who checks types is to see that a name is not there

        def __getattr__(self, name: str) -> Any:
            known = self._other_name(name)
            return super().__getattr__(name) if known is None else vars(self)[known]

        def __setattr__(self, name: str, value: Any) -> None:
            known = None if name in vars(self) else self._other_name(name)
            super().__setattr__(known or name, value)

    def _other_name(self, name: str) -> str | None:
        """The setting that has another name in PyTorch's layer; None if that is none."""
        names = vars(self).get("_known", ())
        found = self.names.get(name) or (None if name.startswith("_") else reached(name, names))
        return found if found in names else None

    @classmethod
    def _own(cls) -> list[Parameter]:
        """The arguments of the method that are settings."""
        left_out = (*OPERANDS, *ADDED)
        return [p for p in signature(cls._method).parameters.values() if p.name not in left_out]

    @classmethod
    def _order(cls) -> tuple[str, ...]:
        """The settings that may be given without a name, and those of PyTorch's that stand among them."""
        order = tuple(p.name for p in cls._own()) if cls.positional is None else cls.positional
        return (*order, "inplace") if cls.in_place and "inplace" not in order else order

    def _settings(self) -> dict[str, Any]:
        """What the method is called with beside operands."""
        own = vars(self)
        return {key: own[key] for key in self._known}

    def forward(self, *operands: Any, **named: Any) -> Any:
        """What the method makes of ``x`` and the other operands."""
        try:
            out = type(self)._method(*operands, **named, **self._settings())
        except (TypeError, ValueError, IndexError) as error:
            if len(error.args) == 1 and isinstance(error.args[0], str):
                error.args = (f"{type(self).__name__}: {error.args[0]}",)
            raise
        return self._given_back(out, (*operands, *named.values()))

    def _given_back(self, out: Any, operands: tuple[Any, ...]) -> Any:
        """The result; if it is to be in place of the input, the input with it."""
        if not self.inplace:
            return out
        operands[0][...] = out
        return operands[0]

    def extra_repr(self) -> str:
        """The settings that are shown: PyTorch's choice, else those that were given.

        Example:
          >>> from tg_frontend import nn
          >>> nn.LeakyReLU(0.5).extra_repr()
          'negative_slope=0.5'
        """
        if shows(self) is not None:
            return settings_of(self)
        own = vars(self)
        return ", ".join(f"{key}={own[key]!r}" for key in self._given)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.extra_repr()})"


class Windowed(Applied):
    """A pool, which remembers its windows as PyTorch's do: the stride where none was given, and numbers for each axis.

    Attributes:
      per_axis: how many numbers each setting of windows is remembered as; 0 where it stays as it was given.
    """

    per_axis: ClassVar[int] = 0

    def _check(self) -> None:
        own = vars(self)
        if own.get("stride", 0) is None:
            own["stride"] = own["kernel_size"]
        for name in ("kernel_size", "stride", "padding", "output_size", "output_ratio"):
            if self.per_axis and isinstance(own.get(name), (int, float)):
                own[name] = (own[name],) * self.per_axis


def _own_name(given: str, parameters: list[Parameter], layer: str) -> str:
    """What the method calls a setting."""
    names = [p.name for p in parameters]
    found = reached(given, names)
    if found is None:
        raise TypeError(f"{layer}() got an unexpected keyword {given!r}; it takes {', '.join(names) or 'no settings'}")
    return found
