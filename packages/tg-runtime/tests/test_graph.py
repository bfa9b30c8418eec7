"""CPU graphs: a list of kernels as one native call, with patched addresses and values."""

from __future__ import annotations

import pytest

from tg_dtype import dtypes
from tg_lazy import LazyOp, Ops, ast
from tg_runtime import Buffer, Device, DeviceError, ExecItem, GlobalCounters, get_runner
from tg_runtime.backends.cpu.graph import CPUGraph
from tg_runtime.backends.cpu.pool import ir_compiler
from tg_runtime.testing.kernels import kernel
from tg_shape import ShapeTracker, Variable

pytestmark = pytest.mark.skipif(ir_compiler() is None, reason="neither llvmlite nor clang is here")


def ints(values: list[int]) -> Buffer:
    import array

    return Buffer("CPU", len(values), dtypes.int32).copyin(memoryview(array.array("i", values)).cast("B"))


def read(buffer: Buffer) -> list[int]:
    return buffer.as_buffer(allow_zero_copy=False).cast("i").tolist()


def add_kernel(size: int) -> LazyOp:
    st = ShapeTracker.from_shape((size,))
    x, y = ast.load(1, dtypes.int32, st), ast.load(2, dtypes.int32, st)
    return kernel([(ast.alu(Ops.ADD, x, y), size)], [(dtypes.int32, size)] * 2)


def item(sink: LazyOp, *bufs: Buffer) -> ExecItem:
    return ExecItem(get_runner(Device["CPU"], sink), bufs)


def test_chain() -> None:
    step = add_kernel(5)
    one = ints([1, 2, 3, 4, 5])
    chain = [ints([0] * 5)]
    items = []
    for _ in range(200):
        chain.append(Buffer("CPU", 5, dtypes.int32))
        items.append(item(step, chain[-1], chain[-2], one))
    graph = CPUGraph(items)
    assert graph.num_kernels == 200
    graph([], {})
    assert read(chain[-1]) == [200, 400, 600, 800, 1000]


def test_inputs_are_replaced() -> None:
    x, y, out = ints([1] * 4), ints([2] * 4), Buffer("CPU", 4, dtypes.int32)
    graph = CPUGraph([item(add_kernel(4), out, x, y)], [x])
    graph([x], {})
    assert read(out) == [3] * 4
    graph([ints([40] * 4)], {})
    assert read(out) == [42] * 4
    # outputs can be inputs of a graph too
    other = CPUGraph([item(add_kernel(4), out, x, y)], [out, x])
    target = ints([0] * 4)
    other([target, x], {})
    assert read(target) == [3] * 4
    assert read(out) == [42] * 4
    with pytest.raises(ValueError, match="takes 1 buffers, got 0"):
        graph([], {})


def test_views_of_inputs_follow() -> None:
    whole, out = ints(list(range(8))), Buffer("CPU", 3, dtypes.int32)
    low, high = whole.view(3, dtypes.int32, 4), whole.view(3, dtypes.int32, 20)
    graph = CPUGraph([item(add_kernel(3), out, low, high)], [whole])
    graph([whole], {})
    assert read(out) == [6, 8, 10]
    graph([ints([10 * i for i in range(8)])], {})
    assert read(out) == [60, 80, 100]
    # the input itself may be a view, of which another is taken
    big = ints(list(range(100, 120)))
    graph([big.view(8, dtypes.int32, 8)], {})
    assert read(out) == [103 + 107, 104 + 108, 105 + 109]


def test_variables_are_patched() -> None:
    n = Variable("n", 1, 10)
    x = ast.load(1, dtypes.int32, ShapeTracker.from_shape((n,)))
    sink = kernel([(ast.reduce(x, Ops.ADD, (0,)), 1)], [(dtypes.int32, 10)])
    source, out = ints(list(range(10))), Buffer("CPU", 1, dtypes.int32)
    graph = CPUGraph([item(sink, out, source)])
    for value in (3, 10, 1):
        graph([], {n: value})
        assert read(out) == [sum(range(value))]


def test_threads() -> None:
    size = 300_000
    st = ShapeTracker.from_shape((size,))
    x = ast.load(1, dtypes.int32, st)
    sink = kernel([(ast.alu(Ops.ADD, x, ast.iota(st)), size)], [(dtypes.int32, size)])
    source, middle, out = ints([7] * size), Buffer("CPU", size, dtypes.int32), Buffer("CPU", size, dtypes.int32)
    graph = CPUGraph([item(sink, middle, source), item(sink, out, middle)])
    seconds = graph([], {}, wait=True)
    assert seconds is not None
    assert seconds > 0
    assert read(out) == [7 + 2 * i for i in range(size)]


def test_as_an_exec_item() -> None:
    x, out = ints([1] * 4), Buffer("CPU", 4, dtypes.int32)
    items = [item(add_kernel(4), out, x, x)] * 3
    GlobalCounters.reset()
    ExecItem(CPUGraph(items, [x]), [x]).run(jit=True)
    assert GlobalCounters.kernel_count == 3
    assert GlobalCounters.global_ops == 12
    assert read(out) == [2] * 4


def test_what_cannot_be_part() -> None:
    out, x = Buffer("NUMPY", 4, dtypes.int32), Buffer("NUMPY", 4, dtypes.int32)
    with pytest.raises(DeviceError, match="no kernel of the CPU"):
        CPUGraph([ExecItem(get_runner(Device["NUMPY"], add_kernel(4)), [out, x, x])])
    with pytest.raises(DeviceError, match="misses a buffer"):
        CPUGraph([ExecItem(get_runner(Device["CPU"], add_kernel(4)), [None, None, None])])


def test_empty() -> None:
    CPUGraph([])([], {})
