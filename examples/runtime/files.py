"""A file as memory: a part of it is read alone, results are written in place, and reading makes nothing."""

from __future__ import annotations

import os
import tempfile
from array import array

from tg_dtype import dtypes
from tg_runtime import Buffer, BufferCopy, DeviceError, GlobalCounters


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "weights.bin")
        with open(path, "wb") as file:
            file.truncate(1 << 32)  # 4 GiB of nothing, but for this:
            file.seek(3 << 30)
            file.write(array("f", [0.25, 0.5, 0.75]).tobytes())
        before = GlobalCounters.mem_used
        weights = Buffer(f"DISK:{path}", 1 << 32, dtypes.uint8)
        part = weights.view(3, dtypes.float32, 3 << 30)
        here = Buffer("NUMPY", 3, dtypes.float32)
        BufferCopy(part.nbytes, "NUMPY", part.device)([here, part], {})
        print(f"read {here.as_buffer().cast('f').tolist()}, {GlobalCounters.mem_used - before} bytes of memory held")

        out = Buffer(f"DISK:{os.path.join(folder, 'out.bin')}", 3, dtypes.float32)
        try:
            out.tobytes()
        except DeviceError as error:
            print(f"nothing is made by reading: {str(error).replace(folder, '…')}")
        BufferCopy(here.nbytes, out.device, "NUMPY")([out, here], {})
        print(f"written: {os.listdir(folder)}, {out.tobytes() == here.tobytes()}")


if __name__ == "__main__":
    main()
