"""Every exported rule of simplification: both sides agree in the interpreter, and the right one is smaller."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, TypeVar

import pytest

from tg_codegen.ir.bounds import Bounds
from tg_codegen.ir.scalar import evaluate
from tg_codegen.ir.text import parse_sink
from tg_codegen.ir.uop import UOp, UOps, const
from tg_codegen.linear.interpret import interpret
from tg_codegen.machine.renderer import Renderer
from tg_codegen.machine.target import Target
from tg_codegen.rewrite.engine import Rule
from tg_codegen.rewrite.pattern import FLOAT, Pattern, var
from tg_codegen.rewrite.rules.simplify import RULE_SETS
from tg_dtype import ConstType, DType, dtypes, from_bits, to_bits
from tg_lazy import SPEC, DTypeRule, Ops

T = TypeVar("T")
RULES = [rule for rules in RULE_SETS for rule in rules.rules]
INF, NAN = float("inf"), float("nan")
DTYPES = {
    "int": (dtypes.int8, dtypes.int32),
    "uint": (dtypes.uint8, dtypes.uint64),
    "float": (dtypes.float32, dtypes.float16),
    "bool": (dtypes.bool,),
}
CAST_FROM = (dtypes.bool, dtypes.int8, dtypes.uint8, dtypes.int32, dtypes.int64, dtypes.float16, dtypes.float32)
MOST_INSTANCES = 400


class Everything(Renderer):
    """A language that has all ops."""

    name = "EVERYTHING"

    def render(self, name: str, uops: Sequence[UOp]) -> str:
        return ""


class Choices:
    """Decisions of a builder, walked through exhaustively."""

    def __init__(self) -> None:
        self.taken: list[list[int]] = []
        self.at = 0

    def choose(self, options: Sequence[T]) -> T:
        if self.at == len(self.taken):
            self.taken.append([0, len(options)])
        self.at += 1
        return options[self.taken[self.at - 1][0]]

    def advance(self) -> bool:
        """Goes to the next combination, if there is one."""
        while self.taken and self.taken[-1][0] == self.taken[-1][1] - 1:
            self.taken.pop()
        if self.taken:
            self.taken[-1][0] += 1
        self.at = 0
        return bool(self.taken)


def values(dtype: DType) -> list[ConstType]:
    """Small numbers and extremes."""
    if dtypes.is_bool(dtype):
        return [False, True]
    if dtypes.is_float(dtype):
        return [0.0, -0.0, 1.0, -1.5, INF, -INF, NAN, from_bits(1, dtype), dtypes.as_const(300.1, dtype)]
    return sorted({dtypes.as_const(n, dtype) for n in (0, 1, 5, -1, -7, 100, dtypes.min(dtype), dtypes.max(dtype))})


def constants(dtype: DType) -> list[ConstType]:
    """Constants to stand in patterns."""
    if dtypes.is_bool(dtype):
        return [False, True]
    if dtypes.is_float(dtype):
        return [0.0, 1.0, -2.0, 3.0, INF, NAN]
    return sorted({dtypes.as_const(n, dtype) for n in (0, 1, -1, 8, 3)})


class Builder:
    """Makes a node that a pattern matches; ``leaves`` are its free operands with the values they may have."""

    def __init__(self, choices: Choices, small: bool) -> None:
        self.choices, self.small = choices, small
        self.names: dict[str, UOp] = {}
        self.leaves: dict[UOp, list[ConstType]] = {}

    def leaf(self, dtype: DType) -> UOp:
        number = len(self.leaves)
        if self.small and dtypes.is_int(dtype):
            low = self.choices.choose((0, 9) if dtypes.is_unsigned(dtype) else (0, -3, 9))
            leaf = UOp(UOps.RANGE, dtype, (const(low, dtype), const(low + 7, dtype)), f"r{number}")
            self.leaves[leaf] = list(range(low, low + 7))
        else:
            leaf = UOp(UOps.LOAD, dtype, (UOp(UOps.PARAM, dtype.ptr(), (), number), const(0, dtypes.int32)))
            self.leaves[leaf] = values(dtype)
        return leaf

    def node(self, p: Pattern, dtype: DType) -> UOp:
        """A node of ``dtype``, or, for a comparison, of operands of ``dtype``."""
        found = self.names.get(p.name) if p.name is not None else None
        if found is None:
            found = self._make(p, dtype)
            if p.name is not None:
                self.names[p.name] = found
        return found

    def _make(self, p: Pattern, dtype: DType) -> UOp:
        if p.value is not None:
            return const(p.value, dtype)
        if not p.ops:
            return self.leaf(dtype)
        if p.ops == (UOps.CONST,):
            return const(self.choices.choose(constants(dtype)), dtype)
        kind = self.choices.choose([op for op in p.ops if isinstance(op, Ops)])
        row = SPEC[kind]
        patterns = p.src or (Pattern(p.each),) * row.arity
        if kind is Ops.CAST:
            return UOp(kind, dtype, (self.node(patterns[0], self.choices.choose(CAST_FROM)),))
        if kind is Ops.BITCAST:
            same_size = [d for d in dtypes.all if d.itemsize == dtype.itemsize and not dtypes.is_bool(d)]
            return UOp(kind, dtype, (self.node(patterns[0], self.choices.choose(same_size)),))
        if row.rule is DTypeRule.SELECT:
            wanted: tuple[DType, ...] = (dtypes.bool, dtype, dtype)
        elif row.rule is DTypeRule.BOOL and dtypes.is_bool(dtype):
            wanted = (self.choices.choose((dtypes.bool, dtypes.float32, dtypes.int8)),) * 2
        else:
            wanted = (dtype,) * row.arity
        src = [self.node(q, d) for q, d in zip(patterns, wanted, strict=True)]
        if src[-1].dtype is not wanted[-1]:  # a name that an outer operand had decided
            src = [self.node(q, src[-1].dtype) for q in patterns]
        return src[0].alu(kind, *src[1:])


def instances(rule: Rule) -> Iterator[tuple[UOp, dict[UOp, list[ConstType]]]]:
    """Left sides of a rule for every kind of dtype in its domain, each with its free operands."""
    for kind in sorted(rule.domain.kinds & DTYPES.keys()):
        for dtype, small in product(DTYPES[kind], (False, True) if kind in ("int", "uint") else (False,)):
            choices = Choices()
            for _ in range(MOST_INSTANCES):
                builder = Builder(choices, small)
                try:
                    yield builder.node(rule.left, dtype), builder.leaves
                except TypeError:
                    pass  # the op does not take this dtype
                if not choices.advance():
                    break


def value_of(root: UOp, known: dict[UOp, ConstType]) -> ConstType:
    """The value of a scalar node, given that of its free operands."""
    done = dict(known)
    for u in root.toposort():
        if u.is_const:
            done[u] = u.arg
        elif u not in done and isinstance(u.op, Ops):
            done[u] = evaluate(u, *(done[s] for s in u.src))
    return done[root]


def same(a: ConstType, b: ConstType, dtype: DType) -> bool:
    return (a != a and b != b) or to_bits(a, dtype) == to_bits(b, dtype)


COST = {
    Ops.ADD: 1.5, Ops.SUB: 1.5, Ops.MAX: 1.5, Ops.NEG: 1.25, Ops.MUL: 3, Ops.MULACC: 3, Ops.WHERE: 2, Ops.FDIV: 10,
    Ops.IDIV: 20, Ops.MOD: 20, UOps.BROADCAST: 0.5,
}  # fmt: skip


def size(root: UOp) -> tuple[float, int]:
    """What a node costs apart from constants, then how many nodes it has."""
    varies: set[UOp] = set()
    total = 0.0
    order = root.toposort()
    for u in order:
        if any(s in varies for s in u.src) or u.op in (UOps.LOAD, UOps.RANGE, UOps.SPECIAL):
            varies.add(u)
            total += COST.get(u.op, 1) * u.dtype.count + 0.1 * len(u.src)
    return total, len(order)


# Left sides that no pattern describes: the last node of each.
V = "%p = param[1] float32*8\n%v = load float32x4 (%p, 0)\n%x = load float32 (%p, 5)\n%g = special[gidx0, 2] int32\n"
W = V + "%w = load float32x4 (%p, 4)\n"
C = "%c = cmplt bool (%g, 1)\n"
EXAMPLES: dict[str, list[str]] = {
    "gep": [
        V + "%h = gep[0, 1, 2, 3] float32x4 (%v)",
        V + "%y = gep[3, 1] float32x2 (%v)\n%h = gep[1] float32 (%y)",
        V + "%y = broadcast float32x4 (%x)\n%h = gep[1] float32 (%y)",
        V + "%y = neg float32 (%x)\n%z = vectorize float32x2 (%x, %y)\n%h = gep[1] float32 (%z)",
        V + "%h = gep[1, 2] float32x2 (2.0:float32x4)",
        W + "%y = gep[3, 4, 5] float32x3 (%v, %w)\n%h = gep[2, 1] float32x2 (%y)",
        W + "%y = gep[3, 4, 5] float32x3 (%v, %w)\n%h = gep[2, 0] float32x2 (%y)",
    ],
    "shuffle": [
        W + "%y = gep[3, 1] float32x2 (%v)\n%z = gep[0, 2] float32x2 (%w)\n%h = gep[1, 3, 2] float32x3 (%y, %z)",
        W + "%y = gep[3, 4] float32x2 (%v, %w)\n%z = gep[7, 2] float32x2 (%v, %w)\n%h = gep[1, 2] float32x2 (%y, %z)",
        W + "%h = gep[1, 6, 2] float32x3 (%v, %v)",
        W + "%y = gep[0, 1, 2, 3] float32x4 (%w)\n%h = gep[7] float32 (%v, %y)",
        W + "%y = broadcast float32x4 (%x)\n%h = gep[5, 0] float32x2 (2.0:float32x4, %y)",
    ],
    "vectorize": [
        W + "%a = gep[2] float32 (%v)\n%b = gep[0] float32 (%w)\n%h = vectorize float32x2 (%a, %b)",
        V + "%a = gep[2] float32 (%v)\n%b = gep[0] float32 (%v)\n%h = vectorize float32x2 (%a, %b)",
        V + "%h = vectorize float32x2 (%x, %x)",
    ],
    "broadcast_constant": [V + "%h = broadcast float32x4 (3.0)"],
    "op_of_broadcast": [
        V + "%b = broadcast float32x4 (%x)\n%h = mul float32x4 (%b, 3.0:float32x4)",
        V + "%b = broadcast float32x4 (%x)\n%d = broadcast boolx4 (true)\n%h = where float32x4 (%d, %b, 1.0:float32x4)",
        V + "%b = broadcast float32x4 (%x)\n%h = cast int8x4 (%b)",
    ],
    "load_gate": [
        V + "%h = load float32x4 (%p, 0, true, %v)",
        V + "%h = load float32x4 (%p, 99, false, %v)",
    ],
    "where_load": [V + C + "%y = load float32 (%p, %g, %c, %x)\n%h = where float32 (%c, %y, %x)"],
    "only_value": [
        "%i = special[gidx1, 1] int32",
        V + "%h = and int32 (%g, 0)",
        V + "%h = shr int32 (%g, 2)",
        V + "%h = idiv int32 (%g, 4)",
    ],
    "store_gate": ["%p = param[0] float32*8\nstore (%p, 0, 1.0, true)"],
    "drop_dead": [
        "%p = param[0] float32*8\n%s = store (%p, 0, 1.0, false)\n%t = store (%p, 1, 2.0)\nsink (%s, %t)",
        "%p = param[0] float32*8\n%s = store (%p, 0, 1.0)\n%t = store (%p, 1, 2.0)\n%i = if (false, %s)\nsink (%i, %t)",
    ],
    "after_nothing": ["%p = param[0] float32*8\n%q = after float32*8 (%p)"],
}


def run(root: UOp) -> bytes:
    """What a node, stored where need be, does to a buffer."""
    out = bytearray(64)
    data = bytearray(b"".join(to_bits(float(n - 3), dtypes.float32).to_bytes(4, "little") for n in range(8)))
    if root.dtype is not dtypes.void and not hasattr(root.dtype, "space"):
        lanes = root.dtype.count
        place = UOp(UOps.SPECIAL, dtypes.int32, (), ("gidx0", 2)).alu(Ops.MUL, const(lanes, dtypes.int32))
        pointer = UOp(UOps.PARAM, root.dtype.scalar().ptr(2 * lanes), (), 0)
        root = UOp(UOps.STORE, dtypes.void, (pointer, place, root))
    elif root.dtype is not dtypes.void:
        root = UOp(UOps.STORE, dtypes.void, (root, const(1, dtypes.int32), const(5.0, dtypes.float32)))
    sink = root if root.op is UOps.SINK else UOp(UOps.SINK, dtypes.void, (root,))
    interpret(sink, [out, data], global_size=(2, 1, 1))
    return bytes(out)


def context(rule: Rule) -> object:
    return Everything(Target()) if rule.name == "multiply_add" else Bounds()


@pytest.mark.parametrize("rule", [r for r in RULES if r.name not in EXAMPLES], ids=lambda rule: rule.name)
def test_both_sides_agree_and_the_right_one_is_smaller(rule: Rule) -> None:
    applied = 0
    for left, leaves in instances(rule):
        right = rule.apply(left, context(rule))
        if right is None:
            continue
        applied += 1
        assert right.dtype is left.dtype
        assert size(right) < size(left), f"{size(left)} -> {size(right)}"
        combinations = list(product(*leaves.values()))
        for combination in combinations[:: 1 + len(combinations) // 300]:
            known = dict(zip(leaves, combination, strict=True))
            a, b = value_of(left, known), value_of(right, known)
            assert same(a, b, left.dtype), f"{list(known.values())}: {a} is not {b}"
    assert applied


@pytest.mark.parametrize(("rule", "text"), [(r, t) for r in RULES for t in EXAMPLES.get(r.name, ())])
def test_examples_agree(rule: Rule, text: str) -> None:
    left = parse_sink(text)
    right = rule.apply(left, context(rule))
    assert right is not None
    assert right.dtype is left.dtype and size(right) < size(left)
    assert run(right) == run(left)


def test_division_rules_are_theorems() -> None:
    """The rules on IDIV and MOD with bounds, for all 32-bit integers."""
    z3 = pytest.importorskip("z3")
    x, y = z3.BitVecs("x y", 32)
    for n in range(31):
        power = z3.BitVecVal(1 << n, 32)
        assert unprovable(z3, z3.Implies(x >= 0, x / power == x >> n)) is None
        assert unprovable(z3, z3.Implies(x >= 0, z3.SRem(x, power) == x & (power - 1))) is None
    below = z3.And(-y < x, x < y)
    assert unprovable(z3, z3.Implies(below, x / y == 0)) is None
    assert unprovable(z3, z3.Implies(below, z3.SRem(x, y) == x)) is None
    assert unprovable(z3, x / z3.BitVecVal(2, 32) == x >> 1) is not None


def unprovable(z3: Any, claim: Any) -> object:
    """A counterexample, or None."""
    solver = z3.Solver()
    solver.add(z3.Not(claim))
    return None if solver.check() == z3.unsat else solver.model()


def test_names_are_unique_and_examples_are_of_rules() -> None:
    names = [rule.name for rule in RULES]
    assert len(set(names)) == len(names)
    assert EXAMPLES.keys() <= set(names)


def test_a_wrong_rule_is_found() -> None:
    wrong = Rule("add_zero", var("x") + 0.0, var("x"), FLOAT)
    with pytest.raises(AssertionError, match="is not"):
        test_both_sides_agree_and_the_right_one_is_smaller(wrong)
