"""What changes between replays, as plain data that native code walks.

A table lists the symbolic values of a queue and the places in memory that hold pieces of them. Once sealed it is five
arrays of 64-bit words, all arithmetic being modulo 2**64:

========= ======================================== ====================================================================
array     columns                                  meaning
========= ======================================== ====================================================================
inputs    value                                    what Python supplies: variables, and what is no sum of them
limits    least, span                              input i must be in ``least`` to ``least + span``
sums      constant, least, span, terms, rows       value i is ``constant`` and its terms, and must be in its span too;
                                                   its terms and rows end there, and begin where those before it end
terms     coefficient, input                       ``coefficient * inputs[input]`` is added to the value
rows      space, dword, shift, mask                ``mask`` of a dword of a space is taken from ``value >> shift``
========= ======================================== ====================================================================

:mod:`tg_hcq.core.native` is the code that walks them; ``resolve`` and ``apply`` are what it must do, in Python and from
the expressions themselves.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final, Protocol

from tg_shape import Bind, Expr, Variable, linear_terms, sint

LIMIT_COLUMNS: Final = 2
SUM_COLUMNS: Final = 5
TERM_COLUMNS: Final = 2
ROW_COLUMNS: Final = 4
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
      known: whether there were any yet: one word, 0 or 1.
      derived: the inputs that are none, and the bounds that they are held to.
      variables: those among the inputs, in order; what the table is sealed with comes first.
      inputs: see the module, as the other arrays; they are there once sealed.

    Example:
      >>> from tg_shape import Variable
      >>> n = Variable("n", 0, 2**40)
      >>> table, words = PatchTable(), array("I", [0xFF000000, 0, 0])
      >>> table.add(n, 0, 1, part=True)
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
        self.variables: list[Variable] = []
        self.inputs, self.limits, self.sums = array("Q"), array("Q"), array("Q")
        self.terms, self.rows = array("Q"), array("q")
        self.known = array("Q", [0])
        self._index: dict[Expr, int] = {}
        self._places: list[list[tuple[int, int, int, int]]] = []
        self._bounds: list[tuple[int, int]] = []
        self.derived: list[tuple[Expr, int, int]] = []
        self._derived_from: list[Variable] = []
        self._counted = 0
        self._sealed = False
        self._pick: Callable[[Mapping[Variable, int]], tuple[int, ...]] | None = None
        self._pack = struct.Struct("")

    def __len__(self) -> int:
        return len(self.exprs)

    def add(
        self, value: Expr, space: int, dword: int, *, width: int = 32, low: int = 0, shift: int = 0, part: bool = False
    ) -> None:
        """Has bits ``shift`` to ``shift + width`` of ``value`` put at bit ``low`` of a dword.

        Args:
          value: the value.
          space: index of the memory that ``apply`` is given.
          dword: index in that memory, in units of 4 bytes.
          width: number of bits, 1 to 32.
          low: where they go in the dword.
          shift: where they come from in the value; the bits under it are dropped.
          part: drop the bits above, too. Else a value that has any, signed or unsigned, is refused when it comes.

        Raises:
          ValueError: if the field does not fit in a dword, the value never fits in it, one of its variables does not
            fit in 64 bits, or the table is sealed.
        """
        if self._sealed:
            raise ValueError("the patch table is sealed")
        if not (0 < width and 0 <= low and low + width <= 32 and 0 <= shift < 64):
            raise ValueError(f"no field of {width} bits at bit {low} of a dword")
        bits = 64 if part else min(shift + width, 64)
        least, most = max(value.vmin, -(1 << (bits - 1))), min(value.vmax, (1 << bits) - 1)
        if least > most:
            raise ValueError(f"{value.render()} is {value.vmin} to {value.vmax}: it never fits in {bits} bits")
        for variable in _free(value):
            _format(variable)
        place = self._index.get(value)
        if place is None:
            place = self._index[value] = len(self.exprs)
            self.exprs.append(value)
            self._places.append([])
            self._bounds.append((least, most))
        self._bounds[place] = max(self._bounds[place][0], least), min(self._bounds[place][1], most)
        self._places[place].append((space, dword, shift - low, ((1 << width) - 1) << low))

    def add_bytes(self, value: Expr, space: int, offset: int, nbytes: int) -> None:
        """Has ``value`` put at byte ``offset`` as an integer of 1, 2, 4 or 8 bytes, at a multiple of them (8 at one
        of 4).

        Raises:
          ValueError: as of ``add``.
        """
        if nbytes == 8:
            self.add(value, space, offset // 4, part=True)
            self.add(value, space, offset // 4 + 1, shift=32)
        else:
            self.add(value, space, offset // 4, width=8 * nbytes, low=8 * (offset % 4))

    def seal(self, counted: Sequence[Variable] = ()) -> None:
        """Lays the arrays out. Nothing can be added afterwards. Sealing twice does nothing.

        Args:
          counted: variables whose inputs ``fill`` leaves alone: they come first, used or not.
        """
        if self._sealed:
            return
        self._sealed = True
        self.variables, self._counted = list(counted), len(counted)
        slots: dict[Expr, int] = {variable: slot for slot, variable in enumerate(counted)}
        sums = [_sum(expr, *bounds) for expr, bounds in zip(self.exprs, self._bounds, strict=True)]
        for variable in (free for terms, *_ in sums for atom, *_ in terms for free in _free(atom)):
            if variable not in slots:
                slots[variable] = len(slots)
                self.variables.append(variable)
        for variable in self.variables:
            self.limits.extend((variable.vmin & _LONG, variable.vmax - variable.vmin & _LONG))
        rows = 0
        for (terms, constant, (least, most)), places in zip(sums, self._places, strict=True):
            for atom, coefficient, bounds in terms:
                if atom not in slots:
                    slots[atom] = len(slots)
                    self.derived.append((atom, *bounds))
                    self.limits.extend((0, _LONG))  # Python looks at it
                self.terms.extend((coefficient & _LONG, slots[atom]))
            for row in places:
                self.rows.extend(row)
            rows += len(places)
            ends = len(self.terms) // TERM_COLUMNS, rows
            self.sums.extend((constant & _LONG, least & _LONG, most - least & _LONG, *ends))
        derived_from = dict.fromkeys(free for expr, *_ in self.derived for free in _free(expr))
        self._derived_from = list(derived_from)
        self._places.clear()
        self.inputs = array("Q", bytes(8 * len(slots)))
        self.values = array("Q", bytes(8 * len(self.exprs)))
        asked = self.variables[self._counted :]
        self._pick = itemgetter(*asked) if len(asked) > 1 else None
        self._pack = struct.Struct("".join(f"{len(list(run))}{code}" for code, run in groupby(map(_format, asked))))

    def fill(self, var_vals: Mapping[Variable, int]) -> None:
        """Sets the inputs to these values, all but those that are counted.

        Raises:
          KeyError: if a variable has no value.
          struct.error: if 64 bits do not hold one.
        """
        if self._pick is not None:
            self._pack.pack_into(self.inputs, 8 * self._counted, *self._pick(var_vals))
        else:
            found = (var_vals[variable] for variable in self.variables[self._counted :])
            self._pack.pack_into(self.inputs, 8 * self._counted, *found)

    def derive(self, everything: Mapping[Variable, int]) -> None:
        """Sets the inputs that are no variables, from all variables, those that are counted included.

        Raises:
          ValueError: if a variable is outside of its bounds, or a value does not fit in its places.
        """
        if not all(variable.vmin <= everything[variable] <= variable.vmax for variable in self._derived_from):
            self.check(everything)
        for slot, (expr, least, most) in enumerate(self.derived, len(self.variables)):
            value = expr.evaluate(everything)
            if not least <= value <= most:
                self.check(everything)
            self.inputs[slot] = value & _LONG

    def check(self, var_vals: Mapping[Variable, int]) -> array[int]:
        """The values, computed from the expressions.

        Raises:
          ValueError: if a variable has no value or one outside of its bounds, or a value does not fit in its places.
        """
        for variable in self.variables:
            value = var_vals.get(variable)
            if value is None:
                raise ValueError(f"submit: no value for variable {variable.render()}")
            if not variable.vmin <= value <= variable.vmax:
                raise ValueError(
                    f"submit: {variable.render()} is {value}, outside of {variable.vmin} to {variable.vmax}"
                )
        fresh = array("Q")
        for expr, (least, most) in zip(self.exprs, self._bounds, strict=True):
            value = expr.evaluate(var_vals)
            if not least <= value <= most:
                raise ValueError(f"submit: {expr.render()} is {value}, which does not fit in {least} to {most}")
            fresh.append(value & _LONG)
        return fresh

    def resolve(self, var_vals: Mapping[Variable, int]) -> list[int]:
        """Computes every value once and keeps it; returns the indices of those that changed, at first all of them.

        Raises:
          ValueError: as of ``check``; nothing has changed then.
        """
        fresh = self.check(var_vals)
        old = self.values
        changed = [i for i, value in enumerate(fresh) if value != old[i]] if self.known[0] else list(range(len(fresh)))
        self.values[:], self.known[0] = fresh, 1
        return changed

    def apply(self, changed: Sequence[int], spaces: Sequence[Words]) -> None:
        """Writes the places of the values with these indices."""
        rows, sums, values = self.rows, self.sums, self.values
        for index in changed:
            value = values[index]
            first = sums[(index - 1) * SUM_COLUMNS + 4] if index else 0
            for at in range(first * ROW_COLUMNS, sums[index * SUM_COLUMNS + 4] * ROW_COLUMNS, ROW_COLUMNS):
                shift, mask = rows[at + 2], rows[at + 3]
                bits = value >> shift if shift >= 0 else value << -shift
                space, dword = spaces[rows[at]], rows[at + 1]
                space[dword] = bits & mask if mask == _WORD else (space[dword] & ~mask) | (bits & mask)


_Sum = tuple[list[tuple[Expr, int, tuple[int, int]]], int, tuple[int, int]]


def _sum(expr: Expr, least: int, most: int) -> _Sum:
    """A value as native code computes it: terms (atom, coefficient, bounds that Python holds it to), constant, bounds.

    Native code knows numbers modulo 2**64 only. A value that two different numbers could stand for, one in bounds and
    one out of them, is computed by Python as a whole.
    """
    pairs, constant = linear_terms(expr)
    low = high = constant
    terms: list[tuple[Expr, int, tuple[int, int]]] = []
    for atom, coefficient in pairs:
        if isinstance(atom, Bind):
            constant += coefficient * atom.value
        else:
            terms.append((atom, coefficient, (atom.vmin, atom.vmax)))
        ends = coefficient * atom.vmin, coefficient * atom.vmax
        low, high = low + min(ends), high + max(ends)
    if high >= least + 2**64 or low <= most - 2**64 or most - least >= 2**64:
        return [(expr, 1, (least, most))], 0, (0, _LONG)
    return terms, constant, (least, most)


def _format(variable: Variable) -> str:
    """The code of ``struct`` that holds a variable.

    Raises:
      ValueError: if neither the signed nor the unsigned integer of 64 bits does.
    """
    if -(2**63) <= variable.vmin and variable.vmax < 2**63:
        return "q"
    if 0 <= variable.vmin and variable.vmax < 2**64:
        return "Q"
    raise ValueError(f"{variable.render()} is {variable.vmin} to {variable.vmax}, which no integer of 64 bits holds")


def _free(expr: Expr) -> Iterable[Variable]:
    """The variables of an expression that have no value yet."""
    todo: list[sint] = [expr]
    seen: set[int] = set()
    while todo:
        node = todo.pop()
        if isinstance(node, Variable):
            yield node
        elif isinstance(node, Expr) and not isinstance(node, Bind) and id(node) not in seen:
            seen.add(id(node))
            todo += reversed(node.args)
