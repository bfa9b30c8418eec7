"""Loads and stores as LLVM instructions: plain, masked, past the caches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tg_dtype import ConstType, DType, dtypes

from ...ir.facts import KernelFacts, element
from ...ir.scalar import constant_lanes
from ...ir.uop import UOp
from ...machine.memory import STREAM_ALIGNMENT
from .text import LLVMText, llvm_literal, llvm_type, overload, scalar_type


class LLVMAccess:
    """What one function does with memory.

    Args:
      text: what has been written of it.
      facts: what is known of the kernel's values.

    Attributes:
      entry: lines of the function's entry.
      aligned: for each buffer that is stored to past the caches, the name of whether it is aligned.
    """

    def __init__(self, text: LLVMText, facts: KernelFacts) -> None:
        self.entry: list[str] = []
        self.aligned: dict[str, str] = {}
        self._text, self._facts = text, facts
        self._once = ""
        self._gates: dict[UOp, tuple[ConstType, ...] | None] = {}  # the lanes of those that are constants

    def address(self, pointer: UOp, index: UOp, inbounds: bool = True) -> str:
        """The address of an element."""
        kind = scalar_type(element(pointer), memory=True)
        flag = " inbounds" if inbounds else ""
        base = f"{self._text.pointer(pointer)} {self._text.values[pointer]}"
        return self._text.emit(f"getelementptr{flag} {kind}, {base}, {self._text.typed(index)}", "p")

    def _lanes(self, u: UOp, dtype: DType) -> str:
        """The operand ``u`` spread over as many lanes as ``dtype`` has."""
        wide = u.dtype.scalar().vec(dtype.count)
        if u.dtype.count == dtype.count:
            return self._text.value(u)
        return llvm_literal(u.arg, wide) if u.is_const else self._text.splat(self._text.value(u), wide)

    def _plain_load(self, u: UOp, inbounds: bool = True) -> str:
        kind, align = llvm_type(u.dtype, memory=True), element(u.src[0]).itemsize
        place = self.address(u.src[0], u.src[1], inbounds)
        return self._text.emit(f"load {kind}, {self._text.pointer(u.src[0])} {place}, align {align}", "val")

    def load(self, u: UOp) -> str:
        """What a LOAD reads."""
        if len(u.src) < 3:
            return self._text.from_memory(self._plain_load(u), u.dtype)
        gate, dtype, kind = u.src[2], u.dtype, llvm_type(u.dtype, memory=True)
        zero = "0" if kind.startswith("i") else "zeroinitializer"
        other = self._text.to_memory(self._lanes(u.src[3], dtype), dtype) if len(u.src) > 3 else zero
        if gate.dtype.count > 1:
            pointer = self.address(u.src[0], u.src[1], inbounds=False)
            value = self._text.call(
                f"llvm.masked.load.{overload(dtype, memory=True)}.p{self._text.spaces.number(u.src[0])}", kind,
                (self._text.pointer(u.src[0]), pointer), ("i32", str(element(u.src[0]).itemsize)),
                (llvm_type(gate.dtype), self._text.value(gate)), (kind, other),
            )  # fmt: skip
            return self._text.from_memory(value, dtype)
        before, label = self._text.block, self._text.fresh("load")
        self._text.line(f"br i1 {self._text.value(gate)}, label %{label}, label %{label}.end")
        self._text.open_block(label)
        value = self._plain_load(u)
        self._text.line(f"br label %{label}.end")
        self._text.open_block(f"{label}.end")
        value = self._text.emit(f"phi {kind} [ {value}, %{label} ], [ {other}, %{before} ]")
        return self._text.from_memory(value, dtype)

    def store(self, u: UOp) -> None:
        """Writes the lines of a STORE."""
        pointer, index, value = u.src[:3]
        dtype, align = value.dtype, element(pointer).itemsize
        kind, text = llvm_type(dtype, memory=True), self._text.to_memory(self._text.value(value), dtype)
        where = self._text.pointer(pointer)
        if len(u.src) < 4:
            place = self.address(pointer, index)
            if self._facts.streamed(u):
                self._stream(f"store {kind} {text}, {where} {place}", pointer, dtype.itemsize, align)
            else:
                self._text.line(f"store {kind} {text}, {where} {place}, align {align}")
            return
        gate = u.src[3]
        if gate not in self._gates:
            self._gates[gate] = constant_lanes(gate)
        known = self._gates[gate]
        if known is not None:
            wanted = known * (dtype.count // len(known))
            self._store_lanes(wanted, text, where, self.address(pointer, index, inbounds=False), dtype, align)
            return
        if gate.dtype.count > 1:
            self._text.call(
                f"llvm.masked.store.{overload(dtype, memory=True)}.p{self._text.spaces.number(pointer)}", "void",
                (kind, text), (where, self.address(pointer, index, inbounds=False)), ("i32", str(align)),
                (llvm_type(gate.dtype), self._text.value(gate)),
            )  # fmt: skip
            return
        label = self._text.fresh("store")
        self._text.line(f"br i1 {self._text.value(gate)}, label %{label}, label %{label}.end")
        self._text.open_block(label)
        self._text.line(f"store {kind} {text}, {where} {self.address(pointer, index)}, align {align}")
        self._text.line(f"br label %{label}.end")
        self._text.open_block(f"{label}.end")

    def _store_lanes(
        self, wanted: Sequence[ConstType], value: str, where: str, place: str, dtype: DType, align: int
    ) -> None:
        """Stores the lanes that are wanted, known now, in pieces of 2**n lanes.

        ``llvm.masked.store`` is for masks that the kernel computes: LLVM 22 stores a narrowed vector (``trunc``,
        ``fptrunc``) whole lanes of the wider type where its mask is a constant with one lane, past what is wanted.
        A lane that is an integer is frozen: LLVM 22 may find only once it has made all types legal that a lane is a
        vector's sum, and ends the process if the terms are less than 256 (``combineArithReduction`` makes bytes).
        """
        lane = scalar_type(dtype.scalar(), memory=True)
        for first, count in _pieces(wanted):
            if count == 1:
                kind, piece = lane, self._text.emit(f"extractelement <{dtype.count} x {lane}> {value}, i32 {first}")
                if not dtypes.is_float(dtype):
                    piece = self._text.emit(f"freeze {lane} {piece}")
            else:
                kind, whole = f"<{count} x {lane}>", f"<{dtype.count} x {lane}>"
                mask = ", ".join(f"i32 {first + i}" for i in range(count))
                piece = self._text.emit(f"shufflevector {whole} {value}, {whole} poison, <{count} x i32> <{mask}>")
            at = place
            if first:
                at = self._text.emit(f"getelementptr inbounds {lane}, {where} {place}, i64 {first}", "p")
            self._text.line(f"store {kind} {piece}, {where} {at}, align {align}")

    def _stream(self, text: str, pointer: UOp, nbytes: int, align: int) -> None:
        """A store past the caches if the buffer is aligned to whole lines, which is known when the kernel runs."""
        buffer = self._text.values[pointer]
        aligned = self.aligned.get(buffer)
        if aligned is None:
            aligned = self.aligned[buffer] = f"{buffer}.aligned"
            self.entry += [
                f"{buffer}.word = ptrtoint {self._text.pointer(pointer)} {buffer} to i64",
                f"{buffer}.past = and i64 {buffer}.word, {STREAM_ALIGNMENT - 1}",
                f"{aligned} = icmp eq i64 {buffer}.past, 0",
            ]
        if not self._once:
            self._once = f"!{self._text.fresh_metadata('!{i32 1}')}"
        label = self._text.fresh("stream")
        self._text.line(f"br i1 {aligned}, label %{label}, label %{label}.cached")
        self._text.open_block(label)
        self._text.line(f"{text}, align {nbytes}, !nontemporal {self._once}")
        self._text.line(f"br label %{label}.end")
        self._text.open_block(f"{label}.cached")
        self._text.line(f"{text}, align {align}")
        self._text.line(f"br label %{label}.end")
        self._text.open_block(f"{label}.end")


def _pieces(wanted: Sequence[ConstType]) -> Iterator[tuple[int, int]]:
    """Runs of lanes that are wanted, each cut into powers of two: the first lane and the number of lanes.

    >>> list(_pieces([True] * 5 + [False, True, True]))
    [(0, 4), (4, 1), (6, 2)]
    """
    first, lanes = 0, [*wanted, False]
    for end, lane in enumerate(lanes):
        if lane:
            continue
        while first < end:
            count = 1 << (end - first).bit_length() - 1
            yield first, count
            first += count
        first = end + 1
