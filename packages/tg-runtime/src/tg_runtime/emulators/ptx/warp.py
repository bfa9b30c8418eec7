"""Instructions by which threads wait for one another: barriers, shuffles, votes, reductions."""

from __future__ import annotations

from .convention import BARRIER
from .errors import unsupported
from .kinds import PTXType, kind_of, ptx_type
from .syntax import Instruction
from .whole import Whole

_U32, _PRED = ptx_type("u32"), ptx_type("pred")



class Warp:
    """Translates what a thread does with others."""

    def __init__(self, whole: Whole) -> None:
        self.whole, self.ir, self.operands, self.exchange = whole, whole.ir, whole.operands, whole.exchange

    def op_bar(self, i: Instruction) -> None:
        if "warp" in i.modifiers:
            self.exchange.meet(i, self.operands.read(i.operands[0], _U32))
        elif "red" in i.modifiers or "arrive" in i.modifiers:
            raise unsupported(self.whole.function, i)
        else:
            self.whole.waits.wait(i, BARRIER)

    op_barrier = op_bar

    def op_shfl(self, i: Instruction) -> None:
        """Another lane's value; where that lane is out of the segment, one's own."""
        has_flag = len(i.operands) - (1 if "sync" in i.modifiers else 0) == 5
        target, operands = i.operands[0], i.operands[2:] if has_flag else i.operands[1:]
        mode = next(m for m in i.modifiers if m in ("up", "down", "bfly", "idx"))
        own = self.operands.read(operands[0], _U32)
        mask = self.exchange.mask_of(i, operands[3] if len(operands) > 3 else None)
        self.exchange.offer(own, "i32")
        self.exchange.meet(i, mask)
        own = self.operands.read(operands[0], _U32)
        by = self.ir.emit(f"and i32 {self.operands.read(operands[1], _U32)}, 31")
        bounds = self.operands.read(operands[2], _U32)
        lane = self.exchange.lane()
        clamp = self.ir.emit(f"and i32 {bounds}, 31")
        segment = self.ir.emit(f"and i32 {self.ir.emit(f'lshr i32 {bounds}, 8')}, 31")
        kept = self.ir.emit(f"and i32 {lane}, {segment}")
        others = self.ir.emit(f"xor i32 {segment}, -1")
        most = self.ir.emit(f"or i32 {kept}, {self.ir.emit(f'and i32 {clamp}, {others}')}")
        if mode == "up":
            source = self.ir.emit(f"sub i32 {lane}, {by}")
            inside = self.ir.emit(f"icmp sge i32 {source}, {most}")
        else:
            if mode == "idx":
                source = self.ir.emit(f"or i32 {kept}, {self.ir.emit(f'and i32 {by}, {others}')}")
            else:
                source = self.ir.emit(f"{'add' if mode == 'down' else 'xor'} i32 {lane}, {by}")
            inside = self.ir.emit(f"icmp sle i32 {source}, {most}")
        source = self.ir.emit(f"select i1 {inside}, i32 {source}, i32 {lane}")
        there = self.ir.emit(f"load i32, ptr {self.exchange.word(source, 0)}")
        self.operands.write(target, _U32, there)
        if has_flag:
            self.operands.write(i.operands[1], _PRED, inside)
        self.exchange.leave(i, operands[3] if len(operands) > 3 else None)

    def op_vote(self, i: Instruction) -> None:
        mode = next(m for m in i.modifiers if m in ("all", "any", "uni", "ballot"))
        given = i.operands[2] if len(i.operands) > 2 else None
        own = self.operands.read(i.operands[1], _PRED)
        self.exchange.offer(self.ir.emit(f"zext i1 {own} to i32"), "i32")
        self.exchange.meet(i, self.exchange.mask_of(i, given))
        mask = self.exchange.mask_of(i, given)
        ballot = self.gathered_bits(mask)
        if mode == "ballot":
            self.operands.write(i.operands[0], _U32, ballot)
        else:
            every, none = (self.ir.emit(f"icmp eq i32 {ballot}, {v}") for v in (mask, "0"))
            some, equal = self.ir.emit(f"xor i1 {none}, true"), self.ir.emit(f"or i1 {every}, {none}")
            self.operands.write(i.operands[0], _PRED, {"all": every, "any": some, "uni": equal}[mode])
        self.exchange.leave(i, given)

    def gathered_bits(self, mask: str) -> str:
        """One bit from each lane of ``mask``."""
        found = "0"
        for lane in range(32):
            found = self.ir.emit(f"or i32 {found}, {self.offered(mask, lane, '0')[1]}")
        return found

    def offered(self, mask: str, lane: int, missing: str) -> tuple[str, str]:
        """Whether a lane takes part, and its bit at its place."""
        bit = 1 << lane if lane < 31 else -(1 << 31)
        here = self.ir.emit(f"icmp ne i32 {self.ir.emit(f'and i32 {mask}, {bit}')}, 0")
        safe = self.ir.emit(f"select i1 {here}, i32 {lane}, i32 {self.exchange.lane()}")
        flag = self.ir.emit(f"load i32, ptr {self.exchange.word(safe, 0)}")
        placed = self.ir.emit(f"shl i32 {flag}, {lane}")
        return here, self.ir.emit(f"select i1 {here}, i32 {placed}, i32 {missing}")

    def op_activemask(self, i: Instruction) -> None:
        self.operands.write(i.operands[0], _U32, self.exchange.mask_of(i, None))

    def op_redux(self, i: Instruction) -> None:
        """One number of all lanes."""
        kind = kind_of(i)
        name = next(m for m in i.modifiers if m in ("add", "min", "max", "and", "or", "xor"))
        if kind.is_float:
            raise unsupported(self.whole.function, i)
        given = i.operands[2]
        self.exchange.offer(self.operands.read(i.operands[1], kind), "i32")
        self.exchange.meet(i, self.exchange.mask_of(i, given))
        mask = self.exchange.mask_of(i, given)
        neutral = {"add": 0, "or": 0, "xor": 0, "and": -1}.get(name)
        if neutral is None:
            low, high = (-(1 << 31), (1 << 31) - 1) if kind.signed else (0, -1)
            neutral = high if name == "min" else low
        found = str(neutral)
        for lane in range(32):
            bit = 1 << lane if lane < 31 else -(1 << 31)
            here = self.ir.emit(f"icmp ne i32 {self.ir.emit(f'and i32 {mask}, {bit}')}, 0")
            safe = self.ir.emit(f"select i1 {here}, i32 {lane}, i32 {self.exchange.lane()}")
            value = self.ir.emit(f"load i32, ptr {self.exchange.word(safe, 0)}")
            value = self.ir.emit(f"select i1 {here}, i32 {value}, i32 {neutral}")
            found = self.combined(name, kind, found, value)
        self.operands.write(i.operands[0], kind, found)
        self.exchange.leave(i, given)

    def combined(self, name: str, kind: PTXType, a: str, b: str) -> str:
        if name in ("min", "max"):
            return self.ir.binary(f"llvm.{'s' if kind.signed else 'u'}{name}", kind, a, b)
        return self.ir.emit(f"{name} i32 {a}, {b}")
