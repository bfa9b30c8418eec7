"""HIP C++ as COMGR takes it: without headers, whose few words stand here as the attributes that they mean.

Mathematical functions are those of AMD's device libraries (``ocml``), which are linked in by the compiler. Quotients
and roots of float16 are written out: LLVM 15 takes too few steps, and LLVM 22 makes one instruction of reciprocals and
roots, which only comes near (AMD, "RDNA3 Instruction Set Architecture", 16.8, V_RCP_F16), even where the source asks
for float32 and rounds that.

Example:
  >>> from tg_codegen.render.c.hip import HIPRenderer
  >>> from tg_codegen.ir.uop import UOp, UOps
  >>> from tg_dtype import dtypes
  >>> print(HIPRenderer().render("nothing", [UOp(UOps.PARAM, dtypes.int32.ptr(), (), 0)]), end="")
  extern "C" __attribute__((global)) void nothing(const int* __restrict__ data0) {
  }
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from tg_dtype import AddrSpace, DType, dtypes, to_bits
from tg_lazy import Ops

from ...machine.amdgpu import amd_gpu, amd_target
from ...machine.gpu import ACCESS_BYTES
from ...machine.target import Target
from ..spelling import bare
from .cstyle import CStyleRenderer
from .dialect import Builtin, Dialect, Terms, Vectors, WorkGroup, call

_NAMES: Final = {
    dtypes.int8: "signed char", dtypes.uint8: "unsigned char", dtypes.int16: "short", dtypes.uint16: "unsigned short",
    dtypes.int32: "int", dtypes.uint32: "unsigned", dtypes.int64: "long long", dtypes.uint64: "unsigned long long",
    dtypes.float16: "_Float16", dtypes.float32: "float", dtypes.float64: "double",
}  # fmt: skip
# off by 3 units in the last place at most (OpenCL C, "Relative Error as ULPs", which ocml implements)
_ACCURATE: Final = {
    Ops.EXP: "exp", Ops.EXP2: "exp2", Ops.LOG: "log", Ops.LOG2: "log2", Ops.SIN: "sin", Ops.COS: "cos",
}  # fmt: skip
_OCML: Final = {Ops.SQRT: "sqrt", **_ACCURATE}
# V_RCP_F32 is off by one unit, which steps of Newton's bring to half a unit and next to nothing. No quotient of numbers
# of 11 bits lies nearer than 2**-23 of it to the middle of two of them. V_DIV_FIXUP_F16 knows zeros and infinities.
_QUOTIENT: Final = (
    "float n = a, d = b, near = __builtin_amdgcn_rcpf(d);",
    "near = __builtin_fmaf(__builtin_fmaf(-d, near, 1.0f), near, near);",
    "float q = n * near;",
    "q = __builtin_fmaf(__builtin_fmaf(-d, q, n), near, q);",
    "return __builtin_amdgcn_div_fixuph((_Float16)q, b, a);",
)
# V_SQRT_F32 is off by one unit, and by no more than half a unit after the step. That may be rounded again (S. A.
# Figueroa, "When is double rounding innocuous?", SIGNUM Newsletter 30, 1995). Zeros, infinity and NaN take no step.
_ROOT: Final = (
    "float x = a, near = __builtin_amdgcn_sqrtf(x), half = 0.5f * __builtin_amdgcn_rcpf(near);",
    "float root = __builtin_fmaf(__builtin_fmaf(-near, near, x), half, near);",
    "return (_Float16)(x > 0.0f && x < __builtin_inff() ? root : near);",
)
_SUFFIXES: Final = {dtypes.float16: "f16", dtypes.float32: "f32", dtypes.float64: "f64"}
_BUILTIN: Final = {dtypes.float16: "f16", dtypes.float32: "f", dtypes.float64: ""}
_PLACES: Final = {"g": "workgroup", "l": "workitem"}


def _through_float(name: str) -> Builtin:
    return lambda terms, dtype, v: f"(_Float16){name}((float){v[0]})"


def _quotient(terms: Terms, dtype: DType, v: Sequence[str]) -> str:
    name = terms.helper("div_f16", dtype, "_Float16 a, _Float16 b", lambda: _QUOTIENT)
    return f"{name}({bare(v[0])}, {bare(v[1])})"


def _root(terms: Terms, dtype: DType, v: Sequence[str]) -> str:
    return f"{terms.helper('sqrt_f16', dtype, '_Float16 a', lambda: _ROOT)}({bare(v[0])})"


def _builtins() -> dict[tuple[Ops, DType], Builtin]:
    found: dict[tuple[Ops, DType], Builtin] = {}
    for dtype, suffix in _SUFFIXES.items():
        for op, name in _OCML.items():
            half = dtype is dtypes.float16
            found[op, dtype] = _through_float(f"__ocml_{name}_f32") if half else call(f"__ocml_{name}_{suffix}")
        found[Ops.TRUNC, dtype] = call(f"__builtin_trunc{_BUILTIN[dtype]}")
        found[Ops.MULACC, dtype] = call(f"__builtin_fma{_BUILTIN[dtype]}")
    found[Ops.FDIV, dtypes.float16], found[Ops.SQRT, dtypes.float16] = _quotient, _root
    found[Ops.RECIP, dtypes.float16] = lambda terms, dtype, v: _quotient(terms, dtype, ("(_Float16)1", *v))
    return found


def _declared(dtype: DType) -> str:
    """The functions of the device libraries for a dtype; a half's are done in float."""
    wide = dtypes.float32 if dtype is dtypes.float16 else dtype
    names = (f"__ocml_{name}_{_SUFFIXES[wide]}({_NAMES[wide]})" for name in _OCML.values())
    return f'extern "C" __attribute__((device, const)) {_NAMES[wide]} {", ".join(names)};'


def _kernel(name: str, parameters: str, group: WorkGroup | None) -> str:
    size = group[0] * group[1] * group[2] if group else 0
    bounds = f"__attribute__((amdgpu_flat_work_group_size({size}, {size}))) " if size else ""
    return f'extern "C" __attribute__((global)) {bounds}void {name}({parameters})'


def _array(space: AddrSpace, kind: str, name: str, size: int) -> str:
    shared = "__attribute__((shared)) " if space is AddrSpace.LOCAL else ""
    return f"{shared}__attribute__((aligned(16))) {kind} {name}[{size}]"


def _non_finite(value: float, dtype: DType) -> str:
    if dtype is dtypes.float64:
        return f"__builtin_bit_cast(double, {to_bits(value, dtype):#x}ull)"
    return f"__builtin_bit_cast(float, {to_bits(value, dtypes.float32):#x}u)"


def _struct(name: str, lane: str, dtype: DType) -> str:
    align = min(dtype.itemsize & -dtype.itemsize, ACCESS_BYTES)
    return f"struct __attribute__((aligned({align}))) {name} {{ {lane} v[{dtype.count}]; }};"


def _whole(memory: DType, space: AddrSpace, divisor: int) -> bool:
    fits = memory.itemsize <= ACCESS_BYTES and memory.itemsize & (memory.itemsize - 1) == 0
    return fits and divisor % memory.count == 0


DIALECT = Dialect(
    language="HIP",
    scalars=_NAMES,
    kernel=_kernel,
    parameter=lambda kind, name, number: f"{kind}* __restrict__ {name}",
    work_item=lambda place, dimension: f"(int)__builtin_amdgcn_{_PLACES[place]}_id_{'xyz'[dimension]}()",
    requires={dtype: _declared(dtype) for dtype in _SUFFIXES},
    helper="static __attribute__((device, always_inline)) inline ",
    non_finite=_non_finite,
    builtins=_builtins(),
    pun=lambda src, dst: f"return __builtin_bit_cast({dst}, x);",
    array=_array,
    barrier=(
        '__builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");',
        "__builtin_amdgcn_s_barrier();",
        '__builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");',
    ),
    vectors=Vectors(
        define=_struct,
        literal=lambda kind, lanes: f"{kind}{{{{{', '.join(lanes)}}}}}",
        whole=_whole,
    ),
)


class HIPRenderer(CStyleRenderer):
    """Writes HIP C++.

    Args:
      arch: the instruction set, as ``gfx1030``.
      target: the machine; a card of that kind if omitted.

    Raises:
      ValueError: if there is no such instruction set.
    """

    name: ClassVar[str] = "HIP"
    dialect: ClassVar[Dialect] = DIALECT

    def __init__(self, arch: str = "gfx1100", target: Target | None = None) -> None:
        self.arch = amd_gpu(arch).arch
        super().__init__(target or amd_target(arch))

    def supports_op(self, op: Ops, dtype: DType) -> bool:
        if op in (Ops.SIN, Ops.COS) and dtype.bits == 64:  # by a table of 1/pi: v_trig_preop_f64
            return False
        return super().supports_op(op, dtype) or op in _ACCURATE

    @property
    def key(self) -> str:
        return f"{super().key}:{self.arch}"
