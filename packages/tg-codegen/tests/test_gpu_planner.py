"""Plans of products for GPUs: what a work-group shares fits, whatever the sides are, and however much there is."""

from __future__ import annotations

import random
from math import prod
from typing import Any

import numpy as np
import pytest

from tg_codegen import Target, compile_ast, interpret
from tg_codegen.ir.errors import EmitError
from tg_codegen.ir.uop import UOps
from tg_codegen.ir.verify import verify
from tg_codegen.machine.amdgpu import ARCHS, amd_target
from tg_codegen.machine.limits import broken_limits, scratch_bytes
from tg_codegen.nest.lower import lower
from tg_codegen.nest.parts import stated
from tg_codegen.nest.spec import Kind
from tg_codegen.plan.actions import Action, apply
from tg_codegen.plan.heuristic import loop_actions
from tg_codegen.plan.split_concat import SplitConcat
from tg_codegen.plan.vocabulary import parse_action
from tg_codegen.render.c.opencl import OpenCLRenderer
from tg_dtype import AddrSpace, DType, dtypes
from tg_lazy import BufferArg, LazyOp, Ops
from tg_lazy import ast as A
from tg_shape import ShapeTracker, Variable, sint, upper

ST = ShapeTracker.from_shape
F32 = dtypes.float32
Array = np.ndarray[Any, np.dtype[Any]]


def gpu(shared_bytes: int, local_max: int = 256, vector_bytes: int = 4) -> OpenCLRenderer:
    return OpenCLRenderer(Target(
        kind="gpu", vector_bytes=vector_bytes, registers=128, shared_bytes=shared_bytes, local_max=local_max))


def product(m: int, n: int, k: int) -> LazyOp:
    shape = (m, n, k)
    x = A.load(1, F32, ST((m, 1, k)).expand(shape))
    y = A.load(2, F32, ST((1, k, n)).permute((0, 2, 1)).expand(shape))
    total = A.reduce(A.alu(Ops.MUL, x, y), Ops.ADD, (2,))
    return A.sink((A.store(0, ST((m, n, 1)), total),), tuple(BufferArg(F32, s) for s in (m * n, m * k, k * n)))


def sums(rows: int, columns: int, count: int, dtype: DType) -> LazyOp:
    """Several sums of the same rows, each of another power."""
    x = A.load(count, dtype, ST((rows, columns)))
    stores, value = [], x
    for number in range(count):
        stores.append(A.store(number, ST((rows, 1)), A.reduce(value, Ops.ADD, (1,))))
        value = A.alu(Ops.MUL, value, x)
    return A.sink(tuple(stores), (*(BufferArg(dtype, rows) for _ in range(count)), BufferArg(dtype, rows * columns)))


@pytest.mark.parametrize("shape", [(96, 256, 96), (79, 2830, 59), (256, 96, 17), (1031, 97, 131), (64, 64, 1000)])
@pytest.mark.parametrize("shared_kib", [2, 4, 16, 32, 48])
@pytest.mark.parametrize("vector_bytes", [4, 16])
def test_products_fit(shape: tuple[int, int, int], shared_kib: int, vector_bytes: int) -> None:
    renderer = gpu(shared_kib << 10, vector_bytes=vector_bytes)
    spec = compile_ast(product(*shape), renderer)
    assert not spec.fallback and not broken_limits(spec, renderer)
    assert scratch_bytes(spec, AddrSpace.LOCAL) > 0, "operands are shared"
    verify(spec.uops)


@pytest.mark.parametrize("shape", [(19, 17, 24), (9, 16, 41)])
def test_products(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    spec = compile_ast(product(m, n, k), gpu(4 << 10, 64))
    assert any(u.op is UOps.BARRIER for u in spec.uops)
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(s).astype(np.float32) for s in ((m, k), (k, n)))
    out: Array = np.zeros((m, n), np.float32)
    interpret(spec.uops, [a.data.cast("B") for a in (out, x, y)], {})
    np.testing.assert_allclose(out, x @ y, rtol=1e-4, atol=1e-4)


def test_a_loop_in_which_operands_are_shared_is_not_unrolled() -> None:
    """Of the whole reduction nothing is left to be cut in pieces: all would be in shared memory at once."""
    nest = lower(product(96, 256, 96))
    actions = loop_actions(nest, gpu(16 << 10).target)
    where = {str(a).split(", ")[1].rstrip(")") for a in actions if str(a).startswith("share")}
    assert where == {"r0"} and apply(nest, actions).axis("r0").kind is Kind.REDUCE


@pytest.mark.parametrize(("dtype", "count"), [(dtypes.float32, 1), (dtypes.float32, 7), (dtypes.float64, 7)])
@pytest.mark.parametrize("shared_bytes", [512, 2048, 8192])
def test_parts_of_reductions_fit(dtype: DType, count: int, shared_bytes: int) -> None:
    renderer = gpu(shared_bytes)
    spec = compile_ast(sums(3, 4099, count, dtype), renderer)
    assert not spec.fallback
    shared = scratch_bytes(spec, AddrSpace.LOCAL)
    assert shared <= shared_bytes and (prod(spec.local_size) > 1 or shared_bytes < 16 * count * dtype.itemsize)


def test_shared_memory_that_is_too_small_is_refused_when_it_is_filled() -> None:
    text = "split(i0, 8, LOCAL); split(i1, 8, LOCAL); mark(i0, GLOBAL); mark(i1, GLOBAL); share(0, -); share(1, -)"
    actions, ast = [parse_action(a) for a in text.split("; ")], product(64, 64, 64)
    spec = compile_ast(ast, gpu(1 << 20), actions=actions)
    largest = max(u.arg[1] for u in spec.uops if u.op is UOps.SCRATCH)
    assert 8 * 64 <= largest <= 8 * 64 * 5 // 4, "rows of 64, lengthened"
    compile_ast(ast, gpu(4 * largest), actions=actions)
    with pytest.raises(ValueError, match=f"{largest} x float32 do not fit into {4 * largest - 1} shared bytes"):
        compile_ast(ast, gpu(4 * largest - 1), actions=actions)


def turned(shared_bytes: int, rows: sint, columns: sint, sizes: int, local_max: int = 256) -> bool:
    """Whether the plan of a transposition shares its operand: neighbours then read and write neighbours."""
    x = A.load(1, F32, ST((rows, columns)).permute((1, 0)))
    sink = A.sink((A.store(0, ST((columns, rows)), A.alu(Ops.ADD, x, x)),), (BufferArg(F32, sizes),) * 2)
    nest, target = lower(sink), gpu(shared_bytes, local_max).target
    actions = loop_actions(nest, target)
    sizes_of = [a.extent for a in apply(nest, actions).axes if a.kind is Kind.LOCAL]
    assert prod(n for n in sizes_of if isinstance(n, int)) <= local_max
    return "share(0, -)" in map(str, actions)


def test_what_is_transposed_is_turned_in_shared_memory() -> None:
    """Where there is room, and on either side enough to be read or written together."""
    seed = random.SystemRandom().randrange(1 << 32)
    draw = random.Random(seed)
    for _ in range(8):
        rows, columns, few = draw.randint(8, 300), draw.randint(8, 300), draw.randint(1, 7)
        assert turned(16 << 10, rows, columns, rows * columns, draw.choice([32, 256, 1024])), f"seed {seed}"
        assert not turned(0, rows, columns, rows * columns), f"seed {seed}"
        assert not turned(16 << 10, few, columns, few * columns), f"seed {seed}"
        assert not turned(16 << 10, rows, few, rows * few), f"seed {seed}"
        side = min(32, 1 << rows.bit_length() - 1)
        assert turned(side * (4 * side + 16), rows, columns, rows * columns), f"rows of a square are lengthened: {seed}"
        assert not turned(side * (4 * side + 16) - 1, rows, columns, rows * columns), f"seed {seed}"


def test_squares_have_sides_that_are_known() -> None:
    n = Variable("n", 1, 64)
    assert turned(16 << 10, 64, 64, 64 * 64)
    assert not turned(16 << 10, n, 64, 64 * 64) and not turned(16 << 10, 64, n, 64 * 64)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("contiguous", [True, False])
def test_a_reduction_fills_whole_waves(arch: str, contiguous: bool) -> None:
    """Neighbours in memory are read by all items of a wave: 64 of them on CDNA, 32 on RDNA."""
    rows, depth = (1 << 20, 1 << 14) if contiguous else (64, 1 << 14)
    view = ST((rows, depth)) if contiguous else ST((depth, rows)).permute((1, 0))
    total = A.reduce(A.load(1, F32, view), Ops.ADD, (1,))
    nest = lower(A.sink((A.store(0, ST((rows, 1)), total),), (BufferArg(F32, rows), BufferArg(F32, rows * depth))))
    axes = apply(nest, loop_actions(nest, amd_target(arch))).axes
    kind = Kind.GROUP if contiguous else Kind.LOCAL
    assert prod(upper(a.extent) for a in axes if a.kind is kind) == ARCHS[arch].lanes


def concatenation(rows: int, left: int, right: int) -> LazyOp:
    wide = left + right
    x = A.load(1, F32, ST((rows, left)).pad(((0, 0), (0, right))))
    y = A.load(2, F32, ST((rows, right)).pad(((0, 0), (left, 0))))
    sizes = (rows * wide, rows * left, rows * right)
    return A.sink((A.store(0, ST((rows, wide)), A.alu(Ops.ADD, x, y)),), tuple(BufferArg(F32, s) for s in sizes))


def in_parts(rows: int, left: int, right: int, *items: int) -> list[Action]:
    """A concatenation in two parts, of whose columns so many are one group's."""
    parting = SplitConcat()
    actions: list[Action] = [parting]
    for number, part in enumerate(parting.on(stated(lower(concatenation(rows, left, right)))).parts):
        name = part.axes[-1].name
        lines = f"{number}: split({name}, {items[number]}, LOCAL)", f"{number}: mark({name}, GLOBAL)"
        actions += map(parse_action, lines)
    return actions


def test_parts_that_keep_nothing_run_on_a_grid() -> None:
    spec = compile_ast(concatenation(5, 24, 24), gpu(0), actions=in_parts(5, 24, 24, 8, 8))
    assert spec.local_size == (8, 1, 1) and spec.global_size == (3, 1, 1)
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((5, 24)).astype(np.float32) for _ in range(2))
    out: Array = np.zeros((5, 48), np.float32)
    interpret(spec.uops, [a.data.cast("B") for a in (out, x, y)], {})
    np.testing.assert_array_equal(out, np.concatenate([x, y], 1))


def test_parts_have_one_launch() -> None:
    for items in ((8, 4), (4, 8)):
        with pytest.raises(EmitError, match="a launch has one"):
            compile_ast(concatenation(5, 24, 24), gpu(0), actions=in_parts(5, 24, 24, *items))
    with pytest.raises(EmitError, match="a launch has one"):
        compile_ast(concatenation(5, 24, 32), gpu(0), actions=in_parts(5, 24, 32, 8, 8))
