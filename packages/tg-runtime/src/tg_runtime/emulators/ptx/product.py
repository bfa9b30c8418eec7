"""The product of a warp's matrices: a function that ``mma`` calls, 16 rows by 8 columns.

A register holds as many elements along the common dimension as fit in it, ``e``. With ``g, q = divmod(lane, 4)``,
register ``r`` of A is in row ``g + 8 (r % 2)`` from ``4 e (r // 2) + e q`` on; register ``r`` of B is in column ``g``
from ``4 e r + e q`` on; C has rows ``g`` and ``g + 8``, columns ``2 q`` and ``2 q + 1``.

Source: *Parallel Thread Execution ISA*, section "Matrix Fragments for mma".
"""

from __future__ import annotations

from .convention import FRAME_SIZE, FRAME_WORDS
from .emitter import Emitter

ELEMENT_BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8}


class Product:
    """A function of a thread's frame, its lane and its four sums that adds what the warp's matrices contribute."""

    def __init__(self, name: str, a: str, b: str, depth: int, declarations: dict[str, None]) -> None:
        self.ir = Emitter(declarations)
        self.name, self.a, self.b, self.depth = name, a, b, depth
        self.sum = "float" if a in ("f16", "bf16", "tf32", "e4m3", "e5m2") else "i32"

    def text(self) -> str:
        each = 32 // ELEMENT_BITS[self.a]
        steps = self.depth // (4 * each)
        sums = [f"%c{i}" for i in range(4)]
        group = self.ir.emit("lshr i32 %lane, 2")
        column = self.ir.emit("shl i32 %lane, 1")
        column = self.ir.emit(f"and i32 {column}, 6")
        for step in range(steps):
            for quarter in range(4):
                rows = [self.elements(self.lane(group, quarter), 2 * step + half, self.a) for half in range(2)]
                columns = []
                for odd in range(2):
                    lane = self.lane(self.ir.emit(f"add i32 {column}, {odd}"), quarter)
                    columns.append(self.elements(lane, 2 * steps + step, self.b))
                for place in range(4):
                    for x, y in zip(rows[place // 2], columns[place % 2], strict=True):
                        sums[place] = self.added(sums[place], x, y)
        kind = f"[4 x {self.sum}]"
        found = "poison"
        for place, value in enumerate(sums):
            found = self.ir.emit(f"insertvalue {kind} {found}, {self.sum} {value}, {place}")
        arguments = ", ".join(f"{self.sum} %c{i}" for i in range(4))
        head = f"define internal {kind} @{self.name}(ptr %frame, i32 %lane, {arguments}) #0 {{"
        return "\n".join([head, *self.ir.body, f"  ret {kind} {found}", "}"]) + "\n"

    def lane(self, group: str, quarter: int) -> str:
        return self.ir.emit(f"or i32 {self.ir.emit(f'shl i32 {group}, 2')}, {quarter}")

    def elements(self, lane: str, register: int, kind: str) -> list[str]:
        """The elements of a register of another lane, as numbers."""
        distance = self.ir.emit(f"sext i32 {self.ir.emit(f'sub i32 {lane}, %lane')} to i64")
        at = self.ir.emit(f"mul i64 {distance}, {FRAME_SIZE}")
        at = self.ir.emit(f"add i64 {at}, {FRAME_WORDS + 4 * register}")
        word = self.ir.emit(f"load i32, ptr {self.ir.emit(f'getelementptr i8, ptr %frame, i64 {at}')}")
        bits = ELEMENT_BITS[kind]
        if bits == 32:  # the lower bits of tf32 do not take part
            return [self.ir.emit(f"bitcast i32 {self.ir.emit(f'and i32 {word}, -8192')} to float")]
        parts = [self.ir.emit(f"lshr i32 {word}, {bits * i}") if i else word for i in range(32 // bits)]
        return [self.number(self.ir.emit(f"trunc i32 {part} to i{bits}"), kind) for part in parts]

    def number(self, part: str, kind: str) -> str:
        if kind == "f16":
            return self.ir.half_to_float(part)
        if kind == "bf16":
            return self.ir.bfloat_to_float(part)
        if kind in ("s8", "u8"):
            return self.ir.emit(f"{'sext' if kind == 's8' else 'zext'} i8 {part} to i32")
        return self.small_float(part, kind)

    def small_float(self, part: str, kind: str) -> str:
        """A float of 8 bits."""
        word = self.ir.emit(f"zext i8 {part} to i16")
        if kind == "e5m2":  # the upper half of a float16
            return self.ir.half_to_float(self.ir.emit(f"shl i16 {word}, 8"))
        sign = self.ir.emit(f"shl i16 {self.ir.emit(f'and i16 {word}, 128')}, 8")
        size = self.ir.emit(f"and i16 {word}, 127")
        half = self.ir.emit(f"or i16 {sign}, {self.ir.emit(f'shl i16 {size}, 7')}")
        number = self.ir.emit(f"fmul float {self.ir.half_to_float(half)}, 256.0")  # the exponents' biases are 15 and 7
        nan = self.ir.emit(f"icmp eq i16 {size}, 127")
        return self.ir.emit(f"select i1 {nan}, float 0x7FF8000000000000, float {number}")

    def added(self, total: str, x: str, y: str) -> str:
        if self.sum == "i32":
            return self.ir.emit(f"add i32 {total}, {self.ir.emit(f'mul i32 {x}, {y}')}")
        return self.ir.call("llvm.fma.f32", "float", ("float", x), ("float", y), ("float", total))
