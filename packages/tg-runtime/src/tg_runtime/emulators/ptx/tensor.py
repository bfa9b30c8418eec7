"""Matrix instructions of a warp: ``mma`` with 16 rows and 8 columns, ``ldmatrix``; and copies that go on meanwhile.

A register holds as many elements along the common dimension as fit in it, ``e``. With ``g, q = divmod(lane, 4)``,
register ``r`` of A is in row ``g + 8 (r % 2)`` from ``4 e (r // 2) + e q`` on; register ``r`` of B is in column ``g``
from ``4 e r + e q`` on; C has rows ``g`` and ``g + 8``, columns ``2 q`` and ``2 q + 1``.

Source: *Parallel Thread Execution ISA*, section "Matrix Fragments for mma".
"""

from __future__ import annotations

import re

from .emitter import Emitter
from .kinds import PTXType, ptx_type
from .syntax import Address, Immediate, Instruction, Operand, Vector
from .transfer import space_of
from .translate import FRAME_WORDS
from .warp import FRAME_SIZE, Warp

_U32, _U64, _F32 = ptx_type("u32"), ptx_type("u64"), ptx_type("f32")
_ELEMENTS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8}
_SHAPE = re.compile(r"m16n8k(\d+)\Z")


class _Product(Emitter):
    """A function of a thread's frame, its lane and its four sums that adds what the warp's matrices contribute."""

    def __init__(self, name: str, a: str, b: str, depth: int, declarations: dict[str, None]) -> None:
        super().__init__(declarations)
        self.name, self.a, self.b, self.depth = name, a, b, depth
        self.sum = "float" if a in ("f16", "bf16", "tf32", "e4m3", "e5m2") else "i32"

    def text(self) -> str:
        each = 32 // _ELEMENTS[self.a]
        steps = self.depth // (4 * each)
        sums = [f"%c{i}" for i in range(4)]
        group = self.emit("lshr i32 %lane, 2")
        column = self.emit("shl i32 %lane, 1")
        column = self.emit(f"and i32 {column}, 6")
        for step in range(steps):
            for quarter in range(4):
                rows = [self.elements(self.lane(group, quarter), 2 * step + half, self.a) for half in range(2)]
                columns = []
                for odd in range(2):
                    lane = self.lane(self.emit(f"add i32 {column}, {odd}"), quarter)
                    columns.append(self.elements(lane, 2 * steps + step, self.b))
                for place in range(4):
                    for x, y in zip(rows[place // 2], columns[place % 2], strict=True):
                        sums[place] = self.added(sums[place], x, y)
        kind = f"[4 x {self.sum}]"
        found = "poison"
        for place, value in enumerate(sums):
            found = self.emit(f"insertvalue {kind} {found}, {self.sum} {value}, {place}")
        arguments = ", ".join(f"{self.sum} %c{i}" for i in range(4))
        head = f"define internal {kind} @{self.name}(ptr %frame, i32 %lane, {arguments}) #0 {{"
        return "\n".join([head, *self.body, f"  ret {kind} {found}", "}"]) + "\n"

    def lane(self, group: str, quarter: int) -> str:
        return self.emit(f"or i32 {self.emit(f'shl i32 {group}, 2')}, {quarter}")

    def elements(self, lane: str, register: int, kind: str) -> list[str]:
        """The elements of a register of another lane, as numbers."""
        distance = self.emit(f"sext i32 {self.emit(f'sub i32 {lane}, %lane')} to i64")
        at = self.emit(f"mul i64 {distance}, {FRAME_SIZE}")
        at = self.emit(f"add i64 {at}, {FRAME_WORDS + 4 * register}")
        word = self.emit(f"load i32, ptr {self.emit(f'getelementptr i8, ptr %frame, i64 {at}')}")
        bits = _ELEMENTS[kind]
        if bits == 32:  # the lower bits of tf32 do not take part
            return [self.emit(f"bitcast i32 {self.emit(f'and i32 {word}, -8192')} to float")]
        parts = [self.emit(f"lshr i32 {word}, {bits * i}") if i else word for i in range(32 // bits)]
        return [self.number(self.emit(f"trunc i32 {part} to i{bits}"), kind) for part in parts]

    def number(self, part: str, kind: str) -> str:
        if kind == "f16":
            return self.half_to_float(part)
        if kind == "bf16":
            return self.bfloat_to_float(part)
        if kind in ("s8", "u8"):
            return self.emit(f"{'sext' if kind == 's8' else 'zext'} i8 {part} to i32")
        return self.small_float(part, kind)

    def small_float(self, part: str, kind: str) -> str:
        """A float of 8 bits."""
        word = self.emit(f"zext i8 {part} to i16")
        if kind == "e5m2":  # the upper half of a float16
            return self.half_to_float(self.emit(f"shl i16 {word}, 8"))
        sign = self.emit(f"shl i16 {self.emit(f'and i16 {word}, 128')}, 8")
        size = self.emit(f"and i16 {word}, 127")
        half = self.emit(f"or i16 {sign}, {self.emit(f'shl i16 {size}, 7')}")
        number = self.emit(f"fmul float {self.half_to_float(half)}, 256.0")  # the exponents' biases are 15 and 7
        nan = self.emit(f"icmp eq i16 {size}, 127")
        return self.emit(f"select i1 {nan}, float 0x7FF8000000000000, float {number}")

    def added(self, total: str, x: str, y: str) -> str:
        if self.sum == "i32":
            return self.emit(f"add i32 {total}, {self.emit(f'mul i32 {x}, {y}')}")
        return self.call("llvm.fma.f32", "float", ("float", x), ("float", y), ("float", total))


class Tensor(Warp):
    """Translation of matrix instructions."""

    def op_mma(self, i: Instruction) -> None:
        shape = next((m for m in map(_SHAPE.match, i.modifiers) if m), None)
        into, a, b, source = i.modifiers[-4:]
        if shape is None or a not in _ELEMENTS or b not in _ELEMENTS or _ELEMENTS[a] != _ELEMENTS[b]:
            raise self.unsupported(i)
        if into != source or "satfinite" in i.modifiers or "sp" in i.modifiers:
            raise self.unsupported(i)
        depth = int(shape[1])
        name = f"mma.{depth}.{a}.{b}"
        product = _Product(name, a, b, depth, self.declarations)
        if name not in self.helpers:
            self.helpers[name] = product.text()
        target, left, right, addend = i.operands
        for number, item in enumerate((*_items(left), *_items(right))):
            place = self.emit(f"getelementptr i8, ptr %frame, i64 {FRAME_WORDS + 4 * number}")
            self.line(f"store i32 {self.read(item, _U32)}, ptr {place}")
        self.meet(i, "-1")
        sums = self.sums(addend, product.sum, source)
        passed = ", ".join(f"{product.sum} {value}" for value in sums)
        found = self.emit(f"call [4 x {product.sum}] @{name}(ptr %frame, i32 {self.lane()}, {passed})")
        results = [self.emit(f"extractvalue [4 x {product.sum}] {found}, {place}") for place in range(4)]
        self.write_sums(target, product.sum, into, results)
        self.meet(i, "-1")

    def sums(self, operand: Operand, kind: str, name: str) -> list[str]:
        """The four sums so far; in float16 two to a register."""
        items = _items(operand)
        if name != "f16":
            return [self.read(item, _F32 if kind == "float" else _U32) for item in items]
        pairs = [self.read(item, ptx_type("f16x2")) for item in items]
        return [self.emit(f"extractelement <2 x float> {pair}, i32 {lane}") for pair in pairs for lane in range(2)]

    def write_sums(self, operand: Operand, kind: str, name: str, values: list[str]) -> None:
        items = _items(operand)
        if name != "f16":
            into: PTXType = _F32 if kind == "float" else _U32
            for item, value in zip(items, values, strict=True):
                self.write(item, into, value)
            return
        for number, item in enumerate(items):
            pair = "poison"
            for lane in range(2):
                pair = self.emit(f"insertelement <2 x float> {pair}, float {values[2 * number + lane]}, i32 {lane}")
            self.write(item, ptx_type("f16x2"), pair)

    def op_ldmatrix(self, i: Instruction) -> None:
        """Matrices of 8 by 8 halves from shared memory: each lane says where a row begins, and gets two elements."""
        if "m8n8" not in i.modifiers or i.modifiers[-1] != "b16":
            raise self.unsupported(i)
        items, source = _items(i.operands[0]), i.operands[1]
        if not isinstance(source, Address):
            raise self.unsupported(i)
        space = space_of(i)
        self.offer(self.emit(f"ptrtoint ptr {self.memory(source, space)} to i64"), "i64")
        self.meet(i, "-1")
        lane = self.lane()
        row, quarter = self.emit(f"lshr i32 {lane}, 2"), self.emit(f"and i32 {lane}, 3")
        words = []
        for number in range(len(items)):
            if "trans" in i.modifiers:
                first = self.emit(f"shl i32 {quarter}, 1")
                halves = [self.row_part(number, first, odd, row, "i16") for odd in range(2)]
                low, high = (self.emit(f"zext i16 {half} to i32") for half in halves)
                words.append(self.emit(f"or i32 {low}, {self.emit(f'shl i32 {high}, 16')}"))
            else:
                words.append(self.row_part(number, row, 0, quarter, "i32"))
        for item, word in zip(items, words, strict=True):
            self.write(item, _U32, word)
        self.meet(i, "-1")

    def row_part(self, number: int, row: str, add: int, column: str, kind: str) -> str:
        """An element of a row of matrix ``number``, whose beginning a lane offered."""
        lane = self.emit(f"add i32 {row}, {8 * number + add}")
        begin = self.emit(f"load i64, ptr {self.word(lane, 0)}")
        size = int(kind[1:]) // 8
        at = self.emit(f"mul i64 {self.emit(f'zext i32 {column} to i64')}, {size}")
        place = self.emit(f"inttoptr i64 {self.emit(f'add i64 {begin}, {at}')} to ptr")
        return self.emit(f"load {kind}, ptr {place}, align {size}")

    def op_cp(self, i: Instruction) -> None:
        """Copies that the device makes beside the threads are made at once."""
        if i.modifiers[0] != "async" or "bulk" in i.modifiers or "mbarrier" in i.modifiers:
            raise self.unsupported(i)
        if i.modifiers[1] in ("commit_group", "wait_group", "wait_all"):
            return
        target, source, size = i.operands[:3]
        if not isinstance(size, Immediate):
            raise self.unsupported(i)
        self.check_alignment(i, target, size.value, "shared")
        self.check_alignment(i, source, size.value, "global")
        into, of = self.place(i, target, 0, "shared"), self.place(i, source, 0, "global")
        whole = str(size.value)
        given = whole if len(i.operands) < 4 else self.read(i.operands[3], _U64)
        # What is not read is zero.
        self.call("llvm.memset.p0.i64", "void", ("ptr", into), ("i8", "0"), ("i64", whole), ("i1", "false"))
        self.call("llvm.memcpy.p0.p0.i64", "void", ("ptr", into), ("ptr", of), ("i64", given), ("i1", "false"))


def _items(operand: Operand) -> tuple[Operand, ...]:
    return operand.items if isinstance(operand, Vector) else (operand,)
