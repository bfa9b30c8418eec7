"""Instructions that touch memory: loads, stores, address conversions, atomics, fences."""

from __future__ import annotations

from .conversion import Conversion
from .kinds import PTXType, ptx_type
from .syntax import Address, Instruction, Operand, Vector
from .translate import MISALIGNED

_SPACES = ("global", "shared", "local", "param", "const")
_ATOMIC = {"and": "and", "or": "or", "xor": "xor", "exch": "xchg", "inc": "uinc_wrap", "dec": "udec_wrap"}
_U64 = ptx_type("u64")


def space_of(i: Instruction) -> str:
    """The state space that an instruction names, empty for generic addresses."""
    for modifier in i.modifiers:
        stem = modifier.partition("::")[0]
        if stem in _SPACES:
            return stem
    return ""


class Transfer(Conversion):
    """Translation of what reads and writes memory."""

    def place(self, i: Instruction, operand: Operand, byte: int, space: str) -> str:
        if not isinstance(operand, Address):
            raise self.unsupported(i)
        return self.memory(Address(operand.base, operand.offset + byte), space)

    def check_alignment(self, i: Instruction, operand: Operand, nbytes: int, space: str) -> None:
        """Ends the kernel where the device would fault."""
        if nbytes == 1 or space in ("param", "local"):
            return
        place = self.emit(f"ptrtoint ptr {self.place(i, operand, 0, space)} to i64")
        odd = self.emit(f"icmp ne i64 {self.emit(f'and i64 {place}, {nbytes - 1}')}, 0")
        failed, fine = self.fresh("misaligned"), self.fresh("aligned")
        self.line(f"br i1 {odd}, label %{failed}, label %{fine}")
        self.open_block(failed)
        self.line(f"ret i32 {MISALIGNED}")
        self.open_block(fine)

    def op_ld(self, i: Instruction) -> None:
        kind, space = self.kind(i).raw, space_of(i)
        target, source = i.operands[:2]
        size = max(kind.bits // 8, 1)
        items = target.items if isinstance(target, Vector) else (target,)
        self.check_alignment(i, source, size * len(items), space)
        # All are read before the first is written: the address may be among them.
        values = [
            self.emit(f"load {kind.llvm}, ptr {self.place(i, source, lane * size, space)}, align {size}")
            for lane in range(len(items))
        ]
        for item, value in zip(items, values, strict=True):
            self.write(item, kind, value)

    op_ldu = op_ld

    def op_st(self, i: Instruction) -> None:
        kind, space = self.kind(i).raw, space_of(i)
        target, source = i.operands[:2]
        size = max(kind.bits // 8, 1)
        items = source.items if isinstance(source, Vector) else (source,)
        self.check_alignment(i, target, size * len(items), space)
        for lane, item in enumerate(items):
            value = self.read(item, kind)
            self.line(f"store {kind.llvm} {value}, ptr {self.place(i, target, lane * size, space)}, align {size}")

    def op_cvta(self, i: Instruction) -> None:
        """Shared and local memory lie somewhere in the host's; global memory is the host's."""
        kind, space = self.kind(i), space_of(i)
        source = i.operands[1]
        address = self.read(source, _U64)
        if space in ("shared", "local"):
            base = self.emit(f"ptrtoint ptr %{space} to i64")
            address = self.emit(f"{'sub' if 'to' in i.modifiers else 'add'} i64 {address}, {base}")
        self.write(i.operands[0], kind, address if kind.bits == 64 else self.emit(f"trunc i64 {address} to i32"))

    def op_isspacep(self, i: Instruction) -> None:
        raise self.unsupported(i)

    def op_prefetch(self, i: Instruction) -> None:
        """Nothing: it is a hint."""

    op_prefetchu = op_prefetch
    op_nanosleep = op_prefetch

    def op_membar(self, i: Instruction) -> None:
        self.line("fence seq_cst")

    op_fence = op_membar

    def op_atom(self, i: Instruction) -> None:
        self.write(i.operands[0], self.kind(i).raw, self.atomic(i, i.operands[1], i.operands[2:]))

    def op_red(self, i: Instruction) -> None:
        self.atomic(i, i.operands[0], i.operands[1:])

    def atomic(self, i: Instruction, at: Operand, operands: tuple[Operand, ...]) -> str:
        """The value that was there before."""
        kind = self.kind(i)
        name = next(m for m in i.modifiers if m in ("add", "min", "max", "cas", *_ATOMIC))
        pointer = self.place(i, at, 0, space_of(i))
        size = kind.bits // 8
        if name == "cas":
            raw = ptx_type(f"b{kind.bits}")
            old, new = (self.read(operand, raw) for operand in operands[:2])
            pair = self.emit(f"cmpxchg ptr {pointer}, {raw.llvm} {old}, {raw.llvm} {new} seq_cst seq_cst, align {size}")
            return self.emit(f"extractvalue {{ {raw.llvm}, i1 }} {pair}, 0")
        if kind.name in ("f16", "bf16", "f16x2", "bf16x2"):
            return self.small_float_sum(i, kind, pointer, operands[0])
        value = self.read(operands[0], kind)
        if name in ("min", "max"):
            name = f"f{name}" if kind.is_float else name if kind.signed else f"u{name}"
        elif name == "add":
            name = "fadd" if kind.is_float else "add"
        else:
            name = _ATOMIC[name]
        return self.emit(f"atomicrmw {name} ptr {pointer}, {kind.llvm} {value} seq_cst, align {size}")

    def small_float_sum(self, i: Instruction, kind: PTXType, pointer: str, operand: Operand) -> str:
        """Floats of 16 bits are added in a loop of compare and exchange."""
        raw = kind.raw.llvm
        begin, done = self.fresh("again"), self.fresh("added")
        value = self.read(operand, kind)
        first = self.emit(f"load {raw}, ptr {pointer}, align {kind.bits // 8}")
        cell = self.fresh("cell")
        self.allocas.append(f"%{cell} = alloca {raw}")
        self.line(f"store {raw} {first}, ptr %{cell}")
        self.line(f"br label %{begin}")
        self.open_block(begin)
        old = self.emit(f"load {raw}, ptr %{cell}")
        total = self.emit(f"fadd {kind.llvm} {self.fit(old, raw, kind)}, {value}")
        new, _ = self.bits(total, kind)
        pair = self.emit(f"cmpxchg ptr {pointer}, {raw} {old}, {raw} {new} seq_cst seq_cst, align {kind.bits // 8}")
        now = self.emit(f"extractvalue {{ {raw}, i1 }} {pair}, 0")
        self.line(f"store {raw} {now}, ptr %{cell}")
        same = self.emit(f"extractvalue {{ {raw}, i1 }} {pair}, 1")
        self.line(f"br i1 {same}, label %{done}, label %{begin}")
        self.open_block(done)
        return old
