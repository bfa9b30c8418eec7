"""Fixtures for the runtime's tests: every test has a cache folder of its own session."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tg_lazy import Context


@pytest.fixture(scope="session", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("cache")
    os.environ["CACHEDIR"] = str(folder)  # for the processes that tests start
    with Context(CACHEDIR=str(folder)):
        yield
    del os.environ["CACHEDIR"]


@pytest.fixture
def cache_folder(tmp_path: Path) -> Iterator[Path]:
    """An empty cache folder, in force for one test."""
    with Context(CACHEDIR=str(tmp_path / "cache")):
        yield tmp_path / "cache"
