"""A code object's machine code as assembly, in the form of ``llvm-objdump -d``."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise

from tg_runtime.host.elf import ELFError, ELFFile, Section

from ....headers.amd import code_object
from ...engine import Undecodable
from .decode import Decoded, Decoder, decoder
from .text import text

EM_AMDGPU = 224
SHF_EXECINSTR, STT_NOTYPE, STT_FUNC = 4, 0, 2
LONGEST = 20  # bytes of an instruction and a literal
MACHINES: dict[int, str] = {
    number: name.removeprefix("EF_AMDGPU_MACH_AMDGCN_").lower()
    for name, number in vars(code_object).items()
    if name.startswith("EF_AMDGPU_MACH_AMDGCN_GFX") and isinstance(number, int)
}


def processor_of(file: ELFFile) -> str:
    """The processor that a code object is for, for example ``gfx1100``.

    Raises:
      ELFError: if it is for none of AMD's GPUs.
    """
    number = file.flags & code_object.EF_AMDGPU_MACH
    if file.machine != EM_AMDGPU or number not in MACHINES:
        raise ELFError(f"no code object of an AMD GPU: machine {file.machine}, flags {file.flags:#x}")
    return MACHINES[number]


def listing(data: bytes) -> Iterator[str]:
    """The lines of a code object's listing: a headline for each section and function, and its instructions.

    Words that are no instruction are listed as ``.long``.

    Args:
      data: the bytes of a relocatable or linked ELF file.

    Raises:
      ELFError: if they are no code object of an AMD GPU.
      ValueError: if there is no instruction table of its processor.
    """
    file = ELFFile(data)
    decode = decoder(processor_of(file))
    for index, section in enumerate(file.sections):
        if section.flags & SHF_EXECINSTR and section.size:
            labels = _labels(file, index)
            yield f"Disassembly of section {section.name}:"
            for address, code in _split(file, section, labels):
                if address in labels:
                    yield f"{address:016x} <{labels[address]}>:"
                while code:
                    line, nbytes = _line(decode, code, address, labels)
                    yield line
                    code, address = code[nbytes:], address + nbytes


def _labels(file: ELFFile, index: int) -> dict[int, str]:
    kinds = STT_FUNC, STT_NOTYPE
    return {s.value: s.name for s in file.symbols if s.section == index and s.name and s.type in kinds}


def _split(file: ELFFile, section: Section, labels: dict[int, str]) -> Iterator[tuple[int, bytes]]:
    """A section's code, cut where a label is."""
    end = section.address + section.size
    cuts = sorted({section.address, *(label for label in labels if section.address <= label < end), end})
    for begin, stop in pairwise(cuts):
        at = section.offset + begin - section.address
        yield begin, file.data[at : at + stop - begin]


def _line(decode: Decoder, code: bytes, address: int, labels: dict[int, str]) -> tuple[str, int]:
    try:
        decoded = decode(code[:LONGEST])
        nbytes, shown, target = decoded.nbytes, text(decoded), _target(decoded, address, labels)
    except Undecodable:
        nbytes, target = min(4, len(code)), ""
        shown = f".long {int.from_bytes(code[:nbytes], 'little'):#010x}"
    words = (int.from_bytes(code[at : at + 4], "little") for at in range(0, nbytes, 4))
    return f"\t{shown:<59}// {address:012X}: {' '.join(f'{word:08X}' for word in words)}{target}", nbytes


def _target(decoded: Decoded, address: int, labels: dict[int, str]) -> str:
    """Where a branch goes, behind the name of what it lies in."""
    for name, kind in decoded.row.operands.items():
        if kind.type == "PCREL" and labels:
            target = address + 4 + 4 * ((decoded.fields[name] ^ 0x8000) - 0x8000)
            before = sorted(labels)
            label = before[max(bisect_right(before, target) - 1, 0)]
            return f" <{labels[label]}{f'+{target - label:#x}' if target != label else ''}>"
    return ""
