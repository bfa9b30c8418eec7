"""Words and operators that languages like C share: short names of dtypes, numbers, parentheses."""

from __future__ import annotations

from tg_dtype import DType, dtypes
from tg_lazy import LINEAR, Ops

BINARY = {
    Ops.ADD: "+", Ops.SUB: "-", Ops.MUL: "*", Ops.FDIV: "/", Ops.AND: "&", Ops.OR: "|", Ops.XOR: "^", Ops.SHL: "<<",
    Ops.SHR: ">>", Ops.CMPLT: "<", Ops.CMPEQ: "==", Ops.CMPNE: "!=",
}  # fmt: skip
# On bools. Those that are not here take the dtype-independent way.
LOGIC = {
    Ops.ADD: "|", Ops.MAX: "|", Ops.OR: "|", Ops.MUL: "&", Ops.AND: "&", Ops.IDIV: "&", Ops.SUB: "^", Ops.XOR: "^",
    Ops.CMPNE: "^",
}  # fmt: skip
WRAPPING = LINEAR.intersection(BINARY)
"""Operators whose result, of integers, may lie outside of their dtype: it is what its low bits say."""


def on_bools(op: Ops, v: list[str], *, xor: str = "^", false: str = "0") -> str | None:
    """An op on bools; None where it takes the way of other dtypes.

    Args:
      op: the op.
      v: the operands.
      xor: the operator that tells whether bools differ.
      false: the constant.
    """
    if op in LOGIC:
        return f"({v[0]} {xor if LOGIC[op] == '^' else LOGIC[op]} {v[1]})"
    match op:
        case Ops.NEG:
            return v[0]
        case Ops.NOT:
            return f"(!{v[0]})"
        case Ops.CMPLT:
            return f"(!{v[0]} & {v[1]})"
        case Ops.CMPEQ:
            return f"({v[0]} == {v[1]})"
        case Ops.MOD:
            return false
        case Ops.MULACC:
            return f"(({v[0]} & {v[1]}) | {v[2]})"
    return None


def short(dtype: DType) -> str:
    """The dtype in a few letters, for names of types and helpers: ``f32``, ``u8``, ``i32x4``."""
    kind = {"float": "f", "int": "i", "uint": "u", "bool": "b"}[dtype.kind]
    name = f"{kind}{dtype.bits if dtype.kind != 'bool' else ''}"
    return name if dtype.count == 1 else f"{name}x{dtype.count}"


def unsigned(dtype: DType) -> DType:
    """The unsigned integer of the same width and lanes."""
    return {8: dtypes.uint8, 16: dtypes.uint16, 32: dtypes.uint32, 64: dtypes.uint64}[dtype.bits].vec(dtype.count)


def signed(dtype: DType) -> DType:
    """The signed integer of the same width and lanes; a bool counts as 8 bits."""
    return {1: dtypes.int8, 8: dtypes.int8, 16: dtypes.int16, 32: dtypes.int32, 64: dtypes.int64}[dtype.bits].vec(
        dtype.count
    )


def stored(dtype: DType) -> DType:
    """The dtype as it lies in memory: a bool is an unsigned byte."""
    return dtypes.uint8.vec(dtype.count) if dtypes.is_bool(dtype) else dtype


def decimal(value: float) -> str:
    """A finite float exactly, in decimal where that is short, else in hexadecimal."""
    text = f"{value:.6g}"
    if float(text) != value:
        return f"{value:.1f}" if value.is_integer() and abs(value) < 1e16 else value.hex()
    return text if "." in text or "e" in text else f"{text}.0"


def bare(text: str) -> str:
    """The text without a pair of parentheses around all of it."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth == 0 and i < len(text) - 1:
            return text
    return text[1:-1]
