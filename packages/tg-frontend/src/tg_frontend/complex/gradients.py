"""Gradients at complex tensors, by PyTorch's convention: that of a real number L is dL/dRe + i dL/dIm.

So it points where L grows fastest, and is what the gradients at the parts are put together to.
"""

from __future__ import annotations

from ..autograd.hooks import Handle, Handles, hooks_of, pair_up
from ..autograd.pairs import After
from .parts import composed, is_complex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def grad_of(z: Any) -> Any:
    """The gradients of both parts; where there is one of either, the other gets zeros for its own."""
    found = [part.grad for part in z._parts]
    if found[0] is None and found[1] is None:
        return None
    for part in z._parts:
        if part.grad is None:
            part.grad = part.zeros_like().detach()
    return composed(*[part.grad for part in z._parts])


def set_grad(z: Any, value: Any) -> None:
    """Sets the gradients of both parts.

    Raises:
      TypeError: if the value is neither a complex tensor nor None.
      ValueError: if it has another shape or dtype, or is on another device.
    """
    if value is not None and not is_complex(value):
        raise TypeError(f"grad: a tensor of {z.dtype.name} or None is wanted")
    if value is not None and (value.shape, value.dtype, value.device) != (z.shape, z.dtype, z.device):
        raise ValueError(
            f"grad: one of shape {value.shape}, {value.dtype.name} on {value.device} for a tensor of shape {z.shape}, "
            f"{z.dtype.name} on {z.device}"
        )
    for part, one in zip(z._parts, (None, None) if value is None else value._parts, strict=True):
        part.grad = one


def wishes(z: Any) -> bool | None:
    """Whether a gradient is wanted of either part."""
    found = [part._wish for part in z._parts]
    return True if True in found else None if None in found else False


def set_wishes(z: Any, value: Any) -> None:
    """Says it of both parts."""
    for part in z._parts:
        part._wish = value


def requires_grad_(z: Any, requires_grad: bool = True) -> Any:
    set_wishes(z, requires_grad)
    return z


def register_hook(z: Any, function: Any) -> Any:
    if not callable(function):
        raise TypeError(f"register_hook: a function of the gradient is wanted, got {function!r}")
    if z._wish is False:
        raise RuntimeError(f"register_hook: a tensor of shape {z.shape} that refuses a gradient never gets one")
    return pair_up(z, function)


def register_post_accumulate_grad_hook(z: Any, function: Any) -> Any:
    what = "register_post_accumulate_grad_hook"
    if not callable(function):
        raise TypeError(f"{what}: a function of the tensor is wanted, got {function!r}")
    if z._wish is False or not z.is_leaf:
        raise RuntimeError(f"{what}: a leaf that may get a gradient is wanted; this tensor of shape {z.shape} is none")
    after = After(z, function)
    return Handles([Handle(hooks_of(part).after, after) for part in z._parts])


def retain_grad(z: Any) -> Any:
    for part in z._parts:
        part.retain_grad()
    return z


def detach_(z: Any) -> Any:
    for part in z._parts:
        part.detach_()
    return z


def _weighted(z: Any, gradient: Any, what: str) -> Any:
    """The real number whose gradient is meant: the real part of the product with the conjugate."""
    if gradient is None:
        raise RuntimeError(
            f"{what}: gradients are of real numbers, this tensor is of {z.dtype.name}; take .real or .abs() of it, or "
            "give the gradient of something real at it"
        )
    if gradient.shape != z.shape:
        raise ValueError(f"{what}: the gradient has shape {gradient.shape}, the tensor {z.shape}")
    a, b = z._parts
    if not is_complex(gradient):
        return (a * gradient).sum()
    return (a * gradient._parts[0]).sum() + (b * gradient._parts[1]).sum()


def backward(
    z: Any, gradient: Any = None, retain_graph: Any = None, create_graph: bool = False, inputs: Any = None
) -> Any:
    if not is_complex(z):
        raise TypeError(f"backward: a complex gradient at a tensor of {z.dtype.name}")
    _weighted(z, gradient, "backward").backward(
        retain_graph=retain_graph, create_graph=create_graph, inputs=inputs
    )
    return z


def gradient(z: Any, *targets: Any, gradient: Any = None, **kwargs: Any) -> Any:
    if not is_complex(z):
        raise TypeError(f"gradient: a complex gradient at a tensor of {z.dtype.name}")
    return _weighted(z, gradient, "gradient").gradient(*targets, **kwargs)
