"""Listings of code objects that LLVM makes of kernels, and of what is no code object."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tg_hcq.simulate.amd.isa import decoder, listing, text
from tg_hcq.simulate.amd.isa.__main__ import main
from tg_hcq.simulate.engine import Undecodable
from tg_runtime.host.elf import ELFError

llvm = pytest.importorskip("llvmlite.binding", reason="llvmlite is not installed")
OBJDUMP = shutil.which("llvm-objdump-22")

# Kernels that together use most kinds of instructions, each for the processors that have them.
ALL = ("gfx1030", "gfx1100", "gfx1201", "gfx942", "gfx950")
RDNA, CDNA = ALL[:3], ALL[3:]

FLOATS = """
  %x = load float, ptr addrspace(1) %p
  %y = load float, ptr addrspace(1) %q
  %0 = call float @llvm.fma.f32(float %x, float %y, float 0x3FF3333340000000)
  %1 = call float @llvm.amdgcn.rcp.f32(float %0)
  %2 = call float @llvm.sqrt.f32(float %1)
  %3 = call float @llvm.amdgcn.exp2.f32(float %2)
  %4 = call float @llvm.amdgcn.log.f32(float %3)
  %5 = call float @llvm.amdgcn.sin.f32(float %4)
  %6 = fdiv float %5, %y
  %7 = call float @llvm.maxnum.f32(float %6, float %x)
  %8 = call float @llvm.fabs.f32(float %7)
  %9 = fneg float %8
  %10 = call float @llvm.floor.f32(float %9)
  %11 = call float @llvm.copysign.f32(float %10, float %x)
  %12 = call float @llvm.amdgcn.fmed3.f32(float %11, float 0.0, float 1.0)
  %13 = call float @llvm.ldexp.f32.i32(float %12, i32 %n)
  %14 = call i1 @llvm.is.fpclass.f32(float %13, i32 3)
  %15 = select i1 %14, float %13, float -2.5
  store float %15, ptr addrspace(1) %q
"""
HALVES = """
  %x = load <2 x half>, ptr addrspace(1) %p
  %y = load <2 x half>, ptr addrspace(1) %q
  %0 = call <2 x half> @llvm.fma.v2f16(<2 x half> %x, <2 x half> %y, <2 x half> <half 1.0, half 2.0>)
  %1 = fneg <2 x half> %0
  %2 = shufflevector <2 x half> %1, <2 x half> %x, <2 x i32> <i32 1, i32 2>
  %3 = fadd <2 x half> %2, %y
  %4 = extractelement <2 x half> %3, i32 1
  %5 = call half @llvm.sqrt.f16(half %4)
  %6 = fpext half %5 to float
  %7 = extractelement <2 x half> %x, i32 0
  %8 = fpext half %7 to float
  %9 = call float @llvm.fma.f32(float %6, float %8, float %8)
  %10 = fptrunc float %9 to half
  %11 = fcmp olt half %10, 0xH3C00
  %12 = select i1 %11, half %10, half 0xH4900
  store half %12, ptr addrspace(1) %q
  %13 = bitcast <2 x half> %x to <2 x bfloat>
  %14 = fadd <2 x bfloat> %13, %13
  store <2 x bfloat> %14, ptr addrspace(1) %p
  %15 = bitcast <2 x half> %y to <2 x i16>
  %16 = mul <2 x i16> %15, %15
  %17 = ashr <2 x i16> %16, splat (i16 3)
  store <2 x i16> %17, ptr addrspace(1) %p
"""
DOUBLES = """
  %x = load double, ptr addrspace(1) %p
  %y = load double, ptr addrspace(1) %q
  %0 = fdiv double %x, %y
  %1 = call double @llvm.sqrt.f64(double %0)
  %2 = call double @llvm.fma.f64(double %1, double %x, double 0x3FF0000100000000)
  %3 = call double @llvm.rint.f64(double %2)
  %4 = fptosi double %3 to i32
  %5 = uitofp i32 %4 to double
  %6 = fptosi double %5 to i64
  %7 = fcmp ogt double %5, 0x3FE0000000000000
  %8 = select i1 %7, i64 %6, i64 -1
  store i64 %8, ptr addrspace(1) %q
"""
INTEGERS = """
  %x = load i64, ptr addrspace(1) %p
  %y = load i64, ptr addrspace(1) %q
  %0 = sdiv i64 %x, %y
  %1 = mul i64 %0, %x
  %2 = lshr i64 %1, %y
  %3 = call i64 @llvm.ctpop.i64(i64 %2)
  %4 = call i64 @llvm.ctlz.i64(i64 %3, i1 false)
  %5 = call i64 @llvm.bitreverse.i64(i64 %4)
  %6 = trunc i64 %5 to i32
  %7 = call i32 @llvm.sadd.sat.i32(i32 %6, i32 %n)
  %8 = call i32 @llvm.fshr.i32(i32 %7, i32 %6, i32 7)
  %9 = call i32 @llvm.amdgcn.ubfe.i32(i32 %8, i32 %n, i32 5)
  %10 = call i32 @llvm.umax.i32(i32 %9, i32 305419896)
  %11 = trunc i32 %10 to i16
  %12 = mul i16 %11, 4660
  %13 = add i16 %12, -5
  %14 = urem i32 %10, 10
  store i16 %13, ptr addrspace(1) %q
  store i32 %14, ptr addrspace(1) %p
  %15 = call i32 @llvm.amdgcn.perm(i32 %6, i32 %7, i32 50462976)
  %16 = call i32 @llvm.amdgcn.alignbyte(i32 %15, i32 %7, i32 1)
  %17 = call i32 @llvm.amdgcn.mbcnt.lo(i32 -1, i32 %16)
  store i32 %17, ptr addrspace(1) %q
"""
ATOMICS = """
  %x = load i32, ptr addrspace(1) %p
  %0 = atomicrmw add ptr addrspace(1) %q, i32 %x syncscope("agent") monotonic
  %1 = atomicrmw umax ptr addrspace(1) %q, i32 %0 seq_cst
  %2 = cmpxchg ptr addrspace(1) %q, i32 %x, i32 %1 acq_rel acquire
  %3 = atomicrmw xchg ptr addrspace(3) @shared, i32 %x syncscope("workgroup") acq_rel
  %4 = atomicrmw sub ptr addrspace(3) @shared, i32 %3 monotonic
  %5 = sitofp i32 %4 to float
  %6 = atomicrmw fadd ptr addrspace(3) @shared, float %5 monotonic
  %7 = atomicrmw fadd ptr addrspace(1) %q, float %5 syncscope("agent") monotonic
  fence syncscope("agent") acq_rel
  fence seq_cst
  %8 = addrspacecast ptr addrspace(1) %p to ptr
  %9 = atomicrmw or ptr %8, i64 77 monotonic
  store i64 %9, ptr addrspace(1) %q
"""
LOCAL = """
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %a = getelementptr [256 x float], ptr addrspace(3) @shared, i32 0, i32 %i
  %x = load float, ptr addrspace(1) %p
  store float %x, ptr addrspace(3) %a
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  %j = sub i32 255, %i
  %b = getelementptr [256 x float], ptr addrspace(3) @shared, i32 0, i32 %j
  %y = load <4 x float>, ptr addrspace(3) %b, align 4
  %c = getelementptr i8, ptr addrspace(3) @shared, i32 %i
  %z = load i8, ptr addrspace(3) %c
  store i8 %z, ptr addrspace(1) %p
  store <4 x float> %y, ptr addrspace(1) %q
"""
SCRATCH = """
  %a = alloca [64 x i32], addrspace(5)
  %i = getelementptr [64 x i32], ptr addrspace(5) %a, i32 0, i32 %n
  %x = load volatile i32, ptr addrspace(1) %p
  store volatile i32 %x, ptr addrspace(5) %i
  %b = getelementptr [64 x i32], ptr addrspace(5) %a, i32 0, i32 %x
  %y = load volatile <2 x i16>, ptr addrspace(5) %b
  store volatile i8 3, ptr addrspace(5) %b
  %c = addrspacecast ptr addrspace(5) %b to ptr
  store volatile i32 5, ptr %c
  store <2 x i16> %y, ptr addrspace(1) %q
"""
LANES = """
  %x = load i32, ptr addrspace(1) %p
  %0 = call i32 @llvm.amdgcn.readfirstlane.i32(i32 %x)
  %1 = call i32 @llvm.amdgcn.readlane.i32(i32 %x, i32 %n)
  %2 = call i32 @llvm.amdgcn.update.dpp.i32(i32 %0, i32 %x, i32 273, i32 15, i32 7, i1 true)
  %3 = call i32 @llvm.amdgcn.update.dpp.i32(i32 %2, i32 %x, i32 228, i32 15, i32 15, i1 false)
  %4 = add i32 %3, %x
  %5 = call i32 @llvm.amdgcn.ds.bpermute(i32 %4, i32 %2)
  %6 = call i32 @llvm.amdgcn.ds.swizzle(i32 %5, i32 31)
  %7 = call i32 @llvm.amdgcn.writelane.i32(i32 %1, i32 3, i32 %6)
  store i32 %7, ptr addrspace(1) %q
"""
MEMORY = """
  %0 = getelementptr i8, ptr addrspace(1) %p, i32 %n
  %1 = load i8, ptr addrspace(1) %0
  %2 = sext i8 %1 to i32
  %3 = load i16, ptr addrspace(1) %p
  %4 = sext i16 %3 to i32
  %5 = load <4 x i32>, ptr addrspace(1) %q
  %6 = load <3 x float>, ptr addrspace(1) %p
  %7 = getelementptr i32, ptr addrspace(1) %p, i64 -300
  %8 = load <8 x i32>, ptr addrspace(1) %7, !nontemporal !0
  %9 = load volatile i64, ptr addrspace(1) %q
  store <4 x i32> %5, ptr addrspace(1) %p
  store <3 x float> %6, ptr addrspace(1) %q
  store <8 x i32> %8, ptr addrspace(1) %p, !nontemporal !0
  store i64 %9, ptr addrspace(1) %p
  %10 = add i32 %2, %4
  store i32 %10, ptr addrspace(1) %p
  %r = call ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p8.p1(ptr addrspace(1) %p, i16 0, i64 4096, i32 159744)
  %11 = call <4 x float> @llvm.amdgcn.raw.ptr.buffer.load.v4f32(ptr addrspace(8) %r, i32 %10, i32 %n, i32 1)
  call void @llvm.amdgcn.raw.ptr.buffer.store.v4f32(<4 x float> %11, ptr addrspace(8) %r, i32 16, i32 0, i32 0)
"""
CONTROL = """
  %id = call i32 @llvm.amdgcn.workitem.id.x()
  br label %loop
loop:
  %i = phi i32 [0, %entry], [%j, %next]
  %c = icmp ult i32 %i, %id
  br i1 %c, label %body, label %next
body:
  %x = load i32, ptr addrspace(1) %p
  %m = mul i32 %x, %i
  store volatile i32 %m, ptr addrspace(1) %q
  switch i32 %m, label %next [ i32 1, label %one  i32 -77, label %two ]
one:
  call void @llvm.amdgcn.s.sleep(i32 3)
  br label %next
two:
  call void @llvm.amdgcn.s.setprio(i16 2)
  br label %next
next:
  %j = add i32 %i, 1
  %d = icmp slt i32 %j, %n
  br i1 %d, label %loop, label %done
done:
  %t = call i64 @llvm.readcyclecounter()
  %h = call i32 @llvm.amdgcn.s.getreg(i32 2049)
  %e = zext i32 %h to i64
  %f = add i64 %t, %e
  store i64 %f, ptr addrspace(1) %q
  %k = call i1 @llvm.amdgcn.inverse.ballot.i64(i64 81985529216486895)
  br i1 %k, label %trap, label %end
trap:
  call void @llvm.trap()
  unreachable
end:
"""
CONVERSIONS = """
  %x = load float, ptr addrspace(1) %p
  %0 = fptoui float %x to i32
  %1 = fptosi float %x to i64
  %2 = uitofp i64 %1 to float
  %3 = sitofp i32 %0 to half
  %4 = fptrunc float %2 to bfloat
  %5 = and i32 %0, 65280
  %6 = lshr i32 %5, 8
  %7 = uitofp i32 %6 to float
  %8 = call <2 x half> @llvm.amdgcn.cvt.pkrtz(float %x, float %7)
  %9 = fpext float %x to double
  %10 = fptrunc double %9 to float
  %11 = call float @llvm.amdgcn.fract.f32(float %10)
  %12 = call i32 @llvm.amdgcn.frexp.exp.i32.f32(float %11)
  store half %3, ptr addrspace(1) %q
  store bfloat %4, ptr addrspace(1) %q
  store <2 x half> %8, ptr addrspace(1) %q
  store i32 %12, ptr addrspace(1) %q
"""
PERMUTE = """
  %x = load i32, ptr addrspace(1) %p
  %0 = call i32 @llvm.amdgcn.permlane16.i32(i32 %x, i32 %x, i32 %n, i32 1985229328, i1 true, i1 false)
  %1 = call i32 @llvm.amdgcn.permlanex16.i32(i32 %0, i32 %0, i32 %n, i32 %n, i1 false, i1 true)
  %2 = call i32 @llvm.amdgcn.mov.dpp8.i32(i32 %1, i32 7654321)
  store i32 %2, ptr addrspace(1) %q
"""


def product(result: str, a: str, b: str, call: str) -> str:
    """A matrix product whose operands are loaded from memory."""
    return f"""
  %a = load {a}, ptr addrspace(1) %p
  %b = load {b}, ptr addrspace(1) %q
  %c = load {result}, ptr addrspace(1) %q
  %r = call {result} @llvm.amdgcn.{call})
  store {result} %r, ptr addrspace(1) %q
"""


WMMA_F16 = product("<8 x float>", "<16 x half>", "<16 x half>",
                   "wmma.f32.16x16x16.f16.v8f32.v16f16(<16 x half> %a, <16 x half> %b, <8 x float> %c")  # fmt: skip
WMMA_I8 = product("<8 x i32>", "<4 x i32>", "<4 x i32>", "wmma.i32.16x16x16.iu8.v8i32.v4i32("
                  "i1 true, <4 x i32> %a, i1 false, <4 x i32> %b, <8 x i32> %c, i1 true")  # fmt: skip
WMMA_GFX12 = product("<8 x float>", "<8 x half>", "<8 x half>",
                     "wmma.f32.16x16x16.f16.v8f32.v8f16(<8 x half> %a, <8 x half> %b, <8 x float> %c")  # fmt: skip
WMMA_FP8 = product("<8 x float>", "<2 x i32>", "<2 x i32>",
                   "wmma.f32.16x16x16.fp8.bf8.v8f32.v2i32(<2 x i32> %a, <2 x i32> %b, <8 x float> %c")  # fmt: skip
MFMA_F32 = product("<16 x float>", "float", "float",
                   "mfma.f32.32x32x2f32(float %a, float %b, <16 x float> %c, i32 1, i32 2, i32 3")  # fmt: skip
MFMA_F16 = product("<4 x float>", "<4 x half>", "<4 x half>", "mfma.f32.16x16x16f16("
                   "<4 x half> %a, <4 x half> %b, <4 x float> %c, i32 0, i32 0, i32 0")  # fmt: skip
MFMA_F64 = product("<4 x double>", "double", "double",
                   "mfma.f64.16x16x4f64(double %a, double %b, <4 x double> %c, i32 0, i32 0, i32 0")  # fmt: skip
MFMA_FP4 = product("<4 x float>", "<8 x i32>", "<4 x i32>", "mfma.scale.f32.16x16x128.f8f6f4.v8i32.v4i32("
                   "<8 x i32> %a, <4 x i32> %b, <4 x float> %c, i32 1, i32 4, "
                   "i32 0, i32 %n, i32 1, i32 %n")  # fmt: skip

KERNELS: dict[str, tuple[str, tuple[str, ...]]] = {
    "floats": (FLOATS, ALL), "halves": (HALVES, ALL), "doubles": (DOUBLES, ALL), "integers": (INTEGERS, ALL),
    "atomics": (ATOMICS, ALL), "local": (LOCAL, ALL), "scratch": (SCRATCH, ALL), "lanes": (LANES, ALL),
    "memory": (MEMORY, ALL), "control": (CONTROL, ALL), "conversions": (CONVERSIONS, ALL), "permute": (PERMUTE, RDNA),
    "wmma_f16": (WMMA_F16, ("gfx1100",)), "wmma_i8": (WMMA_I8, ("gfx1100",)),
    "wmma_gfx12": (WMMA_GFX12, ("gfx1201",)), "wmma_fp8": (WMMA_FP8, ("gfx1201",)),
    "mfma_f32": (MFMA_F32, CDNA), "mfma_f16": (MFMA_F16, CDNA), "mfma_f64": (MFMA_F64, CDNA),
    "mfma_fp4": (MFMA_FP4, ("gfx950",)),
}  # fmt: skip

TYPE = re.compile(r"\s*(<[^>]*>|ptr( addrspace\(\d\))?|\w+)")


def module(name: str) -> str:
    """A kernel's module: two pointers p and q, a number n, 1 KB of shared memory, and what it calls."""
    body = KERNELS[name][0]
    declared = {}
    for result, function, arguments in re.findall(r"call ([^@\n]+) @(llvm[\w.]+)\((.*)\)$", body, re.MULTILINE):
        types = [found[1] for part in split(arguments) if (found := TYPE.match(part))]
        declared[function] = f"declare {result} @{function}({', '.join(types)})"
    shared = "@shared = internal addrspace(3) global [256 x float] poison, align 16"
    kernel = f"define amdgpu_kernel void @{name}(ptr addrspace(1) %p, ptr addrspace(1) %q, i32 %n) {{\nentry:"
    return "\n".join([shared, kernel, f"{body}  ret void\n}}", *declared.values(), "!0 = !{i32 1}", ""])


def split(arguments: str) -> list[str]:
    """Arguments of a call, at commas outside of brackets."""
    return re.split(r",(?![^<]*>)", arguments) if arguments else []


CASES = [(kernel, processor) for kernel, (_, processors) in KERNELS.items() for processor in processors]


def code_object(kernel: str, processor: str) -> bytes:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    parsed = llvm.parse_assembly(module(kernel))
    parsed.verify()
    target = llvm.Target.from_triple("amdgcn-amd-amdhsa")
    return bytes(target.create_target_machine(cpu=processor, opt=2).emit_object(parsed))


@pytest.mark.drawn(24)
@pytest.mark.skipif(OBJDUMP is None, reason="llvm-objdump-22 is not installed")
@pytest.mark.parametrize(("kernel", "processor"), CASES)
def test_a_code_object_is_listed_as_by_llvm(kernel: str, processor: str, tmp_path: Path) -> None:
    data = code_object(kernel, processor)
    (tmp_path / "kernel.o").write_bytes(data)
    command = [str(OBJDUMP), "-d", str(tmp_path / "kernel.o")]
    theirs = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert list(listing(data)) == [line for line in theirs if line][1:]


def test_the_program_prints_listings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "kernel.o"
    file.write_bytes(code_object("local", "gfx1100"))
    assert main([str(file)]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[:3] == [f"{file}:", "Disassembly of section .text:", "0000000000000000 <local>:"]
    assert any("s_barrier" in line for line in printed) and ".long" not in "".join(printed)


@pytest.mark.parametrize("arguments", [[], ["--help"]])
def test_the_program_tells_its_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == (0 if arguments else 2)
    assert "FILE.o" in "".join(capsys.readouterr())


def test_a_file_that_is_none_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text").write_bytes(b"no object")
    assert main([str(tmp_path / "text"), str(tmp_path / "missing")]) == 1
    errors = capsys.readouterr().err
    assert "not an ELF64" in errors and "missing" in errors


def test_what_has_no_table_or_is_for_no_gpu_is_refused() -> None:
    data = bytearray(code_object("floats", "gfx1100"))
    data[48] = 0x20  # gfx600
    with pytest.raises(ValueError, match="no instruction table of 'gfx600', but of gfx1030"):
        list(listing(bytes(data)))
    data[18] = 62  # x86-64
    with pytest.raises(ELFError, match="no code object of an AMD GPU: machine 62"):
        list(listing(bytes(data)))


def test_unknown_words_are_listed_as_such() -> None:
    data = bytearray(code_object("floats", "gfx1100"))
    at = data.index(bytes.fromhex("00009fbf"))  # s_code_end
    data[at : at + 4] = bytes.fromhex("ffffffff")
    assert sum(".long 0xffffffff" in line for line in listing(bytes(data))) == 1


@pytest.mark.parametrize(
    ("processor", "code", "why"),
    [
        ("gfx1100", "000040d700000000", "no instruction of this processor"),
        ("gfx1100", "", "too short"),
        ("gfx1100", "0207", "too short"),
        ("gfx1100", "ff020206", "with a literal has 8 bytes, of which 4 are there"),
        ("gfx1100", "000013d6", "V_FMA_F32_e64_gfx11 has 8 bytes, of which 4 are there"),
        ("gfx1100", "007813d600000000", "reserved bits"),
        ("gfx942", "ff0001d1ff000000", "cannot have a literal"),
    ],
)
def test_refusals_say_why(processor: str, code: str, why: str) -> None:
    with pytest.raises(Undecodable, match=why):
        decoder(processor)(bytes.fromhex(code))


@pytest.mark.parametrize(
    ("processor", "code", "shown"),
    [
        ("gfx1030", "71008cbf", "s_waitcnt vmcnt(1) lgkmcnt(0)"),
        ("gfx1030", "f904000201060106", "v_cndmask_b32_sdwa v0, v1, v2, vcc_lo dst_sel:DWORD dst_unused:UNUSED_PAD "
         "src0_sel:BYTE_1 src1_sel:DWORD"),
        ("gfx1100", "ff02060656341200", "v_add_f32_e32 v3, 0x123456, v1"),
        ("gfx1100", "104040cc0801421c", "v_wmma_f32_16x16x16_f16 v[16:23], v[8:15], v[0:7], v[16:23]"),
        ("gfx1100", "010410c8f2000200", "v_dual_fmac_f32 v0, s1, v2 :: v_dual_mov_b32 v3, 1.0"),
        ("gfx1100", "010087bf", "s_delay_alu instid0(VALU_DEP_1)"),
        ("gfx1100", "000203d5fa040200011101ff",
         "v_add_f32_e64_dpp v0, v1, |v2| row_shr:1 row_mask:0xf bank_mask:0xf"),
        ("gfx1201", "020005ee0000180001fcffff",
         "global_load_b32 v0, v1, s[2:3] offset:-4 th:TH_LOAD_NT scope:SCOPE_DEV"),
        ("gfx1201", "c14e80be", "s_barrier_signal -1"),
        ("gfx942", "0080cdd300050204", "v_mfma_f32_16x16x16_f16 a[0:3], v[0:1], v[2:3], a[0:3]"),
        ("gfx942", "008053de02007f00", "global_load_dword v0, v[2:3], off sc0 nt sc1"),
    ],
)  # fmt: skip
def test_some_instructions_as_text(processor: str, code: str, shown: str) -> None:
    decoded = decoder(processor)(bytes.fromhex(code) + bytes(8))
    assert (" ".join(text(decoded).split()), decoded.nbytes) == (shown, len(code) // 2)


def test_a_branch_shows_its_target_where_its_address_is_given() -> None:
    branch = decoder("gfx1100")(bytes.fromhex("feffa5bf"))
    assert [text(branch), text(branch, 0x104)] == ["s_cbranch_execz 65534", "s_cbranch_execz 0x100"]


def test_a_table_of_another_processor_is_refused() -> None:
    with pytest.raises(ValueError, match="no instruction table of 'gfx600', but of gfx1030, "):
        decoder("gfx600")
