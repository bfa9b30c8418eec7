"""Argument blocks, against the layout that ctypes gives the same C struct."""

from __future__ import annotations

import ctypes
import random
from typing import Any

import pytest

from tg_dtype import DType, dtypes
from tg_hcq import MMIO, ArgsLayout, HCQArgsState, HCQBuffer
from tg_hcq.hostq import HostQueueDevice
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
    assert (layout.places, layout.offsets, layout.nbytes) == ((16,), (24,), 32)
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


def test_arguments_lie_where_the_layout_says() -> None:
    """As a code object's metadata has them: hidden sizes between, a descriptor of an image, a constant bank's base."""
    n = Variable("n", 1, 1000)
    layout = ArgsLayout(
        3, (dtypes.int32, dtypes.uint16), prefix=(7, 8), places=(0x30, -1, 0x10), offsets=(0x28, 0x22),
        hidden={"block_count_x": (0x24, 4), "grid_dims": (0x20, 2), "absent": (0x60, 8)},
        images={1: (0x40, 8)}, nbytes=0x100, alignment=256,
    )  # fmt: skip
    assert (layout.nbytes, layout.alignment) == (0x100, 256)
    bufs = [HCQBuffer(0xAAAA, 8), HCQBuffer(0xBBBB00, 64), HCQBuffer(0xCCCC, 8)]

    def descriptor(index: int, buffer: HCQBuffer) -> list[int]:
        address = buffer.address
        assert index == 1 and isinstance(address, int)
        return [address >> 8, 0, 1, 2, 3, 4, 5, 6]

    state = HCQArgsState(
        block(0x100), layout, bufs, [-1, 0xFFFF], hidden={"block_count_x": n, "grid_dims": 3, "other": 1},
        descriptor=descriptor,
    )  # fmt: skip
    view = state.memory.host_view
    assert view("I").read(0, 2) == [7, 8] and view("Q")[0x10 // 8] == 0xCCCC and view("Q")[0x30 // 8] == 0xAAAA
    assert view("I")[0x28 // 4] == 0xFFFFFFFF and view("H")[0x22 // 2] == 0xFFFF and view("H")[0x20 // 2] == 3
    assert view("I").read(0x40 // 4, 8) == [0xBBBB, 0, 1, 2, 3, 4, 5, 6] and view("Q")[0x60 // 8] == 0
    assert state.symbolic == [(0x24, 4, n)]
    with pytest.raises(ValueError, match="image 1 takes 8 words, and is described by 0"):
        HCQArgsState(block(0x100), layout, bufs, [0, 0])
    with pytest.raises(ValueError, match="grid_dims: 65536 does not always fit in 2 bytes"):
        HCQArgsState(block(0x100), layout, bufs, [0, 0], hidden={"grid_dims": 65536}, descriptor=descriptor)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"places": (0, 4)}, "buffer 1 at byte 4 is not aligned to its 8 bytes"),
        ({"places": (0, 0)}, "buffer 0 and buffer 1 overlap at byte 0"),
        ({"places": (0,)}, "1 and 1 offsets for 2 buffers and 1 scalars"),
        ({"offsets": (8,)}, "(buffer 1 and scalar 0|scalar 0 and buffer 1) overlap at byte 8"),
        ({"offsets": (18,)}, "scalar 0 at byte 18"),
        ({"hidden": {"x": (16, 4)}}, "overlap at byte 16"),
        ({"hidden": {"x": (24, 3)}}, "x at byte 24 is not aligned to its 3 bytes"),
        ({"images": {1: (2, 8)}}, "image 1 at byte 2"),
        ({"alignment": 48}, "alignment of 48 bytes"),
    ],
)
def test_layouts_that_cannot_be(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ArgsLayout(2, (dtypes.int32,), **options)


def test_blocks_lie_at_multiples(device: HostQueueDevice) -> None:
    rng = random.Random(1)
    for _ in range(3000):
        alignment, nbytes = 1 << rng.randrange(6, 13), rng.randrange(1, 5000)
        one = device.kernargs.alloc(nbytes, alignment)
        assert isinstance(one.address, int) and one.address % alignment == 0 and one.nbytes == nbytes


def test_what_only_a_launch_knows() -> None:
    hidden = {"hidden_block_count_x": (8, 4), "hidden_group_size_x": (12, 2), "hidden_none": (14, 2)}
    layout = ArgsLayout(1, [], hidden=hidden, nbytes=16)
    memory = HCQBuffer(0x1000, 16, MMIO.of(bytearray(16)))
    args = HCQArgsState(memory, layout, [HCQBuffer(0x1234, 4)])
    count = Variable("count", 1, 1000)
    args.tell({"hidden_block_count_x": count, "hidden_group_size_x": 64, "hidden_block_count_y": 9})
    assert bytes(memory.host_view("B").read(0, 16)) == bytes.fromhex("3412000000000000" "00000000" "4000" "0000")
    assert args.symbolic == [(8, 4, count)]
    with pytest.raises(ValueError, match="hidden_group_size_x: 65536 does not always fit in 2 bytes"):
        args.tell({"hidden_group_size_x": 65536})
