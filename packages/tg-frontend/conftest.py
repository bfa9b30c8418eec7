"""Tests and examples of the frontend: the interpreted device unless one asks for another, and fixed seeds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tg_frontend import Tensor
from tg_lazy import Context


@pytest.fixture(autouse=True)
def _interpreted() -> Iterator[None]:
    with Context(DEV="NUMPY"):
        Tensor.manual_seed(0)
        yield
