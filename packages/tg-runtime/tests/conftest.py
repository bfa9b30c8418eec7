"""Fixtures of the runtime's tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tg_lazy import Context


@pytest.fixture
def cache_folder(tmp_path: Path) -> Iterator[Path]:
    """An empty cache folder, in force for one test."""
    with Context(CACHEDIR=str(tmp_path / "cache")):
        yield tmp_path / "cache"
