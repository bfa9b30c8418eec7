"""LLVM IR as it grows: lines, fresh names, intrinsics, and conversions of numbers that take several of them."""

from __future__ import annotations

from .kinds import PTXType, overload

_WORDS = {"half": "i16", "float": "i32", "double": "i64"}


class Emitter:
    """The body of a function in LLVM IR.

    Attributes:
      body: its lines.
      allocas: what its first block reserves.
      declarations: of the intrinsics in use; shared by the functions of a module.
    """

    def __init__(self, declarations: dict[str, None]) -> None:
        self.body: list[str] = []
        self.allocas: list[str] = []
        self.declarations = declarations
        self.serial = 0

    def fresh(self, stem: str = "t") -> str:
        """A name that is not in use."""
        self.serial += 1
        return f"{stem}{self.serial}"

    def line(self, text: str) -> None:
        """An instruction without a value."""
        self.body.append(f"  {text}")

    def emit(self, text: str) -> str:
        """An instruction with a value; returns the value's name."""
        name = f"%{self.fresh()}"
        self.line(f"{name} = {text}")
        return name

    def open_block(self, label: str) -> None:
        """Begins a basic block; the one before must have ended."""
        self.body.append(f"{label}:")

    def call(self, name: str, result: str, *arguments: tuple[str, str]) -> str:
        """A call of an intrinsic with (type, value) arguments."""
        self.declarations[f"declare {result} @{name}({', '.join(kind for kind, _ in arguments)})"] = None
        text = f"call {result} @{name}({', '.join(f'{kind} {value}' for kind, value in arguments)})"
        if result == "void":
            self.line(text)
            return ""
        return self.emit(text)

    # numbers

    def half_to_float(self, bits: str) -> str:
        """An i16 that holds a float16, as float. Exact."""
        return self.emit(f"fpext half {self.emit(f'bitcast i16 {bits} to half')} to float")

    def float_to_half(self, value: str) -> str:
        """A float rounded to float16, in an i16."""
        return self.emit(f"bitcast half {self.emit(f'fptrunc float {value} to half')} to i16")

    def bfloat_to_float(self, bits: str) -> str:
        """An i16 that holds a bfloat16, as float. Exact."""
        wide = self.emit(f"shl i32 {self.emit(f'zext i16 {bits} to i32')}, 16")
        return self.emit(f"bitcast i32 {wide} to float")

    def float_to_bfloat(self, value: str) -> str:
        """A float rounded to nearest even to bfloat16, in an i16. LLVM would call a library for it on most machines."""
        bits = self.emit(f"bitcast float {value} to i32")
        odd = self.emit(f"and i32 {self.emit(f'lshr i32 {bits}, 16')}, 1")
        up = self.emit(f"add i32 {self.emit(f'add i32 {bits}, {odd}')}, 32767")
        nan = self.emit(f"fcmp uno float {value}, {value}")
        chosen = self.emit(f"select i1 {nan}, i32 2147418112, i32 {up}")  # 0x7fff0000
        return self.emit(f"trunc i32 {self.emit(f'lshr i32 {chosen}, 16')} to i16")

    def toward_zero(self, near: str, is_away: str, kind: str = "float") -> str:
        """The neighbour of ``near`` on the side of zero, where ``is_away`` says that it was rounded away."""
        word = _WORDS[kind]
        bits = self.emit(f"bitcast {kind} {near} to {word}")
        less = self.emit(f"sub {word} {bits}, {self.emit(f'zext i1 {is_away} to {word}')}")
        return self.emit(f"bitcast {word} {less} to {kind}")

    def double_to_float(self, value: str, rounding: str) -> str:
        """A double rounded to float: ``rn`` to nearest, ``rz`` toward zero, ``rm`` down, ``rp`` up, ``odd`` to odd."""
        near = self.emit(f"fptrunc double {value} to float")
        if rounding == "rn":
            return near
        back = self.emit(f"fpext float {near} to double")
        if rounding in ("rm", "rp"):
            return self._directed(near, back, value, rounding)
        away = self.emit(f"fcmp ogt double {self.absolute(back, 'double')}, {self.absolute(value, 'double')}")
        zero = self.toward_zero(near, away)
        if rounding == "rz":
            return zero
        inexact = self.emit(f"fcmp one double {back}, {value}")
        bits = self.emit(f"bitcast float {zero} to i32")
        odd = self.emit(f"or i32 {bits}, {self.emit(f'zext i1 {inexact} to i32')}")
        return self.emit(f"bitcast i32 {odd} to float")

    def _directed(self, near: str, back: str, value: str, rounding: str) -> str:
        wrong = self.emit(f"fcmp {'ogt' if rounding == 'rm' else 'olt'} double {back}, {value}")
        bits = self.emit(f"bitcast float {near} to i32")
        negative = self.emit(f"icmp slt i32 {bits}, 0")
        # Down is toward zero for what is positive, and away from it for what is negative.
        steps = "i32 1, i32 -1" if rounding == "rm" else "i32 -1, i32 1"
        step = self.emit(f"select i1 {negative}, {steps}")
        moved = self.emit(f"bitcast i32 {self.emit(f'add i32 {bits}, {step}')} to float")
        return self.emit(f"select i1 {wrong}, float {moved}, float {near}")

    def absolute(self, value: str, kind: str) -> str:
        """The magnitude of a float or double."""
        return self.call(f"llvm.fabs.{'f64' if kind == 'double' else 'f32'}", kind, (kind, value))

    def flushed(self, value: str) -> str:
        """A float, or a zero of its sign if it is subnormal."""
        small = self.emit(f"fcmp olt float {self.absolute(value, 'float')}, 0x3810000000000000")  # 2**-126
        zero = self.call("llvm.copysign.f32", "float", ("float", "0.0"), ("float", value))
        return self.emit(f"select i1 {small}, float {zero}, float {value}")

    def unary(self, name: str, kind: PTXType, a: str) -> str:
        """A call of an intrinsic of one operand, in the overload of its type."""
        return self.call(f"{name}.{overload(kind.llvm)}", kind.llvm, (kind.llvm, a))

    def binary(self, name: str, kind: PTXType, a: str, b: str) -> str:
        """A call of an intrinsic of two operands of one type."""
        return self.call(f"{name}.{overload(kind.llvm)}", kind.llvm, (kind.llvm, a), (kind.llvm, b))

    def recast(self, value: str, have: str, want: str, signed: bool) -> str:
        """Bits of one LLVM type as another; integers grow by their sign."""
        if want in ("float", "double"):
            word = "i32" if want == "float" else "i64"
            if have != word:
                value = self.recast(value, have, word, signed)
            return self.emit(f"bitcast {word} {value} to {want}")
        if have in ("float", "double"):
            word = "i32" if have == "float" else "i64"
            value, have = self.emit(f"bitcast {have} {value} to {word}"), word
            if have == want:
                return value
        instruction = "trunc" if int(have[1:]) > int(want[1:]) else "sext" if signed else "zext"
        return self.emit(f"{instruction} {have} {value} to {want}")

    def unpack(self, value: str, half: str) -> str:
        """Two 16-bit floats in an i32, as a vector of floats; the low half first."""
        found = "poison"
        for lane in range(2):
            bits = self.emit(f"trunc i32 {value if lane == 0 else self.emit(f'lshr i32 {value}, 16')} to i16")
            number = self.half_to_float(bits) if half == "f16" else self.bfloat_to_float(bits)
            found = self.emit(f"insertelement <2 x float> {found}, float {number}, i32 {lane}")
        return found

    def joined(self, low: str, high: str) -> str:
        """Two words as one of 64 bits."""
        low, high = (self.emit(f"zext i32 {v} to i64") for v in (low, high))
        return self.emit(f"or i64 {low}, {self.emit(f'shl i64 {high}, 32')}")

    def splat(self, number: str, kind: PTXType) -> str:
        """A number in every lane of a type."""
        return f"splat (float {number})" if kind.llvm.startswith("<") else number
