"""A sequence of launches, captured once and replayed as one native call, on other memory each time."""

from __future__ import annotations

from array import array

from tg_dtype import dtypes
from tg_lazy import LazyBuffer, Ops, Storage
from tg_runtime import Buffer, Device, ExecItem, buffer_of, capture, realize

SIZE = 1024


def main() -> None:
    for name in ("CPU", "HOSTQ"):
        if name not in Device.available():
            continue
        storage = Storage(name, SIZE, dtypes.float32)
        buffer_of(storage).copyin(memoryview(array("f", [1.0] * SIZE)))
        x = LazyBuffer.from_storage(storage, (SIZE,))
        squared = x.alu(Ops.MUL, x).contiguous()
        total = squared.reduce(Ops.ADD, (0,)).contiguous()
        result = total.alu(Ops.SQRT)
        items: list[ExecItem] = []
        with capture(items):
            realize([squared, total, result])
        condense = Device[name].graph
        assert condense is not None and result.storage is not None
        launches = [item for item in items if item.prg.on_device]
        graph = condense(launches, [buffer_of(storage)])
        out = buffer_of(result.storage)
        for value in (1.0, 2.0, 3.0):
            other = Buffer(name, SIZE, dtypes.float32).copyin(memoryview(array("f", [value] * SIZE)))
            seconds = graph([other], {}, wait=True)
            print(f"{name}: {graph.name}, norm of {value}s {out.as_buffer().cast('f')[0]}, {seconds * 1e6:.0f} us")


if __name__ == "__main__":
    main()
