"""The Metal Shading Language, 2.3 and later.

Buffers are ``[[buffer(slot)]]`` in the device address space; the variables are the members of one struct in the
constant address space, whose index follows the buffers'. A kernel is told its place by
``threadgroup_position_in_grid`` and ``thread_position_in_threadgroup``; where it has a threadgroup of known size, it
states that as the most threads it is ever launched with.

The language has vectors of 2, 3 and 4 lanes; wider ones are taken apart. In memory they are read and
written as packed vectors, which need no more alignment than an element has; where there are no packed ones (64 bits,
and the private arrays of a thread), lane by lane. Vectors of bools are the language's own.

Where the target has them, products are done by matrices of a SIMD-group, 32 threads with two elements of each.

Kernels expect a compiler without fast math: NaN and infinity are kept. bfloat16 is the language's from version 3.1 on.

Source: Metal Shading Language Specification (Apple).

Example:
  >>> from tg_codegen.render.c.msl import MSLRenderer
  >>> from tg_dtype import dtypes
  >>> MSLRenderer().supports_dtype(dtypes.bfloat16), MSLRenderer(bfloat=True).supports_dtype(dtypes.bfloat16)
  (False, True)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from tg_dtype import AddrSpace, DType, PtrDType, dtypes
from tg_lazy import INTEGER_DIVISIONS, Ops

from ...ir.facts import element
from ...ir.matrix import SIMDGROUP, MatrixInstruction
from ...ir.uop import UOp, UOps
from ...machine.target import Target
from ...rewrite.narrow import narrow
from ..spelling import bare, short
from .cstyle import CStyleRenderer
from .dialect import C_KEYWORDS, Builtin, Dialect, Operators, Terms, Vectors, WorkGroup, call

MOST_BUFFERS = 31
"""Buffer arguments of a function on every device: Apple, *Metal Feature Set Tables*."""
WIDEST = 4
"""Lanes of a vector: *Metal Shading Language Specification*, "Vector Data Types"."""
_NAMES = {
    dtypes.int8: "char", dtypes.uint8: "uchar", dtypes.int16: "short", dtypes.uint16: "ushort", dtypes.int32: "int",
    dtypes.uint32: "uint", dtypes.int64: "long", dtypes.uint64: "ulong", dtypes.float16: "half",
    dtypes.bfloat16: "bfloat", dtypes.float32: "float",
}  # fmt: skip
_SPACES = {AddrSpace.GLOBAL: "device ", AddrSpace.LOCAL: "threadgroup ", AddrSpace.REG: "thread "}
_FUNCTIONS = {Ops.SQRT: "sqrt", Ops.TRUNC: "trunc"}
_PLACES = {"g": "group", "l": "item"}
_WORDS = frozenset(
    """device thread threadgroup threadgroup_imageblock vertex fragment mesh object bfloat uint2 uint3 uint4 size_t
    ptrdiff_t metal as_type alignas alignof auto constexpr const_cast decltype dynamic_cast explicit export friend
    mutable noexcept nullptr reinterpret_cast sampler static_assert static_cast thread_local typeid uniform wchar_t
    texture2d visible intersection exp2 log2 fma threadgroup_barrier mem_flags group item args Args NAN
    INFINITY""".split()
)


def function_name(kernel: str) -> str:
    """What the function of a kernel is called: its name, unless that means something in the language.

    >>> function_name("r_16_4"), function_name("kernel")
    ('r_16_4', 'kernel_1')
    """
    return f"{kernel}_1" if kernel in C_KEYWORDS or kernel in _WORDS else kernel


def _through_float(name: str) -> Builtin:
    return lambda terms, dtype, v: f"bfloat({name}(float({bare(v[0])})))"


_OF_FLOATS = {
    (op, dtype): call(name) for dtype in (dtypes.float16, dtypes.float32)
    for op, name in (*_FUNCTIONS.items(), (Ops.MULACC, "fma"))
}  # fmt: skip
_BUILTINS = {
    **_OF_FLOATS,
    **{(op, dtypes.bfloat16): _through_float(name) for op, name in _FUNCTIONS.items()},
    # a narrow literal is an int
    **{(Ops.MAX, dtype): call("max") for dtype in _NAMES if dtypes.is_int(dtype) and dtype.bits >= 32},
}
_OF_VECTORS = {**_OF_FLOATS, **{(Ops.MAX, dtype): call("max") for dtype in _NAMES if dtypes.is_int(dtype)}}


def _kernel(name: str, parameters: str, group: WorkGroup | None) -> str:
    most = f"[[max_total_threads_per_threadgroup({group[0] * group[1] * group[2]})]] " if group else ""
    return f"{most}kernel void {name}({parameters})"


def _array(space: AddrSpace, kind: str, name: str, size: int) -> str:
    return f"{'' if space is AddrSpace.REG else _SPACES[space]}{kind} {name}[{size}]"


def _matrix(terms: Terms, instruction: MatrixInstruction, acc: DType, a: DType, b: DType) -> str:
    def matrix_of(dtype: DType, name: str) -> str:
        kind = f"simdgroup_{terms.type(dtype.scalar())}8x8"
        places = (f"{name}.thread_elements()[{i}] = {name}_.{'xy'[i]};" for i in range(2))
        return f"{kind} {name}; {' '.join(places)}"

    kinds = [terms.type(dtype) for dtype in (acc, a, b)]
    parameters = ", ".join(f"{kind} {letter}_" for kind, letter in zip(kinds, "cab", strict=True))
    return terms.helper(f"multiply_{short(instruction.a)}", acc, parameters, lambda: [
        matrix_of(acc, "c"), matrix_of(a, "a"), matrix_of(b, "b"), "simdgroup_multiply_accumulate(c, a, b, c);",
        f"return {kinds[0]}(c.thread_elements()[0], c.thread_elements()[1]);",
    ])  # fmt: skip


# The specification says nothing of bfloat16 as vectors, nor what a division by 0 gives.


def _lane_by_lane(op: Ops, dtype: DType, guarded: bool) -> bool:
    return dtype.scalar() is dtypes.bfloat16 or (guarded and op in INTEGER_DIVISIONS)


def _cast_lane_by_lane(src: DType, dst: DType) -> bool:
    rounds = dtypes.is_float(src) and not dtypes.is_float(dst)
    return rounds or dtypes.bfloat16 in (src.scalar(), dst.scalar())


DIALECT = Dialect(
    language="MSL",
    scalars=_NAMES,
    kernel=_kernel,
    parameter=lambda kind, name, number: f"device {kind}* {name} [[buffer({number})]]",
    variables=lambda number: f"constant Args& args [[buffer({number})]]",
    inputs=("uint3 group [[threadgroup_position_in_grid]]", "uint3 item [[thread_position_in_threadgroup]]"),
    work_item=lambda place, dimension: f"int({_PLACES[place]}.{'xyz'[dimension]})",
    reserved=C_KEYWORDS | _WORDS,
    preamble=("#include <metal_stdlib>", "#pragma clang fp contract(off)", "using namespace metal;"),
    long_suffix="L",
    name_constants=False,
    builtins=_BUILTINS,
    reinterpret=lambda kind, x: f"as_type<{kind}>({bare(x)})",
    matrix=_matrix,
    spaces=_SPACES,
    array=_array,
    barrier=("threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);",),
    one_gate=True,
    vectors=Vectors(
        name=lambda lane, dtype: f"{lane}{dtype.count}",
        define=lambda name, lane, dtype: "",
        literal=lambda kind, lanes: f"{kind}({', '.join(lanes[:1] if len(set(lanes)) == 1 else lanes)})",
        lane=lambda vector, index: f"{vector}.{'xyzw'[index]}",
        whole=lambda memory, space, divisor: memory.scalar().itemsize <= 4 and space is not AddrSpace.REG,
        load=lambda terms, memory, space, pointer, index:
            f"{terms.type(memory)}(*(const {space}packed_{terms.type(memory)}*)({pointer} + {index}))",
        store=lambda terms, memory, space, pointer, index, value:
            f"*({space}packed_{terms.type(memory)}*)({pointer} + {index}) = packed_{terms.type(memory)}({value});",
        operators=Operators(
            convert=lambda kind, x: f"{kind}({bare(x)})",
            reinterpret=lambda kind, x: f"as_type<{kind}>({bare(x)})",
            select=lambda terms, dtype: lambda mask, a, b: f"select({b}, {a}, {mask})",
            number=lambda terms, value, dtype: f"{terms.type(dtype)}({value})",
            takes_scalars=False,
            negates_unsigned=False,
            builtins=_OF_VECTORS,
            lane_by_lane=_lane_by_lane,
            cast_lane_by_lane=_cast_lane_by_lane,
        ),
    ),
)  # fmt: skip


class MSLRenderer(CStyleRenderer):
    """Writes the Metal Shading Language.

    Args:
      target: the device; an Apple GPU of the first Macs that had one if omitted.
      bfloat: whether the device computes with bfloat16, and its compiler knows version 3.1 of the language.
      simdgroup: whether it has matrices of a SIMD-group (``MTLGPUFamilyApple7``).
    """

    name: ClassVar[str] = "MSL"
    matrices: ClassVar[frozenset[str]] = frozenset(found.name for found in SIMDGROUP)
    dialect: ClassVar[Dialect] = DIALECT

    def __init__(
        self, target: Target | None = None, *, bfloat: bool = False, simdgroup: bool = True
    ) -> None:
        target = target or Target(
            kind="gpu", vector_bytes=16, registers=128, shared_bytes=32768, local_max=1024,
            global_max=(2**31 - 1, 2**31 - 1, 2**31 - 1), max_params=MOST_BUFFERS,
        )  # fmt: skip
        there = tuple(found for found in SIMDGROUP if bfloat or found.a is not dtypes.bfloat16)
        super().__init__(replace(target, matrices=there if simdgroup else ()))
        self.bfloat = bfloat

    def render(self, name: str, uops: Sequence[UOp]) -> str:
        name, uops = function_name(name), self.written(uops)
        self._check_limits(name, uops)
        return super().render(name, uops)

    def written(self, uops: Sequence[UOp]) -> Sequence[UOp]:
        return narrow(uops, WIDEST)

    def supports_dtype(self, dtype: DType) -> bool:
        return super().supports_dtype(dtype) and (self.bfloat or dtype.scalar() is not dtypes.bfloat16)

    def _check_limits(self, name: str, uops: Sequence[UOp]) -> None:
        """What a kernel takes of the device.

        Raises:
          ValueError: if it is more than there is.
        """
        variables = any(u.op is UOps.VAR for u in uops)
        buffers = sum(u.op is UOps.PARAM for u in uops) + variables
        if buffers > MOST_BUFFERS:
            of_them = ", one of them for its variables" if variables else ""
            raise ValueError(
                f"MSL: the kernel {name} wants {buffers} buffers{of_them}; a function takes {MOST_BUFFERS}")
        shared, limit = sum(map(_shared_bytes, uops)), self.target.shared_bytes
        if shared > limit:
            raise ValueError(
                f"MSL: the kernel {name} wants {shared} bytes of threadgroup memory; the device has {limit}")

    @property
    def key(self) -> str:
        return f"{super().key}:bfloat={self.bfloat}"


def _shared_bytes(u: UOp) -> int:
    """Bytes of threadgroup memory that a node takes."""
    if u.op is not UOps.SCRATCH or not isinstance(u.dtype, PtrDType) or u.dtype.space is AddrSpace.REG:
        return 0
    return -(-int(u.arg[1]) * element(u).itemsize // 16) * 16
