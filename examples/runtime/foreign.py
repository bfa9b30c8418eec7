"""Memory that somebody else owns, used in place: no copy, and the owner lives as long as anybody uses it."""

from __future__ import annotations

from array import array

from tg_dtype import dtypes
from tg_lazy import LazyBuffer, Ops, Storage
from tg_runtime import Buffer, BufferOptions, Device, DeviceError, buffer_of, realize


def main() -> None:
    name = "CPU" if "CPU" in Device.available() else "NUMPY"
    mine = array("f", [1.0, 2.0, 3.0, 4.0])
    options = BufferOptions(external_ptr=mine.buffer_info()[0], owner=mine)
    buffer = Buffer(name, 4, dtypes.float32, options=options).allocate()
    x = LazyBuffer.from_storage(Storage(name, 4, dtypes.float32, buffer), (4,))
    mine[0] = 10.0  # seen by what is computed after it
    doubled = x.alu(Ops.ADD, x)
    realize([doubled])
    assert doubled.storage is not None
    print(f"{name}: {buffer_of(doubled.storage).as_buffer().cast('f').tolist()}")
    buffer.copyin(memoryview(array("f", [0.0] * 4)))
    print(f"written in place: {mine.tolist()}")
    fixed = BufferOptions(external_ptr=mine.buffer_info()[0], owner=mine, readonly=True)
    try:
        Buffer(name, 4, dtypes.float32, options=fixed).allocate().copyin(memoryview(bytes(16)))
    except DeviceError as error:
        print(f"read-only: {error}")


if __name__ == "__main__":
    main()
