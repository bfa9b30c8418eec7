"""Results that are written into tensors which are given for them: ``out=``, as PyTorch and numpy have it."""

from __future__ import annotations

from ..autograd.differentiation import MODE
from ..keywords import ArgumentError
from .becoming import adopt
from .writing import check_kinds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _is_tensor(value: Any) -> bool:
    return hasattr(type(value), "lazydata")


def _write(label: str, found: Any, out: Any) -> Any:
    """Writes one result to the memory of ``out``, cast; a tensor without elements takes the result's shape."""
    if not _is_tensor(out):
        raise TypeError(f"{label}: out is a tensor, got a {type(out).__name__}")
    if not _is_tensor(found):
        raise TypeError(f"{label}: out={type(out).__name__} for a result that is a {type(found).__name__}, no tensor")
    if MODE.recording and (found.requires_grad or out.requires_grad):
        raise RuntimeError(
            f"{label}: no gradient flows through memory: take the result instead of out=, or compute it in "
            "Tensor.no_grad()"
        )
    if found.device != out.device:
        raise ArgumentError(f"{label}: out is on {out.device}, the result on {found.device}")
    check_kinds(out.dtype, found.dtype, label)
    value = found.cast(out.dtype)
    if value.shape == out.shape:
        return out.assign(value)
    if out.numel() != 0:
        raise ArgumentError(f"{label}: out is of shape {out.shape}, the result of {value.shape}")
    for part, new in zip(out._floats(), value._floats(), strict=True):
        adopt(part, new)
    return out


def written(label: str, function: Callable[..., Any], names: list[str], args: Any, kwargs: dict[str, Any]) -> Any:
    """What a function gives that takes no ``out`` itself, written into the tensors that were given for it.

    Args:
      label: what the user called.
      function: is called with all arguments but ``out``.
      names: of its arguments: what makes a tensor of no other one makes it of the dtype and on the device of ``out``.

    Returns:
      The tensors that were written: one, or a tuple of the function's kind.

    Raises:
      TypeError: if ``out`` is not one tensor for each result.
      ValueError: if a shape differs, other than of a tensor without elements; a kind of number does not fit into
        that of ``out``; the devices differ.
      RuntimeError: if a gradient is required.
    """
    given = {name: value for name, value in kwargs.items() if name != "out"}
    out = kwargs["out"]
    outs = list(out) if isinstance(out, (tuple, list)) else [out]
    if not any(_has_tensor(value) for value in (*args, *given.values())) and _is_tensor(outs[0]):
        like = {"dtype": outs[0].dtype, "device": outs[0].device}
        given = {**{name: value for name, value in like.items() if name in names}, **given}
    found = function(*args, **given)
    if not isinstance(found, (tuple, list)):
        if len(outs) != 1:
            raise TypeError(f"{label}: out is {len(outs)} tensors for one result")
        return _write(label, found, outs[0])
    if len(found) != len(outs) or out is outs[0]:
        raise TypeError(f"{label}: out is a tuple of {len(found)} tensors, one for each result")
    done = [_write(label, one, place) for one, place in zip(found, outs, strict=True)]
    return type(found)(*done) if hasattr(found, "_fields") else type(found)(done)


def _has_tensor(value: Any) -> bool:
    return _is_tensor(value) or (isinstance(value, (tuple, list)) and any(_is_tensor(one) for one in value))
