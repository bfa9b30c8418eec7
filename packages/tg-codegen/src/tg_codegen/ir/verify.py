"""The verifier: what every kernel, in the structured or the linear form, must fulfil between two passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tg_dtype import AddrSpace, DType, PtrDType, dtypes
from tg_lazy import ALU, Ops, result_dtype
from tg_shape import Expr, Variable

from .facts import pointer_base
from .uop import EFFECTS, STREAM, UOp, UOps


class InvalidIR(ValueError):
    """A kernel breaks a rule of the IR; the message names the node and the rule."""


Problems = Iterator[str]


def _count(u: UOp, low: int, high: int | None = None) -> Problems:
    most = low if high is None else high
    if not low <= len(u.src) <= most:
        wanted = str(low) if low == most else f"{low} to {most}"
        yield f"takes {wanted} operands, got {len(u.src)}"


def _is_index(dtype: DType) -> bool:
    return dtype in (dtypes.int32, dtypes.int64)


def _alu(u: UOp) -> Problems:
    if any(not _has_value(s) for s in u.src):
        yield "an operand has no value"
        return
    if u.op in (Ops.CAST, Ops.BITCAST):
        yield from _count(u, 1)
        if u.src and u.src[0].dtype.count != u.dtype.count:
            yield f"{u.src[0].dtype.count} lanes become {u.dtype.count}"
        elif u.src and u.op is Ops.BITCAST and u.src[0].dtype.itemsize != u.dtype.itemsize:
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


def _const(u: UOp) -> Problems:
    yield from _count(u, 0)
    try:
        held = dtypes.as_const(u.arg, u.dtype.scalar())
    except TypeError as error:
        yield str(error)
        return
    if type(held) is not type(u.arg) or (held != u.arg and u.arg == u.arg):
        yield f"{u.arg!r} is not a value of {u.dtype.name}"


def _param(u: UOp) -> Problems:
    yield from _count(u, 0)
    if not isinstance(u.dtype, PtrDType) or u.dtype.space is not AddrSpace.GLOBAL:
        yield f"is a pointer to global memory, not {u.dtype.name}"
    if not isinstance(u.arg, int) or u.arg < 0:
        yield f"slot {u.arg!r}"


def _var(u: UOp) -> Problems:
    yield from _count(u, 0)
    if not isinstance(u.arg, Variable):
        yield f"names a Variable, not {u.arg!r}"
    if not _is_index(u.dtype):
        yield f"is an int32 or int64, not {u.dtype.name}"


def _scratch(u: UOp) -> Problems:
    yield from _count(u, 0)
    if not isinstance(u.dtype, PtrDType) or u.dtype.space is AddrSpace.GLOBAL:
        yield f"is a pointer to local memory or registers, not {u.dtype.name}"
    elif u.arg[1] < 1 or u.dtype.size != u.arg[1]:
        yield f"{u.arg[1]} elements, its type says {u.dtype.size}"


_SPECIAL = frozenset({"core_id", *(f"{kind}idx{axis}" for kind in "gl" for axis in range(3))})


def _special(u: UOp) -> Problems:
    yield from _count(u, 0)
    name, size = u.arg
    if name not in _SPECIAL:
        yield f"{name!r} is none of {', '.join(sorted(_SPECIAL))}"
    if not isinstance(size, Expr) and size < 1:
        yield f"size {size}"
    if not _is_index(u.dtype):
        yield f"is an int32 or int64, not {u.dtype.name}"


def _range(u: UOp) -> Problems:
    yield from _count(u, 2, 3)
    if not _is_index(u.dtype) or any(s.dtype is not u.dtype for s in u.src):
        yield f"bounds {[s.dtype.name for s in u.src]} for a counter of {u.dtype.name}"
    if len(u.src) > 2 and u.src[2].is_const and u.src[2].arg <= 0:
        yield f"step {u.src[2].arg}"


def _effects(u: UOp, first: int) -> Problems:
    if u.dtype is not dtypes.void:
        yield f"has no value, yet dtype {u.dtype.name}"
    for s in u.src[first:]:
        if s.op not in EFFECTS:
            yield f"lists {s!r}, which is not an effect"


def _loop(u: UOp) -> Problems:
    if not u.src or u.src[0].op is not UOps.RANGE:
        yield "runs over a RANGE"
    yield from _effects(u, 1)


def _if(u: UOp) -> Problems:
    if not u.src or u.src[0].dtype is not dtypes.bool:
        yield "takes a bool"
    yield from _effects(u, 1)


def _acc(u: UOp) -> Problems:
    if not u.src or u.src[0].dtype is not u.dtype:
        yield f"starts with a value of {u.dtype.name}"
    for s in u.src[1:]:
        if s.op is not UOps.RANGE:
            yield f"{s!r} is not an outer RANGE"


def _assign(u: UOp) -> Problems:
    yield from _count(u, 2)
    if len(u.src) == 2:
        if u.src[0].op is not UOps.ACC:
            yield f"sets an ACC, not {u.src[0]!r}"
        elif u.src[1].dtype is not u.src[0].dtype:
            yield f"sets a register of {u.src[0].dtype.name} to a value of {u.src[1].dtype.name}"
    yield from _effects(u, 2)


def _read(u: UOp) -> Problems:
    yield from _count(u, 2)
    if len(u.src) == 2:
        if u.src[0].op is not UOps.ACC or u.src[0].dtype is not u.dtype:
            yield f"reads an ACC of {u.dtype.name}, not {u.src[0]!r}"
        if u.src[1].op not in EFFECTS:
            yield f"waits for {u.src[1]!r}, which is not an effect"


def _after(u: UOp) -> Problems:
    if not u.src or not isinstance(u.dtype, PtrDType) or u.src[0].dtype is not u.dtype:
        yield "is the pointer that it takes"
    for s in u.src[1:]:
        if s.op not in EFFECTS:
            yield f"waits for {s!r}, which is not an effect"


def _address(u: UOp, lanes: int) -> Problems:
    if pointer_base(u.src[0]).op not in (UOps.PARAM, UOps.SCRATCH):
        yield f"{u.src[0]!r} is not a pointer"
    if not _is_index(u.src[1].dtype):
        yield f"an index is an int32 or int64 scalar, got {u.src[1].dtype.name}"


def _gate(gate: UOp, lanes: int) -> Problems:
    if not dtypes.is_bool(gate.dtype) or gate.dtype.count not in (1, lanes):
        yield f"a gate is a bool or one for each of {lanes} lanes, got {gate.dtype.name}"


def _load(u: UOp) -> Problems:
    if len(u.src) not in (2, 4):
        yield f"takes 2 or 4 operands, got {len(u.src)}"
        return
    yield from _address(u, u.dtype.count)
    if u.src[0].dtype.element is not u.dtype.scalar():
        yield f"reads {u.dtype.name} through {u.src[0].dtype.name}"
    if len(u.src) == 4:
        yield from _gate(u.src[2], u.dtype.count)
        if u.src[3].dtype is not u.dtype:
            yield f"gives {u.src[3].dtype.name} in place of {u.dtype.name}"


def _store(u: UOp) -> Problems:
    if len(u.src) not in (3, 4):
        yield f"takes 3 or 4 operands, got {len(u.src)}"
        return
    value = u.src[2].dtype
    yield from _address(u, value.count)
    if u.src[0].dtype.element is not value.scalar():
        yield f"writes {value.name} through {u.src[0].dtype.name}"
    if u.arg not in (None, STREAM):
        yield f"is {u.arg!r}"
    if len(u.src) == 4:
        yield from _gate(u.src[3], value.count)
    yield from _effects(u, 4)


def _prefetch(u: UOp) -> Problems:
    if len(u.src) != 2:
        yield f"takes 2 operands, got {len(u.src)}"
        return
    yield from _address(u, 1)


def _vectorize(u: UOp) -> Problems:
    if len(u.src) != u.dtype.count or any(s.dtype is not u.dtype.scalar() for s in u.src):
        yield f"makes {u.dtype.name} of {[s.dtype.name for s in u.src]}"


def _broadcast(u: UOp) -> Problems:
    yield from _count(u, 1)
    if u.src and (u.src[0].dtype is not u.dtype.scalar() or u.dtype.count == 1):
        yield f"makes {u.dtype.name} of {u.src[0].dtype.name}"


def _gep(u: UOp) -> Problems:
    yield from _count(u, 1, 2)
    if not u.src:
        return
    lanes = sum(s.dtype.count for s in u.src)
    if u.src[-1].dtype is not u.src[0].dtype:
        yield f"takes lanes of {u.src[0].dtype.name} and of {u.src[-1].dtype.name}"
    if len(u.arg) != u.dtype.count or any(not 0 <= lane < lanes for lane in u.arg):
        yield f"takes lanes {u.arg} of {lanes} for {u.dtype.name}"
    if u.src[0].dtype.scalar() is not u.dtype.scalar():
        yield f"takes {u.dtype.name} out of {u.src[0].dtype.name}"


def _scale(u: UOp) -> Problems:
    yield from _count(u, 2)
    if any(s.dtype is not u.dtype for s in u.src) or not dtypes.is_float(u.dtype):
        yield f"makes {u.dtype.name} of {[s.dtype.name for s in u.src]}"


def _matrix(u: UOp) -> Problems:
    yield from _count(u, 3)
    if len(u.src) != 3:
        return
    acc, a, b = (s.dtype.count for s in u.src)
    first, second, total = (fragment.count for fragment in u.arg.fragments)
    if (acc, a, b) != (total, first, second) or u.src[0].dtype is not u.dtype:
        yield f"{u.arg.name} takes {total}, {first} and {second} elements, got {[s.dtype.name for s in u.src]}"


def _closes(kind: UOps) -> Callable[[UOp], Problems]:
    def check(u: UOp) -> Problems:
        yield from _count(u, 1)
        if u.src and u.src[0].op is not kind:
            yield f"closes {u.src[0]!r}"

    return check


CHECKS: dict[UOps, Callable[[UOp], Problems]] = {
    UOps.CONST: _const,
    UOps.PARAM: _param,
    UOps.VAR: _var,
    UOps.SCRATCH: _scratch,
    UOps.SPECIAL: _special,
    UOps.RANGE: _range,
    UOps.LOOP: _loop,
    UOps.IF: _if,
    UOps.ACC: _acc,
    UOps.ASSIGN: _assign,
    UOps.READ: _read,
    UOps.AFTER: _after,
    UOps.LOAD: _load,
    UOps.STORE: _store,
    UOps.PREFETCH: _prefetch,
    UOps.VECTORIZE: _vectorize,
    UOps.BROADCAST: _broadcast,
    UOps.GEP: _gep,
    UOps.SCALE: _scale,
    UOps.MATRIX: _matrix,
    UOps.BARRIER: lambda u: _effects(u, 0),
    UOps.SINK: lambda u: _effects(u, 0),
    UOps.ENDRANGE: _closes(UOps.RANGE),
    UOps.ENDIF: _closes(UOps.IF),
}


def _check_node(u: UOp) -> None:
    check = CHECKS[u.op] if isinstance(u.op, UOps) else _alu if u.op in ALU else None
    if check is None:
        raise InvalidIR(f"{u!r} has no place in a kernel")
    for problem in check(u):
        raise InvalidIR(f"{u!r}: {problem}")
    for s in u.src:
        if s.op in EFFECTS and u.op not in _TAKE_EFFECTS:
            raise InvalidIR(f"{u!r}: takes the effect {s!r} as a value")


_TAKE_EFFECTS = frozenset({*EFFECTS, UOps.READ, UOps.AFTER})


def _writes(effect: UOp) -> set[UOp]:
    """The registers that a structured effect sets."""
    found, stack = set(), [effect]
    while stack:
        u = stack.pop()
        if u.op is UOps.ASSIGN:
            found.add(u.src[0])
        elif u.op in (UOps.LOOP, UOps.IF):
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
        if u.op in (UOps.ENDRANGE, UOps.ENDIF) or (u.op is UOps.SINK and u is not sink):
            raise InvalidIR(f"{u!r}: not in the structured form")
        if u.op is UOps.LOOP and loops.setdefault(u.src[0], u) is not u:
            raise InvalidIR(f"{u!r}: the RANGE {u.src[0].arg!r} has two loops")
        if u.op is UOps.RANGE and names.setdefault(u.arg, u) is not u:
            raise InvalidIR(f"{u!r}: two loops are named {u.arg!r}")
        if u.op is UOps.READ:
            effect = u.src[1]
            if effect not in writes:
                writes[effect] = _writes(effect)
            if u.src[0] not in writes[effect]:
                raise InvalidIR(f"{u!r}: {effect!r} does not set {u.src[0]!r}")
    for u in names.values():
        if u not in loops:
            raise InvalidIR(f"{u!r}: has no loop")


def _verify_linear(uops: Sequence[UOp]) -> None:
    # The blocks that are open, each with the nodes that were defined in it, which end with it.
    blocks: list[tuple[UOp | None, list[UOp]]] = [(None, [])]
    visible: set[UOp] = set()
    ended: set[UOp] = set()
    for u in uops:
        _check_node(u)
        if u.op in (UOps.LOOP, UOps.SINK) or (u.op is UOps.IF and len(u.src) != 1):
            raise InvalidIR(f"{u!r}: not in the linear form")
        for s in u.src:
            if s in visible:
                continue
            if s in ended:
                raise InvalidIR(f"{u!r}: uses {s!r} outside the block that defines it")
            raise InvalidIR(f"{u!r}: uses {s!r}, which does not stand before it")
        if u in visible and u.op not in EFFECTS:
            raise InvalidIR(f"{u!r}: stands twice")
        if u.op in (UOps.ENDRANGE, UOps.ENDIF):
            opened, inside = blocks[-1]
            if u.src[0] is not opened:
                raise InvalidIR(f"{u!r}: the innermost block is {opened!r}")
            blocks.pop()
            visible.difference_update(inside)
            ended.update(inside)
            visible.discard(u.src[0])
            ended.add(u.src[0])
        if u not in visible:
            blocks[-1][1].append(u)
            visible.add(u)
        if u.op in (UOps.RANGE, UOps.IF):
            blocks.append((u, []))
    if len(blocks) > 1:
        raise InvalidIR(f"{blocks[-1][0]!r}: is not closed")
