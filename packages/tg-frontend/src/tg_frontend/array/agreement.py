"""The parts of a complex tensor, of which gradients are wanted together."""

from __future__ import annotations

from ..autograd.differentiation import MODE
from ..autograd.functions import Beside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def agreed(real: Any, imag: Any) -> tuple[Any, Any]:
    """Both parts, of which a gradient is wanted where one is wanted of either, or may be."""
    wish, other = real._wish, imag._wish
    if wish is not other:
        strong, weak = (real, imag) if wish is True or other is False else (imag, real)
        if strong._wants_grad is None:
            weak._wants_grad = None
        elif MODE.recording:
            same = beside(shadow(weak), strong)
            weak._ctx, weak._wants_grad = same._ctx, same._wants_grad
    return real, imag


def beside(part: Any, other: Any) -> Any:
    """A part, of which a gradient is wanted where one is of the other part."""
    return part._apply(Beside(), shadow(other))


def shadow(x: Any) -> Any:
    """Another tensor with the content and the graph that a tensor has now; without its hooks."""
    out = x._wrap(x.lazydata, x._wants_grad)
    out._ctx = x._ctx
    return out
