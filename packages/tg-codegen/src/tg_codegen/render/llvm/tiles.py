"""Products of tile registers (AMX) as LLVM instructions.

A tile's value is a vector of 1024 bytes in the IR. LLVM assigns the registers and configures them: it wants to see a
``x86_amx`` from each instruction to the next, with casts alone where a vector must stand between them, as in a register
that changes. So operands are loaded as tiles, and a sum that something else reads goes through memory once.

Source: LLVM's ``IntrinsicsX86.td``, "AMX - Intel AMX extensions", and ``X86LowerAMXType.cpp``.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.matrix import AMX_TILES
from ...ir.uop import UOp, UOps
from .text import LLVMText, llvm_type, overload

TILES = {found.name: f"llvm.x86.{found.name}.internal" for found in AMX_TILES}
"""The intrinsic of each instruction."""
_WHOLE = (("i16", "16"), ("i16", "64"))
"""Rows of a tile, and bytes of a row."""
_STRIDE = ("i64", "64")
_KEEPS = (UOps.ACC, UOps.ASSIGN, UOps.READ, UOps.MATRIX)


class LLVMTileRegisters:
    """The tiles of one function.

    Args:
      text: what has been written of it.
      uops: its linear UOps.

    Attributes:
      operands: the loads that are tiles, as nothing but products of tiles reads them.
      memory: lines of the function's entry.
    """

    def __init__(self, text: LLVMText, uops: Sequence[UOp]) -> None:
        self._text = text
        self.memory: list[str] = []
        products = [u for u in uops if u.op is UOps.MATRIX and u.arg.tiled]
        factors = {s for u in products for s in u.src[1:] if s.op is UOps.LOAD and len(s.src) == 2}
        self._sums: set[UOp] = set(products)
        if products:
            for u in uops:  # what a loop adds to, and what it leaves
                if u.op is UOps.ASSIGN and u.src[1] in self._sums:
                    self._sums.add(u.src[0])
            self._sums.update([u for u in uops if u.op is UOps.READ and u.src[0] in self._sums])
        users = uops if products else ()
        self._read = {
            s for u in users for n, s in enumerate(u.src) if s in self._sums
            and not (u.op in _KEEPS and (n == 0 or u.op is UOps.ASSIGN) and (u.op is not UOps.MATRIX or u.arg.tiled))}
        self.operands = factors - {
            s for u in users for n, s in enumerate(u.src) if s in factors and (u.op is not UOps.MATRIX or n == 0)}
        self._vectors: dict[UOp, str] = {}

    def load(self, u: UOp, place: str) -> str:
        """An operand, which lies in memory as in a tile."""
        pointer = self._text.pointer(u.src[0])
        return self._text.call("llvm.x86.tileloadd64.internal", "x86_amx", *_WHOLE, (pointer, place), _STRIDE)

    def product(self, u: UOp) -> str:
        """A sum after what a product adds to it."""
        a, b = (self._text.values[s] if s in self.operands else self._tile(self._text.value(s), s) for s in u.src[1:])
        total = self._tile(self.vector(u.src[0]), u.src[0])
        shape = (*_WHOLE, ("i16", "64"))
        sums = (("x86_amx", total), ("x86_amx", a), ("x86_amx", b))
        found = self._text.call(TILES[u.arg.name], "x86_amx", *shape, *sums)
        vector = self._text.call(
            f"llvm.x86.cast.tile.to.vector.{overload(u.dtype)}", llvm_type(u.dtype), ("x86_amx", found))
        return self.kept(u, vector)

    def kept(self, u: UOp, vector: str) -> str:
        """What other instructions read of a sum that a vector stands for: itself, or from memory."""
        if u not in self._read:
            return vector
        self._vectors[u] = vector
        place = f"%tile{len(self.memory)}"
        self.memory.append(f"{place} = alloca [1024 x i8], align 64")
        tile = self._tile(vector, u)
        self._text.call(
            "llvm.x86.tilestored64.internal", "void", *_WHOLE, ("ptr", place), _STRIDE, ("x86_amx", tile))
        return self._text.emit(f"load {llvm_type(u.dtype)}, ptr {place}, align 64", "val")

    def vector(self, u: UOp) -> str:
        """The vector that stands for a sum, from one product of tiles to the next."""
        return self._vectors.get(u) or self._text.value(u)

    def _tile(self, vector: str, u: UOp) -> str:
        return self._text.call(
            f"llvm.x86.cast.vector.to.tile.{overload(u.dtype)}", "x86_amx", (llvm_type(u.dtype), vector))
