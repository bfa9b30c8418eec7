"""Kernels as text: what is printed is read back as the same nodes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tg_codegen.ir.builder import LinearBuilder
from tg_codegen.ir.text import ParseError, parse, parse_linear, parse_sink, print_uops
from tg_codegen.ir.uop import UOp, UOps, const, shuffle, vectorize
from tg_dtype import AddrSpace, dtypes, from_bits
from tg_lazy import Ops
from tg_shape import Variable, smax

I32, VOID = dtypes.int32, dtypes.void


def kernel(value: UOp) -> UOp:
    pointer = UOp(UOps.PARAM, value.dtype.scalar().ptr(64), (), 0)
    return UOp(UOps.SINK, VOID, (UOp(UOps.STORE, VOID, (pointer, const(0, I32), value)),))


@given(dtype=st.sampled_from(dtypes.all), lanes=st.sampled_from([1, 4]), bits=st.integers(0, 2**64 - 1))
@settings(deadline=None, max_examples=300)
def test_every_constant(dtype: object, lanes: int, bits: int) -> None:
    assert isinstance(dtype, type(I32))
    value = from_bits(bits & ((1 << 8 * dtype.itemsize) - 1), dtype)
    root = kernel(UOp(UOps.CONST, dtype.vec(lanes), (), value))
    assert parse(print_uops(root)) is root


def test_usual_constants_are_bare() -> None:
    printed = [print_uops(kernel(const(v, d))) for v, d in ((3, I32), (0.5, dtypes.float32), (True, dtypes.bool))]
    assert ["0, 3)" in printed[0], "0, 0.5)" in printed[1], "0, true)" in printed[2]] == [True] * 3
    assert "-0.0:float64" in print_uops(kernel(const(-0.0, dtypes.float64)))


def test_every_kind_of_node() -> None:
    n = Variable("n", 1, 10)
    size = smax(n * 4 // 3, 3)
    group = UOp(UOps.SPECIAL, I32, (), ("gidx0", size))
    shared = UOp(UOps.SCRATCH, dtypes.float16.ptr(4, AddrSpace.LOCAL), (), ("tile", 4))
    put = UOp(UOps.STORE, VOID, (shared, const(0, I32), const(1.0, dtypes.float16)))
    ready = UOp(UOps.AFTER, shared.dtype, (shared, UOp(UOps.BARRIER, VOID, (put,), 3)))
    x = UOp(UOps.LOAD, dtypes.float16, (ready, const(0, I32)))
    pair = UOp(UOps.LOAD, dtypes.float16.vec(2), (ready, const(2, I32)))
    v = shuffle(pair, vectorize(x, x.alu(Ops.NEG)), 1, 2)
    i = UOp(UOps.RANGE, I32, (const(0, I32), UOp(UOps.VAR, I32, (), n), const(2, I32)), "i0_1")
    acc = UOp(UOps.ACC, v.dtype, (v, i), 7)
    body = UOp(UOps.IF, VOID, (group.alu(Ops.CMPLT, i), UOp(UOps.ASSIGN, VOID, (acc, acc.alu(Ops.ADD, v)))))
    root = kernel(UOp(UOps.READ, v.dtype, (acc, UOp(UOps.LOOP, VOID, (i, body)))))
    text = print_uops(root)
    assert parse(text) is root
    assert "special[gidx0, max(n + n//3,3), n=1..10] int32" in text
    assert "scratch[tile, 4] float16*4@local" in text


def test_bounds_that_are_symbolic() -> None:
    n = Variable("n", 1, 10)
    k = Variable("k", 0, n - 1)
    root = kernel(UOp(UOps.SPECIAL, I32, (), ("gidx0", k * n + 1)))
    with pytest.raises(ParseError, match="the bounds of n are not stated"):
        parse("%0 = special[gidx0, k + 1, k=0..n - 1] int32")
    assert "[gidx0, k*n + 1, n=1..10, k=0..n - 1]" in print_uops(root)
    assert parse(print_uops(root)) is root


def test_comments_and_blank_lines() -> None:
    text = """
    // a kernel
    %0 = param[0] int32*4   // the output

      store (%0, 1, 2)
    """
    linear = parse_linear(text)
    assert [u.op for u in linear] == [UOps.PARAM, UOps.CONST, UOps.CONST, UOps.STORE]
    assert print_uops(linear) == "%0 = param[0] int32*4\nstore (%0, 1, 2)"


def test_what_is_inside_a_block_is_indented() -> None:
    """In a linear kernel, that is: among the nodes of a graph nothing says where a block ends."""
    k = LinearBuilder()
    out = k.param(0, I32)
    with k.range(7) as i, k.iff(k.alu(Ops.CMPLT, i, k.const(3))):
        k.store(out, i, i)
    k.store(out, k.const(0), k.const(1))
    lines = print_uops(k.uops).splitlines()
    assert [(len(line) - len(line.lstrip()), line.split("=")[-1].split()[0]) for line in lines] == [
        (0, "param[0]"), (0, "range[i]"), (2, "cmplt"), (2, "if[1]"), (4, "store"), (2, "endif"), (0, "endrange"),
        (0, "store"),
    ]  # fmt: skip
    graph = print_uops(kernel(i)).splitlines()
    assert "range[i]" in graph[1] and graph == [line.lstrip() for line in graph]


def test_a_node_that_is_no_kernel() -> None:
    x = const(1, I32).alu(Ops.ADD, UOp(UOps.SPECIAL, I32, (), ("lidx0", 4)))
    assert parse_sink(print_uops(x)) is x
    assert parse_sink(print_uops(const(7, dtypes.uint8))) is const(7, dtypes.uint8)
    with pytest.raises(ParseError, match="no node"):
        parse_sink("// nothing")


@pytest.mark.parametrize("text", ["%n = var[n] int32", "%n = var[n=1] int32", "%g = special[gidx0, n*2, n] int32"])
def test_a_variable_states_its_bounds(text: str) -> None:
    with pytest.raises(ParseError, match="does not state the bounds of a variable"):
        parse(text)


def test_an_error_names_the_line() -> None:
    with pytest.raises(ParseError, match=r"^line 3: 'what is this': not of the form"):
        parse("%0 = param[0] int32*4\n\nwhat is this")
