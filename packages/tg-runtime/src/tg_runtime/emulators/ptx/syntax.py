"""What a PTX module is made of, as the parser gives it.

Names are unique within a function: what a nested block declares is renamed, so the blocks are gone.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Register:
    """A register, or a special one such as ``%tid.x``; ``negated`` for ``!%p1``."""

    name: str
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Immediate:
    """A constant: an integer, or the bits of a float of ``float_bits`` bits."""

    value: int
    float_bits: int = 0


@dataclass(frozen=True, slots=True)
class Symbol:
    """The name of a variable, function or label."""

    name: str


@dataclass(frozen=True, slots=True)
class Address:
    """``[base+offset]``; the base is a register or a variable, or None for an absolute address."""

    base: Register | Symbol | None
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Vector:
    """``{a, b, …}``."""

    items: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """``(a, b, …)``, the operands of a call."""

    items: tuple[Operand, ...]


Operand = Register | Immediate | Symbol | Address | Vector | Group


@dataclass(frozen=True, slots=True)
class Instruction:
    """An instruction.

    Attributes:
      opcode: ``ld`` of ``ld.global.v2.f32``.
      modifiers: the rest of it, without the dots.
      operands: in order, destination first; ``%p1|%p2`` are two.
      guard: the predicate, if there is one.
      line: where it stands in the text, from 1.
    """

    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Register | None = None
    line: int = 0

    def __str__(self) -> str:
        return ".".join((self.opcode, *self.modifiers))


@dataclass(frozen=True, slots=True)
class Label:
    """A place to branch to."""

    name: str


@dataclass(frozen=True, slots=True)
class Variable:
    """Memory with a name.

    Attributes:
      space: ``param``, ``global``, ``const``, ``shared`` or ``local``.
      type: of an element: ``b8``, ``u64`` …
      nbytes: size; 0 for one whose size the launch decides.
      align: bytes.
      initial: content, or None.
    """

    name: str
    space: str
    type: str
    nbytes: int
    align: int
    initial: bytes | None = None


@dataclass(slots=True)
class Function:
    """A function; an entry is a kernel.

    Attributes:
      params: in order.
      returns: of a function that is no entry.
      registers: type of each, ``b32`` …
      variables: shared, local and parameter memory that it declares.
      body: None for a declaration.
      max_threads: most threads along x, y, z, if the kernel says so.
    """

    name: str
    entry: bool
    params: list[Variable]
    returns: list[Variable] = field(default_factory=list)
    registers: dict[str, str] = field(default_factory=dict)
    variables: list[Variable] = field(default_factory=list)
    body: list[Instruction | Label] | None = None
    max_threads: tuple[int, int, int] | None = None


@dataclass(slots=True)
class Module:
    """A whole text."""

    version: str = ""
    target: str = ""
    functions: dict[str, Function] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
