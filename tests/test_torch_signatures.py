"""Arguments of what has a name of PyTorch's, beside PyTorch's: their order, their names and their defaults."""

from __future__ import annotations

import pytest
from tools.torch_parity import signatures
from tools.torch_parity.deliberate import SIGNATURES, reason


def test_arguments_are_those_of_pytorch() -> None:
    """What differs has a reason in tools/torch_parity/deliberate.py; and each reason is still one."""
    found = signatures.differences()
    assert sum(map(len, signatures.recorded_names().values())) > 1000
    assert [f"{name}: {said}" for name, each in found.items() for said in each
            if reason(name, said, SIGNATURES) is None] == []  # fmt: skip
    assert [one.names for one in SIGNATURES if not one.seen] == []


@pytest.mark.parametrize(
    ("name", "way", "said"),
    [
        ("Conv2d", "in_channels, kernel_size, out_channels", ["kernel_size stands where out_channels does",
                                                              "out_channels stands where kernel_size does"]),
        ("Linear", "in_features, out_features, bias=False", ["bias is False, here True"]),
        ("ReLU", "slope, inplace=False", ["inplace has to be named", "slope is not known",
                                          "slope stands where inplace does"]),
        ("CELU", "alpha=1.0, inplace=False, *, device=None", []),
    ],
)  # fmt: skip
def test_what_differs_is_found(name: str, way: str, said: list[str]) -> None:
    assert signatures.compared("nn", name, [way]) == said
