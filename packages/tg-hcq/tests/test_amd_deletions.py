"""Whatever is deleted from what the driver sends makes its programs wrong on a hostile card. This is the list.

Each entry has the program that needs it: of queues of PM4 on four generations, and of packets of AQL on a card of eight
dies. Those of kernels are in ``simulate/test_amd_hostile.py``; the meetings of several dies, which model dies execute,
in ``test_amd_packets_aql.py``.
"""

from __future__ import annotations

import dataclasses
import time
from array import array
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType

import pytest

from tg_hcq import MMIO
from tg_hcq.amd import AMDDevice
from tg_hcq.amd.queues import aql, compute
from tg_hcq.amd.queues.aql import AQLQueue
from tg_hcq.amd.queues.compute import ComputeQueue
from tg_hcq.amd.queues.copy import CopyQueue
from tg_hcq.core.allocator import HOST_OPTIONS
from tg_hcq.core.buffer import HCQBuffer
from tg_hcq.headers.amd import pm4, pm4_gfx9
from tg_hcq.simulate.amd.kfd import CARDS, KfdSystem
from tg_hcq.simulate.amd.machine import machine
from tg_runtime import BufferOptions, DevEntry, DeviceError

pytest.importorskip("llvmlite", reason="LLVM compiles the kernels")
ARCHITECTURES = ("gfx1030", "gfx1100", "gfx1201")
DIE = "a die of gfx942"
"""A card that is partitioned: its only die takes a queue of PM4."""
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
_ELSEWHERE = array("I", [0])
KEPT = BufferOptions(nolru=True)


class Bench:
    """A hostile card, and the kernel ``out[item] = in[lane] + more``, or ``in[0] + more`` by a scalar load."""

    def __init__(self, card: str, seed: int) -> None:
        arch = "gfx942" if card == DIE else card
        with pytest.MonkeyPatch.context() as patch:
            if card == DIE:
                patch.setitem(CARDS, arch, dataclasses.replace(CARDS[arch], xccs=1, sdma_engines=2))
            self._open(arch, seed)
        assert self.device.packets is (card == "gfx942")

    def _open(self, arch: str, seed: int) -> None:
        system = KfdSystem(arch, machines=lambda lanes, space: machine(arch, lanes, space, seed=seed, hostile=True))
        self.device = AMDDevice("AMD", DevEntry("AMD", arch=arch, iface="MOCKKFD"), system=system)
        # the engine is compiled when a wave first runs
        self.device.program("k", self.code(1))(*2 * [self.memory(0)], global_size=(1, 1, 1), local_size=(LANES, 1, 1))
        self.device.synchronize()
        self.device.timeout_ms = 3000

    def code(self, more: int = 0, index: str = "%lane") -> bytes:
        """A code object."""
        assert self.device.compiler is not None
        return self.device.compiler.compile_cached(TEXT.format(index=index, more=more))

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


def between_launches(bench: Bench) -> bool:
    """A kernel reads what the one before it wrote over what an earlier one read, all in one submission."""
    device, program = bench.device, bench.device.program("k", bench.code(3))
    x, y, outs = bench.memory(0), bench.memory(500), [bench.memory(99) for _ in range(2)]
    last = x.offset(4 * (COUNT - LANES), 4 * LANES)
    pairs = [(outs[0], last), (x, y), (outs[1], last)]
    args = [program.fill_args(list(pair)) for pair in pairs]
    with device.submission() as queue:
        for one in args:
            queue.exec(program, one, (GROUPS, 1, 1), (LANES, 1, 1)).memory_barrier()
    wanted = [[first + item % LANES for item in range(COUNT)] for first in (COUNT - LANES + 3, 506)]
    return [bench.numbers(out) for out in outs] == wanted


def stores_of_the_host(bench: Bench) -> bool:
    """A kernel reads what the host stored to memory of the card's, which it sees."""
    device, program, right = bench.device, bench.device.program("k", bench.code()), []
    x = device.allocator.alloc(4 * COUNT, BufferOptions(device_visible=True, nolru=True))
    for first in (100, 3000):
        x.host_view("I").write(0, array("I", range(first, first + COUNT)))
        out = bench.memory(77)
        program(out, x, global_size=(GROUPS, 1, 1), local_size=(LANES, 1, 1))
        right.append(bench.numbers(out) == [first + item % LANES for item in range(COUNT)])
    return all(right)


def waits_again(bench: Bench) -> bool:
    """A launch waits for the host, several times."""
    return all(waits_for_the_host(bench) for _ in range(4))


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


def no_flush_of_stores(patch: pytest.MonkeyPatch, bench: Bench) -> None:
    """What is stored to the register that flushes the host's stores goes elsewhere."""
    patch.setattr(bench.device.allocator.card, "_flush", _ELSEWHERE.buffer_info()[0])


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
    "the store to HDP_MEM_FLUSH_CNTL": (stores_of_the_host, no_flush_of_stores),
    "the compute queue's write pointer": (changed_input, lost_store("compute", "write")),
    "the compute queue's doorbell": (changed_input, lost_store("compute", "doorbell")),
    "the copy queue's write pointer": (changed_input, lost_store("copy", "write")),
    "the copy queue's doorbell": (changed_input, lost_store("copy", "doorbell")),
}


def released9(name: str) -> Callable[[pytest.MonkeyPatch, Bench], None]:
    """Takes a flag from RELEASE_MEM of gfx9."""
    return without("RELEASE_GFX9", getattr(pm4_gfx9, f"EOP_{name}_ACTION_EN"))


def acquires9(name: str) -> Callable[[pytest.MonkeyPatch, Bench], None]:
    """Takes a flag from ACQUIRE_MEM of gfx9."""
    name = f"PACKET3_ACQUIRE_MEM_CP_COHER_CNTL_{name}_ACTION_ENA__SHIFT"
    return without("ACQUIRE_GFX9", 1 << getattr(pm4_gfx9, name))


def header_without_barrier(name: str) -> Callable[[pytest.MonkeyPatch, Bench], None]:
    """Takes the barrier bit from the header of packets."""
    return lambda patch, bench: patch.setattr(aql, name, getattr(aql, name) & ~(1 << 8))


def no_meeting(patch: pytest.MonkeyPatch, bench: Bench) -> None:
    """The first die sets a signal by itself."""
    patch.setattr(AQLQueue, "_meet", lambda queue: aql.MEETINGS)


def no_release_of_others(patch: pytest.MonkeyPatch, bench: Bench) -> None:
    """Dies store the number of a meeting without writing back their caches: by WRITE_DATA."""
    patch.setattr(ComputeQueue, "_release", lambda queue, address, data, value: ComputeQueue.write(
        queue, address, [value, 0]))  # fmt: skip


_FLAGS9: dict[str, tuple[Callable[[Bench], bool], Callable[[pytest.MonkeyPatch, Bench], None]]] = {
    "RELEASE_MEM: TC": (changed_input, released9("TC")),
    "RELEASE_MEM: TC_WB": (changed_input, released9("TC_WB")),
    "ACQUIRE_MEM: SH_ICACHE": (changed_code, acquires9("SH_ICACHE")),
    "ACQUIRE_MEM: SH_KCACHE": (changed_scalar, acquires9("SH_KCACHE")),
    "ACQUIRE_MEM: TC": (changed_input, acquires9("TC")),
    "ACQUIRE_MEM: TCL1": (changed_input, acquires9("TCL1")),
}
DELETIONS_OF_A_DIE = _FLAGS9 | {
    "ACQUIRE_MEM: TC_WB": (one_after_another, acquires9("TC_WB")),
    "EVENT_WRITE: CS_PARTIAL_FLUSH": DELETIONS["EVENT_WRITE: CS_PARTIAL_FLUSH"],
}
DELETIONS_OF_PACKETS = _FLAGS9 | {
    "ACQUIRE_MEM": (between_launches, no_call(AQLQueue, "_acquire")),
    "ACQUIRE_MEM: TC": (between_launches, acquires9("TC")),
    "the meeting before a signal": (changed_input, no_meeting),
    "RELEASE_MEM of a meeting": (between_launches, no_release_of_others),
    "the barrier bit of a launch": (waits_again, header_without_barrier("DISPATCH")),
    "the barrier bit of a vendor packet": (one_after_another, header_without_barrier("VENDOR")),
} | {
    name: DELETIONS[name] for name in (
        "WAIT_REG_MEM", "RELEASE_MEM of a signal", "the store to HDP_MEM_FLUSH_CNTL",
        "the compute queue's write pointer", "the compute queue's doorbell",
    )
}  # fmt: skip
NOT_THERE = {("gfx1201", "ACQUIRE_MEM: GL1_INV"): "gfx12 has no GL1"}
# Flags that no program here can need: GLM_INV, GLM_WB and TC_MD are of the cache of metadata, which images have; SEQ is
# the order of the caches that a packet names, which the software card keeps in any case.
ON_CARDS = dict.fromkeys(ARCHITECTURES, DELETIONS) | {DIE: DELETIONS_OF_A_DIE, "gfx942": DELETIONS_OF_PACKETS}


def cases(of: Callable[[str], Iterable[str | FunctionType]]) -> list[object]:
    """Each card with what is tried on it; one card in the default run."""
    return [
        pytest.param(
            card, one, marks=[] if card == "gfx1100" else [pytest.mark.slow],
            id=f"{card}-{one if isinstance(one, str) else one.__name__}",
        )
        for card in ON_CARDS for one in of(card)
    ]  # fmt: skip


@pytest.fixture
def bench(card: str) -> Iterator[Bench]:
    made = Bench(card, 11)
    yield made
    made.close()


def right(work: Callable[[Bench], bool], bench: Bench) -> bool:
    """Whether a program does what it should; a device that stops is wrong as well."""
    try:
        return work(bench)
    except DeviceError:
        return False


def works(card: str) -> Iterable[FunctionType]:
    """The programs that something on a card is deleted from."""
    return dict.fromkeys(work for work, _ in ON_CARDS[card].values() if isinstance(work, FunctionType))


@pytest.mark.drawn(5)
@pytest.mark.parametrize(("card", "work"), cases(works))
def test_with_nothing_deleted_programs_are_right(bench: Bench, work: Callable[[Bench], bool]) -> None:
    assert work(bench)


@pytest.mark.drawn(4)
@pytest.mark.parametrize(("card", "name"), cases(lambda card: ON_CARDS[card]))
def test_a_deletion_is_noticed(bench: Bench, card: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    work, plant = ON_CARDS[card][name]
    if (card, name) in NOT_THERE:
        pytest.skip(NOT_THERE[card, name])
    plant(monkeypatch, bench)
    assert not right(work, bench), f"{card} does without {name}"


def test_the_list_is_whole() -> None:
    """Each flag of the driver's words for caches is deleted above, or cannot matter."""
    acquired = {"GLI_INV", "GLK_INV", "GLV_INV", "GL1_INV", "GL2_INV", "GL2_WB"}
    flags = sum(1 << getattr(pm4, f"PACKET3_ACQUIRE_MEM_GCR_CNTL_{name}__SHIFT") for name in acquired)
    metadata = sum(1 << getattr(pm4, f"PACKET3_ACQUIRE_MEM_GCR_CNTL_GLM_{name}__SHIFT") for name in ("INV", "WB"))
    assert compute.ACQUIRE == flags | metadata
    assert {f"ACQUIRE_MEM: {name}" for name in acquired} <= DELETIONS.keys()
    acquired = {name.partition(": ")[2] for name in DELETIONS_OF_A_DIE if name.startswith("ACQUIRE_MEM: ")}
    prefix = "PACKET3_ACQUIRE_MEM_CP_COHER_CNTL_"
    assert compute.ACQUIRE_GFX9 == sum(
        1 << getattr(pm4_gfx9, f"{prefix}{name}_ACTION_ENA__SHIFT") for name in acquired
    )
    event = compute.RELEASE_GFX9 & 0xFFF
    flags = pm4_gfx9.EOP_TC_ACTION_EN | pm4_gfx9.EOP_TC_WB_ACTION_EN
    assert compute.RELEASE_GFX9 == event | flags | pm4_gfx9.EOP_TC_MD_ACTION_EN
