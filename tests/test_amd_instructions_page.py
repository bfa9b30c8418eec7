"""docs/amd_instructions.md says what the software cards of AMD execute."""

from __future__ import annotations

import re

from tools import amd_instructions
from tools.amd_refused import REASONS, reason


def test_the_page_is_what_is_executed() -> None:
    text = amd_instructions.PAGE.read_text(encoding="utf-8")
    assert amd_instructions.page() == text, "run python -m tools.amd_instructions"


def test_most_are_executed() -> None:
    """Of every architecture; and none is counted that is not decoded."""
    text = amd_instructions.PAGE.read_text(encoding="utf-8")
    last = next(line for line in text.splitlines() if line.startswith("| all |"))
    pairs = [(int(done), int(of)) for done, of in re.findall(r"(\d+) of (\d+)", last)]
    assert len(pairs) == len(amd_instructions.ARCHS) and all(0.7 * of < done <= of for done, of in pairs)


def test_each_refusal_has_a_reason() -> None:
    """And no reason is left over that refuses nothing."""
    refused = {name for arch in amd_instructions.ARCHS for name, _, done in amd_instructions.executed(arch) if not done}
    assert sorted(name for name in refused if reason(name) is None) == []
    assert {reason(name) for name in refused} == set(REASONS)
