"""Matrix instructions of a warp: ``mma`` with 16 rows and 8 columns, and ``ldmatrix``."""

from __future__ import annotations

import re

from .addresses import space_of
from .convention import FRAME_WORDS
from .errors import unsupported
from .kinds import PTXType, ptx_type
from .product import ELEMENT_BITS, Product
from .syntax import Address, Instruction, Operand, Vector
from .whole import Whole

_U32, _F32 = ptx_type("u32"), ptx_type("f32")
_SHAPE = re.compile(r"m16n8k(\d+)\Z")



class Tensor:
    """Translates matrix instructions."""

    def __init__(self, whole: Whole) -> None:
        self.whole, self.ir, self.operands = whole, whole.ir, whole.operands
        self.addresses, self.exchange = whole.addresses, whole.exchange

    def op_mma(self, i: Instruction) -> None:
        shape = next((m for m in map(_SHAPE.match, i.modifiers) if m), None)
        into, a, b, source = i.modifiers[-4:]
        if shape is None or a not in ELEMENT_BITS or b not in ELEMENT_BITS or ELEMENT_BITS[a] != ELEMENT_BITS[b]:
            raise unsupported(self.whole.function, i)
        if into != source or "satfinite" in i.modifiers or "sp" in i.modifiers:
            raise unsupported(self.whole.function, i)
        depth = int(shape[1])
        name = f"mma.{depth}.{a}.{b}"
        product = Product(name, a, b, depth, self.ir.declarations)
        if name not in self.whole.helpers:
            self.whole.helpers[name] = product.text()
        target, left, right, addend = i.operands
        for number, item in enumerate((*_items(left), *_items(right))):
            place = self.ir.emit(f"getelementptr i8, ptr %frame, i64 {FRAME_WORDS + 4 * number}")
            self.ir.line(f"store i32 {self.operands.read(item, _U32)}, ptr {place}")
        self.exchange.meet(i, "-1")
        sums = self.sums(addend, product.sum, source)
        passed = ", ".join(f"{product.sum} {value}" for value in sums)
        found = self.ir.emit(f"call [4 x {product.sum}] @{name}(ptr %frame, i32 {self.exchange.lane()}, {passed})")
        results = [self.ir.emit(f"extractvalue [4 x {product.sum}] {found}, {place}") for place in range(4)]
        self.write_sums(target, product.sum, into, results)
        self.exchange.meet(i, "-1")

    def sums(self, operand: Operand, kind: str, name: str) -> list[str]:
        """The four sums so far; in float16 two to a register."""
        items = _items(operand)
        if name != "f16":
            return [self.operands.read(item, _F32 if kind == "float" else _U32) for item in items]
        pairs = [self.operands.read(item, ptx_type("f16x2")) for item in items]
        return [self.ir.emit(f"extractelement <2 x float> {pair}, i32 {lane}") for pair in pairs for lane in range(2)]

    def write_sums(self, operand: Operand, kind: str, name: str, values: list[str]) -> None:
        items = _items(operand)
        if name != "f16":
            into: PTXType = _F32 if kind == "float" else _U32
            for item, value in zip(items, values, strict=True):
                self.operands.write(item, into, value)
            return
        for number, item in enumerate(items):
            pair = "poison"
            for lane in range(2):
                pair = self.ir.emit(f"insertelement <2 x float> {pair}, float {values[2 * number + lane]}, i32 {lane}")
            self.operands.write(item, ptx_type("f16x2"), pair)

    def op_ldmatrix(self, i: Instruction) -> None:
        """Matrices of 8 by 8 halves from shared memory: each lane says where a row begins, and gets two elements."""
        if "m8n8" not in i.modifiers or i.modifiers[-1] != "b16":
            raise unsupported(self.whole.function, i)
        items, source = _items(i.operands[0]), i.operands[1]
        if not isinstance(source, Address):
            raise unsupported(self.whole.function, i)
        space = space_of(i)
        self.exchange.offer(self.ir.emit(f"ptrtoint ptr {self.addresses.memory(source, space)} to i64"), "i64")
        self.exchange.meet(i, "-1")
        lane = self.exchange.lane()
        row, quarter = self.ir.emit(f"lshr i32 {lane}, 2"), self.ir.emit(f"and i32 {lane}, 3")
        words = []
        for number in range(len(items)):
            if "trans" in i.modifiers:
                first = self.ir.emit(f"shl i32 {quarter}, 1")
                halves = [self.row_part(number, first, odd, row, "i16") for odd in range(2)]
                low, high = (self.ir.emit(f"zext i16 {half} to i32") for half in halves)
                words.append(self.ir.emit(f"or i32 {low}, {self.ir.emit(f'shl i32 {high}, 16')}"))
            else:
                words.append(self.row_part(number, row, 0, quarter, "i32"))
        for item, word in zip(items, words, strict=True):
            self.operands.write(item, _U32, word)
        self.exchange.meet(i, "-1")

    def row_part(self, number: int, row: str, add: int, column: str, kind: str) -> str:
        """An element of a row of matrix ``number``, whose beginning a lane offered."""
        lane = self.ir.emit(f"add i32 {row}, {8 * number + add}")
        begin = self.ir.emit(f"load i64, ptr {self.exchange.word(lane, 0)}")
        size = int(kind[1:]) // 8
        at = self.ir.emit(f"mul i64 {self.ir.emit(f'zext i32 {column} to i64')}, {size}")
        place = self.ir.emit(f"inttoptr i64 {self.ir.emit(f'add i64 {begin}, {at}')} to ptr")
        return self.ir.emit(f"load {kind}, ptr {place}, align {size}")


def _items(operand: Operand) -> tuple[Operand, ...]:
    return operand.items if isinstance(operand, Vector) else (operand,)
