"""Relocations of GPUs' code objects, as data: which bits of the place hold which bits of which value.

Sources: AMDGPU: LLVM, "User Guide for AMDGPU Backend", section "Relocation Records". CUDA: NVIDIA documents only the
names (CUDA Binary Utilities); the fields are those in the tables of relocations that nvdisasm prints of its own machine
descriptions and that ptxas 13.0 carries, which others wrote down and which agree with each other and with what nvlink
does. Numbers that stand for texture headers, constant banks and unified functions are refused: a loader of plain memory
has no value for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final, NamedTuple

from tg_runtime.host.elf import Machine, Patch, Refusal
from tg_runtime.host.elf.layout import PROCESSORS

EM_CUDA, EM_AMDGPU = 190, 224


class _Value(Enum):
    ADDRESS = "the symbol's address and the addend"
    DISTANCE = "from the place to that"
    BIAS = "how far the object was moved, and the addend"
    ZERO = "nothing"


class _Part(NamedTuple):
    """Bits of the place: ``width`` of them from bit ``low`` on, which hold the value from its bit ``shift`` on."""

    low: int
    width: int
    shift: int = 0


class _Field(NamedTuple):
    """A type of relocation.

    Attributes:
      name: what it is called.
      nbytes: bytes of the place.
      value: what is stored.
      parts: where.
      checked: how many bits of the value must hold all of it; 0 if the rest stands elsewhere.
      signed: whether these bits have a sign.
      unit: what the value must be a multiple of.
      before: what is subtracted from the value: an instruction's distances count from behind it.
    """

    name: str
    nbytes: int
    value: _Value
    parts: tuple[_Part, ...]
    checked: int = 0
    signed: bool = False
    unit: int = 1
    before: int = 0


def _apply(fields: Mapping[int, _Field], out: bytearray, p: Patch) -> None:
    field = fields[p.type]
    full = {
        _Value.ADDRESS: p.value, _Value.DISTANCE: p.value - p.place, _Value.BIAS: p.bias + p.addend, _Value.ZERO: 0,
    }[field.value] - field.before  # fmt: skip
    if full % field.unit:
        raise Refusal(f"{full:#x} is misaligned: it is no multiple of {field.unit}")
    if field.checked:
        # an absolute value may be an address, or a small negative number; a distance has a sign
        least = -(1 << field.checked - 1) if field.signed else 0
        if not least <= full < least + (1 << field.checked):
            raise Refusal(f"cannot reach {full:#x} with {field.checked} bits")
    word = int.from_bytes(out[p.at : p.at + field.nbytes], "little")
    for low, width, shift in field.parts:
        mask = (1 << width) - 1
        word = word & ~(mask << low) | (full >> shift & mask) << low
    out[p.at : p.at + field.nbytes] = word.to_bytes(field.nbytes, "little")


def _types(fields: Mapping[int, _Field]) -> dict[int, tuple[str, int]]:
    return {number: (field.name, field.nbytes) for number, field in fields.items()}


_LOW, _HIGH = (_Part(0, 32),), (_Part(0, 32, 32),)
_ALL: Final = (_Part(0, 64),)
_AMDGPU: Final = {
    0: _Field("R_AMDGPU_NONE", 0, _Value.ZERO, ()),
    1: _Field("R_AMDGPU_ABS32_LO", 4, _Value.ADDRESS, _LOW),
    2: _Field("R_AMDGPU_ABS32_HI", 4, _Value.ADDRESS, _HIGH),
    3: _Field("R_AMDGPU_ABS64", 8, _Value.ADDRESS, _ALL),
    4: _Field("R_AMDGPU_REL32", 4, _Value.DISTANCE, _LOW, checked=32, signed=True),
    5: _Field("R_AMDGPU_REL64", 8, _Value.DISTANCE, _ALL),
    6: _Field("R_AMDGPU_ABS32", 4, _Value.ADDRESS, _LOW, checked=32),
    10: _Field("R_AMDGPU_REL32_LO", 4, _Value.DISTANCE, _LOW),
    11: _Field("R_AMDGPU_REL32_HI", 4, _Value.DISTANCE, _HIGH),
    13: _Field("R_AMDGPU_RELATIVE64", 8, _Value.BIAS, _ALL),
    14: _Field("R_AMDGPU_REL16", 2, _Value.DISTANCE, (_Part(0, 16, 2),), checked=18, signed=True, unit=4, before=4),
}
_TABLES: Final = {7: "R_AMDGPU_GOTPCREL", 8: "R_AMDGPU_GOTPCREL32_LO", 9: "R_AMDGPU_GOTPCREL32_HI"}


def _amdgpu(out: bytearray, p: Patch, _: Mapping[int, int]) -> None:
    if p.type in _TABLES:
        raise Refusal("there is no table of addresses; give the symbol hidden visibility, or link the object")
    _apply(_AMDGPU, out, p)


def _word(name: str, at: int, width: int, shift: int = 0, checked: bool = False) -> _Field:
    """A field of an instruction or of data; ``checked`` if it must hold the whole address."""
    nbytes = -(-(at + width) // 8)
    return _Field(
        f"R_CUDA_{name}", nbytes, _Value.ADDRESS, (_Part(at, width, shift),), checked=width if checked else 0
    )  # fmt: skip


def _halves(name: str, number: int, at: int, other: tuple[int, int]) -> dict[int, _Field]:
    """An address of 32 bits from bit ``at`` on, and the low and high halves of one of 64 bits."""
    return {
        number: _word(f"{name}_{at}", at, 32, checked=True),
        other[0]: _word(f"{name}_LO_{at}", at, 32),
        other[1]: _word(f"{name}_HI_{at}", at, 32, 32),
    }


def _bytes(name: str, number: int) -> dict[int, _Field]:
    """Single bytes of an address."""
    return {number + i: _word(f"{name}_{8 * i}", 0, 8, 8 * i) for i in range(8)}


def _wide(name: str, width: int) -> _Field:
    """The target of a call in 4-byte steps, its lowest eight bits apart from the others."""
    return _Field(f"R_CUDA_{name}", 16, _Value.ADDRESS, (_Part(16, 8, 2), _Part(34, width, 10)), width + 10, unit=4)


# A function's descriptor is the address of its code: there is nothing else behind a 64-bit call since sm_70.
_CUDA: Final = {
    0: _Field("R_CUDA_NONE", 0, _Value.ZERO, ()),
    1: _word("32", 0, 32, checked=True), 2: _word("64", 0, 64), 3: _word("G32", 0, 32, checked=True),
    4: _word("G64", 0, 64), **_halves("ABS32", 5, 26, (10, 11)), **_halves("ABS32", 12, 23, (13, 14)),
    15: _word("ABS24_26", 26, 24, checked=True), 16: _word("ABS24_23", 23, 24, checked=True),
    17: _word("ABS16_26", 26, 16, checked=True), 18: _word("ABS16_23", 23, 16, checked=True),
    **_halves("FUNC_DESC32", 31, 23, (32, 33)), 34: _word("FUNC_DESC_32", 0, 32, checked=True),
    35: _word("FUNC_DESC_64", 0, 64), **_halves("ABS32", 42, 20, (43, 44)),
    45: _word("ABS24_20", 20, 24, checked=True), 46: _word("ABS16_20", 20, 16, checked=True),
    **_halves("FUNC_DESC32", 47, 20, (48, 49)), **_halves("ABS32", 55, 32, (56, 57)),
    58: _Field("R_CUDA_ABS47_34", 16, _Value.ADDRESS, (_Part(34, 47, 2),), 49, unit=4),
    59: _word("ABS16_32", 32, 16, checked=True), 60: _word("ABS24_32", 32, 24, checked=True),
    **_halves("FUNC_DESC32", 61, 32, (62, 63)), 70: _word("32_LO", 0, 32), 71: _word("32_HI", 0, 32, 32),
    72: _Field("R_CUDA_UNUSED_CLEAR32", 4, _Value.ZERO, _LOW),
    73: _Field("R_CUDA_UNUSED_CLEAR64", 8, _Value.ZERO, _ALL), 74: _word("ABS24_40", 40, 24, checked=True),
    75: _wide("ABS55_16_34", 47), **_bytes("8", 76), **_bytes("G8", 84), **_bytes("FUNC_DESC_8", 92),
    100: _word("ABS20_44", 44, 20, checked=True), 114: _wide("ABS56_16_34", 48),
}  # fmt: skip


def _cuda(out: bytearray, p: Patch, _: Mapping[int, int]) -> None:
    _apply(_CUDA, out, p)


def _cuda_addend(out: bytearray, at: int, kind: int) -> int:
    """The addend that stands in the place itself, as in files with relocations of the type SHT_REL."""
    word, found = int.from_bytes(out[at : at + _CUDA[kind].nbytes], "little"), 0
    for low, width, shift in _CUDA[kind].parts:
        found |= (word >> low & ((1 << width) - 1)) << shift
    return found


def _in_memory(section: str) -> bool:
    """Whether a section lies in memory: shared and local memory are given to a launch."""
    return not section.startswith((".nv.shared", ".nv.local"))


AMDGPU: Final = Machine(
    "AMDGPU", EM_AMDGPU, {**_types(_AMDGPU), **{number: (name, 4) for number, name in _TABLES.items()}}, _amdgpu
)  # fmt: skip
CUDA: Final = Machine(
    "CUDA", EM_CUDA, _types(_CUDA), _cuda, implicit=_cuda_addend, placed=_in_memory, executables=True
)  # fmt: skip
MACHINES: Final = {**PROCESSORS, EM_AMDGPU: AMDGPU, EM_CUDA: CUDA}
