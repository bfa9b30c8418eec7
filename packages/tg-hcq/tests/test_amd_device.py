"""The driver on the software card: queues, memory, faults and recovery. Nothing here looks into the card."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Iterator

import pytest

from tg_hcq import DeviceFault
from tg_hcq.amd import AMDDevice
from tg_hcq.core.allocator import HOST_OPTIONS
from tg_hcq.core.system import offer_system
from tg_hcq.simulate.amd.kfd import mock_kfd
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
ARCHITECTURES = ["gfx1030", "gfx1100", "gfx1201"]


def opened(arch: str = "gfx1100", **options: int) -> AMDDevice:
    entry = DevEntry("AMD", arch=arch, iface="MOCKKFD")
    device = AMDDevice("AMD", entry, system=mock_kfd(entry), **options)
    device.timeout_ms = 10_000
    return device


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
    assert ring.write[0] > 4 * len(ring.words) and ring.used() == 0
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


def test_the_registers_of_a_launch(device: AMDDevice) -> None:
    pytest.importorskip("llvmlite", reason="LLVM compiles the kernel")
    assert device.compiler is not None
    program = device.program("k", device.compiler.compile(KERNEL))
    queue = device.compute_queue().exec(program, program.fill_args([]), (3, 2, 1), (64, 1, 1))
    words, at = list(queue._words), 0
    found: dict[int, int] = {}
    while at < len(words):
        count = (words[at] >> 16 & 0x3FFF) + 2
        opcode, body = words[at] >> 8 & 0xFF, words[at + 1 : at + count]
        if opcode == 0x76:  # SET_SH_REG: the numbers begin at 0x2C00
            found |= {0x2C00 + body[0] + i: word for i, word in enumerate(body[1:])}
        at += count
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
    lib = device.compiler.compile(KERNEL)
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
    assert any("WRITE_DATA" in packet for packet in report.rings[0].value.packets)
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


def test_two_cards_copy_to_one_another() -> None:
    entry = DevEntry("AMD", arch="gfx1100", iface="MOCKKFD")
    system = mock_kfd(entry)
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


def test_a_reset_brings_the_queues_back(device: AMDDevice) -> None:
    never, host = device.new_signal(), device.allocator.alloc(64, HOST_OPTIONS)
    device.compute_queue().wait(never, 1).write(host.address, [1]).submit(device)
    device.reset()
    with device.submission() as queue:
        queue.write(host.address + 4, [2])
    device.synchronize()
    assert host.host_view("I").read(0, 2) == [0, 2]
