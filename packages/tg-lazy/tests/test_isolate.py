"""A part of the graph, cut out: on placeholders of its own, with what it captures, and nothing else."""

from __future__ import annotations

import pytest

from tg_dtype import dtypes
from tg_lazy import LazyBuffer, Ops, Storage, schedule
from tg_lazy.graph.isolate import OFTEN, bases_first, isolate
from tg_lazy.graph.operand_layout import LEAST_READS, walked
from tg_shape import ShapeTracker, Variable, View


def memory(*shape: int) -> LazyBuffer:
    size = 1
    for dim in shape:
        size *= dim
    return LazyBuffer.from_storage(Storage("CPU", size, dtypes.float32), shape)


def hole(*shape: int) -> LazyBuffer:
    return LazyBuffer.empty(shape, dtypes.float32, "CPU")


def test_a_part_has_placeholders_of_its_own() -> None:
    x, w = hole(2, 3), memory(3, 2)
    total = x.alu(Ops.MUL, w.permute((1, 0))).reduce(Ops.ADD, (1,))
    part = isolate([total, x.alu(Ops.ADD, x)], [x])
    assert part.captured == (w,)
    assert [node.shape for node in (*part.parameters, *part.placeholders)] == [(2, 3), (3, 2)]
    inside = bases_first(part.outputs)
    assert x not in inside and w not in inside and set(part.placeholders + part.parameters) <= set(inside)
    assert [node.op for node in part.outputs] == [Ops.REDUCE, Ops.ADD]


def test_what_does_not_depend_on_parameters_is_captured_whole() -> None:
    x, w = hole(4), memory(4)
    heavy = w.alu(Ops.MUL, w).alu(Ops.ADD, w)
    part = isolate([x.alu(Ops.ADD, heavy)], [x])
    assert part.captured == (heavy,)
    light = LazyBuffer.iota(4, dtypes.int32, "CPU").cast(dtypes.float32)
    assert isolate([x.alu(Ops.ADD, light)], [x]).captured == ()


def test_outputs_are_different_and_new() -> None:
    x, w = hole(4), memory(4)
    total = x.alu(Ops.ADD, w)
    outputs = [x, x, w, total, total, total.reshape((2, 2)), total.const_like(1.0)]
    part = isolate(outputs, [x])
    assert len(set(part.outputs)) == len(outputs)
    assert not set(part.outputs) & {*part.parameters, *part.placeholders}
    assert all(node.base is node for node in part.outputs)
    items, values = schedule(part.outputs)
    storages = {node: storage for item in items for node, storage in item.commits}
    assert values == {} and len({storages[node] for node in part.outputs}) == len(outputs)


def test_what_is_written_in_place_is_refused() -> None:
    x, w = hole(4), memory(4)
    for target in (x, w):
        with pytest.raises(ValueError, match=r"memory of shape \(4,\) is written in place"):
            isolate([target.assign(x.alu(Ops.ADD, x))], [x])
    own = x.alu(Ops.ADD, w).clone()
    part = isolate([own.shrink(((0, 2),)).assign(x.shrink(((1, 3),))).base], [x])
    assert part.outputs[0].op is Ops.CONTIGUOUS


def test_memory_that_is_not_there_yet_is_the_parts_own() -> None:
    """Each time that the part is computed it finds the same in it, however often it was written before."""
    x, w = hole(4), memory(4)
    start = w.alu(Ops.ADD, w).clone()
    first = start.shrink(((0, 1),)).assign(w.shrink(((0, 1),))).base
    reader = first.alu(Ops.MUL, first)  # of a version that the part overwrites
    last = first.shrink(((1, 3),)).assign(x.shrink(((1, 3),))).base
    part = isolate([last, reader.alu(Ops.ADD, x)], [x])
    inside = bases_first(part.outputs)
    assert [node.op for node in part.captured] == [Ops.ADD, Ops.BUFFER]
    assert not {start, first, reader, last} & set(inside)
    assert [node.op for node in inside].count(Ops.ASSIGN) == 2
    with pytest.raises(ValueError, match=r"memory of shape \(4,\) is written in place"):
        isolate([w.shrink(((0, 1),)).assign(w.shrink(((1, 2),))).assign(x.shrink(((1, 2),)))], [x])


def test_symbolic_sizes_are_refused() -> None:
    n = Variable("isolated", 1, 4).bind(2)
    x = hole(4)
    with pytest.raises(ValueError, match="a size is symbolic"):
        isolate([x.shrink(((0, n),)).alu(Ops.ADD, memory(4).shrink(((0, n),)))], [x])


def test_a_long_chain_takes_no_recursion() -> None:
    x = node = hole(4)
    for _ in range(20_000):
        node = node.alu(Ops.ADD, x)
    assert len(bases_first(isolate([node], [x]).outputs)) == 20_001


def product(x: LazyBuffer, w: LazyBuffer, rows: int) -> LazyBuffer:
    """``x @ w.T``."""
    n, k = w.shape
    left = x.reshape((rows, 1, k)).expand((rows, n, k))
    return left.alu(Ops.MUL, w.reshape((1, n, k)).expand((rows, n, k))).reduce(Ops.ADD, (2,))


def test_operands_of_products_are_laid_out_for_many_times() -> None:
    x, w = hole(LEAST_READS, 7), memory(5, 7)
    part = isolate([product(x, w, LEAST_READS)], [x], OFTEN)
    (copy,) = part.captured
    assert copy.op is Ops.CONTIGUOUS and copy.srcs[0].base is w, "a copy of its own, made outside"
    (of_it,) = part.placeholders
    (reads,) = [src for node in bases_first(part.outputs) for src in node.srcs if src.base is of_it]
    assert reads.st.views[0].strides == (0, 1, 5)


@pytest.mark.parametrize(("rows", "times"), [(LEAST_READS - 1, OFTEN), (LEAST_READS, OFTEN - 1)])
def test_operands_of_products_stay_where_it_does_not_pay(rows: int, times: int) -> None:
    x, w = hole(rows, 7), memory(5, 7)
    assert isolate([product(x, w, rows)], [x], times).captured == (w,)
    turned = memory(7, 5)
    x = hole(LEAST_READS, 7)
    assert isolate([product(x, turned.permute((1, 0)), LEAST_READS)], [x], OFTEN).captured == (turned,)


def test_windows_have_neighbours_along_terms_and_results() -> None:
    st = ShapeTracker((View((LEAST_READS, 5, 3), (0, 1, 1)),))
    found = walked(st, dtypes.float32, (2,))
    assert found is not None
    assert (found.terms, found.results, found.nearest, found.plain) == ((2,), (1,), (1, 2), False)
    assert found.beside and found.reads == LEAST_READS
    apart = walked(ShapeTracker((View((LEAST_READS, 5, 3), (0, 1, 5)),)), dtypes.float32, (2,))
    assert apart is not None and apart.nearest == (1,) and apart.plain and apart.beside
