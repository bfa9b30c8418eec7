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
    >>> from tg_codegen.render.msl import MSLRenderer
    >>> from tg_dtype import dtypes
    >>> MSLRenderer().supports_dtype(dtypes.bfloat16), MSLRenderer(bfloat=True).supports_dtype(dtypes.bfloat16)
    (False, True)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar

from tg_dtype import AddrSpace, DType, dtypes
from tg_lazy import Ops

from ..ir.facts import element
from ..ir.matrix import SIMDGROUP, MatrixInstruction
from ..ir.uop import UOp, UOps
from ..machine.renderer import Renderer
from ..machine.target import Target
from ..rewrite.narrow import narrow
from .cstyle import BINARY, COMPARISONS, KEYWORDS, CStyleKernel, bare, short, unsigned

MOST_BUFFERS = 31  # buffer arguments of a function, on every device
WIDEST = 4  # lanes of a vector
_NAMES = {
    dtypes.int8: "char", dtypes.uint8: "uchar", dtypes.int16: "short", dtypes.uint16: "ushort", dtypes.int32: "int",
    dtypes.uint32: "uint", dtypes.int64: "long", dtypes.uint64: "ulong", dtypes.float16: "half",
    dtypes.bfloat16: "bfloat", dtypes.float32: "float",
}  # fmt: skip
_SPACES = {AddrSpace.GLOBAL: "device ", AddrSpace.LOCAL: "threadgroup ", AddrSpace.REG: "thread "}
_FUNCTIONS = {Ops.SQRT: "sqrt", Ops.TRUNC: "trunc"}
_PLACES = {"g": "group", "l": "item"}
_INPUTS = ("uint3 group [[threadgroup_position_in_grid]]", "uint3 item [[thread_position_in_threadgroup]]")
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
    return f"{kernel}_1" if kernel in KEYWORDS or kernel in _WORDS else kernel


class MSLRenderer(Renderer):
    """Writes the Metal Shading Language.

    Args:
      target: the device; an Apple GPU of the first Macs that had one if omitted.
      bfloat: whether the device computes with bfloat16, and its compiler knows version 3.1 of the language.
      simdgroup: whether it has matrices of a SIMD-group (``MTLGPUFamilyApple7``).
    """

    name: ClassVar[str] = "MSL"
    matrices: ClassVar[frozenset[str]] = frozenset(found.name for found in SIMDGROUP)

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
        uops = narrow(uops, WIDEST)
        return _Kernel(name, uops, self.target).text()

    def supports_dtype(self, dtype: DType) -> bool:
        scalar = dtype.scalar()
        if scalar is dtypes.bfloat16:
            return self.bfloat
        return dtypes.is_bool(scalar) or scalar in _NAMES

    @property
    def key(self) -> str:
        return f"{super().key}:bfloat={self.bfloat}"


class _Kernel(CStyleKernel):
    language = "MSL"
    scalars = _NAMES
    long_suffix = "L"
    name_constants = False

    def __init__(self, name: str, uops: Sequence[UOp], target: Target) -> None:
        super().__init__(name, uops, target.fused_multiply_add)
        self.names = set(KEYWORDS | _WORDS)
        self.shared_bytes, self.shared_limit = 0, target.shared_bytes

    # whole text

    def text(self) -> str:
        self.name = function_name(self.name)
        self.names.add(self.name)
        parameters: list[str] = []
        for u in self.facts.params:
            self.values[u] = self.claim(f"data{u.arg}")
            parameters.append(f"{self.parameter_type(u)} {self.values[u]} [[buffer({len(parameters)})]]")
        members = []
        for u in self.facts.variables:
            member = self.claim(u.arg.name)
            self.values[u] = f"args.{member}"
            members.append(f"int {member};")
        if members:
            parameters.append(f"constant Args& args [[buffer({len(parameters)})]]")
        if len(parameters) > MOST_BUFFERS:
            variables = ", one of them for its variables" if members else ""
            raise ValueError(
                f"{self.language}: the kernel {self.name} wants {len(parameters)} buffers{variables}; a function takes "
                f"{MOST_BUFFERS}"
            )
        for u in self.uops:
            self.statement(u)
        lines = [
            "#include <metal_stdlib>",
            "#pragma clang fp contract(off)",
            "using namespace metal;",
            *([f"struct Args {{ {' '.join(members)} }};"] if members else []),
            *self.helpers.values(),
            f"{self.signature(', '.join([*parameters, *_INPUTS]))} {{",
        ]  # fmt: skip
        return "\n".join([*lines, *self.body, "}"]) + "\n"

    def signature(self, parameters: str) -> str:
        group = self.facts.work_group()
        most = f"[[max_total_threads_per_threadgroup({group[0] * group[1] * group[2]})]] " if group else ""
        return f"{most}kernel void {self.name}({parameters})"

    def parameter_type(self, u: UOp) -> str:
        const = "" if u.arg in self.facts.stored else "const "
        return f"device {const}{self.memory_type(element(u))}*"

    def special(self, name: str) -> str:
        return f"int({_PLACES[name[0]]}.{'xyz'[int(name[-1])]})"

    def scratch(self, u: UOp, name: str) -> str:
        space = self.space(u)
        if space is AddrSpace.REG:
            return f"{self.memory_type(element(u))} {name}[{u.arg[1]}]"
        self.shared_bytes += -(-u.arg[1] * element(u).itemsize // 16) * 16
        if self.shared_bytes > self.shared_limit:
            raise ValueError(
                f"{self.language}: the kernel {self.name} wants {self.shared_bytes} bytes of threadgroup memory; the "
                f"device has {self.shared_limit}"
            )
        return f"threadgroup {self.memory_type(element(u))} {name}[{u.arg[1]}]"

    def barrier(self) -> None:
        self.line("threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);")

    def pointer_type(self, pointer: UOp) -> str:
        return f"{_SPACES[self.space(pointer)]}{super().pointer_type(pointer)}"

    # vectors

    def type(self, dtype: DType) -> str:
        if dtypes.is_bool(dtype) and dtype.count > 1:
            return self.vector_type(dtype)
        return super().type(dtype)

    def vector_type(self, dtype: DType) -> str:
        return f"{self.type(dtype.scalar())}{dtype.count}"

    def vector(self, lanes: Sequence[str], dtype: DType) -> str:
        distinct = lanes[:1] if len(set(lanes)) == 1 else lanes
        return f"{self.type(dtype)}({', '.join(bare(lane) for lane in distinct)})"

    def lane(self, vector: str, index: int, count: int) -> str:
        return f"{vector}.{'xyzw'[index]}"

    def lane_value(self, vector: str, index: int, dtype: DType) -> str:
        return self.lane(vector, index, dtype.count)

    def pack_lane(self, text: str) -> str:
        return text

    def each(
        self, make: Callable[[list[str]], str | None], values: list[tuple[str, DType]], dtype: DType
    ) -> str | None:
        """A vector of which each lane is made from the same lane of these values."""
        names = [self.atom(text, kind) for text, kind in values]
        lanes = []
        for i in range(dtype.count):
            one = make([self.lane(name, i, dtype.count) for name in names])
            if one is None:
                return None
            lanes.append(one)
        return self.vector(lanes, dtype)

    # memory

    def load(self, u: UOp) -> str:
        if len(u.src) > 2 and u.src[2].op is UOps.BROADCAST:  # all lanes or none
            u = u.replace((*u.src[:2], u.src[2].src[0], *u.src[3:]))
        return super().load(u)

    def packed(self, base: UOp, dtype: DType) -> str | None:
        """The type by which consecutive elements are accessed as one, None if there is none."""
        memory = dtypes.uint8.vec(dtype.count) if dtypes.is_bool(dtype) else dtype
        if memory.scalar().itemsize > 4 or self.space(base) is AddrSpace.REG:
            return None
        return f"packed_{self.type(memory)}"

    def vector_load(self, base: UOp, pointer: str, index: UOp, text: str, dtype: DType) -> str:
        memory = dtypes.uint8.vec(dtype.count) if dtypes.is_bool(dtype) else dtype
        packed = self.packed(base, dtype)
        if packed is not None:
            space = _SPACES[self.space(base)]
            return f"{self.type(memory)}(*(const {space}{packed}*)({pointer} + {text}))"
        at = self.atom(text, index.dtype)
        return self.vector([f"{pointer}[{at} + {i}]" for i in range(dtype.count)], memory)

    def vector_store(self, base: UOp, pointer: str, index: UOp, text: str, value: str, dtype: DType) -> None:
        memory = dtypes.uint8.vec(dtype.count) if dtypes.is_bool(dtype) else dtype
        packed = self.packed(base, dtype)
        if packed is not None:
            self.line(f"*({_SPACES[self.space(base)]}{packed}*)({pointer} + {text}) = {packed}({bare(value)});")
            return
        at, whole = self.atom(text, index.dtype), self.atom(value, memory)
        for i in range(dtype.count):
            self.line(f"{pointer}[{at} + {i}] = {self.lane(whole, i, dtype.count)};")

    def from_memory(self, text: str, dtype: DType) -> str:
        if not dtypes.is_bool(dtype) or dtype.count == 1:
            return super().from_memory(text, dtype)
        return f"({text} != {self.type(dtypes.uint8.vec(dtype.count))}(0))"

    def to_memory(self, text: str, dtype: DType) -> str:
        if not dtypes.is_bool(dtype) or dtype.count == 1:
            return text
        return f"{self.type(dtypes.uint8.vec(dtype.count))}({bare(text)})"

    # arithmetic

    def elementwise(self, op: Ops, dtype: DType, v: list[str], exact: bool, guarded: bool) -> str | None:
        if dtype.count == 1:
            return self.scalar_alu(op, dtype, v, exact, guarded)
        scalar, flags = dtype.scalar(), dtypes.bool.vec(dtype.count)
        # The specification says nothing of these as vectors.
        alone = dtypes.is_bool(dtype) or scalar is dtypes.bfloat16 or (guarded and op in (Ops.IDIV, Ops.MOD))
        if alone and op is Ops.WHERE:
            values = [(v[0], flags), (v[1], dtype), (v[2], dtype)]
            return self.each(lambda lane: f"({lane[0]} ? {lane[1]} : {lane[2]})", values, dtype)
        if alone:
            return self.each(
                lambda lane: self.scalar_alu(op, scalar, lane, exact, guarded),
                [(text, dtype) for text in v],
                flags if op in COMPARISONS else dtype,
            )
        if op is Ops.WHERE:
            return f"select({bare(v[2])}, {bare(v[1])}, {bare(v[0])})"
        if op in COMPARISONS:
            return f"({v[0]} {BINARY[op]} {v[1]})"
        return self.scalar_alu(op, dtype, v, exact, guarded)

    def wrapping(self, operator: str, dtype: DType, a: str, b: str, exact: bool) -> str:
        if dtype.count == 1:
            return super().wrapping(operator, dtype, a, b, exact)
        if dtypes.is_unsigned(dtype):
            return f"({a} {operator} {b})"
        word = self.type(unsigned(dtype))
        return f"as_type<{self.type(dtype)}>(as_type<{word}>({bare(a)}) {operator} as_type<{word}>({bare(b)}))"

    def negated(self, dtype: DType, x: str, exact: bool) -> str:
        if dtype.count == 1:
            return super().negated(dtype, x, exact)
        word = self.type(unsigned(dtype))
        return f"as_type<{self.type(dtype)}>({word}(0) - as_type<{word}>({bare(x)}))"

    def maximum(self, dtype: DType) -> str:
        if dtypes.is_int(dtype) and (dtype.count > 1 or dtype.bits >= 32):  # a narrow literal is an int
            return "max"
        if dtype.count == 1:
            return super().maximum(dtype)
        body = "return select(select(b, a, a > b), a, a != a);"
        return self.function(f"max_{short(dtype)}", dtype, [(dtype, "a"), (dtype, "b")], body)

    def float_alu(self, op: Ops, dtype: DType, v: list[str]) -> str | None:
        if op is Ops.RECIP and dtype.count > 1:
            return f"({self.literal(1.0, dtype)} / {v[0]})"
        return super().float_alu(op, dtype, v)

    def multiply_add(self, dtype: DType, v: list[str]) -> str:
        if not self.fused or dtype.scalar() is dtypes.bfloat16:
            return super().multiply_add(dtype, v)
        return f"fma({', '.join(map(bare, v))})"

    def math(self, op: Ops, dtype: DType, x: str) -> str | None:
        found = _FUNCTIONS.get(op)
        if found is None:
            return None
        if dtype.scalar() is dtypes.bfloat16:
            return f"bfloat({found}(float({bare(x)})))"
        return f"{found}({bare(x)})"

    def matrix(self, instruction: MatrixInstruction, acc: DType, a: DType, b: DType) -> str:
        def matrix_of(dtype: DType, name: str) -> str:
            kind = f"simdgroup_{self.type(dtype.scalar())}8x8"
            places = (f"{name}.thread_elements()[{i}] = {name}_.{'xy'[i]};" for i in range(2))
            return f"{kind} {name}; {' '.join(places)}"

        kinds = [self.type(dtype) for dtype in (acc, a, b)]
        body = "\n  ".join([
            matrix_of(acc, "c"), matrix_of(a, "a"), matrix_of(b, "b"), "simdgroup_multiply_accumulate(c, a, b, c);",
            f"return {kinds[0]}(c.thread_elements()[0], c.thread_elements()[1]);",
        ])  # fmt: skip
        name = f"multiply_{short(instruction.a)}"
        parameters = ", ".join(f"{kind} {letter}_" for kind, letter in zip(kinds, "cab", strict=True))
        return self.helper(
            name, lambda: f"{self.helper_prefix}{kinds[0]} tg_{name}({parameters}) {{\n  {body}\n}}"
        )

    # conversion

    def cast(self, x: str, src: DType, dst: DType) -> str:
        if src is dst:
            return x
        if src.count == 1:
            return self.scalar_cast(x, src, dst)
        one = (src.scalar(), dst.scalar())
        if dtypes.bfloat16 in one or (dtypes.is_float(src) and not dtypes.is_float(dst)):
            found = self.each(lambda lane: self.scalar_cast(lane[0], *one), [(x, src)], dst)
            assert found is not None
            return found
        if dtypes.is_bool(dst):
            return f"({x} != {self.type(src)}(0))"
        return f"{self.type(dst)}({bare(x)})"

    def bitcast(self, x: str, src: DType, dst: DType) -> str:
        if src is dst:
            return x
        if dtypes.is_bool(src) or dtypes.is_bool(dst):
            return self.cast(x, src, dst)
        return f"as_type<{self.type(dst)}>({bare(x)})"
