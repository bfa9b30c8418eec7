"""Layers, optimisers and models as text."""

from __future__ import annotations

from inspect import signature, unwrap

from ..array.printing import number_of
from ..tensor import Tensor
from .state import parts_of
from .texts import SHOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    C = TypeVar("C", bound=type)


HOOKS = ("_hooks",)
"""Attributes of a Module that are no parts of it."""


_SELDOM = frozenset(
    "padding_mode max_norm norm_type scale_grad_by_freq sparse decoupled_weight_decay process_group".split()
)
"""Settings that are shown where they are not what they are by default."""


def _arguments(obj: Any) -> str:
    """What an object was made with, as far as it remembers it in attributes of those names."""
    function: Any = unwrap(type(obj).__init__)
    code = function.__code__
    shown = []
    given = function.__defaults__ or ()
    usual = dict(zip(code.co_varnames[code.co_argcount - len(given) : code.co_argcount], given, strict=True))
    usual |= function.__kwdefaults__ or {}
    for name in code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]:
        if name in ("affine", "elementwise_affine"):
            value: Any = getattr(obj, "weight", None) is not None
        elif not hasattr(obj, name):
            continue
        else:
            value = getattr(obj, name)
            if name in _SELDOM and not isinstance(value, Tensor) and value == usual.get(name, value):
                continue
        if name == "bias":
            value = value is not None
        if isinstance(value, Tensor) and value.numel() == 1:
            shown.append(f"{name}={number_of(value)}")
        elif name not in ("params", "b1", "b2"):  # which betas are
            shown.append(f"{name}={value!r}")
    return ", ".join(shown)


def shows(obj: Any) -> str | None:
    """Which settings of a layer are shown, as :mod:`.texts` says; None if it says nothing."""
    return next((SHOWN[kind.__name__] for kind in type(obj).__mro__ if kind.__name__ in SHOWN), None)


def settings_of(obj: Any) -> str:
    """What the text of a layer shows between its parentheses: PyTorch's choice, else what it was made with."""
    spec = shows(obj)
    if spec is None:
        return _arguments(obj)
    usual = {name: one.default for name, one in signature(type(obj)).parameters.items()}
    shown = []
    for item in spec.split():
        name = item.strip("*?!")
        value: Any = getattr(obj, name, None)
        if name == "bias":
            value = value is not None and value is not False
        if isinstance(value, Tensor) and value.numel() == 1:
            value = number_of(value)
        if "?" in item and _each(value) == _each(usual.get(name, 0)):
            continue
        text = repr(value) if "!" in item else str(value)
        shown.append(text if "*" in item else f"{name}={text}")
    return ", ".join(shown)


def _each(value: Any) -> Any:
    """One number where it is the same for each axis."""
    alike = isinstance(value, (tuple, list)) and value and all(part == value[0] for part in value)
    return value[0] if alike else value


def _layer_text(self: Any) -> str:
    return f"{type(self).__name__}({self.extra_repr()})"


def _optimizer_text(self: Any) -> str:
    count, elements = len(self.params), sum(int(p.numel()) for p in self.params)
    rest = _arguments(self)
    tensors = f"{count} tensor{'s' if count != 1 else ''} of {elements} element{'s' if elements != 1 else ''}"
    return f"{type(self).__name__}({tensors}{', ' if rest else ''}{rest})"


def described(kind: C) -> C:
    """A class of layers or optimisers that says what it was made with."""
    setattr(kind, "__repr__", _optimizer_text if hasattr(kind, "schedule_step") else _layer_text)  # noqa: B010
    if not hasattr(kind, "schedule_step") and "extra_repr" not in vars(kind):
        setattr(kind, "extra_repr", settings_of)  # noqa: B010
    setattr(kind, "_tree", False)  # noqa: B010
    return kind


def describe(model: Any) -> str:
    """A model as a tree of its layers; tensors by shape and dtype.

    Args:
      model: a layer, a list or dict of layers, or any object that has layers or tensors as attributes.

    Example:
      >>> from tg_frontend import nn
      >>> print(nn.describe([nn.Linear(2, 3), nn.RMSNorm(3)]))
      [
        (0): Linear(in_features=2, out_features=3, bias=True)
        (1): RMSNorm((3,), eps=None, elementwise_affine=True)
      ]
    """
    return "\n".join(_lines("", model, ""))


def _lines(name: str, value: Any, indent: str, inside: tuple[int, ...] = ()) -> list[str]:
    head = f"{indent}{f'({name}): ' if name else ''}"
    if isinstance(value, Tensor):
        grad = ", requires_grad=True" if value._wish else ""
        return [f"{head}Tensor of shape {value.shape}, {value.dtype.name}{grad}"]
    if id(value) in inside:
        return [f"{head}{type(value).__name__} (see above)"]
    below = (*inside, id(value))
    tree = getattr(value, "_tree", False)
    if isinstance(value, (list, tuple, dict)) and not tree:
        items = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
        opening, closing = "{}" if isinstance(value, dict) else "()" if isinstance(value, tuple) else "[]"
    else:
        own = not tree and any("__repr__" in vars(kind) for kind in type(value).__mro__[:-1])
        if own or not hasattr(value, "__dict__") or isinstance(value, type) or hasattr(value, "__code__"):
            first, *more = (getattr(value, "__qualname__", None) or repr(value)).split("\n")
            return [f"{head}{first}", *(f"{indent}{line}" for line in more)]
        items = [(key, part) for key, part in parts_of(value) if key not in HOOKS and _is_part(part)]
        opening, closing = f"{type(value).__name__}({value.extra_repr() if tree else ''}", ")"
    parts = [line for key, part in items for line in _lines(str(key), part, f"{indent}  ", below)]
    return [f"{head}{opening}", *parts, f"{indent}{closing}"] if parts else [f"{head}{opening}{closing}"]


def _is_part(value: Any) -> bool:
    """Whether a value belongs in the tree: what holds tensors, or computes."""
    if isinstance(value, (list, tuple, dict)):
        return any(_is_part(part) for part in (value.values() if isinstance(value, dict) else value))
    return isinstance(value, Tensor) or callable(value) or (hasattr(value, "__dict__") and not isinstance(value, type))
