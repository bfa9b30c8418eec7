"""Copies between any two devices: by the device itself, through memory that both see, or through the host."""

from __future__ import annotations

import tempfile
from array import array
from itertools import permutations

from tg_dtype import dtypes
from tg_runtime import Buffer, BufferCopy, BufferXfer, Device


def main() -> None:
    data = array("f", [1.5, 2.5, 3.5, 4.5])
    with tempfile.NamedTemporaryFile() as file:
        devices = [name for name in Device.available() if name in ("CPU", "CL", "NUMPY", "HOSTQ")]
        devices += ["NUMPY:1", f"DISK:{file.name}"]
        for source, target in permutations(devices, 2):
            here = Buffer(source, 4, dtypes.float32).copyin(memoryview(data))
            there = Buffer(target, 4, dtypes.float32)
            same_kind = source.partition(":")[0] == target.partition(":")[0]
            copy = (BufferXfer if same_kind else BufferCopy)(here.nbytes, target, source)
            copy([there, here], {})
            assert there.as_buffer().cast("f").tolist() == data.tolist()
        kinds = sorted({name.partition(":")[0] for name in devices})
        print(f"every way between {', '.join(kinds)}: {len(list(permutations(devices, 2)))} copies, all right")


if __name__ == "__main__":
    main()
