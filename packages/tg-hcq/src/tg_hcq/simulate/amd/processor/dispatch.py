"""A dispatch, made of registers and memory alone: what COMPUTE_* say becomes waves with their first registers.

The fields are those of ``gc_*_sh_mask.h``; what registers hold at a wave's first instruction is LLVM's "Initial Kernel
Execution State" (AMDGPUUsage).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from ...engine import (
    NO_LIMIT,
    Access,
    AddressSpace,
    Dispatch,
    EngineFault,
    FaultKind,
    HostileMachine,
    Launch,
    Machine,
    Wave,
)
from ...engine.caches import Cache, Caches, lines_of
from ...engine.memory import LINE
from .faults import MemoryFault, PacketFault, Refused
from .registers import Registers

MachineMaker: TypeAlias = Callable[[int, AddressSpace], Machine]
"""Makes what executes waves of so many lanes in an address space."""

TTMP: Final = 108
"""The first trap temporary, as operands encode it on gfx9 and later."""

_UNPLAYED: Final = (
    "PARTIAL_TG_EN", "ORDERED_APPEND_ENBL", "ORDERED_APPEND_MODE", "USE_THREAD_DIMENSIONS", "RESERVED",
    "TUNNEL_ENABLE", "RESTORE", "AMP_SHADER_EN",
)  # fmt: skip
_PACES: Final = (0, 0, 1, 4)
"""How many times a wave runs between two packets, on a hostile machine."""
_OVERTAKEN: Final = 0.8
"""How often a packet that need not wait for the one before it comes first, on a hostile machine."""
MOST_LDS: Final = 64 << 10
MOST_THREADS: Final = 1024


@dataclass(frozen=True)
class Grid:
    """How many workgroups there are in each dimension, and how many threads if the last ones are not whole."""

    groups: tuple[int, int, int]
    threads: tuple[int, int, int] | None = None


@dataclass(frozen=True)
class Dies:
    """Some of the dies that execute a queue together.

    Attributes:
      chosen: a bit for each.
      number: how many there are.
    """

    chosen: int = 1
    number: int = 1

    def apart(self) -> Iterator[Dies]:
        """Each of them by itself: what they do, they do at different times."""
        return (Dies(1 << die, self.number) for die in range(self.number) if self.chosen >> die & 1)

    def have(self, part: int, parts: int) -> bool:
        """Whether one of so many equal parts of the card is theirs, at least in part."""
        return any(
            self.chosen >> die & 1 and (die * parts // self.number == part or part * self.number // parts == die)
            for die in range(self.number)
        )


ALL: Final = Dies()


@dataclass(frozen=True)
class Shape:
    """A workgroup's threads, and how they lie in waves."""

    size: tuple[int, int, int]
    grid: Grid
    lanes: int

    def group(self, number: int) -> tuple[int, int, int]:
        """The coordinates of a workgroup."""
        x, y, _ = self.grid.groups
        return number % x, number // x % y, number // (x * y)

    def threads(self, number: int) -> tuple[int, int, int]:
        """Of a workgroup: those at the end of a grid may have fewer."""
        if self.grid.threads is None:
            return self.size
        x, y, z = (
            min(size, threads - size * at)
            for size, threads, at in zip(self.size, self.grid.threads, self.group(number), strict=True)
        )
        return x, y, z

    def waves(self, number: int) -> int:
        """Of a workgroup."""
        x, y, z = self.threads(number)
        return -(-x * y * z // self.lanes)


class Dispatcher:
    """Launches waves.

    Args:
      major: the generation.
      space: what addresses mean.
      machines: makes what executes them.
    """

    def __init__(self, major: int, packed: bool, space: AddressSpace, machines: MachineMaker) -> None:
        self._major, self._packed, self._space, self._maker = major, packed, space, machines
        self._machines: dict[int, Machine] = {}
        self._code: tuple[tuple[int, ...], ...] = ()
        self._wave_bytes = 0
        self._version = -1
        self._pace = 0
        self._running: list[tuple[Dispatch, Callable[[], None]]] = []

    def finish(self, between: Callable[[], None]) -> None:
        """Waits for all waves; ``between`` is called after each step."""
        while self.step():
            between()

    def step(self) -> bool:
        """Runs a wave of one of the launches for a while.

        Returns:
          whether any was left to run.

        Raises:
          PacketFault: if the wave cannot go on.
          MemoryFault: if it accesses what it may not.
        """
        if not self._running:
            return False
        index = self._running[0][0].machine.rng.randrange(len(self._running)) if len(self._running) > 1 else 0
        dispatch, over = self._running[index]
        try:
            more = dispatch.advance()
        except EngineFault as error:
            self._running.clear()
            fault = error.fault
            if fault.kind in (FaultKind.UNMAPPED, FaultKind.PROTECTED) and fault.address is not None:
                raise MemoryFault(Refused.of(fault.address, fault.kind, fault.access), str(error)) from None
            raise PacketFault(str(error)) from None
        if not more:
            del self._running[index]
            over()
        return True

    def meanwhile(self, between: Callable[[], None]) -> None:
        """Runs what was launched for a while, between two packets."""
        for _ in range(self._pace):
            if self.step():
                between()

    def invalidate(self, dies: Dies, *, vectors: bool, arrays: bool, scalars: bool, shared: bool) -> None:
        """Drops what caches hold: those of vector accesses, those behind them, those of scalar loads, and the last.

        The last hold at once what is in memory now: no document says that nothing is fetched before it is wanted.
        """
        for caches in self._caches():
            for wanted, chosen in (
                (shared, caches.dies), (arrays, caches.arrays), (vectors, caches.vectors), (scalars, caches.scalars),
            ):  # fmt: skip
                for cache in _of(dies, chosen) if wanted else ():
                    (cache.refetch if cache.write_back else cache.drop)()

    def lose(self, dies: Dies) -> None:
        """Drops what was stored and not written back, too: no document says that it survives an invalidation."""
        for caches in self._caches():
            for cache in _of(dies, caches.dies):
                cache.forget()

    def write_back(self, dies: Dies = ALL) -> None:
        """Sends what was stored to memory."""
        for caches in self._caches():
            for cache in _of(dies, caches.dies):
                cache.flush()

    def copy(self, dies: Dies, source: int, target: int, nbytes: int) -> bool:
        """Copies bytes as the last caches of dies have them; False where there are none, on machines that hide nothing.

        Pages that no cache keeps are read and written behind them.
        """
        found = {id(cache): cache for caches in self._caches() for cache in _of(dies, caches.dies)}
        for cache in found.values():
            cache.drop(self._lines(source, nbytes, Access.UNCACHED | Access.COHERENT))
            cache.write(target, cache.read(source, nbytes))
            cache.flush(self._lines(target, nbytes, Access.UNCACHED))
        return bool(found)

    def _lines(self, address: int, nbytes: int, flags: Access) -> list[int]:
        """The lines of these bytes whose pages have one of the flags."""
        return [line for line in lines_of(address, nbytes) if self._space.access(line * LINE) & flags]

    def overtakes(self) -> bool:
        """Whether a packet that need not wait for the one before it is done first; only on a hostile machine."""
        hostile = (machine for machine in self._machines.values() if isinstance(machine, HostileMachine))
        return any(machine.rng.random() < _OVERTAKEN for machine in hostile)

    def _caches(self) -> list[Caches]:
        return [machine.caches for machine in self._machines.values() if isinstance(machine, HostileMachine)]

    def drop_code(self) -> None:
        """Forgets what instruction caches hold."""
        for dispatch, _ in self._running:
            dispatch.refetch()
        for machine in self._machines.values():
            machine.code.invalidate()

    def _machine(self, lanes: int) -> Machine:
        if lanes not in self._machines:
            self._machines[lanes] = self._maker(lanes, self._space)
        if self._version != self._space.version:
            self._version = self._space.version
            table = self._space.table
            rows = (tuple(table[4 * n : 4 * n + 4]) for n in range(self._space.count))
            code = tuple(row for row in rows if row[3] & Access.EXECUTE)
            if code != self._code:  # a mapping that goes takes its instructions with it
                self._code = code
                self.drop_code()
        return self._machines[lanes]

    def launch(
        self, registers: Registers, grid: Grid, initiator: int, between: Callable[[], None],
        over: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        """Runs a grid of workgroups to its end; a hostile machine executes other packets meanwhile.

        Args:
          registers: what SET_SH_REG wrote.
          grid: of workgroups.
          initiator: the last word of the packet.
          between: called after each step.
          over: called when the last wave has ended.

        Raises:
          PacketFault: if a register says what cannot be, or a wave cannot go on.
          MemoryFault: if a wave accesses what it may not.
        """
        how = registers.split("COMPUTE_DISPATCH_INITIATOR", initiator, 4)
        if not how["COMPUTE_SHADER_EN"]:
            raise PacketFault("COMPUTE_SHADER_EN is not set, so nothing starts", 4)
        for name in _UNPLAYED:
            if how.get(name):
                raise PacketFault(f"COMPUTE_DISPATCH_INITIATOR.{name} is not played", 4)
        lanes = 32 if how.get("CS_W32_EN") else 64  # gfx9 has no such bit
        if not how["FORCE_START_AT_000"]:
            for axis in "XYZ":
                if registers.get(f"COMPUTE_START_{axis}"):
                    raise PacketFault(f"COMPUTE_START_{axis} is not 0, which is not played")
        shape = Shape(self._size(registers), grid, lanes)
        if 0 in grid.groups:
            over()
            return
        launch = self._launch(registers, shape)
        machine = self._machine(lanes)
        self._running.append((Dispatch(machine, launch), over))
        if isinstance(machine, HostileMachine):  # what comes behind it is executed at any time
            self._pace = machine.rng.choice(_PACES)
            self.meanwhile(between)
        else:
            self.finish(between)

    def _size(self, registers: Registers) -> tuple[int, int, int]:
        sizes = []
        for axis in "XYZ":
            threads = registers.fields(f"COMPUTE_NUM_THREAD_{axis}")
            if threads["NUM_THREAD_PARTIAL"]:
                raise PacketFault(f"COMPUTE_NUM_THREAD_{axis} has partial threads, which is not played")
            sizes.append(threads["NUM_THREAD_FULL"])
        x, y, z = sizes
        if not 1 <= x * y * z <= MOST_THREADS or max(sizes) > MOST_THREADS:
            raise PacketFault(f"a workgroup of {x} x {y} x {z} threads; 1 to {MOST_THREADS} are possible")
        return x, y, z

    def _launch(self, registers: Registers, shape: Shape) -> Launch:
        major = self._major
        first, second = registers.fields("COMPUTE_PGM_RSRC1"), registers.fields("COMPUTE_PGM_RSRC2")
        if first["PRIV"]:
            raise PacketFault("COMPUTE_PGM_RSRC1.PRIV is for trap handlers")
        if first["FP16_OVFL"]:
            raise PacketFault("COMPUTE_PGM_RSRC1.FP16_OVFL, which clamps float16, is not played")
        entry = (registers.get("COMPUTE_PGM_LO") | registers.get("COMPUTE_PGM_HI") << 32) << 8
        shared = second["LDS_SIZE"] * 512
        if shared > MOST_LDS:
            raise PacketFault(f"{shared} bytes of local memory; a workgroup has {MOST_LDS} at most")
        if second["USER_SGPR"] > 16:
            raise PacketFault(f"{second['USER_SGPR']} user SGPRs; there are 16 COMPUTE_USER_DATA registers")
        user = [registers.get(f"COMPUTE_USER_DATA_{n}") for n in range(second["USER_SGPR"])]
        scratch = self._wave_bytes = self._scratch(registers) if second["SCRATCH_EN"] else 0
        mode = first["FLOAT_MODE"]
        if major < 12:
            mode |= first["DX10_CLAMP"] << 8 | first["IEEE_MODE"] << 9

        def setup(wave: Wave) -> None:
            self._begin(wave, shape, second, user, mode)

        x, y, z = shape.grid.groups
        slots = registers.fields("COMPUTE_TMPRING_SIZE")["WAVES"] if scratch else 0
        return Launch(
            entry, x * y * z, shape.waves(0), setup, shared, scratch // shape.lanes, f"at {entry:#x}",
            waves_of=shape.waves, resident=max(slots // shape.waves(0), 1) if slots else NO_LIMIT,
        )  # fmt: skip

    def wave_scratch(self, registers: Registers) -> int:
        """Bytes of a wave's scratch memory."""
        return registers.fields("COMPUTE_TMPRING_SIZE")["WAVESIZE"] * (256 if self._major >= 11 else 1024)

    def _scratch(self, registers: Registers) -> int:
        """Bytes of a wave's scratch memory; all of it must be there."""
        ring, nbytes = registers.fields("COMPUTE_TMPRING_SIZE"), self.wave_scratch(registers)
        if self._major >= 11 or self._packed:  # architected flat scratch: the base is a register's
            low, high = (registers.get(f"COMPUTE_DISPATCH_SCRATCH_BASE_{half}") for half in ("LO", "HI"))
            base, total = (low | high << 32) << 8, nbytes * ring["WAVES"]
            refusal = self._space.refusal(base, total, Access.READ | Access.WRITE) if total else None
            if refusal is not None:
                what = f"scratch of {ring['WAVES']} waves of {nbytes} bytes at {base:#x}"
                why = f"{what}; {refusal.address:#x} is {refusal.kind.name.lower()}"
                raise MemoryFault(Refused.of(refusal.address, refusal.kind, refusal.access), why)
        return nbytes

    def _begin(self, wave: Wave, shape: Shape, rsrc2: dict[str, int], user: list[int], mode: int) -> None:
        """Gives a wave its first registers."""
        x, y, z = shape.group(wave.group)
        scalars = list(user)
        if self._major >= 12:
            wave.set_scalar("s", x, TTMP + 9)
            wave.set_scalar("s", y | z << 16, TTMP + 7)
        else:
            scalars += [number for number, axis in ((x, "X"), (y, "Y"), (z, "Z")) if rsrc2[f"TGID_{axis}_EN"]]
        if rsrc2["TG_SIZE_EN"]:
            raise PacketFault("COMPUTE_PGM_RSRC2.TG_SIZE_EN is not played")
        if rsrc2["SCRATCH_EN"] and self._major < 11 and not self._packed:  # the wave's part of scratch
            scalars.append(wave.slot * self._wave_bytes)
        for index, value in enumerate(scalars):
            wave.set_scalar("s", value, index)
        wave.set_scalar("mode", mode)
        threads = range(wave.index * shape.lanes, (wave.index + 1) * shape.lanes)
        nx, ny, nz = shape.threads(wave.group)
        inside = [thread < nx * ny * nz for thread in threads]
        wave.exec = sum(1 << lane for lane, active in enumerate(inside) if active)
        ids = [(t % nx, t // nx % ny, t // (nx * ny)) if here else (0, 0, 0)
               for t, here in zip(threads, inside, strict=True)]  # fmt: skip
        if self._packed:
            known = (1 << 10 * (rsrc2["TIDIG_COMP_CNT"] + 1)) - 1
            wave.set_row(0, [(tx | ty << 10 | tz << 20) & known for tx, ty, tz in ids])
        else:
            for axis in range(rsrc2["TIDIG_COMP_CNT"] + 1):
                wave.set_row(axis, [thread[axis] for thread in ids])


def _of(dies: Dies, caches: list[Cache]) -> list[Cache]:
    return [cache for part, cache in enumerate(caches) if dies.have(part, len(caches))]
