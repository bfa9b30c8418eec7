"""Kernels in blocks of rows, run in the reference interpreter against numpy."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tg_codegen import EmitError, Target, compile_ast, interpret, parse_action
from tg_codegen.emit.kernel import emit
from tg_codegen.machine.costs import CPUCosts
from tg_codegen.nest.lower import lower
from tg_codegen.nest.parts import stated
from tg_codegen.nest.text import parse_kernel, print_kernel
from tg_codegen.plan.actions import ActionError
from tg_codegen.plan.heuristic import applied, before_emission
from tg_codegen.plan.reuse_row_values import ReuseRowValues
from tg_codegen.plan.row_blocks import RowBlocks, block_size, proposed
from tg_codegen.render.llvm import LLVMRenderer
from tg_codegen.search.cycles import cycles
from tg_dtype import DType, dtypes
from tg_lazy import BufferArg, LazyOp, Ops
from tg_lazy import ast as A
from tg_shape import ShapeTracker, Variable, upper

F32 = dtypes.float32
ST = ShapeTracker.from_shape
Array = np.ndarray[Any, np.dtype[Any]]


def softmax(seen: LazyOp) -> LazyOp:
    """Along the last dimension."""
    one = (*seen.shape[:-1], 1)
    top, axes = A.reduce(seen, Ops.MAX, (len(one) - 1,)), (len(one) - 1,)
    powers = A.alu(Ops.EXP, A.alu(Ops.SUB, seen, A.view(top, ST(one).expand(seen.shape))))
    return A.alu(Ops.FDIV, powers, A.view(A.reduce(powers, Ops.ADD, axes), ST(one).expand(seen.shape)))


def weighted(batch: int, rows: int, keys: int, width: int, attention: bool = False) -> LazyOp:
    """Products of rows with keys, divided by one more than their greatest square in the row, then a weighted sum.

    Or instead of the division the softmax of each row.
    """
    full = (batch, rows, keys, width)
    q = A.load(1, F32, ST((batch, rows, width)).reshape((batch, rows, 1, width)).expand(full))
    k = A.load(2, F32, ST((batch, keys, width)).reshape((batch, 1, keys, width)).expand(full))
    products = A.reduce(A.alu(Ops.MUL, q, k), Ops.ADD, (3,))
    seen = A.load(4, F32, ST((batch, rows, keys)))
    top = A.reduce(A.alu(Ops.MUL, seen, seen), Ops.MAX, (2,))
    scale = A.alu(Ops.ADD, top, A.const(1, F32, (batch, rows, 1)))
    shares = A.alu(Ops.FDIV, seen, A.view(scale, ST((batch, rows, 1)).expand((batch, rows, keys))))
    shares = softmax(seen) if attention else shares
    out = (batch, rows, width, keys)
    p = A.load(5, F32, ST((batch, rows, keys)).reshape((batch, rows, 1, keys)).expand(out))
    v = A.load(3, F32, ST((batch, keys, width)).permute((0, 2, 1)).reshape((batch, 1, width, keys)).expand(out))
    total = A.reduce(A.alu(Ops.MUL, p, v), Ops.ADD, (3,))
    between = BufferArg(F32, batch * rows * keys, internal=True)
    stores = (
        A.store(4, ST((batch, rows, keys, 1)), products), A.store(5, ST((batch, rows, keys)), shares),
        A.store(0, ST((batch, rows, width, 1)), total),
    )  # fmt: skip
    outer = [BufferArg(F32, batch * n * width) for n in (rows, rows, keys, keys)]
    return A.sink(stores, (*outer, between, between))


def expected(q: Array, k: Array, v: Array) -> Array:
    s = q @ k.transpose(0, 2, 1)
    result: Array = (s / ((s * s).max(-1, keepdims=True) + 1)) @ v
    return result


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("plain", [False, True], ids=["planned", "plain"])
@pytest.mark.parametrize(
    "shape", [(2, 16, 8, 4), (1, 6, 10, 5), (3, 7, 5, 8), (1, 40, 12, 4), (1, 23, 40, 3), (2, 37, 20, 4)], ids=str)
def test_rows(shape: tuple[int, int, int, int], plain: bool, threads: int) -> None:
    batch, rows, keys, width = shape
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((batch, n, width)).astype(np.float32) for n in (rows, keys, keys))
    target = Target(vector_bytes=32, registers=16, threads=threads, l2_bytes=4096)
    spec = compile_ast(weighted(*shape), LLVMRenderer(target), actions=() if plain else None)
    assert [b.slot for b in spec.buffers] == [0, 1, 2, 3], "internal buffers are no arguments"
    out = bytearray(4 * batch * rows * width)
    interpret(spec.uops, [out, *(bytearray(x.tobytes()) for x in (q, k, v))])
    got = np.frombuffer(out, np.float32).reshape(batch, rows, width)
    np.testing.assert_allclose(got, expected(q, k, v), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("keys", "once"), [(80, True), (40, False), (4096, False)])
def test_a_softmax_between_products_has_each_exponential_once(keys: int, once: bool) -> None:
    """Where its rows are long enough to be kept, and a whole block of them fits beside those of the products."""
    shape = (2, 64, keys, 8)
    target = Target(vector_bytes=32, registers=16, threads=2, l2_bytes=1 << 20)
    ast = weighted(*shape, attention=True)
    actions = before_emission(stated(lower(ast)), target)
    assert (ReuseRowValues() in actions) is once
    spec = compile_ast(ast, LLVMRenderer(target))
    assert len({b.slot for b in spec.buffers}) == 4 and not spec.fallback
    if keys > 80:
        return
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((2, n, 8)).astype(np.float32) for n in (64, keys, keys))
    out = bytearray(4 * 2 * 64 * 8)
    interpret(spec.uops, [out, *(bytearray(x.tobytes()) for x in (q, k, v))])
    powers = np.exp(q @ k.transpose(0, 2, 1))
    got = np.frombuffer(out, np.float32).reshape(2, 64, 8)
    np.testing.assert_allclose(got, powers / powers.sum(-1, keepdims=True) @ v, rtol=1e-4, atol=1e-5)


def test_a_table_that_each_row_meets_once_is_no_reason_for_a_block() -> None:
    """A pass that turns the matrix of each row, times a table: rows as lanes would lie apart where it reads them."""
    rows, a, b = 40, 6, 7
    first = A.alu(Ops.NEG, A.load(1, F32, ST((rows, a, b))))
    table = A.load(2, F32, ST((b, a)).reshape((1, b, a)).expand((rows, b, a)))
    second = A.alu(Ops.MUL, A.load(3, F32, ST((rows, a, b)).permute((0, 2, 1))), table)
    whole, within = BufferArg(F32, rows * a * b), BufferArg(F32, rows * a * b, internal=True)
    stores = A.store(3, ST((rows, a, b)), first), A.store(0, ST((rows, b, a)), second)
    ast = A.sink(stores, (whole, whole, BufferArg(F32, a * b), within))
    target = Target(vector_bytes=32, registers=16, threads=2)
    assert not proposed(stated(lower(ast)), target)
    spec = compile_ast(ast, LLVMRenderer(target))
    x, y = (np.random.default_rng(0).standard_normal(shape).astype(np.float32) for shape in ((rows, a, b), (b, a)))
    out = bytearray(x.nbytes)
    interpret(spec.uops, [out, *(bytearray(z.tobytes()) for z in (x, y))])
    np.testing.assert_array_equal(np.frombuffer(out, np.float32).reshape(rows, b, a), -x.transpose(0, 2, 1) * y)


def test_scratch_holds_a_block_and_no_more() -> None:
    target = Target(vector_bytes=32, l2_bytes=4096)
    spec = compile_ast(weighted(1, 64, 32, 4), LLVMRenderer(target))
    scratch = [u.arg[1] for u in spec.uops if u.op.name == "SCRATCH" and u.arg[0].startswith("rows")]
    assert len(scratch) == 2
    assert min(scratch) > 32, "several rows, which share the keys"
    assert sum(scratch) * 4 <= 4096


def test_blocks_divide_the_rows_where_one_of_them_is_large() -> None:
    sizes = [(64, 1000), (60, 1000), (7, 1), (48, 20), (96, 64), (7, 4), (101, 1000), (2573, 38), (130, 24), (120, 50)]
    assert [block_size(*size, lanes=16) for size in sizes] == [64, 60, 1, 16, 48, 4, 64, 32, 16, 40]
    assert [block_size(2100, 64, lanes) for lanes in (1, 4, 8, 16)] == [60, 60, 60, 64], "half full at least"


@pytest.mark.parametrize(("keys", "rows"), [(512, 64), (2048, 64), (4096, 32), (8192, 32)])
def test_more_rows_than_a_cache_holds_where_keys_come_from_beyond_it(keys: int, rows: int) -> None:
    """At 4096 keys, 24 rows fit three quarters of the cache; but all keys come from beyond it for each block."""
    target = Target(vector_bytes=64, registers=32, threads=2, l2_bytes=1 << 20)
    kernel = stated(lower(weighted(4, 4096, keys, 64)))
    assert proposed(kernel, target) == [RowBlocks(rows)]
    small = proposed(kernel, replace(target, scratch_bytes=4 * keys * rows // 2))
    assert small and small[0].rows <= rows // 2, "an array of scratch holds no more"


@pytest.mark.parametrize("threads", [1, 2, 4, 8])
@pytest.mark.parametrize("rows", [97, 101, 131, 192, 251])
def test_rows_in_blocks_are_all_done_once_and_divided_among_threads(rows: int, threads: int) -> None:
    target = Target(vector_bytes=32, threads=threads, l2_bytes=16384, cpu=replace(CPUCosts(), thread_cycles=0))
    kernel = stated(lower(weighted(1, rows, 32, 4)))
    assert kernel.block == 1 and not kernel.last and upper(kernel.shared[-1].extent) == rows
    split = applied(kernel, before_emission(kernel, target))
    full = upper(split.shared[-1].extent)
    left = rows - full * split.block
    assert split.block >= 8 and 0 <= left < split.block and bool(left) == bool(split.last)
    assert full >= threads, "each thread has a block"
    for part in split.last:
        assert [r.extent for r in part.roots.values() if r.var.name.endswith(".row")] == ([left] if left > 1 else [])
    spec = compile_ast(weighted(1, rows, 32, 4), LLVMRenderer(target))
    assert spec.threads == threads
    assert any(line.startswith("3: split(") for line in spec.actions) == bool(left), "the first part of the last rows"


@pytest.mark.parametrize(("batch", "threads", "loop"), [
    (4, 2, "i0"), (3, 2, "i1.block"), (3, 3, "i0"), (5, 4, "i1.block"),
])  # fmt: skip
def test_threads_get_even_shares_of_blocks(batch: int, threads: int, loop: str) -> None:
    target = Target(vector_bytes=32, threads=threads, l2_bytes=16384)
    assert f"mark({loop}, THREAD)" in compile_ast(weighted(batch, 128, 64, 16), LLVMRenderer(target)).actions


def test_a_prime_number_of_rows_takes_about_as_long_as_its_neighbours() -> None:
    target = Target(vector_bytes=32, l2_bytes=16384)
    each = [cycles(compile_ast(weighted(2, rows, 64, 4), LLVMRenderer(target)), target) / rows for rows in (
        127, 128, 129, 130, 131)]
    assert max(each) < 1.3 * min(each), each


def test_rows_that_reach_into_others_are_refused() -> None:
    seen = A.load(2, F32, ST((4, 4)).permute((1, 0)))
    stores = (A.store(2, ST((4, 4)), A.load(1, F32, ST((4, 4)))), A.store(0, ST((4, 4)), seen))
    one = BufferArg(F32, 16)
    ast = A.sink(stores, (one, one, BufferArg(F32, 16, internal=True)))
    with pytest.raises(EmitError, match="share no outer dimension"):
        compile_ast(ast, LLVMRenderer(Target()))


@pytest.mark.parametrize(("actions", "message"), [
    ("split(i0, 2, UPCAST)", "the kernel has 3 parts; '0: split"),
    ("3: split(r0, 2, UNROLL)", "the kernel has 3 parts"),
    ("row_blocks(3); row_blocks(2); 6: split(r0, 2, UNROLL)", "the kernel has 3 parts"),
    ("row_blocks(9)", "the kernel has 8 rows"),
    ("row_blocks(0)", "the kernel has 8 rows"),
    ("0: split(r0, 2, UNROLL); row_blocks(2)", "before any change to the loops"),
    ("mark(i0.block, UPCAST)", "serial, or divided among the threads"),
    ("mark(i0.block, THREAD); mark(i0.block, THREAD)", "divided among the threads already"),
    ("0: mark(i1, THREAD)", "the parts run in one thread"),
    ("0: split(i1, 2, THREAD)", "the parts run in one thread"),
    ("reuse_row_values()", "no output computes along its rows"),
    ("split_concat()", "no output that is put together"),
    ("0: stream(4)", "another part of the kernel reads that buffer"),
    ("delay_stores()", "no loop over rows ends with a walk that can wait"),
])  # fmt: skip
def test_refused(actions: str, message: str) -> None:
    with pytest.raises(ActionError, match=re.escape(message)):
        compile_ast(
            weighted(1, 8, 8, 4), LLVMRenderer(Target(threads=2)), actions=list(map(parse_action, actions.split("; "))))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("rows", [7, 8, 23])
def test_what_the_heuristic_chose_is_replayed_from_its_text(rows: int, threads: int) -> None:
    renderer = LLVMRenderer(Target(vector_bytes=32, threads=threads, l2_bytes=4096))
    planned = compile_ast(weighted(2, rows, 20, 4), renderer)
    again = compile_ast(weighted(2, rows, 20, 4), renderer, actions=[parse_action(line) for line in planned.actions])
    assert again.src == planned.src and again.actions == planned.actions
    assert any(line.startswith("row_blocks(") for line in planned.actions)


@pytest.mark.parametrize("planned", [True, False])
@pytest.mark.parametrize("shape", [(2, 16, 8, 4), (1, 23, 40, 3), (2, 37, 20, 4)], ids=str)
def test_a_kernel_in_parts_is_its_text(shape: tuple[int, int, int, int], planned: bool) -> None:
    target = Target(vector_bytes=32, threads=2, l2_bytes=4096)
    kernel = stated(lower(weighted(*shape)))
    kernel = applied(kernel, before_emission(kernel, target) if planned else [RowBlocks(5)])
    again = parse_kernel(print_kernel(kernel))
    assert print_kernel(again) == print_kernel(kernel)
    assert (again.shared, again.block, again.scratch) == (kernel.shared, kernel.block, kernel.scratch)
    assert len(again.last) == len(kernel.last) == (0 if shape == (2, 16, 8, 4) and planned else 3)
    assert emit(again, target) is emit(kernel, target)


def test_columns_that_all_accesses_share_stay_inside_a_row() -> None:
    # i and k walk the buffer alike, but within one k the sum walks j: only i can be around both parts
    n, m, w = 4, 3, 5
    a = A.load(1, F32, ST((n, m, w)))
    total = A.reduce(A.load(2, F32, ST((n, m, w)).permute((0, 2, 1))), Ops.ADD, (2,))
    stores = (A.store(2, ST((n, m, w)), A.alu(Ops.MUL, a, a)), A.store(0, ST((n, w, 1)), total))
    buffers = (BufferArg(F32, n * w), BufferArg(F32, n * m * w), BufferArg(F32, n * m * w, internal=True))
    spec = compile_ast(A.sink(stores, buffers), LLVMRenderer(Target(vector_bytes=32, registers=16, l2_bytes=4096)))
    data = np.random.default_rng(0).standard_normal((n, m, w)).astype(np.float32)
    out = bytearray(4 * n * w)
    interpret(spec.uops, [out, bytearray(data.tobytes())])
    np.testing.assert_allclose(np.frombuffer(out, np.float32).reshape(n, w), (data * data).sum(1), rtol=1e-5)


def powers(dtype: DType, dear: int, rows: int = 64, columns: int = 1024) -> LazyOp:
    """Powers of two beside their sum over a row, with so many operations more for each."""
    whole = ST((rows, columns))
    value = A.load(1, dtype, whole)
    for _ in range(dear):
        value = A.alu(Ops.MUL, value, value)
    value = A.alu(Ops.EXP2, value)
    total = A.view(A.reduce(value, Ops.ADD, (1,)), ST((rows, 1)).expand((rows, columns)))
    return A.sink((A.store(0, whole, A.alu(Ops.SUB, value, total)),), (BufferArg(dtype, rows * columns),) * 2)


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16, F32], ids=str)
def test_narrow_values_are_kept_where_that_saves_more_than_conversions(dtype: DType) -> None:
    target = Target(vector_bytes=64, registers=32, l2_bytes=1 << 20)
    free, dear = (replace(target, cpu=replace(target.cpu, conversion=by)) for by in (0.001, 1000.0))
    kept = {machine: any("reuse" in str(a) for a in before_emission(stated(lower(powers(dtype, 4))), machine))
            for machine in (free, dear)}  # fmt: skip
    assert kept == {free: True, dear: dtype is F32}
    assert not any("reuse" in str(a) for a in before_emission(stated(lower(negated(dtype))), free))


def negated(dtype: DType) -> LazyOp:
    """As :func:`powers`, of values that are computed again in less time than it takes to keep them."""
    whole = ST((64, 1024))
    value = A.alu(Ops.NEG, A.load(1, dtype, whole))
    total = A.view(A.reduce(value, Ops.ADD, (1,)), ST((64, 1)).expand((64, 1024)))
    return A.sink((A.store(0, whole, A.alu(Ops.SUB, value, total)),), (BufferArg(dtype, 64 * 1024),) * 2)


def test_kept_halves_are_what_is_computed_twice() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(0.5, 1, (3, 50)).astype(np.float16)
    results, ast = list[Array](), powers(dtypes.float16, 1, 3, 50)
    for text in ((), ("reuse_row_values()",)):
        spec = compile_ast(ast, LLVMRenderer(Target()), actions=[parse_action(line) for line in text])
        out: Array = np.zeros_like(x)
        interpret(spec.uops, [a.data.cast("B") for a in (out, x)], {})
        results.append(out)
    np.testing.assert_array_equal(results[0], results[1])


@pytest.mark.parametrize("threads", [1, 2])
def test_values_of_rows_of_a_symbolic_length_are_kept(threads: int) -> None:
    """A row of scratch is as long as the longest one; what lies behind a shorter one takes no part."""
    rng = np.random.default_rng(threads)
    rows, most = int(rng.integers(3, 8)), int(rng.integers(90, 200))
    n = Variable("n", 1, most)
    seen, whole = ST((rows, most)).shrink(((0, rows), (0, n))), ST((rows, n))
    ast = A.sink((A.store(0, whole, softmax(A.load(1, F32, seen))),), (BufferArg(F32, rows * most),) * 2)
    target = Target(vector_bytes=32, registers=16, threads=threads, l2_bytes=1 << 20)
    assert ReuseRowValues() in before_emission(stated(lower(ast)), target)
    spec = compile_ast(ast, LLVMRenderer(target))
    assert not spec.fallback
    x = rng.standard_normal((rows, most)).astype(np.float32)
    for length in (1, most, *(int(i) for i in rng.integers(2, most, 3))):
        out: Array = np.full(rows * most, 7, np.float32)
        interpret(spec.uops, [a.data.cast("B") for a in (out, x)], {n: length})
        powers = np.exp(x[:, :length])
        want = (powers / powers.sum(-1, keepdims=True)).ravel()
        np.testing.assert_allclose(out[: want.size], want, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(out[want.size :], 7)
