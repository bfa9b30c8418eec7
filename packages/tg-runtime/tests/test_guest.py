"""Kernels for other processors, run in an emulator: every case of the code generator, and the device as a whole."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Sequence

import numpy as np
import pytest

from tg_codegen.conformance import Case, cases
from tg_codegen.machine.renderer import Renderer
from tg_codegen.render.c.clang import ClangRenderer
from tg_codegen.render.llvm import LLVMRenderer
from tg_dtype import dtypes
from tg_lazy import Context
from tg_runtime import Device, DeviceError, DeviceUnavailable, parse_dev
from tg_runtime.compilers import llvm
from tg_runtime.device.compiled import Compiled
from tg_runtime.emulators.qemu.guest import Guest, GuestProgram, missing
from tg_runtime.host import elf
from tg_runtime.host.arch import MACHINES, CPUArch
from tg_runtime.testing import DeviceConformance
from tg_runtime.testing.arithmetic import Casts, Elementwise, Reductions

ARM, RISCV, PLAIN_RISCV = "QEMU+CPU:LLVM:aarch64", "QEMU+CPU:LLVM:riscv64", "QEMU+CPU:LLVM:riscv64,-v"
OLD_X86 = "QEMU+CPU:LLVM:x86_64,x86-64-v2"


def why_not(setting: str) -> str:
    """Why a device cannot be tested here; empty if it can."""
    (entry,) = parse_dev(setting)
    return Device.load(entry.device).unavailable(entry) or ""


def needs(setting: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(bool(why_not(setting)), reason=why_not(setting) or "available")


@pytest.fixture
def opened(request: pytest.FixtureRequest) -> Compiled:
    """The device that a setting opens."""
    setting = request.param
    if why_not(setting):
        pytest.skip(why_not(setting))
    with Context(DEV=setting):
        return Device["CPU"]


def launch(device: Compiled, name: str, lib: bytes, buffers: Sequence[bytearray], vals: Sequence[int] = ()) -> None:
    """Runs a program on copies of the buffers, and brings them back."""
    assert device.runtime is not None
    program = device.runtime(name, lib)
    blocks = [device.allocator.alloc(max(len(data), 1)) for data in buffers]
    for block, data in zip(blocks, buffers, strict=True):
        block.view(len(data))[:] = data
    program(*blocks, vals=vals)
    for block, data in zip(blocks, buffers, strict=True):
        data[:] = block.view(len(data))


EMULATOR_CRASHES = {RISCV: re.compile(r"(cast|tails)_float")}
"""Cases that QEMU 7.2 dies of: where vectors of floats become integers (vfcvt.rtz, vfncvt.rtz, vfwcvt.rtz)."""


def every_case(setting: str, renderer: type[Renderer]) -> list[object]:
    target = CPUArch.parse(setting.rpartition(":")[2]).target(1)
    crashes = EMULATOR_CRASHES.get(setting)
    return [pytest.param(setting, case, id=f"{setting.partition('+')[2]}-{case.name}")
            for case in cases(renderer(target), lanes=max(target.vector_bytes // 4, 4))
            if not (crashes and crashes.match(case.name))]


@pytest.mark.drawn(30)
@pytest.mark.parametrize(
    ("opened", "case"),
    [*every_case(ARM, LLVMRenderer), *every_case("QEMU+CPU:CLANG:aarch64", ClangRenderer),
     *every_case(RISCV, LLVMRenderer), *every_case(PLAIN_RISCV, LLVMRenderer), *every_case(OLD_X86, LLVMRenderer)],
    indirect=["opened"],
)  # fmt: skip
def test_conformance(opened: Compiled, case: Case) -> None:
    assert opened.renderer is not None and opened.compiler is not None
    lib = opened.compiler.compile(opened.renderer.render(case.name, case.uops))
    buffers = case.buffers()
    launch(opened, case.name, lib, buffers, case.vals)
    case.check(buffers)


SAMPLE = (
    dtypes.bool, dtypes.int8, dtypes.uint16, dtypes.uint32, dtypes.int64, dtypes.float16, dtypes.bfloat16,
    dtypes.float32, dtypes.fp8e4m3,
)  # fmt: skip
"""Kinds of dtypes; :func:`test_conformance` has the ops of all of them."""


@pytest.mark.alike
@pytest.mark.usefixtures("some_dtypes")
@needs(ARM)
class TestArm(DeviceConformance):
    device = "CPU"
    dev = ARM
    dtypes = SAMPLE


@pytest.mark.alike
@pytest.mark.slow
@needs(ARM)
class TestArmOfEveryDtype(Elementwise, Casts, Reductions):
    device = "CPU"
    dev = ARM


@pytest.mark.alike
@pytest.mark.usefixtures("some_dtypes")
@needs(PLAIN_RISCV)
class TestRISCV(DeviceConformance):
    device = "CPU"
    dev = PLAIN_RISCV
    dtypes = SAMPLE


@pytest.mark.alike
@pytest.mark.slow
@needs(PLAIN_RISCV)
class TestRISCVOfEveryDtype(Elementwise, Casts, Reductions):
    device = "CPU"
    dev = PLAIN_RISCV


@pytest.mark.alike
@pytest.mark.usefixtures("some_dtypes")
@needs(RISCV)
class TestRISCVVectors(DeviceConformance):
    device = "CPU"
    dev = RISCV
    # they become integers from vectors of floats: see EMULATOR_CRASHES
    test_casts = None  # type: ignore[assignment]
    test_elementwise = None  # type: ignore[assignment]


@needs(ARM)
def test_the_plan_follows_the_registers() -> None:
    """32 registers of 16 bytes hold a larger tile than 16 of them."""
    arm, x86 = (CPUArch.parse(text).target(1) for text in ("aarch64", "x86_64,x86-64-v2"))
    assert (arm.vector_bytes, arm.registers, x86.vector_bytes, x86.registers) == (16, 32, 16, 16)
    with Context(DEV=ARM):
        device = Device["CPU"]
    assert isinstance(device.compiler, llvm.LLVMCompiler)
    assert device.renderer is not None and device.renderer.target == arm
    source = """
    define void @f(ptr %o, ptr %a, ptr %b) {
      %x = load <4 x float>, ptr %a
      %y = load <4 x float>, ptr %b
      %z = call <4 x float> @llvm.fma.v4f32(<4 x float> %x, <4 x float> %y, <4 x float> %x)
      store <4 x float> %z, ptr %o
      ret void
    }
    declare <4 x float> @llvm.fma.v4f32(<4 x float>, <4 x float>, <4 x float>)
    """
    assert "fmla\tv" in device.compiler.assembly(source)
    assert "vfmadd.vv" in llvm.LLVMCompiler(CPUArch.parse("riscv64")).assembly(source)


# the guest


CALLS = """
@table = internal constant [3 x double] [double 1.0, double 2.5, double 4.0]
@state = internal global i32 40
declare double @pow(double, double)
declare double @fmod(double, double)
define internal double @inner(double %x) noinline {
  %y = call double @pow(double %x, double 2.0)
  ret double %y
}
define void @f(ptr %out, i32 %i) {
  %p = getelementptr [3 x double], ptr @table, i64 0, i32 %i
  %x = load double, ptr %p
  %y = call double @inner(double %x)
  %r = call double @fmod(double %y, double 5.0)
  %old = load i32, ptr @state
  %new = add i32 %old, 1
  store i32 %new, ptr @state
  %n = sitofp i32 %new to double
  %sum = fadd double %r, %n
  store double %sum, ptr %out
  ret void
}
"""


@pytest.mark.parametrize("opened", [ARM, RISCV, OLD_X86], indirect=True)
def test_relocations(opened: Compiled) -> None:
    """Constants, state, calls near and far, through the loader and the processor."""
    assert opened.compiler is not None and opened.runtime is not None
    program = opened.runtime("f", opened.compiler.compile(CALLS))
    out = opened.allocator.alloc(8)
    program(out, vals=(1,))
    assert np.frombuffer(out.view(8), np.float64)[0] == 6.25 % 5 + 41
    program(out, vals=(2,))
    assert np.frombuffer(out.view(8), np.float64)[0] == 16 % 5 + 42


@needs(ARM)
def test_what_the_guest_does_not_see_is_copied() -> None:
    with Context(DEV=ARM):
        device = Device["CPU"]
        assert device.compiler is not None
        lib = device.compiler.compile("define void @f(ptr %o) { store i32 7, ptr %o ret void }")
        assert device.runtime is not None
        program = device.runtime("f", lib)
        from tg_runtime.memory.host import HostMemory

        block = HostMemory.allocate(4)
        assert program(block, wait=True) >= 0.0  # type: ignore[operator]
        assert bytes(block.view(4)) == b"\7\0\0\0"


@needs(ARM)
def test_a_kernel_that_ends_the_guest() -> None:
    guest = Guest(CPUArch.parse("aarch64"))
    compiler = llvm.LLVMCompiler(CPUArch.parse("aarch64"))
    good = GuestProgram(guest, "f", compiler.compile("define void @f(ptr %o) { store i32 7, ptr %o ret void }"))
    bad = GuestProgram(guest, "g", compiler.compile("define void @g(ptr %o) { store i32 7, ptr null ret void }"))
    block = guest.arena.allocate(4)
    with pytest.raises(DeviceError, match=f"kernel g: the emulated aarch64 process ended by signal {signal.SIGSEGV}"):
        bad(block)
    good(block)
    assert bytes(block.view(4)) == b"\7\0\0\0"
    assert guest.generation == 2
    with pytest.raises(elf.ELFError, match=r"machine 62; AArch64 \(183\) can be loaded"):
        GuestProgram(guest, "f", llvm.LLVMCompiler().compile("define void @f() { ret void }"))
    with pytest.raises(elf.ELFError, match="undefined symbol nobody_has_this"):
        text = "declare void @nobody_has_this()\ndefine void @f() { call void @nobody_has_this() ret void }"
        GuestProgram(guest, "f", compiler.compile(text))


@needs(ARM)
def test_nothing_grows() -> None:
    guest = Guest(CPUArch.parse("aarch64"))
    lib = llvm.LLVMCompiler(CPUArch.parse("aarch64")).compile("define void @f(ptr %o) { store i32 7, ptr %o ret void }")
    for _ in range(50):
        GuestProgram(guest, "f", lib)(guest.arena.allocate(5 << 20))
    assert len(guest.arena.gaps) == 1
    files = len(os.listdir("/proc/self/fd"))
    del guest
    assert len(os.listdir("/proc/self/fd")) < files


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tg_runtime.emulators.qemu.guest.find_tool", lambda *names: None)
    assert "apt install qemu-user-static" in (missing(MACHINES["aarch64"]) or "")
    monkeypatch.setattr(
        "tg_runtime.emulators.qemu.guest.find_tool", lambda *names: names[0] if "qemu" in names[0] else None
    )
    assert "apt install gcc-riscv64-linux-gnu" in (missing(MACHINES["riscv64"]) or "")


def test_code_that_cannot_run_here() -> None:
    other = "riscv64"
    with Context(DEV=f"CPU:LLVM:{other}"), pytest.raises(DeviceUnavailable, match=f"DEV=QEMU.CPU:LLVM:{other} runs it"):
        _ = Device["CPU"]
