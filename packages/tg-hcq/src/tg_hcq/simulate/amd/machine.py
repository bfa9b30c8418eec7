"""What executes AMD's machine code."""

from __future__ import annotations

from ..engine import AddressSpace, EngineFault, Fault, FaultKind, Launch, Machine, Trace, engine
from ..engine.launch import Group
from .architecture import architecture
from .instructions import decoder
from .registers import FLOATS
from .semantics import instruction_set


class _Machine(Machine):
    def begin(self, launch: Launch, number: int) -> Group:
        """Refuses modes of floats that the handlers do not obey yet."""
        group = super().begin(launch, number)
        for wave in group.waves:
            if wave.scalar("mode") & 0xFF != FLOATS:
                why = f"MODE is {wave.scalar('mode'):#x}: other roundings and flushed subnormals are not executed yet"
                raise EngineFault(Fault(
                    FaultKind.UNDECODABLE, launch.name, number, wave.index, launch.entry, detail=why))  # fmt: skip
        return group


def machine(arch: str, lanes: int, space: AddressSpace, *, seed: int = 0, trace: Trace | None = None) -> Machine:
    """A machine for waves of so many lanes.

    Args:
      arch: the processor, for example ``gfx1100``.
      lanes: of a wave.
      space: what addresses mean.
      seed: the order of workgroups and waves.
      trace: which waves are traced.

    Raises:
      ValueError: if there is no instruction table of the processor, or it has no waves of so many lanes.
    """
    of = architecture(arch, lanes)
    if lanes not in of.wave_sizes:
        raise ValueError(f"{arch} has no waves of {lanes} lanes")
    instructions = instruction_set(of)
    return _Machine(engine(instructions, lanes), space, decoder(of, instructions), seed=seed, trace=trace)
