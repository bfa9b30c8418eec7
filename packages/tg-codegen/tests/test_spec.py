"""The table of UOps: every UOp has a row, and the verifier refuses what its row does not allow."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tg_codegen.ir import spec
from tg_codegen.ir.matrix import INSTRUCTIONS
from tg_codegen.ir.spec import SPEC, Arg, Operand, Result, Trait, UOpSpec
from tg_codegen.ir.text import parse_linear, print_uops
from tg_codegen.ir.uop import UOp, UOps, const
from tg_codegen.ir.verify import InvalidIR, verify
from tg_dtype import AddrSpace, DType, dtypes
from tg_shape import Variable

I32, I64, F16, F32, VOID = dtypes.int32, dtypes.int64, dtypes.float16, dtypes.float32, dtypes.void
COUNTER = UOp(UOps.RANGE, I32, (const(0, I32), const(8, I32)), "i")
POINTER = UOp(UOps.PARAM, F32.ptr(), (), 0)
REGISTER = UOp(UOps.ACC, F32, (const(0.0, F32),), 0)
CONDITION = UOp(UOps.IF, VOID, (const(True, dtypes.bool),))
INSTRUCTION = next(iter(INSTRUCTIONS.values()))
KINDS = {
    "a float": const(1.0, F32),
    "a half": const(1.0, F16),
    "an integer": const(1, I32),
    "a wide integer": const(1, I64),
    "a bool": const(True, dtypes.bool),
    "two floats": const(1.0, F32.vec(2)),
    "four floats": const(1.0, F32.vec(4)),
    "two bools": const(True, dtypes.bool.vec(2)),
    "three bools": const(True, dtypes.bool.vec(3)),
    "nothing": const(0, I32),
    "a pointer": POINTER,
    "a counter": COUNTER,
    "a register": REGISTER,
    "a condition": CONDITION,
    "an effect": UOp(UOps.BARRIER),
}
"""Nodes of which each kind of operand takes some and refuses others."""
DTYPES = (
    VOID, I32, I64, F32, F16, dtypes.bool, F32.vec(2), F32.vec(3), I32.vec(2), F32.ptr(), F32.ptr(4, AddrSpace.REG),
    F32.ptr(4), F32.ptr(4, AddrSpace.LOCAL), I32.ptr(4, AddrSpace.REG),
)  # fmt: skip
ARGS = (None, 0, -1, 1.0, True, "stream", "i", (0,), (0, 1), ("tile", 4), ("gidx0", 8), ("gidx0", 0), INSTRUCTION,
        Variable("n", 1, 9))  # fmt: skip
RIGHT = {
    UOps.PARAM: POINTER,
    UOps.VAR: UOp(UOps.VAR, I32, (), Variable("n", 1, 9)),
    UOps.SPECIAL: UOp(UOps.SPECIAL, I32, (), ("gidx0", 8)),
    UOps.SCRATCH: UOp(UOps.SCRATCH, F32.ptr(4, AddrSpace.REG), (), ("tile", 4)),
    UOps.CONST: const(1.0, F32),
    UOps.RANGE: UOp(UOps.RANGE, I32, (const(0, I32), const(8, I32), const(2, I32)), "i"),
    UOps.LOOP: UOp(UOps.LOOP, VOID, (COUNTER, UOp(UOps.BARRIER))),
    UOps.IF: UOp(UOps.IF, VOID, (const(True, dtypes.bool), UOp(UOps.BARRIER))),
    UOps.ENDRANGE: UOp(UOps.ENDRANGE, VOID, (COUNTER,)),
    UOps.ENDIF: UOp(UOps.ENDIF, VOID, (CONDITION,)),
    UOps.ACC: UOp(UOps.ACC, F32, (const(0.0, F32), COUNTER), 1),
    UOps.ASSIGN: UOp(UOps.ASSIGN, VOID, (REGISTER, const(1.0, F32))),
    UOps.READ: UOp(UOps.READ, F32, (REGISTER, UOp(UOps.BARRIER))),
    UOps.AFTER: UOp(UOps.AFTER, POINTER.dtype, (POINTER, UOp(UOps.BARRIER))),
    UOps.LOAD: UOp(UOps.LOAD, F32.vec(2), (POINTER, const(0, I32), const(True, dtypes.bool), const(0.0, F32.vec(2)))),
    UOps.STORE: UOp(UOps.STORE, VOID, (POINTER, const(0, I32), const(0.0, F32.vec(2)), const(True, dtypes.bool))),
    UOps.PREFETCH: UOp(UOps.PREFETCH, VOID, (POINTER, const(0, I32))),
    UOps.BARRIER: UOp(UOps.BARRIER, VOID, (UOp(UOps.BARRIER, VOID, (), 1),)),
    UOps.VECTORIZE: UOp(UOps.VECTORIZE, F32.vec(2), (const(0.0, F32), const(1.0, F32))),
    UOps.BROADCAST: UOp(UOps.BROADCAST, F32.vec(2), (const(1.0, F32),)),
    UOps.GEP: UOp(UOps.GEP, F32.vec(2), (const(0.0, F32.vec(4)), const(1.0, F32.vec(4))), (1, 4)),
    UOps.SCALE: UOp(UOps.SCALE, F32, (const(1.0, F32), const(2.0, F32))),
    UOps.MATRIX: UOp(UOps.MATRIX, INSTRUCTION.acc.vec(INSTRUCTION.fragments[2].count), tuple(
        const(0, dtype.vec(fragment.count)) for dtype, fragment in zip(
            (INSTRUCTION.acc, INSTRUCTION.a, INSTRUCTION.b), (INSTRUCTION.fragments[i] for i in (2, 0, 1)), strict=True)
    ), INSTRUCTION),
    UOps.SINK: UOp(UOps.SINK, VOID, (UOp(UOps.BARRIER),)),
}  # fmt: skip
"""A node of each UOp with all the operands that its row knows, of which every row's rules make a wrong one."""


def refused(u: UOp) -> bool:
    """Whether the verifier refuses a node for what it is, not for what stands around it."""
    try:
        verify([*dict.fromkeys(s for n in u.src for s in n.toposort()), u])
    except InvalidIR as error:
        return str(error).startswith(f"{u!r}: ") and not str(error).endswith((" form", " is not closed"))
    return False


def fits(kind: Operand, s: UOp, like: DType, element: DType) -> bool:
    """What the table's words say of an operand, in this test's own: ``like`` is the dtype that it should have."""
    value = s.dtype is not VOID and s is not POINTER
    return {
        Operand.VALUE: value,
        Operand.SAME: s.dtype is like,
        Operand.LIKE_FIRST: s.dtype is like,
        Operand.STEP: s.dtype is like,
        Operand.LANE: s.dtype is like.scalar(),
        Operand.LANES: value and s.dtype.scalar() is like.scalar(),
        Operand.BOOL: s.dtype is dtypes.bool,
        Operand.GATE: s.dtype in (dtypes.bool, dtypes.bool.vec(2)),
        Operand.INDEX: s.dtype in (I32, I64),
        Operand.POINTER: s is POINTER,
        Operand.ELEMENTS: value and s.dtype.scalar() is element,
        Operand.RANGE: s is COUNTER,
        Operand.IF: s is CONDITION,
        Operand.ACC: s is REGISTER,
        Operand.EFFECT: s.dtype is VOID,
    }[kind]


def operands_of(op: UOps) -> list[tuple[str, Operand]]:
    named = SPEC[op].named(len(RIGHT[op].src))
    assert named is not None
    return named


def wrong_operands() -> Iterator[tuple[str, UOp]]:
    for op, right in RIGHT.items():
        for at, (name, kind) in enumerate(operands_of(op)):
            like = right.src[0].dtype if kind is Operand.LIKE_FIRST else right.dtype
            for text, other in KINDS.items():
                if not fits(kind, other, like, F32):
                    yield f"{op.name}: {text} as {name}", right.replace((*right.src[:at], other, *right.src[at + 1 :]))


def wrong_counts() -> Iterator[tuple[str, UOp]]:
    for op, right in RIGHT.items():
        row, extra = SPEC[op], KINDS["an effect"]
        least = len(row.operands)
        if least:
            yield f"{op.name}: {least - 1}", right.replace(right.src[: least - 1])
        if row.rest is None:
            yield f"{op.name}: {len(right.src) + 1}", right.replace((*right.src, extra))
        for missing in range(1, len(row.optional)):
            yield f"{op.name}: {missing} of what may follow", right.replace(right.src[: least + missing])


RESULTS = {
    Result.EFFECT: (VOID,),
    Result.VECTOR: (F32.vec(2), F32.vec(3)),
    Result.INDEX: (I32, I64),
    Result.GLOBAL: (F32.ptr(), F32.ptr(4)),
    Result.OWN: (F32.ptr(4, AddrSpace.REG), F32.ptr(4, AddrSpace.LOCAL), I32.ptr(4, AddrSpace.REG)),
}
"""The dtypes that rules which do not look at operands allow; others allow that of the right node."""


def wrong_results() -> Iterator[tuple[str, UOp]]:
    for op, right in RIGHT.items():
        allowed = RESULTS.get(SPEC[op].result, (right.dtype,))
        if op is UOps.CONST:  # whose argument any float may be
            allowed = (F16, F32, F32.vec(2), F32.vec(3))
        for dtype in DTYPES:
            if dtype not in allowed:
                yield f"{op.name}: {dtype.name}", UOp(op, dtype, right.src, right.arg)


ALLOWED: dict[Arg, tuple[object, ...]] = {
    Arg.NONE: (None,),
    Arg.CONSTANT: (1.0,),
    Arg.SLOT: (0, True),
    Arg.VARIABLE: (Variable("n", 1, 9),),
    Arg.ARRAY: (("tile", 4),),
    Arg.SPECIAL: (("gidx0", 8),),
    Arg.NAME: ("i", "stream"),
    Arg.NUMBER: (0, -1, True, (0, 1)),
    Arg.LABEL: (None, 0, -1, True),
    Arg.HINT: (None, "stream"),
    Arg.LANES: ((0, 1),),
    Arg.INSTRUCTION: (INSTRUCTION,),
}


def wrong_args() -> Iterator[tuple[str, UOp]]:
    for op, right in RIGHT.items():
        for arg in ARGS:
            if not any(arg is good or (type(arg) is type(good) and arg == good) for good in ALLOWED[SPEC[op].arg]):
                yield f"{op.name}: {arg!r}", UOp(op, right.dtype, right.src, arg)


def cases(made: Iterator[tuple[str, UOp]]) -> list[object]:
    return [pytest.param(u, id=name) for name, u in made]


def test_every_uop_has_its_row() -> None:
    assert [*SPEC] == [*UOps] and RIGHT.keys() == SPEC.keys()
    for op, row in SPEC.items():
        assert isinstance(row, UOpSpec) and row.meaning and "\n" not in row.meaning, op
    used = [kind for row in SPEC.values() for kind in row.kinds()]
    assert set(used) == set(Operand)
    assert {row.arg for row in SPEC.values()} == set(Arg) and {row.result for row in SPEC.values()} == set(Result)


@pytest.mark.parametrize("op", UOps, ids=lambda op: op.name)
def test_what_a_row_allows_is_taken_and_printed(op: UOps) -> None:
    right = RIGHT[op]
    assert not refused(right)
    if right.src and not right.is_const:
        uops = [*dict.fromkeys(s for n in right.src for s in n.toposort()), right]
        assert parse_linear(print_uops(uops))[-1] is right


@pytest.mark.parametrize("u", cases(wrong_counts()))
def test_another_number_of_operands_is_refused(u: UOp) -> None:
    assert refused(u)


@pytest.mark.parametrize("u", cases(wrong_operands()))
def test_an_operand_of_another_kind_is_refused(u: UOp) -> None:
    assert refused(u)


@pytest.mark.parametrize("u", cases(wrong_results()))
def test_another_dtype_is_refused(u: UOp) -> None:
    assert refused(u)


@pytest.mark.parametrize("u", cases(wrong_args()))
def test_another_argument_is_refused(u: UOp) -> None:
    assert refused(u)


ALIKE = {
    "a sum of integers scaled": UOp(UOps.SCALE, I32, (const(1, I32), const(2, I32))),
    "a register that holds a pointer": UOp(UOps.ACC, POINTER.dtype, (POINTER,), 0),
    "a register that holds an effect": UOp(UOps.ACC, VOID, (UOp(UOps.BARRIER),), 0),
    "integers out of floats": UOp(UOps.LOAD, I32, (POINTER, const(0, I32))),
    "an alternative of that wrong dtype": UOp(
        UOps.LOAD, I32, (POINTER, const(0, I32), const(True, dtypes.bool), const(0, I32))),
    "lanes of two effects": UOp(UOps.GEP, VOID, (UOp(UOps.BARRIER),), (0,)),
}  # fmt: skip
"""Nodes of which two parts are wrong in the same way."""


@pytest.mark.parametrize("u", ALIKE.values(), ids=ALIKE)
def test_what_is_wrong_in_two_places_is_refused(u: UOp) -> None:
    assert refused(u)


def test_a_step_goes_on() -> None:
    for step, right in ((0, False), (-2, False), (2, True)):
        u = UOp(UOps.RANGE, I32, (const(0, I32), const(8, I32), const(step, I32)), "i")
        assert refused(u) is not right


def test_groups_follow_from_the_rows() -> None:
    assert spec.EFFECTS == {
        UOps.LOOP, UOps.IF, UOps.ENDRANGE, UOps.ENDIF, UOps.ASSIGN, UOps.STORE, UOps.PREFETCH, UOps.BARRIER, UOps.SINK,
    }  # fmt: skip
    assert spec.LEAVES == (UOps.PARAM, UOps.VAR, UOps.SPECIAL, UOps.SCRATCH, UOps.CONST)
    assert spec.WAITS == {UOps.READ, UOps.AFTER} and spec.ARRAYS == {UOps.PARAM, UOps.SCRATCH}
    assert spec.LISTS == {UOps.LOOP, UOps.IF, UOps.AFTER, UOps.BARRIER, UOps.SINK}
    assert spec.group(Trait.REGION | Trait.OPENS) == {UOps.IF}
    assert spec.EFFECTS - spec.LISTS - spec.CLOSES == {UOps.ASSIGN, UOps.STORE, UOps.PREFETCH}
    assert spec.REGIONS <= spec.EFFECTS >= spec.CLOSES and spec.TRANSFERS <= spec.ACCESSES
