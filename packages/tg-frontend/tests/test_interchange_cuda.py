"""Memory of CUDA devices shared with other libraries: addresses, capsules, streams, and who keeps what alive.

The driver is the mock: what nothing waits for is not done, so that an order that is missing shows.
"""

from __future__ import annotations

import ctypes
import gc
import weakref
from array import array
from collections.abc import Iterator
from typing import Any

import pytest

from tg_dtype import dtypes
from tg_frontend import Tensor
from tg_frontend.interchange import dlpack
from tg_lazy import Context
from tg_runtime import Buffer, Device
from tg_runtime.backends.cuda.device import CUDADevice

CUDA, READ = 2, dlpack.READ_ONLY


@pytest.fixture(autouse=True)
def _mock(_interpreted: None) -> Iterator[None]:
    with Context(DEV="MOCK+CUDA:PTX"):
        problem = CUDADevice.unavailable(Device.entry("CUDA"))
        if problem is not None:
            pytest.skip(problem)
        yield


def opened(name: str = "CUDA") -> CUDADevice:
    device = Device[name]
    assert isinstance(device, CUDADevice)
    return device


class Theirs:
    """Memory of another library on a device, and what becomes of it."""

    def __init__(self, values: list[float], name: str = "CUDA") -> None:
        self.buffer = Buffer(name, len(values), dtypes.float32).copyin(memoryview(array("f", values).tobytes()))
        opened(name).synchronize()
        self.address: int = self.buffer.opaque.address

    def set(self, values: list[float]) -> None:
        self.buffer.copyin(memoryview(array("f", values).tobytes()))
        opened(self.buffer.device).synchronize()

    @property
    def values(self) -> list[float]:
        return list(array("f", self.buffer.tobytes()))


class Array:
    """An array of another library, with a stream of its own, which says what it was asked."""

    def __init__(self, theirs: Theirs, shape: tuple[int, ...], strides: tuple[int, ...], **changes: int) -> None:
        self.theirs, self.shape, self.strides, self.changes = theirs, shape, strides, changes
        self.asked: dict[str, Any] = {}
        self.deleted = 0
        self.old = False

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, self.changes.get("device_id", 0)

    def __dlpack__(self, **asked: Any) -> object:
        if self.old and "max_version" in asked:
            raise TypeError("no max_version")
        self.asked = asked
        flags, offset = self.changes.get("flags", 0), self.changes.get("byte_offset", 0)
        capsule = dlpack.export(
            self.theirs.address, (2, 32, 1), self.shape, self.strides, self, flags, not self.old,
            self.__dlpack_device__(),
        )  # fmt: skip
        kind = dlpack.Managed if self.old else dlpack.ManagedVersioned
        name = b"dltensor" if self.old else b"dltensor_versioned"
        managed = kind.from_address(dlpack._pointer(id(capsule), name))
        managed.tensor.byte_offset = offset
        prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        original = prototype(managed.deleter)

        def deleter(address: int) -> None:
            self.deleted += 1
            original(address)

        self.kept = prototype(deleter)
        managed.deleter = ctypes.cast(self.kept, ctypes.c_void_p)
        return capsule


# addresses


def test_a_device_address_is_a_blob() -> None:
    theirs = Theirs([1, 2, 3, 4, 5, 6])
    gone = weakref.ref(theirs)
    t = Tensor.from_blob(theirs.address, (2, 3), "float32", "CUDA", owner=theirs)
    assert t.device == "CUDA" and (t * 2).tolist() == [[2, 4, 6], [8, 10, 12]]
    theirs.set([9, 2, 3, 4, 5, 6])
    assert (t + 0).tolist()[0] == [9, 2, 3]
    t.assign(t + 1).realize()
    opened().synchronize()
    assert theirs.values == [10, 3, 4, 5, 6, 7]
    column = Tensor.from_blob(theirs.address + 4, (2,), "float32", "CUDA", strides=(3,), owner=theirs)
    assert column.tolist() == [3, 6]
    del theirs, t
    gc.collect()
    assert gone() is not None and (column + 1).tolist() == [4, 7]
    del column
    gc.collect()
    assert gone() is None


def test_addresses_that_are_refused() -> None:
    with pytest.raises(ValueError, match="0x0 is no address"):
        Tensor.from_blob(0, (2,), "float32", "CUDA")
    with pytest.raises(ValueError, match="no address of float32"):
        Tensor.from_blob(Theirs([1]).address + 2, (1,), "float32", "CUDA")


def test_a_read_only_address_is_not_written() -> None:
    theirs = Theirs([1, 2])
    t = Tensor.from_blob(theirs.address, (2,), "float32", "CUDA", owner=theirs, readonly=True)
    t.assign(t * 5).realize()
    assert t.tolist() == [5, 10] and theirs.values == [1, 2]


# taking


@pytest.mark.parametrize("old", [False, True])
def test_taking_is_no_copy(old: bool) -> None:
    theirs = Theirs([0, 1, 2, 3, 4, 5, 6, 7])
    array_ = Array(theirs, (2, 3), (3, 1), byte_offset=4)
    array_.old = old
    t = Tensor.from_dlpack(array_)
    context = opened().context
    assert array_.asked == {"stream": context.stream} | ({} if old else {"max_version": dlpack.VERSION})
    assert t.device == "CUDA" and (t + 0).tolist() == [[1, 2, 3], [4, 5, 6]]
    t.assign(t * 10).realize()
    opened().synchronize()
    assert theirs.values == [0, 10, 20, 30, 40, 50, 60, 7]
    assert array_.deleted == 0
    del t
    gc.collect()
    assert array_.deleted == 1


def test_strides_and_devices_of_what_is_taken() -> None:
    theirs = Theirs([0, 1, 2, 3, 4, 5], "CUDA:1")
    array_ = Array(theirs, (3, 2), (1, 3), device_id=1)
    t = Tensor.from_dlpack(array_)
    assert t.device == "CUDA:1" and (t + 0).tolist() == [[0, 3], [1, 4], [2, 5]]
    assert t.__dlpack_device__() == (CUDA, 1)
    backwards = Tensor.from_dlpack(Array(theirs, (3,), (-2,), device_id=1, byte_offset=16))
    assert backwards.tolist() == [4, 2, 0]
    there = Tensor.from_dlpack(Array(theirs, (2,), (1,), device_id=1), device="CUDA")
    assert there.device == "CUDA" and (there + 1).tolist() == [1, 2]
    assert Tensor.from_dlpack(Array(theirs, (2,), (1,), device_id=1), device="NUMPY").tolist() == [0, 1]
    assert Tensor.from_dlpack(Array(theirs, (0, 2), (2, 1), device_id=1)).tolist() == []
    with pytest.raises(BufferError, match="elements of CUDA:1 are copied to CUDA, and copy=False"):
        Tensor.from_dlpack(Array(theirs, (2,), (1,), device_id=1), device="CUDA", copy=False)
    with pytest.raises(BufferError, match=r"device \(2, 7\)"):
        Tensor.from_dlpack(Array(theirs, (2,), (1,), device_id=7))


def test_copies_of_what_is_taken() -> None:
    theirs = Theirs([1, 2])
    array_ = Array(theirs, (2,), (1,))
    t = Tensor.from_dlpack(array_, copy=True)
    theirs.set([7, 8])
    assert t.tolist() == [1, 2]
    gc.collect()
    assert array_.deleted == 1, "what is copied is not held"
    assert Tensor.from_dlpack(Array(theirs, (2,), (1,)), copy=False).tolist() == [7, 8]
    odd = Theirs([0, 0, 0])
    raw = bytearray(array("f", [1, 2, 3]).tobytes())
    odd.buffer.copyin(memoryview(raw[2:] + raw[:2]))
    misplaced = Array(odd, (2,), (1,), byte_offset=2)
    assert Tensor.from_dlpack(misplaced).tolist() == [2, 3]
    with pytest.raises(BufferError, match="not aligned"):
        Tensor.from_dlpack(Array(odd, (2,), (1,), byte_offset=2), copy=False)


def test_read_only_arrays_are_never_written() -> None:
    theirs = Theirs([1, 2])
    t = Tensor.from_dlpack(Array(theirs, (2,), (1,), flags=READ))
    assert dlpack.Taken(t.__dlpack__(max_version=(1, 1))).flags == READ
    copied = dlpack.Taken(t.__dlpack__())
    assert copied.address != theirs.address, "who cannot be told gets a copy"
    with pytest.raises(BufferError, match="read-only"):
        t.__dlpack__(copy=False)
    t.assign(t * 3).realize()
    assert t.tolist() == [3, 6] and theirs.values == [1, 2]


def test_the_owner_gets_the_memory_back_after_our_kernels() -> None:
    theirs = Theirs([1, 2])
    t = Tensor.from_dlpack(Array(theirs, (2,), (1,)))
    doubled = (t * 2).realize()  # queued, and read by nobody yet
    del t
    gc.collect()
    ctypes.memmove(theirs.address, array("f", [50, 60]).tobytes(), 8)  # the mock's devices are the host
    assert doubled.tolist() == [2, 4]


def test_a_capsule_waits_for_the_legacy_default_stream() -> None:
    theirs, source = Theirs([1, 2]), Theirs([30, 40])
    context = opened().context
    context.enter()
    driver = context.driver
    driver.check(driver.cuMemcpyDtoDAsync_v2(theirs.address, source.address, 8, 1), "a copy on their stream")
    t = Tensor.from_dlpack(Array(theirs, (2,), (1,)).__dlpack__())
    assert (t + 0).tolist() == [30, 40]
    driver.check(driver.cuMemcpyDtoDAsync_v2(source.address, theirs.address, 4, 1), "another")
    assert Tensor.from_dlpack(Array(source, (2,), (1,)).__dlpack__()).tolist() == [30, 40]


# giving


@pytest.mark.parametrize("stream", [None, 1, 2, "own"])
def test_the_stream_of_the_taker_waits(stream: Any) -> None:
    context = opened().context
    context.enter()
    driver = context.driver
    number = driver.object("cuStreamCreate", 1) if stream == "own" else stream
    t = (Tensor([1.0, 2.0]) * 4).realize()
    taken = dlpack.Taken(t.__dlpack__(stream=number, max_version=(1, 1)))
    assert taken.device == (CUDA, 0) and taken.shape == (2,) and taken.flags == 0
    out = Theirs([0, 0])
    queue = 1 if number is None else number
    driver.check(driver.cuMemcpyDtoDAsync_v2(out.address, taken.address, 8, queue), "their copy")
    driver.check(driver.cuStreamSynchronize(queue), "their wait")
    assert out.values == [4, 8]


def test_minus_one_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    context = opened().context
    t = (Tensor([1.0, 2.0]) * 4).realize()
    seen: list[int] = []
    wait = context.driver.cuStreamWaitEvent

    def noted(stream: int, event: int, flags: int) -> int:
        seen.append(stream)
        return wait(stream, event, flags)

    monkeypatch.setattr(context.driver, "cuStreamWaitEvent", noted)
    held = [t.__dlpack__(stream=-1)]
    assert seen == []
    held.append(t.__dlpack__(stream=2))
    assert seen[-1] == 2 and len(held) == 2


@pytest.mark.parametrize("stream", [0, -2, "1", True, 1.0])
def test_streams_that_are_none(stream: Any) -> None:
    before = dlpack.exported()
    with pytest.raises(BufferError, match="is no stream of CUDA"):
        Tensor([1.0]).__dlpack__(stream=stream)
    assert dlpack.exported() == before


def test_where_the_taker_wants_it() -> None:
    t = Tensor([1.0, 2.0], device="CUDA:1").realize()
    assert t.__dlpack_device__() == (CUDA, 1)
    assert dlpack.Taken(t.__dlpack__(dl_device=(CUDA, 1))).device == (CUDA, 1)
    host = dlpack.Taken(t.__dlpack__(dl_device=(1, 0), stream=1))
    assert host.device == (1, 0) and array("f", ctypes.string_at(host.address, 8)).tolist() == [1, 2]
    with pytest.raises(BufferError, match="copied to the host"):
        t.__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises(BufferError, match=r"wanted on DLPack's device \(2, 0\)"):
        t.__dlpack__(dl_device=(CUDA, 0))


def test_versions_copies_and_views() -> None:
    t = Tensor.arange(6, dtype="float32").reshape(2, 3).contiguous().realize()
    whole = dlpack.Taken(t.__dlpack__(max_version=(1, 0)))
    part = dlpack.Taken(t[1].__dlpack__())
    turned = dlpack.Taken(t.T.__dlpack__())
    assert part.address == whole.address + 12 and turned.address == whole.address and turned.strides == (1, 3)
    copied = dlpack.Taken(t.__dlpack__(max_version=(1, 0), copy=True))
    assert copied.address != whole.address and copied.flags == dlpack.IS_COPIED
    padded = dlpack.Taken(t.pad(((1, 1), (0, 0))).__dlpack__(copy=False))
    assert padded.address != whole.address  # a result, which has memory of its own
    assert dlpack.Taken(Tensor.zeros(0, 2).__dlpack__()).device == (CUDA, 0)


def test_between_two_tensors() -> None:
    t = (Tensor([1.0, 2.0, 3.0]) * 2).realize()
    other = Tensor.from_dlpack(t)
    assert other.device == "CUDA" and (other + 1).tolist() == [3, 5, 7]
    t.assign(t + 10).realize()
    assert (other * 1).tolist() == [12, 14, 16]
    other.assign(other * 2).realize()
    assert t.tolist() == [24, 28, 32]
    held: Any = t.lazydata.base.storage
    held.payload.copyin(memoryview(array("f", [7, 8, 9]).tobytes()))
    assert (other + 0).tolist() == [7, 8, 9], "a copy to one block is waited for by kernels on the other"
    (other + 1).realize()
    other.assign(other + 1).realize()
    assert t.tolist() == [8, 9, 10]


def test_what_was_handed_out_lives_until_the_deleter_is_called() -> None:
    before = dlpack.exported()
    t = (Tensor.arange(1000) * 2).realize()
    held: Any = t.lazydata.base.storage
    buffer, address = weakref.ref(held.payload), held.payload.opaque.address
    del held
    capsule = t.__dlpack__(stream=1, max_version=(1, 1))
    del t
    gc.collect()
    assert buffer() is not None and dlpack.exported() == before + 1
    used = opened().allocator.used
    taken = dlpack.Taken(capsule)
    del capsule, taken
    gc.collect()
    assert buffer() is None and dlpack.exported() == before and opened().allocator.used < used
    # the taker's work may not be done: the block goes back to the driver, which waits, and serves nobody here
    allocator: Any = opened().allocator
    blocks = [block for kept in allocator._cache.values() for block in kept]
    assert address not in [block.address for block in blocks]
