"""PTX's registers and literals, and the lines of a kernel as it grows.

How values are kept:

* A bool is a predicate register.
* Integers of 8, 16 and 32 bits are in 32-bit registers. A narrow one is always in its range, sign- or zero-extended:
  whatever may leave the range is followed by a ``cvt`` that brings it back.
* float16 and bfloat16 are in 16-bit registers.

Source: NVIDIA, *Parallel Thread Execution ISA*, chapters "Instruction Set" and "Directives".
"""

from __future__ import annotations

from tg_dtype import ConstType, DType, dtypes, to_bits

f16, bf16, f32, f64 = dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64

_FLOAT_SUFFIX = {f16: "f16", bf16: "bf16", f32: "f32", f64: "f64"}
_FLOAT_CLASS = {f16: "h", bf16: "h", f32: "f", f64: "d"}
_REGISTER_TYPE = {"p": "pred", "h": "b16", "r": "b32", "rd": "b64", "f": "f32", "d": "f64"}


def register_class(dtype: DType) -> str:
    """The letter of the registers that hold a scalar."""
    if dtypes.is_bool(dtype):
        return "p"
    if dtypes.is_float(dtype):
        found = _FLOAT_CLASS.get(dtype)
        if found is None:
            raise ValueError(f"PTX: {dtype.name} has no arithmetic here; it must be legalised")
        return found
    return "rd" if dtype.bits == 64 else "r"


def suffix(dtype: DType) -> str:
    """The type of an instruction that computes with a scalar in its register."""
    if dtypes.is_float(dtype):
        return _FLOAT_SUFFIX[dtype]
    return f"{'u' if dtypes.is_unsigned(dtype) else 's'}{64 if dtype.bits == 64 else 32}"


def bits_suffix(dtype: DType) -> str:
    """The untyped suffix for a scalar's register."""
    return {"h": "b16", "r": "b32", "rd": "b64", "f": "f32", "d": "f64"}[register_class(dtype)]


def memory_suffix(dtype: DType) -> str:
    """The type under which a scalar lies in memory."""
    if dtypes.is_bool(dtype):
        return "u8"
    if dtypes.is_float(dtype):
        return "b16" if dtype.bits == 16 else suffix(dtype)
    return f"b{dtype.bits}" if dtype.bits >= 32 else f"{'u' if dtypes.is_unsigned(dtype) else 's'}{dtype.bits}"


class PTXText:
    """The text of one kernel's body as it grows.

    Attributes:
      body: its lines.
    """

    def __init__(self) -> None:
        self.body: list[str] = []
        self._counts: dict[str, int] = dict.fromkeys(_REGISTER_TYPE, 0)

    def line(self, text: str) -> None:
        """Writes an instruction."""
        self.body.append(f"  {text};")

    def register(self, kind: str) -> str:
        """A new register of a class."""
        self._counts[kind] += 1
        return f"%{kind}{self._counts[kind]}"

    def emit(self, instruction: str, kind: str, *operands: str) -> str:
        """An instruction with a new register as its destination."""
        found = self.register(kind)
        self.line(f"{instruction} {', '.join((found, *operands))}")
        return found

    def declarations(self) -> list[str]:
        """The registers in use."""
        return [f"  .reg .{_REGISTER_TYPE[kind]} %{kind}<{n + 1}>;" for kind, n in self._counts.items() if n]

    def move(self, value: str, dtype: DType) -> str:
        """The value in a register of its own."""
        kind = register_class(dtype)
        return self.emit("mov.pred" if kind == "p" else f"mov.{bits_suffix(dtype)}", kind, value)

    def in_register(self, value: str, dtype: DType) -> str:
        """The value itself if it is in a register, else in one of its own."""
        return value if value.startswith("%") else self.move(value, dtype)

    def literal(self, value: ConstType, dtype: DType) -> str:
        """A constant as an operand; what has no immediate form is put in a register."""
        if dtypes.is_bool(dtype):
            return self.emit("mov.pred", "p", "1" if value else "0")
        if dtype is f32:
            return f"0f{to_bits(value, f32):08X}"
        if dtype is f64:
            return f"0d{to_bits(value, f64):016X}"
        if dtypes.is_float(dtype):
            return self.emit("mov.b16", register_class(dtype), f"0x{to_bits(value, dtype):04X}")
        number, bits = int(value), 64 if dtype.bits == 64 else 32
        if number >= 1 << (bits - 1):
            number -= 1 << bits
        return hex(1 << (bits - 1)) if number == -(1 << (bits - 1)) else str(number)

    def select(self, condition: str, yes: str, no: str, dtype: DType) -> str:
        """A choice."""
        if dtypes.is_bool(dtype):
            chosen = self.emit("and.pred", "p", condition, yes)
            other = self.emit("and.pred", "p", self.emit("not.pred", "p", condition), no)
            return self.emit("or.pred", "p", chosen, other)
        return self.emit(f"selp.{bits_suffix(dtype)}", register_class(dtype), yes, no, condition)

    def normal(self, value: str, dtype: DType) -> str:
        """A result in a 32-bit register brought back into the range of a narrow dtype."""
        if dtype.bits >= 32:
            return value
        sign = "u" if dtypes.is_unsigned(dtype) else "s"
        return self.emit(f"cvt.{sign}32.{sign}{dtype.bits}", "r", value)
