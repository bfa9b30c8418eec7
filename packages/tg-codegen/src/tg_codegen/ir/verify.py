"""The verifier: what every kernel, in the structured or the linear form, must fulfil between two passes.

What can be said of one node stands in the table of UOps (:mod:`tg_codegen.ir.spec`); here is what its words mean, and
what concerns several nodes: loops, regions, registers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tg_dtype import AddrSpace, DType, PtrDType, dtypes
from tg_lazy import ALU, CONVERSIONS, Ops, result_dtype
from tg_shape import Expr, Variable

from .facts import pointer_base
from .matrix import MatrixInstruction
from .spec import ARRAYS, CLOSES, EFFECTS, OPENS, REGIONS, SPEC, SPECIALS, STREAM, STRUCTURED, Arg, Operand, Result
from .uop import UOp, UOps


class InvalidIR(ValueError):
    """A kernel breaks a rule of the IR; the message names the node and the rule."""


Problems = Iterator[str]


def _alu(u: UOp) -> Problems:
    if not all(map(_has_value, u.src)):
        yield "an operand has no value"
        return
    if u.op in CONVERSIONS:
        if len(u.src) != 1:
            yield f"takes 1 operand, got {len(u.src)}"
        elif u.src[0].dtype.count != u.dtype.count:
            yield f"{u.src[0].dtype.count} lanes become {u.dtype.count}"
        elif u.op is Ops.BITCAST and u.src[0].dtype.itemsize != u.dtype.itemsize:
            yield f"the bits of {u.src[0].dtype.name} do not fill {u.dtype.name}"
        return
    assert isinstance(u.op, Ops)
    try:
        wanted = result_dtype(u.op, *(s.dtype for s in u.src))
    except (TypeError, ValueError) as error:
        yield str(error)
        return
    if u.op is Ops.WHERE and u.src[0].dtype.count != u.dtype.count:
        yield f"a condition of {u.src[0].dtype.count} lanes for {u.dtype.count}"
    if wanted is not u.dtype:
        yield f"has dtype {u.dtype.name}, the op table says {wanted.name}"


def _has_value(u: UOp) -> bool:
    return u.dtype is not dtypes.void and not isinstance(u.dtype, PtrDType)


def _is_index(dtype: DType) -> bool:
    return dtype in (dtypes.int32, dtypes.int64)


def _is_pointer(u: UOp) -> bool:
    return pointer_base(u).op in ARRAYS


def _gates(gate: UOp, access: UOp) -> bool:
    lanes = (access.src[2] if access.op is UOps.STORE else access).dtype.count
    return dtypes.is_bool(gate.dtype) and gate.dtype.count in (1, lanes)


def _of_pointer(dtype: DType, access: UOp) -> bool:
    return _is_pointer(access.src[0]) and access.src[0].dtype.element is dtype.scalar()


_OPERAND: dict[Operand, Callable[[UOp, UOp], bool]] = {
    Operand.VALUE: lambda s, u: _has_value(s),
    Operand.SAME: lambda s, u: s.dtype is u.dtype,
    Operand.LIKE_FIRST: lambda s, u: s.dtype is u.src[0].dtype,
    Operand.LANE: lambda s, u: s.dtype is u.dtype.scalar(),
    Operand.LANES: lambda s, u: _has_value(s) and s.dtype.scalar() is u.dtype.scalar(),
    Operand.BOOL: lambda s, u: s.dtype is dtypes.bool,
    Operand.GATE: _gates,
    Operand.INDEX: lambda s, u: _is_index(s.dtype),
    Operand.STEP: lambda s, u: s.dtype is u.dtype and not (s.is_const and s.arg <= 0),
    Operand.POINTER: lambda s, u: _is_pointer(s),
    Operand.ELEMENTS: lambda s, u: _has_value(s) and _of_pointer(s.dtype, u),
    Operand.RANGE: lambda s, u: s.op is UOps.RANGE,
    Operand.IF: lambda s, u: s.op is UOps.IF,
    Operand.ACC: lambda s, u: s.op is UOps.ACC,
    Operand.EFFECT: lambda s, u: s.op in EFFECTS,
}


def _is_constant(u: UOp) -> bool:
    try:
        held = dtypes.as_const(u.arg, u.dtype.scalar())
    except TypeError:
        return False
    return type(held) is type(u.arg) and (held == u.arg or u.arg != u.arg)


def _is_array(u: UOp) -> bool:
    match u.arg:
        case (str(), int(size)):
            return size > 0 and isinstance(u.dtype, PtrDType) and u.dtype.size == size
    return False


def _is_special(u: UOp) -> bool:
    match u.arg:
        case (str(name), int() | Expr() as size):
            return name in SPECIALS and (isinstance(size, Expr) or size > 0)
    return False


def _is_number(arg: object) -> bool:
    match arg:
        case int():
            return True
        case (number, int()):
            return _is_number(number)
    return False


def _are_lanes(u: UOp) -> bool:
    lanes = sum(s.dtype.count for s in u.src)
    taken = u.arg if isinstance(u.arg, tuple) else ()
    return len(taken) == u.dtype.count and all(isinstance(lane, int) and 0 <= lane < lanes for lane in taken)


def _fits_instruction(u: UOp) -> bool:
    if not isinstance(u.arg, MatrixInstruction):
        return False
    a, b, total = (fragment.count for fragment in u.arg.fragments)
    return [s.dtype.count for s in u.src] == [total, a, b]


_ARG: dict[Arg, Callable[[UOp], bool]] = {
    Arg.NONE: lambda u: u.arg is None,
    Arg.CONSTANT: _is_constant,
    Arg.SLOT: lambda u: isinstance(u.arg, int) and u.arg >= 0,
    Arg.VARIABLE: lambda u: isinstance(u.arg, Variable),
    Arg.ARRAY: _is_array,
    Arg.SPECIAL: _is_special,
    Arg.NAME: lambda u: isinstance(u.arg, str),
    Arg.NUMBER: lambda u: _is_number(u.arg),
    Arg.LABEL: lambda u: u.arg is None or isinstance(u.arg, int),
    Arg.HINT: lambda u: u.arg in (None, STREAM),
    Arg.LANES: _are_lanes,
    Arg.INSTRUCTION: _fits_instruction,
}


def _is_memory(dtype: DType, spaces: tuple[AddrSpace, ...]) -> bool:
    return isinstance(dtype, PtrDType) and dtype.space in spaces


_RESULT: dict[Result, Callable[[UOp], bool]] = {
    Result.EFFECT: lambda u: u.dtype is dtypes.void,
    Result.VALUE: _has_value,
    Result.VECTOR: lambda u: _has_value(u) and u.dtype.count > 1,
    Result.LANES: lambda u: _has_value(u) and u.dtype.count == len(u.src) > 1,
    Result.FLOAT: lambda u: _has_value(u) and dtypes.is_float(u.dtype),
    Result.INDEX: lambda u: _is_index(u.dtype),
    Result.FIRST: lambda u: u.dtype is u.src[0].dtype,
    Result.ELEMENTS: lambda u: _has_value(u) and _of_pointer(u.dtype, u),
    Result.GLOBAL: lambda u: _is_memory(u.dtype, (AddrSpace.GLOBAL,)),
    Result.OWN: lambda u: _is_memory(u.dtype, (AddrSpace.LOCAL, AddrSpace.REG)),
}


def _structure(u: UOp, op: UOps) -> Problems:
    """What of a node its row in the table of UOps does not allow."""
    row = SPEC[op]
    operands = row.named(len(u.src))
    if operands is None:
        yield f"takes {row.signature()}, got {len(u.src)} operands"
        return
    for number, ((name, kind), s) in enumerate(zip(operands, u.src, strict=True)):
        if not _OPERAND[kind](s, u):
            yield f"operand {number} ({name}): {s!r} is not {kind.value}"
    if not _RESULT[row.result](u):
        yield f"{u.dtype.name} is not {row.result.value}"
    if not _ARG[row.arg](u):
        yield f"the argument {u.arg!r} is not {row.arg.value}"


def _check_node(u: UOp) -> None:
    if isinstance(u.op, UOps):
        problems = _structure(u, u.op)
    elif u.op in ALU:
        problems = _alu(u)
    else:
        raise InvalidIR(f"{u!r} has no place in a kernel")
    for problem in problems:
        raise InvalidIR(f"{u!r}: {problem}")


def _writes(effect: UOp) -> set[UOp]:
    """The registers that a structured effect sets."""
    found, stack = set(), [effect]
    while stack:
        u = stack.pop()
        if u.op is UOps.ASSIGN:
            found.add(u.src[0])
        elif u.op in REGIONS:
            stack.extend(s for s in u.src[1:] if s.op in EFFECTS)
    return found


def verify(kernel: UOp | Sequence[UOp]) -> None:
    """Checks a SINK, or a linear kernel.

    >>> from tg_codegen.ir.uop import const
    >>> verify([const(1, dtypes.int32).alu(Ops.ADD, const(2, dtypes.int32))])
    Traceback (most recent call last):
        ...
    tg_codegen.ir.verify.InvalidIR: <UOp ADD int32 (2)>: uses <UOp CONST int32 1 (0)>, which does not stand before it

    Raises:
      InvalidIR: on the first node that breaks a rule.
    """
    if isinstance(kernel, UOp):
        _verify_structured(kernel)
    else:
        _verify_linear(kernel)


def _verify_structured(sink: UOp) -> None:
    if sink.op is not UOps.SINK:
        raise InvalidIR(f"the structured form ends in SINK, got {sink!r}")
    loops: dict[UOp, UOp] = {}
    names: dict[str, UOp] = {}
    writes: dict[UOp, set[UOp]] = {}
    for u in sink.toposort():
        _check_node(u)
        if u.op in CLOSES or (u.op is UOps.SINK and u is not sink):
            raise InvalidIR(f"{u!r}: not in the structured form")
        if u.op is UOps.LOOP and loops.setdefault(u.src[0], u) is not u:
            raise InvalidIR(f"{u!r}: the RANGE {u.src[0].arg!r} has two loops")
        if u.op is UOps.RANGE and names.setdefault(u.arg, u) is not u:
            raise InvalidIR(f"{u!r}: two loops are named {u.arg!r}")
        if u.op is UOps.READ:
            if len(u.src) == 1:
                raise InvalidIR(f"{u!r}: waits for no effect, as only the linear form may")
            effect = u.src[1]
            if effect not in writes:
                writes[effect] = _writes(effect)
            if u.src[0] not in writes[effect]:
                raise InvalidIR(f"{u!r}: {effect!r} does not set {u.src[0]!r}")
    for u in names.values():
        if u not in loops:
            raise InvalidIR(f"{u!r}: has no loop")


def _verify_linear(uops: Sequence[UOp]) -> None:
    # The regions that are open, each with the nodes that were defined in it, which end with it.
    regions: list[tuple[UOp | None, list[UOp]]] = [(None, [])]
    visible: set[UOp] = set()
    ended: set[UOp] = set()
    for u in uops:
        _check_node(u)
        if u.op in STRUCTURED or (u.op is UOps.IF and len(u.src) != 1):
            raise InvalidIR(f"{u!r}: not in the linear form")
        for s in u.src:
            if s in visible:
                continue
            if s in ended:
                raise InvalidIR(f"{u!r}: uses {s!r} outside the region that defines it")
            raise InvalidIR(f"{u!r}: uses {s!r}, which does not stand before it")
        if u in visible and u.op not in EFFECTS:
            raise InvalidIR(f"{u!r}: stands twice")
        if u.op in CLOSES:
            opened, inside = regions[-1]
            if u.src[0] is not opened:
                raise InvalidIR(f"{u!r}: the innermost region is {opened!r}")
            regions.pop()
            visible.difference_update(inside)
            ended.update(inside)
            visible.discard(u.src[0])
            ended.add(u.src[0])
        if u not in visible:
            regions[-1][1].append(u)
            visible.add(u)
        if u.op in OPENS:
            regions.append((u, []))
    if len(regions) > 1:
        raise InvalidIR(f"{regions[-1][0]!r}: is not closed")
