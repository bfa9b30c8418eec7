"""COMGR, AMD's library of compilers: HIP C++ to relocatable code objects, in process.

The library is found at run time (ROCm's, or Debian's ``libamd-comgr2`` with ``rocm-device-libs``), or named by
``COMGR_LIBRARY``. The numbers of its languages and actions differ between version 2 and version 3 of its interface, so
that the version is asked for first.

Source: ``amd_comgr.h`` (AMD, "Code Object Manager"), of versions 2.4 and 3.0.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ctypes import POINTER, byref, c_bool, c_char_p, c_int, c_size_t, c_uint64, c_void_p
from typing import Final, NamedTuple

from tg_codegen.machine.amdgpu import amd_gpu

from ..device.compiler import Compiler, rejected
from ..errors import DeviceUnavailable
from ..host.elf import ELFFile
from ..host.library import not_loaded, open_first

VARIABLE: Final = "COMGR_LIBRARY"
NAMES: Final = tuple(
    f"{folder}libamd_comgr.so.{version}" for folder in ("", "/opt/rocm/lib/") for version in (3, 2))
MISSING: Final = "COMGR is not installed (libamd_comgr.so of ROCm; apt install libamd-comgr2 rocm-device-libs)"
FOLDERS: Final = ("/usr/lib/x86_64-linux-gnu/amdgcn/bitcode", "/opt/rocm/amdgcn/bitcode")
"""Where Debian and ROCm keep the device libraries; ``HIP_DEVICE_LIB_PATH`` names another one."""
TRIPLE: Final = "amdgcn-amd-amdhsa-"
OPTIONS: Final = ("-O3", "-ffp-contract=off", "-fno-math-errno", "-nogpuinc", "-Wno-c++11-narrowing", "-w")
_SOURCE, _LOG, _RELOCATABLE = 1, 5, 7  # amd_comgr_data_kind_t


class Numbers(NamedTuple):
    """What a version of the interface calls what.

    Attributes:
      hip: the language HIP.
      compile: the action from source to bitcode that has the device libraries in it.
      generate: the action from bitcode to a relocatable object.
    """

    hip: int
    compile: int
    generate: int


NUMBERS: Final = {2: Numbers(4, 15, 6), 3: Numbers(3, 12, 4)}
"""By the major version of the interface."""

_SIZES = POINTER(c_size_t)
_HANDLES = POINTER(c_uint64)
_PROTOTYPES: Final[dict[str, tuple[object, ...]]] = {
    "create_data": (c_int, _HANDLES),
    "release_data": (c_uint64,),
    "set_data": (c_uint64, c_size_t, c_char_p),
    "set_data_name": (c_uint64, c_char_p),
    "get_data": (c_uint64, _SIZES, c_void_p),
    "create_data_set": (_HANDLES,),
    "destroy_data_set": (c_uint64,),
    "data_set_add": (c_uint64, c_uint64),
    "create_action_info": (_HANDLES,),
    "destroy_action_info": (c_uint64,),
    "action_info_set_language": (c_uint64, c_int),
    "action_info_set_isa_name": (c_uint64, c_char_p),
    "action_info_set_option_list": (c_uint64, POINTER(c_char_p), c_size_t),
    "action_info_set_logging": (c_uint64, c_bool),
    "do_action": (c_int, c_uint64, c_uint64, c_uint64),
    "action_data_count": (c_uint64, c_int, _SIZES),
    "action_data_get_data": (c_uint64, c_int, c_size_t, _HANDLES),
    "get_isa_count": (_SIZES,),
    "get_isa_name": (c_size_t, POINTER(c_char_p)),
}


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


class ComgrError(Exception):
    """A call of the library failed."""


class Comgr:
    """The library.

    Attributes:
      version: of the interface: major and minor.
      numbers: what this version calls what.

    Raises:
      DeviceUnavailable: if it has a version that is not known here.
    """

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        major, minor = c_size_t(), c_size_t()
        library.amd_comgr_get_version.restype = None
        library.amd_comgr_get_version(byref(major), byref(minor))
        self.version = major.value, minor.value
        if major.value not in NUMBERS:
            raise DeviceUnavailable(f"COMGR has version {major.value}.{minor.value}; 2 and 3 are known")
        self.numbers = NUMBERS[major.value]
        for name, arguments in _PROTOTYPES.items():
            function = getattr(library, f"amd_comgr_{name}")
            function.restype, function.argtypes = c_int, arguments

    def __call__(self, name: str, *arguments: object) -> None:
        """A call that must succeed.

        Raises:
          ComgrError: if it does not.
        """
        status = getattr(self._library, f"amd_comgr_{name}")(*arguments)
        if status:
            raise ComgrError(f"amd_comgr_{name}: status {status}")

    def archs(self) -> list[str]:
        """The instruction sets that it compiles for, as ``gfx1030``."""
        count, name = c_size_t(), c_char_p()
        self("get_isa_count", byref(count))
        found = []
        for index in range(count.value):
            self("get_isa_name", index, byref(name))
            found.append((name.value or b"").decode().rpartition("-")[2])
        return found

    def compile(self, source: bytes, arch: str, options: Sequence[str]) -> tuple[bytes | None, str]:
        """A relocatable object of HIP source; None with what the compiler said if it is rejected."""
        with self._set() as sources, self._set() as bitcode, self._set() as objects, self._action(arch) as action:
            texts = (c_char_p * len(options))(*(option.encode() for option in options))
            self("action_info_set_option_list", action, texts, len(options))
            self._add(sources, source)
            said = ""
            for step, given, made in (
                (self.numbers.compile, sources, bitcode), (self.numbers.generate, bitcode, objects),
            ):  # fmt: skip
                if step == self.numbers.generate:  # takes of the options how hard to try
                    self("action_info_set_option_list", action, texts, 1)
                try:
                    self("do_action", step, action, given, made)
                except ComgrError as error:
                    told = self._content(made, _LOG)
                    return None, told.decode(errors="replace") if told else str(error)
                said += (self._content(made, _LOG) or b"").decode(errors="replace")
            return self._content(objects, _RELOCATABLE), said

    def _add(self, data_set: int, source: bytes) -> None:
        data = c_uint64()
        self("create_data", _SOURCE, byref(data))
        try:
            self("set_data", data, len(source), source)
            self("set_data_name", data, b"kernel.hip")
            self("data_set_add", data_set, data)
        finally:
            self("release_data", data)

    def _content(self, data_set: int, kind: int) -> bytes | None:
        """The first piece of a kind; None if there is none."""
        count, data, size = c_size_t(), c_uint64(), c_size_t()
        self("action_data_count", data_set, kind, byref(count))
        if count.value == 0:
            return None
        self("action_data_get_data", data_set, kind, 0, byref(data))
        try:
            self("get_data", data, byref(size), None)
            place = ctypes.create_string_buffer(size.value)
            self("get_data", data, byref(size), place)
            return place.raw[: size.value]
        finally:
            self("release_data", data)

    @contextmanager
    def _set(self) -> Iterator[int]:
        found = c_uint64()
        self("create_data_set", byref(found))
        try:
            yield found.value
        finally:
            self("destroy_data_set", found)

    @contextmanager
    def _action(self, arch: str) -> Iterator[int]:
        found = c_uint64()
        self("create_action_info", byref(found))
        try:
            self("action_info_set_language", found, self.numbers.hip)
            self("action_info_set_isa_name", found, f"{TRIPLE}-{arch}".encode())
            self("action_info_set_logging", found, True)
            yield found.value
        finally:
            self("destroy_action_info", found)


@functools.cache
def _loaded() -> Comgr | str:
    found = open_first(VARIABLE, NAMES)
    if found is None:
        return not_loaded(VARIABLE) or MISSING
    try:
        return Comgr(found)
    except (DeviceUnavailable, AttributeError) as error:
        return str(error)


def missing() -> str | None:
    """Why there is no COMGR, in words; None if there is."""
    found = _loaded()
    return found if isinstance(found, str) else None


def comgr() -> Comgr:
    """The library, loaded on first use.

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
        if self.arch not in library.archs():
            version, known = ".".join(map(str, library.version)), ", ".join(library.archs())
            raise DeviceUnavailable(f"COMGR {version} does not compile for {arch}; it does for {known}")
        linked = [] if library.version[0] > 2 else device_libraries(self.arch)
        self._options = (*OPTIONS, *linked)
        super().__init__(f"comgr:{'.'.join(map(str, library.version))}:{self.arch}:{' '.join(self._options)}")

    def compile(self, src: str) -> bytes:
        """The relocatable object.

        Raises:
          CompileError: if the source is rejected, or calls a function that is nowhere.
        """
        found, said = comgr().compile(src.encode(), self.arch, self._options)
        if found is None:
            raise rejected("COMGR", said, src, ".hip")
        absent = sorted(symbol.name for symbol in ELFFile(found).symbols if symbol.section == 0 and symbol.name)
        if absent:
            what = f"there is no {', '.join(absent)}; AMD's device libraries have it (apt install rocm-device-libs)"
            raise rejected("COMGR", what, src, ".hip")
        return found
