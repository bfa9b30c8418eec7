"""Matrix products of a whole wave: WMMA, SWMMAC, MFMA and SMFMAC. Sums are made in one of the orders that are allowed,
on hostile hardware in any.

Elements of A with the same row, and of B with the same column, lie in one lane of each group of lanes. A group has runs
of the inner dimension. A routine for each kind of element brings operands into memory; they are multiplied there, and
the result is brought back.

Sources: AMD, "RDNA3 Instruction Set Architecture", 7.9 "Wave Matrix Multiply Accumulate"; "RDNA4 Instruction Set
Architecture", 7.12; "AMD Instinct CDNA4 Instruction Set Architecture", 7.1.4 "General input and output layout", 7.1.6
"Broadcasting values", 7.5 "Sparse Matrices". How SWMMAC and the deep SMFMAC of 16 bits distribute the inner dimension
is said by the tests "LayoutMatchesHardware" of AMD's sanitizer of floating point, which ran on a MI350 and on RDNA 4.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass

from ....engine import F16, F32, F64, I8, I16, I32, I64, Emitter, FaultKind, Type, Value
from ....engine.handlers import Handler
from ... import broadcast
from ...architecture import Architecture
from ...registers import FLOATS, OF_NUMBERS
from .alu import Lanes, mode
from .conversions import brain
from .microscaling import BLOCK, SMALL, blocks, place, run, scale, tiny
from .numbers import narrowed, widened
from .small import of_byte

_NAME = re.compile(r"v_(s?mfmac?|s?wmmac?)_([a-z]+\d+)_(\d+)x\d+x(\d+)(?:_(\d+)b)?_(.+)")
_WIDTH = 4  # lanes that are fetched at once
_LOST = 0x1FFF  # what of a float32 an xf32 has not


@dataclass(frozen=True, slots=True)
class Product:
    """A product.

    Attributes:
      name: of the instruction, with a suffix for signs.
      size: rows and columns of the result.
      blocks: how many products there are.
      inner: the inner dimension.
      elements: of A and of B: ``f16``, ``i4``, ``fp8``, ``fp8z`` (whose zero has no sign), and so on.
      result: the element of C and D.
      sparse: whether half of A is left out, which an index tells.
      lanes: of a wave.
      held: over how many lanes all of A or B is spread.
      height: how many rows of the result follow one another in a lane.
      runs: of the inner dimension that follow one another in a lane, in A and in B.
      scaled: whether A and B have scales.
    """

    name: str
    size: int
    blocks: int
    inner: int
    elements: tuple[str, str]
    result: str
    sparse: bool
    lanes: int
    held: int
    height: int
    runs: tuple[int, int]
    scaled: bool = False

    @property
    def per_lane(self) -> int:
        """Elements of the inner dimension that a lane has, of B."""
        return self.inner * self.size * self.blocks // self.held

    @property
    def type(self) -> Type:
        """In which it is summed."""
        return {"i32": I32, "f64": F64}.get(self.result, F32)

    def words(self, operand: int) -> int:
        """Registers of A or B."""
        return -(-self.per_lane * _bits(self.elements[operand]) // 32) // (2 if self.sparse and not operand else 1)

    @property
    def result_words(self) -> int:
        """Registers of C or D."""
        items = self.size * self.size * self.blocks // self.lanes
        return 2 * items if self.result == "f64" else items // 2 if self.packs else items

    @property
    def packs(self) -> bool:
        """Whether a register has two elements of the result; on gfx11 it has one."""
        return self.result in ("f16", "bf16") and self.height > 1


def products(arch: Architecture, names: set[str]) -> dict[str, Product]:
    """The products of an architecture that are executed, by handlers' names."""
    found = (made for name in sorted(names) for made in _of(arch, name))
    return {product.name: product for product in found}


def _of(arch: Architecture, name: str) -> list[Product]:
    parsed = _NAME.fullmatch(name.replace("_scale", ""))
    if parsed is None or (arch.generation != 9 and arch.lanes != 32):
        return []
    family, result, size, inner, blocks, kinds = parsed.groups()
    m, k, count = int(size), int(inner), int(blocks or 1)
    sparse = family in ("smfmac", "swmmac")
    held = 16 if arch.generation == 11 else arch.lanes
    height = {9: 1 if result == "f64" else 4, 11: 1, 12: 8}[arch.generation]
    per_lane = k * m * count // held
    if kinds == "f8f6f4":
        return [Product(f"{name}.{a}.{b}", m, count, k, (first, second), result, sparse, arch.lanes, held, height,
                        (run(first), run(second)), "_scale" in name)
                for a, first in enumerate(broadcast.FORMATS) for b, second in enumerate(broadcast.FORMATS)]  # fmt: skip
    runs = per_lane, per_lane
    if sparse and _bits(kinds.partition("_")[0]) == 16:
        if arch.generation == 12:
            runs = 8, 8
        elif per_lane == 16:
            runs = 16, 8
    elif sparse and family == "smfmac" and per_lane == 32:
        return []  # the manual's table of B is not what hardware was seen to do
    bias = "" if arch.generation == 12 or arch.has("GFX950Insts") else "z"
    pair = kinds.split("_") * 2
    elements = [f"{kind}{bias}" if kind in ("fp8", "bf8") else kind for kind in pair[:2]]
    if not kinds.startswith("iu"):
        return [Product(name, m, count, k, (elements[0], elements[1]), result, sparse, arch.lanes, held, height, runs)]
    bits = kinds[2:]
    signs = [("i" if which & 1 else "u", "i" if which & 2 else "u") for which in range(4)]
    return [Product(f"{name}.{which}", m, count, k, (f"{first}{bits}", f"{second}{bits}"), result, sparse,
                    arch.lanes, held, height, runs) for which, (first, second) in enumerate(signs)]  # fmt: skip


def add(to: Lanes) -> None:
    """Adds the handlers of this subject."""
    found = products(to.arch, to.there)
    for sparse in (False, True):
        kinds = {p.elements[n] for p in found.values() for n in (0, 1) if (p.sparse and n == 0) == sparse}
        for kind in sorted(kinds):
            signature = f"i32 @{_routine(kind, sparse)}({_ARGUMENTS})"
            to.to.routine(signature, functools.partial(_fetch, of=kind, sparse=sparse))
    for product in found.values():
        to.to.add(Matrix(product))


def _bits(of: str) -> int:
    """Of an element."""
    return int(re.sub(r"\D", "", of))


def _log(n: int) -> int:
    return n.bit_length() - 1


def _routine(of: str, sparse: bool) -> str:
    return f"matrix.{'sparse.' if sparse else ''}{of}"


_ARGUMENTS = (
    "ptr %w, i32 %offset, ptr %to, i64 %size, i64 %blocks, i64 %inner, i64 %parts, i64 %run, i64 %items, i64 %chunks, "
    "i64 %lanes, i32 %sign, i32 %index, i32 %shift"
)
"""Logarithms of the size, the blocks, the inner dimension, the groups of lanes that share it, and of runs."""


def repeat(e: Emitter, count: Value, body: Callable[[Value], None]) -> None:
    """A loop; the body is given the number of the round."""
    name = e.name().removeprefix("%")
    e.do(f"br label %{name}.before")
    e.label(f"{name}.before")
    e.do(f"br label %{name}")
    e.label(name)
    index = e.emit(I64, f"phi i64 [ 0, %{name}.before ], [ %{name}.next, %{name}.end ]")
    body(index)
    e.do(f"br label %{name}.end")
    e.label(f"{name}.end")
    e.do(f"%{name}.next = add i64 {index.text}, 1")
    e.do(f"%{name}.more = icmp ult i64 %{name}.next, {count.text}")
    e.do(f"br i1 %{name}.more, label %{name}, label %{name}.done")
    e.label(f"{name}.done")


def _low(e: Emitter, bits: Value) -> Value:
    """A mask of so many bits."""
    return (e.value(I64, 1) << bits) - 1


def _fetch(e: Emitter, of: str, sparse: bool) -> None:
    """Brings an operand into memory, the inner dimension outermost in each block; what of it no element can have."""
    size, blocks, inner, parts, run, items, chunks, lanes = (
        Value(e, I64, f"%{name}") for name in ("size", "blocks", "inner", "parts", "run", "items", "chunks", "lanes")
    )
    offset, sign, index, shift = (Value(e, I32, f"%{name}") for name in ("offset", "sign", "index", "shift"))
    width = 0 if sparse else _WIDTH
    words, bits = I32.of(width), _bits(of)
    base = e.convert("zext", offset, I64)
    e.do(f"%odd = alloca {words}, align 16")
    e.store(e.value(words, 0), "%odd")
    nbytes = 8 if of == "f64" else 4
    if sparse:
        whole = e.value(I64, 1) << (size + blocks + inner)
        e.declarations["declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"] = None
        e.do(f"call void @llvm.memset.p0.i64(ptr %to, i8 0, i64 {(whole << 2).text}, i1 false)")

    def chunk(number: Value) -> None:
        lane = number << (0 if sparse else _log(_WIDTH))
        column, group = lane & _low(e, size), lane >> size
        block, part = group & _low(e, blocks), group >> blocks
        source = ((lane + (lanes & 63)) & (lanes >> 6 & 63)) + (lanes >> 12 & 63)
        column_of = e.at("%w", base + (source << 2))
        places = None
        if sparse:
            places = e.load(I32, e.at("%w", e.convert("zext", index, I64) + (lane << 2)), 4) >> shift

        def item(slot: Value) -> None:
            bit = slot * bits
            word = e.load(words, e.at(column_of, (bit >> 5) * e.layout.row_bytes), 4)
            if of == "f64":
                high = e.load(words, e.at(column_of, ((bit >> 5) + 1) * e.layout.row_bytes), 4)
                found = e.bits(e.convert("zext", word, I64) | e.convert("zext", high, I64) << 32, F64)
                found = e.bits(e.bits(found, I64) ^ e.value(I64.of(width), e.convert("zext", sign, I64) << 63), F64)
            else:
                raw = word >> e.value(words, e.convert("trunc", bit & 31, I32))
                if of == "xf32":
                    e.store(e.load(words, "%odd") | raw & _LOST, "%odd")
                if bits == 6:  # a part of which may be in the next register
                    above = e.load(words, e.at(column_of, ((bit >> 5) + 1) * e.layout.row_bytes), 4)
                    raw = e.intrinsic("fshr", above, word, e.value(words, e.convert("trunc", bit & 31, I32)))
                found = element(e, raw, of)
                if found.type.kind == "f":
                    found = e.bits(e.bits(found, I32) ^ e.value(words, sign << 31), F32)
            dense = slot
            if places is not None:
                of_four = places >> e.convert("trunc", slot << 1, I32) & 3
                dense = (slot >> 1 << 2) + e.convert("zext", of_four, I64)
            k = ((dense >> run) << (run + parts)) + (part << run) + (dense & _low(e, run))
            at = (((block << inner) + k) << size) + column
            e.store(found, e.at("%to", at * nbytes), 4)

        repeat(e, items, item)

    repeat(e, chunks, chunk)
    odd = e.load(words, "%odd")
    if width:
        e.declarations[f"declare i32 @llvm.vector.reduce.or.{words.mangled}({words})"] = None
        odd = e.emit(I32, f"call i32 @llvm.vector.reduce.or.{words.mangled}({words} {odd.text})")
    e.do(f"ret i32 {odd.text}")


def element(e: Emitter, raw: Value, of: str) -> Value:
    """An element in the low bits of a register as a float or integer of 32 bits."""
    if of in ("f32", "xf32"):
        return e.bits(raw, F32)
    if of == "bf16":
        return e.bits(raw << 16, F32)
    if of == "f16":
        return e.convert("fpext", e.bits(e.convert("trunc", raw, I16), F16), F32)
    if of in SMALL:
        return tiny(e, raw, of)
    if of[0] in "fb":
        return of_byte(e, e.convert("trunc", raw, I8), of)
    small = Type("i", _bits(of))
    return e.convert("sext" if of[0] == "i" else "zext", e.convert("trunc", raw, small), I32)


def swapped(k: Value, by: Value) -> Value:
    """Which term is taken in place of one: two change places."""
    return k ^ by


def first(e: Emitter, last: Value, addend: Value) -> Value:
    """What a sum begins with: C, or nothing if that comes last."""
    return e.select(last, e.value(addend.type, -0.0), addend)


class _Order:
    """An order of the terms of a sum of floats on hostile hardware, drawn for each instruction.

    The manuals say what is summed, neither in which order nor how often it is rounded. Terms are taken in an order
    that is drawn, in groups of 1, 2, 4 … whose sums are added; a group's sum is rounded with each term or once; C comes
    first of all or last. Products of doubles are rounded with the sum that they are added to.
    """

    def __init__(self, e: Emitter, product: Product) -> None:
        self.e, self.product, kind = e, product, product.type.of(product.size)
        bits, inner = e.drawn(), _log(product.inner)
        self.swapped = bits & product.inner - 1  # terms change places by their numbers' bits
        self.group = e.intrinsic("umin", bits >> 16 & 7, inner)
        self.last = e.compare("ne", bits >> 24 & 1, 0)
        self.rounds = e.compare("ne", bits >> 25 & 1, 0)
        e.do(f"%total = alloca {kind}, align 64")
        e.do(f"%part = alloca {F64.of(product.size)}, align 64")

    def add(self, address: str, factors: Callable[[Value], tuple[Value, Value]]) -> None:
        """Adds the products of a row of A and all columns of B to what is at an address."""
        e, wide = self.e, F64.of(self.product.size)
        kind = self.product.type.of(self.product.size)
        addend = e.load(kind, address, 4)
        e.store(first(e, self.last, addend), "%total")

        def group(number: Value) -> None:
            e.store(e.value(wide, -0.0), "%part")

            def term(k: Value) -> None:
                x, y = factors(swapped((number << self.group) + k, self.swapped))
                found = e.intrinsic("fma", widened(e, x, F64), widened(e, y, F64), e.load(wide, "%part"))
                e.store(e.select(self.rounds, widened(e, narrowed(e, found, kind), F64), found), "%part")

            repeat(e, e.value(I64, 1) << self.group, term)
            found = widened(e, e.load(kind, "%total"), F64) + e.load(wide, "%part")
            e.store(narrowed(e, found, kind), "%total")

        repeat(e, e.value(I64, self.product.inner) >> self.group, group)
        total = e.load(kind, "%total")
        e.store(e.select(self.last, total + addend, total), address, 4)


class Matrix(Handler):
    """A product; operands are the places of D, A, B, and of C or, if it is sparse, of the index; then of scales."""

    def __init__(self, product: Product) -> None:
        super().__init__(product.name)
        self.product = product

    def emit(self, e: Emitter) -> None:
        """Writes loops over rows of the result, of which all columns are a vector."""
        p, layout = self.product, e.layout
        nbytes, rows = p.type.bits // 8, p.blocks * p.size
        for name, count in (("a", rows * p.inner), ("b", rows * p.inner), ("d", rows * p.size)):
            e.do(f"%{name} = alloca [{count * nbytes} x i8], align 64")
        target, a, b, last = (e.slot(i) for i in range(4))
        how = e.immediate()
        for number, operand in enumerate((a, b)):
            e.check(operand, p.words(number))
        c = target if p.sparse else last
        if p.sparse:
            e.check(last, 1)
        in_row = e.compare("sge", c, layout.rows)
        one = e.scalar_address(e.select(in_row, e.value(I32, 0), c))
        e.check(e.select(in_row, c, -1), p.result_words)
        self._allow(e)
        self._addends(e, e.select(in_row, c, layout.rows), in_row, one, how)
        lost = e.value(I32, 0)
        for number, (operand, name) in enumerate(((a, "a"), (b, "b"))):
            lost = lost | self._fetched(e, number, operand, name, how, last)
        for number, name in enumerate("ab") if p.scaled else ():
            lost = lost | self._scale(e, number, name, how)
        fine = e.compare("eq", lost, 0)
        e.do(f"br i1 {fine.text}, label %exact, label %forbidden")
        e.label("exact")
        self._multiply(e)
        self._write(e, target, how)
        e.go_on()

    def _allow(self, e: Emitter) -> None:
        """Refuses other modes of floats, and on RDNA a wave with inactive lanes, which the manuals forbid."""
        p, odd = self.product, e.value(I64, 0)
        if p.type.kind == "f" and p.result != "f64":  # which ignores the mode
            odd = e.convert("zext", (mode(e) & ~OF_NUMBERS) ^ FLOATS, I64)
        if p.lanes == 32:
            odd = odd | (e.exec() ^ 0xFFFFFFFF)
        e.do(f"br i1 {e.compare('ne', odd, 0).text}, label %forbidden, label %allowed")
        e.label("forbidden")
        e.fault(FaultKind.UNDECODABLE)
        e.label("allowed")

    def _place(self, e: Emitter, row: Value) -> tuple[Value, Value]:
        """Where a row of the result lies: the item of each lane, and the first lane."""
        p = self.product
        of_item = -(-p.lanes // (p.size * p.size // p.height))  # blocks
        rows = p.lanes // of_item // p.size
        height, beside, between = _log(p.height), _log(rows), _log(of_item)
        groups = _log(p.size // (p.height * rows))
        i, block = row & p.size - 1, row >> _log(p.size)
        item = (i & p.height - 1) + (((i >> height + beside) + (block >> between << groups)) << height)
        lane = ((i >> height & rows - 1) + ((block & of_item - 1) << beside)) << _log(p.size)
        return item, lane

    def _register(self, e: Emitter, base: Value, row: Value, how: Value) -> tuple[str, Value]:
        """The address of a row of the result in the first of its registers, and how far up in it an element lies."""
        p = self.product
        item, lane = self._place(e, row)
        shift = e.value(I64, 0)
        if p.packs:
            item, shift = item >> 1, (item & 1) << 4
        elif p.result in ("f16", "bf16"):
            shift = (how >> broadcast.HIGH & 1) << 4
        elif p.result == "f64":
            item = item << 1
        place = e.convert("zext", base, I64) + item * e.layout.row_bytes + (lane << 2)
        return e.at("%w", place), e.convert("trunc", shift, I32)

    def _addends(self, e: Emitter, c: Value, in_row: Value, one: str, how: Value) -> None:
        """Brings C into memory; a constant is the same everywhere."""
        p, words = self.product, I32.of(self.product.size)

        def row(number: Value) -> None:
            address, shift = self._register(e, c, number, how)
            found = e.load(words, address, 4)
            literal = e.load(I32, one, 4)
            if p.result == "f64":
                high = e.load(words, e.at(address, e.layout.row_bytes), 4)
                found = e.select(in_row, found, e.value(words, literal))
                high = e.select(in_row, high, e.value(words, e.load(I32, e.at(one, 4), 4)))
                wide = e.convert("zext", found, I64) | e.convert("zext", high, I64) << 32
                wide = wide & ~e.value(wide.type, (how >> broadcast.ABSOLUTE & 1) << 63)
                total = e.bits(wide ^ e.value(wide.type, (how >> broadcast.NEGATE + 2 & 1) << 63), F64)
            else:
                found = found >> e.value(words, shift)
                found = e.select(in_row, found, e.value(words, literal))
                total = element(e, found, p.result) if p.type.kind == "f" else found
                if p.type.kind == "f":
                    signs = e.convert("trunc", how >> broadcast.NEGATE + 2, I32), e.convert(
                        "trunc", how >> broadcast.ABSOLUTE, I32)  # fmt: skip
                    bits = e.bits(total, I32) & ~e.value(words, signs[1] << 31) ^ e.value(words, signs[0] << 31)
                    total = e.bits(bits, F32)
            e.store(total, e.at("%d", number * (p.size * p.type.bits // 8)), 4)

        repeat(e, e.value(I64, p.blocks * p.size), row)

    def _fetched(self, e: Emitter, number: int, operand: Value, name: str, how: Value, index: Value) -> Value:
        """Brings A or B into memory; what of it no element can have."""
        p = self.product
        of, sparse = p.elements[number], p.sparse and number == 0
        lanes = how >> broadcast.LANES * number & (1 << broadcast.LANES) - 1
        sign = e.convert("trunc", how >> broadcast.NEGATE + number & 1, I32)
        shift = e.convert("trunc", how >> broadcast.INDEX & 31, I32)
        parts = p.held // (p.size * p.blocks)
        numbers = (_log(p.size), _log(p.blocks), _log(p.inner), _log(parts), _log(p.runs[number]),
                   p.per_lane // (2 if sparse else 1), p.held // (1 if sparse else _WIDTH))  # fmt: skip
        constants = ", ".join(f"i64 {n}" for n in numbers)
        return e.emit(I32, f"call i32 @{_routine(of, sparse)}(ptr %w, i32 {operand.text}, ptr %{name}, {constants}, "
                           f"i64 {lanes.text}, i32 {sign.text}, i32 {index.text}, i32 {shift.text})")  # fmt: skip

    def _scale(self, e: Emitter, number: int, name: str, how: Value) -> Value:
        """Multiplies A or B by its scales; what of it floats cannot hold."""
        p, operand = self.product, e.slot(4 + number)
        e.check(operand, 1)
        shift = e.convert("trunc", (how >> broadcast.SCALES + 2 * number & 3) << 3, I32)
        e.do(f"%lost{number} = alloca i32, align 4")
        e.store(e.value(I32, 0), f"%lost{number}")

        def block(which: Value) -> None:
            scales = e.load(I32.of(p.size), place(e, operand, which, p.size), 4)

            def term(k: Value) -> None:
                row = e.at(f"%{name}", ((which << _log(BLOCK)) + k) * (4 * p.size))
                lost = e.load(I32, f"%lost{number}") | scale(e, row, scales, shift, p.size)
                e.store(lost, f"%lost{number}")

            repeat(e, e.value(I64, BLOCK), term)

        repeat(e, e.value(I64, blocks(p.inner)), block)
        return e.load(I32, f"%lost{number}")

    def _multiply(self, e: Emitter) -> None:
        p, kind = self.product, self.product.type
        columns, nbytes, size = kind.of(p.size), kind.bits // 8, _log(p.size)
        order = _Order(e, p) if e.hostile and kind.kind == "f" else None

        def row(number: Value) -> None:
            block, i = number >> size, number & p.size - 1
            address = e.at("%d", number * (p.size * nbytes))

            def factors(k: Value) -> tuple[Value, Value]:
                at = ((block << _log(p.inner)) + k) << size
                x = e.value(columns, e.load(kind, e.at("%a", (at + i) * nbytes), nbytes))
                return x, e.load(columns, e.at("%b", at * nbytes), nbytes)

            def step(k: Value) -> None:
                x, y = factors(k)
                total = e.load(columns, address, nbytes)
                total = e.intrinsic("fma", x, y, total) if kind.kind == "f" else total + x * y
                e.store(total, address, nbytes)

            if order is None:
                repeat(e, e.value(I64, p.inner), step)
            else:
                order.add(address, factors)

        repeat(e, e.value(I64, p.blocks * p.size), row)

    def _write(self, e: Emitter, target: Value, how: Value) -> None:
        p, words = self.product, I32.of(self.product.size)

        def row(number: Value) -> None:
            address, shift = self._register(e, target, number, how)
            total = e.load(p.type.of(p.size), e.at("%d", number * (p.size * p.type.bits // 8)), 4)
            if p.result == "f64":
                wide = e.bits(total, I64)
                e.store(e.convert("trunc", wide >> 32, I32), e.at(address, e.layout.row_bytes), 4)
                found = e.convert("trunc", wide, I32)
            elif p.result in ("f16", "bf16"):
                small = brain(e, total) if p.result == "bf16" else e.bits(narrowed(e, total, F16), I16)
                up = e.value(words, shift)
                others = e.load(words, address, 4) & ~(e.value(words, 0xFFFF) << up)
                found = others | e.convert("zext", small, I32) << up
            else:
                found = total if p.result == "i32" else e.bits(total, I32)
            e.store(found, address, 4)

        repeat(e, e.value(I64, p.blocks * p.size), row)
