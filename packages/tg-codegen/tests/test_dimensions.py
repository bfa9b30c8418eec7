"""Dimensions that are cut where accesses divide them: kernels in the reference interpreter against numpy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from tg_codegen import ActionError, Target, interpret, linearize
from tg_codegen.emit.kernel import emit_nest
from tg_codegen.nest.dimensions import quotients
from tg_codegen.nest.lower import lower
from tg_codegen.nest.nest import Nest
from tg_codegen.nest.parts import stated
from tg_codegen.nest.spec import Kind, NodeOp
from tg_codegen.nest.text import print_nest
from tg_codegen.plan.actions import Convert, Prefetch, apply
from tg_codegen.plan.cpu.planner import cpu_loops
from tg_codegen.plan.cut_dimension import proposed
from tg_codegen.plan.heuristic import applied
from tg_codegen.plan.vocabulary import parse_loop
from tg_dtype import DType, dtypes
from tg_lazy import BufferArg, LazyOp, Ops
from tg_lazy import ast as A
from tg_shape import ShapeTracker

F32, U8 = dtypes.float32, dtypes.uint8
ST = ShapeTracker.from_shape
Array = np.ndarray[Any, np.dtype[Any]]

CPU = Target(kind="cpu", vector_bytes=32, registers=16, threads=2, l1_bytes=1 << 15, l2_bytes=1 << 18)
GPU = Target(kind="gpu", vector_bytes=16, registers=64, local_max=64, shared_bytes=1 << 14)


@dataclass(frozen=True)
class Case:
    """A kernel, its inputs from slot 1 on and what numpy says its output in slot 0 is."""

    ast: LazyOp
    inputs: tuple[Array, ...]
    want: Array


def case(value: LazyOp, inputs: tuple[Array, ...], want: Array) -> Case:
    shape = tuple(value.shape)
    sizes = [BufferArg(F32, want.size), *(BufferArg(dtypes.from_name(x.dtype.name), x.size) for x in inputs)]
    return Case(A.sink((A.store(0, ST(shape), value),), tuple(sizes)), inputs, want)


def cut(ast: LazyOp) -> Nest:
    """The loops of a kernel whose dimensions are cut where that is proposed."""
    kernel = stated(lower(ast))
    return applied(kernel, [*proposed(kernel, CPU)]).parts[0]


def digits(rows: int, n: int, block: int, split: bool) -> tuple[LazyOp, Array, Array]:
    """Bytes of two digits each, as digits of shape (rows, n), from slot 2.

    Args:
      rows: how many rows.
      n: digits in a row.
      block: digits in a block.
      split: whether a block's high digits all follow its low ones; else they alternate.
    """
    half = block // 2
    packed = np.random.default_rng(rows + n).integers(0, 256, (rows, n // block, half), np.uint8)
    low, high = packed & 15, packed >> 4
    want = np.concatenate((low, high), -1) if split else np.stack((low, high), -1)
    if split:
        whole = ST((rows, n // block, half)).pad(((0, 0), (0, 0), (0, half)))
        moved = ST((rows, n // block, half)).pad(((0, 0), (0, 0), (half, 0)))
    else:
        one = ST((rows, n // 2, 1))
        whole, moved = one.pad(((0, 0), (0, 0), (0, 1))), one.pad(((0, 0), (0, 0), (1, 0)))
    first = A.load(2, U8, whole.reshape((rows, n)))
    second = A.load(2, U8, moved.reshape((rows, n)))
    four, fifteen = (A.const(value, U8, (rows, n)) for value in (4, 15))
    both = A.alu(Ops.OR, A.alu(Ops.AND, first, fifteen), A.alu(Ops.SHR, second, four))
    return both, packed, want.reshape(rows, n)


def product(rows: int, n: int, block: int, split: bool, scale_type: DType = F32) -> Case:
    """A vector times rows in blocks, each with a scale."""
    both, packed, plain = digits(rows, n, block, split)
    rng = np.random.default_rng(1)
    x, scale = rng.uniform(-1, 1, n).astype(np.float32), rng.uniform(1, 9, (rows, n // block)).astype(scale_type.name)
    scales = ST((rows, n // block, 1)).expand((rows, n // block, block)).reshape((rows, n))
    weight = A.alu(Ops.MUL, A.cast(both, F32), A.cast(A.load(3, scale_type, scales), F32))
    terms = A.alu(Ops.MUL, weight, A.load(1, F32, ST((1, n)).expand((rows, n))))
    want = (plain * scale.astype(np.float32).repeat(block, 1)) @ x
    return case(A.reduce(terms, Ops.ADD, (1,)), (x, packed, scale), want)


def halves(n: int, m: int) -> Case:
    """Sums of rows that two buffers give half of each."""
    rng = np.random.default_rng(2)
    x, y = (rng.uniform(1, 2, (n, m)).astype(np.float32) for _ in range(2))
    left, right = ST((n, m)).pad(((0, 0), (0, m))), ST((n, m)).pad(((0, 0), (m, 0)))
    both = A.alu(Ops.ADD, A.load(1, F32, left), A.load(2, F32, right))
    return case(A.reduce(both, Ops.ADD, (1,)), (x, y), x.sum(1) + y.sum(1))


def levels(n: int) -> Case:
    """Blocks of blocks: one factor each 8 elements, another each 32."""
    rng = np.random.default_rng(3)
    x, inner, outer = (rng.uniform(1, 2, k).astype(np.float32) for k in (n, n // 8, n // 32))
    loads = [A.load(1, F32, ST((n,)))]
    loads += [A.load(s, F32, ST((n // b, 1)).expand((n // b, b)).reshape((n,))) for s, b in ((2, 8), (3, 32))]
    terms = A.alu(Ops.MUL, A.alu(Ops.MUL, loads[0], loads[1]), loads[2])
    want = np.array((x * inner.repeat(8) * outer.repeat(32)).sum())
    return case(A.reduce(terms, Ops.ADD, (0,)), (x, inner, outer), want)


CASES: dict[str, Callable[[], Case]] = {
    "halves of blocks": lambda: product(9, 96, 32, True),
    "halves of blocks, one block": lambda: product(5, 16, 16, True),
    "scales in 16 bits": lambda: product(9, 96, 32, True, dtypes.float16),
    "scales in 16 bits, even": lambda: product(16, 160, 32, False, dtypes.float16),
    "scales in 8 bits": lambda: product(9, 96, 32, True, dtypes.int8),
    "alternating digits": lambda: product(7, 96, 32, False),
    "alternating digits, odd": lambda: product(3, 30, 10, False),
    "two levels": lambda: levels(160),
    "two halves": lambda: halves(5, 24),
    "two odd halves": lambda: halves(3, 7),
    "two long halves": lambda: halves(2, 300),
}


def repeated(rows: int, n: int, down: int, along: int) -> Case:
    """A matrix repeated along both axes, and one that is not repeated added to it."""
    shape = (rows * down, n * along)
    view = ST((1, rows, 1, n)).expand((down, rows, along, n)).reshape(shape)
    rng = np.random.default_rng(n)
    x, y = rng.uniform(-1, 1, (rows, n)).astype(np.float32), rng.uniform(-1, 1, shape).astype(np.float32)
    return case(A.alu(Ops.ADD, A.load(1, F32, view), A.load(2, F32, ST(shape))), (x, y), np.tile(x, (down, along)) + y)


def check(nest: Nest, made: Case, target: Target) -> None:
    memory = [bytearray(made.want.size * 4), *(bytearray(x.tobytes()) for x in made.inputs)]
    interpret(linearize(emit_nest(nest, target)), memory, {})
    got = np.frombuffer(memory[0], np.float32)
    atol = max(1e-5, 1e-6 * np.abs(made.want).max())  # of what cancels in a sum
    np.testing.assert_allclose(got, made.want.reshape(-1), rtol=2e-5, atol=atol, err_msg=print_nest(nest))


@pytest.mark.parametrize("name", CASES)
def test_values(name: str) -> None:
    made = CASES[name]()
    nest = cut(made.ast)
    for plain in (nest, lower(made.ast)):
        check(plain, made, Target())
    for target in (CPU, GPU):
        check(apply(nest, cpu_loops(nest, target)), made, target)


@pytest.mark.parametrize("name", CASES)
def test_every_index_is_linear(name: str) -> None:
    assert quotients(cut(CASES[name]().ast)) == []


def reduced(made: Case) -> list[int]:
    return [int(a.extent) for a in cut(made.ast).axes if a.kind is Kind.REDUCE]


def test_the_parts() -> None:
    assert reduced(product(9, 96, 32, True)) == [3, 2, 16], "blocks, halves of a block, bytes"
    assert reduced(product(9, 96, 32, False)) == [3, 16, 2], "blocks, bytes, digits of a byte"
    assert reduced(levels(160)) == [5, 4, 8]
    assert reduced(halves(5, 24)) == [2, 24]
    assert reduced(halves(2, 300)) == [600], "what is long is not cut at a mask"


def test_lanes_are_neighbours_and_masks_are_gone() -> None:
    nest = cut(product(9, 96, 32, True).ast)
    uops = linearize(emit_nest(apply(nest, cpu_loops(nest, CPU)), CPU))
    loads = [u for u in uops if u.op.name == "LOAD"]
    assert all(len(u.src) == 2 for u in loads), "no load is masked"
    assert {u.src[0].arg: u.dtype.count for u in loads} == {1: 8, 2: 8, 3: 1}


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.int16, dtypes.int8], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("rows", [32, 33, 39])
def test_scales_of_few_bits_are_widened_in_vectors(rows: int, dtype: DType) -> None:
    made = product(rows, 32 * 18, 32, True, dtype)
    actions = cpu_loops(cut(made.ast), CPU)
    nest = apply(cut(made.ast), actions)
    assert sum(isinstance(action, Convert) for action in actions) == 1
    casts = [u for u in linearize(emit_nest(nest, CPU)) if u.op is Ops.CAST]
    casts = [u for u in casts if u.src[0].dtype.scalar() is dtype]
    if rows % 4 == 0:
        assert {u.dtype.count for u in casts} == {8}, "four rows of 18 are nine vectors"
    check(nest, made, CPU)


def test_a_scale_that_is_converted_at_no_cost_stays_where_it_is() -> None:
    made = product(32, 32 * 18, 32, True, dtypes.float16)
    free = replace(CPU, cpu=replace(CPU.cpu, conversion=0.0))
    assert not any(isinstance(action, Convert) for action in cpu_loops(cut(made.ast), free))


def test_the_next_tile_is_fetched_where_a_matrix_is_large() -> None:
    few, many = (cut(product(rows, 320, 32, True, dtypes.float16).ast) for rows in (8, 400))
    assert not any(isinstance(action, Prefetch) for action in cpu_loops(few, CPU))
    actions = cpu_loops(many, CPU)
    nest = apply(many, actions)
    assert [action for action in actions if isinstance(action, Prefetch)] == [Prefetch(0, 4480)], "of tiles of 640"
    prefetched = [u for u in linearize(emit_nest(nest, CPU)) if u.op.name == "PREFETCH"]
    assert len(prefetched) == 2 * 4, "once for both halves of a byte: the two vectors of a block, for four rows"


@pytest.mark.parametrize("tiles", [1, 7, 700])
def test_the_tile_is_fetched_so_many_bytes_ahead(tiles: int) -> None:
    target = replace(CPU, cpu=replace(CPU.cpu, tile_ahead_bytes=640 * tiles))
    nest = cut(product(400, 320, 32, True, dtypes.float16).ast)
    found = [action for action in cpu_loops(nest, target) if isinstance(action, Prefetch)]
    assert found == [Prefetch(0, 640 * tiles)]


def test_conversions_that_are_not() -> None:
    nest = cut(product(8, 96, 32, True).ast)
    with pytest.raises(ActionError, match="other users than one conversion"):
        parse_loop("convert(0, i0)").apply(nest)
    with pytest.raises(ActionError, match="loads"):
        parse_loop("convert(9, i0)").apply(nest)


def test_alternating_digits_are_dealt_from_whole_vectors() -> None:
    nest = cut(product(32, 32 * 18, 32, False).ast)
    uops = linearize(emit_nest(apply(nest, cpu_loops(nest, CPU)), CPU))
    assert {u.src[0].arg: u.dtype.count for u in uops if u.op.name == "LOAD"} == {1: 8, 2: 8, 3: 1}
    assert not any(u.op.name == "VECTORIZE" for u in uops), "nothing is put together lane by lane"


def test_rows_share_what_they_have_in_common() -> None:
    nest = cut(product(32, 32 * 18, 32, True, dtypes.float16).ast)
    tiled = apply(nest, cpu_loops(nest, CPU))
    assert [a.extent for a in tiled.axes if a.kind is Kind.ROWS] == [4], "as registers allow"
    loads = [u for u in linearize(emit_nest(tiled, CPU)) if u.op.name == "LOAD" and u.src[0].arg == 1]
    assert len(loads) == 32 // 8, "the vectors of a block, for four rows"


@pytest.mark.parametrize("name", ["halves of blocks", "alternating digits", "two levels", "two halves"])
def test_a_strict_order_is_that_of_the_whole_dimension(name: str) -> None:
    made = CASES[name]()
    nest = cut(made.ast)
    planned = []
    for target in (Target(), replace(CPU, strict=True)):
        memory = [bytearray(made.want.size * 4), *(bytearray(x.tobytes()) for x in made.inputs)]
        actions = cpu_loops(nest, target) if target.strict else []
        interpret(linearize(emit_nest(apply(nest, actions), target)), memory, {})
        planned.append(bytes(memory[0]))
    assert planned[0] == planned[1]


def test_rows_of_an_output_that_are_repeated_are_read_as_rows() -> None:
    rng = np.random.default_rng()
    for _ in range(5):
        rows, down, along = (int(n) for n in rng.integers(2, 6, 3))
        made = repeated(rows, int(rng.integers(64, 99)), down, along)
        nest = cut(made.ast)
        assert not any(e.variables() & {nest.axes[-1].root} for e in quotients(nest)), print_nest(nest)
        check(apply(nest, cpu_loops(nest, CPU)), made, CPU)


def test_short_rows_of_an_output_and_those_of_a_gpu_stay_as_they_are() -> None:
    kernel = stated(lower(repeated(3, 63, 2, 2).ast))
    assert not [*proposed(kernel, CPU)]
    kernel = stated(lower(repeated(3, 64, 2, 2).ast))
    assert [*proposed(kernel, CPU)]
    assert not [*proposed(kernel, GPU)]


def test_what_does_not_divide_is_left() -> None:
    x = ST((35, 1)).expand((35, 2)).reshape((70,)).shrink(((0, 69),))
    ast = A.sink((A.store(0, ST((1,)), A.reduce(A.load(1, F32, x), Ops.ADD, (0,))),),
                 (BufferArg(F32, 1), BufferArg(F32, 35)))
    nest = cut(ast)
    assert [a.extent for a in nest.axes] == [69]
    assert len(quotients(nest)) == 1
    values = np.arange(35, dtype=np.float32)
    check(apply(nest, cpu_loops(nest, CPU)), Case(ast, (values,), np.array(values.repeat(2)[:69].sum())), CPU)


def test_every_reduction_of_the_dimension_is_cut() -> None:
    """A dimension that two reductions share, only one of which divides it."""
    n = 64
    x = A.load(1, F32, ST((n,)))
    scale = A.load(2, F32, ST((n // 16, 1)).expand((n // 16, 16)).reshape((n,)))
    one, two = A.reduce(x, Ops.MAX, (0,)), A.reduce(A.alu(Ops.MUL, x, scale), Ops.ADD, (0,))
    stores = tuple(A.store(s, ST((1,)), v) for s, v in enumerate((A.alu(Ops.ADD, one, two),)))
    rng = np.random.default_rng(5)
    values, scales = rng.uniform(1, 2, n).astype(np.float32), rng.uniform(1, 2, n // 16).astype(np.float32)
    made = Case(A.sink(stores, (BufferArg(F32, 1), BufferArg(F32, n), BufferArg(F32, n // 16))), (values, scales),
                np.array(values.max() + (values * scales.repeat(16)).sum()))
    nest = cut(made.ast)
    assert [len(n.arg[1]) for n in nest.nodes() if n.op is NodeOp.REDUCE] == [2, 2]
    check(apply(nest, cpu_loops(nest, CPU)), made, CPU)
