"""PTX types, and the LLVM types in which their values are kept and computed with.

A 16-bit float is kept as its bits and computed with as float: float has digits enough for a second rounding to change
nothing in a sum, product, quotient or square root.
"""

from __future__ import annotations

from typing import NamedTuple

from .syntax import Instruction

_ROUNDING = frozenset({"rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi"})
FLOATS = frozenset({"f16", "bf16", "f32", "f64"})
PAIRS = {"f16x2": "f16", "bf16x2": "bf16"}
_LLVM_FLOATS = {"f16": "float", "bf16": "float", "tf32": "float", "f32": "float", "f64": "double"}
_OVERLOADS = {"float": "f32", "double": "f64", "<2 x float>": "v2f32", "<2 x double>": "v2f64"}


class PTXType(NamedTuple):
    """A type: ``kind`` is one of s, u, b, f, p; ``bits`` its size."""

    name: str
    kind: str
    bits: int

    @property
    def is_float(self) -> bool:
        """Whether it is computed with as a float or a pair of them."""
        return self.kind == "f"

    @property
    def signed(self) -> bool:
        """Whether it is a signed integer."""
        return self.kind == "s"

    @property
    def llvm(self) -> str:
        """The LLVM type of a value that is computed with."""
        if self.name in PAIRS:
            return "<2 x float>"
        return _LLVM_FLOATS.get(self.name) or ("i1" if self.kind == "p" else f"i{self.bits}")

    @property
    def register(self) -> str:
        """The LLVM type in which a register of this type is kept."""
        return {"f32": "float", "f64": "double", "pred": "i1"}.get(self.name, f"i{self.bits}")

    @property
    def raw(self) -> PTXType:
        """The type of the same size without a meaning, for what only moves."""
        return self if self.name in ("f32", "f64", "pred") or self.kind != "f" else ptx_type(f"b{self.bits}")


def ptx_type(name: str) -> PTXType:
    """The type of that name.

    >>> ptx_type("f16x2").llvm, ptx_type("s8").register
    ('<2 x float>', 'i8')

    Raises:
      ValueError: if there is none.
    """
    if name == "pred":
        return PTXType(name, "p", 1)
    if name in PAIRS:
        return PTXType(name, "f", 32)
    if name in ("bf16", "tf32"):
        return PTXType(name, "f", 16 if name == "bf16" else 32)
    if name[:1] in "subf" and name[1:] in ("8", "16", "32", "64", "128"):
        return PTXType(name, name[0], int(name[1:]))
    raise ValueError(f"PTX: .{name} is no type that is known")


def overload(llvm: str) -> str:
    """How an LLVM type is written in the name of an intrinsic."""
    return _OVERLOADS.get(llvm, llvm)


def kind_of(i: Instruction) -> PTXType:
    """The type that an instruction states last."""
    return ptx_type(i.modifiers[-1])


def rounding(i: Instruction, default: str = "rn") -> str:
    """The rounding that an instruction states."""
    return next((m for m in i.modifiers if m in _ROUNDING), default)
