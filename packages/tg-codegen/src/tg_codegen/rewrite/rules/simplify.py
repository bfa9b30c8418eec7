"""Rules that make kernels smaller without changing one bit of a result (the payload of a NaN aside).

Every rule is sound on the whole of its domain: integers wrap; floats have NaN, infinities and a signed zero, so
``x + 0.0`` and ``0.0 * x`` stay as they are. Rules that need to know how large an integer is take a
:class:`tg_codegen.ir.bounds.Bounds` as context.
"""

from __future__ import annotations

from math import frexp

from tg_dtype import can_safe_cast, dtypes
from tg_lazy import ALU, SHRINKING, Ops

from ...ir.bounds import Bounds
from ...ir.scalar import evaluate
from ...ir.spec import LISTS, REGIONS
from ...ir.uop import UOp, UOps, const, shuffle, vectorize
from ..engine import PatternMatcher, Rule
from ..pattern import ANY, BOOL, FLOAT, INT, VALUE, constant, literal, op, var

x, y, z, c, d = var("x"), var("y"), var("z"), constant("c"), constant("d")


def _fold(root: UOp) -> UOp:
    return UOp(UOps.CONST, root.dtype, (), evaluate(root, *(s.arg for s in root.src)))


folding = PatternMatcher([
    Rule("fold_constants", op(tuple(ALU), each=(UOps.CONST,)), _fold, VALUE, law="op(c, d, ...) -> its value"),
])  # fmt: skip

identities = PatternMatcher([
    Rule("add_zero", x + 0, x, INT),
    Rule("add_minus_zero", x + -0.0, x, FLOAT),
    Rule("sub_zero", x - 0, x, INT | FLOAT),
    Rule("sub_self", x - x, literal(0), INT),
    Rule("zero_sub", literal(0) - x, -x, INT),
    Rule("minus_zero_sub", literal(-0.0) - x, -x, FLOAT),
    Rule("add_neg", x + -y, x - y, INT | FLOAT),
    Rule("sub_neg", x - -y, x + y, INT | FLOAT),
    Rule("mul_one", x * 1, x),
    Rule("mul_zero", x * 0, literal(0), INT | BOOL),
    Rule("mul_minus_one", x * -1, -x, INT | FLOAT),
    Rule("mulacc_one", op(Ops.MULACC, x, literal(1), y), x + y, INT | FLOAT),
    Rule("div_one", x / 1, x, FLOAT),
    Rule("idiv_one", x.idiv(1), x, INT),
    Rule("mod_one", x.mod(1), literal(0), INT),
    Rule("neg_neg", (-x).alu(Ops.NEG), x, INT | FLOAT),
    Rule("max_self", x.maximum(x), x),
    Rule("trunc_trunc", op(Ops.TRUNC, op(Ops.TRUNC, x)), op(Ops.TRUNC, x), FLOAT),
    Rule("and_zero", x & 0, literal(0), INT | BOOL),
    Rule("and_ones", x & -1, x, INT | BOOL),
    Rule("and_self", x & x, x, INT | BOOL),
    Rule("or_zero", x | 0, x, INT | BOOL),
    Rule("or_ones", x | -1, literal(-1), INT | BOOL),
    Rule("or_self", x | x, x, INT | BOOL),
    Rule("xor_zero", x ^ 0, x, INT | BOOL),
    Rule("xor_self", x ^ x, literal(0), INT | BOOL),
    Rule("not_not", ~(~x), x, INT | BOOL),
    Rule("shl_zero", x << 0, x, INT),
    Rule("shr_zero", x >> 0, x, INT),
])  # fmt: skip

reassociation = PatternMatcher([
    Rule("add_add", (x + c) + d, x + (c + d), INT),
    Rule("mul_mul", (x * c) * d, x * (c * d), INT),
    Rule("max_max", x.maximum(c).maximum(d), x.maximum(c.maximum(d)), INT),
    Rule("and_and", (x & c) & d, x & (c & d), INT | BOOL),
    Rule("or_or", (x | c) | d, x | (c | d), INT | BOOL),
    Rule("xor_xor", (x ^ c) ^ d, x ^ (c ^ d), INT | BOOL),
])  # fmt: skip

logic = PatternMatcher([
    Rule("bool_mul", x * y, x & y, BOOL),
    Rule("bool_add", x + y, x | y, BOOL),
    Rule("bool_max", x.maximum(y), x | y, BOOL),
    Rule("xor_true", x ^ True, ~x, BOOL),
    Rule("and_not", x & ~x, literal(0), INT | BOOL),
    Rule("or_not", x | ~x, literal(-1), INT | BOOL),
    Rule("eq_true", x.eq(True), x, BOOL),
    Rule("eq_false", x.eq(False), ~x, BOOL),
    Rule("ne_true", x.ne(True), ~x, BOOL),
    Rule("ne_false", x.ne(False), x, BOOL),
    Rule("not_eq", ~x.eq(y), x.ne(y)),
    Rule("not_ne", ~x.ne(y), x.eq(y)),
    Rule("lt_self", x.lt(x), literal(False)),
    Rule("eq_self", x.eq(x), literal(True), INT | BOOL),
    Rule("ne_self", x.ne(x), literal(False), INT | BOOL),
    Rule("where_true", literal(True).where(x, y), x),
    Rule("where_false", literal(False).where(x, y), y),
    Rule("where_same", z.where(x, x), x),
    Rule("where_bool", x.where(True, False), x, BOOL),
    Rule("where_not_bool", x.where(False, True), ~x, BOOL),
    Rule("where_not", (~z).where(x, y), z.where(y, x)),
    Rule("where_where_yes", z.where(z.where(x, y), var("w")), z.where(x, var("w"))),
    Rule("where_where_no", z.where(x, z.where(y, var("w"))), z.where(x, var("w"))),
    Rule("where_and", z.where(y.where(x, var("w")), var("w")), (z & y).where(x, var("w"))),
])  # fmt: skip


def _exact_reciprocal(x: UOp, c: UOp) -> UOp | None:
    """A power of two whose reciprocal is normal in the dtype too."""
    fraction, exponent = frexp(c.arg)
    exponent_bits, _ = dtypes.finfo(c.dtype)
    if abs(fraction) != 0.5 or abs(exponent - 1) > (1 << (exponent_bits - 1)) - 2:
        return None
    return x.alu(Ops.MUL, const(1.0 / c.arg, c.dtype))


def _cast_cast(x: UOp, y: UOp, root: UOp) -> UOp | None:
    source, middle, to = x.dtype.scalar(), y.dtype.scalar(), root.dtype.scalar()
    narrowing = dtypes.is_int(source) and dtypes.is_int(middle) and dtypes.is_int(to) and middle.bits >= to.bits
    if not narrowing:
        if not can_safe_cast(source, middle):
            return None
        # Out of a float an integer saturates, out of an integer it wraps.
        saturates = dtypes.is_float(middle) and not dtypes.is_float(source) and dtypes.is_int(to)
        if saturates and not can_safe_cast(source, to):
            return None
    return x.cast(to)


def _same_cast(x: UOp, root: UOp) -> UOp | None:
    return x if x.dtype is root.dtype else None


def _bitcast_bitcast(x: UOp, y: UOp, root: UOp) -> UOp | None:
    """Through bool bits are lost: as a bool, every byte but 0 is 1."""
    return None if dtypes.is_bool(y.dtype) else x.bitcast(root.dtype.scalar())


def _bool_compare(x: UOp, c: UOp, root: UOp) -> UOp | None:
    """A bool made a number and compared with 0 or 1 is the bool, or its opposite."""
    if not dtypes.is_bool(x.dtype) or c.arg not in (0, 1):
        return None
    return x if (root.op is Ops.CMPEQ) == bool(c.arg) else x.alu(Ops.NOT)


casts = PatternMatcher([
    Rule("div_power_of_two", x / c, _exact_reciprocal, FLOAT, law="x / 2**n -> x * 2**-n"),
    Rule("cast_same", x.cast(), _same_cast, VALUE, law="cast T (x: T) -> x"),
    Rule("cast_cast", op(Ops.CAST, x.cast().named("y")), _cast_cast, VALUE,
         law="cast C (cast B (x: A)) -> cast C (x), where B holds every A, or for integers, where B is as wide as C"),
    Rule("bitcast_same", op(Ops.BITCAST, x), _same_cast, VALUE, law="bitcast T (x: T) -> x"),
    Rule("bitcast_bitcast", op(Ops.BITCAST, op(Ops.BITCAST, x, name="y")), _bitcast_bitcast, VALUE,
         law="bitcast C (bitcast B (x)) -> bitcast C (x), where B is not bool"),
    Rule("bool_cast_eq", x.cast().eq(c), _bool_compare, BOOL, law="cast(x: bool) == 1 -> x"),
    Rule("bool_cast_ne", x.cast().ne(c), _bool_compare, BOOL, law="cast(x: bool) != 0 -> x"),
])  # fmt: skip


def _log2(value: int) -> int | None:
    return value.bit_length() - 1 if value > 0 and value & (value - 1) == 0 else None


def _shift_for_idiv(x: UOp, c: UOp, ctx: Bounds) -> UOp | None:
    shift = _log2(c.arg)
    if shift is None or ctx(x)[0] < 0:
        return None
    return x.alu(Ops.SHR, const(shift, x.dtype))


def _mask_for_mod(x: UOp, c: UOp, ctx: Bounds) -> UOp | None:
    return x.alu(Ops.AND, const(c.arg - 1, x.dtype)) if _log2(c.arg) is not None and ctx(x)[0] >= 0 else None


def _idiv_small(x: UOp, y: UOp, ctx: Bounds) -> UOp | None:
    (low, high), (least, _) = ctx(x), ctx(y)
    return const(0, x.dtype) if -least < low and high < least else None


def _mod_small(x: UOp, y: UOp, ctx: Bounds) -> UOp | None:
    (low, high), (least, _) = ctx(x), ctx(y)
    return x if -least < low and high < least else None


def _decide_lt(x: UOp, y: UOp, root: UOp, ctx: Bounds) -> UOp | None:
    (low, high), (least, most) = ctx(x), ctx(y)
    if high < least:
        return const(True, root.dtype)
    return const(False, root.dtype) if low >= most else None


def _decide_eq(x: UOp, y: UOp, root: UOp, ctx: Bounds) -> UOp | None:
    (low, high), (least, most) = ctx(x), ctx(y)
    return const(root.op is Ops.CMPNE, root.dtype) if high < least or most < low else None


def _decide_max(x: UOp, y: UOp, ctx: Bounds) -> UOp | None:
    (low, high), (least, most) = ctx(x), ctx(y)
    if low >= most:
        return x
    return y if least >= high else None


def _known(root: UOp, ctx: Bounds) -> UOp | None:
    low, high = ctx(root)
    return const(low, root.dtype) if low == high else None


_INDEX_OPS: tuple[Ops | UOps, ...] = (*sorted(SHRINKING, key=lambda op: op.name), UOps.SPECIAL)
"""What may have a single value, though its operands have several."""

bounded = PatternMatcher([
    Rule("only_value", op(_INDEX_OPS), _known, INT, law="x -> c, where c <= x <= c"),
    Rule("idiv_small", x.idiv(y), _idiv_small, INT, law="x // y -> 0, where |x| < y"),
    Rule("mod_small", x.mod(y), _mod_small, INT, law="x % y -> x, where |x| < y"),
    Rule("lt_decided", x.lt(y), _decide_lt, INT, law="x < y -> True or False, where bounds decide"),
    Rule("eq_decided", x.eq(y), _decide_eq, INT, law="x == y -> False, where bounds are disjoint"),
    Rule("ne_decided", x.ne(y), _decide_eq, INT, law="x != y -> True, where bounds are disjoint"),
    Rule("max_decided", x.maximum(y), _decide_max, INT, law="max(x, y) -> x, where bounds decide"),
    Rule("idiv_power_of_two", x.idiv(c), _shift_for_idiv, INT, law="x // 2**n -> x >> n, where x >= 0"),
    Rule("mod_power_of_two", x.mod(c), _mask_for_mod, INT, law="x % 2**n -> x & (2**n - 1), where x >= 0"),
])  # fmt: skip


def _gep(x: UOp, root: UOp) -> UOp | None:
    if root.arg == tuple(range(x.dtype.count)):
        return x
    if x.op is UOps.GEP:
        return shuffle(x.src[0], x.src[-1], *(x.arg[lane] for lane in root.arg))
    return x.gep(*root.arg)


def _source(u: UOp, lane: int) -> tuple[UOp, int]:
    """The vector that a lane of ``u`` comes from, and its lane there."""
    if u.op is not UOps.GEP:
        return u, lane
    source, lane = divmod(u.arg[lane], u.src[0].dtype.count)
    return u.src[source], lane


def _taken(places: list[tuple[UOp, int]]) -> UOp | None:
    """Lanes of one or two vectors."""
    vectors = list(dict.fromkeys(vector for vector, _ in places))
    first, second = vectors[0], vectors[-1]
    if len(vectors) > 2 or first.dtype is not second.dtype:
        return None
    return shuffle(first, second, *(lane + (vector is not first) * first.dtype.count for vector, lane in places))


def _shuffle(x: UOp, y: UOp, root: UOp) -> UOp | None:
    count = x.dtype.count
    found = _taken([_source(y, lane - count) if lane >= count else _source(x, lane) for lane in root.arg])
    if found is None:
        found = shuffle(x, y, *root.arg)
    return None if found is root else found


def _join(root: UOp) -> UOp | None:
    """Lanes taken from one vector or two, equal lanes."""
    lanes = root.src
    if all(lane is lanes[0] for lane in lanes):
        return vectorize(*lanes)
    if any(lane.op is not UOps.GEP for lane in lanes):
        return None
    return _taken([_source(lane, 0) for lane in lanes])


def _splat(x: UOp, root: UOp) -> UOp | None:
    return x.broadcast(root.dtype.count) if x.is_const else None


def _scalar_op(root: UOp) -> UOp | None:
    """An op on equal lanes is done once."""
    if root.dtype.count == 1 or all(s.is_const for s in root.src):
        return None
    return UOp(root.op, root.dtype.scalar(), tuple(s.gep(0) for s in root.src)).broadcast(root.dtype.count)


lanes = PatternMatcher([
    Rule("gep", op(UOps.GEP, x), _gep, VALUE, law="gep(vectorize(a, b, ...), i) -> its i-th lane; gep of gep"),
    Rule("shuffle", op(UOps.GEP, x, y), _shuffle, VALUE,
         law="gep(x, x, ...) -> gep(x, ...); gep(vectorize(...), broadcast(b), ...) -> vectorize(...); gep of geps"),
    Rule("vectorize", op(UOps.VECTORIZE), _join, VALUE, law="vectorize(gep(v, 0), gep(v, 1), ...) -> v"),
    Rule("broadcast_constant", op(UOps.BROADCAST, x), _splat, VALUE, law="broadcast(c) -> c"),
    Rule("op_of_broadcast", op(tuple(ALU), each=(UOps.BROADCAST, UOps.CONST)), _scalar_op, VALUE,
         law="op(broadcast(x), ...) -> broadcast(op(x, ...))"),
])  # fmt: skip


def _dead(u: UOp) -> bool:
    """Whether an effect does nothing."""
    if u.op is UOps.STORE:
        return len(u.src) > 3 and u.src[3].is_const and not u.src[3].arg
    if u.op not in REGIONS:
        return False
    return len(u.src) == 1 or (u.op is UOps.IF and u.src[0].is_const and not u.src[0].arg)


def _drop_dead(root: UOp) -> UOp | None:
    kept = tuple(s for s in root.src if not _dead(s))
    return None if len(kept) == len(root.src) else root.replace(kept)


def _after_nothing(root: UOp) -> UOp | None:
    return root.src[0] if len(root.src) == 1 else None


_gate = constant("gate")

memory = PatternMatcher([
    Rule("load_gate", op(UOps.LOAD, x, y, _gate, z),
         lambda root, gate, z: z if not gate.arg else UOp(UOps.LOAD, root.dtype, root.src[:2]), ANY,
         law="load(p, i, True, alt) -> load(p, i); load(p, i, False, alt) -> alt"),
    Rule("store_gate", op(UOps.STORE, x, y, z, literal(True)), lambda root: root.replace(root.src[:3]), ANY,
         law="store(p, i, v, True) -> store(p, i, v)"),
    Rule("where_load", z.where(op(UOps.LOAD, var("p"), var("i"), z, y, name="x"), y), x, VALUE,
         law="where(g, load(p, i, g, alt), alt) -> load(p, i, g, alt)"),
    Rule("drop_dead", op(tuple(LISTS)), _drop_dead, ANY,
         law="sink(..., store(p, i, v, False), ...) -> sink(...)"),
    Rule("after_nothing", op(UOps.AFTER), _after_nothing, ANY, law="after(p) -> p"),
])  # fmt: skip

simplify = folding + identities + reassociation + logic + casts + bounded + lanes + memory

RULE_SETS = (folding, identities, reassociation, logic, casts, bounded, lanes, memory)

