"""What this machine's processor is: its identity for cache keys, its cores, and its shape for the code generator."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
from typing import NamedTuple

from tg_codegen import Target
from tg_lazy import ContextVar

from ..errors import DevSyntaxError

CPU_COUNT: ContextVar[int] = ContextVar("CPU_COUNT", 0)


@functools.cache
def _cpuinfo() -> dict[str, str]:
    """The description of the first core that Linux gives; empty elsewhere."""
    found: dict[str, str] = {}
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                if not line.strip():
                    break
                key, _, value = line.partition(":")
                found[key.strip()] = value.strip()
    except OSError:
        pass
    return found


@functools.cache
def features() -> frozenset[str]:
    """The instruction-set extensions, as Linux names them."""
    info = _cpuinfo()
    return frozenset((info.get("flags") or info.get("Features") or "").split())


@functools.cache
def cpu_identity() -> str:
    """A digest of model and features: binaries for one identity run on every machine that has it."""
    info = _cpuinfo()
    keys = ("vendor_id", "cpu family", "model", "model name", "CPU implementer", "CPU part")
    text = "|".join([platform.machine(), platform.system(), *(info.get(k, "") for k in keys), *sorted(features())])
    if not info:
        text += platform.processor() + platform.version()
    return f"{platform.machine()}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def host_name() -> str:
    """This machine and its widest vectors, for people: ``x86_64 avx512f``."""
    widest = next((name for name in ("avx512f", "avx2", "avx", "sve", "asimd") if name in features()), "")
    return f"{platform.machine()} {widest}".rstrip()


def core_count() -> int:
    """How many threads to use: ``CPU_COUNT`` if set, else what ``OMP_NUM_THREADS``, affinity and CPU quota allow."""
    if CPU_COUNT.value > 0:
        return CPU_COUNT.value
    try:
        limits = [len(os.sched_getaffinity(0))]
    except AttributeError:
        limits = [os.cpu_count() or 1]
    omp = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if omp.isdigit():
        limits.append(int(omp))
    quota = _quota()
    if quota is not None:
        limits.append(quota)
    return max(1, min(limits))


def _quota() -> int | None:
    """The control group's CPU quota in whole cores, rounded up."""
    try:
        with open("/sys/fs/cgroup/cpu.max", encoding="ascii") as file:
            quota, period = file.read().split()
        return max(1, -(-int(quota) // int(period)))
    except (OSError, ValueError):
        return None


@functools.cache
def _cache_bytes(level: int, default: int) -> int:
    """The size of the first core's data cache at a level."""
    base = "/sys/devices/system/cpu/cpu0/cache"
    units = {"K": 1024, "M": 1024 * 1024}
    try:
        for index in sorted(os.listdir(base)):
            folder = os.path.join(base, index)
            if not index.startswith("index"):
                continue
            fields = []
            for name in ("level", "type", "size"):
                with open(os.path.join(folder, name), encoding="ascii") as file:
                    fields.append(file.read().strip())
            if fields[0] == str(level) and fields[1] != "Instruction":
                return int(fields[2][:-1]) * units[fields[2][-1]]
    except (OSError, ValueError, KeyError, IndexError):
        pass
    return default


# processors that have 512-bit, and those that have 256-bit vectors, as LLVM and GCC name them
_WIDE = ("x86-64-v4", "skylake-avx512", "cascadelake", "icelake", "sapphirerapids", "graniterapids", "znver4", "znver5")
_MEDIUM = ("x86-64-v3", "haswell", "broadwell", "skylake", "alderlake", "znver1", "znver2", "znver3", *_WIDE)


class CPUArch(NamedTuple):
    """The ARCH of a ``DEV`` entry for a CPU: ``[MACHINE,][CPU][,feature]…``.

    ``MACHINE`` is this machine's (``x86_64``) and says nothing new. ``CPU`` is a name that the compiler knows, or
    ``native``. A feature is ``name``, ``+name`` or ``-name``.

    Attributes:
      cpu: processor name; empty for this one.
      features: each with its sign.

    Example:
        >>> CPUArch.parse("znver2,avx2,-fma")
        CPUArch(cpu='znver2', features=('+avx2', '-fma'))
    """

    cpu: str = ""
    features: tuple[str, ...] = ()

    @classmethod
    def parse(cls, arch: str) -> CPUArch:
        """Reads the text.

        Raises:
          DevSyntaxError: it is for another machine.
        """
        parts = [part.strip() for part in arch.split(",") if part.strip()]
        machine = platform.machine().lower().replace("amd64", "x86_64").replace("arm64", "aarch64")
        if parts and parts[0].lower() in ("x86_64", "aarch64", "arm64", "riscv64"):
            if parts[0].lower().replace("arm64", "aarch64") != machine:
                raise DevSyntaxError(f"CPU arch {arch!r}: this machine is {machine}; code for {parts[0]} cannot run")
            parts = parts[1:]
        cpu = parts.pop(0) if parts and parts[0][0] not in "+-" else ""
        signed = tuple(part if part[0] in "+-" else f"+{part}" for part in parts)
        return cls("" if cpu == "native" else cpu, signed)

    def has(self, feature: str) -> bool:
        """Whether the processor has an extension (``avx2``, ``avx512f``, ``fma``), as far as is known."""
        if f"-{feature}" in self.features:
            return False
        if f"+{feature}" in self.features:
            return True
        if not self.cpu:
            return feature in features()
        return self.cpu.startswith(_WIDE if feature == "avx512f" else _MEDIUM)


def host_target(threads: int, arch: CPUArch) -> Target:
    """The machine as the code generator wants to know it."""
    arm = platform.machine() in ("aarch64", "arm64")
    wide = not arm and arch.has("avx512f")
    return Target(
        kind="cpu",
        vector_bytes=64 if wide else 32 if not arm and arch.has("avx2") else 16,
        registers=32 if wide or arm else 16,
        threads=threads,
        l1_bytes=_cache_bytes(1, 32 * 1024),
        l2_bytes=_cache_bytes(2, 512 * 1024),
        fused_multiply_add=arm or arch.has("fma"),
    )
