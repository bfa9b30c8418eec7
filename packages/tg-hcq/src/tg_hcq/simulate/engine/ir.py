"""A small typed builder of LLVM IR text: values know their type, operators choose the instruction."""

from __future__ import annotations

import struct
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Type:
    """An integer (``i``) or a float (``f``) of some bits, alone (no lanes) or as a vector.

    Example:
      >>> str(I32.of(16)), str(F64)
      ('<16 x i32>', 'double')
    """

    kind: str
    bits: int
    lanes: int = 0

    def of(self, lanes: int) -> Type:
        """The same element in a vector of so many lanes; 0 for no vector."""
        return Type(self.kind, self.bits, lanes)

    @property
    def integer(self) -> Type:
        """The integers of the same shape, which a bit cast gives."""
        return Type("i", self.bits, self.lanes)

    @property
    def mangled(self) -> str:
        """As names of intrinsics have it: ``v16f32``."""
        return f"{f'v{self.lanes}' if self.lanes else ''}{self.kind}{self.bits}"

    def __str__(self) -> str:
        element = {16: "half", 32: "float", 64: "double"}[self.bits] if self.kind == "f" else f"i{self.bits}"
        return f"<{self.lanes} x {element}>" if self.lanes else element


I1, I8, I16, I32, I64 = (Type("i", bits) for bits in (1, 8, 16, 32, 64))
F16, F32, F64 = (Type("f", bits) for bits in (16, 32, 64))


def constant(kind: Type, number: int | float) -> str:
    """A constant as LLVM writes it; the bits of floats are written exactly."""
    if kind.kind == "f":
        if kind.bits == 16:
            element = f"0xH{struct.unpack('<H', struct.pack('<e', number))[0]:04X}"
        else:
            rounded = struct.unpack("<f", struct.pack("<f", number))[0] if kind.bits == 32 else float(number)
            element = f"0x{struct.unpack('<Q', struct.pack('<d', rounded))[0]:016X}"
    else:
        element = str(int(number))
    return f"splat ({kind.of(0)} {element})" if kind.lanes else element


class Value:
    """What an instruction gives: operators make further instructions; Python numbers become constants.

    Shifts, divisions and comparisons of integers are unsigned; signed ones are methods of :class:`Builder`.
    """

    __slots__ = ("builder", "text", "type")

    def __init__(self, builder: Builder, kind: Type, text: str) -> None:
        self.builder, self.type, self.text = builder, kind, text

    def __add__(self, other: Value | float) -> Value:
        return self.builder.binary(self._pick("add"), self, other)

    def __sub__(self, other: Value | float) -> Value:
        return self.builder.binary(self._pick("sub"), self, other)

    def __mul__(self, other: Value | float) -> Value:
        return self.builder.binary(self._pick("mul"), self, other)

    def __and__(self, other: Value | int) -> Value:
        return self.builder.binary("and", self, other)

    def __or__(self, other: Value | int) -> Value:
        return self.builder.binary("or", self, other)

    def __xor__(self, other: Value | int) -> Value:
        return self.builder.binary("xor", self, other)

    def __lshift__(self, other: Value | int) -> Value:
        return self.builder.binary("shl", self, other)

    def __rshift__(self, other: Value | int) -> Value:
        return self.builder.binary("lshr", self, other)

    def __invert__(self) -> Value:
        return self.builder.binary("xor", self, -1)

    def _pick(self, name: str) -> str:
        return f"f{name}" if self.type.kind == "f" else name


class Builder:
    """The text of one function.

    Attributes:
      lines: the instructions so far.
      declarations: the intrinsics that they call.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.declarations: dict[str, None] = {}
        self._names = 0

    def name(self) -> str:
        """A new name."""
        self._names += 1
        return f"%x{self._names}"

    def emit(self, kind: Type, text: str) -> Value:
        """An instruction that gives a value."""
        name = self.name()
        self.lines.append(f"  {name} = {text}")
        return Value(self, kind, name)

    def do(self, text: str) -> None:
        """An instruction that gives none."""
        self.lines.append(f"  {text}")

    def label(self, name: str) -> None:
        """Begins a block."""
        self.lines.append(f"{name}:")

    def value(self, kind: Type, number: Value | float) -> Value:
        """A value of this type: a constant, or a scalar in every lane."""
        if not isinstance(number, Value):
            return Value(self, kind, constant(kind, number))
        if number.type == kind:
            return number
        if number.type.lanes or number.type.of(kind.lanes) != kind:
            raise TypeError(f"{number.type} is wanted as {kind}")
        one = self.emit(kind, f"insertelement {kind} poison, {number.type} {number.text}, i32 0")
        zeros = f"<{kind.lanes} x i32> zeroinitializer"
        return self.emit(kind, f"shufflevector {kind} {one.text}, {kind} poison, {zeros}")

    def binary(self, op: str, x: Value, y: Value | float) -> Value:
        """An instruction of two operands of one type."""
        return self.emit(x.type, f"{op} {x.type} {x.text}, {self.value(x.type, y).text}")

    def compare(self, how: str, x: Value, y: Value | float) -> Value:
        """A comparison by LLVM's name: ``eq``, ``ult``, ``slt`` of integers; ``oeq``, ``olt``, ``une`` of floats."""
        op = "fcmp" if x.type.kind == "f" else "icmp"
        return self.emit(I1.of(x.type.lanes), f"{op} {how} {x.type} {x.text}, {self.value(x.type, y).text}")

    def select(self, condition: Value, x: Value, y: Value | float) -> Value:
        """``x`` where the condition holds, else ``y``."""
        other = self.value(x.type, y)
        test = f"{condition.type} {condition.text}"
        return self.emit(x.type, f"select {test}, {x.type} {x.text}, {x.type} {other.text}")

    def convert(self, op: str, x: Value, kind: Type) -> Value:
        """A conversion by LLVM's name (``zext``, ``sext``, ``trunc``, ``fptosi``, …) to an element of this type."""
        kind = kind.of(x.type.lanes)
        return x if kind == x.type and op in ("zext", "sext", "trunc", "bitcast") else self.emit(
            kind, f"{op} {x.type} {x.text} to {kind}")  # fmt: skip

    def bits(self, x: Value, kind: Type) -> Value:
        """The same bits as another type of the same size."""
        return self.convert("bitcast", x, kind)

    def intrinsic(self, name: str, first: Value, *rest: Value | float, result: Type | None = None) -> Value:
        """A call of ``llvm.NAME``, overloaded on the type of its first argument; ``i1`` arguments by ``bool``."""
        gives, types, arguments = result or first.type, [str(first.type)], [f"{first.type} {first.text}"]
        for argument in rest:
            kind = I1 if isinstance(argument, bool) else argument.type if isinstance(argument, Value) else first.type
            value = self.value(kind, int(argument) if isinstance(argument, bool) else argument)
            types.append(str(kind))
            arguments.append(f"{kind} {value.text}")
        full = f"@llvm.{name}.{first.type.mangled}"
        self.declarations[f"declare {gives} {full}({', '.join(types)})"] = None
        return self.emit(gives, f"call {gives} {full}({', '.join(arguments)})")

    def at(self, base: str, offset: Value | int) -> str:
        """The address so many bytes after ``base``, which is the name of a pointer."""
        index = offset if isinstance(offset, Value) else Value(self, I64, str(offset))
        return self.emit(I64, f"getelementptr i8, ptr {base}, {index.type} {index.text}").text

    def load(self, kind: Type, address: str, align: int = 0) -> Value:
        """A load."""
        return self.emit(kind, f"load {kind}, ptr {address}{f', align {align}' if align else ''}")

    def store(self, value: Value, address: str, align: int = 0) -> None:
        """A store."""
        self.do(f"store {value.type} {value.text}, ptr {address}{f', align {align}' if align else ''}")
