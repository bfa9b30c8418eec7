"""Loads, stores, conversions of addresses, prefetches and fences."""

from __future__ import annotations

from .addresses import space_of
from .errors import unsupported
from .kinds import kind_of, ptx_type
from .syntax import Instruction, Vector
from .whole import Whole

_U64 = ptx_type("u64")



class Transfer:
    """Translates what reads and writes memory, one thread at a time."""

    def __init__(self, whole: Whole) -> None:
        self.whole, self.ir, self.operands, self.addresses = whole, whole.ir, whole.operands, whole.addresses

    def op_ld(self, i: Instruction) -> None:
        kind, space = kind_of(i).raw, space_of(i)
        target, source = i.operands[:2]
        size = max(kind.bits // 8, 1)
        items = target.items if isinstance(target, Vector) else (target,)
        self.addresses.check_alignment(i, source, size * len(items), space)
        # All are read before the first is written: the address may be among them.
        values = [
            self.ir.emit(f"load {kind.llvm}, ptr {self.addresses.place(i, source, lane * size, space)}, align {size}")
            for lane in range(len(items))
        ]
        for item, value in zip(items, values, strict=True):
            self.operands.write(item, kind, value)

    op_ldu = op_ld

    def op_st(self, i: Instruction) -> None:
        kind, space = kind_of(i).raw, space_of(i)
        target, source = i.operands[:2]
        size = max(kind.bits // 8, 1)
        items = source.items if isinstance(source, Vector) else (source,)
        self.addresses.check_alignment(i, target, size * len(items), space)
        for lane, item in enumerate(items):
            value = self.operands.read(item, kind)
            place = self.addresses.place(i, target, lane * size, space)
            self.ir.line(f"store {kind.llvm} {value}, ptr {place}, align {size}")

    def op_cvta(self, i: Instruction) -> None:
        """Shared and local memory lie somewhere in the host's; global memory is the host's."""
        kind, space = kind_of(i), space_of(i)
        source = i.operands[1]
        address = self.operands.read(source, _U64)
        if space in ("shared", "local"):
            base = self.ir.emit(f"ptrtoint ptr %{space} to i64")
            address = self.ir.emit(f"{'sub' if 'to' in i.modifiers else 'add'} i64 {address}, {base}")
        if kind.bits != 64:
            address = self.ir.emit(f"trunc i64 {address} to i32")
        self.operands.write(i.operands[0], kind, address)

    def op_isspacep(self, i: Instruction) -> None:
        raise unsupported(self.whole.function, i)

    def op_prefetch(self, i: Instruction) -> None:
        """Nothing: it is a hint."""

    op_prefetchu = op_prefetch
    op_nanosleep = op_prefetch

    def op_membar(self, i: Instruction) -> None:
        self.ir.line("fence seq_cst")

    op_fence = op_membar
