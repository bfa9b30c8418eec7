"""Where everything lies: the state of a wave, and the record of a decoded instruction.

Native code and Python share both as plain memory. A wave's state is one block: what the engine needs, then the scalar
registers, then the vector registers as rows of 32-bit lanes; a 64-bit value takes two rows, the low one first. Nothing
of a wave is kept anywhere else while it does not run, so that it can be copied to other memory and go on there.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag

RECORD_BYTES = 128
"""A record: the handler's address, the distance to the next record (i32), operands (i32 each), an immediate (i64)."""
NEXT, OPERANDS, IMMEDIATE = 8, 12, 120
MOST_OPERANDS = 27
PARTS = 88
"""Where the addresses of other handlers lie among the operands, if an instruction consists of several (i64 each)."""

# the engine's part of a wave's state, as offsets in bytes
EXEC, STATUS, KIND, RESUME, STOPPED, EXECUTED = 0, 8, 12, 16, 24, 32
LANE, ADDRESS, ACCESS, NBYTES = 40, 48, 56, 60
RANGES, RANGE_COUNT, RANGE = 64, 72, 80  # the table, its rows, and the row that was used last
SHARED, SHARED_BYTES, SCRATCH, SCRATCH_BYTES = 112, 120, 128, 136
RECORDS, CODE_BASE, CODE_SLOTS, CODE_SHIFT, PC = 144, 152, 160, 168, 176
GRANT, REQUEST = 184, 192  # hostile mode: an access is allowed; what is asked for
EVERYTHING, CHECK_ONLY = 1, 2
SIGNALS, WAITS = 248, 252  # barriers that the wave has come to, and that it has waited at (i32 each)
LANE_ADDRESSES, HOSTS, PENDING, DRAWN, SCALARS = 256, 768, 1280, 3328, 3392
PENDING_ROWS, PENDING_BYTES = 1024, 2048  # hostile mode; there, DRAWN is what a wave draws its next bits from (i64)
OUTSIDE = 3336  # likewise, the lanes of an access that lie outside of what is accessed (i64); the host takes it away
REQUEST_WORDS = 14  # the fields of a request, in order
MOST_SCALAR_BYTES = 4 * PENDING_ROWS - SCALARS

RANGE_BYTES = 32
"""A row of the table of mappings: first address, end, what is added for the host's address, flags (i64 each)."""


class Status(IntEnum):
    """Why native code returned."""

    BUDGET = 0
    ENDED = 1
    BARRIER = 2
    FAULT = 3
    FETCH = 4
    ACCESS = 5
    WAIT = 6
    HOST = 7


class FaultKind(IntEnum):
    """What was wrong."""

    UNMAPPED = 1
    PROTECTED = 2
    CROSSING = 3
    MISALIGNED = 4
    SHARED = 5
    SCRATCH = 6
    UNDECODABLE = 7
    PENDING = 8
    TRAP = 9
    BARRIER = 10
    BUFFER = 11


class Access(IntFlag):
    """What a mapping allows, or an access wants."""

    READ = 1
    WRITE = 2
    EXECUTE = 4
    UNCACHED = 8
    """Of a mapping: no cache keeps what is there."""
    COHERENT = 16
    """Of a mapping: no cache hides what others store there; what is stored through a cache may stay in it."""


NO_ACCESS = Access(0)


class Space(IntEnum):
    """Which memory an address is in."""

    GLOBAL = 0
    SHARED = 1
    SCRATCH = 2
    GENERIC = 3
    """Any of the others: parts of the addresses stand for shared memory and for scratch."""


class Half(IntEnum):
    """In which half of a register a lane has 16 bits."""

    NEITHER = 0
    LOW = 1
    HIGH = 2


class Scope(IntEnum):
    """Who sees what an access does at once: it goes past the caches that are nearer than that."""

    UNIT = 0
    """Waves of the same compute unit."""
    DEVICE = 1
    """All waves."""
    SYSTEM = 2
    """The host, too."""


class Operation(IntEnum):
    """What an access does."""

    LOAD = 0
    STORE = 1
    ATOMIC = 2
    SCALAR_LOAD = 3
    EXCHANGE = 4
    """Lanes gave one another words by way of shared memory's unit; what they got is in the registers."""
    TO_SHARED = 5
    """A load whose lanes' words go to shared memory, not to registers."""


class Layout:
    """Where the registers of an instruction set lie in a wave's state.

    Args:
      scalars: names of scalar registers and how many 32-bit words each has; an array of registers is one name.
      vectors: how many vector registers there are.
      lanes: 32 or 64.

    Raises:
      ValueError: if the scalars take too much room, or the lanes are neither.
    """

    def __init__(self, scalars: dict[str, int], vectors: int, lanes: int) -> None:
        if lanes not in (32, 64):
            raise ValueError(f"waves have 32 or 64 lanes, not {lanes}")
        self.lanes, self.vectors, self.row_bytes = lanes, vectors, 4 * lanes
        self.scalars: dict[str, tuple[int, int]] = {}
        at = SCALARS
        for name, words in scalars.items():
            at += at & 4 if words > 1 else 0
            self.scalars[name] = at, words
            at += 4 * words
        if at - SCALARS > MOST_SCALAR_BYTES or vectors > PENDING_BYTES - PENDING_ROWS:
            raise ValueError(f"{at - SCALARS} bytes of scalar registers, or {vectors} vector registers, are too many")
        self.rows = -(-at // 64) * 64
        self.nbytes = self.rows + self.row_bytes * vectors

    def scalar(self, name: str, index: int = 0) -> int:
        """The offset of a scalar register.

        Raises:
          IndexError: if the array of that name is shorter.
        """
        at, words = self.scalars[name]
        if not 0 <= index < words:
            raise IndexError(f"{name}[{index}] of {words}")
        return at + 4 * index

    def vector(self, index: int) -> int:
        """The offset of a vector register's row.

        Raises:
          IndexError: if there are not so many.
        """
        if not 0 <= index < self.vectors:
            raise IndexError(f"vector register {index} of {self.vectors}")
        return self.rows + self.row_bytes * index

    def name(self, offset: int) -> str:
        """The register at an offset, for people."""
        if offset < 0:
            return "a literal"
        if offset < SCALARS:
            return "exec"
        if offset >= self.rows:
            return f"v{(offset - self.rows) // self.row_bytes}"
        name, (at, words) = max(
            ((n, place) for n, place in self.scalars.items() if place[0] <= offset), key=lambda item: item[1][0]
        )
        return f"{name}{(offset - at) // 4}" if words > 2 else name


LITERAL = IMMEDIATE - (1 << 31)
"""The offset of an operand that is the record's immediate."""
