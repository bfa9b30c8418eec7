"""WGSL, for WebGPU.

Buffers are bindings ``@group(0) @binding(slot)``, all ``read_write`` (one buffer may stand behind several slots, which
WebGPU allows only where the access is the same); variables are members of the uniform ``args``, whose binding follows
the buffers'. The conventions of values:

* Integers narrower than 32 bits are held in 32, and brought back to their range after each operation.
* 64-bit integers are ``vec2<u32>``, low word first; their arithmetic is in helper functions.
* Vectors are taken apart: WGSL has none wider than four lanes, and hardware gains nothing from these.
* NaN and infinity have no literals and comparisons with NaN may be folded; both go through the bits.

A buffer of elements narrower than 32 bits is an array of words. A store changes its own bits of the word by one
``atomicXor`` with the difference to what they were: neighbours in the word may be stored by others at the same time.

A shader has few storage buffers. Where a kernel has more than ``buffers``, the last binding holds several slots one
behind the other, as words: those that a comment line ``// packed: slot ...`` lists, each from the word that a member
of ``args`` tells. Another comment, ``// writes: slot ...``, tells which slots are stored to. A third, ``// groups``,
stands where a dimension of the grid may be larger than a launch allows: then workgroups are numbered through all
dimensions of the launch, and members of ``args`` tell the sizes of the grid. The members are in this order: the words,
the sizes, the variables.

Source: WebGPU Shading Language (W3C).

Example:
    >>> from tg_codegen.render.wgsl import WGSLRenderer
    >>> from tg_dtype import dtypes
    >>> WGSLRenderer().supports_dtype(dtypes.float64), WGSLRenderer(half=True).supports_dtype(dtypes.float16)
    (False, True)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import copysign, inf
from typing import ClassVar

from tg_dtype import AddrSpace, ConstType, DType, dtypes
from tg_lazy import Ops

from ..ir.facts import element, pointer_base
from ..ir.uop import UOp, UOps
from ..machine.renderer import Renderer
from ..machine.target import Target
from ..rewrite.scalarize import scalarize
from .cstyle import BINARY, LOGIC, CStyleKernel, bare, decimal, short
from .wgsl64 import HELPERS as WIDE_HELPERS

KEYWORDS = frozenset(
    """alias array atomic auto await become binding_array bitcast bool break case cast catch class const const_assert
    const_cast continue continuing default delete diagnostic discard do dynamic_cast else enable enum explicit export
    extends extern external f16 f32 fallthrough false final finally fn for friend from get goto group handle highp i32
    if impl implements import inline instanceof interface layout let loop lowp macro main mat match mediump meta mod
    module move mut mutable namespace new nil noexcept noinline null nullptr of operator override package packoffset
    pass patch pixelfragment pointer precise precision premerge private protected ptr pub public quat readonly ref
    regardless register requires resource restrict return sampler self set shared signed sizeof smooth snorm static
    storage struct super switch target template texture this thread throw trait true try type typedef typeid typename
    typeof u32 undefined union unorm unsafe unsized use uniform using var varying vec virtual void volatile
    where while with workgroup writeonly yield abs all any atomicLoad atomicStore atomicXor clamp exp2
    extractBits fma log2 max min select sin sqrt trunc vec2 workgroupBarrier storageBarrier args packed group item
    groups Args number gx gy gz""".split()
)
MOST_GROUPS = 65535  # along one dimension, on every device
_SCALARS = {
    dtypes.int8: "i32", dtypes.int16: "i32", dtypes.int32: "i32", dtypes.uint8: "u32", dtypes.uint16: "u32",
    dtypes.uint32: "u32", dtypes.int64: "vec2<u32>", dtypes.uint64: "vec2<u32>", dtypes.float16: "f16",
    dtypes.float32: "f32",
}  # fmt: skip
_FUNCTIONS = {Ops.SQRT: "sqrt", Ops.TRUNC: "trunc"}
# Of (2**r - 1) / r on [-1/2, 1/2], after the leading one: see rules.transcendental.
_EXP2 = (
    0.001339890018551765, 0.009618437609176802, 0.05550332409654291, 0.24022647910283068, 0.6931472028809557,
)  # fmt: skip
_AXES = {"g": "group", "l": "item"}
_LITERAL = re.compile(r"\(?-?[0-9][0-9a-fA-Fxp.+-]*[iufh]?\)?|true|false|i32\(-2147483648\)|vec2<u32>\([0-9u, ]*\)")


class WGSLRenderer(Renderer):
    """Writes WGSL.

    Args:
      target: the device; a modest one if omitted.
      half: whether the device has ``shader-f16``.
      buffers: most storage buffers of a shader.
      cast_half: whether ``bitcast`` takes ``vec2<f16>``, as the specification says; naga's does not.
    """

    name: ClassVar[str] = "WGSL"
    numbers_groups: ClassVar[bool] = True
    shifts: ClassVar[bool] = False

    def __init__(
        self, target: Target | None = None, *, half: bool = False, buffers: int = 8, cast_half: bool = True
    ) -> None:
        super().__init__(target or Target(
            kind="gpu", vector_bytes=4, registers=128, shared_bytes=16384, local_max=256,
            global_max=(MOST_GROUPS, MOST_GROUPS, MOST_GROUPS), max_params=buffers,
        ))  # fmt: skip
        self.half, self.buffers, self.cast_half = half, buffers, cast_half

    def render(self, name: str, uops: Sequence[UOp]) -> str:
        return _Kernel(name, scalarize(uops), self).text()

    def supports_dtype(self, dtype: DType) -> bool:
        scalar = dtype.scalar()
        if scalar is dtypes.float16:
            return self.half
        return dtypes.is_bool(scalar) or scalar in _SCALARS

    def supports_op(self, op: Ops, dtype: DType) -> bool:
        # The built-in functions may be off by 2**-11. Our EXP2 in arithmetic adds and subtracts a large constant to
        # round, which a compiler of WGSL may take away: so there is a helper for it.
        return super().supports_op(op, dtype) or (op is Ops.EXP2 and dtype.scalar() is dtypes.float32)

    @property
    def key(self) -> str:
        return f"{super().key}:half={self.half}:buffers={self.buffers}:cast_half={self.cast_half}"


def _special(value: float) -> tuple[str, str]:
    """The name and the bits (of inf for -inf, too) of a number that no literal is for; empty where one is."""
    if value != value:
        return "nan", "0x7fc00000u"
    if value in (inf, -inf):
        return "inf", "0x7f800000u"
    return ("negative_zero", "0x80000000u") if value == 0 and copysign(1.0, value) < 0 else ("", "")


@dataclass(frozen=True, slots=True)
class _Place:
    """How a pointer is read and written.

    Attributes:
      name: of the array.
      words: whether the array is one of words whatever the element.
      atomic: whether the words are atomic.
      base: what to add for the first word of the slot.
    """

    name: str
    words: bool = False
    atomic: bool = False
    base: str = ""


class _Kernel(CStyleKernel):
    language = "WGSL"
    scalars = _SCALARS

    def __init__(self, name: str, uops: Sequence[UOp], renderer: WGSLRenderer) -> None:
        super().__init__(name, uops, renderer.target.fused_multiply_add)
        self.names = set(KEYWORDS)
        self.buffers, self.cast_half = renderer.buffers, renderer.cast_half
        self.places: dict[UOp, _Place] = {}
        self.shared: list[str] = []
        self.shared_bytes, self.shared_limit = 0, renderer.target.shared_bytes

    # whole text

    def text(self) -> str:
        self.name = self.claim(self.name)
        members: list[str] = []
        declared, notes = self.declare(members)
        numbered = self.number_groups(notes, members)
        for u in self.facts.variables:
            name = self.claim(u.arg.name)
            self.values[u] = f"args.{name}"
            members.append(f"{name}: i32")
        for u in self.uops:
            self.statement(u)
        enable = ["enable f16;"] if dtypes.float16 in self.used else []
        uniform = [
            f"struct Args {{ {', '.join(members)} }}",
            f"@group(0) @binding({len(declared)}) var<uniform> args: Args;",
        ] if members else []
        group = self.facts.work_group() or (1, 1, 1)
        inputs = ["@builtin(workgroup_id) group: vec3<u32>", "@builtin(local_invocation_id) item: vec3<u32>"]
        if numbered:
            inputs.append("@builtin(num_workgroups) groups: vec3<u32>")
        head = [
            *notes, *enable, *uniform, *declared, *self.shared, *self.helpers.values(),
            f"@compute @workgroup_size({', '.join(map(str, group))})",
            f"fn {self.name}({', '.join(inputs)}) {{",
        ]  # fmt: skip
        return "\n".join([*head, *numbered, *self.body, "}"]) + "\n"

    def declare(self, members: list[str]) -> tuple[list[str], list[str]]:
        """The bindings of the buffers, and the comments about them."""
        params = self.facts.params
        words = {
            u.arg for u in params if element(u).itemsize < 4 and element(u) is not dtypes.float16
        }
        own, rest = list(params), []
        if len(params) > self.buffers:
            stored_first = sorted(params, key=lambda u: (u.arg not in self.facts.stored, u.arg))
            own = sorted(stored_first[: self.buffers - 1], key=lambda u: u.arg)
            rest = sorted(stored_first[self.buffers - 1 :], key=lambda u: u.arg)
        lines, notes = [], []
        for binding, u in enumerate(own):
            atomic = u.arg in words and u.arg in self.facts.stored
            place = self.places[u] = _Place(self.claim(f"data{u.arg}"), u.arg in words, atomic)
            lines.append(self.binding(binding, place, element(u)))
        if rest:
            # A float16 in the packed words is two bytes of one.
            atomic = any(u.arg in self.facts.stored and element(u).itemsize < 4 for u in rest)
            for u in rest:
                base = self.claim(f"base{u.arg}")
                members.append(f"{base}: u32")
                self.places[u] = _Place("packed", True, atomic, f"args.{base} + ")
            lines.append(self.binding(len(own), _Place("packed", True, atomic), dtypes.uint32))
            notes.append(f"// packed: {' '.join(str(u.arg) for u in rest)}")
        for u in params:
            self.values[u] = self.places[u].name
        notes.append(f"// writes: {' '.join(map(str, sorted(self.facts.stored)))}")
        return lines, notes

    def binding(self, number: int, place: _Place, dtype: DType) -> str:
        kind = self.type(dtype)
        if place.words:
            kind = "atomic<u32>" if place.atomic else "u32"
        return f"@group(0) @binding({number}) var<storage, read_write> {place.name}: array<{kind}>;"

    def number_groups(self, notes: list[str], members: list[str]) -> list[str]:
        """The statements that number workgroups through all dimensions, if one has more than a launch may."""
        if self.most_groups() <= MOST_GROUPS:
            return []
        notes.append("// groups")
        x, y, z = (self.claim(f"grid_{axis}") for axis in "xyz")
        members += [f"{name}: u32" for name in (x, y, z)]
        # The condition is the same for a whole workgroup, so barriers may follow.
        return [
            "  let number = (group.z * groups.y + group.y) * groups.x + group.x;",
            f"  if (number >= args.{x} * args.{y} * args.{z}) {{ return; }}",
            f"  let gx = number % args.{x};",
            f"  let gy = number / args.{x} % args.{y};",
            f"  let gz = number / (args.{x} * args.{y});",
        ]

    def most_groups(self) -> int:
        """The most workgroups along one dimension that the grid may have."""
        sizes = [u.arg[1] for name, u in self.facts.specials.items() if name.startswith("gidx")]
        return max((size if isinstance(size, int) else size.vmax for size in sizes), default=1)

    # writing

    def variable(self, stem: str, dtype: DType, text: str) -> str:
        n = len(self.values)
        while f"{stem}{n}" in self.names:
            n += 1
        name = self.claim(f"{stem}{n}")
        self.line(f"{'var' if stem == 'acc' else 'let'} {name}: {self.type(dtype)} = {bare(text)};")
        return name

    def function(self, name: str, result: DType, parameters: Sequence[tuple[DType, str]], body: str) -> str:
        arguments = ", ".join(f"{p}: {self.type(d)}" for d, p in parameters)
        return self.helper(name, lambda: f"fn tg_{name}({arguments}) -> {self.type(result)} {{ {body} }}")

    def wide(self, name: str) -> str:
        """A helper for 64-bit integers, with those that it calls."""
        text = WIDE_HELPERS[name]
        for other in re.findall(r"\btg_(\w+)\(", text):
            if other != name and other in WIDE_HELPERS:
                self.wide(other)
        return self.helper(name, lambda: text)

    def statement(self, u: UOp) -> None:
        match u.op:
            case UOps.SPECIAL:
                axis, dimension = u.arg[0][0], "xyz"[int(u.arg[0][-1])]
                self.values[u] = self.claim(u.arg[0])
                numbered = axis == "g" and self.most_groups() > MOST_GROUPS
                source = f"g{dimension}" if numbered else f"{_AXES[axis]}.{dimension}"
                self.line(f"let {self.values[u]}: i32 = i32({source});")
            case UOps.SCRATCH:
                self.scratch_array(u)
            case UOps.RANGE:
                self.open_range(u)
            case UOps.IF:
                self.line(f"if ({bare(self.value(u.src[0]))}) {{")
                self.depth += 1
            case UOps.AFTER:
                self.values[u] = self.values[u.src[0]]
            case _:
                super().statement(u)

    def scratch_array(self, u: UOp) -> None:
        name = self.values[u] = self.claim(u.arg[0])
        self.places[u] = _Place(name)
        kind = f"array<{self.type(element(u))}, {u.arg[1]}>"
        if self.space(u) is AddrSpace.LOCAL:
            self.shared.append(f"var<workgroup> {name}: {kind};")
            size = 2 if element(u) is dtypes.float16 else max(element(u).itemsize, 4)
            self.shared_bytes += u.arg[1] * size
            if self.shared_bytes > self.shared_limit:
                raise ValueError(
                    f"WGSL: {self.name} wants {self.shared_bytes} bytes of workgroup memory; there are "
                    f"{self.shared_limit}"
                )
        else:
            self.line(f"var {name}: {kind};")

    def open_range(self, u: UOp) -> None:
        """A loop; its counter is an i32 also where the value has 64 bits, since no buffer is so large."""
        name = self.values[u] = self.claim(u.arg)
        start, end = (self.narrow_index(s) for s in u.src[:2])
        step = self.narrow_index(u.src[2]) if len(u.src) > 2 else "1i"
        counter = name if u.dtype.itemsize <= 4 else self.claim(f"{name}_low")
        self.line(f"for (var {counter}: i32 = {bare(start)}; {counter} < {end}; {counter} += {step}) {{")
        self.depth += 1
        if counter != name:
            self.line(f"let {name}: vec2<u32> = {self.cast(counter, dtypes.int32, u.dtype)};")

    def narrow_index(self, u: UOp) -> str:
        """An integer as an i32."""
        return self.cast(self.value(u), u.dtype, dtypes.int32) if u.dtype is not dtypes.int32 else self.value(u)

    def barrier(self) -> None:
        self.line("workgroupBarrier();")
        self.line("storageBarrier();")

    # literals

    def literal(self, value: ConstType, dtype: DType) -> str:
        if dtypes.is_bool(dtype):
            return "true" if value else "false"
        if dtypes.is_float(dtype):
            self.used.add(dtype)
            return self.float_literal(float(value), dtype)
        number = int(value)
        if dtype.itemsize == 8:
            bits = number & (1 << 64) - 1
            return f"vec2<u32>({bits & 0xFFFFFFFF}u, {bits >> 32}u)"
        if dtypes.is_unsigned(dtype):
            return f"{number}u"
        if number == -(1 << 31):  # the literal without its sign would not fit
            return "i32(-2147483648)"
        return f"({number}i)" if number < 0 else f"{number}i"

    def float_literal(self, value: float, dtype: DType) -> str:
        kind, bits = _special(value)
        if kind:
            # Of a constant the bits of which are no number the compiler complains, and of a zero it drops the sign;
            # this is one that it does not see.
            single = self.function(kind, dtypes.float32, (), f"var bits = {bits}; return bitcast<f32>(bits);")
            text = f"{single}()" if dtype is dtypes.float32 else f"f16({single}())"
            return f"(-{text})" if value < 0 else text
        text = decimal(value) + ("h" if dtype is dtypes.float16 else "f")
        return f"({text})" if text.startswith("-") else text

    def narrow(self, text: str, dtype: DType) -> str:
        if dtypes.is_float(dtype) or dtypes.is_bool(dtype) or dtype.bits >= 32:
            return text
        if dtypes.is_unsigned(dtype):
            return f"({text} & {(1 << dtype.bits) - 1}u)"
        return f"extractBits({bare(text)}, 0u, {dtype.bits}u)"

    # memory

    def place(self, pointer: UOp) -> _Place:
        return self.places[pointer_base(pointer)]

    def load(self, u: UOp) -> str:
        index = self.index(u.src[1])
        if len(u.src) == 2:
            return self.read(u.src[0], index, u.dtype)
        gate = self.atom(self.value(u.src[2]), dtypes.bool)
        other = self.literal(dtypes.as_const(0, u.dtype), u.dtype) if len(u.src) == 3 else self.value(u.src[3])
        # Whatever the index is where the gate is shut, nothing beyond the buffer is read.
        inside = self.variable("at", dtypes.int32, f"select(0i, {bare(index)}, {gate})")
        return f"select({bare(other)}, {bare(self.read(u.src[0], inside, u.dtype))}, {gate})"

    def index(self, u: UOp) -> str:
        return self.narrow_index(u)

    def read(self, pointer: UOp, index: str, dtype: DType) -> str:
        """One element."""
        place = self.place(pointer)
        if not place.words:
            return f"{place.name}[{bare(index)}]"

        def word(at: str) -> str:
            text = f"{place.name}[{bare(at)}]"
            return f"atomicLoad(&{text})" if place.atomic else text

        base = place.base
        if dtype.itemsize >= 4:
            at = self.atom(index, dtypes.int32)
            if dtype.itemsize == 8:
                return f"vec2<u32>({word(f'{base}2u * u32({at})')}, {word(f'{base}2u * u32({at}) + 1u')})"
            return self.from_bits(word(f"{base}u32({at})"), dtype)
        at = self.variable("at", dtypes.uint32, f"u32({bare(index)})")
        shift, per, bits = self.part(at, dtype)
        raw = word(f"{base}({at} >> {per}u)")
        if dtypes.is_bool(dtype) or dtypes.is_unsigned(dtype) or dtypes.is_float(dtype):
            raw = f"extractBits({raw}, {shift}, {bits}u)"
            if dtypes.is_bool(dtype):
                return f"({raw} != 0u)"
            return self.from_bits(raw, dtype)
        return f"extractBits(bitcast<i32>({raw}), {shift}, {bits}u)"

    def part(self, at: str, dtype: DType) -> tuple[str, int, int]:
        """Of a narrow element: its first bit in the word, the logarithm of how many share a word, its bits."""
        return (f"({at} & 3u) * 8u", 2, 8) if dtype.itemsize == 1 else (f"({at} & 1u) * 16u", 1, 16)

    def from_bits(self, raw: str, dtype: DType) -> str:
        """A value of up to 32 bits of which the bits are a u32."""
        kind = self.type(dtype)
        if dtype is dtypes.float32 or dtype is dtypes.int32:
            return f"bitcast<{kind}>({raw})"
        return self.half_of(raw) if dtype is dtypes.float16 else raw

    def half_of(self, raw: str) -> str:
        """The float16 of which the bits are the low ones of a u32."""
        return f"bitcast<vec2<f16>>({raw}).x" if self.cast_half else f"f16(unpack2x16float({raw}).x)"

    def to_bits(self, text: str, dtype: DType) -> str:
        """The bits of a value of up to 32 bits as a u32; above those of the dtype they may be anything."""
        if dtypes.is_bool(dtype):
            return f"select(0u, 1u, {bare(text)})"
        if dtype is dtypes.float16:
            self.used.add(dtype)
            if not self.cast_half:
                return f"pack2x16float(vec2<f32>(f32({bare(text)}), 0.0f))"
            return f"bitcast<u32>(vec2<f16>({bare(text)}, 0.0h))"
        return text if dtypes.is_unsigned(dtype) else f"bitcast<u32>({bare(text)})"

    def store(self, u: UOp) -> None:
        pointer, index, value = u.src[:3]
        if len(u.src) > 3:
            self.line(f"if ({bare(self.value(u.src[3]))}) {{")
            self.depth += 1
        self.write(pointer, self.index(index), self.value(value), element(pointer))
        if len(u.src) > 3:
            self.depth -= 1
            self.line("}")

    def write(self, pointer: UOp, index: str, text: str, dtype: DType) -> None:
        place = self.place(pointer)
        if not place.words:
            self.line(f"{place.name}[{bare(index)}] = {bare(text)};")
            return

        def put(at: str, bits: str) -> None:
            word = f"{place.name}[{at}]"
            self.line(f"atomicStore(&{word}, {bits});" if place.atomic else f"{word} = {bits};")

        base = place.base
        at = self.variable("at", dtypes.uint32, f"u32({bare(index)})")
        if dtype.itemsize == 8:
            value = self.atom(text, dtype)
            put(f"{base}2u * {at}", f"{value}.x")
            put(f"{base}2u * {at} + 1u", f"{value}.y")
        elif dtype.itemsize == 4:
            put(f"{base}{at}", bare(self.to_bits(text, dtype)))
        else:
            shift, per, bits = self.part(at, dtype)
            by = self.variable("by", dtypes.uint32, shift)
            word = f"&{place.name}[{base}({at} >> {per}u)]"
            change = f"((atomicLoad({word}) >> {by}) ^ {self.to_bits(text, dtype)})"
            self.line(f"atomicXor({word}, ({change} & {(1 << bits) - 1}u) << {by});")

    # arithmetic

    def alu(self, u: UOp) -> str:
        op, dtype = u.op, u.src[-1].dtype
        assert isinstance(op, Ops)
        values = [self.value(operand) for operand in u.src]
        if all(_LITERAL.fullmatch(v) for v in values) and op is not Ops.CAST:
            # Arithmetic on constants is done by the compiler, which rejects what overflows.
            values[0] = self.variable("c", u.src[0].dtype, values[0])
        if op is Ops.CAST:
            return self.cast(values[0], dtype, u.dtype)
        if op is Ops.BITCAST:
            return self.bitcast(values[0], dtype, u.dtype)
        if op is Ops.WHERE:
            return f"select({bare(values[2])}, {bare(values[1])}, {bare(values[0])})"
        guarded = op in (Ops.IDIV, Ops.MOD) and not self.facts.divides_safely(u.src[1])
        found = self.elementwise(op, dtype, values, False, guarded)
        if found is None:
            raise ValueError(f"{self.language}: {op.name} of {dtype.name} has no form; it must be decomposed")
        return found

    def scalar_alu(self, op: Ops, dtype: DType, v: list[str], exact: bool, guarded: bool) -> str | None:
        if dtype.itemsize == 8:
            return self.wide_alu(op, dtype, v)
        if op in (Ops.CMPEQ, Ops.CMPNE) and dtypes.is_float(dtype) and v[0] == v[1]:
            return f"{'!' if op is Ops.CMPEQ else ''}{self.is_nan(dtype)}({bare(v[0])})"
        if op is Ops.CMPNE and dtypes.is_float(dtype):
            return f"(!({v[0]} == {v[1]}))"  # != of a NaN is false
        return super().scalar_alu(op, dtype, v, exact, guarded)

    def is_nan(self, dtype: DType) -> str:
        body = f"return (bitcast<u32>({'x' if dtype is dtypes.float32 else 'f32(x)'}) & 0x7fffffffu) > 0x7f800000u;"
        return self.function(f"is_nan_{short(dtype)}", dtypes.bool, [(dtype, "x")], body)

    def logic(self, op: Ops, v: list[str]) -> str | None:
        if op in LOGIC:
            return f"({v[0]} {'!=' if LOGIC[op] == '^' else LOGIC[op]} {v[1]})"
        return "false" if op is Ops.MOD else super().logic(op, v)

    def int_alu(self, op: Ops, dtype: DType, v: list[str], exact: bool, guarded: bool) -> str | None:
        if op in (Ops.SHL, Ops.SHR):
            return self.narrow(f"({v[0]} {BINARY[op]} {self.amount(v[1], dtype)})", dtype)
        return super().int_alu(op, dtype, v, exact, guarded)

    def amount(self, text: str, dtype: DType) -> str:
        """How far to shift, as a u32."""
        if dtypes.is_unsigned(dtype):
            return text
        return f"{text[:-1]}u" if re.fullmatch(r"\d+i", text) else f"u32({bare(text)})"

    def wrapping(self, operator: str, dtype: DType, a: str, b: str, exact: bool) -> str:
        return self.narrow(f"({a} {operator} {b})", dtype)

    def negated(self, dtype: DType, x: str, exact: bool) -> str:
        text = f"(0u - {x})" if dtypes.is_unsigned(dtype) else f"(-{x})"
        return self.narrow(text, dtype)

    def maximum(self, dtype: DType) -> str:
        if not dtypes.is_float(dtype):
            return "max"
        body = f"return select(select(b, a, a > b), a, {self.is_nan(dtype)}(a));"
        return self.function(f"max_{short(dtype)}", dtype, [(dtype, "a"), (dtype, "b")], body)

    def division(self, op: Ops, dtype: DType) -> str:
        operator, name = ("%", "mod") if op is Ops.MOD else ("/", "div")
        # Division by zero and that of the least by -1 give something, which is not what we want of the first.
        zero = self.literal(0, dtype)
        body = f"return select({self.narrow(f'(a {operator} b)', dtype)}, {zero}, b == {zero});"
        return self.function(f"{name}_{short(dtype)}", dtype, [(dtype, "a"), (dtype, "b")], body)

    def multiply_add(self, dtype: DType, v: list[str]) -> str:
        return f"fma({', '.join(map(bare, v))})" if self.fused else f"({v[0]} * {v[1]} + {v[2]})"

    def math(self, op: Ops, dtype: DType, x: str) -> str | None:
        if op is Ops.EXP2 and dtype is dtypes.float32:
            series = "0.00015353339956612232f"
            for c in _EXP2:
                series = f"fma({series}, r, {c!r}f)"
            # The scale in two factors: what is subnormal is rounded once.
            body = (
                f"if ({self.is_nan(dtype)}(x)) {{ return x; }} let y = clamp(x, -151.0f, 129.0f); let n = round(y); "
                f"let r = y - n; let k = i32(n) >> 1u; let m = fma(r, {series}, 1.0f); "
                "return m * bitcast<f32>((k + 127i) << 23u) * bitcast<f32>((i32(n) - k + 127i) << 23u);"
            )
            return f"{self.function('exp2', dtype, [(dtype, 'x')], body)}({bare(x)})"
        return f"{_FUNCTIONS[op]}({bare(x)})" if op in _FUNCTIONS else None

    def wide_alu(self, op: Ops, dtype: DType, v: list[str]) -> str | None:
        """Ops on 64-bit integers."""
        signed = "u" if dtypes.is_unsigned(dtype) else "i"
        a_b = ", ".join(map(bare, v[:2]))
        match op:
            case Ops.ADD | Ops.SUB | Ops.MUL:
                return f"tg_{self.call(op.name.lower() + '64')}({a_b})"
            case Ops.AND | Ops.OR | Ops.XOR:
                return f"({v[0]} {BINARY[op]} {v[1]})"
            case Ops.NOT:
                return f"(~{v[0]})"
            case Ops.NEG:
                return f"tg_{self.call('sub64')}(vec2<u32>(0u, 0u), {bare(v[0])})"
            case Ops.SHL:
                return f"tg_{self.call('shl64')}({bare(v[0])}, {v[1]}.x)"
            case Ops.SHR:
                return f"tg_{self.call(f'shr_{signed}64')}({bare(v[0])}, {v[1]}.x)"
            case Ops.CMPLT:
                return f"tg_{self.call(f'lt_{signed}64')}({a_b})"
            case Ops.CMPEQ:
                return f"all({v[0]} == {v[1]})"
            case Ops.CMPNE:
                return f"any({v[0]} != {v[1]})"
            case Ops.MAX:
                return f"tg_{self.call(f'max_{signed}64')}({a_b})"
            case Ops.IDIV:
                return f"tg_{self.call(f'div_{signed}64')}({a_b})"
            case Ops.MOD:
                return f"tg_{self.call(f'mod_{signed}64')}({a_b})"
            case Ops.MULACC:
                self.call("mul64")
                return f"tg_{self.call('add64')}(tg_mul64({a_b}), {bare(v[2])})"
        return None

    def call(self, name: str) -> str:
        self.wide(name)
        return name

    # conversion

    def scalar_cast(self, x: str, src: DType, dst: DType) -> str:
        if src is dst:
            return x
        if dtypes.is_bool(dst):
            if src.itemsize == 8:
                return f"any({x} != vec2<u32>(0u, 0u))"
            zero = self.literal(dtypes.as_const(0, src), src)
            return f"(!({x} == {zero}))" if dtypes.is_float(src) else f"({x} != {zero})"
        if dtypes.is_bool(src):
            zero, one = (self.literal(dtypes.as_const(n, dst), dst) for n in (0, 1))
            return f"select({zero}, {one}, {bare(x)})"
        if dtypes.is_float(src):
            return self.from_float(x, src, dst)
        if src.itemsize == 8:
            return self.from_wide(x, src, dst)
        if dtypes.is_float(dst):
            return f"{self.type(dst)}({bare(x)})"
        if dst.itemsize == 8:
            if dtypes.is_unsigned(src):
                return f"vec2<u32>({bare(x)}, 0u)"
            return f"tg_{self.call('i32_to_i64')}({bare(x)})"
        same = dtypes.is_unsigned(src) == dtypes.is_unsigned(dst)
        text = x if same else f"bitcast<{self.type(dst)}>({bare(x)})"
        return text if same and src.bits <= dst.bits else self.narrow(text, dst)

    def from_float(self, x: str, src: DType, dst: DType) -> str:
        if dtypes.is_float(dst):
            return f"{self.type(dst)}({bare(x)})"
        wide = x if src is dtypes.float32 else f"f32({bare(x)})"
        if dst.itemsize == 8:
            name = self.call(f"f32_to_{'u' if dtypes.is_unsigned(dst) else 'i'}64")
            return f"tg_{name}({bare(wide)})"
        return f"{self.saturating(dtypes.float32, dst)}({bare(wide)})"

    def from_wide(self, x: str, src: DType, dst: DType) -> str:
        if dst.itemsize == 8:
            return x
        if dtypes.is_float(dst):
            # What single precision rounds is beyond the range of a half.
            single = f"tg_{self.call(f'{chr(117) if dtypes.is_unsigned(src) else chr(105)}64_to_f32')}({bare(x)})"
            return single if dst is dtypes.float32 else f"f16({single})"
        low = f"{x}.x"
        return self.narrow(low if dtypes.is_unsigned(dst) else f"bitcast<i32>({low})", dst)

    def saturating(self, src: DType, dst: DType) -> str:
        low, high = int(dtypes.min(dst)), int(dtypes.max(dst))
        least, past = self.literal(float(low), src), self.literal(float(high + 1), src)
        body = (
            f"if ({self.is_nan(src)}(x)) {{ return {self.literal(0, dst)}; }} "
            f"if (x <= {least}) {{ return {self.literal(low, dst)}; }} "
            f"if (x >= {past}) {{ return {self.literal(high, dst)}; }} return {self.type(dst)}(x);"
        )
        return self.function(f"{short(src)}_to_{short(dst)}", dst, [(src, "x")], body)

    def bitcast(self, x: str, src: DType, dst: DType) -> str:
        if src is dst or (src.itemsize == 8 and dst.itemsize == 8):
            return x
        if dtypes.is_bool(src) or dtypes.is_bool(dst) or (dtypes.is_int(src) and dtypes.is_int(dst)):
            return self.cast(x, src, dst)
        if src.itemsize == 4:
            return f"bitcast<{self.type(dst)}>({bare(x)})"
        if dst is dtypes.float16:
            return self.half_of(bare(x) if dtypes.is_unsigned(src) else f"bitcast<u32>({bare(x)})")
        bits = f"({self.to_bits(x, src)} & 65535u)"
        return bits if dtypes.is_unsigned(dst) else f"extractBits(bitcast<i32>{bits}, 0u, 16u)"
