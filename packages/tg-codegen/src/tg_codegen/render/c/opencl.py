"""OpenCL C 1.2 and later.

Loads and stores of vectors are ``vload``/``vstore``, which need no more alignment than an element has. The size of the
work-group is stated with the kernel where it has one, and the launch must agree.

Example:
  >>> from tg_codegen.render.c.opencl import OpenCLRenderer
  >>> from tg_dtype import dtypes
  >>> OpenCLRenderer().supports_dtype(dtypes.float16), OpenCLRenderer(half=True).supports_dtype(dtypes.float16)
  (False, True)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from tg_dtype import AddrSpace, DType, dtypes
from tg_lazy import Ops

from ...machine.target import Target
from ..spelling import bare, short
from .cstyle import CStyleRenderer
from .dialect import Dialect, Operators, Terms, Vectors, WorkGroup, call
from .images import Images

_NAMES = {
    dtypes.int8: "char", dtypes.uint8: "uchar", dtypes.int16: "short", dtypes.uint16: "ushort", dtypes.int32: "int",
    dtypes.uint32: "uint", dtypes.int64: "long", dtypes.uint64: "ulong", dtypes.float16: "half",
    dtypes.float32: "float", dtypes.float64: "double",
}  # fmt: skip
_SPACES = {AddrSpace.GLOBAL: "__global ", AddrSpace.LOCAL: "__local "}
_PLACES = {"g": "get_group_id", "l": "get_local_id"}
_FLOATS = (dtypes.float16, dtypes.float32, dtypes.float64)
_BUILTINS = {
    **{(op, dtype): call(name) for dtype in _FLOATS
       for op, name in ((Ops.SQRT, "sqrt"), (Ops.TRUNC, "trunc"), (Ops.MULACC, "fma"))},
    **{(Ops.MAX, dtype): call("max") for dtype in _NAMES if dtypes.is_int(dtype)},
}  # fmt: skip


def _kernel(name: str, parameters: str, group: WorkGroup | None) -> str:
    attribute = f"__attribute__((reqd_work_group_size({', '.join(map(str, group))})))\n" if group else ""
    return f"{attribute}__kernel void {name}({parameters})"


def _shuffle(terms: Terms, vectors: Sequence[str], lanes: Sequence[int], dtype: DType) -> str | None:
    if len(vectors) > 1:
        return None
    terms.type(dtype.scalar().vec(len(lanes)))  # there must be one
    return f"{vectors[0]}.s{''.join(f'{lane:x}' for lane in lanes)}"


def _cast(terms: Terms, x: str, src: DType, dst: DType) -> str | None:
    """Floats to integers: a helper, since that NaN becomes 0 is only a recommendation to drivers."""
    if not (dtypes.is_float(src) and dtypes.is_int(dst)):
        return None
    zero = terms.literal(0.0, src)
    number = f"x == x ? x : {zero}" if src.count == 1 else f"select({zero}, x, x == x)"
    body = f"return convert_{terms.type(dst)}_sat({number});"
    return f"{terms.function(f'{short(src)}_to_{short(dst)}', dst, [(src, 'x')], body)}({bare(x)})"


DIALECT = Dialect(
    language="OpenCL",
    scalars=_NAMES,
    kernel=_kernel,
    parameter=lambda kind, name, number: f"__global {kind}* restrict {name}",
    work_item=lambda place, dimension: f"{_PLACES[place]}({dimension})",
    preamble=("#pragma OPENCL FP_CONTRACT OFF",),
    requires={
        dtypes.float16: "#pragma OPENCL EXTENSION cl_khr_fp16 : enable",
        dtypes.float64: "#pragma OPENCL EXTENSION cl_khr_fp64 : enable",
    },
    long_suffix="L",
    name_constants=False,
    builtins=_BUILTINS,
    exact_operands=frozenset({Ops.MAX}),  # no max takes two types
    cast=_cast,
    reinterpret=lambda kind, x: f"as_{kind}({bare(x)})",
    spaces=_SPACES,
    array=lambda space, kind, name, size: f"{_SPACES.get(space, '')}{kind} {name}[{size}]",
    barrier=("barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",),
    images=Images,
    vectors=Vectors(
        widths=(2, 3, 4, 8, 16),
        name=lambda lane, dtype: f"{lane}{dtype.count}",
        define=lambda name, lane, dtype: "",
        literal=lambda kind, lanes: f"({kind})({', '.join(lanes[:1] if len(set(lanes)) == 1 else lanes)})",
        lane=lambda vector, index: f"{vector}.s{index:x}",
        masks=True,
        shuffle=_shuffle,
        whole=lambda memory, space, divisor: True,
        load=lambda terms, memory, space, pointer, index: f"vload{memory.count}(0, {pointer} + {index})",
        store=lambda terms, memory, space, pointer, index, value:
            f"vstore{memory.count}({value}, 0, {pointer} + {index});",
        operators=Operators(
            convert=lambda kind, x: f"convert_{kind}({bare(x)})",
            reinterpret=lambda kind, x: f"as_{kind}({bare(x)})",
            # it picks its second operand where the mask's sign bit is set
            select=lambda terms, dtype: lambda mask, a, b: f"select({b}, {a}, {bare(mask)})",
            number=lambda terms, value, dtype: terms.literal(dtypes.as_const(value, dtype), dtype),
            false_byte="(uchar)0",
            builtins=_BUILTINS,
        ),
    ),
)  # fmt: skip


class OpenCLRenderer(CStyleRenderer):
    """Writes OpenCL C.

    Args:
      target: the device; a modest GPU if omitted.
      half: whether the device has ``cl_khr_fp16``.
      double: whether the device has ``cl_khr_fp64``.
    """

    name: ClassVar[str] = "CL"
    images: ClassVar[bool] = True
    dialect: ClassVar[Dialect] = DIALECT

    def __init__(
        self, target: Target | None = None, *, half: bool = False, double: bool = True
    ) -> None:
        super().__init__(
            target or Target(kind="gpu", vector_bytes=16, registers=128, shared_bytes=32768, local_max=256)
        )
        self.half, self.double = half, double

    def supports_dtype(self, dtype: DType) -> bool:
        absent = {dtypes.float16: not self.half, dtypes.float64: not self.double}
        return super().supports_dtype(dtype) and not absent.get(dtype.scalar())

    @property
    def key(self) -> str:
        return f"{super().key}:half={self.half}:double={self.double}"
