"""What makes a class of layers: checked calls, a text, and ``device`` and ``dtype`` when it is made."""

from __future__ import annotations

from functools import update_wrapper

from tg_lazy.graph.origin import WRAPPERS

from ..keywords import public
from ..tensor import Tensor
from .describing import described
from .module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    C = TypeVar("C", bound=type)

if TYPE_CHECKING:

    class Layer(Module):
        """A module that gives one tensor, as type checkers are told."""

        def __call__(self, *args: Any, **kwargs: Any) -> Tensor: ...

else:
    Layer = Module


def layer_class(kind: C) -> C:
    """A class of layers whose calls are checked, that says what it was made with, and that takes ``device`` and
    ``dtype`` as PyTorch's do: its tensors are moved there once they are made."""
    kind = described(public(kind))
    if "__init__" in vars(kind):
        setattr(kind, "__init__", placed(vars(kind)["__init__"]))  # noqa: B010
    return kind


def placed(init: Any) -> Any:
    """An ``__init__`` that also takes ``device`` and ``dtype``."""

    def __init__(self: Any, *args: Any, device: str | None = None, dtype: Any = None, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        if device is not None or dtype is not None:
            self.to(device=device, dtype=dtype)

    WRAPPERS.add(__init__.__code__)
    return update_wrapper(__init__, init)
