"""A trace of what the host and the devices did, for https://ui.perfetto.dev."""

from __future__ import annotations

import os
import sys
import tempfile

from tg_dtype import dtypes
from tg_lazy import LazyBuffer, Ops, Storage
from tg_runtime import Buffer, Device, profile, realize


def main() -> None:
    path = sys.argv[1] if len(sys.argv) > 1 else os.path.join(tempfile.gettempdir(), f"tg-trace-{os.getpid()}.json")
    with profile(path) as recorded:
        for name in (name for name in Device.available() if name in ("CPU", "CL", "HOSTQ", "NUMPY")):
            x = Buffer(name, 1 << 16, dtypes.float32).copyin(memoryview(bytes(4 << 16)))
            lazy = LazyBuffer.from_storage(Storage(name, 1 << 16, dtypes.float32, x), (256, 256))
            total = lazy.alu(Ops.MUL, lazy).contiguous().reduce(Ops.ADD, (1,))
            realize([total])
    tracks = {(event.process, event.thread) for event in recorded.events}
    for process, thread in sorted(tracks):
        spans = [event for event in recorded.events if (event.process, event.thread) == (process, thread)]
        print(f"{process:<6} {thread:<28} {len(spans):3d} spans, {', '.join(sorted({e.name for e in spans}))[:60]}")
    print(f"{os.path.getsize(path)} bytes of trace")
    if len(sys.argv) < 2:
        os.unlink(path)


if __name__ == "__main__":
    main()
