"""How long a launch takes: the first makes the program, the others run it; and what the counters say."""

from __future__ import annotations

from tg_dtype import dtypes
from tg_lazy import LazyBuffer, Ops, Storage, schedule
from tg_runtime import Buffer, Device, GlobalCounters, lower
from tg_runtime.telemetry.counters import human

SIZE = 1 << 20


def main() -> None:
    name = Device.DEFAULT
    x = Buffer(name, SIZE, dtypes.float32).copyin(memoryview(bytes(4 * SIZE)))
    lazy = LazyBuffer.from_storage(Storage(name, SIZE, dtypes.float32, x), (SIZE,))
    doubled = lazy.alu(Ops.ADD, lazy)  # kept: what nobody holds is computed by nobody
    items, _ = schedule([doubled])
    step = lower(items[0])
    GlobalCounters.reset()
    for buffer in step.bufs:
        assert buffer is not None
        buffer.ensure_allocated()
    times = [step.run(wait=True) or 0.0 for _ in range(10)]
    best = min(times)
    memory = step.prg.mem_estimate
    assert isinstance(memory, int)
    print(f"{step.prg.name} on {name}: first {times[0] * 1e6:.0f} us, best {best * 1e6:.0f} us")
    print(f"{human(memory / max(best, 1e-9), 'B/s')}, {GlobalCounters.kernel_count} launches counted")
    print(f"{human(GlobalCounters.global_ops, 'FLOP')} and {human(GlobalCounters.global_mem, 'B')} in all")


if __name__ == "__main__":
    main()
