"""Copies that a device makes beside the threads."""

from __future__ import annotations

from .errors import unsupported
from .kinds import ptx_type
from .syntax import Immediate, Instruction
from .whole import Whole

_U64 = ptx_type("u64")



class Copies:
    """Translates ``cp.async``."""

    def __init__(self, whole: Whole) -> None:
        self.whole, self.ir, self.operands, self.addresses = whole, whole.ir, whole.operands, whole.addresses

    def op_cp(self, i: Instruction) -> None:
        """Copies that the device makes beside the threads are made at once."""
        if i.modifiers[0] != "async" or "bulk" in i.modifiers or "mbarrier" in i.modifiers:
            raise unsupported(self.whole.function, i)
        if i.modifiers[1] in ("commit_group", "wait_group", "wait_all"):
            return
        target, source, size = i.operands[:3]
        if not isinstance(size, Immediate):
            raise unsupported(self.whole.function, i)
        self.addresses.check_alignment(i, target, size.value, "shared")
        self.addresses.check_alignment(i, source, size.value, "global")
        into, of = self.addresses.place(i, target, 0, "shared"), self.addresses.place(i, source, 0, "global")
        whole = str(size.value)
        given = whole if len(i.operands) < 4 else self.operands.read(i.operands[3], _U64)
        # What is not read is zero.
        self.ir.call("llvm.memset.p0.i64", "void", ("ptr", into), ("i8", "0"), ("i64", whole), ("i1", "false"))
        self.ir.call("llvm.memcpy.p0.p0.i64", "void", ("ptr", into), ("ptr", of), ("i64", given), ("i1", "false"))
