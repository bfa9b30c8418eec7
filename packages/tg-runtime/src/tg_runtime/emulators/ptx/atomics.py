"""Atomic operations on memory."""

from __future__ import annotations

from .addresses import space_of
from .kinds import PTXType, kind_of, ptx_type
from .syntax import Instruction, Operand
from .whole import Whole

_ATOMIC = {"and": "and", "or": "or", "xor": "xor", "exch": "xchg", "inc": "uinc_wrap", "dec": "udec_wrap"}



class Atomics:
    """Translates ``atom`` and ``red``."""

    def __init__(self, whole: Whole) -> None:
        self.ir, self.operands, self.addresses = whole.ir, whole.operands, whole.addresses

    def op_atom(self, i: Instruction) -> None:
        self.operands.write(i.operands[0], kind_of(i).raw, self.atomic(i, i.operands[1], i.operands[2:]))

    def op_red(self, i: Instruction) -> None:
        self.atomic(i, i.operands[0], i.operands[1:])

    def atomic(self, i: Instruction, at: Operand, operands: tuple[Operand, ...]) -> str:
        """The value that was there before."""
        kind = kind_of(i)
        name = next(m for m in i.modifiers if m in ("add", "min", "max", "cas", *_ATOMIC))
        pointer = self.addresses.place(i, at, 0, space_of(i))
        size = kind.bits // 8
        if name == "cas":
            raw = ptx_type(f"b{kind.bits}")
            old, new = (self.operands.read(operand, raw) for operand in operands[:2])
            both = f"{raw.llvm} {old}, {raw.llvm} {new}"
            pair = self.ir.emit(f"cmpxchg ptr {pointer}, {both} seq_cst seq_cst, align {size}")
            return self.ir.emit(f"extractvalue {{ {raw.llvm}, i1 }} {pair}, 0")
        if kind.name in ("f16", "bf16", "f16x2", "bf16x2"):
            return self.small_float_sum(i, kind, pointer, operands[0])
        value = self.operands.read(operands[0], kind)
        if name in ("min", "max"):
            name = f"f{name}" if kind.is_float else name if kind.signed else f"u{name}"
        elif name == "add":
            name = "fadd" if kind.is_float else "add"
        else:
            name = _ATOMIC[name]
        return self.ir.emit(f"atomicrmw {name} ptr {pointer}, {kind.llvm} {value} seq_cst, align {size}")

    def small_float_sum(self, i: Instruction, kind: PTXType, pointer: str, operand: Operand) -> str:
        """Floats of 16 bits are added in a loop of compare and exchange."""
        raw = kind.raw.llvm
        begin, done = self.ir.fresh("again"), self.ir.fresh("added")
        value = self.operands.read(operand, kind)
        first = self.ir.emit(f"load {raw}, ptr {pointer}, align {kind.bits // 8}")
        cell = self.ir.fresh("cell")
        self.ir.allocas.append(f"%{cell} = alloca {raw}")
        self.ir.line(f"store {raw} {first}, ptr %{cell}")
        self.ir.line(f"br label %{begin}")
        self.ir.open_block(begin)
        old = self.ir.emit(f"load {raw}, ptr %{cell}")
        total = self.ir.emit(f"fadd {kind.llvm} {self.operands.fit(old, raw, kind)}, {value}")
        new, _ = self.operands.bits(total, kind)
        pair = self.ir.emit(f"cmpxchg ptr {pointer}, {raw} {old}, {raw} {new} seq_cst seq_cst, align {kind.bits // 8}")
        now = self.ir.emit(f"extractvalue {{ {raw}, i1 }} {pair}, 0")
        self.ir.line(f"store {raw} {now}, ptr %{cell}")
        same = self.ir.emit(f"extractvalue {{ {raw}, i1 }} {pair}, 1")
        self.ir.line(f"br i1 {same}, label %{done}, label %{begin}")
        self.ir.open_block(done)
        return old
