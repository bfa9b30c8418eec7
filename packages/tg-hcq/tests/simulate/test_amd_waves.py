"""Whole kernels, compiled by LLVM, on the software GPU of AMD: registers as the user guide says, results by numpy."""

from __future__ import annotations

import re
import struct
from contextlib import nullcontext

import numpy as np
import pytest

from tg_hcq.simulate.amd import clock
from tg_hcq.simulate.amd.machine import machine
from tg_hcq.simulate.amd.testing.assembler import LLVM_MC, MISSING
from tg_hcq.simulate.amd.testing.program import Bed
from tg_hcq.simulate.engine import Access, AddressSpace, EngineFault, FaultKind, Launch, Memory, Wave
from tg_runtime.compilers.amdgpu import AMDGPUCompiler
from tg_runtime.host.elf import ELFFile

ABSENT = ("dispatch-ptr", "queue-ptr", "dispatch-id", "implicitarg-ptr", "workgroup-id-y", "workgroup-id-z",
          "workitem-id-y", "workitem-id-z")  # fmt: skip
KERNEL = f"""
target triple = "amdgcn-amd-amdhsa"
define amdgpu_kernel void @k(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %c, i32 %n) #0 {{
  %group = call i32 @llvm.amdgcn.workgroup.id.x()
  %thread = call i32 @llvm.amdgcn.workitem.id.x()
  %first = mul i32 %group, 64
  %i = add i32 %first, %thread
  %inside = icmp slt i32 %i, %n
  br i1 %inside, label %do, label %done
do:
  %pa = getelementptr float, ptr addrspace(1) %a, i32 %i
  %pb = getelementptr float, ptr addrspace(1) %b, i32 %i
  %pc = getelementptr float, ptr addrspace(1) %c, i32 %i
  %x = load float, ptr addrspace(1) %pa
  %y = load float, ptr addrspace(1) %pb
  %xy = fmul float %x, %y
  %z = fadd float %xy, 1.0
  store float %z, ptr addrspace(1) %pc
  br label %done
done:
  ret void
}}
declare i32 @llvm.amdgcn.workgroup.id.x()
declare i32 @llvm.amdgcn.workitem.id.x()
attributes #0 = {{ {" ".join(f'"amdgpu-no-{name}"' for name in ABSENT)} "amdgpu-flat-work-group-size"="1,64" }}
"""
CODE, PART = 0x10000, 4096
DATA = 0x7EFF_FFFF_EF00  # the first array crosses a multiple of 4 GiB, so that addresses carry
KEEP_SUBNORMALS = 0xF0


def code() -> tuple[bytes, int]:
    """The instructions of the kernel, and how many user SGPRs its descriptor counts (COMPUTE_PGM_RSRC2, 5 to 1)."""
    image = AMDGPUCompiler("gfx1100").compile_cached(KERNEL)
    text, descriptor = (
        next(image[s.offset : s.offset + s.size] for s in ELFFile(image).sections if s.name == name)
        for name in (".text", ".rodata")
    )
    return text, descriptor[52] >> 1 & 31


def run(text: bytes, user: int, count: int, groups: int, mode: int = KEEP_SUBNORMALS) -> tuple[np.ndarray, np.ndarray]:
    """What the kernel stored, with what follows it, and what numpy says."""
    space, memory = AddressSpace(), Memory(8 * PART)
    space.map(CODE, memory, 0, PART, Access.READ | Access.EXECUTE)
    space.map(DATA, memory, PART, 4 * PART, Access.READ | Access.WRITE)
    memory.view[: len(text)] = text
    rng = np.random.default_rng(count)
    x, y = (rng.standard_normal(512, np.float32) * np.float32(10.0) ** rng.integers(-30, 8, 512) for _ in range(2))
    x, y = x.astype(np.float32), y.astype(np.float32)
    arguments = struct.pack("<QQQi", DATA + PART, DATA + 2 * PART, DATA + 3 * PART, count)
    for part, data in enumerate((arguments, x.tobytes(), y.tobytes(), b"\xff" * 2048), 1):
        memory.view[part * PART : part * PART + len(data)] = data

    def setup(wave: Wave) -> None:
        wave.set_scalar("s", DATA, 0, words=2)
        wave.set_scalar("s", wave.group, user)
        wave.set_scalar("mode", mode)
        wave.set_row(0, [32 * wave.index + lane for lane in range(32)])

    machine("gfx1100", 32, space).run(Launch(CODE, groups, 2, setup))
    found = np.frombuffer(memory.view[4 * PART : 4 * PART + 2048], np.float32)
    return found, x * y + np.float32(1)


@pytest.mark.parametrize("count", [0, 1, 31, 32, 63, 64, 97, 320])
def test_kernel_of_llvm(count: int) -> None:
    """Products of numbers of many magnitudes; lanes beyond the end store nothing."""
    found, expected = run(*code(), count, 5)
    assert found[:count].tobytes() == expected[:count].tobytes()
    assert (found[count:].view(np.uint32) == 0xFFFFFFFF).all()


def test_unknown_mode_is_refused() -> None:
    """Handlers that keep subnormals do not run where they are flushed."""
    with pytest.raises(EngineFault, match="MODE is 0xc0"):
        run(*code(), 64, 1, mode=0xC0)


@pytest.mark.parametrize(("words", "float_"), [
    ((0xBFB00000,), False),  # s_endpgm
    ((0xBFB00000, 0x06000100, 0xBFB00000), False),  # a sum that nothing leads to
    ((0xBFA20001, 0x06000100, 0xBFB00000), True),  # s_cbranch_scc1: either way
    ((0xBFA10001, 0xBFB00000, 0x06000100, 0xBFB00000), True),  # s_cbranch_scc0: what is jumped to
    ((0xBFA00001, 0x06000100, 0xBFB00000), False),  # s_branch
    ((0xBE804800,), True),  # s_setpc_b64
])
def test_modes_do_not_matter_to_kernels_without_floats(words: tuple[int, ...], float_: bool) -> None:
    with pytest.raises(EngineFault, match="MODE is 0xc0") if float_ else nullcontext():
        run(struct.pack(f"<{len(words)}I", *words), 2, 64, 1, mode=0xC0)


@pytest.mark.parametrize(("words", "why"), [
    ((0xBFBF0001,), "SETPRIO|not executed yet|no instruction"),
    ((0x7E003600,), "V_PIPEFLUSH.*not executed yet"),
])
def test_what_is_not_executed_is_refused(words: tuple[int, ...], why: str) -> None:
    """An instruction, or a modifier, without a handler is a fault at its address, before any wave goes on."""
    with pytest.raises(EngineFault, match=re.compile(why, re.IGNORECASE)) as error:
        run(struct.pack(f"<{len(words)}I", *words), 2, 64, 1)
    assert (error.value.fault.kind, error.value.fault.pc) == (FaultKind.UNDECODABLE, CODE)


CLOCKS = {
    "gfx1030": ("s_memtime s[8:9]", "s_memrealtime s[10:11]", "s_waitcnt lgkmcnt(0)"),
    "gfx942": ("s_memtime s[8:9]", "s_memrealtime s[10:11]", "s_waitcnt lgkmcnt(0)"),
    "gfx950": ("s_memtime s[8:9]", "s_memrealtime s[10:11]", "s_waitcnt lgkmcnt(0)"),
    "gfx1100": ("", "s_sendmsg_rtn_b64 s[10:11], sendmsg(MSG_RTN_GET_REALTIME)", "s_waitcnt lgkmcnt(0)"),
    "gfx1201": ("", "s_sendmsg_rtn_b64 s[10:11], sendmsg(MSG_RTN_GET_REALTIME)", "s_wait_kmcnt 0x0"),
}  # fmt: skip
"""How programs ask for the time, and wait for it."""


@pytest.mark.skipif(LLVM_MC is None, reason=MISSING)
@pytest.mark.parametrize("hostile", [False, True])
@pytest.mark.parametrize("arch", CLOCKS)
def test_programs_read_the_clock(arch: str, hostile: bool) -> None:
    """Which is that of timestamps; hostile cards answer late."""
    cycles_of, time_of, wait = CLOCKS[arch]
    bed, first = Bed(arch, 64, hostile=hostile), (clock.cycles(), clock.clock())
    text = f"{cycles_of}\n {time_of}\n {wait}\n s_mov_b64 s[12:13], s[10:11]\n {time_of}\n {wait}\n s_endpgm"
    bed.run(text)
    (wave,), last = bed.waves, (clock.cycles(), clock.clock())
    assert first[1] <= wave.scalar("s", 12, 2) <= wave.scalar("s", 10, 2) <= last[1]
    assert not cycles_of or first[0] <= wave.scalar("s", 8, 2) <= last[0]
    if hostile:
        with pytest.raises(EngineFault, match="not waited for"):
            Bed(arch, 64, hostile=True).run(f"{time_of}\n s_mov_b64 s[12:13], s[10:11]\n s_endpgm")
