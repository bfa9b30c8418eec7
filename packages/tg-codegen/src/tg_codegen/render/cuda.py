"""CUDA C++ as NVRTC takes it: no headers but those of float16.

Vectors are structs of our own, worked on lane by lane. One that fits in 16 bytes is loaded and stored whole where its
index is seen to be a multiple of its lanes, for which buffers must begin at a multiple of 16 bytes.

Example:
    >>> from tg_codegen.render.cuda import CUDARenderer
    >>> from tg_codegen.ir.uop import UOp, UOps
    >>> from tg_dtype import dtypes
    >>> print(CUDARenderer().render("nothing", [UOp(UOps.PARAM, dtypes.float32.ptr(), (), 0)]), end="")
    extern "C" __global__ void nothing(const float* __restrict__ data0) {
    }
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import ClassVar

from tg_dtype import AddrSpace, ConstType, DType, dtypes, to_bits
from tg_lazy import Ops

from ..ir.facts import element
from ..ir.matrix import MatrixInstruction
from ..ir.uop import UOp
from ..machine.capability import capability
from ..machine.renderer import Renderer
from ..machine.target import Target
from . import dynamic
from .cstyle import COMPARISONS, CStyleKernel, bare, short
from .mma import TENSOR_CORES, mma, short_name, with_tensor_cores

_NAMES = {
    dtypes.int8: "signed char", dtypes.uint8: "unsigned char", dtypes.int16: "short", dtypes.uint16: "unsigned short",
    dtypes.int32: "int", dtypes.uint32: "unsigned", dtypes.int64: "long long", dtypes.uint64: "unsigned long long",
    dtypes.float16: "__half", dtypes.float32: "float", dtypes.float64: "double",
}  # fmt: skip
# Off by 2 units in the last place at most ("CUDA C++ Programming Guide", Mathematical Functions).
_ACCURATE = {
    Ops.EXP: "exp", Ops.EXP2: "exp2", Ops.LOG: "log", Ops.LOG2: "log2", Ops.SIN: "sin", Ops.COS: "cos",
}  # fmt: skip
_FUNCTIONS = {Ops.SQRT: "sqrt", Ops.TRUNC: "trunc", **_ACCURATE}
_AXES = {"g": "blockIdx", "l": "threadIdx"}
_BLOCK = "shared_block"
_LETTER = {16: "h", 32: "f", 64: "d"}
_WIDEST_ACCESS = 16  # bytes of one load or store instruction


class CUDARenderer(Renderer):
    """Writes CUDA C++.

    Args:
      arch: compute capability that it is compiled for.
      target: the machine; a common GPU if omitted.
      tf32: do products of fp32 by tensor cores, which round their operands to 10 bits of mantissa.

    Raises:
      ValueError: ``arch`` is not a compute capability, as ``sm_80`` is.
    """

    name: ClassVar[str] = "CUDA"
    matrices: ClassVar[frozenset[str]] = TENSOR_CORES

    def __init__(
        self, arch: str = "sm_80", target: Target | None = None, *, tf32: bool = False
    ) -> None:
        try:
            capability(arch)
        except ValueError as error:
            raise ValueError(f"CUDA: {error}") from None
        target = target or Target(kind="gpu", vector_bytes=16, registers=255, shared_bytes=49152, local_max=1024)
        super().__init__(with_tensor_cores(target, arch, tf32))
        self.arch = arch

    def render(self, name: str, uops: Sequence[UOp]) -> str:
        return _Kernel(name, uops, self.target.fused_multiply_add).text()

    def supports_dtype(self, dtype: DType) -> bool:
        return dtypes.is_bool(dtype) or dtype.scalar() in _NAMES

    def supports_op(self, op: Ops, dtype: DType) -> bool:
        return super().supports_op(op, dtype) or op in _ACCURATE

    @property
    def key(self) -> str:
        return f"{super().key}:{self.arch}"


class _Kernel(CStyleKernel):
    language = "CUDA"
    scalars = _NAMES
    helper_prefix = "static __device__ __forceinline__ "

    @functools.cached_property
    def dynamic(self) -> dict[UOp, int]:
        """Where shared arrays begin in a block whose size a launch states, if the kernel wants too much of them."""
        return dynamic.places(self.uops)

    def preamble(self) -> list[str]:
        lines = ["#include <cuda_fp16.h>"] if dtypes.float16 in self.used else []
        if self.dynamic:
            size = dynamic.variable(self.name, dynamic.total(self.dynamic))
            lines.append(f"extern __shared__ __align__(16) unsigned char {_BLOCK}[];")
            lines.append(f'extern "C" {{ __device__ unsigned char {size}; }}')
        return lines

    def signature(self, parameters: str) -> str:
        group = self.facts.work_group()
        bounds = f"__launch_bounds__({group[0] * group[1] * group[2]}) " if group else ""
        return f'extern "C" __global__ void {bounds}{self.name}({parameters})'

    def parameter_type(self, u: UOp) -> str:
        return f"{super().parameter_type(u).removesuffix('restrict')}__restrict__"

    def special(self, name: str) -> str:
        return f"{_AXES[name[0]]}.{'xyz'[int(name[-1])]}"

    def scratch(self, u: UOp, name: str) -> str:
        if u in self.dynamic:
            memory = self.memory_type(element(u))
            return f"{memory}* const {name} = ({memory}*)({_BLOCK} + {self.dynamic[u]})"
        shared = "__shared__ " if self.space(u) is AddrSpace.LOCAL else ""
        return f"{shared}__align__(16) {self.memory_type(element(u))} {name}[{u.arg[1]}]"

    def barrier(self) -> None:
        self.line("__syncthreads();")

    def not_a_number(self, dtype: DType) -> str:
        return self._bits(float("nan"), dtype)

    def infinity(self, dtype: DType) -> str:
        return self._bits(float("inf"), dtype)

    def _bits(self, value: ConstType, dtype: DType) -> str:
        if dtype is dtypes.float64:
            return f"__longlong_as_double({to_bits(value, dtype):#x}ll)"
        return f"__int_as_float({to_bits(value, dtypes.float32):#x})"

    def matrix(self, instruction: MatrixInstruction, acc: DType, a: DType, b: DType) -> str:
        kinds = [self.type(dtype) for dtype in (acc, a, b)]
        words = [fragment.count * dtype.itemsize // 4 for fragment, dtype in zip(
            instruction.fragments, (instruction.a, instruction.b, instruction.acc), strict=True)]
        first, second, total = words

        def operands(start: int, count: int) -> str:
            return f"{{{', '.join(f'%{start + i}' for i in range(count))}}}"

        letter = "f" if dtypes.is_float(instruction.acc) else "r"
        outs = ", ".join(f'"+{letter}"(acc.v[{i}])' for i in range(total))
        ins = ", ".join(f'"r"({name}{i})' for name, count in (("a", first), ("b", second)) for i in range(count))
        lines = [
            f"const unsigned {name}{i} = {self.word(instruction, name, i, dtype)};"
            for name, dtype, count in (("a", a, first), ("b", b, second)) for i in range(count)
        ]  # fmt: skip
        lists = ", ".join(operands(*part) for part in ((0, total), (total, first), (total + first, second), (0, total)))
        lines.append(f'asm("{mma(instruction)} {lists};" : {outs} : {ins});')

        def define() -> str:
            body = "\n  ".join([*lines, "return acc;"])
            parameters = f"{kinds[0]} acc, {kinds[1]} a, {kinds[2]} b"
            return f"{self.helper_prefix}{kinds[0]} tg_{short_name(instruction)}({parameters}) {{\n  {body}\n}}"

        return self.helper(short_name(instruction), define)

    def word(self, instruction: MatrixInstruction, name: str, number: int, dtype: DType) -> str:
        """One register of a fragment."""
        if dtype.scalar() is dtypes.float32:
            body = 'unsigned y; asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x)); return y;'
            rounded = self.function("tf32", dtypes.uint32, [(dtypes.float32, "x")], body)
            return f"{rounded}({name}.v[{number}])"
        each = 4 // dtype.scalar().itemsize
        parts = []
        for i in range(each):
            lane = f"{name}.v[{number * each + i}]"
            if dtype.scalar() is dtypes.float16:
                lane = f"__half_as_ushort({lane})"
            else:
                lane = f"{'(unsigned char)' if each == 4 else '(unsigned short)'}{lane}"
            parts.append(f"(unsigned){lane} << {32 // each * i}" if i else f"(unsigned){lane}")
        return " | ".join(parts)

    # vectors

    def type(self, dtype: DType) -> str:
        if dtypes.is_bool(dtype) and dtype.count > 1:
            return self.vector_type(dtype)
        return super().type(dtype)

    def vector_type(self, dtype: DType) -> str:
        name, align = short(dtype), min(dtype.itemsize & -dtype.itemsize, _WIDEST_ACCESS)
        lane = self.type(dtype.scalar())
        self.types.setdefault(name, f"struct __align__({align}) {name} {{ {lane} v[{dtype.count}]; }};")
        return name

    def vector(self, lanes: Sequence[str], dtype: DType) -> str:
        return f"{self.type(dtype)}{{{{{', '.join(bare(lane) for lane in lanes)}}}}}"

    def lane(self, vector: str, index: int, count: int) -> str:
        return f"{vector}.v[{index}]"

    def lane_value(self, vector: str, index: int, dtype: DType) -> str:
        return self.lane(vector, index, dtype.count)

    def pack_lane(self, text: str) -> str:
        return text

    # memory

    def is_aligned(self, index: UOp, memory: DType) -> bool:
        known = self.facts.divisors[index]
        whole = memory.itemsize <= _WIDEST_ACCESS and memory.itemsize & (memory.itemsize - 1) == 0
        return whole and known % memory.count == 0

    def vector_load(self, base: UOp, pointer: str, index: UOp, text: str, dtype: DType) -> str:
        memory = dtypes.uint8.vec(dtype.count) if dtypes.is_bool(dtype) else dtype
        if self.is_aligned(index, memory):
            return f"*(const {self.type(memory)}*)({pointer} + {text})"
        at = self.atom(text, index.dtype)
        return self.vector([f"{pointer}[{at} + {i}]" for i in range(dtype.count)], memory)

    def vector_store(self, base: UOp, pointer: str, index: UOp, text: str, value: str, dtype: DType) -> None:
        memory = dtypes.uint8.vec(dtype.count) if dtypes.is_bool(dtype) else dtype
        if self.is_aligned(index, memory):
            self.line(f"*({self.type(memory)}*)({pointer} + {text}) = {bare(value)};")
            return
        at, whole = self.atom(text, index.dtype), self.atom(value, memory)
        for i in range(dtype.count):
            self.line(f"{pointer}[{at} + {i}] = {self.lane(whole, i, dtype.count)};")

    def from_memory(self, text: str, dtype: DType) -> str:
        if not dtypes.is_bool(dtype) or dtype.count == 1:
            return super().from_memory(text, dtype)
        raw = self.variable("raw", dtypes.uint8.vec(dtype.count), text)
        return self.vector([f"{self.lane(raw, i, dtype.count)} != 0" for i in range(dtype.count)], dtype)

    def to_memory(self, text: str, dtype: DType) -> str:
        if not dtypes.is_bool(dtype) or dtype.count == 1:
            return text
        flags = self.atom(text, dtype)
        memory = dtypes.uint8.vec(dtype.count)
        return self.vector([self.lane(flags, i, dtype.count) for i in range(dtype.count)], memory)

    # arithmetic

    def elementwise(self, op: Ops, dtype: DType, v: list[str], exact: bool, guarded: bool) -> str | None:
        if dtype.count == 1:
            return self.scalar_alu(op, dtype, v, exact, guarded)
        flags = dtypes.bool.vec(dtype.count)
        names = [self.atom(text, flags if op is Ops.WHERE and i == 0 else dtype) for i, text in enumerate(v)]
        lanes = []
        for i in range(dtype.count):
            parts = [self.lane(name, i, dtype.count) for name in names]
            if op is Ops.WHERE:
                lanes.append(f"({parts[0]} ? {parts[1]} : {parts[2]})")
                continue
            one = self.scalar_alu(op, dtype.scalar(), parts, exact, guarded)
            if one is None:
                return None
            lanes.append(one)
        return self.vector(lanes, flags if op in COMPARISONS else dtype)

    def float_alu(self, op: Ops, dtype: DType, v: list[str]) -> str | None:
        if op is Ops.MUL:  # these are never contracted
            return f"__{_LETTER[dtype.bits]}mul_rn({bare(v[0])}, {bare(v[1])})"
        return super().float_alu(op, dtype, v)

    def multiply_add(self, dtype: DType, v: list[str]) -> str:
        if not self.fused:
            return super().multiply_add(dtype, v)
        name = {16: "__hfma", 32: "fmaf", 64: "fma"}[dtype.bits]
        return f"{name}({', '.join(map(bare, v))})"

    def math(self, op: Ops, dtype: DType, x: str) -> str | None:
        found = _FUNCTIONS.get(op)
        if found is None:
            return None
        if dtype.bits == 64:
            return f"{found}({bare(x)})"
        return f"{found}f({bare(x)})" if dtype.bits == 32 else f"(__half){found}f((float){x})"

    # conversion

    def cast(self, x: str, src: DType, dst: DType) -> str:
        return self.each(self.scalar_cast, x, src, dst)

    def bitcast(self, x: str, src: DType, dst: DType) -> str:
        return self.each(self.scalar_bitcast, x, src, dst)

    def each(self, convert: Callable[[str, DType, DType], str], x: str, src: DType, dst: DType) -> str:
        """A conversion, lane by lane."""
        if src is dst or src.count == 1:
            return x if src is dst else convert(x, src, dst)
        name = self.atom(x, src)
        lanes = [convert(self.lane(name, i, src.count), src.scalar(), dst.scalar()) for i in range(src.count)]
        return self.vector(lanes, dst)

    def scalar_bitcast(self, x: str, src: DType, dst: DType) -> str:
        if not dtypes.is_float(src) and not dtypes.is_float(dst):
            return self.scalar_cast(x, src, dst)
        body = f"{self.type(dst)} r; memcpy(&r, &x, sizeof(r)); return r;"
        return f"{self.function(f'{short(src)}_as_{short(dst)}', dst, [(src, 'x')], body)}({bare(x)})"
