"""Products of matrices on AMD's cards: the instruction is read out of the machine code that LLVM makes."""

from __future__ import annotations

import random

import pytest

from tg_codegen.compile import compile_ast
from tg_codegen.ir.amd_matrix import REFUSED, Row, amd_rows, refusal
from tg_codegen.render.llvm import AMDLLVMRenderer
from tg_dtype import DType
from tg_hcq.simulate.amd.isa.listing import listing
from tg_hcq.simulate.amd.isa.table import table
from tg_lazy import BufferArg, LazyOp, Ops
from tg_lazy import ast as A
from tg_runtime.compilers.amdgpu import AMDGPUCompiler
from tg_shape import ShapeTracker

pytest.importorskip("llvmlite", reason="LLVM compiles the products")
ST = ShapeTracker.from_shape
ARCHS = ["gfx1100", "gfx1201", "gfx942", "gfx950"]
CASES = [(arch, row) for arch in ARCHS for row in amd_rows(arch)]


def product(m: int, n: int, k: int, a: DType, b: DType, acc: DType) -> LazyOp:
    shape = (m, n, k)

    def factor(slot: int, dtype: DType, view: ShapeTracker) -> LazyOp:
        found = A.load(slot, dtype, view.expand(shape))
        return found if dtype is acc else A.cast(found, acc)

    left = factor(1, a, ST((m, k)).reshape((m, 1, k)))
    right = factor(2, b, ST((k, n)).permute((1, 0)).reshape((1, n, k)))
    total = A.reduce(A.alu(Ops.MUL, left, right), Ops.ADD, (2,))
    sizes = (BufferArg(acc, m * n), BufferArg(a, m * k), BufferArg(b, k * n))
    return A.sink((A.store(0, ST((m, n, 1)), total),), sizes)


def mnemonics(arch: str, m: int, n: int, k: int, row: Row) -> tuple[list[str], int]:
    """What a product is compiled to, and the work-items of a group."""
    found = row.instruction
    program = compile_ast(product(m, n, k, found.a, found.b, found.acc), AMDLLVMRenderer(arch))
    lines = listing(AMDGPUCompiler(arch).compile_cached(program.src))
    assert program.local_size is not None
    x, y, z = program.local_size
    return [line.split()[0] for line in lines if line.startswith("\t")], x * y * z


@pytest.mark.drawn(6)
@pytest.mark.parametrize(("arch", "row"), CASES, ids=lambda value: getattr(value, "mnemonic", value))
def test_a_product_is_done_by_the_instruction(arch: str, row: Row) -> None:
    deep = row.instruction.shape[2]
    better = [r for r in amd_rows(arch) if (r.instruction.a, r.instruction.b) == (row.instruction.a, row.instruction.b)]
    rng = random.Random(f"{arch}{row.mnemonic}")
    # the depth is whole for this one, and too little for those that are preferred to it
    depth = max(16, deep * rng.choice([1, 2, 3])) if better[0] is row else deep
    m, n = (16 * rng.randint(1, 5) + rng.choice([0, 0, 1, 9]) for _ in range(2))
    found, size = mnemonics(arch, m, n, depth, row)
    assert row.mnemonic in found, f"{m} x {n} x {depth}: {sorted(set(found))}"
    assert size % row.instruction.threads == 0


def test_small_products_are_done_without() -> None:
    for arch, row in CASES:
        found, _ = mnemonics(arch, 8, 24, 64, row)
        assert not any(name.startswith(("v_wmma", "v_mfma")) for name in found)


@pytest.mark.parametrize("arch", ARCHS)
def test_every_instruction_that_there_is_is_used_or_refused(arch: str) -> None:
    """Of LLVM's tables, nothing is left out; and nothing is listed that the architecture has not."""
    kinds = ("v_wmma", "v_mfma", "v_swmmac", "v_smfmac")
    there = {row.name for row in table(arch) if row.name.startswith(kinds)}
    used = {row.mnemonic for row in amd_rows(arch)}
    assert used <= there
    for name in there - used:
        assert refusal(arch, name), f"{name} is neither used nor refused"


def test_every_reason_refuses_something() -> None:
    there = {(arch, row.name) for arch in ARCHS for row in table(arch)}
    reasons = {why for arch, name in there if (why := refusal(arch, name))}
    assert set(REFUSED.values()) <= reasons
