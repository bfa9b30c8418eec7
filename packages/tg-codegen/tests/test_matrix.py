"""Matrix instructions: where fragments lie, and products that are done by them, against numpy."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tg_codegen import Target, interpret, linearize
from tg_codegen.compile import compile_ast
from tg_codegen.emit.kernel import emit_nest
from tg_codegen.ir.errors import EmitError
from tg_codegen.ir.matrix import (
    AMX_TILES,
    AVX2_DOTS,
    AVX512_DOTS,
    INSTRUCTIONS,
    Fragment,
    MatrixInstruction,
    dot_product,
)
from tg_codegen.ir.text import parse_linear, print_uops
from tg_codegen.ir.uop import UOp, UOps
from tg_codegen.ir.verify import verify
from tg_codegen.nest.lower import lower
from tg_codegen.nest.nest import Nest
from tg_codegen.nest.spec import Kind
from tg_codegen.plan.actions import LoopAction, apply
from tg_codegen.plan.cpu.planner import cpu_loops
from tg_codegen.plan.unsigned_products import proposed
from tg_codegen.plan.vocabulary import parse_loop
from tg_codegen.render.c.clang import ClangRenderer
from tg_codegen.render.llvm import LLVMRenderer
from tg_codegen.rewrite.rules import full_rewrite
from tg_codegen.search.moves import warp_moves
from tg_dtype import DType, dtypes
from tg_lazy import BufferArg, LazyOp, Ops
from tg_lazy import ast as A
from tg_shape import ShapeTracker, Variable, toposort, upper

ST = ShapeTracker.from_shape
Array = np.ndarray[Any, np.dtype[Any]]
BF16, F32 = dtypes.bfloat16, dtypes.float32
WIDE = Target(vector_bytes=64, registers=32, l1_bytes=1 << 15, l2_bytes=1 << 20, matrices=AVX512_DOTS)
NARROW = Target(vector_bytes=32, registers=16, l1_bytes=1 << 15, l2_bytes=1 << 20, matrices=AVX2_DOTS)
TILES = replace(WIDE, threads=2, matrices=(*AMX_TILES, *AVX512_DOTS))
SMALL = replace(WIDE, vector_bytes=16, matrices=(dot_product("vdpbf16ps", BF16, BF16, F32, 4),))


def bits(x: Array) -> Array:
    word = x.astype(np.float32).view(np.uint32)
    return ((word + 0x7FFF + (word >> 16 & 1)) >> 16).astype(np.uint16)


def floats(x: Array) -> Array:
    return (x.astype(np.uint32) << 16).view(np.float32)


def product(
    m: int, n: int, k: int, ta: bool = False, tb: bool = False, a: DType = BF16, b: DType = BF16, acc: DType = F32
) -> LazyOp:
    shape = (m, n, k)
    left = ST((k, m)).permute((1, 0)) if ta else ST((m, k))
    right = ST((n, k)) if tb else ST((k, n)).permute((1, 0))
    x = A.cast(A.load(1, a, left.reshape((m, 1, k)).expand(shape)), acc)
    y = A.cast(A.load(2, b, right.reshape((1, n, k)).expand(shape)), acc)
    total = A.reduce(A.alu(Ops.MUL, x, y), Ops.ADD, (2,))
    sizes = (BufferArg(acc, m * n), BufferArg(a, m * k), BufferArg(b, k * n))
    return A.sink((A.store(0, ST((m, n, 1)), total),), sizes)


def run(sink: UOp, m: int, n: int, k: int, ta: bool, tb: bool) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-1, 1, (k, m) if ta else (m, k)), rng.uniform(-1, 1, (n, k) if tb else (k, n))
    buffers = [np.zeros((m, n), np.float32), bits(x), bits(y)]
    verify(sink)
    interpret(linearize(sink), [b.data.cast("B") for b in buffers], {})
    left, right = floats(buffers[1]), floats(buffers[2])
    np.testing.assert_allclose(buffers[0], (left.T if ta else left) @ (right.T if tb else right), rtol=1e-4, atol=1e-5)


def planned(ast: LazyOp, target: Target) -> Nest:
    nest = lower(ast)
    return apply(nest, cpu_loops(nest, target))


def matrices(sink: UOp) -> list[UOp]:
    return [u for u in sink.toposort() if u.op is UOps.MATRIX]


WARP = Fragment(((0, 1), (8, 0), (0, 8)), ((0, 2), (0, 4), (1, 0), (2, 0), (4, 0)))


@pytest.mark.parametrize("fragment", [
    WARP, *(f for i in INSTRUCTIONS.values() for f in i.fragments[: 2 if i.paired else 3])])  # fmt: skip
def test_every_place_is_some_threads_element(fragment: Fragment) -> None:
    threads = 1 << len(fragment.threads)
    places = [fragment.place(e, t) for t in range(threads) for e in range(fragment.count)]
    rows, columns = 1 + max(r for r, _ in places), 1 + max(c for _, c in places)
    assert len(set(places)) == len(places) == rows * columns


def test_a_symbolic_element() -> None:
    element = Variable("e", 0, 7)
    row, column = WARP.place(element, 9)
    for e in range(8):
        places = [p if isinstance(p, int) else p.evaluate({element: e}) for p in (row, column)]
        assert tuple(places) == WARP.place(e, 9)


@pytest.mark.parametrize("tb", [False, True])
@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize(("m", "n", "k"), [(5, 16, 24), (9, 21, 17), (8, 32, 64)])
def test_products(m: int, n: int, k: int, ta: bool, tb: bool) -> None:
    nest = lower(product(m, n, k, ta, tb))
    text = ["split(i1, 4, VECTOR)", "split(r0, 2, CONTRACT)", "split(i0, 2, UPCAST)", "split(i1, 2, UPCAST)",
            "outermost(i1)", "pack(1, i1)"]
    actions: list[LoopAction] = [parse_loop(line) for line in text]
    sink = emit_nest(apply(nest, actions), SMALL)
    assert len(matrices(sink)) >= 4
    run(sink, m, n, k, ta, tb)


def numbers(rng: np.random.Generator, dtype: DType, *shape: int) -> Array:
    """Bits of every number that there is of a dtype; without a fraction, so that sums of a few hundred are exact."""
    if dtype is BF16:
        return bits(rng.integers(-16, 17, shape))
    return rng.integers(int(dtypes.min(dtype)), int(dtypes.max(dtype)) + 1, shape).astype(dtype.name)


def interpreted(
    sink: UOp, instruction: MatrixInstruction, m: int, n: int, k: int, ta: bool, tb: bool, threads: int, seed: int
) -> None:
    """Runs a product in the interpreter, and compares every bit of the result."""
    rng = np.random.default_rng(seed)
    x = numbers(rng, instruction.a, *((k, m) if ta else (m, k)))
    y = numbers(rng, instruction.b, *((n, k) if tb else (k, n)))
    out = np.zeros((m, n), instruction.acc.name)
    verify(sink)
    interpret(linearize(sink), [b.data.cast("B") for b in (out, x, y)], {}, threads=threads)
    left, right = (floats(v) if v.dtype == np.uint16 else v.astype(np.int64) for v in (x, y))
    np.testing.assert_array_equal(out, (left.T if ta else left) @ (right.T if tb else right))


@pytest.mark.parametrize("instruction", AMX_TILES, ids=lambda found: found.name)
def test_planned_products_of_tiles(instruction: MatrixInstruction) -> None:
    """Of any size from the smallest on, in any order, in one block of rows or in several."""
    seed = AMX_TILES.index(instruction)
    rng = np.random.default_rng(seed)
    m, n, k = (int(rng.integers(least, least + 5)) for least in (33, 32, instruction.shape[2]))
    ta, tb = bool(rng.integers(2)), bool(rng.integers(2))
    target = replace(TILES, threads=1 + seed % 2, l2_bytes=int(rng.choice([8 << 10, 1 << 20])))
    ast = product(m, n, k, ta, tb, instruction.a, instruction.b, instruction.acc)
    sink = emit_nest(planned(ast, target), target)
    assert {u.arg for u in matrices(sink)} == {instruction}
    interpreted(sink, instruction, m, n, k, ta, tb, target.threads, seed)


def cut_for_tiles(instruction: MatrixInstruction, *between: str) -> list[str]:
    """The splits that a product by tile registers wants, with others between those of its terms."""
    rows, columns, terms = instruction.shape
    together = instruction.together
    return [f"split(i0, {rows}, FRAGMENT_ROWS)", f"split(i1, {columns}, FRAGMENT_COLUMNS)",
            f"split(r0, {together}, CONTRACT)", *between, f"split(r0, {terms // together}, DEPTH)"]


def test_terms_of_tiles_that_lie_apart() -> None:
    """Those of one product may be steps apart; whether the last part of them is whole is asked of all of them."""
    instruction, rng = AMX_TILES[0], np.random.default_rng(7)
    m, n, k = (int(rng.integers(least, least + 3)) for least in (16, 16, 65))
    texts = [*cut_for_tiles(instruction, "split(r0, 2, UNROLL)"), "pack(0, -)", "pack(1, -)"]
    nest = apply(lower(product(m, n, k, False, True)), [parse_loop(text) for text in texts])
    sink = emit_nest(nest, TILES)
    assert len(matrices(sink)) >= 2
    interpreted(sink, instruction, m, n, k, False, True, 1, 0)


@pytest.mark.parametrize(("k", "texts", "message"), [
    (64, cut_for_tiles(AMX_TILES[0]), "what is packed"),
    (67, cut_for_tiles(AMX_TILES[0]), "what is packed"),
    (67, [*cut_for_tiles(AMX_TILES[0]), "pack(0, -)"], "what is packed"),
    (200, [*cut_for_tiles(AMX_TILES[0], "split(r0, 4, UNROLL)"), "pack(1, -)"], "what is packed"),
    (64, ["split(r0, 16, DEPTH)"], "CONTRACT"),
    (64, ["split(i1, 16, VECTOR)", "split(r0, 2, CONTRACT)", "split(r0, 16, DEPTH)"], "no matrix instruction"),
    (64, ["split(r0, 2, CONTRACT)", "split(r0, 4, DEPTH)", "split(r0, 4, LANES)"], "CONTRACT"),
])  # fmt: skip
def test_what_tiles_cannot_do_is_refused(k: int, texts: list[str], message: str) -> None:
    """At once: elements gathered for a tile one by one were hundreds of lanes, each with a mask of its own."""
    nest = apply(lower(product(33, 32, k, False, True)), [parse_loop(text) for text in texts])
    with pytest.raises(EmitError, match=message):
        emit_nest(nest, TILES)


def test_a_search_tries_tiles() -> None:
    """In one move, whatever the sizes, with either dimension as rows."""
    instruction, rng = AMX_TILES[0], np.random.default_rng(8)
    m, n, k = (int(rng.integers(least, least + 3)) for least in (16, 16, 33))
    nest = lower(product(m, n, k, True, False))
    target = replace(TILES, matrices=(instruction,))
    moves = list(warp_moves(nest, target))
    assert len(moves) == 2
    for move in moves:
        sink = emit_nest(apply(nest, list(move)), target)
        assert {u.arg for u in matrices(sink)} == {instruction}
        interpreted(sink, instruction, m, n, k, True, False, 1, 0)


@pytest.mark.parametrize(("m", "n", "k"), [(32, 64, 64), (64, 31, 64), (64, 64, 31)])
def test_small_products_have_no_tiles(m: int, n: int, k: int) -> None:
    assert not any(u.arg.tiled for u in matrices(emit_nest(planned(product(m, n, k), TILES), TILES)))


def test_floats_whose_order_is_kept_have_no_tiles() -> None:
    strict = replace(TILES, strict=True)
    assert not matrices(emit_nest(planned(product(64, 64, 64), strict), strict))


def test_a_long_sum_of_tiles_is_added_up_in_blocks() -> None:
    """Each accumulator adds one sum after the other: what a register of rows has side by side counts as terms, too."""
    target = replace(TILES, threads=1)
    ast = product(33, 32, 8224)
    sink = emit_nest(planned(ast, target), target)
    assert len([u for u in sink.toposort() if u.op is UOps.ACC]) == 2 * len(matrices(sink))


@pytest.mark.parametrize("a", [dtypes.int8, dtypes.uint8])
@pytest.mark.parametrize("b", [dtypes.int8, dtypes.uint8])
def test_signs_of_bytes_in_tiles(a: DType, b: DType) -> None:
    """The letters of the instruction say of its first and of its second operand whether there is a sign."""
    name = "tdpb" + "".join("u" if dtypes.is_unsigned(dtype) else "s" for dtype in (a, b)) + "d"
    text = compile_ast(product(64, 64, 64, False, False, a, b, dtypes.int32), LLVMRenderer(TILES)).src
    assert set(re.findall(r"@llvm\.x86\.(tdp\w+)\.internal", text)) == {name}


def test_tiles_as_llvm_has_them() -> None:
    """Operands are loaded as tiles, sums stay tiles from one product to the next, and are stored once."""
    renderer = LLVMRenderer(TILES)
    spec = compile_ast(product(64, 64, 64), renderer)
    assert [m.name for m in renderer.target.matrices][:5] == [m.name for m in AMX_TILES]
    text = spec.src
    assert text.count("call x86_amx @llvm.x86.tdpbf16ps.internal(i16 16, i16 64, i16 64") == 4
    assert text.count("call x86_amx @llvm.x86.tileloadd64.internal(i16 16, i16 64") == 4
    assert text.count("call void @llvm.x86.tilestored64.internal(i16 16, i16 64") == 4
    assert not any(m.tiled for m in ClangRenderer(TILES).target.matrices)


def test_the_first_operand_packed() -> None:
    nest = lower(product(6, 16, 20, True, False))
    text = ["split(i1, 4, VECTOR)", "split(r0, 2, CONTRACT)", "split(i0, 2, UPCAST)", "outermost(i1)", "pack(1, i1)",
            "pack(0, i0)"]
    run(emit_nest(apply(nest, [parse_loop(line) for line in text]), SMALL), 6, 16, 20, True, False)


SIGNED = ["split(i1, 16, VECTOR)", "split(r0, 4, CONTRACT)", "split(i0, 2, UPCAST)"]


@pytest.mark.parametrize(("rest", "name"), [
    (["outermost(i1)", "pack(1, i1)"], "vpdpbusd"), (["pack(1, i1)"], "vpdpbusd"), (["pack(1, -)"], "vpdpbusd"),
    (["split(i1, 2, LOOP)", "outermost(i1)", "pack(1, i1)"], "vpdpbusd"),
    (["split(i0, 2, LOOP)", "outermost(i1)", "outermost(i0)", "pack(1, i1)"], "vpdpbusd"),
    (["outermost(i1)", "split(r0, 3, REDUCE)", "split_reduction(0, i1)", "pack(1, r0)"], "vpdpbusd.signed"),
])  # fmt: skip
@pytest.mark.parametrize(("m", "n", "k"), [(5, 32, 24), (7, 37, 19), (11, 83, 31)])
def test_signed_bytes(m: int, n: int, k: int, rest: list[str], name: str) -> None:
    """What flipping the sign of one adds is summed up once for all rows, and kept where columns are inside of them."""
    actions = [parse_loop(line) for line in (*SIGNED, *rest)]
    nest = apply(lower(product(m, n, k, a=dtypes.int8, b=dtypes.int8, acc=dtypes.int32)), actions)
    sink = emit_nest(apply(nest, [*proposed(nest, WIDE)]), WIDE)
    assert {u.arg.name for u in matrices(sink)} == {name}
    rng = np.random.default_rng(0)
    x, y = (rng.choice(np.array([-128, -1, 0, 1, 127, 55, -77], np.int8), shape) for shape in ((m, k), (k, n)))
    out = np.zeros((m, n), np.int32)
    verify(sink)
    interpret(linearize(sink), [b.data.cast("B") for b in (out, x, y)], {})
    np.testing.assert_array_equal(out, x.astype(np.int32) @ y.astype(np.int32))


@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize(("m", "n", "k", "rows", "vectors"), [
    (5, 64, 67, 2, 1), (7, 37, 131, 3, 2), (6, 65, 128, 6, 2), (13, 96, 257, 6, 4), (3, 130, 64, 3, 6),
    (6, 128, 64, 6, 4), (2, 31, 71, 2, 1),
])  # fmt: skip
def test_signs_are_flipped_before_the_products(m: int, n: int, k: int, rows: int, vectors: int, ta: bool) -> None:
    """What lies along the reduction is flipped in whole vectors, once for all columns of a panel."""
    text = ["split(i1, 16, VECTOR)", "split(r0, 4, CONTRACT)",
            f"split(i0, {rows}, UPCAST)" if rows < m else "mark(i0, UPCAST)",
            *([f"split(i1, {vectors}, UPCAST)"] if vectors > 1 else []), *(["outermost(i1)"] if rows < m else []),
            "pack(1, i1)"]
    ast = product(m, n, k, ta, a=dtypes.int8, b=dtypes.int8, acc=dtypes.int32)
    nest = apply(lower(ast), [parse_loop(line) for line in text])
    sink = emit_nest(apply(nest, [*proposed(nest, WIDE)]), WIDE)
    crowded = rows == m and (rows + 2) * vectors + 2 > WIDE.registers
    assert {u.arg.name for u in matrices(sink)} == {"vpdpbusd.signed" if crowded else "vpdpbusd"}
    flips = [u for u in sink.toposort() if u.op is Ops.XOR]
    near = toposort([u.src[1] for u in matrices(sink)], lambda u: () if u.op is UOps.AFTER else u.src)
    if crowded:
        assert not flips
    elif not ta:
        assert max(u.dtype.count for u in flips) == 64
        assert not {*near} & {*flips}, "a product reads what was flipped before"
    rng = np.random.default_rng(0)
    x, y = (rng.choice(np.array([-128, -1, 0, 1, 127], np.int8), s) for s in ((k, m) if ta else (m, k), (k, n)))
    x[: m // 2 + 1], y[:, : n // 2] = -128, -128
    out = np.zeros((m, n), np.int32)
    verify(sink)
    interpret(linearize(sink), [b.data.cast("B") for b in (out, x, y)], {})
    np.testing.assert_array_equal(out, (x.T if ta else x).astype(np.int32) @ y.astype(np.int32))


@pytest.mark.parametrize(("m", "n", "k"), [(8, 17, 67), (6, 17, 13), (3, 16, 33)])
def test_nothing_is_read_that_was_not_flipped(m: int, n: int, k: int) -> None:
    """An unrolled reduction masks behind the load; the interpreter tells a read of what was never written."""
    text = ["split(i1, 16, VECTOR)", "split(r0, 4, CONTRACT)", f"split(r0, {-(-k // 12)}, REDUCE)", "mark(r0, UNROLL)",
            "mark(i0, UPCAST)"]
    ast = product(m, n, k, a=dtypes.int8, b=dtypes.int8, acc=dtypes.int32)
    nest = apply(lower(ast), [parse_loop(line) for line in text])
    sink = emit_nest(apply(nest, [*proposed(nest, WIDE)]), WIDE)
    rng = np.random.default_rng(1)
    x, y = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((m, k), (k, n)))
    out = np.zeros((m, n), np.int32)
    verify(sink)
    interpret(linearize(sink), [b.data.cast("B") for b in (out, x, y)], {})
    np.testing.assert_array_equal(out, x.astype(np.int32) @ y.astype(np.int32))


def test_long_reductions_in_pieces() -> None:
    nest = lower(product(6, 16, 40))
    text = ["split(i1, 4, VECTOR)", "split(r0, 2, CONTRACT)", "split(i0, 2, UPCAST)", "split(r0, 7, REDUCE)",
            "outermost(i1)", "split_reduction(0, i1)", "pack(1, r0)"]
    run(emit_nest(apply(nest, [parse_loop(line) for line in text]), SMALL), 6, 16, 40, False, False)


def test_the_heuristic_takes_them() -> None:
    ast = product(128, 128, 128)
    assert matrices(emit_nest(planned(ast, WIDE), WIDE))


@pytest.mark.parametrize(("m", "n", "k"), [(192, 512, 96), (97, 449, 67)])
def test_panels_are_packed_in_groups(m: int, n: int, k: int) -> None:
    """A tile of rows serves all panels that the second-level cache holds, half of them for each of two threads."""
    ast = product(m, n, k, a=dtypes.int8, b=dtypes.int8, acc=dtypes.int32)
    nest = planned(ast, replace(WIDE, threads=2))
    panels = [a for a in nest.of_root(nest.axes[0].root) if a.kind in (Kind.LOOP, Kind.THREAD)]
    names = [a.name for a in nest.axes]
    rows = next(a for a in nest.axes if a.kind is Kind.LOOP and a.root is not panels[0].root)
    assert [upper(a.extent) for a in panels] == [2, -(-n // (2 * panels[1].stride))]
    assert names.index(panels[0].name) < names.index(rows.name) < names.index(panels[1].name)
    assert any(s.axis == panels[0].name for s in nest.stages)


def test_terms_that_lie_side_by_side_are_packed_together() -> None:
    """A vector of an operand that is transposed takes log2(16) shuffles, as one of 32-bit numbers does."""
    text = ["split(i1, 16, VECTOR)", "split(r0, 4, CONTRACT)", "split(i0, 6, UPCAST)", "outermost(i1)", "pack(1, i1)"]
    nest = lower(product(12, 16, 64, tb=True, a=dtypes.uint8, b=dtypes.int8, acc=dtypes.int32))
    sink = emit_nest(apply(nest, [parse_loop(line) for line in text]), WIDE)
    nodes = sink.toposort()
    packed = [u for u in nodes if u.op is UOps.STORE and u.src[2].dtype == dtypes.int8.vec(64)]
    assert len(packed) == 16 and sum(u.op is UOps.GEP for u in nodes) == 16 * 4


@pytest.mark.parametrize("near", [False, True])
def test_the_next_tile_of_rows_is_fetched_while_one_is_copied(near: bool) -> None:
    """Where the second-level cache does not hold all rows: a tile's rows come one after the other."""
    target = replace(WIDE, l2_bytes=1 << (20 if near else 17))
    sink = emit_nest(planned(product(192, 512, 256, a=dtypes.int8, b=dtypes.int8, acc=dtypes.int32), target), target)
    ahead = [u for u in sink.toposort() if u.op is UOps.PREFETCH]
    flips = [u for u in sink.toposort() if u.op is Ops.XOR]
    assert flips and len(ahead) == (0 if near else len(flips))


def test_not_where_nothing_would_be_packed() -> None:
    assert not matrices(emit_nest(planned(product(2, 64, 64), WIDE), WIDE))


@pytest.mark.parametrize("a", [dtypes.uint8, dtypes.int8], ids=str)
@pytest.mark.parametrize(("m", "n", "k"), [(2, 160, 64), (5, 331, 71), (7, 128, 19)])
def test_a_few_rows_read_the_wide_operand_once(m: int, n: int, k: int, a: DType) -> None:
    """Nothing is packed: a vector of the instruction is woven in registers, from one of each of its rows."""
    ast = product(m, n, k, a=a, b=dtypes.int8, acc=dtypes.int32)
    sink = emit_nest(planned(ast, WIDE), WIDE)
    loads = [u for u in sink.toposort() if u.op is UOps.LOAD and u.dtype == dtypes.int8.vec(16)]
    assert matrices(sink) and loads and {u.src[0].op for u in loads} == {UOps.PARAM}
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (m, k)).astype(np.uint8).astype(a.name)
    y = rng.integers(-128, 128, (k, n)).astype(np.int8)
    out = np.zeros((m, n), np.int32)
    verify(sink)
    interpret(linearize(sink), [z.data.cast("B") for z in (out, x, y)], {})
    np.testing.assert_array_equal(out, x.astype(np.int32) @ y.astype(np.int32))


@pytest.mark.parametrize(
    ("a", "b", "acc", "name"),
    [
        (BF16, BF16, F32, "vdpbf16ps"),
        (dtypes.uint8, dtypes.int8, dtypes.int32, "vpdpbusd"),
        (dtypes.int16, dtypes.int16, dtypes.int32, "vpdpwssd"),
        (dtypes.float16, dtypes.float16, F32, None),
        (dtypes.int8, dtypes.int8, dtypes.int32, "vpdpbusd"),
        (dtypes.uint8, dtypes.uint8, dtypes.int32, "vpdpbusd.unsigned"),
    ],
)
def test_by_dtype(a: DType, b: DType, acc: DType, name: str | None) -> None:
    found = {u.arg.name for u in matrices(emit_nest(planned(product(128, 128, 128, a=a, b=b, acc=acc), WIDE), WIDE))}
    assert found == ({name} if name else set())


@pytest.mark.parametrize(("m", "n", "k"), [(1, 5, 128), (2, 3, 131), (1, 1, 257), (7, 2, 300)])
@pytest.mark.parametrize(("a", "b", "name"), [
    (dtypes.uint8, dtypes.int8, "paired.vpdpbusd"), (dtypes.int8, dtypes.uint8, "paired.vpdpbusd.turned"),
    (dtypes.int8, dtypes.int8, "paired.vpdpbusd.signed"), (dtypes.uint8, dtypes.uint8, "paired.vpdpbusd.unsigned"),
    (dtypes.int16, dtypes.int16, "paired.vpdpwssd"),
], ids=str)  # fmt: skip
def test_few_rows_times_columns_that_lie_as_rows(a: DType, b: DType, name: str, m: int, n: int, k: int) -> None:
    """Neighbouring terms of both operands are multiplied where they lie; those left over one by one."""
    sink = emit_nest(planned(product(m, n, k, tb=True, a=a, b=b, acc=dtypes.int32), WIDE), WIDE)
    assert {u.arg.name for u in matrices(sink)} == {name}
    rng = np.random.default_rng(0)
    x, y = (
        rng.integers(int(dtypes.min(dtype)) // 9, int(dtypes.max(dtype)) // 9, shape).astype(dtype.name)
        for dtype, shape in ((a, (m, k)), (b, (n, k)))
    )
    x[0, 0], y[0, 0] = dtypes.min(a), dtypes.min(b)
    out = np.zeros((m, n), np.int32)
    verify(sink)
    interpret(linearize(sink), [z.data.cast("B") for z in (out, x, y)], {})
    np.testing.assert_array_equal(out, x.astype(np.int64) @ y.T.astype(np.int64))


SMALL_INTEGERS = (dtypes.int16, dtypes.int8, dtypes.uint8)


@pytest.mark.parametrize(("m", "n", "k", "turned"), [
    (6, 96, 64, False), (13, 49, 67, False), (11, 40, 33, True), (1, 5, 131, True), (3, 2, 70, True)])
@pytest.mark.parametrize("b", SMALL_INTEGERS, ids=str)
@pytest.mark.parametrize("a", SMALL_INTEGERS, ids=str)
def test_pairs_of_words(a: DType, b: DType, m: int, n: int, k: int, turned: bool) -> None:
    """Bytes of either sign are widened and multiplied in pairs, of which no sum saturates or wraps wrongly."""
    sink = emit_nest(planned(product(m, n, k, tb=turned, a=a, b=b, acc=dtypes.int32), NARROW), NARROW)
    names = {u.arg.name for u in matrices(sink)}
    assert names and all("vpmaddwd" in name for name in names)
    rng = np.random.default_rng(0)
    x, y = (
        rng.choice(np.array([dtypes.min(dtype), dtypes.max(dtype), 1]), shape).astype(dtype.name)
        for dtype, shape in ((a, (m, k)), (b, (n, k) if turned else (k, n))))
    out = np.zeros((m, n), np.int32)
    verify(sink)
    interpret(linearize(sink), [z.data.cast("B") for z in (out, x, y)], {})
    right = y.astype(np.int64)
    np.testing.assert_array_equal(out, (x.astype(np.int64) @ (right.T if turned else right)).astype(np.int32))


@pytest.mark.parametrize(("ta", "tb"), [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize(("m", "n", "k"), [(64, 52, 64), (13, 41, 35)])
def test_rows_that_are_left_over_are_widened_too(m: int, n: int, k: int, ta: bool, tb: bool) -> None:
    sink = emit_nest(planned(product(m, n, k, ta, tb, dtypes.int8, dtypes.int8, dtypes.int32), NARROW), NARROW)
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-128, 128, shape).astype(np.int8) for shape in (((k, m) if ta else (m, k)),
                                                                         ((n, k) if tb else (k, n))))
    out = np.zeros((m, n), np.int32)
    verify(sink)
    interpret(linearize(sink), [z.data.cast("B") for z in (out, x, y)], {})
    left, right = (x.T if ta else x).astype(np.int64), (y.T if tb else y).astype(np.int64)
    np.testing.assert_array_equal(out, left @ right)


@pytest.mark.parametrize(("m", "k"), [(24, 64), (25, 67)])
def test_rows_are_widened_where_a_tile_is_copied(m: int, k: int) -> None:
    """No product of a tile widens what all its lanes share: it reads from scratch what was widened in whole vectors."""
    sink = emit_nest(planned(product(m, 512, k, a=dtypes.int8, b=dtypes.int8, acc=dtypes.int32), NARROW), NARROW)
    assert {u.arg.name for u in matrices(sink)} == {"vpmaddwd.int16.int8"}
    wide = [u for u in sink.toposort() if u.op is Ops.CAST and u.dtype.scalar() is dtypes.int16]
    assert max(u.dtype.count for u in wide) == 16
    near = toposort([u.src[1] for u in matrices(sink)], lambda u: () if u.op is UOps.AFTER else u.src)
    assert not {*near} & {*wide}


@pytest.mark.parametrize("dtype", [BF16, dtypes.float16], ids=str)
@pytest.mark.parametrize(("m", "n", "k"), [(24, 256, 64), (19, 67, 35)])
@pytest.mark.parametrize(("ta", "tb"), [(False, False), (False, True), (True, False)])
def test_halves_are_converted_in_vectors(m: int, n: int, k: int, ta: bool, tb: bool, dtype: DType) -> None:
    """What rows share is read from scratch as floats; so is what is packed. Pairs are slower than floats here."""
    slow = replace(WIDE, threads=2, cpu=replace(WIDE.cpu, pair_product=2.0))
    sink = emit_nest(planned(product(m, n, k, ta, tb, a=dtype, b=dtype), slow), slow)
    assert not matrices(sink)
    if not ta:  # else a tile of rows that are left over is converted one by one
        casts = [u for u in sink.toposort() if u.op is Ops.CAST and u.dtype.scalar() is F32]
        assert {u.dtype.count for u in casts if u.dtype.count < 8} <= ({1, 2, 4} if k % 16 or n % 16 else set())
        sums = [u for u in sink.toposort() if u.op is Ops.MULACC]
        shared = [s.src[0] for u in sums for s in u.src[:2] if s.op is UOps.BROADCAST]
        assert sums and not any(s.op is Ops.CAST for s in shared)
    verify(sink)
    if dtype is BF16 and k % 16:
        run(sink, m, n, k, ta, tb)


def blocks(rows: int, panels: int, runs: int, gap: int = 0) -> LazyOp:
    """Sums of bytes, scaled run by run; weights lie as an instruction reads them, in lines ``gap`` bytes too long."""
    line = 64 + gap
    shape, inside = (rows, panels, runs, 8, 16, 4), (rows, panels, runs, 1, 1, 1)
    x = ST((rows, 1, runs, 8, 1, 4)).expand(shape)
    w = ST((panels, runs, 8, line)).shrink(((0, panels), (0, runs), (0, 8), (0, 64)))
    w = w.reshape((1, panels, runs, 8, 16, 4)).expand(shape)
    wide = [A.cast(A.load(1, dtypes.int8, x), dtypes.int32), A.cast(A.load(2, dtypes.uint8, w), dtypes.int32)]
    sums = A.cast(A.reduce(A.alu(Ops.MUL, *wide), Ops.ADD, (3, 5)), F32)
    scale = A.load(3, F32, ST((rows, 1, runs, 1, 1, 1)).expand(inside).expand((rows, panels, runs, 1, 16, 1)))
    total = A.reduce(A.alu(Ops.MUL, sums, scale), Ops.ADD, (2,))
    sizes = (BufferArg(F32, rows * panels * 16), BufferArg(dtypes.int8, rows * runs * 32),
             BufferArg(dtypes.uint8, panels * runs * 8 * line), BufferArg(F32, rows * runs))
    return A.sink((A.store(0, ST((rows, panels, 1, 1, 16, 1)), total),), sizes)


@pytest.mark.parametrize(("rows", "copies"), [(1, 8), (6, 6 * 8), (8, 8), (11, 8)])
def test_sums_inside_a_sum_from_where_their_operand_lies(rows: int, copies: int) -> None:
    """So many rows that none waits for its sum have their products side by side, those of fewer are unrolled."""
    panels, runs = 3, 5
    sink = emit_nest(planned(blocks(rows, panels, runs), WIDE), WIDE)
    assert {u.arg.name for u in matrices(sink)} == {"vpdpbusd.turned"}
    assert not [u for u in sink.toposort() if u.op is UOps.SCRATCH], "nothing is packed"
    assert len(matrices(sink)) == copies
    ahead = [u for u in sink.toposort() if u.op is UOps.PREFETCH]
    assert bool(ahead) is (rows in (1, 11)), "fetched before it is wanted, where rows do not share it"
    rng = np.random.default_rng(0)
    x = rng.integers(-128, 128, (rows, runs, 8, 4)).astype(np.int8)
    w = rng.integers(0, 256, (panels, runs, 8, 16, 4)).astype(np.uint8)
    scale, out = rng.uniform(-1, 1, (rows, runs)).astype(np.float32), np.zeros((rows, panels, 16), np.float32)
    verify(sink)
    interpret(linearize(sink), [b.data.cast("B") for b in (out, x, w, scale)], {})
    sums = np.einsum("mrgk,prgnk->mprn", x.astype(np.int64), w.astype(np.int64))
    np.testing.assert_allclose(out, (sums * scale[:, None, :, None]).sum(2), rtol=1e-5, atol=1e-2)


def test_not_where_the_operand_lies_otherwise() -> None:
    """Gaps between its vectors are no hindrance; terms or columns that are not neighbours are."""
    assert matrices(emit_nest(planned(blocks(1, 3, 5, gap=16), WIDE), WIDE))
    for n in (16, 24):
        ast = product(1, n, 4, a=dtypes.uint8, b=dtypes.int8, acc=dtypes.int32)
        assert not matrices(emit_nest(planned(ast, WIDE), WIDE))


def test_a_product_that_is_rounded_is_left_alone() -> None:
    shape = (128, 128, 128)
    x = A.load(1, BF16, ST((128, 1, 128)).expand(shape))
    y = A.load(2, BF16, ST((128, 128)).permute((1, 0)).reshape((1, 128, 128)).expand(shape))
    total = A.reduce(A.cast(A.alu(Ops.MUL, x, y), F32), Ops.ADD, (2,))
    ast = A.sink((A.store(0, ST((128, 128, 1)), total),), tuple(BufferArg(d, 1 << 14) for d in (F32, BF16, BF16)))
    assert not matrices(emit_nest(planned(ast, WIDE), WIDE))


def test_llvm_takes_the_bits_as_they_lie() -> None:
    text = compile_ast(product(128, 128, 128), LLVMRenderer(WIDE)).src
    assert "@llvm.x86.avx512bf16.dpbf16ps.512(<16 x float>" in text
    assert "load <32 x i16>" in text
    assert "fmul" not in text and "fpext" not in text


def test_a_language_without_them_is_not_given_them() -> None:
    spec = compile_ast(product(128, 128, 128), ClangRenderer(WIDE))
    assert not any(u.op is UOps.MATRIX for u in spec.uops)


def test_as_text() -> None:
    renderer = LLVMRenderer(WIDE)
    uops = linearize(full_rewrite(emit_nest(planned(product(128, 128, 128), WIDE), WIDE), renderer))
    assert [u.op for u in parse_linear(print_uops(uops))] == [u.op for u in uops]
