"""What changes between replays, as plain data that native code can walk.

A table lists the symbolic values of a queue. Every value is computed once a replay into a flat array of 64-bit
integers, and the rows of those that changed are applied. In C, with ``spaces`` the base addresses of the memories that
are patched::

    for (i = 0; i < n_changed; i++)
      for (r = starts[changed[i]]; r < starts[changed[i] + 1]; r++) {
        int64_t *row = rows + 4 * r;                       // space, dword, shift, mask
        uint32_t *word = spaces[row[0]] + row[1];
        uint64_t value = values[changed[i]];
        uint32_t bits = row[2] >= 0 ? value >> row[2] : value << -row[2];
        *word = (*word & ~row[3]) | (bits & row[3]);
      }
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from tg_shape import Expr, Variable

_COLUMNS: Final = 4
_WORD: Final = 0xFFFFFFFF
_LONG: Final = 0xFFFFFFFFFFFFFFFF


class Words(Protocol):
    """32-bit words that can be read and written by index."""

    def __getitem__(self, index: int, /) -> int:
        """One word."""

    def __setitem__(self, index: int, value: int, /) -> None:
        """Stores one word."""


class PatchTable:
    """Symbolic values, and the places in memory that hold pieces of them.

    Attributes:
      exprs: the distinct values, in order of first use.
      values: what each is now, two's complement in 64 bits.
      rows: (space, dword, shift, mask) for each place, grouped by value; a positive shift is to the right.
      starts: rows of value i are ``starts[i]`` to ``starts[i + 1]``. Rows and starts are there once sealed.

    Example:
      >>> from tg_shape import Variable
      >>> n = Variable("n", 0, 2**40)
      >>> table, words = PatchTable(), array("I", [0xFF000000, 0, 0])
      >>> table.add(n, 0, 1)
      >>> table.add(n, 0, 2, shift=32)
      >>> table.add(n % 8, 0, 0, width=3, low=4)
      >>> table.seal()
      >>> table.apply(table.resolve({n: 0x500000003}), [words])
      >>> [hex(word) for word in words]
      ['0xff000030', '0x3', '0x5']
      >>> table.resolve({n: 0x500000003})
      []
    """

    def __init__(self) -> None:
        self.exprs: list[Expr] = []
        self.values = array("Q")
        self.rows = array("q")
        self.starts = array("q")
        self._index: dict[Expr, int] = {}
        self._places: list[list[tuple[int, int, int, int]]] = []
        self._known = False

    def __len__(self) -> int:
        return len(self.exprs)

    def add(self, value: Expr, space: int, dword: int, *, width: int = 32, low: int = 0, shift: int = 0) -> None:
        """Has bits ``shift`` to ``shift + width`` of ``value`` put at bit ``low`` of a dword.

        Args:
          value: the value.
          space: index of the memory that ``apply`` is given.
          dword: index in that memory, in units of 4 bytes.
          width: number of bits, 1 to 32.
          low: where they go in the dword.
          shift: where they come from in the value.

        Raises:
          ValueError: if the field does not fit in a dword, or the table is sealed.
        """
        if self._known or len(self.starts):
            raise ValueError("the patch table is sealed")
        if not (0 < width and 0 <= low and low + width <= 32 and 0 <= shift < 64):
            raise ValueError(f"no field of {width} bits at bit {low} of a dword")
        place = self._index.get(value)
        if place is None:
            place = self._index[value] = len(self.exprs)
            self.exprs.append(value)
            self._places.append([])
        self._places[place].append((space, dword, shift - low, ((1 << width) - 1) << low))

    def add_bytes(self, value: Expr, space: int, offset: int, nbytes: int) -> None:
        """Has the low ``nbytes`` bytes of ``value`` put at byte ``offset``; 1, 2, 4 or 8, at a multiple of themselves
        (8 at a multiple of 4)."""
        if nbytes == 8:
            self.add(value, space, offset // 4)
            self.add(value, space, offset // 4 + 1, shift=32)
        else:
            self.add(value, space, offset // 4, width=8 * nbytes, low=8 * (offset % 4))

    def seal(self) -> None:
        """Lays the rows out. Nothing can be added afterwards. Sealing twice does nothing."""
        if len(self.starts):
            return
        self.starts.append(0)
        for places in self._places:
            for row in places:
                self.rows.extend(row)
            self.starts.append(len(self.rows) // _COLUMNS)
        self.values = array("Q", bytes(8 * len(self.exprs)))
        self._places.clear()

    def resolve(self, var_vals: Mapping[Variable, int]) -> list[int]:
        """Computes every value once and keeps it; returns the indices of those that changed, at first all of them.

        Raises:
          ValueError: if a variable has no value or one outside of its bounds; nothing has changed then.
        """
        fresh = array("Q")
        for expr in self.exprs:
            value = var_vals.get(expr) if isinstance(expr, Variable) else expr.evaluate(var_vals)
            if value is None:
                raise ValueError(f"submit: no value for variable {expr.render()}")
            if not expr.vmin <= value <= expr.vmax:
                raise ValueError(f"submit: {expr.render()} is {value}, outside of {expr.vmin} to {expr.vmax}")
            fresh.append(value & _LONG)
        old = self.values
        changed = [i for i, value in enumerate(fresh) if value != old[i]] if self._known else list(range(len(fresh)))
        self.values, self._known = fresh, True
        return changed

    def apply(self, changed: Sequence[int], spaces: Sequence[Words]) -> None:
        """Writes the places of the values with these indices."""
        rows, starts, values = self.rows, self.starts, self.values
        for index in changed:
            value = values[index]
            for at in range(starts[index] * _COLUMNS, starts[index + 1] * _COLUMNS, _COLUMNS):
                shift, mask = rows[at + 2], rows[at + 3]
                bits = value >> shift if shift >= 0 else value << -shift
                space, dword = spaces[rows[at]], rows[at + 1]
                space[dword] = bits & mask if mask == _WORD else (space[dword] & ~mask) | (bits & mask)
