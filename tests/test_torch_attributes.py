"""Attributes of tensors beside those of PyTorch's, from its record."""

from __future__ import annotations

import pytest
from tools.torch_parity import attributes
from tools.torch_parity.deliberate import ATTRIBUTES

from tinytg import Tensor


def test_attributes_are_those_of_pytorch() -> None:
    """What differs has a reason in tools/torch_parity/deliberate.py; and each reason is still one."""
    rows = attributes.rows()
    assert len(rows) > 30 and all(row.tried == len(attributes.SPECIMENS) for row in rows)
    assert [f"{row.name}: {note}" for row in rows for note in row.notes if not note.startswith("meant")] == []
    assert [one.names for one in ATTRIBUTES if not one.seen] == []


def test_what_differs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tensor, "itemsize", 3)
    monkeypatch.delattr("tg_frontend.array.Array.is_meta")
    found = {row.name: row.state() for row in attributes.rows()}
    assert found["itemsize"] == "differs" and found["is_meta"] == "refuses" and found["is_nested"] == "same"
