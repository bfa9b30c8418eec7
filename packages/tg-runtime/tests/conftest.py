"""Fixtures of the runtime's tests."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tg_codegen.render.c.msl_host import install
from tg_lazy import Context
from tg_runtime.backends.metal import api
from tg_runtime.backends.metal.device import MetalDevice
from tg_runtime.device.registry import Device
from tg_runtime.host.tools import find_tool


@pytest.fixture
def cache_folder(tmp_path: Path) -> Iterator[Path]:
    """An empty cache folder, in force for one test."""
    with Context(CACHEDIR=str(tmp_path / "cache")):
        yield tmp_path / "cache"


class FakeMetal:
    """The stand-in for Metal that ``metal/`` builds, and what a test may ask it.

    Attributes:
      path: the library.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.library = ctypes.CDLL(str(path))
        self.library.fake_violations.restype = ctypes.c_char_p
        self.library.fake_living.restype = ctypes.c_long
        self.library.fake_set.argtypes = (ctypes.c_char_p, ctypes.c_long)

    def set(self, option: str, value: int) -> None:
        """Sets an option of the system that it pretends to be; 0 is the usual."""
        self.library.fake_set(option.encode(), value)

    def violations(self) -> str:
        """What was against the rules since this was asked last, a line each."""
        found: bytes = self.library.fake_violations()
        self.library.fake_forgive()
        return found.decode()

    @property
    def living(self) -> int:
        """How many objects there are."""
        return int(self.library.fake_living())


@pytest.fixture(scope="session")
def metal_library(tmp_path_factory: pytest.TempPathFactory) -> FakeMetal:
    """A library that stands for the Objective-C runtime and Metal, made from its source."""
    c, cxx = find_tool("gcc", "cc", "clang"), find_tool("g++", "clang")
    if c is None or cxx is None:
        pytest.skip("no C and C++ compilers to build a stand-in for Metal with")
    folder = tmp_path_factory.mktemp("metal")
    install(str(folder))
    os.environ["FAKE_METAL_FOLDER"], os.environ["FAKE_METAL_CXX"] = str(folder), cxx
    path = folder / "libfakemetal.so"
    sources = sorted(str(source) for source in (Path(__file__).parent / "metal").glob("*.c"))
    flags = ["-std=gnu11", "-O1", "-w", "-shared", "-fPIC", "-fvisibility=hidden"]
    done = subprocess.run([c, *flags, *sources, "-o", str(path), "-ldl", "-lpthread"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return FakeMetal(path)


@pytest.fixture(scope="module")
def fake_metal(metal_library: FakeMetal) -> Iterator[FakeMetal]:
    """The stand-in in force: ``METAL`` opens one of its devices."""

    def forget() -> None:
        for key in [key for key in Device._opened if key[0].startswith("METAL")]:
            del Device._opened[key]
        Device._quick.clear()
        api._libraries.cache_clear()
        api.runtime.cache_clear()

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("METAL_LIBRARY", str(metal_library.path))
        forget()
        yield metal_library
    forget()


@pytest.fixture
def checked_metal(fake_metal: FakeMetal) -> Iterator[FakeMetal]:
    """The stand-in in force as it is usually; what is against its rules fails the test."""
    yield fake_metal
    for option in ("fail", "macOS", "no memory", "no borrowing", "no indirect", "old system", "no device", "threads"):
        fake_metal.set(option, 0)
    gc.collect()
    assert fake_metal.violations() == ""


@pytest.fixture
def metal(checked_metal: FakeMetal) -> Iterator[MetalDevice]:
    """The default device of the stand-in, of the registry."""
    with Context(DEV="METAL"):
        opened = Device["METAL"]
        assert isinstance(opened, MetalDevice)
        yield opened
        opened.synchronize()
