"""Opening loops: serial ones, those of threads, register copies and vector lanes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product

from tg_dtype import dtypes
from tg_lazy import Ops
from tg_shape import Variable, sint, upper

from ..ir.errors import EmitError
from ..ir.matrix import MatrixInstruction
from ..ir.uop import UOp, UOps, const
from ..machine.target import Target
from ..nest.env import Env
from ..nest.nest import Axis
from ..nest.spec import FRAGMENT, LANE, UNROLLED, Kind
from .known import Known
from .launch import Launch
from .site import Region, Site
from .space import IterationSpace, fixed
from .spans import Span
from .symbols import Symbols

Body = Callable[[Site], None]


class Loops:
    """Opens the loops of one nest."""

    def __init__(self, space: IterationSpace, symbols: Symbols, launch: Launch, known: Known, target: Target) -> None:
        self.space, self.symbols, self.launch, self.known, self.target = space, symbols, launch, known, target

    def run(self, axis: Axis, span: Span, site: Site, body: Body) -> None:
        """Emits one copy of a loop whose effects ``body`` fills in."""
        threaded = axis.kind is Kind.THREAD
        if isinstance(span.count, int) and span.count == 1:
            env = site.env.open(axis.name, axis.root, axis.stride, span.at, span.exact)
            condition = self.symbols.build.truth(span.condition)
            if threaded:
                core = self.symbols.build.value(self.symbols.core(), dtypes.int32)
                mine = core.alu(Ops.CMPEQ, const(self.thread_of(axis, span.at), dtypes.int32))
                condition = mine if condition.is_const else condition.alu(Ops.AND, mine)
            if condition.is_const:
                body(Site(site.region, env, axis.name, site))
                return
            region = self.known.enter(site.region, conditional=True)
            body(Site(region, env, axis.name, site))
            self.known.leave(region)
            site.region.effects.append(UOp(UOps.IF, dtypes.void, (condition, *region.effects)))
            return
        region = self.known.enter(site.region)
        variable = self.counter(axis, span.count, region)
        env = site.env.open(axis.name, axis.root, axis.stride, variable + span.at, span.exact)
        body(Site(region, env, axis.name, site))
        self.close(variable, region, site.region)

    def close(self, variable: Variable, region: Region, outer: Region) -> None:
        """Adds a loop with its complete body to ``outer``; nothing where the body is empty."""
        self.known.leave(region)
        if region.effects:
            outer.effects.append(UOp(UOps.LOOP, dtypes.void, (self.symbols.leaves[variable], *region.effects)))

    def repeat(self, name: str, count: int, site: Site, body: Callable[[Region, sint], None]) -> None:
        """Emits a loop that belongs to no dimension, whose effects ``body`` fills in; none where it runs once."""
        if count == 1:
            body(site.region, 0)
            return
        region = self.known.enter(site.region)
        variable = self.counted(name, count)
        self.symbols.counter(variable, 0, count, region)
        body(region, variable)
        self.close(variable, region, site.region)

    def nested(self, axes: Sequence[Axis], site: Site, body: Body) -> None:
        """Opens loops around ``body``: lanes together, unrolled output loops as copies, all others one by one."""
        if not axes:
            body(site)
            return
        axis, rest = axes[0], axes[1:]
        values: Sequence[sint] = ()
        if axis.kind in LANE:
            values = (self.lane(axis),)
        elif axis.kind is Kind.UPCAST:
            values = range(fixed(axis))
        for value in values:
            env = site.env.open(axis.name, axis.root, axis.stride, value)
            self.nested(rest, Site(site.region, env, axis.name, site), body)
        if not values:
            self.one_by_one(axis, site, lambda inside: self.nested(rest, inside, body))

    def serial(self, axes: Sequence[Axis], site: Site, body: Body) -> None:
        """Opens loops around ``body``, all of them one by one."""
        if axes:
            self.one_by_one(axes[0], site, lambda inside: self.serial(axes[1:], inside, body))
        else:
            body(site)

    def one_by_one(self, axis: Axis, site: Site, body: Body) -> None:
        """Opens a loop of any kind as a serial one."""
        self.run(replace(axis, kind=Kind.LOOP), Span(0, axis.extent, None), site, body)

    def counted(self, name: str, extent: sint) -> Variable:
        """A new variable for a loop's counter."""
        return Variable(f"{name}_{next(self.symbols.numbers)}", 0, max(upper(extent) - 1, 0))

    def counter(self, axis: Axis, extent: sint, region: Region) -> Variable:
        """A loop's counter, divided among threads where the axis says so.

        All but the last iteration of a loop are divided as if that one, which stands by itself, were one of them.
        """
        variable = self.counted(axis.name, extent)
        start: sint = 0
        end = extent
        if axis.kind is Kind.THREAD:
            start, end = self.symbols.share(axis.extent if extent == axis.extent - 1 else extent, extent)
        self.symbols.counter(variable, start, end, region)
        return variable

    def thread_of(self, axis: Axis, at: sint) -> int:
        """The thread that has an iteration, of as many as the loop has in all; the last one where that is not known."""
        threads = self.symbols.threads
        if not isinstance(axis.extent, int) or not isinstance(at, int):
            return threads - 1
        return -(-(at + 1) * threads // axis.extent) - 1

    def parallel_counter(self, axis: Axis) -> sint:
        """The number of the thread, work-group or work-item that a loop runs across."""
        return self.symbols.core() if axis.kind is Kind.THREAD else self.launch.counters[axis.name]

    # copies and lanes

    def replicas(self, env: Env, roots: Sequence[Variable]) -> Iterator[Env]:
        """``env`` with every unrolled loop of ``roots`` at each of its values, and vector loops at all lanes.

        The loops of roots with lanes turn fastest: so a tile has its few vectors at hand, and its scalars one by one.
        """
        by_root = self.space.by_root
        roots = sorted(roots, key=lambda root: any(a.kind in LANE for a in by_root[root]))
        axes = [a for root in roots for a in by_root[root] if a.kind in UNROLLED and a.name not in env.axis]
        vectors = [a for root in roots for a in by_root[root] if a.kind in LANE and a.name not in env.axis]
        for values in product(*(range(fixed(a)) for a in axes)):
            here = env
            for axis, value in zip(axes, values, strict=True):
                here = here.open(axis.name, axis.root, axis.stride, value)
            for axis in vectors:
                here = here.open(axis.name, axis.root, axis.stride, self.lane(axis))
            if not any(self.space.beyond(here, root) for root in roots):
                yield here

    def copies(self, axis: Axis, width: int) -> Variable:
        """A variable that stands for ``width`` copies of a loop at once."""
        return self.symbols.several(f"{axis.name}_copy", width)

    def lane(self, axis: Axis) -> sint:
        """A vector loop's counter, which stands for all lanes at once; for fragments, where their elements are."""
        if axis.kind not in FRAGMENT:
            return self.symbols.several(f"{axis.name}_lane", fixed(axis))
        total = self.instruction().fragments[2]
        row, column = total.place(self.symbols.several("fragment", total.count), self.launch.warp)
        return row if axis.kind is Kind.FRAGMENT_ROWS else column

    def instruction(self) -> MatrixInstruction:
        """The matrix instruction that has rows and columns.

        Raises:
          EmitError: if the target has none of that shape.
        """
        extents = {a.kind: a.extent for a in self.space.nest.axes}
        kinds = (Kind.FRAGMENT_ROWS, Kind.FRAGMENT_COLUMNS, Kind.CONTRACT)
        rows, columns, terms = (extents.get(kind, 0) for kind in kinds)
        shape = rows, columns, terms * extents.get(Kind.DEPTH, 1)
        found = next((m for m in self.target.matrices if (m.threads > 1 or m.tiled) and m.shape == shape), None)
        if found is None:
            raise EmitError(f"no matrix instruction of this target has rows, columns and depth {shape}")
        return found
