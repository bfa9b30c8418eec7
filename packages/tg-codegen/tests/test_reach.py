"""Loops end where comparisons of counters leave nothing to do; the interpreter finds reads of what nobody wrote."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import numpy as np
import pytest

from tg_codegen import Target, compile_ast, interpret, parse_action
from tg_codegen.nest.kernel import Kernel
from tg_codegen.nest.lower import lower
from tg_codegen.nest.nest import Axis, Nest, Node, NodeTable, Root
from tg_codegen.nest.parts import stated
from tg_codegen.nest.reach import Knowledge, end_of, holding, integer_of, reaches
from tg_codegen.nest.spec import Kind, NodeOp
from tg_codegen.plan.actions import ActionError, KernelAction
from tg_codegen.plan.heuristic import applied, before_emission
from tg_codegen.plan.trim_rows import TrimRows, proposed
from tg_codegen.render.llvm import LLVMRenderer
from tg_dtype import dtypes
from tg_lazy import BufferArg, LazyOp, Ops
from tg_lazy import ast as A
from tg_shape import Expr, ShapeTracker, Variable, View, sint, sym_eval

F32 = dtypes.float32
ST = ShapeTracker.from_shape
Array = np.ndarray[Any, np.dtype[Any]]
Shape = tuple[int, int, int, int]


def place(shape: tuple[int, ...], axis: int) -> LazyOp:
    """The counter along one axis of a shape."""
    one = tuple(n if i == axis else 1 for i, n in enumerate(shape))
    return A.iota(ST((shape[axis],)).reshape(one).expand(shape), dtypes.int32)


def number(value: int, shape: tuple[int, ...]) -> LazyOp:
    return A.const(value, dtypes.int32, shape)


def blocks(ast: LazyOp, *more: str) -> Kernel:
    """A kernel in blocks of 4 rows, after more actions on its loops."""
    actions = [action for action in map(parse_action, ("row_blocks(4)", *more)) if isinstance(action, KernelAction)]
    return applied(stated(lower(ast)), actions)


class Mask:
    """Which keys a row sees, drawn at random: those up to a diagonal, in a window, behind it, none at all …"""

    def __init__(self, rng: random.Random, keys: int) -> None:
        self.kind = rng.choice(("causal", "window", "not behind", "either", "behind", "steep", "short"))
        self.shift, self.width = rng.randint(-9, 20), rng.randint(1, 12)
        self.keys = rng.randint(1, keys)

    def stated(self, shape: tuple[int, int, int]) -> LazyOp:
        row, key = place(shape, 1), place(shape, 2)
        end = A.alu(Ops.ADD, row, number(self.shift, shape))
        before = A.alu(Ops.CMPLT, key, end)
        inside = A.alu(Ops.CMPLT, A.alu(Ops.SUB, end, number(self.width, shape)), key)
        few = A.alu(Ops.CMPLT, key, number(self.keys, shape))
        behind = A.alu(Ops.NOT, A.alu(Ops.CMPLT, end, key))
        steep = A.alu(Ops.CMPLT, A.alu(Ops.MUL, key, number(3, shape)), A.alu(Ops.MUL, end, number(2, shape)))
        return {
            "causal": before, "window": A.alu(Ops.AND, before, inside), "not behind": behind, "steep": steep,
            "either": A.alu(Ops.OR, before, few), "behind": A.alu(Ops.NOT, before),
            "short": A.alu(Ops.AND, few, before),
        }[self.kind]  # fmt: skip

    def drawn(self, rows: int, keys: int) -> Array:
        end, key = np.arange(rows)[:, None] + self.shift, np.arange(keys)[None]
        before, few = key < end, key < self.keys
        return {
            "causal": before, "window": before & (end - self.width < key), "not behind": ~(end < key),
            "steep": key * 3 < end * 2, "either": before | few, "behind": ~before, "short": few & before,
        }[self.kind]  # fmt: skip


def attention(sizes: Shape, mask: Mask, chosen: bool = True, hidden: float = -np.inf) -> LazyOp:
    """Scores, ``hidden`` where not seen; their exponentials; and a weighted sum over that of the weights."""
    batch, rows, keys, width = sizes
    full, square, wide = (batch, rows, keys, width), (batch, rows, keys), (batch, rows, width, keys)
    q = A.load(1, F32, ST((batch, rows, width)).reshape((batch, rows, 1, width)).expand(full))
    k = A.load(2, F32, ST((batch, keys, width)).reshape((batch, 1, keys, width)).expand(full))
    v = A.load(3, F32, ST((batch, keys, width)).permute((0, 2, 1)).reshape((batch, 1, width, keys)).expand(wide))
    seen = mask.stated(square)
    products = A.view(A.reduce(A.alu(Ops.MUL, q, k), Ops.ADD, (3,)), ST((*square, 1)).reshape(square))
    scores = A.alu(Ops.WHERE, seen, products, A.const(hidden, F32, square))
    held = A.load(4, F32, ST(square))
    top = A.view(A.reduce(held, Ops.MAX, (2,)), ST((batch, rows, 1)).expand(square))
    powers = A.alu(Ops.EXP, A.alu(Ops.SUB, held, top))
    if chosen:
        powers = A.alu(Ops.WHERE, seen, powers, A.const(0, F32, square))
    p = A.load(5, F32, ST((batch, rows, keys)).reshape((batch, rows, 1, keys)).expand(wide))
    total = A.reduce(p, Ops.ADD, (3,))
    safe = A.alu(Ops.WHERE, A.alu(Ops.CMPEQ, total, A.const(0, F32, total.shape)), A.const(1, F32, total.shape), total)
    out = A.alu(Ops.FDIV, A.reduce(A.alu(Ops.MUL, p, v), Ops.ADD, (3,)), safe)
    between = BufferArg(F32, batch * rows * keys, internal=True)
    stores = A.store(4, ST(square), scores), A.store(5, ST(square), powers), A.store(0, ST(out.shape), out)
    outer = [BufferArg(F32, batch * n * width) for n in (rows, rows, keys, keys)]
    return A.sink(stores, (*outer, between, between))


def expected(data: list[Array], seen: Array) -> Array:
    q, k, v = data
    scores = np.where(seen, q.astype(np.float64) @ k.transpose(0, 2, 1), -np.inf)
    top = scores.max(-1, keepdims=True)
    powers = np.exp(scores - np.where(np.isinf(top), 0, top))
    total = powers.sum(-1, keepdims=True)
    result: Array = powers @ v / np.where(total == 0, 1, total)
    return result


def computed(ast: LazyOp, sizes: Shape, seed: int, actions: Any, threads: int = 2) -> tuple[Array, list[Array]]:
    batch, rows, keys, width = sizes
    rng = np.random.default_rng(seed)
    data = [rng.standard_normal((batch, n, width)).astype(np.float32) for n in (rows, keys, keys)]
    target = Target(vector_bytes=16, registers=16, threads=threads, l2_bytes=1 << 14)
    spec = compile_ast(ast, LLVMRenderer(target), actions=actions)
    assert not spec.fallback
    out = bytearray(4 * batch * rows * width)
    interpret(spec.uops, [out, *(bytearray(x.tobytes()) for x in data)])
    return np.frombuffer(out, np.float32).reshape(batch, rows, width), data


@pytest.mark.parametrize("seed", range(20))
def test_masks_of_all_kinds(seed: int) -> None:
    rng = random.Random(seed)
    sizes = rng.randint(1, 2), rng.randint(5, 19), rng.randint(3, 23), rng.randint(1, 3)
    mask, threads = Mask(rng, sizes[2]), rng.randint(1, 3)
    ast, target = attention(sizes, mask), Target(vector_bytes=16, registers=16, threads=threads, l2_bytes=1 << 14)
    kernel = stated(lower(ast))
    actions = [a for a in before_emission(kernel, target) if not isinstance(a, TrimRows)]
    planned = applied(kernel, actions)
    trim = TrimRows(rng.choice((1, 2, 3, 4, 8)))
    if any(reaches(planned.parts, trim.step)):
        actions.append(trim)
    got, data = computed(ast, sizes, seed, actions, threads)
    np.testing.assert_allclose(got, expected(data, mask.drawn(*sizes[1:3])), rtol=1e-4, atol=1e-5)


def causal(seed: int = 0) -> Mask:
    mask = Mask(random.Random(seed), 9)
    mask.kind, mask.shift = "causal", 1
    return mask


def test_each_part_ends_at_the_diagonal_of_its_block() -> None:
    kernel = blocks(attention((2, 32, 32, 4), causal()))
    block = kernel.shared[-1].root
    bounds = reaches(kernel.parts, 4)
    assert [set(map(str, found.values())) for found in bounds] == [{f"{block.name}*4 + 4"}] * 3
    walked = [{part.roots[root].reduce for root in found} for part, found in zip(kernel.parts, bounds, strict=True)]
    assert walked == [{False}, {False, True}, {True}], "what is written, and what is added up"
    axes = [a for part in applied(kernel, [TrimRows(4)]).parts for a in part.axes]
    assert [str(a.extent) for a in axes].count(f"{block.name}*4 + 4") == 4


def test_exponentials_of_infinities_are_not_known_to_be_0() -> None:
    """-infinity less -infinity is NaN: only the maximum ends at the diagonal, and what all parts read is written."""
    kernel = blocks(attention((2, 32, 32, 4), causal(), chosen=False))
    bounds = reaches(kernel.parts, 4)
    assert [{part.roots[root].reduce for root in found} for part, found in zip(kernel.parts, bounds, strict=True)] == [
        set(), {True}, set()]  # fmt: skip


def test_a_maximum_of_what_is_not_its_identity_ends_nowhere() -> None:
    kernel = blocks(attention((2, 32, 32, 4), causal(), hidden=-9.0))
    bounds = reaches(kernel.parts, 4)
    assert [len(found) for found in bounds] == [0, 1, 1]
    assert not any(kernel.whole.roots[root].reduce for root in bounds[1]), "only what the sum of the exponentials reads"


@pytest.mark.parametrize("seed", range(30))
def test_no_value_beyond_a_bound_meets_the_condition(seed: int) -> None:
    rng = random.Random(seed)
    extents = [rng.randint(1, 9) for _ in range(3)]
    i, j, k = (Variable(name, 0, n - 1) for name, n in zip("ijk", extents, strict=True))
    outer, scale = Variable("outer", 0, 3), [rng.randint(-3, 3) for _ in range(4)]
    scale[0] = rng.randint(1, 4)
    left: sint = rng.randint(-9, 9)
    for variable, by in zip((i, j, k, outer), scale, strict=True):
        left = left + variable * by
    condition = left.lt(rng.randint(-9, 9)) if isinstance(left, Expr) else 1
    roots = {v: Root(v, n, v is i) for v, n in zip((i, j, k), extents, strict=True)}
    part = Nest((), (), roots, tuple(Axis(v.name, v, 1, n, Kind.LOOP) for v, n in zip((i, j, k), extents, strict=True)))
    step = rng.randint(1, 4)
    end = end_of(part, i, frozenset([condition]) if isinstance(condition, Expr) else frozenset(), step)
    for at in range(4):
        here = sym_eval(end, {outer: at})
        assert here % step == 0 or here == extents[0]
        met = [x for x, y, z in product(*map(range, extents)) if sym_eval(condition, {i: x, j: y, k: z, outer: at})]
        assert max(met, default=-1) < here <= extents[0]


def test_what_a_choice_of_comparisons_tells() -> None:
    table = NodeTable()
    counter = table.make(NodeOp.INDEX, dtypes.int32, (), Variable("i", 0, 20))

    def less(left: Node | int, right: Node | int) -> Node:
        sides = (table.make(NodeOp.CONST, dtypes.int32, (), s) if isinstance(s, int) else s for s in (left, right))
        return table.make(Ops.CMPLT, dtypes.bool, tuple(sides))

    few, more = less(counter, 5), less(counter, 9)
    both, either = (table.make(op, dtypes.bool, (few, more)) for op in (Ops.AND, Ops.OR))
    assert len(holding(few, True)) == 1 and holding(few, True) != holding(more, True)
    assert holding(both, True) == holding(few, True) | holding(more, True)
    assert holding(either, False) == holding(less(4, counter), True) | holding(less(8, counter), True)
    assert not holding(both, False) and not holding(either, True)
    assert holding(table.make(Ops.NOT, dtypes.bool, (few,)), True) == holding(less(4, counter), True)


def test_a_long_chain_of_squares_is_looked_at_once() -> None:
    table = NodeTable()
    node = table.make(NodeOp.LOAD, F32, (), (0, Variable("i", 0, 20), Variable("i", 0, 20).lt(9)))
    for _ in range(5000):
        node = table.make(Ops.MUL, F32, (node, node))
    found = Knowledge(Nest((), (), table.roots, ()), {}).outside(node)
    assert found is not None and found.constant == 0 and len(found.unless) == 1


@pytest.mark.parametrize("seed", range(20))
def test_windows_that_overlap_meet_what_the_next_one_begins_with(seed: int) -> None:
    """Rows of several pieces, of which the first columns are kept; windows step as pieces do, and are longer or not."""
    rng = random.Random(seed)
    rows, pieces, width = rng.randint(5, 9), rng.randint(2, 5), rng.randint(2, 9)
    few, window = rng.randint(1, width), rng.randint(1, 2 * width)
    length = pieces * width
    count = (length - window) // width + 1
    shape, windows = (rows, pieces, width), (rows, count, window)
    counter = A.iota(ST((width,)).reshape((1, 1, width)).expand(shape), dtypes.int32)
    seen = A.alu(Ops.CMPLT, counter, number(few, shape)) if few < width else A.const(True, dtypes.bool, shape)
    kept = A.alu(Ops.WHERE, seen, A.load(1, F32, ST(shape)), A.const(0, F32, shape))
    placed = ShapeTracker((View(windows, (length, width, 1)),))
    out = A.reduce(A.load(2, F32, placed), Ops.ADD, (2,))
    stores = A.store(2, ST(shape), kept), A.store(0, ST(out.shape), out)
    size = rows * length
    ast = A.sink(stores, (BufferArg(F32, rows * count), BufferArg(F32, size), BufferArg(F32, size, internal=True)))
    actions = [parse_action("row_blocks(4)")]
    trim = TrimRows(rng.choice((1, 2, 4)))
    if any(reaches(blocks(ast).parts, trim.step)):
        actions.append(trim)
    spec = compile_ast(ast, LLVMRenderer(Target(vector_bytes=16, registers=16, threads=1)), actions=actions)
    assert not spec.fallback
    data = np.random.default_rng(seed).integers(1, 9, shape).astype(np.float32)
    got = bytearray(4 * rows * count)
    interpret(spec.uops, [got, bytearray(data.tobytes())])
    row = np.where(np.arange(width) < few, data, 0).reshape(rows, length)
    want = np.stack([row[:, at * width : at * width + window].sum(1) for at in range(count)], 1)
    np.testing.assert_array_equal(np.frombuffer(got, np.float32).reshape(rows, count), want)


@pytest.mark.parametrize("kind", ["either", "behind"])
def test_what_may_be_seen_behind_the_diagonal_is_done(kind: str) -> None:
    mask = causal()
    mask.kind = kind
    kernel = blocks(attention((2, 32, 32, 4), mask))
    assert not any(reaches(kernel.parts, 4))
    with pytest.raises(ActionError, match=r"trim_rows\(4\): no comparison bounds a loop"):
        applied(kernel, [TrimRows(4)])
    assert not proposed(kernel, Target())


def test_a_loop_that_is_unrolled_whole_is_not_ended() -> None:
    """Then nobody may leave out to write what it reads."""
    kernel = blocks(attention((2, 32, 32, 4), causal()), "2: mark(r1, UNROLL)")
    unrolled = [len(found) for found in reaches(kernel.parts, 4)]
    assert unrolled[2] == 0 and unrolled[1] == 1
    got, data = computed(attention((2, 32, 32, 4), causal()), (2, 32, 32, 4), 0, [
        *map(parse_action, ("row_blocks(4)", "2: mark(r1, UNROLL)", "trim_rows(4)"))])  # fmt: skip
    np.testing.assert_allclose(got, expected(data, np.tri(32, dtype=bool)), rtol=1e-4, atol=1e-5)


def test_counters_that_may_wrap_bound_nothing() -> None:
    table = NodeTable()
    i = Variable("i", 0, 199)
    for dtype, plain in ((dtypes.int32, True), (dtypes.int8, False)):
        node, limit = table.make(NodeOp.INDEX, dtype, (), i), table.make(NodeOp.CONST, dtype, (), 9)
        assert (integer_of(node) is i) is plain
        assert bool(holding(table.make(Ops.CMPLT, dtypes.bool, (node, limit)), True)) is plain
    byte, two = table.make(NodeOp.INDEX, dtypes.uint8, (), i), table.make(NodeOp.CONST, dtypes.uint8, (), 2)
    assert integer_of(byte) is i and integer_of(table.make(Ops.MUL, dtypes.uint8, (byte, two))) is None
    assert integer_of(table.make(Ops.CAST, dtypes.float32, (byte,))) is None
