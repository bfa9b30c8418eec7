"""The README's code runs."""

from __future__ import annotations

from pathlib import Path

import pytest

BLOCKS = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8").split("```python\n")[1:]


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_example(block: str) -> None:
    exec(compile(block.split("```")[0], "README.md", "exec"), {"__name__": "readme"})


def test_there_is_an_example() -> None:
    assert BLOCKS
