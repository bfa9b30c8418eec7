"""Emission: a loop nest becomes structured UOps.

Output loops are opened one inside the other; in the innermost, every store asks for its value. Values are computed on
demand and remembered under the index expressions that they depend on. A reduction, when first asked for, puts its loops
into the innermost region that its own free dimensions need, which may lie outside of the loop that asks: so a row's
maximum is computed once, before the loop over the row. All register copies of a reduction (its tile) share one loop,
and so do reductions that run over the same dimensions.

A loop whose last iteration is partial is emitted twice: the full iterations, in which bounds prove every guard true,
and the last one, where guards are constants or masks over lanes.

An emitter holds its parts: what is open and known (``symbols``, ``known``, ``space``), loops (``spans``, ``loops``),
accesses (``access``, ``tiles``), and ``values``, ``reductions``, ``stages`` and ``outputs``, which ask one another
through it, as :class:`~tg_codegen.emit.whole.Whole` states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tg_shape import Expr, Variable, sint

from ..ir.uop import UOp, UOps
from ..machine.target import Target
from ..nest.env import Env
from ..nest.nest import GATHERED, Axis, Nest, Node, Stage
from ..nest.spec import GRID, Kind, NodeOp
from ..nest.windows import windowed
from .access import Access
from .known import Known
from .launch import Launch
from .loops import Loops
from .outputs import Outputs
from .reductions import Reductions
from .site import Region, Site
from .space import IterationSpace
from .spans import Spans
from .stages import Stages
from .symbols import Symbols
from .tiles import Tiles
from .values import Values


class Emitter:
    """Emits one nest into a region: its parts, and what they ask of each other.

    Args:
      nest: what to emit; its loops are decided.
      target: the machine that it is for.
      symbols: the kernel's variables, its arguments among them.
      launch: where a work-item stands among those that run the kernel.
      params: the memory behind each slot.
      top: the region to fill.
    """

    def __init__(
        self, nest: Nest, target: Target, symbols: Symbols, launch: Launch, params: Sequence[UOp], top: Region
    ) -> None:
        windows = {s.node: windowed(s.node, nest) for s in nest.stages if s.node.op is NodeOp.LOAD}
        roots = dict(nest.roots)
        for found in windows.values():
            roots |= found.roots(nest)
        self.nest = nest = replace(nest, roots=roots)
        self.target, self.symbols, self.launch, self.params, self.top = target, symbols, launch, params, top
        self.staged: Mapping[Node, Stage] = {s.node: s for s in nest.stages}
        self.known = Known(nest)
        self.space = IterationSpace(nest)
        self.spans = Spans(self.space)
        self.loops = Loops(self.space, symbols, launch, self.known, target)
        self.access = Access(symbols, frozenset(params[slot] for slot in nest.streams))
        self.tiles = Tiles(self.space, self.loops, self.access)
        self.values = Values(self)
        self.reductions = Reductions(self)
        self.stages = Stages(self, windows)
        self.outputs = Outputs(self)

    def run(self, loops: Sequence[Axis]) -> None:
        """Emits all outputs, once, inside of ``loops``, which are opened one by one."""
        env = self.space.start()
        parallel = [a for a in self.nest.axes if a.kind in GRID]
        for axis in parallel:
            if axis.kind is not Kind.GROUP:  # which a reduction opens
                env = env.open(axis.name, axis.root, axis.stride, self.launch.counters[axis.name])
        self.outputs.loops(list(self.nest.stores), loops, Site(self.top, env), parallel)
        # they refer to the emitter: what was emitted is freed with it, not when the garbage collector comes round
        del self.values, self.reductions, self.stages, self.outputs

    def value(self, node: Node, env: Env, site: Site) -> UOp:
        """The value of a node with the dimensions as in ``env``: read from its stage, if it has one."""
        return self.values.value(node, env, site)

    def computed(self, node: Node, site: Site) -> UOp:
        """The value of a node, though it has a stage: what that is filled with."""
        return self.values.computed(node, site)

    def stored(self, stage: Stage, env: Env, site: Site) -> UOp:
        """An element of a stage, which is filled where that was not done yet."""
        return self.stages.value(stage, env, site)

    def reduced(self, node: Node, env: Env, site: Site) -> UOp:
        """The result of a reduction, whose loops are put where they belong."""
        return self.reductions.value(node, env, site)


def parameters(nest: Nest) -> list[UOp]:
    """The buffers of a nest, by slot."""
    return [UOp(UOps.PARAM, b.dtype.ptr(b.size), (), slot) for slot, b in enumerate(nest.buffers)]


def arguments(nest: Nest) -> frozenset[Variable]:
    """The variables that are arguments of the kernel."""
    found: set[Variable] = set()

    def look(*parts: sint) -> None:
        for part in parts:
            if isinstance(part, Expr):
                found.update(v for v in part.variables() if v not in nest.roots and v is not GATHERED)

    look(*(root.extent for root in nest.roots.values()))
    for store in nest.stores:
        look(*(part for access in store.accesses() for part in access))
    for node in nest.nodes():
        look(*node.expressions)
    return frozenset(found)
