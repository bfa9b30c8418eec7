"""COMGR, AMD's library of compilers, in a process of its own: ``python -m tg_runtime.compilers.comgr_library``.

It brings an LLVM, and so do drivers of OpenCL: two of them in one process end it ("registered more than once"). The
numbers of its languages and actions differ between version 2 and version 3 of its interface, so that the version is
asked for first.

Source: ``amd_comgr.h`` (AMD, "Code Object Manager"), of versions 2.4 and 3.0.
"""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ctypes import POINTER, byref, c_bool, c_char_p, c_int, c_size_t, c_uint64, c_void_p
from typing import Final, NamedTuple

from ..errors import DeviceUnavailable
from ..host.library import not_loaded, open_first

VARIABLE: Final = "COMGR_LIBRARY"
NAMES: Final = tuple(
    f"{folder}libamd_comgr.so.{version}" for folder in ("", "/opt/rocm/lib/") for version in (3, 2))
MISSING: Final = "COMGR is not installed (libamd_comgr.so of ROCm; apt install libamd-comgr2 rocm-device-libs)"
TRIPLE: Final = "amdgcn-amd-amdhsa-"
_SOURCE, _LOG, _RELOCATABLE = 1, 5, 7  # amd_comgr_data_kind_t
REJECTED: Final = 3
"""Exit status where the compiler rejects what it was given; standard output has what it said."""


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


def opened() -> Comgr:
    """The library.

    Raises:
      DeviceUnavailable: if it is not there, or of a version that is not known.
    """
    found = open_first(VARIABLE, NAMES)
    if found is None:
        raise DeviceUnavailable(not_loaded(VARIABLE) or MISSING)
    try:
        return Comgr(found)
    except AttributeError as error:
        raise DeviceUnavailable(str(error)) from None


def main() -> int:
    """Answers one question, from standard input: a line of JSON, and behind it the source, if it is to be compiled.

    ``{}`` asks for version and instruction sets; ``{"arch": …, "options": […]}`` for an object.
    """
    asked = json.loads(sys.stdin.buffer.readline())
    try:
        library = opened()
    except DeviceUnavailable as error:
        print(json.dumps({"missing": str(error)}))
        return 0
    if not asked:
        print(json.dumps({"version": library.version, "archs": library.archs()}))
        return 0
    found, said = library.compile(sys.stdin.buffer.read(), asked["arch"], asked["options"])
    sys.stdout.buffer.write(said.encode() if found is None else found)
    return REJECTED if found is None else 0


if __name__ == "__main__":
    sys.exit(main())
