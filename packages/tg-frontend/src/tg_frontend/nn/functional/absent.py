"""Names of PyTorch's ``nn.functional`` that are not there: what is used here instead."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_PROGRAMMING = "a part of how PyTorch's functions are written, not one of them"
_GROUPS = {
    "it is grouped_mm of what its scales multiply: grouped_mm(a.float() * scale, b)": "scaled_grouped_mm",
    "it is channel_shuffle": "native_channel_shuffle",
    "backward() and tinytg.grad compute gradients, nn.grad those of convolutions by themselves": "grad",
    _PROGRAMMING: "BroadcastingList1 BroadcastingList2 BroadcastingList3 Callable GRID_SAMPLE_INTERPOLATION_MODES "
    "GRID_SAMPLE_PADDING_MODES assert_int_or_pair boolean_dispatch handle_torch_function has_torch_function "
    "has_torch_function_unary has_torch_function_variadic",
}
INSTEAD = {name: said for said, names in _GROUPS.items() for name in names.split()}
"""What is used instead, by the name that is not there."""


def refused(name: str) -> NoReturn:
    """Says what is used instead of a name that is not there, where that is known."""
    said = f"module 'tinytg.nn.functional' has no attribute {name!r}"
    raise AttributeError(f"{said}: {INSTEAD[name]}" if name in INSTEAD else said, name=name)
