"""What this machine's processor is: its identity for cache keys, its extensions, its cores."""

from __future__ import annotations

import functools
import hashlib
import os
import platform

from tg_lazy import ContextVar

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


def vendor() -> str:
    """Who made the processor, as x86-64 names itself: ``GenuineIntel``, ``AuthenticAMD``; empty elsewhere."""
    return _cpuinfo().get("vendor_id", "")


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
