"""Where in a range of addresses allocations lie: two-level segregated fit.

Source: Masmano, Ripoll, Crespo, Real, "TLSF: a new dynamic memory allocator for real-time systems" (ECRTS 2004).
It hands out numbers and touches no memory, so that one class serves virtual addresses, physical memory and windows.
"""

from __future__ import annotations

_SECOND_LEVEL_BITS = 4  # classes of sizes between two powers of two, as a power of two


class _Block:
    """A part of the range; neighbours by address are linked, free or not."""

    __slots__ = ("after", "before", "free", "nbytes", "start")

    def __init__(self, start: int, nbytes: int, before: _Block | None, after: _Block | None) -> None:
        self.start, self.nbytes, self.before, self.after, self.free = start, nbytes, before, after, True


class TLSF:
    """Allocates parts of a range of addresses; taking and giving back cost the same however many parts there are.

    Args:
      base: the first address; a multiple of ``granule``.
      nbytes: how long the range is; what is left of a multiple of ``granule`` is not used.
      granule: every part begins at a multiple of it and is a multiple of it long; a power of two.

    Raises:
      ValueError: if ``granule`` is not a power of two, ``base`` is no multiple of it, or the range has none.

    Example:
      >>> space = TLSF(0x10000, 0x10000, granule=0x1000)
      >>> hex(space.alloc(0x1800)), hex(space.alloc(0x1000, align=0x8000))
      ('0x10000', '0x18000')
      >>> space.free(0x10000)
      >>> hex(space.free_bytes)
      '0xf000'
    """

    def __init__(self, base: int, nbytes: int, granule: int = 4096) -> None:
        if granule < 1 or granule & (granule - 1):
            raise ValueError(f"a granule of {granule} bytes is not a power of two")
        if base < 0 or base % granule:
            raise ValueError(f"the range begins at {base:#x}, which is no multiple of {granule:#x}")
        nbytes -= nbytes % granule
        if nbytes <= 0:
            raise ValueError(f"the range holds no part of {granule:#x} bytes")
        self.base, self.nbytes, self.granule = base, nbytes, granule
        self.free_bytes = nbytes
        self._used: dict[int, _Block] = {}
        self._lists: dict[tuple[int, int], dict[int, _Block]] = {}  # by class, in the order in which they came
        self._first, self._second = 0, [0] * (nbytes.bit_length() + 1)  # bitmaps of classes that are not empty
        self._put(_Block(base, nbytes, None, None))

    def alloc(self, nbytes: int, align: int = 1) -> int:
        """The address of a part of at least ``nbytes``.

        Raises:
          ValueError: if ``nbytes`` is less than 1, or ``align`` is not a power of two.
          MemoryError: if no free part is long enough.
        """
        if nbytes < 1:
            raise ValueError(f"{nbytes} bytes cannot be allocated")
        if align < 1 or align & (align - 1):
            raise ValueError(f"an alignment of {align} bytes is not a power of two")
        wanted, align = -(-nbytes // self.granule) * self.granule, max(align, self.granule)
        block = self._find(wanted, align)
        if block is None:
            raise MemoryError(
                f"no {nbytes:#x} bytes at a multiple of {align:#x} are free: {self.free_bytes:#x} of {self.nbytes:#x} "
                f"bytes are, the longest part has {self.largest:#x}"
            )
        self._take(block)
        if (gap := -block.start % align) > 0:
            rest = self._split(block, gap)
            self._put(block)
            block = rest
        if block.nbytes > wanted:
            self._put(self._split(block, wanted))
        self._used[block.start] = block
        self.free_bytes -= wanted
        return block.start

    def free(self, address: int) -> None:
        """Gives a part back; it joins free neighbours.

        Raises:
          ValueError: if no part that is in use begins there.
        """
        block = self._used.pop(address, None)
        if block is None:
            raise ValueError(f"no part begins at {address:#x}, or it was freed before")
        self.free_bytes += block.nbytes
        before, after = block.before, block.after
        if before is not None and before.free:
            self._take(before)
            block = self._join(before, block)
        if after is not None and after.free:
            self._take(after)
            block = self._join(block, after)
        self._put(block)

    def size(self, address: int) -> int:
        """How many bytes the part at ``address`` has.

        Raises:
          KeyError: if no part that is in use begins there.
        """
        return self._used[address].nbytes

    @property
    def largest(self) -> int:
        """The bytes of the longest free part."""
        if not self._first:
            return 0
        first = self._first.bit_length() - 1
        blocks = self._lists[first, self._second[first].bit_length() - 1]
        return max(block.nbytes for block in blocks.values())

    def _class(self, nbytes: int) -> tuple[int, int]:
        first = nbytes.bit_length() - 1
        return first, (nbytes << _SECOND_LEVEL_BITS >> first) & ((1 << _SECOND_LEVEL_BITS) - 1)

    def _find(self, nbytes: int, align: int) -> _Block | None:
        # any block of the next class is long enough, wherever in it the aligned address lies
        longest = nbytes + align - self.granule
        first, second = self._class(longest + (1 << max(longest.bit_length() - 1 - _SECOND_LEVEL_BITS, 0)) - 1)
        found = self._from(first, second)
        if found is not None:
            return next(iter(self._lists[found].values()))
        # little is left: one of a class below may do as well, which takes a look at each
        where = self._from(*self._class(nbytes))
        while where is not None:
            for block in self._lists[where].values():
                if block.nbytes - -block.start % align >= nbytes:
                    return block
            where = self._from(where[0], where[1] + 1)
        return None

    def _from(self, first: int, second: int) -> tuple[int, int] | None:
        """The smallest class from this one on that is not empty."""
        if first < len(self._second) and (rows := self._second[first] >> second << second):
            return first, (rows & -rows).bit_length() - 1
        rows = self._first >> (first + 1) << (first + 1)
        if not rows:
            return None
        first = (rows & -rows).bit_length() - 1
        return first, (self._second[first] & -self._second[first]).bit_length() - 1

    def _put(self, block: _Block) -> None:
        block.free = True
        first, second = where = self._class(block.nbytes)
        self._lists.setdefault(where, {})[block.start] = block
        self._first |= 1 << first
        self._second[first] |= 1 << second

    def _take(self, block: _Block) -> None:
        block.free = False
        first, second = where = self._class(block.nbytes)
        blocks = self._lists[where]
        del blocks[block.start]
        if not blocks:
            self._second[first] &= ~(1 << second)
            if not self._second[first]:
                self._first &= ~(1 << first)

    def _split(self, block: _Block, nbytes: int) -> _Block:
        """Shortens a block that is in no list; returns what follows it, in no list either."""
        rest = _Block(block.start + nbytes, block.nbytes - nbytes, block, block.after)
        rest.free = False
        if block.after is not None:
            block.after.before = rest
        block.nbytes, block.after = nbytes, rest
        return rest

    def _join(self, block: _Block, following: _Block) -> _Block:
        block.nbytes, block.after = block.nbytes + following.nbytes, following.after
        if following.after is not None:
            following.after.before = block
        return block
