"""The rewrite engine: matching, rules, and the fixpoint."""

from __future__ import annotations

import random
import time

import pytest

from tg_codegen.ir.bounds import Bounds
from tg_codegen.ir.uop import UOp, UOps, const
from tg_codegen.rewrite.engine import PatternMatcher, RewriteLoop, Rule, graph_rewrite
from tg_codegen.rewrite.pattern import FLOAT, INT, constant, instantiate, literal, match, op, var
from tg_codegen.rewrite.rules import simplify
from tg_dtype import dtypes
from tg_lazy import ALU, SPEC, Ops

I32, F32 = dtypes.int32, dtypes.float32
x, y, c, d = var("x"), var("y"), constant("c"), constant("d")


def leaf(number: int, dtype: object = I32) -> UOp:
    pointer = UOp(UOps.PARAM, dtype.ptr(), (), number)  # type: ignore[attr-defined]
    return UOp(UOps.LOAD, dtype, (pointer, const(0, I32)))  # type: ignore[arg-type]


A, B = leaf(0), leaf(1)


def test_a_rule_prints_as_its_equation() -> None:
    assert str(Rule("r", (x + c) * 2, x, INT)) == "r: ((x + c) * 2) -> x  [int]"
    assert str(Rule("r", op(Ops.MAX, x, y), y)) == "r: max(x, y) -> y  [any]"
    with pytest.raises(ValueError, match="needs its law as text"):
        Rule("r", x + y, lambda x: x)


def test_rules_are_found_by_op() -> None:
    some = PatternMatcher([Rule("r", x + 0, x, INT), Rule("s", op((Ops.MAX, UOps.GEP), x, y), y)])
    assert some.ops == {Ops.ADD, Ops.MAX, UOps.GEP}
    assert set(Ops) & set(ALU) | set(UOps) == (some + PatternMatcher([Rule("t", x, y)])).ops, "one matches anything"


def test_every_rule_that_applies_is_a_candidate() -> None:
    draw = random.Random(1)
    more = [Rule("ones", x & -1, x), Rule("minus", x + -0.0, x), Rule("two", x * 2, x)]
    matcher = PatternMatcher([*simplify.rules, *more])
    binary = [op for op in ALU if SPEC[op].arity == 2]
    found = set()
    for _ in range(3000):
        dtype = draw.choice([I32, F32, dtypes.uint8, dtypes.uint32, dtypes.bool, dtypes.int64, dtypes.float16])
        numbers = [0, 1] if dtype is dtypes.bool else [0, 1, -1, 2, 3, *([-0.0] if dtypes.is_float(dtype) else [])]
        op, operands = draw.choice(binary), [leaf(5, dtype), leaf(6, dtype), *(const(n, dtype) for n in numbers)]
        operands += [a.alu(Ops.MUL, b) for a, b in [draw.sample(operands, 2)] if dtype is not dtypes.bool]
        try:
            u = draw.choice(operands).alu(op, draw.choice(operands))
        except TypeError:
            continue  # the op has no such dtype
        candidates = matcher.candidates(u)
        for rule in matcher.rules:
            ways = match(rule.left, u)
            if any(way.get("x", u).dtype.kind in rule.domain.kinds for way in ways):
                assert rule in candidates, f"{rule} matches {u!r}"
                found.add(rule.name)
    assert {"ones", "minus", "two", "add_zero", "mul_one", "mul_minus_one"} <= found


def test_a_commutative_op_matches_in_both_orders() -> None:
    rule = Rule("r", x + 0, x, INT)
    assert rule.apply(A.alu(Ops.ADD, const(0, I32))) is A
    assert rule.apply(const(0, I32).alu(Ops.ADD, A)) is A
    assert Rule("r", x - 0, x, INT).apply(const(0, I32).alu(Ops.SUB, A)) is None


def test_nested_commutative_patterns_try_every_order() -> None:
    rule = Rule("r", (x + c) + y * d, y)
    left = A.alu(Ops.ADD, const(1, I32))
    right = B.alu(Ops.MUL, const(2, I32))
    assert rule.apply(right.alu(Ops.ADD, left)) is B


def test_a_name_that_occurs_twice_is_one_node() -> None:
    rule = Rule("r", x - x, literal(0), INT)
    assert rule.apply(A.alu(Ops.SUB, A)) is const(0, I32)
    assert rule.apply(A.alu(Ops.SUB, B)) is None


def test_literals_tell_zeros_and_dtypes_apart() -> None:
    f = leaf(2, F32)
    plus, minus = Rule("r", x + 0.0, x), Rule("r", x + -0.0, x)
    added = f.alu(Ops.ADD, const(-0.0, F32))
    assert plus.apply(added) is None and minus.apply(added) is f
    ones = leaf(3, dtypes.uint8)
    assert Rule("r", x & -1, x).apply(ones.alu(Ops.AND, const(255, dtypes.uint8))) is ones


def test_a_rule_keeps_to_its_domain() -> None:
    f = leaf(2, F32)
    rule = Rule("r", x * 1, x, FLOAT)
    assert rule.apply(f.alu(Ops.MUL, const(1, F32))) is f
    assert rule.apply(A.alu(Ops.MUL, const(1, I32))) is None


def test_constants_of_a_right_side_take_the_dtype_beside_them() -> None:
    made = instantiate(x + 1, {"x": leaf(4, dtypes.uint8)}, I32)
    assert made.src[1] is const(1, dtypes.uint8)
    chosen = instantiate(x.lt(3).where(y, 2), {"x": A, "y": leaf(2, F32)}, F32)
    assert chosen.src[2] is const(2.0, F32) and chosen.src[0].src[1] is const(3, I32)
    with pytest.raises(ValueError, match="does not describe one node"):
        instantiate(y, {"x": A}, I32)


def test_sets_compose_and_the_first_rule_wins() -> None:
    one, two = Rule("one", x + y, x, INT), Rule("two", x + y, y, INT)
    both = PatternMatcher([one]) + PatternMatcher([two])
    assert both.rewrite(A.alu(Ops.ADD, B)) is A
    assert (PatternMatcher([two]) + PatternMatcher([one])).rewrite(A.alu(Ops.ADD, B)) is B


def test_functions_decline_and_see_the_context() -> None:
    seen = []

    def right(x: UOp, root: UOp, ctx: object) -> UOp | None:
        seen.append((root.op, ctx))
        return None

    rules = PatternMatcher([Rule("r", x + y, right, INT, law="never")])
    root = A.alu(Ops.ADD, B)
    assert graph_rewrite(root, rules, "context") is root
    assert seen and all(entry == (Ops.ADD, "context") for entry in seen)


def test_it_goes_on_to_a_fixpoint() -> None:
    root = A
    for number in range(5):
        root = root.alu(Ops.ADD, const(number, I32)).alu(Ops.MUL, const(1, I32))
    made = graph_rewrite(root, simplify, Bounds())
    assert made is A.alu(Ops.ADD, const(10, I32))


def test_shared_nodes_are_rewritten_once() -> None:
    calls = 0

    def right(x: UOp) -> UOp | None:
        nonlocal calls
        calls += 1
        return x

    shared = A.alu(Ops.NEG)
    root = shared.alu(Ops.ADD, B).alu(Ops.MUL, shared)
    graph_rewrite(root, PatternMatcher([Rule("r", -x, right, INT, law="-x -> x")]))
    assert calls == 1


def test_what_a_rule_makes_is_rewritten_deep_down() -> None:
    rules = PatternMatcher([
        Rule("outer", x - y, x + (-y).alu(Ops.NEG), INT),
        Rule("inner", (-x).alu(Ops.NEG), x, INT),
    ])  # fmt: skip
    assert graph_rewrite(A.alu(Ops.SUB, B), rules) is A.alu(Ops.ADD, B)


def test_rules_that_undo_one_another_are_an_error() -> None:
    rules = PatternMatcher([Rule("there", x + y, x - (-y), INT), Rule("back", x - (-y), x + y, INT)])
    with pytest.raises(RewriteLoop, match="rewritten without end"):
        graph_rewrite(A.alu(Ops.ADD, B), rules)


def test_a_long_chain() -> None:
    root = A
    for _ in range(100_000):
        root = root.alu(Ops.MUL, B)
    start = time.process_time()
    assert graph_rewrite(root, simplify, Bounds()) is root
    assert time.process_time() - start < 5


def test_a_long_chain_that_folds() -> None:
    root = A
    for _ in range(5_000):
        root = root.alu(Ops.ADD, const(1, I32))
    assert graph_rewrite(root, simplify, Bounds()) is A.alu(Ops.ADD, const(5_000, I32))


def test_operands_match_in_their_order_before_any_other() -> None:
    """A rule whose right side declines is tried with every other way in which its left side matches, in this order."""
    a, b, c, d = (UOp(UOps.SPECIAL, dtypes.int32, (), (f"gidx{n}", 8)) for n in range(4))
    x, y, z = var("x"), var("y"), var("z")
    ab, cd = a.alu(Ops.ADD, b), c.alu(Ops.ADD, d)
    ways = [(w["x"], w["y"], w["z"]) for w in match((x + y) * z, ab.alu(Ops.MUL, cd))]
    assert ways == [(a, b, cd), (b, a, cd), (c, d, ab), (d, c, ab)]
    assert [(w["x"], w["y"]) for w in match((x + y) * x, ab.alu(Ops.MUL, b))] == [(b, a)]
    assert not match((x + x) * z, ab.alu(Ops.MUL, cd)) and len(match(x + x, a.alu(Ops.ADD, a))) == 1
