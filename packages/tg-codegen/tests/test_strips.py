"""Products of a few rows with a large matrix: it is read once, strip by strip, and the values are right."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tg_codegen import Target, compile_ast, interpret
from tg_codegen.machine.costs import CPUCosts
from tg_codegen.render.llvm import LLVMRenderer
from tg_dtype import dtypes
from tg_lazy import BufferArg, LazyOp, Ops
from tg_lazy import ast as A
from tg_shape import ShapeTracker

F32 = dtypes.float32
ST = ShapeTracker.from_shape
DRAWN = random.Random(20261124)


def product(n: int, k: int, m: int, batch: int = 1) -> LazyOp:
    """(batch, n, k) by (batch, k, m), each row of the second as far from the next as it is long."""
    a = A.load(1, F32, ST((batch, n, k)).reshape((batch, n, k, 1)).expand((batch, n, k, m)))
    b = A.load(2, F32, ST((batch, k, m)).reshape((batch, 1, k, m)).expand((batch, n, k, m)))
    total = A.reduce(A.alu(Ops.MUL, a, b), Ops.ADD, (2,))
    sizes = (batch * n * m, batch * n * k, batch * k * m)
    return A.sink((A.store(0, ST((batch, n, 1, m)), total),), tuple(BufferArg(F32, size) for size in sizes))


def machine(threads: int = 1, **other: Any) -> Target:
    """One whose caches and TLB are so small that a matrix is large that an interpreter can still multiply with."""
    costs = CPUCosts(near_pages=1, scattered_bytes=256)
    sizes = {"vector_bytes": 32, "registers": 32, "l2_bytes": 1 << 13} | other
    return Target(threads=threads, cpu=costs, **sizes)


def told(n: int, k: int, m: int, target: Target, batch: int = 1) -> list[str]:
    return [str(action) for action in compile_ast(product(n, k, m, batch), LLVMRenderer(target)).actions]


@pytest.mark.drawn(5)
@pytest.mark.parametrize("registers", [16, 32])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    "shape", [(13, 67, 131), (17, 53, 259), (9, 100, 72), (2, 61, 257), (5, 43, 127), (8, 59, 96), *(
        (DRAWN.randint(2, 18), DRAWN.randint(40, 90), DRAWN.randint(64, 300)) for _ in range(6))], ids=str)
def test_a_few_rows_read_a_large_matrix_once(shape: tuple[int, int, int], threads: int, registers: int) -> None:
    n, k, m = shape
    target = machine(threads, registers=registers)
    spec = compile_ast(product(n, k, m), LLVMRenderer(target))
    actions = [str(action) for action in spec.actions]
    for title in ("split_reduction", "prefetch"):
        assert any(a.startswith(f"{title}(") for a in actions), actions
    rng = np.random.default_rng(n * k * m)
    x, y = rng.standard_normal((n, k), np.float32), rng.standard_normal((k, m), np.float32)
    out = bytearray(4 * n * m)
    for core in range(spec.threads):
        buffers = [out, bytearray(x.tobytes()), bytearray(y.tobytes())]
        interpret(spec.uops, buffers, {"core_id": core} if spec.threads > 1 else {})
    np.testing.assert_allclose(np.frombuffer(out, np.float32).reshape(n, m), x @ y, rtol=1e-4, atol=1e-4)


def test_pieces_have_as_many_rows_as_the_tlb_has_pages() -> None:
    far = Target(vector_bytes=64, registers=32, threads=2, l2_bytes=1 << 20)
    actions = told(13, 4099, 4093, far)
    assert f"split(r0, {far.cpu.near_pages}, REDUCE)" in actions and "split(i0, 13, UPCAST)" in actions
    closer = told(13, 4099, 509, far)  # two rows to a page
    assert f"split(r0, {2 * far.cpu.near_pages}, REDUCE)" in closer


@pytest.mark.parametrize("rows", [2, 5, 8])
@pytest.mark.parametrize("near", [1 << 20, 1 << 21])
def test_so_are_rows_that_are_one_tile(rows: int, near: int) -> None:
    """Whole columns would be read once, too, but a page would be looked up for each of their elements."""
    target = Target(vector_bytes=64, registers=32, threads=2, l2_bytes=near)
    actions = told(rows, 4099, 4093, target)
    assert f"split(r0, {target.cpu.near_pages}, REDUCE)" in actions and "split_reduction(0, i1)" in actions


@pytest.mark.parametrize("l2_bytes", [1 << 20, 1 << 21, 1 << 22])
def test_columns_that_fall_on_few_sets_are_not_near(l2_bytes: int) -> None:
    """A cache of any usual size keeps few lines that are a power of two apart, however few bytes the columns have."""
    target = Target(vector_bytes=32, registers=16, threads=2, l2_bytes=l2_bytes)
    assert f"split(r0, {target.cpu.near_pages}, REDUCE)" in told(8, 4096, 4096, target)


def test_fewest_tiles_of_rows_read_a_line_again() -> None:
    """Sixteen registers hold two lines beside two rows, or one and a half beside four."""
    target = Target(vector_bytes=32, registers=16, threads=2, l2_bytes=1 << 20)
    assert {"split(i0, 4, UPCAST)", "split(i1, 3, UPCAST)"} <= {*told(8, 4096, 4096, target)}


@pytest.mark.parametrize("shape", [(1, 4099, 4093), (32, 512, 2064), (99, 4099, 4093), (13, 4099, 128), (13, 61, 1021)])
def test_a_single_row_and_what_is_near_or_packed_is_left_alone(shape: tuple[int, int, int]) -> None:
    actions = told(*shape, Target(vector_bytes=64, registers=32, threads=2, l2_bytes=1 << 20))
    assert not any(a.startswith("prefetch(1") for a in actions), actions


def test_a_batch_is_left_alone() -> None:
    """Its partial results would be those of all its products."""
    assert not any(a.startswith("split_reduction(") for a in told(13, 67, 131, machine(), batch=3))
