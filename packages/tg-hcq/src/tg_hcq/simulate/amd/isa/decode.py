"""From bytes to decoded instructions."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass

from ...engine import Undecodable
from .registers import LITERAL, kind_of, names
from .table import Row, Table, table


@dataclass(frozen=True, slots=True)
class Decoded:
    """A decoded instruction.

    Attributes:
      name: the mnemonic as llvm-objdump prints it, without a suffix for the encoding.
      record: LLVM's name of the encoding.
      encoding: ``SOP2``, ``VOP3_DPP8``, ``VOPD``, and so on.
      fields: by LLVM's names of the operands, as they are encoded.
      literal: the 32-bit constant that follows or is part of the instruction, if any.
      nbytes: with the literal.
      row: everything else that the table says of the encoding.
      table: of the processor.
    """

    name: str
    record: str
    encoding: str
    fields: Mapping[str, int]
    literal: int | None
    nbytes: int
    row: Row
    table: Table


# Bits that LLVM's assembler sets although no operand has them (AMDGPUMCCodeEmitter.cpp): of packed instructions the
# selects of sources that they lack, of comparisons that write EXEC its number as the destination.
OP_SEL_HI = 1 << 14 | 3 << 59
EXEC = 126
Decoder = Callable[[bytes], Decoded]
Piece = tuple[str, int, int, int]  # a field's name; its position in the instruction, position in the field, mask
Check = tuple[str, tuple[str | None, ...]]


class _Plan:
    """How a row's fields are taken out of an instruction and checked."""

    def __init__(self, row: Row, of: Table) -> None:
        self.row = row
        self.whole: list[tuple[str, int, int]] = []
        self.pieces: list[Piece] = []
        known = row.mask
        for name, pieces in row.fields:
            for position, index, width in pieces:
                known |= ((1 << width) - 1) << position
                if len(pieces) == 1 and index == 0:
                    self.whole.append((name, position, (1 << width) - 1))
                else:
                    self.pieces.append((name, position, index, (1 << width) - 1))
        self.reserved = ((1 << 8 * row.nbytes) - 1) & ~known
        if "VOP3P" in row.flags or row.name.startswith("v_accvgpr_"):
            self.reserved &= ~OP_SEL_HI
        self.names_exec = self.reserved & 0xFF == 0xFF and row.name.startswith("v_cmpx_")
        encoded = {name for name, _ in row.fields}
        self.checks: list[Check] = [
            (name, names(kind, of)) for name, kind in row.operands.items() if kind.register_class and name in encoded
        ]
        self.constants = [name for name in encoded if name in row.operands and row.operands[name].type[:4] == "KIMM"]
        self.paired = "vdstY" in encoded
        self.of_formats = "F8F6F4" in row.record
        self.takes_literal = row.nbytes == 4 or "FeatureVOP3Literal" in of.features
        self.legal = [
            (name, legal) for name, kind in row.operands.items() if name in encoded
            for legal in [_legal(kind.print, kind.decode, row, of)] if legal
        ]  # fmt: skip


def _legal(printing: str, decode: str, row: Row, of: Table) -> Container[int] | None:
    """The values that an immediate operand can have, or None for any."""
    if printing == "DPPCtrl":
        wide = any(kind.bits == 64 and kind.register_class.startswith("V") for kind in row.operands.values())
        return frozenset(range(0x150, 0x160) if wide and "FeatureDPALU_DPP" in of.features else _controls(of))
    if printing == "NamedBit:gds" and "FeatureGDS" not in of.features:
        return frozenset((0,))
    if of.generation >= 12:
        if decode == "decodeSplitBarrier":
            return range(128, 209)  # an inline constant
        if printing == "CPol":
            return range(0x80)  # scaled offsets came with gfx1250
        buffer = "MUBUF" in row.flags or re.match("s_buffer_|s_atc_probe_buffer", row.name)
        if buffer and "ffset" in printing:
            return range(1 << 23)  # of 24 bits, and not negative
    if printing in ("SDWADstSel", "SDWASrc0Sel", "SDWASrc1Sel"):
        return frozenset(range(7))
    if printing == "SDWADstUnused":
        return frozenset(range(3))
    if decode == "decodeDpp8FI":
        return frozenset((0xE9, 0xEA))
    return None


def _controls(of: Table) -> list[int]:
    """The values of ``dpp_ctrl`` that a processor knows."""
    rows = [*range(0x101, 0x110), *range(0x111, 0x120), *range(0x121, 0x130), 0x140, 0x141]
    share = list(range(0x150, 0x160))
    if of.generation == 9:
        waves = [0x130, 0x134, 0x138, 0x13C, 0x142, 0x143]
        return [*range(0x100), *rows, *waves, *share]
    return [*range(0x100), *rows, *share, *range(0x160, 0x170)]


class _Index:
    """Finds the rows that match an instruction, those of the first decoder tables first, then the most specific."""

    def __init__(self, of: Table) -> None:
        self.of = of
        self.buckets: list[list[tuple[int, int, dict[int, int]]]] = [[] for _ in range(64)]
        groups: dict[tuple[int, int, int], dict[int, int]] = {}
        for number, (rank, mask, value) in enumerate(of.keys()):
            groups.setdefault((rank, -mask.bit_count(), mask), {})[value] = number
        for (rank, _, mask), found in sorted(groups.items(), key=lambda item: item[0]):
            prefix_mask = mask >> 26 & 63
            by_prefix: dict[int, dict[int, int]] = {}
            for value, number in found.items():
                by_prefix.setdefault(value >> 26 & 63, {})[value] = number
            for prefix, bucket in enumerate(self.buckets):
                if matching := by_prefix.get(prefix & prefix_mask):
                    bucket.append((rank, mask, matching))
        self.plans: dict[int, _Plan] = {}

    def decode(self, data: bytes) -> Decoded:
        if len(data) < 4:
            raise Undecodable(f"{data.hex()} is too short for an instruction")
        word = int.from_bytes(data[:16], "little")
        failed = -1
        why = "no instruction of this processor"
        for rank, mask, found in self.buckets[word >> 26 & 63]:
            number = found.get(word & mask)
            if number is None or rank == failed:
                continue
            plan = self.plans.get(number)
            if plan is None:
                plan = self.plans[number] = _Plan(self.of.row(number), self.of)
            decoded = self._take(plan, word, data)
            if isinstance(decoded, Decoded):
                return decoded
            failed, why = rank, decoded
        raise Undecodable(f"{word & 0xFFFFFFFF:#010x} {word >> 32 & 0xFFFFFFFF:#010x}: {why}")

    def _take(self, plan: _Plan, word: int, data: bytes) -> Decoded | str:
        row = plan.row
        nbytes = row.nbytes
        if len(data) < nbytes:
            return f"{row.record} has {nbytes} bytes, of which {len(data)} are there"
        if plan.names_exec and word & 0xFF == EXEC:
            word ^= EXEC
        if word & plan.reserved:
            return f"{row.record} with reserved bits {word & plan.reserved:#x}"
        fields = {name: word >> position & mask for name, position, mask in plan.whole}
        for name, position, index, mask in plan.pieces:
            fields[name] = fields.get(name, 0) | (word >> position & mask) << index
        if plan.paired:
            fields["vdstY"] = (fields["vdstY"] & ~1) | (~fields["vdstX"] & 1)
        literal = fields[plan.constants[0]] if plan.constants else None
        checks = plan.checks
        if plan.of_formats:
            checks = [(name, names(kind_of(row, fields, name), self.of)) for name, _ in checks]
        for name, texts in checks:
            text = texts[fields[name]]
            if text is None:
                return f"{row.record} cannot have {fields[name]:#x} as {name}"
            if text is LITERAL and literal is None:
                if not plan.takes_literal:
                    return f"{row.record} cannot have a literal on {self.of.processor}"
                literal = int.from_bytes(data[nbytes : nbytes + 4], "little")
                nbytes += 4
                if len(data) < nbytes:
                    return f"{row.record} with a literal has {nbytes} bytes, of which {len(data)} are there"
        for name, legal in plan.legal:
            if fields[name] not in legal:
                return f"{row.record} cannot have {fields[name]:#x} as {name}"
        return Decoded(row.name, row.record, row.encoding, fields, literal, nbytes, row, self.of)


_indices: dict[str, _Index] = {}


def decoder(arch: str) -> Decoder:
    """The decoder of a processor's instructions.

    It takes bytes that begin with an instruction; 20 of them are enough for any.

    Args:
      arch: for example ``gfx1100``.

    Returns:
      A function that raises ``Undecodable`` if the bytes are no instruction of the processor, if a reserved bit is
      set, or if a field names what its operand cannot be.

    Raises:
      ValueError: if there is no table of the processor.

    Example:
      >>> decoder("gfx1100")(bytes.fromhex("02070206")).name
      'v_add_f32'
    """
    if arch not in _indices:
        _indices[arch] = _Index(table(arch))
    return _indices[arch].decode
