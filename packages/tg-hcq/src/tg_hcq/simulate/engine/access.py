"""Accesses on their way: what a wave of a hostile machine asked for, and what has not returned yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from . import state
from .state import Operation, Scope, Space
from .wave import Wave


@dataclass(frozen=True, slots=True)
class Request:
    """The access that a wave asks for.

    Attributes:
      operation: what it does.
      space: in which memory.
      nbytes: of a lane.
      signed: whether 1 or 2 bytes are sign-extended.
      register: the offset of the first register that is loaded or stored.
      counter: which counter says when it is done.
      scope: who sees it at once.
      rows: how many registers.
    """

    operation: Operation
    space: Space
    nbytes: int
    signed: bool
    register: int
    counter: int
    scope: Scope
    rows: int

    @classmethod
    def of(cls, wave: Wave) -> Request:
        """What a wave has stopped for."""
        operation, space, nbytes, signed, register, counter, scope, rows = (
            wave.get(state.REQUEST + 4 * i) for i in range(state.REQUEST_WORDS)
        )
        return cls(Operation(operation), Space(space), nbytes, bool(signed), register, counter, Scope(scope), rows)

    def registers(self, wave: Wave, lane: int) -> list[int]:
        """The offsets of a lane's registers."""
        if self.operation is Operation.SCALAR_LOAD:
            return [self.register + 4 * word for word in range(self.rows)]
        return [self.register + wave.layout.row_bytes * word + 4 * lane for word in range(self.rows)]

    def data(self, wave: Wave, lane: int) -> bytes:
        """The bytes in a lane's registers."""
        whole = b"".join(wave.get(offset).to_bytes(4, "little") for offset in self.registers(wave, lane))
        return whole[: self.nbytes]

    def words(self, wave: Wave, lane: int, data: bytes) -> dict[int, int]:
        """What a lane's registers hold when these bytes were loaded, by their offset."""
        if self.nbytes < 4:
            value = int.from_bytes(data, "little", signed=self.signed)
            return {self.registers(wave, lane)[0]: value % (1 << 32)}
        return {
            offset: int.from_bytes(data[4 * i : 4 * i + 4], "little")
            for i, offset in enumerate(self.registers(wave, lane))
        }


class Pending:
    """An access that did not return yet, or was not waited for.

    Args:
      request: what was asked for.
      places: where each lane's bytes begin: an address, or an offset in the memory of its space.
      registers: the offsets of those that it loads.
      finish: does what is left to do, and gives what the registers hold then.
    """

    def __init__(
        self, request: Request, places: Iterable[int], registers: Iterable[int], finish: Callable[[], dict[int, int]]
    ) -> None:
        self.request, self.registers, self.finish = request, frozenset(registers), finish
        self.bytes = frozenset(at + i for at in places for i in range(request.nbytes))
        self.returned = False

    def precedes(self, other: Pending, ordered: frozenset[int]) -> bool:
        """Whether it must be done before a later access of the same wave.

        Args:
          other: the later one.
          ordered: the counters whose accesses return in order.
        """
        mine, its = self.request, other.request
        if mine.counter == its.counter and mine.counter in ordered and not self.registers.isdisjoint(other.registers):
            return True
        scalar = Operation.SCALAR_LOAD in (mine.operation, its.operation)  # has another way to memory
        return mine.space is its.space and not scalar and not self.bytes.isdisjoint(other.bytes)
