"""What the threads of a warp show one another.

A thread that exchanges something writes it to the words of its frame and waits for its warp; then each reads what it
wants from the frames of the others, and they wait once more, so that nobody writes before all have read.
"""

from __future__ import annotations

from .convention import FRAME_MASK, FRAME_SIZE, FRAME_WORDS, WARP
from .emitter import Emitter
from .kinds import ptx_type
from .operands import Operands
from .special import Special
from .syntax import Instruction, Operand
from .waits import Waits

_U32 = ptx_type("u32")


class Exchange:
    """Words that threads offer, and meetings of a warp."""

    def __init__(self, ir: Emitter, operands: Operands, special: Special, waits: Waits) -> None:
        self.ir, self.operands, self.special, self.waits = ir, operands, special, waits

    def meet(self, i: Instruction, mask: str) -> None:
        """Waits for the lanes of ``mask``."""
        self.ir.line(f"store i32 {mask}, ptr {self.ir.emit(f'getelementptr i8, ptr %frame, i64 {FRAME_MASK}')}")
        self.waits.wait(i, WARP)

    def lane(self) -> str:
        return self.ir.emit("and i32 %flat, 31")

    def word(self, lane: str, number: int) -> str:
        """A pointer to a word of the frame of another lane of this warp."""
        distance = self.ir.emit(f"sub i32 {lane}, {self.lane()}")
        at = self.ir.emit(f"mul i64 {self.ir.emit(f'sext i32 {distance} to i64')}, {FRAME_SIZE}")
        return self.ir.emit(f"getelementptr i8, ptr {self.ir.emit(f'getelementptr i8, ptr %frame, i64 {at}')}, "
                         f"i64 {FRAME_WORDS + 8 * number}")  # fmt: skip

    def offer(self, value: str, kind: str, number: int = 0) -> None:
        """Puts a value where the others can read it."""
        place = self.ir.emit(f"getelementptr i8, ptr %frame, i64 {FRAME_WORDS + 8 * number}")
        self.ir.line(f"store {kind} {value}, ptr {place}")

    def mask_of(self, i: Instruction, operand: Operand | None) -> str:
        """The lanes that take part, those of a block that is smaller than a warp."""
        mask = self.operands.read(operand, _U32) if operand is not None else "-1"
        sizes = [self.special.read(f"%ntid.{axis}")[0] for axis in "xyz"]
        threads = self.ir.emit(f"mul i32 {self.ir.emit(f'mul i32 {sizes[0]}, {sizes[1]}')}, {sizes[2]}")
        left = self.ir.emit(f"sub i32 {threads}, {self.ir.emit('and i32 %flat, -32')}")
        few = self.ir.emit(f"icmp ult i32 {left}, 32")
        shift = self.ir.emit(f"and i32 {left}, 31")
        present = self.ir.emit(f"sub i32 {self.ir.emit(f'shl i32 1, {shift}')}, 1")
        return self.ir.emit(f"and i32 {mask}, {self.ir.emit(f'select i1 {few}, i32 {present}, i32 -1')}")

    def leave(self, i: Instruction, mask: Operand | None) -> None:
        """Waits until the others have read."""
        self.meet(i, self.mask_of(i, mask))
