"""Buffers: memory on a device, taken on first use; views that share it; and who holds how much."""

from __future__ import annotations

from array import array

from tg_dtype import dtypes
from tg_runtime import Buffer, Device, GlobalCounters


def main() -> None:
    name = Device.DEFAULT
    before = GlobalCounters.mem_used
    numbers = Buffer(name, 8, dtypes.float32)
    print(f"{numbers}: {GlobalCounters.mem_used - before} bytes held")
    numbers.copyin(memoryview(array("f", range(8))))
    print(f"{numbers}: {GlobalCounters.mem_used - before} bytes held")
    tail = numbers.view(4, dtypes.float32, 16)
    tail.copyin(memoryview(array("f", [-1.0, -2.0, -3.0, -4.0])))
    print("through the view:", numbers.as_buffer().cast("f").tolist())
    bits = numbers.view(2, dtypes.uint32, 0)
    print("as bits:", [hex(word) for word in bits.as_buffer().cast("I")])
    del numbers
    print(f"a view keeps its base: {tail.base}, {tail.base.refs} holder(s)")


if __name__ == "__main__":
    main()
