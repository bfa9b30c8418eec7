"""Instructions by which threads wait for one another: barriers, shuffles, votes.

A thread that exchanges something writes it to the words of its frame and waits for its warp; then each reads what it
wants from the frames of the others, and they wait once more, so that nobody writes before all have read.
"""

from __future__ import annotations

from .kinds import PTXType, ptx_type
from .syntax import Instruction, Operand
from .transfer import Transfer
from .translate import BARRIER, FRAME_MASK, FRAME_WORDS, WARP

_U32, _PRED = ptx_type("u32"), ptx_type("pred")
FRAME_SIZE = "@FRAME_BYTES@"  # stands in the text until the size is known


class Warp(Transfer):
    """Translation of what a thread does with others."""

    def op_bar(self, i: Instruction) -> None:
        if "warp" in i.modifiers:
            self.meet(i, self.read(i.operands[0], _U32))
        elif "red" in i.modifiers or "arrive" in i.modifiers:
            raise self.unsupported(i)
        else:
            self.wait(i, BARRIER)

    op_barrier = op_bar

    def meet(self, i: Instruction, mask: str) -> None:
        """Waits for the lanes of ``mask``."""
        self.line(f"store i32 {mask}, ptr {self.emit(f'getelementptr i8, ptr %frame, i64 {FRAME_MASK}')}")
        self.wait(i, WARP)

    def lane(self) -> str:
        return self.emit("and i32 %flat, 31")

    def word(self, lane: str, number: int) -> str:
        """A pointer to a word of the frame of another lane of this warp."""
        distance = self.emit(f"sub i32 {lane}, {self.lane()}")
        at = self.emit(f"mul i64 {self.emit(f'sext i32 {distance} to i64')}, {FRAME_SIZE}")
        return self.emit(f"getelementptr i8, ptr {self.emit(f'getelementptr i8, ptr %frame, i64 {at}')}, "
                         f"i64 {FRAME_WORDS + 8 * number}")  # fmt: skip

    def offer(self, value: str, kind: str, number: int = 0) -> None:
        """Puts a value where the others can read it."""
        place = self.emit(f"getelementptr i8, ptr %frame, i64 {FRAME_WORDS + 8 * number}")
        self.line(f"store {kind} {value}, ptr {place}")

    def mask_of(self, i: Instruction, operand: Operand | None) -> str:
        """The lanes that take part, those of a block that is smaller than a warp."""
        mask = self.read(operand, _U32) if operand is not None else "-1"
        sizes = [self.special(f"%ntid.{axis}")[0] for axis in "xyz"]
        threads = self.emit(f"mul i32 {self.emit(f'mul i32 {sizes[0]}, {sizes[1]}')}, {sizes[2]}")
        left = self.emit(f"sub i32 {threads}, {self.emit('and i32 %flat, -32')}")
        few = self.emit(f"icmp ult i32 {left}, 32")
        shift = self.emit(f"and i32 {left}, 31")
        present = self.emit(f"sub i32 {self.emit(f'shl i32 1, {shift}')}, 1")
        return self.emit(f"and i32 {mask}, {self.emit(f'select i1 {few}, i32 {present}, i32 -1')}")

    def op_shfl(self, i: Instruction) -> None:
        """Another lane's value; where that lane is out of the segment, one's own."""
        has_flag = len(i.operands) - (1 if "sync" in i.modifiers else 0) == 5
        target, operands = i.operands[0], i.operands[2:] if has_flag else i.operands[1:]
        mode = next(m for m in i.modifiers if m in ("up", "down", "bfly", "idx"))
        own = self.read(operands[0], _U32)
        mask = self.mask_of(i, operands[3] if len(operands) > 3 else None)
        self.offer(own, "i32")
        self.meet(i, mask)
        own = self.read(operands[0], _U32)
        by = self.emit(f"and i32 {self.read(operands[1], _U32)}, 31")
        bounds = self.read(operands[2], _U32)
        lane = self.lane()
        clamp = self.emit(f"and i32 {bounds}, 31")
        segment = self.emit(f"and i32 {self.emit(f'lshr i32 {bounds}, 8')}, 31")
        kept = self.emit(f"and i32 {lane}, {segment}")
        others = self.emit(f"xor i32 {segment}, -1")
        most = self.emit(f"or i32 {kept}, {self.emit(f'and i32 {clamp}, {others}')}")
        if mode == "up":
            source = self.emit(f"sub i32 {lane}, {by}")
            inside = self.emit(f"icmp sge i32 {source}, {most}")
        else:
            if mode == "idx":
                source = self.emit(f"or i32 {kept}, {self.emit(f'and i32 {by}, {others}')}")
            else:
                source = self.emit(f"{'add' if mode == 'down' else 'xor'} i32 {lane}, {by}")
            inside = self.emit(f"icmp sle i32 {source}, {most}")
        source = self.emit(f"select i1 {inside}, i32 {source}, i32 {lane}")
        there = self.emit(f"load i32, ptr {self.word(source, 0)}")
        self.write(target, _U32, there)
        if has_flag:
            self.write(i.operands[1], _PRED, inside)
        self.leave(i, operands[3] if len(operands) > 3 else None)

    def leave(self, i: Instruction, mask: Operand | None) -> None:
        """Waits until the others have read."""
        self.meet(i, self.mask_of(i, mask))

    def op_vote(self, i: Instruction) -> None:
        mode = next(m for m in i.modifiers if m in ("all", "any", "uni", "ballot"))
        given = i.operands[2] if len(i.operands) > 2 else None
        own = self.read(i.operands[1], _PRED)
        self.offer(self.emit(f"zext i1 {own} to i32"), "i32")
        self.meet(i, self.mask_of(i, given))
        mask = self.mask_of(i, given)
        ballot = self.gathered_bits(mask)
        if mode == "ballot":
            self.write(i.operands[0], _U32, ballot)
        else:
            every, none = (self.emit(f"icmp eq i32 {ballot}, {v}") for v in (mask, "0"))
            found = {"all": every, "any": self.emit(f"xor i1 {none}, true"), "uni": self.emit(f"or i1 {every}, {none}")}
            self.write(i.operands[0], _PRED, found[mode])
        self.leave(i, given)

    def gathered_bits(self, mask: str) -> str:
        """One bit from each lane of ``mask``."""
        found = "0"
        for lane in range(32):
            found = self.emit(f"or i32 {found}, {self.offered(mask, lane, '0')[1]}")
        return found

    def offered(self, mask: str, lane: int, missing: str) -> tuple[str, str]:
        """Whether a lane takes part, and its bit at its place."""
        here = self.emit(f"icmp ne i32 {self.emit(f'and i32 {mask}, {1 << lane if lane < 31 else -(1 << 31)}')}, 0")
        safe = self.emit(f"select i1 {here}, i32 {lane}, i32 {self.lane()}")
        bit = self.emit(f"load i32, ptr {self.word(safe, 0)}")
        placed = self.emit(f"shl i32 {bit}, {lane}")
        return here, self.emit(f"select i1 {here}, i32 {placed}, i32 {missing}")

    def op_activemask(self, i: Instruction) -> None:
        self.write(i.operands[0], _U32, self.mask_of(i, None))

    def op_redux(self, i: Instruction) -> None:
        """One number of all lanes."""
        kind = self.kind(i)
        name = next(m for m in i.modifiers if m in ("add", "min", "max", "and", "or", "xor"))
        if kind.is_float:
            raise self.unsupported(i)
        given = i.operands[2]
        self.offer(self.read(i.operands[1], kind), "i32")
        self.meet(i, self.mask_of(i, given))
        mask = self.mask_of(i, given)
        neutral = {"add": 0, "or": 0, "xor": 0, "and": -1}.get(name)
        if neutral is None:
            low, high = (-(1 << 31), (1 << 31) - 1) if kind.signed else (0, -1)
            neutral = high if name == "min" else low
        found = str(neutral)
        for lane in range(32):
            bit = 1 << lane if lane < 31 else -(1 << 31)
            here = self.emit(f"icmp ne i32 {self.emit(f'and i32 {mask}, {bit}')}, 0")
            safe = self.emit(f"select i1 {here}, i32 {lane}, i32 {self.lane()}")
            value = self.emit(f"load i32, ptr {self.word(safe, 0)}")
            value = self.emit(f"select i1 {here}, i32 {value}, i32 {neutral}")
            found = self.combined(name, kind, found, value)
        self.write(i.operands[0], kind, found)
        self.leave(i, given)

    def combined(self, name: str, kind: PTXType, a: str, b: str) -> str:
        if name in ("min", "max"):
            return self.binary(f"llvm.{'s' if kind.signed else 'u'}{name}", kind, a, b)
        return self.emit(f"{name} i32 {a}, {b}")

