"""Results that are written into tensors which are given for them: ``out=``, as PyTorch and numpy have it."""

from __future__ import annotations

from tg_lazy.trackers import writes_once

from ..autograd.differentiation import MODE
from ..keywords import ArgumentError
from .becoming import adopt
from .computing import copied
from .writing import brings, check_kinds, place_of, several_places

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _is_tensor(value: Any) -> bool:
    return hasattr(type(value), "lazydata")


def _checked(label: str, found: Any, out: Any) -> list[tuple[Any, Any]]:
    """The parts of ``out``, each with what is written to it; nothing is written yet."""
    if not _is_tensor(out):
        raise TypeError(f"{label}: out is a tensor, got a {type(out).__name__}")
    if not _is_tensor(found):
        raise TypeError(f"{label}: out={type(out).__name__} for a result that is a {type(found).__name__}, no tensor")
    if MODE.recording and (out._wish or any(brings(part) for part in found._floats())):
        raise RuntimeError(
            f"{label}: no gradient flows through memory: take the result instead of out=, or compute it in "
            "Tensor.no_grad()"
        )
    if found.device != out.device:
        raise ArgumentError(f"{label}: out is on {out.device}, the result on {found.device}")
    check_kinds(out.dtype, found.dtype, label)
    values = [copied(part) for part in found.cast(out.dtype)._floats()]  # as of now, if they are views of an out
    pairs = list(zip(out._floats(), values, strict=True))
    if found.shape == out.shape:
        if not all(writes_once(place_of(part)) for part, _ in pairs):
            raise RuntimeError(f"{label}: {several_places(out.shape)}")
    elif out.numel() != 0:
        raise ArgumentError(f"{label}: out is of shape {out.shape}, the result of {found.shape}")
    elif any(part._ctx is not None and part._wish for part, _ in pairs):
        raise RuntimeError(
            f"{label}: out, of shape {out.shape}, was computed from what requires a gradient: it takes no other shape"
        )
    return pairs


def _write(pairs: list[tuple[Any, Any]]) -> None:
    """Writes parts of results to memory; a tensor without elements takes the result's shape."""
    for part, new in pairs:
        if part.shape == new.shape:
            part.assign(new)
        else:
            adopt(part, new)


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
        that of ``out``; the devices differ. Nothing is written then, of several results either.
      RuntimeError: if a gradient is required, or may be wanted by parameters of layers. Or several elements of
        ``out`` are one place in memory.
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
        _write(_checked(label, found, outs[0]))
        return outs[0]
    if len(found) != len(outs) or out is outs[0]:
        raise TypeError(f"{label}: out is a tuple of {len(found)} tensors, one for each result")
    checked = [_checked(label, one, place) for one, place in zip(found, outs, strict=True)]
    for pairs in checked:
        _write(pairs)
    return type(found)(*outs) if hasattr(found, "_fields") else type(found)(outs)


def _has_tensor(value: Any) -> bool:
    return _is_tensor(value) or (isinstance(value, (tuple, list)) and any(_is_tensor(one) for one in value))
