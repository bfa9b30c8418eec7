"""Loads and stores as PTX instructions."""

from __future__ import annotations

from collections.abc import Sequence

from tg_dtype import AddrSpace, DType, PtrDType, dtypes
from tg_lazy import Ops

from ...ir.facts import KernelFacts, element, pointer_base
from ...ir.uop import UOp, UOps
from ...machine.gpu import ACCESS_BYTES
from .conversion import PTXConversion
from .text import PTXText, bits_suffix, memory_suffix, register_class
from .values import PTXValues

SPACES = {AddrSpace.GLOBAL: "global", AddrSpace.LOCAL: "shared", AddrSpace.REG: "local"}


class PTXAccess:
    """What one kernel does with memory.

    Args:
      text: what has been written of it.
      values: what stands for its nodes.
      conversion: its casts.
      facts: what is known of it.
    """

    def __init__(self, text: PTXText, values: PTXValues, conversion: PTXConversion, facts: KernelFacts) -> None:
        self._text, self._values, self._conversion, self._facts = text, values, conversion, facts

    def _address(self, pointer: UOp, index: UOp) -> tuple[str, int]:
        """A register, and the bytes to add to it."""
        base, size, offset = pointer_base(pointer), max(element(pointer).itemsize, 1), 0
        while index.op in (Ops.ADD, Ops.SUB) and index.src[1].is_const and index in self._facts.address:
            offset += int(index.src[1].arg) * (1 if index.op is Ops.ADD else -1)
            index = index.src[0]
        if index.is_const:
            offset += int(index.arg)
            if abs(offset * size) < 1 << 31:
                return self._values.one(base), offset * size
            return self._text.emit("add.s64", "rd", self._values.one(base), str(offset * size)), 0
        if abs(offset * size) >= 1 << 31:
            raise ValueError(f"PTX: an index with the constant {offset} is out of reach")
        key = (base, index)
        return self._values.known(
            key, lambda: self._scaled(self._values.one(base), self._values.one(index), index.dtype, size),
            keep=lambda text: index.op is not UOps.ACC,
        ), offset * size  # fmt: skip

    def _scaled(self, base: str, index: str, dtype: DType, size: int) -> str:
        if not base.startswith("%rd"):
            index = self._conversion.cast(index, dtype, dtypes.int32)
            return self._text.emit("mad.lo.s32", "r", index, str(size), base)
        if dtype.bits == 64:
            return self._text.emit("mad.lo.s64", "rd", index, str(size), base)
        return self._text.emit("mad.wide.s32", "rd", index, str(size), base)

    def _pieces(self, pointer: UOp, index: UOp, count: int) -> list[tuple[int, int]]:
        """(first lane, lanes) of each instruction that an access of ``count`` elements takes."""
        known = self._facts.divisors[index]
        dtype = element(pointer)
        most = min(ACCESS_BYTES // max(dtype.itemsize, 1), 4)
        if dtypes.is_float(dtype) and dtype.itemsize == 2:
            most = 8
        found, lane = [], 0
        while lane < count:
            width = most
            while width > 1 and (width > count - lane or known % width or lane % width):
                width //= 2
            found.append((lane, width))
            lane += width
        return found

    def load(self, u: UOp) -> list[str]:
        """The lanes that a LOAD reads."""
        pointer, index = u.src[:2]
        dtype, count = element(pointer), u.dtype.count
        gates = self._values.value(u.src[2]) if len(u.src) > 2 else []
        others = self._values.value(u.src[3]) if len(u.src) > 3 else [self._values.zero(dtype)]
        others = others * (count // len(others))
        register, offset = self._address(pointer, index)
        space, size = _space(pointer), max(dtype.itemsize, 1)
        kind = "r" if dtypes.is_bool(dtype) else register_class(dtype)
        pieces = self._pieces(pointer, index, count) if len(gates) < 2 else [(lane, 1) for lane in range(count)]
        lanes: list[str] = []
        for first, width in pieces:
            paired = width == 8
            into = [self._text.register("r" if paired else kind) for _ in range(4 if paired else width)]
            guard = ""
            if gates:
                given = others[first : first + width]
                for target, other in zip(into, self._paired(given) if paired else given, strict=True):
                    self._fill(target, other, dtypes.uint32 if paired else dtype)
                guard = f"@{gates[first if len(gates) > 1 else 0]} "
            name = f"ld.{space}{self._cached(pointer)}{_vector_suffix(width, dtype)}"
            place = _place(register, offset + first * size)
            self._text.line(f"{guard}{name} {_braced(into)}, {place}")
            lanes += self._parted(into) if paired else into
        return [self._text.emit("setp.ne.s32", "p", lane, "0") for lane in lanes] if dtypes.is_bool(dtype) else lanes

    def store(self, u: UOp) -> None:
        """Writes the lines of a STORE."""
        pointer, index, value = u.src[:3]
        dtype, count = element(pointer), value.dtype.count
        gates = self._values.value(u.src[3]) if len(u.src) > 3 else []
        lanes = [self._text.in_register(lane, dtype) for lane in self._values.value(value)]
        if dtypes.is_bool(dtype):
            lanes = [self._text.emit("selp.b32", "r", "1", "0", lane) for lane in lanes]
        register, offset = self._address(pointer, index)
        size = max(dtype.itemsize, 1)
        pieces = self._pieces(pointer, index, count) if len(gates) < 2 else [(lane, 1) for lane in range(count)]
        for first, width in pieces:
            guard = f"@{gates[first if len(gates) > 1 else 0]} " if gates else ""
            given = lanes[first : first + width]
            place = _place(register, offset + first * size)
            source = _braced(self._paired(given) if width == 8 else given)
            self._text.line(f"{guard}st.{_space(pointer)}{_vector_suffix(width, dtype)} {place}, {source}")

    def _paired(self, halves: Sequence[str]) -> list[str]:
        """Each two registers of 16 bits as a word."""
        pairs = zip(halves[::2], halves[1::2], strict=True)
        return [self._text.emit("mov.b32", "r", f"{{{low}, {high}}}") for low, high in pairs]

    def _parted(self, words: Sequence[str]) -> list[str]:
        """Words as two registers of 16 bits each."""
        halves = []
        for word in words:
            low, high = self._text.register("h"), self._text.register("h")
            self._text.line(f"mov.b32 {{{low}, {high}}}, {word}")
            halves += [low, high]
        return halves

    def _fill(self, register: str, value: str, dtype: DType) -> None:
        if dtypes.is_bool(dtype):
            self._text.line(f"selp.b32 {register}, 1, 0, {value}")
        else:
            self._text.line(f"mov.{bits_suffix(dtype)} {register}, {value}")

    def _cached(self, pointer: UOp) -> str:
        base = pointer_base(pointer)
        return ".nc" if base.op is UOps.PARAM and base.arg not in self._facts.stored else ""


def _vector_suffix(width: int, dtype: DType) -> str:
    """The end of an access to ``width`` elements; eight are four words."""
    if width == 8:
        return ".v4.b32"
    return f"{f'.v{width}' if width > 1 else ''}.{memory_suffix(dtype)}"


def _braced(registers: Sequence[str]) -> str:
    return registers[0] if len(registers) == 1 else f"{{{', '.join(registers)}}}"


def _space(pointer: UOp) -> str:
    base = pointer_base(pointer).dtype
    assert isinstance(base, PtrDType)
    return SPACES[base.space]


def _place(register: str, offset: int) -> str:
    return f"[{register}+{offset}]" if offset else f"[{register}]"
