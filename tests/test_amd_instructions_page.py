"""docs/amd_instructions.md says what the software cards of AMD execute."""

from __future__ import annotations

import re

from tools import amd_instructions


def test_the_page_is_what_is_executed() -> None:
    text = amd_instructions.PAGE.read_text(encoding="utf-8")
    assert amd_instructions.page() == text, "run python -m tools.amd_instructions"


def test_most_are_executed() -> None:
    """Of every architecture; and none is counted that is not decoded."""
    text = amd_instructions.PAGE.read_text(encoding="utf-8")
    last = next(line for line in text.splitlines() if line.startswith("| all |"))
    pairs = [(int(done), int(of)) for done, of in re.findall(r"(\d+) of (\d+)", last)]
    assert len(pairs) == len(amd_instructions.ARCHS) and all(0.7 * of < done <= of for done, of in pairs)
