"""The instruction ``cvt``: every number to every other."""

from __future__ import annotations

from .errors import unsupported
from .kinds import PTXType, overload, ptx_type, rounding
from .syntax import Instruction
from .whole import Whole

_WHOLE = {"rni": "llvm.roundeven", "rzi": "llvm.trunc", "rmi": "llvm.floor", "rpi": "llvm.ceil"}



class Conversion:
    """Translates conversions."""

    def __init__(self, whole: Whole) -> None:
        self.whole, self.ir, self.operands = whole, whole.ir, whole.operands

    def op_cvt(self, i: Instruction) -> None:
        into, source = ptx_type(i.modifiers[-2]), ptx_type(i.modifiers[-1])
        if into.llvm.startswith("<"):
            self.convert_pair(i, into, source)
            return
        value = self.operands.read(i.operands[1], source)
        if "ftz" in i.modifiers and source.name == "f32":
            value = self.ir.flushed(value)
        if source.is_float and into.is_float:
            self.operands.result(i, into, self.float_to_float(i, value, source, into))
        elif source.is_float:
            self.operands.write(i.operands[0], into, self.float_to_int(i, value, source, into))
        elif into.is_float:
            self.operands.result(i, into, self.int_to_float(i, value, source, into))
        else:
            self.operands.write(i.operands[0], into, self.int_to_int(i, value, source, into))

    def convert_pair(self, i: Instruction, into: PTXType, source: PTXType) -> None:
        """Two floats to a pair; the first operand is the upper half."""
        if source.name != "f32" or len(i.operands) != 3:
            raise unsupported(self.whole.function, i)
        found = "poison"
        for lane, operand in enumerate(reversed(i.operands[1:])):
            value = self.operands.read(operand, source)
            found = self.ir.emit(f"insertelement <2 x float> {found}, float {value}, i32 {lane}")
        self.operands.result(i, into, found)

    def float_to_float(self, i: Instruction, value: str, source: PTXType, into: PTXType) -> str:
        mode = rounding(i)
        if mode in _WHOLE:
            value, mode = self.ir.unary(_WHOLE[mode], source, value), "rn"
        if source.name == "f64" and into.name != "f64":
            return self.ir.double_to_float(value, mode if into.bits == 32 else "odd")
        if into.name == "f64" and source.name != "f64":
            return self.ir.emit(f"fpext float {value} to double")
        if mode != "rn" and into.bits == 16:
            raise unsupported(self.whole.function, i)
        return value

    def float_to_int(self, i: Instruction, value: str, source: PTXType, into: PTXType) -> str:
        """Saturates. NaN is 0, or, where 64 bits are on either side, the value with only its highest bit set."""
        value = self.ir.unary(_WHOLE[rounding(i, "rzi")], source, value)
        name = f"llvm.fpto{'s' if into.signed else 'u'}i.sat.{into.llvm}.{overload(source.llvm)}"
        found = self.ir.call(name, into.llvm, (source.llvm, value))
        if source.name != "f64" and into.bits != 64:
            return found
        nan = self.ir.emit(f"fcmp uno {source.llvm} {value}, {value}")
        least = -(1 << (into.bits - 1))
        return self.ir.emit(f"select i1 {nan}, {into.llvm} {least}, {into.llvm} {found}")

    def int_to_float(self, i: Instruction, value: str, source: PTXType, into: PTXType) -> str:
        mode, name = rounding(i), f"{'s' if source.signed else 'u'}itofp"
        if into.name == "f64":
            return self.ir.emit(f"{name} {source.llvm} {value} to double")
        near = self.ir.emit(f"{name} {source.llvm} {value} to float")
        if into.name == "f32" and mode == "rn":
            return near
        if mode != ("rz" if into.name == "f32" else "rn"):
            raise unsupported(self.whole.function, i)
        # The highest 24 bits are a float; whether one of the others is set decides all roundings to less.
        wide = value if source.bits == 64 else self.ir.recast(value, source.llvm, "i64", source.signed)
        size = self.ir.call("llvm.abs.i64", "i64", ("i64", wide), ("i1", "false")) if source.signed else wide
        zeros = self.ir.call("llvm.ctlz.i64", "i64", ("i64", size), ("i1", "false"))
        shift = self.ir.call("llvm.usub.sat.i64", "i64", ("i64", "40"), ("i64", zeros))
        top = self.ir.emit(f"lshr i64 {size}, {shift}")
        inexact = self.ir.emit(f"icmp ne i64 {self.ir.emit(f'shl i64 {top}, {shift}')}, {size}")
        number = self.ir.emit(f"uitofp i64 {top} to float")
        exponent = self.ir.emit(f"trunc i64 {self.ir.emit(f'add i64 {shift}, 127')} to i32")
        exponent = self.ir.emit(f"shl i32 {exponent}, 23")
        number = self.ir.emit(f"fmul float {number}, {self.ir.emit(f'bitcast i32 {exponent} to float')}")
        if source.signed:
            negative = self.ir.emit(f"icmp slt i64 {wide}, 0")
            number = self.ir.emit(f"select i1 {negative}, float {self.ir.emit(f'fneg float {number}')}, float {number}")
        if mode == "rz":
            return number
        bits = self.ir.emit(f"bitcast float {number} to i32")
        odd = self.ir.emit(f"or i32 {bits}, {self.ir.emit(f'zext i1 {inexact} to i32')}")
        return self.ir.emit(f"bitcast i32 {odd} to float")

    def int_to_int(self, i: Instruction, value: str, source: PTXType, into: PTXType) -> str:
        if "sat" in i.modifiers:
            wide = "i128"
            grown = self.ir.emit(f"{'sext' if source.signed else 'zext'} {source.llvm} {value} to {wide}")
            low = -(1 << (into.bits - 1)) if into.signed else 0
            high = low + (1 << into.bits) - 1
            grown = self.ir.call(f"llvm.smax.{wide}", wide, (wide, grown), (wide, str(low)))
            grown = self.ir.call(f"llvm.smin.{wide}", wide, (wide, grown), (wide, str(high)))
            return self.ir.emit(f"trunc {wide} {grown} to {into.llvm}")
        if source.bits == into.bits:
            return value
        return self.ir.recast(value, source.llvm, into.llvm, source.signed)
