"""Accesses of lanes: data stand before what the address is made of, behind it who sees the access."""

from __future__ import annotations

from ...engine import Operation, Scope, Undecodable
from ...engine.transfers import MemoryHandler
from ..architecture import Architecture
from ..registers import temporaries
from .placing import Placed, Placing

ENCODINGS = ("GLOBAL", "FLAT", "SCRATCH", "MUBUF")
ZERO = 128
"""The inline constant."""
LAST = 104
"""The scalar registers before it hold descriptors."""
GLC, SC0, DLC, SC1 = 1, 1, 4, 16
"""Bits of the cache policy: gfx10 and gfx11 have GLC and DLC, gfx942 has SC0 and SC1."""


def place(p: Placing) -> Placed:
    """The handler of an instruction and its operands."""
    fields, places, name = p.fields, p.places, p.found.name
    of_buffer, to_shared = p.found.encoding == "MUBUF", "_LDS_" in p.found.row.record
    if "vdst" not in fields and "vdata" not in fields and not to_shared:
        return Placed(p.handler(name).name, [], int(scope_of(p.arch, fields.pop("cpol", 0), Operation.LOAD)))
    returns = "_atomic_" in name and ("_RTN" in p.found.row.record if of_buffer else "vdst" in fields)
    if to_shared and p.arch.generation == 10 and not of_buffer:
        raise Undecodable("loads to LDS that are not from buffers are not executed yet")
    handler = p.handler(f"{name}.rtn" if returns else f"{name}.lds" if to_shared and of_buffer else name)
    assert isinstance(handler, MemoryHandler)
    operands = [vector(p, field) for field in ("vdst", "vdata") if field in fields]
    if of_buffer and returns:  # what was there comes where data were
        operands *= 2
    if to_shared:
        operands.append(p.layout.vector(temporaries(p.arch)))
    constant = _offset(p)
    if p.found.encoding == "SCRATCH":
        operands += [
            places.vector(fields.pop("vaddr")) if "vaddr" in fields else places.scalar(ZERO, "i", 32),
            places.scalar(fields.pop("saddr", ZERO), "i", 32),
        ]
    elif of_buffer:
        operands += _buffer(p)
    elif "saddr" in fields:
        operands += [places.scalar(fields.pop("saddr"), "i", 64), places.vector(fields.pop("vaddr"))]
    else:
        operands += [places.vector(fields.pop("vaddr")), places.scalar(ZERO, "i", 32)]
    if to_shared:
        operands.append(p.layout.scalar("m0"))
    scope = scope_of(p.arch, fields.pop("cpol"), handler.shape.operation)
    return Placed(handler.name, [*operands, int(scope)], constant)


def vector(p: Placing, field: str) -> int:
    """The first row of an operand: of a vector register, or of an accumulation register behind those."""
    number, of_class = p.fields.pop(field), p.found.row.operands[field].register_class
    accumulator = of_class.startswith(("AGPR", "AReg")) or number & 512
    return p.places.vector(number & 255 | 256 if accumulator else number & 255)


def _offset(p: Placing) -> int:
    offset = p.fields.pop("offset")
    (width,) = (sum(piece[2] for piece in pieces) for name, pieces in p.found.row.fields if name == "offset")
    if p.found.encoding == "MUBUF":
        return offset
    if p.found.encoding == "FLAT" and p.arch.generation < 12 and offset >> width - 1:
        raise Undecodable("a generic address has no negative offset")
    return offset - (offset >> width - 1 << width)


def _buffer(p: Placing) -> list[int]:
    """An offset and an index of the lane, the descriptor's words, an offset of the wave."""
    row, fields, places, layout = p.found.row, p.fields, p.places, p.layout
    nothing = places.scalar(ZERO, "i", 32)
    if "_BOTHEN" in row.record:
        index, offset = (places.vector(fields["vaddr"] + i) for i in (0, 1))
    else:
        one = places.vector(fields["vaddr"]) if "vaddr" in fields else nothing
        index, offset = (one, nothing) if "_IDXEN" in row.record else (nothing, one)
    fields.pop("vaddr", None)
    if "_TFE" in row.record:
        raise Undecodable("what was missed by a load is not told yet")
    descriptor = fields.pop("srsrc")
    if descriptor >= LAST:
        raise Undecodable("descriptors lie in scalar registers")
    words = [layout.scalar("s", descriptor + i) for i in (0, 2, 3)]
    return [offset, index, *words, places.scalar(fields.pop("soffset"), "i", 32)]


def scope_of(arch: Architecture, policy: int, operation: Operation) -> Scope:
    """Who sees an access, by its cache policy.

    Source: LLVM, "User Guide for AMDGPU Backend", memory models of gfx940, gfx10 to gfx12.

    Raises:
      Undecodable: if a bit is not known.
    """
    atomic = operation is Operation.ATOMIC
    if policy & ~(0x1F if arch.generation >= 12 else 7 if arch.generation >= 10 else 0x13):
        raise Undecodable(f"the cache policy {policy:#x} is not executed yet")
    if arch.generation >= 12:
        return (Scope.UNIT, Scope.DEVICE, Scope.DEVICE, Scope.SYSTEM)[policy >> 3 & 3]
    if arch.generation == 9:
        if atomic:
            return Scope.SYSTEM if policy & SC1 else Scope.DEVICE
        return {0: Scope.UNIT, SC0: Scope.UNIT, SC1: Scope.DEVICE, SC0 | SC1: Scope.SYSTEM}[policy & (SC0 | SC1)]
    past = policy & GLC and operation is Operation.LOAD
    return Scope.DEVICE if past or atomic else Scope.UNIT
