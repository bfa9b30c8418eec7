"""Fixtures of the frontend's tests: the interpreted device unless a test asks for the compiled one, and fixed seeds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tg_frontend import Tensor
from tg_lazy import Context
from tg_runtime import Device


@pytest.fixture(scope="session", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("cache")
    os.environ["CACHEDIR"] = str(folder)  # for the processes that tests start
    with Context(CACHEDIR=str(folder)):
        yield
    del os.environ["CACHEDIR"]


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
