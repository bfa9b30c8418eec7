"""Operands: registers, constants and names of variables, as values of a type, and results written to registers."""

from __future__ import annotations

from .convention import identifier
from .emitter import Emitter
from .errors import PTXUnsupported
from .kinds import PAIRS, PTXType, ptx_type
from .special import Special
from .storage import Storage
from .syntax import Function, Immediate, Instruction, Operand, Register, Symbol


def register(name: str) -> str:
    """LLVM's name of the memory of a register."""
    return f"%{identifier('r' + name)}"


class Operands:
    """Reads and writes the operands of instructions.

    A register is an ``alloca``, which LLVM's first pass turns into SSA.

    Attributes:
      types: of the function's registers.
    """

    def __init__(self, ir: Emitter, function: Function, storage: Storage, special: Special) -> None:
        self.ir, self.function, self.storage, self.special = ir, function, storage, special
        self.types = {name: ptx_type(kind) for name, kind in function.registers.items()}

    def read(self, operand: Operand, kind: PTXType) -> str:
        """An operand as a value of ``kind`` that can be computed with."""
        if isinstance(operand, Immediate):
            return self.immediate(operand, kind)
        if isinstance(operand, Symbol):
            return self.fit(self.storage.address_of(operand.name), "i64", kind)
        if not isinstance(operand, Register):
            raise PTXUnsupported(f"PTX: {self.function.name}: {operand} as a value")
        known = self.types.get(operand.name)
        if known is None:
            value, have = self.special.read(operand.name)
        else:
            have = known.register
            value = self.ir.emit(f"load {have}, ptr {register(operand.name)}")
        value = self.fit(value, have, kind)
        return self.ir.emit(f"xor i1 {value}, true") if operand.negated else value

    def immediate(self, operand: Immediate, kind: PTXType) -> str:
        bits = operand.value
        if kind.kind == "p":
            return "true" if bits else "false"
        if not kind.is_float:
            bits &= (1 << kind.bits) - 1
            return str(bits - (1 << kind.bits) if bits >> (kind.bits - 1) else bits)
        have = f"i{operand.float_bits or kind.bits}"
        if operand.float_bits == 64 and kind.name != "f64":  # a decimal number
            return self.ir.emit(f"fptrunc double {self.ir.emit(f'bitcast i64 {bits} to double')} to float")
        return self.fit(str(bits), have, kind)

    def fit(self, value: str, have: str, kind: PTXType) -> str:
        """A register's content, of the LLVM type ``have``, as a value of ``kind``."""
        if have == kind.llvm and kind.name not in ("f16", "bf16"):
            return value
        if have in ("float", "double"):
            word = "i32" if have == "float" else "i64"
            have, value = word, self.ir.emit(f"bitcast {have} {value} to {word}")
        width = int(have[1:])
        if width > kind.bits:
            value = self.ir.emit(f"trunc {have} {value} to i{kind.bits}")
        elif width < kind.bits:
            value = self.ir.emit(f"zext {have} {value} to i{kind.bits}")
        if not kind.is_float:
            return value
        if kind.name in PAIRS:
            return self.ir.unpack(value, PAIRS[kind.name])
        if kind.bits == 16:
            return self.ir.half_to_float(value) if kind.name == "f16" else self.ir.bfloat_to_float(value)
        return self.ir.emit(f"bitcast i{kind.bits} {value} to {kind.llvm}")

    def write(self, operand: Operand, kind: PTXType, value: str) -> None:
        """Sets a register to a computed value of ``kind``."""
        if isinstance(operand, Register | Symbol) and operand.name == "_":
            return
        if not isinstance(operand, Register) or operand.name not in self.types:
            raise PTXUnsupported(f"PTX: {self.function.name}: {operand} as a destination")
        want = self.types[operand.name].register
        value, have = self.bits(value, kind)
        if have != want:
            value = self.ir.recast(value, have, want, kind.signed)
        self.ir.line(f"store {want} {value}, ptr {register(operand.name)}")

    def bits(self, value: str, kind: PTXType) -> tuple[str, str]:
        """A computed value as it is kept, and its LLVM type."""
        if kind.name in PAIRS:
            halves = []
            for lane in range(2):
                number = self.ir.emit(f"extractelement <2 x float> {value}, i32 {lane}")
                narrow = self.ir.float_to_half(number) if PAIRS[kind.name] == "f16" else self.ir.float_to_bfloat(number)
                halves.append(self.ir.emit(f"zext i16 {narrow} to i32"))
            return self.ir.emit(f"or i32 {halves[0]}, {self.ir.emit(f'shl i32 {halves[1]}, 16')}"), "i32"
        if kind.name == "f16":
            return self.ir.float_to_half(value), "i16"
        if kind.name == "bf16":
            return self.ir.float_to_bfloat(value), "i16"
        return value, kind.llvm

    def reads(self, i: Instruction, kind: PTXType) -> list[str]:
        """All source operands as values of one type; subnormal floats flushed where the instruction says so."""
        values = [self.read(operand, kind) for operand in i.operands[1:]]
        return [self.ir.flushed(v) for v in values] if "ftz" in i.modifiers and kind.name == "f32" else values

    def result(self, i: Instruction, kind: PTXType, value: str) -> None:
        """Writes the first operand, after what ``.sat`` and ``.ftz`` ask for."""
        if kind.name == "f32" and "ftz" in i.modifiers:
            value = self.ir.flushed(value)
        if kind.is_float and "sat" in i.modifiers:
            value = self.saturated(value, kind)
        if kind.is_float and "relu" in i.modifiers:
            value = self.ir.binary("llvm.maximum", kind, value, self.ir.splat("0.0", kind))
        self.write(i.operands[0], kind, value)

    def saturated(self, value: str, kind: PTXType) -> str:
        """Between 0 and 1; NaN is 0."""
        value = self.ir.binary("llvm.maxnum", kind, value, self.ir.splat("0.0", kind))
        return self.ir.binary("llvm.minnum", kind, value, self.ir.splat("1.0", kind))
