"""Whatever is deleted from what the driver sends makes its programs wrong on a hostile card. This is the list.

Each entry has the program that needs it. Those of kernels are in ``simulate/test_amd_hostile.py``; the meetings of
several dies in ``test_amd_packets_aql.py``; the register that flushes what the host stored to the card's memory in
``test_amd_device.py``.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterator

import pytest

from tg_hcq import MMIO
from tg_hcq.amd import AMDDevice
from tg_hcq.amd.queues import compute
from tg_hcq.amd.queues.compute import ComputeQueue
from tg_hcq.amd.queues.copy import CopyQueue
from tg_hcq.core.allocator import HOST_OPTIONS
from tg_hcq.core.buffer import HCQBuffer
from tg_hcq.headers.amd import pm4
from tg_hcq.simulate.amd.kfd import KfdSystem
from tg_hcq.simulate.amd.machine import machine
from tg_runtime import BufferOptions, DevEntry, DeviceError

pytest.importorskip("llvmlite", reason="LLVM compiles the kernels")
ARCHITECTURES = ("gfx1030", "gfx1100", "gfx1201")
LANES, GROUPS = 32, 8
COUNT = LANES * GROUPS
TEXT = """
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
define amdgpu_kernel void @k(ptr addrspace(1) noalias %out, ptr addrspace(1) noalias readonly %in) #0 {{
  %lane = call i32 @llvm.amdgcn.workitem.id.x()
  %group = call i32 @llvm.amdgcn.workgroup.id.x()
  %before = mul i32 %group, 32
  %item = add i32 %before, %lane
  %from = getelementptr i32, ptr addrspace(1) %in, i32 {index}
  %x = load i32, ptr addrspace(1) %from
  %y = add i32 %x, {more}
  %to = getelementptr i32, ptr addrspace(1) %out, i32 %item
  store i32 %y, ptr addrspace(1) %to
  ret void
}}
attributes #0 = {{ "amdgpu-no-dispatch-ptr" "amdgpu-no-queue-ptr" "amdgpu-no-dispatch-id" "amdgpu-no-implicitarg-ptr"
  "amdgpu-no-workgroup-id-y" "amdgpu-no-workgroup-id-z" "amdgpu-no-workitem-id-y" "amdgpu-no-workitem-id-z"
  "amdgpu-flat-work-group-size"="32,32" }}
"""
KEPT = BufferOptions(nolru=True)


class Bench:
    """A hostile card, and the kernel ``out[item] = in[lane] + more``, or ``in[0] + more`` by a scalar load."""

    def __init__(self, arch: str, seed: int) -> None:
        system = KfdSystem(arch, machines=lambda lanes, space: machine(arch, lanes, space, seed=seed, hostile=True))
        self.device = AMDDevice("AMD", DevEntry("AMD", arch=arch, iface="MOCKKFD"), system=system)
        # the engine is compiled when a wave first runs
        self.device.program("k", self.code(1))(*2 * [self.memory(0)], global_size=(1, 1, 1), local_size=(LANES, 1, 1))
        self.device.synchronize()
        self.device.timeout_ms = 3000

    def code(self, more: int = 0, index: str = "%lane") -> bytes:
        """A code object."""
        assert self.device.compiler is not None
        return self.device.compiler.compile(TEXT.format(index=index, more=more))

    def memory(self, first: int, count: int = COUNT) -> HCQBuffer:
        """Memory of the card with ``count`` numbers from ``first`` on."""
        buffer = self.device.allocator.alloc(4 * count, KEPT)
        self.fill(buffer, first, count)
        return buffer

    def fill(self, buffer: HCQBuffer, first: int, count: int = COUNT) -> None:
        """Changes it."""
        self.device.allocator.copyin(buffer, memoryview(array("I", range(first, first + count))).cast("B"))

    def numbers(self, buffer: HCQBuffer, count: int = COUNT) -> list[int]:
        """What it holds."""
        out = bytearray(4 * count)
        self.device.allocator.copyout(memoryview(out), buffer)
        return list(memoryview(out).cast("I"))

    def close(self) -> None:
        """Ends it."""
        self.device.close()


def changed_input(bench: Bench, index: str = "%lane") -> bool:
    """A kernel reads twice, and a copy changes what it reads in between."""
    program, x, right = bench.device.program("k", bench.code(index=index)), bench.memory(0), []
    for first in (0, 5000):
        bench.fill(x, first)
        out = bench.memory(77)
        program(out, x, global_size=(GROUPS, 1, 1), local_size=(LANES, 1, 1))
        wanted = [first + (item % LANES if index == "%lane" else 0) for item in range(COUNT)]
        right.append(bench.numbers(out) == wanted)
    return all(right)


def changed_scalar(bench: Bench) -> bool:
    """The same, and it is a scalar load."""
    return changed_input(bench, "0")


def changed_code(bench: Bench) -> bool:
    """A kernel is loaded where another one was."""
    x, right, places = bench.memory(0), [], set()
    for more in (7, 9):
        program, out = bench.device.program("k", bench.code(more)), bench.memory(0)
        places.add(program.code())
        program(out, x, global_size=(GROUPS, 1, 1), local_size=(LANES, 1, 1))
        right.append(bench.numbers(out) == [item % LANES + more for item in range(COUNT)])
        del program
        bench.device.synchronize()
    assert len(places) == 1, "the second one is elsewhere"
    return all(right)


def one_after_another(bench: Bench) -> bool:
    """A kernel reads what the one before it in the same submission wrote, behind a barrier."""
    device, program = bench.device, bench.device.program("k", bench.code(3))
    x, between, out = bench.memory(0), bench.memory(99), bench.memory(99)
    last = between.offset(4 * (COUNT - LANES), 4 * LANES)
    args = [program.fill_args([between, x]), program.fill_args([out, last])]
    with device.submission() as queue:
        for one in args:
            queue.exec(program, one, (GROUPS, 1, 1), (LANES, 1, 1)).memory_barrier()
    return bench.numbers(out) == [item % LANES + 6 for item in range(COUNT)]


def waits_for_the_host(bench: Bench) -> bool:
    """A queue copies what the host writes before it sets a signal: each kind of queue."""
    device, right = bench.device, []
    host = device.allocator.alloc(256, HOST_OPTIONS)
    words = host.host_view("I")
    assert device.copy_queue is not None
    for queue, at in ((device.compute_queue(), 1), (device.copy_queue(), 2)):
        words[0], words[at] = 0, 0
        go, done = device.new_signal(), device.new_signal()
        queue.wait(go, 1)
        if at == 1:
            program = device.program("k", bench.code(index="0"))
            queue.exec(program, program.fill_args([host.offset(128, 128), host]), (1, 1, 1), (LANES, 1, 1))
        else:
            queue.copy(host.address + 128, host.address, 4)
        queue.signal(done, 1).submit(device)
        time.sleep(0.05)
        words[0] = 5
        go.value = 1
        done.wait(1)
        right.append(words[32] == 5)
        words[32] = 0
    return all(right)


def without(name: str, value: int) -> Callable[[pytest.MonkeyPatch, Bench], None]:
    """Takes a flag from the words of a packet."""

    def plant(patch: pytest.MonkeyPatch, bench: Bench) -> None:
        assert getattr(compute, name) & value
        patch.setattr(compute, name, getattr(compute, name) & ~value)

    return plant


def acquires(name: str) -> Callable[[pytest.MonkeyPatch, Bench], None]:
    """Takes a flag from ACQUIRE_MEM."""
    return without("ACQUIRE", 1 << getattr(pm4, f"PACKET3_ACQUIRE_MEM_GCR_CNTL_{name}__SHIFT"))


def no_flush(patch: pytest.MonkeyPatch, bench: Bench) -> None:
    """A barrier without EVENT_WRITE of CS_PARTIAL_FLUSH."""

    def barrier(queue: ComputeQueue) -> ComputeQueue:
        queue._acquire()
        return queue

    patch.setattr(ComputeQueue, "memory_barrier", barrier)


def no_call(owner: type, name: str) -> Callable[[pytest.MonkeyPatch, Bench], None]:
    """What a method appends is left out."""
    return lambda patch, bench: patch.setattr(owner, name, lambda *args: None)


def lost_store(kind: str, word: str) -> Callable[[pytest.MonkeyPatch, Bench], None]:
    """What a ring stores to one of its pointers goes elsewhere."""

    def plant(patch: pytest.MonkeyPatch, bench: Bench) -> None:
        elsewhere = MMIO.of(bytearray(8), "Q")
        patch.setattr(bench.device.hardware_ring(kind), word, elsewhere)

    return plant


DELETIONS: dict[str, tuple[Callable[[Bench], bool], Callable[[pytest.MonkeyPatch, Bench], None]]] = {
    "RELEASE_MEM: GL2_WB": (changed_input, without("RELEASE", pm4.PACKET3_RELEASE_MEM_GCR_GL2_WB)),
    "ACQUIRE_MEM: GLI_INV": (changed_code, acquires("GLI_INV")),
    "ACQUIRE_MEM: GLK_INV": (changed_scalar, acquires("GLK_INV")),
    "ACQUIRE_MEM: GLV_INV": (changed_input, acquires("GLV_INV")),
    "ACQUIRE_MEM: GL1_INV": (changed_input, acquires("GL1_INV")),
    "ACQUIRE_MEM: GL2_INV": (changed_input, acquires("GL2_INV")),
    "ACQUIRE_MEM: GL2_WB": (one_after_another, acquires("GL2_WB")),
    "ACQUIRE_MEM": (changed_input, no_call(ComputeQueue, "_acquire")),
    "EVENT_WRITE: CS_PARTIAL_FLUSH": (one_after_another, no_flush),
    "WAIT_REG_MEM": (waits_for_the_host, no_call(ComputeQueue, "_wait")),
    "RELEASE_MEM of a signal": (waits_for_the_host, no_call(ComputeQueue, "_signal")),
    "POLL_REGMEM": (waits_for_the_host, no_call(CopyQueue, "_wait")),
    "FENCE of a signal": (waits_for_the_host, no_call(CopyQueue, "_signal")),
    "the compute queue's write pointer": (changed_input, lost_store("compute", "write")),
    "the compute queue's doorbell": (changed_input, lost_store("compute", "doorbell")),
    "the copy queue's write pointer": (changed_input, lost_store("copy", "write")),
    "the copy queue's doorbell": (changed_input, lost_store("copy", "doorbell")),
}
NOT_THERE = {("gfx1201", "ACQUIRE_MEM: GL1_INV"): "gfx12 has no GL1"}
# Flags that no program here can need: GLM_INV and GLM_WB are of the cache of metadata, which images have; SEQ is the
# order of the caches that a packet names, which the software card keeps in any case.
WORKLOADS = dict.fromkeys(work for work, _ in DELETIONS.values())


@pytest.fixture(params=[
    pytest.param(arch, marks=[] if arch == "gfx1100" else [pytest.mark.slow]) for arch in ARCHITECTURES
])  # fmt: skip
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    made = Bench(request.param, 11)
    yield made
    made.close()


def right(work: Callable[[Bench], bool], bench: Bench) -> bool:
    """Whether a program does what it should; a device that stops is wrong as well."""
    try:
        return work(bench)
    except DeviceError:
        return False


@pytest.mark.parametrize("work", WORKLOADS, ids=lambda work: work.__name__)
def test_with_nothing_deleted_programs_are_right(bench: Bench, work: Callable[[Bench], bool]) -> None:
    assert work(bench)


@pytest.mark.parametrize("name", DELETIONS)
def test_a_deletion_is_noticed(bench: Bench, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    work, plant = DELETIONS[name]
    arch = bench.device.architecture.name
    if (arch, name) in NOT_THERE:
        pytest.skip(NOT_THERE[arch, name])
    plant(monkeypatch, bench)
    assert not right(work, bench), f"{arch} does without {name}"


def test_the_list_is_whole() -> None:
    """Each flag of the driver's words for caches is deleted above, or cannot matter."""
    acquired = {"GLI_INV", "GLK_INV", "GLV_INV", "GL1_INV", "GL2_INV", "GL2_WB"}
    flags = sum(1 << getattr(pm4, f"PACKET3_ACQUIRE_MEM_GCR_CNTL_{name}__SHIFT") for name in acquired)
    metadata = sum(1 << getattr(pm4, f"PACKET3_ACQUIRE_MEM_GCR_CNTL_GLM_{name}__SHIFT") for name in ("INV", "WB"))
    assert compute.ACQUIRE == flags | metadata
    assert {f"ACQUIRE_MEM: {name}" for name in acquired} <= DELETIONS.keys()
