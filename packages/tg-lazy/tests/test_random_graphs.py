"""Random programs against numpy, which computes every step at once."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tg_dtype import dtypes
from tg_lazy import LazyBuffer, LazyOp, Ops, ScheduleItem
from tg_lazy.cost import LIMITS, Limits

Array = np.ndarray[Any, np.dtype[Any]]
Choose = Callable[[int], int]

FUNCTION: dict[Ops, Any] = {
    Ops.ADD: np.add, Ops.SUB: np.subtract, Ops.MUL: np.multiply, Ops.MAX: np.maximum, Ops.NEG: np.negative,
    Ops.SIN: np.sin, Ops.EXP2: np.exp2, Ops.CMPLT: np.less, Ops.CMPNE: np.not_equal, Ops.CMPEQ: np.equal,
}  # fmt: skip
OWNERS = {Ops.BUFFER, Ops.CONTIGUOUS, Ops.ASSIGN}
REDUCER: dict[Ops, Any] = {Ops.ADD: np.add, Ops.MAX: np.maximum, Ops.MUL: np.multiply}


class Program:
    """A random program, kept as pairs of a lazy node and its value."""

    def __init__(self, machine: Any, choose: Choose, limits: Limits | None = None) -> None:
        self.machine, self.choose, self.limits = machine, choose, limits
        self.pairs: list[tuple[LazyBuffer, Array]] = []
        self.log: list[str] = []
        for _ in range(1 + choose(3)):
            self.memory()

    def shape(self) -> tuple[int, ...]:
        sizes = (1, 2, 3, 4, 6)
        return tuple(sizes[self.choose(len(sizes))] for _ in range(self.choose(4)))

    def memory(self) -> None:
        shape = self.shape()
        value = np.array([self.choose(9) - 4 for _ in range(int(np.prod(shape)))]).reshape(shape)
        array = value.astype(np.int32 if self.choose(4) == 0 else np.float32)
        self.keep("memory", self.machine.buffer(array), array)

    def keep(self, what: str, node: LazyBuffer, value: Array) -> None:
        assert node.shape == value.shape, (what, node.shape, value.shape)
        if value.size and value.dtype != np.bool_ and np.abs(value.astype(np.float64)).max() > 1000:
            return
        if value.size > 500:
            return
        self.log.append(f"{len(self.pairs)}: {what} {node.shape}")
        self.pairs.append((node, value))

    def pick(self) -> tuple[LazyBuffer, Array]:
        # the newest are the likeliest: that makes long chains
        n = len(self.pairs)
        return self.pairs[n - 1 - min(self.choose(n), self.choose(n))]

    def step(self) -> None:
        kinds = (
            self.unary, self.binary, self.binary, self.binary, self.reshape, self.permute, self.expand, self.pad,
            self.shrink, self.flip, self.stride, self.reduce, self.reduce, self.normalise, self.constant, self.iota,
            self.contiguous, self.gather, self.assign, self.assign_part, self.accumulate, self.cast, self.where,
            self.memory, self.realise, self.elsewhere, self.bits, self.alias,
        )  # fmt: skip
        kinds[self.choose(len(kinds))]()

    def unary(self) -> None:
        x, v = self.pick()
        ops = (Ops.NEG, Ops.SIN, Ops.EXP2) if x.dtype is dtypes.float32 else (Ops.NEG,)
        op = ops[self.choose(len(ops))]
        if v.dtype == np.bool_ or (op is Ops.EXP2 and v.size and v.max() > 8):
            return
        self.keep(op.name, x.alu(op), FUNCTION[op](v))

    def align(self, x: LazyBuffer, shape: tuple[int, ...]) -> LazyBuffer:
        return x.reshape((1,) * (len(shape) - len(x.shape)) + x.shape).expand(shape)

    def binary(self) -> None:
        (x, v), (y, w) = self.pick(), self.pick()
        if v.dtype != w.dtype or v.dtype == np.bool_:
            return
        try:
            shape = np.broadcast_shapes(v.shape, w.shape)
        except ValueError:
            return
        ops = (Ops.ADD, Ops.SUB, Ops.MUL, Ops.MAX, Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ)
        op = ops[self.choose(len(ops))]
        self.keep(op.name, self.align(x, shape).alu(op, self.align(y, shape)), FUNCTION[op](v, w))

    def where(self) -> None:
        (x, v), (y, w), (z, u) = self.pick(), self.pick(), self.pick()
        if not (v.shape == w.shape == u.shape) or w.dtype != u.dtype or v.dtype == np.bool_:
            return
        self.keep("WHERE", x.alu(Ops.CMPLT, x.const_like(1)).alu(Ops.WHERE, y, z), np.where(v < 1, w, u))

    def cast(self) -> None:
        x, v = self.pick()
        if v.dtype == np.float32:
            self.keep("cast", x.cast(dtypes.int32), v.astype(np.int32))
        else:
            self.keep("cast", x.cast(dtypes.float32), v.astype(np.float32))

    def reshape(self) -> None:
        x, v = self.pick()
        sizes: list[int] = []
        rest = v.size
        for _ in range(3):
            divisors = [d for d in range(1, rest + 1) if rest % d == 0] or [1]
            sizes.append(divisors[self.choose(len(divisors))])
            rest //= max(sizes[-1], 1)
        shape = (*sizes, rest) if v.size else (0,)
        self.keep("reshape", x.reshape(shape), v.reshape(shape))

    def permute(self) -> None:
        x, v = self.pick()
        order = list(range(v.ndim))
        for i in range(v.ndim - 1, 0, -1):
            j = self.choose(i + 1)
            order[i], order[j] = order[j], order[i]
        self.keep("permute", x.permute(tuple(order)), v.transpose(order))

    def expand(self) -> None:
        x, v = self.pick()
        shape = tuple(1 + self.choose(4) if d == 1 else d for d in v.shape)
        self.keep("expand", x.expand(shape), np.broadcast_to(v, shape))

    def pad(self) -> None:
        x, v = self.pick()
        widths = tuple((self.choose(3), self.choose(3)) for _ in v.shape)
        self.keep("pad", x.pad(widths), np.pad(v, widths) if widths else v)

    def shrink(self) -> None:
        x, v = self.pick()
        bounds = []
        for d in v.shape:
            low = self.choose(d) if d else 0
            bounds.append((low, low + 1 + self.choose(d - low) if d else 0))
        self.keep("shrink", x.shrink(tuple(bounds)), v[tuple(slice(a, b) for a, b in bounds)])

    def flip(self) -> None:
        x, v = self.pick()
        axes = tuple(i for i in range(v.ndim) if self.choose(2))
        self.keep("flip", x.flip(axes), np.flip(v, axes))

    def stride(self) -> None:
        x, v = self.pick()
        steps = tuple((1, 2, -1, -2)[self.choose(4)] for _ in v.shape)
        self.keep("stride", x.stride(steps), v[tuple(slice(None, None, s) for s in steps)])

    def reduce(self) -> None:
        x, v = self.pick()
        ops = (Ops.ADD, Ops.MAX, Ops.MUL)
        op = ops[self.choose(len(ops))]
        axes = tuple(i for i in range(v.ndim) if self.choose(2))
        if v.dtype == np.bool_ or (op is Ops.MAX and v.size == 0):
            return
        value = REDUCER[op].reduce(v, axis=axes, keepdims=True, dtype=v.dtype)
        self.keep(f"{op.name} over {axes}", x.reduce(op, axes), value)

    def normalise(self) -> None:
        x, v = self.pick()
        if not v.ndim or v.dtype == np.bool_ or not v.size:
            return
        axis = self.choose(v.ndim)
        greatest = x.reduce(Ops.MAX, (axis,))
        self.keep("normalise", x.alu(Ops.SUB, greatest.expand(x.shape)), v - v.max(axis, keepdims=True))

    def constant(self) -> None:
        x, v = self.pick()
        if v.dtype == np.bool_:
            return
        c = (0, 1, -1, 2)[self.choose(4)]
        if self.choose(3) == 0:
            self.keep("constant", x.const_like(c), np.full_like(v, c))
        else:
            op = (Ops.ADD, Ops.MUL, Ops.MAX)[self.choose(3)]
            self.keep(f"{op.name} {c}", x.alu(op, x.const_like(c)), FUNCTION[op](v, v.dtype.type(c)))

    def iota(self) -> None:
        n = 1 + self.choose(6)
        self.keep("iota", LazyBuffer.iota(n, dtypes.int32, "CPU"), np.arange(n, dtype=np.int32))

    def contiguous(self) -> None:
        x, v = self.pick()
        self.keep("contiguous", x.contiguous(), v)

    def elsewhere(self) -> None:
        x, v = self.pick()
        self.keep("elsewhere", x.copy_to("CL").copy_to("CPU"), v)

    def bits(self) -> None:
        x, v = self.pick()
        if v.dtype == np.float32:
            self.keep("bits", x.bitcast(dtypes.int32).bitcast(dtypes.float32), v)
            if v.ndim and v.size:
                self.keep("bytes", x.bitcast(dtypes.uint8).bitcast(dtypes.float32), v)

    def alias(self) -> None:
        x, v = self.pick()
        self.keep("clone", x.clone(), v)

    def gather(self) -> None:
        (x, v), (y, w) = self.pick(), self.pick()
        if w.dtype != np.int32:
            return
        value = np.zeros(w.shape, v.dtype)
        inside = (w >= 0) & (w < v.size)
        value[inside] = v.reshape(-1)[w[inside]]
        self.keep("gather", x.gather(y), value)

    def forget(self, base: LazyBuffer) -> None:
        """Views of memory that is assigned to see what was assigned: they are no values any more."""
        self.pairs = [(x, v) for x, v in self.pairs if _memory(x) != _memory(base)]

    def target(self) -> tuple[LazyBuffer, Array] | None:
        memory = [(x, v) for x, v in self.pairs if x.base is x and x.op in OWNERS and not x.shared]
        return memory[self.choose(len(memory))] if memory else None

    def assign(self) -> None:
        found = self.target()
        if found is None:
            return
        x, v = found
        fitting = [(y, w) for y, w in self.pairs if w.shape == v.shape and w.dtype == v.dtype and y is not x]
        if fitting:
            y, w = fitting[self.choose(len(fitting))]
            new = x.assign(y)
            self.forget(x)
            self.keep("assign", new, w)

    def assign_part(self) -> None:
        found = self.target()
        if found is None or not found[1].ndim or not found[1].shape[0]:
            return
        x, v = found
        low = self.choose(v.shape[0])
        bounds = ((low, low + 1 + self.choose(v.shape[0] - low)), *((0, d) for d in v.shape[1:]))
        part, inside = x.shrink(bounds), v[bounds[0][0] : bounds[0][1]]
        fitting = [(y, w) for y, w in self.pairs if w.shape == inside.shape and w.dtype == v.dtype and y is not x]
        if not fitting:
            fitting = [(part.alu(Ops.ADD, part.const_like(1)), inside + v.dtype.type(1))]
        y, w = fitting[self.choose(len(fitting))]
        new = part.assign(y)
        value = v.copy()
        value[bounds[0][0] : bounds[0][1]] = w
        self.forget(x)
        self.keep("assign part", x.rebase(new), value)

    def accumulate(self) -> None:
        found = self.target()
        if found is None or found[1].dtype == np.bool_:
            return
        x, v = found
        fitting = [(y, w) for y, w in self.pairs if w.shape == v.shape and w.dtype == v.dtype]
        y, w = fitting[self.choose(len(fitting))]
        new = x.assign(x.alu(Ops.ADD, y))
        self.forget(x)
        self.keep("accumulate", new, v + w)

    def realise(self) -> None:
        x, v = self.pick()
        self.run(x)
        self.log.append("realise")
        np.testing.assert_allclose(self.machine.value(x), v, rtol=1e-4, atol=1e-4)

    def run(self, *outputs: LazyBuffer) -> None:
        for item in self.machine.run(*outputs):
            if self.limits is not None and item.ast.op is Ops.SINK:
                within(self.limits, item)

    def check(self) -> None:
        self.run(*[x for x, _ in self.pairs[-4:]])
        for x, v in reversed(self.pairs):
            np.testing.assert_allclose(self.machine.value(x), v, rtol=1e-4, atol=1e-4, err_msg="\n".join(self.log))


def _memory(node: LazyBuffer) -> object:
    """What stands for the memory of a node, the same for parts of it."""
    base = node.base
    while base.op is Ops.BUFFER_VIEW:
        base = base.srcs[0].base
    return base if base.storage is None else base.storage.root


def within(limits: Limits, item: ScheduleItem) -> None:
    """Asserts that a kernel keeps the limits; what depends on no memory costs nothing, and is not counted."""
    read: set[LazyOp] = set()
    for node in item.ast.toposort():
        if node.op in (Ops.LOAD, Ops.GATHER) or any(src in read for src in node.src):
            read.add(node)
    computed = [node.op for node in read if node.op not in (Ops.LOAD, Ops.VIEW, Ops.STORE, Ops.SINK)]
    assert len(computed) <= limits.nodes and computed.count(Ops.REDUCE) <= limits.stages, item.ast.render()
    assert len(item.bufs) <= limits.buffers, item.ast.render()


def program(machine: Any, choose: Choose, steps: int, limits: Limits | None = None) -> None:
    p = Program(machine, choose, limits)
    for _ in range(steps):
        if not p.pairs:
            p.memory()
        p.step()
    p.check()


@settings(max_examples=60)
@given(data=st.data())
def test_programs_have_numpy_values(make_machine: Any, data: st.DataObject) -> None:
    program(make_machine(), lambda n: data.draw(st.integers(0, n - 1)), 12)


@pytest.mark.drawn(14)
@pytest.mark.parametrize("seed", range(40))
def test_values_do_not_depend_on_the_limits(
    make_machine: Any, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    pick = random.Random(seed)
    limits = Limits(
        nodes=pick.choice([3, 6, 512]), buffers=pick.choice([4, 6, 31]), stages=pick.choice([1, 2, 6]),
        uses=pick.choice([1, 3, 12]), balance=pick.choice([0.1, 2.0, 8.0]), launch_bytes=pick.choice([0, 64, 32768]),
        cache_bytes=pick.choice([8, 131072]), rows=pick.choice([1, 3, 16]), serial_elements=pick.choice([0, 4, 16384]),
        tile_outputs=pick.choice([2, 64]), split_parts=pick.choice([1, 2, 3, 256]), factor_bytes=pick.choice([0, 1]),
    )  # fmt: skip
    monkeypatch.setitem(LIMITS, "CPU", limits)
    program(make_machine(), pick.randrange, 40, limits)


@pytest.mark.parametrize("seed", range(60))
def test_long_programs_have_numpy_values(make_machine: Any, seed: int) -> None:
    program(make_machine(), random.Random(seed).randrange, 40)
