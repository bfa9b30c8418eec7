"""A handler against its specification: a lane's semantics in Python, with random registers, operands and masks."""

from __future__ import annotations

import ctypes
import random
import struct
from collections.abc import Callable, Sequence
from typing import TypeAlias

from .. import state
from ..emitter import Operand, Where
from ..handlers import Handler, ScalarHandler
from ..native import Engine
from ..state import LITERAL, Status
from ..wave import Wave
from .exact import DOUBLE, HALF, SINGLE

Specification: TypeAlias = Callable[..., "int | tuple[int, ...]"]
"""What one lane computes, from the bits of its sources to the bits of its results; of a mask, a lane's bit."""

_CORNERS = {
    8: (0, 1, 0x7F, 0x80, 0xFF),
    16: (0, 1, 0x7FFF, 0x8000, 0xFFFF, 0x3C00, 0x7C00, 0xFC00, 0x7E00, 0x0400, 0x03FF, 0x7BFF),
    32: (0, 1, 2, 31, 32, 33, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x3F800000, 0x7F800000, 0xFF800000, 0x7FC00000,
         0x00800000, 0x007FFFFF, 0x7F7FFFFF, 0x4F000000, 0x4F800000, 0xCF000000),
    64: (0, 1, 63, 64, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 1 << 32, 0x3FF0000000000000, 0x7FF0000000000000,
         0xFFF0000000000000, 0x7FF8000000000000, 0x0010000000000000, 0x000FFFFFFFFFFFFF, 0x7FEFFFFFFFFFFFFF),
}  # fmt: skip


class Bench:
    """Executes single instructions of an engine.

    Args:
      engine: native code; of a hostile one, instructions that do not access memory.
      scalars: a name of scalar registers, where operands may lie.
      masks: a name of scalar registers, where masks may lie.
    """

    def __init__(self, engine: Engine, scalars: str, masks: str) -> None:
        self.engine, self.scalars, self.masks = engine, scalars, masks
        self._record = ctypes.create_string_buffer(3 * state.RECORD_BYTES)

    def step(
        self, wave: Wave, handler: str, operands: tuple[int, ...], immediate: int = 0, parts: Sequence[int] = ()
    ) -> Status:
        """Executes one instruction; parts are the addresses of further handlers."""
        words = (*operands, *[0] * (state.MOST_OPERANDS - len(operands)))
        address = self.engine.addresses[handler]
        constant, shape = immediate % (1 << 64), f"<Qi{state.MOST_OPERANDS}iQ"
        struct.pack_into(shape, self._record, 0, address, state.RECORD_BYTES, *words, constant)
        struct.pack_into(f"<{len(parts)}Q", self._record, state.PARTS, *parts)
        wave.put(state.RESUME, ctypes.addressof(self._record), 2)
        return Status(self.engine.run(wave.address, 1))

    def fuzz(self, name: str, specification: Specification, rounds: int = 8, seed: int = 0) -> None:
        """Tries a handler of lanes, or of scalars.

        Raises:
          AssertionError: if a result is not what the specification says, or anything else changed.
        """
        handler, rng = self.engine.instructions.handlers[name], random.Random(f"{name} {seed}")
        for _ in range(rounds):
            self._round(handler, specification, rng)

    def _round(self, handler: Handler, specification: Specification, rng: random.Random) -> None:
        layout, lanes = self.engine.layout, self.engine.lanes
        wave = Wave(layout, rng=rng)
        for register in range(layout.vectors):
            wave.set_row(register, [self._number(32, rng) for _ in range(lanes)])
        wave.exec = rng.choice([(1 << lanes) - 1, rng.getrandbits(lanes), 0, 1 << rng.randrange(lanes)])
        operands, used = [], list[tuple[int, int]]()
        for number, operand in enumerate((*handler.results, *handler.sources)):
            operands.append(self._place(operand, number < len(handler.results), used, rng))
        immediate = self._number(64, rng)
        before, exec_mask = bytes(wave.view), wave.exec
        status = self.step(wave, handler.name, tuple(operands), immediate)
        assert status is Status.BUDGET, f"{handler.name} stopped: {status.name}"
        expected = bytearray(before)
        split = len(handler.results)
        active = [0] if isinstance(handler, ScalarHandler) else [n for n in range(lanes) if exec_mask >> n & 1]
        for operand, offset in zip(handler.results, operands, strict=False):
            if operand.where is Where.MASK:
                expected[offset : offset + lanes // 8] = bytes(lanes // 8)
        for lane in active:
            sources = [
                self._read(before, operand, offset, lane, immediate)
                for operand, offset in zip(handler.sources, operands[split:], strict=True)
            ]
            found = specification(*sources)
            for operand, offset, bits in zip(
                handler.results, operands, found if isinstance(found, tuple) else (found,), strict=False
            ):
                got = self._read(bytes(wave.view), operand, offset, lane, immediate)
                assert _same(operand, got, int(bits)), (
                    f"{handler.name}, lane {lane}: of {[hex(s) for s in sources]} came {got:#x}, not {int(bits):#x}"
                )
                self._write(expected, operand, offset, lane, got)
        assert bytes(wave.view[state.SCALARS :]) == bytes(expected[state.SCALARS :]), f"{handler.name} changed more"
        assert wave.exec == exec_mask, f"{handler.name} changed the mask"

    def _number(self, bits: int, rng: random.Random) -> int:
        return rng.choice(_CORNERS[bits]) if rng.random() < 0.4 else rng.getrandbits(bits)

    def _place(self, operand: Operand, result: bool, used: list[tuple[int, int]], rng: random.Random) -> int:
        """An operand's offset; results do not overlap one another, sources may overlap anything in whole registers."""
        layout = self.engine.layout
        words = max(operand.type.bits // 32, 1)
        while True:
            where = operand.where
            if where is Where.ANY:
                where = rng.choice([Where.VECTOR, Where.SCALAR])
            if where is Where.SCALAR and not result and rng.random() < 0.4:
                return LITERAL
            if where is Where.VECTOR:
                offset, nbytes = layout.vector(rng.randrange(layout.vectors - words + 1)), words * layout.row_bytes
            elif where is Where.MASK:
                words = layout.lanes // 32
                count = layout.scalars[self.masks][1]
                offset, nbytes = layout.scalar(self.masks, rng.randrange(0, count - 1, 2)), 4 * words
            else:
                count = layout.scalars[self.scalars][1]
                offset, nbytes = layout.scalar(self.scalars, rng.randrange(0, count - words + 1, words)), 4 * words
            if not result or all(offset + nbytes <= at or at + size <= offset for at, size in used):
                if result:
                    used.append((offset, nbytes))
                return offset

    def _read(self, data: bytes, operand: Operand, offset: int, lane: int, immediate: int) -> int:
        layout, bits = self.engine.layout, operand.type.bits
        if offset == LITERAL:
            return immediate & ((1 << bits) - 1)
        if operand.where is Where.MASK:
            return int.from_bytes(data[offset : offset + layout.lanes // 8], "little") >> lane & 1
        if offset < layout.rows:
            whole = int.from_bytes(data[offset : offset + max(bits // 8, 4)], "little")
        else:
            at = offset + 4 * lane
            whole = int.from_bytes(data[at : at + 4], "little")
            if bits == 64:
                at += layout.row_bytes
                whole |= int.from_bytes(data[at : at + 4], "little") << 32
        # the rest of a register that holds less is zero
        return whole & ((1 << bits) - 1)

    def _write(self, data: bytearray, operand: Operand, offset: int, lane: int, value: int) -> None:
        layout, bits = self.engine.layout, operand.type.bits
        if operand.where is Where.MASK:
            data[offset + lane // 8] |= (value & 1) << lane % 8
        elif offset < layout.rows:
            data[offset : offset + max(bits // 8, 4)] = value.to_bytes(max(bits // 8, 4), "little")
        else:
            at = offset + 4 * lane
            data[at : at + 4] = (value & 0xFFFFFFFF).to_bytes(4, "little")
            if bits == 64:
                at += layout.row_bytes
                data[at : at + 4] = (value >> 32).to_bytes(4, "little")


def _same(operand: Operand, got: int, wanted: int) -> bool:
    if operand.type.kind == "f":
        form = {16: HALF, 32: SINGLE, 64: DOUBLE}[operand.type.bits]
        if form.is_nan(wanted):
            return form.is_nan(got)
    return got == wanted & ((1 << operand.type.bits) - 1)
