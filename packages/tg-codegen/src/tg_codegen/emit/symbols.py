"""Symbols: the variables that are open in a kernel, and the UOps that stand for them.

A kernel has one table of them, also where several nests are emitted into it, one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

from tg_dtype import dtypes
from tg_shape import Expr, Variable, sint, smin, upper

from ..ir.errors import EmitError
from ..ir.uop import UOp, UOps
from ..machine.target import Target
from .index import IndexBuilder, ramp
from .site import Region

CORE = "core_id"


class Symbols:
    """The variables of one kernel.

    Attributes:
      index: dtype of loop counters.
      threads: among how many threads of a CPU loops are divided.
      leaves: the UOp of each variable.
      build: makes UOps of expressions over them.
      lanes: the variables that stand for several values at once, with how many those are.
      owner: the region that each loop counter belongs to.
      numbers: make names and registers unique.
    """

    def __init__(self, target: Target) -> None:
        self.index = target.counter
        self.threads = target.threads
        self.leaves: dict[Expr, UOp] = {}
        self.build = IndexBuilder(self.leaves)
        self.lanes: dict[Variable, int] = {}
        self.owner: dict[Variable, Region] = {}
        self.numbers = count()

    def arguments(self, variables: Iterable[Variable]) -> None:
        """Declares the kernel's scalar arguments."""
        for variable in sorted(variables, key=lambda v: v.name):
            self.leaves[variable] = UOp(UOps.VAR, dtypes.int32, (), variable)

    def special(self, name: str, extent: sint) -> Variable:
        """The index of a work-group, of a work-item or of a CPU thread."""
        variable = Variable(name, 0, max(upper(extent) - 1, 0))
        self.leaves[variable] = UOp(UOps.SPECIAL, dtypes.int32, (), (name, extent))
        return variable

    def core(self) -> Variable:
        """The CPU thread's number."""
        return self.special(CORE, self.threads)

    def share(self, total: sint, extent: sint) -> tuple[sint, sint]:
        """Where a thread begins and ends when ``total`` iterations are divided, of which a loop has ``extent``."""
        core, threads = self.core(), self.threads
        return core * total // threads, smin((core + 1) * total // threads, extent)

    def counter(self, variable: Variable, start: sint, end: sint, region: Region) -> None:
        """Makes ``variable`` the counter of a loop whose body is ``region``."""
        ends = (self.build.value(start, self.index), self.build.value(end, self.index))
        self.leaves[variable] = UOp(UOps.RANGE, self.index, ends, variable.name)
        self.owner[variable] = region

    def counters_around(self, region: Region) -> list[Variable]:
        """The counters of the loops around a place in ``region``."""
        around = set()
        here: Region | None = region
        while here is not None:
            around.add(here)
            here = here.parent
        return [variable for variable, owner in self.owner.items() if owner in around]

    def several(self, name: str, count: int) -> Variable:
        """A variable that stands for ``count`` values at once, of what ``name`` says: lanes, copies, elements."""
        variable = Variable(f"{name}{count}", 0, count - 1)
        if variable not in self.lanes:
            self.lanes[variable] = count
            self.leaves[variable] = ramp(count, self.index)
        return variable

    def lane_of(self, *exprs: sint) -> Variable | None:
        """The variable with lanes on which expressions depend.

        Raises:
          EmitError: if they depend on two.
        """
        found: set[Variable] = set()
        several = self.lanes.keys()
        for e in exprs:
            if not isinstance(e, int) and not several.isdisjoint(variables := e.variables()):
                found.update(several & variables)
        if len(found) > 1:
            raise EmitError(f"a value depends on two vector loops: {', '.join(v.name for v in found)}")
        return next(iter(found), None)
