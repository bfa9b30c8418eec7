"""What executes AMD's machine code."""

from __future__ import annotations

from ..engine import AddressSpace, EngineFault, Fault, FaultKind, Launch, Machine, Trace, engine
from ..engine.launch import Group
from .architecture import architecture
from .instructions import decoder
from .semantics import instruction_set

_FLOATS = 0xF0  # FP_ROUND: nearest even; FP_DENORM: allowed (RDNA3 manual, 3.4.1 "Mode register")


class _Machine(Machine):
    def begin(self, launch: Launch, number: int) -> Group:
        """Refuses modes of floats that the handlers do not obey yet."""
        group = super().begin(launch, number)
        for wave in group.waves:
            if wave.scalar("mode") & 0xFF != _FLOATS:
                why = f"MODE is {wave.scalar('mode'):#x}: other roundings and flushed subnormals are not executed yet"
                raise EngineFault(Fault(
                    FaultKind.UNDECODABLE, launch.name, number, wave.index, launch.entry, detail=why))  # fmt: skip
        return group


def machine(arch: str, lanes: int, space: AddressSpace, *, seed: int = 0, trace: Trace | None = None) -> Machine:
    """A machine for waves of so many lanes.

    Args:
      arch: ``gfx1100`` is the only one yet.
      lanes: of a wave, 32.
      space: what addresses mean.
      seed: the order of workgroups and waves.
      trace: which waves are traced.

    Raises:
      ValueError: if the arch's instructions, or waves of so many lanes, are not executed yet.
    """
    if arch != "gfx1100" or lanes != 32:
        raise ValueError(f"waves of {lanes} lanes of {arch} are not executed yet, but those of 32 of gfx1100")
    of = architecture(arch, lanes)
    instructions = instruction_set(of)
    return _Machine(engine(instructions, lanes), space, decoder(of, instructions), seed=seed, trace=trace)
