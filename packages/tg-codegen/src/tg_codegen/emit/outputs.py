"""Outputs: the loops around the stores, and the stores, each of which asks for its value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tg_shape import Expr, Variable, sint

from ..ir.uop import UOp
from ..nest.nest import Axis, Nest, Store
from ..nest.spec import SERIAL_OUTPUT, Kind
from .site import Site
from .tiles import TransposedTile
from .updates import Updates
from .whole import Whole


class Outputs:
    """The stores of one nest."""

    def __init__(self, whole: Whole) -> None:
        self.whole, self.updates = whole, Updates(whole)

    def loops(self, stores: list[Store], axes: Sequence[Axis], site: Site, parallel: Sequence[Axis]) -> None:
        """Opens the loops ``axes``, each around the stores that depend on it; ``parallel`` are open already."""
        if not axes:
            alike: dict[tuple[Variable, ...], list[Store]] = {}
            for store in stores:
                alike.setdefault(store.roots, []).append(store)
            for group in alike.values():
                self.store(group, site, parallel)
            return
        axis, rest = axes[0], axes[1:]
        inside = [s for s in stores if axis.root in s.roots]
        outside = [s for s in stores if axis.root not in s.roots]
        for span in self.whole.spans.of(axis, site.env) if inside else ():
            self.whole.loops.run(axis, span, site, lambda inner: self.loops(inside, rest, inner, parallel))
        if outside:
            idle = [*parallel, axis] if axis.kind is Kind.THREAD else parallel
            self.loops(outside, rest, site, idle)

    def store(self, stores: list[Store], site: Site, parallel: Sequence[Axis]) -> None:
        """All register copies of stores over the same dimensions.

        What one copy computes is stored before the next one is begun: few values are in registers at a time.
        """
        whole = self.whole
        roots = stores[0].roots
        alone = self.alone(roots, parallel)
        tiles: dict[tuple[int, sint, sint], tuple[TransposedTile, dict[int, UOp]]] = {}
        for env in whole.loops.replicas(site.env, roots):
            for store in stores:
                if store.update is not None:
                    self.updates.emit(store, alone, env, site)
                    continue
                pointer = whole.params[store.slot]
                tile = whole.tiles.tile(store.index, store.valid & alone, roots, env, stored=True)
                index, valid = whole.space.access(
                    store.index, store.valid & alone, roots, env if tile is None else tile.env)
                if isinstance(valid, int) and not valid:
                    continue
                value = whole.value(store.value, env, site)
                if tile is None:
                    site.region.effects.extend(whole.access.writes(pointer, index, valid, value))
                else:
                    tiles.setdefault((store.slot, index, valid), (tile, {}))[1][tile.number] = value
        for (slot, index, valid), (tile, values) in tiles.items():
            site.region.effects.extend(whole.tiles.writes(whole.params[slot], index, valid, values, tile))

    def alone(self, roots: tuple[Variable, ...], parallel: Sequence[Axis]) -> sint:
        """When a work-item or thread stores: of those that compute the same value, the first one does."""
        counters = [(axis, self.whole.loops.parallel_counter(axis)) for axis in parallel]
        busy = {counter for axis, counter in counters if axis.root in roots}
        alone: sint = 1
        for _, counter in counters:
            if isinstance(counter, Expr) and counter not in busy:
                alone = alone & counter.eq(0)
        return alone


def loops_around(nest: Nest) -> list[Axis]:
    """The loops that are opened one by one around the stores: serial ones, outermost first, and rolled ones."""
    rolled = [replace(a, kind=Kind.LOOP) for a in nest.axes if a.name in nest.rolled]
    return [*(a for a in nest.axes if a.kind in SERIAL_OUTPUT), *rolled]
