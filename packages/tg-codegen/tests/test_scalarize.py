"""Kernels taken apart into scalars compute the same, in the reference interpreter."""

from __future__ import annotations

import re

import pytest

from tg_codegen.conformance import Case, cases
from tg_codegen.ir.builder import LinearBuilder
from tg_codegen.ir.facts import kernel_facts
from tg_codegen.ir.uop import UOps
from tg_codegen.ir.verify import verify
from tg_codegen.linear.interpret import interpret
from tg_codegen.render.c.clang import ClangRenderer
from tg_codegen.render.wgsl import WGSLRenderer
from tg_codegen.rewrite.scalarize import scalarize
from tg_dtype import dtypes
from tg_lazy import Ops

CASES = [case for case in cases(ClangRenderer(), lanes=4) if any(u.dtype.count > 1 for u in case.uops)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_same_results(case: Case) -> None:
    uops = scalarize(case.uops)
    assert all(u.dtype.count == 1 for u in uops)
    verify(uops)
    buffers = case.buffers()
    variables = kernel_facts(uops).variables
    interpret(uops, buffers, {u.arg.name: value for u, value in zip(variables, case.vals, strict=True)})
    case.check(buffers)


def test_scalars_stay() -> None:
    (case,) = [case for case in cases(ClangRenderer()) if case.name == "row_sums"]
    assert scalarize(case.uops) == list(case.uops)


def test_registers_are_told_apart() -> None:
    (case,) = [case for case in cases(ClangRenderer(), lanes=4) if case.name == "lane_sums"]
    (number,) = {u.arg for u in case.uops if u.op is UOps.ACC}
    assert [u.arg for u in scalarize(case.uops) if u.op is UOps.ACC] == [(number, lane) for lane in range(4)]


def test_lanes_of_a_register_change_together() -> None:
    k = LinearBuilder()
    out = k.param(0, dtypes.int32)
    pair = k.acc(k.vectorize(k.const(1), k.const(2)))
    k.assign(pair, k.gep(pair, 1, 0))
    k.store(out, k.const(0), k.read(pair))
    memory = bytearray(8)
    interpret(scalarize(k.uops), [memory])
    assert list(memoryview(memory).cast("i")) == [2, 1]
    text = WGSLRenderer().render("swap", k.uops)
    assert re.search(r"let (\w+): i32 = acc\w+;\s*let (\w+): i32 = acc\w+;\s*acc\w+ = \1;\s*acc\w+ = \2;", text)


def test_what_one_block_computes_no_other_one_sees() -> None:
    """The index of a store's second lane stands in each block that has such a store, and has a name there."""
    k = LinearBuilder()
    out, i = k.param(0, dtypes.int32), k.special("gidx0", 1)
    conditions = [k.alu(Ops.CMPLT, i, k.const(n)) for n in range(2)]
    eight = k.broadcast(k.const(8), 2)
    for condition in conditions:
        with k.iff(condition):
            k.store(out, i, eight)
            k.store(out, k.alu(Ops.ADD, i, k.const(1)), k.const(7))
    made = scalarize(k.uops)
    verify(made)
    memory = bytearray(8)
    interpret(made, [memory])
    assert list(memoryview(memory).cast("i")) == [8, 7]
    text = WGSLRenderer().render("twice", k.uops)
    assert len(re.findall(r"let \w+: i32 = gidx0 \+ 1i;", text)) == 2, text
