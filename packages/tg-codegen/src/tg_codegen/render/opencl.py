"""OpenCL C 1.2 and later.

Loads and stores of vectors are ``vload``/``vstore``, which need no more alignment than an element has. The size of the
work-group is stated with the kernel where it has one, and the launch must agree.

Example:
    >>> from tg_codegen.render.opencl import OpenCLRenderer
    >>> from tg_dtype import dtypes
    >>> OpenCLRenderer().supports_dtype(dtypes.float16), OpenCLRenderer(half=True).supports_dtype(dtypes.float16)
    (False, True)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from tg_dtype import AddrSpace, DType, dtypes
from tg_lazy import Ops

from ..ir.errors import EmitError
from ..ir.facts import element
from ..ir.uop import UOp
from ..machine.renderer import Renderer
from ..machine.target import Target
from .cstyle import BINARY, COMPARISONS, bare, short, signed, unsigned
from .images import ImageKernel

WIDTHS = (2, 3, 4, 8, 16)
_NAMES = {
    dtypes.int8: "char", dtypes.uint8: "uchar", dtypes.int16: "short", dtypes.uint16: "ushort", dtypes.int32: "int",
    dtypes.uint32: "uint", dtypes.int64: "long", dtypes.uint64: "ulong", dtypes.float16: "half",
    dtypes.float32: "float", dtypes.float64: "double",
}  # fmt: skip
_SPACES = {AddrSpace.GLOBAL: "__global ", AddrSpace.LOCAL: "__local ", AddrSpace.REG: ""}
_FUNCTIONS = {Ops.SQRT: "sqrt", Ops.TRUNC: "trunc"}
_AXES = {"g": "get_group_id", "l": "get_local_id"}


class OpenCLRenderer(Renderer):
    """Writes OpenCL C.

    Args:
      target: the device; a modest GPU if omitted.
      half: whether the device has ``cl_khr_fp16``.
      double: whether the device has ``cl_khr_fp64``.
    """

    name: ClassVar[str] = "CL"
    images: ClassVar[bool] = True

    def __init__(
        self, target: Target | None = None, *, half: bool = False, double: bool = True
    ) -> None:
        super().__init__(
            target or Target(kind="gpu", vector_bytes=16, registers=128, shared_bytes=32768, local_max=256)
        )
        self.half, self.double = half, double

    def render(self, name: str, uops: Sequence[UOp]) -> str:
        return _Kernel(name, uops, self.target.fused_multiply_add).text()

    def supports_dtype(self, dtype: DType) -> bool:
        scalar = dtype.scalar()
        if scalar is dtypes.float16:
            return self.half
        if scalar is dtypes.float64:
            return self.double
        return dtypes.is_bool(scalar) or scalar in _NAMES

    @property
    def key(self) -> str:
        return f"{super().key}:half={self.half}:double={self.double}"


class _Kernel(ImageKernel):
    language = "OpenCL"
    scalars = _NAMES
    long_suffix = "L"
    name_constants = False

    def preamble(self) -> list[str]:
        lines = [
            f"#pragma OPENCL EXTENSION {extension} : enable"
            for dtype, extension in ((dtypes.float16, "cl_khr_fp16"), (dtypes.float64, "cl_khr_fp64"))
            if dtype in self.used
        ]
        return [*lines, "#pragma OPENCL FP_CONTRACT OFF"]

    def signature(self, parameters: str) -> str:
        group = self.facts.work_group()
        attribute = f"__attribute__((reqd_work_group_size({', '.join(map(str, group))})))\n" if group else ""
        return f"{attribute}__kernel void {self.name}({parameters})"

    def special(self, name: str) -> str:
        return f"{_AXES[name[0]]}({name[-1]})"

    def scratch(self, u: UOp, name: str) -> str:
        return f"{_SPACES[self.space(u)]}{self.memory_type(element(u))} {name}[{u.arg[1]}]"

    def barrier(self) -> None:
        self.line("barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);")

    def pointer_type(self, pointer: UOp) -> str:
        return f"{_SPACES[self.space(pointer)]}{super().pointer_type(pointer)}"

    # vectors

    def vector_type(self, dtype: DType) -> str:
        if dtype.count not in WIDTHS:
            raise EmitError(f"OpenCL: {dtype.name} has {dtype.count} lanes; there are vectors of {WIDTHS}")
        return f"{self.type(dtype.scalar())}{dtype.count}"

    def vector(self, lanes: Sequence[str], dtype: DType) -> str:
        lanes = [self.pack_lane(lane) for lane in lanes] if dtypes.is_bool(dtype) else lanes
        distinct = lanes[:1] if len(set(lanes)) == 1 else lanes
        return f"({self.type(dtype)})({', '.join(bare(lane) for lane in distinct)})"

    def lane(self, vector: str, index: int, count: int) -> str:
        return f"{vector}.s{index:x}"

    def shuffle(self, vectors: Sequence[str], lanes: Sequence[int], dtype: DType) -> str:
        if len(vectors) > 1:
            return super().shuffle(vectors, lanes, dtype)
        self.vector_type(dtypes.int8.vec(len(lanes)))
        return f"{vectors[0]}.s{''.join(f'{lane:x}' for lane in lanes)}"

    def vector_load(self, base: UOp, pointer: str, index: UOp, text: str, dtype: DType) -> str:
        return f"vload{dtype.count}(0, {pointer} + {text})"

    def vector_store(self, base: UOp, pointer: str, index: UOp, text: str, value: str, dtype: DType) -> None:
        self.line(f"vstore{dtype.count}({bare(value)}, 0, {pointer} + {text});")

    def from_memory(self, text: str, dtype: DType) -> str:
        zero = "0" if dtype.count == 1 else "(uchar)0"
        return f"({text} != {zero})" if dtypes.is_bool(dtype) else text

    # arithmetic

    def elementwise(self, op: Ops, dtype: DType, v: list[str], exact: bool, guarded: bool) -> str | None:
        if dtype.count == 1:
            if op is Ops.MAX and not dtypes.is_bool(dtype) and dtype.bits < 32:  # no max takes two types
                v = [x if x.isidentifier() else self.narrow(x, dtype) for x in v]
            return self.scalar_alu(op, dtype, v, exact, guarded)
        if op is Ops.WHERE:
            return f"select({bare(v[2])}, {bare(v[1])}, {self.mask(v[0], dtype)})"
        if dtypes.is_bool(dtype):
            return self.vector_logic(op, dtype, v)
        if op in COMPARISONS:
            return self.convert(f"({v[0]} {BINARY[op]} {v[1]})", signed(dtype), dtypes.int8.vec(dtype.count))
        return self.scalar_alu(op, dtype, v, exact, guarded)

    def convert(self, x: str, src: DType, dst: DType, saturate: bool = False) -> str:
        return x if src is dst else f"convert_{self.type(dst)}{'_sat' if saturate else ''}({bare(x)})"

    def mask(self, x: str, dtype: DType) -> str:
        """A vector of bools widened to lanes of the size that ``dtype`` has, as ``select`` wants it."""
        return bare(self.convert(x, dtypes.int8.vec(dtype.count), signed(dtype)))

    def wrapping(self, operator: str, dtype: DType, a: str, b: str, exact: bool) -> str:
        if dtype.count == 1:
            return super().wrapping(operator, dtype, a, b, exact)
        if dtypes.is_unsigned(dtype):
            return f"({a} {operator} {b})"
        word = self.type(unsigned(dtype))
        return f"as_{self.type(dtype)}(as_{word}({bare(a)}) {operator} as_{word}({bare(b)}))"

    def negated(self, dtype: DType, x: str, exact: bool) -> str:
        if dtype.count == 1:
            return super().negated(dtype, x, exact)
        return f"as_{self.type(dtype)}(-as_{self.type(unsigned(dtype))}({bare(x)}))"

    def maximum(self, dtype: DType) -> str:
        if dtypes.is_int(dtype):
            return "max"
        if dtype.count == 1:
            return super().maximum(dtype)
        body = "return select(select(b, a, a > b), a, a != a);"
        return self.function(f"max_{short(dtype)}", dtype, [(dtype, "a"), (dtype, "b")], body)

    def division(self, op: Ops, dtype: DType) -> str:
        if dtype.count == 1:
            return super().division(op, dtype)
        one, zero = (self.literal(n, dtype) for n in (1, 0))
        minus_one = self.literal(-1, dtype)
        unit = not dtypes.is_unsigned(dtype)
        unsafe = f"(b == {zero}) | (b == {minus_one})" if unit else f"b == {zero}"
        # select() picks its second operand where the mask's sign bit is set.
        safe = f"select(b, {one}, {unsafe})"
        if op is Ops.MOD:
            body = f"return a % {safe};"
        else:
            quotient = f"a / {safe}"
            if unit:
                quotient = f"select({quotient}, {self.negated(dtype, 'a', False)}, b == {minus_one})"
            body = f"return select({quotient}, {zero}, b == {zero});"
        name = f"{'mod' if op is Ops.MOD else 'div'}_{short(dtype)}"
        return self.function(name, dtype, [(dtype, "a"), (dtype, "b")], body)

    def multiply_add(self, dtype: DType, v: list[str]) -> str:
        return f"fma({', '.join(map(bare, v))})" if self.fused else f"({v[0]} * {v[1]} + {v[2]})"

    def math(self, op: Ops, dtype: DType, x: str) -> str | None:
        return f"{_FUNCTIONS[op]}({bare(x)})" if op in _FUNCTIONS else None

    # conversion

    def cast(self, x: str, src: DType, dst: DType) -> str:
        if src is dst:
            return x
        byte = dtypes.int8.vec(src.count)
        if dtypes.is_float(src) and dtypes.is_int(dst):
            return f"{self.saturating(src, dst)}({bare(x)})"
        if src.count == 1:
            return self.scalar_cast(x, src, dst)
        if dtypes.is_bool(dst):
            return self.convert(f"({x} != {self.literal(dtypes.as_const(0, src), src)})", signed(src), byte)
        if dtypes.is_bool(src):
            return self.convert(f"({x} & {self.literal(1, byte)})", byte, dst)
        return self.convert(x, src, dst)

    def saturating(self, src: DType, dst: DType) -> str:
        # That NaN becomes 0 is only a recommendation to drivers.
        zero = self.literal(0.0, src)
        number = f"x == x ? x : {zero}" if src.count == 1 else f"select({zero}, x, x == x)"
        body = f"return {self.convert(number, src, dst, saturate=True)};"
        return self.function(f"{short(src)}_to_{short(dst)}", dst, [(src, "x")], body)

    def bitcast(self, x: str, src: DType, dst: DType) -> str:
        if src is dst:
            return x
        if dtypes.is_bool(src) or dtypes.is_bool(dst):
            return self.cast(x, src, dst)
        return f"as_{self.type(dst)}({bare(x)})"
