"""Shuffles of two vectors, transposition in registers, and the kernels that should use it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tg_codegen import Target, interpret, linearize
from tg_codegen.emit.kernel import emit_nest
from tg_codegen.emit.tiles import part
from tg_codegen.emit.transpose import transpose
from tg_codegen.emit.vectors import concatenated, turned
from tg_codegen.ir.uop import UOp, UOps, const, shuffle, vectorize
from tg_codegen.ir.verify import verify
from tg_codegen.nest.lower import lower
from tg_codegen.plan.actions import apply
from tg_codegen.plan.cpu.planner import cpu_loops
from tg_codegen.plan.vocabulary import parse_loop
from tg_codegen.render.llvm import LLVMRenderer
from tg_codegen.rewrite.rules import full_rewrite
from tg_dtype import DType, dtypes
from tg_lazy import BufferArg, LazyOp, Ops
from tg_lazy import ast as A
from tg_shape import ShapeTracker

I32, F32 = dtypes.int32, dtypes.float32
ST = ShapeTracker.from_shape
WIDE = Target(kind="cpu", vector_bytes=64, registers=32, l1_bytes=1 << 15, l2_bytes=1 << 20)


def vectors(count: int, lanes: int, dtype: DType) -> list[UOp]:
    data = UOp(UOps.PARAM, dtype.ptr(), (), 1)
    return [UOp(UOps.LOAD, dtype.vec(lanes), (data, const(n * lanes, I32))) for n in range(count)]


def run(values: list[UOp], source: bytes, itemsize: int) -> bytearray:
    """The values, stored one behind the other."""
    out = UOp(UOps.PARAM, values[0].dtype.scalar().ptr(), (), 0)
    stores, at = [], 0
    for value in values:
        stores.append(UOp(UOps.STORE, dtypes.void, (out, const(at, I32), value)))
        at += value.dtype.count
    sink = UOp(UOps.SINK, dtypes.void, tuple(stores))
    verify(sink)
    memory = bytearray(at * itemsize)
    interpret(sink, [memory, bytearray(source)])
    return memory


@pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.int16, F32, dtypes.int64], ids=str)
@pytest.mark.parametrize(("n", "blocks"), [(1, 1), (2, 1), (4, 1), (8, 1), (16, 1), (32, 1), (2, 4), (4, 2), (8, 2)])
def test_transpose(n: int, blocks: int, dtype: DType) -> None:
    source = np.arange(n * n * blocks).astype(dtype.name)
    got = np.frombuffer(run(transpose(vectors(n, n * blocks, dtype)), source.tobytes(), dtype.itemsize), dtype.name)
    want = source.reshape(n, blocks, n).transpose(2, 1, 0)
    np.testing.assert_array_equal(got.reshape(n, blocks, n), want)


@pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.int16, F32], ids=str)
@pytest.mark.parametrize(
    ("n", "blocks", "group"),
    [(1, 1, 4), (2, 3, 2), (4, 2, 4), (8, 1, 2), (16, 1, 4), (2, 1, 8), (4, 1, 3), (4, 1, 5), (8, 2, 3)])
def test_groups_stay_together(n: int, blocks: int, group: int, dtype: DType) -> None:
    source = np.arange(n * n * blocks * group).astype(dtype.name)
    found = run(transpose(vectors(n, n * blocks * group, dtype), group), source.tobytes(), dtype.itemsize)
    want = source.reshape(n, blocks, n, group).transpose(2, 1, 0, 3)
    np.testing.assert_array_equal(np.frombuffer(found, dtype.name).reshape(want.shape), want)


def test_a_stage_is_one_shuffle_for_each_vector() -> None:
    columns = transpose(vectors(16, 16, F32))
    nodes = {u for column in columns for u in column.toposort() if u.op is UOps.GEP}
    assert len(nodes) == 16 * 4
    assert all(len(u.src) == 2 for u in nodes)


def test_what_is_not_a_power_of_two_is_not_transposed() -> None:
    for count, lanes in ((3, 3), (4, 6)):
        with pytest.raises(ValueError, match=f"{count} vectors of {lanes} lanes"):
            transpose(vectors(count, lanes, F32))


def test_bools_are_transposed_as_bytes() -> None:
    rows = vectors(4, 4, dtypes.bool)
    columns = turned(rows)
    assert all(column.dtype is dtypes.bool.vec(4) for column in columns)
    shuffled = {u for c in columns for u in c.toposort() if u.op is UOps.GEP}
    assert shuffled and all(u.dtype.scalar() is dtypes.uint8 for u in shuffled)
    source = np.random.default_rng(0).integers(0, 2, (4, 4)).astype(np.uint8)
    got = np.frombuffer(run(columns, source.tobytes(), 1), np.uint8)
    np.testing.assert_array_equal(got.reshape(4, 4), source.T)


def test_joined() -> None:
    source = np.arange(12, dtype=np.int32)
    rows = vectors(6, 2, I32)
    assert concatenated(rows[:1]) is rows[0]
    got = np.frombuffer(run([concatenated(rows[:4]), concatenated(rows[4:])], source.tobytes(), 4), np.int32)
    np.testing.assert_array_equal(got, source)


@given(st.integers(1, 40), st.sampled_from([1, 2, 4, 8, 16]))
def test_parts_cover_an_extent_once(extent: int, most: int) -> None:
    parts = sorted({part(extent, at, most) for at in range(extent)})
    covered = [n for start, width in parts for n in range(start, start + width)]
    assert covered == list(range(extent))
    assert all(width <= most and not width & (width - 1) for _, width in parts)
    assert all(start <= at < start + width for at in range(extent) for start, width in [part(extent, at, most)])


@given(st.data())
def test_shuffles_fold_to_the_same_lanes(data: st.DataObject) -> None:
    lanes = data.draw(st.sampled_from([2, 3, 4]))
    source = np.arange(2 * lanes, dtype=np.int32) * 7 - 3
    loads = vectors(2, lanes, I32)
    scalar = UOp(UOps.LOAD, I32, (loads[0].src[0], const(0, I32)))
    pool = [
        *((u, list(source[n * lanes : (n + 1) * lanes])) for n, u in enumerate(loads)),
        (scalar.broadcast(lanes), [source[0]] * lanes),
        (const(5, I32.vec(lanes)), [5] * lanes),
        (vectorize(*(scalar.alu(Ops.ADD, const(n, I32)) for n in range(lanes))), [source[0] + n for n in range(lanes)]),
    ]
    for _ in range(data.draw(st.integers(1, 4))):
        (a, x), (b, y) = (data.draw(st.sampled_from(pool), label="operand") for _ in range(2))
        picked = data.draw(st.lists(st.integers(0, 2 * lanes - 1), min_size=lanes, max_size=lanes))
        pool.append((shuffle(a, b, *picked), [[*x, *y][lane] for lane in picked]))
    got, want = pool[-1]
    out = UOp(UOps.PARAM, I32.ptr(), (), 0)
    sink = UOp(UOps.SINK, dtypes.void, (UOp(UOps.STORE, dtypes.void, (out, const(0, I32), got)),))
    for kernel in (sink, full_rewrite(sink, LLVMRenderer(WIDE))):
        verify(kernel)
        memory = bytearray(4 * lanes)
        interpret(kernel, [memory, bytearray(source.tobytes())])
        assert np.frombuffer(memory, np.int32).tolist() == want


def counted(ast: LazyOp, actions: str | None, target: Target = WIDE) -> tuple[int, int, int]:
    """Loads and stores of global memory that have one element, and shuffles of two vectors."""
    nest = lower(ast)
    chosen = cpu_loops(nest, target) if actions is None else [parse_loop(text) for text in actions.split("; ")]
    uops = linearize(full_rewrite(emit_nest(apply(nest, chosen), target), LLVMRenderer(target)))
    verify(uops)
    memory = [u for u in uops if u.op in (UOps.LOAD, UOps.STORE) and u.src[0].op is UOps.PARAM]
    loads = sum(u.op is UOps.LOAD and u.dtype.count == 1 for u in memory)
    stores = sum(u.op is UOps.STORE and u.src[2].dtype.count == 1 for u in memory)
    return loads, stores, sum(u.op is UOps.GEP and len(u.src) == 2 for u in uops)


def transposed(n: int, m: int, dtype: DType = F32) -> LazyOp:
    load = A.load(1, dtype, ST((m, n)).permute((1, 0)))
    return A.sink((A.store(0, ST((n, m)), load),), (BufferArg(dtype, n * m),) * 2)


@pytest.mark.parametrize("dtype", [F32, dtypes.float64, dtypes.int16, dtypes.uint8, dtypes.bool], ids=str)
def test_a_transposition_has_no_scalar_access(dtype: DType) -> None:
    loads, stores, shuffles = counted(transposed(64, 128, dtype), None)
    assert (loads, stores) == (0, 0) and shuffles > 0


def test_a_transposing_store_has_no_scalar_access() -> None:
    loads, stores, shuffles = counted(transposed(64, 64), "split(i0, 16, VECTOR); split(i1, 16, UPCAST)")
    assert (loads, stores, shuffles) == (0, 0, 64)


def test_a_ragged_transposition_masks_its_rows() -> None:
    loads, stores, shuffles = counted(transposed(50, 70), None)
    assert (loads, stores) == (0, 0) and shuffles > 0


def product(m: int, n: int, k: int, left: bool, right: bool) -> LazyOp:
    a = ST((k, m)).permute((1, 0)) if left else ST((m, k))
    b = ST((n, k)) if right else ST((k, n)).permute((1, 0))
    terms = A.alu(
        Ops.MUL,
        A.load(1, F32, a.reshape((m, 1, k)).expand((m, n, k))),
        A.load(2, F32, b.reshape((1, n, k)).expand((m, n, k))),
    )
    store = A.store(0, ST((m, n, 1)), A.reduce(terms, Ops.ADD, (2,)))
    return A.sink((store,), (BufferArg(F32, m * n), BufferArg(F32, m * k), BufferArg(F32, k * n)))


def terms_at_once(ast: LazyOp) -> int:
    """How many terms of a product the heuristic's loop adds up in a round."""
    texts = [str(action) for action in cpu_loops(lower(ast), WIDE)]
    return next((int(t.split(", ")[1]) for t in texts if t.startswith("split(r0,") and t.endswith("UNROLL)")), 1)


@pytest.mark.parametrize("left", [False, True])
def test_packing_a_transposed_operand_has_no_scalar_load_of_it(left: bool) -> None:
    """Also where both are: what is loaded one by one is the other operand, a number for each row and term."""
    ast = product(96, 96, 256, left, True)
    loads, stores, shuffles = counted(ast, None)
    assert loads <= 8 * terms_at_once(ast) and stores == 0 and shuffles > 0


@pytest.mark.parametrize(("m", "k", "left", "pieces"), [
    (256, 1024, True, False), (1024, 1024, True, True), (1040, 1024, True, False), (1024, 1024, False, False),
    (1024, 8192, False, True),
])  # fmt: skip
def test_a_long_reduction_is_done_in_pieces(m: int, k: int, left: bool, pieces: bool) -> None:
    """Where neighbours along it fall on one set of the cache, or where its vectors do not fit."""
    actions = cpu_loops(lower(product(m, 1024, k, left, False)), WIDE)
    assert any(str(a).startswith("split_reduction") for a in actions) is pieces
