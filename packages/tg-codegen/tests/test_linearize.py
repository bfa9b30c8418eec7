"""Linearising: random structured kernels do what their nesting says, and long ones take linear time."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable
from weakref import ref

from hypothesis import given, settings
from hypothesis import strategies as st

from tg_codegen import Target
from tg_codegen.ir.bounds import Bounds
from tg_codegen.ir.text import parse, print_uops
from tg_codegen.ir.uop import UOp, UOps, const
from tg_codegen.ir.verify import verify
from tg_codegen.linear.interpret import interpret
from tg_codegen.linear.linearize import linearize
from tg_codegen.linear.scheduling import scheduled
from tg_codegen.machine.costs import CPUCosts
from tg_codegen.rewrite.engine import graph_rewrite
from tg_codegen.rewrite.rules import simplify
from tg_dtype import AddrSpace, dtypes
from tg_lazy import Ops
from tg_shape import toposort

I32, VOID = dtypes.int32, dtypes.void
OUT = UOp(UOps.PARAM, I32.ptr(64), (), 0)
IN = UOp(UOps.PARAM, I32.ptr(64), (), 1)
EAGER = Target(registers=1 << 20, cpu=CPUCosts(scheduler=0))
"""A machine on which any two chains of arithmetic stand side by side."""
CROWDED = Target(registers=1, cpu=CPUCosts(scheduler=1 << 20))
"""A machine on which blocks are put in an order in which few values are alive."""


def num(value: int) -> UOp:
    return const(value, I32)


def counter(name: str, end: int | UOp) -> UOp:
    return UOp(UOps.RANGE, I32, (num(0), num(end) if isinstance(end, int) else end), name)


def loop(r: UOp, *effects: UOp) -> UOp:
    return UOp(UOps.LOOP, VOID, (r, *effects))


def sink(*effects: UOp) -> UOp:
    return UOp(UOps.SINK, VOID, effects)


def store(index: UOp, value: UOp) -> UOp:
    return UOp(UOps.STORE, VOID, (OUT, index, value))


Memory = list[int]
Env = dict[UOp, int]
Program = Callable[[Env, Memory], None]


class Kernel:
    """Draws a kernel as UOps, and beside each effect a Python function that does the same."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data
        self.names = 0
        self.stores = 0
        self.accs = 0

    def pick(self, low: int, high: int) -> int:
        return self.data.draw(st.integers(low, high))

    def fresh(self) -> int:
        self.names += 1
        return self.names

    def value(self, open_ranges: list[UOp], depth: int = 2) -> tuple[UOp, Callable[[Env], int]]:
        """An expression over the open counters and the input."""
        kind = self.pick(0, 4 if depth else 2)
        if kind == 0 or (kind == 1 and not open_ranges):
            n = self.pick(-3, 9)
            return num(n), lambda env: n
        if kind == 1:
            r = open_ranges[self.pick(0, len(open_ranges) - 1)]
            return r, lambda env: env[r]
        if kind == 2:
            r_index = self.pick(0, 63)
            at = num(r_index)
            return UOp(UOps.LOAD, I32, (IN, at)), lambda env: r_index * 3
        a, fa = self.value(open_ranges, depth - 1)
        b, fb = self.value(open_ranges, depth - 1)
        if kind == 3:
            return a.alu(Ops.ADD, b), lambda env: fa(env) + fb(env)
        return a.alu(Ops.MUL, b), lambda env: fa(env) * fb(env)

    def total(self, open_ranges: list[UOp]) -> tuple[UOp, Callable[[Env], int]]:
        """A sum over a loop of its own, as an unlisted effect behind READ."""
        start, fstart = self.value(open_ranges, 1)
        k = counter(f"k{self.fresh()}", self.pick(1, 4))
        term, fterm = self.value([*open_ranges, k], 1)
        self.accs += 1
        acc = UOp(UOps.ACC, I32, (start, *open_ranges), self.accs)
        effect = loop(k, UOp(UOps.ASSIGN, VOID, (acc, acc.alu(Ops.ADD, term))))

        def run(env: Env) -> int:
            return fstart(env) + sum(fterm({**env, k: n}) for n in range(k.src[1].arg))

        return UOp(UOps.READ, I32, (acc, effect)), run

    def effect(self, open_ranges: list[UOp], depth: int) -> tuple[UOp, Program]:
        kind = self.pick(0, 4 if depth else 1)
        if kind <= 1:
            x, fx = self.total(open_ranges) if kind == 0 and self.pick(0, 1) else self.value(open_ranges)
            place = self.stores % 64
            self.stores += 1

            def put(env: Env, memory: Memory) -> None:
                memory[place] = _wrap(fx(env))

            return store(num(place), x), put
        if kind == 2:
            condition, fc = self.value(open_ranges, 1)
            test = condition.alu(Ops.CMPLT, num(2))
            parts = [self.effect(open_ranges, depth - 1) for _ in range(self.pick(1, 2))]

            def maybe(env: Env, memory: Memory) -> None:
                if fc(env) < 2:
                    for _, run in parts:
                        run(env, memory)

            return UOp(UOps.IF, VOID, (test, *(u for u, _ in parts))), maybe
        r = counter(f"r{self.fresh()}", self.pick(0, 3))
        inside = [self.effect([*open_ranges, r], depth - 1) for _ in range(self.pick(1, 3))]

        def repeat(env: Env, memory: Memory) -> None:
            for n in range(r.src[1].arg):
                for _, run in inside:
                    run({**env, r: n}, memory)

        return loop(r, *(u for u, _ in inside)), repeat


def _wrap(x: int) -> int:
    return (x + 2**31) % 2**32 - 2**31


@given(st.data())
@settings(deadline=None, max_examples=150)
def test_random_kernels(data: st.DataObject) -> None:
    kernel = Kernel(data)
    effects = [kernel.effect([], 3) for _ in range(kernel.pick(1, 3))]
    root = sink(*(u for u, _ in effects))
    verify(root)
    linear = linearize(root)
    verify(linear)
    assert parse(print_uops(linear)) == linear
    assert parse(print_uops(root)) is root
    memory = [0] * 64
    for _, run in effects:
        run({}, memory)
    source = bytearray(b"".join((n * 3).to_bytes(4, "little") for n in range(64)))
    ordered = [scheduled(linear, target) for target in (EAGER, CROWDED)]
    for uops in ordered:
        verify(uops)
        assert sorted(id(u) for u in uops if u.op is not UOps.BARRIER) == sorted(map(id, linear))
    forms: list[UOp | list[UOp]] = [linear, graph_rewrite(root, simplify, Bounds()), *ordered]
    for form in forms:
        out = bytearray(256)
        interpret(form, [out, source])
        assert memoryview(out).cast("i").tolist() == memory


def test_operands_stand_close_to_their_use() -> None:
    effects = []
    for n in range(8):
        x = UOp(UOps.LOAD, I32, (IN, num(n)))
        effects.append(store(num(n), x.alu(Ops.NEG)))
    ops = [u.op for u in linearize(sink(*effects)) if u.op in (UOps.LOAD, UOps.STORE, Ops.NEG)]
    assert ops == [UOps.LOAD, Ops.NEG, UOps.STORE] * 8


def test_a_tile_is_filled_where_its_inputs_are_known() -> None:
    """What fills scratch is no part of the loop that reads it, and stays inside the loop that it depends on."""
    i, j, f = counter("i", 4), counter("j", 4), counter("f", 4)
    tile = UOp(UOps.SCRATCH, I32.ptr(4, AddrSpace.REG), (), ("tile", 4))
    source = UOp(UOps.LOAD, I32, (IN, i.alu(Ops.MUL, num(4)).alu(Ops.ADD, f)))
    fill = loop(f, UOp(UOps.STORE, VOID, (tile, f, source)))
    ready = UOp(UOps.AFTER, tile.dtype, (tile, fill))
    x = UOp(UOps.LOAD, I32, (ready, num(3).alu(Ops.SUB, j)))
    root = sink(loop(i, loop(j, store(i.alu(Ops.MUL, num(4)).alu(Ops.ADD, j), x))))
    order = [u.arg for u in linearize(root) if u.op is UOps.RANGE]
    assert order == ["i", "f", "j"]
    out = bytearray(256)
    interpret(root, [out, bytearray(b"".join(n.to_bytes(4, "little") for n in range(64)))])
    assert memoryview(out).cast("i").tolist()[:8] == [3, 2, 1, 0, 7, 6, 5, 4]


def test_a_register_that_starts_from_another() -> None:
    k, j = counter("k", 3), counter("j", 2)
    outer = UOp(UOps.ACC, I32, (num(1),), 0)
    inner = UOp(UOps.ACC, I32, (outer, k), 1)
    body = loop(j, UOp(UOps.ASSIGN, VOID, (inner, inner.alu(Ops.ADD, inner))))
    step = UOp(UOps.ASSIGN, VOID, (outer, UOp(UOps.READ, I32, (inner, body))))
    result = UOp(UOps.READ, I32, (outer, loop(k, step)))
    out = bytearray(256)
    interpret(sink(store(num(0), result)), [out, bytearray(256)])
    assert memoryview(out).cast("i")[0] == 64


def test_two_loops_go_on_with_one_register() -> None:
    k, rest = counter("k", 4), counter("rest", 3)
    acc = UOp(UOps.ACC, I32, (num(0),), 0)
    main = loop(k, UOp(UOps.ASSIGN, VOID, (acc, acc.alu(Ops.ADD, num(10)))))
    tail = loop(rest, UOp(UOps.ASSIGN, VOID, (acc, acc.alu(Ops.ADD, num(1)))))
    out = bytearray(256)
    interpret(sink(main, tail, store(num(0), UOp(UOps.READ, I32, (acc, tail)))), [out, bytearray(256)])
    assert memoryview(out).cast("i")[0] == 43


def test_a_hundred_thousand_nodes() -> None:
    i = counter("i", 8)
    chain: UOp = i
    for n in range(100_000):
        chain = chain.alu(Ops.ADD, UOp(UOps.LOAD, I32, (IN, num(n % 64)))) if n % 2 else chain.alu(Ops.MUL, i)
    start = time.process_time()
    linear = linearize(sink(loop(i, store(i, chain))))
    assert time.process_time() - start < 8
    assert len(linear) > 100_000


def test_many_stores_in_place_take_linear_time() -> None:
    big = UOp(UOps.PARAM, I32.ptr(5000), (), 0)
    for base in (None, counter("i", 1)):
        at = [num(n) if base is None else base.alu(Ops.ADD, num(n)) for n in range(5000)]
        stores = [UOp(UOps.STORE, VOID, (big, at[n], UOp(UOps.LOAD, I32, (big, at[4999 - n])))) for n in range(4000)]
        start = time.process_time()
        linear = linearize(sink(*stores) if base is None else sink(loop(base, *stores)))
        assert time.process_time() - start < 4
        memory = bytearray(20000)
        memoryview(memory).cast("i")[:] = memoryview(array("i", range(5000)))
        interpret(linear, [memory])
        assert memoryview(memory).cast("i").tolist() == [*range(4999, 999, -1), *range(4000, 5000)]


@given(st.data())
@settings(deadline=None, max_examples=100)
def test_in_place_old_values_are_read(data: st.DataObject) -> None:
    """By vectors that overlap or do not, at places that are numbers, sums, or something else."""
    i, stores, expected = counter("i", 1), [], list(range(64))
    bases = [num(0), i, i.alu(Ops.MUL, num(3))]
    whole = UOp(UOps.PARAM, I32.ptr(64), (), 0)

    def place(lanes: int) -> tuple[UOp, int]:
        base, n = data.draw(st.sampled_from(bases)), data.draw(st.integers(0, 64 - lanes))
        return (num(n) if base.is_const else base.alu(Ops.ADD, num(n)) if n else base), n

    for _ in range(data.draw(st.integers(1, 12))):
        lanes = data.draw(st.sampled_from((1, 2, 4, 8)))
        (source, start), (target, end) = place(lanes), place(lanes)
        value, length = UOp(UOps.LOAD, I32.vec(lanes), (whole, source)), data.draw(st.integers(0, 3))
        for _ in range(length):
            value = value.alu(Ops.NEG)
        stores.append(UOp(UOps.STORE, VOID, (whole, target, value)))
        expected[end : end + lanes] = [(-1) ** length * n for n in range(start, start + lanes)]
    linear = linearize(sink(loop(i, *stores)))
    for form in (linear, scheduled(linear, EAGER), scheduled(linear, CROWDED)):
        verify(form)
        memory = bytearray(256)
        memoryview(memory).cast("i")[:] = memoryview(array("i", range(64)))
        interpret(form, [memory])
        assert memoryview(memory).cast("i").tolist() == expected


def test_what_is_done_in_place_needs_few_registers() -> None:
    """A value is read when it is needed, where no store before has written there."""
    i, big = counter("i", 4), UOp(UOps.PARAM, I32.ptr(64), (), 0)
    at = [i.alu(Ops.MUL, num(16)).alu(Ops.ADD, num(n)) for n in range(16)]
    stores = [UOp(UOps.STORE, VOID, (big, a, UOp(UOps.LOAD, I32, (big, a)).alu(Ops.NEG))) for a in at]
    ops = [u.op for u in linearize(sink(loop(i, *stores))) if u.op in (UOps.LOAD, UOps.STORE)]
    assert ops == [UOps.LOAD, UOps.STORE] * 16


def test_an_effect_that_stands_in_two_blocks_has_its_operands_before_both() -> None:
    """Zeros into shared memory, say, once inside a loop and once behind it: one node, since they are equal."""
    start = UOp(UOps.LOAD, I32, (IN, num(0)))
    zero = store(start.alu(Ops.ADD, num(1)), num(0))
    i = counter("i", 3)
    uops = linearize(sink(loop(i, zero, store(i, num(7))), zero))
    verify(uops)
    assert [u.op for u in uops].index(Ops.ADD) < [u.op for u in uops].index(UOps.RANGE)


def test_the_order_of_a_kernel_is_kept_while_it_is_there() -> None:
    """Passes ask for it one after the other; what one does to its list is not seen by the next."""
    i = counter("i", 5)
    kernel = sink(loop(i, store(i, i.alu(Ops.MUL, num(7)))))
    order = kernel.toposort()
    assert order[-1] is kernel and order == toposort((kernel,), lambda u: u.src)
    order.clear()
    other = sink(store(num(3), num(2)))
    assert kernel.toposort() == toposort((kernel,), lambda u: u.src)
    assert other.toposort() == toposort((other,), lambda u: u.src)
    last = ref(other)
    del other
    assert last() is None, "the order does not keep it"
    assert kernel.toposort() == toposort((kernel,), lambda u: u.src)
