"""Reductions: which of them share loops, and where those stand.

A reduction's loops stand in the innermost region that its free dimensions need, which may lie outside of the loop that
asks for it. All register copies of it share the loops, and so do other reductions over the same dimensions.
"""

from __future__ import annotations

from tg_shape import Expr

from ..ir.uop import UOp
from ..nest.env import Env
from ..nest.nest import Node
from ..nest.spec import LANE, UNROLLED, NodeOp
from .reduction_loops import ReductionLoops
from .site import Region, Site
from .whole import Whole


class Reductions:
    """The reductions of one nest."""

    def __init__(self, whole: Whole) -> None:
        self.whole = whole
        self.nodes = [n for n in whole.nest.nodes() if n.op is NodeOp.REDUCE]

    def value(self, node: Node, env: Env, site: Site) -> UOp:
        """A reduction's value; when first asked for, its loops are emitted, with those of its companions."""
        whole = self.whole
        key = whole.known.key(node, env)
        if key in whole.known.values:
            return whole.known.values[key]
        outer = Env(dict.fromkeys(env.root, 0), {}, env.exact, env)
        for name, value in env.axis.items():
            axis = whole.nest.axis(name)
            if axis.kind not in (UNROLLED | LANE):
                outer = outer.open(name, axis.root, axis.stride, value)
        home = self.home(node, outer, site)
        roots = node.arg[1]
        members = [
            n for n in self.nodes
            if n is node or (n.arg[1] == roots and n.level == node.level and n not in whole.staged
                             and self.is_open(n, outer) and self.home(n, outer, site) is home)
        ]
        wanted = [
            (n, here) for n in members
            for here in whole.loops.replicas(outer, sorted(n.free, key=lambda v: v.name))]
        if not any(whole.known.key(n, here) == key for n, here in wanted):
            wanted = [(node, env)]  # asked for outside of the register tile
        place = Site(home, outer, None, site.around(home))
        ReductionLoops(whole, wanted, roots, outer, place).emit()
        return whole.known.values[key]

    def home(self, node: Node, env: Env, site: Site) -> Region:
        """The innermost region that opens something on which ``node`` depends.

        A partial last iteration that runs on a condition has a region, too, though its loop has a number for a counter.
        """
        home = self.whole.top
        for root in node.free:
            value = env.root[root]
            for variable in value.variables() if isinstance(value, Expr) else ():
                region = self.whole.symbols.owner.get(variable)
                if region is not None and region.depth > home.depth:
                    home = region
        here = site
        while here.parent is not None and here.region.depth > home.depth:
            opened = self.whole.space.by_name.get(here.opened or "")
            if here.region is not here.parent.region and opened is not None and opened.root in node.free:
                return here.region
            here = here.parent
        return home

    def is_open(self, node: Node, env: Env) -> bool:
        """Whether every serial loop on which ``node`` depends is open in ``env``."""
        return all(
            a.name in env.axis or a.kind in (UNROLLED | LANE)
            for root in node.free for a in self.whole.space.by_root[root]
        )
