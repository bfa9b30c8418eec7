"""LLVM's types and literals as text, and the lines of a function as it grows."""

from __future__ import annotations

import functools
import struct
from typing import NamedTuple

from tg_dtype import AddrSpace, ConstType, DType, PtrDType, dtypes, to_bits

from ...ir.uop import UOp, UOps

FLOATS = {dtypes.float16: "half", dtypes.float32: "float", dtypes.float64: "double"}
_SHORT = {"half": "f16", "float": "f32", "double": "f64"}


def scalar_type(dtype: DType, memory: bool = False) -> str:
    if dtypes.is_bool(dtype):
        return "i8" if memory else "i1"
    if dtypes.is_int(dtype):
        return f"i{dtype.bits}"
    found = FLOATS.get(dtype.scalar())
    if found is None:
        raise ValueError(f"LLVM: {dtype.name} has no arithmetic here; it must be legalised to another dtype")
    return found


@functools.cache
def llvm_type(dtype: DType, memory: bool = False) -> str:
    """The LLVM type of a value in a register, or in memory."""
    if isinstance(dtype, PtrDType):
        return "ptr"
    scalar = scalar_type(dtype.scalar(), memory)
    return scalar if dtype.count == 1 else f"<{dtype.count} x {scalar}>"


@functools.cache
def overload(dtype: DType, memory: bool = False) -> str:
    """The type as it stands in the name of an intrinsic."""
    scalar = scalar_type(dtype.scalar(), memory)
    short = _SHORT.get(scalar, scalar)
    return short if dtype.count == 1 else f"v{dtype.count}{short}"


def llvm_literal(value: ConstType, dtype: DType) -> str:
    scalar = dtype.scalar()
    if dtypes.is_bool(scalar):
        text = "true" if value else "false"
    elif dtypes.is_int(scalar):
        text = str(int(value))
    elif scalar is dtypes.float16:
        text = f"0xH{to_bits(value, scalar):04X}"
    else:
        text = "0x" + struct.pack(">d", value).hex().upper()
    return text if dtype.count == 1 else f"splat ({scalar_type(scalar)} {text})"


class Spaces(NamedTuple):
    """The address spaces of a machine, by number.

    Attributes:
      buffers: of arguments.
      shared: of what a work-group shares.
      private: of what a work-item has for itself.
    """

    buffers: int = 0
    shared: int = 0
    private: int = 0

    def number(self, u: UOp) -> int:
        """Where what a pointer leads to is."""
        assert isinstance(u.dtype, PtrDType)
        space = u.dtype.space
        return self.buffers if space is AddrSpace.GLOBAL else self.shared if space is AddrSpace.LOCAL else self.private


FLAT = Spaces()
"""One address space for all."""


def pointer_type(space: int) -> str:
    """The type of a pointer into an address space.

    >>> pointer_type(0), pointer_type(3)
    ('ptr', 'ptr addrspace(3)')
    """
    return f"ptr addrspace({space})" if space else "ptr"


class LLVMText:
    """The text of one function as it grows.

    Args:
      spaces: the machine's address spaces.

    Attributes:
      spaces: the machine's address spaces.
      values: the name of each node's value; of an ACC, of its memory.
      body: lines of the function after its entry.
      declarations: those of the intrinsics that are called.
      metadata: lines of metadata, by their numbers.
      block: the label of the block that is being written.
    """

    def __init__(self, spaces: Spaces = FLAT) -> None:
        self.spaces = spaces
        self.values: dict[UOp, str] = {}
        self.body: list[str] = []
        self.declarations: dict[str, None] = {}
        self.metadata: list[str] = []
        self.block = "entry"
        self._serial = 0

    @property
    def register(self) -> str:
        """The type of a pointer to a register that changes."""
        return pointer_type(self.spaces.private)

    def pointer(self, u: UOp) -> str:
        """The type of a pointer."""
        return pointer_type(self.spaces.number(u))

    def fresh(self, stem: str) -> str:
        """A label or name that is new."""
        self._serial += 1
        return f"{stem}{self._serial}"

    def line(self, text: str) -> None:
        """Writes an instruction that has no value."""
        self.body.append(f"  {text}")

    def emit(self, text: str, stem: str = "t") -> str:
        """An instruction that has a value; returns the value's name."""
        name = f"%{self.fresh(stem)}"
        self.line(f"{name} = {text}")
        return name

    def open_block(self, label: str) -> None:
        """Begins a block."""
        self.body.append(f"{label}:")
        self.block = label

    def call(
        self, intrinsic: str, result: str, *arguments: tuple[str, str], flags: str = "", returned: str = ""
    ) -> str:
        """A call of an intrinsic with (type, value) arguments; ``result`` is its type, ``void`` for none.

        Args:
          flags: of the call, before what it returns.
          returned: attributes of what it returns.
        """
        types = ", ".join(t for t, _ in arguments)
        self.declarations[f"declare {result} @{intrinsic}({types})"] = None
        text = f"call {flags}{returned}{result} @{intrinsic}({', '.join(f'{t} {v}' for t, v in arguments)})"
        if result == "void":
            self.line(text)
            return ""
        return self.emit(text)

    def fresh_metadata(self, text: str) -> int:
        """The number of a new line of metadata."""
        self.metadata.append(f"!{len(self.metadata)} = {text}")
        return len(self.metadata) - 1

    def value(self, u: UOp) -> str:
        """What stands for the node as an operand, here and now."""
        if u.op is UOps.CONST:
            return llvm_literal(u.arg, u.dtype)
        if u.op is UOps.ACC:
            return self.emit(f"load {llvm_type(u.dtype)}, {self.register} {self.values[u]}", "acc")
        return self.values[u]

    def typed(self, u: UOp) -> str:
        """The type and what stands for the node."""
        return f"{llvm_type(u.dtype)} {self.value(u)}"

    def splat(self, value: str, dtype: DType) -> str:
        """A scalar in all lanes of a vector."""
        kind, count = llvm_type(dtype), dtype.count
        one = self.emit(f"insertelement {kind} poison, {llvm_type(dtype.scalar())} {value}, i32 0")
        return self.emit(f"shufflevector {kind} {one}, {kind} poison, <{count} x i32> zeroinitializer")

    def select(self, condition: str, yes: str, no: str, dtype: DType, condition_type: str = "") -> str:
        """A choice; the condition has a bool for each lane where nothing else is said."""
        kind = llvm_type(dtype)
        mask = condition_type or llvm_type(dtypes.bool.vec(dtype.count))
        return self.emit(f"select {mask} {condition}, {kind} {yes}, {kind} {no}")

    def from_memory(self, value: str, dtype: DType) -> str:
        """The register form of what was read from memory."""
        if not dtypes.is_bool(dtype):
            return value
        return self.emit(f"icmp ne {llvm_type(dtype, memory=True)} {value}, zeroinitializer" if dtype.count > 1
                         else f"icmp ne i8 {value}, 0")  # fmt: skip

    def to_memory(self, value: str, dtype: DType) -> str:
        """The memory form of a register."""
        if not dtypes.is_bool(dtype):
            return value
        return self.emit(f"zext {llvm_type(dtype)} {value} to {llvm_type(dtype, memory=True)}")
