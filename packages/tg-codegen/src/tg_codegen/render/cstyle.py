"""The C family: what C, OpenCL C and CUDA C++ kernels have in common.

:class:`CStyleKernel` writes one kernel; a language subclasses it and fills in types, literals, qualifiers and what is
done with vectors. Its conventions:

* A scalar bool is the language's bool; a vector of bools is a vector of signed 8-bit lanes that are 0 or -1, so that
  it widens to a mask by sign extension. In memory a bool is an unsigned byte, and any nonzero byte is true.
* Integer arithmetic on data is done unsigned, since it wraps and C's does not. Address arithmetic stays signed: it
  cannot overflow, and compilers make good use of that.
* Anything that needs an operand twice is a helper function, defined before the kernel if it is used.
* A value used once stands inside the expression that uses it; all others get a variable.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import ClassVar

from tg_dtype import AddrSpace, ConstType, DType, PtrDType, dtypes
from tg_lazy import Ops

from ..ir.facts import element, kernel_facts, pointer_base
from ..ir.matrix import MatrixInstruction
from ..ir.uop import UOp, UOps, is_alu

KEYWORDS = frozenset(
    """auto break case char const continue default do double else enum extern float for goto if inline int long register
    restrict return short signed sizeof static struct switch typedef union unsigned void volatile while bool half uchar
    ushort uint ulong size_t kernel global local constant private class new delete this true false template operator
    namespace public protected typename using virtual throw try catch asm not and or xor min max abs exp2 log2 sin sqrt
    trunc fma select barrier main""".split()
)
BINARY = {
    Ops.ADD: "+", Ops.SUB: "-", Ops.MUL: "*", Ops.FDIV: "/", Ops.AND: "&", Ops.OR: "|", Ops.XOR: "^", Ops.SHL: "<<",
    Ops.SHR: ">>", Ops.CMPLT: "<", Ops.CMPEQ: "==", Ops.CMPNE: "!=",
}  # fmt: skip
# On bools. Those that are not here take the dtype-independent way.
LOGIC = {
    Ops.ADD: "|", Ops.MAX: "|", Ops.OR: "|", Ops.MUL: "&", Ops.AND: "&", Ops.IDIV: "&", Ops.SUB: "^", Ops.XOR: "^",
    Ops.CMPNE: "^",
}  # fmt: skip
COMPARISONS = frozenset({Ops.CMPLT, Ops.CMPEQ, Ops.CMPNE})
WRAPPING = frozenset({Ops.ADD, Ops.SUB, Ops.MUL, Ops.SHL})
_INLINABLE = frozenset({UOps.VECTORIZE, UOps.BROADCAST, UOps.GEP})
_LONGEST = 88  # characters of an expression that may still stand inside another


def short(dtype: DType) -> str:
    """The dtype in a few letters, for names of types and helpers: ``f32``, ``u8``, ``i32x4``."""
    kind = {"float": "f", "int": "i", "uint": "u", "bool": "b"}[dtype.kind]
    name = f"{kind}{dtype.bits if dtype.kind != 'bool' else ''}"
    return name if dtype.count == 1 else f"{name}x{dtype.count}"


def unsigned(dtype: DType) -> DType:
    """The unsigned integer of the same width and lanes."""
    return {8: dtypes.uint8, 16: dtypes.uint16, 32: dtypes.uint32, 64: dtypes.uint64}[dtype.bits].vec(dtype.count)


def signed(dtype: DType) -> DType:
    """The signed integer of the same width and lanes; a bool counts as 8 bits."""
    return {1: dtypes.int8, 8: dtypes.int8, 16: dtypes.int16, 32: dtypes.int32, 64: dtypes.int64}[dtype.bits].vec(
        dtype.count
    )


def decimal(value: float) -> str:
    """A finite float exactly, in decimal where that is short, else in hexadecimal."""
    text = f"{value:.6g}"
    if float(text) != value:
        return f"{value:.1f}" if value.is_integer() and abs(value) < 1e16 else value.hex()
    return text if "." in text or "e" in text else f"{text}.0"


class CStyleKernel:
    """One kernel while its text is being written. Subclasses are languages."""

    language: ClassVar[str]
    scalars: ClassVar[dict[DType, str]]
    bool_name: ClassVar[str] = "bool"
    helper_prefix: ClassVar[str] = "static inline "
    long_suffix: ClassVar[str] = "ll"
    name_constants: ClassVar[bool] = True  # whether a constant vector is worth a variable

    def __init__(self, name: str, uops: Sequence[UOp], fused: bool) -> None:
        self.name, self.uops, self.fused = name, uops, fused
        self.facts = kernel_facts(uops)
        self.values: dict[UOp, str] = {}
        self.types: dict[str, str] = {}
        self.helpers: dict[str, str] = {}
        self.used: set[DType] = set()
        self.body: list[str] = []
        self.depth = 1
        self.names: set[str] = set(KEYWORDS)
        self.inlined = self._choose_inlined()

    # whole text

    def text(self) -> str:
        """The kernel's source.

        Raises:
          ValueError: a node that has no form in this language.
        """
        parameters = []
        for u in self.facts.params:
            self.values[u] = self.claim(f"data{u.arg}")
            parameters.append(f"{self.parameter_type(u)} {self.values[u]}")
        for u in (*self.facts.variables, *([self.facts.core] if self.facts.core is not None else [])):
            self.values[u] = self.claim(u.arg.name if u.op is UOps.VAR else "core_id")
            parameters.append(f"const int {self.values[u]}")
        for u in self.uops:
            self.statement(u)
        head = [*self.preamble(), *self.types.values(), *self.helpers.values()]
        return "\n".join([*head, f"{self.signature(', '.join(parameters))} {{", *self.body, *self.ending(), "}"]) + "\n"

    def ending(self) -> list[str]:
        """Lines after everything else."""
        return []

    def preamble(self) -> list[str]:
        """Lines before everything else."""
        return []

    def signature(self, parameters: str) -> str:
        raise NotImplementedError

    def parameter_type(self, u: UOp) -> str:
        """The type of a buffer argument."""
        const = "" if u.arg in self.facts.stored else "const "
        return f"{const}{self.memory_type(element(u))}* restrict"

    def _choose_inlined(self) -> set[UOp]:
        """Values used once, in the block that makes them, with no change of a register they read in between."""
        position, block, user = {}, {}, {}
        open_blocks, count = [0], 0
        reads: dict[UOp, frozenset[UOp]] = {}
        changes: dict[UOp, list[int]] = {}
        for i, u in enumerate(self.uops):
            if u.op in (UOps.ENDRANGE, UOps.ENDIF):
                open_blocks.pop()
            for operand in u.src:
                user[operand] = u
            position[u], block[u] = i, open_blocks[-1]
            if u.op in (UOps.RANGE, UOps.IF):
                count += 1
                open_blocks.append(count)
            if u.op is UOps.ASSIGN:
                changes.setdefault(u.src[0], []).append(i)
            elif u.op is UOps.ACC:
                reads[u] = frozenset((u,))
            elif is_alu(u) or u.op in _INLINABLE:
                reads[u] = frozenset().union(*(reads.get(operand, ()) for operand in u.src))
        chosen: set[UOp] = set()
        lands: dict[UOp, int] = {}
        for u in reversed(self.uops):
            lands[u] = position[u]
            if not (is_alu(u) or u.op in _INLINABLE) or self.facts.uses.get(u) != 1 or block[user[u]] != block[u]:
                continue
            landing = lands[user[u]]
            if not any(position[u] < i < landing for register in reads[u] for i in changes.get(register, ())):
                chosen.add(u)
                lands[u] = landing
        return chosen

    # writing

    def before_loop(self, u: UOp) -> None:
        """Writes what a compiler is to be told of a loop."""

    def line(self, text: str) -> None:
        self.body.append("  " * self.depth + text)

    def claim(self, name: str) -> str:
        """An unused identifier like ``name``."""
        stem = re.sub(r"[^A-Za-z0-9_]", "_", name)
        if not stem or stem[0].isdigit():
            stem = f"x{stem}"
        found, n = stem, 0
        while found in self.names:
            n += 1
            found = f"{stem}_{n}"
        self.names.add(found)
        return found

    def variable(self, stem: str, dtype: DType, text: str) -> str:
        """A new variable with this value."""
        n = len(self.values)
        while f"{stem}{n}" in self.names:
            n += 1
        name = self.claim(f"{stem}{n}")
        self.line(f"{self.type(dtype)} {name} = {bare(text)};")
        return name

    def atom(self, text: str, dtype: DType) -> str:
        """The text itself if repeating it costs nothing, else a variable that holds it."""
        return text if re.fullmatch(r"[A-Za-z0-9_.]+", text) else self.variable("x", dtype, text)

    def helper(self, name: str, define: Callable[[], str]) -> str:
        """The name of a helper function, which ``define`` writes on first use."""
        name = f"tg_{name}"
        if name not in self.helpers:
            text = define()  # may define helpers of its own, which must stand before
            self.helpers[name] = text
        return name

    def function(self, name: str, result: DType, parameters: Sequence[tuple[DType, str]], body: str) -> str:
        """The name of a helper function of values."""
        arguments = ", ".join(f"{self.type(d)} {p}" for d, p in parameters)
        return self.helper(name, lambda: f"{self.helper_prefix}{self.type(result)} tg_{name}({arguments}) {{ {body} }}")

    def value(self, u: UOp) -> str:
        """What stands for the node as an operand."""
        found = self.values.get(u)
        return self.literal(u.arg, u.dtype) if found is None and u.is_const else self.values[u]

    def statement(self, u: UOp) -> None:
        if is_alu(u):
            self.define(u, "alu", self.alu(u))
            return
        match u.op:
            case UOps.PARAM | UOps.VAR:
                pass
            case UOps.CONST:
                if u.dtype.count > 1 and self.name_constants:
                    self.values[u] = self.variable("c", u.dtype, self.literal(u.arg, u.dtype))
            case UOps.SPECIAL:
                if u is not self.facts.core:
                    self.values[u] = self.claim(u.arg[0])
                    self.line(f"const int {self.values[u]} = {self.special(u.arg[0])};")
            case UOps.AFTER:
                self.values[u] = self.values[u.src[0]]
            case UOps.SCRATCH:
                self.values[u] = self.claim(u.arg[0])
                self.line(f"{self.scratch(u, self.values[u])};")
            case UOps.ACC:
                self.values[u] = self.variable("acc", u.dtype, self.value(u.src[0]))
            case UOps.ASSIGN:
                self.line(f"{self.values[u.src[0]]} = {bare(self.value(u.src[1]))};")
            case UOps.READ:
                self.values[u] = self.variable("res", u.dtype, self.values[u.src[0]])
            case UOps.RANGE:
                name = self.values[u] = self.claim(u.arg)
                step = f"{name} += {self.value(u.src[2])}" if len(u.src) > 2 and u.src[2].arg != 1 else f"{name}++"
                start, end = self.value(u.src[0]), self.value(u.src[1])
                self.before_loop(u)
                self.line(f"for ({self.type(u.dtype)} {name} = {bare(start)}; {name} < {end}; {step}) {{")
                self.depth += 1
            case UOps.IF:
                self.line(f"if ({bare(self.value(u.src[0]))}) {{")
                self.depth += 1
            case UOps.ENDRANGE | UOps.ENDIF:
                self.depth -= 1
                self.line("}")
            case UOps.LOAD:
                self.values[u] = self.variable("val", u.dtype, self.load(u))
            case UOps.STORE:
                self.store(u)
            case UOps.PREFETCH:
                self.prefetch(self.values[u.src[0]], self.value(u.src[1]), element(u.src[0]).itemsize)
            case UOps.BARRIER:
                self.barrier()
            case UOps.VECTORIZE:
                self.define(u, "vec", self.vector([self.value(operand) for operand in u.src], u.dtype))
            case UOps.BROADCAST:
                lane = self.atom(self.value(u.src[0]), u.dtype.scalar())
                self.define(u, "vec", self.vector([lane] * u.dtype.count, u.dtype))
            case UOps.GEP:
                self.define(u, "gep", self.lanes(u))
            case UOps.MATRIX:
                acc, a, b = (self.value(operand) for operand in u.src)
                name = self.matrix(u.arg, u.dtype, u.src[1].dtype, u.src[2].dtype)
                self.values[u] = self.variable("acc", u.dtype, f"{name}({bare(acc)}, {bare(a)}, {bare(b)})")
            case _:
                raise ValueError(f"{self.language}: {u!r} has no form in a linear kernel")

    def define(self, u: UOp, stem: str, text: str) -> None:
        fits = u in self.inlined and len(text) <= _LONGEST
        self.values[u] = text if fits else self.variable(stem, u.dtype, text)

    # types and literals

    def type(self, dtype: DType) -> str:
        """The type of a value in a register."""
        self.used.add(dtype.scalar())
        if dtype.count > 1:
            return self.vector_type(signed(dtype) if dtypes.is_bool(dtype) else dtype)
        if dtypes.is_bool(dtype):
            return self.bool_name
        found = self.scalars.get(dtype)
        if found is None:
            raise ValueError(f"{self.language}: {dtype.name} has no arithmetic here; it must be legalised")
        return found

    def memory_type(self, dtype: DType) -> str:
        """The type of a value in memory."""
        return self.type(dtypes.uint8.vec(dtype.count) if dtypes.is_bool(dtype) else dtype)

    def vector_type(self, dtype: DType) -> str:
        raise NotImplementedError

    def special(self, name: str) -> str:
        raise ValueError(f"{self.language}: SPECIAL {name} has no meaning on a CPU")

    def scratch(self, u: UOp, name: str) -> str:
        raise NotImplementedError

    def matrix(self, instruction: MatrixInstruction, acc: DType, a: DType, b: DType) -> str:
        """The name of a function ``(acc, a, b)`` that does a matrix instruction."""
        raise ValueError(f"{self.language}: {instruction.name} has no form here")

    def barrier(self) -> None:
        raise NotImplementedError

    def literal(self, value: ConstType, dtype: DType) -> str:
        if dtype.count > 1:
            one = self.literal(value, dtype.scalar())
            return self.vector([one] * dtype.count, dtype)
        if dtypes.is_bool(dtype):
            return "1" if value else "0"
        if dtypes.is_float(dtype):
            self.used.add(dtype)
            return self.float_literal(float(value), dtype)
        number = int(value)
        suffix = ("u" if dtypes.is_unsigned(dtype) and dtype.bits >= 32 else "") + (
            self.long_suffix if dtype.bits == 64 else ""
        )
        if number == -(1 << 31) or number == -(1 << 63):  # the literal without its sign would not fit
            return f"({number + 1}{suffix} - 1)"
        return f"({number}{suffix})" if number < 0 else f"{number}{suffix}"

    def float_literal(self, value: float, dtype: DType) -> str:
        if value != value:
            text = self.not_a_number(dtype)
        elif value in (float("inf"), float("-inf")):
            text = f"{'-' if value < 0 else ''}{self.infinity(dtype)}"
        else:
            text = decimal(value) + ("" if dtype is dtypes.float64 else "f")
        text = f"({text})" if text.startswith("-") else text
        return self.narrow(text, dtype)

    def not_a_number(self, dtype: DType) -> str:
        return "NAN"

    def infinity(self, dtype: DType) -> str:
        return "INFINITY"

    def narrow(self, text: str, dtype: DType) -> str:
        """Rounds an expression that the language may have widened (float16, small integers) to its dtype."""
        wide = dtype.bits >= 32 or dtypes.is_bool(dtype) or dtype.count > 1
        return text if wide else f"({self.type(dtype)}){text if text.startswith('(') else f'({text})'}"

    # vectors

    def vector(self, lanes: Sequence[str], dtype: DType) -> str:
        """A vector of these scalars."""
        raise NotImplementedError

    def lane(self, vector: str, index: int, count: int) -> str:
        """One lane of a vector of ``count``: something that can be read and assigned."""
        raise NotImplementedError

    def pack_lane(self, text: str) -> str:
        """A scalar bool as a lane of a vector of bools."""
        return {"0": "0", "1": "-1"}.get(text) or f"({self.scalars[dtypes.int8]})-{text}"

    def lanes(self, u: UOp) -> str:
        """A GEP."""
        dtype = u.src[0].dtype
        vectors = [self.atom(self.value(s), dtype) for s in u.src]
        if len(u.arg) == 1:
            source, lane = divmod(u.arg[0], dtype.count)
            return self.lane_value(vectors[source], lane, dtype)
        return self.shuffle(vectors, u.arg, dtype)

    def shuffle(self, vectors: Sequence[str], lanes: Sequence[int], dtype: DType) -> str:
        """Several lanes of one or two vectors of ``dtype``, as a vector."""
        places = (divmod(lane, dtype.count) for lane in lanes)
        values = [self.lane_value(vectors[source], lane, dtype) for source, lane in places]
        return self.vector(values, dtype.scalar().vec(len(lanes)))

    def lane_value(self, vector: str, index: int, dtype: DType) -> str:
        """One lane as a scalar value."""
        text = self.lane(vector, index, dtype.count)
        return f"({text} != 0)" if dtypes.is_bool(dtype) else text

    def from_memory(self, text: str, dtype: DType) -> str:
        """The register form of what was read from memory."""
        return f"({text} != 0)" if dtypes.is_bool(dtype) else text

    def to_memory(self, text: str, dtype: DType) -> str:
        """The memory form of a register."""
        if not dtypes.is_bool(dtype) or dtype.count == 1:
            return text
        byte = signed(dtype)
        return self.bitcast(f"({text} & {self.literal(1, byte)})", byte, unsigned(byte))

    # memory

    def pointer_type(self, pointer: UOp) -> str:
        """The type of a pointer as a helper takes it, with its address space; const if the memory is never written."""
        return f"{self.memory_type(element(pointer))}*"

    def space(self, pointer: UOp) -> AddrSpace:
        base = pointer_base(pointer).dtype
        assert isinstance(base, PtrDType)
        return base.space

    def load(self, u: UOp) -> str:
        pointer, index = self.values[u.src[0]], self.value(u.src[1])
        if len(u.src) == 2:
            return self.plain_load(u.src[0], pointer, u.src[1], index, u.dtype)
        gate, other = u.src[2], self.literal(dtypes.as_const(0, u.dtype), u.dtype)
        if len(u.src) > 3:
            other = self.value(u.src[3])
            if u.src[3].dtype.count < u.dtype.count:
                other = self.vector([self.atom(other, u.dtype.scalar())] * u.dtype.count, u.dtype)
        if gate.dtype.count == 1:
            plain = self.plain_load(u.src[0], pointer, u.src[1], index, u.dtype)
            # gcc wants both branches of one vector type, and one in memory has another alignment.
            plain = plain if u.dtype.count == 1 else f"({self.type(u.dtype)}){plain}"
            return f"({self.value(gate)} ? {plain} : {other})"
        return f"{self.gated_load(u)}({pointer}, {bare(index)}, {bare(self.value(gate))}, {bare(other)})"

    def plain_load(self, base: UOp, pointer: str, index: UOp, text: str, dtype: DType) -> str:
        if dtype.count == 1:
            return self.from_memory(f"{pointer}[{bare(text)}]", dtype)
        return self.from_memory(self.vector_load(base, pointer, index, text, dtype), dtype)

    def vector_load(self, base: UOp, pointer: str, index: UOp, text: str, dtype: DType) -> str:
        """Consecutive elements, in the memory form."""
        raise NotImplementedError

    def vector_store(self, base: UOp, pointer: str, index: UOp, text: str, value: str, dtype: DType) -> None:
        """Writes consecutive elements, given in the memory form."""
        raise NotImplementedError

    def stream_store(self, base: UOp, pointer: str, index: UOp, text: str, value: str, dtype: DType) -> None:
        """As :meth:`vector_store`, past the caches where the language can."""
        self.vector_store(base, pointer, index, text, value, dtype)

    def prefetch(self, pointer: str, index: str, nbytes: int) -> None:
        """Says that an element will be read soon, where the language can."""

    def gated_load(self, u: UOp) -> str:
        """A helper ``(pointer, index, gate, other)`` that reads the lanes whose gate is set."""
        dtype, count = u.dtype, u.dtype.count
        name = f"load_{short(dtype)}_{self.space(u.src[0]).name.lower()}_{short(u.src[1].dtype)}"

        def define() -> str:
            index, gates = self.type(u.src[1].dtype), self.type(u.src[2].dtype)
            lines = [f"{self.type(dtype)} r = other;"]
            for i in range(count):
                read = self.from_memory(f"p[i + {i}]", dtype.scalar())
                read = self.pack_lane(read) if dtypes.is_bool(dtype) else read
                lines.append(f"if ({self.lane('gate', i, count)}) {self.lane('r', i, count)} = {read};")
            body = "\n  ".join([*self.whole_load(u), *lines, "return r;"])
            result = self.type(dtype)
            parameters = f"const {self.pointer_type(u.src[0])} p, {index} i, {gates} gate, {result} other"
            return f"{self.helper_prefix}{result} tg_{name}({parameters}) {{\n  {body}\n}}"

        return self.helper(name, define)

    def whole_load(self, u: UOp) -> list[str]:
        """Lines at the head of a gated load for when every gate is set."""
        return []

    def store(self, u: UOp) -> None:
        pointer, index, value = u.src[:3]
        dtype, text = value.dtype, self.value(value)
        place, at = self.values[pointer], self.value(index)
        gate = u.src[3] if len(u.src) > 3 else None
        if gate is not None and gate.dtype.count > 1:
            at, text = self.atom(at, index.dtype), self.atom(text, dtype)
            self.gated_store(place, at, text, dtype, self.atom(self.value(gate), gate.dtype))
            return
        if gate is not None:
            self.line(f"if ({bare(self.value(gate))}) {{")
            self.depth += 1
        if dtype.count == 1:
            self.line(f"{place}[{bare(at)}] = {bare(text)};")
        else:
            store = self.stream_store if self.facts.streamed(u) else self.vector_store
            store(pointer, place, index, at, self.to_memory(text, dtype), dtype)
        if gate is not None:
            self.depth -= 1
            self.line("}")

    def gated_store(self, pointer: str, index: str, value: str, dtype: DType, gate: str) -> None:
        for i in range(dtype.count):
            lane = self.lane_value(value, i, dtype)
            self.line(f"if ({self.lane(gate, i, dtype.count)}) {pointer}[{index} + {i}] = {lane};")

    # arithmetic

    def alu(self, u: UOp) -> str:
        op, dtype = u.op, u.src[-1].dtype
        assert isinstance(op, Ops)
        values = [self.value(operand) for operand in u.src]
        if op is Ops.CAST:
            return self.cast(values[0], dtype, u.dtype)
        if op is Ops.BITCAST:
            return self.bitcast(values[0], dtype, u.dtype)
        if op is Ops.WHERE and u.src[0].dtype.count == 1:
            return self.narrow(f"({values[0]} ? {values[1]} : {values[2]})", dtype)
        guarded = op in (Ops.IDIV, Ops.MOD) and not self.facts.divides_safely(u.src[1])
        found = self.elementwise(op, dtype, values, u in self.facts.address, guarded)
        if found is None:
            raise ValueError(f"{self.language}: {op.name} of {dtype.name} has no form; it must be decomposed")
        return found

    def elementwise(self, op: Ops, dtype: DType, v: list[str], exact: bool, guarded: bool) -> str | None:
        """An elementwise op other than casts; None if there is no form. ``dtype`` is that of the last operand."""
        return self.scalar_alu(op, dtype, v, exact, guarded)

    def scalar_alu(self, op: Ops, dtype: DType, v: list[str], exact: bool, guarded: bool) -> str | None:
        if dtypes.is_bool(dtype):
            return self.logic(op, v)
        if op in COMPARISONS:
            return f"({v[0]} {BINARY[op]} {v[1]})"
        if op is Ops.MAX:
            return f"{self.maximum(dtype)}({bare(v[0])}, {bare(v[1])})"
        if dtypes.is_float(dtype):
            return self.float_alu(op, dtype, v)
        return self.int_alu(op, dtype, v, exact, guarded)

    def logic(self, op: Ops, v: list[str]) -> str | None:
        if op in LOGIC:
            return f"({v[0]} {LOGIC[op]} {v[1]})"
        match op:
            case Ops.NEG:
                return v[0]
            case Ops.NOT:
                return f"(!{v[0]})"
            case Ops.CMPLT:
                return f"(!{v[0]} & {v[1]})"
            case Ops.CMPEQ:
                return f"({v[0]} == {v[1]})"
            case Ops.MOD:
                return "0"
            case Ops.MULACC:
                return f"(({v[0]} & {v[1]}) | {v[2]})"
        return None

    def vector_logic(self, op: Ops, dtype: DType, v: list[str]) -> str | None:
        """Ops on vectors whose lanes are 0 or -1."""
        if op in LOGIC:
            return f"({v[0]} {LOGIC[op]} {v[1]})"
        match op:
            case Ops.NEG:
                return v[0]
            case Ops.NOT:
                return f"(~{v[0]})"
            case Ops.CMPLT:
                return f"(~{v[0]} & {v[1]})"
            case Ops.CMPEQ:
                return f"(~({v[0]} ^ {v[1]}))"
            case Ops.MOD:
                return self.literal(False, dtype)
            case Ops.MULACC:
                return f"(({v[0]} & {v[1]}) | {v[2]})"
        return None

    def float_alu(self, op: Ops, dtype: DType, v: list[str]) -> str | None:
        if op in BINARY:
            return self.narrow(f"({v[0]} {BINARY[op]} {v[1]})", dtype)
        match op:
            case Ops.NEG:
                return f"(-{v[0]})"
            case Ops.RECIP:
                return self.narrow(f"({self.literal(1.0, dtype.scalar())} / {v[0]})", dtype)
            case Ops.MULACC:
                return self.multiply_add(dtype, v)
        return self.math(op, dtype, v[0])

    def multiply_add(self, dtype: DType, v: list[str]) -> str:
        """a * b + c, fused where the target fuses."""
        return self.narrow(f"({v[0]} * {v[1]} + {v[2]})", dtype)

    def math(self, op: Ops, dtype: DType, x: str) -> str | None:
        """A function of one float."""
        raise NotImplementedError

    def int_alu(self, op: Ops, dtype: DType, v: list[str], exact: bool, guarded: bool) -> str | None:
        if op in WRAPPING:
            return self.wrapping(BINARY[op], dtype, v[0], v[1], exact)
        if op in BINARY:
            return self.narrow(f"({v[0]} {BINARY[op]} {v[1]})", dtype)
        match op:
            case Ops.NEG:
                return self.negated(dtype, v[0], exact)
            case Ops.NOT:
                return self.narrow(f"(~{v[0]})", dtype)
            case Ops.MULACC:
                product = self.wrapping("*", dtype, v[0], v[1], exact)
                return self.wrapping("+", dtype, product, v[2], exact)
            case Ops.IDIV | Ops.MOD if not guarded:
                return self.narrow(f"({v[0]} {'/' if op is Ops.IDIV else '%'} {v[1]})", dtype)
            case Ops.IDIV | Ops.MOD:
                return f"{self.division(op, dtype)}({bare(v[0])}, {bare(v[1])})"
        return None

    def wrapping(self, operator: str, dtype: DType, a: str, b: str, exact: bool) -> str:
        """Arithmetic modulo 2**bits, or plain where it is known not to overflow."""
        if exact or (dtypes.is_unsigned(dtype) and dtype.bits >= 32):
            return self.narrow(f"({a} {operator} {b})", dtype)
        word = self.type(dtypes.uint64 if dtype.bits == 64 else dtypes.uint32)
        return f"({self.type(dtype)})(({word}){a} {operator} ({word}){b})"

    def negated(self, dtype: DType, x: str, exact: bool) -> str:
        if exact or (dtypes.is_unsigned(dtype) and dtype.bits >= 32):
            return self.narrow(f"(-{x})", dtype)
        return f"({self.type(dtype)})-({self.type(dtypes.uint64 if dtype.bits == 64 else dtypes.uint32)}){x}"

    def maximum(self, dtype: DType) -> str:
        nan = "a != a ? a : " if dtypes.is_float(dtype) else ""
        return self.function(f"max_{short(dtype)}", dtype, [(dtype, "a"), (dtype, "b")], f"return {nan}a > b ? a : b;")

    def division(self, op: Ops, dtype: DType) -> str:
        a_b = [(dtype, "a"), (dtype, "b")]
        if op is Ops.MOD:
            unit = "" if dtypes.is_unsigned(dtype) else " || b == -1"
            return self.function(f"mod_{short(dtype)}", dtype, a_b, f"return b == 0{unit} ? 0 : a % b;")
        negated = self.negated(dtype, "a", False)
        unit = "" if dtypes.is_unsigned(dtype) else f"b == -1 ? {negated} : "
        return self.function(f"div_{short(dtype)}", dtype, a_b, f"return b == 0 ? 0 : {unit}a / b;")

    # conversion

    def cast(self, x: str, src: DType, dst: DType) -> str:
        return self.scalar_cast(x, src, dst)

    def bitcast(self, x: str, src: DType, dst: DType) -> str:
        raise NotImplementedError

    def scalar_cast(self, x: str, src: DType, dst: DType) -> str:
        if src is dst:
            return x
        if dtypes.is_bool(dst):
            return f"({x} != {self.literal(dtypes.as_const(0, src), src)})"
        if dtypes.is_float(src) and dtypes.is_int(dst):
            return f"{self.saturating(src, dst)}({bare(x)})"
        return f"({self.type(dst)}){x}"

    def saturating(self, src: DType, dst: DType) -> str:
        """A helper: float to integer toward zero; NaN is 0 and what does not fit is the nearest that does."""
        wide = dtypes.float32 if src.bits < 32 else src
        low, high = int(dtypes.min(dst)), int(dtypes.max(dst))
        least, past = self.literal(float(low), wide), self.literal(float(high + 1), wide)
        body = (
            f"return x != x ? 0 : x <= {least} ? {self.literal(low, dst)} : "
            f"x >= {past} ? {self.literal(high, dst)} : ({self.type(dst)})x;"
        )
        return self.function(f"{short(src)}_to_{short(dst)}", dst, [(wide, "x")], body)


def bare(text: str) -> str:
    """The text without a pair of parentheses around all of it."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth == 0 and i < len(text) - 1:
            return text
    return text[1:-1]
