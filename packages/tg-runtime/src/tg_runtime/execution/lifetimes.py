"""The memory of recorded steps: what lives between two of them shares one block, by when it is needed.

A buffer that only the recorded steps know is needed from the step that writes it first to the one that uses it last.
Buffers whose times do not overlap may lie in the same place. Where an output takes the place of an input that dies in
the same kernel, the kernel is made anew to work in place: it must then be one that reads there only what it is about to
overwrite, which its AST tells. As that is one more kernel to compile, only those are made anew without which more
memory would be needed.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Container, Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

from tg_dtype import dtypes
from tg_lazy import LazyOp
from tg_lazy.ast.reuse import in_place, replaceable

from ..device.allocator import LRUAllocator
from ..device.registry import Device
from ..kernels.compile_ahead import compile_ahead
from ..kernels.programs import get_runner
from ..kernels.runner import CompiledRunner
from ..memory.buffer import Buffer
from ..steps.transfer import BufferCopy
from .item import ExecItem

_ALIGNMENT = 64
_MOST_BY_SIZE = 1000
"""Blocks up to which the slower of two ways to place them is tried as well."""
_WORTH = 0.95
"""Kernels are made anew if less than this part of the memory is needed then."""


class Usage(NamedTuple):
    """What the buffers between recorded steps take.

    Attributes:
      buffers: how many there are.
      nbytes: bytes of all of them.
      peak_nbytes: most bytes that are needed at once.
      arena_nbytes: bytes of the memory that they share.
      in_place: how many of them lie in the place of an input of the kernel that makes them.
    """

    buffers: int = 0
    nbytes: int = 0
    peak_nbytes: int = 0
    arena_nbytes: int = 0
    in_place: int = 0

    def plus(self, other: Usage) -> Usage:
        """Of two devices together."""
        return Usage(*[a + b for a, b in zip(self, other, strict=True)])


class Life:
    """A block of memory and when it is needed.

    Attributes:
      nbytes: its size.
      first: the number of the first step that uses it.
      last: of the last one.
      offset: where it lies, once that is decided.
    """

    __slots__ = ("first", "last", "nbytes", "offset")

    def __init__(self, nbytes: int, first: int, last: int) -> None:
        self.nbytes, self.first, self.last, self.offset = nbytes, first, last, 0


def place(lives: Sequence[Life]) -> int:
    """Gives every block its place so that none overlaps another that is needed at the same time.

    Returns:
      How many bytes that takes.
    """
    in_order = _place_in_order(lives)
    if len(lives) > _MOST_BY_SIZE or in_order == needed(lives):
        return in_order
    offsets = [life.offset for life in lives]
    by_size = _place_by_size(lives)
    if by_size <= in_order:
        return by_size
    for life, offset in zip(lives, offsets, strict=True):
        life.offset = offset
    return in_order


def _place_by_size(lives: Sequence[Life]) -> int:
    """Large blocks first, each in the lowest gap between those that are needed when it is."""
    placed: list[tuple[int, int, Life]] = []  # where it lies and ends
    for life in sorted(lives, key=lambda life: (-life.nbytes, life.first)):
        size, offset = _rounded(life.nbytes), 0
        for start, end, other in placed:
            if other.first <= life.last and life.first <= other.last:
                if start - offset >= size:
                    break
                offset = max(offset, end)
        life.offset = offset
        insort(placed, (offset, offset + size, life), key=lambda entry: entry[0])
    return max((end for _, end, _ in placed), default=0)


def _place_in_order(lives: Sequence[Life]) -> int:
    """Step by step: a block takes the smallest gap that it fits in, else the end."""
    free: list[tuple[int, int]] = []  # gaps: offset and size, in order, none touching another
    end = 0
    leaving: dict[int, list[Life]] = {}
    starting: dict[int, list[Life]] = {}
    for life in lives:
        starting.setdefault(life.first, []).append(life)
        leaving.setdefault(life.last + 1, []).append(life)
    for step in sorted({*starting, *leaving}):
        for life in leaving.get(step, ()):
            end = _give_back(free, life.offset, _rounded(life.nbytes), end)
        for life in sorted(starting.get(step, ()), key=lambda life: -life.nbytes):
            size = _rounded(life.nbytes)
            fits = [(room, offset) for offset, room in free if room >= size]
            if fits:
                room, life.offset = min(fits)
                free.remove((life.offset, room))
                if room > size:
                    insort(free, (life.offset + size, room - size))
            else:
                life.offset, end = end, end + size
    return max((life.offset + _rounded(life.nbytes) for life in lives), default=0)


def _give_back(free: list[tuple[int, int]], offset: int, size: int, end: int) -> int:
    """Adds a gap, merged with its neighbours; one at the end moves the end."""
    for gap in list(free):
        if gap[0] + gap[1] == offset:
            free.remove(gap)
            offset, size = gap[0], size + gap[1]
        elif offset + size == gap[0]:
            free.remove(gap)
            size += gap[1]
    if offset + size == end:
        return offset
    insort(free, (offset, size))
    return end


def _rounded(nbytes: int) -> int:
    return max(1, -(-nbytes // _ALIGNMENT)) * _ALIGNMENT


def needed(lives: Iterable[Life]) -> int:
    """Most bytes that are needed at once."""
    return max(_load(lives).values(), default=0)


def _load(lives: Iterable[Life]) -> dict[int, int]:
    """How many bytes are needed from a step on, for the steps at which that changes."""
    change: dict[int, int] = {}
    for life in lives:
        change[life.first] = change.get(life.first, 0) + _rounded(life.nbytes)
        change[life.last + 1] = change.get(life.last + 1, 0) - _rounded(life.nbytes)
    steps = sorted(change)
    return dict(zip(steps, accumulate(change[step] for step in steps), strict=True))


class _Lives:
    """When the buffers of one device are needed.

    Attributes:
      of: by the buffer that owns the memory; only those that nobody else knows.
    """

    def __init__(self, items: Sequence[ExecItem], ended: Container[int], device: str) -> None:
        self.items = items
        self.of: dict[Buffer, Life] = {}
        known: set[Buffer] = set()
        for number, item in enumerate(items):
            reads = _read_by(item)
            for position, buffer in enumerate(item.bufs):
                if buffer is None or buffer.base.device != device:
                    continue
                base = buffer.base
                life = self.of.get(base)
                if life is not None:
                    life.last = number
                elif id(base) in ended and position not in reads and base not in known:
                    self.of[base] = Life(base.nbytes, number, number)
                else:
                    known.add(base)  # it is read before it is written, or not only here

    def replacements(self) -> dict[int, dict[int, int]]:
        """For steps, by number, which input slots an output slot each may take the place of."""
        found: dict[int, dict[int, int]] = {}
        for number, item in enumerate(self.items):
            runner, bufs = item.prg, item.bufs
            if not isinstance(runner, CompiledRunner) or runner.ast is None or len({id(b) for b in bufs}) != len(bufs):
                continue
            ends = [self._ends(buffer, number) for buffer in bufs]
            taken: dict[int, int] = {}
            for output, inputs in replaceable(runner.ast).items() if (False, True) in ends else ():
                place = next((n for n in inputs if ends[n] == (False, True) and n not in taken), None)
                if place is not None and ends[output][0]:
                    taken[place] = output
            if taken:
                found[number] = taken
        return found

    def _ends(self, buffer: Buffer | None, number: int) -> tuple[bool, bool]:
        """Whether a step is the first and the last to use a buffer, the whole of it."""
        life = None if buffer is None else self.of.get(buffer)
        return (False, False) if life is None else (life.first == number, life.last == number)

    def joined(self, replacements: dict[int, dict[int, int]]) -> dict[Buffer, Life]:
        """As :attr:`of`, with one life for all buffers that are in one another's place."""
        lives = {buffer: Life(life.nbytes, life.first, life.last) for buffer, life in self.of.items()}
        for number, taken in sorted(replacements.items()):
            bufs = self.items[number].bufs
            for place, output in taken.items():
                before, after = bufs[place], bufs[output]
                assert before is not None and after is not None
                lives[before].last = lives[after].last
                lives[after] = lives[before]
        return lives

    def sparing(self, nbytes: int) -> tuple[dict[Buffer, Life], dict[int, dict[int, int]]]:
        """The lives, placed, with as few replacements as need the least memory; with none where that is not worth it.

        Args:
          nbytes: how many bytes are needed without replacements.
        """
        every = self.replacements()
        joined = self.joined(every)
        least = place(_distinct(joined)) if every else nbytes
        if least >= _WORTH * nbytes:
            return self.of, {}
        load = _load(self.of.values())  # where both buffers have room beside the others, one need not go
        few = {number: taken for number, taken in every.items() if load[number] > least}
        if len(few) < len(every):
            fewer = self.joined(few)
            if place(_distinct(fewer)) <= least:
                return fewer, few
        return joined, every


def _read_by(item: ExecItem) -> set[int]:
    """The positions of the buffers that a step may read, or not write at all."""
    if isinstance(item.prg, CompiledRunner):
        return {n for n in range(len(item.bufs)) if n in item.prg.spec.ins or n not in item.prg.spec.outs}
    if item.prg.outs is not None:
        return set(range(len(item.bufs))).difference(item.prg.outs)
    return {1} if isinstance(item.prg, BufferCopy) else set(range(len(item.bufs)))


def arrange(items: Sequence[ExecItem], ended: Iterable[Buffer]) -> tuple[list[ExecItem], Usage]:
    """Lets the buffers between recorded steps share memory.

    Args:
      items: the steps, in order.
      ended: buffers without memory that nothing but the steps will use.

    Returns:
      The steps, with buffers that are parts of the shared memory where they were among ``ended``, and what that takes.
      Steps of a device that has no use for it stay as they are.
    """
    buffers = [buffer.base for buffer in ended]
    numbers = {id(buffer) for buffer in buffers}
    for item in items:
        for buffer in item.bufs:
            if buffer is not None and id(buffer.base) in numbers:
                buffer.deallocate()  # a view of what is gone must not remember where that was
    out, usage = list(items), Usage()
    for device in sorted({buffer.device for buffer in buffers}):
        allocator = Device[device].allocator
        if allocator.shares_blocks:
            if isinstance(allocator, LRUAllocator):
                allocator.free_cache()  # where these buffers were: what will be asked for next is one block for all
            usage = usage.plus(_arrange(out, numbers, device))
    return out, usage


def _arrange(items: list[ExecItem], ended: Container[int], device: str) -> Usage:
    found = _Lives(items, ended, device)
    if not found.of:
        return Usage()
    lives, replacements = found.sparing(place(list(found.of.values())))
    kernels = {number: _in_place(items[number], taken) for number, taken in replacements.items()}
    compile_ahead((Device[device], ast) for ast in kernels.values())
    for number, taken in replacements.items():
        bufs = [buffer for n, buffer in enumerate(items[number].bufs) if n not in taken]
        items[number] = ExecItem(get_runner(Device[device], kernels[number]), bufs, items[number].told_origin)
    count = sum(map(len, replacements.values()))
    distinct = _distinct(lives)
    arena = Buffer(device, place(distinct), dtypes.uint8)
    parts: dict[int, Buffer] = {}
    for number, item in enumerate(items):
        bufs = [_part(buffer, lives, arena, parts) for buffer in item.bufs]
        if any(a is not b for a, b in zip(bufs, item.bufs, strict=True)):
            items[number] = item.on(bufs)
    return Usage(len(found.of), sum(buffer.nbytes for buffer in found.of), needed(distinct), arena.nbytes, count)


def _distinct(lives: dict[Buffer, Life]) -> list[Life]:
    return list({id(life): life for life in lives.values()}.values())


def _in_place(item: ExecItem, taken: dict[int, int]) -> LazyOp:
    """The kernel of a step, made anew so that outputs are in the place of inputs."""
    runner = item.prg
    assert isinstance(runner, CompiledRunner) and runner.ast is not None
    return in_place(runner.ast, taken)


def _part(buffer: Buffer | None, lives: dict[Buffer, Life], arena: Buffer, parts: dict[int, Buffer]) -> Buffer | None:
    """The part of the arena that stands for a buffer or a view of one; any other buffer unchanged."""
    life = None if buffer is None else lives.get(buffer.base)
    if buffer is None or life is None:
        return buffer
    part = parts.get(id(buffer))
    if part is None:
        offset = life.offset + (0 if buffer.base is buffer else buffer.offset)
        part = parts[id(buffer)] = Buffer(arena.device, buffer.size, buffer.dtype, base=arena, offset=offset)
    return part
