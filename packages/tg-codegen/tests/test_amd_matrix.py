"""AMD's matrix instructions: the fragments are those of the manuals, said here once more, as formulas."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tg_codegen.ir.amd_matrix import AMD_INSTRUCTIONS, AMD_ROWS, Row, amd_rows, refusal
from tg_codegen.ir.matrix import INSTRUCTIONS
from tg_codegen.ir.text import ParseError, _parse_instruction
from tg_codegen.machine.amdgpu import ARCHS, amd_target
from tg_codegen.render.llvm import AMDLLVMRenderer

ROWS = list(AMD_INSTRUCTIONS.values())
Place = Callable[[int, int], tuple[int, int]]

# of lane and element: the row and the column of an element of the sum
SUMS: dict[str, Place] = {
    "gfx11": lambda lane, e: (2 * e + lane // 16, lane % 16),
    "gfx12": lambda lane, e: (e + 8 * (lane // 16), lane % 16),
    "gfx9": lambda lane, e: (e + 4 * (lane // 16), lane % 16),
}
# the same of the first operand: row and place along the depth
FIRSTS: dict[str, Callable[[int, int, int], tuple[int, int]]] = {
    "gfx11": lambda lane, e, each: (lane % 16, e),
    "gfx12": lambda lane, e, each: (lane % 16, e + each * (lane // 16)),
    "gfx9": lambda lane, e, each: (lane % 16, e + each * (lane // 16)),
}


def generation(row: Row) -> str:
    return next(name for name in SUMS if row.instruction.name.startswith(name))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.instruction.name)
def test_fragments_are_those_of_the_manual(row: Row) -> None:
    found, name = row.instruction, generation(row)
    first, second, total = found.fragments
    m, n, k = found.shape
    assert (m, n) == (16, 16) and found.threads == (64 if name == "gfx9" else 32)
    for lane in range(found.threads):
        for e in range(total.count):
            assert total.place(e, lane) == SUMS[name](lane, e)
        for e in range(first.count):
            assert first.place(e, lane) == FIRSTS[name](lane, e, first.count)
            assert second.place(e, lane) == FIRSTS[name](lane, e, first.count)[::-1]
    copies = 2 if name == "gfx11" else 1  # the upper half of a wave has what the lower has
    assert first.count * found.threads == copies * m * k == second.count * found.threads
    assert total.count * found.threads == m * n
    places = {first.place(e, lane) for lane in range(found.threads) for e in range(first.count)}
    assert len(places) == m * k


def test_names() -> None:
    names = [row.instruction.name for rows in AMD_ROWS.values() for row in rows]
    assert not set(names) & set(INSTRUCTIONS) and len(AMD_INSTRUCTIONS) == len(set(names))
    for row in ROWS:
        assert _parse_instruction(row.instruction.name) is row.instruction
    with pytest.raises(ParseError, match="'wmma' is no matrix instruction"):
        _parse_instruction("wmma")


@pytest.mark.parametrize("arch", ARCHS)
def test_targets_state_those_of_their_architecture(arch: str) -> None:
    expected = [row.instruction for row in amd_rows(arch)]
    assert list(amd_target(arch).matrices) == list(AMDLLVMRenderer(arch).target.matrices) == expected
    assert bool(expected) != arch.startswith("gfx10")
    assert amd_target(arch).warp == (64 if arch.startswith("gfx9") else 32)


def test_refusals() -> None:
    assert refusal("gfx942", "v_mfma_f32_16x16x32_fp8_fp8") is not None
    assert refusal("gfx950", "v_mfma_f32_16x16x32_fp8_fp8") is None
    assert refusal("gfx1100", "v_wmma_f32_16x16x16_f16") is None
    assert refusal("gfx1100", "v_add_f32") is None
