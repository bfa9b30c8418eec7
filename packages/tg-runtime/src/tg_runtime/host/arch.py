"""Processors as kernels are compiled for them: this machine's, an older one, or one of another instruction set."""

from __future__ import annotations

import functools
import platform
import re
from typing import NamedTuple

from tg_codegen import Target
from tg_codegen.ir.matrix import AMX_BF16, AMX_BYTES, AVX2_DOTS, AVX512_BF16, AVX512_VNNI_ALL, AVX512_VNNI_PAIRED
from tg_codegen.machine.costs import CPUCosts

from ..errors import DevSyntaxError
from .caches import Caches
from .caches import this_machine as these_caches
from .processor import features, vendor
from .tile_registers import tiles_permitted


class Machine(NamedTuple):
    """An instruction set.

    Attributes:
      name: as ``uname -m`` writes it, and QEMU.
      triple: LLVM's name of it with Linux.
      features: extensions that are there where no processor is named.
      vectors: extensions with wider vectors, widest first: how LLVM calls each, bytes of a vector, and how many
        vector registers there are.
      plain: bytes of a vector, and vector registers, without any of those.
      fused: the extension that has a fused multiply-add; empty if all processors have it.
      caches: of a usual core, where a machine does not tell its own.
    """

    name: str
    triple: str
    features: tuple[str, ...] = ()
    vectors: tuple[tuple[str, int, int], ...] = ()
    plain: tuple[int, int] = (16, 16)
    fused: str = ""
    caches: Caches = Caches()


# 32 KB of 8 ways are in x86 cores from Nehalem to Zen 4, 512 KB in those from Zen to Zen 3. Cortex-A76 has 64 KB of
# 4 ways and 512 KB of 8 (its Technical Reference Manual, "L1 memory system", "L2 memory system"); the small RISC-V
# boards of SpacemiT and SiFive have 32 KB, and 256 to 512 KB for a core.
MACHINES = {
    machine.name: machine
    for machine in (
        Machine("x86_64", "x86_64-unknown-linux-gnu", (), (("avx512f", 64, 32), ("avx2", 32, 16)), fused="fma"),
        Machine(
            "aarch64", "aarch64-unknown-linux-gnu", ("+neon",), (("neon", 16, 32),), plain=(4, 32),
            caches=Caches(l1_bytes=64 << 10, l1_ways=4, l2_ways=8),
        ),
        Machine(
            "riscv64",
            "riscv64-unknown-linux-gnu",
            ("+m", "+a", "+f", "+d", "+c", "+v"),
            (("zvl512b", 64, 32), ("zvl256b", 32, 32), ("v", 16, 32)),
            plain=(4, 32),
        ),
    )
}
_ALIASES = {"amd64": "x86_64", "arm64": "aarch64"}
# names that differ between LLVM and Linux
_LINUX = {
    "amx-tile": "amx_tile", "amx-bf16": "amx_bf16", "amx-int8": "amx_int8",
    "avx512bf16": "avx512_bf16", "avx512vnni": "avx512_vnni",
    "sse3": "pni", "sse4.1": "sse4_1", "sse4.2": "sse4_2", "lzcnt": "abm",
}  # fmt: skip
# what each extension of x86-64 requires: it is off where that is off, and brings that along where it is on
_NEEDS = {
    "avx2": frozenset({"avx"}), "fma": frozenset({"avx"}), "f16c": frozenset({"avx"}),
    "avx512f": frozenset({"avx", "avx2", "fma", "f16c"}),
    "avx512dq": frozenset({"avx", "avx2", "fma", "f16c", "avx512f"}),
    "avx512bf16": frozenset({"avx", "avx2", "fma", "f16c", "avx512f"}),
    "avx512vnni": frozenset({"avx", "avx2", "fma", "f16c", "avx512f"}),
    "amx-bf16": frozenset({"amx-tile"}), "amx-int8": frozenset({"amx-tile"}),
}  # fmt: skip
_CHECKED = re.compile(r"(amx-\w+|avx|avx2|avx512\w+|fma|f16c|bmi1?|bmi2|lzcnt|popcnt|sse3|ssse3|sse4\.[12]|sse4a)\Z")

# x86-64 processors that have 512-bit, and those that have 256-bit vectors, as LLVM and GCC name them
_WIDE = re.compile(
    r"x86-64-v4|skylake-avx512|skx|cascadelake|cooperlake|cannonlake|icelake|rocketlake|tigerlake|sapphirerapids|"
    r"emeraldrapids|graniterapids|diamondrapids|novalake|knl|knm|znver[456]"
)
_MEDIUM = re.compile(
    r"x86-64-v3|haswell|core-avx2|broadwell|skylake|alderlake|raptorlake|meteorlake|arrowlake|lunarlake|pantherlake|"
    r"gracemont|sierraforest|grandridge|clearwaterforest|bdver4|znver[123]\Z"
)


_WITH_TILES = r"(sapphire|emerald|granite|diamond)rapids|novalake"
_WITH_BF16 = re.compile(r"cooperlake|(sapphire|emerald|granite|diamond)rapids|novalake|znver[456]")
# extensions that not all with such vectors have; SSE4A is AMD's alone
_WITH = {
    "avx512bf16": _WITH_BF16,
    "avx512vnni": re.compile(r"cascadelake|icelake|rocketlake|tigerlake|" + _WITH_BF16.pattern),
    **dict.fromkeys(("amx-tile", "amx-bf16", "amx-int8"), re.compile(_WITH_TILES)),
    "sse4a": re.compile(r"amdfam10|barcelona|btver|bdver|znver"),
}
# cores whose VDPBF16PS takes two cycles, where a multiply-add takes half of one: those of Intel that have AVX512-FP16,
# and AMX for matrices of bfloat16
_SLOW_PAIRS = re.compile(r"(sapphire|emerald|granite|diamond)rapids")
_SLOW_PAIR_CYCLES = 2.0
# a line of several rows that are read at a time, beside one row after the other, where Intel's prefetchers follow them
_INTEL_BESIDE_CYCLES = -1.0
# the matrix instructions of x86-64 and the extension that each needs
_MATRICES = (
    (AMX_BF16, "amx-bf16"), *((found, "amx-int8") for found in AMX_BYTES),
    (AVX512_BF16, "avx512bf16"), *((found, "avx512vnni") for found in (*AVX512_VNNI_ALL, *AVX512_VNNI_PAIRED)),
    *((found, "avx2") for found in AVX2_DOTS),
)  # fmt: skip


@functools.cache
def this_machine() -> str:
    """The name of the instruction set that this process runs on."""
    name = platform.machine().lower()
    return _ALIASES.get(name, name)


def _here(feature: str) -> bool:
    """Whether this machine has an extension, and this process may use it."""
    return _LINUX.get(feature, feature) in features() and (not feature.startswith("amx-") or tiles_permitted())


class CPUArch(NamedTuple):
    """The ARCH of a ``DEV`` entry for a CPU: ``[MACHINE,][CPU][,feature]…``.

    ``MACHINE`` is ``x86_64``, ``aarch64`` or ``riscv64``; this one's if it is left out. ``CPU`` is a name that the
    compiler knows, or ``native``. A feature is ``name``, ``+name`` or ``-name``.

    Attributes:
      cpu: processor name; empty for this one, or for the plainest of another machine.
      features: each with its sign.
      machine: another machine's name; empty for this one.

    Example:
      >>> CPUArch.parse("znver2,avx2,-fma")
      CPUArch(cpu='znver2', features=('+avx2', '-fma'), machine='')
    """

    cpu: str = ""
    features: tuple[str, ...] = ()
    machine: str = ""

    @classmethod
    def parse(cls, arch: str) -> CPUArch:
        """Reads the text.

        Raises:
          DevSyntaxError: if there is a part without a name, or ``native`` for another machine.
        """
        parts = [part.strip() for part in arch.split(",")] if arch.strip() else []
        for part in parts:
            if not part.lstrip("+-") or not re.fullmatch(r"[+-]?[\w.-]+", part):
                raise DevSyntaxError(f"CPU arch {arch!r}: {part!r} names no processor and no feature")
        machine = ""
        if parts and _ALIASES.get(parts[0].lower(), parts[0].lower()) in MACHINES:
            named = parts.pop(0).lower()
            machine = _ALIASES.get(named, named)
        cpu = parts.pop(0) if parts and parts[0][0] not in "+-" else ""
        signed = tuple(part if part[0] in "+-" else f"+{part}" for part in parts)
        machine = "" if machine == this_machine() else machine
        if machine and cpu == "native":
            raise DevSyntaxError(f"CPU arch {arch!r}: the native processor is {this_machine()}, not {machine}")
        return cls("" if cpu == "native" else cpu, signed, machine)

    @property
    def kind(self) -> Machine:
        """The instruction set."""
        name = self.machine or this_machine()
        return MACHINES.get(name) or Machine(name, "")

    def has(self, feature: str) -> bool:
        """Whether the processor has an extension (``avx2``, ``avx512f``, ``fma``), as far as is known."""
        for sign, known in ((f[0], f[1:]) for f in reversed(self.features)):
            if sign == "+" and (known == feature or feature in _NEEDS.get(known, ())):
                return True
            if sign == "-" and (known == feature or known in _NEEDS.get(feature, ())):
                return False
        if self.kind.name == "x86_64":
            if not self.cpu and not self.machine:
                return _here(feature)
            if feature in _WITH:
                return bool(_WITH[feature].match(self.cpu))
            if feature.startswith("avx512"):
                return bool(_WIDE.match(self.cpu))
            return bool(_WIDE.match(self.cpu) or _MEDIUM.match(self.cpu))
        return f"+{feature}" in self.kind.features and (not self.cpu or self.kind.name == "aarch64")

    def costs(self) -> CPUCosts:
        """What instructions cost, where the processor is known to differ from others."""
        here, native = not self.machine, not self.cpu and not self.machine
        intel = vendor() == "GenuineIntel"
        slow = intel and "avx512_fp16" in features() if native else _SLOW_PAIRS.match(self.cpu)
        usual = CPUCosts()
        return CPUCosts(
            pair_product=_SLOW_PAIR_CYCLES if slow else usual.pair_product,
            # memory is this machine's, whatever instructions its kernels are held to
            beside_line=_INTEL_BESIDE_CYCLES if here and intel else usual.beside_line)

    def for_llvm(self) -> list[str]:
        """The extensions as LLVM wants to be told: what another machine has, then what was asked for."""
        given = self.kind.features if self.machine and not self.cpu else ()
        return [*(f for f in given if f"-{f[1:]}" not in self.features), *self.features]

    def lacking(self) -> list[str]:
        """The extensions that kernels may use and this machine does not have."""
        if self.machine or this_machine() != "x86_64":
            return []
        wanted = [f[1:] for f in self.features if f[0] == "+"]
        wanted += [f for f in ("avx512f", "avx2", "fma", "sse4a", "amx-tile") if self.cpu and self.has(f)]
        return [f for f in dict.fromkeys(wanted) if _CHECKED.match(f) and not _here(f)]

    def target(self, threads: int) -> Target:
        """The processor as the code generator wants to know it."""
        kind = self.kind
        found = next(((size, count) for name, size, count in kind.vectors if self.has(name)), kind.plain)
        caches = kind.caches if self.machine else these_caches(kind.caches)
        return Target(
            kind="cpu",
            vector_bytes=found[0],
            registers=found[1],
            threads=threads,
            l1_bytes=caches.l1_bytes,
            l1_ways=caches.l1_ways,
            l2_bytes=caches.l2_bytes,
            l2_ways=caches.l2_ways,
            last_bytes=caches.last_bytes,
            line_bytes=caches.line_bytes,
            fused_multiply_add=not kind.fused or self.has(kind.fused),
            folds=kind.name == "x86_64",
            scales=kind.name == "x86_64" and self.has("avx512f"),
            converts_words=kind.name != "x86_64" or self.has("avx512dq"),
            matrices=tuple(
                m for m, needed in _MATRICES if kind.name == "x86_64" and self.has(needed)
                and m.shape[1] * m.acc.itemsize == found[0]),  # those of its widest vectors
            cpu=self.costs(),
        )
