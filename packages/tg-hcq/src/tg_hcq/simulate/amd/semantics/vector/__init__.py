"""Arithmetic of lanes. Floats: round to nearest even, subnormals kept, as ``machine`` demands of the mode."""

from __future__ import annotations

from ....engine import F32, I32, I64, MASK, Emitter, InstructionSet, Value, either, vector
from ...architecture import Architecture


def add(to: InstructionSet, arch: Architecture) -> None:
    """Adds the handlers of this subject."""
    for op in ("and", "or", "xor"):
        to.vector(f"v_{op}_b32", lambda e, x, y, op=op: e.binary(op, x, y), [vector()], [either(), either()])
    for op in ("add", "sub"):
        to.vector(f"v_{op}_nc_u32", lambda e, x, y, op=op: e.binary(op, x, y), [vector()], [either(), either()])
    for name, op in (("lshlrev_b", "shl"), ("lshrrev_b", "lshr"), ("ashrrev_i", "ashr")):
        to.vector(f"v_{name}32", lambda e, n, x, op=op: e.binary(op, x, n & 31), [vector()], [either(), either()])
        to.vector(f"v_{name}64", lambda e, n, x, op=op: e.binary(op, x, e.convert("zext", n & 63, I64)),
                  [vector(I64)], [either(), either(I64)])  # fmt: skip
    to.vector("v_mov_b32", lambda e, x: x, [vector()], [either()])
    to.vector("v_lshl_or_b32", lambda e, x, n, y: x << (n & 31) | y, [vector()], [either()] * 3)
    to.vector("v_lshl_add_u32", lambda e, x, n, y: (x << (n & 31)) + y, [vector()], [either()] * 3)
    to.vector("v_add_co_u32", _add, [vector(), MASK], [either(), either()])
    to.vector("v_add_co_ci_u32", _add_carry, [vector(), MASK], [either(), either(), MASK])
    for how in ("eq", "ne", "lt", "le", "gt", "ge"):
        for sign in "iu":
            test = how if how in ("eq", "ne") else ("s" if sign == "i" else "u") + how
            to.vector(f"v_cmp_{how}_{sign}32", lambda e, x, y, test=test: e.compare(test, x, y),
                      [MASK], [either(), either()])  # fmt: skip
    for op in ("add", "sub", "mul"):
        to.vector(f"v_{op}_f32", lambda e, x, y, op=f"f{op}": e.binary(op, x, y), [vector(F32)], [either(F32)] * 2)


def _add(e: Emitter, x: Value, y: Value) -> tuple[Value, Value]:
    total = x + y
    return total, e.compare("ult", total, x)


def _add_carry(e: Emitter, x: Value, y: Value, carry: Value) -> tuple[Value, Value]:
    total = e.convert("zext", x, I64) + e.convert("zext", y, I64) + e.convert("zext", carry, I64)
    return e.convert("trunc", total, I32), e.compare("ne", total >> 32, 0)
