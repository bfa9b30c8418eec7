"""Public names of PyTorch, numpy and tinygrad are here, or an error says in words what is used instead."""

from __future__ import annotations

import pytest
from tools.torch_parity.names import homes, state, written

HOMES = homes()

@pytest.mark.parametrize("place", list(written()))
def test_no_name_misses_without_a_word(place: str) -> None:
    names = written()[place]
    assert names and len(set(names)) == len(names)
    missing = {name for name in names if state(HOMES[place], name)[0] == "missing"}
    assert not missing


def test_a_name_that_misses_is_seen() -> None:
    assert state(HOMES["torch"], "no_such_name") == ("missing", "")
    assert state(HOMES["torch.Tensor"], "no_such_name") == ("missing", "")
    assert state(HOMES["torch.linalg"], "no_such_name") == ("missing", "")
    assert state(HOMES["torch"], "LongTensor")[0] == "words"
    assert state(HOMES["torch.Tensor"], "to_sparse")[0] == "words"
    assert state(HOMES["torch.Tensor"], "mT") == ("here", "")
