"""Replay: a patch table, the memory that it patches and the ring that its words go to, as one native call."""

from __future__ import annotations

import struct
import threading
from array import array
from collections.abc import Callable, Mapping, Sequence

from tg_runtime.host.interrupts import Uninterrupted
from tg_shape import Variable

from .fileio import MMIO, memory_at
from .native import COPY_COLUMNS, RECORD, RING, Outcome, native_replay
from .patch import PatchTable
from .ring import Ring

_PLACES = {name: place for place, name in enumerate(RECORD)}
_DRY = _PLACES["dry"]


class Counter:
    """A 64-bit word of this process that native code reads and advances.

    Attributes:
      address: where it is.
    """

    __slots__ = ("_word", "address")

    def __init__(self, value: int = 0) -> None:
        self._word = array("Q", [value])
        self.address = self._word.buffer_info()[0]

    @property
    def value(self) -> int:
        """What it is now."""
        return self._word[0]

    @value.setter
    def value(self, new: int) -> None:
        self._word[0] = new


class Replay:
    """A sealed patch table and what a replay does with it.

    In native code it is one call, which no signal of the operating system and no other thread of Python divides. Where
    there is no LLVM, the same is done in Python.

    Attributes:
      table: what changes.

    Args:
      table: what changes; it is sealed here.
      spaces: the memory that it patches.
      counters: variables whose values are in memory. Each is ``step`` more than the word there, which a replay then
        advances by ``step``.
      native: use native code where it is there.
    """

    def __init__(
        self,
        table: PatchTable,
        spaces: Sequence[MMIO],
        counters: Sequence[tuple[Variable, Counter, int]] = (),
        native: bool = True,
    ) -> None:
        table.seal([variable for variable, *_ in counters])
        self.table, self._spaces, self._counters = table, list(spaces), list(counters)
        self._native: Callable[[int], int] | None = native_replay() if native else None
        self._fence: tuple[MMIO, Counter] | None = None
        self._ring: Ring | None = None
        self._lock = threading.Lock()
        self._words = array("I")
        self._copies = array("Q")
        self._record = array("Q", bytes(8 * len(RECORD)))
        self._call = self._record.buffer_info()[0]
        rows = array("Q")
        for slot, (_, counter, step) in enumerate(counters):
            rows.extend((counter.address, slot, step))
        addresses = array("Q", (space.address for space in spaces))
        fresh = array("Q", bytes(8 * len(table)))
        self._kept: tuple[object, ...] = (rows, addresses, fresh)
        self._set(
            inputs=table.inputs, input_count=len(table.inputs), limits=table.limits, sums=table.sums,
            sum_count=len(table), terms=table.terms, rows=table.rows, fresh=fresh, values=table.values,
            known=table.known, spaces=addresses, counters=rows, counter_count=len(counters),
        )  # fmt: skip

    def guard(self, fence: MMIO, serial: Counter) -> None:
        """Has a replay refuse to patch while the 64-bit word at ``fence`` is less than ``serial``."""
        self._fence = fence, serial
        self._set(fence=fence.address, serial=serial.address)

    def stage(self, memory: MMIO) -> None:
        """Has a replay copy what it patched in ``memory``, whole dwords, to where ``direct`` says."""
        self._copies.extend((memory.address, 0, memory.nbytes // 4))
        self._set(copies=self._copies, copy_count=len(self._copies) // COPY_COLUMNS)

    def direct(self, number: int, address: int) -> None:
        """Sets where the host finds the destination of what was staged as the ``number``-th."""
        self._copies[COPY_COLUMNS * number + 1] = address

    def send(self, ring: Ring, words: array[int]) -> None:
        """Has a replay put these words, as they are after it has patched, in a ring from now on.

        Raises:
          ValueError: if they are not whole entries of the ring, or more than it holds.
        """
        if ring is self._ring:
            return
        ring.check_size(len(words))
        described = _described(ring)
        self._set(ring=described, words=words, word_count=len(words))
        self._ring, self._words, self._kept = ring, words, (*self._kept, described)

    def __call__(self, var_vals: Mapping[Variable, int], dry: bool = False) -> Outcome:
        """Does it once, or, if ``dry``, only looks whether it would be done.

        Returns:
          :attr:`Outcome.DONE`, or what is to be waited for; nothing has changed then.

        Raises:
          ValueError: if a variable has no value or one outside of its bounds, or a value does not fit in its places;
            nothing has changed then.
        """
        if self._native is None:
            return self._in_python(var_vals, dry)
        try:
            self.table.fill(var_vals)
        except (KeyError, struct.error):
            self.table.check(self._everything(var_vals))
            raise
        if self.table.derived:
            self.table.derive(self._everything(var_vals))
        with self._lock if self._ring is None else self._ring.lock:
            self._record[_DRY] = dry
            outcome = self._native(self._call)
        if outcome == Outcome.DONE:
            if self._ring is not None and not dry:
                self._ring.counts.append(len(self._words))
            return Outcome.DONE
        if outcome == Outcome.INPUT or outcome == Outcome.VALUE:
            self.table.check(self._everything(var_vals))
            raise AssertionError(f"native code refuses {var_vals}")
        return Outcome(outcome)

    def undo(self) -> None:
        """Takes back what the last replay added to its counters, where nobody executes its words."""
        for _, counter, step in self._counters:
            counter.value -= step

    def _in_python(self, var_vals: Mapping[Variable, int], dry: bool) -> Outcome:
        """What the native code does."""
        everything = self._everything(var_vals)
        self.table.check(everything)
        if self._fence is not None and self._fence[0][0] < self._fence[1].value:
            return Outcome.BUSY
        with Uninterrupted(), self._lock if self._ring is None else self._ring.lock:
            start = None if self._ring is None else self._ring.reserve(len(self._words))
            if self._ring is not None and start is None:
                return Outcome.FULL
            if dry:
                return Outcome.DONE
            self.table.apply(self.table.resolve(everything), self._spaces)
            for at in range(0, len(self._copies), COPY_COLUMNS):
                source, to, dwords = self._copies[at : at + COPY_COLUMNS]
                memory_at(to, 4 * dwords)[:] = memory_at(source, 4 * dwords)
            if self._ring is not None and start is not None:
                self._ring.put(start, self._words)
            for _, counter, step in self._counters:
                counter.value += step
        return Outcome.DONE

    def _everything(self, var_vals: Mapping[Variable, int]) -> dict[Variable, int]:
        return {**var_vals, **{variable: counter.value + step for variable, counter, step in self._counters}}

    def _set(self, **words: int | array[int]) -> None:
        for name, word in words.items():
            self._record[_PLACES[name]] = word if isinstance(word, int) else word.buffer_info()[0]


def _described(ring: Ring) -> array[int]:
    """A ring as native code finds it."""
    words = {
        "base": ring.words.address, "dwords": len(ring.words), "entry_dwords": ring.entry_words, "scale": ring.scale,
        "wraps": ring.entries * ring.scale if ring.wraps else 0,
        "circle": ring.entries * ring.scale if ring.read_wraps else 0, "filler": ring.filler or 0,
        "fills": ring.filler is not None, "headed": ring.invalid is not None, "token": ring.token or 0,
        "tells_token": ring.token is not None,
        "read": ring.read.address, "read_wide": ring.read.fmt == "Q", "write": ring.write.address,
        "write_wide": ring.write.fmt == "Q", "doorbell": ring.doorbell.address,
        "doorbell_wide": ring.doorbell.fmt == "Q", "flush": ring.flush.buffer_info()[0],
        "behind": ring.behind,
    }  # fmt: skip
    return array("Q", (int(words[name]) for name in RING))
