"""Argument blocks, against the layout that ctypes gives the same C struct."""

from __future__ import annotations

import ctypes
import random
from typing import Any

import pytest

from tg_dtype import DType, dtypes
from tg_hcq import MMIO, ArgsLayout, HCQArgsState, HCQBuffer
from tg_shape import Variable

C_TYPES: dict[DType, type[ctypes._SimpleCData[Any]]] = {
    dtypes.int8: ctypes.c_int8,
    dtypes.uint8: ctypes.c_uint8,
    dtypes.int16: ctypes.c_int16,
    dtypes.uint16: ctypes.c_uint16,
    dtypes.int32: ctypes.c_int32,
    dtypes.uint32: ctypes.c_uint32,
    dtypes.int64: ctypes.c_int64,
    dtypes.uint64: ctypes.c_uint64,
    dtypes.float32: ctypes.c_float,
    dtypes.float64: ctypes.c_double,
}


def block(nbytes: int) -> HCQBuffer:
    view = MMIO.of(bytearray(nbytes))
    return HCQBuffer(view.address, nbytes, view)


@pytest.mark.parametrize("seed", range(20))
def test_layout_and_content_are_those_of_the_c_struct(seed: int) -> None:
    rng = random.Random(seed)
    scalars = [rng.choice(list(C_TYPES)) for _ in range(rng.randrange(6))]
    buffers = rng.randrange(4)

    fields: list[tuple[str, type[ctypes._SimpleCData[Any]]]] = [(f"b{i}", ctypes.c_uint64) for i in range(buffers)]
    fields += [(f"s{i}", C_TYPES[dtype]) for i, dtype in enumerate(scalars)]

    class Arguments(ctypes.Structure):
        _fields_ = fields

    layout = ArgsLayout(buffers, scalars)
    assert layout.offsets == tuple(getattr(Arguments, f"s{i}").offset for i in range(len(scalars)))
    assert layout.nbytes >= ctypes.sizeof(Arguments) and layout.nbytes % 8 == 0
    values = [
        float(rng.randrange(100)) / 4 if dtypes.is_float(d) else rng.randint(int(dtypes.min(d)), int(dtypes.max(d)))
        for d in scalars
    ]
    bufs = [HCQBuffer(rng.getrandbits(64), 8) for _ in range(buffers)]
    memory = block(layout.nbytes)
    state = HCQArgsState(memory, layout, bufs, values)
    there = Arguments.from_buffer_copy(memory.host_view().bytes())
    assert [getattr(there, f"b{i}") for i in range(buffers)] == [b.address for b in bufs]
    assert [getattr(there, f"s{i}") for i in range(len(scalars))] == values
    assert state.symbolic == []


def test_a_prefix_comes_first() -> None:
    layout = ArgsLayout(1, (dtypes.int32,), prefix=(1, 2, 3))
    assert (layout.buffers_at, layout.offsets, layout.nbytes) == (16, (24,), 32)
    memory = block(32)
    HCQArgsState(memory, layout, [HCQBuffer(0x1122334455667788, 1)], [-2])
    assert memory.host_view("I").read(0, 8) == [1, 2, 3, 0, 0x55667788, 0x11223344, 0xFFFFFFFE, 0]


def test_what_is_symbolic_is_listed() -> None:
    n, address = Variable("n", 1, 100), Variable("address", 0, 2**64 - 1)
    layout = ArgsLayout(2, (dtypes.int32, dtypes.uint8))
    state = HCQArgsState(block(layout.nbytes), layout, [HCQBuffer(address, 8), HCQBuffer(64, 8)], [n * 2, n])
    assert state.symbolic == [(0, 8, address), (16, 4, n * 2), (20, 1, n)]
    assert state.memory.host_view("Q").read(0, 3) == [0, 64, 0]


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (dtypes.int8, 128),
        (dtypes.int8, -129),
        (dtypes.int8, Variable("v", 0, 128)),
        (dtypes.uint32, -1),
        (dtypes.bool, 2),
        (dtypes.float32, Variable("v", 0, 1)),
    ],
)
def test_integers_that_do_not_fit(dtype: DType, value: int) -> None:
    layout = ArgsLayout(0, (dtype,))
    with pytest.raises(ValueError, match=f"fit {dtype.name}"):
        HCQArgsState(block(8), layout, [], [value])


def test_wrong_numbers_and_sizes() -> None:
    layout = ArgsLayout(1, (dtypes.int32,))
    with pytest.raises(ValueError, match="0 buffers and 1 scalars given, 1 and 1 taken"):
        HCQArgsState(block(16), layout, [], [1])
    with pytest.raises(ValueError, match="do not fit"):
        HCQArgsState(block(8), layout, [HCQBuffer(8, 8)], [1])
    with pytest.raises(ValueError, match="float32x4: a scalar"):
        ArgsLayout(0, (dtypes.float32.vec(4),))
