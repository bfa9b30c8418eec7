"""Updates: every plan of one computes what its values do one after the other, whatever the indices are."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest

from tg_codegen import ActionError, EmitError, Target, compile_ast, interpret
from tg_codegen.ir.program import ProgramSpec
from tg_codegen.machine.renderer import Renderer
from tg_codegen.nest.lower import lower
from tg_codegen.nest.nest import Nest
from tg_codegen.nest.spec import Kind
from tg_codegen.nest.text import parse_nest, print_nest
from tg_codegen.nest.updates import ordered_roots
from tg_codegen.plan.actions import apply
from tg_codegen.plan.vocabulary import parse_loop
from tg_codegen.render.c.opencl import OpenCLRenderer
from tg_codegen.render.llvm import LLVMRenderer
from tg_dtype import dtypes
from tg_lazy import BufferArg, LazyOp, Ops
from tg_lazy import ast as A
from tg_shape import ShapeTracker

I32 = dtypes.int32
ST = ShapeTracker.from_shape
CPU = LLVMRenderer(Target(vector_bytes=16, registers=16, threads=3))
GPU = OpenCLRenderer()
FUNCTION: dict[Ops | None, Callable[..., Any]] = {
    Ops.ADD: np.add, Ops.MUL: np.multiply, Ops.MAX: np.maximum, None: lambda old, new: new,
}  # fmt: skip


def rows(values: int, width: int, places: int, op: Ops | None = Ops.ADD) -> LazyOp:
    """Rows added to the rows of a table that indices name, one for each of them."""
    index = A.load(2, I32, ST((values, 1)).expand((values, width)))
    where = ST((places, width)).permute((1, 0)).reshape((1, width, places)).expand((values, width, places))
    update = A.update(0, where, A.load(1, I32, ST((values, width))), index, op)
    return A.sink((update,), (BufferArg(I32, places * width), BufferArg(I32, values * width), BufferArg(I32, values)))


def drawn(draw: random.Random) -> LazyOp:
    """An update of some dimensions, some of which the table has as well, at indices that some of them change."""
    shape = tuple(draw.randint(1, 6) for _ in range(draw.randint(1, 3)))
    places = draw.randint(1, 9)
    own = [draw.random() < 0.5 for _ in shape]
    table = [*(dim if mine else 1 for dim, mine in zip(shape, own, strict=True)), places]
    order = list(range(len(table)))
    draw.shuffle(order)
    st = ST(tuple(table[i] for i in order)).permute(tuple(order.index(i) for i in range(len(order))))
    where = st.expand((*shape, places))
    told = tuple(dim if draw.random() < 0.7 else 1 for dim in shape)
    index = A.load(2, I32, ST(told).expand(shape))
    if draw.random() < 0.3:
        index = A.alu(Ops.ADD, index, A.iota(ST(shape)))
    seen = ST(shape)
    if draw.random() < 0.3 and shape[0] > 1:
        seen = ST((shape[0] - 1, *shape[1:])).pad(((0, 1), *((0, 0) for _ in shape[1:])))
    value = A.load(1, I32, seen)
    size = prod(table)
    found = None
    if draw.random() < 0.5:
        found = ST((size + prod(shape),)).shrink(((size, size + prod(shape)),)).reshape(shape)
    update = A.update(0, where, value, index, draw.choice((Ops.ADD, Ops.MUL, Ops.MAX, None)), found)
    total = size + (prod(shape) if found is not None else 0)
    return A.sink((update,), (BufferArg(I32, total), BufferArg(I32, prod(shape)), BufferArg(I32, prod(told))))


def memory_of(ast: LazyOp, seed: int) -> list[bytearray]:
    """The buffers: few places, many of them twice, some out of range on either side."""
    rng = np.random.default_rng(seed)
    table, value, index = ast.arg
    places = ast.src[0].arg[1].shape[-1]
    arrays = (rng.integers(-3, 4, table.size), rng.integers(-3, 4, value.size),
              rng.integers(-2, places + 2, index.size))
    return [bytearray(array.astype(np.int32).tobytes()) for array in arrays]


def expected(ast: LazyOp, memory: list[bytearray]) -> list[int]:
    """What the values do, one after the other."""
    out, values, indices = (np.frombuffer(bytes(raw), np.int32).copy() for raw in memory)
    update = ast.src[0]
    _, where, op, found, _ = update.arg

    def number(node: LazyOp, at: tuple[int, ...]) -> int:
        if node.op is Ops.ADD:
            return number(node.src[0], at) + number(node.src[1], at)
        position, valid = node.arg.index(at) if node.op is Ops.IOTA else node.arg[1].index(at)
        if node.op is Ops.IOTA:
            return int(position)
        return int((values if node.arg[0] == 1 else indices)[position]) if valid else 0

    for at in product(*(range(int(dim)) for dim in update.shape)):
        place, old = number(update.src[1], at), 0
        if 0 <= place < where.shape[-1]:
            here = where.index((*at, place))[0]
            old = out[here]
            out[here] = FUNCTION[op](old, number(update.src[0], at))
        if found is not None:
            out[found.index(at)[0]] = old
    return [int(x) for x in out]


def computed(spec: ProgramSpec, memory: list[bytearray]) -> list[int]:
    """What all threads or work-items of a kernel make of memory."""
    interpret(spec.uops, memory, {})
    return [int(x) for x in np.frombuffer(memory[0], np.int32)]


def action(nest: Nest, draw: random.Random) -> str:
    """An action that may fit."""
    name = draw.choice(nest.axes).name
    kind = draw.choice([k.name for k in Kind if k not in (Kind.REDUCE,)])
    return draw.choice((
        f"split({name}, {draw.choice((2, 3, 4))}, {kind})", f"mark({name}, {kind})", f"outermost({name})", "stream(0)",
        f"pack({draw.randint(0, 1)}, {draw.choice(('-', name))})",
    ))  # fmt: skip


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("renderer", [CPU, GPU], ids=["cpu", "gpu"])
def test_any_plan_does_what_the_values_do_in_turn(renderer: Renderer, seed: int) -> None:
    draw = random.Random(seed)
    ast = drawn(draw)
    A.verify(ast)
    nest = lower(ast)
    assert print_nest(parse_nest(print_nest(nest))) == print_nest(nest)
    plans: list[list[str] | None] = [None, []]
    for _ in range(6):
        here, tried = nest, list[str]()
        for _ in range(draw.randint(1, 4) if nest.axes else 0):
            text = action(here, draw)
            try:
                here = apply(here, [parse_loop(text)])
                tried.append(text)
            except ActionError:
                continue
        plans.append(tried)
    for plan in plans:
        memory = memory_of(ast, seed)
        want = expected(ast, memory)
        try:
            spec = compile_ast(ast, renderer, actions=None if plan is None else [parse_loop(text) for text in plan])
        except EmitError:
            assert plan
            continue
        assert not spec.fallback
        assert computed(spec, memory) == want, (plan, print_nest(nest))


def test_what_may_meet_is_done_in_its_order() -> None:
    nest = lower(rows(9, 8, 5))
    tokens, features = nest.axes
    assert ordered_roots(nest) == {tokens.root}
    for text in (f"mark({tokens.name}, THREAD)", f"split({tokens.name}, 3, UPCAST)", f"split({tokens.name}, 4, VECTOR)",
                 f"split({tokens.name}, 3, LOOP)", f"mark({tokens.name}, GLOBAL)"):
        with pytest.raises(ActionError, match="may update one element, and are done in their order"):
            apply(nest, [parse_loop(text)])
    apply(nest, [parse_loop(f"split({features.name}, 4, VECTOR)"), parse_loop(f"mark({features.name}, THREAD)")])


def test_a_row_that_reaches_into_the_next_one_meets_it() -> None:
    overlapping = ST((20,)).shrink(((0, 12),)).reshape((3, 4)).permute((1, 0)).reshape((1, 4, 3)).expand((5, 4, 3))
    assert len(overlapping.views) == 1
    nest = lower(rows(5, 4, 3))
    assert ordered_roots(nest) == {nest.axes[0].root}
    update = nest.stores[0]
    closer = print_nest(nest).replace("place*4", "place*3")
    assert ordered_roots(parse_nest(closer)) == set(update.roots)


def test_lanes_at_indices_of_their_own_are_refused() -> None:
    index = A.load(2, I32, ST((4, 8)))
    where = ST((8, 5)).reshape((1, 8, 5)).expand((4, 8, 5))
    ast = A.sink((A.update(0, where, A.load(1, I32, ST((4, 8))), index, Ops.ADD),),
                 (BufferArg(I32, 40), BufferArg(I32, 32), BufferArg(I32, 32)))
    nest = lower(ast)
    with pytest.raises(ActionError, match="is not known to be neighbours"):
        apply(nest, [parse_loop("split(i1, 4, VECTOR)")])


@pytest.mark.parametrize("values, width, places", [(1, 1, 1), (7, 1, 3), (5, 13, 4), (40, 16, 9), (3, 64, 2)])
def test_rows(values: int, width: int, places: int) -> None:
    for renderer in (CPU, GPU):
        ast = rows(values, width, places)
        memory = memory_of(ast, 1)
        want = expected(ast, memory)
        assert computed(compile_ast(ast, renderer), memory) == want


def test_features_have_lanes() -> None:
    spec = compile_ast(rows(40, 16, 9), CPU)
    assert any("VECTOR" in text for text in spec.actions), spec.actions
    assert any(u.dtype.count == 4 for u in spec.uops)
    assert [b.read for b in spec.buffers] == [True, True, True]
    assert [b.written for b in spec.buffers] == [True, False, False]


def columns(count: int, values: int, places: int) -> LazyOp:
    """Numbers added to places of the row that they are of, of a table of as many rows."""
    where = ST((count, places)).reshape((count, 1, places)).expand((count, values, places))
    index = A.load(2, I32, ST((count, values)))
    update = A.update(0, where, A.load(1, I32, ST((count, values))), index, Ops.ADD)
    sizes = (count * places, count * values, count * values)
    return A.sink((update,), tuple(BufferArg(I32, size) for size in sizes))


@pytest.mark.parametrize(("count", "values", "places"), [(1, 31, 7), (3, 5, 1), (13, 37, 5), (29, 64, 64)])
def test_rows_side_by_side(count: int, values: int, places: int) -> None:
    """Numbers of a row may meet, and wait for one another; those of other rows are done meanwhile."""
    ast = columns(count, values, places)
    spec = compile_ast(ast, CPU)
    copies = any("UPCAST" in str(action) for action in spec.actions)
    assert copies == (count // CPU.target.threads >= 2)
    memory = memory_of(ast, count)
    want = expected(ast, memory)
    assert computed(spec, memory) == want


def placed(values: int, rows: int) -> LazyOp:
    """Each value of a row at the place in a row of a table that an index says; no two are for one place."""
    index = A.load(2, I32, ST((rows, values)))
    where = ST((rows, values)).reshape((rows, 1, values)).expand((rows, values, values))
    update = A.update(0, where, A.load(1, I32, ST((rows, values))), index, distinct=True)
    return A.sink((update,), tuple(BufferArg(I32, rows * values) for _ in range(3)))


@pytest.mark.parametrize("values, rows", [(1, 1), (2, 3), (7, 1), (131, 1), (97, 5), (1000, 2)])
def test_distinct_places_are_written_side_by_side(values: int, rows: int) -> None:
    ast = placed(values, rows)
    nest = lower(ast)
    assert not ordered_roots(nest)
    assert print_nest(parse_nest(print_nest(nest))) == print_nest(nest)
    rng = np.random.default_rng(values)
    turns = np.stack([rng.permutation(values) for _ in range(rows)]).astype(np.int32)
    content = rng.integers(-99, 99, (rows, values)).astype(np.int32)
    for renderer in (CPU, GPU):
        memory = [bytearray(a.astype(np.int32).tobytes()) for a in (np.zeros((rows, values)), content, turns)]
        spec = compile_ast(ast, renderer)
        want = np.zeros((rows, values), np.int32)
        np.put_along_axis(want, turns, content, 1)
        assert computed(spec, memory) == want.reshape(-1).tolist()
        if renderer is GPU and values * rows > 1:
            sizes = [int(n) for n in (*spec.global_size, *spec.local_size)]
            assert prod(sizes) >= values * rows, spec.actions


@pytest.mark.parametrize("values, rows", [(100_003, 1), (100_000, 2)])
def test_threads_write_distinct_places(values: int, rows: int) -> None:
    spec = compile_ast(placed(values, rows), CPU)
    assert any("THREAD" in text for text in spec.actions), spec.actions
