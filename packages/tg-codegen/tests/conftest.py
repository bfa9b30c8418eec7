"""The means to compile and run what the CPU renderers write."""

from __future__ import annotations

import ctypes
import platform
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest


Launch = Callable[..., None]
Compile = Callable[[str, str], Launch]


def _launcher(address: int, keep: object) -> Launch:
    def launch(*buffers: Any, vals: Sequence[int] = ()) -> None:
        views = [memoryview(b).cast("B") if not hasattr(b, "ctypes") else memoryview(b.reshape(-1)).cast("B") for b in buffers]
        raw = [(ctypes.c_char * max(len(v), 1)).from_buffer(v) for v in views]
        kinds = [ctypes.c_void_p] * len(raw) + [ctypes.c_int32] * len(vals)
        ctypes.CFUNCTYPE(None, *kinds)(address)(*(ctypes.addressof(b) for b in raw), *vals)
        assert keep is not None

    return launch


_shared_objects = 0


def _c_compiler(command: list[str], tmp_path: Path) -> Compile:
    def build(source: str, name: str) -> Launch:
        global _shared_objects
        _shared_objects += 1
        text, library = tmp_path / f"{name}.c", tmp_path / f"{name}{_shared_objects}.so"
        text.write_text(source)
        done = subprocess.run([*command, "-o", str(library), str(text)], capture_output=True, text=True)
        assert done.returncode == 0, f"{done.stderr}\n{source}"
        loaded = ctypes.CDLL(str(library))
        address = ctypes.cast(getattr(loaded, name), ctypes.c_void_p).value
        assert address is not None
        return _launcher(address, loaded)

    return build


_NATIVE = ["-march=native"] if platform.machine() in ("x86_64", "AMD64") else ["-mcpu=native"]


@pytest.fixture
def clang(tmp_path: Path) -> Compile:
    found = shutil.which("clang-19") or shutil.which("clang")
    if found is None:
        pytest.skip("clang is not installed")
    flags = ["-x", "c", "-std=c11", "-shared", "-fPIC", "-O1", *_NATIVE, "-fno-math-errno", "-nostdlib", "-Wall",
             "-Wno-psabi", "-Werror", "-Wno-unused"]  # fmt: skip
    return _c_compiler([found, *flags], tmp_path)


@pytest.fixture
def gcc(tmp_path: Path) -> Compile:
    found = shutil.which("gcc")
    if found is None:
        pytest.skip("gcc is not installed")
    flags = ["-x", "c", "-std=gnu11", "-shared", "-fPIC", "-O1", *_NATIVE, "-fno-math-errno", "-Wno-psabi", "-w"]
    return _c_compiler([found, *flags], tmp_path)


@pytest.fixture
def llvm() -> Compile:
    binding = pytest.importorskip("llvmlite.binding", reason="llvmlite is not installed")
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    host = binding.Target.from_default_triple()

    def build(source: str, name: str) -> Launch:
        machine = host.create_target_machine(
            cpu=binding.get_host_cpu_name(), features=binding.get_host_cpu_features().flatten(), opt=1, jit=True
        )
        module = binding.parse_assembly(source)
        module.verify()
        tuning = binding.create_pipeline_tuning_options(speed_level=1)
        binding.create_pass_builder(machine, tuning).getModulePassManager().run(
            module, binding.create_pass_builder(machine, tuning)
        )
        engine = binding.create_mcjit_compiler(module, machine)
        engine.finalize_object()
        return _launcher(engine.get_function_address(name), engine)

    return build


