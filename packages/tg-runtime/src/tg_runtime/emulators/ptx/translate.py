"""PTX to LLVM IR for the host: a function that runs one thread until it ends or must wait.

Where a thread waits (for its block at a barrier, for its warp at an exchange) the function stores the registers that
are still needed in the thread's frame (:mod:`.convention`) and returns; called again, it takes them from there and goes
on. So a block runs as loops over its threads, one for each stretch between waits, and a kernel that never waits is a
plain function.

A :class:`Translation` holds what all instructions stand on, and one translator for each family of them.
"""

from __future__ import annotations

from collections.abc import Callable

from .addresses import Addresses
from .atomics import Atomics
from .bits import Bits
from .comparison import Comparison
from .control import Control
from .convention import ARGUMENTS, EXIT, identifier
from .conversion import Conversion
from .copies import Copies
from .emitter import Emitter
from .errors import unsupported
from .exchange import Exchange
from .functions import Functions
from .kinds import ptx_type
from .moves import Moves
from .operands import Operands, register
from .special import Special
from .storage import Storage
from .sums import Sums
from .syntax import Function, Instruction, Label, Module
from .tensor import Tensor
from .transfer import Transfer
from .waits import Waits
from .warp import Warp


class Translation:
    """One function while it is translated; see :class:`~.whole.Whole`.

    Attributes:
      opcodes: what translates an instruction, by its opcode: the methods ``op_<opcode>`` of the families.
    """

    def __init__(
        self, module: Module, function: Function, declarations: dict[str, None], helpers: dict[str, str]
    ) -> None:
        assert function.body is not None
        self.module, self.function, self.helpers = module, function, helpers
        self.ir = Emitter(declarations)
        self.ir.allocas.append("%carry = alloca i1")
        self.storage = Storage(self.ir, module, function)
        special = Special(self.ir, function)
        self.operands = Operands(self.ir, function, self.storage, special)
        self.addresses = Addresses(self.ir, function, self.operands, self.storage)
        self.waits = Waits(self.ir, function, self.operands, self.storage)
        self.exchange = Exchange(self.ir, self.operands, special, self.waits)
        self.control = Control(self)
        families = (
            self.control, Sums(self), Functions(self), Bits(self), Comparison(self), Moves(self), Conversion(self),
            Transfer(self), Atomics(self), Warp(self), Tensor(self), Copies(self),
        )  # fmt: skip
        self.opcodes: dict[str, Callable[[Instruction], None]] = {}
        for family in families:
            for name in dir(family):
                if name.startswith("op_"):
                    assert name[3:] not in self.opcodes, f"{name[3:]} is translated by two families"
                    self.opcodes[name[3:]] = getattr(family, name)

    def text(self) -> str:
        """The function's definition.

        Raises:
          PTXUnsupported: if an instruction is not known; the message shows it.
        """
        for at, item in enumerate(self.waits.code):
            self.waits.at = at
            if isinstance(item, Label):
                self.ir.line(f"br label %{identifier(item.name)}")
                self.ir.open_block(identifier(item.name))
            else:
                self.guarded(item)
        self.ir.line(f"ret i32 {EXIT}")
        function = self.function
        extra = "" if function.entry else "".join(
            f", ptr %{identifier(v.name)}" for v in (*function.returns, *function.params)
        )
        params = "ptr %params, " if function.entry else ""
        resumes = " ".join(f"i32 {k}, label %resume{k}" for k in range(1, self.waits.count + 1))
        head = [
            f"define internal i32 @{identifier(function.name + '.thread')}({params}{ARGUMENTS}{extra}) #0 {{",
            "entry:",
            *(f"  {register(name)} = alloca {kind.register}" for name, kind in self.operands.types.items()),
            *(f"  {self.storage.pointers[v.name]} = alloca [{max(v.nbytes, 1)} x i8], align 16"
              for v in function.variables if v.space == "param"),
            *(f"  {line}" for line in self.ir.allocas),
            *self._local(),
        ]  # fmt: skip
        if self.waits.count:
            head += ["  %resume = load i32, ptr %frame", f"  switch i32 %resume, label %begin [{resumes}]"]
        else:
            head.append("  br label %begin")
        return "\n".join([*head, "begin:", *self.ir.body, "}"]) + "\n"

    def _local(self) -> list[str]:
        if self.waits.count:
            return [f"  %local = getelementptr i8, ptr %frame, i64 {self.waits.local_begin}"]
        return [f"  %local = alloca [{max(self.storage.local_bytes, 1)} x i8], align 16"]

    def guarded(self, i: Instruction) -> None:
        """An instruction, with its predicate."""
        if i.guard is None:
            self.instruction(i)
            return
        guard = self.operands.read(i.guard, ptx_type("pred"))
        after = self.ir.fresh("after")
        if i.opcode == "bra":
            self.ir.line(f"br i1 {guard}, label %{self.control.target(i)}, label %{after}")
        else:
            inside = self.ir.fresh("guarded")
            self.ir.line(f"br i1 {guard}, label %{inside}, label %{after}")
            self.ir.open_block(inside)
            self.instruction(i)
            self.ir.line(f"br label %{after}")
        self.ir.open_block(after)

    def instruction(self, i: Instruction) -> None:
        translate = self.opcodes.get(i.opcode)
        if translate is None:
            raise unsupported(self.function, i)
        translate(i)
