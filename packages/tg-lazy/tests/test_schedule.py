from __future__ import annotations

import gc
import threading
import time
from typing import Any

import numpy as np
import pytest

from tg_dtype import dtypes
from tg_lazy import LazyBuffer, LazyOp, Ops, Storage, explain, schedule
from tg_lazy.fusion.step import Space, Step
from tg_lazy.kernel.frames import frames_of
from tg_lazy.subgraph.node import Node
from tg_shape import Variable

f32, i32 = dtypes.float32, dtypes.int32


def plus(x: LazyBuffer, value: float) -> LazyBuffer:
    return x.alu(Ops.ADD, x.const_like(value))


def softmax(x: LazyBuffer) -> LazyBuffer:
    e = x.alu(Ops.SUB, x.reduce(Ops.MAX, (1,)).expand(x.shape)).alu(Ops.EXP2)
    return e.alu(Ops.FDIV, e.reduce(Ops.ADD, (1,)).expand(x.shape))


def test_nothing_to_do(machine: Any) -> None:
    a = machine.buffer(np.ones(3, np.float32))
    assert schedule([]) == ([], {})
    assert schedule([a, a.flip((0,)), a.const_like(1), LazyBuffer.iota(4, i32, "CPU")]) == ([], {})


def test_an_item_says_what_it_is(machine: Any) -> None:
    a = machine.buffer(np.ones(3, np.float32))
    b = plus(a, 1)
    (item,) = schedule([b.reshape((3, 1))])[0]
    assert list(item.nodes) == [b] and item.reason == "output" and item.fused == 1
    assert item.bufs[1] is a.storage and item.bufs[0].payload is None
    assert str(item.origin).startswith(__file__) and "ADD" in repr(item)
    item.commit()
    assert b.is_realized and b.storage is item.bufs[0] and not item.nodes


def test_equal_kernels_are_one_ast(machine: Any) -> None:
    sinks = []
    for _ in range(3):
        x, y = (machine.buffer(np.ones((4, 5), np.float32)) for _ in range(2))
        (item,) = schedule([softmax(x).alu(Ops.ADD, y)])[0]
        sinks.append(item.ast)
    assert sinks[0] is sinks[1] is sinks[2]


def test_kernels_of_many_layers_repeat(machine: Any) -> None:
    x = machine.buffer(np.ones((16, 16), np.float32))
    for _ in range(20):
        w = machine.buffer(np.ones((16, 16), np.float32))
        left = x.reshape((16, 1, 16)).expand((16, 16, 16))
        x = left.alu(Ops.MUL, w.reshape((1, 16, 16)).expand((16, 16, 16))).reduce(Ops.ADD, (2,)).reshape((16, 16))
        x = x.alu(Ops.MAX, x.const_like(0)).contiguous()
    items, _ = schedule([x])
    assert len(items) == 20 and len({item.ast for item in items}) == 1


def test_a_schedule_is_deterministic(machine: Any) -> None:
    rng = np.random.default_rng(1)
    a, b = (machine.buffer(rng.standard_normal((8, 8)).astype(np.float32)) for _ in range(2))

    def build() -> list[LazyBuffer]:
        s = softmax(a)
        return [s.alu(Ops.ADD, b).contiguous(), s.reduce(Ops.ADD, (0,)), plus(b, 1), a.reduce(Ops.MAX, (0, 1))]

    first, second = schedule(build())[0], schedule(build())[0]
    assert [i.ast for i in first] == [i.ast for i in second]
    assert [i.reason for i in first] == [i.reason for i in second]


def chain(x: LazyBuffer, length: int) -> LazyBuffer:
    y = x
    for _ in range(length):
        y = y.alu(Ops.ADD, x)
    return y


def test_a_chain_of_100000_nodes(machine: Any) -> None:
    y = chain(machine.buffer(np.ones(4, np.float32)), 100_000)
    start = time.process_time()
    items, _ = schedule([y])
    assert time.process_time() - start < 10, "linear, and without recursion; about 2 s are usual"
    assert 190 <= len(items) <= 210
    assert len({item.ast for item in items[1:-1]}) == 1


def test_a_chain_of_many_kernels(machine: Any) -> None:
    y = chain(machine.buffer(np.ones(4, np.float32)), 3_000)
    assert len(machine.run(y)) == 6
    np.testing.assert_array_equal(machine.value(y), np.full(4, 3_001.0))


def test_a_chain_of_views_and_reductions(machine: Any) -> None:
    y = machine.buffer(np.ones((2, 2), np.float32))
    for _ in range(2_000):
        y = y.permute((1, 0)).alu(Ops.ADD, y).reduce(Ops.MAX, (1,)).expand((2, 2))
        y = y.alu(Ops.MUL, y.const_like(0.5))
    machine.run(y)
    np.testing.assert_array_equal(machine.value(y), np.ones((2, 2)))


def test_schedules_keep_nothing_alive(machine: Any) -> None:
    gc.collect()
    gc.disable()
    try:
        x = machine.buffer(np.ones((4, 5), np.float32))
        new = x.assign(softmax(x))
        machine.run(new)
        assert not [o for o in gc.get_objects() if isinstance(o, (Node, Space, Step))]
    finally:
        gc.enable()


def test_copies_between_devices(machine: Any) -> None:
    v = np.arange(6, dtype=np.float32).reshape(2, 3)
    a = machine.buffer(v)
    b = plus(plus(a, 1).copy_to("CL"), 1)
    items = machine.run(b)
    assert [item.ast.op for item in items] == [Ops.SINK, Ops.COPY, Ops.SINK]
    assert [item.bufs[0].device for item in items] == ["CPU", "CL", "CL"]
    np.testing.assert_array_equal(machine.value(b), v + 2)
    np.testing.assert_array_equal(machine.value(a.permute((1, 0)).copy_to("CL")), v.T)
    np.testing.assert_array_equal(machine.value(a.permute((1, 0)).shrink(((0, 2), (0, 2))).copy_to("CL")), v.T[:2])
    iota = LazyBuffer.iota(4, i32, "CPU").copy_to("CL")
    assert machine.run(iota) == []


def test_a_part_of_a_file_is_copied_alone(machine: Any) -> None:
    raw = np.arange(64, dtype=np.uint8)
    disk = machine.buffer(raw, "DISK:x")
    part = disk.shrink(((8, 24),)).bitcast(f32).reshape((2, 2)).copy_to("CPU")
    items = machine.run(part)
    assert [item.ast.op for item in items] == [Ops.BUFFER_VIEW, Ops.COPY]
    assert (items[0].ast.arg, items[0].bufs[0].nbytes) == (8, 16)
    np.testing.assert_array_equal(machine.value(part), raw[8:24].view(np.float32).reshape(2, 2))
    same = disk.shrink(((4, 8),)).copy_to("CPU")
    assert [item.ast.op for item in machine.run(same)] == [Ops.BUFFER_VIEW, Ops.COPY]
    np.testing.assert_array_equal(machine.value(same), raw[4:8])


def test_bitcasts(machine: Any) -> None:
    v = np.array([1.0, -2.0, 0.5], np.float32)
    a = machine.buffer(v)
    np.testing.assert_array_equal(machine.value(plus(a.bitcast(i32), 1)), v.view(np.int32) + 1)
    np.testing.assert_array_equal(machine.value(plus(a, 1).bitcast(dtypes.uint8)), (v + 1).view(np.uint8))
    np.testing.assert_array_equal(machine.value(a.flip((0,)).bitcast(dtypes.uint8)), v[::-1].copy().view(np.uint8))


def test_host_functions_read_whole_buffers(machine: Any) -> None:
    v = np.array([3.0, 1.0, 2.0], np.float32)

    def sort(out: Any, x: Any, order: Any) -> None:
        out[:] = np.sort(x)[order]

    order = LazyBuffer.iota(3, i32, "CPU").flip((0,))
    out = LazyBuffer.custom(sort, [plus(machine.buffer(v), 1), order], (3, 1), f32, "CPU")
    result = plus(out, 1)
    items = machine.run(result)
    assert [i.ast.op for i in items].count(Ops.CUSTOM) == 1
    np.testing.assert_array_equal(machine.value(result), [[5], [4], [3]])


def test_memory_with_undefined_content(machine: Any) -> None:
    blank = LazyBuffer.empty((4, 2), f32, "CPU")
    items = machine.run(blank)
    assert [item.ast.op for item in items] == [Ops.EMPTY] and items[0].bufs[0].size == 8
    assert blank.is_realized


def test_size_zero(machine: Any) -> None:
    a = machine.buffer(np.ones((0, 3), np.float32))
    b = plus(a, 1).permute((1, 0)).contiguous()
    items = machine.run(b)
    assert {item.ast.op for item in items} == {Ops.EMPTY} and b.is_realized
    np.testing.assert_array_equal(machine.value(b.reduce(Ops.ADD, (1,))), np.zeros((3, 1)))
    np.testing.assert_array_equal(machine.value(b.pad(((0, 0), (0, 2)))), np.zeros((3, 2)))
    np.testing.assert_array_equal(machine.value(a.gather(machine.buffer(np.array([0, 1], np.int32)))), np.zeros(2))


def test_the_index_of_a_padded_gather_has_no_padding(machine: Any) -> None:
    table = machine.buffer(np.arange(24, dtype=np.float32))
    start = machine.buffer(np.array([3], np.int32)).reshape((1, 1)).expand((4, 5))
    steps = LazyBuffer.iota(5, i32, "CPU").reshape((1, 5)).expand((4, 5))
    index = start.alu(Ops.ADD, plus(steps, 2))
    (item,) = machine.run(table.gather(index).pad(((1, 2), (0, 0))).contiguous())
    (found,) = (node for node in item.ast.toposort() if node.op is Ops.GATHER)
    assert all(node.op is not Ops.VIEW for node in found.toposort())
    assert all(view.mask is None for n in found.toposort() if n.op is Ops.IOTA for view in n.arg.views)
    own = plus(steps, 2).pad(((0, 0), (1, 0)))  # padding of the index itself is seen: 0 is a place
    both = machine.value(table.gather(own).pad(((1, 0), (0, 0))))
    np.testing.assert_array_equal(both, np.pad(np.tile([0.0, 2, 3, 4, 5, 6], (4, 1)), ((1, 0), (0, 0))))


def test_integers_of_the_graph(machine: Any) -> None:
    n = LazyBuffer.iota(6, i32, "CPU")
    square = n.alu(Ops.MUL, n).reshape((2, 3)).flip((1,)).pad(((0, 0), (1, 0)))
    expected = np.pad((np.arange(6) ** 2).reshape(2, 3)[:, ::-1], ((0, 0), (1, 0)))
    np.testing.assert_array_equal(machine.value(square), expected)
    seen = n.reshape((2, 3)).permute((1, 0)).contiguous()
    assert len(machine.run(seen)) == 1
    np.testing.assert_array_equal(machine.value(seen), np.arange(6).reshape(2, 3).T)


# -- symbolic shapes


def test_symbolic_shapes(machine: Any) -> None:
    n = Variable("n", 1, 8)
    v = np.arange(16, dtype=np.float32).reshape(2, 8)
    full = machine.buffer(v)
    asts = []
    for k in (3, 5):
        x = full.shrink(((0, 2), (0, n.bind(k))))
        total = plus(x, 1).reduce(Ops.ADD, (1,))
        items, env = schedule([total])
        assert env == {n: k}
        asts.append(items[0].ast)
        assert items[0].ast.variables() == {n}
        np.testing.assert_array_equal(machine.value(total), (v[:, :k] + 1).sum(1, keepdims=True))
    assert asts[0] is asts[1]


def test_memory_of_symbolic_size_is_as_large_as_it_can_be(machine: Any) -> None:
    n = Variable("n", 1, 8)
    v = np.arange(16, dtype=np.float32).reshape(2, 8)
    x = machine.buffer(v).shrink(((0, 2), (0, n.bind(3))))
    y = plus(x, 1).contiguous()
    items = machine.run(y)
    assert items[-1].bufs[0].size == 16
    assert y.storage is not None
    np.testing.assert_array_equal(machine.memory[y.storage][:6].reshape(2, 3), v[:, :3] + 1)


def test_values_of_symbols(machine: Any) -> None:
    n = Variable("n", 0, 9)
    s = LazyBuffer.symbolic(n.bind(4) * 2, i32, "CPU")
    x = machine.buffer(np.arange(3, dtype=np.int32))
    out = x.alu(Ops.MUL, s.reshape((1,)).expand((3,))).pad(((1, 0),))
    np.testing.assert_array_equal(machine.value(out), [0, 0, 8, 16])
    padded = s.reshape((1,)).pad(((1, 1),))
    np.testing.assert_array_equal(machine.value(plus(padded, 1)), [1, 9, 1])


def test_rows_of_a_number_that_is_not_known_have_statistics_in_a_kernel_of_their_own(machine: Any) -> None:
    n = Variable("n", 1, 64)
    v = np.arange(256, dtype=np.float32).reshape(64, 4) % 7
    rows = machine.buffer(v).shrink(((0, n.bind(40)), (0, 4)))
    most = rows.reduce(Ops.MAX, (1,))
    out = rows.alu(Ops.SUB, most.expand(rows.shape))
    assert len(machine.run(most, out)) == 2
    np.testing.assert_array_equal(machine.value(out)[:40], (v - v.max(1, keepdims=True))[:40])


def test_a_cache_that_grows_by_symbolic_assignment(machine: Any) -> None:
    start = Variable("start", 0, 7)
    cache = machine.buffer(np.zeros((8, 2), np.float32))
    for k in range(3):
        at = start.bind(k)
        row = cache.shrink(((at, at + 1), (0, 2)))
        value = machine.buffer(np.full((1, 2), k + 1, np.float32))
        cache = cache.rebase(row.assign(value.reshape(row.shape)))
        machine.run(cache)
    np.testing.assert_array_equal(machine.value(cache)[:4, 0], [1, 2, 3, 0])


def test_conflicting_bindings_are_an_error(machine: Any) -> None:
    n = Variable("n", 1, 8)
    full = machine.buffer(np.ones(8, np.float32))
    sums = [full.shrink(((0, n.bind(k)),)).reduce(Ops.ADD, (0,)) for k in (2, 3)]
    with pytest.raises(ValueError, match=r"n is bound to 2 and to 3 .*test_schedule"):
        schedule([sums[0].alu(Ops.ADD, sums[1])])


# -- several threads, errors


def test_two_threads_schedule_at_once(machine: Any) -> None:
    a = machine.buffer(np.arange(40, dtype=np.float32).reshape(8, 5))
    sinks: list[LazyOp] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(20):
                items, _ = schedule([softmax(plus(a, 1))])
                sinks.extend(item.ast for item in items)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors and len(sinks) == 80 and len(set(sinks)) == 1


def test_what_a_failed_step_left_is_scheduled_again(machine: Any) -> None:
    a = machine.buffer(np.ones((4, 4), np.float32))
    first = plus(a, 1).contiguous()
    second = first.permute((1, 0)).alu(Ops.EXP2).reduce(Ops.ADD, (0,)).contiguous()
    third = second.expand((4, 4)).alu(Ops.ADD, first).contiguous()
    items, _ = schedule([third])
    assert len(items) == 3
    machine.execute(items[0])
    items[0].commit()
    again, _ = schedule([third])
    assert len(again) == 2 and again[0].ast is items[1].ast
    np.testing.assert_array_equal(machine.value(third), np.full((4, 4), 18.0))


def test_explain_prints_steps_that_are_no_kernels(machine: Any) -> None:
    a = LazyBuffer.from_storage(Storage("DISK:f", 16, dtypes.uint8))
    text = explain([a.shrink(((4, 8),)).copy_to("CPU"), LazyBuffer.empty((2,), f32, "CPU")])
    assert "BUFFER_VIEW" in text and "COPY" in text and "EMPTY" in text
    assert explain([]) == ""


def test_only_what_is_stored_has_memory(machine: Any) -> None:
    a = machine.buffer(np.ones((4, 8), np.float32))
    x = a.alu(Ops.SIN).alu(Ops.ADD, a).reduce(Ops.ADD, (1,)).alu(Ops.SQRT)
    before = Storage("CPU", 1, dtypes.float32).uid
    items, _ = schedule([x])
    assert [len(item.bufs) for item in items] == [2]
    assert Storage("CPU", 1, dtypes.float32).uid - before == 2, "the output's, and the one made here"


@pytest.mark.parametrize(("own", "frame"), [
    ((3, 4, 1), None), ((12,), (3, 4, 1)), ((3, 4, 5), None), ((60,), (3, 4, 5)), ((3, 1, 1), None), ((3,), (3, 1, 1)),
])  # fmt: skip
def test_outputs_are_looped_over_one_by_one_or_through_a_view(
    own: tuple[int, ...], frame: tuple[int, ...] | None
) -> None:
    root = Node(Ops.SIN, "CPU", dtypes.float32, own, ())
    (found,) = frames_of([root], (3, 4, 5), None)
    assert (None if found is None else found.shape) == frame
