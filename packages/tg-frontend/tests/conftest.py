"""Fixtures of the frontend's tests: the interpreted device unless a test asks for the compiled one, and fixed seeds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tg_frontend import Tensor
from tg_lazy import Context
from tg_runtime import Device


@pytest.fixture(autouse=True)
def _interpreted() -> Iterator[None]:
    with Context(DEV="NUMPY"):
        Tensor.manual_seed(0)
        yield


@pytest.fixture(params=["NUMPY", "CPU"])
def backend(request: pytest.FixtureRequest) -> Iterator[str]:
    """The test runs on the interpreted device, and again compiled."""
    name = str(request.param)
    if name not in Device.available():
        pytest.skip(f"the device {name} is not available here")
    with Context(DEV=name):
        yield name


@pytest.fixture
def source() -> Path:
    """The folder of the package's modules."""
    return Path(__file__).parents[1] / "src" / "tg_frontend"
