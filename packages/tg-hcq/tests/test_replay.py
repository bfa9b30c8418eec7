"""Replays: native code and Python do the same to random tables, and refuse the same."""

from __future__ import annotations

import random
from array import array

import pytest

from tg_hcq import MMIO, PatchTable, Ring, System
from tg_hcq.core.native import Outcome, native_replay
from tg_hcq.core.replay import Counter, Replay
from tg_shape import Expr, Variable, sint

SPACES, DWORDS = 3, 40
COUNT = Variable("count", 1, 1000)
BOUNDS = [(0, 2**64 - 1), (-(2**63), 2**63 - 1), (0, 2**31), (-100, 100), (5, 5 + 2**40), (2**63, 2**63 + 9)]

needs_llvm = pytest.mark.skipif(native_replay() is None, reason="no LLVM")


def expression(rng: random.Random, variables: list[Variable]) -> Expr:
    """A variable, a sum, or what is none: products, quotients and remainders, sums that overflow 64 bits."""
    a, b = rng.choice(variables), rng.choice(variables)
    made: sint = rng.choice(
        [a, a, a + rng.randint(0, 999), a * 3 + b * 5 - 7, a - b, a * -1, a % 13, a // 7 * 9 + b, (a % 6) * (b % 5) + a]
    )
    return made if isinstance(made, Expr) else a


def table_of(rng: random.Random, variables: list[Variable]) -> PatchTable:
    table = PatchTable()
    for _ in range(rng.randint(1, 120)):
        width = rng.choice([1, 7, 8, 16, 31, 32, 32, 32])
        low, shift = rng.randint(0, 32 - width), rng.choice([0, 0, 0, 4, 32, 63])
        place = rng.randrange(SPACES), rng.randrange(DWORDS)
        value = expression(rng, [*variables, COUNT])
        try:
            table.add(value, *place, width=width, low=low, shift=shift, part=rng.random() < 0.9)
        except ValueError as error:
            assert "never fits" in str(error)
    return table


def value_of(rng: random.Random, variable: Variable) -> int:
    """Often a limit or next to one; sometimes outside."""
    low, high = variable.vmin, variable.vmax
    if rng.random() < 0.01:
        return rng.choice([low - 1, high + 1, -(2**63), 2**64 - 1])
    return rng.choice([low, high, min(low + 1, high), max(high - 1, low), rng.randint(low, high)])


class Side:
    """A table, and memory that it patches."""

    def __init__(self, seed: int, native: bool) -> None:
        rng = random.Random(seed)
        self.variables = [Variable(f"v{i}", *rng.choice(BOUNDS)) for i in range(rng.randint(1, 12))]
        self.memory = [MMIO.of(bytearray(rng.randbytes(4 * DWORDS)), "I") for _ in range(SPACES)]
        self.counter = Counter(rng.choice([0, 990]))
        self.fence = MMIO.of(bytearray(8), "Q")
        self.replay = Replay(table_of(rng, self.variables), self.memory, [(COUNT, self.counter, 1)], native)
        self.replay.guard(self.fence, self.counter)
        self.fence[0] = self.counter.value

    def run(self, values: dict[Variable, int]) -> str:
        try:
            return self.replay(values).name
        except ValueError as error:
            return str(error)

    def state(self) -> tuple[list[list[int]], int, list[int], list[Expr]]:
        words = [space.read(0, len(space)) for space in self.memory]
        return words, self.counter.value, self.replay.table.values.tolist(), self.replay.table.exprs


@needs_llvm
@pytest.mark.parametrize("seed", range(60))
def test_native_code_does_what_python_does(seed: int) -> None:
    native, python = Side(seed, native=True), Side(seed, native=False)
    rng = random.Random(-seed)
    values = {v: rng.randint(v.vmin, v.vmax) for v in native.variables}
    for _ in range(60):
        before = native.state()
        for _ in range(rng.randint(0, 4)):
            variable = rng.choice(native.variables)
            values[variable] = value_of(rng, variable)
        held = rng.random() < 0.1 and native.counter.value > 0
        for side in (native, python):
            side.fence[0] = side.counter.value - held
        said = native.run(values)
        assert said == python.run(values)
        assert native.state() == python.state()
        if said != "DONE":  # nothing has changed
            assert native.state() == before
            for variable in native.variables:
                values[variable] = rng.randint(variable.vmin, variable.vmax)


@pytest.mark.parametrize("native", [pytest.param(True, marks=needs_llvm), False], ids=["native", "python"])
def test_a_value_that_does_not_fit_its_field_is_refused_before_anything_is_written(native: bool) -> None:
    n, m, words = Variable("n", 0, 2**20), Variable("m", 0, 9), MMIO.of(bytearray(12), "I")
    table = PatchTable()
    table.add(m, 0, 0)
    table.add(n, 0, 1, width=8)
    table.add(n, 0, 2, width=4, shift=12)
    replay = Replay(table, [words], native=native)
    assert replay({n: 255, m: 1}) is Outcome.DONE
    assert words.read(0, 3) == [1, 255, 0]
    with pytest.raises(ValueError, match="n is 256, which does not fit in 0 to 255"):
        replay({n: 256, m: 2})
    with pytest.raises(ValueError, match="no value for variable m"):
        replay({n: 1})
    for bad in (1.5, "1"):
        with pytest.raises((ValueError, TypeError)):
            replay({n: bad, m: 1})  # type: ignore[dict-item]
    assert words.read(0, 3) == [1, 255, 0]
    assert replay({n: 7, m: 3}) is Outcome.DONE
    assert words.read(0, 3) == [3, 7, 0]


@pytest.mark.parametrize("native", [pytest.param(True, marks=needs_llvm), False], ids=["native", "python"])
def test_a_bound_variable_is_a_constant(native: bool) -> None:
    n, m, words = Variable("n", 0, 99), Variable("m", 0, 99), MMIO.of(bytearray(8), "I")
    table = PatchTable()
    for dword, value in enumerate((m.bind(7) * 3 + n, (m.bind(7) + n) // 2)):
        assert isinstance(value, Expr)
        table.add(value, 0, dword)
    assert Replay(table, [words], native=native)({n: 5}) is Outcome.DONE
    assert words.read(0, 2) == [26, 6]


def test_words_that_are_in_use_are_not_patched() -> None:
    n, words, fence, serial = Variable("n", 0, 9), MMIO.of(bytearray(4), "I"), MMIO.of(bytearray(8), "Q"), Counter(3)
    table = PatchTable()
    table.add(n, 0, 0)
    for native in (True, False):
        replay = Replay(table, [words], native=native)
        replay.guard(fence, serial)
        fence[0] = 2
        assert replay({n: 5}) is Outcome.BUSY and words[0] == 0
    fence[0] = 3
    assert replay({n: 5}) is Outcome.DONE and words[0] == 5


def test_variables_and_values_that_64_bits_do_not_hold() -> None:
    table = PatchTable()
    for low, high in ((0, 2**64), (-1, 2**63), (-(2**63) - 1, 0)):
        with pytest.raises(ValueError, match="no integer of 64 bits"):
            table.add(Variable("x", low, high), 0, 0, part=True)
    with pytest.raises(ValueError, match="never fits in 8 bits"):
        table.add(Variable("y", 256, 300), 0, 0, width=8)
    assert len(table) == 0


def test_only_what_changed_is_patched() -> None:
    n, m, memory = Variable("n", 0, 9), Variable("m", 0, 9), array("I", bytes(8))
    table = PatchTable()
    table.add(n, 0, 0)
    table.add(m, 0, 1)
    replay = Replay(table, [MMIO.of(memoryview(memory), "I")])
    replay({n: 1, m: 2})
    memory[0] = 77  # nobody writes it again
    replay({n: 1, m: 3})
    assert memory.tolist() == [77, 3]


RINGS: list[dict[str, int | bool]] = [
    {},
    {"scale": 4},
    {"entry_words": 2, "wraps": True},
    {"entry_words": 16, "token": 0x1234},
    {"entry_words": 16, "invalid": 1, "behind": 1},
    {"filler": 0x80000000, "scale": 4},
    {"filler": 7, "wraps": True, "scale": 8},
    {"read_wraps": True},
    {"filler": 7, "entry_words": 4},
]


class Sender:
    """A queue of random words, one of them symbolic, and a ring with pointers of 4 or 8 bytes."""

    def __init__(self, seed: int, options: dict[str, int | bool], native: bool) -> None:
        rng = random.Random(seed)
        unit = int(options.get("entry_words", 1))
        entries = rng.randint(3, 20)
        memory = MMIO.of(bytearray(4 * unit * entries + 28), "I")
        read, write, bell = (memory.view(8 * i, 8, rng.choice(["I", "Q"])) for i in range(3))
        self.memory = memory
        words = memory.view(24, 4 * unit * entries)
        self.ring = Ring("test", words, read, write, bell, System(), **options)  # type: ignore[arg-type]
        self.register = memory.view(24 + 4 * unit * entries, 4, "I")
        self.queues, self.counter = [], Counter()
        for _ in range(3):
            sent = array("I", (rng.getrandbits(32) for _ in range(unit * rng.randint(1, max(entries // 2, 1)))))
            table = PatchTable()
            table.add(COUNT, 0, rng.randrange(len(sent)))
            replay = Replay(table, [MMIO.of(memoryview(sent), "I")], [(COUNT, self.counter, 1)], native)
            replay.send(self.ring, sent)
            self.queues.append(replay)

    def read(self, entries: int) -> None:
        """Moves the read pointer as the processor does."""
        ring = self.ring
        position = ring.read[0] + min(entries, ring.used()) * ring.scale
        ring.read[0] = position % (ring.entries * ring.scale) if ring.wraps else position


@needs_llvm
@pytest.mark.parametrize("options", RINGS, ids=str)
@pytest.mark.parametrize("seed", range(5))
def test_words_go_to_the_ring_as_python_puts_them(options: dict[str, int | bool], seed: int) -> None:
    native, python = Sender(seed, options, native=True), Sender(seed, options, native=False)
    rng, outcomes = random.Random(seed), set()
    for _ in range(300):
        which, entries = rng.randrange(3), rng.choice([0, 0, 1, 2, 5])
        flushed = rng.random() < 0.5  # may change at any time
        for side in (native, python):
            side.register[0] = 7
            side.ring.flush[0] = side.register.address if flushed else 0
        outcome = native.queues[which]({})
        assert outcome is python.queues[which]({})
        assert native.memory.read(0, len(native.memory)) == python.memory.read(0, len(python.memory))
        assert native.counter.value == python.counter.value
        assert native.register[0] == (0 if flushed and outcome is Outcome.DONE else 7)
        outcomes.add(outcome)
        for side in (native, python):
            side.read(entries)
    assert outcomes == {Outcome.DONE, Outcome.FULL}


def test_words_that_a_ring_cannot_hold_are_refused() -> None:
    side = Sender(0, {"entry_words": 2}, native=True)
    replay = Replay(PatchTable(), [])
    with pytest.raises(ValueError, match="3 words are not whole entries of 2"):
        replay.send(side.ring, array("I", [1, 2, 3]))
    with pytest.raises(ValueError, match="do not fit in a ring"):
        replay.send(side.ring, array("I", bytes(4 * 1000)))
