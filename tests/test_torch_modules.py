"""Layers beside PyTorch's, from its record: states, results and texts of one sample of each class."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from tools.torch_parity.deliberate import MODULES, reason
from tools.torch_parity.modules import RECORD, again

from tg_runtime import Context
from tinytg import nn

RECORDED = json.loads(RECORD.read_text(encoding="utf-8"))
_NAMES = sorted(RECORDED)


@pytest.fixture(autouse=True)
def _numpy() -> Iterator[None]:
    with Context(DEV="NUMPY"):
        yield


@pytest.mark.parametrize("share", range(4))
def test_layers_are_those_of_pytorch(share: int) -> None:
    """What differs has a reason in tools/torch_parity/deliberate.py."""
    found = {name: again(name, RECORDED[name]) for name in _NAMES[share::4]}
    assert [f"{name}: {said}" for name, said in found.items()
            if said is not None and reason(name, f"differs {said}", MODULES) is None] == []  # fmt: skip


def test_nearly_all_are_recorded() -> None:
    assert len(RECORDED) > 100


def test_what_differs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    case = RECORDED["Linear"]
    assert again("Linear", case) is None
    monkeypatch.setattr(nn.Linear, "forward", lambda layer, input: input.linear(layer.weight.T))
    assert "values" in (again("Linear", case) or "")
    monkeypatch.undo()
    monkeypatch.setattr(nn.Linear, "extra_repr", lambda _: "")
    assert (again("Linear", case) or "").startswith("text Linear(in_features")
    with pytest.raises(TypeError):
        again("Linear", {**case, "kwargs": {"depth": 3}})
