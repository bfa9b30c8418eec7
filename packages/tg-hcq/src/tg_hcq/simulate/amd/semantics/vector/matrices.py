"""Matrix products of a whole wave: WMMA and MFMA. Sums are made in one of the orders that are allowed.

Layouts: elements of A with the same row, and of B with the same column, lie in one lane of each group of lanes; a group
has a run of the inner dimension. Where C and D lie is said by each family.

Sources: AMD, "RDNA3 Instruction Set Architecture", 7.9 "Wave Matrix Multiply Accumulate"; "RDNA4 Instruction Set
Architecture", 7.12; "AMD Instinct MI300 Instruction Set Architecture", 7.1 "Matrix fused-multiply-add".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ....engine import F16, F32, I8, I16, I32, I64, Emitter, FaultKind, Type, Value
from ....engine.handlers import Handler
from ...registers import FLOATS
from .alu import Lanes, mode

Place = Callable[[Emitter, Value], tuple[Value, Value]]


@dataclass(frozen=True, slots=True)
class Product:
    """A product.

    Attributes:
      name: of the instruction, with a suffix for signs.
      size: rows and columns of the result.
      inner: the inner dimension.
      run: of the inner dimension in one group of lanes.
      element: ``f16``, ``bf16``, ``f32``, ``i8``, ``u8``, ``fp8`` or ``bf8`` of A and of B.
      result: a row's register and group of lanes.
    """

    name: str
    size: int
    inner: int
    run: int
    element: tuple[str, str]
    result: Place

    @property
    def bits(self) -> int:
        """Of an element of A and B."""
        return int(self.element[0].lstrip("bfipu"))

    @property
    def integers(self) -> bool:
        """Whether they are whole numbers."""
        return self.element[0] in ("i8", "u8")


def add(to: Lanes) -> None:
    """Adds the handlers of this subject."""
    products = _cdna() if to.arch.generation == 9 else _rdna(to.arch.generation)
    if to.arch.generation == 12 or to.arch.has("GFX950Insts"):  # before, 8 bits have another bias and no infinity
        shape, run, place = ("wmma_f32_16x16x16", 8, _by_eight) if to.arch.generation == 12 else (
            "mfma_f32_16x16x32", 8, _by_four)  # fmt: skip
        inner = int(shape.rpartition("x")[2])
        products += [Product(f"v_{shape}_{x}_{y}", 16, inner, run, (x, y), place)
                     for x in ("fp8", "bf8") for y in ("fp8", "bf8")]  # fmt: skip
    for product in products:
        if product.name.partition(".")[0] in to.there and (to.arch.generation == 9 or to.arch.lanes == 32):
            to.to.add(Matrix(product))


def _rdna(generation: int) -> list[Product]:
    if generation == 11:  # both halves of the wave hold all of A and B
        run, place = 16, _by_parity
    else:
        run, place = 8, _by_eight
    found = [Product(f"v_wmma_f32_16x16x16_{of}", 16, 16, run, (of, of), place) for of in ("f16", "bf16")]
    for signs in range(4):
        kinds = "i8" if signs & 1 else "u8", "i8" if signs & 2 else "u8"
        found.append(Product(f"v_wmma_i32_16x16x16_iu8.{signs}", 16, 16, run, kinds, place))
    return found


def _cdna() -> list[Product]:
    found = []
    for size, place in ((16, _by_four), (32, _by_eights)):
        groups = 64 // size
        for of, bits, least in (("f32", 32, 1), ("f16", 16, 4), ("bf16", 16, 4), ("i8", 8, 8)):
            for run in (least, 2 * least):
                inner = groups * run
                result = "i32" if of == "i8" else "f32"
                if bits == 32 and run != least:
                    continue
                name = f"v_mfma_{result}_{size}x{size}x{inner}_{of}"
                found.append(Product(name, size, inner, run, (of, of), place))
    return found


def _by_parity(e: Emitter, row: Value) -> tuple[Value, Value]:
    return row >> 1, row & 1


def _by_eight(e: Emitter, row: Value) -> tuple[Value, Value]:
    return row & 7, row >> 3


def _by_four(e: Emitter, row: Value) -> tuple[Value, Value]:
    return row & 3, row >> 2


def _by_eights(e: Emitter, row: Value) -> tuple[Value, Value]:
    return (row >> 3 << 2) + (row & 3), row >> 2 & 1


class Matrix(Handler):
    """A product; operands are the places of D, A, B and C."""

    def __init__(self, product: Product) -> None:
        super().__init__(product.name)
        self.product = product

    def emit(self, e: Emitter) -> None:
        """Writes a loop over rows of the result, in which the inner dimension is unrolled and columns are a vector."""
        p, layout = self.product, e.layout
        kind = I32 if p.integers else F32
        columns = kind.of(p.size)
        words = p.size * p.size // layout.lanes
        parts = 32 // p.bits
        target, a, b, c = (e.slot(i) for i in range(4))
        for operand in (a, b):
            e.check(operand, -(-p.run // parts))
        in_row = e.compare("sge", c, layout.rows)
        one = e.load(I32, e.scalar_address(e.select(in_row, e.value(I32, 0), c)), 4)
        e.check(e.select(in_row, c, -1), words)
        self._allow(e)
        place = e.select(in_row, c, layout.rows)
        e.do(f"%kept = alloca [{p.size * p.size} x i32], align 64")
        e.do("br label %before")
        e.label("before")
        e.do("br label %row")
        e.label("row")
        row = e.emit(I64, "phi i64 [ 0, %before ], [ %next, %row ]")
        register, group = p.result(e, row)
        within = register * layout.row_bytes + group * (4 * p.size)
        start = e.load(I32.of(p.size), e.at("%w", e.convert("zext", place, I64) + within), 4)
        total = e.select(in_row, start, e.value(I32.of(p.size), one))
        total = total if p.integers else e.bits(total, columns)
        for inner in range(p.inner):
            group_at, element = divmod(inner, p.run)
            index, part = divmod(element, parts)
            offset = index * layout.row_bytes + 4 * p.size * group_at
            x = e.load(I32, e.at("%w", e.convert("zext", a, I64) + (row << 2) + offset), 4)
            y = e.load(I32.of(p.size), e.at("%w", e.convert("zext", b, I64) + offset), 4)
            left = e.value(columns, _element(e, x, p.element[0], part))
            right = _element(e, y, p.element[1], part)
            total = total + left * right if p.integers else e.intrinsic("fma", left, right, total)
        e.store(total, e.at("%kept", row * (4 * p.size)), 4)
        e.do(f"%next = add i64 {row.text}, 1")
        e.do(f"%more = icmp ult i64 %next, {p.size}")
        e.do("br i1 %more, label %row, label %write")
        e.label("write")
        for number in range(p.size):
            register, group = p.result(e, e.value(I64, number))
            within = register * layout.row_bytes + group * (4 * p.size)
            found = e.load(I32.of(p.size), e.at("%kept", 4 * p.size * number), 4)
            e.store(found, e.at("%w", e.convert("zext", target, I64) + within), 4)
        e.go_on()

    def _allow(self, e: Emitter) -> None:
        """Refuses other modes of floats, and on RDNA a wave with inactive lanes, which the manuals forbid."""
        odd = e.value(I64, 0)
        if not self.product.integers:
            odd = e.convert("zext", (mode(e) & 0xFF) ^ FLOATS, I64)
        if self.name.startswith("v_wmma_"):
            odd = odd | (e.exec() ^ 0xFFFFFFFF)
        e.do(f"br i1 {e.compare('ne', odd, 0).text}, label %forbidden, label %allowed")
        e.label("forbidden")
        e.fault(FaultKind.UNDECODABLE)
        e.label("allowed")


def _element(e: Emitter, word: Value, of: str, part: int) -> Value:
    """An element of a register as a float or integer of 32 bits."""
    if of == "f32":
        return e.bits(word, F32)
    if of == "bf16":
        return e.bits(word & -(1 << 16) if part else word << 16, F32)
    small: Type = I8 if of.endswith("8") else I16
    narrow = e.convert("trunc", word >> small.bits * part, small)
    if of in ("fp8", "bf8"):
        return _of_eight(e, e.convert("zext", narrow, I16), of == "fp8")
    if of == "f16":
        return e.convert("fpext", e.bits(narrow, F16), F32)
    return e.convert("sext" if of == "i8" else "zext", narrow, I32)


def _of_eight(e: Emitter, byte: Value, of_four: bool) -> Value:
    """A float of 8 bits, with an exponent of 4 or 5, by the half that has its bits; OCP, "8-bit Floating Point"."""
    if not of_four:
        return e.convert("fpext", e.bits(byte << 8, F16), F32)
    size = byte & 0x7F
    half = e.bits(size << 7 | (byte & 0x80) << 8, F16)
    number = e.convert("fpext", half, F32) * 256.0  # the bias is 7 instead of 15
    nan = e.bits(e.value(I32.of(number.type.lanes), 0x7FC00000), number.type)
    return e.select(e.compare("eq", size, 0x7F), nan, number)
