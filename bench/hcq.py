"""What a submission to a hardware queue costs the host, as ``python -m bench hcq`` prints it.

Each figure is the best of many calls on HOSTQ, from the call until it has stored to the doorbell and returned; the
device is idle when a call begins.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from tg_hcq import HCQGraph
from tg_hcq.hostq import HostQueue, HostQueueDevice
from tg_hcq.hostq.executor import Opcode
from tg_runtime import Device, ExecItem, buffer_of, capture
from tg_shape import Expr, Variable, sint
from tinytg import Tensor

from .record import Record
from .submissions import GOALS_US

_PLACES, _KERNELS = 1000, 100
_LEAST = 1 << 40


def best(call: Callable[[int], object], device: HostQueueDevice, times: int) -> float:
    """The fewest microseconds of many calls, each of which is given its number."""
    found = []
    for number in range(times):
        start = time.perf_counter_ns()
        call(number)
        found.append(time.perf_counter_ns() - start)
        device.synchronize()
    return min(found) / 1000


def replay(device: HostQueueDevice, variables: int, times: int) -> float:
    """A bound queue whose words hold a thousand values of so many variables."""
    names = [Variable(f"v{i}", _LEAST, _LEAST << 1) for i in range(variables)]
    values: list[sint] = [names[i % variables] + 8 * (i // variables) for i in range(_PLACES)]
    assert all(isinstance(value, Expr) for value in values)
    memory = device.allocator.alloc(8 * _PLACES)
    queue = HostQueue()
    with device.timeline.recording(queue):
        queue.put(Opcode.WRITE | (2 + 2 * _PLACES) << 8)
        queue.put64(memory.address, *values)
    queue.bind(device)
    asked = [dict.fromkeys(names, _LEAST + number) for number in range(2)]
    return best(lambda number: device.timeline.replay(queue, asked[number % 2]), device, times)


def kernels(name: str) -> tuple[list[ExecItem], Tensor, Tensor]:
    """A chain of kernels, each of which reads the one before and a common input; and the inputs."""
    first, second = (Tensor.full((64,), value, device=name).contiguous().realize() for value in (1.0, 2.0))
    items: list[ExecItem] = []
    node = first
    with capture(items):
        for _ in range(_KERNELS):
            node = (node + second).contiguous().realize()
    return items, first, second


def measured(times: int = 1000) -> dict[str, float]:
    """All figures."""
    device = Device["HOSTQ"]
    assert isinstance(device, HostQueueDevice)
    items, *tensors = kernels(device.device)
    inputs = [buffer_of(tensor.lazydata.base.storage) for tensor in tensors]  # type: ignore[arg-type]
    graph = HCQGraph(items, inputs)
    runner, bufs = items[0].prg, [buffer for buffer in items[0].bufs if buffer is not None]
    turned = [inputs, inputs[::-1]]
    figures = {
        "eager_launch_us": best(lambda _: runner(bufs, {}), device, times),
        "replay_1000_patches_us": replay(device, 64, times),
        "replay_1000_variables_us": replay(device, _PLACES, times),
        "graph_100_kernels_us": best(lambda number: graph(turned[number % 2], {}), device, times),
    }
    return {name: round(us, 2) for name, us in figures.items()}


def main(say: Callable[[str], None], path: str = "") -> int:
    """Prints the figures as JSON; 1 if one is more than it may be.

    Args:
      say: prints a line.
      path: a record that they are put in, for the page; none if empty.
    """
    figures = measured()
    say(json.dumps(figures))
    if path:
        Record.put(Path(path), "hcq", figures)
    return int(any(figures[name] > most for name, most in GOALS_US.items()))
