"""Memory that two processes share: ``SHM:name`` is the same bytes in both."""

from __future__ import annotations

import os
import subprocess
import sys
from array import array

from tg_dtype import dtypes
from tg_runtime import Buffer, Device
from tg_runtime.backends.shm.device import ShmDevice


def child(name: str) -> None:
    numbers = Buffer(name, 4, dtypes.float32)
    doubled = array("f", (2 * value for value in numbers.as_buffer().cast("f")))
    numbers.copyin(memoryview(doubled))


def main() -> None:
    if len(sys.argv) > 1:
        child(sys.argv[1])
        return
    if "SHM" not in Device.available():
        print(f"SHM: {Device.load('SHM').unavailable(Device.entry('SHM'))}")
        return
    name = f"SHM:tg-example-{os.getpid()}"
    device = Device[name]
    assert isinstance(device, ShmDevice)
    try:
        numbers = Buffer(name, 4, dtypes.float32).copyin(memoryview(array("f", [1, 2, 3, 4])))
        subprocess.run([sys.executable, os.path.abspath(__file__), name], check=True)
        print(f"the other process left {numbers.as_buffer().cast('f').tolist()}")
    finally:
        device.unlink()


if __name__ == "__main__":
    main()
