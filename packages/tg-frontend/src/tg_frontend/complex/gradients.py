"""Gradients at complex tensors, by PyTorch's convention: that of a real number L is dL/dRe + i dL/dIm.

So it points where L grows fastest, and is what the gradients at the parts are put together to.
"""

from __future__ import annotations

from .parts import composed, is_complex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def grad_of(z: Any) -> Any:
    """The gradients of both parts."""
    found = [part.grad for part in z._parts]
    if found[0] is None and found[1] is None:
        return None
    filled = [part.zeros_like() if one is None else one for part, one in zip(z._parts, found, strict=True)]
    return composed(*filled)


def set_grad(z: Any, value: Any) -> None:
    """Sets the gradients of both parts."""
    if value is not None and not is_complex(value):
        raise TypeError(f"grad: a tensor of {z.dtype.name} or None is wanted")
    for part, one in zip(z._parts, (None, None) if value is None else value._parts, strict=True):
        part.grad = one


def wishes(z: Any) -> bool | None:
    """Whether a gradient is wanted of either part."""
    found = [part.requires_grad for part in z._parts]
    return True if True in found else None if None in found else False


def set_wishes(z: Any, value: Any) -> None:
    """Says it of both parts."""
    for part in z._parts:
        part.requires_grad = value


def requires_grad_(z: Any, requires_grad: bool = True) -> Any:
    set_wishes(z, requires_grad)
    return z


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
