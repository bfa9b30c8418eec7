"""Buffers: views, holders, copies, and their errors."""

from __future__ import annotations

import random

import pytest

from tg_dtype import DType, dtypes
from tg_lazy import Storage
from tg_runtime import Buffer, Device, buffer_of
from tg_runtime.device.allocator import DEFAULT_OPTIONS

DEVICES = ["CPU", "NUMPY"]


def filled(device: str, count: int = 16) -> Buffer:
    return Buffer(device, count, dtypes.uint8).copyin(memoryview(bytes(range(count))))


@pytest.mark.parametrize("device", DEVICES)
def test_memory_comes_on_first_use(device: str) -> None:
    buffer = Buffer(device, 4, dtypes.float32)
    assert not buffer.is_allocated
    assert buffer.nbytes == 16
    assert "not allocated" in repr(buffer)
    assert buffer.ensure_allocated() is buffer
    opaque = buffer.opaque
    assert buffer.allocate().opaque is opaque
    with pytest.raises(RuntimeError, match="has memory already"):
        buffer.allocate(opaque)


@pytest.mark.parametrize("device", DEVICES)
def test_views_share_memory(device: str) -> None:
    base = filled(device)
    view = base.view(2, dtypes.uint32, 4)
    assert view.base is base
    assert view.tobytes() == bytes(range(4, 12))
    inner = view.view(3, dtypes.uint8, 1)
    assert (inner.base, inner.offset) == (base, 5)
    inner.copyin(memoryview(b"abc"))
    assert base.tobytes()[4:9] == b"\x04abc\x08"
    assert "view at byte 5" in repr(inner)


@pytest.mark.parametrize(
    ("size", "dtype", "offset", "message"),
    [
        (17, dtypes.uint8, 0, "outside"),
        (1, dtypes.uint8, 16, "outside"),
        (1, dtypes.uint8, -1, "outside"),
        (-1, dtypes.uint8, 0, "outside"),
        (1, dtypes.uint32, 2, "not aligned to uint32"),
    ],
)
def test_bad_views(size: int, dtype: DType, offset: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        filled("CPU").view(size, dtype, offset)


def test_an_image_is_whole() -> None:
    """It has as many elements as its size says, and is no part of another buffer."""
    kind = dtypes.imagef((3, 5, 4))
    assert Buffer("NULL", 60, kind).size == 60
    for size, base in ((59, None), (60, Buffer("NULL", 240, dtypes.uint8)), (59, Buffer("NULL", 240, dtypes.uint8))):
        with pytest.raises(ValueError, match=rf"has 60 elements and is no view, asked for {size}"):
            Buffer("NULL", size, kind, base=base)


def test_a_view_of_a_view_is_aligned_by_where_it_begins_in_the_whole() -> None:
    """Its own offset and that of the view it is taken from count together."""
    base = filled("CPU")
    for start in range(8):
        part = base.view(8, dtypes.uint8, start)
        for offset in range(5):
            at = start + offset
            if at % 4 == 0:
                assert part.view(1, dtypes.uint32, offset).tobytes() == bytes(range(at, at + 4))
            else:
                with pytest.raises(ValueError, match=f"byte {at} is not aligned to uint32"):
                    part.view(1, dtypes.uint32, offset)


def test_holders() -> None:
    allocator = Device["CPU"].allocator
    used = allocator.used
    base = Buffer("CPU", 1 << 16, dtypes.uint8).allocate()
    view = base.view(16, dtypes.uint8, 16)
    inner = view.view(4, dtypes.uint8, 4)
    assert (base.refs, view.refs) == (3, 1)
    base.retain()
    assert base.refs == 4
    base.release()
    del view
    assert base.refs == 2
    inner.ensure_allocated()
    del base
    assert allocator.used > used  # the view holds it
    del inner
    assert allocator.used == used


def test_release_frees_and_does_not_go_below_zero() -> None:
    allocator = Device["CPU"].allocator
    used = allocator.used
    buffer = Buffer("CPU", 1024, dtypes.uint8).allocate()
    buffer.release()
    assert allocator.used == used
    assert not buffer.is_allocated
    with pytest.raises(RuntimeError, match="released more often"):
        buffer.release()
    del buffer
    assert allocator.used == used


@pytest.mark.parametrize("device", DEVICES)
def test_what_is_held_is_counted_however_it_came(device: str) -> None:
    """Memory of the allocator, and memory that was made elsewhere and is taken over, in any order, of any size."""
    allocator = Device[device].allocator
    start, live = (allocator.used, allocator.blocks), list[Buffer]()
    sizes = dict[int, int]()
    for _ in range(60):
        size = random.choice((1, 7, 64, 100, 4096, 4099))
        if live and random.random() < 0.4:
            live.pop(random.randrange(len(live)))
        else:
            before, way = allocator.used, random.randrange(4)
            taken = allocator._alloc(4480, DEFAULT_OPTIONS) if way < 2 else None
            if way == 0:
                live.append(Buffer(device, size, dtypes.uint8, opaque=taken))
            elif way == 1:
                live.append(Buffer(device, size, dtypes.uint8).allocate(taken))
            elif way == 2:
                live.append(Buffer.allocated(allocator, device, size, dtypes.uint8))
            else:
                live.append(Buffer(device, size, dtypes.uint8).allocate())
            assert sizes.setdefault(size, allocator.used - before) == allocator.used - before >= size
        assert allocator.blocks - start[1] == len(live)
        assert allocator.used - start[0] == sum(sizes[buffer.size] for buffer in live)
    live.clear()
    assert (allocator.used, allocator.blocks) == start


def test_rebase() -> None:
    first, second = filled("CPU", 16), filled("CPU", 32)
    view = first.view(4, dtypes.uint8, 4)
    assert view.tobytes() == bytes([4, 5, 6, 7])
    view.rebase(second, 20)
    assert view.tobytes() == bytes([20, 21, 22, 23])
    assert (first.refs, second.refs) == (1, 2)
    view.rebase(second.view(16, dtypes.uint8, 16), 0)
    assert view.tobytes() == bytes([16, 17, 18, 19])
    assert second.refs == 2
    with pytest.raises(ValueError, match="outside"):
        view.rebase(first, 13)
    own = filled("CPU", 4)
    own.rebase(second, 8)
    assert own.tobytes() == bytes([8, 9, 10, 11])


@pytest.mark.parametrize("device", DEVICES)
def test_copies_check_their_sizes(device: str) -> None:
    buffer = Buffer(device, 4, dtypes.float32)
    with pytest.raises(ValueError, match=r"copyin of .*15 bytes given, 16 wanted"):
        buffer.copyin(memoryview(bytes(15)))
    with pytest.raises(ValueError, match=r"copyout of .*17 bytes given, 16 wanted"):
        buffer.copyout(memoryview(bytearray(17)))
    with pytest.raises(ValueError, match="not contiguous"):
        buffer.copyin(memoryview(bytes(32))[::2])
    with pytest.raises(ValueError, match="read-only"):
        buffer.copyout(memoryview(bytes(16)))


@pytest.mark.parametrize("device", DEVICES)
def test_zero_copy(device: str) -> None:
    buffer = filled(device)
    shared = buffer.as_buffer()
    shared[3] = 99
    assert buffer.tobytes()[3] == 99
    private = buffer.as_buffer(allow_zero_copy=False)
    private[3] = 1
    assert buffer.tobytes()[3] == 99


@pytest.mark.parametrize("device", [*DEVICES, "NULL"])
def test_empty_buffer(device: str) -> None:
    buffer = Buffer(device, 0, dtypes.float64)
    assert buffer.copyin(memoryview(b"")).tobytes() == b""
    assert bytes(buffer.as_buffer()) == b""


def test_buffer_of_keeps_what_it_made() -> None:
    storage = Storage("CPU", 8, dtypes.int16)
    buffer = buffer_of(storage)
    assert buffer_of(storage) is buffer
    assert (buffer.device, buffer.size, buffer.dtype) == ("CPU", 8, dtypes.int16)


def test_dropping_the_storage_frees_the_memory() -> None:
    allocator = Device["CPU"].allocator
    used = allocator.used
    storage = Storage("CPU", 1000, dtypes.int16)
    buffer_of(storage).allocate()
    assert allocator.used > used
    del storage
    assert allocator.used == used


@pytest.mark.parametrize("device", DEVICES)
def test_numpy_arrays(device: str) -> None:
    np = pytest.importorskip("numpy", reason="numpy is not installed")
    for name in ("bool", "int8", "uint16", "int64", "float16", "float64"):
        array = np.arange(12).reshape(3, 4).T.astype(name)
        buffer = Buffer.fromCPU(device, array)
        assert buffer.dtype.name == name
        out = buffer.toCPU()
        assert out.dtype == array.dtype
        assert np.array_equal(out, array.reshape(-1))
        out[0] = 1
        assert buffer.toCPU()[0] == 1
    with pytest.raises(TypeError, match="numpy has no bfloat16; view the buffer as uint16"):
        Buffer(device, 2, dtypes.bfloat16).toCPU()
    with pytest.raises(TypeError, match="complex64"):
        Buffer.fromCPU(device, np.zeros(2, "complex64"))
    assert Buffer.fromCPU(device, np.zeros((0, 3), "float32")).toCPU().size == 0
