"""Names that other libraries have on their tensors and this one has not: what is used here instead."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

INSTEAD = {
    "callify": "TinyJit records a function with its kernels, and replays them",
    "custom_kernel": (
        "a kernel is written as a Tensor expression, which is fused; loops are scan and while_loop, gradients of one's "
        "own are Function; UOps are compiled by tg_codegen, beneath tensors"
    ),
}
"""What is used instead, by the name that is not there."""


def refused(x: Any, name: str) -> NoReturn:
    """Called for what is not found: says what is used instead, where that is known."""
    said = f"{type(x).__name__!r} object has no attribute {name!r}"
    raise AttributeError(f"{said}: {INSTEAD[name]}" if name in INSTEAD else said, name=name, obj=x)
