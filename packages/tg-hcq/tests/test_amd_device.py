"""The driver on the software card: queues, memory, faults and recovery. Nothing here looks into the card."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tg_hcq import MMIO, DeviceFault
from tg_hcq.amd import AMDDevice
from tg_hcq.core.allocator import HOST_OPTIONS
from tg_hcq.core.profiling import calibrate, nanoseconds
from tg_hcq.core.system import offer_system
from tg_hcq.simulate.amd.kfd import KfdSystem, RemoteKfd, cards, mock_kfd
from tg_lazy import Context
from tg_runtime import BufferOptions, DevEntry, DeviceError
from tg_runtime.host.elf import ELFError
from tg_shape import Variable

offer_system("MOCKKFD+AMD", mock_kfd)
KERNEL = """
@local = internal addrspace(3) global [250 x float] undef
declare i32 @llvm.amdgcn.workitem.id.x()
define amdgpu_kernel void @k() {
  %lane = call i32 @llvm.amdgcn.workitem.id.x()
  %cell = getelementptr float, ptr addrspace(3) @local, i32 %lane
  store volatile float 1.0, ptr addrspace(3) %cell
  ret void
}
"""
PM4 = ["gfx1030", "gfx1100", "gfx1201"]
ARCHITECTURES = [*PM4, "gfx942"]  # the last by packets of AQL, with eight dies


def opened(arch: str = "gfx1100", large_bar: bool = True, **options: int) -> AMDDevice:
    entry = DevEntry("AMD", arch=arch, iface="MOCKKFD")
    device = AMDDevice("AMD", entry, system=KfdSystem(arch, large_bar=large_bar), **options)
    device.timeout_ms = 10_000
    return device


def packets(words: list[int]) -> list[tuple[int, list[int]]]:
    """Opcode and body of each."""
    found, at = [], 0
    while at < len(words):
        count = (words[at] >> 16 & 0x3FFF) + 2
        found.append((words[at] >> 8 & 0xFF, words[at + 1 : at + count]))
        at += count
    return found


def registers(words: list[int]) -> dict[int, int]:
    """What SET_SH_REG sets: the numbers begin at 0x2C00."""
    bodies = [body for opcode, body in packets(words) if opcode == 0x76]
    return {0x2C00 + body[0] + i: word for body in bodies for i, word in enumerate(body[1:])}


@pytest.fixture(params=ARCHITECTURES)
def device(request: pytest.FixtureRequest) -> Iterator[AMDDevice]:
    found = opened(request.param)
    yield found
    found.close()
    gc.collect()


def test_the_card_is_the_one_that_was_asked_for(device: AMDDevice) -> None:
    assert device.opened_facts().arch.startswith(device.architecture.name)
    assert device.ticks_per_us == 100 and (device.allocator.limit or 0) > 1 << 30


def test_stores_signals_and_timestamps(device: AMDDevice) -> None:
    host, signal = device.allocator.alloc(64, HOST_OPTIONS), device.new_signal()
    value = Variable("value", 0, 1 << 20)
    queue = device.compute_queue().write(host.address, [1, value]).memory_barrier()
    queue.timestamp(signal).signal(signal, value)
    stamps = []
    for number in (5, 6):
        queue.submit(device, {value: number})
        signal.wait(number)
        stamps.append(signal.timestamp)
        assert host.host_view("I").read(0, 2) == [1, number]
    assert 0 < stamps[0] < stamps[1] < stamps[0] + 10e6


def test_a_queue_waits_for_the_host(device: AMDDevice) -> None:
    host, signal, done = device.allocator.alloc(64, HOST_OPTIONS), device.new_signal(), device.new_signal()
    queue = device.compute_queue().wait(signal, 3).poll(host.address, 0x20, 0xF0).write(host.address + 8, [9])
    queue.signal(done, 1).submit(device)
    words = host.host_view("I")
    signal.value = 3
    assert (done.value, words[2]) == (0, 0)
    words[0] = 0x2F
    done.wait(1)
    assert words[2] == 9


def test_rings_go_round(device: AMDDevice) -> None:
    small = opened(device.architecture.name, ring_nbytes=4096)
    host = small.allocator.alloc(64, HOST_OPTIONS)
    for number in range(300):
        with small.submission() as queue:
            queue.write(host.address, [number])
    small.synchronize()
    ring = small.hardware_ring("compute")
    assert host.host_view("I")[0] == 299
    end = time.monotonic() + 5  # the card says that it read the last packet after it executed it
    while ring.used() and time.monotonic() < end:
        time.sleep(0.001)
    assert ring.write[0] > 4 * ring.entries and ring.used() == 0
    small.close()


def test_bound_words_are_jumped_to(device: AMDDevice) -> None:
    host, signal, value = device.allocator.alloc(64, HOST_OPTIONS), device.new_signal(), Variable("value", 1, 1 << 20)
    queue = device.compute_queue().write(host.address, [value] * 8).signal(signal, value).bind(device)
    for number in (1, 70, 1000):
        queue.submit(device, {value: number})
        signal.wait(number)
        assert host.host_view("I").read(0, 8) == [number] * 8


@pytest.mark.parametrize(
    "options",
    [
        BufferOptions(host=True),
        BufferOptions(device_visible=True),
        BufferOptions(device_visible=True, uncached=True),
        BufferOptions(host=True, coherent=True),
    ],
    ids=lambda options: "+".join(name for name, value in options._asdict().items() if value is True),
)
def test_memory_that_both_sides_see(device: AMDDevice, options: BufferOptions) -> None:
    memory, signal = device.allocator.alloc(3 << 20, options), device.new_signal()
    device.compute_queue().write(memory.address + (3 << 20) - 8, [7, 8]).signal(signal, 1).submit(device)
    signal.wait(1)
    assert memory.host_view("I").read((3 << 18) - 2, 2) == [7, 8]


@pytest.mark.parametrize("nbytes", [1, 4099, (4 << 20) + 5])
def test_copies_go_to_the_card_and_back(device: AMDDevice, nbytes: int) -> None:
    data, out = random.Random(nbytes).randbytes(nbytes), bytearray(nbytes)
    first, second = device.allocator.alloc(nbytes), device.allocator.alloc(nbytes)
    device.allocator.copyin(first, memoryview(data))
    assert device.allocator.transfer(second, first, nbytes, device.allocator)
    device.allocator.copyout(memoryview(out), second)
    assert out == data
    assert device.hardware_ring("copy").write[0] > 0


@pytest.mark.parametrize("device", PM4, indirect=True)
def test_the_registers_of_a_launch(device: AMDDevice) -> None:
    pytest.importorskip("llvmlite", reason="LLVM compiles the kernel")
    assert device.compiler is not None
    program = device.program("k", device.compiler.compile_cached(KERNEL))
    queue = device.compute_queue().exec(program, program.fill_args([]), (3, 2, 1), (64, 1, 1))
    found = registers(list(queue._words))
    opcode, body = packets(list(queue._words))[-1]
    entry = (found[0x2E0C] | found[0x2E0D] << 32) << 8
    start, nbytes = program.code()
    assert start <= entry < start + nbytes
    assert found[0x2E13] >> 15 & 0x1FF == 2  # 1000 bytes of LDS, in units of 512
    assert [found[0x2E04 + i] for i in range(6)] == [0, 0, 0, 64, 1, 1]
    assert (opcode, body[:3]) == (0x15, [3, 2, 1])
    assert body[3] == 0x8005  # waves of 32 lanes, from group 0 on, enabled
    user = found[0x2E13] >> 1 & 0x1F
    assert {0x2E40 + i for i in range(user)} <= found.keys()


def test_launches_that_are_too_large_are_refused_before_anything_is_sent(device: AMDDevice) -> None:
    pytest.importorskip("llvmlite", reason="LLVM compiles the kernel")
    assert device.compiler is not None
    lib = device.compiler.compile_cached(KERNEL)
    program = device.program("k", lib)
    written = device.hardware_ring("compute").write[0]
    with pytest.raises(DeviceError, match=r"groups of \(2048, 1, 1\) work-items; AMD runs 1024"):
        program(global_size=(1, 1, 1), local_size=(2048, 1, 1))
    other = "gfx1100" if device.architecture.name != "gfx1100" else "gfx1201"
    stranger = opened(other)
    with pytest.raises(ELFError, match=f"the code object is for {device.architecture.name}, and the card is a {other}"):
        stranger.program("k", lib)
    with pytest.raises(ELFError, match=r"the object defines no nothing\.kd"):
        device.program("nothing", lib)
    stranger.close()
    assert device.hardware_ring("compute").write[0] == written


def test_memory_of_the_card_has_no_address_on_the_host(device: AMDDevice) -> None:
    assert device.allocator.alloc(4096).view is None


def test_an_address_that_is_not_mapped_is_a_fault(device: AMDDevice) -> None:
    lost = device.allocator.alloc(1 << 16, BufferOptions(nolru=True))
    address = lost.address
    device.allocator.free(lost, 1 << 16, BufferOptions(nolru=True))
    device.synchronize()
    with device.submission() as queue:
        queue.write(address, [1])
    with pytest.raises(DeviceFault, match=f"memory fault at {address:#x}") as caught:
        device.synchronize()
    report = caught.value.report
    assert report is not None and report.address is not None and report.address.value == address
    assert report.near is not None and report.near.value.freed
    kind = "PM4 at" if device.packets else "WRITE_DATA"
    assert any(kind in packet for packet in report.rings[0].value.packets)
    with pytest.raises(DeviceFault, match="memory fault"), device.submission():
        pass


def test_a_closed_device_says_so() -> None:
    device = opened()
    memory = device.allocator.alloc(4096)
    device.close()
    device.close()
    with pytest.raises(DeviceError, match="AMD is closed"), device.submission():
        pass
    del memory
    gc.collect()


def test_a_copy_queue_runs_no_kernels_and_takes_only_its_own_devices(device: AMDDevice) -> None:
    from tg_hcq.hostq import HostQueueDevice

    with pytest.raises(TypeError, match="is no program of an AMD device"):
        device.compute_queue().exec(object(), None)  # type: ignore[arg-type]
    other = HostQueueDevice()
    with pytest.raises(TypeError, match="HOSTQ is no AMD device"):
        device.compute_queue().write(4096, [1]).submit(other)
    other.close()


@pytest.mark.parametrize("arch", ["gfx1100", "gfx942"])
@pytest.mark.parametrize("elsewhere", [False, True], ids=["", "in a process of its own"])
def test_two_cards_copy_to_one_another(arch: str, elsewhere: bool) -> None:
    entry = DevEntry("AMD", arch=arch, iface="MOCKKFD")
    with Context(AMD_PROCESS=int(elsewhere)):
        system = mock_kfd(entry)
    assert isinstance(system, RemoteKfd) is elsewhere
    one, other = AMDDevice("AMD", entry, system=system), AMDDevice("AMD:1", entry, system=system)
    assert one.node.gpu_id != other.node.gpu_id
    data, out = random.Random(7).randbytes(70_001), bytearray(70_001)
    here, there = one.allocator.alloc(len(data)), other.allocator.alloc(len(data))
    one.allocator.copyin(here, memoryview(data))
    assert other.allocator.transfer(there, here, len(data), one.allocator)
    assert there.mappings == {"AMD", "AMD:1"}
    other.allocator.copyout(memoryview(out), there)
    assert out == data
    # what was not mapped for the other card is a fault there, and the first goes on
    with other.submission() as queue:
        queue.write(here.address, [1])
    with pytest.raises(DeviceFault, match=r"AMD:1: memory fault"):
        other.synchronize()
    one.synchronize()
    for device in (one, other):
        device.close()
    if isinstance(system, RemoteKfd):
        system.close()


@pytest.mark.parametrize("hostile", [0, 3])
@pytest.mark.parametrize("arch", ["gfx1030", "gfx1201", "gfx942"])
def test_without_a_copy_engine_the_compute_queue_copies(
    arch: str, hostile: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("llvmlite", reason="LLVM compiles the kernel")
    monkeypatch.setitem(cards.CARDS, arch, replace(cards.CARDS[arch], sdma_engines=0))
    with Context(AMD_HOSTILE=hostile):
        device = opened(arch)
        with pytest.raises(KeyError):
            device.hardware_ring("copy")
        assert device.compiler is not None
        program = device.program("k", device.compiler.compile_cached(KERNEL))
        program(global_size=(1, 1, 1), local_size=(32, 1, 1))  # so that there are caches
        data, out = random.Random(arch).randbytes(9001), bytearray(9001)
        here, there = (device.allocator.alloc(len(data)) for _ in range(2))
        for memory in (here, there):
            device.allocator.copyin(memory, memoryview(data))
        for _ in range(2):  # what caches still have of the first is not what the second finds
            device.allocator.copyin(here, memoryview(data))
            assert device.allocator.transfer(there, here, len(data), device.allocator)
            device.allocator.copyout(memoryview(out), there)
            assert out == data
            data = data[::-1]
        device.close()


def test_a_reset_brings_the_queues_back(device: AMDDevice) -> None:
    never, host = device.new_signal(), device.allocator.alloc(64, HOST_OPTIONS)
    device.compute_queue().wait(never, 1).write(host.address, [1]).submit(device)
    device.reset()
    with device.submission() as queue:
        queue.write(host.address + 4, [2])
    device.synchronize()
    assert host.host_view("I").read(0, 2) == [0, 2]


def test_what_the_host_stores_to_the_card_is_flushed_before_a_submission(device: AMDDevice) -> None:
    register = device.allocator.card.flush_register()
    assert register and device.allocator.flush[0] == 0
    out, options = device.allocator.alloc(64, HOST_OPTIONS), BufferOptions(device_visible=True, nolru=True)
    window = device.allocator.alloc(4096, options)
    assert device.allocator.flush[0] == register
    copies = device.copy_queue
    assert copies is not None

    def copied(flush: bool) -> int:
        """What a copy of the first word finds, with or without the store to the register."""
        device.allocator.flush[0] = register if flush else 0
        with device.timeline.submission(copies()) as queue:
            queue.copy(out.address, window.address, 4)
        device.synchronize()
        return out.host_view("I")[0]

    window.host_view("I")[0] = 5
    assert (copied(False), copied(True)) == (0, 5)
    window.host_view("I")[0] = 6
    assert (copied(False), copied(True)) == (5, 6)
    with device.submission() as queue:
        queue.write(window.address, [7])
    device.synchronize()
    assert window.host_view("I")[0] == 7, "the host sees what the card stores"
    device.allocator.free(window, 4096, options)
    device.synchronize()
    assert device.allocator.flush[0] == 0


def test_a_flush_keeps_what_the_card_stored_meanwhile(device: AMDDevice) -> None:
    """Card and host store to one page, each its own words; the card's are those of a submission that flushed first."""
    window = device.allocator.alloc(4096, BufferOptions(device_visible=True, nolru=True))
    words, rng = window.host_view("I"), random.Random(5)
    known = [0] * 64
    for _ in range(8):
        mine, its = rng.sample(range(64), 9), rng.randrange(64)
        for at in mine:
            words[at] = known[at] = rng.getrandbits(32)
        with device.submission() as queue:
            known[its] = rng.getrandbits(32)
            queue.write(window.address + 4 * its, [known[its]])
        device.synchronize()
        assert words.read(0, 64) == known


@pytest.mark.parametrize("large_bar", [False, True])
def test_without_a_way_to_flush_the_host_sees_its_own_memory_only(
    large_bar: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = opened(large_bar=large_bar)
    if large_bar:
        monkeypatch.setattr(device.allocator.card, "_flush", 0)
    memory = device.allocator.alloc(4096, BufferOptions(device_visible=True))
    assert device.allocator.flush[0] == 0
    with device.submission() as queue:
        queue.write(memory.address, [5])
    device.synchronize()
    assert memory.host_view("I")[0] == 5
    device.close()


@pytest.mark.parametrize("offset", [0, 8, 4092])
def test_memory_of_the_process_is_addressed_where_it_lies(device: AMDDevice, offset: int) -> None:
    pages = device.system.allocate(3 * 4096)
    start = -(-pages.address // 4096) * 4096 + offset
    options = BufferOptions(external_ptr=start, nolru=True)
    memory = device.allocator.alloc(16, options)
    assert memory.address == start
    with device.submission() as queue:
        queue.write(start, [1, 2, 3, 4])
    device.synchronize()
    assert MMIO(start, 16, "I").read(0, 4) == [1, 2, 3, 4]
    back = bytearray(16)
    device.allocator.copyout(memoryview(back), memory)
    assert back == MMIO(start, 16).bytes()
    device.allocator.free(memory, 16, options)
    device.synchronize()
    device.allocator.reap()
    with device.submission() as queue:
        queue.write(start, [5])
    with pytest.raises(DeviceFault, match="memory fault"):
        device.synchronize()


def test_the_clock_is_compared_with_the_hosts_by_the_kernel(device: AMDDevice) -> None:
    calibrate(device)
    assert device.clock_known and device.clock.error_ns is not None and device.clock.error_ns < 50_000_000
    signal = device.new_signal()
    before = time.perf_counter_ns()
    with device.submission() as queue:
        queue.timestamp(signal)
    device.synchronize()
    after, error = time.perf_counter_ns(), device.clock.error_ns
    assert before - error <= device.clock.host(nanoseconds(signal)) <= after + error


SCRATCH = """
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
define amdgpu_kernel void @k(ptr addrspace(1) %out, i32 %n) #0 {
  %a = alloca [128 x i32], align 4, addrspace(5)
  %lane = call i32 @llvm.amdgcn.workitem.id.x()
  %group = call i32 @llvm.amdgcn.workgroup.id.x()
  %before = mul i32 %group, 64
  %item = add i32 %before, %lane
  %i = and i32 %item, 127
  %j = xor i32 %i, 127
  %p = getelementptr [128 x i32], ptr addrspace(5) %a, i32 0, i32 %i
  %q = getelementptr [128 x i32], ptr addrspace(5) %a, i32 0, i32 %j
  %x = mul i32 %item, %n
  store volatile i32 %x, ptr addrspace(5) %p
  store volatile i32 %item, ptr addrspace(5) %q
  %y = load volatile i32, ptr addrspace(5) %p
  %to = getelementptr i32, ptr addrspace(1) %out, i32 %item
  store i32 %y, ptr addrspace(1) %to
  ret void
}
attributes #0 = { "amdgpu-no-dispatch-ptr" "amdgpu-no-queue-ptr" "amdgpu-no-dispatch-id" "amdgpu-no-implicitarg-ptr"
  "amdgpu-no-workgroup-id-y" "amdgpu-no-workgroup-id-z" "amdgpu-no-workitem-id-y" "amdgpu-no-workitem-id-z"
  "amdgpu-flat-work-group-size"="64,64" }
"""


def test_private_memory_is_each_work_items_own(device: AMDDevice) -> None:
    pytest.importorskip("llvmlite", reason="LLVM compiles the kernel")
    assert device.compiler is not None
    program = device.program("k", device.compiler.compile_cached(SCRATCH))
    count = 64 * 7
    out = device.allocator.alloc(4 * count, HOST_OPTIONS)
    program(out, global_size=(7, 1, 1), local_size=(64, 1, 1), vals=(13,))
    device.synchronize()
    assert out.host_view("I").read(0, count) == [13 * item for item in range(count)]


@pytest.mark.parametrize("device", PM4, indirect=True)
def test_where_private_memory_of_a_launch_is(device: AMDDevice) -> None:
    """What TMPRING_SIZE says fits in the scratch; where it is, registers say, and a descriptor on gfx10.3."""
    pytest.importorskip("llvmlite", reason="LLVM compiles the kernel")
    assert device.compiler is not None and device.renderer is not None
    program = device.program("k", device.compiler.compile_cached(SCRATCH))
    assert program.kernel.scratch >= 512
    args = program.fill_args([device.allocator.alloc(256)], [7])
    queue = device.compute_queue().exec(program, args, (1, 1, 1), (64, 1, 1))
    queue.complete(device)
    assert queue._replay is not None and queue._ring(device) is not None
    queue.submit(device)  # fills in where the scratch is, whatever the card thinks of the kernel
    found = registers(list(queue._sent))
    ring = device.architecture.registers.COMPUTE_TMPRING_SIZE.decode(found[0x2E18])
    gfx10 = device.architecture.name.startswith("gfx10")
    nbytes = ring["WAVESIZE"] * (1024 if gfx10 else 256)
    assert nbytes >= 32 * program.kernel.scratch
    assert ring["WAVES"] * nbytes * (1 if gfx10 else device.node.engines) <= device.scratch.nbytes
    if gfx10:
        low, high, size, how = (found[0x2E40 + i] for i in range(4))
        address = low | (high & 0xFFFF) << 32
        assert high >> 16 == 0x8000 and size == 0xFFFFFFFF and how == 0x21C14FAC
    else:
        address = (found[0x2E10] | found[0x2E11] << 32) << 8
    noted = device.allocator.allocations.nearest(address)
    assert noted is not None and noted.address == address and noted.nbytes == device.scratch.nbytes
