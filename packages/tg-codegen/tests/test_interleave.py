"""Chains side by side: when, how many, and that what they compute stays what it was."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

import pytest

from tg_codegen import Target, compile_ast, parse_action
from tg_codegen.ir.uop import UOp, UOps, const
from tg_codegen.linear import interleave
from tg_codegen.linear.interpret import interpret
from tg_codegen.linear.linearize import linearize
from tg_codegen.linear.scheduling import scheduled
from tg_codegen.machine.costs import CPUCosts
from tg_codegen.render.llvm import LLVMRenderer
from tg_dtype import dtypes
from tg_lazy import BufferArg, LazyOp, Ops
from tg_lazy import ast as A
from tg_shape import ShapeTracker

I32 = dtypes.int32
CPU = Target(vector_bytes=32, registers=16, cpu=CPUCosts(crowding=1.0))


def chains(lengths: list[int], shared: bool = False) -> list[UOp]:
    """Stores of chains of multiplications, each so long; of one value that all of them begin with, or of their own."""
    out, data = (UOp(UOps.PARAM, I32.ptr(64), (), slot) for slot in (0, 1))
    first, stores = UOp(UOps.LOAD, I32, (data, const(0, I32))).alu(Ops.NEG), []
    for number, length in enumerate(lengths):
        at = const(number, I32)
        value = first if shared else UOp(UOps.LOAD, I32, (data, at))
        for step in range(length):
            value = value.alu(Ops.MUL, const(number + step + 2, I32))
        stores.append(UOp(UOps.STORE, dtypes.void, (out, at, value)))
    return linearize(UOp(UOps.SINK, dtypes.void, tuple(stores)))


def turns(uops: list[UOp]) -> int:
    """How often an operation follows one that it does not need."""
    steps = [u for u in uops if isinstance(u.op, Ops)]
    return sum(a not in b.src for a, b in pairwise(steps))


def test_long_chains_take_turns() -> None:
    lengths = [13, 13, 13, 13]
    assert turns(chains(lengths)) == 3
    assert turns(scheduled(chains(lengths), CPU)) == 51


@pytest.mark.parametrize("lengths", [[12, 12], [13], [40, 3], []])
def test_short_chains_and_one_alone_stay(lengths: list[int]) -> None:
    """Where the scheduler holds enough of them at once: operations in flight, times the longest chain."""
    uops = chains(lengths)
    assert scheduled(uops, CPU) == uops


def test_a_grid_stays() -> None:
    uops = chains([20, 20])
    assert scheduled(uops, replace(CPU, kind="gpu")) == uops


@pytest.mark.parametrize("registers", [1, 2, 3, 4, 5])
def test_as_many_as_registers_hold(registers: int) -> None:
    """Each chain has one value alive; groups are alike in size."""
    uops = scheduled(chains([20] * 4), replace(CPU, registers=registers))
    assert {1: 3, 2: 79, 3: 79, 4: 79, 5: 79}[registers] == turns(uops)


def test_chains_of_random_lengths_compute_the_same() -> None:
    draw = random.Random(1)
    for _ in range(30):
        lengths = [draw.randint(0, 30) for _ in range(draw.randint(0, 7))]
        uops = chains(lengths, draw.random() < 0.5)
        beside = scheduled(uops, replace(CPU, registers=draw.randint(1, 9)))
        results = []
        for form in (uops, beside):
            out, data = bytearray(256), bytearray(draw.randbytes(0) + bytes(range(256)))
            interpret(form, [out, data])
            results.append(bytes(out))
        order = [u for u in beside if u.op is not UOps.BARRIER]
        assert results[0] == results[1] and set(uops) == set(order) and len(uops) == len(order)


def test_short_chains_between_long_ones_take_no_second_look_at_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel of many thousand operations would take minutes."""
    looks, kept = list[int](), interleave._kept

    def look(uops: list[UOp], target: Target) -> int:
        looks.append(len(uops))
        return kept(uops, target)

    monkeypatch.setattr(interleave, "_kept", look)
    uops = chains([20, 1] * 25)
    assert scheduled(uops, CPU) == uops and len(looks) == 1
    uops = chains([20, 20, 1] * 16)
    assert turns(scheduled(uops, CPU)) > turns(uops) and len(looks) == 2


def test_nothing_leaves_its_loop() -> None:
    """A chain behind a loop is long, too, and so is the one inside."""
    out = UOp(UOps.PARAM, I32.ptr(64), (), 0)
    i = UOp(UOps.RANGE, I32, (const(0, I32), const(5, I32)), "i")

    def powers(value: UOp) -> UOp:
        for _ in range(20):
            value = value.alu(Ops.MUL, const(3, I32)).alu(Ops.ADD, i if value.op is UOps.RANGE else const(1, I32))
        return value

    inside = UOp(UOps.STORE, dtypes.void, (out, i, powers(i)))
    behind = UOp(UOps.STORE, dtypes.void, (out, const(9, I32), powers(UOp(UOps.LOAD, I32, (out, const(7, I32))))))
    uops = linearize(UOp(UOps.SINK, dtypes.void, (UOp(UOps.LOOP, dtypes.void, (i, inside)), behind)))
    assert scheduled(uops, CPU) == uops


def exponential(count: int) -> LazyOp:
    """A kernel of exponentials."""
    f32, shape = dtypes.float32, ShapeTracker.from_shape((count,))
    value = A.alu(Ops.EXP2, A.load(1, f32, shape))
    return A.sink((A.store(0, shape, value),), (BufferArg(f32, count), BufferArg(f32, count)))


def test_unrolled_copies_of_an_exponential_take_turns() -> None:
    """In LLVM's text, too: the first operation of each copy stands before the second of any."""
    actions = [parse_action(text) for text in ("split(i0, 8, VECTOR)", "split(i0, 4, UPCAST)")]
    spec = compile_ast(exponential(1024), LLVMRenderer(Target(vector_bytes=32, registers=32)), actions=actions)
    uops = [u for u in spec.uops if isinstance(u.op, Ops) and u.dtype == dtypes.float32.vec(8)]
    loads = [u for u in spec.uops if u.op is UOps.LOAD]
    stores = [at for at, u in enumerate(spec.uops) if u.op is UOps.STORE]
    assert len(loads) == len(stores) == 4 and stores == list(range(stores[0], stores[0] + 4))
    assert [u.op for u in uops[:4]] == [uops[0].op] * 4
