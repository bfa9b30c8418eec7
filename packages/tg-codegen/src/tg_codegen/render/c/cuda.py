"""CUDA C++ as NVRTC takes it: no headers but those of float16.

Vectors are structs of our own, worked on lane by lane. One that fits in 16 bytes is loaded and stored whole where its
index is seen to be a multiple of its lanes, for which buffers must begin at a multiple of 16 bytes.

Example:
  >>> from tg_codegen.render.c.cuda import CUDARenderer
  >>> from tg_codegen.ir.uop import UOp, UOps
  >>> from tg_dtype import dtypes
  >>> print(CUDARenderer().render("nothing", [UOp(UOps.PARAM, dtypes.float32.ptr(), (), 0)]), end="")
  extern "C" __global__ void nothing(const float* __restrict__ data0) {
  }
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from tg_dtype import AddrSpace, DType, dtypes, to_bits
from tg_lazy import Ops

from ...ir.matrix import MatrixInstruction
from ...ir.uop import UOp
from ...machine.capability import capability
from ...machine.gpu import ACCESS_BYTES
from ...machine.target import Target
from .. import dynamic
from ..mma import TENSOR_CORES, mma, short_name, with_tensor_cores
from .cstyle import CStyleRenderer
from .dialect import Builtin, Dialect, DynamicMemory, Terms, Vectors, WorkGroup, call

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
_PLACES = {"g": "blockIdx", "l": "threadIdx"}
_BLOCK = "shared_block"


def _through_float(name: str) -> Builtin:
    return lambda terms, dtype, v: f"(__half){name}((float){v[0]})"


_BUILTINS = {
    **{(op, dtypes.float16): _through_float(f"{name}f") for op, name in _FUNCTIONS.items()},
    **{(op, dtypes.float32): call(f"{name}f") for op, name in _FUNCTIONS.items()},
    **{(op, dtypes.float64): call(name) for op, name in _FUNCTIONS.items()},
    (Ops.MULACC, dtypes.float16): call("__hfma"),
    (Ops.MULACC, dtypes.float32): call("fmaf"),
    (Ops.MULACC, dtypes.float64): call("fma"),
    # these products are never contracted
    (Ops.MUL, dtypes.float16): call("__hmul_rn"),
    (Ops.MUL, dtypes.float32): call("__fmul_rn"),
    (Ops.MUL, dtypes.float64): call("__dmul_rn"),
}


def _kernel(name: str, parameters: str, group: WorkGroup | None) -> str:
    bounds = f"__launch_bounds__({group[0] * group[1] * group[2]}) " if group else ""
    return f'extern "C" __global__ void {bounds}{name}({parameters})'


def _array(space: AddrSpace, kind: str, name: str, size: int) -> str:
    return f"{'__shared__ ' if space is AddrSpace.LOCAL else ''}__align__(16) {kind} {name}[{size}]"


def _block(kernel: str, places: dict[UOp, int]) -> Sequence[str]:
    size = dynamic.variable(kernel, dynamic.total(places))
    return (
        f"extern __shared__ __align__(16) unsigned char {_BLOCK}[];",
        f'extern "C" {{ __device__ unsigned char {size}; }}',
    )


def _non_finite(value: float, dtype: DType) -> str:
    if dtype is dtypes.float64:
        return f"__longlong_as_double({to_bits(value, dtype):#x}ll)"
    return f"__int_as_float({to_bits(value, dtypes.float32):#x})"


# vectors


def _struct(name: str, lane: str, dtype: DType) -> str:
    align = min(dtype.itemsize & -dtype.itemsize, ACCESS_BYTES)
    return f"struct __align__({align}) {name} {{ {lane} v[{dtype.count}]; }};"


def _whole(memory: DType, space: AddrSpace, divisor: int) -> bool:
    fits = memory.itemsize <= ACCESS_BYTES and memory.itemsize & (memory.itemsize - 1) == 0
    return fits and divisor % memory.count == 0


# matrices


def _matrix(terms: Terms, instruction: MatrixInstruction, acc: DType, a: DType, b: DType) -> str:
    kinds = [terms.type(dtype) for dtype in (acc, a, b)]
    first, second, total = (fragment.count * dtype.itemsize // 4 for fragment, dtype in zip(
        instruction.fragments, (instruction.a, instruction.b, instruction.acc), strict=True))

    def operands(start: int, count: int) -> str:
        return f"{{{', '.join(f'%{start + i}' for i in range(count))}}}"

    def body() -> Sequence[str]:
        letter = "f" if dtypes.is_float(instruction.acc) else "r"
        outs = ", ".join(f'"+{letter}"(acc.v[{i}])' for i in range(total))
        ins = ", ".join(f'"r"({name}{i})' for name, count in (("a", first), ("b", second)) for i in range(count))
        lists = ", ".join(operands(*part) for part in ((0, total), (total, first), (total + first, second), (0, total)))
        words = (f"const unsigned {name}{i} = {_word(terms, name, i, dtype)};"
                 for name, dtype, count in (("a", a, first), ("b", b, second)) for i in range(count))
        return [*words, f'asm("{mma(instruction)} {lists};" : {outs} : {ins});', "return acc;"]

    return terms.helper(short_name(instruction), acc, f"{kinds[0]} acc, {kinds[1]} a, {kinds[2]} b", body)


def _word(terms: Terms, name: str, number: int, dtype: DType) -> str:
    """One register of a fragment."""
    if dtype.scalar() is dtypes.float32:
        body = 'unsigned y; asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x)); return y;'
        rounded = terms.function("tf32", dtypes.uint32, [(dtypes.float32, "x")], body)
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


DIALECT = Dialect(
    language="CUDA",
    scalars=_NAMES,
    kernel=_kernel,
    parameter=lambda kind, name, number: f"{kind}* __restrict__ {name}",
    work_item=lambda place, dimension: f"{_PLACES[place]}.{'xyz'[dimension]}",
    requires={dtypes.float16: "#include <cuda_fp16.h>"},
    helper="static __device__ __forceinline__ ",
    non_finite=_non_finite,
    builtins=_BUILTINS,
    pun=lambda src, dst: f"{dst} r; memcpy(&r, &x, sizeof(r)); return r;",
    matrix=_matrix,
    array=_array,
    dynamic_memory=DynamicMemory(
        places=dynamic.places,
        preamble=_block,
        array=lambda kind, name, at: f"{kind}* const {name} = ({kind}*)({_BLOCK} + {at})",
    ),
    barrier=("__syncthreads();",),
    vectors=Vectors(
        define=_struct,
        literal=lambda kind, lanes: f"{kind}{{{{{', '.join(lanes)}}}}}",
        whole=_whole,
    ),
)


class CUDARenderer(CStyleRenderer):
    """Writes CUDA C++.

    Args:
      arch: compute capability that it is compiled for.
      target: the machine; a common GPU if omitted.
      tf32: do products of fp32 by tensor cores, which round their operands to 10 bits of mantissa.

    Raises:
      ValueError: if ``arch`` is not a compute capability, as ``sm_80`` is.
    """

    name: ClassVar[str] = "CUDA"
    matrices: ClassVar[frozenset[str]] = TENSOR_CORES
    dialect: ClassVar[Dialect] = DIALECT

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

    def supports_op(self, op: Ops, dtype: DType) -> bool:
        return super().supports_op(op, dtype) or op in _ACCURATE

    @property
    def key(self) -> str:
        return f"{super().key}:{self.arch}"
