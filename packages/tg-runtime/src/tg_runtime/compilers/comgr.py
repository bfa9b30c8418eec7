"""HIP C++ to relocatable code objects, by AMD's library of compilers.

The library is found at run time (ROCm's, or Debian's ``libamd-comgr2`` with ``rocm-device-libs``), or named by
``COMGR_LIBRARY``. Each kernel is compiled in a process of its own: see :mod:`tg_runtime.compilers.comgr_library`.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from typing import Final, NamedTuple

from tg_codegen.machine.amdgpu import amd_gpu

from ..device.compiler import Compiler, rejected
from ..errors import DeviceUnavailable
from ..host.elf import ELFFile
from .comgr_library import REJECTED

FOLDERS: Final = ("/usr/lib/x86_64-linux-gnu/amdgcn/bitcode", "/opt/rocm/amdgcn/bitcode")
"""Where Debian and ROCm keep the device libraries; ``HIP_DEVICE_LIB_PATH`` names another one."""
OPTIONS: Final = ("-O3", "-ffp-contract=off", "-fno-math-errno", "-nogpuinc", "-Wno-c++11-narrowing", "-w")


class Facts(NamedTuple):
    """What the library says of itself.

    Attributes:
      version: of the interface: major and minor.
      archs: the instruction sets that it compiles for, as ``gfx1030``.
    """

    version: tuple[int, int]
    archs: list[str]


def device_libraries(arch: str) -> list[str]:
    """Options that link AMD's functions in, where they are files: exact division and roots, subnormals kept.

    Version 3 of the library has them inside; of version 2 Debian has not.
    """
    places = (os.environ.get("HIP_DEVICE_LIB_PATH", ""), *FOLDERS)
    folder = next((place for place in places if place and os.path.exists(os.path.join(place, "ocml.bc"))), None)
    if folder is None:
        return []
    wide = "on" if amd_gpu(arch).lanes == 64 else "off"
    names = (
        "ocml", "ockl", f"oclc_isa_version_{arch.removeprefix('gfx')}", "oclc_finite_only_off", "oclc_unsafe_math_off",
        "oclc_daz_opt_off", "oclc_correctly_rounded_sqrt_on", f"oclc_wavefrontsize64_{wide}", "oclc_abi_version_400",
    )  # fmt: skip
    files = (os.path.join(folder, f"{name}.bc") for name in names)
    linked = (("-Xclang", "-mlink-builtin-bitcode", "-Xclang", path) for path in files if os.path.exists(path))
    return [option for options in linked for option in options]


def _asked(question: dict[str, object], source: bytes = b"") -> tuple[int, bytes]:
    """Exit status and answer of a process with the library."""
    command = [sys.executable, "-m", "tg_runtime.compilers.comgr_library"]
    given = json.dumps(question).encode() + b"\n" + source
    paths = os.pathsep.join(path for path in sys.path if path)
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(command, input=given, capture_output=True, check=False, env=environment)
    return done.returncode, done.stdout if done.returncode in (0, REJECTED) else done.stdout + done.stderr


@functools.cache
def _loaded() -> Facts | str:
    status, told = _asked({})
    if status:
        return f"COMGR ended with status {status}: {told.decode(errors='replace').strip()[-500:]}"
    found = json.loads(told)
    return found["missing"] if "missing" in found else Facts(tuple(found["version"]), found["archs"])


def missing() -> str | None:
    """Why there is no COMGR, in words; None if there is."""
    found = _loaded()
    return found if isinstance(found, str) else None


def comgr() -> Facts:
    """What there is.

    Raises:
      DeviceUnavailable: if it is not there, or of a version that is not known.
    """
    found = _loaded()
    if isinstance(found, str):
        raise DeviceUnavailable(found)
    return found


class HIPCompiler(Compiler):
    """Compiles HIP C++ for an AMD GPU.

    Args:
      arch: the instruction set, as ``gfx1030``.

    Raises:
      DeviceUnavailable: if there is no COMGR, or it does not compile for this instruction set.
      ValueError: if there is no such instruction set.
    """

    def __init__(self, arch: str) -> None:
        self.arch = amd_gpu(arch).arch
        library = comgr()
        if self.arch not in library.archs:
            version, known = ".".join(map(str, library.version)), ", ".join(library.archs)
            raise DeviceUnavailable(f"COMGR {version} does not compile for {arch}; it does for {known}")
        linked = [] if library.version[0] > 2 else device_libraries(self.arch)
        self._options = (*OPTIONS, *linked)
        super().__init__(f"comgr:{'.'.join(map(str, library.version))}:{self.arch}:{' '.join(self._options)}")

    def compile(self, src: str) -> bytes:
        """The relocatable object.

        Raises:
          CompileError: if the source is rejected, or calls a function that is nowhere.
        """
        status, found = _asked({"arch": self.arch, "options": self._options}, src.encode())
        if status:
            ended = "" if status == REJECTED else f"it ended with status {status}: "
            raise rejected("COMGR", ended + found.decode(errors="replace"), src, ".hip")
        absent = sorted(symbol.name for symbol in ELFFile(found).symbols if symbol.section == 0 and symbol.name)
        if absent:
            what = f"there is no {', '.join(absent)}; AMD's device libraries have it (apt install rocm-device-libs)"
            raise rejected("COMGR", what, src, ".hip")
        return found
