"""Instruction tables: one row for each encoding of an instruction that a processor has.

``tools/amd_isa.py`` writes the files from LLVM's TableGen records; ``tables/README.md`` names source and licence.
"""

from __future__ import annotations

import functools
import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TABLES = Path(__file__).parent / "tables"
PROCESSORS = tuple(sorted(path.name.removesuffix(".json.gz") for path in TABLES.glob("*.json.gz")))


@dataclass(frozen=True, slots=True)
class Kind:
    """What an operand can be.

    Attributes:
      print: how it is printed: LLVM's method without ``print``, arguments after colons.
      decode: how its field is coded: LLVM's method, empty for the usual one of its register class.
      register_class: LLVM's register class, or empty.
      bits: the size of its registers, or 0.
      type: LLVM's operand type without ``OPERAND_``, for example ``REG_IMM_FP32``.
    """

    print: str
    decode: str
    register_class: str
    bits: int
    type: str


@dataclass(frozen=True, slots=True)
class Row:
    """An encoding of an instruction.

    Attributes:
      record: LLVM's name of it.
      name: the mnemonic without a suffix for the encoding; of a pair, both with ``::`` between.
      encoding: ``SOP2``, ``VOP3_DPP8``, ``GLOBAL``, and so on.
      asm: its assembly, with ``$name`` for operands.
      rank: of the decoder table that it is in; the lowest is tried first.
      mask: the bits that are fixed.
      value: what they are.
      nbytes: the size without a literal.
      fields: for each field, the pieces that it consists of: position in the instruction and in the field, width.
      operands: every operand with its kind, destinations first; also those that no field encodes.
      flags: what LLVM knows of it: ``mayLoad``, ``IsAtomicRet``, ``isBranch``, ``VM_CNT``, ``VALU``, and so on.
      uses: registers that are read without being operands.
      defs: registers that are written without being operands.
    """

    record: str
    name: str
    encoding: str
    asm: str
    rank: int
    mask: int
    value: int
    nbytes: int
    fields: tuple[tuple[str, tuple[tuple[int, int, int], ...]], ...]
    operands: dict[str, Kind]
    flags: frozenset[str]
    uses: tuple[str, ...]
    defs: tuple[str, ...]


class Table:
    """The instructions of a processor.

    Attributes:
      processor: its name, for example ``gfx1100``.
      lanes: of a wave.
      generation: 9, 10, 11 or 12.
      features: LLVM's, for example ``FeatureGFX940Insts``.
    """

    def __init__(self, data: dict[str, Any]) -> None:
        self.processor: str = data["processor"]
        self.lanes: int = data["lanes"]
        self.generation = int(self.processor[3:-2])
        self.features = frozenset(data["features"])
        self._rows: list[list[Any]] = data["rows"]
        self._kinds = [Kind(k["print"], k["decode"], k["class"], k["bits"], k["type"]) for k in data["kinds"]]
        self._data = data
        self._made: dict[int, Row] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return (self.row(number) for number in range(len(self)))

    def keys(self) -> Iterator[tuple[int, int, int]]:
        """Rank, mask and value of every row, in order."""
        return ((row[3], row[4], row[5]) for row in self._rows)

    def row(self, number: int) -> Row:
        """A row, made when it is first asked for."""
        if number not in self._made:
            self._made[number] = self._make(self._rows[number])
        return self._made[number]

    def _make(self, row: list[Any]) -> Row:
        record, asm, encoding, rank, mask, value, layout, signature, flags, uses, defs = row
        nbytes, fields = self._data["layouts"][layout]
        return Row(
            record, mnemonic(asm), encoding, asm, rank, mask, value, nbytes,
            tuple((name, tuple((at, index, width) for at, index, width in pieces)) for name, pieces in fields),
            {name: self._kinds[kind] for name, kind in self._data["signatures"][signature]},
            frozenset(self._data["flags"][flags]),
            tuple(self._data["registers"][uses]), tuple(self._data["registers"][defs]),
        )  # fmt: skip


def mnemonic(asm: str) -> str:
    """The name in an instruction's assembly; of a pair, both.

    >>> mnemonic("v_add_f32_e64 $vdst, $src0"), mnemonic("v_dual_mov_b32 $vdstX, $src0X :: v_dual_mov_b32 $vdstY")
    ('v_add_f32', 'v_dual_mov_b32 :: v_dual_mov_b32')
    """
    words = (re.split(r"[ $]", half, maxsplit=1)[0] for half in asm.split(" :: "))
    return " :: ".join(re.sub(r"(_e32|_e64)?(_dpp|_sdwa)?$", "", word) for word in words)


@functools.cache
def table(processor: str) -> Table:
    """The table of a processor.

    Raises:
      ValueError: if there is none of that name.
    """
    if processor not in PROCESSORS:
        raise ValueError(f"there is no instruction table of {processor!r}, but of {', '.join(PROCESSORS)}")
    return Table(json.loads(gzip.decompress((TABLES / f"{processor}.json.gz").read_bytes())))
