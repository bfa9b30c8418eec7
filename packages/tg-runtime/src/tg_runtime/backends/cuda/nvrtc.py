"""NVRTC: CUDA C++ to PTX, or all the way to a cubin.

Source: NVIDIA, *NVRTC documentation*, chapter "User Interface".
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_void_p

from ...device.compiler import Compiler, rejected
from ...errors import DeviceUnavailable
from .disassembly import disassemble
from .libraries import include_folders, library

MISSING = "NVRTC is not installed (pip install nvidia-cuda-nvrtc, or nvidia-cuda-nvrtc-cu12 for older drivers)"
_SIZES = POINTER(c_size_t)
_PROTOTYPES: dict[str, tuple[object, ...]] = {
    "nvrtcVersion": (POINTER(c_int), POINTER(c_int)),
    "nvrtcGetNumSupportedArchs": (POINTER(c_int),),
    "nvrtcGetSupportedArchs": (POINTER(c_int),),
    "nvrtcCreateProgram": (POINTER(c_void_p), c_char_p, c_char_p, c_int, c_void_p, c_void_p),
    "nvrtcCompileProgram": (c_void_p, c_int, POINTER(c_char_p)),
    "nvrtcGetProgramLogSize": (c_void_p, _SIZES),
    "nvrtcGetProgramLog": (c_void_p, c_void_p),
    "nvrtcGetPTXSize": (c_void_p, _SIZES),
    "nvrtcGetPTX": (c_void_p, c_void_p),
    "nvrtcGetCUBINSize": (c_void_p, _SIZES),
    "nvrtcGetCUBIN": (c_void_p, c_void_p),
    "nvrtcDestroyProgram": (POINTER(c_void_p),),
}


def available() -> bool:
    """Whether the library is there; it is not loaded from a wheel to find out."""
    return library("nvrtc") is not None


@functools.cache
def _nvrtc() -> ctypes.CDLL:
    path = library("nvrtc")
    if path is None:
        raise DeviceUnavailable(MISSING)
    loaded = ctypes.CDLL(path)
    for name, arguments in _PROTOTYPES.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = c_int, arguments
    return loaded


@functools.cache
def version() -> tuple[int, int]:
    """The library's version.

    Raises:
      DeviceUnavailable: if it is not there.
    """
    major, minor = c_int(), c_int()
    _nvrtc().nvrtcVersion(byref(major), byref(minor))
    return major.value, minor.value


@functools.cache
def architectures() -> tuple[int, ...]:
    """The compute capabilities that the library compiles for, as numbers: 75 for 7.5."""
    count = c_int()
    _nvrtc().nvrtcGetNumSupportedArchs(byref(count))
    found = (c_int * count.value)()
    _nvrtc().nvrtcGetSupportedArchs(found)
    return tuple(found)


def virtual(arch: str) -> str:
    """The virtual architecture to write PTX for, where a device of capability ``arch`` shall load it."""
    number = arch.removeprefix("sm_")
    if not number.isdigit() or int(number) in architectures():
        return f"compute_{number}"
    return f"compute_{max((known for known in architectures() if known < int(number)), default=number)}"


class NVRTCCompiler(Compiler):
    """Compiles CUDA C++.

    Args:
      arch: compute capability, ``sm_80``.
      cubin: give machine code for just this capability instead of PTX, which the driver assembles when it loads it.
        PTX is for the newest capability up to ``arch`` that the library knows.

    Raises:
      DeviceUnavailable: if NVRTC is not installed.
    """

    def __init__(self, arch: str, cubin: bool = False) -> None:
        self.arch, self.cubin = arch, cubin
        # A virtual architecture gives PTX.
        self.options = (
            f"--gpu-architecture={arch if cubin else virtual(arch)}",
            "--std=c++17",
            *(f"--include-path={folder}" for folder in include_folders()),
        )
        super().__init__(f"nvrtc:{version()}:{arch}:{'cubin' if cubin else 'ptx'}")

    def compile(self, src: str) -> bytes:
        """PTX text, or a cubin.

        Raises:
          CompileError: if the source is rejected; it is kept in a file that the message names.
        """
        nvrtc, program = _nvrtc(), c_void_p()
        status = nvrtc.nvrtcCreateProgram(byref(program), src.encode(), b"kernel.cu", 0, None, None)
        if status:
            raise rejected("NVRTC", f"status {status}", src, ".cu")
        try:
            options = (c_char_p * len(self.options))(*(option.encode() for option in self.options))
            status = nvrtc.nvrtcCompileProgram(program, len(options), options)
            if status:
                log = _read(program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog)
                detail = log.rstrip(b"\0").decode(errors="replace") or f"status {status}"
                raise rejected(f"NVRTC for {self.arch}", detail, src, ".cu")
            if self.cubin:
                return _read(program, nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN)
            return _read(program, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX).rstrip(b"\0")
        finally:
            nvrtc.nvrtcDestroyProgram(byref(program))

    def disassemble(self, lib: bytes) -> str:
        """PTX as it is, a cubin as SASS."""
        return disassemble(lib)


def _read(program: c_void_p, measure: Callable[..., int], fetch: Callable[..., int]) -> bytes:
    size = c_size_t()
    measure(program, byref(size))
    text = ctypes.create_string_buffer(size.value)
    fetch(program, text)
    return text.raw
