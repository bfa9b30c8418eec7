"""What executes AMD's machine code."""

from __future__ import annotations

import functools
import weakref

from ..engine import (
    AddressSpace,
    HostileMachine,
    Launch,
    Machine,
    Trace,
    engine,
)
from ..engine.caches import Caches
from ..engine.launch import Group
from ..engine.machine import Host
from .architecture import architecture
from .instructions import decoder
from .modes import refuse_modes
from .semantics import caches, clocks, instruction_set, waits


class _Machine(Machine):
    def begin(self, launch: Launch, number: int, slot: int = 0) -> Group:
        """As of a machine."""
        return refuse_modes(launch, super().begin(launch, number, slot), self.code)


class _Hostile(HostileMachine):
    split = 1
    """Over so many units that have caches of their own the waves of a workgroup are spread: those of a workgroup
    processor (RDNA 3, 2.3)."""

    def begin(self, launch: Launch, number: int, slot: int = 0) -> Group:
        """As of a hostile machine, with waves on the units of a workgroup processor."""
        group = refuse_modes(launch, super().begin(launch, number, slot), self.code)
        for wave in group.waves:
            wave.unit = (number * self.split + wave.index % self.split) % self.caches.units
        return group


_caches: weakref.WeakKeyDictionary[AddressSpace, Caches] = weakref.WeakKeyDictionary()


def _caches_of(space: AddressSpace, generation: int) -> Caches:
    """The caches of a card, which all its machines have in common: L2, GL1 (RDNA 3, 2.3), and one L2 for each of two
    dies of gfx9 (CDNA 3, 2.1)."""
    if space not in _caches:
        _caches[space] = Caches(weakref.proxy(space), 4, 0, 2) if generation == 9 else Caches(
            weakref.proxy(space), 4, 2 if generation < 12 else 0)  # fmt: skip
    return _caches[space]


def machine(
    arch: str, lanes: int, space: AddressSpace, *, seed: int = 0, trace: Trace | None = None, hostile: bool = False
) -> Machine:
    """A machine for waves of so many lanes.

    Args:
      arch: the processor, for example ``gfx1100``.
      lanes: of a wave.
      space: what addresses mean.
      seed: the order of workgroups and waves, and whatever else is drawn.
      trace: which waves are traced.
      hostile: whether programs meet everything that hardware may do.

    Raises:
      ValueError: if there is no instruction table of the processor, or it has no waves of so many lanes.
    """
    of = architecture(arch, lanes)
    if lanes not in of.wave_sizes:
        raise ValueError(f"{arch} has no waves of {lanes} lanes")
    instructions = instruction_set(of)
    native, decode = engine(instructions, lanes, hostile), decoder(of, instructions)
    if not hostile:
        return _Machine(native, space, decode, seed=seed, trace=trace, hosts=dict.fromkeys(clocks.CLOCKS, clocks.serve))
    served: dict[str, Host] = dict.fromkeys(caches.DROPS + caches.SENDS, caches.serve)
    served |= dict.fromkeys(clocks.CLOCKS, clocks.serve)
    made = _Hostile(native, space, decode, seed=seed, hosts=served, trace=trace,
                    waits=functools.partial(waits.waits, of), ordered=waits.ORDERED,
                    caches=_caches_of(space, of.generation))  # fmt: skip
    made.split = 2 if of.generation >= 10 else 1
    return made
