"""States of optimisers as files and PyTorch have them."""

from __future__ import annotations

from tg_dtype import dtypes

from ...tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def nested_of(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Dicts in place of dotted names."""
    out: dict[str, Any] = {}
    for name, value in flat.items():
        inner = out
        *path, last = str(name).split(".")
        for part in path:
            inner = inner.setdefault(part, {})
        inner[last] = value
    return out


def setting_of(value: Any) -> Any:
    """A setting of a state: a tensor of PyTorch's as the number that it holds, a list as a tuple."""
    if isinstance(value, (list, tuple)):
        return tuple(map(setting_of, value))
    return value.item() if type(value).__module__ == "torch" and value.numel() == 1 else value


def tensor_of(value: Any, like: Tensor | None) -> Any:
    """What a state holds as a tensor, in the shape of what is kept if that has one element, too."""
    if isinstance(value, (int, float)):
        value = Tensor(float(value), dtype=dtypes.float32)
    if like is not None and type(value).__module__ == "torch":
        value = Tensor.from_dlpack(value.detach().cpu().contiguous(), copy=True)
    if like is not None and isinstance(value, Tensor) and value.numel() == like.numel() == 1:
        return value.reshape(like.shape)
    return value
