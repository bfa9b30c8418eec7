"""What every renderer must get right: small kernels as linear UOps, their inputs, and what they must compute.

A backend's test renders each case, compiles and runs it, and hands the buffers back to :meth:`Case.check`. The expected
values come from the op table's Python semantics and the host casts of ``tg_dtype``.

Example:
  >>> from tg_codegen.conformance import cases
  >>> from tg_codegen.render.c.clang import ClangRenderer
  >>> [case.name for case in cases(ClangRenderer(), lanes=4)][:2]
  ['alu_bool', 'alu_boolx4']
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from itertools import product
from typing import TypeVar

from tg_dtype import ConstType, DType, bitcast_scalar, cast_scalar, dtypes, from_bits, to_bits, truncate
from tg_lazy import ALU, BY_DIVIDER, CONVERSIONS, SHIFTS, SPEC, TRANSCENDENTAL, Ops, result_dtype

from .ir.builder import LinearBuilder
from .ir.uop import UOp, UOps
from .machine.renderer import Renderer


def encode_buffer(values: Sequence[ConstType], dtype: DType) -> bytearray:
    """Numbers as the memory of a buffer.

    >>> encode_buffer([1, -1], dtypes.int16).hex()
    '0100ffff'
    """
    return bytearray(b"".join(to_bits(v, dtype).to_bytes(dtype.itemsize, "little") for v in values))


def decode_buffer(raw: bytes | bytearray, dtype: DType) -> list[ConstType]:
    """The numbers in a buffer's memory."""
    size = dtype.itemsize
    return [from_bits(int.from_bytes(raw[i : i + size], "little"), dtype) for i in range(0, len(raw), size)]


@dataclass(frozen=True, slots=True)
class Expected:
    """An output: for each element the values that are right, and how far off an approximation may be (relative)."""

    label: str
    dtype: DType
    accepted: Sequence[tuple[ConstType, ...]]
    tolerance: float = 0.0
    inputs: Sequence[tuple[ConstType, ...]] = ()

    def wrong(self, raw: bytes | bytearray) -> list[str]:
        """What is wrong with the memory ``raw``, one line for each element."""
        found = []
        for i, (got, accepted) in enumerate(zip(decode_buffer(raw, self.dtype), self.accepted, strict=True)):
            if not any(_same(got, want, self.tolerance) for want in accepted):
                given = f" of {self.inputs[i]}" if self.inputs else ""
                found.append(f"{self.label} [{i}]{given}: got {got!r}, expected {' or '.join(map(repr, accepted))}")
        return found


def _same(got: ConstType, want: ConstType, tolerance: float) -> bool:
    if got != got or want != want:
        return got != got and want != want
    if got == want:
        return not isinstance(want, float) or math.copysign(1.0, got) == math.copysign(1.0, want)
    return tolerance > 0 and not math.isinf(want) and abs(got - want) <= tolerance * max(abs(want), 1e-6)


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel, what to run it on, and what must come out.

    Attributes:
      name: also the kernel's name.
      uops: the linear kernel.
      outputs: what the leading slots must hold.
      inputs: memory of the slots after the outputs; for an output that the kernel also reads, see ``initial``.
      vals: values of the kernel's variables, in order, then of ``core_id`` if it takes one.
      initial: memory of an output before the launch; zeros where it is not given.
    """

    name: str
    uops: Sequence[UOp]
    outputs: Sequence[Expected]
    inputs: Sequence[bytes | bytearray] = ()
    vals: Sequence[int] = ()
    initial: dict[int, bytes] = field(default_factory=dict)

    def buffers(self) -> list[bytearray]:
        """Fresh memory for every slot."""
        outputs = [
            bytearray(self.initial.get(slot, bytes(len(o.accepted) * o.dtype.itemsize)))
            for slot, o in enumerate(self.outputs)
        ]
        return [*outputs, *(bytearray(raw) for raw in self.inputs)]

    def check(self, buffers: Sequence[bytes | bytearray]) -> None:
        """Compares the buffers after the launch.

        Raises:
          AssertionError: if an element is wrong; the message shows the first few.
        """
        wrong = [line for o, raw in zip(self.outputs, buffers, strict=False) for line in o.wrong(raw)]
        if wrong:
            more = f"\n… {len(wrong) - 8} more" if len(wrong) > 8 else ""
            raise AssertionError(f"{self.name}: {len(wrong)} wrong\n" + "\n".join(wrong[:8]) + more)


def cases(renderer: Renderer, lanes: int = 4, relaxed: float = 0.0) -> Iterator[Case]:
    """Every case for the dtypes and ops that a renderer claims.

    Args:
      renderer: asked for what it supports.
      lanes: width of the vector cases.
      relaxed: relative error allowed in division and square root, where the target does not round them correctly.
    """
    supported = tuple(d for d in dtypes.all if renderer.supports_dtype(d))
    for dtype in supported:
        yield elementwise_case(renderer, dtype, 1, relaxed)
        yield elementwise_case(renderer, dtype, lanes, relaxed)
    for dtype in supported:
        yield cast_case(supported, dtype, 1)
        yield cast_case(supported, dtype, lanes)
        yield tail_case(supported, dtype, lanes)
        if not dtypes.is_bool(dtype) and any(_beside(d, dtype) for d in supported):
            yield chosen_case(supported, dtype, 1)
            yield chosen_case(supported, dtype, lanes)
    yield from _cases_of_every_renderer(lanes)


@cache
def _cases_of_every_renderer(lanes: int) -> tuple[Case, ...]:
    return (*memory_cases(lanes), *loop_cases(lanes))


# elementwise

_T = TypeVar("_T")
_FLOATS = [0.0, -0.0, 1.0, -1.5, 0.1, 3.0, -2.75, 1e-3, 6e4, math.inf, -math.inf, math.nan]
_FLOATS_TO_CAST = [1e10, -1e10, 127.9, -128.9, 255.5, 2049.0, 65519.9, 1e-7, 1e20, 2.9802e-8, 2.0**31]
_FLOATS_TO_CAST += [2.0**63, -(2.0**63), 1 + 2**-11 + 2**-40, 1 + 2**-11 - 2**-40]  # beside a tie of float16


def sample(dtype: DType) -> list[ConstType]:
    """Values of a dtype that find mistakes: ordinary ones, extremes, zeros and NaN."""
    if dtypes.is_bool(dtype):
        return [False, True]
    if dtypes.is_float(dtype):
        return [truncate(v, dtype) for v in _FLOATS]
    low, high = int(dtypes.min(dtype)), int(dtypes.max(dtype))
    return sorted({low, low + 1, high, high - 1, high // 3, 0, 1, 2, 7, truncate(-1, dtype), truncate(-7, dtype)})


def elementwise_case(renderer: Renderer, dtype: DType, lanes: int, relaxed: float) -> Case:
    """Every op that the dtype and the renderer have, each to an output of its own."""
    ops = [op for op in sorted(ALU, key=lambda o: o.value) if _takes(op, dtype) and renderer.supports_op(op, dtype)]
    return _elementwise_case(tuple(ops), dtype, lanes, relaxed)


@cache
def _elementwise_case(ops: tuple[Ops, ...], dtype: DType, lanes: int, relaxed: float) -> Case:
    first, second, third, chosen, shifts = (_filled(column, lanes) for column in zip(*_rows(dtype), strict=True))
    k = LinearBuilder()
    outs = [k.param(slot, _result(op, dtype)) for slot, op in enumerate(ops)]
    a, b, c, m = (k.param(len(ops) + i, d) for i, d in enumerate((dtype, dtype, dtype, dtypes.bool)))
    s = k.param(len(ops) + 4, dtype)
    with k.range(len(first), step=lanes) as i:
        x, y, z, p, n = (k.load(pointer, i, lanes) for pointer in (a, b, c, m, s))
        for op, out in zip(ops, outs, strict=True):
            k.store(out, i, k.alu(op, *_operands(op, x, y, z, p, n)))
    outputs = []
    for op in ops:
        tolerance = relaxed if op in BY_DIVIDER else 0.0
        if op in TRANSCENDENTAL:
            tolerance = 2e-2 if dtype.bits < 32 else 2e-5
        given, accepted = (_filled(column, lanes) for column in _right(op, dtype))
        outputs.append(Expected(op.name, _result(op, dtype), accepted, tolerance, given))
    memory = [encode_buffer(column, dtype) for column in (first, second, third)]
    inputs = [*memory, encode_buffer(chosen, dtypes.bool), encode_buffer(shifts, dtype)]
    return Case(f"alu_{dtype.vec(lanes).name}", k.uops, outputs, inputs)


def _filled(column: Sequence[_T], lanes: int) -> Sequence[_T]:
    """The column, with its first element again until it is whole vectors."""
    return [*column, *[column[0]] * (-len(column) % lanes)]


_Row = tuple[ConstType, ...]


@cache
def _rows(dtype: DType) -> Sequence[_Row]:
    """In each row two operands, a third, what WHERE chooses, and the amount of a shift."""
    pairs = list(product(sample(dtype), repeat=2))
    return [
        (a, b, pairs[(n + 3) % len(pairs)][1], n % 3 == 0, abs(int(b)) % dtype.bits if dtypes.is_int(dtype) else 0)
        for n, (a, b) in enumerate(pairs)
    ]


@cache
def _right(op: Ops, dtype: DType) -> tuple[Sequence[_Row], Sequence[_Row]]:
    """An op's operands in each row, and the results that are right: the same for every renderer and width."""
    given = [_operands(op, *row) for row in _rows(dtype)]
    return given, [_accepted(op, dtype, row) for row in given]


def _takes(op: Ops, dtype: DType) -> bool:
    if op in CONVERSIONS:
        return False
    try:
        _result(op, dtype)
    except TypeError:
        return False
    return True


def _result(op: Ops, dtype: DType) -> DType:
    operands = [dtype] * SPEC[op].arity
    return result_dtype(op, *([dtypes.bool, *operands[1:]] if op is Ops.WHERE else operands))


def _operands(op: Ops, a: _T, b: _T, c: _T, chosen: _T, shift: _T) -> tuple[_T, ...]:
    if op is Ops.WHERE:
        return chosen, a, b
    if op in SHIFTS:
        return a, shift
    return (a, b, c)[: SPEC[op].arity]


def _accepted(op: Ops, dtype: DType, given: tuple[ConstType, ...]) -> tuple[ConstType, ...]:
    python = SPEC[op].python
    assert python is not None
    if op is Ops.MULACC and dtypes.is_float(dtype):
        a, b, c = given
        apart = truncate(truncate(a * b, dtype) + c, dtype)
        if all(math.isfinite(v) for v in given):
            exact = Fraction(a) * Fraction(b) + Fraction(c)
            return apart, truncate(float(exact), dtype)
        return (apart, c) if math.isfinite(a) and math.isfinite(b) else (apart,)
    right = truncate(python(*given), _result(op, dtype))
    return (right, -right) if op is Ops.MAX and right == 0 else (right,)  # the zeros are not ordered


# conversion


@cache
def cast_case(supported: tuple[DType, ...], src: DType, lanes: int) -> Case:
    """From one dtype to every other, by value and, where sizes agree, by bits."""
    values = _filled(_to_cast(src), lanes)
    same = [d for d in supported if d.itemsize == src.itemsize]
    k = LinearBuilder()
    outs = [k.param(slot, d) for slot, d in enumerate([*supported, *same])]
    source = k.param(len(outs), src)
    with k.range(len(values), step=lanes) as i:
        x = k.load(source, i, lanes)
        for out, dst in zip(outs, supported, strict=False):
            k.store(out, i, k.cast(x, dst) if dst is not src else x)
        for out, dst in zip(outs[len(supported) :], same, strict=True):
            k.store(out, i, k.bitcast(x, dst) if dst is not src else x)
    given = [(v,) for v in values]
    outputs = [
        *(Expected(f"cast to {d}", d, _filled(_casts(src, d), lanes), 0.0, given) for d in supported),
        *(Expected(f"bitcast to {d}", d, [(bitcast_scalar(v, src, d),) for v in values], 0.0, given) for d in same),
    ]
    return Case(f"cast_{src.vec(lanes).name}", k.uops, outputs, [encode_buffer(values, src)])


@cache
def chosen_case(supported: tuple[DType, ...], src: DType, lanes: int) -> Case:
    """The bits of a chosen value as every dtype of the same size: languages with C's rules widen a small choice."""
    values = _filled(_to_cast(src), lanes)
    same = [d for d in supported if _beside(d, src)]
    instead = values[-1]
    k = LinearBuilder()
    outs = [k.param(slot, d) for slot, d in enumerate(same)]
    source = k.param(len(outs), src)
    zero, other = (k.const(value, src.vec(lanes)) for value in (dtypes.as_const(0, src), instead))
    with k.range(len(values), step=lanes) as i:
        x = k.load(source, i, lanes)
        chosen = k.alu(Ops.WHERE, k.alu(Ops.CMPEQ, x, zero), other, x)
        for out, dst in zip(outs, same, strict=True):
            k.store(out, i, k.bitcast(chosen, dst))
    kept = [instead if v == 0 else v for v in values]
    outputs = [_exactly(f"bits as {d}", d, [bitcast_scalar(v, src, d) for v in kept]) for d in same]
    return Case(f"chosen_{src.vec(lanes).name}", k.uops, outputs, [encode_buffer(values, src)])


def _beside(dtype: DType, src: DType) -> bool:
    """Whether it is another dtype of the same size, and no bool."""
    return dtype.itemsize == src.itemsize and dtype is not src and not dtypes.is_bool(dtype)


def _to_cast(src: DType) -> list[ConstType]:
    """Values that conversions are tried on."""
    values = sample(src)
    if dtypes.is_float(src):
        values += [truncate(v, src) for v in _FLOATS_TO_CAST]
    elif src.bits >= 32:
        values += [truncate(v, src) for v in (16777217, 2049, 65519, 65520, (1 << 53) + 1)]
    return values


@cache
def _casts(src: DType, dst: DType) -> Sequence[_Row]:
    """What those values become."""
    return [(cast_scalar(v, src, dst),) for v in _to_cast(src)]


# memory and lanes


def _exactly(label: str, dtype: DType, values: Sequence[ConstType]) -> Expected:
    return Expected(label, dtype, [(v,) for v in values])


def memory_cases(lanes: int) -> Iterator[Case]:
    """Gates, constants, private arrays, lanes, and bools in memory."""
    f32, i32 = dtypes.float32, dtypes.int32
    n = 4 * lanes
    numbers = [float(i) + 0.5 for i in range(n)]

    k = LinearBuilder()
    out, a = k.param(0, f32), k.param(1, f32)
    with k.range(n + 4) as i:
        at = k.alu(Ops.SUB, i, k.const(2))
        inside = k.alu(Ops.AND, k.alu(Ops.CMPLT, k.const(-1), at), k.alu(Ops.CMPLT, at, k.const(n)))
        k.store(out, i, k.load(a, at, 1, inside, k.const(-1.0, f32)))
    padded = [-1.0, -1.0, *numbers, -1.0, -1.0]
    yield Case("padded", k.uops, [_exactly("out", f32, padded)], [encode_buffer(numbers, f32)])

    k = LinearBuilder()
    out, a = k.param(0, f32), k.param(1, f32)
    special = (0.0, -0.0, 1.5, math.inf, -math.inf, math.nan)
    choices = [pair for pair in product(special, repeat=2) if repr(pair[0]) != repr(pair[1])]
    signs = [-1.0 if number % 3 else 1.0 for number in range(len(choices))]
    for number, (yes, no) in enumerate(choices):
        over = k.alu(Ops.CMPLT, k.const(0.0, f32), k.load(a, k.const(number)))
        k.store(out, k.const(number), k.alu(Ops.WHERE, over, k.const(yes, f32), k.const(no, f32)))
    selected = [pair[sign < 0] for pair, sign in zip(choices, signs, strict=True)]
    yield Case("constants", k.uops, [_exactly("out", f32, selected)], [encode_buffer(signs, f32)])

    k = LinearBuilder()
    out, a, gates = k.param(0, f32), k.param(1, f32), k.param(2, dtypes.bool)
    with k.range(n, step=lanes) as i:
        gate = k.load(gates, i, lanes)
        x = k.load(a, i, lanes, gate, k.const(-1.0, f32.vec(lanes)))
        k.store(out, i, k.alu(Ops.ADD, x, x), k.alu(Ops.NOT, k.alu(Ops.CMPEQ, x, k.const(2.5, f32.vec(lanes)))))
    # Any nonzero byte is true.
    raw = bytes((0x80, 1, 0, 2)[i % 4] if i >= lanes else 1 for i in range(n))
    want = [0.0 if v == 2.5 else 2 * v if g else -2.0 for v, g in zip(numbers, raw, strict=True)]
    yield Case("gated_lanes", k.uops, [_exactly("out", f32, want)], [encode_buffer(numbers, f32), raw])

    k = LinearBuilder()
    out, a = k.param(0, i32), k.param(1, i32)
    limit = k.variable("limit", 0, n)
    with k.range(n, step=lanes) as i:
        fits = k.alu(Ops.CMPLT, i, limit)
        x = k.load(a, i, lanes, fits, k.const(7, i32.vec(lanes)))
        k.store(out, i, x, k.alu(Ops.CMPLT, i, k.const(3 * lanes)))
    integers = list(range(100, 100 + n))
    want = [integers[i] if i < lanes else 7 if i < 3 * lanes else 0 for i in range(n)]
    yield Case("gated_blocks", k.uops, [_exactly("out", i32, want)], [encode_buffer(integers, i32)], [lanes])

    k = LinearBuilder()
    out, a, flags = k.param(0, f32), k.param(1, f32), k.param(2, dtypes.bool)
    with k.range(n, step=lanes) as i:
        x = k.load(a, i, lanes)
        back = k.gep(x, *reversed(range(lanes)))
        first = k.broadcast(k.gep(x, 0), lanes)
        turned = k.vectorize(*(k.gep(x, (lane + 1) % lanes) for lane in range(lanes)))
        total = k.alu(Ops.ADD, k.alu(Ops.ADD, back, first), turned)
        k.store(out, i, total)
        big = k.alu(Ops.CMPLT, k.const(10.0, f32.vec(lanes)), x)
        last = k.gep(big, lanes - 1)
        mixed = k.vectorize(*(k.gep(big, lane) if lane % 2 else last for lane in range(lanes)))
        k.store(flags, i, k.alu(Ops.OR, mixed, k.broadcast(k.alu(Ops.CMPEQ, i, k.const(0)), lanes)))
    want, want_flags = [], []
    for block in range(0, n, lanes):
        part = numbers[block : block + lanes]
        want += [part[-1 - lane] + part[0] + part[(lane + 1) % lanes] for lane in range(lanes)]
        want_flags += [block == 0 or (part[lane] if lane % 2 else part[-1]) > 10.0 for lane in range(lanes)]
    # The slots of outputs come first: the input is slot 2.
    swap = {1: 2, 2: 1}
    uops = _renumber(k.uops, swap)
    outputs = [_exactly("out", f32, want), _exactly("flags", dtypes.bool, want_flags)]
    yield Case("lanes", uops, outputs, [encode_buffer(numbers, f32)])

    k = LinearBuilder()
    out, flags, a = k.param(0, i32), k.param(1, dtypes.bool), k.param(2, i32)
    with k.range(n, step=2 * lanes) as i:
        after = k.alu(Ops.ADD, i, k.const(lanes))
        x, y = k.load(a, i, lanes), k.load(a, after, lanes)
        paired = [lane // 2 + lane % 2 * lanes for lane in range(2 * lanes)]
        k.store(out, i, k.shuffle(x, y, *paired[:lanes]))
        first = k.broadcast(k.shuffle(x, y, lanes), lanes)
        k.store(out, after, k.alu(Ops.ADD, k.shuffle(y, x, *paired[lanes:]), first))
        one, zero = k.const(1, i32.vec(lanes)), k.const(0, i32.vec(lanes))
        odd_x, odd_y = (k.alu(Ops.CMPNE, k.alu(Ops.AND, v, one), zero) for v in (x, y))
        k.store(flags, i, k.shuffle(odd_x, odd_y, *reversed(paired[:lanes])))
        k.store(flags, after, k.broadcast(k.shuffle(odd_x, odd_y, 2 * lanes - 1), lanes))
    want_ints, want_flags = [], []
    for block in range(0, n, 2 * lanes):
        low, high = integers[block : block + lanes], integers[block + lanes : block + 2 * lanes]
        pairs = [v for pair in zip(low, high, strict=True) for v in pair]
        swapped = [v for pair in zip(high, low, strict=True) for v in pair]
        want_ints += [*pairs[:lanes], *(v + high[0] for v in swapped[lanes:])]
        want_flags += [*(v % 2 == 1 for v in reversed(pairs[:lanes])), *[high[-1] % 2 == 1] * lanes]
    outputs = [_exactly("out", i32, want_ints), _exactly("flags", dtypes.bool, want_flags)]
    yield Case("shuffles", k.uops, outputs, [encode_buffer(integers, i32)])

    k = LinearBuilder()
    out, a = k.param(0, i32), k.param(1, i32)
    tile, seen = k.scratch("tile", i32, n), k.scratch("seen", dtypes.bool, n)
    with k.range(n, name="fill") as i:
        x = k.load(a, i)
        k.store(tile, i, k.alu(Ops.MUL, x, x))
        k.store(seen, i, k.alu(Ops.CMPLT, x, k.const(103)))
    ready = k.after(tile)
    known = k.add(UOps.AFTER, seen.dtype, (seen, ready.src[1]))
    with k.range(n, name="drain") as j:
        turned_at = k.alu(Ops.SUB, k.const(n - 1), j)
        k.store(out, j, k.alu(Ops.WHERE, k.load(known, turned_at), k.const(-1), k.load(ready, turned_at)))
    want_ints = [-1 if v < 103 else v * v for v in reversed(integers)]
    yield Case("private_array", k.uops, [_exactly("out", i32, want_ints)], [encode_buffer(integers, i32)])

    k = LinearBuilder()
    out = k.param(0, dtypes.int64)
    with k.range(n) as i:
        wide = k.cast(i, dtypes.int64)
        # Data arithmetic wraps even where it looks like an address.
        k.store(out, wide, k.alu(Ops.MUL, wide, k.const(1 << 62, dtypes.int64)))
    wrapped = [truncate(at << 62, dtypes.int64) for at in range(n)]
    yield Case("wide_index", k.uops, [_exactly("out", dtypes.int64, wrapped)])


_UNTOUCHED = 0x5A  # each byte of an output before the launch


@cache
def tail_case(supported: tuple[DType, ...], src: DType, lanes: int) -> Case:
    """Vectors converted to every dtype that is no wider, stored but for the lanes that a constant mask leaves out.

    What is left out lies between what is stored, and keeps its bytes: a store that is wider than its mask shows.
    """
    supported = tuple(dst for dst in supported if dst.itemsize <= src.itemsize)
    wanted: list[set[int]] = [{0}, {lanes - 1}, set(range(lanes - 1)), set(range(0, lanes, 2))]
    masks = [[lane in some for lane in range(lanes)] for some in wanted]
    values = (sample(src) * lanes * len(masks))[: lanes * len(masks)]
    size = 2 * lanes * len(masks)
    k = LinearBuilder()
    outs = [k.param(slot, dst) for slot, dst in enumerate(supported)]
    a = k.param(len(outs), src)
    for out, dst in zip(outs, supported, strict=True):
        for number, mask in enumerate(masks):
            x = k.load(a, k.const(lanes * number), lanes)
            y = k.cast(x, dst) if dst is not src else x  # of its own: what is used once is merged with its store
            gate = k.vectorize(*(k.const(lane, dtypes.bool) for lane in mask))
            k.store(out, k.const(2 * lanes * number), y, gate)
    outputs = []
    for dst in supported:
        left = from_bits(int.from_bytes(bytes([_UNTOUCHED] * dst.itemsize), "little"), dst)
        want: list[ConstType] = [left] * size
        for number, mask in enumerate(masks):
            for lane, stored in enumerate(mask):
                if stored:
                    want[2 * lanes * number + lane] = cast_scalar(values[lanes * number + lane], src, dst)
        outputs.append(_exactly(f"as {dst}", dst, want))
    initial = {slot: bytes([_UNTOUCHED]) * (size * dst.itemsize) for slot, dst in enumerate(supported)}
    return Case(f"tails_{src.vec(lanes).name}", k.uops, outputs, [encode_buffer(values, src)], initial=initial)


def _renumber(uops: Sequence[UOp], slots: dict[int, int]) -> list[UOp]:
    """The kernel with its slots renamed, arguments in slot order first."""
    new: dict[UOp, UOp] = {}
    for u in uops:
        arg = slots.get(u.arg, u.arg) if u.op is UOps.PARAM else u.arg
        new[u] = UOp(u.op, u.dtype, tuple(new[s] for s in u.src), arg)
    return list(new.values())


# loops and registers


def loop_cases(lanes: int) -> Iterator[Case]:
    """Registers, nested loops, branches, variables and threads."""
    f32, i32 = dtypes.float32, dtypes.int32
    numbers = [float((7 * i) % 11) - 3.0 for i in range(24)]

    k = LinearBuilder()
    out, a = k.param(0, f32), k.param(1, f32)
    with k.range(4, name="row") as row:
        total = k.acc(k.const(0.0, f32))
        with k.range(6, name="int") as col:  # a keyword, on purpose
            at = k.alu(Ops.ADD, k.alu(Ops.MUL, row, k.const(6)), col)
            k.assign(total, k.alu(Ops.ADD, total, k.load(a, at)))
        k.store(out, row, k.read(total))
    want: list[ConstType] = [sum(numbers[6 * r : 6 * r + 6]) for r in range(4)]
    yield Case("row_sums", k.uops, [_exactly("out", f32, want)], [encode_buffer(numbers, f32)])

    k = LinearBuilder()
    out, where, a = k.param(0, f32), k.param(1, i32), k.param(2, f32)
    best, at_best = k.acc(k.const(-math.inf, f32)), k.acc(k.const(-1))
    with k.range(24) as i:
        x = k.load(a, i)
        greater = k.alu(Ops.CMPLT, best, x)
        k.assign(best, k.alu(Ops.MAX, best, x))
        k.assign(at_best, k.alu(Ops.WHERE, greater, i, at_best))
    k.store(out, k.const(0), k.read(best))
    k.store(where, k.const(0), k.read(at_best))
    top = max(numbers)
    outputs = [_exactly("max", f32, [top]), _exactly("argmax", i32, [numbers.index(top)])]
    yield Case("argmax", k.uops, outputs, [encode_buffer(numbers, f32)])

    k = LinearBuilder()
    out, a = k.param(0, f32), k.param(1, f32)
    running = k.acc(k.const(0.0, f32))
    with k.range(24) as i:
        k.assign(running, k.alu(Ops.ADD, running, k.load(a, i)))
    before = k.read(running)
    k.assign(running, k.alu(Ops.MUL, k.read(running), k.const(2.0, f32)))
    after = k.read(running)
    k.store(out, k.const(0), before)
    k.store(out, k.const(1), after)
    wanted = _exactly("out", f32, [sum(numbers), 2 * sum(numbers)])
    yield Case("snapshot", k.uops, [wanted], [encode_buffer(numbers, f32)])

    k = LinearBuilder()
    out, a = k.param(0, f32), k.param(1, f32)
    lane_sum = k.acc(k.const(0.0, f32.vec(lanes)))
    n = lanes * 3
    with k.range(n, step=lanes) as i:
        k.assign(lane_sum, k.alu(Ops.MULACC, k.load(a, i, lanes), k.const(2.0, f32.vec(lanes)), lane_sum))
    k.store(out, k.const(0), k.read(lane_sum))
    data = [float(i % 5) for i in range(n)]
    want = [2.0 * sum(data[lane::lanes]) for lane in range(lanes)]
    yield Case("lane_sums", k.uops, [_exactly("out", f32, want)], [encode_buffer(data, f32)])

    k = LinearBuilder()
    out, a = k.param(0, i32), k.param(1, i32)
    first, stop = k.variable("t1", 0, 8), k.variable("stop", 1, 16)
    with k.range(stop, start=first) as i:
        with k.iff(k.alu(Ops.CMPNE, k.alu(Ops.MOD, i, k.const(3)), k.const(0))):
            k.store(out, i, k.alu(Ops.IDIV, k.load(a, i), stop))
    integers: list[ConstType] = list(range(-8, 8))
    want = [int(integers[at] / 13) if 2 <= at < 13 and at % 3 else 0 for at in range(16)]
    # Variables are passed sorted by name: "stop" before "t1".
    yield Case("branches", k.uops, [_exactly("out", i32, want)], [encode_buffer(integers, i32)], [13, 2])

    k = LinearBuilder()
    out = k.param(0, i32)
    stop = k.variable("stop", 0, 4)
    with k.range(stop) as i:
        k.store(out, i, k.const(1))
    yield Case("empty_range", k.uops, [_exactly("out", i32, [0, 0])], [], [0])


def thread_case() -> Case:
    """A CPU kernel that takes ``core_id``, run as its second thread of four."""
    k = LinearBuilder()
    out = k.param(0, dtypes.int32)
    scale, core = k.variable("scale", 1, 10), k.special("core_id", 4)
    with k.range(4) as i:
        at = k.alu(Ops.ADD, k.alu(Ops.MUL, core, k.const(4)), i)
        k.store(out, at, k.alu(Ops.MUL, at, scale))
    want = [3 * i if 4 <= i < 8 else 0 for i in range(16)]
    return Case("thread", k.uops, [_exactly("out", dtypes.int32, want)], [], [3, 1])
