"""A kernel described once, as a lazy graph, and generated for every device that this machine has."""

from __future__ import annotations

from array import array

from tg_dtype import dtypes
from tg_lazy import LazyBuffer, Ops, Storage
from tg_runtime import Buffer, Device, buffer_of, realize


def main() -> None:
    for name in Device.available():
        if name == "NULL" or (Device.load(name).renderers() == {} and name != "NUMPY"):
            continue  # it computes nothing, or only holds memory
        x = Buffer(name, 6, dtypes.float32).copyin(memoryview(array("f", [1, 2, 3, 4, 5, 6])))
        rows = LazyBuffer.from_storage(Storage(name, 6, dtypes.float32, x), (2, 3))
        sums = rows.alu(Ops.MUL, rows).reduce(Ops.ADD, (1,))
        realize([sums])
        assert sums.storage is not None
        print(f"{name}: sums of squares {buffer_of(sums.storage).as_buffer().cast('f').tolist()}")


if __name__ == "__main__":
    main()
