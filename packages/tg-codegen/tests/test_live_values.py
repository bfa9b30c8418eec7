"""Blocks in an order in which few values are alive: when, how few, and that what they compute stays what it was."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from itertools import pairwise

import pytest

from tg_codegen import Target
from tg_codegen.ir.uop import UOp, UOps, const
from tg_codegen.linear.interpret import interpret
from tg_codegen.linear.linearize import linearize
from tg_codegen.linear.live_values import few_alive, most_alive
from tg_codegen.linear.scheduling import scheduled
from tg_codegen.machine.costs import CPUCosts
from tg_dtype import dtypes
from tg_lazy import Ops

F32, INDEX = dtypes.float32, dtypes.int64
CPU = Target(vector_bytes=32, registers=16)


def crowded(registers: int) -> Target:
    """A machine of so many registers that lets no value be reloaded."""
    return Target(registers=registers, cpu=CPUCosts(crowding=1.0, scheduler=10_000))


def array(slot: int) -> UOp:
    return UOp(UOps.PARAM, F32.ptr(64), (), slot)


def load(slot: int, at: UOp) -> UOp:
    return UOp(UOps.LOAD, F32, (array(slot), at))


def store(slot: int, at: UOp, value: UOp) -> UOp:
    return UOp(UOps.STORE, dtypes.void, (array(slot), at, value))


def place(number: int) -> UOp:
    return const(number, INDEX)


def butterflies(bits: int) -> list[UOp]:
    """Sums and differences over every bit of so many numbers, each stored as it is found from the operands."""
    values = [load(1, place(n)) for n in range(1 << bits)]
    for bit in range(bits):
        values = [values[n & ~(1 << bit)].alu(Ops.SUB if n >> bit & 1 else Ops.ADD, values[n | 1 << bit])
                  for n in range(1 << bits)]  # fmt: skip
    stores = [store(0, place(n), value) for n, value in enumerate(values)]
    return linearize(UOp(UOps.SINK, dtypes.void, tuple(stores)))


def block(uops: Sequence[UOp]) -> list[UOp]:
    """What stands behind constants and arguments, without barriers."""
    return [u for u in uops if u.src]


def written(uops: list[UOp], seed: int) -> list[bytes]:
    """What a kernel leaves in both arrays, in which small integers are at first."""
    draw = random.Random(seed)
    data = [bytearray(b"".join(struct.pack("f", draw.randint(-99, 99)) for _ in range(64))) for _ in range(2)]
    interpret(uops, data)
    return [bytes(buffer) for buffer in data]


@pytest.mark.parametrize("bits", [2, 3, 4, 5])
def test_butterflies_need_a_register_more_than_they_have_numbers(bits: int) -> None:
    uops = butterflies(bits)
    count = 1 << bits
    few = block(scheduled(uops, crowded(count)))
    assert most_alive(few, CPU) == count + 1 < most_alive(block(uops), CPU)
    assert sorted(map(id, few)) == sorted(map(id, block(uops)))


def test_what_registers_hold_stays() -> None:
    """And where a few values do not fit, as many as are reloaded without delay."""
    uops = butterflies(3)
    most = most_alive(block(uops), CPU)
    assert scheduled(uops, crowded(most)) == uops != scheduled(uops, crowded(most - 1))
    some = Target(registers=most - 1, cpu=CPUCosts(crowding=1.25, scheduler=10_000))
    assert scheduled(uops, some) == uops


def test_a_grid_stays() -> None:
    uops = butterflies(4)
    assert scheduled(uops, Target(kind="gpu", registers=8)) == uops


def test_registers_that_are_assigned_stay() -> None:
    """An assignment ends the old value of its register, which no operand says."""
    zero = UOp(UOps.ACC, F32, (const(0.0, F32),), 0)
    uops = [*block(butterflies(4)), UOp(UOps.ASSIGN, dtypes.void, (zero, const(1.0, F32)))]
    assert few_alive(uops, frozenset(), crowded(4)) is uops


def test_what_the_kernel_needs_later_stays_alive() -> None:
    """The last use in a block frees no register where another block uses the value, too."""
    uops = block(butterflies(3))
    last = {s: u for u in uops for s in u.src}  # a difference, which frees both of its operands, comes after a sum
    numbers = [u for u in uops if u.op is UOps.LOAD]
    few = few_alive(uops, frozenset(), crowded(8))
    kept = few_alive(uops, frozenset(numbers), crowded(8))
    assert few != kept and sorted(map(id, few)) == sorted(map(id, kept))
    assert all(few.index(last[n]) < few.index(numbers[-1]) for n in numbers[:4])
    assert any(kept.index(last[n]) > kept.index(numbers[-1]) for n in numbers[:4])


def test_a_load_stays_behind_a_store_to_its_element() -> None:
    """Also where no operand says so: in a list that was put in order already."""
    uops = block(butterflies(3))
    first, again = store(0, place(0), load(1, place(9))), load(0, place(0))
    late = store(1, place(30), again)
    uops = [first.src[2], first, *uops[:-3], again, late]
    few = few_alive(uops, frozenset(), crowded(2))
    assert few != uops and few.index(first) < few.index(again)


@pytest.mark.parametrize("registers", [8, 32])
def test_barriers_keep_the_order_that_was_chosen(registers: int) -> None:
    """And stand nowhere else: between nodes of a block that was put in order, every few of them."""
    uops = scheduled(butterflies(4), crowded(registers))
    barriers = [at for at, u in enumerate(uops) if u.op is UOps.BARRIER]
    changed = [u for u in uops if u.op is not UOps.BARRIER] != butterflies(4)
    assert changed is (registers == 8) is bool(barriers)
    first = len(uops) - len(block(uops)) - len(barriers)
    assert all(b - a <= 17 for a, b in pairwise([first, *barriers, len(uops)]) if barriers)


def kernel(draw: random.Random) -> UOp:
    """Stores of sums of what was loaded before, from two arrays at places that several counters tell."""
    i = UOp(UOps.RANGE, INDEX, (const(0, INDEX), const(draw.randint(1, 3), INDEX)), "i")
    origins = draw.choice([[i], [i, i.alu(Ops.MUL, const(2, INDEX))], [place(0)], [i, place(0)]])

    def at() -> UOp:
        origin, number = draw.choice(origins), place(draw.randint(0, 12))
        return number if origin.is_const else origin.alu(Ops.ADD, number)

    values = [load(draw.randint(0, 1), at()) for _ in range(draw.randint(2, 9))]
    effects = list[UOp]()
    for _ in range(draw.randint(2, 30)):
        values.append(draw.choice(values).alu(draw.choice([Ops.ADD, Ops.SUB, Ops.MAX]), draw.choice(values)))
        if draw.random() < 0.4:
            effects.append(store(draw.randint(0, 1), at(), draw.choice(values)))
        if effects and draw.random() < 0.2:  # what a store has written is read again
            back = effects[-1]
            after = UOp(UOps.AFTER, back.src[0].dtype, (back.src[0], back))
            values.append(UOp(UOps.LOAD, F32, (after, back.src[1])))
    effects.append(store(0, place(60), values[-1]))
    return UOp(UOps.SINK, dtypes.void, (UOp(UOps.LOOP, dtypes.void, (i, *effects)),))


def test_random_blocks_compute_the_same() -> None:
    """Stores and loads of the same element stay in order, of any count of registers."""
    draw, moved = random.Random(1), 0
    for number in range(800):
        uops = linearize(kernel(draw))
        few = scheduled(uops, crowded(draw.randint(1, 6)))
        moved += few != uops
        assert sorted(map(id, block(few))) == sorted(map(id, block(uops)))
        assert written(few, number) == written(uops, number)
    assert moved > 100
