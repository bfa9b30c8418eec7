"""Code objects: what a launch must know of a kernel, read from an ELF file that is checked first."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tg_dtype import DType, dtypes
from tg_runtime.host.elf import ELFError, ELFFile

from ..core.args import ArgsLayout
from ..headers.amd import code_object as flags
from ..headers.amd.code_object import (
    COMPUTE_PGM_RSRC2,
    KERNEL_CODE_PROPERTY,
    kernel_descriptor_t,
)
from .architecture import Architecture
from .msgpack import Value, unpack

_NT_AMDGPU_METADATA: Final = 32
_REGISTERS: Final = 16
"""COMPUTE_USER_DATA_0 to 15."""
_SCALARS: Final = {1: dtypes.uint8, 2: dtypes.int16, 4: dtypes.int32, 8: dtypes.int64}

# the order of LLVM's User Guide for AMDGPU Backend, "Initial Kernel Execution State": property, number of registers
USER_SGPRS: Final = (
    ("ENABLE_SGPR_PRIVATE_SEGMENT_BUFFER", 4), ("ENABLE_SGPR_DISPATCH_PTR", 2), ("ENABLE_SGPR_QUEUE_PTR", 2),
    ("ENABLE_SGPR_KERNARG_SEGMENT_PTR", 2), ("ENABLE_SGPR_DISPATCH_ID", 2), ("ENABLE_SGPR_FLAT_SCRATCH_INIT", 2),
    ("ENABLE_SGPR_PRIVATE_SEGMENT_SIZE", 1),
)  # fmt: skip


@dataclass(frozen=True)
class Kernel:
    """A kernel, as its descriptor says it.

    Attributes:
      name: its symbol.
      entry: bytes from the descriptor to the first instruction.
      rsrc: what goes to COMPUTE_PGM_RSRC1, 2 and 3, but for what the driver adds.
      lds: bytes of local memory that it declares.
      scratch: bytes of private memory of a work-item.
      kernarg: bytes of its arguments.
      wave32: whether its waves have 32 lanes, and not 64.
      sgprs: the user SGPRs that it asks for, in order: property and number of registers.
      user_sgprs: how many there are; those behind the ones that it asks for hold nothing.
    """

    name: str
    entry: int
    rsrc: tuple[int, int, int]
    lds: int
    scratch: int
    kernarg: int
    wave32: bool
    sgprs: tuple[tuple[str, int], ...]
    user_sgprs: int


def refuse_bundle(lib: bytes) -> None:
    """Does nothing if a file is no bundle of code objects, as ``hipcc --genco`` writes.

    Source: LLVM, "Clang Offload Bundler": the magic strings.

    Raises:
      ELFError: if it is one; the message says how to take one out.
    """
    if lib.startswith((b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB")):
        raise ELFError(
            "a bundle of code objects for several cards, which has to be taken apart: clang-offload-bundler --unbundle,"
            " or compile with --no-gpu-bundle-output"
        )


def check_file(file: ELFFile, architecture: Architecture, *, sramecc: bool = False, xnack: bool = False) -> None:
    """Does nothing if a code object is for this architecture.

    Args:
      file: the code object.
      architecture: of the card.
      sramecc: whether the card's registers and caches correct errors, which code must know that writes parts of words.
      xnack: whether accesses may be tried again after a fault, which code must be written for.

    Raises:
      ELFError: if it is for another one, or for a card whose memory behaves otherwise.
    """
    machine = file.flags & flags.EF_AMDGPU_MACH
    if machine != architecture.machine:
        names = {
            value: name.rpartition("_")[2].lower()
            for name, value in vars(flags).items()
            if name.startswith("EF_AMDGPU_MACH_AMDGCN_GFX")
        }
        built = names.get(machine, f"machine {machine:#x}")
        raise ELFError(f"the code object is for {built}, and the card is a {architecture.name}")
    for name, here, mask, on, off in (
        ("xnack", xnack, flags.EF_AMDGPU_FEATURE_XNACK_V4, flags.EF_AMDGPU_FEATURE_XNACK_ON_V4,
         flags.EF_AMDGPU_FEATURE_XNACK_OFF_V4),
        ("sramecc", sramecc, flags.EF_AMDGPU_FEATURE_SRAMECC_V4, flags.EF_AMDGPU_FEATURE_SRAMECC_ON_V4,
         flags.EF_AMDGPU_FEATURE_SRAMECC_OFF_V4),
    ):  # fmt: skip
        wants = file.flags & mask
        if wants == on and not here:
            raise ELFError(f"the code object wants {name}, which the {architecture.name} runs without")
        if wants == off and here:
            raise ELFError(f"the code object is for cards without {name}, and the {architecture.name} runs with it")


def kernel(name: str, descriptor: bytes, architecture: Architecture, lds: int = 1 << 16) -> Kernel:
    """What a kernel's descriptor says.

    Args:
      name: its name.
      descriptor: its descriptor.
      architecture: of the card.
      lds: bytes of local memory that a work-group may have there.

    Raises:
      ELFError: if it is too short, or asks for what the architecture has not.
    """
    if len(descriptor) < kernel_descriptor_t.nbytes:
        raise ELFError(f"the descriptor of {name} has {len(descriptor)} bytes, not {kernel_descriptor_t.nbytes}")
    fields = kernel_descriptor_t.unpack(descriptor)
    properties = fields["kernel_code_properties"]
    asked = KERNEL_CODE_PROPERTY.decode(properties)
    sgprs = tuple((what, count) for what, count in USER_SGPRS if asked.get(what))
    rsrc2 = fields["compute_pgm_rsrc2"]
    given = sum(count for _, count in sgprs)
    counted = rsrc2 >> 1 & 0x1F  # USER_SGPR_COUNT
    if not given <= counted <= _REGISTERS:
        raise ELFError(f"{name} names {given} user SGPRs, and its RSRC2 has room for {counted} of {_REGISTERS}")
    if fields["kernarg_preload"]:
        raise ELFError(f"{name} wants arguments in registers before it begins, which {architecture.name} has not")
    if COMPUTE_PGM_RSRC2.decode(rsrc2)["GRANULATED_LDS_SIZE"]:
        raise ELFError(f"{name}: RSRC2 of its descriptor holds a size of LDS, which the driver is to fill in")
    wave32 = bool(asked["ENABLE_WAVEFRONT_SIZE32"])
    if fields["group_segment_fixed_size"] > lds:
        raise ELFError(f"{name} declares {fields['group_segment_fixed_size']} bytes of LDS; a work-group has {lds}")
    return Kernel(
        name, fields["kernel_code_entry_byte_offset"],
        (fields["compute_pgm_rsrc1"], rsrc2, fields["compute_pgm_rsrc3"]), fields["group_segment_fixed_size"],
        fields["private_segment_fixed_size"], fields["kernarg_size"], wave32, sgprs, counted,
    )  # fmt: skip


def metadata(file: ELFFile) -> Mapping[str, Mapping[str, Value]]:
    """The metadata of each kernel in a code object, by its name.

    Raises:
      ELFError: if it is damaged.
    """
    found: dict[str, Mapping[str, Value]] = {}
    for section in file.sections:
        if section.type != 7:  # SHT_NOTE
            continue
        for kind, owner, content in _notes(file.data[section.offset : section.offset + section.size]):
            if kind != _NT_AMDGPU_METADATA or owner != b"AMDGPU":
                continue
            try:
                root = unpack(content)
            except ValueError as error:
                raise ELFError(f"the metadata of the code object: {error}") from None
            kernels = root.get("amdhsa.kernels") if isinstance(root, dict) else None
            for one in kernels if isinstance(kernels, list) else ():
                if isinstance(one, dict) and isinstance(one.get(".name"), str):
                    found[str(one[".name"])] = one
    return found


def args_layout(name: str, told: Mapping[str, Value], nbytes: int) -> ArgsLayout | None:
    """Where a kernel's arguments lie; None if the metadata does not say.

    Raises:
      ELFError: if an argument lies outside of the block, or is of a kind that is not known.
    """
    rows = told.get(".args")
    if not isinstance(rows, list):
        return None
    places: list[int] = []
    scalars: list[tuple[int, DType]] = []
    hidden: dict[str, tuple[int, int]] = {}
    for row in rows:
        if not isinstance(row, dict):
            raise ELFError(f"{name}: an argument in the metadata is {row!r}")
        kind, offset, size = row.get(".value_kind"), row.get(".offset"), row.get(".size")
        if not isinstance(offset, int) or not isinstance(size, int) or offset < 0 or size < 1 or offset + size > nbytes:
            raise ELFError(f"{name}: an argument at {offset!r} of {size!r} bytes in a block of {nbytes}")
        if kind == "global_buffer":
            places.append(offset)
        elif kind == "by_value":
            if size not in _SCALARS:
                raise ELFError(f"{name}: an argument of {size} bytes by value")
            scalars.append((offset, _SCALARS[size]))
        elif isinstance(kind, str) and kind.startswith("hidden_"):
            if size in (1, 2, 4, 8):
                hidden[kind] = offset, size
        else:
            raise ELFError(f"{name}: an argument of kind {kind!r}")
    try:
        return ArgsLayout(
            len(places), [dtype for _, dtype in scalars], places=places, offsets=[offset for offset, _ in scalars],
            hidden=hidden, nbytes=nbytes,
        )  # fmt: skip
    except ValueError as error:
        raise ELFError(f"{name}: {error}") from None


def _notes(data: bytes) -> list[tuple[int, bytes, bytes]]:
    """Type, owner and content of each note of a section."""
    found, at = [], 0
    while at + 12 <= len(data):
        name_size, size, kind = struct.unpack_from("<III", data, at)
        start = at + 12 + -(-name_size // 4) * 4
        if start + size > len(data):
            raise ELFError(f"a note of {size} bytes at {at} reaches outside of its section of {len(data)} bytes")
        found.append((kind, data[at + 12 : at + 12 + name_size].rstrip(b"\0"), data[start : start + size]))
        at = start + -(-size // 4) * 4
    return found
