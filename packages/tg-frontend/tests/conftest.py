"""Fixtures of the frontend's tests."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tg_frontend import TinyJit
from tg_lazy import Context
from tg_runtime import Device


@pytest.fixture(params=["NUMPY", "CPU"])
def backend(request: pytest.FixtureRequest) -> Iterator[str]:
    """The test runs on the interpreted device, and again compiled."""
    name = str(request.param)
    if name not in _available():
        pytest.skip(f"the device {name} is not available here")
    with Context(DEV=name):
        yield name


@cache
def _available() -> list[str]:
    """The devices that can be opened here, looked for once: thousands of tests ask."""
    return Device.available()


@pytest.fixture
def source() -> Path:
    """The folder of the package's modules."""
    return Path(__file__).parents[1] / "src" / "tg_frontend"


@pytest.fixture
def no_warning() -> Iterator[None]:
    """Warnings are errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.fixture
def recorded() -> Callable[..., Any]:
    """Makes a TinyJit of a function that has a record; arguments that are functions make one for each call."""

    def record(function: Any, *args: Any) -> Any:
        jitted = TinyJit(function)
        for _ in range(3):
            jitted(*[arg() if callable(arg) else arg for arg in args])
        assert jitted.captured is not None
        return jitted

    return record
