"""Memory shared with other libraries: what is shared, who keeps whom alive, and deleters that are called once."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
import time
import weakref
from array import array
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tg_dtype import dtypes, interop
from tg_frontend import Tensor, TinyJit
from tg_frontend.interchange import dlpack
from tg_runtime import Device


class Owner:
    """Bytes of its own, and a name for weak references."""

    def __init__(self, data: bytes) -> None:
        self.memory = (ctypes.c_uint8 * len(data)).from_buffer_copy(data)
        self.address = ctypes.addressof(self.memory)


def floats(*values: float) -> bytes:
    return array("f", values).tobytes()


@pytest.fixture(params=["CPU", "NUMPY", "HOSTQ"])
def addressable(request: pytest.FixtureRequest) -> str:
    if request.param not in Device.available():
        pytest.skip(f"the device {request.param} is not available here")
    return str(request.param)


# blobs


def test_a_blob_is_no_copy(addressable: str) -> None:
    mine = Owner(floats(1, 2, 3, 4, 5, 6))
    t = Tensor.from_blob(mine.address, (2, 3), "float32", addressable, owner=mine)
    assert t.device == addressable and (t * 2).tolist() == [[2, 4, 6], [8, 10, 12]]
    ctypes.memmove(mine.address, floats(9), 4)
    assert (t * 2).tolist()[0] == [18, 4, 6]
    t.assign(t + 1).realize()
    Device[addressable].synchronize()
    assert np.frombuffer(bytes(mine.memory), np.float32).tolist() == [10, 3, 4, 5, 6, 7]


def test_the_owner_of_a_blob_lives_as_long_as_the_memory_is_used(addressable: str) -> None:
    mine = Owner(floats(1, 2, 3, 4))
    gone = weakref.ref(mine)
    t = Tensor.from_blob(mine.address, (4,), "float32", addressable, owner=mine)
    del mine
    part, later = t[1:3], t + 1
    del t
    gc.collect()
    assert gone() is not None, "a view and a graph still want the memory"
    assert later.tolist() == [2, 3, 4, 5]
    del later
    gc.collect()
    assert gone() is not None and part.tolist() == [2, 3]
    del part
    gc.collect()
    Device[addressable].synchronize()
    gc.collect()
    assert gone() is None, "nobody wants the memory any more"


def test_a_view_of_the_host_keeps_the_owner() -> None:
    for device in ("CPU", "NUMPY"):
        mine = Owner(floats(1, 2))
        gone = weakref.ref(mine)
        view = Tensor.from_blob(mine.address, (2,), "float32", device, owner=mine, readonly=True).data()
        del mine
        gc.collect()
        assert gone() is not None and view.tolist() == [1, 2] and view.readonly
        del view
        gc.collect()
        assert gone() is None


def test_read_only_blobs_are_never_written(addressable: str) -> None:
    mine = Owner(floats(1, 2))
    t = Tensor.from_blob(mine.address, (2,), "float32", addressable, owner=mine, readonly=True)
    t.assign(t * 5).realize()
    t[0] = 7.0
    assert t.tolist() == [7, 10] and bytes(mine.memory) == floats(1, 2)


def test_strides_of_blobs() -> None:
    mine = Owner(floats(*range(12)))
    t = Tensor.from_blob(mine.address, (2, 3), "float32", "NUMPY", strides=(1, 4), owner=mine)
    assert t.tolist() == [[0, 4, 8], [1, 5, 9]]
    assert Tensor.from_blob(mine.address, (2, 2), "float32", "NUMPY", strides=(0, 3)).tolist() == [[0, 3], [0, 3]]
    assert Tensor.from_blob(0, (0, 2), "float32", "NUMPY").tolist() == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ptr": 0, "shape": (2,)}, "0x0 is no address of float32"),
        ({"ptr": 4098, "shape": (2,)}, "no address of float32"),
        ({"ptr": 4096, "shape": (-2,)}, "one is negative"),
        ({"ptr": 4096, "shape": (2,), "strides": (1, 2)}, "lengths differ"),
        ({"ptr": 4096, "shape": (2,), "strides": (-1,)}, "one is negative"),
    ],
)
def test_blobs_that_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Tensor.from_blob(device="NUMPY", **arguments)


def test_a_cl_mem_is_a_blob() -> None:
    if "CL" not in Device.available():
        pytest.skip("the device CL is not available here")
    from tg_runtime.backends.opencl.device import CLDevice
    from tg_runtime.backends.opencl.memory import BufferMemory

    device = Device["CL"]
    assert isinstance(device, CLDevice)
    theirs = BufferMemory.allocate(device.queue, 16)
    t = Tensor.from_blob(theirs.handle, (4,), "float32", "CL")
    t.assign(Tensor([1.0, 2.0, 3.0, 4.0], device="CL") * 2).realize()
    device.synchronize()  # who looks by other ways than the tensor waits
    out = bytearray(16)
    device.allocator.copyout(memoryview(out), theirs)
    assert out == floats(2, 4, 6, 8)
    theirs.release(device.queue)
    assert (t + 1).tolist() == [3, 5, 7, 9]


@pytest.mark.parametrize("half", [False, True])
def test_an_image_is_a_blob(half: bool) -> None:
    """Its channels are read and written as float32, in place, whatever they are stored as."""
    if "CL" not in Device.available():
        pytest.skip("the device CL is not available here")
    from tg_runtime.backends.opencl.device import CLDevice
    from tg_runtime.backends.opencl.image import ImageMemory

    device = Device["CL"]
    assert isinstance(device, CLDevice)
    if not device.physical.images:
        pytest.skip("the device CL has no images")
    kind = (dtypes.imageh if half else dtypes.imagef)((3, 5, 4))
    theirs = ImageMemory.allocate(device.queue, kind)
    t = Tensor.from_blob(theirs.handle, (3, 5, 4), kind, "CL")
    assert t.dtype is dtypes.float32
    t.assign(Tensor.arange(60, dtype=dtypes.float32, device="CL").reshape(3, 5, 4) / 4).realize()
    device.synchronize()
    out = bytearray(kind.nbytes)
    device.allocator.copyout(memoryview(out), theirs)
    want = np.arange(60, dtype=np.float32).reshape(3, 5, 4) / 4
    assert (np.frombuffer(out, np.float16 if half else np.float32) == want.ravel()).all()
    theirs.release(device.queue)
    assert (t.numpy() == want).all()
    assert ((t * 2 + t.flip(1)).sum(axis=2).numpy() == (want * 2 + want[:, ::-1]).sum(axis=2)).all()
    assert (t.to("CPU").numpy() == want).all()
    assert (t[1:, 2].to("NUMPY").numpy() == want[1:, 2]).all()


def test_devices_without_memory_of_others() -> None:
    with pytest.raises(TypeError, match="DISK:/nowhere"):
        Tensor.from_blob(4096, (2,), "float32", "DISK:/nowhere")


# numpy


@pytest.mark.parametrize("name", [d.name for d in dtypes.all if interop.to_numpy_name(d)])
def test_every_dtype_from_numpy_and_back(name: str, backend: str) -> None:
    array_ = np.array([[0, 1, 3], [1, 0, 2]]).astype(name)
    t = Tensor.from_dlpack(array_)
    assert t.dtype.name == name and t.device == backend and t.tolist() == array_.tolist()
    back = np.from_dlpack(t)
    assert back.dtype == array_.dtype and back.tolist() == array_.tolist()
    assert np.shares_memory(back, array_)


VIEWS: dict[str, Callable[[Any], Any]] = {
    "whole": lambda a: a,
    "transposed": lambda a: a.transpose(2, 0, 1),
    "sliced": lambda a: a[1:, ::2, 1:3],
    "reversed": lambda a: a[::-1, :, ::-2],
    "one element": lambda a: a[1, 2, 3],
    "broadcast": lambda a: np.broadcast_to(a[:, :1, :], (2, 5, 4)),
    "nothing": lambda a: a[:0],
    "ones": lambda a: a[:1, None, :1],
}


@pytest.mark.parametrize("view", VIEWS)
def test_views_of_numpy(view: str, backend: str) -> None:
    whole = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    theirs = np.asarray(VIEWS[view](whole))
    if not theirs.flags.writeable:
        theirs.flags.writeable = False
    t = Tensor.from_dlpack(theirs)
    assert t.shape == theirs.shape and t.tolist() == theirs.tolist()
    whole += 100
    assert (t + 0).tolist() == theirs.tolist()


@pytest.mark.parametrize("view", ["whole", "transposed", "sliced", "reversed", "one element", "nothing"])
def test_views_go_to_numpy(view: str, backend: str) -> None:
    t = Tensor.arange(24).reshape(2, 3, 4).cast("float32").contiguous().realize()
    want = VIEWS[view](t.numpy())
    part = {
        "whole": t, "transposed": t.permute(2, 0, 1), "sliced": t[1:, ::2, 1:3], "reversed": t[::-1, :, ::-2],
        "one element": t[1, 2, 3], "nothing": t[:0],
    }[view]  # fmt: skip
    got = np.from_dlpack(part)
    assert got.tolist() == want.tolist()
    if got.size:
        got[...] = -5
        assert part.tolist() == np.full(want.shape, -5).tolist() and (t.numpy() == -5).sum() == got.size


def test_what_is_padded_has_memory_of_its_own(backend: str) -> None:
    t = Tensor([1.0, 2.0]).pad(((1, 1),))
    assert np.from_dlpack(t).tolist() == [0, 1, 2, 0]
    theirs = np.from_dlpack(t)
    theirs[0] = 7
    assert t.tolist() == [7, 1, 2, 0]
    assert np.from_dlpack(Tensor.full((2,), 3)).tolist() == [3, 3]


def test_what_is_computed_is_handed_out_itself(backend: str) -> None:
    t = Tensor([1.0, 2.0]) * 3
    theirs = np.from_dlpack(t)
    theirs[0] = 50
    assert t.tolist() == [50, 6]
    t.assign(t + 1).realize()
    assert theirs.tolist() == [51, 7]
    copied = np.from_dlpack(t, copy=True) if np.lib.NumpyVersion(np.__version__) >= "2.1.0" else None
    if copied is not None:
        copied[0] = 0
        assert t.tolist() == [51, 7]


def test_the_array_lives_as_long_as_the_tensor(backend: str) -> None:
    theirs = np.arange(5.0)
    counted = sys.getrefcount(theirs)
    t = Tensor.from_dlpack(theirs)
    assert sys.getrefcount(theirs) > counted
    later = t + 1
    del t
    gc.collect()
    assert sys.getrefcount(theirs) > counted and later.tolist() == [1, 2, 3, 4, 5]
    del later
    gc.collect()
    assert sys.getrefcount(theirs) == counted


def test_the_memory_lives_as_long_as_the_array(backend: str) -> None:
    before = dlpack.exported()
    t = (Tensor.arange(1000) * 2).realize()
    buffer = weakref.ref(t.lazydata.storage.payload)  # type: ignore[union-attr]
    theirs = np.from_dlpack(t)
    assert dlpack.exported() == before + 1
    del t
    gc.collect()
    noise = [Tensor.zeros(1000, dtype="int32").contiguous().realize() for _ in range(8)]
    assert buffer() is not None and theirs[-1] == 1998 and len(noise) == 8
    del theirs
    gc.collect()
    assert buffer() is None and dlpack.exported() == before


def test_read_only_arrays_are_never_written(backend: str) -> None:
    theirs = np.array([1.0, 2.0])
    theirs.flags.writeable = False
    t = Tensor.from_dlpack(theirs)
    assert not np.from_dlpack(t).flags.writeable
    t.assign(t * 3).realize()
    assert t.tolist() == [3, 6] and theirs.tolist() == [1, 2]
    assert np.from_dlpack(t).flags.writeable


def test_read_only_memory_is_copied_for_those_who_cannot_be_told(backend: str) -> None:
    theirs = np.array([1.0, 2.0])
    theirs.flags.writeable = False
    t = Tensor.from_dlpack(theirs)
    taken = dlpack.Taken(t.__dlpack__())
    assert taken.address != theirs.ctypes.data and taken.flags == 0
    assert dlpack.Taken(t.__dlpack__(max_version=(1, 0))).flags == dlpack.READ_ONLY
    with pytest.raises(BufferError, match="read-only"):
        t.__dlpack__(copy=False)


# capsules


@pytest.mark.parametrize("version", [None, (0, 8), (1, 0), (1, 1)])
def test_a_capsule_that_nobody_takes(version: tuple[int, int] | None) -> None:
    before = dlpack.exported()
    capsule = Tensor([1, 2]).__dlpack__(max_version=version)
    assert dlpack.exported() == before + 1
    del capsule
    gc.collect()
    assert dlpack.exported() == before


@pytest.mark.parametrize("version", [None, (1, 1)])
def test_the_deleter_is_called_once(version: tuple[int, int] | None) -> None:
    calls: list[int] = []
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    t = Tensor([[1, 2], [3, 4]]).realize()
    capsule = t.__dlpack__(max_version=version)
    name = b"dltensor" if version is None else b"dltensor_versioned"
    kind = dlpack.Managed if version is None else dlpack.ManagedVersioned
    managed = kind.from_address(dlpack._pointer(id(capsule), name))
    original = prototype(managed.deleter)

    def count(address: int) -> None:
        calls.append(address)
        original(address)

    counting = prototype(count)
    managed.deleter = ctypes.cast(counting, ctypes.c_void_p)
    mine = Tensor.from_dlpack(capsule)
    with pytest.raises(BufferError, match="taken before"):
        Tensor.from_dlpack(capsule)
    del capsule
    gc.collect()
    assert calls == [] and (mine * 2).tolist() == [[2, 4], [6, 8]]
    del mine
    gc.collect()
    assert len(calls) == 1


def test_capsules_that_are_refused_are_deleted() -> None:
    before = dlpack.exported()
    memory = array("f", [0.0] * 8)
    address = memory.buffer_info()[0]

    def made(**changes: int) -> object:
        capsule = dlpack.export(address, (2, 32, 1), (2,), (1,), memory, 0, True)
        managed = dlpack.ManagedVersioned.from_address(dlpack._pointer(id(capsule), b"dltensor_versioned"))
        for name, value in changes.items():
            setattr(managed if name == "major" else managed.tensor, name, value)
        return capsule

    for changes, error, message in (
        ({"major": 2}, BufferError, "version 2.1"),
        ({"device_type": 4}, BufferError, r"device \(4, 0\)"),
        ({"lanes": 4}, TypeError, "vectors of 4"),
        ({"code": 5, "bits": 32}, TypeError, "no DLPack counterpart"),
    ):
        with pytest.raises(error, match=message):
            Tensor.from_dlpack(made(**changes))
        gc.collect()
        assert dlpack.exported() == before, changes
    with pytest.raises(TypeError, match="a list has no __dlpack__"):
        Tensor.from_dlpack([1])
    with pytest.raises(BufferError, match="a capsule is wanted"):
        dlpack.Taken(3)


def test_misaligned_memory_is_copied(backend: str) -> None:
    memory = bytearray(floats(0, 1, 2) + b"\0\0")
    raw = np.frombuffer(memory, np.uint8)
    raw[2:] = raw[:-2].copy()
    address = raw.ctypes.data + 2
    capsule = dlpack.export(address, (2, 32, 1), (3,), (1,), memory)
    if address % 4 == 0:
        pytest.fail("the allocation was not aligned as expected")
    assert Tensor.from_dlpack(capsule).tolist() == [0, 1, 2]
    with pytest.raises(BufferError, match="not aligned"):
        Tensor.from_dlpack(dlpack.export(address, (2, 32, 1), (3,), (1,), memory), copy=False)


# other devices, dtypes, and what may not be


def test_devices_that_the_host_does_not_address() -> None:
    t = Tensor([1.0, 2.0], device="NULL")
    with pytest.raises(BufferError, match=r"use .to\('CPU'\)"):
        t.__dlpack_device__()
    with pytest.raises(BufferError, match="cannot be handed out"):
        t.__dlpack__()
    assert Tensor([1.0], device="NUMPY").__dlpack_device__() == (1, 0)
    with pytest.raises(BufferError, match="stream"):
        Tensor([1.0]).__dlpack__(stream=3)
    with pytest.raises(BufferError, match=r"wanted on DLPack's device \(2, 0\)"):
        Tensor([1.0]).__dlpack__(dl_device=(2, 0))
    there = Tensor.from_dlpack(np.array([1.0, 2.0]), device="NULL")
    assert there.device == "NULL" and not there.is_realized
    with pytest.raises(BufferError, match="copied to NULL"):
        Tensor.from_dlpack(np.array([1.0]), device="NULL", copy=False)


def test_from_another_device_when_asked() -> None:
    if "CL" not in Device.available():
        pytest.skip("the device CL is not available here")
    t = Tensor([1.0, 2.0], device="CL") + 1
    assert dlpack.Taken(t.__dlpack__(dl_device=(1, 0), max_version=(1, 0))).shape == (2,)


def test_copies_when_asked() -> None:
    theirs = np.array([1.0, 2.0])
    t = Tensor.from_dlpack(theirs, copy=True)
    theirs[0] = 9
    assert t.tolist() == [1, 2]


def test_not_inside_of_a_record() -> None:
    record = TinyJit(lambda x: Tensor.from_dlpack((x + 1).__dlpack__()))
    assert record(Tensor([1.0]).realize()).tolist() == [2]
    with pytest.raises(RuntimeError, match="TinyJit records"):
        record(Tensor([1.0]).realize())


def test_arrays_without_a_copy(backend: str) -> None:
    t = Tensor([[1.0, 2.0]]).realize()
    copy, shared, seen = np.array(t), t.__array__(copy=False), np.asarray(t)
    shared[0, 0] = 5
    assert copy.tolist() == [[1, 2]] and seen.tolist() == [[5, 2]] and t.tolist() == [[5, 2]]
    with pytest.raises(ValueError, match="bfloat16"):
        Tensor([1.0], dtype="bfloat16").__array__(copy=False)
    view: Any = t.__buffer__(0)
    assert view.tolist() == [[5, 2]]


def test_arrays_of_others_are_named_in_the_error() -> None:
    class Theirs:
        def __dlpack__(self) -> object:
            return None

    with pytest.raises(TypeError, match="use Tensor.from_dlpack"):
        Tensor(Theirs())


def test_nothing_is_left_at_exit() -> None:
    program = """
import numpy as np
from tg_frontend import Tensor
kept = np.from_dlpack(Tensor([1.0, 2.0], device="NUMPY") + 1)
also = Tensor.from_dlpack(np.arange(3), device="NUMPY")
print(kept.sum() + also.sum().item())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "8.0\n", "")


def test_what_outlives_the_modules_is_not_freed() -> None:
    program = """
import builtins
from tg_frontend import Tensor
builtins.kept = [(Tensor([1.0, 2.0], device=name) + 1).realize() for name in ("CPU", "NUMPY")]
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


# PyTorch


def test_pytorch_shares_memory_in_both_directions(backend: str) -> None:
    torch = pytest.importorskip("torch")
    for dtype in dtypes.all:
        name = interop.to_torch_name(dtype)
        theirs = torch.tensor([[0, 1, 2], [3, 1, 0]]).to(getattr(torch, str(name))).T
        try:
            t = Tensor.from_dlpack(theirs)
        except BufferError:
            continue  # PyTorch hands out no such dtype
        assert t.dtype is dtype and t.shape == (3, 2) and Tensor([1], dtype=theirs.dtype).dtype is dtype
        back = torch.from_dlpack(t)
        assert back.data_ptr() == theirs.data_ptr() and torch.equal(back.float(), theirs.float())
    theirs = torch.arange(6.0).reshape(2, 3)
    t = Tensor.from_dlpack(theirs)
    theirs += 1
    assert t.tolist() == [[1, 2, 3], [4, 5, 6]]
    t.assign(t * 2).realize()
    assert theirs.tolist() == [[2, 4, 6], [8, 10, 12]]


def test_pytorch_lets_go() -> None:
    torch = pytest.importorskip("torch")
    before = dlpack.exported()
    theirs = torch.from_dlpack(Tensor([1.0, 2.0]) + 1)
    part = theirs[1:]
    del theirs
    gc.collect()
    assert dlpack.exported() == before + 1 and part.tolist() == [3]
    del part
    gc.collect()
    assert dlpack.exported() == before


def test_names_of_pytorch_dtypes() -> None:
    torch = pytest.importorskip("torch")
    assert interop.from_torch_dtype(torch.bfloat16) is dtypes.bfloat16
    assert interop.from_torch_dtype(torch.complex64) is dtypes.complex64
    with pytest.raises(TypeError, match="complex32"):
        interop.from_torch_dtype(torch.complex32)
    with pytest.raises(TypeError, match="a torch.dtype is wanted"):
        interop.from_torch_dtype("float32")


@pytest.mark.parametrize(
    ("address", "error"),
    [(0, ValueError), (-8, ValueError), (3, ValueError), (1 << 64, ValueError), (1.5, TypeError), ("x", TypeError),
     (None, TypeError)],
)  # fmt: skip
def test_what_is_no_address_is_refused(address: Any, error: type[Exception], backend: str) -> None:
    with pytest.raises(error, match="address|ptr is an integer"):
        Tensor.from_blob(address, (2,), "float32", backend)
    with pytest.raises(TypeError, match="a size is an integer, got 2.5"):
        Tensor.from_blob(4096, (2.5,), "float32", backend)  # type: ignore[arg-type]


@pytest.mark.parametrize("place", [(2, 2**31 - 1), (2, -1), (99, 0), (2, 0.0), ("a", 0), (1,), None])
def test_a_strange_place_is_told_at_once(place: Any) -> None:
    class Strange:
        def __dlpack__(self, **options: object) -> object:
            return np.ones(3, np.float32).__dlpack__()

        def __dlpack_device__(self) -> Any:
            return place

    begin = time.monotonic()
    with pytest.raises(BufferError, match="from_dlpack"):
        Tensor.from_dlpack(Strange())
    assert time.monotonic() - begin < 5


@pytest.mark.parametrize("times", [1, 2, 1000])
def test_a_list_that_holds_itself_is_refused(times: int) -> None:
    data: list[Any] = []
    data.extend([data] * times)
    with pytest.raises(ValueError, match="holds itself"):
        Tensor(data)
    with pytest.raises(ValueError, match="holds itself"):
        Tensor([data, data])


@pytest.mark.parametrize("odd", [{"max_version": "1.0"}, {"max_version": 1}, {"dl_device": "CPU"}, {"copy": "x"}])
def test_what_is_asked_of_a_capsule_is_of_the_right_kind(odd: dict[str, Any]) -> None:
    (name,) = odd
    with pytest.raises(TypeError, match=f"__dlpack__: {name} is "):
        Tensor([1.0]).__dlpack__(**odd)
