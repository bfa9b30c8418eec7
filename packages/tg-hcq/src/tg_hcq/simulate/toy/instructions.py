"""The toy's instructions: one template for each shape, another operator for each row.

Registers are 64 scalar words ``s``, the condition ``scc``, 64-bit masks ``m0`` to ``m3`` and 64 vector registers ``v``.
Waves have 32 or 64 lanes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..engine import state
from ..engine.emitter import MASK, Emitter, Operand, either, scalar, vector
from ..engine.handlers import Semantics
from ..engine.instruction_set import InstructionSet
from ..engine.ir import F16, F32, F64, I8, I16, I32, I64, Type, Value
from ..engine.state import FaultKind, Operation, Scope, Space, Status
from ..engine.transfers import Shape

TOY = InstructionSet("toy", {"s": 64, "scc": 1, "m": 8}, vectors=64)
LOADED, SHARED_LOADED, SCALAR_LOADED = range(3)
"""Counters of what is not waited for yet."""


def _binary(op: str) -> Semantics:
    return lambda b, x, y: b.binary(op, x, y)


def _shift(op: str) -> Semantics:
    return lambda b, x, y: b.binary(op, x, y & (x.type.bits - 1))


def _intrinsic(name: str) -> Semantics:
    return lambda b, *arguments: b.intrinsic(name, *arguments)


def _compare(how: str) -> Semantics:
    return lambda b, x, y: b.compare(how, x, y)


def _mul_hi(extend: str) -> Semantics:
    def semantics(b: Emitter, x: Value, y: Value) -> Value:
        product = b.convert(extend, x, I64) * b.convert(extend, y, I64)
        return b.convert("trunc", product >> 32, I32)

    return semantics


def _add_carry(b: Emitter, x: Value, y: Value) -> tuple[Value, Value]:
    total = x + y
    return total, b.compare("ult", total, x)


def _add_with_carry(b: Emitter, x: Value, y: Value, carry: Value) -> tuple[Value, Value]:
    total = b.convert("zext", x, I64) + b.convert("zext", y, I64) + b.convert("zext", carry, I64)
    return b.convert("trunc", total, I32), b.compare("ne", total >> 32, 0)


def _condition(how: str) -> Semantics:
    return lambda b, x, y: b.convert("zext", b.compare(how, x, y), I32)


def _to_int(op: str, kind: Type) -> Semantics:
    def semantics(b: Emitter, x: Value) -> Value:
        result = kind.of(x.type.lanes)
        return b.intrinsic(f"{op}.sat.{result.mangled}", x, result=result)

    return semantics


INTEGERS: dict[str, Semantics] = {
    **{name: _binary(name) for name in ("add", "sub", "mul", "and", "or", "xor")},
    **{name: _shift(name) for name in ("shl", "lshr", "ashr")},
    **{name: _intrinsic(name) for name in ("smin", "smax", "umin", "umax")},
}
FLOATS: dict[str, Semantics] = {name: _binary(name) for name in ("fadd", "fsub", "fmul", "fdiv")}
COMPARISONS = {
    **dict.fromkeys(("i16", "i32", "i64"), ("eq", "ne", "ult", "ule", "slt", "sle")),
    **dict.fromkeys(("f16", "f32", "f64"), ("oeq", "olt", "ole", "une", "uno")),
}
TYPES = {"i8": I8, "i16": I16, "i32": I32, "i64": I64, "f16": F16, "f32": F32, "f64": F64}

for _name, _semantics in INTEGERS.items():
    for _type in ("i16", "i32", "i64"):
        _kind = TYPES[_type]
        TOY.vector(f"v_{_name}_{_type}", _semantics, [vector(_kind)], [either(_kind), either(_kind)])
    for _type in ("i32", "i64"):
        _kind = TYPES[_type]
        TOY.scalar(f"s_{_name}_{_type}", _semantics, [scalar(_kind)], [scalar(_kind), scalar(_kind)])
for _type in ("f16", "f32", "f64"):
    _kind = TYPES[_type]
    for _name, _semantics in FLOATS.items():
        TOY.vector(f"v_{_name}_{_type}", _semantics, [vector(_kind)], [either(_kind), either(_kind)])
    TOY.vector(f"v_fma_{_type}", _intrinsic("fma"), [vector(_kind)], [either(_kind)] * 3)
    TOY.vector(f"v_sqrt_{_type}", _intrinsic("sqrt"), [vector(_kind)], [either(_kind)])
for _type, _names in COMPARISONS.items():
    for _name in _names:
        TOY.vector(f"v_cmp_{_name}_{_type}", _compare(_name), [MASK], [either(TYPES[_type]), either(TYPES[_type])])
for _name in COMPARISONS["i32"]:
    TOY.scalar(f"s_cmp_{_name}_i32", _condition(_name), [scalar()], [scalar(), scalar()])
for _op, _from, _to in (
    ("uitofp", "i32", "f32"), ("sitofp", "i32", "f32"), ("fpext", "f16", "f32"), ("fptrunc", "f32", "f16"),
    ("fpext", "f32", "f64"), ("fptrunc", "f64", "f32"), ("sext", "i8", "i32"), ("zext", "i16", "i32"),
):  # fmt: skip
    TOY.vector(
        f"v_{_op}_{_from}_{_to}", lambda b, x, op=_op, to=TYPES[_to]: b.convert(op, x, to),
        [vector(TYPES[_to])], [either(TYPES[_from])],
    )  # fmt: skip
for _name in ("fptosi", "fptoui"):
    TOY.vector(f"v_{_name}_f32_i32", _to_int(_name, I32), [vector()], [either(F32)])
TOY.vector("v_mov_i32", lambda b, x: x, [vector()], [either()])
TOY.vector("v_mul_hi_u32", _mul_hi("zext"), [vector()], [either(), either()])
TOY.vector("v_mul_hi_i32", _mul_hi("sext"), [vector()], [either(), either()])
TOY.vector("v_add_carry_i32", _add_carry, [vector(), MASK], [either(), either()])
TOY.vector("v_add_with_carry_i32", _add_with_carry, [vector(), MASK], [either(), either(), MASK])
TOY.vector("v_select_i32", lambda b, m, x, y: b.select(m, x, y), [vector()], [MASK, either(), either()])
TOY.scalar("s_mov_i32", lambda b, x: x, [scalar()], [scalar()])
TOY.scalar("s_mov_i64", lambda b, x: x, [scalar(I64)], [scalar(I64)])
TOY.scalar("s_not_i64", lambda b, x: ~x, [scalar(I64)], [scalar(I64)])


def _read_lane(b: Emitter) -> None:
    lane = b.convert("zext", b.read(2) & (b.layout.lanes - 1), I64)
    row = b.slot(1)
    b.check(row, 1)
    b.write(0, b.load(I32, b.at("%w", b.convert("zext", row, I64) + (lane << 2))))
    b.go_on()


def _permute(b: Emitter) -> None:
    """Each active lane takes the lane that its index names, by a copy of the row: it may be read and written."""
    source = b.slot(1)
    b.check(source, 1)
    lanes = f"<{b.layout.lanes} x i32>"
    whole = I32.of(b.layout.lanes)
    row = b.load(whole, b.at("%w", b.convert("zext", source, I64)), 4)
    copy = b.emit(I64, f"alloca {lanes}").text
    b.store(row, copy)
    b.check(b.slot(2), 1)
    index = b.load(whole, b.at("%w", b.convert("zext", b.slot(2), I64)), 4) & (b.layout.lanes - 1)
    result = b.load(whole, b.at("%w", b.convert("zext", b.slot(0), I64)), 4)
    mask = b.convert("trunc", b.exec(), Type("i", b.layout.lanes))
    for lane in range(b.layout.lanes):
        at = b.emit(I32, f"extractelement {whole} {index.text}, i32 {lane}")
        one = b.load(I32, b.at(copy, b.convert("zext", at << 2, I64)))
        bit = b.compare("ne", mask & (1 << lane), 0)
        old = b.emit(I32, f"extractelement {whole} {result.text}, i32 {lane}")
        result = b.emit(whole, f"insertelement {whole} {result.text}, i32 {b.select(bit, one, old).text}, i32 {lane}")
    b.store(result, b.at("%w", b.convert("zext", b.slot(0), I64)), 4)
    b.go_on()


def _branch(taken: Callable[[Emitter], Value]) -> Callable[[Emitter], None]:
    def body(b: Emitter) -> None:
        test = taken(b)
        b.do(f"br i1 {test.text}, label %taken, label %not.taken")
        b.label("taken")
        b.jump(b.immediate())
        b.label("not.taken")
        b.go_on()

    return body


def _call(b: Emitter) -> None:
    """The address of the next instruction goes to a pair of scalars."""
    b.write(0, b.following())
    b.jump(b.immediate())


def _waits(b: Emitter) -> None:
    if b.hostile:
        b.stop(Status.WAIT)
    else:
        b.go_on()


def _drop(b: Emitter) -> None:
    if b.hostile:
        b.stop(Status.HOST)
    else:
        b.go_on()


def _set_exec(op: str) -> Callable[[Emitter], None]:
    """Saves the mask in a scalar pair or a mask and narrows it, as branches of a divergent program begin."""

    def body(b: Emitter) -> None:
        old = b.exec()
        lanes = Type("i", b.layout.lanes)
        mask = b.convert("zext", b.read(1, lanes), I64)
        b.write(0, b.convert("trunc", old, lanes))
        b.set_field(state.EXEC, b.binary(op, old, mask))
        b.go_on()

    return body


def _restore_exec(b: Emitter) -> None:
    b.set_field(state.EXEC, b.convert("zext", b.read(0, Type("i", b.layout.lanes)), I64))
    b.go_on()


TOY.control("v_read_lane", _read_lane)
TOY.control("v_permute", _permute)
TOY.control("s_branch", lambda b: b.jump(b.immediate()))
TOY.control("s_branch_scc1", _branch(lambda b: b.compare("ne", b.read(0), 0)))
TOY.control("s_branch_scc0", _branch(lambda b: b.compare("eq", b.read(0), 0)))
TOY.control("s_branch_exec0", _branch(lambda b: b.compare("eq", b.exec(), 0)))
TOY.control("s_call", _call)
TOY.control("s_jump", lambda b: b.jump(b.read(0, I64)))
TOY.control("s_and_exec", _set_exec("and"))
TOY.control("s_xor_exec", _set_exec("xor"))
TOY.control("s_set_exec", _restore_exec)
TOY.control("s_barrier", lambda b: b.barrier())
TOY.control("s_end", lambda b: b.stop(Status.ENDED))
TOY.control("s_wait", _waits)
TOY.control("s_drop_cache", _drop)
TOY.control("s_signal", lambda b: b.barrier(wait=False))
TOY.control("s_await", lambda b: b.barrier(signal=False))
TOY.control("s_trap", lambda b: b.fault(FaultKind.TRAP))


def _global(b: Emitter, address: Value) -> Value:
    """A 64-bit address and the immediate."""
    return address + b.immediate()


def _offset(b: Emitter, offset: Value) -> Value:
    """A 32-bit offset and the immediate."""
    return b.convert("zext", offset, I64) + b.immediate()


_SPACES: dict[str, tuple[Space, Semantics, Operand, int]] = {
    "global": (Space.GLOBAL, _global, either(I64), LOADED),
    "shared": (Space.SHARED, _offset, either(), SHARED_LOADED),
    "scratch": (Space.SCRATCH, _offset, either(), LOADED),
}
ATOMICS = ("add", "sub", "and", "or", "xor", "xchg", "umax", "umin", "max", "min", "uinc_wrap", "udec_wrap", "cmpxchg",
           "fadd", "fsub", "fmax", "fmin")  # fmt: skip


def _memory(prefix: str, name: str, shape: Shape) -> None:
    _, address, operand, _ = _SPACES[prefix]
    TOY.memory(f"{prefix}_{name}", shape, address, [operand])


for _prefix, (_space, _address, _operand, _counter) in _SPACES.items():
    for _verb, _operation in (("load", Operation.LOAD), ("store", Operation.STORE)):
        for _nbytes in (1, 2, 4, 8, 12, 16):
            _shape = Shape(_space, _operation, _nbytes, counter=_counter)
            _memory(_prefix, f"{_verb}_{_nbytes}", _shape)
            _memory(_prefix, f"{_verb}_{_nbytes}_unaligned", replace(_shape, aligned=False))
            if _nbytes <= 2 and _operation is Operation.LOAD:
                _memory(_prefix, f"{_verb}_{_nbytes}_signed", replace(_shape, signed=True))
        if _space is Space.GLOBAL:
            for _scope in (Scope.DEVICE, Scope.SYSTEM):
                _shape = Shape(_space, _operation, 4, counter=_counter, scope=_scope)
                _memory(_prefix, f"{_verb}_4_{_scope.name.lower()}", _shape)
    if _space is not Space.SCRATCH:
        for _nbytes in (4, 8):
            for _op in ATOMICS:
                _memory(_prefix, f"atomic_{_op}_{_nbytes}",
                        Shape(_space, Operation.ATOMIC, _nbytes, op=_op, counter=_counter))  # fmt: skip
_memory("global", "atomic_add_4_system",
        Shape(Space.GLOBAL, Operation.ATOMIC, 4, op="add", counter=LOADED, scope=Scope.SYSTEM))  # fmt: skip
for _nbytes in (4, 8, 16, 32, 64):
    TOY.memory(f"s_load_{_nbytes}", Shape(Space.GLOBAL, Operation.SCALAR_LOAD, _nbytes, counter=SCALAR_LOADED),
               _global, [scalar(I64)])  # fmt: skip
