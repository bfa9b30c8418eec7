from __future__ import annotations

import gc
import os
import sys
import threading
import weakref
from typing import Any

import numpy as np
import pytest

from tg_dtype import dtypes
from tg_lazy import LazyBuffer, Ops, Storage
from tg_lazy.graph.origin import caller
from tg_shape import Variable, View

f32, i32 = dtypes.float32, dtypes.int32


def memory(shape: tuple[int, ...], dtype: Any = f32, device: str = "CPU") -> LazyBuffer:
    return LazyBuffer.from_storage(Storage(device, int(np.prod(shape)), dtype), shape)


def one(x: LazyBuffer) -> LazyBuffer:
    return x.alu(Ops.ADD, x.const_like(1))


def test_equal_graphs_are_one_object() -> None:
    a, b = memory((2, 3)), memory((2, 3))
    assert one(a).permute((1, 0)) is one(a).permute((1, 0))
    assert one(a) is not one(b)
    assert one(a).label is one(b).label is not a.alu(Ops.SUB, a.const_like(1)).label
    assert LazyBuffer.const(0.0, f32, (2,), "CPU") is not LazyBuffer.const(-0.0, f32, (2,), "CPU")
    assert LazyBuffer.const(1, i32, (), "CPU") is not LazyBuffer.const(1, dtypes.int64, (), "CPU")
    nan = float("nan")
    assert LazyBuffer.const(nan, f32, (2,), "CPU") is LazyBuffer.const(nan, f32, (2,), "CPU")


def test_memory_is_never_shared() -> None:
    a = memory((2,))
    assert a.clone() is not a.clone()
    assert one(a).contiguous() is not one(a).contiguous()
    assert LazyBuffer.empty((2,), f32, "CPU") is not LazyBuffer.empty((2,), f32, "CPU")
    assert a.copy_to("CL") is not a.copy_to("CL")


def test_a_view_knows_its_base_and_movement_returns_to_it() -> None:
    a = memory((2, 3))
    v = a.permute((1, 0))
    assert (v.op, v.base, v.srcs, v.storage) == (Ops.VIEW, a, (a,), a.storage)
    assert v.permute((1, 0)) is a and a.reshape((6,)).reshape((2, 3)) is a
    assert a.is_whole and a.reshape((6,)).is_whole and not v.is_whole and not a.shrink(((0, 1), (0, 3))).is_whole


def test_a_view_of_new_memory_is_what_movement_makes_of_it() -> None:
    old = LazyBuffer.from_storage(Storage("CPU", 24, dtypes.float32), (2, 3, 4))
    for view in (old, old.shrink(((1, 2), (0, 3), (0, 4))), old.permute((2, 0, 1)), old.reshape((24,))):
        storage = Storage("CPU", 24, dtypes.float32)
        new = view.in_new_storage(storage, old.st)
        assert new.shape == view.shape and new.base.shape == old.shape and new.origin == view.origin
        assert new.storage is storage and new.base is not old
        assert new.base.seen(view.st) is new
        assert new.alu(Ops.NEG) is new.alu(Ops.NEG) and new.alu(Ops.NEG) is not view.alu(Ops.NEG)


def test_every_movement() -> None:
    a = memory((2, 3))
    assert a.reshape((3, 2)).shape == (3, 2)
    assert a.reshape((2, 1, 3)).expand((2, 5, 3)).shape == (2, 5, 3)
    assert a.pad(((1, 0), (2, 3))).shape == (3, 8)
    assert a.shrink(((1, 2), (0, 2))).shape == (1, 2)
    assert a.flip((0,)).shape == (2, 3)
    assert a.stride((2, -1)).shape == (1, 3)


def test_bases_are_freed_at_once_without_the_collector() -> None:
    gc.disable()
    try:
        a = memory((4,))
        node = one(a).reduce(Ops.ADD, (0,))
        gone = weakref.ref(node), weakref.ref(node.srcs[0])
        del node
        assert [r() for r in gone] == [None, None]
    finally:
        gc.enable()


def test_readers_do_not_pile_up() -> None:
    a = memory((4,))
    for k in range(500):
        a.alu(Ops.ADD, a.const_like(k))
    assert len(a.readers) < 100 and not a.readers.alive()


def test_a_deep_chain_is_freed_without_recursion() -> None:
    x = memory((4,))
    y = x
    for _ in range(50_000):
        y = y.alu(Ops.ADD, x)
    del y


def test_constants_and_symbols() -> None:
    c = LazyBuffer.const(2.7, i32, (2, 3), "CPU")
    assert (c.base.op, c.base.arg, c.shape, c.base.shape) == (Ops.CONST, 2, (2, 3), ())
    n = Variable("n", 1, 8)
    s = LazyBuffer.symbolic(n * 2, i32, "CPU")
    assert (s.op, s.shape) == (Ops.SYM, ())
    assert LazyBuffer.symbolic(7, i32, "CPU").op is Ops.CONST
    assert LazyBuffer.const(n, i32, (2,), "CPU").base.op is Ops.SYM
    assert LazyBuffer.iota(n, i32, "CPU").shape == (n,)


def test_reduction_shapes() -> None:
    a = memory((2, 3, 1))
    assert a.reduce(Ops.ADD, (1,)).shape == (2, 1, 1)
    assert a.reduce(Ops.ADD, (-2, 0)).shape == (1, 1, 1)
    assert a.reduce(Ops.ADD, (2,)) is a and a.reduce(Ops.MAX, ()) is a
    empty = memory((2, 0))
    assert empty.reduce(Ops.ADD, (1,)) is LazyBuffer.const(0, f32, (2, 1), "CPU")
    assert empty.reduce(Ops.MAX, (1,)).base.arg == -np.inf
    assert empty.reduce(Ops.MUL, (0, 1)).base.arg == 1.0


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16, dtypes.fp8e4m3])
def test_narrow_floats_accumulate_in_float32(dtype: Any) -> None:
    s = memory((4, 4), dtype).reduce(Ops.ADD, (1,))
    assert s.dtype is dtype and s.op is Ops.CAST
    assert s.srcs[0].op is Ops.REDUCE and s.srcs[0].dtype is f32
    assert memory((4, 4), dtype).reduce(Ops.MAX, (1,)).op is Ops.REDUCE


def test_casts() -> None:
    a = memory((1, 4))
    assert a.cast(f32) is a and a.cast(i32).dtype is i32
    wide = a.expand((9, 4)).cast(i32)
    assert wide.op is Ops.VIEW and wide.base.op is Ops.CAST and wide.base.shape == (1, 4)
    assert a.const_like(2).cast(i32).base.op is Ops.CONST
    assert a.bitcast(i32).op is Ops.BITCAST
    small = a.bitcast(dtypes.uint8)
    assert (small.op, small.shape) == (Ops.BUFFER_VIEW, (1, 16))
    assert small.bitcast(dtypes.float64).shape == (1, 2)


@pytest.mark.parametrize("narrow", [dtypes.uint8, dtypes.int16, f32, dtypes.int64], ids=lambda d: d.name)
@pytest.mark.parametrize("wide", [dtypes.uint8, dtypes.float16, i32, dtypes.float64], ids=lambda d: d.name)
def test_a_bitcast_keeps_the_bytes_of_a_row_or_is_refused(narrow: Any, wide: Any) -> None:
    for last in (0, 1, 2, 3, 5, 6, 7, 8, 12):
        a, nbytes = memory((2, last), narrow), last * narrow.itemsize
        if nbytes % wide.itemsize:
            with pytest.raises(ValueError, match="the last dimension must divide"):
                a.bitcast(wide)
        else:
            assert a.bitcast(wide).shape == (2, nbytes // wide.itemsize)


def test_contiguous_clones_what_has_no_memory_of_its_own() -> None:
    a = memory((2, 3))
    assert a.contiguous() is a and a.reshape((6,)).contiguous() is a.reshape((6,))
    for x in (a.permute((1, 0)), a.shrink(((0, 1), (0, 3))), one(a), a.const_like(1)):
        y = x.contiguous()
        assert y.op is Ops.CONTIGUOUS and y.contiguous() is y


def test_copies_move_the_smaller_side() -> None:
    a = memory((2, 1))
    assert a.copy_to("CPU") is a
    wide = a.expand((2, 50)).copy_to("CL")
    assert (wide.device, wide.shape, wide.base.op, wide.base.shape) == ("CL", (2, 50), Ops.COPY, (2, 1))
    assert a.const_like(3).copy_to("CL").base.op is Ops.CONST
    part = memory((4, 4)).permute((1, 0)).shrink(((0, 2), (0, 4))).copy_to("CL")
    assert part.srcs[0].op is Ops.CONTIGUOUS
    whole = memory((4, 4)).shrink(((2, 4), (0, 4))).copy_to("CL")
    assert whole.srcs[0].op is Ops.VIEW


def test_bitcast_of_memory_moves_past_a_copy() -> None:
    moved = memory((4,), dtypes.uint32, "DISK").bitcast(f32).copy_to("CPU")
    assert moved.op is Ops.BITCAST and moved.srcs[0].op is Ops.COPY


def test_assign_makes_a_version_and_views_follow() -> None:
    a = memory((2, 3))
    new = a.reshape((6,)).assign(LazyBuffer.const(0, f32, (6,), "CPU"))
    assert new.shape == (6,) and new.base.op is Ops.ASSIGN and new.base.shape == (2, 3)
    part = a.shrink(((0, 1), (0, 3)))
    after = a.rebase(part.assign(part.const_like(1)))
    assert after.op is Ops.ASSIGN and after.shape == (2, 3)
    assert a.assign(a) is a
    with pytest.raises(ValueError, match="rebase"):
        a.rebase(memory((3, 2)))


def test_assign_to_no_memory_or_shared_memory_takes_new_memory() -> None:
    a = memory((2,))
    zeros = LazyBuffer.const(0, f32, (2,), "CPU")
    assert zeros.assign(a).op is Ops.CONTIGUOUS
    assert one(a).assign(zeros).op is Ops.CONTIGUOUS
    left, right = one(a), one(a)
    left.realised_in(Storage("CPU", 2, f32))
    assert left is right and left.assign(zeros).op is Ops.CONTIGUOUS
    part = left.shrink(((0, 1),))
    assert part.assign(part.const_like(0)).base.srcs[0].base.op is Ops.CONTIGUOUS


def test_realisation_drops_operands_and_leaves_the_table() -> None:
    a = memory((2,))
    node = one(one(a))
    operand = weakref.ref(node.srcs[0])
    storage = Storage("CPU", 2, f32)
    node.realised_in(storage)
    assert (node.op, node.srcs, node.storage, node.is_realized) == (Ops.BUFFER, (), storage, True)
    assert operand() is None
    assert one(a) is not node


@pytest.mark.parametrize(
    ("build", "error", "words"),
    [
        (lambda a: a.alu(Ops.ADD, memory((3, 2))), ValueError, ("ADD", "(2, 3)", "(3, 2)", "float32")),
        (lambda a: a.alu(Ops.ADD, memory((2, 3), i32)), TypeError, ("ADD", "float32", "int32", "(2, 3)")),
        (lambda a: a.alu(Ops.ADD, memory((2, 3), device="CL")), ValueError, ("ADD", "CPU", "CL")),
        (lambda a: a.alu(Ops.ADD), ValueError, ("ADD", "2 operands")),
        (lambda a: a.alu(Ops.REDUCE), ValueError, ("REDUCE", "elementwise")),
        (lambda a: a.alu(Ops.WHERE, a, a), TypeError, ("WHERE", "bool", "float32")),
        (lambda a: memory((2,), i32).alu(Ops.SQRT), TypeError, ("SQRT", "int32")),
        (lambda a: a.alu(Ops.AND, a), TypeError, ("AND", "float32")),
        (lambda a: a.reduce(Ops.SUB, (0,)), ValueError, ("SUB", "(2, 3)", "float32")),
        (lambda a: a.reduce(Ops.ADD, (2,)), ValueError, ("ADD", "(2,)", "(2, 3)")),
        (lambda a: a.reduce(Ops.ADD, (0, -2)), ValueError, ("twice", "(2, 3)")),
        (lambda a: a.gather(a), TypeError, ("GATHER", "float32")),
        (lambda a: a.gather(memory((1,), i32, "CL")), ValueError, ("GATHER", "CPU", "CL")),
        (lambda a: a.bitcast(dtypes.float64), ValueError, ("BITCAST", "float32", "float64", "(2, 3)")),
        (lambda a: memory(()).bitcast(dtypes.uint8), ValueError, ("BITCAST", "uint8", "()")),
        (lambda a: memory((4,)).shrink(((0, Variable("n", 1, 4)),)).bitcast(dtypes.uint8), ValueError, ("divide",)),
        (lambda a: a.assign(memory((3, 2))), ValueError, ("ASSIGN", "(2, 3)", "(3, 2)")),
        (lambda a: a.assign(memory((2, 3), i32)), TypeError, ("ASSIGN", "int32", "float32")),
        (lambda a: a.assign(memory((2, 3), device="CL")), ValueError, ("ASSIGN", "CL", "CPU")),
        (lambda a: a.pad(((1, 1), (0, 0))).assign(memory((4, 3))), ValueError, ("ASSIGN", "padding")),
        (lambda a: a.reshape((2, 3, 1)).expand((2, 3, 2)).assign(memory((2, 3, 2))), ValueError, ("twice",)),
        (lambda a: LazyBuffer.iota(3, f32, "CPU"), TypeError, ("IOTA", "float32")),
        (lambda a: LazyBuffer.from_storage(Storage("CPU", 3, f32), (2, 2)), ValueError, ("(2, 2)", "4")),
        (lambda a: a.reshape((4,)), ValueError, ("(4,)",)),
        (lambda a: a.expand((4, 3)), ValueError, ("expand",)),
        (lambda a: a.permute((0, 0)), ValueError, ("permute",)),
        (lambda a: a.shrink(((0, 3), (0, 3))), ValueError, ("shrink",)),
        (lambda a: Storage("CPU", -1, f32), ValueError, ("-1",)),
    ],
)
def test_errors_name_what_is_wrong(build: Any, error: type[Exception], words: tuple[str, ...]) -> None:
    with pytest.raises(error) as caught:
        build(memory((2, 3)))
    for word in words:
        assert word in str(caught.value)


def test_origin_is_the_line_outside_of_the_packages() -> None:
    a = memory((2,))
    node = one(a)
    assert os.path.samefile(node.origin[0], __file__)
    line = sys._getframe().f_lineno + 1
    assert a.alu(Ops.MUL, a).origin[1] == line
    code = compile("value = make(1)", "inside.py", "exec")
    scope: dict[str, Any] = {"__name__": "tg_frontend.inside", "make": caller}
    exec(code, scope)
    assert os.path.samefile(scope["value"][0], __file__)


def test_a_view_with_any_strides_stays_within_its_base() -> None:
    base = memory((3, 4))
    assert base.seen_through(View((4, 3), (1, 4))).shape == (4, 3)
    assert base.seen_through(View((12,), (-1,), 11)).shape == (12,)
    assert base.seen_through(View((2, 0), (50, 1))).shape == (2, 0)
    for view in (View((4, 4), (4, 1)), View((13,), (1,)), View((3,), (-1,), 1), View((2,), (1,), 11)):
        with pytest.raises(ValueError, match="leaves the 12 elements"):
            base.seen_through(view)
    for view in (View((12,), (1,), 0, ((0, 5),)), View((Variable("n", 1, 3),), (1,))):
        with pytest.raises(ValueError, match="a mask or a symbol"):
            base.seen_through(view)


def test_two_threads_build_the_same_graph() -> None:
    a = memory((8,))
    found: list[list[LazyBuffer]] = []

    def build() -> None:
        nodes = [a]
        for k in range(300):
            nodes.append(nodes[-1].alu(Ops.ADD, a.const_like(k)))
        found.append(nodes)

    threads = [threading.Thread(target=build) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(x is y for nodes in found for x, y in zip(nodes, found[0], strict=True))
