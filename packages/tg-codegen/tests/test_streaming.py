"""Writing past the caches, fetching ahead, keeping a row's values: when it happens, when it is refused, and values."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import pytest

from tg_codegen import ActionError, Target, beam_search, compile_ast, interpret
from tg_codegen.ir.program import ProgramSpec
from tg_codegen.ir.text import parse_linear, print_uops
from tg_codegen.ir.uop import STREAM, UOps
from tg_codegen.machine.costs import CPUCosts
from tg_codegen.nest.lower import lower
from tg_codegen.nest.spec import Kind
from tg_codegen.plan.actions import Prefetch, PrefetchIndirect, Split, Stream, apply
from tg_codegen.plan.cpu.streaming import SUMMED_ROWS, lines_held, sums_by_rows
from tg_codegen.plan.vocabulary import parse_loop
from tg_codegen.render.c.clang import ClangRenderer
from tg_codegen.render.llvm import LLVMRenderer
from tg_codegen.render.renderers import RENDERERS
from tg_dtype import DType, dtypes
from tg_lazy import BufferArg, LazyOp, Ops
from tg_lazy import ast as A
from tg_shape import ShapeTracker

F32, F16 = dtypes.float32, dtypes.float16
ST = ShapeTracker.from_shape
Array = np.ndarray[Any, np.dtype[Any]]
SMALL = Target(vector_bytes=64, registers=32, l1_bytes=1 << 10, l2_bytes=1 << 12, last_bytes=1 << 12)
"""A machine whose caches are so small that every kernel here is large."""


def elementwise(n: int, dtype: DType = F32, out: int = 0) -> LazyOp:
    x = A.load(1, dtype, ST((n,)))
    slots = (BufferArg(dtype, n), BufferArg(dtype, n))
    return A.sink((A.store(out, ST((n,)), A.alu(Ops.ADD, x, x)),), slots)


def turned(n: int, m: int, dtype: DType = F32) -> LazyOp:
    x = A.load(1, dtype, ST((m, n)).permute((1, 0)))
    return A.sink((A.store(0, ST((n, m)), x),), (BufferArg(dtype, n * m),) * 2)


def softmax(n: int, m: int) -> LazyOp:
    x = A.load(1, F32, ST((n, m)))
    greatest = A.view(A.reduce(x, Ops.MAX, (1,)), ST((n, 1)).expand((n, m)))
    power = A.alu(Ops.EXP2, A.alu(Ops.SUB, x, greatest))
    total = A.view(A.reduce(power, Ops.ADD, (1,)), ST((n, 1)).expand((n, m)))
    return A.sink((A.store(0, ST((n, m)), A.alu(Ops.FDIV, power, total)),), (BufferArg(F32, n * m),) * 2)


def centred(n: int, m: int) -> LazyOp:
    """Rows less their sums: two walks, nothing dear in them."""
    x = A.load(1, F32, ST((n, m)))
    total = A.view(A.reduce(x, Ops.ADD, (1,)), ST((n, 1)).expand((n, m)))
    return A.sink((A.store(0, ST((n, m)), A.alu(Ops.SUB, x, total)),), (BufferArg(F32, n * m),) * 2)


def kernel(ast: LazyOp, target: Target = SMALL) -> ProgramSpec:
    return compile_ast(ast, LLVMRenderer(target))


def run(spec: ProgramSpec, *inputs: Array) -> Array:
    out = bytearray(spec.buffers[0].size * inputs[0].dtype.itemsize)
    interpret(spec.uops, [out, *(bytearray(x.tobytes()) for x in inputs)])
    return np.frombuffer(out, inputs[0].dtype)


def normal(*shape: int) -> Array:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def stores(spec: ProgramSpec) -> list[object]:
    return [u.arg for u in spec.uops if u.op is UOps.STORE]


# past the caches


def test_large_outputs_go_past_the_caches() -> None:
    spec = kernel(elementwise(4096))
    assert set(stores(spec)) == {STREAM}
    x = normal(4096)
    np.testing.assert_array_equal(run(spec, x), x + x)


def test_small_outputs_stay_in_the_caches() -> None:
    assert set(stores(kernel(elementwise(256)))) == {None}
    assert set(stores(kernel(elementwise(4096), Target(vector_bytes=64)))) == {None}, "no cache is known"


def test_only_whole_vectors_do() -> None:
    spec = kernel(elementwise(4099))
    assert set(stores(spec)) == {None, STREAM}
    assert "align 64, !nontemporal" in spec.src
    x = normal(4099)
    np.testing.assert_array_equal(run(spec, x), x + x)


def test_unaligned_rows_do_not() -> None:
    ast = centred(64, 101)
    assert "nontemporal" not in kernel(ast).src, "a vector of a row of 101 elements begins anywhere in a line"


def test_a_buffer_that_is_read_back_is_not_streamed() -> None:
    x = A.load(0, F32, ST((4096,)))
    ast = A.sink((A.store(0, ST((4096,)), A.alu(Ops.ADD, x, x)),), (BufferArg(F32, 4096),))
    assert set(stores(kernel(ast))) == {None}
    with pytest.raises(ActionError, match="reads that buffer"):
        compile_ast(ast, LLVMRenderer(SMALL), actions=[Stream(0)])


def test_other_refusals() -> None:
    with pytest.raises(ActionError, match="in 0 places"):
        compile_ast(elementwise(64), LLVMRenderer(SMALL), actions=[Stream(1)])
    with pytest.raises(ActionError, match="already"):
        compile_ast(elementwise(64), LLVMRenderer(SMALL), actions=[Stream(0), Stream(0)])
    with pytest.raises(ActionError, match="1 loads"):
        compile_ast(elementwise(64), LLVMRenderer(SMALL), actions=[Prefetch(1, 64)])


def test_what_one_part_reads_no_other_writes_past_the_caches() -> None:
    n, m = 64, 64
    x = A.load(1, F32, ST((n, m)))
    between, again = A.load(3, F32, ST((n, m))), A.load(0, F32, ST((n, m)))
    total = A.reduce(A.alu(Ops.ADD, between, again), Ops.ADD, (1,))
    parts = (
        A.store(3, ST((n, m)), A.alu(Ops.MUL, x, x)), A.store(0, ST((n, m)), between), A.store(2, ST((n, 1)), total),
    )  # fmt: skip
    outer = BufferArg(F32, n * m)
    ast = A.sink(parts, (outer, outer, BufferArg(F32, n), BufferArg(F32, n * m, internal=True)))
    assert STREAM not in stores(kernel(ast))


def test_the_order_of_the_text() -> None:
    src = kernel(elementwise(4096)).src
    assert src.index("%data0.aligned = icmp") < src.index("!nontemporal") < src.index("fence seq_cst")
    assert "store <16 x float>" in src and "align 4\n" in src, "a buffer that is not aligned is written as ever"
    src = compile_ast(elementwise(4096), ClangRenderer(SMALL)).src
    assert src.index("TG_STREAM(place") < src.index("TG_STREAM((f32x16*)") < src.index("__atomic_thread_fence")


def test_every_language_has_a_form() -> None:
    actions = [Split("i0", 4, Kind.VECTOR), Stream(0), Prefetch(0, 256)]
    for name, renderer in RENDERERS.items():
        spec = compile_ast(elementwise(4096), renderer(), actions=actions)  # type: ignore[call-arg]
        assert spec.src, name
        assert print_uops(parse_linear(print_uops(spec.uops))) == print_uops(spec.uops)


def test_actions_have_a_text() -> None:
    texts = ["stream(0)", "prefetch(2, 4096)"]
    assert [str(parse_loop(text)) for text in texts] == texts


# transposition


def test_half_lines_are_not_streamed() -> None:
    spec = kernel(turned(128, 128, F16))
    wide = {u.src[2].dtype.itemsize for u in spec.uops if u.op is UOps.STORE}
    assert wide == {64}, "a copy has as many lanes as fill a vector, however narrow its elements"
    assert set(stores(spec)) == {STREAM}
    x = normal(128, 128).astype(np.float16)
    np.testing.assert_array_equal(run(spec, x).reshape(128, 128), x.T)


@pytest.mark.parametrize("shape", [(2048, 2048), (100, 1000), (130, 2050), (33, 17)], ids=str)
def test_walks_across(shape: tuple[int, int]) -> None:
    n, m = shape
    target = Target(vector_bytes=16, l2_bytes=1 << 16, last_bytes=1 << 12)
    spec = compile_ast(turned(n, m), LLVMRenderer(target))
    actions = [str(action) for action in spec.actions]
    large = (n, m) != (33, 17)
    assert ("split(i1, 4, UPCAST)" in actions) is large, "a tile writes whole lines"
    squares = n > 8 * 16, m > 8 * 16
    assert ("split(i0, 8, LOOP)" in actions, "split(i1, 8, LOOP)" in actions) == squares, "square blocks of tiles"
    assert ("prefetch(0, 32)" in actions) is large, "two tiles of a line further on the rows that are read"
    loads, told = (sum(u.op is op for u in spec.uops) for op in (UOps.LOAD, UOps.PREFETCH))
    assert told == loads if n % 4 == m % 4 == 0 else (told > 0) is large, "each row of a tile is told once"
    if n * m < 1 << 18:
        x = normal(m, n)
        np.testing.assert_array_equal(run(spec, x).reshape(n, m), x.T)


def test_walks_are_no_longer_than_the_cache_holds() -> None:
    target = Target(vector_bytes=64, registers=32, l2_bytes=1 << 20)
    for n, length in ((4096, 4), (2048, 8), (2044, 64)):
        spec = compile_ast(turned(n, n), LLVMRenderer(target))
        assert f"split(i1, {length}, LOOP)" in [str(action) for action in spec.actions]


def sum_of_turned(count: int, n: int, m: int) -> LazyOp:
    """A matrix of ``n`` rows that is the sum of others, each of which has ``m`` of them."""
    loads = [A.load(slot, F32, ST((m, n)).permute((1, 0))) for slot in range(1, count + 1)]
    total = reduce(lambda a, b: A.alu(Ops.ADD, a, b), loads)
    return A.sink((A.store(0, ST((n, m)), total),), (BufferArg(F32, n * m),) * (count + 1))


@pytest.mark.parametrize("count", [1, 2, 3, 4, 6])
def test_few_transposed_matrices_are_read_across_and_the_sum_is_written_along(count: int) -> None:
    """Each of them is transposed in registers; the elements of the sum would be written one by one."""
    n, m = random.Random(count).sample(range(300, 400), 2)
    spec = compile_ast(sum_of_turned(count, n, m), LLVMRenderer(Target(vector_bytes=64, registers=32)))
    assert spec.actions[0] == ("split(i1, 16, VECTOR)" if count <= 3 else "split(i0, 16, VECTOR)")
    arrays = [normal(m, n) for _ in range(count)]
    np.testing.assert_allclose(run(spec, *arrays).reshape(n, m), np.sum(arrays, 0).T, rtol=1e-5, atol=1e-5)


def test_walks_across_several_operands_share_what_the_caches_hold() -> None:
    target = Target(vector_bytes=64, registers=32, l2_bytes=1 << 20)
    for count in (1, 2, 3):
        spec = compile_ast(sum_of_turned(count, 2044, 2044), LLVMRenderer(target))
        assert f"split(i1, {64 // count}, LOOP)" in spec.actions


def test_lines_held() -> None:
    target = Target(l2_bytes=1 << 20)
    assert [lines_held(jump, target) for jump in (16384, 16004, 4096, 1 << 20)] == [64, 16384, 256, 16]


# ahead


def test_the_second_walk_fetches_the_next_row() -> None:
    spec = kernel(centred(64, 192))
    assert any("prefetch(" in action for action in spec.actions)
    assert any(u.op is UOps.PREFETCH for u in spec.uops)
    assert "llvm.prefetch" in spec.src
    x = normal(64, 192)
    np.testing.assert_allclose(run(spec, x).reshape(64, 192), x - x.sum(1, keepdims=True), rtol=1e-4, atol=1e-4)


def test_one_walk_fetches_nothing() -> None:
    x = A.load(1, F32, ST((64, 256)))
    ast = A.sink((A.store(0, ST((64, 1)), A.reduce(x, Ops.ADD, (1,))),), (BufferArg(F32, 64), BufferArg(F32, 64 * 256)))
    still = replace(SMALL, cpu=replace(CPUCosts(), run_ahead_bytes=0))
    assert not any(u.op is UOps.PREFETCH for u in kernel(ast, still).uops)


@pytest.mark.parametrize(("width", "room", "whole"), [(64, 64, True), (64, 67, False), (16, 64, False)])
@pytest.mark.parametrize("across", [False, True])
def test_one_long_run_is_fetched_ahead(width: int, room: int, whole: bool, across: bool) -> None:
    """Rows of a cache of keys or values, each for several heads, which are in registers; rows with gaps are not."""
    rows, heads = 61, 3
    part = ST((2, rows, room)).shrink(((0, 2), (0, rows), (0, width)))
    shape = (2, heads, rows, width)
    x = A.load(1, F32, part.reshape((2, 1, rows, width)).expand(shape))
    like = (2, heads, rows, 1) if across else (2, heads, 1, width)
    y = A.load(2, F32, ST(like).expand(shape))
    total = A.reduce(A.alu(Ops.MUL, x, y), Ops.ADD, (2,) if across else (3,))
    out = (2, heads, 1, width) if across else (2, heads, rows, 1)
    count = 2 * heads * (width if across else rows)
    sizes = (count, 2 * rows * room, 2 * heads * (rows if across else width))
    buffers = tuple(BufferArg(F32, size) for size in sizes)
    spec = kernel(A.sink((A.store(0, ST(out), total),), buffers))
    assert any(str(action).startswith("prefetch") for action in spec.actions) is whole
    values, others = normal(2, rows, room), normal(*like)
    want = (values[:, None, :, :width] * others).sum(2 if across else 3)
    np.testing.assert_allclose(run(spec, values, others).reshape(want.shape), want, rtol=1e-4, atol=1e-4)


def test_rows_in_the_cache_are_not_fetched() -> None:
    target = Target(vector_bytes=64, registers=32, l2_bytes=1 << 20)
    assert not any(u.op is UOps.PREFETCH for u in kernel(centred(64, 256), target).uops)


# pieces


def joined(n: int, widths: tuple[int, ...], axis: int) -> LazyOp:
    """Operands side by side (axis 1), or one below the other (axis 0): padded to the whole, chosen by masks."""
    total, at = sum(widths), 0
    whole = (n, total) if axis else (total, n)
    value = None
    for number, width in enumerate(widths, 1):
        shape = (n, width) if axis else (width, n)
        pad = ((0, 0), (at, total - at - width)) if axis else ((at, total - at - width), (0, 0))
        x = A.load(number, F32, ST(shape).pad(pad))
        here = A.view(A.const(True, dtypes.bool, shape), ST(shape).pad(pad))
        value = x if value is None else A.alu(Ops.WHERE, here, x, value)
        at += width
    assert value is not None
    sizes = (n * total, *(n * width for width in widths))
    return A.sink((A.store(0, ST(whole), value),), tuple(BufferArg(F32, size) for size in sizes))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("widths", [(64, 64), (40, 24, 17)], ids=str)
def test_operands_are_written_one_by_one(widths: tuple[int, ...], axis: int, threads: int) -> None:
    target = Target(vector_bytes=64, registers=32, threads=threads)
    spec = compile_ast(joined(320, widths, axis), LLVMRenderer(target))
    parts = {action.partition(":")[0] for action in spec.actions if ":" in action}
    assert "split_concat()" in spec.actions and parts == {str(n) for n in range(len(widths))}
    assert not any(u.op is UOps.LOAD and len(u.src) > 2 and u.src[2].dtype.count == 1 for u in spec.uops), "no choice"
    assert sum(u.op is Ops.WHERE for u in spec.uops) == 0
    operands = [normal(*((320, w) if axis else (w, 320))) + w for w in widths]
    out = bytearray(4 * 320 * sum(widths))
    for core in range(spec.threads):
        buffers = [out, *(bytearray(x.tobytes()) for x in operands)]
        interpret(spec.uops, buffers, {"core_id": core} if spec.threads > 1 else {})
    want = np.concatenate(operands, axis)
    np.testing.assert_array_equal(np.frombuffer(out, np.float32).reshape(want.shape), want)


def test_short_runs_stay_together() -> None:
    spec = compile_ast(joined(64, (3, 3), 1), LLVMRenderer(Target(vector_bytes=64)))
    assert not any("part" in str(action) for action in spec.actions)


@pytest.mark.parametrize(("widths", "vector_bytes", "parts"), [
    ((8, 8), 64, False), ((8, 8), 16, True), ((1, 64), 64, True), ((3, 3), 64, False), ((3, 3), 4, True),
], ids=str)  # fmt: skip
def test_parts_are_as_short_as_costs_less_than_masks(widths: tuple[int, int], vector_bytes: int, parts: bool) -> None:
    """One vector that both operands are read for costs less than two loops, several such vectors more."""
    spec = compile_ast(joined(64, widths, 1), LLVMRenderer(Target(vector_bytes=vector_bytes)))
    assert ("split_concat()" in spec.actions) is parts


def test_a_machine_whose_masks_cost_nothing_reads_all_operands_at_once() -> None:
    free = Target(vector_bytes=64, cpu=replace(CPUCosts(), masked_load=0.0, masked_store=0.0, units=1 << 10))
    assert "split_concat()" in compile_ast(joined(64, (20, 20), 1), LLVMRenderer(Target(vector_bytes=64))).actions
    assert "split_concat()" not in compile_ast(joined(64, (20, 20), 1), LLVMRenderer(free)).actions


def test_an_output_that_is_read_stays_whole() -> None:
    x, y = A.load(0, F32, ST((32, 64)).pad(((0, 32), (0, 0)))), A.load(1, F32, ST((32, 64)).pad(((32, 0), (0, 0))))
    here = A.view(A.const(True, dtypes.bool, (32, 64)), ST((32, 64)).pad(((0, 32), (0, 0))))
    ast = A.sink((A.store(0, ST((64, 64)), A.alu(Ops.WHERE, here, x, y)),), (BufferArg(F32, 64 * 64),) * 2)
    assert not any("part" in str(action) for action in kernel(ast).actions)


def test_a_padded_operand_alone_stays_whole() -> None:
    x = A.load(1, F32, ST((64, 64)).pad(((16, 16), (0, 0))))
    ast = A.sink((A.store(0, ST((96, 64)), x),), (BufferArg(F32, 96 * 64), BufferArg(F32, 64 * 64)))
    assert not any("split_concat" in str(action) for action in kernel(ast).actions)


# columns


def columns(batch: int, n: int, m: int, op: Ops = Ops.ADD) -> LazyOp:
    x = A.load(1, F32, ST((batch, n, m)))
    buffers = (BufferArg(F32, batch * m), BufferArg(F32, batch * n * m))
    return A.sink((A.store(0, ST((batch, 1, m)), A.reduce(x, op, (1,))),), buffers)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("op", [Ops.ADD, Ops.MAX])
@pytest.mark.parametrize("shape", [(1, 64, 512), (1, 67, 509), (3, 41, 300), (1, 40, 2100)], ids=str)
def test_columns_are_reduced_row_by_row(shape: tuple[int, int, int], op: Ops, threads: int) -> None:
    eager = replace(CPUCosts(), thread_cycles=0)
    target = Target(vector_bytes=32, registers=16, threads=threads, l2_bytes=1 << 14, cpu=eager)
    spec = compile_ast(columns(*shape, op), LLVMRenderer(target))
    assert any(str(action).startswith("split_reduction(") for action in spec.actions)
    assert spec.threads == threads
    x = normal(*shape)
    out = bytearray(4 * shape[0] * shape[2])
    for core in range(threads):
        interpret(spec.uops, [out, bytearray(x.tobytes())], {"core_id": core} if threads > 1 else {})
    want = x.sum(1) if op is Ops.ADD else x.max(1)
    np.testing.assert_allclose(np.frombuffer(out, np.float32).reshape(want.shape), want, rtol=1e-4, atol=1e-4)


def test_few_columns_stay_in_registers() -> None:
    target = Target(vector_bytes=32, registers=16, l2_bytes=1 << 12)
    spec = compile_ast(columns(1, 64, 64), LLVMRenderer(target))
    assert [str(a) for a in spec.actions] == ["split(i0, 8, VECTOR)", "mark(i0, UPCAST)", "prefetch(0, 4096)"]
    x = normal(1, 64, 64)
    np.testing.assert_allclose(run(spec, x).reshape(1, 64), x.sum(1), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("vectors", [SUMMED_ROWS, SUMMED_ROWS + 1])
def test_columns_that_a_tile_holds_anyway_are_left_to_it(vectors: int) -> None:
    nest = lower(columns(1, 64, 8 * vectors))
    lanes = next(r.var for r in nest.roots.values() if not r.reduce)
    nest = apply(nest, [parse_loop("split(i0, 8, VECTOR)")])
    found = sums_by_rows(nest, lanes, Target(vector_bytes=32, registers=16, l2_bytes=1 << 8))
    assert [str(a) for a in found] == (["mark(i0, UPCAST)"] if vectors > SUMMED_ROWS else [])


def test_columns_in_the_cache_and_products_are_not() -> None:
    plain = compile_ast(columns(1, 64, 512), LLVMRenderer(Target(vector_bytes=32, l2_bytes=1 << 20)))
    assert not any(str(action).startswith("split_reduction(") for action in plain.actions)
    n, k, m = 32, 64, 512
    a = A.load(1, F32, ST((n, k)).reshape((n, k, 1)).expand((n, k, m)))
    b = A.load(2, F32, ST((k, m)).reshape((1, k, m)).expand((n, k, m)))
    product = A.reduce(A.alu(Ops.MUL, a, b), Ops.ADD, (1,))
    buffers = tuple(BufferArg(F32, size) for size in (n * m, n * k, k * m))
    spec = compile_ast(A.sink((A.store(0, ST((n, 1, m)), product),), buffers), LLVMRenderer(SMALL))
    assert not any(str(a).startswith("split_reduction(") for a in spec.actions), "each row of b serves all rows of a"


# rows of a table


def chosen_rows(rows: int, width: int, count: int) -> LazyOp:
    """Rows of a table, 0 where there is no such row."""
    at = A.load(1, dtypes.int32, ST((count, 1)).expand((count, width)))
    column = A.iota(ST((1, width)).expand((count, width)))
    where = A.alu(Ops.ADD, A.alu(Ops.MUL, at, A.const(width, dtypes.int32, (count, width))), column)
    known = A.alu(Ops.CMPLT, at, A.const(rows, dtypes.int32, (count, width)))
    index = A.alu(Ops.WHERE, known, where, A.const(-1, dtypes.int32, (count, width)))
    value = A.gather(2, F32, ST((rows * width,)), index)
    buffers = (BufferArg(F32, count * width), BufferArg(dtypes.int32, count), BufferArg(F32, rows * width))
    return A.sink((A.store(0, ST((count, width)), value),), buffers)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("width", [64, 80, 100])
def test_rows_at_computed_places(width: int, threads: int) -> None:
    rows, count = 50, 64
    target = Target(vector_bytes=64, registers=32, l2_bytes=1 << 12, threads=threads)
    spec = compile_ast(chosen_rows(rows, width, count), LLVMRenderer(target))
    reads = {u.dtype.count for u in spec.uops if u.op is UOps.LOAD and u.dtype.scalar() is F32}
    assert reads == {16}, "the lanes of a row are neighbours, whichever row it is"
    assert any(u.op is UOps.PREFETCH for u in spec.uops)
    table = normal(rows, width)
    places = np.random.default_rng(1).integers(0, rows + 10, count).astype(np.int32)
    out = bytearray(4 * count * width)
    buffers = [out, bytearray(places.tobytes()), bytearray(table.tobytes())]
    for core in range(spec.threads):
        interpret(spec.uops, buffers, {"core_id": core} if spec.threads > 1 else {})
    want = np.where(places[:, None] < rows, table[np.minimum(places, rows - 1)], 0)
    np.testing.assert_array_equal(np.frombuffer(out, np.float32).reshape(count, width), want)


def scaled_rows(n: int, blocks: int) -> LazyOp:
    """A vector times rows of bytes, each 32 of which have a scale in 16 bits."""
    full = (n, blocks, 32)
    w, scale = A.load(1, dtypes.int8, ST(full)), A.load(2, dtypes.float16, ST((n, blocks, 1)).expand(full))
    x = A.load(3, F32, ST((1, blocks, 32)).expand(full))
    weight = A.alu(Ops.MUL, A.cast(w, F32), A.cast(scale, F32))
    value = A.reduce(A.alu(Ops.MUL, weight, x), Ops.ADD, (1, 2))
    sizes = ((F32, n), (dtypes.int8, n * blocks * 32), (dtypes.float16, n * blocks), (F32, blocks * 32))
    return A.sink((A.store(0, ST((n, 1, 1)), value),), tuple(BufferArg(dtype, size) for dtype, size in sizes))


def row_sums(n: int, k: int) -> LazyOp:
    value = A.reduce(A.load(1, F32, ST((n, k))), Ops.ADD, (1,))
    return A.sink((A.store(0, ST((n, 1)), value),), (BufferArg(F32, n), BufferArg(F32, n * k)))


@pytest.mark.parametrize(("ast", "side"), [
    (scaled_rows(500, 40), True), (row_sums(500, 1280), False), (row_sums(4000, 48), False)])
def test_rows_are_side_by_side_where_that_takes_fewer_cycles(ast: LazyOp, side: bool) -> None:
    """Where they share work or wait for their sums; not where memory is waited for, read fastest row after row."""
    assert any("ROWS" in action for action in kernel(ast).actions) is side


def test_rows_are_side_by_side_on_a_machine_that_waits_longer_for_sums() -> None:
    slow = replace(SMALL, cpu=replace(CPUCosts(), latency=32, far_line=1.0))
    assert any("ROWS" in action for action in kernel(row_sums(500, 1280), slow).actions)


def row_products(n: int, k: int) -> LazyOp:
    """Rows times a vector."""
    x, w = A.load(2, F32, ST((1, k)).expand((n, k))), A.load(1, F32, ST((n, k)))
    value = A.reduce(A.alu(Ops.MUL, w, x), Ops.ADD, (1,))
    return A.sink((A.store(0, ST((n, 1)), value),), (BufferArg(F32, n), BufferArg(F32, n * k), BufferArg(F32, k)))


@pytest.mark.parametrize("last_bytes", [0, 1 << 28], ids=["memory", "the last cache"])
def test_rows_are_side_by_side_on_a_machine_that_reads_several_faster(last_bytes: int) -> None:
    """Then hardware fetches ahead; of short rows the next begins meanwhile in any case."""
    usual = replace(SMALL, last_bytes=last_bytes)
    beside = replace(usual, cpu=replace(CPUCosts(), beside_line=-1.5))
    rng = random.Random(1234)
    for n, k in ((rng.randint(3000, 5000), rng.randint(3000, 5000)) for _ in range(3)):
        one, several = ([str(a) for a in kernel(row_products(n, k), target).actions] for target in (usual, beside))
        assert not any("ROWS" in a for a in one) and any("prefetch" in a for a in one), one
        assert any("ROWS" in a for a in several) and not any("prefetch" in a for a in several), several
    short = row_sums(4001, 47)
    assert kernel(short, beside).actions == kernel(short, usual).actions
    # blocks of bytes take so much work that prefetchers fall behind
    assert any("prefetch" in str(a) for a in kernel(scaled_rows(3001, 40), beside).actions)


@pytest.mark.parametrize("ast", [
    centred(64, 192), chosen_rows(50, 100, 64), turned(130, 2050), scaled_rows(500, 40),
    A.sink((A.store(0, ST((1,)), A.reduce(A.load(1, F32, ST((9000,))), Ops.ADD, (0,))),),
           (BufferArg(F32, 1), BufferArg(F32, 9000))),
], ids=["rows walked again", "rows of a table", "transposition", "tiles of rows", "one run"])  # fmt: skip
def test_a_machine_that_does_not_fetch_ahead(ast: LazyOp) -> None:
    none = replace(CPUCosts(), tile_ahead_bytes=0, row_ahead_bytes=0, run_ahead_bytes=0)
    assert any(u.op is UOps.PREFETCH for u in kernel(ast).uops)
    assert not any(u.op is UOps.PREFETCH for u in kernel(ast, replace(SMALL, cpu=none)).uops)


def test_a_table_in_the_cache_and_single_elements_are_not_prefetched() -> None:
    target = Target(vector_bytes=64, registers=32, l2_bytes=1 << 20)
    assert not any("prefetch_indirect" in str(action) for action in kernel(chosen_rows(50, 64, 300), target).actions)
    assert not any("prefetch_indirect" in str(action) for action in kernel(chosen_rows(4000, 4, 300)).actions)
    with pytest.raises(ActionError, match="no gather"):
        compile_ast(elementwise(64), LLVMRenderer(SMALL), actions=[PrefetchIndirect("i0", 2)])


# rows


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", [(64, 256), (7, 100), (16, 77)], ids=str)
def test_exponentials_are_kept(shape: tuple[int, int], threads: int) -> None:
    target = Target(vector_bytes=64, registers=32, threads=threads, l2_bytes=1 << 14)
    spec = compile_ast(softmax(*shape), LLVMRenderer(target))
    row = [u for u in spec.uops if u.op is UOps.SCRATCH]
    assert [u.arg[1] for u in row] == [shape[1]], "one row"
    assert [b.slot for b in spec.buffers] == [0, 1]
    x = normal(*shape)
    power = np.exp2(x - x.max(1, keepdims=True))
    got = run(spec, x).reshape(shape)
    np.testing.assert_allclose(got, power / power.sum(1, keepdims=True), rtol=1e-5)


def test_rows_too_long_and_too_short_are_computed_twice() -> None:
    for ast in (softmax(8, 4096), softmax(64, 32)):
        assert not any(u.op is UOps.SCRATCH for u in kernel(ast).uops)


def test_what_is_cheap_is_computed_twice() -> None:
    assert not any(u.op is UOps.SCRATCH for u in kernel(centred(64, 256), Target(vector_bytes=64)).uops)


@pytest.mark.slow
def test_a_search_is_no_slower_than_a_kernel_in_parts() -> None:
    planned = kernel(softmax(8, 64))
    best = beam_search(softmax(8, 64), LLVMRenderer(SMALL), lambda spec: 1.0 if "rows2" in spec.src else 2.0)
    assert best.src == planned.src
    best = beam_search(softmax(8, 64), LLVMRenderer(SMALL), lambda spec: 2.0 if "rows2" in spec.src else 1.0)
    assert best.src != planned.src


def test_actions_from_outside_keep_nothing() -> None:
    spec = compile_ast(softmax(8, 64), LLVMRenderer(SMALL), actions=[Split("i0", 2, Kind.UPCAST)])
    assert not any(u.op is UOps.SCRATCH for u in spec.uops)


@pytest.mark.parametrize("kept", [(), ("pack(0, i0)",)])
def test_positions_that_are_kept_in_scratch_are_not_looked_up_beforehand(kept: tuple[str, ...]) -> None:
    """Scratch holds those of the present iterations: a later one's position, read there, is another row's."""
    rng = np.random.default_rng(2)
    table = rng.integers(-9, 9, (9, 7)).astype(np.float32)
    at = rng.integers(0, 9, 12).astype(np.int32)
    texts = ("split(i0, 4, UPCAST)", *kept, "prefetch_indirect(i0.1, 1)", "mark(i1, ROWS)")
    actions = [parse_loop(text) for text in texts]
    small = LLVMRenderer(Target(vector_bytes=16, registers=16, threads=3))
    spec = compile_ast(chosen_rows(9, 7, 12), small, actions=actions)
    out = np.zeros((12, 7), np.float32)
    memory = [bytearray(out.tobytes()), bytearray(at.tobytes()), bytearray(table.tobytes())]
    interpret(spec.uops, memory, {})
    np.testing.assert_array_equal(np.frombuffer(memory[0], np.float32).reshape(12, 7), table[at])
    assert any(u.op is UOps.PREFETCH for u in spec.uops) is not bool(kept)
