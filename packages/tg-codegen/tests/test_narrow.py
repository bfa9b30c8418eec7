"""Kernels whose vectors are cut into narrower ones compute the same, in the reference interpreter."""

from __future__ import annotations

import pytest

from tg_codegen.conformance import Case, cases
from tg_codegen.ir.builder import LinearBuilder
from tg_codegen.ir.facts import kernel_facts
from tg_codegen.ir.uop import UOps
from tg_codegen.ir.verify import verify
from tg_codegen.linear.interpret import interpret
from tg_codegen.render.c.clang import ClangRenderer
from tg_codegen.rewrite.narrow import narrow
from tg_dtype import dtypes
from tg_lazy import Ops

CASES = [
    pytest.param(case, widest, id=f"{case.name}-{lanes}-{widest}")
    for lanes, widest in ((8, 4), (7, 4), (8, 2), (5, 3))
    for case in cases(ClangRenderer(), lanes=lanes)
    if any(u.dtype.count > widest for u in case.uops) and (lanes == 8 or not case.name.startswith(("alu_", "cast_")))
]


@pytest.mark.parametrize(("case", "widest"), CASES)
def test_same_results(case: Case, widest: int) -> None:
    uops = narrow(case.uops, widest)
    assert all(u.dtype.count <= widest for u in uops)
    assert any(u.dtype.count > 1 for u in uops)
    verify(uops)
    buffers = case.buffers()
    variables = kernel_facts(uops).variables
    interpret(uops, buffers, {u.arg.name: value for u, value in zip(variables, case.vals, strict=True)})
    case.check(buffers)


def test_narrow_vectors_stay() -> None:
    (case,) = [case for case in cases(ClangRenderer(), lanes=4) if case.name == "lane_sums"]
    assert narrow(case.uops, 4) == list(case.uops)


def test_parts_are_taken_whole() -> None:
    """A piece that is one part costs nothing; one in a single part is one node."""
    k = LinearBuilder()
    out, a = k.param(0, dtypes.int32), k.param(1, dtypes.int32)
    x = k.load(a, k.const(0), 8)
    k.store(out, k.const(0), k.gep(x, 4, 5, 6, 7))
    k.store(out, k.const(4), k.gep(x, 3, 1))
    made = narrow(k.uops, 4)
    loads = [u for u in made if u.op is UOps.LOAD]
    first, second = (u.src[2] for u in made if u.op is UOps.STORE)
    assert first is loads[1]
    assert (second.op, second.src, second.arg) == (UOps.GEP, (loads[0],), (3, 1))


def test_parts_of_a_register_change_together() -> None:
    k = LinearBuilder()
    out = k.param(0, dtypes.int32)
    four = k.acc(k.vectorize(*(k.const(n) for n in range(4))))
    k.assign(four, k.gep(four, 2, 3, 0, 1))
    k.store(out, k.const(0), k.read(four))
    memory = bytearray(16)
    interpret(narrow(k.uops, 2), [memory])
    assert list(memoryview(memory).cast("i")) == [2, 3, 0, 1]


def test_what_one_block_computes_no_other_one_sees() -> None:
    """The index of a store's second part stands in each block that has such a store."""
    k = LinearBuilder()
    out, i = k.param(0, dtypes.int32), k.special("gidx0", 1)
    eight = k.broadcast(k.const(8), 8)
    for condition in (k.const(False, dtypes.bool), k.const(True, dtypes.bool)):
        with k.iff(condition):
            k.store(out, i, eight)
    k.store(out, k.alu(Ops.ADD, i, k.const(4)), k.broadcast(k.const(7), 4))
    made = narrow(k.uops, 4)
    verify(made)
    assert [u.op for u in made].count(Ops.ADD) == 3
    memory = bytearray(32)
    interpret(made, [memory])
    assert list(memoryview(memory).cast("i")) == [8, 8, 8, 8, 7, 7, 7, 7]
