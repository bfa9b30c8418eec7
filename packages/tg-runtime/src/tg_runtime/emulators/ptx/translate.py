"""PTX to LLVM IR for the host: a function that runs one thread until it ends or must wait.

A register is an ``alloca``, which LLVM's first pass turns into SSA. Where a thread waits (for its block at a barrier,
for its warp at an exchange) the function stores the registers that are still needed in the thread's *frame* and
returns; called again, it takes them from there and goes on. So a block runs as loops over its threads, one for each
stretch between waits, and a kernel that never waits is a plain function.

A frame holds, in this order: the place to go on at, the mask of those whom the thread waits for, eight words that the
other threads of the warp may read, the registers that live across a wait, the thread's local memory.

Addresses of shared and of local memory are offsets, as on the device; generic ones are the host's own.
"""

from __future__ import annotations

import re

from ...errors import DeviceError
from .emitter import Emitter
from .kinds import PAIRS, PTXType, ptx_type
from .liveness import live_after
from .syntax import (
    Address,
    Function,
    Group,
    Immediate,
    Instruction,
    Label,
    Module,
    Operand,
    Register,
    Symbol,
    Variable,
)

EXIT, BARRIER, WARP, TRAP, RUNNING, STUCK, MISALIGNED = range(7)
FRAME_MASK, FRAME_WORDS, FRAME_REGISTERS = 4, 8, 72
WORDS = 8
# Block state, as the launcher fills it: threads and blocks along x, y, z, and the block's own place.
_STATE = {"ntid": 0, "nctaid": 3, "ctaid": 6}
_ARGUMENTS = "ptr %state, ptr %shared, ptr %frame, i32 %tid.x, i32 %tid.y, i32 %tid.z, i32 %flat"


class PTXUnsupported(DeviceError):
    """The text has an instruction that the translator does not know."""


def align_up(at: int, align: int) -> int:
    """The next multiple of ``align``."""
    return (at + align - 1) // align * align


def offsets(variables: list[Variable], begin: int = 0) -> tuple[dict[str, int], int]:
    """Where variables lie, one after the other, and where they end."""
    found, at = {}, begin
    for variable in variables:
        at = align_up(at, max(variable.align, 1))
        found[variable.name] = at
        at += variable.nbytes
    return found, at


def identifier(name: str) -> str:
    """A PTX name as one of LLVM."""
    return '"' + re.sub(r'["\\]', "_", name) + '"'


class Translation(Emitter):
    """One function while it is translated. Instructions are in the subclasses: a method ``op_<opcode>`` for each.

    Attributes:
      waits: how often a thread may have to wait.
      frame_bytes: size of a frame, known at the end.
      shared_bytes: of the shared memory that the function declares.
      helpers: functions that it calls, by name.
    """

    def __init__(
        self, module: Module, function: Function, declarations: dict[str, None], helpers: dict[str, str]
    ) -> None:
        super().__init__(declarations)
        self.helpers = helpers
        assert function.body is not None
        self.module, self.function, self.code = module, function, function.body
        self.types = {name: ptx_type(kind) for name, kind in function.registers.items()}
        self.waits = 0
        self.allocas = ["%carry = alloca i1"]
        self.at = 0
        self.saved: dict[str, int] = {}
        self._live: list[frozenset[str]] | None = None
        params, self.params_bytes = offsets(function.params)
        self.params = params if function.entry else {}
        declared = [*module.variables.values(), *function.variables]
        fixed = [v for v in declared if v.space == "shared" and v.nbytes]
        self.places, self.shared_bytes = offsets(fixed)
        dynamic = align_up(self.shared_bytes, 16)
        self.places.update({v.name: dynamic for v in declared if v.space == "shared" and not v.nbytes})
        local, self.local_bytes = offsets([v for v in function.variables if v.space == "local"])
        self.places.update(local)
        self.pointers = {v.name: f"%{identifier(v.name)}" for v in function.variables if v.space == "param"}
        if not function.entry:
            self.pointers.update({v.name: f"%{identifier(v.name)}" for v in (*function.returns, *function.params)})

    # the whole function

    def text(self) -> str:
        """The function's definition.

        Raises:
          PTXUnsupported: an instruction is not known; the message shows it.
        """
        for at, item in enumerate(self.code):
            self.at = at
            if isinstance(item, Label):
                self.line(f"br label %{identifier(item.name)}")
                self.open_block(identifier(item.name))
            else:
                self.guarded(item)
        self.line(f"ret i32 {EXIT}")
        function = self.function
        extra = "" if function.entry else "".join(
            f", ptr %{identifier(v.name)}" for v in (*function.returns, *function.params)
        )
        params = "ptr %params, " if function.entry else ""
        resumes = " ".join(f"i32 {k}, label %resume{k}" for k in range(1, self.waits + 1))
        head = [
            f"define internal i32 @{identifier(function.name + '.thread')}({params}{_ARGUMENTS}{extra}) #0 {{",
            "entry:",
            *(f"  %{identifier('r' + name)} = alloca {kind.register}" for name, kind in self.types.items()),
            *(f"  {self.pointers[v.name]} = alloca [{max(v.nbytes, 1)} x i8], align 16"
              for v in function.variables if v.space == "param"),
            *(f"  {line}" for line in self.allocas),
            *self._local(),
        ]  # fmt: skip
        if self.waits:
            head += ["  %resume = load i32, ptr %frame", f"  switch i32 %resume, label %begin [{resumes}]"]
        else:
            head.append("  br label %begin")
        return "\n".join([*head, "begin:", *self.body, "}"]) + "\n"

    def _local(self) -> list[str]:
        if self.waits:
            return [f"  %local = getelementptr i8, ptr %frame, i64 {self.local_begin}"]
        return [f"  %local = alloca [{max(self.local_bytes, 1)} x i8], align 16"]

    @property
    def local_begin(self) -> int:
        """Where local memory begins in a frame."""
        return align_up(FRAME_REGISTERS + 8 * len(self.saved), 16)

    @property
    def frame_bytes(self) -> int:
        """The size of a frame; 0 if the function never waits."""
        return align_up(self.local_begin + self.local_bytes, 16) if self.waits else 0

    def guarded(self, i: Instruction) -> None:
        """An instruction, with its predicate."""
        if i.guard is None:
            self.instruction(i)
            return
        guard = self.read(i.guard, ptx_type("pred"))
        after = self.fresh("after")
        if i.opcode == "bra":
            self.line(f"br i1 {guard}, label %{self.target(i)}, label %{after}")
        else:
            inside = self.fresh("guarded")
            self.line(f"br i1 {guard}, label %{inside}, label %{after}")
            self.open_block(inside)
            self.instruction(i)
            self.line(f"br label %{after}")
        self.open_block(after)

    def instruction(self, i: Instruction) -> None:
        method = getattr(self, f"op_{i.opcode}", None)
        if method is None:
            raise self.unsupported(i)
        method(i)

    def unsupported(self, i: Instruction) -> PTXUnsupported:
        """What to raise for an instruction that is not known."""
        return PTXUnsupported(f"PTX: {self.function.name}, line {i.line}: {i} is not known to the translator")

    # control

    def target(self, i: Instruction) -> str:
        label = i.operands[0]
        assert isinstance(label, Symbol)
        return identifier(label.name)

    def unreachable_rest(self) -> None:
        """Begins a block for what stands after a terminator."""
        self.open_block(self.fresh("dead"))

    def op_bra(self, i: Instruction) -> None:
        self.line(f"br label %{self.target(i)}")
        self.unreachable_rest()

    def op_ret(self, i: Instruction) -> None:
        self.line(f"ret i32 {EXIT}")
        self.unreachable_rest()

    def op_exit(self, i: Instruction) -> None:
        if not self.function.entry:
            raise self.unsupported(i)
        self.op_ret(i)

    def op_trap(self, i: Instruction) -> None:
        self.line(f"ret i32 {TRAP}")
        self.unreachable_rest()

    op_brkpt = op_trap

    def op_call(self, i: Instruction) -> None:
        """Functions take pointers to their results and parameters."""
        groups = [operand for operand in i.operands if isinstance(operand, Group)]
        name = next(operand.name for operand in i.operands if isinstance(operand, Symbol))
        callee = self.module.functions.get(name)
        if callee is None or callee.body is None:
            raise PTXUnsupported(f"PTX: {self.function.name}, line {i.line}: the function {name} is not in the text")
        pointers = [self.pointer(item) for group in groups for item in group.items]
        passed = "".join(f", ptr {pointer}" for pointer in pointers)
        status = self.emit(f"call i32 @{identifier(name + '.thread')}({_ARGUMENTS}{passed})")
        failed, after = self.fresh("failed"), self.fresh("called")
        self.line(f"br i1 {self.emit(f'icmp eq i32 {status}, {EXIT}')}, label %{after}, label %{failed}")
        self.open_block(failed)
        self.line(f"ret i32 {status}")
        self.open_block(after)

    def pointer(self, operand: Operand) -> str:
        if not isinstance(operand, Symbol) or operand.name not in self.pointers:
            raise PTXUnsupported(f"PTX: {self.function.name}: {operand} as an argument of a call")
        return self.pointers[operand.name]

    def wait(self, i: Instruction, status: int) -> None:
        """Stops here until the launcher calls again."""
        if not self.function.entry:
            raise PTXUnsupported(f"PTX: {self.function.name}, line {i.line}: {i} in a function that is called")
        if self._live is None:
            self._live = live_after(self.code, self.function.registers)
        self.waits += 1
        # In name order, so that equal texts give equal IR. What a guard skips keeps its old value: it lives too.
        live = sorted(self._live[self.at] | self.needed(i))
        for name in live:
            kind = self.types[name].register
            slot = self.slot(name)
            self.line(f"store {kind} {self.emit(f'load {kind}, ptr {self.register(name)}')}, ptr {slot}")
        self.line(f"store i32 {self.waits}, ptr %frame")
        self.line(f"ret i32 {status}")
        self.open_block(f"resume{self.waits}")
        for name in live:
            kind = self.types[name].register
            self.line(f"store {kind} {self.emit(f'load {kind}, ptr {self.slot(name)}')}, ptr {self.register(name)}")

    def needed(self, i: Instruction) -> set[str]:
        """The registers that the rest of a waiting instruction still reads."""
        return {o.name for o in i.operands if isinstance(o, Register) and o.name in self.types} | {
            item.name
            for o in i.operands
            if not isinstance(o, Register | Immediate | Symbol | Address)
            for item in o.items
            if isinstance(item, Register) and item.name in self.types
        }

    def slot(self, name: str) -> str:
        offset = FRAME_REGISTERS + 8 * self.saved.setdefault(name, len(self.saved))
        return self.emit(f"getelementptr i8, ptr %frame, i64 {offset}")

    # operands

    def register(self, name: str) -> str:
        return f"%{identifier('r' + name)}"

    def read(self, operand: Operand, kind: PTXType) -> str:
        """An operand as a value of ``kind`` that can be computed with."""
        if isinstance(operand, Immediate):
            return self.immediate(operand, kind)
        if isinstance(operand, Symbol):
            return self.fit(self.address_of(operand.name), "i64", kind)
        if not isinstance(operand, Register):
            raise PTXUnsupported(f"PTX: {self.function.name}: {operand} as a value")
        known = self.types.get(operand.name)
        if known is None:
            value, have = self.special(operand.name)
        else:
            have = known.register
            value = self.emit(f"load {have}, ptr {self.register(operand.name)}")
        value = self.fit(value, have, kind)
        return self.emit(f"xor i1 {value}, true") if operand.negated else value

    def immediate(self, operand: Immediate, kind: PTXType) -> str:
        bits = operand.value
        if kind.kind == "p":
            return "true" if bits else "false"
        if not kind.is_float:
            bits &= (1 << kind.bits) - 1
            return str(bits - (1 << kind.bits) if bits >> (kind.bits - 1) else bits)
        have = f"i{operand.float_bits or kind.bits}"
        if operand.float_bits == 64 and kind.name != "f64":  # a decimal number
            return self.emit(f"fptrunc double {self.emit(f'bitcast i64 {bits} to double')} to float")
        return self.fit(str(bits), have, kind)

    def fit(self, value: str, have: str, kind: PTXType) -> str:
        """A register's content, of the LLVM type ``have``, as a value of ``kind``."""
        if have == kind.llvm and kind.name not in ("f16", "bf16"):
            return value
        if have in ("float", "double"):
            have, value = (word := "i32" if have == "float" else "i64"), self.emit(f"bitcast {have} {value} to {word}")
        width = int(have[1:])
        if width > kind.bits:
            value = self.emit(f"trunc {have} {value} to i{kind.bits}")
        elif width < kind.bits:
            value = self.emit(f"zext {have} {value} to i{kind.bits}")
        if not kind.is_float:
            return value
        if kind.name in PAIRS:
            return self.unpack(value, PAIRS[kind.name])
        if kind.bits == 16:
            return self.half_to_float(value) if kind.name == "f16" else self.bfloat_to_float(value)
        return self.emit(f"bitcast i{kind.bits} {value} to {kind.llvm}")

    def unpack(self, value: str, half: str) -> str:
        """Two 16-bit floats in an i32, as a vector of floats; the low half first."""
        found = "poison"
        for lane in range(2):
            bits = self.emit(f"trunc i32 {value if lane == 0 else self.emit(f'lshr i32 {value}, 16')} to i16")
            number = self.half_to_float(bits) if half == "f16" else self.bfloat_to_float(bits)
            found = self.emit(f"insertelement <2 x float> {found}, float {number}, i32 {lane}")
        return found

    def write(self, operand: Operand, kind: PTXType, value: str) -> None:
        """Sets a register to a computed value of ``kind``."""
        if isinstance(operand, Register | Symbol) and operand.name == "_":
            return
        if not isinstance(operand, Register) or operand.name not in self.types:
            raise PTXUnsupported(f"PTX: {self.function.name}: {operand} as a destination")
        want = self.types[operand.name].register
        value, have = self.bits(value, kind)
        if have != want:
            value = self.recast(value, have, want, kind.signed)
        self.line(f"store {want} {value}, ptr {self.register(operand.name)}")

    def bits(self, value: str, kind: PTXType) -> tuple[str, str]:
        """A computed value as it is kept, and its LLVM type."""
        if kind.name in PAIRS:
            halves = []
            for lane in range(2):
                number = self.emit(f"extractelement <2 x float> {value}, i32 {lane}")
                narrow = self.float_to_half(number) if PAIRS[kind.name] == "f16" else self.float_to_bfloat(number)
                halves.append(self.emit(f"zext i16 {narrow} to i32"))
            return self.emit(f"or i32 {halves[0]}, {self.emit(f'shl i32 {halves[1]}, 16')}"), "i32"
        if kind.name == "f16":
            return self.float_to_half(value), "i16"
        if kind.name == "bf16":
            return self.float_to_bfloat(value), "i16"
        return value, kind.llvm

    def recast(self, value: str, have: str, want: str, signed: bool) -> str:
        """Bits of one LLVM type as another; integers grow by their sign."""
        if want in ("float", "double"):
            word = "i32" if want == "float" else "i64"
            if have != word:
                value = self.recast(value, have, word, signed)
            return self.emit(f"bitcast {word} {value} to {want}")
        if have in ("float", "double"):
            word = "i32" if have == "float" else "i64"
            value, have = self.emit(f"bitcast {have} {value} to {word}"), word
            if have == want:
                return value
        instruction = "trunc" if int(have[1:]) > int(want[1:]) else "sext" if signed else "zext"
        return self.emit(f"{instruction} {have} {value} to {want}")

    def special(self, name: str) -> tuple[str, str]:
        """A special register and its LLVM type."""
        stem, _, axis = name[1:].partition(".")
        if stem == "tid" and axis:
            return f"%tid.{axis}", "i32"
        if stem in _STATE and axis:
            place = self.emit(f"getelementptr i32, ptr %state, i64 {_STATE[stem] + 'xyz'.index(axis)}")
            return self.emit(f"load i32, ptr {place}"), "i32"
        lane = self.emit("and i32 %flat, 31") if stem.startswith("lane") else ""
        match stem:
            case "laneid":
                return lane, "i32"
            case "warpid":
                return self.emit("lshr i32 %flat, 5"), "i32"
            case "lanemask_eq" | "lanemask_lt" | "lanemask_le" | "lanemask_gt" | "lanemask_ge":
                return self.lane_mask(stem[-2:], lane), "i32"
            case "clock" | "clock_hi" | "smid" | "gridid" | "nwarpid":
                return "0", "i32"
            case "nsmid":
                return "1", "i32"
            case "clock64" | "globaltimer":
                return self.call("llvm.readcyclecounter", "i64"), "i64"
        raise PTXUnsupported(f"PTX: {self.function.name}: {name} is no register that is known")

    def lane_mask(self, which: str, lane: str) -> str:
        one = self.emit(f"shl i32 1, {lane}")
        below = self.emit(f"sub i32 {one}, 1")
        match which:
            case "eq":
                return one
            case "lt":
                return below
            case "le":
                return self.emit(f"or i32 {one}, {below}")
            case "gt":
                return self.emit(f"xor i32 {self.emit(f'or i32 {one}, {below}')}, -1")
        return self.emit(f"xor i32 {below}, -1")

    def address_of(self, name: str) -> str:
        """The address of a variable in its own space, as an i64."""
        if name in self.places:
            return str(self.places[name])
        if name in self.module.variables:
            return self.emit(f"ptrtoint ptr @{identifier(name)} to i64")
        if name in self.params:
            return self.emit(f"ptrtoint ptr {self.memory(Address(Symbol(name)), 'param')} to i64")
        raise PTXUnsupported(f"PTX: {self.function.name}: {name} is not declared")

    def memory(self, operand: Operand, space: str) -> str:
        """An address as an LLVM pointer."""
        assert isinstance(operand, Address)
        base, offset = operand.base, operand.offset
        if isinstance(base, Symbol) and base.name in self.pointers:
            return self.emit(f"getelementptr i8, ptr {self.pointers[base.name]}, i64 {offset}")
        if isinstance(base, Symbol) and base.name in self.params:
            return self.emit(f"getelementptr i8, ptr %params, i64 {self.params[base.name] + offset}")
        if base is None:
            number = str(offset)
        else:
            number = self.read(base, ptx_type("u64"))
            if offset:
                number = self.emit(f"add i64 {number}, {offset}")
        if space in ("shared", "local"):
            return self.emit(f"getelementptr i8, ptr %{space}, i64 {number}")
        return self.emit(f"inttoptr i64 {number} to ptr")
