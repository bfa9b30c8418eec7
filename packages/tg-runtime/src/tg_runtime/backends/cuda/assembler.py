"""PTX to what a device loads: the text itself, which the driver assembles, or a cubin by nvJitLink.

Source: NVIDIA, *nvJitLink documentation*, chapter "User Interface"; the functions carry a version in their names.
"""

from __future__ import annotations

import ctypes
import functools
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint32, c_void_p

from ...device.compiler import Compiler, rejected
from ...errors import DeviceUnavailable
from .disassembly import disassemble
from .libraries import library

MISSING = "nvJitLink is not installed (pip install nvidia-nvjitlink)"
_PTX_INPUT = 2
_SIZES = POINTER(c_size_t)
_PROTOTYPES: dict[str, tuple[object, ...]] = {
    "Create": (POINTER(c_void_p), c_uint32, POINTER(c_char_p)),
    "Destroy": (POINTER(c_void_p),),
    "AddData": (c_void_p, c_int, c_char_p, c_size_t, c_char_p),
    "Complete": (c_void_p,),
    "GetLinkedCubinSize": (c_void_p, _SIZES),
    "GetLinkedCubin": (c_void_p, c_void_p),
    "GetErrorLogSize": (c_void_p, _SIZES),
    "GetErrorLog": (c_void_p, c_void_p),
}


class PTXCompiler(Compiler):
    """Leaves PTX as it is: the driver assembles it when it loads it."""

    def __init__(self) -> None:
        super().__init__(None)  # there is nothing to keep

    def compile(self, src: str) -> bytes:
        """The text's bytes."""
        return src.encode()

    def disassemble(self, lib: bytes) -> str:
        """The text."""
        return lib.decode()


def available() -> bool:
    """Whether nvJitLink is there."""
    return library("nvJitLink") is not None


def major() -> int:
    """The major version of nvJitLink, 0 if it is not there."""
    return int(_linker().version.partition("_")[0]) if available() else 0


class _Linker:
    """The functions of the library, without the versions in their names."""

    def __init__(self) -> None:
        path = library("nvJitLink")
        if path is None:
            raise DeviceUnavailable(MISSING)
        loaded = ctypes.CDLL(path)
        versions = [f"{major}_0" for major in (14, 13, 12) if hasattr(loaded, f"__nvJitLinkCreate_{major}_0")]
        if not versions:
            raise DeviceUnavailable(f"nvJitLink: {path} has none of the interfaces of versions 12 to 14")
        self.version = versions[0]
        for name, arguments in _PROTOTYPES.items():
            function = getattr(loaded, f"__nvJitLink{name}_{self.version}")
            function.restype, function.argtypes = c_int, arguments
            setattr(self, name, function)

    def call(self, name: str, *arguments: object) -> int:
        status: int = getattr(self, name)(*arguments)
        return status

    def read(self, handle: c_void_p, name: str) -> bytes:
        size = c_size_t()
        self.call(f"{name}Size", handle, byref(size))
        found = ctypes.create_string_buffer(max(size.value, 1))
        self.call(name, handle, found)
        return found.raw[: size.value]


@functools.cache
def _linker() -> _Linker:
    return _Linker()


class JitLinkCompiler(Compiler):
    """Assembles PTX for one architecture.

    Args:
      arch: compute capability, ``sm_80``.

    Raises:
      DeviceUnavailable: if nvJitLink is not installed.
    """

    def __init__(self, arch: str) -> None:
        self.arch = arch
        super().__init__(f"nvjitlink:{library('nvJitLink')}:{_linker().version}:{arch}")

    def compile(self, src: str) -> bytes:
        """The cubin.

        Raises:
          CompileError: if the text is rejected; it is kept in a file that the message names.
        """
        linker, handle, text = _linker(), c_void_p(), src.encode()
        options = (c_char_p * 1)(f"-arch={self.arch}".encode())
        status = linker.call("Create", byref(handle), 1, options)
        if status:
            raise rejected(f"nvJitLink for {self.arch}", f"status {status}", src, ".ptx")
        try:
            status = linker.call("AddData", handle, _PTX_INPUT, text, len(text), b"kernel.ptx")
            status = status or linker.call("Complete", handle)
            if status:
                log = linker.read(handle, "GetErrorLog").rstrip(b"\0").decode(errors="replace")
                raise rejected(f"nvJitLink for {self.arch}", log or f"status {status}", src, ".ptx")
            return linker.read(handle, "GetLinkedCubin")
        finally:
            linker.call("Destroy", byref(handle))

    def disassemble(self, lib: bytes) -> str:
        """SASS."""
        return disassemble(lib)
