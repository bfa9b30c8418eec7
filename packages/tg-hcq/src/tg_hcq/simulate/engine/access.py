"""Accesses on their way: what a wave of a hostile machine asked for, and what has not returned yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from . import state
from .state import Half, Operation, Scope, Space
from .wave import Wave

Span: TypeAlias = "tuple[Space, int]"
"""Where bytes begin: in which memory, and the address or the offset in it."""
Interval: TypeAlias = "tuple[Space, int, int]"
"""Bytes of a memory: the first one, and the one behind the last."""
Words: TypeAlias = "dict[int, tuple[int, int]]"
"""What registers get, by their offset: a word, and which bits of it."""
ALL_BITS = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class Request:
    """The access that a wave asks for.

    Attributes:
      operation: what it does.
      space: in which memory.
      nbytes: of a lane; of each of a pair.
      signed: whether 1 or 2 bytes are sign-extended.
      register: the offset of the first register that is loaded or stored.
      counter: which counter says when it is done.
      scope: who sees it at once.
      rows: how many registers.
      also: another counter that says so; -1 for none.
      half: where in a register 1 or 2 bytes are.
      returns: whether an atomic has a result.
      pair: whether there are two.
      distance: between them; of a load to shared memory, where there the first lane's words lie.
      second: the offset of the first register of the second one, if stored; of a load to shared memory, how far apart
        the lanes' words lie there.
    """

    operation: Operation
    space: Space
    nbytes: int
    signed: bool
    register: int
    counter: int
    scope: Scope
    rows: int
    also: int
    half: Half
    returns: bool
    pair: bool
    distance: int
    second: int

    @classmethod
    def of(cls, wave: Wave) -> Request:
        """What a wave has stopped for."""
        words = [wave.get(state.REQUEST + 4 * i) for i in range(state.REQUEST_WORDS)]
        operation, space, nbytes, signed, register, counter, scope, rows, also, half, returns, pair, *rest = words
        distance, second = rest
        return cls(
            Operation(operation), Space(space), nbytes, bool(signed), register, counter, Scope(scope), rows,
            _signed(also), Half(half), bool(returns), bool(pair), _signed(distance), second,
        )  # fmt: skip

    @property
    def counters(self) -> frozenset[int]:
        """The counters that say when it is done."""
        return frozenset({self.counter, self.also} - {-1})

    @property
    def loads(self) -> bool:
        """Whether registers get something."""
        if self.operation in (Operation.STORE, Operation.TO_SHARED):
            return False
        return self.operation is not Operation.ATOMIC or self.returns

    def slots(self, lanes: Iterable[int]) -> list[Span]:
        """Where in shared memory lanes' words go that are loaded there."""
        if self.operation is not Operation.TO_SHARED:
            return []
        return [(Space.SHARED, self.distance + self.second * lane) for lane in lanes]

    def word(self, data: bytes) -> bytes:
        """What was loaded as whole words."""
        if self.nbytes >= 4:
            return data
        return (int.from_bytes(data, "little", signed=self.signed) % (1 << 32)).to_bytes(4, "little")

    def spans(self, span: Span) -> list[Span]:
        """Where a lane's bytes begin, of both of a pair."""
        space, at = span
        return [span, (space, at + self.distance)] if self.pair else [span]

    def registers(self, wave: Wave, lane: int) -> list[int]:
        """The offsets of a lane's registers."""
        if self.operation is Operation.SCALAR_LOAD:
            return [self.register + 4 * word for word in range(self.rows)]
        row_bytes, rows = wave.layout.row_bytes, self.rows
        if self.pair and self.operation is Operation.STORE:
            firsts = (self.register, self.second)
            return [first + row_bytes * word + 4 * lane for first in firsts for word in range(rows // 2)]
        return [self.register + row_bytes * word + 4 * lane for word in range(rows)]

    def data(self, wave: Wave, lane: int) -> list[bytes]:
        """The bytes in a lane's registers, of both of a pair."""
        whole = b"".join(wave.get(offset).to_bytes(4, "little") for offset in self.registers(wave, lane))
        begin = 2 if self.half is Half.HIGH else 0
        parts = [whole[: len(whole) // 2], whole[len(whole) // 2 :]] if self.pair else [whole]
        return [part[begin : begin + self.nbytes] for part in parts]

    def mask(self) -> int:
        """Which bits of a register are loaded."""
        return {Half.NEITHER: ALL_BITS, Half.LOW: 0xFFFF, Half.HIGH: ALL_BITS ^ 0xFFFF}[self.half]

    def words(self, wave: Wave, lane: int, data: bytes) -> Words:
        """What a lane's registers hold when these bytes were loaded."""
        if self.nbytes < 4:
            value = int.from_bytes(self.word(data), "little")
            shift = 16 if self.half is Half.HIGH else 0
            return {self.registers(wave, lane)[0]: (value << shift & ALL_BITS, self.mask())}
        return {
            offset: (int.from_bytes(data[4 * i : 4 * i + 4], "little"), ALL_BITS)
            for i, offset in enumerate(self.registers(wave, lane))
        }


def _signed(word: int) -> int:
    return word - (word >> 31 << 32)


class Pending:
    """An access that did not return yet, or was not waited for.

    Args:
      request: what was asked for.
      places: where each lane's bytes begin.
      registers: the offsets of those that it loads.
      finish: does what is left to do for the wave, and gives what the registers hold then. It is told the wave, and
        holds none: waves go when their workgroup does.
      slots: where words begin that it brings to shared memory. Other ways there do not wait for it.

    Attributes:
      counters: those that still count it.
    """

    def __init__(
        self, request: Request, places: Iterable[Span], registers: Iterable[int],
        finish: Callable[[Wave], Words], slots: Iterable[Span] = (),
    ) -> None:  # fmt: skip
        self.request, self.registers, self.finish = request, frozenset(registers), finish
        self.counters = set(request.counters)
        self.intervals = _intervals([begin for span in places for begin in request.spans(span)], request.nbytes)
        self.slots = _intervals(slots, 4 * request.rows)
        self.returned = False

    def precedes(self, other: Pending, ordered: frozenset[int]) -> bool:
        """Whether it must be done before a later access of the same wave.

        Args:
          other: the later one.
          ordered: the counters whose accesses return in order.
        """
        mine, its = self.request, other.request
        in_order = mine.counters == its.counters and mine.counters <= ordered
        same = not self.registers.isdisjoint(other.registers) or _overlap(self.slots, other.slots)
        if in_order and same:
            return True
        scalar = Operation.SCALAR_LOAD in (mine.operation, its.operation)  # has another way to memory
        return not scalar and _overlap(self.intervals, other.intervals)


def _intervals(begins: Iterable[Span], nbytes: int) -> list[Interval]:
    """The bytes that accesses of one size take, as intervals in order that do not touch one another."""
    found: list[Interval] = []
    for space, at in sorted(begins):
        if found and found[-1][0] == space and at <= found[-1][2]:
            found[-1] = space, found[-1][1], max(found[-1][2], at + nbytes)
        else:
            found.append((space, at, at + nbytes))
    return found


def _overlap(some: list[Interval], others: list[Interval]) -> bool:
    """Whether a byte is in both.

    >>> _overlap([(Space.GLOBAL, 0, 4), (Space.GLOBAL, 8, 12)], [(Space.GLOBAL, 4, 8), (Space.SHARED, 8, 12)])
    False
    >>> _overlap([(Space.GLOBAL, 0, 4), (Space.GLOBAL, 8, 12)], [(Space.GLOBAL, 4, 9)])
    True
    """
    i = j = 0
    while i < len(some) and j < len(others):
        (space, begin, end), (other, first, last) = some[i], others[j]
        if space == other and begin < last and first < end:
            return True
        if (space, end) <= (other, last):
            i += 1
        else:
            j += 1
    return False
