"""The text of renderers: one small kernel in each language, literals, names, and what they refuse."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tg_codegen.ir.builder import LinearBuilder
from tg_codegen.ir.uop import UOp
from tg_codegen.machine.renderer import Renderer
from tg_codegen.machine.target import Target
from tg_codegen.render.c.clang import ClangRenderer
from tg_codegen.render.c.cuda import CUDARenderer
from tg_codegen.render.c.msl import MSLRenderer
from tg_codegen.render.c.opencl import OpenCLRenderer
from tg_codegen.render.llvm import LLVMRenderer
from tg_codegen.render.ptx import PTXRenderer
from tg_codegen.render.renderers import RENDERERS
from tg_codegen.render.spelling import bare, decimal
from tg_codegen.render.wgsl import MOST_GROUPS, WGSLRenderer
from tg_dtype import AddrSpace, DType, dtypes
from tg_lazy import Ops

f32 = dtypes.float32


def row_maxima() -> list[UOp]:
    """out[row] = first + last lane of the maxima over the columns of a row, for at most 60 rows."""
    k = LinearBuilder()
    out, a = k.param(0, f32), k.param(1, f32)
    n = k.variable("n", 1, 64)
    with k.range(n, name="row") as row:
        most = k.acc(k.const(0.5, f32.vec(4)))
        with k.range(32, step=4, name="col") as col:
            at = k.alu(Ops.ADD, k.alu(Ops.MUL, row, k.const(32)), col)
            k.assign(most, k.alu(Ops.MAX, most, k.load(a, at, 4)))
        best = k.read(most)
        k.store(out, row, k.alu(Ops.ADD, k.gep(best, 0), k.gep(best, 3)), k.alu(Ops.CMPLT, row, k.const(60)))
    return k.uops


TEXT = {
    "CLANG": """
#ifdef __clang__
#pragma clang fp contract(off)
#else
#pragma GCC optimize("fp-contract=off")
#endif
typedef float f32x4 __attribute__((vector_size(16)));
typedef float f32x4u __attribute__((vector_size(16), aligned(4), may_alias));
typedef int i32x4 __attribute__((vector_size(16)));
typedef signed char i8x4 __attribute__((vector_size(4)));
static inline f32x4 tg_select_f32x4(i8x4 m, f32x4 a, f32x4 b) { i32x4 w = __builtin_convertvector(m, i32x4); return \
(f32x4)(((i32x4)a & w) | ((i32x4)b & ~w)); }
static inline f32x4 tg_max_f32x4(f32x4 a, f32x4 b) { return tg_select_f32x4(__builtin_convertvector(a != a, i8x4), \
a, tg_select_f32x4(__builtin_convertvector(a > b, i8x4), a, b)); }
void rows(float* restrict data0, const float* restrict data1, const int n) {
  for (int row = 0; row < n; row++) {
    f32x4 c4 = (f32x4){0.5f, 0.5f, 0.5f, 0.5f};
    f32x4 acc5 = c4;
    for (int col = 0; col < 32; col += 4) {
      f32x4 val9 = *(const f32x4u*)(data1 + ((row * 32) + col));
      acc5 = tg_max_f32x4(acc5, val9);
    }
    f32x4 res11 = acc5;
    if (row < 60) {
      data0[row] = res11[0] + res11[3];
    }
  }
}
""",
    "LLVM": """
define void @rows(ptr noalias %data0, ptr noalias %data1, i32 range(i32 1, 65) %var.n) #0 {
entry:
  %reg0 = alloca <4 x float>
  br label %row.loop1
row.loop1:
  %row.loop1.i = phi i32 [ 0, %entry ], [ %row.loop1.i.next, %row.loop1.latch ]
  %row.loop1.i.go = icmp slt i32 %row.loop1.i, %var.n
  br i1 %row.loop1.i.go, label %row.loop1.body, label %row.loop1.end
row.loop1.body:
  store <4 x float> splat (float 0x3FE0000000000000), ptr %reg0
  br label %col.loop2
col.loop2:
  %col.loop2.i = phi i32 [ 0, %row.loop1.body ], [ %col.loop2.i.next, %col.loop2.latch ]
  %t3 = mul nsw i32 %row.loop1.i, 32
  %t4 = add nsw i32 %t3, %col.loop2.i
  %p5 = getelementptr inbounds float, ptr %data1, i32 %t4
  %val6 = load <4 x float>, ptr %p5, align 4
  %acc7 = load <4 x float>, ptr %reg0
  %t8 = call nsz <4 x float> @llvm.maximum.v4f32(<4 x float> %acc7, <4 x float> %val6)
  store <4 x float> %t8, ptr %reg0
  br label %col.loop2.latch
col.loop2.latch:
  %col.loop2.i.next = add nsw i32 %col.loop2.i, 4
  %col.loop2.i.go = icmp slt i32 %col.loop2.i.next, 32
  br i1 %col.loop2.i.go, label %col.loop2, label %col.loop2.end, !llvm.loop !2
col.loop2.end:
  %acc9 = load <4 x float>, ptr %reg0
  %t10 = extractelement <4 x float> %acc9, i32 0
  %t11 = extractelement <4 x float> %acc9, i32 3
  %t12 = fadd float %t10, %t11
  %t13 = icmp slt i32 %row.loop1.i, 60
  br i1 %t13, label %store14, label %store14.end
store14:
  %p15 = getelementptr inbounds float, ptr %data0, i32 %row.loop1.i
  store float %t12, ptr %p15, align 4
  br label %store14.end
store14.end:
  br label %row.loop1.latch
row.loop1.latch:
  %row.loop1.i.next = add nsw i32 %row.loop1.i, 1
  br label %row.loop1, !llvm.loop !3
row.loop1.end:
  ret void
}
declare <4 x float> @llvm.maximum.v4f32(<4 x float>, <4 x float>)
attributes #0 = { nounwind "no-builtins" }
!0 = !{!"llvm.loop.unroll.disable"}
!1 = !{!"llvm.loop.vectorize.enable", i1 false}
!2 = distinct !{!2, !0, !1}
!3 = distinct !{!3, !0, !1}
""",
    "CL": """
#pragma OPENCL FP_CONTRACT OFF
static inline float4 tg_max_f32x4(float4 a, float4 b) { return select(select(b, a, a > b), a, a != a); }
__kernel void rows(__global float* restrict data0, __global const float* restrict data1, const int n) {
  for (int row = 0; row < n; row++) {
    float4 acc4 = (float4)(0.5f);
    for (int col = 0; col < 32; col += 4) {
      float4 val8 = vload4(0, data1 + ((row * 32) + col));
      acc4 = tg_max_f32x4(acc4, val8);
    }
    float4 res10 = acc4;
    if (row < 60) {
      data0[row] = res10.s0 + res10.s3;
    }
  }
}
""",
    "CUDA": """
struct __align__(16) f32x4 { float v[4]; };
static __device__ __forceinline__ float tg_max_f32(float a, float b) { return a != a ? a : a > b ? a : b; }
extern "C" __global__ void rows(float* __restrict__ data0, const float* __restrict__ data1, const int n) {
  for (int row = 0; row < n; row++) {
    f32x4 c4 = f32x4{{0.5f, 0.5f, 0.5f, 0.5f}};
    f32x4 acc5 = c4;
    for (int col = 0; col < 32; col += 4) {
      f32x4 val9 = *(const f32x4*)(data1 + ((row * 32) + col));
      f32x4 alu10 = f32x4{{tg_max_f32(acc5.v[0], val9.v[0]), tg_max_f32(acc5.v[1], val9.v[1]), tg_max_f32(acc5.v[2], \
val9.v[2]), tg_max_f32(acc5.v[3], val9.v[3])}};
      acc5 = alu10;
    }
    f32x4 res11 = acc5;
    if (row < 60) {
      data0[row] = res11.v[0] + res11.v[3];
    }
  }
}
""",
    "PTX": """
.version 7.0
.target sm_80
.address_size 64
.visible .entry rows(.param .u64 rows_data0, .param .u64 rows_data1, .param .u32 rows_var0)
{
  .reg .pred %p<5>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<5>;
  .reg .f32 %f<18>;
  ld.param.u64 %rd1, [rows_data0];
  cvta.to.global.u64 %rd1, %rd1;
  ld.param.u64 %rd2, [rows_data1];
  cvta.to.global.u64 %rd2, %rd2;
  ld.param.u32 %r1, [rows_var0];
  mov.b32 %r2, 0;
  setp.ge.s32 %p1, %r2, %r1;
  @%p1 bra $L_row_0_end;
$L_row_0:
  mov.f32 %f1, 0f3F000000;
  mov.f32 %f2, 0f3F000000;
  mov.f32 %f3, 0f3F000000;
  mov.f32 %f4, 0f3F000000;
  mov.b32 %r3, 0;
$L_col_1:
  mul.lo.s32 %r4, %r2, 32;
  add.s32 %r5, %r4, %r3;
  mad.wide.s32 %rd3, %r5, 4, %rd2;
  ld.global.nc.v4.f32 {%f5, %f6, %f7, %f8}, [%rd3];
  max.NaN.f32 %f9, %f1, %f5;
  max.NaN.f32 %f10, %f2, %f6;
  max.NaN.f32 %f11, %f3, %f7;
  max.NaN.f32 %f12, %f4, %f8;
  mov.f32 %f1, %f9;
  mov.f32 %f2, %f10;
  mov.f32 %f3, %f11;
  mov.f32 %f4, %f12;
  add.s32 %r3, %r3, 4;
  setp.lt.s32 %p2, %r3, 32;
  @%p2 bra $L_col_1;
$L_col_1_end:
  mov.f32 %f13, %f1;
  mov.f32 %f14, %f2;
  mov.f32 %f15, %f3;
  mov.f32 %f16, %f4;
  add.rn.f32 %f17, %f13, %f16;
  setp.lt.s32 %p3, %r2, 60;
  mad.wide.s32 %rd4, %r2, 4, %rd1;
  @%p3 st.global.f32 [%rd4], %f17;
  add.s32 %r2, %r2, 1;
  setp.lt.s32 %p4, %r2, %r1;
  @%p4 bra $L_row_0;
$L_row_0_end:
  ret;
}
""",
    "MSL": """
#include <metal_stdlib>
#pragma clang fp contract(off)
using namespace metal;
struct Args { int n; };
static inline float4 tg_max_f32x4(float4 a, float4 b) { return select(select(b, a, a > b), a, a != a); }
kernel void rows(device float* data0 [[buffer(0)]], device const float* data1 [[buffer(1)]], \
constant Args& args [[buffer(2)]], uint3 group [[threadgroup_position_in_grid]], \
uint3 item [[thread_position_in_threadgroup]]) {
  for (int row = 0; row < args.n; row++) {
    float4 acc4 = float4(0.5f);
    for (int col = 0; col < 32; col += 4) {
      float4 val8 = float4(*(const device packed_float4*)(data1 + ((row * 32) + col)));
      acc4 = tg_max_f32x4(acc4, val8);
    }
    float4 res10 = acc4;
    if (row < 60) {
      data0[row] = res10.x + res10.w;
    }
  }
}
""",
    "WGSL": """
// writes: 0
struct Args { n: i32 }
@group(0) @binding(2) var<uniform> args: Args;
@group(0) @binding(0) var<storage, read_write> data0: array<f32>;
@group(0) @binding(1) var<storage, read_write> data1: array<f32>;
fn tg_is_nan_f32(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }
fn tg_max_f32(a: f32, b: f32) -> f32 { return select(select(b, a, a > b), a, tg_is_nan_f32(a)); }
@compute @workgroup_size(1, 1, 1)
fn rows(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) item: vec3<u32>) {
  for (var row: i32 = 0i; row < args.n; row += 1i) {
    var acc4: f32 = 0.5f;
    var acc5: f32 = 0.5f;
    var acc6: f32 = 0.5f;
    var acc7: f32 = 0.5f;
    for (var col: i32 = 0i; col < 32i; col += 4i) {
      let alu10: i32 = (row * 32i) + col;
      let val11: f32 = data1[alu10];
      let val13: f32 = data1[alu10 + 1i];
      let val15: f32 = data1[alu10 + 2i];
      let val17: f32 = data1[alu10 + 3i];
      acc4 = tg_max_f32(acc4, val11);
      acc5 = tg_max_f32(acc5, val13);
      acc6 = tg_max_f32(acc6, val15);
      acc7 = tg_max_f32(acc7, val17);
    }
    let res22: f32 = acc4;
    let res23: f32 = acc5;
    let res24: f32 = acc6;
    let res25: f32 = acc7;
    if (row < 60i) {
      data0[row] = res22 + res25;
    }
  }
}
""",
}


@pytest.mark.parametrize("name", RENDERERS)
def test_text(name: str) -> None:
    renderer = RENDERERS[name]()  # type: ignore[call-arg]
    assert "\n" + renderer.render("rows", row_maxima()) == TEXT[name]


def test_registry() -> None:
    assert sorted(RENDERERS) == ["CL", "CLANG", "CUDA", "LLVM", "MSL", "PTX", "WGSL"]
    assert all(cls.name == name for name, cls in RENDERERS.items())


def test_keys_tell_renderers_apart() -> None:
    renderers: list[Renderer] = [
        ClangRenderer(), ClangRenderer(Target(vector_bytes=64)), LLVMRenderer(),
        OpenCLRenderer(), OpenCLRenderer(half=True), OpenCLRenderer(double=False),
        CUDARenderer(), CUDARenderer("sm_90"), PTXRenderer(), PTXRenderer("sm_90"),
        WGSLRenderer(), WGSLRenderer(half=True), WGSLRenderer(buffers=10),
        WGSLRenderer(cast_half=False), MSLRenderer(), MSLRenderer(bfloat=True),
        MSLRenderer(simdgroup=False),
    ]  # fmt: skip
    assert len({r.key for r in renderers}) == len(renderers)
    assert ClangRenderer().key == ClangRenderer().key


def test_a_key_is_of_the_target_that_a_renderer_has_now() -> None:
    plain = LLVMRenderer()
    assert plain.key == plain.key == LLVMRenderer(plain.target).key
    others = [plain.strictly(), plain.awake(3), plain.awake(5), plain.with_target(Target(vector_bytes=64))]
    assert len({plain.key, *(other.key for other in others)}) == 1 + len(others)


@pytest.mark.parametrize("renderer", [cls() for cls in RENDERERS.values()], ids=list(RENDERERS))  # type: ignore[call-arg]
def test_claims(renderer: Renderer) -> None:
    """Integers, bool and float32 everywhere; float8 and bfloat16 nowhere; functions where they are accurate enough."""
    assert all(renderer.supports_dtype(d) for d in (*dtypes.ints, dtypes.bool, f32, f32.vec(4)))
    assert not any(renderer.supports_dtype(d) for d in (dtypes.bfloat16, dtypes.fp8e4m3, dtypes.fp8e5m2))
    assert renderer.supports_op(Ops.EXP2, f32) == (renderer.name in ("CUDA", "PTX", "WGSL"))
    assert not any(renderer.supports_op(op, f32) for op in (Ops.TAN, Ops.POW, Ops.ERFC, Ops.MOD))
    assert renderer.supports_op(Ops.SQRT, f32) and renderer.supports_op(Ops.MOD, dtypes.int32)


def unary(op: Ops, dtype: DType, lanes: int = 1) -> list[UOp]:
    k = LinearBuilder()
    out, a = k.param(0, dtype), k.param(1, dtype)
    zero = k.const(0)
    k.store(out, zero, k.alu(op, k.load(a, zero, lanes)))
    return k.uops


@pytest.mark.parametrize(
    ("renderer", "uops", "message"),
    [
        (ClangRenderer(), unary(Ops.EXP2, f32), "C: EXP2 of float32 has no form"),
        (LLVMRenderer(), unary(Ops.SIN, f32), "LLVM: SIN of float32 has no instruction"),
        (ClangRenderer(), unary(Ops.NEG, dtypes.bfloat16), "C: bfloat16 has no arithmetic"),
        (LLVMRenderer(), unary(Ops.NEG, dtypes.fp8e4m3), "LLVM: fp8e4m3 has no arithmetic"),
        (OpenCLRenderer(), unary(Ops.NEG, f32, 5), "OpenCL: float32x5 has 5 lanes"),
        (PTXRenderer(), unary(Ops.SIN, f32), "PTX: SIN of float32 has no form"),
        (PTXRenderer(), unary(Ops.NEG, dtypes.fp8e4m3), "PTX: fp8e4m3 has no arithmetic"),
        (WGSLRenderer(), unary(Ops.LOG2, f32), "WGSL: LOG2 of float32 has no form"),
        (WGSLRenderer(), unary(Ops.NEG, dtypes.float64), "WGSL: float64 has no arithmetic"),
        (MSLRenderer(), unary(Ops.NEG, dtypes.float64), "MSL: float64 has no arithmetic"),
    ],
    ids=[
        "C EXP2", "LLVM SIN", "C bf16", "LLVM fp8", "CL 5 lanes", "PTX SIN", "PTX fp8", "WGSL LOG2", "WGSL f64",
        "MSL f64",
    ],  # fmt: skip
)
def test_refusals(renderer: Renderer, uops: list[UOp], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        renderer.render("kernel", uops)


@pytest.mark.parametrize("renderer", [ClangRenderer(), LLVMRenderer()], ids=["C", "LLVM"])
def test_a_cpu_has_no_work_groups(renderer: Renderer) -> None:
    k = LinearBuilder()
    k.store(k.param(0, dtypes.int32), k.const(0), k.special("gidx0", 4))
    with pytest.raises(ValueError, match="SPECIAL gidx0 has no meaning on a CPU"):
        renderer.render("kernel", k.uops)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_decimal_is_exact(value: float) -> None:
    text = decimal(value)
    back = float.fromhex(text) if "x" in text else float(text)
    assert (back, math.copysign(1.0, back)) == (value, math.copysign(1.0, value))
    assert "." in text or "e" in text


def test_bare() -> None:
    samples = ("(a + b)", "(a) + (b)", "x", "((a))", "f(x)")
    assert [bare(text) for text in samples] == ["a + b", "(a) + (b)", "x", "(a)", "f(x)"]


def test_address_arithmetic_is_told_from_data() -> None:
    """The same product as an address may not overflow; as data it wraps."""
    k = LinearBuilder()
    out, a = k.param(0, dtypes.int32), k.param(1, dtypes.int32)
    with k.range(8) as i:
        at = k.alu(Ops.MUL, i, k.const(3))
        x = k.load(a, at)
        k.store(out, i, k.alu(Ops.MUL, x, k.const(5)))
    ir = LLVMRenderer().render("kernel", k.uops)
    assert "mul nsw i32 %i.loop1.i, 3" in ir
    assert "mul i32 %val" in ir
    assert "(int)((unsigned)val" in ClangRenderer().render("kernel", k.uops)


@pytest.mark.parametrize(
    ("dtype", "want"), [(dtypes.float16, "(__half)sqrtf((float)"), (f32, "= sqrtf("), (dtypes.float64, "= sqrt(")]
)
def test_cuda_has_a_function_for_each_precision(dtype: DType, want: str) -> None:
    text = CUDARenderer().render("kernel", unary(Ops.SQRT, dtype))
    assert want in text and text.count("sqrt") == 1


def test_cuda_loads_whole_vectors_only_where_aligned() -> None:
    k = LinearBuilder()
    out, a = k.param(0, f32), k.param(1, f32)
    with k.range(8, step=4) as i:
        odd = k.alu(Ops.ADD, i, k.const(1))
        k.store(out, i, k.alu(Ops.ADD, k.load(a, i, 4), k.load(a, odd, 4)))
    text = CUDARenderer().render("kernel", k.uops)
    assert "*(const f32x4*)(data1 + i)" in text
    assert "*(f32x4*)(data0 + i)" in text
    assert text.count("*(const f32x4*)") == 1


def test_ptx_takes_vectors_in_pieces() -> None:
    """Where an index is a multiple of two only, pieces are pairs; shared memory has its own space."""
    k = LinearBuilder()
    out, a = k.param(0, f32), k.param(1, f32)
    tile = k.scratch("tile", f32, 16, AddrSpace.LOCAL)
    with k.range(16, step=4) as i:
        k.store(tile, i, k.load(a, k.alu(Ops.ADD, i, k.const(2)), 4))
    k.barrier()
    k.store(out, k.const(1), k.load(k.after(tile), k.const(0), 4))
    text = PTXRenderer().render("kernel", k.uops)
    assert text.count("ld.global.nc.v2.f32") == 2
    assert "+8]" in text
    assert "st.shared.v4.f32" in text
    assert ".shared .align 16 .b8 tile_0[64];" in text
    assert text.index("bar.sync 0") < text.index("ld.shared.v4.f32")
    assert text.count("st.global.f32") == 4


@pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.float16, f32, dtypes.float64])
@pytest.mark.parametrize("known", [None, 1, 2, 4, 8, 12])
def test_ptx_pieces_are_aligned_and_make_up_the_vector(dtype: DType, known: int | None) -> None:
    """Whatever the number of lanes is: each piece begins at a multiple of its own size, and is one the machine has."""
    for lanes in range(1, 17):
        k = LinearBuilder()
        out, a = k.param(0, dtype), k.param(1, dtype)
        at = k.load(k.param(2, dtypes.int32), k.const(0))
        if known is not None:
            at = k.alu(Ops.MUL, at, k.const(known))
        k.store(out, at, k.load(a, at, lanes))
        text = PTXRenderer().render("kernel", k.uops)
        for access in (r"ld\.global\.nc", r"st\.global"):
            reached = 0
            for many, bits, place in re.findall(rf"{access}(?:\.v(\d))?\.[a-z](\d+) (.*);", text):
                if "[%rd3]" in place:
                    continue  # the index itself
                size = int(many or 1) * int(bits) // 8
                assert size in (1, 2, 4, 8, 16) and (known or 1) * dtype.itemsize % size == 0
                offset = re.search(r"\+(\d+)\]", place)
                assert reached == (int(offset[1]) if offset else 0) and reached % size == 0
                reached += size
            assert reached == lanes * dtype.itemsize


@pytest.mark.parametrize("arch", ["sm_70", "gfx90a", "", "sm_x", "sm_9999", "sm_99", "sm_080", "sm_80a", "sm_90f"])
def test_ptx_has_architectures(arch: str) -> None:
    with pytest.raises(ValueError, match="is not an architecture from sm_75 on"):
        PTXRenderer(arch)


def test_ptx_bfloat16_by_architecture() -> None:
    assert [PTXRenderer(arch).supports_dtype(dtypes.bfloat16) for arch in ("sm_75", "sm_80", "sm_90", "sm_120")] == [
        False, False, True, True,
    ]  # fmt: skip
    versions = [PTXRenderer(arch).version for arch in ("sm_75", "sm_86", "sm_90a", "sm_120")]
    assert versions == ["7.0", "7.1", "7.8", "8.7"]


def test_wgsl_packs_what_exceeds_the_storage_buffers() -> None:
    """What is written has a binding of its own as long as there is one; the notes tell the runtime the rest."""
    k = LinearBuilder()
    ins = [k.param(slot, f32) for slot in range(4)]
    out = k.param(4, dtypes.uint8)
    total = k.load(ins[0], k.const(0))
    for pointer in ins[1:]:
        total = k.alu(Ops.ADD, total, k.load(pointer, k.const(0)))
    k.store(out, k.const(0), k.cast(total, dtypes.uint8))
    text = WGSLRenderer(buffers=3).render("kernel", k.uops)
    assert text.startswith("// packed: 1 2 3\n// writes: 4\n")
    assert "struct Args { base1: u32, base2: u32, base3: u32 }" in text
    assert "@binding(1) var<storage, read_write> data4: array<atomic<u32>>;" in text
    assert "@binding(2) var<storage, read_write> packed: array<u32>;" in text
    assert "@binding(3) var<uniform> args: Args;" in text
    assert "bitcast<f32>(packed[args.base2 + u32(0i)])" in text
    assert "packed" not in WGSLRenderer(buffers=5).render("kernel", k.uops)


def test_wgsl_numbers_workgroups_where_a_dimension_has_too_many() -> None:
    k = LinearBuilder()
    group = k.special("gidx0", MOST_GROUPS + 1)
    k.store(k.param(0, dtypes.int32), group, group)
    text = WGSLRenderer().render("kernel", k.uops)
    assert "// groups\n" in text
    assert "struct Args { grid_x: u32, grid_y: u32, grid_z: u32 }" in text
    assert "let gidx0: i32 = i32(gx);" in text


def test_wgsl_counts_workgroup_memory() -> None:
    """Bytes take a word each there."""
    for dtype, most in ((dtypes.uint8, 4096), (f32, 4096), (dtypes.int64, 2048)):
        for size in (most, most + 1):
            k = LinearBuilder()
            tile = k.scratch("tile", dtype, size, AddrSpace.LOCAL)
            k.store(tile, k.const(0), k.const(0, dtype))
            if size == most:
                assert f", {size}>;" in WGSLRenderer().render("kernel", k.uops)
            else:
                with pytest.raises(ValueError, match="kernel wants 1638[48] bytes|kernel wants 16392 bytes"):
                    WGSLRenderer().render("kernel", k.uops)


def test_wgsl_leaves_nothing_to_its_compiler() -> None:
    """Constants that overflow or divide by zero are errors there: they meet variables first."""
    k = LinearBuilder()
    out, i32 = k.param(0, dtypes.int32), dtypes.int32
    k.store(out, k.const(0), k.alu(Ops.ADD, k.const(2**31 - 1, i32), k.const(1, i32)))
    k.store(out, k.const(1), k.alu(Ops.IDIV, k.load(out, k.const(0)), k.const(0, i32)))
    k.store(out, k.const(2), k.const(-(2**31), i32))
    text = WGSLRenderer().render("kernel", k.uops)
    assert "2147483647i + 1i" not in text
    assert "/ 0i" not in text
    assert "data0[2i] = i32(-2147483648);" in text


@settings(max_examples=30)
@given(st.one_of(st.integers(-(2**63), 2**63 - 1), st.sampled_from([-1, -(2**32), -(2**32) - 1, 2**32 - 1, 2**32])))
def test_wgsl_halves_of_wide_integers(value: int) -> None:
    """A word has no sign there: the halves are those of two's complement, in which signed and unsigned are alike."""
    for dtype in (dtypes.int64, dtypes.uint64):
        k = LinearBuilder()
        k.store(k.param(0, dtype), k.const(0), k.const(value if dtype is dtypes.int64 else value % 2**64, dtype))
        found = re.findall(r"= vec2<u32>\((.*?)u, (.*?)u\);", WGSLRenderer().render("kernel", k.uops))
        assert [b"".join(int(half).to_bytes(4, "little") for half in pair) for pair in found] == [
            value.to_bytes(8, "little", signed=True)
        ]


def test_wgsl_names() -> None:
    """Neither a keyword nor a name of ours is taken by a kernel or a variable."""
    k = LinearBuilder()
    n = k.variable("loop", 1, 4)
    with k.range(n, name="var") as i:
        k.store(k.param(0, dtypes.int32), i, n)
    text = WGSLRenderer().render("fn", k.uops)
    assert "fn fn_1(" in text
    assert "for (var var_1: i32 = 0i; var_1 < args.loop_1; var_1 += 1i) {" in text


def test_large_frames_are_touched_page_by_page() -> None:
    for size, probed in ((1024, False), (1025, True)):
        k = LinearBuilder()
        tile = k.scratch("tile", dtypes.float32, size)
        k.store(tile, k.const(0), k.const(1.0, dtypes.float32))
        assert ('"probe-stack"="inline-asm"' in LLVMRenderer().render("fill", k.uops)) is probed


def test_clang_makes_no_vectors_of_few_iterations() -> None:
    """It would mask the last ones, and LLVM 22 writes such stores too wide: 13 int64 stored as int8, for one."""
    pragma = "#pragma clang loop vectorize(disable)"
    for bound, few in ((13, True), (15, True), (16, False), (1000, False)):
        k = LinearBuilder()
        out, a = k.param(0, dtypes.int8), k.param(1, dtypes.int64)
        with k.range(bound) as i:
            k.store(out, i, k.cast(k.load(a, i), dtypes.int8))
        assert (pragma in ClangRenderer().render("kernel", k.uops)) == few
