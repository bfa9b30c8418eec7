"""Where a WebGPU library is, and the library with its prototypes declared. Nothing is opened to find it."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import platform
import sys

from ...errors import DeviceError
from . import dawn, wgpu

WGPU_VERSION = 29  # of wgpu-native: the structures are those of this version
VARIABLES = {"DAWN": "DAWN_LIBRARY", "WGPU": "WGPU_LIBRARY"}
WHEELS = {"DAWN": ("pydawn", "dawn-python==0.3.0"), "WGPU": ("wgpu", "wgpu==0.32.0")}
_PROTOTYPES = {"DAWN": dawn.PROTOTYPES, "WGPU": wgpu.PROTOTYPES}


def path_of(kind: str) -> str | None:
    """The file of a library, None if there is none: what the variable names, else what its wheel carries."""
    named = os.environ.get(VARIABLES[kind])
    if named:
        return named if os.path.exists(named) else None
    module, _ = WHEELS[kind]
    spec = importlib.util.find_spec(module)
    if spec is None:
        return None
    for folder in spec.submodule_search_locations or ():
        for file in _files(kind):
            path = os.path.join(folder, file)
            if os.path.exists(path):
                return path
    return None


def _files(kind: str) -> tuple[str, ...]:
    if kind == "WGPU":
        names = {"win32": "wgpu_native-release.dll", "darwin": "libwgpu_native-release.dylib"}
        return (os.path.join("resources", names.get(sys.platform, "libwgpu_native-release.so")),)
    machine = {"amd64": "x86_64", "AMD64": "x86_64"}.get(platform.machine(), platform.machine())
    if sys.platform == "win32":
        return (os.path.join("lib", "libwebgpu_dawn.dll"),)
    return (os.path.join("lib", f"libwebgpu_dawn_{machine}.{'dylib' if sys.platform == 'darwin' else 'so'}"),)


def first() -> str:
    """The library to use where none is asked for: the first that is named or there, or Dawn."""
    there = (kind for kind in WHEELS if os.environ.get(VARIABLES[kind]) or path_of(kind) is not None)
    return next(there, next(iter(WHEELS)))


def problem(kind: str) -> str | None:
    """Why a library cannot be used here, as far as is seen without opening it; None if it may work."""
    if path_of(kind) is not None:
        return None
    variable, (_, wheel) = VARIABLES[kind], WHEELS[kind]
    named = os.environ.get(variable)
    if named:
        return f"the library that {variable} names is not there: {named}"
    return f"no WebGPU library: pip install {wheel}, or name the library in {variable}"


@functools.cache
def load(kind: str) -> ctypes.CDLL:
    """The library with the prototypes of all functions that we use.

    Raises:
      DeviceError: if it is absent, does not load, or lacks a function.
    """
    path = path_of(kind)
    if path is None:
        raise DeviceError(problem(kind) or "")
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise DeviceError(f"the WebGPU library {path} does not load: {error}") from None
    for name, (result, arguments) in _PROTOTYPES[kind].items():
        function = getattr(library, name, None)
        if function is None:
            raise DeviceError(f"the WebGPU library {path} has no {name}: another version is needed, {WHEELS[kind][1]}")
        function.restype, function.argtypes = result, arguments
    return library
